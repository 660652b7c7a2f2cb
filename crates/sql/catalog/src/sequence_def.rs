//! What follows from a sequence's definition: the columns of its relation, and the limits of its type.
//!
//! Does not: know what a sequence has handed out (`sequence`).

use crate::Column;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, SqlType, info, oid};

/// The columns of a sequence's relation.
pub fn columns() -> Vec<Column> {
    let column = |(name, ty): &(&str, TypeId)| Column {
        name: (*name).to_owned(),
        ty: SqlType::of(*ty),
        not_null: true,
        default: None,
        identity: None,
        generated: false,
        sequence: None,
        dropped: false,
        domain: None,
        missing: Datum::Null,
    };
    COLUMNS.iter().map(column).collect()
}

/// Smallest and largest value of a sequence's type.
pub fn type_range(ty: TypeId) -> (i64, i64) {
    match ty {
        oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Name of a sequence's type for messages.
pub fn type_label(ty: TypeId) -> String {
    info::format_built_in(SqlType::of(ty), true)
}

/// The columns of every sequence read as a table.
pub(crate) const COLUMNS: [(&str, TypeId); 3] = [
    ("last_value", oid::INT8),
    ("log_cnt", oid::INT8),
    ("is_called", oid::BOOL),
];
