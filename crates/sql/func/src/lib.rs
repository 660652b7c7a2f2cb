//! Functions, operators, casts and aggregates: one registry, resolved by PostgreSQL's rules.
//!
//! Owns: the catalog of built-in functions (they also fill `pg_proc`, `pg_operator`, `pg_cast`, `pg_aggregate`),
//! overload resolution
//! (manual, chapter 10) and the code of each. Does no name lookup in user schemas and reads no tables.

#![forbid(unsafe_code)]

mod admission;
mod aggregate;
mod arithmetic;
mod array_assign;
pub mod arrays;
mod bits;
mod bytes;
mod cast;
mod catalog_function;
mod citext;
mod coercion;
mod context;
mod datetime;
mod digests;
mod encodings;
mod enums;
pub mod extensions;
mod format;
mod geometry;
mod hashes;
mod hstore;
mod json;
mod keywords;
mod like;
mod lsn;
mod math;
mod money;
mod network;
mod ordered_set;
mod overlaps;
mod patterns;
mod pg_rows;
mod quoting;
mod ranges;
mod regexp_search;
mod registry;
mod regression;
mod resolve;
mod search;
mod series;
mod strings;
mod system;
mod table_accumulate;
mod table_casts;
mod table_citext;
mod table_functions;
mod table_hstore;
mod table_io;
mod table_large_objects;
mod table_money;
mod table_network;
mod table_operator_functions;
mod table_operators;
mod table_ranges;
mod table_system;
mod table_texts;
mod table_timetz_bits;
mod table_xids;
mod table_xml;
mod timetz;
mod unicode;
mod user_aggregate;
mod user_functions;
mod variadic;
mod window;
mod xml;
mod xml_path;
mod xml_table;

pub use admission::{admit, call_charged};
pub use aggregate::AGGREGATES;
pub use array_assign::put_element;
pub use array_assign::{ARRAY_SET_ELEMENT, ARRAY_SET_SLICE};
pub use arrays::{ARRAY_ELEMENT, ARRAY_SLICE, ROW_IS_NOT_NULL, ROW_IS_NULL};
pub use catalog_function::{
    AdvisoryLockFunction, AdvisoryLockScope, CatalogFunction, CatalogSet, LargeObjectFunction,
    RoutineFunction, ServerFunction, SystemRelationRows, XmlMapFunction,
};
pub use coercion::{apply_cast, find_cast};
pub use context::{
    CatalogFunctions, FunctionContext, RandomNumbers, RestorePointRequest, Sequences,
    ServerFunctions, SessionActions, SessionInfo, Snapshots,
};
pub use datetime::{add_to_timestamptz, date_moment, timestamp_moment};
pub use enums::takes_labels;
pub use geometry::{SET_FIXED_ELEMENT, put_fixed_element};
pub use json::JSONB_SET_ELEMENT;
pub use like::{like_match, like_prefix};
pub use logstead_sql_parse::Volatility;
use logstead_sql_types::value::typmod::coerce_typmod;
use logstead_sql_types::value::{DateTimeContext, IoContext};
use logstead_sql_types::{FunctionId, TypeId};
pub use pg_rows::{CastRow, Operator};
pub use quoting::quote_identifier;
pub use registry::{
    aggregates_named, all_functions, all_operators, cast_rows, function_by_oid, functions_named,
    name_of, operator_by_oid, record_columns, result_name, schema_of,
};
pub use resolve::bind_types;
pub use resolve::{
    Comparison, FuncDetail, ResolvedAggregate, aggregate_takes, can_coerce, common_type,
    common_type_for, is_aggregate, is_polymorphic, is_window_function, operator_class,
    resolve_aggregate, resolve_function, resolve_operator, resolve_variadic,
    resolve_window_function, type_cast_call,
};
pub use search::text_vector;
pub use series::Series;
pub use table_functions::sql_value_function;
pub use user_aggregate::USER_AGGREGATE;
pub use user_functions::{CallTarget, UserCandidate, resolve_with_user_functions};
pub use variadic::VARIADIC_CALL;
pub use window::{WINDOW_FUNCTIONS, WindowFunction, WindowKind, in_range, range_offsets};

pub use xml::{
    XML_CONCAT, XML_ELEMENT, XML_FOREST, XML_IS_DOCUMENT, XML_PARSE, XML_PI, XML_ROOT,
    XML_SERIALIZE, append_value, xml_name,
};
pub use xml_table::XML_TABLE;

use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, SqlType};

