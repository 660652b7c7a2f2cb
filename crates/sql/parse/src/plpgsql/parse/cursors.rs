//! Cursors that statements name, and the arguments that they give to bound ones.

use super::super::lex::{self, PlpgsqlWord};
use super::super::tree::{Expr, TypeName};
use super::Reader;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Reader<'_> {
    pub(super) fn cursor_variable(&mut self) -> Result<usize> {
        let at = self.token().start;
        let near = self.at;
        let parts = self.dotted()?;
        match self.find(&parts) {
            Some((variable, taken)) if taken == parts.len() => match self.variables[variable].ty {
                TypeName::Cursor | TypeName::Known(_) | TypeName::Sql(..) => Ok(variable),
                _ => Err(SqlError::new(
                    SqlState::new(b"42804"),
                    format!(
                        "variable \"{}\" must be of type cursor or refcursor",
                        parts.join(".")
                    ),
                )
                .at(Some(lex::position(self.body, at)))),
            },
            _ => {
                let token = &self.tokens[near];
                let name = self.body.get(token.start..token.end).unwrap_or_default();
                Err(self.error_at(format!("\"{name}\" is not a known variable"), at))
            }
        }
    }

    fn cursor_arguments(&mut self) -> Result<Vec<(Option<String>, Expr)>> {
        let mut args = Vec::new();
        if !self.take_mark("(") {
            return Ok(args);
        }
        if self.take_mark(")") {
            return Ok(args);
        }
        loop {
            let mut name = None;
            if matches!(self.word_behind(1), PlpgsqlWord::Mark(":=")) {
                name = Some(self.name()?);
                self.pass();
            }
            args.push((name, self.expression(&[",", ")"], ")")?));
            if !self.take_mark(",") {
                break;
            }
        }
        self.expect_mark(")")?;
        Ok(args)
    }

    /// The arguments of a bound cursor, as many and called as it has them.
    pub(super) fn bound_arguments(&mut self, cursor: usize) -> Result<Vec<(Option<String>, Expr)>> {
        let given = self.cursor_arguments()?;
        let variable = &self.variables[cursor];
        let wanted = variable.cursor.as_ref().map(|cursor| &cursor.args);
        let wanted = wanted.map_or(&[][..], Vec::as_slice);
        let of = &variable.name;
        let wrong = |text: String| SqlError::new(SqlState::SYNTAX_ERROR, text);
        let mut seen = vec![false; wanted.len()];
        for (at, (name, _)) in given.iter().enumerate() {
            let place = match name {
                None => at,
                Some(name) => {
                    let is = |arg: &usize| self.variables[*arg].name == *name;
                    wanted.iter().position(is).ok_or_else(|| {
                        wrong(format!("cursor \"{of}\" has no argument named \"{name}\""))
                    })?
                }
            };
            let Some(slot) = seen.get_mut(place) else {
                return Err(wrong(match wanted.is_empty() {
                    true => format!("cursor \"{of}\" has no arguments"),
                    false => format!("too many arguments for cursor \"{of}\""),
                }));
            };
            if std::mem::replace(slot, true) {
                let name = &self.variables[wanted[place]].name;
                return Err(wrong(format!(
                    "value for parameter \"{name}\" of cursor \"{of}\" specified more than once"
                )));
            }
        }
        if seen.contains(&false) {
            return Err(wrong(match given.is_empty() {
                true => format!("cursor \"{of}\" has arguments"),
                false => format!("not enough arguments for cursor \"{of}\""),
            }));
        }
        Ok(given)
    }
}
