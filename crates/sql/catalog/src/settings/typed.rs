//! Values that code reads often, in their own types.
//!
//! Owns: [`TypedSettings`] and [`PlannerSettings`]. They are read anew from the texts whenever one of those changes;
//! nothing else writes them.

use super::session::{ROLE_OID, SESSION_OID, SessionSettings, UTC, split_identifiers};
use super::time_zone::read_time_zone;
use crate::CommitToken;
use crate::role::BOOTSTRAP;
use jiff::tz::TimeZone;
use logstead_sql_parse::LiteralRules;
use logstead_sql_types::RoleId;
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::value::datetime::{DateForm, DateOrder, IntervalStyle};
use std::rc::Rc;

/// Encodings that a client may have and no server.
const CLIENT_ONLY: [&str; 7] = [
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// The values that code reads often, in their own types.
#[derive(Clone, Debug)]
pub struct TypedSettings {
    /// TimeZone.
    pub time_zone: &'static TimeZone,
    /// extra_float_digits.
    pub extra_float_digits: i32,
    /// bytea_output is hex.
    pub bytea_hex: bool,
    /// IntervalStyle.
    pub interval_style: IntervalStyle,
    /// The order of a date's fields, of DateStyle.
    pub date_order: DateOrder,
    /// How dates are written, of DateStyle.
    pub date_form: DateForm,
    /// search_path, with "$user" replaced.
    pub search_path: Rc<[String]>,
    /// statement_timeout; 0 is none.
    pub statement_timeout_ms: u64,
    /// lock_timeout; 0 is none.
    pub lock_timeout_ms: u64,
    /// idle_in_transaction_session_timeout; 0 is none.
    pub idle_in_transaction_ms: u64,
    /// idle_session_timeout; 0 is none.
    pub idle_session_ms: u64,
    /// work_mem.
    pub work_mem_bytes: usize,
    /// hash_mem_multiplier.
    pub hash_mem_multiplier: f64,
    /// temp_file_limit.
    pub temp_file_limit_bytes: Option<u64>,
    /// default_transaction_isolation.
    pub default_isolation: String,
    /// default_transaction_read_only.
    pub default_read_only: bool,
    /// default_transaction_deferrable.
    pub default_deferrable: bool,
    /// NOTICEs are sent (client_min_messages is notice or more talkative).
    pub notices: bool,
    /// WARNINGs are sent.
    pub warnings: bool,
    /// logstead.as_of.
    pub as_of: Rc<str>,
    /// logstead.read_after.
    pub read_after: Option<CommitToken>,
    /// logstead.read_after_timeout; 0 is none.
    pub read_after_timeout_ms: u64,
    /// What the planner may use.
    pub scans: PlannerSettings,
    /// The role that is session_user.
    pub session_role: RoleId,
    /// The role that SET ROLE has chosen.
    pub role: Option<RoleId>,
    /// row_security.
    pub row_security: bool,
    /// Answers wait until what they tell is durable (synchronous_commit).
    pub synchronous_commit: bool,
    /// log_min_duration_statement; below 0 nothing is logged.
    pub log_min_duration_ms: i64,
    /// pg_stat_statements.track is not none.
    pub track_statements: bool,
    /// client_encoding.
    pub client_encoding: Encoding,
    /// standard_conforming_strings and what goes with it.
    pub literals: LiteralRules,
}

/// The settings that plans depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannerSettings {
    /// enable_seqscan.
    pub sequential: bool,
    /// enable_indexscan.
    pub index: bool,
    /// enable_hashjoin.
    pub hash_join: bool,
    /// enable_mergejoin.
    pub merge_join: bool,
    /// enable_nestloop.
    pub nested_loop: bool,
    /// session_replication_role is replica: other triggers fire, and foreign keys are not asked.
    pub replica: bool,
    /// array_nulls: constants are read when a plan is made.
    pub array_nulls: bool,
    /// transform_null_equals.
    pub transform_null_equals: bool,
}

impl Default for PlannerSettings {
    fn default() -> PlannerSettings {
        PlannerSettings {
            sequential: true,
            index: true,
            hash_join: true,
            merge_join: true,
            nested_loop: true,
            replica: false,
            array_nulls: true,
            transform_null_equals: false,
        }
    }
}

