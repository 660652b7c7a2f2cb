//! Functions and procedures that users have made: what the catalog knows of them, and how they are looked up and
//! printed.
//!
//! Owns: [`Routine`] and [`Routines`], a catalog's list of them. Who calls one binds its body itself (`bind::routine`);
//! bodies are kept as they were written.
//!
//! Invariants: within a schema no two have one name and the same input types; an OID never changes its kind.

use super::Catalog;
use super::aggregate::{Aggregate, AggregateKind};
use super::temporary::{ALIAS, is_temporary_schema};
use super::text::{quote_ident, quote_literal};
use logstead_sql_func::{Volatility, bind_types, is_polymorphic};
pub use logstead_sql_parse::ArgMode;
use logstead_sql_types::error::Result;
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Oid, SqlType, info, oid};
use logstead_sql_types::{FunctionId, SchemaId, TypeId};
use std::fmt::Write;
use std::sync::Arc;

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name; empty for none.
    pub name: String,
    /// What it is for.
    pub mode: ArgMode,
    /// Its type; domains are themselves.
    pub ty: TypeId,
    /// DEFAULT as stored text.
    pub default: Option<String>,
}

/// Languages that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of languages")]
pub enum Language {
    Sql,
    PlPgSql,
}

/// `pg_language.oid` of plpgsql. A number that a new database of PostgreSQL gives to it.
pub const LANGUAGE_PLPGSQL: Oid = 13_563;

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::PlPgSql => "plpgsql",
        }
    }

    /// `pg_language.oid`
    pub fn oid(self) -> Oid {
        match self {
            Language::Sql => 14,
            Language::PlPgSql => LANGUAGE_PLPGSQL,
        }
    }
}

/// Which kind of body it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutineBody {
    /// AS 'text': read when it is called, with the names that the caller's `search_path` finds.
    Text(String),
}

impl RoutineBody {
    /// `pg_proc.prosrc`
    pub fn source(&self) -> &str {
        match self {
            RoutineBody::Text(text) => text,
        }
    }
}

/// PARALLEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Parallel {
    Unsafe,
    Restricted,
    Safe,
}

impl Parallel {
    /// As `pg_proc.proparallel` has it.
    pub fn letter(self) -> char {
        match self {
            Parallel::Unsafe => 'u',
            Parallel::Restricted => 'r',
            Parallel::Safe => 's',
        }
    }
}

/// A function or procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    /// `pg_proc.oid`
    pub oid: FunctionId,
    /// Name.
    pub name: String,
    /// Schema OID.
    pub schema: SchemaId,
    /// Schema name.
    pub schema_name: String,
    /// It is a procedure.
    pub procedure: bool,
    /// What the body is written in.
    pub language: Language,
    /// All arguments in order, columns of RETURNS TABLE at the end.
    pub args: Vec<Argument>,
    /// `prorettype`
    pub result: TypeId,
    /// RETURNS SETOF or TABLE.
    pub set: bool,
    /// IMMUTABLE, STABLE, VOLATILE.
    pub volatility: Volatility,
    /// RETURNS NULL ON NULL INPUT.
    pub strict: bool,
    /// LEAKPROOF.
    pub leakproof: bool,
    /// SECURITY DEFINER.
    pub definer: bool,
    /// PARALLEL.
    pub parallel: Parallel,
    /// COST.
    pub cost: f32,
    /// ROWS; 0 if it gives no set.
    pub rows: f32,
    /// SET clauses as `name=value`, as they are in `proconfig`.
    pub config: Vec<String>,
    /// The body.
    pub body: RoutineBody,
    /// It is an aggregate: this one.
    pub aggregate: Option<Arc<Aggregate>>,
}

impl Routine {
    /// Is it one session's own?
    pub fn is_temporary(&self) -> bool {
        is_temporary_schema(&self.schema_name)
    }

