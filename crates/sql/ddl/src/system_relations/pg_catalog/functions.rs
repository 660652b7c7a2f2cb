//! Rows about functions, operators, casts and aggregates: the function registry as PostgreSQL's catalogs show it.

use super::OWNER;
use super::cells::{Ch, Id, Nil, OidOrZero, oidvector, row};
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::{INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE};
use logstead_sql_catalog::io_functions::{IO_FUNCTIONS, LANGUAGE_FUNCTIONS, LanguageFunction};
use logstead_sql_func::{self as func, Aggregate, CastContext, Function, Volatility, extensions};
use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::hold_interrupts;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, FIRST_EXTENSION_OID, Oid, info, oid};
use logstead_sql_types::{FunctionId, SchemaId, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

type Rows = Result<Vec<Vec<Datum>>>;

/// Functions listed once each: several entries of one OID are one function with default arguments.
fn functions() -> &'static [&'static Function] {
    static ALL: OnceLock<Vec<&'static Function>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut seen = HashMap::new();
        for function in func::all_functions() {
            let entry = seen.entry(function.oid).or_insert(function);
            if entry.args.len() < function.args.len() {
                *entry = function;
            }
        }
        let mut all: Vec<_> = seen.into_values().collect();
        all.sort_unstable_by_key(|f| f.oid);
        all
    })
}

struct ProcRow<'a> {
    oid: FunctionId,
    schema: SchemaId,
    name: &'a str,
    args: Vec<TypeId>,
    result: TypeId,
    variadic: Option<TypeId>,
    kind: char,
    strict: bool,
    set: bool,
    volatility: char,
}

fn proc_row(p: &ProcRow<'_>) -> Vec<Datum> {
    row![
        p.oid,
        p.name,
        p.schema,
        OWNER,
        Id(12),
        1.0_f32,
        if p.set { 1000.0_f32 } else { 0.0 },
        OidOrZero(p.variadic),
        Id(0),
        Ch(p.kind),
        false,
        false,
        p.strict,
        p.set,
        Ch(p.volatility),
        Ch('s'),
        i16::try_from(p.args.len()).unwrap_or(i16::MAX),
        0_i16,
        p.result,
        oidvector(p.args.iter().copied()),
        Nil,
        Nil,
        Nil,
        Nil,
        Nil,
        p.name,
        Nil,
        Nil,
        Nil,
        Nil,
    ]
}

/// Argument types with the variadic tail as its array.
fn arguments(function: &Function) -> Vec<TypeId> {
    let tail = function.variadic.map(|element| match element {
        oid::ANY => oid::ANY,
        element => info::array_of(element).unwrap_or(element),
    });
    function.args.iter().copied().chain(tail).collect()
}

fn function_row(f: &Function, schema: SchemaId) -> Vec<Datum> {
    proc_row(&ProcRow {
        oid: f.oid,
        schema,
        name: f.name,
        args: arguments(f),
        result: f.result,
        variadic: f.variadic,
        kind: 'f',
        strict: f.strict,
        set: f.is_set(),
        volatility: match f.volatility {
            Volatility::Immutable => 'i',
            Volatility::Stable => 's',
            Volatility::Volatile => 'v',
        },
    })
}

/// `pg_proc`
pub(super) fn pg_proc(cx: &VirtualContext<'_>) -> Rows {
    static ROWS: OnceLock<Vec<Vec<Datum>>> = OnceLock::new();
    let built_in = ROWS.get_or_init(|| hold_interrupts(all_procs)).clone();
    let mut rows = super::extensions::seen(cx, built_in);
    for extension in cx.catalog.types.extensions() {
        let of = |f: &&&Function| extensions::of_function(f) == Some(extension.name.as_str());
        let own = functions().iter().filter(of);
        rows.extend(own.map(|f| function_row(f, extension.schema)));
    }
    let own = cx.catalog.routines.all().into_iter();
    rows.extend(own.map(|routine| super::routines::proc_row(routine, cx)));
    Ok(rows)
}

