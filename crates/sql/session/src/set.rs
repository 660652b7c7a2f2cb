//! SET, RESET, SHOW, DISCARD. Which values a setting takes, and from whom, is decided in `catalog::settings`.

use super::client::{Client, text_column};
use super::transaction_modes::on_off;
use super::{Reply, Session};
use crate::as_of_snapshot::{AS_OF, as_of_too_late, is_as_of};
use logstead_sql_catalog::settings;
use logstead_sql_ddl::flatten_set_variable_args;
use logstead_sql_parse::ast::{
    Const, DiscardMode, Expr, SetValue, Stmt, TypeCast, Value, VariableSetKind, VariableSetStmt,
    VariableShowStmt,
};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::SettingValues;
use logstead_types::SqlState;

/// Columns of SHOW.
pub(super) fn show_columns(show: &VariableShowStmt) -> Vec<OutputColumn> {
    let name = show.name.to_lowercase();
    if name == "all" {
        return vec![
            text_column("name"),
            text_column("setting"),
            text_column("description"),
        ];
    }
    vec![text_column(
        settings::find(&name).map_or(name.as_str(), |s| s.name),
    )]
}

impl Session {
    /// SET and RESET.
    pub(super) fn variable_set(
        &mut self,
        stmt: &VariableSetStmt,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let name = stmt.name.as_deref().unwrap_or_default();
        match &stmt.kind {
            VariableSetKind::Transaction { session, modes } => {
                self.set_transaction(*session, modes, client)?;
                return Ok(Reply::tag("SET"));
            }
            VariableSetKind::Snapshot(snapshot) => {
                self.set_transaction_snapshot(snapshot, client)?;
                return Ok(Reply::tag("SET"));
            }
            VariableSetKind::Current => return Err(SqlError::unsupported("SET FROM CURRENT")),
            VariableSetKind::ResetAll => self.context.settings.borrow_mut().reset_all(),
            VariableSetKind::Reset | VariableSetKind::Default => {
                self.reset(name, stmt.is_local)?;
            }
            VariableSetKind::Value(values) => {
                self.check_as_of(name)?;
                let value = value_text(name, values)?;
                self.assign_text(name, &value, stmt.is_local, client)?;
            }
        }
        self.context.refresh_style();
        Ok(Reply::tag(match stmt.kind {
            VariableSetKind::Reset | VariableSetKind::ResetAll => "RESET",
            _ => "SET",
        }))
    }

    fn reset(&mut self, name: &str, local: bool) -> Result<()> {
        self.check_as_of(name)?;
        match settings::is_identity(name) {
            true => self.set_identity(name, None, local),
            false => self.context.settings.borrow_mut().reset(name, local),
        }
    }

