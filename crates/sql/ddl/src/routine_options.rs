//! The properties of functions that CREATE and ALTER set.

use super::settings_change::SettingChange;
use super::{DdlContext, def_elem};
use crate::routine_types::invalid;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::routine::{Parallel, Routine};
use logstead_sql_catalog::settings;
use logstead_sql_func::Volatility;
use logstead_sql_parse::ast::{DefArg, DefElem};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What the properties of a statement come to.
#[derive(Default)]
pub(super) struct RoutineProperties {
    pub(super) language: Option<String>,
    pub(super) text: Option<Vec<String>>,
    volatility: Option<Volatility>,
    strict: Option<bool>,
    definer: Option<bool>,
    leakproof: Option<bool>,
    parallel: Option<String>,
    cost: Option<f64>,
    rows: Option<f64>,
    config: Vec<SettingChange>,
    other: Option<&'static str>,
}

/// The texts of AS.
fn texts(option: &DefElem) -> Result<Vec<String>> {
    let Some(DefArg::List(parts)) = &option.arg else {
        return Err(def_elem::unexpected(option));
    };
    let texts = parts.iter().map(|part| match part {
        DefArg::String(text) => Ok(text.to_string()),
        _ => Err(def_elem::unexpected(option)),
    });
    texts.collect()
}

/// Reads the properties of a statement.
pub(super) fn properties(
    options: &[DefElem],
    procedure: bool,
    cx: &DdlContext<'_>,
) -> Result<RoutineProperties> {
    let mut all = RoutineProperties::default();
    let text = cx.text;
    for option in options {
        let of_functions = matches!(
            &*option.name,
            "volatility"
                | "strict"
                | "leakproof"
                | "parallel"
                | "cost"
                | "rows"
                | "window"
                | "support"
        );
        if procedure && of_functions {
            let error = invalid("invalid attribute in procedure definition");
            return Err(error.at(option.location.character(text)));
        }
        match &*option.name {
            "volatility" => {
                let volatility = match def_elem::get_string(option)?.as_str() {
                    "immutable" => Volatility::Immutable,
                    "stable" => Volatility::Stable,
                    _ => Volatility::Volatile,
                };
                def_elem::set_once(&mut all.volatility, volatility, option, text)?;
            }
            "strict" => {
                def_elem::set_once(
                    &mut all.strict,
                    def_elem::get_boolean(option)?,
                    option,
                    text,
                )?;
            }
            "security" => {
                def_elem::set_once(
                    &mut all.definer,
                    def_elem::get_boolean(option)?,
                    option,
                    text,
                )?;
            }
            "leakproof" => {
                def_elem::set_once(
                    &mut all.leakproof,
                    def_elem::get_boolean(option)?,
                    option,
                    text,
                )?;
            }
            "parallel" => {
                def_elem::set_once(
                    &mut all.parallel,
                    def_elem::get_string(option)?,
                    option,
                    text,
                )?;
            }
            "cost" => {
                def_elem::set_once(&mut all.cost, def_elem::get_numeric(option)?, option, text)?;
            }
            "rows" => {
                def_elem::set_once(&mut all.rows, def_elem::get_numeric(option)?, option, text)?;
            }
            "language" => {
                def_elem::set_once(
                    &mut all.language,
                    def_elem::get_string(option)?,
                    option,
                    text,
                )?;
            }
            "as" => def_elem::set_once(&mut all.text, texts(option)?, option, text)?,
            "set" => match &option.arg {
                Some(DefArg::Set(set)) => all.config.push(SettingChange::of(set)?),
                _ => return Err(def_elem::unexpected(option)),
            },
            "window" => all.other = Some("WINDOW of a function"),
            "transform" => all.other = Some("TRANSFORM"),
            "support" => all.other = Some("SUPPORT"),
            _ => return Err(def_elem::unexpected(option)),
        }
    }
    Ok(all)
}

impl RoutineProperties {
    /// Puts them into a function.
    pub(super) fn apply(self, routine: &mut Routine, cx: &mut DdlContext<'_>) -> Result<()> {
        let wrong = |message: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        if let Some(what) = self.other {
            return Err(SqlError::unsupported(what));
        }
        if let Some(volatility) = self.volatility {
            routine.volatility = volatility;
        }
        if let Some(strict) = self.strict {
            routine.strict = strict;
        }
        if let Some(definer) = self.definer {
            routine.definer = definer;
        }
        if let Some(leakproof) = self.leakproof {
            let superuser =
                cx.with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))?;
            if leakproof && !superuser {
                return Err(denied("only superuser can define a leakproof function"));
            }
            routine.leakproof = leakproof;
        }
        if let Some(parallel) = self.parallel {
            routine.parallel = match parallel.as_str() {
                "safe" => Parallel::Safe,
                "restricted" => Parallel::Restricted,
                "unsafe" => Parallel::Unsafe,
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE",
                    ));
                }
            };
        }
        if let Some(cost) = self.cost {
            if cost <= 0.0 {
                return Err(wrong("COST must be positive"));
            }
            routine.cost = cost as f32;
        }
        if let Some(rows) = self.rows {
            if rows <= 0.0 {
                return Err(wrong("ROWS must be positive"));
            }
            if !routine.set {
                return Err(wrong(
                    "ROWS is not applicable when function does not return a set",
                ));
            }
            routine.rows = rows as f32;
        }
        for clause in self.config {
            configure(&mut routine.config, &clause, cx)?;
        }
        Ok(())
    }
}

/// Changes what SET clauses say.
fn configure(config: &mut Vec<String>, change: &SettingChange, cx: &DdlContext<'_>) -> Result<()> {
    let canonical = |name: &str| -> Result<String> {
        match settings::find(name) {
            Some(setting) => Ok(setting.name.to_owned()),
            // A name with a point is anybody's.
            None if name.contains('.') => Ok(name.to_owned()),
            None => Err(settings::unknown(name)),
        }
    };
    let (name, value) = match change {
        SettingChange::ResetAll => {
            config.clear();
            return Ok(());
        }
        SettingChange::Set(name, None) => (canonical(name)?, None),
        SettingChange::SetFromCurrent(name) => {
            let name = canonical(name)?;
            let value = cx.session.setting(&name);
            (name, Some(value.unwrap_or_default()))
        }
        SettingChange::Set(name, Some(value)) => {
            let name = canonical(name)?;
            if let Some(setting) = settings::find(&name) {
                setting.canonical(value)?;
            }
            (name, Some(value.clone()))
        }
    };
    let same = |item: &String| item.split_once('=').is_some_and(|(known, _)| known == name);
    match (config.iter().position(same), value) {
        (Some(at), Some(value)) => config[at] = format!("{name}={value}"),
        (None, Some(value)) => config.push(format!("{name}={value}")),
        (Some(at), None) => {
            config.remove(at);
        }
        (None, None) => {}
    }
    Ok(())
}
