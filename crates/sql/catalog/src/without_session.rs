//! Values as text where there is no session: in what the catalog keeps, and in the texts of plans.

use jiff::tz::TimeZone;
use logstead_sql_func as func;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, FIRST_USER_OID, IoContext, Oid, OutputStyle};

/// Values in UTC, with the names of built-in functions.
pub const OUTPUT_STYLE: OutputStyle<'static> = OutputStyle {
    names: Some(&WithoutSession),
    ..OutputStyle::UTC
};

/// Knows the names of built-in functions, and nothing else: numbers stand for other objects.
pub struct WithoutSession;

fn needs_session<T>(what: &str) -> Result<T> {
    Err(SqlError::internal(format!("{what} needs a session")))
}

impl IoContext for WithoutSession {
    fn transaction_time(&self) -> i64 {
        0
    }

    fn time_zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        &UTC
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn relation_by_name(&self, _: &str) -> Result<Option<Oid>> {
        needs_session("the name of a relation")
    }

    fn relation_name(&self, _: Oid) -> Option<String> {
        None
    }

    fn catalog_call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        let found = match (name, args) {
            ("regprocout", [Datum::Oid(oid)]) if *oid < FIRST_USER_OID => {
                func::name_of(*oid).or_else(|| super::io_functions::io_function_name(*oid))
            }
            _ => None,
        };
        found.map_or_else(|| needs_session(name), |found| Ok(Datum::text(found)))
    }

    fn type_by_text(&self, text: &str) -> Result<Oid> {
        crate::type_name::type_by_text(text)
    }
}