    /// SHOW.
    pub(super) fn show(&mut self, show: &VariableShowStmt) -> Result<Reply> {
        let name = show.name.to_lowercase();
        let columns = show_columns(show);
        if name == "all" {
            let rows = settings::by_name()
                .into_iter()
                .filter(|s| !self.context.is_hidden(s.name))
                .map(|s| {
                    vec![
                        text(s.name),
                        text(&self.shown(s.name).unwrap_or_default()),
                        text(s.doc),
                    ]
                })
                .collect();
            return Ok(Reply::Rows {
                columns,
                rows,
                tag: "SHOW".to_owned(),
            });
        }
        if self.context.is_hidden(&name) {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "must be superuser or have privileges of pg_read_all_settings to examine \"{name}\""
                ),
            ));
        }
        let value = self.shown(&name).ok_or_else(|| settings::unknown(&name))?;
        Ok(Reply::Rows {
            columns,
            rows: vec![vec![text(&value)]],
            tag: "SHOW".to_owned(),
        })
    }

    /// A setting's value; those of the transaction come from the transaction.
    fn shown(&self, name: &str) -> Option<String> {
        let mut modes = if self.status() == b'I' && self.open.is_none() {
            self.default_modes().ok()?
        } else {
            self.modes
        };
        modes.read_only |= self.reads_as_of();
        match name {
            "transaction_isolation" => Some(modes.isolation_name.to_owned()),
            "transaction_read_only" => Some(on_off(modes.read_only).to_owned()),
            "transaction_deferrable" => Some(on_off(modes.deferrable).to_owned()),
            name => self.context.setting(name),
        }
    }

    /// What transactions read is said before they read.
    fn check_as_of(&self, name: &str) -> Result<()> {
        match is_as_of(name) && self.open.is_some() {
            true => Err(as_of_too_late()),
            false => Ok(()),
        }
    }

    fn assign_text(
        &mut self,
        name: &str,
        value: &str,
        local: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        if local && !self.context.in_block.get() && self.open.is_none() {
            self.warn(
                client,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
        }
        let lower = name.to_ascii_lowercase();
        if settings::is_identity(&lower) {
            return self.set_identity(&lower, Some(value), local);
        }
        if matches!(
            lower.as_str(),
            "transaction_isolation" | "transaction_read_only" | "transaction_deferrable"
        ) {
            settings::find(&lower)
                .ok_or_else(|| settings::unknown(name))?
                .canonical(value)?;
            return self.set_mode_by_name(&lower, value);
        }
        if lower == "logstead.read_after" {
            self.check_commit_token(value)?;
        }
        self.context.settings.borrow_mut().set(name, value, local)?;
        Ok(())
    }

    /// All but temporary objects: those are gone already.
    pub(super) fn discard(&mut self, what: DiscardMode) -> Result<Reply> {
        match what {
            DiscardMode::All => {
                self.portals.clear();
                self.suspended = 0;
                self.cursors.clear();
                self.unlisten_all();
                self.forget_advisory_locks();
                self.context.statements.borrow_mut().clear();
                self.set_identity("session_authorization", None, false)?;
                self.context.settings.borrow_mut().reset_all();
                self.context.sequences.borrow_mut().discard();
                self.context.refresh_style();
                Ok(Reply::tag("DISCARD ALL"))
            }
            // Plans are remade when they no longer fit.
            DiscardMode::Plans => Ok(Reply::tag("DISCARD PLANS")),
            DiscardMode::Sequences => {
                self.context.sequences.borrow_mut().discard();
                Ok(Reply::tag("DISCARD SEQUENCES"))
            }
            DiscardMode::Temp => Ok(Reply::tag("DISCARD TEMP")),
        }
    }
}

/// The value that SET gives to `logstead.as_of`, if that is what it does.
pub(super) fn as_of(stmt: &Stmt) -> Result<Option<String>> {
    let Stmt::VariableSet(set) = stmt else {
        return Ok(None);
    };
    let VariableSetKind::Value(values) = &set.kind else {
        return Ok(None);
    };
    if !set.name.as_deref().is_some_and(is_as_of) {
        return Ok(None);
    }
    match values.len() {
        1 => Ok(Some(value_text(AS_OF, values)?)),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("SET {AS_OF} takes only one argument"),
        )),
    }
}

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

/// The values of SET as one text.
fn value_text(name: &str, values: &[SetValue]) -> Result<String> {
    match values {
        [SetValue::Interval(interval)] => hours_of(name, interval),
        values => flatten_set_variable_args(name, values),
    }
}

/// SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE
fn hours_of(name: &str, interval: &TypeCast) -> Result<String> {
    let Expr::Const(Const {
        value: Value::String(shown),
        ..
    }) = &interval.arg
    else {
        return Err(SqlError::internal("an interval that is no literal"));
    };
    let (sign, rest) = match shown.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, shown.strip_prefix('+').unwrap_or(shown)),
    };
    let mut parts = rest
        .split(':')
        .map(|part| part.trim().parse::<f64>().unwrap_or(f64::NAN));
    let hours = parts.next().unwrap_or(0.0) + parts.next().unwrap_or(0.0) / 60.0;
    if hours.is_nan() {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{name}\": \"{shown}\""),
        ));
    }
    Ok((sign * hours).to_string())
}
