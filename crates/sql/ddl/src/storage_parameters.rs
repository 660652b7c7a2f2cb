//! Storage parameters of tables and indexes: PostgreSQL's change nothing here, and are checked and shown again as
//! PostgreSQL does; `distribution` is this server's own (`distribution`).

use super::def_elem;
use logstead_sql_catalog::distribution::PARAMETER;
use logstead_sql_catalog::settings::parse_bool;
use logstead_sql_parse::ast::DefElem;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What a parameter may be.
enum ParameterKind {
    Bool,
    Int(i32, i32),
    Real(f64, f64),
    Words(&'static [&'static str]),
    /// Read by [`distribution`](super::distribution), which knows the relation.
    Distribution,
}

/// A parameter, and whether what keeps long values of a table has it too.
struct Parameter {
    name: &'static str,
    kind: ParameterKind,
    toast: bool,
}

const fn parameter(name: &'static str, kind: ParameterKind, toast: bool) -> Parameter {
    Parameter { name, kind, toast }
}

const AGE_MAX: i32 = 2_000_000_000;

/// Those of PostgreSQL 15 for tables and for indexes of ordered trees, and behind them our own.
const PARAMETERS: &[Parameter] = &[
    parameter("autovacuum_enabled", ParameterKind::Bool, true),
    parameter("user_catalog_table", ParameterKind::Bool, false),
    parameter("vacuum_truncate", ParameterKind::Bool, true),
    parameter("deduplicate_items", ParameterKind::Bool, false),
    parameter("fillfactor", ParameterKind::Int(10, 100), false),
    parameter(
        "autovacuum_vacuum_threshold",
        ParameterKind::Int(0, i32::MAX),
        true,
    ),
    parameter(
        "autovacuum_vacuum_insert_threshold",
        ParameterKind::Int(-1, i32::MAX),
        true,
    ),
    parameter(
        "autovacuum_analyze_threshold",
        ParameterKind::Int(0, i32::MAX),
        false,
    ),
    parameter(
        "autovacuum_vacuum_cost_limit",
        ParameterKind::Int(1, 10_000),
        true,
    ),
    parameter(
        "autovacuum_freeze_min_age",
        ParameterKind::Int(0, 1_000_000_000),
        true,
    ),
    parameter(
        "autovacuum_multixact_freeze_min_age",
        ParameterKind::Int(0, 1_000_000_000),
        true,
    ),
    parameter(
        "autovacuum_freeze_max_age",
        ParameterKind::Int(100_000, AGE_MAX),
        true,
    ),
    parameter(
        "autovacuum_multixact_freeze_max_age",
        ParameterKind::Int(10_000, AGE_MAX),
        true,
    ),
    parameter(
        "autovacuum_freeze_table_age",
        ParameterKind::Int(0, AGE_MAX),
        true,
    ),
    parameter(
        "autovacuum_multixact_freeze_table_age",
        ParameterKind::Int(0, AGE_MAX),
        true,
    ),
    parameter(
        "log_autovacuum_min_duration",
        ParameterKind::Int(-1, i32::MAX),
        true,
    ),
    parameter("toast_tuple_target", ParameterKind::Int(128, 8160), false),
    parameter("parallel_workers", ParameterKind::Int(0, 1024), false),
    parameter(
        "autovacuum_vacuum_cost_delay",
        ParameterKind::Real(-1.0, 100.0),
        true,
    ),
    parameter(
        "autovacuum_vacuum_scale_factor",
        ParameterKind::Real(0.0, 100.0),
        true,
    ),
    parameter(
        "autovacuum_vacuum_insert_scale_factor",
        ParameterKind::Real(0.0, 100.0),
        true,
    ),
    parameter(
        "autovacuum_analyze_scale_factor",
        ParameterKind::Real(0.0, 100.0),
        false,
    ),
    parameter(
        "vacuum_index_cleanup",
        ParameterKind::Words(&["auto", "on", "off"]),
        true,
    ),
    parameter(PARAMETER, ParameterKind::Distribution, false),
];

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The value of a parameter as text. Said alone it is true.
pub(super) fn value_of(option: &DefElem) -> Result<String> {
    match option.arg {
        None => Ok("true".to_owned()),
        Some(_) => def_elem::get_string(option),
    }
}

/// The parameters of a table in WITH or SET, `name=value`, in the order of the statement.
pub(super) fn storage_options(options: &[DefElem]) -> Result<Vec<String>> {
    read(options, false)
}

/// The same of an index.
pub(super) fn index_options(options: &[DefElem]) -> Result<Vec<String>> {
    read(options, true)
}

