//! What reading and writing values as text needs of the session, by topic.
//!
//! Owns: [`Clock`], [`DateTimeContext`], [`SettingValues`] and [`ObjectNames`], and [`IoContext`], which is all of
//! them.
//!
//! Invariant: no method has a default. Whoever implements one says himself what he has not: as an error that names it,
//! or as `None`.

use super::datetime::{DateForm, DateOrder};
use super::{Oid, SqlType, info, user};
use crate::error::{Result, SqlError};
use crate::{RelationId, TypeId};
use jiff::tz::TimeZone;

/// The clock of a session, in microseconds since 2000-01-01 UTC.
pub trait Clock {
    /// Start of the transaction: now().
    fn transaction_time(&self) -> Result<i64>;
    /// Start of the statement: statement_timestamp().
    fn statement_time(&self) -> Result<i64>;
    /// The wall clock: clock_timestamp().
    fn clock_time(&self) -> Result<i64>;
}

/// What dates and times are read, written and computed by.
pub trait DateTimeContext: Clock {
    /// Session time zone.
    fn time_zone(&self) -> &TimeZone;
    /// In which order a date's numbers stand where that is open.
    fn date_order(&self) -> DateOrder;
    /// How dates are written (DateStyle).
    fn date_form(&self) -> DateForm;
}

/// The values of settings.
pub trait SettingValues {
    /// current_setting(name); `None` when unknown.
    fn setting(&self, name: &str) -> Option<String>;
}

/// Types whose values are objects by name, beyond `regclass` and `regtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegType {
    /// `regrole`
    Role,
    /// `regnamespace`
    Namespace,
    /// `regproc`
    Proc,
    /// `regprocedure`
    Procedure,
    /// `regoper`
    Oper,
    /// `regoperator`
    Operator,
    /// `regcollation`
    Collation,
}

impl RegType {
    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            RegType::Role => "regrole",
            RegType::Namespace => "regnamespace",
            RegType::Proc => "regproc",
            RegType::Procedure => "regprocedure",
            RegType::Oper => "regoper",
            RegType::Operator => "regoperator",
            RegType::Collation => "regcollation",
        }
    }
}

/// The names of objects: `regclass` and its kin.
pub trait ObjectNames {
    /// Schemas searched for unqualified names (current_schemas).
    fn search_path(&self) -> Vec<String>;
    /// Name of the session's schema of temporary objects; `None` if it has made none.
    fn temporary_schema(&self) -> Option<String>;
    /// Relation OID by (possibly qualified, quoted) name, as regclass input does.
    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>>;
    /// Name of a relation as regclass output prints it (qualified only if not visible); `None` if there is none.
    fn relation_name(&self, relation: RelationId) -> Option<String>;
    /// OID of a type by the text of its name, as `regtype` reads it.
    fn type_by_text(&self, text: &str) -> Result<TypeId>;
    /// Name of a type as regtype prints it, a user's by number in a text that is kept; `None` if there is none.
    fn type_text(&self, ty: TypeId, numbered: bool) -> Option<String>;
    /// OID of another object by the text of its name.
    fn object_by_text(&self, ty: RegType, text: &str) -> Result<Oid>;
    /// Name of another object as its type prints it; `None` if there is none.
    fn object_text(&self, ty: RegType, object: Oid) -> Option<String>;
}

/// What the input and output functions of types need of the session: the clock, the styles that it has set, and the
/// names of objects.
pub trait IoContext: DateTimeContext + SettingValues + ObjectNames {}

impl<T: DateTimeContext + SettingValues + ObjectNames + ?Sized> IoContext for T {}

impl dyn IoContext + '_ {
    /// Prints a type as `format_type(oid, typmod)` does: SQL spelling, modifier in parentheses, `[]` for arrays.
    pub fn format_type(&self, ty: SqlType) -> String {
        match user::class(ty.oid) {
            None => info::format_built_in(ty, true),
            Some(_) => self.users_type(ty.oid),
        }
    }

    /// The same without a modifier: error messages print so.
    pub fn format_type_bare(&self, ty: TypeId) -> String {
        match user::class(ty) {
            None => info::format_built_in(SqlType::of(ty), false),
            Some(_) => self.users_type(ty),
        }
    }

    fn users_type(&self, ty: TypeId) -> String {
        let text = self.type_text(ty, false);
        text.unwrap_or_else(|| user::UNKNOWN.to_owned())
    }
}

/// XX000: something was asked of a context that has no session.
pub fn needs_session<T>(what: &str) -> Result<T> {
    Err(SqlError::internal(format!("{what} needs a session")))
}
