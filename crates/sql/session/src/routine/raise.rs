//! RAISE.

use super::{Activation, Session};
use crate::client::{Client, LocalFuture};
use logstead_sql_parse::plpgsql::state;
use logstead_sql_parse::plpgsql::tree::{Raise, RaiseLevel, RaiseOption};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Session {
    pub(super) fn raise<'a>(
        &'a mut self,
        act: &'a mut Activation,
        raise: &'a Raise,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            if raise.level == RaiseLevel::Exception
                && raise.condition.is_none()
                && raise.message.is_none()
                && raise.options.is_empty()
            {
                // The error that is being handled goes on.
                return Err(match act.errors.last() {
                    Some(error) => {
                        let mut error = error.clone();
                        error.fields_mut().context = None;
                        error
                    }
                    None => SqlError::new(
                        SqlState::new(b"0Z002"),
                        "RAISE without parameters cannot be used outside an exception handler",
                    ),
                });
            }
            let mut code = raise.condition.as_ref().map(|(_, state)| *state);
            let mut message = None;
            let mut said = Vec::new();
            if let Some((format, params)) = &raise.message {
                let mut values = Vec::with_capacity(params.len());
                for param in params {
                    let (value, ty) = self.value(act, param, client).await?;
                    values.push(
                        self.text_of_value(&value, ty)
                            .unwrap_or_else(|| "<NULL>".to_owned()),
                    );
                }
                message = Some(filled(format, &values));
            }
            let mut error =
                SqlError::new(SqlState::SUCCESSFUL_COMPLETION, "").routine("exec_stmt_raise");
            for (option, expr) in &raise.options {
                let (value, ty) = self.value(act, expr, client).await?;
                let Some(text) = self.text_of_value(&value, ty) else {
                    return Err(SqlError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "RAISE statement option cannot be null",
                    ));
                };
                use RaiseOption as O;
                let twice = said.contains(option)
                    || (*option == O::Message && message.is_some())
                    || (*option == O::Errcode && raise.condition.is_some());
                if twice {
                    let name = format!("{option:?}").to_uppercase();
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("RAISE option already specified: {name}"),
                    ));
                }
                said.push(*option);
                let fields = error.fields_mut();
                match option {
                    O::Errcode => {
                        let known =
                            state(&text).or_else(|| logstead_sql_parse::plpgsql::condition(&text));
                        code = Some(known.ok_or_else(|| {
                            SqlError::new(
                                SqlState::new(b"42704"),
                                format!("unrecognized exception condition \"{text}\""),
                            )
                        })?);
                    }
                    O::Message => message = Some(text),
                    O::Detail => fields.detail = Some(text),
                    O::Hint => fields.hint = Some(text),
                    O::Column => fields.column = Some(text),
                    O::Constraint => fields.constraint = Some(text),
                    O::Datatype => fields.data_type = Some(text),
                    O::Table => fields.table = Some(text),
                    O::Schema => fields.schema = Some(text),
                }
            }
            let default = match raise.level {
                RaiseLevel::Exception => SqlState::new(b"P0001"),
                RaiseLevel::Warning => SqlState::WARNING,
                _ => SqlState::SUCCESSFUL_COMPLETION,
            };
            let named = raise.condition.as_ref().map(|(name, _)| name.clone());
            let fields = error.fields_mut();
            fields.code = code.unwrap_or(default);
            fields.message = message
                .or(named)
                .unwrap_or_else(|| fields.code.as_str().to_owned());
            if raise.level == RaiseLevel::Exception {
                return Err(error);
            }
            let severity = match raise.level {
                RaiseLevel::Debug => "DEBUG",
                RaiseLevel::Log => "LOG",
                RaiseLevel::Info => "INFO",
                RaiseLevel::Notice => "NOTICE",
                RaiseLevel::Warning | RaiseLevel::Exception => "WARNING",
            };
            if self.is_told(raise.level) {
                let error = error.context(act.context());
                client.notice(severity, error.fields());
            }
            Ok(())
        })
    }

    /// Does `client_min_messages` let it through?
    fn is_told(&self, level: RaiseLevel) -> bool {
        let least = self.context.settings.borrow().show("client_min_messages");
        let least = least.unwrap_or_default();
        let ranks = [
            "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
        ];
        let least = ranks.iter().position(|rank| *rank == least).unwrap_or(6);
        match level {
            RaiseLevel::Debug => least <= 4,
            RaiseLevel::Log => least <= 5,
            RaiseLevel::Notice => least <= 6,
            RaiseLevel::Warning => least <= 7,
            RaiseLevel::Info | RaiseLevel::Exception => true,
        }
    }
}

/// A format with its values.
fn filled(format: &str, values: &[String]) -> String {
    let mut text = String::new();
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
        } else if chars.next_if_eq(&'%').is_some() {
            text.push('%');
        } else if let Some(value) = values.next() {
            text.push_str(value);
        }
    }
    text
}
