//! ALTER SYSTEM, `pg_reload_conf()`, and taking over what a reload has changed; texts by the rules of
//! `standard_conforming_strings`.

use super::client::Client;
use super::context::SessionContext;
use super::{Reply, Session};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::settings::{self, AlterSystemAction};
use logstead_sql_ddl::SettingChange;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;

pub(super) fn denied(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied {what}"),
    )
}

impl SessionContext {
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