/// What makes a value of a user's range or multirange, with the types of its arguments; none if they are not so many.
pub fn range_constructor(
    ty: TypeId,
    arguments: usize,
) -> Option<(&'static Function, Vec<SqlType>)> {
    use logstead_sql_types::value::{multirange, oid, range};
    if let Some(range) = multirange::range_of(ty) {
        let taken = vec![SqlType::of(range); arguments];
        return Some((&ranges::MULTIRANGE_CONSTRUCTOR, taken));
    }
    let bound = SqlType::of(range::subtype(ty)?);
    let taken = match arguments {
        2 => vec![bound, bound],
        3 => vec![bound, bound, SqlType::of(oid::TEXT)],
        _ => return None,
    };
    Some((ranges::constructor(ty), taken))
}

/// What a set-returning function yields: one inner vector per row.
pub type Rows = Vec<Vec<Datum>>;

/// Code of a function, with the narrowest context that it needs.
#[derive(Clone, Copy)]
pub enum FunctionImpl {
    /// Depends on its arguments alone.
    Pure(fn(&[Datum]) -> Result<Datum>),
    /// Depends on its two arguments alone, which stay where they are: operators, of which rows without number are
    /// asked.
    Pair(fn(&Datum, &Datum) -> Result<Datum>),
    /// Needs the session's clock and time zone.
    DateTime(fn(&dyn DateTimeContext, &[Datum]) -> Result<Datum>),
    /// Reads or writes values as text, as the session's settings say.
    Io(fn(&dyn IoContext, &[Datum]) -> Result<Datum>),
    /// The same, of values of any type: it needs the types of its arguments.
    Typed(fn(&dyn IoContext, &[SqlType], &[Datum]) -> Result<Datum>),
    /// Needs random numbers.
    Random(fn(&dyn RandomNumbers, &[Datum]) -> Result<Datum>),
    /// Tells of the session.
    Session(fn(&dyn SessionInfo, &[Datum]) -> Result<Datum>),
    /// Reads or moves sequences.
    Sequence(fn(&dyn Sequences, &[Datum]) -> Result<Datum>),
    /// Changes the session.
    Action(fn(&dyn SessionActions, &[Datum]) -> Result<Datum>),
    /// Reads the catalog.
    Catalog(CatalogFunction),
    /// Tells of the server or acts on it.
    Server(ServerFunction),
    /// Needs several of these.
    Context(fn(&dyn FunctionContext, &[Datum]) -> Result<Datum>),
    /// Needs the running transaction. It takes no arguments.
    Transaction(fn(&dyn Snapshots, &mut logstead_engine::Txn) -> Result<Datum>),
    /// Yields rows (unnest, ...): one inner vector per row, one datum per output column.
    Set(fn(&[Datum]) -> Result<Rows>),
    /// Yields rows that it has from the catalog.
    CatalogSet(CatalogSet),
    /// Yields rows that it has from the session.
    ContextSet(fn(&dyn FunctionContext, &[Datum]) -> Result<Rows>),
    /// Yields rows of one column, made when they are asked for (generate_series).
    Series(fn(&[Datum]) -> Result<Series>),
    /// Yields rows, and needs the types of its arguments.
    TypedSet(fn(&dyn IoContext, &[SqlType], &[Datum]) -> Result<Rows>),
    /// Is run by the session, as users' functions are: it reads and writes rows.
    Run(RoutineFunction),
}

/// A built-in function, the function behind an operator, or a cast.
pub struct Function {
    /// `pg_proc.oid` (PostgreSQL's number where it has one).
    pub oid: FunctionId,
    /// `pg_proc.proname`.
    pub name: &'static str,
    /// Argument types; `ANY*` pseudo types accept what resolution gives.
    pub args: &'static [TypeId],
    /// Type of the variadic tail's elements, if any (`"any"` for format, concat...).
    pub variadic: Option<TypeId>,
    /// Result type (without modifier).
    pub result: TypeId,
    /// NULL in, NULL out without a call.
    pub strict: bool,
    /// When the result may change.
    pub volatility: Volatility,
    /// Code.
    pub body: FunctionImpl,
}

/// A row of the registry's tables, in the order of the columns.
#[allow(
    clippy::too_many_arguments,
    reason = "one call per row of a literal table"
)]
pub const fn function(
    oid: u32,
    name: &'static str,
    args: &'static [TypeId],
    variadic: Option<TypeId>,
    result: TypeId,
    strict: bool,
    volatility: Volatility,
    body: FunctionImpl,
) -> Function {
    Function {
        oid: FunctionId::new(oid),
        name,
        args,
        variadic,
        result,
        strict,
        volatility,
        body,
    }
}

impl Function {
    /// Calls code that depends on its arguments alone; none for any other.
    #[inline]
    pub fn call_pure(&self, args: &[Datum]) -> Option<Result<Datum>> {
        match (self.body, args) {
            (FunctionImpl::Pure(body), _) => Some(call_charged(self, args, || body(args))),
            (FunctionImpl::Pair(body), [a, b]) => Some(body(a, b)),
            (FunctionImpl::Pair(_), _) => Some(Err(arithmetic::bad_args(args))),
            _ => None,
        }
    }