fn read(options: &[DefElem], of_index: bool) -> Result<Vec<String>> {
    let mut read: Vec<(Option<String>, String, String)> = Vec::new();
    for option in options {
        let value = value_of(option)?;
        let space = option.namespace.as_ref().map(ToString::to_string);
        let name = option.name.to_string();
        if let Some(space) = space.as_ref().filter(|space| of_index || *space != "toast") {
            return Err(invalid(format!(
                "unrecognized parameter namespace \"{space}\""
            )));
        }
        if space.is_none() && name == "oids" && !of_index {
            match parse_bool(&value) {
                Some(false) => continue,
                Some(true) => {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "tables declared WITH OIDS are not supported",
                    ));
                }
                None => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "oids requires a Boolean value",
                    ));
                }
            }
        }
        read.push((space, name, value));
    }
    // Those of the table itself are checked first.
    for of_toast in [false, true] {
        let own = |(space, ..): &&(Option<String>, String, String)| space.is_some() == of_toast;
        let mut seen: Vec<&str> = Vec::new();
        for (_, name, value) in read.iter().filter(own) {
            let known = PARAMETERS
                .iter()
                .find(|p| p.name == name && (p.toast || !of_toast) && p.is_of(of_index))
                .ok_or_else(|| invalid(format!("unrecognized parameter \"{name}\"")))?;
            if seen.contains(&name.as_str()) {
                return Err(invalid(format!(
                    "parameter \"{name}\" specified more than once"
                )));
            }
            seen.push(name);
            known.judge(value)?;
        }
    }
    // Nothing here keeps long values apart, so nothing shows the parameters of what does.
    let own = read.into_iter().filter(|(space, ..)| space.is_none());
    Ok(own
        .map(|(_, name, value)| format!("{name}={value}"))
        .collect())
}

impl Parameter {
    /// Have indexes it, or tables?
    fn is_of(&self, index: bool) -> bool {
        match self.name {
            "fillfactor" => true,
            "deduplicate_items" => index,
            _ => !index,
        }
    }

    fn judge(&self, value: &str) -> Result<()> {
        let name = self.name;
        let wrong = |kind: &str| {
            Err(invalid(format!(
                "invalid value for {kind} option \"{name}\": {value}"
            )))
        };
        let outside = |low: String, high: String| {
            Err(
                invalid(format!("value {value} out of bounds for option \"{name}\"")).detail(
                    format!("Valid values are between \"{low}\" and \"{high}\"."),
                ),
            )
        };
        match &self.kind {
            ParameterKind::Bool => match parse_bool(value) {
                Some(_) => Ok(()),
                None => wrong("boolean"),
            },
            ParameterKind::Int(low, high) => {
                let Ok(number) = value.trim().parse::<f64>() else {
                    return wrong("integer");
                };
                let number = number.round();
                if number.is_nan() || number.abs() > f64::from(i32::MAX) {
                    return wrong("integer");
                }
                match (f64::from(*low)..=f64::from(*high)).contains(&number) {
                    true => Ok(()),
                    false => outside(low.to_string(), high.to_string()),
                }
            }
            ParameterKind::Real(low, high) => {
                let Ok(number) = value.trim().parse::<f64>() else {
                    return wrong("floating point");
                };
                match (*low..=*high).contains(&number) {
                    true => Ok(()),
                    false => outside(format!("{low:.6}"), format!("{high:.6}")),
                }
            }
            ParameterKind::Distribution => Ok(()),
            ParameterKind::Words(words) => {
                let known = words.iter().any(|word| value.eq_ignore_ascii_case(word));
                match known || parse_bool(value).is_some() {
                    true => Ok(()),
                    false => Err(invalid(format!(
                        "invalid value for enum option \"{name}\": {value}"
                    ))
                    .detail("Valid values are \"on\", \"off\", and \"auto\".")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::{AlterTableCmd, Stmt};

    #[test]
    fn values_are_texts() -> Result<()> {
        let text = "ALTER INDEX i SET (fillfactor = 70, a, toast.b = off, c = 'on', d = on)";
        let stmt = logstead_sql_parse::parse(text)?.remove(0).statement;
        let Stmt::AlterTable(alter) = &**stmt else {
            panic!("{stmt:?}");
        };
        let [AlterTableCmd::SetRelOptions(options)] = alter.cmds.as_slice() else {
            panic!("{stmt:?}");
        };
        let mut shown = Vec::new();
        for option in options {
            let space = option.namespace.iter().map(|space| format!("{space}."));
            let space: String = space.collect();
            shown.push(format!("{space}{}={}", option.name, value_of(option)?));
        }
        let wanted = ["fillfactor=70", "a=true", "toast.b=off", "c=on", "d=on"];
        assert_eq!(shown, wanted);
        Ok(())
    }
}
