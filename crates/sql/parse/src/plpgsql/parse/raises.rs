//! RAISE.

use super::super::conditions;
use super::super::lex::{self, PlpgsqlWord};
use super::super::tree::{PlpgsqlStatement, Raise, RaiseLevel, RaiseOption};
use super::Reader;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Reader<'_> {
    pub(super) fn raise_statement(&mut self) -> Result<PlpgsqlStatement> {
        let start = self.token().start;
        self.pass();
        let mut raise = Raise {
            level: RaiseLevel::Exception,
            condition: None,
            message: None,
            options: Vec::new(),
        };
        if self.is_mark(";") {
            self.pass();
            return Ok(PlpgsqlStatement::Raise(Box::new(raise)));
        }
        let levels = [
            ("exception", RaiseLevel::Exception),
            ("warning", RaiseLevel::Warning),
            ("notice", RaiseLevel::Notice),
            ("info", RaiseLevel::Info),
            ("log", RaiseLevel::Log),
            ("debug", RaiseLevel::Debug),
        ];
        if let Some((_, level)) = levels.iter().find(|(key, _)| self.is(key)) {
            raise.level = *level;
            self.pass();
        }
        match self.word().clone() {
            PlpgsqlWord::Text(format) => {
                self.pass();
                let mut params = Vec::new();
                while self.take_mark(",") {
                    params.push(self.expression(&[",", ";", "using"], ";")?);
                }
                let places = holes(&format);
                if places != params.len() {
                    let message = match params.len() > places {
                        true => "too many parameters specified for RAISE",
                        false => "too few parameters specified for RAISE",
                    };
                    let name = self.given.name.as_deref().unwrap_or("inline_code_block");
                    let line = self.line_at(start);
                    return Err(
                        SqlError::new(SqlState::SYNTAX_ERROR, message).context(format!(
                            "compilation of PL/pgSQL function \"{name}\" near line {line}"
                        )),
                    );
                }
                raise.message = Some((format, params));
            }
            _ if self.is("using") || self.is_mark(";") => {}
            _ => {
                let at = self.token().start;
                let name = self.name()?;
                let state = if name == "sqlstate" {
                    let PlpgsqlWord::Text(code) = self.word() else {
                        return Err(self.unexpected(self.at));
                    };
                    let code = code.clone();
                    let state = conditions::state(&code).ok_or_else(|| {
                        self.error_at("invalid SQLSTATE code", self.token().start)
                    })?;
                    self.pass();
                    (code, state)
                } else {
                    let state = conditions::states_of(&name).first().copied();
                    let state = state.ok_or_else(|| {
                        SqlError::new(
                            SqlState::new(b"42704"),
                            format!("unrecognized exception condition \"{name}\""),
                        )
                        .at(Some(lex::position(self.body, at)))
                    })?;
                    (name, state)
                };
                raise.condition = Some(state);
            }
        }
        if self.take("using") {
            loop {
                let at = self.at;
                let option = self.name()?;
                use RaiseOption as O;
                let option = match option.as_str() {
                    "errcode" => O::Errcode,
                    "message" => O::Message,
                    "detail" => O::Detail,
                    "hint" => O::Hint,
                    "column" => O::Column,
                    "constraint" => O::Constraint,
                    "datatype" => O::Datatype,
                    "table" => O::Table,
                    "schema" => O::Schema,
                    _ => {
                        let token = &self.tokens[at];
                        let near = self.body.get(token.start..token.end).unwrap_or_default();
                        let message =
                            format!("unrecognized RAISE statement option at or near \"{near}\"");
                        return Err(self.error_at(message, token.start));
                    }
                };
                if !self.take_mark("=") {
                    self.expect_mark(":=")?;
                }
                raise
                    .options
                    .push((option, self.expression(&[",", ";"], ";")?));
                if !self.take_mark(",") {
                    break;
                }
            }
        }
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Raise(Box::new(raise)))
    }
}

/// How many values a format takes: `%%` is a percent sign.
fn holes(format: &str) -> usize {
    let mut count = 0;
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '%' && chars.next_if_eq(&'%').is_none() {
            count += 1;
        }
    }
    count
}
