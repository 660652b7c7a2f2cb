//! Values as text where there is no session: in what the catalog keeps, and in the texts of plans.

use jiff::tz::TimeZone;
use logstead_sql_func as func;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::datetime::{DateForm, DateOrder};
use logstead_sql_types::value::{
    Clock, DateTimeContext, FIRST_USER_OID, ObjectNames, Oid, OutputStyle, RegType, SettingValues,
    needs_session,
};

/// Values in UTC, with the names of built-in functions.
pub const OUTPUT_STYLE: OutputStyle<'static> = OutputStyle {
    names: Some(&WithoutSession),
    ..OutputStyle::UTC
};

/// Knows the names of built-in functions, and nothing else: numbers stand for other objects.
pub struct WithoutSession;

impl Clock for WithoutSession {
    fn transaction_time(&self) -> Result<i64> {
        needs_session("the time of a transaction")
    }

    fn statement_time(&self) -> Result<i64> {
        needs_session("the time of a statement")
    }

    fn clock_time(&self) -> Result<i64> {
        needs_session("the clock")
    }
}

impl DateTimeContext for WithoutSession {
    fn time_zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        &UTC
    }

    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }

    fn date_form(&self) -> DateForm {
        DateForm::Iso
    }
}

impl SettingValues for WithoutSession {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}

impl ObjectNames for WithoutSession {
    fn search_path(&self) -> Vec<String> {
        Vec::new()
    }

    fn temporary_schema(&self) -> Option<String> {
        None
    }

    fn relation_by_name(&self, _: &str) -> Result<Option<Oid>> {
        needs_session("the name of a relation")
    }

    fn relation_name(&self, _: Oid) -> Option<String> {
        None
    }

    fn type_by_text(&self, text: &str) -> Result<Oid> {
        crate::type_name::type_by_text(text)
    }

    fn object_by_text(&self, ty: RegType, _: &str) -> Result<Oid> {
        needs_session(&format!("reading {}", ty.name()))
    }

    fn object_text(&self, ty: RegType, object: Oid) -> Option<String> {
        match ty {
            RegType::Proc if object < FIRST_USER_OID => {
                let name = func::name_of(object);
                name.or_else(|| super::io_functions::io_function_name(object))
                    .map(str::to_owned)
            }
            _ => None,
        }
    }
}