    /// The arguments that a caller gives.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|arg| arg.mode.is_input())
    }

    /// Types of the arguments that a caller gives: `proargtypes`.
    pub fn input_types(&self) -> Vec<TypeId> {
        self.inputs().map(|arg| arg.ty).collect()
    }

    /// The parts of the result: OUT and INOUT arguments, or the columns of RETURNS TABLE.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|arg| arg.mode.is_output())
    }

    /// The types of the outputs in a call with arguments of these types, which say what polymorphic ones are.
    pub fn output_types(&self, given: &[SqlType], types: TypeLookup<'_>) -> Result<Vec<SqlType>> {
        let declared = self.outputs().map(|arg| SqlType::of(arg.ty));
        if !self.outputs().any(|arg| is_polymorphic(arg.ty)) {
            return Ok(declared.collect());
        }
        let inputs = self.input_types();
        let given: Vec<SqlType> = given.iter().map(|ty| types.types.base_type(*ty)).collect();
        let known = |ty: SqlType| match is_polymorphic(ty.oid) {
            true => Ok(bind_types(&inputs, ty.oid, &given, types)?.1),
            false => Ok(ty),
        };
        declared.map(known).collect()
    }

    /// The element type of the VARIADIC argument: `provariadic`.
    pub fn variadic(&self) -> Option<TypeId> {
        let tail = self.args.iter().find(|arg| arg.mode == ArgMode::Variadic);
        tail.map(|arg| match arg.ty {
            oid::ANY => oid::ANY,
            ty => info::element_of(ty).unwrap_or(oid::ANYELEMENT),
        })
    }

    /// How many of its last inputs have defaults: `pronargdefaults`.
    pub fn defaults(&self) -> usize {
        self.inputs().filter(|arg| arg.default.is_some()).count()
    }

    /// "function", "procedure" or "aggregate".
    pub fn word(&self) -> &'static str {
        match (self.procedure, &self.aggregate) {
            (true, _) => "procedure",
            (false, None) => "function",
            (false, Some(_)) => "aggregate",
        }
    }

    /// `prokind`
    pub fn kind(&self) -> char {
        match (self.procedure, &self.aggregate) {
            (true, _) => 'p',
            (false, None) => 'f',
            (false, Some(_)) => 'a',
        }
    }

    /// Where ORDER BY stands among the arguments of an ordered-set aggregate: behind so many.
    fn ordered_behind(&self) -> Option<usize> {
        let aggregate = self.aggregate.as_ref()?;
        (aggregate.kind == AggregateKind::OrderedSet).then_some(usize::from(aggregate.direct))
    }

    /// The value of a SET clause.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.config.iter().find_map(|item| {
            let (known, value) = item.split_once('=')?;
            (known == name).then_some(value)
        })
    }

    /// All types that it names.
    pub fn types(&self) -> impl Iterator<Item = TypeId> {
        let all = self.args.iter().map(|arg| arg.ty);
        let states = self.aggregate.iter().flat_map(|own| own.states());
        all.chain([self.result]).chain(states)
    }

    /// Name and input types, as messages have it.
    pub fn signature(&self, name: &str, types: TypeLookup<'_>) -> String {
        let inputs = self.inputs();
        let inputs: Vec<String> = inputs.map(|arg| types.format_type_bare(arg.ty)).collect();
        format!("{name}({})", inputs.join(","))
    }

    /// Its arguments as `pg_get_function_arguments` prints them, with defaults, or as
    /// `pg_get_function_identity_arguments` does. `shown` prints a stored text.
    pub fn arguments_text(
        &self,
        identity: bool,
        types: TypeLookup<'_>,
        shown: &dyn Fn(&str) -> String,
    ) -> String {
        let mut out = String::new();
        for (number, arg) in self.args.iter().enumerate() {
            if arg.mode == ArgMode::Table {
                continue;
            }
            if self.ordered_behind() == Some(number) {
                out.push_str(if number > 0 {
                    " ORDER BY "
                } else {
                    "ORDER BY "
                });
            } else if !out.is_empty() {
                out.push_str(", ");
            }
            let word = match arg.mode {
                // Procedures are told apart by their OUT arguments, too.
                ArgMode::In if self.procedure => "IN ",
                ArgMode::In | ArgMode::Table => "",
                ArgMode::Out => "OUT ",
                ArgMode::InOut => "INOUT ",
                ArgMode::Variadic => "VARIADIC ",
            };
            out.push_str(word);
            if !arg.name.is_empty() {
                let _ = write!(out, "{} ", quote_ident(&arg.name));
            }
            out.push_str(&types.format_type(SqlType::of(arg.ty)));
            if let Some(default) = arg.default.as_deref().filter(|_| !identity) {
                let _ = write!(out, " DEFAULT {}", shown(default));
            }
        }
        out
    }

    /// Its result as `pg_get_function_result` prints it; procedures have none.
    pub fn result_text(&self, types: TypeLookup<'_>) -> Option<String> {
        if self.procedure {
            return None;
        }
        let columns: Vec<String> = self
            .args
            .iter()
            .filter(|arg| arg.mode == ArgMode::Table)
            .map(|arg| {
                let ty = types.format_type(SqlType::of(arg.ty));
                match arg.name.is_empty() {
                    true => ty,
                    false => format!("{} {ty}", quote_ident(&arg.name)),
                }
            })
            .collect();
        if !columns.is_empty() {
            return Some(format!("TABLE({})", columns.join(", ")));
        }
        let set = if self.set { "SETOF " } else { "" };
        Some(format!(
            "{set}{}",
            types.format_type(SqlType::of(self.result))
        ))
    }

    /// The statement that makes it: `pg_get_functiondef`.
    pub fn definition(&self, types: TypeLookup<'_>, shown: &dyn Fn(&str) -> String) -> String {
        let word = self.word().to_uppercase();
        let mut out = format!(
            "CREATE OR REPLACE {word} {}.{}({})\n",
            quote_ident(&self.schema_name),
            quote_ident(&self.name),
            self.arguments_text(false, types, shown)
        );
        if let Some(result) = self.result_text(types) {
            let _ = writeln!(out, " RETURNS {result}");
        }
        let _ = writeln!(out, " LANGUAGE {}", self.language.name());
        let mut words: Vec<String> = Vec::new();
        match self.volatility {
            Volatility::Immutable => words.push("IMMUTABLE".to_owned()),
            Volatility::Stable => words.push("STABLE".to_owned()),
            Volatility::Volatile => {}
        }
        match self.parallel {
            Parallel::Safe => words.push("PARALLEL SAFE".to_owned()),
            Parallel::Restricted => words.push("PARALLEL RESTRICTED".to_owned()),
            Parallel::Unsafe => {}
        }
        let flags = [
            (self.strict, "STRICT"),
            (self.definer, "SECURITY DEFINER"),
            (self.leakproof, "LEAKPROOF"),
        ];
        words.extend(
            flags
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, word)| (*word).to_owned()),
        );
        if self.cost != DEFAULT_COST {
            words.push(format!("COST {}", number(self.cost)));
        }
        if self.rows > 0.0 && self.rows != DEFAULT_ROWS {
            words.push(format!("ROWS {}", number(self.rows)));
        }
        if !words.is_empty() {
            let _ = writeln!(out, " {}", words.join(" "));
        }
        for item in &self.config {
            let Some((name, value)) = item.split_once('=') else {
                continue;
            };
            // Lists of names are kept quoted as they are to be written.
            let value = match LISTS_OF_NAMES.contains(&name) {
                true => names_as_literals(value),
                false => quote_literal(value),
            };
            let _ = writeln!(out, " SET {} TO {value}", quote_ident(name));
        }
        let source = self.body.source();
        // As PostgreSQL: a tag that the body does not have.
        let mut tag = String::from(match self.procedure {
            true => "$procedure",
            false => "$function",
        });
        while source.contains(&tag) {
            tag.push('x');
        }
        let _ = writeln!(out, "AS {tag}${source}{tag}$");
        out
    }
}