impl SessionSettings {
    pub(super) fn refresh(&mut self) {
        let user = match self.canonical_value("role") {
            Some(role) if role != "none" => role.to_owned(),
            _ => self
                .now
                .get("session_authorization")
                .unwrap_or(&self.user)
                .clone(),
        };
        let path = split_identifiers(self.canonical_value("search_path").unwrap_or(""))
            .unwrap_or_default();
        let path: Vec<String> = path
            .into_iter()
            .map(|s| if s == "$user" { user.clone() } else { s })
            .filter(|s| !s.is_empty())
            .collect();
        let zone = self
            .canonical_value("timezone")
            .and_then(read_time_zone)
            .map_or(&UTC, |(_, zone)| zone);
        let quiet = self
            .canonical_value("client_min_messages")
            .unwrap_or("notice");
        let encoding = self
            .canonical_value("client_encoding")
            .and_then(Encoding::named)
            .unwrap_or(Encoding::UTF8);
        let literals = LiteralRules {
            conforming: self.canonical_value("standard_conforming_strings") != Some("off"),
            backslash_quote: match self.canonical_value("backslash_quote") {
                Some("on") => true,
                Some("off") => false,
                // In these a backslash may be the second byte of a character.
                _ => !CLIENT_ONLY.contains(&encoding.name()),
            },
            warns: self.canonical_value("escape_string_warning") != Some("off"),
        };
        self.typed = TypedSettings {
            time_zone: zone,
            extra_float_digits: self.number("extra_float_digits") as i32,
            bytea_hex: self.canonical_value("bytea_output") == Some("hex"),
            interval_style: self
                .canonical_value("intervalstyle")
                .map_or(IntervalStyle::Postgres, IntervalStyle::named),
            date_order: self
                .canonical_value("datestyle")
                .map_or(DateOrder::Mdy, DateOrder::of_style),
            date_form: self
                .canonical_value("datestyle")
                .map_or(DateForm::Iso, DateForm::of_style),
            search_path: path.into(),
            statement_timeout_ms: self.number("statement_timeout") as u64,
            lock_timeout_ms: self.number("lock_timeout") as u64,
            idle_in_transaction_ms: self.number("idle_in_transaction_session_timeout") as u64,
            idle_session_ms: self.number("idle_session_timeout") as u64,
            work_mem_bytes: (self.number("work_mem") as usize).saturating_mul(1024),
            hash_mem_multiplier: self
                .canonical_value("hash_mem_multiplier")
                .and_then(|value| value.parse().ok())
                .unwrap_or(1.0),
            temp_file_limit_bytes: u64::try_from(self.number("temp_file_limit"))
                .ok()
                .map(|kib| kib.saturating_mul(1024)),
            default_isolation: self
                .canonical_value("default_transaction_isolation")
                .unwrap_or("")
                .to_owned(),
            default_read_only: self.is_on("default_transaction_read_only"),
            default_deferrable: self.is_on("default_transaction_deferrable"),
            notices: !matches!(quiet, "warning" | "error"),
            warnings: quiet != "error",
            as_of: self.canonical_value("logstead.as_of").unwrap_or("").into(),
            read_after: self
                .canonical_value("logstead.read_after")
                .and_then(|token| token.parse().ok()),
            read_after_timeout_ms: self.number("logstead.read_after_timeout") as u64,
            scans: PlannerSettings {
                sequential: self.is_on("enable_seqscan"),
                index: self.is_on("enable_indexscan"),
                hash_join: self.is_on("enable_hashjoin"),
                merge_join: self.is_on("enable_mergejoin"),
                nested_loop: self.is_on("enable_nestloop"),
                replica: self.canonical_value("session_replication_role") == Some("replica"),
                array_nulls: self.is_on("array_nulls"),
                transform_null_equals: self.is_on("transform_null_equals"),
            },
            session_role: match self.number(SESSION_OID) {
                0 => BOOTSTRAP,
                oid => RoleId::new(oid as u32),
            },
            role: match self.number(ROLE_OID) {
                0 => None,
                oid => Some(RoleId::new(oid as u32)),
            },
            row_security: self.canonical_value("row_security") != Some("off"),
            synchronous_commit: self.canonical_value("synchronous_commit") != Some("off"),
            log_min_duration_ms: self.number("log_min_duration_statement"),
            track_statements: self.canonical_value("pg_stat_statements.track") != Some("none"),
            client_encoding: encoding,
            literals,
        };
    }
}
