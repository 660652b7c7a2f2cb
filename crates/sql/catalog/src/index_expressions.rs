//! What is computed of rows for indexes: the values of index expressions and predicates that call functions which users
//! have made.
//!
//! Keys of an index are made by the engine, whenever an entry is put in, checked or taken out, under locks, at a start,
//! while logs are verified: where no session is that could run such a function, and where there may be no catalog to
//! find it in. And who replaces a function must not change the key of a row that is there. So the value of such an
//! expression is computed once, when the row is written, by the statement that writes it, and *stands in the row*: in a
//! column that nobody sees. To everybody but those who write rows the column is a dropped one, so nothing names it, and
//! no catalogue shows more than that; to those who write rows it is a generated one.
//!
//! Invariants:
//! - `IndexDef::computed` says where the values are. A column that is both dropped and generated belongs to one index;
//!   its `default` is what it is computed from.
//! - Who may write rows of the table knows the column: it is added with the table locked alone, and every row has its
//!   value before the index is attached.
//! - An index with a predicate has keys of those rows alone that it holds: the expression of a key is not evaluated for
//!   others.
//! - Versions from before have no value, or another index's: who reads with a snapshot from before the index is told
//!   so (40001) instead of finding too little.
//! - Keys never change by themselves: whoever replaces a function finds rows by the values that they were written with,
//!   until REINDEX computes them anew.
//!
//! Owns: which columns an index needs, and that they stand in its definition and its table's. DDL adds them to tables
//! with rows (`ddl::index_expression_columns`), the session computes them in rows that are there
//! (`session::fill_index_expressions`), the writers of rows in new ones, as they do generated columns. Does not: bind
//! expressions of indexes (`plan::bind::index_expression`), or make keys of rows (`exec::index_keys`).

use super::routine::named_in;
use super::{Column, IndexDef, IndexKey, Relation};
use logstead_sql_types::value::{Datum, SqlType, oid};

/// Does a text that is kept call a function that users have made?
pub fn calls(text: &str) -> bool {
    named_in(text).next().is_some()
}

/// What is to be computed of each row for an index: of key columns, then of the predicate; with its type.
pub fn wanted(index: &IndexDef) -> Vec<Option<(String, SqlType)>> {
    let predicate = index.predicate.as_deref();
    let keys = index.columns.iter().map(|column| match &column.key {
        IndexKey::Expression { text, ty, .. } if calls(text) => Some((
            match predicate {
                Some(predicate) => format!("CASE WHEN ({predicate}) THEN ({text}) END"),
                None => text.clone(),
            },
            *ty,
        )),
        _ => None,
    });
    let held = predicate.filter(|text| calls(text));
    let held = held.map(|text| (text.to_owned(), SqlType::of(oid::BOOL)));
    keys.chain([held]).collect()
}

/// Adds to a relation the columns in which rows hold what is computed for an index, and notes where they are. False if
/// nothing is.
pub fn add_columns(relation: &mut Relation, index: &mut IndexDef) -> bool {
    let wanted = wanted(index);
    if wanted.iter().all(Option::is_none) {
        return false;
    }
    let column = |wanted: Option<(String, SqlType)>| {
        let (text, ty) = wanted?;
        // One of which no row needs anything any more, where there is such a one: every row is written anew. Behind
        // all that it may be computed from.
        let live = relation.columns.iter().rposition(|c| !c.dropped);
        let is_free = |c: &Column| {
            let is_gone = c.dropped && !c.generated && c.default.is_none() && c.domain.is_none();
            is_gone && c.ty == ty && matches!(c.missing, Datum::Null)
        };
        let begin = live.map_or(0, |live| live + 1);
        let mut behind = relation.columns.iter().enumerate().skip(begin);
        let free = behind.find(|(_, c)| is_free(c)).map(|(at, _)| at);
        let position = free.unwrap_or(relation.columns.len());
        let column = Column {
            name: dropped_name(position),
            ty,
            domain: None,
            not_null: false,
            default: Some(text),
            identity: None,
            generated: true,
            sequence: None,
            dropped: true,
            missing: Datum::Null,
        };
        match relation.columns.get_mut(position) {
            Some(free) => *free = column,
            None => relation.columns.push(column),
        }
        Some(position)
    };
    index.computed = wanted.into_iter().map(column).collect();
    true
}

/// Rows hold no more what was computed for an index that is gone.
pub fn forget_columns(relation: &mut Relation, index: &IndexDef) {
    for position in index.computed.iter().flatten() {
        if let Some(column) = relation.columns.get_mut(*position) {
            column.default = None;
            column.generated = false;
        }
    }
}

/// The name of a dropped column.
pub fn dropped_name(position: usize) -> String {
    format!("........pg.dropped.{}........", position + 1)
}
