//! The type that values of several types are brought to.
//!
//! Owns: `select_common_type` of PostgreSQL's. Does not: bring anything to it.

use super::{CastContext, can_coerce, without_domains};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::info::by_oid;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// The type that values of all these types are brought to (UNION, CASE, VALUES, ARRAY, IN).
pub fn common_type(given: &[SqlType], types: TypeLookup<'_>) -> Result<SqlType> {
    common_type_for("CASE", given, types)
}

/// [`common_type`] with the construct's name for the message: "UNION types integer and text cannot be matched".
pub fn common_type_for(
    construct: &str,
    given: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<SqlType> {
    common_base_type(construct, &without_domains(given, types.types), types)
}

/// The same of types none of which is a domain.
pub(super) fn common_base_type(
    construct: &str,
    given: &[SqlType],
    types: TypeLookup<'_>,
) -> Result<SqlType> {
    let mut best: Option<SqlType> = None;
    for t in given.iter().filter(|t| t.oid != oid::UNKNOWN) {
        let Some(b) = best else {
            best = Some(*t);
            continue;
        };
        if b.oid == t.oid {
            if b.typmod != t.typmod {
                best = Some(SqlType::of(b.oid));
            }
            continue;
        }
        let (have, new) = (by_oid(b.oid), by_oid(t.oid));
        if have.map(|i| i.category) != new.map(|i| i.category) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "{construct} types {} and {} cannot be matched",
                    types.format_type_bare(b.oid),
                    types.format_type_bare(t.oid)
                ),
            ));
        }
        let take = !have.is_some_and(|i| i.preferred)
            && can_coerce(b.oid, t.oid, CastContext::Implicit)
            && !can_coerce(t.oid, b.oid, CastContext::Implicit);
        best = Some(SqlType::of(if take { t.oid } else { b.oid }));
    }
    let best = best.unwrap_or(SqlType::of(oid::TEXT));
    for t in given.iter().filter(|t| t.oid != oid::UNKNOWN) {
        if !can_coerce(t.oid, best.oid, CastContext::Implicit) {
            return Err(SqlError::new(
                SqlState::CANNOT_COERCE,
                format!(
                    "{construct} could not convert type {} to {}",
                    types.format_type_bare(t.oid),
                    types.format_type_bare(best.oid)
                ),
            ));
        }
    }
    Ok(best)
}
