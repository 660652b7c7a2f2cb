//! The properties of functions that CREATE and ALTER set.

use super::DdlContext;
use super::routines::invalid;
use logstead_sql_catalog::rights::denied;
use logstead_sql_catalog::routine::{LISTS_OF_NAMES, Parallel, Routine};
use logstead_sql_catalog::settings;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_func::Volatility;
use logstead_sql_parse::lowered::Span;
use logstead_sql_parse::{self as parse, ConfigClause, RoutineOption};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What the properties of a statement come to.
#[derive(Default)]
pub(super) struct Properties {
    pub(super) language: Option<String>,
    pub(super) text: Option<Vec<String>>,
    volatility: Option<Volatility>,
    strict: Option<bool>,
    definer: Option<bool>,
    leakproof: Option<bool>,
    parallel: Option<String>,
    cost: Option<f64>,
    rows: Option<f64>,
    config: Vec<ConfigClause>,
    other: Option<&'static str>,
}

/// Sets what was not said before.
fn once<T>(slot: &mut Option<T>, value: T, at: Option<usize>) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(parse::redundant().at(at)),
    }
}

/// Reads the properties of a statement.
pub(super) fn properties(
    options: &[(RoutineOption, Span)],
    procedure: bool,
    cx: &DdlContext<'_>,
) -> Result<Properties> {
    use RoutineOption as O;
    let mut all = Properties::default();
    for (option, span) in options {
        let at = cx.at(*span);
        let of_functions = matches!(
            option,
            O::Volatility(_)
                | O::Strict(_)
                | O::Leakproof(_)
                | O::Parallel(_)
                | O::Cost(_)
                | O::Rows(_)
                | O::Window
                | O::Support
        );
        if procedure && of_functions {
            return Err(invalid("invalid attribute in procedure definition").at(at));
        }
        match option {
            O::Volatility(v) => once(&mut all.volatility, *v, at)?,
            O::Strict(v) => once(&mut all.strict, *v, at)?,
            O::Definer(v) => once(&mut all.definer, *v, at)?,
            O::Leakproof(v) => once(&mut all.leakproof, *v, at)?,
            O::Parallel(v) => once(&mut all.parallel, v.clone(), at)?,
            O::Cost(v) => once(&mut all.cost, *v, at)?,
            O::Rows(v) => once(&mut all.rows, *v, at)?,
            O::Language(v) => once(&mut all.language, v.clone(), at)?,
            O::As(v) => once(&mut all.text, v.clone(), at)?,
            O::Config(v) => all.config.push(v.clone()),
            O::Window => all.other = Some("WINDOW of a function"),
            O::Transform => all.other = Some("TRANSFORM"),
            O::Support => all.other = Some("SUPPORT"),
        }
    }
    Ok(all)
}

impl Properties {
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
            let superuser = cx.judged(|judge, role| judge.members.is_superuser(role))?;
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
fn configure(config: &mut Vec<String>, clause: &ConfigClause, cx: &DdlContext<'_>) -> Result<()> {
    let canonical = |name: &str| -> Result<String> {
        match settings::find(name) {
            Some(setting) => Ok(setting.name.to_owned()),
            // A name with a point is anybody's.
            None if name.contains('.') => Ok(name.to_owned()),
            None => Err(settings::unknown(name)),
        }
    };
    let (name, value) = match clause {
        ConfigClause::ResetAll => {
            config.clear();
            return Ok(());
        }
        ConfigClause::Reset(name) => (canonical(name)?, None),
        ConfigClause::FromCurrent(name) => {
            let name = canonical(name)?;
            let value = cx.session.setting(&name);
            (name, Some(value.unwrap_or_default()))
        }
        ConfigClause::Set(name, values) => {
            let name = canonical(name)?;
            let value = match LISTS_OF_NAMES.contains(&name.as_str()) {
                true => {
                    let quoted: Vec<String> = values.iter().map(|v| quote_ident(v)).collect();
                    quoted.join(", ")
                }
                false => values.join(", "),
            };
            if let Some(setting) = settings::find(&name) {
                setting.canonical(&value)?;
            }
            (name, Some(value))
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
