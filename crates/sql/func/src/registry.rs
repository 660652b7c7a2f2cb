//! The tables of built-in functions, operators and casts, and their lookup.
//!
//! Owns: the assembled registry, built once. Rows are in `table_*.rs`, with PostgreSQL's OIDs; tests check that every
//! operator and cast finds its function.

use super::aggregate::AGGREGATES;
use super::{
    Aggregate, Function, extensions, geometry, json, lsn, search, table_accumulate, table_casts,
    table_citext, table_functions, table_hstore, table_io, table_large_objects, table_money,
    table_network, table_operator_functions, table_operators, table_ranges, table_system,
    table_texts, table_timetz_bits, table_xids, table_xml, xml, xml_path,
};
use crate::pg_rows::{CastRow, Operator};
use foldhash::HashMap;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Oid, SqlType, oid};
use logstead_sql_types::{FunctionId, TypeId};
use std::sync::{Arc, OnceLock};

struct Registry {
    functions: HashMap<FunctionId, &'static Function>,
    functions_by_name: HashMap<&'static str, Vec<&'static Function>>,
    operators: HashMap<Oid, &'static Operator>,
    operators_by_name: HashMap<&'static str, Vec<&'static Operator>>,
    operators_by_function: HashMap<FunctionId, &'static Operator>,
    casts: HashMap<(TypeId, TypeId), &'static CastRow>,
    aggregates_by_name: HashMap<&'static str, Vec<&'static Aggregate>>,
}

fn tables() -> impl Iterator<Item = &'static Function> {
    table_functions::FUNCTIONS
        .iter()
        .chain(table_operator_functions::FUNCTIONS)
        .chain(table_accumulate::FUNCTIONS)
        .chain(table_casts::FUNCTIONS)
        .chain(json::table::FUNCTIONS)
        .chain(table_network::FUNCTIONS)
        .chain(geometry::table::FUNCTIONS)
        .chain(lsn::FUNCTIONS)
        .chain(table_timetz_bits::FUNCTIONS)
        .chain(table_ranges::FUNCTIONS)
        .chain(table_citext::FUNCTIONS)
        .chain(table_hstore::FUNCTIONS)
        .chain(table_money::FUNCTIONS)
        .chain(table_xids::FUNCTIONS)
        .chain(table_texts::FUNCTIONS)
        .chain(xml::FUNCTIONS)
        .chain(xml_path::FUNCTIONS)
        .chain(table_xml::FUNCTIONS)
        .chain(search::table::FUNCTIONS)
        .chain(table_io::FUNCTIONS)
        .chain(table_large_objects::FUNCTIONS)
        .chain(table_system::FUNCTIONS)
        .chain(extensions::FUNCTIONS)
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut r = Registry {
            functions: HashMap::default(),
            functions_by_name: HashMap::default(),
            operators: HashMap::default(),
            operators_by_name: HashMap::default(),
            operators_by_function: HashMap::default(),
            casts: HashMap::default(),
            aggregates_by_name: HashMap::default(),
        };
        for f in tables() {
            r.functions.entry(f.oid).or_insert(f);
            r.functions_by_name.entry(f.name).or_default().push(f);
        }
        for o in all_operators() {
            r.operators.insert(o.oid, o);
            r.operators_by_function.entry(o.function).or_insert(o);
            r.operators_by_name.entry(o.name).or_default().push(o);
        }
        for c in cast_rows() {
            r.casts.insert((c.source, c.target), c);
        }
        for a in AGGREGATES {
            r.aggregates_by_name.entry(a.name).or_default().push(a);
        }
        r
    })
}

/// All functions (those with default arguments appear once per number of arguments).
pub fn all_functions() -> impl Iterator<Item = &'static Function> {
    tables()
}

/// All operators.
pub fn all_operators() -> impl Iterator<Item = &'static Operator> {
    table_operators::OPERATORS
        .iter()
        .chain(table_network::OPERATORS)
        .chain(geometry::table::OPERATORS)
        .chain(lsn::OPERATORS)
        .chain(table_timetz_bits::OPERATORS)
        .chain(table_ranges::OPERATORS)
        .chain(table_citext::OPERATORS)
        .chain(table_hstore::OPERATORS)
        .chain(table_money::OPERATORS)
        .chain(table_xids::OPERATORS)
        .chain(table_texts::OPERATORS)
}

/// All casts between different types.
pub fn cast_rows() -> impl Iterator<Item = &'static CastRow> {
    table_casts::CASTS
        .iter()
        .chain(table_network::CASTS)
        .chain(geometry::table::CASTS)
        .chain(table_timetz_bits::CASTS)
        .chain(table_money::CASTS)
        .chain(table_xids::CASTS)
        .chain(xml::CASTS)
        .chain(table_ranges::CASTS)
        .chain(table_citext::CASTS)
        .chain(table_hstore::CASTS)
}

/// Function with this OID.
pub fn function_by_oid(oid: FunctionId) -> Option<&'static Function> {
    registry().functions.get(&oid).copied()
}

/// Functions of this name.
pub fn functions_named(name: &str) -> impl Iterator<Item = &'static Function> {
    registry()
        .functions_by_name
        .get(name)
        .into_iter()
        .flatten()
        .copied()
}

