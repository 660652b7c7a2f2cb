//! Rows about types, and the functions that read and print them.

use super::OWNER;
use super::cells::{Ch, Id, Nil, row};
use super::io_functions::IO_FUNCTIONS;
use crate::catalog::VirtualContext;
use crate::error::Result;
use crate::value::{Datum, Oid, info, oid};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Name of a type's input, output, receive, send or modifier function by its OID.
pub fn io_function_name(function: Oid) -> Option<&'static str> {
    match function {
        3 => return Some("heap_tableam_handler"),
        330 => return Some("bthandler"),
        331 => return Some("hashhandler"),
        6179 => return Some("array_subscript_handler"),
        6180 => return Some("raw_array_subscript_handler"),
        6098 => return Some("jsonb_subscript_handler"),
        _ => {}
    }
    let at = IO_FUNCTIONS.binary_search_by_key(&function, |f| f.0).ok()?;
    IO_FUNCTIONS.get(at).map(|f| f.1)
}

/// OID of such a function by name.
pub fn io_function_by_name(name: &str) -> Option<Oid> {
    static NAMES: OnceLock<HashMap<&'static str, Oid>> = OnceLock::new();
    NAMES
        .get_or_init(|| IO_FUNCTIONS.iter().map(|f| (f.1, f.0)).collect())
        .get(name)
        .copied()
}

/// `pg_type`
pub(super) fn pg_type(_: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    static ROWS: OnceLock<Vec<Vec<Datum>>> = OnceLock::new();
    Ok(ROWS
        .get_or_init(|| info::TYPES.iter().map(type_row).collect())
        .clone())
}

fn type_row(t: &info::TypeInfo) -> Vec<Datum> {
    let function = |name: &str| Id(io_function_by_name(name).unwrap_or(0));
    let subscript = match t.oid {
        oid::INT2VECTOR | oid::OIDVECTOR => 6179,
        oid::NAME => 6180,
        oid::JSONB => 6098,
        _ if t.category == 'A' => 6179,
        _ => 0,
    };
    row![
        Id(t.oid),
        t.name,
        Id(11),
        Id(OWNER),
        t.len,
        t.by_value,
        Ch(t.kind),
        Ch(t.category),
        t.preferred,
        true,
        Ch(','),
        Id(0),
        Id(subscript),
        Id(t.elem),
        Id(t.array),
        function(t.input),
        function(t.output),
        function(t.receive),
        function(t.send),
        function(t.modin),
        function(t.modout),
        Id(0),
        Ch(t.align),
        Ch(t.storage),
        false,
        Id(0),
        -1_i32,
        0_i32,
        Id(t.collation()),
        Nil,
        Nil,
        Nil,
    ]
}