/// Begins the name of a function that is its number.
const NUMBER_MARK: char = '\u{3}';

/// How a text that is kept names a function: by its number, with the name that it was called by, after which columns
/// are called.
pub fn stored_name(routine: FunctionId, name: &str) -> String {
    quote_ident(&format!("{NUMBER_MARK}{routine}:{name}"))
}

/// The functions that a text that is kept names.
pub fn named_in(stored: &str) -> impl Iterator<Item = FunctionId> {
    let rest = stored.split(NUMBER_MARK).skip(1);
    rest.filter_map(|rest| rest.split_once(':')?.0.parse().ok().map(FunctionId::new))
}

impl Catalog {
    /// A text that was kept, as it is printed, with the names that its functions have now.
    pub fn routines_shown(&self, text: &str, path: &[String]) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(NUMBER_MARK) {
            let (before, after) = rest.split_at(at);
            let number = after.get(NUMBER_MARK.len_utf8()..).unwrap_or_default();
            let number = number.split(':').next().and_then(|n| n.parse().ok());
            let routine = number.and_then(|number| self.routines.get(FunctionId::new(number)));
            // The name ends at the quote that is not doubled.
            let mut end = after.len();
            let mut bytes = after.char_indices().peekable();
            while let Some((place, c)) = bytes.next() {
                if c == '"' && bytes.next_if(|(_, next)| *next == '"').is_none() {
                    end = place;
                    break;
                }
            }
            match (before.strip_suffix('"'), routine) {
                (Some(before), Some(routine)) => {
                    out.push_str(before);
                    out.push_str(&self.routine_name(routine, path));
                    rest = after.get(end + 1..).unwrap_or_default();
                }
                _ => {
                    out.push_str(before);
                    rest = after.get(NUMBER_MARK.len_utf8()..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// COST that is not said.
pub const DEFAULT_COST: f32 = 100.0;
/// ROWS that is not said, of a set.
pub const DEFAULT_ROWS: f32 = 1000.0;
/// Settings whose values are lists of names.
pub const LISTS_OF_NAMES: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// A list of names, quoted as identifiers, as literals.
fn names_as_literals(value: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                name.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => names.push(std::mem::take(&mut name)),
            ' ' if !quoted => {}
            c => name.push(c),
        }
    }
    names.push(name);
    let literals: Vec<String> = names.iter().map(|name| quote_literal(name)).collect();
    literals.join(", ")
}

/// A cost as `%g` prints it.
fn number(value: f32) -> String {
    format!("{value}")
}

/// All functions and procedures of a database.
#[derive(Clone, Default)]
pub struct Routines {
    all: PersistentMap<FunctionId, Arc<Routine>>,
    names: PersistentMap<String, Vec<FunctionId>>,
}

impl Routines {
    /// That with this OID.
    pub fn get(&self, oid: FunctionId) -> Option<&Arc<Routine>> {
        self.all.get(&oid)
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of a name, in whatever schema, oldest first.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Routine>> {
        let found = self.names.get(name).into_iter().flatten();
        found.filter_map(|oid| self.all.get(oid))
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<&Arc<Routine>> {
        let mut all: Vec<_> = self.all.values().collect();
        all.sort_unstable_by_key(|routine| routine.oid);
        all
    }

    /// Adds or replaces one.
    pub(super) fn put(&mut self, routine: Arc<Routine>) {
        self.remove(routine.oid);
        let mut named = self.names.remove(&routine.name).unwrap_or_default();
        named.push(routine.oid);
        named.sort_unstable();
        self.names.insert(routine.name.clone(), named);
        self.all.insert(routine.oid, routine);
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, oid: FunctionId) {
        if let Some(old) = self.all.remove(&oid)
            && let Some(mut named) = self.names.remove(&old.name)
        {
            named.retain(|known| *known != oid);
            if !named.is_empty() {
                self.names.insert(old.name.clone(), named);
            }
        }
    }
}

impl Catalog {
    /// Functions and procedures of a name that a call may mean, those of earlier schemas first: of those with the same
    /// input types only the first is in sight. Those of the session's temporary schema are never found by a bare name.
    /// With each comes the place of its schema on the path; pg_catalog's own stands at the place that comes second.
    pub fn routines_named(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &[String],
    ) -> Vec<(usize, &Arc<Routine>)> {
        let mut found: Vec<(usize, &Arc<Routine>)> = Vec::new();
        for routine in self.routines.named(name) {
            let place = match schema {
                Some(ALIAS) => routine.is_temporary().then_some(0),
                Some(schema) => (routine.schema_name == schema).then_some(0),
                // Nobody who calls a function by its bare name is to run one that has been slipped in.
                None if routine.is_temporary() => None,
                None => path.iter().position(|s| *s == routine.schema_name),
            };
            if let Some(place) = place {
                found.push((place, routine));
            }
        }
        found.sort_by_key(|(place, routine)| (*place, routine.oid));
        let mut seen: Vec<Vec<TypeId>> = Vec::new();
        found.retain(|(_, routine)| {
            let types = routine.input_types();
            let new = !seen.contains(&types);
            seen.push(types);
            new
        });
        found
    }

    /// That of a schema with these input types.
    pub fn routine_exactly(
        &self,
        schema: &str,
        name: &str,
        types: &[TypeId],
    ) -> Option<&Arc<Routine>> {
        self.routines
            .named(name)
            .find(|r| r.schema_name == schema && r.input_types() == types)
    }

    /// Does its bare name with its input types mean it?
    pub fn routine_is_visible(&self, routine: &Routine, path: &[String]) -> bool {
        let types = routine.input_types();
        let found = self.routines_named(None, &routine.name, path);
        let own = found.iter().find(|(_, r)| r.input_types() == types);
        let system = path.iter().position(|s| s == "pg_catalog").unwrap_or(0);
        let hidden = |place: usize| {
            let before = match path.iter().any(|s| s == "pg_catalog") {
                true => system < place,
                false => true,
            };
            before
                && logstead_sql_func::functions_named(&routine.name)
                    .any(|f| f.variadic.is_none() && f.args == types)
        };
        own.is_some_and(|(place, r)| r.oid == routine.oid && !hidden(*place))
    }

    /// Its name as messages and `regprocedure` have it: qualified only if the path does not find it.
    pub fn routine_name(&self, routine: &Routine, path: &[String]) -> String {
        match self.routine_is_visible(routine, path) {
            true => quote_ident(&routine.name),
            false => format!(
                "{}.{}",
                quote_ident(&routine.schema_name),
                quote_ident(&routine.name)
            ),
        }
    }
}