/// Does an extension bring the function?
pub(super) fn is_of_extension(function: FunctionId) -> bool {
    let all = functions();
    let at = all.binary_search_by_key(&function, |f| f.oid);
    let found = at.ok().and_then(|at| all.get(at));
    found.is_some_and(|f| extensions::of_function(f).is_some())
}

/// The functions that an extension brings.
pub(super) fn of_extension(name: &str) -> impl Iterator<Item = FunctionId> {
    let own = functions().iter();
    own.filter(move |f| extensions::of_function(f) == Some(name))
        .map(|f| f.oid)
}

const C_LANGUAGE: Oid = 13;
const INTERNAL: TypeId = TypeId::new(2281);

/// The row of a function that a language is made of.
fn language_function_row(function: &LanguageFunction) -> Vec<Datum> {
    let in_library = function.binary.is_some();
    let mut row = proc_row(&ProcRow {
        oid: function.oid,
        schema: PG_CATALOG_NAMESPACE,
        name: function.name,
        args: function.args.to_vec(),
        result: function.result,
        variadic: None,
        kind: 'f',
        strict: !function.args.is_empty(),
        set: false,
        volatility: if in_library { 'v' } else { 's' },
    });
    if let (true, [_, _, _, _, language, rest @ ..]) = (in_library, row.as_mut_slice())
        && let [.., binary, _, _, _] = rest
    {
        *language = Datum::Oid(C_LANGUAGE);
        *binary = function.binary.map_or(Datum::Null, Datum::text);
    }
    row
}

fn all_procs() -> Vec<Vec<Datum>> {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for f in functions() {
        if extensions::of_function(f).is_some() {
            continue;
        }
        seen.insert(f.oid);
        let schema = match func::schema_of(f) {
            "information_schema" => INFORMATION_SCHEMA_NAMESPACE,
            _ => PG_CATALOG_NAMESPACE,
        };
        rows.push(function_row(f, schema));
    }
    for a in func::AGGREGATES.iter() {
        if seen.insert(a.oid) {
            rows.push(proc_row(&ProcRow {
                oid: a.oid,
                schema: PG_CATALOG_NAMESPACE,
                name: a.name,
                args: a.args.to_vec(),
                result: a.result,
                variadic: None,
                kind: 'a',
                strict: false,
                set: false,
                volatility: 'i',
            }));
        }
    }
    for w in func::WINDOW_FUNCTIONS {
        if seen.insert(w.oid) {
            rows.push(proc_row(&ProcRow {
                oid: w.oid,
                schema: PG_CATALOG_NAMESPACE,
                name: w.name,
                args: w.args.to_vec(),
                result: w.result,
                variadic: None,
                kind: 'w',
                strict: !w.args.is_empty(),
                set: false,
                volatility: 'i',
            }));
        }
    }
    rows.extend(LANGUAGE_FUNCTIONS.iter().map(language_function_row));
    for function in IO_FUNCTIONS {
        if seen.insert(function.oid) {
            let args = io_arguments(function.name);
            rows.push(proc_row(&ProcRow {
                oid: function.oid,
                schema: PG_CATALOG_NAMESPACE,
                name: function.name,
                args,
                result: function.result,
                variadic: None,
                kind: 'f',
                strict: true,
                set: false,
                volatility: 'i',
            }));
        }
    }
    rows
}

