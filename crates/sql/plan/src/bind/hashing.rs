//! What PostgreSQL could not group, because some types have no hash and others no order.
//!
//! Here every type that can be compared at all can be grouped; the errors are PostgreSQL's, so that what is made here
//! can be taken there.

use super::order_by::is_cyclic;
use crate::query::Grouping;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// Has a type a hash?
fn is_hashable(ty: SqlType, known: &UserTypes) -> bool {
    let element = known.element_type(ty).unwrap_or(ty.plain());
    let own = !matches!(
        element.oid,
        oid::MONEY | oid::BIT | oid::VARBIT | oid::TSVECTOR | oid::TSQUERY
    );
    let shape = known.tuple_desc_of(element);
    let mut fields = shape.iter().flat_map(|shape| shape.iter());
    own && fields.all(|(_, field)| is_hashable(*field, known))
}

/// 0A000 for the columns of WITH RECURSIVE ... UNION, whose rows are told apart by their hashes.
pub(super) fn recursive_union(types: &[SqlType], known: &UserTypes) -> Result<()> {
    match types.iter().all(|ty| is_hashable(*ty, known)) {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "could not implement recursive UNION",
        )
        .detail("All column datatypes must be hashable.")),
    }
}

/// 0A000 for keys that neither hashing nor sorting groups.
pub(super) fn grouped(grouping: &Grouping, known: &UserTypes) -> Result<()> {
    let unsorted = |at: &usize| {
        let key = grouping.keys.get(*at);
        key.is_some_and(|(_, key)| is_cyclic(key.ty()))
    };
    let unhashed = |at: &usize| {
        let key = grouping.keys.get(*at);
        key.is_some_and(|(_, key)| !is_hashable(key.ty(), known))
    };
    let all: Vec<usize> = (0..grouping.keys.len()).collect();
    if !all.iter().any(unsorted) {
        return Ok(());
    }
    // What an aggregate takes in order is sorted by the keys first.
    let mut calls = grouping.aggregates.iter();
    let in_order = calls.any(|(_, call)| call.distinct || !call.order.is_empty());
    let fails = |set: &[usize]| set.iter().any(unsorted) && (in_order || set.iter().any(unhashed));
    let failed = match &grouping.sets {
        Some(sets) => sets.iter().any(|set| fails(set)),
        None => fails(&all),
    };
    match failed {
        true => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "could not implement GROUP BY",
        )
        .detail("Some of the datatypes only support hashing, while others only support sorting.")),
        false => Ok(()),
    }
}
