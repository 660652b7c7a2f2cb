//! Pieces of SQL in a body: where they end, and what is taken out of them.

use super::super::lex::PlpgsqlWord;
use super::super::tree::{Expr, Into, Target, TypeName};
use super::{Reader, is_key};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What ends a piece.
pub(super) const SEMICOLON: &[&str] = &[";"];

impl Reader<'_> {
    /// Does the word here end a piece?
    fn ends(&self, ends: &[&str]) -> bool {
        match self.word() {
            PlpgsqlWord::Mark(mark) => ends.contains(mark),
            PlpgsqlWord::Name {
                text,
                quoted: false,
            } => ends.contains(&text.as_str()),
            _ => false,
        }
    }

    /// Goes to the next of `ends` outside of parentheses; the bytes that were passed.
    pub(super) fn skip_to(&mut self, ends: &[&str], expected: &str) -> Result<(usize, usize)> {
        let start = self.token().start;
        let mut end = start;
        let mut depth = 0_usize;
        loop {
            if depth == 0 && self.ends(ends) {
                return Ok((start, end));
            }
            match self.word() {
                PlpgsqlWord::End => {
                    if depth > 0 {
                        return Err(self.error_at("mismatched parentheses", self.token().start));
                    }
                    return Err(self.missing(expected));
                }
                // Nothing goes beyond a statement.
                PlpgsqlWord::Mark(";") if depth == 0 => return Err(self.missing(expected)),
                PlpgsqlWord::Mark(";") => {
                    let near = self.token().start;
                    return Err(self.error_at("mismatched parentheses at or near \";\"", near));
                }
                PlpgsqlWord::Mark("(" | "[") => depth += 1,
                PlpgsqlWord::Mark(")" | "]") => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => {
                        let token = self.token();
                        let near = self.body.get(token.start..token.end).unwrap_or_default();
                        let message = format!("mismatched parentheses at or near \"{near}\"");
                        return Err(self.error_at(message, token.start));
                    }
                },
                _ => {}
            }
            end = self.token().end;
            self.pass();
        }
    }

    fn missing(&self, expected: &str) -> SqlError {
        let token = self.token();
        let at = match token.word {
            PlpgsqlWord::End => "at end of input".to_owned(),
            _ => {
                let near = self.body.get(token.start..token.end).unwrap_or_default();
                format!("at or near \"{near}\"")
            }
        };
        let message = format!("missing \"{expected}\" at end of SQL expression");
        match token.word {
            PlpgsqlWord::End => self.error_at(format!("syntax error {at}"), token.start),
            _ => self.error_at(format!("{message} {at}"), token.start),
        }
    }

    /// An expression up to one of `ends`, which is not passed.
    pub(super) fn expression(&mut self, ends: &[&str], expected: &str) -> Result<Expr> {
        let (start, end) = self.skip_to(ends, expected)?;
        let text = self.body.get(start..end).unwrap_or_default();
        if text.is_empty() {
            let token = self.token();
            let near = self.body.get(token.start..token.end).unwrap_or_default();
            let message = format!("missing expression at or near \"{near}\"");
            return Err(self.error_at(message, token.start));
        }
        let expr = self.expr(text.to_owned(), start, false);
        self.check(&expr)?;
        Ok(expr)
    }

    /// An expression up to `;`, which is passed.
    pub(super) fn last_expression(&mut self) -> Result<Expr> {
        let expr = self.expression(SEMICOLON, ";")?;
        self.expect_mark(";")?;
        Ok(expr)
    }

    /// Expressions with commas between them, up to one of `ends`, which is not passed.
    pub(super) fn expressions(&mut self, ends: &[&str]) -> Result<Vec<Expr>> {
        let mut with_comma = vec![","];
        with_comma.extend(ends);
        let mut all = vec![self.expression(&with_comma, ";")?];
        while self.take_mark(",") {
            all.push(self.expression(&with_comma, ";")?);
        }
        Ok(all)
    }

    /// Errors of syntax show when the body is read.
    pub(super) fn check(&self, expr: &Expr) -> Result<()> {
        let (lead, text) = match expr.statement {
            true => (0, expr.text.to_string()),
            false => ("SELECT ".len(), format!("SELECT {}", expr.text)),
        };
        let error = match crate::parse(&text) {
            Ok(statements) if statements.len() == 1 => return Ok(()),
            Ok(_) => self.error_at("syntax error", expr.at),
            Err(error) => error,
        };
        // Where the piece stands.
        let before = super::super::lex::position(self.body, expr.at) - 1;
        let mut error = error;
        let fields = error.fields_mut();
        if let Some(position) = fields.position {
            fields.position = Some((before + position).saturating_sub(lead).max(1));
        }
        Err(error)
    }

    /// A whole SQL statement up to `;`, from the byte `start` on, with or without INTO.
    pub(super) fn sql(
        &mut self,
        start: usize,
        may_have_into: bool,
    ) -> Result<(Expr, Option<Into>)> {
        let mut into = None;
        let mut text = String::new();
        let mut copied = start;
        let mut depth = 0_usize;
        let mut end = start;
        let first = self.word().clone();
        let mut before = PlpgsqlWord::End;
        loop {
            match self.word() {
                PlpgsqlWord::End => {
                    let message = "unexpected end of function definition at end of input";
                    return Err(self.error_at(message, self.token().start));
                }
                PlpgsqlWord::Mark(";") if depth == 0 => break,
                PlpgsqlWord::Mark(";") => {
                    let near = self.token().start;
                    return Err(self.error_at("mismatched parentheses at or near \";\"", near));
                }
                PlpgsqlWord::Mark("(" | "[") => depth += 1,
                PlpgsqlWord::Mark(")" | "]") => depth = depth.saturating_sub(1),
                word if is_key(word, "into")
                    && may_have_into
                    && !is_key(&before, "insert")
                    && !is_key(&before, "merge")
                    && !is_key(&first, "import") =>
                {
                    if into.is_some() {
                        return Err(
                            self.error_at("INTO specified more than once", self.token().start)
                        );
                    }
                    let from = self.token().start;
                    self.pass();
                    let strict = self.take("strict");
                    let targets = self.targets()?;
                    into = Some(Into { strict, targets });
                    // Blanks in its place keep positions what they are.
                    let to = self.tokens[self.at - 1].end;
                    text.push_str(self.body.get(copied..from).unwrap_or_default());
                    text.extend(std::iter::repeat_n(' ', to - from));
                    copied = to;
                    before = PlpgsqlWord::End;
                    continue;
                }
                _ => {}
            }
            before = self.word().clone();
            end = self.token().end;
            self.pass();
        }
        if copied < end {
            text.push_str(self.body.get(copied..end).unwrap_or_default());
        }
        self.expect_mark(";")?;
        let text = text.trim_end().to_owned();
        let expr = self.expr(text, start, true);
        self.check(&expr)?;
        Ok((expr, into))
    }

    /// Names with dots between them, as they were folded.
    pub(super) fn dotted(&mut self) -> Result<Vec<String>> {
        let mut parts = vec![self.any_name()?];
        while self.is_mark(".") {
            self.pass();
            parts.push(self.any_name()?);
        }
        Ok(parts)
    }

    fn any_name(&mut self) -> Result<String> {
        match self.word() {
            PlpgsqlWord::Name { text, .. } => {
                let text = text.clone();
                self.pass();
                Ok(text)
            }
            PlpgsqlWord::Param(text) => {
                let text = text.clone();
                self.pass();
                Ok(text)
            }
            _ => Err(self.unexpected(self.at)),
        }
    }

    /// Something to assign to: a variable, a field, an element.
    pub(super) fn target(&mut self) -> Result<Target> {
        let start = self.token().start;
        let parts = self.dotted()?;
        let unknown = || {
            let near = parts.join(".");
            self.error_at(format!("\"{near}\" is not a known variable"), start)
        };
        let Some((variable, taken)) = self.find(&parts) else {
            return Err(unknown());
        };
        let is = &self.variables[variable];
        if is.constant {
            let name = is.name.clone();
            return Err(SqlError::new(
                SqlState::new(b"22005"),
                format!("variable \"{name}\" is declared CONSTANT"),
            )
            .at(Some(super::super::lex::position(self.body, start))));
        }
        let fields: Vec<String> = parts.get(taken..).unwrap_or_default().to_vec();
        let mut subscripts = Vec::new();
        while self.take_mark("[") {
            if self.is_slice() {
                return Err(SqlError::unsupported(
                    "assignment to a slice of an array in PL/pgSQL",
                ));
            }
            subscripts.push(self.expression(&["]"], "]")?);
            self.expect_mark("]")?;
        }
        if !subscripts.is_empty() {
            if self.is_mark(".") {
                return Err(SqlError::unsupported(
                    "assignment to a field of an array's element",
                ));
            }
            return Ok(Target::Element(variable, fields, subscripts));
        }
        Ok(match fields.is_empty() {
            true => Target::Variable(variable),
            false => Target::Field(variable, fields),
        })
    }

    /// Are there two bounds in the brackets that have just begun?
    fn is_slice(&self) -> bool {
        let mut depth = 0_usize;
        for token in self.tokens.iter().skip(self.at) {
            match &token.word {
                PlpgsqlWord::Mark("(" | "[") => depth += 1,
                PlpgsqlWord::Mark(")" | "]") if depth == 0 => return false,
                PlpgsqlWord::Mark(")" | "]") => depth -= 1,
                PlpgsqlWord::Mark(":") if depth == 0 => return true,
                PlpgsqlWord::Mark(";") => return false,
                _ => {}
            }
        }
        false
    }

    /// One or more of them, with commas between.
    pub(super) fn targets(&mut self) -> Result<Vec<Target>> {
        let first = self.at;
        let mut all = vec![self.target()?];
        while self.take_mark(",") {
            let at = self.at;
            all.push(self.target()?);
            for (at, target) in [(first, all.first()), (at, all.last())] {
                if let Some(Target::Variable(variable)) = target
                    && self.is_row(*variable)
                {
                    let token = &self.tokens[at];
                    let near = self.body.get(token.start..token.end).unwrap_or_default();
                    let message = format!(
                        "record variable cannot be part of multiple-item INTO list at or near \"{near}\""
                    );
                    return Err(self.error_at(message, token.start));
                }
            }
        }
        Ok(all)
    }

    /// Was it declared as a record or a table's row?
    pub(super) fn is_row(&self, variable: usize) -> bool {
        matches!(
            self.variables[variable].ty,
            TypeName::Record | TypeName::RowOf(..)
        )
    }
}
