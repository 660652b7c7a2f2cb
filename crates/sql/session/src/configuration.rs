//! ALTER SYSTEM, `pg_reload_conf()`, taking over what a reload has changed, and asking for a promotion.

use super::client::Client;
use super::context::SessionContext;
use super::{Reply, Session};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::settings::{self, AlterSystemAction};
use logstead_sql_ddl::SettingChange;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::time::Duration;

pub(super) fn denied(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied {what}"),
    )
}

impl SessionContext {
    /// `pg_promote(wait, wait_seconds)`: with `wait` the statement waits for what comes of it.
    pub(super) fn request_promotion(&self, wait: bool, wait_seconds: i32) -> Result<()> {
        if !self.is_superuser() {
            return Err(denied("for function pg_promote"));
        }
        let Some(promotion) = self.instance.promotion() else {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "recovery is not in progress",
            )
            .hint("Recovery control functions can only be executed during recovery."));
        };
        let seconds = u64::try_from(wait_seconds)
            .ok()
            .filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or_else(|| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "\"wait_seconds\" must not be negative or zero",
            )
        })?;
        let number = promotion.request();
        if wait {
            let limit = Duration::from_secs(seconds);
            self.promotion_asked.set(Some((number, limit)));
        }
        Ok(())
    }

    /// Is the role that acts a superuser?
    pub(super) fn is_superuser(&self) -> bool {
        let roles = self.roles(&self.catalog.borrow());
        let role = roles.get(self.current_role());
        role.is_some_and(|role| role.superuser)
    }

    /// `pg_reload_conf()`: true if the files could be read.
    pub(super) fn reload_configuration(&self) -> Result<Datum> {
        if !self.is_superuser() {
            return Err(denied("for function pg_reload_conf"));
        }
        match self.instance.settings.reload() {
            Ok(errors) => {
                for error in errors {
                    tracing::warn!("the settings were read again: {error}");
                }
                Ok(Datum::Bool(true))
            }
            Err(why) => {
                tracing::warn!("the settings are as they were: {why}");
                self.warnings.borrow_mut().push(why);
                Ok(Datum::Bool(false))
            }
        }
    }
}

impl Session {
    /// A client's text as it is with `standard_conforming_strings`, unless it is so already.
    pub(super) fn conforming(&self, text: &str, client: &mut dyn Client) -> Result<Option<String>> {
        let (rules, warns) = {
            let settings = self.context.settings.borrow();
            (settings.typed().literals, settings.typed().warnings)
        };
        if rules.are_usual() {
            return Ok(None);
        }
        let (text, warnings) = logstead_sql_parse::conforming(text, rules)?;
        if warns {
            for warning in warnings {
                client.notice("WARNING", warning.fields());
            }
        }
        Ok(text)
    }

    /// Takes over what the server is configured with since somebody has had the files read again.
    pub(super) fn follow_configuration(&mut self) {
        if self.context.settings.borrow_mut().follow() {
            self.context.refresh_style();
        }
    }

    /// ALTER SYSTEM: who reads the file next has it, whatever is in this session.
    pub(super) fn alter_system(&mut self, change: &SettingChange) -> Result<Reply> {
        let superuser = self.context.is_superuser();
        let change = match change {
            SettingChange::ResetAll if !superuser => {
                return Err(denied("to perform ALTER SYSTEM RESET ALL"));
            }
            SettingChange::ResetAll => AlterSystemAction::ResetAll,
            SettingChange::Set(name, _) | SettingChange::SetFromCurrent(name) if !superuser => {
                let name = settings::find(name).map_or(name.as_str(), |setting| setting.name);
                return Err(denied(format!("to set parameter \"{name}\"")));
            }
            SettingChange::Set(name, Some(value)) => AlterSystemAction::Set(name, value),
            SettingChange::Set(name, None) => AlterSystemAction::Reset(name),
            SettingChange::SetFromCurrent(_) => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "syntax error at or near \"FROM\"",
                ));
            }
        };
        self.worker.instance.settings.change(change)?;
        Ok(Reply::tag("ALTER SYSTEM"))
    }
}
