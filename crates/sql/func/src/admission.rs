//! Calls with large arguments: what they will take is charged before they run.
//!
//! Owns: an upper bound, from the arguments alone, of what a function allocates without asking. Functions whose results
//! grow faster than their arguments build them by `memory::Builder` and are charged step by step; the others copy their
//! arguments some times at most.
//!
//! Invariant: a call whose arguments are small costs a comparison for each of them.

use super::Function;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::{MemoryReservation, SMALL_BYTES};
use logstead_sql_types::value::admission::{NODE_BYTES, json_text_bytes};
use logstead_sql_types::value::build;
use logstead_sql_types::value::json::{JsonType, JsonbRef};
use logstead_sql_types::value::{Datum, oid};

/// Functions that charge what they build.
const BUILDERS: &[&str] = &[
    "array_append",
    "array_cat",
    "array_prepend",
    "array_fill",
    "array_to_string",
    "byteacat",
    "concat",
    "concat_ws",
    "encode",
    "format",
    "initcap",
    "jsonb_pretty",
    "lower",
    "lpad",
    "overlay",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "regexp_replace",
    "regexp_split_to_array",
    "repeat",
    "replace",
    "reverse",
    "rpad",
    "string_to_array",
    "textcat",
    "translate",
    "upper",
];

/// Runs a call; what it gives is charged as long as it lives.
#[inline]
pub fn call_charged(
    function: &Function,
    args: &[Datum],
    run: impl FnOnce() -> Result<Datum>,
) -> Result<Datum> {
    let room = match args.iter().any(build::is_large) {
        true => Some(admit(function, args)?),
        false => None,
    };
    let value = run()?;
    drop(room);
    build::charge_value(value)
}

/// Charges what a call of a function will take beside its arguments; 53200 if there is no room for it.
#[cold]
#[inline(never)]
pub fn admit(function: &Function, args: &[Datum]) -> Result<MemoryReservation> {
    check_for_interrupts()?;
    MemoryReservation::of(need(function, args))
}

fn need(function: &Function, args: &[Datum]) -> usize {
    let bytes: usize = args.iter().map(build::outside_bytes).sum();
    if BUILDERS.contains(&function.name) {
        return 0;
    }
    let trees: usize = args.iter().zip(function.args).map(tree_bytes).sum();
    if is_fixed(function.result) && !function.is_set() {
        return trees;
    }
    match function.name {
        // The text is taken apart into characters.
        // Pictures are read into lists of what they ask for.
        "to_char" | "to_number" | "to_date" | "to_timestamp" => 100 * bytes,
        "unistr" | "convert_from" | "convert_to" => 6 * bytes,
        // Lexemes with their places.
        "to_tsvector" | "ts_headline" | "tsvectorin" | "strip" | "setweight" => 12 * bytes,
        _ => trees + 2 * bytes,
    }
}

/// Whether values of a type are no longer than some words.
fn is_fixed(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::OID
            | oid::CHAR
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::TIMETZ
            | oid::INTERVAL
            | oid::MONEY
            | oid::UUID
            | oid::VOID
            | oid::PG_LSN
            | oid::POINT
            | oid::LINE
            | oid::LSEG
            | oid::BOX
            | oid::CIRCLE
    )
}

fn tree_bytes((value, ty): (&Datum, &TypeId)) -> usize {
    match value {
        Datum::Text(text) if *ty == oid::JSON => json_text_bytes(text),
        Datum::Jsonb(json) if json.bytes().len() >= SMALL_BYTES => nodes(json.view()) * NODE_BYTES,
        // What is made of each element.
        Datum::Array(array) => array.items.len() * 64,
        _ => 0,
    }
}

/// The nodes of a document.
fn nodes(view: JsonbRef<'_>) -> usize {
    match view.kind() {
        JsonType::Array => 1 + view.elements().map(nodes).sum::<usize>(),
        JsonType::Object => {
            1 + view
                .members()
                .map(|(_, value)| 1 + nodes(value))
                .sum::<usize>()
        }
        _ => 1,
    }
}
