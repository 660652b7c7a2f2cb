//! SET, RESET, SHOW, DISCARD.

use super::client::Client;
use super::past::{AS_OF, is_as_of, too_late};
use super::transaction::fold;
use super::transaction_modes::on_off;
use super::utility::text_column;
use super::{Reply, Session};
use logstead_sql_catalog::{deparse, settings};
use logstead_sql_parse::ast::DiscardMode;
use logstead_sql_parse::lowered::{self as ast, Expr, Set};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::IoContext;
use logstead_types::SqlState;

/// Columns of SHOW.
pub(super) fn show_columns(variable: &[ast::Ident]) -> Vec<OutputColumn> {
    let name = show_name(variable);
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

/// The setting that SHOW names, words joined as the grammar has them.
fn show_name(variable: &[ast::Ident]) -> String {
    let words: Vec<String> = variable
        .iter()
        .map(|word| word.value.to_lowercase())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["time", "zone"] => "timezone".to_owned(),
        ["transaction", "isolation", "level"] => "transaction_isolation".to_owned(),
        ["session", "authorization"] => "session_authorization".to_owned(),
        words => words.join("."),
    }
}

impl Session {
    pub(super) fn setting(
        &mut self,
        statement: &ast::Statement,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        match statement {
            ast::Statement::Set(set) => self.set(set, client),
            ast::Statement::Reset(reset) => {
                match reset {
                    ast::Reset::All => self.context.settings.borrow_mut().reset_all(),
                    ast::Reset::ConfigurationParameter(name) => {
                        let name = setting_name(name);
                        self.check_as_of(&name)?;
                        if settings::is_identity(&name) {
                            self.set_identity(&name, None, false)?;
                        } else {
                            self.context.settings.borrow_mut().reset(&name, false)?;
                        }
                    }
                }
                self.context.refresh_style();
                Ok(Reply::tag("RESET"))
            }
            ast::Statement::ShowVariable { variable } => self.show(variable),
            ast::Statement::Discard(what) => self.discard(*what),
            _ => Err(SqlError::internal("no statement about a setting")),
        }
    }

    fn show(&mut self, variable: &[ast::Ident]) -> Result<Reply> {
        let name = show_name(variable);
        let columns = show_columns(variable);
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
        modes.read_only |= self.reads_past();
        match name {
            "transaction_isolation" => Some(modes.isolation_name.to_owned()),
            "transaction_read_only" => Some(on_off(modes.read_only).to_owned()),
            "transaction_deferrable" => Some(on_off(modes.deferrable).to_owned()),
            name => self.context.setting(name),
        }
    }

    fn set(&mut self, set: &Set, client: &mut dyn Client) -> Result<Reply> {
        match set {
            Set::SingleAssignment {
                local,
                variable,
                values,
            } => self.assign(&setting_name(variable), values, *local, client)?,
            Set::SetTransaction { .. } => {
                return Err(SqlError::internal("SET TRANSACTION came to SET"));
            }
        }
        self.context.refresh_style();
        Ok(Reply::tag("SET"))
    }

    /// What transactions read is said before they read.
    fn check_as_of(&self, name: &str) -> Result<()> {
        match is_as_of(name) && self.open.is_some() {
            true => Err(too_late()),
            false => Ok(()),
        }
    }

    fn assign(
        &mut self,
        name: &str,
        values: &[Expr],
        local: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.check_as_of(name)?;
        if is_default(name, values) {
            if settings::is_identity(name) {
                return self.set_identity(name, None, local);
            }
            return self.context.settings.borrow_mut().reset(name, local);
        }
        let words = values
            .iter()
            .map(|value| value_text(name, value))
            .collect::<Result<Vec<_>>>()?;
        self.assign_text(name, &words.join(", "), local, client)
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
        self.context.settings.borrow_mut().set(name, value, local)?;
        Ok(())
    }

    /// All but temporary objects: those are gone already.
    fn discard(&mut self, what: DiscardMode) -> Result<Reply> {
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

fn is_default(name: &str, values: &[Expr]) -> bool {
    let [Expr::Identifier(word)] = values else {
        return false;
    };
    let is = |text| word.value.eq_ignore_ascii_case(text);
    word.quote_style.is_none() && (is("default") || (name == "timezone" && is("local")))
}

/// The value that SET gives to `logstead.as_of`, if that is what it does.
pub(super) fn as_of(statement: &ast::Statement) -> Result<Option<String>> {
    let ast::Statement::Set(Set::SingleAssignment {
        variable, values, ..
    }) = statement
    else {
        return Ok(None);
    };
    if !is_as_of(&setting_name(variable)) || is_default(AS_OF, values) {
        return Ok(None);
    }
    match values.as_slice() {
        [value] => Ok(Some(value_text(AS_OF, value)?)),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("SET {AS_OF} takes only one argument"),
        )),
    }
}

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

fn setting_name(name: &ast::ObjectName) -> String {
    let words: Vec<&str> = name.0.iter().map(|part| part.value.as_str()).collect();
    words.join(".")
}

/// A value in SET as text. Names in search_path keep their quotes if they need them.
fn value_text(name: &str, value: &Expr) -> Result<String> {
    match value {
        Expr::Identifier(word)
            if name.eq_ignore_ascii_case("search_path") && word.quote_style.is_some() =>
        {
            Ok(format!("\"{}\"", word.value.replace('"', "\"\"")))
        }
        Expr::Identifier(word) => Ok(fold(word)),
        Expr::Value(value) => Ok(match &value.value {
            ast::Value::Number(number) => number.to_string(),
            ast::Value::String(text) => {
                let plain = text
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                if name.eq_ignore_ascii_case("search_path") && !plain {
                    format!("\"{}\"", text.replace('"', "\"\""))
                } else {
                    text.clone()
                }
            }
            ast::Value::Boolean(on) => if *on { "true" } else { "false" }.to_owned(),
            other => return Err(SqlError::unsupported(format!("SET {name} TO {other}"))),
        }),
        Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr,
        } => Ok(format!("-{}", value_text(name, expr)?)),
        Expr::UnaryOp {
            op: ast::UnaryOperator::Plus,
            expr,
        } => value_text(name, expr),
        // SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE
        Expr::Interval(interval) => {
            let shown = value_text(name, &interval.value)?;
            let (sign, rest) = match shown.strip_prefix('-') {
                Some(rest) => (-1.0, rest),
                None => (1.0, shown.strip_prefix('+').unwrap_or(&shown)),
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
        other => Err(SqlError::unsupported(format!(
            "SET {name} TO {}",
            deparse::plain(other)
        ))),
    }
}