/// Operators of this name.
pub(super) fn operators_named(name: &str) -> &'static [&'static Operator] {
    registry()
        .operators_by_name
        .get(name)
        .map_or(&[], |v| v.as_slice())
}

/// Operator with this OID.
pub fn operator_by_oid(oid: Oid) -> Option<&'static Operator> {
    registry().operators.get(&oid).copied()
}

/// The operator that a function is the code of.
pub(super) fn all_operators_of(function: FunctionId) -> Option<&'static Operator> {
    registry().operators_by_function.get(&function).copied()
}

/// Aggregates of this name.
pub fn aggregates_named(name: &str) -> impl Iterator<Item = &'static Aggregate> {
    registry()
        .aggregates_by_name
        .get(name)
        .into_iter()
        .flatten()
        .copied()
}

/// Name of the function or aggregate with this OID.
pub fn name_of(oid: FunctionId) -> Option<&'static str> {
    function_by_oid(oid)
        .map(|f| f.name)
        .or_else(|| AGGREGATES.iter().find(|a| a.oid == oid).map(|a| a.name))
        .or_else(|| {
            let mut own = super::WINDOW_FUNCTIONS.iter();
            own.find(|w| w.oid == oid).map(|w| w.name)
        })
}

/// The schema a function is in: `pg_catalog` or `information_schema`.
pub fn schema_of(function: &Function) -> &'static str {
    match function.name {
        name if name.starts_with("_pg_") => "information_schema",
        _ => "pg_catalog",
    }
}

/// Names and types of the columns of a function that returns several (declared as `record`); empty for all others.
/// Types that follow from an argument are pseudo types ([`record_columns`]).
pub(super) fn set_columns(function: &Function) -> &'static [(&'static str, TypeId)] {
    match function.name {
        "pg_get_keywords" => &[
            ("word", oid::TEXT),
            ("catcode", oid::CHAR),
            ("barelabel", oid::BOOL),
            ("catdesc", oid::TEXT),
            ("baredesc", oid::TEXT),
        ],
        "pg_identify_object" => &[
            ("type", oid::TEXT),
            ("schema", oid::TEXT),
            ("name", oid::TEXT),
            ("identity", oid::TEXT),
        ],
        "pg_get_object_address" => &[
            ("classid", oid::OID),
            ("objid", oid::OID),
            ("objsubid", oid::INT4),
        ],
        "aclexplode" => &[
            ("grantor", oid::OID),
            ("grantee", oid::OID),
            ("privilege_type", oid::TEXT),
            ("is_grantable", oid::BOOL),
        ],
        "_pg_expandarray" => &[("x", oid::ANYELEMENT), ("n", oid::INT4)],
        "json_each" => &[("key", oid::TEXT), ("value", oid::JSON)],
        "jsonb_each" => &[("key", oid::TEXT), ("value", oid::JSONB)],
        "json_each_text" | "jsonb_each_text" | "each" => {
            &[("key", oid::TEXT), ("value", oid::TEXT)]
        }
        "unnest" if function.result == oid::RECORD => &[
            ("lexeme", oid::TEXT),
            ("positions", oid::INT2_ARRAY),
            ("weights", oid::TEXT_ARRAY),
        ],
        "ts_token_type" => &[
            ("tokid", oid::INT4),
            ("alias", oid::TEXT),
            ("description", oid::TEXT),
        ],
        "ts_parse" => &[("tokid", oid::INT4), ("token", oid::TEXT)],
        "pg_options_to_table" => &[("option_name", oid::TEXT), ("option_value", oid::TEXT)],
        _ => &[],
    }
}

/// The name that a function of one result column gives to it, whatever its alias.
pub fn result_name(function: &Function) -> Option<&'static str> {
    matches!(
        function.name,
        "json_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements"
            | "jsonb_array_elements_text"
    )
    .then_some("value")
}

/// The columns of a call with arguments of these types; empty for functions of one result column, and for those that
/// give the rows of a system relation ([`SystemRelationRows`](super::SystemRelationRows)).
pub fn record_columns(
    function: &Function,
    args: &[SqlType],
    types: &UserTypes,
) -> Vec<(Arc<str>, SqlType)> {
    // A record that the caller describes: what fills it and what it is cast to.
    if matches!(function.result, oid::ANYELEMENT | oid::RECORD)
        && let Some(shape) = args.first().and_then(|ty| types.tuple_desc_of(*ty))
    {
        return shape.to_vec();
    }
    let array = args.first().and_then(|ty| types.element_type(*ty));
    let element = array.map(|ty| ty.oid);
    // Elements that are records, taken apart.
    if function.is_set()
        && function.result == oid::ANYELEMENT
        && let Some(shape) = array.and_then(|element| types.tuple_desc_of(element))
    {
        return shape.to_vec();
    }
    let column = |(name, ty): &(&'static str, TypeId)| {
        let ty = match *ty {
            oid::ANYELEMENT => element.unwrap_or(oid::TEXT),
            ty => ty,
        };
        (Arc::from(*name), SqlType::of(ty))
    };
    set_columns(function).iter().map(column).collect()
}

/// `pg_cast` row between two types.
pub(super) fn cast_row(source: TypeId, target: TypeId) -> Option<&'static CastRow> {
    registry().casts.get(&(source, target)).copied()
}