    /// Calls code that makes one value of its arguments and of what the session gives; none for any other.
    #[inline]
    pub fn call_in(&self, cx: &dyn FunctionContext, args: &[Datum]) -> Option<Result<Datum>> {
        Some(match self.body {
            FunctionImpl::Pure(_) | FunctionImpl::Pair(_) => return self.call_pure(args),
            FunctionImpl::DateTime(body) => call_charged(self, args, || body(cx, args)),
            FunctionImpl::Io(body) => call_charged(self, args, || body(cx, args)),
            FunctionImpl::Random(body) => call_charged(self, args, || body(cx.random()?, args)),
            FunctionImpl::Session(body) => {
                call_charged(self, args, || body(cx.session_info()?, args))
            }
            FunctionImpl::Sequence(body) => {
                call_charged(self, args, || body(cx.sequences()?, args))
            }
            FunctionImpl::Action(body) => call_charged(self, args, || body(cx.actions()?, args)),
            FunctionImpl::Catalog(function) => call_charged(self, args, || {
                cx.catalog_functions()?.catalog_call(function, args)
            }),
            FunctionImpl::Server(function) => call_charged(self, args, || {
                cx.server_functions()?.server_call(function, args)
            }),
            FunctionImpl::Context(body) => call_charged(self, args, || body(cx, args)),
            FunctionImpl::Typed(_)
            | FunctionImpl::Transaction(_)
            | FunctionImpl::Set(_)
            | FunctionImpl::ContextSet(_)
            | FunctionImpl::CatalogSet(_)
            | FunctionImpl::Series(_)
            | FunctionImpl::TypedSet(_)
            | FunctionImpl::Run(_) => return None,
        })
    }

    /// Calls code that makes one value of its arguments, as texts are read and written; none for any other.
    pub fn call_io(&self, cx: &dyn IoContext, args: &[Datum]) -> Option<Result<Datum>> {
        match self.body {
            FunctionImpl::DateTime(body) => Some(call_charged(self, args, || body(cx, args))),
            FunctionImpl::Io(body) => Some(call_charged(self, args, || body(cx, args))),
            _ => self.call_pure(args),
        }
    }

    /// True for functions that yield rows.
    pub fn is_set(&self) -> bool {
        matches!(
            self.body,
            FunctionImpl::Set(_)
                | FunctionImpl::ContextSet(_)
                | FunctionImpl::CatalogSet(_)
                | FunctionImpl::TypedSet(_)
                | FunctionImpl::Series(_)
        )
    }
}

/// Where a cast is being applied (PostgreSQL's castcontext).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere.
    Implicit,
    /// Storing into a column.
    Assignment,
    /// CAST(x AS t), x::t.
    Explicit,
}

/// A way from one type to another.
#[derive(Clone, Copy)]
pub enum Cast {
    /// The stored value is already right (text to varchar without length, int4 to oid).
    Relabel,
    /// One function of one argument.
    Function(&'static Function),
    /// Through text: output of the source, input of the target (I/O conversion).
    ViaText,
}

/// An aggregate function.
pub struct Aggregate {
    /// `pg_proc.oid`.
    pub oid: FunctionId,
    /// Name.
    pub name: &'static str,
    /// Argument types (empty: count(*)).
    pub args: &'static [TypeId],
    /// Result type.
    pub result: TypeId,
    /// Makes an empty state; `input` are the actual argument types.
    pub start: fn(input: &[SqlType]) -> Box<dyn AggregateState>,
    /// Rows with a NULL argument are skipped before `add`.
    pub strict: bool,
}

/// Running state of one aggregate in one group.
pub trait AggregateState {
    /// Takes one row's arguments.
    fn add(&mut self, args: &[Datum]) -> Result<()>;
    /// The same for aggregates whose result depends on the session's settings.
    fn add_in(&mut self, _cx: &dyn IoContext, args: &[Datum]) -> Result<()> {
        self.add(args)
    }
    /// Takes back the row that was added first of those that are in, exactly: false if it cannot, and the state is
    /// good for nothing more.
    fn remove(&mut self, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// An ordered set that has had no row does not know its direct argument yet, and is told it.
    fn wants_direct(&self) -> bool {
        false
    }
    /// The direct argument.
    fn direct(&mut self, _asked: Datum) {}
    /// The result so far.
    fn value(&self) -> Result<Datum>;
    /// The result; the state is done.
    fn finish(&mut self) -> Result<Datum> {
        self.value()
    }
    /// Bytes held, roughly, for the memory limit.
    fn size_bytes(&self) -> usize {
        std::mem::size_of_val(self)
    }
}

#[cfg(test)]
mod tests;
