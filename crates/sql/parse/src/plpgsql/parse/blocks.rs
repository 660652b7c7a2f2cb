//! Blocks: labels, declarations, handlers of exceptions.

use super::super::conditions;
use super::super::lex::PlpgsqlWord;
use super::super::tree::{
    Block, Condition, CursorQuery, ExceptionBlock, PlpgsqlStatement, Statement, TypeName, VarNo,
};
use super::{Label, Reader, lex};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// Words that end a type in a declaration.
const TYPE_ENDS: &[&str] = &[";", ":=", "=", "default", "not", "collate", ",", ")"];

impl Reader<'_> {
    /// `<<label>>`, if there is one.
    pub(super) fn label(&mut self) -> Result<Option<String>> {
        if !self.take_mark("<<") {
            return Ok(None);
        }
        let name = self.name()?;
        self.expect_mark(">>")?;
        Ok(Some(name))
    }

    /// The label behind END.
    pub(super) fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if self.is_mark(";") || self.word() == &PlpgsqlWord::End {
            return Ok(());
        }
        let at = self.token().start;
        let name = self.name()?;
        match label {
            None => Err(self.error_at(
                format!("end label \"{name}\" specified for unlabeled block"),
                at,
            )),
            Some(label) if label != name => Err(self.error_at(
                format!("end label \"{name}\" differs from block's label \"{label}\""),
                at,
            )),
            Some(_) => Ok(()),
        }
    }

    /// A block without its label and final semicolon.
    pub(super) fn block(&mut self, label: Option<String>) -> Result<Block> {
        self.deeper(|reader| reader.block_inside(label))
    }

    fn block_inside(&mut self, label: Option<String>) -> Result<Block> {
        let scope = self.scope;
        self.open(label.clone().unwrap_or_default());
        let first = self.names.len();
        let mut declares = Vec::new();
        while self.take("declare") {
            while !self.is("begin") && !self.is("declare") {
                self.declaration(first, &mut declares)?;
            }
        }
        self.expect("begin")?;
        self.loops.push(Label {
            name: label.clone(),
            is_loop: false,
        });
        let body = self.statements(&["end", "exception"])?;
        let handlers = match self.take("exception") {
            true => Some(Box::new(self.handlers()?)),
            false => None,
        };
        self.expect("end")?;
        self.end_label(label.as_deref())?;
        self.loops.pop();
        self.scope = scope;
        Ok(Block {
            label,
            declares,
            body,
            handlers,
        })
    }

    /// `name [CONSTANT] type [NOT NULL] [:= value];` and its kin.
    fn declaration(&mut self, first: usize, declares: &mut Vec<VarNo>) -> Result<()> {
        // `<<label>>` between DECLARE and BEGIN belongs in front of DECLARE.
        let line = self.line();
        let at = self.token().start;
        let near = self.at;
        let name = self.name()?;
        // Names in sight: arguments of cursors are not.
        let mut known = self.scope;
        let mut twice = false;
        while let Some(at) = known.filter(|at| *at >= first) {
            twice |= self.names[at].name == name;
            known = self.names[at].before;
        }
        if twice {
            let token = &self.tokens[near];
            let near = self.body.get(token.start..token.end).unwrap_or_default();
            return Err(self.error_at(format!("duplicate declaration at or near \"{near}\""), at));
        }
        if self.given.refuses_shadows && self.find(std::slice::from_ref(&name)).is_some() {
            return Err(SqlError::new(
                SqlState::new(b"42712"),
                format!("variable \"{name}\" shadows a previously defined variable"),
            )
            .at(Some(lex::position(self.body, at))));
        }
        if self.take("alias") {
            self.expect("for")?;
            let at = self.token().start;
            let parts = self.dotted()?;
            let found = self.find(&parts);
            let Some((variable, _)) = found.filter(|(_, taken)| *taken == parts.len()) else {
                return Err(SqlError::new(
                    SqlState::new(b"42704"),
                    format!("variable \"{}\" does not exist", parts.join(".")),
                )
                .at(Some(lex::position(self.body, at))));
            };
            self.expect_mark(";")?;
            self.say(&name, Some(variable));
            return Ok(());
        }
        let scroll = if self.is("no") && super::is_key(self.word_behind(1), "scroll") {
            self.pass();
            self.pass();
            Some(false)
        } else if self.is("scroll") && super::is_key(self.word_behind(1), "cursor") {
            self.pass();
            Some(true)
        } else {
            None
        };
        if self.is("cursor") && !matches!(self.word_behind(1), PlpgsqlWord::Mark(";" | ":=" | "="))
        {
            self.pass();
            return self.cursor(&name, line, scroll, declares);
        }
        let constant = self.take("constant");
        let ty = self.type_name(TYPE_ENDS)?;
        if self.take("collate") {
            return Err(SqlError::unsupported("COLLATE of a variable"));
        }
        let not_null = self.take("not");
        if not_null {
            self.expect("null")?;
        }
        let has_default = self.take_mark(":=") || self.take_mark("=") || self.take("default");
        let default = match has_default {
            true => Some(self.expression(super::sql_constructs::SEMICOLON, ";")?),
            false => None,
        };
        if not_null && default.is_none() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!(
                    "variable \"{name}\" must have a default value, since it's declared NOT NULL"
                ),
            )
            .at(Some(lex::position(self.body, at))));
        }
        self.expect_mark(";")?;
        let variable = self.variable(&name, ty, line);
        let is = &mut self.variables[variable];
        (is.constant, is.not_null, is.default) = (constant, not_null, default);
        self.say(&name, Some(variable));
        declares.push(variable);
        Ok(())
    }

    /// A cursor's arguments and query, behind CURSOR.
    fn cursor(
        &mut self,
        name: &str,
        line: usize,
        scroll: Option<bool>,
        declares: &mut Vec<VarNo>,
    ) -> Result<()> {
        let scope = self.scope;
        // Its arguments are in sight in its query alone.
        self.open(String::new());
        let mut args = Vec::new();
        if self.take_mark("(") {
            loop {
                let line = self.line();
                let arg = self.name()?;
                let ty = self.type_name(&[",", ")"])?;
                let variable = self.variable(&arg, ty, line);
                self.say(&arg, Some(variable));
                args.push(variable);
                if !self.take_mark(",") {
                    break;
                }
            }
            self.expect_mark(")")?;
        }
        if !self.take("for") {
            self.expect("is")?;
        }
        let start = self.token().start;
        let (query, _) = self.sql(start, false)?;
        self.scope = scope;
        let variable = self.variable(name, TypeName::Cursor, line);
        self.variables[variable].cursor = Some(Box::new(CursorQuery {
            scroll,
            args,
            query,
        }));
        self.say(name, Some(variable));
        declares.push(variable);
        Ok(())
    }

    /// A type, up to one of `ends` outside of parentheses.
    fn type_name(&mut self, ends: &[&str]) -> Result<TypeName> {
        let start = self.token().start;
        if let PlpgsqlWord::Name { text, quoted } = self.word() {
            let single = !matches!(self.word_behind(1), PlpgsqlWord::Mark("." | "%" | "["));
            if !quoted && single && text == "record" {
                self.pass();
                return Ok(TypeName::Record);
            }
            if !quoted && single && text == "refcursor" {
                self.pass();
                return Ok(TypeName::Cursor);
            }
            // A name with %TYPE or %ROWTYPE behind it.
            let mut at = self.at + 1;
            let word = |at: usize| self.tokens.get(at).map(|token| &token.word);
            while matches!(word(at), Some(PlpgsqlWord::Mark(".")))
                && matches!(word(at + 1), Some(PlpgsqlWord::Name { .. }))
            {
                at += 2;
            }
            if matches!(word(at), Some(PlpgsqlWord::Mark("%"))) {
                let parts = self.dotted()?;
                self.pass();
                if self.take("rowtype") {
                    return Ok(TypeName::RowOf(parts, start));
                }
                self.expect("type")?;
                if self.is_mark("[") {
                    return Err(SqlError::unsupported("an array of a %TYPE"));
                }
                return Ok(match self.find(&parts) {
                    Some((variable, taken)) if taken == parts.len() => {
                        TypeName::OfVariable(variable)
                    }
                    _ => TypeName::OfColumn(parts, start),
                });
            }
        }
        let mut depth = 0_usize;
        let mut end = start;
        loop {
            match self.word() {
                PlpgsqlWord::End => return Err(self.unexpected(self.at)),
                PlpgsqlWord::Mark(mark) if depth == 0 && ends.contains(mark) => break,
                PlpgsqlWord::Name {
                    text,
                    quoted: false,
                } if depth == 0 && ends.contains(&text.as_str()) => {
                    break;
                }
                PlpgsqlWord::Mark("(" | "[") => depth += 1,
                PlpgsqlWord::Mark(")" | "]") => depth = depth.saturating_sub(1),
                PlpgsqlWord::Mark(";") => return Err(self.unexpected(self.at)),
                _ => {}
            }
            end = self.token().end;
            self.pass();
        }
        let text = self.body.get(start..end).unwrap_or_default();
        if text.is_empty() {
            let token = self.token();
            let near = self.body.get(token.start..token.end).unwrap_or_default();
            return Err(self.error_at(
                format!("missing data type declaration at or near \"{near}\""),
                token.start,
            ));
        }
        Ok(TypeName::Sql(text.to_owned(), start))
    }

    fn handlers(&mut self) -> Result<ExceptionBlock> {
        let scope = self.scope;
        let text = || TypeName::Known(SqlType::of(oid::TEXT));
        let line = self.line();
        let state = self.variable("sqlstate", text(), line);
        self.variables[state].constant = true;
        self.say("sqlstate", Some(state));
        let message = self.variable("sqlerrm", text(), line);
        self.variables[message].constant = true;
        self.say("sqlerrm", Some(message));
        let mut arms = Vec::new();
        while self.take("when") {
            let mut conditions = self.condition()?;
            while self.take("or") {
                conditions.extend(self.condition()?);
            }
            self.expect("then")?;
            arms.push((conditions, self.statements(&["end", "when"])?));
        }
        if arms.is_empty() {
            return Err(self.unexpected(self.at));
        }
        self.scope = scope;
        Ok(ExceptionBlock {
            state,
            message,
            arms,
        })
    }

    fn condition(&mut self) -> Result<Vec<Condition>> {
        let at = self.token().start;
        let name = self.name()?;
        if name == "others" {
            return Ok(vec![Condition::Others]);
        }
        if name == "sqlstate" {
            let PlpgsqlWord::Text(code) = self.word() else {
                return Err(self.unexpected(self.at));
            };
            let state = conditions::state(code);
            let state =
                state.ok_or_else(|| self.error_at("invalid SQLSTATE code", self.token().start))?;
            self.pass();
            return Ok(vec![Condition::State(state)]);
        }
        let states = conditions::states_of(&name);
        if states.is_empty() {
            return Err(SqlError::new(
                SqlState::new(b"42704"),
                format!("unrecognized exception condition \"{name}\""),
            )
            .at(Some(lex::position(self.body, at))));
        }
        Ok(states.into_iter().map(Condition::State).collect())
    }

    /// Statements up to one of the words, which is not passed.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<Statement>> {
        let mut all = Vec::new();
        while !ends.iter().any(|end| self.is(end)) {
            if self.word() == &PlpgsqlWord::End {
                return Err(self.unexpected(self.at));
            }
            let line = self.line();
            let kind = self.deeper(Self::statement)?;
            if !matches!(kind, PlpgsqlStatement::Null) {
                all.push(Statement { line, kind });
            }
        }
        Ok(all)
    }
}
