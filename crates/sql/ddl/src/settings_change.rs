//! SET and RESET of what sessions begin with: ALTER ROLE, ALTER DATABASE, ALTER SYSTEM; and of functions.

use logstead_sql_catalog::routine::LISTS_OF_NAMES;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_parse::ast::{SetValue, Value, VariableSetKind, VariableSetStmt};
use logstead_sql_types::error::{Result, SqlError};

/// How a setting changes that sessions begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// SET; no value is RESET, or SET ... TO DEFAULT.
    Set(String, Option<String>),
    /// SET ... FROM CURRENT.
    SetFromCurrent(String),
    /// RESET ALL.
    ResetAll,
}

impl SettingChange {
    /// What a statement says.
    pub fn of(stmt: &VariableSetStmt) -> Result<SettingChange> {
        let name = || stmt.name.as_deref().unwrap_or_default().to_owned();
        Ok(match &stmt.kind {
            VariableSetKind::ResetAll => SettingChange::ResetAll,
            VariableSetKind::Reset | VariableSetKind::Default => SettingChange::Set(name(), None),
            VariableSetKind::Current => SettingChange::SetFromCurrent(name()),
            VariableSetKind::Value(values) => {
                let name = name();
                let value = flatten_set_variable_args(&name, values)?;
                SettingChange::Set(name, Some(value))
            }
            // No setting is called so: who looks for it finds out.
            VariableSetKind::Transaction { session: true, .. } => {
                SettingChange::Set("SESSION CHARACTERISTICS".to_owned(), None)
            }
            VariableSetKind::Transaction { session: false, .. } => {
                SettingChange::Set("TRANSACTION".to_owned(), None)
            }
            VariableSetKind::Snapshot(_) => {
                SettingChange::Set("TRANSACTION SNAPSHOT".to_owned(), None)
            }
        })
    }
}

/// The values of a setting as its one text (`flatten_set_variable_args`).
pub fn flatten_set_variable_args(name: &str, values: &[SetValue]) -> Result<String> {
    let is_list_of_names = { LISTS_OF_NAMES.iter() }.any(|list| list.eq_ignore_ascii_case(name));
    let texts = values.iter().map(|value| match value {
        SetValue::Const(constant) => Ok(match &constant.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(written) => written.to_string(),
            Value::String(text) if is_list_of_names => quote_ident(text),
            Value::String(text) => text.to_string(),
            _ => return Err(SqlError::internal("the value of a setting")),
        }),
        SetValue::Interval(_) => Err(SqlError::unsupported(
            "TIME ZONE INTERVAL of a role, a database, the system or a function",
        )),
    });
    Ok(texts.collect::<Result<Vec<_>>>()?.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::Stmt;

    #[test]
    fn what_sessions_begin_with() -> Result<()> {
        let set = |name: &str, value: Option<&str>| {
            SettingChange::Set(name.to_owned(), value.map(str::to_owned))
        };
        for (said, wanted) in [
            ("SET work_mem TO '4MB'", set("work_mem", Some("4MB"))),
            (
                "SET DateStyle = iso, dmy",
                set("datestyle", Some("iso, dmy")),
            ),
            (
                "SET search_path TO a, \"B\", 'c d', 'x\"y', e1",
                set("search_path", Some("a, \"B\", \"c d\", \"x\"\"y\", e1")),
            ),
            ("SET a.b TO -1, 2.50, on", set("a.b", Some("-1, 2.50, on"))),
            ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"))),
            ("SET TIME ZONE LOCAL", set("timezone", None)),
            ("SET x TO DEFAULT", set("x", None)),
            ("RESET x", set("x", None)),
            ("RESET ALL", SettingChange::ResetAll),
            (
                "SET x FROM CURRENT",
                SettingChange::SetFromCurrent("x".to_owned()),
            ),
        ] {
            let text = format!("ALTER DATABASE d {said}");
            match &**logstead_sql_parse::parse(&text)?.remove(0).statement {
                Stmt::AlterDatabaseSet(alter) => {
                    assert_eq!(SettingChange::of(&alter.setstmt)?, wanted, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        Ok(())
    }
}
