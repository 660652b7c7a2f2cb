//! SET and RESET of what sessions begin with: ALTER ROLE, ALTER DATABASE, ALTER SYSTEM.

use super::Lower;
use super::object::unexpected_object;
use crate::SettingChange;
use crate::ast::{SetValue, Value, VariableSetKind, VariableSetStmt};
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// How a statement changes a setting that sessions begin with.
    pub(super) fn setting_change(&self, stmt: &VariableSetStmt) -> Result<SettingChange> {
        let name = || stmt.name.as_deref().map(str::to_owned);
        Ok(match &stmt.kind {
            VariableSetKind::ResetAll => SettingChange::ResetAll,
            VariableSetKind::Reset | VariableSetKind::Default => {
                SettingChange::Set(name().ok_or_else(unexpected_object)?, None)
            }
            VariableSetKind::Current => {
                SettingChange::SetFromCurrent(name().ok_or_else(unexpected_object)?)
            }
            VariableSetKind::Value(values) => {
                let name = name().ok_or_else(unexpected_object)?;
                let value = joined(&name, values)?;
                SettingChange::Set(name, Some(value))
            }
            // No setting is called so: PostgreSQL finds out when it looks for it.
            VariableSetKind::Transaction { session, .. } => {
                let name = match session {
                    true => "SESSION CHARACTERISTICS",
                    false => "TRANSACTION",
                };
                SettingChange::Set(name.to_owned(), None)
            }
            VariableSetKind::Snapshot(_) => {
                SettingChange::Set("TRANSACTION SNAPSHOT".to_owned(), None)
            }
        })
    }
}

/// The values of a setting as its one text (`flatten_set_variable_args`).
fn joined(name: &str, values: &[SetValue]) -> Result<String> {
    let is_list_of_names = name.eq_ignore_ascii_case("search_path");
    let texts = values.iter().map(|value| match value {
        SetValue::Const(constant) => Ok(match &constant.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(written) => written.to_string(),
            Value::String(text) if is_list_of_names && !is_plain(text) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Value::String(text) => text.to_string(),
            _ => return Err(unexpected_object()),
        }),
        SetValue::Interval(_) => Err(SqlError::unsupported(
            "TIME ZONE INTERVAL of a role, a database or the system",
        )),
    });
    Ok(texts.collect::<Result<Vec<_>>>()?.join(", "))
}

/// Is a name of a list read as it is without quotes?
fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
