//! What reading and writing values as text needs of the session.

use super::datetime::{DateForm, DateOrder};
use super::{Datum, Oid};
use crate::error::Result;
use jiff::tz::TimeZone;

/// What the input and output functions of types need of the session: the clock, the styles that it has set, and the
/// names of objects.
pub trait IoContext {
    /// Start of the transaction: now(). Microseconds since 2000-01-01 UTC.
    fn transaction_time(&self) -> i64;
    /// Session time zone.
    fn time_zone(&self) -> &TimeZone;
    /// In which order a date's numbers stand where that is open.
    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }
    /// How dates are written (DateStyle).
    fn date_form(&self) -> DateForm {
        DateForm::Iso
    }
    /// current_setting(name); `None` when unknown.
    fn setting(&self, name: &str) -> Option<String>;
    /// Relation OID by (possibly qualified, quoted) name, as regclass input does.
    fn relation_by_name(&self, name: &str) -> Result<Option<Oid>>;
    /// Name of a relation as regclass output prints it (qualified only if not visible); `None` if there is none.
    fn relation_name(&self, relation: Oid) -> Option<String>;
    /// Catalog-reading functions with a body that only the catalog can give: pg_get_indexdef, pg_get_constraintdef,
    /// pg_get_expr,
    /// pg_get_userbyid, pg_table_is_visible, pg_get_serial_sequence, obj_description, has_table_privilege,
    /// pg_relation_size ...
    /// `name` is the function's name; NULLs are already handled for strict ones.
    fn catalog_call(&self, name: &str, args: &[Datum]) -> Result<Datum>;
    /// OID of a type by the text of its name, as `regtype` reads it.
    fn type_by_text(&self, text: &str) -> Result<Oid>;
}