/// What a type's functions take: text in, the type out, a buffer received, the type sent.
fn io_arguments(name: &str) -> Vec<TypeId> {
    const CSTRING: TypeId = TypeId::new(2275);
    const CSTRING_ARRAY: TypeId = TypeId::new(1263);
    let printed = info::TYPES
        .iter()
        .find(|t| t.output == name || t.send == name);
    match printed {
        // All of a kind are printed by one.
        Some(t) if t.kind == 'r' => vec![oid::ANYRANGE],
        Some(t) if t.kind == 'm' => vec![oid::ANYMULTIRANGE],
        Some(t) => vec![t.oid],
        None if name.ends_with("typmodin") => vec![CSTRING_ARRAY],
        None if name == "enum_in" => vec![CSTRING, oid::OID],
        None if name == "enum_recv" => vec![INTERNAL, oid::OID],
        // Those that read types with modifiers are told the type and the modifier.
        None if WITH_MODIFIER.contains(&name) => {
            let first = if name.ends_with("recv") {
                INTERNAL
            } else {
                CSTRING
            };
            vec![first, oid::OID, oid::INT4]
        }
        None if name.ends_with("typmodout") => vec![oid::INT4],
        None if name.ends_with("recv") => vec![INTERNAL],
        None => vec![CSTRING],
    }
}

/// Readers of types with modifiers, by name, sorted.
const WITH_MODIFIER: &[&str] = &[
    "anymultirange_in",
    "anyrange_in",
    "array_in",
    "array_recv",
    "bit_in",
    "bit_recv",
    "bpcharin",
    "bpcharrecv",
    "domain_in",
    "domain_recv",
    "interval_in",
    "interval_recv",
    "multirange_in",
    "multirange_recv",
    "numeric_in",
    "numeric_recv",
    "range_in",
    "range_recv",
    "record_in",
    "record_recv",
    "time_in",
    "time_recv",
    "timestamp_in",
    "timestamp_recv",
    "timestamptz_in",
    "timestamptz_recv",
    "timetz_in",
    "timetz_recv",
    "varbit_in",
    "varbit_recv",
    "varcharin",
    "varcharrecv",
];

/// A function as `regprocedure` prints it: its name and the types that it takes.
pub(crate) fn procedure_name(function: FunctionId, types: TypeLookup<'_>) -> Option<String> {
    let name = func::name_of(function)
        .or_else(|| logstead_sql_catalog::io_functions::io_function_name(function))?;
    let (arguments, _) = signature(function, types)?;
    let arguments = arguments.replace("VARIADIC ", "").replace(", ", ",");
    Some(format!("{}({arguments})", func::quote_identifier(name)))
}

/// The built-in function of a name that takes these types.
pub(crate) fn procedure_by_name(
    name: &str,
    types: &[TypeId],
    known: TypeLookup<'_>,
) -> Option<FunctionId> {
    let wanted = types.iter().map(|ty| known.format_type_bare(*ty));
    let wanted = wanted.collect::<Vec<_>>().join(", ");
    let takes = |function: &FunctionId| {
        let found = signature(*function, known);
        found.is_some_and(|(arguments, _)| arguments.replace("VARIADIC ", "") == wanted)
    };
    func::functions_named(name)
        .map(|f| f.oid)
        .chain(func::aggregates_named(name).map(|a| a.oid))
        .chain(logstead_sql_catalog::io_functions::io_function_by_name(
            name,
        ))
        .find(takes)
}

/// Argument list and result of a function, as `pg_get_function_arguments` and `_result` print them.
pub(crate) fn signature(function: FunctionId, types: TypeLookup<'_>) -> Option<(String, String)> {
    let name = |oid: TypeId| types.format_type_bare(oid);
    let all = functions();
    if let Ok(at) = all.binary_search_by_key(&function, |f| f.oid) {
        let f = all[at];
        let mut arguments: Vec<String> = f.args.iter().map(|a| name(*a)).collect();
        if let Some(element) = f.variadic {
            let array = info::array_of(element).unwrap_or(element);
            arguments.push(format!("VARIADIC {}", name(array)));
        }
        let set = if f.is_set() { "SETOF " } else { "" };
        return Some((arguments.join(", "), format!("{set}{}", name(f.result))));
    }
    if let Some(a) = func::AGGREGATES.iter().find(|a| a.oid == function) {
        let arguments: Vec<String> = a.args.iter().map(|a| name(*a)).collect();
        return Some((arguments.join(", "), name(a.result)));
    }
    if let Some(w) = func::WINDOW_FUNCTIONS.iter().find(|w| w.oid == function) {
        let arguments: Vec<String> = w.args.iter().map(|a| name(*a)).collect();
        return Some((arguments.join(", "), name(w.result)));
    }
    if let Some(f) = LanguageFunction::by_oid(function) {
        let arguments: Vec<String> = f.args.iter().map(|a| name(*a)).collect();
        return Some((arguments.join(", "), name(f.result)));
    }
    let io = IO_FUNCTIONS.iter().find(|f| f.oid == function)?;
    let arguments: Vec<String> = io_arguments(io.name).into_iter().map(name).collect();
    Some((arguments.join(", "), name(io.result)))
}

/// `CREATE FUNCTION` that would make a built-in function, as `pg_get_functiondef` prints it.
pub(crate) fn built_in_definition(function: FunctionId, types: TypeLookup<'_>) -> Option<String> {
    let all = functions();
    let at = all.binary_search_by_key(&function, |f| f.oid).ok()?;
    let f = all.get(at)?;
    let (arguments, result) = signature(function, types)?;
    let volatility = match f.volatility {
        Volatility::Immutable => " IMMUTABLE",
        Volatility::Stable => " STABLE",
        Volatility::Volatile => "",
    };
    let strict = if f.strict { " STRICT" } else { "" };
    let (schema, name) = (func::schema_of(f), func::quote_identifier(f.name));
    Some(format!(
        "CREATE OR REPLACE FUNCTION {schema}.{name}({arguments})\n RETURNS {result}\n LANGUAGE internal\n\
         {volatility} PARALLEL SAFE{strict}\nAS $function${}$function$\n",
        f.name
    ))
}

/// `pg_operator`
pub(super) fn pg_operator(cx: &VirtualContext<'_>) -> Rows {
    let rows = func::all_operators().map(|o| {
        row![
            Id(o.oid),
            o.name,
            PG_CATALOG_NAMESPACE,
            OWNER,
            Ch(if o.left.is_none() { 'l' } else { 'b' }),
            o.name == "=",
            o.name == "=",
            OidOrZero(o.left),
            o.right,
            o.result,
            Id(o.commutator),
            Id(o.negator),
            o.function,
            Id(0),
            Id(0),
        ]
    });
    Ok(super::extensions::seen(cx, rows.collect()))
}

/// `pg_cast`. Casts have no number of their own: it follows from their place, as in PostgreSQL's bootstrap.
pub(super) fn pg_cast(cx: &VirtualContext<'_>) -> Rows {
    let there = |ty: TypeId| ty.get() < FIRST_EXTENSION_OID || cx.catalog.types.get(ty).is_some();
    let numbered = func::cast_rows().zip(10_100_u32..);
    let known = numbered.filter(|(c, _)| there(c.source) && there(c.target));
    let rows = known.map(|(c, number)| {
        let context = match c.context {
            CastContext::Implicit => 'i',
            CastContext::Assignment => 'a',
            CastContext::Explicit => 'e',
        };
        let method = match (c.via_text, c.function) {
            (true, _) => 'i',
            (false, None) => 'b',
            _ => 'f',
        };
        row![
            Id(number),
            c.source,
            c.target,
            OidOrZero(c.function),
            Ch(context),
            Ch(method)
        ]
    });
    Ok(rows.collect())
}

/// `pg_aggregate`
pub(super) fn pg_aggregate(cx: &VirtualContext<'_>) -> Rows {
    let aggregate = |a: &Aggregate| {
        row![
            a.oid,
            Ch('n'),
            0_i16,
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            false,
            false,
            Ch('r'),
            Ch('r'),
            Id(0),
            a.result,
            0_i32,
            Id(0),
            0_i32,
            Nil,
            Nil,
        ]
    };
    let mut rows = super::extensions::seen(cx, func::AGGREGATES.iter().map(aggregate).collect());
    let own = cx.catalog.routines.all().into_iter();
    rows.extend(own.filter_map(|routine| super::routines::aggregate_row(routine)));
    Ok(rows)
}
