//! Statements: one function for each kind.

use super::super::lex::PlpgsqlWord;
use super::super::tree::{
    Count, Diagnostic, Direction, Fetch, For, ForSource, OpenSource, PlpgsqlStatement, Target,
    TypeName,
};
use super::sql_constructs::SEMICOLON;
use super::{Label, RESERVED, Reader, is_key};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

impl Reader<'_> {
    pub(super) fn statement(&mut self) -> Result<PlpgsqlStatement> {
        let start = self.token().start;
        if self.is_mark("<<") {
            let label = self.label()?;
            return self.labelled(label);
        }
        let PlpgsqlWord::Name { text, quoted } = self.word().clone() else {
            if matches!(self.word(), PlpgsqlWord::Param(_)) {
                return self.assignment();
            }
            // A query in parentheses.
            if self.is_mark("(") {
                return self.query(start);
            }
            return Err(self.unexpected(self.at));
        };
        let assigns = matches!(self.word_behind(1), PlpgsqlWord::Mark(":=" | "=" | "["));
        let reserved = !quoted && RESERVED.contains(&text.as_str());
        if !reserved && (assigns || matches!(self.word_behind(1), PlpgsqlWord::Mark("."))) {
            return self.assignment();
        }
        if quoted {
            return Err(self.unexpected(self.at));
        }
        match text.as_str() {
            "declare" | "begin" | "loop" | "while" | "for" | "foreach" => self.labelled(None),
            "if" => self.if_statement(),
            "case" => self.case_statement(),
            "null" => {
                self.pass();
                self.expect_mark(";")?;
                Ok(PlpgsqlStatement::Null)
            }
            "exit" | "continue" => self.exit_statement(text == "exit"),
            "return" => self.return_statement(),
            "raise" => self.raise_statement(),
            "assert" => {
                self.pass();
                let condition = self.expression(&[",", ";"], ";")?;
                let message = match self.take_mark(",") {
                    true => Some(self.expression(SEMICOLON, ";")?),
                    false => None,
                };
                self.expect_mark(";")?;
                Ok(PlpgsqlStatement::Assert(condition, message))
            }
            "perform" => {
                self.pass();
                let (from, to) = self.skip_to(SEMICOLON, ";")?;
                let written = self.body.get(from..to).unwrap_or_default();
                let text = format!("SELECT {written}");
                let lead = "SELECT ".len();
                let expr = self.expr(text, from.saturating_sub(lead), true);
                self.check(&expr)?;
                self.expect_mark(";")?;
                Ok(PlpgsqlStatement::Perform(expr))
            }
            "execute" => self.execute_statement(),
            "get" => self.diagnostics_statement(),
            "open" => self.open_statement(),
            "fetch" | "move" => self.fetch_statement(text == "move"),
            "close" => {
                self.pass();
                let cursor = self.cursor_variable()?;
                self.expect_mark(";")?;
                Ok(PlpgsqlStatement::Close(cursor))
            }
            "commit" | "rollback" => {
                self.pass();
                let mut chain = false;
                if self.take("and") {
                    chain = !self.take("no");
                    self.expect("chain")?;
                }
                self.expect_mark(";")?;
                Ok(match text == "commit" {
                    true => PlpgsqlStatement::Commit(chain),
                    false => PlpgsqlStatement::Rollback(chain),
                })
            }
            "call" | "do" => {
                let (expr, _) = self.sql(start, false)?;
                Ok(PlpgsqlStatement::Call(expr))
            }
            _ if reserved => Err(self.unexpected(self.at)),
            _ => self.query(start),
        }
    }

    fn query(&mut self, start: usize) -> Result<PlpgsqlStatement> {
        let changes = ["insert", "update", "delete", "merge"]
            .iter()
            .any(|key| self.is(key));
        let (query, into) = self.sql(start, true)?;
        Ok(PlpgsqlStatement::Sql {
            query,
            into,
            changes,
        })
    }

    fn assignment(&mut self) -> Result<PlpgsqlStatement> {
        let start = self.token().start;
        let target = self.target()?;
        if !self.take_mark(":=") {
            self.expect_mark("=")?;
        }
        let mut expr = self.expression(SEMICOLON, ";")?;
        let end = expr.at + expr.text.len();
        let whole = self.body.get(start..end).unwrap_or_default();
        expr.assignment = Some(whole.into());
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Assign(target, expr))
    }

    /// What may have a label: blocks and loops.
    fn labelled(&mut self, label: Option<String>) -> Result<PlpgsqlStatement> {
        if self.is("declare") || self.is("begin") {
            let block = self.block(label)?;
            self.expect_mark(";")?;
            return Ok(PlpgsqlStatement::Block(block));
        }
        let scope = self.scope;
        // A loop's variables are in a block of their own.
        self.open(label.clone().unwrap_or_default());
        let kind = if self.take("loop") {
            PlpgsqlStatement::Loop(label.clone(), self.loop_body(label)?)
        } else if self.take("while") {
            let condition = self.expression(&["loop"], "LOOP")?;
            self.expect("loop")?;
            PlpgsqlStatement::While(label.clone(), condition, self.loop_body(label)?)
        } else if self.take("for") {
            self.for_statement(label)?
        } else if self.take("foreach") {
            self.foreach_statement(label)?
        } else {
            return Err(self.unexpected(self.at));
        };
        self.scope = scope;
        Ok(kind)
    }

    fn loop_body(&mut self, label: Option<String>) -> Result<Vec<super::Statement>> {
        self.loops.push(Label {
            name: label.clone(),
            is_loop: true,
        });
        let body = self.statements(&["end"])?;
        self.loops.pop();
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label.as_deref())?;
        self.expect_mark(";")?;
        Ok(body)
    }

    fn for_statement(&mut self, label: Option<String>) -> Result<PlpgsqlStatement> {
        let start = self.token().start;
        let line = self.line();
        let first = self.at;
        // What takes the values: known only when it is known what is gone over.
        let mut parts = vec![self.dotted()?];
        let mut places = vec![start];
        while self.take_mark(",") {
            places.push(self.token().start);
            parts.push(self.dotted()?);
        }
        let behind_targets = self.at;
        self.expect("in")?;
        if self.take("execute") {
            let query = self.expression(&["loop", "using"], "LOOP")?;
            let params = match self.take("using") {
                true => self.expressions(&["loop"])?,
                false => Vec::new(),
            };
            let over = ForSource::Execute(query, params);
            return self.for_rows(label, (first, behind_targets), over);
        }
        let cursor = match self.word() {
            PlpgsqlWord::Name { text, .. } => self.find(std::slice::from_ref(text)),
            _ => None,
        };
        if let Some((variable, _)) = cursor
            && matches!(self.variables[variable].ty, TypeName::Cursor)
            && (is_key(self.word_behind(1), "loop")
                || matches!(self.word_behind(1), PlpgsqlWord::Mark("(")))
        {
            if self.variables[variable].cursor.is_none() {
                return Err(self.error_at(
                    "cursor FOR loop must use a bound cursor variable",
                    self.token().start,
                ));
            }
            self.pass();
            let args = self.bound_arguments(variable)?;
            self.expect("loop")?;
            let [name] = parts.first().map_or(&[][..], Vec::as_slice) else {
                return Err(self.unexpected(first));
            };
            let row = self.variable(name, TypeName::Record, line);
            self.say(name, Some(row));
            let body = self.loop_body(label.clone())?;
            return Ok(PlpgsqlStatement::For(Box::new(For {
                label,
                targets: vec![Target::Variable(row)],
                over: ForSource::Cursor(variable, args),
                body,
            })));
        }
        let reverse = self.take("reverse");
        // A range has two dots before LOOP.
        let from = self.at;
        let is_range = self.has_dots()?;
        self.at = from;
        if !is_range {
            if reverse {
                return Err(self.error_at("cannot specify REVERSE in query FOR loop", start));
            }
            let (from, to) = self.skip_to(&["loop"], "LOOP")?;
            let text = self.body.get(from..to).unwrap_or_default().to_owned();
            let query = self.expr(text, from, true);
            self.check(&query)?;
            return self.for_rows(label, (first, behind_targets), ForSource::Query(query));
        }
        let lower = self.expression(&[".."], "..")?;
        self.expect_mark("..")?;
        let upper = self.expression(&["loop", "by"], "LOOP")?;
        let step = match self.take("by") {
            true => Some(self.expression(&["loop"], "LOOP")?),
            false => None,
        };
        self.expect("loop")?;
        let [name] = parts.first().map_or(&[][..], Vec::as_slice) else {
            return Err(self.unexpected(first));
        };
        if parts.len() > 1 {
            return Err(self.error_at("integer FOR loop must have only one target variable", start));
        }
        let integer = TypeName::Known(SqlType::of(oid::INT4));
        let counter = self.variable(name, integer, line);
        self.say(name, Some(counter));
        let body = self.loop_body(label.clone())?;
        Ok(PlpgsqlStatement::For(Box::new(For {
            label,
            targets: vec![Target::Variable(counter)],
            over: ForSource::Range {
                bounds: Box::new((lower, upper)),
                step,
                reverse,
            },
            body,
        })))
    }

    /// Is there `..` before LOOP, outside of parentheses?
    fn has_dots(&mut self) -> Result<bool> {
        let mut depth = 0_usize;
        loop {
            match self.word() {
                PlpgsqlWord::End => return Err(self.unexpected(self.at)),
                PlpgsqlWord::Mark("..") if depth == 0 => return Ok(true),
                PlpgsqlWord::Mark(";") if depth == 0 => return Ok(false),
                PlpgsqlWord::Mark("(" | "[") => depth += 1,
                PlpgsqlWord::Mark(")" | "]") => depth = depth.saturating_sub(1),
                word if depth == 0 && is_key(word, "loop") => return Ok(false),
                _ => {}
            }
            self.pass();
        }
    }

    /// The rest of a loop over rows.
    fn for_rows(
        &mut self,
        label: Option<String>,
        (first, behind): (usize, usize),
        over: ForSource,
    ) -> Result<PlpgsqlStatement> {
        self.expect("loop")?;
        let after = std::mem::replace(&mut self.at, first);
        let token = self.token().start;
        let targets = self.targets().map_err(|error| {
            if error.code() == SqlState::SYNTAX_ERROR
                && error.fields().message.contains("is not a known variable")
            {
                return self.error_at(
                    "loop variable of loop over rows must be a record variable or list of scalar variables",
                    token,
                );
            }
            error
        })?;
        if self.at != behind {
            return Err(self.unexpected(self.at));
        }
        self.at = after;
        let body = self.loop_body(label.clone())?;
        Ok(PlpgsqlStatement::For(Box::new(For {
            label,
            targets,
            over,
            body,
        })))
    }

    fn foreach_statement(&mut self, label: Option<String>) -> Result<PlpgsqlStatement> {
        let targets = self.targets()?;
        let mut slice = 0;
        if self.take("slice") {
            let PlpgsqlWord::Number(digits) = self.word() else {
                return Err(self.unexpected(self.at));
            };
            slice = digits.parse().unwrap_or(0);
            self.pass();
        }
        self.expect("in")?;
        self.expect("array")?;
        let array = self.expression(&["loop"], "LOOP")?;
        self.expect("loop")?;
        let body = self.loop_body(label.clone())?;
        Ok(PlpgsqlStatement::For(Box::new(For {
            label,
            targets,
            over: ForSource::Array(array, slice),
            body,
        })))
    }

    fn if_statement(&mut self) -> Result<PlpgsqlStatement> {
        self.pass();
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.expression(&["then"], "THEN")?;
            self.expect("then")?;
            arms.push((
                condition,
                self.statements(&["elsif", "elseif", "else", "end"])?,
            ));
            if self.take("elsif") || self.take("elseif") {
                continue;
            }
            if self.take("else") {
                otherwise = self.statements(&["end"])?;
            }
            break;
        }
        self.expect("end")?;
        self.expect("if")?;
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::If(arms, otherwise))
    }

    fn case_statement(&mut self) -> Result<PlpgsqlStatement> {
        self.pass();
        let scope = self.scope;
        let mut test = None;
        if !self.is("when") {
            let tested = self.expression(&["when"], "WHEN")?;
            // Its type is known when it is computed.
            let name = format!("__Case__Variable_{}__", self.cases);
            self.cases += 1;
            let unknown = TypeName::Known(SqlType::of(oid::UNKNOWN));
            let variable = self.variable(&name, unknown, self.line());
            self.say(&name, Some(variable));
            test = Some((variable, tested));
        }
        let mut arms = Vec::new();
        while self.take("when") {
            let mut condition = self.expression(&["then"], "THEN")?;
            if let Some((variable, _)) = &test {
                let name = &self.variables[*variable].name;
                condition.text = format!("\"{name}\" IN ({})", condition.text).into();
            }
            self.expect("then")?;
            arms.push((condition, self.statements(&["when", "else", "end"])?));
        }
        if arms.is_empty() {
            return Err(self.unexpected(self.at));
        }
        let otherwise = match self.take("else") {
            true => Some(self.statements(&["end"])?),
            false => None,
        };
        self.expect("end")?;
        self.expect("case")?;
        self.expect_mark(";")?;
        self.scope = scope;
        Ok(PlpgsqlStatement::Case {
            test,
            arms,
            otherwise,
        })
    }

    fn exit_statement(&mut self, exits: bool) -> Result<PlpgsqlStatement> {
        let start = self.token().start;
        self.pass();
        let mut label = None;
        if !self.is_mark(";") && !self.is("when") {
            let at = self.token().start;
            let name = self.name()?;
            let found = self
                .loops
                .iter()
                .rev()
                .find(|l| l.name.as_deref() == Some(&name));
            match found {
                None => {
                    let message = format!(
                        "there is no label \"{name}\" attached to any block or loop enclosing this statement"
                    );
                    return Err(self.error_at(message, at));
                }
                Some(found) if !exits && !found.is_loop => {
                    let message = format!("block label \"{name}\" cannot be used in CONTINUE");
                    return Err(self.error_at(message, at));
                }
                Some(_) => {}
            }
            label = Some(name);
        } else if !self.loops.iter().any(|label| label.is_loop) {
            let message = match exits {
                true => "EXIT cannot be used outside a loop, unless it has a label",
                false => "CONTINUE cannot be used outside a loop",
            };
            return Err(self.error_at(message, start));
        }
        let condition = match self.take("when") {
            true => Some(self.expression(SEMICOLON, ";")?),
            false => None,
        };
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Exit(exits, label, condition))
    }

    fn return_statement(&mut self) -> Result<PlpgsqlStatement> {
        let wrong = |message: &str, at: usize, code: &[u8; 5]| {
            SqlError::new(SqlState::new(code), message)
                .at(Some(super::lex::position(self.body, at)))
        };
        let start = self.token().start;
        self.at += 1;
        if self.is("next") {
            if !self.given.returns_set {
                return Err(wrong(
                    "cannot use RETURN NEXT in a non-SETOF function",
                    start,
                    b"42804",
                ));
            }
            self.pass();
            let at = self.token().start;
            if self.take_mark(";") {
                return Ok(PlpgsqlStatement::ReturnNext(None));
            }
            if self.given.returns_nothing {
                return Err(wrong(
                    "RETURN NEXT cannot have a parameter in function with OUT parameters",
                    at,
                    b"42804",
                ));
            }
            return Ok(PlpgsqlStatement::ReturnNext(Some(self.last_expression()?)));
        }
        if self.is("query") {
            if !self.given.returns_set {
                return Err(wrong(
                    "cannot use RETURN QUERY in a non-SETOF function",
                    start,
                    b"42804",
                ));
            }
            self.pass();
            if self.take("execute") {
                let query = self.expression(&[";", "using"], ";")?;
                let params = match self.take("using") {
                    true => self.expressions(SEMICOLON)?,
                    false => Vec::new(),
                };
                self.expect_mark(";")?;
                return Ok(PlpgsqlStatement::ReturnExecute(query, params));
            }
            let at = self.token().start;
            let (query, _) = self.sql(at, false)?;
            return Ok(PlpgsqlStatement::ReturnQuery(query));
        }
        let at = self.token().start;
        if self.take_mark(";") {
            if !self.given.returns_set && !self.given.returns_nothing {
                return Err(self.error_at("missing expression at or near \";\"", at));
            }
            return Ok(PlpgsqlStatement::Return(None));
        }
        if self.given.returns_set {
            return Err(wrong(
                "RETURN cannot have a parameter in function returning set",
                at,
                b"42804",
            )
            .hint("Use RETURN NEXT or RETURN QUERY."));
        }
        if self.given.returns_nothing {
            let message = match self.given.procedure {
                true => "RETURN cannot have a parameter in a procedure",
                false if self.given.name.is_none() || self.given.returns_void => {
                    "RETURN cannot have a parameter in function returning void"
                }
                false => "RETURN cannot have a parameter in function with OUT parameters",
            };
            return Err(wrong(message, at, b"42804"));
        }
        Ok(PlpgsqlStatement::Return(Some(self.last_expression()?)))
    }

    fn execute_statement(&mut self) -> Result<PlpgsqlStatement> {
        self.pass();
        let query = self.expression(&["into", "using", ";"], ";")?;
        let (mut into, mut params) = (None, Vec::new());
        loop {
            if into.is_none() && self.take("into") {
                let strict = self.take("strict");
                let targets = self.targets()?;
                into = Some(super::super::tree::Into { strict, targets });
            } else if params.is_empty() && self.take("using") {
                params = self.expressions(&["into", ";"])?;
            } else {
                break;
            }
        }
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Execute {
            query,
            into,
            params,
        })
    }

    fn diagnostics_statement(&mut self) -> Result<PlpgsqlStatement> {
        self.pass();
        let stacked = self.take("stacked");
        if !stacked {
            self.take("current");
        }
        self.expect("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.take_mark(":=") {
                self.expect_mark("=")?;
            }
            let near = self.at;
            use Diagnostic as D;
            let item = self.name()?;
            let (item, is_stacked) = match item.as_str() {
                "row_count" => (D::RowCount, false),
                "pg_context" => (D::Context, false),
                "pg_exception_context" => (D::ErrorContext, true),
                "pg_exception_detail" => (D::ErrorDetail, true),
                "pg_exception_hint" => (D::ErrorHint, true),
                "returned_sqlstate" => (D::ReturnedSqlstate, true),
                "column_name" => (D::ColumnName, true),
                "constraint_name" => (D::ConstraintName, true),
                "pg_datatype_name" => (D::DatatypeName, true),
                "message_text" => (D::MessageText, true),
                "table_name" => (D::TableName, true),
                "schema_name" => (D::SchemaName, true),
                _ => {
                    let token = &self.tokens[near];
                    let near = self.body.get(token.start..token.end).unwrap_or_default();
                    let message =
                        format!("unrecognized GET DIAGNOSTICS item at or near \"{near}\"");
                    return Err(self.error_at(message, token.start));
                }
            };
            // Where it is, every block can be told.
            if is_stacked != stacked && item != D::Context {
                let token = &self.tokens[near];
                let name = self.body.get(token.start..token.end).unwrap_or_default();
                let message = format!(
                    "diagnostics item {} is not allowed in GET {} DIAGNOSTICS",
                    name.to_uppercase(),
                    if stacked { "STACKED" } else { "CURRENT" }
                );
                return Err(self.error_at(message, token.start));
            }
            items.push((target, item));
            if !self.take_mark(",") {
                break;
            }
        }
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Diagnostics(stacked, items))
    }

    fn open_statement(&mut self) -> Result<PlpgsqlStatement> {
        self.pass();
        let cursor = self.cursor_variable()?;
        if self.variables[cursor].cursor.is_some() {
            let args = self.bound_arguments(cursor)?;
            self.expect_mark(";")?;
            return Ok(PlpgsqlStatement::Open(cursor, OpenSource::Bound(args)));
        }
        let scroll = if self.take("no") {
            self.expect("scroll")?;
            Some(false)
        } else {
            self.take("scroll").then_some(true)
        };
        self.expect("for")?;
        if self.take("execute") {
            let query = self.expression(&["using", ";"], ";")?;
            let params = match self.take("using") {
                true => self.expressions(SEMICOLON)?,
                false => Vec::new(),
            };
            self.expect_mark(";")?;
            return Ok(PlpgsqlStatement::Open(
                cursor,
                OpenSource::Execute(scroll, query, params),
            ));
        }
        let start = self.token().start;
        let (query, _) = self.sql(start, false)?;
        Ok(PlpgsqlStatement::Open(
            cursor,
            OpenSource::Query(scroll, query),
        ))
    }

    fn fetch_statement(&mut self, moves: bool) -> Result<PlpgsqlStatement> {
        use Direction as D;
        self.pass();
        let ends: &[&str] = &["from", "in"];
        // A name of a cursor may be any of the words below.
        let named = matches!(self.word_behind(1), PlpgsqlWord::Mark(";"))
            || is_key(self.word_behind(1), "into");
        let mut direction = D::Forward(Count::Known(1));
        let mut needs_from = !named;
        if !named {
            if self.take("next") {
            } else if self.take("prior") {
                direction = D::Backward(Count::Known(1));
            } else if self.take("first") {
                direction = D::Absolute(Count::Known(1));
            } else if self.take("last") {
                direction = D::Absolute(Count::Known(-1));
            } else if self.take("absolute") {
                direction = D::Absolute(Count::Computed(self.expression(ends, "FROM")?));
            } else if self.take("relative") {
                direction = D::Relative(Count::Computed(self.expression(ends, "FROM")?));
            } else if self.take("all") {
                direction = D::Forward(Count::All);
            } else if self.is("forward") || self.is("backward") {
                let forward = self.is("forward");
                self.pass();
                let count = if self.is("from") || self.is("in") {
                    Count::Known(1)
                } else if self.take("all") {
                    Count::All
                } else {
                    Count::Computed(self.expression(ends, "FROM")?)
                };
                direction = match forward {
                    true => D::Forward(count),
                    false => D::Backward(count),
                };
            } else if self.is("from") || self.is("in") {
            } else {
                let count = self.expression(ends, "FROM")?;
                direction = D::Forward(Count::Computed(count));
            }
            if self.take("from") || self.take("in") {
                needs_from = false;
            }
        }
        if needs_from {
            return Err(self.unexpected(self.at));
        }
        let cursor = self.cursor_variable()?;
        let targets = match moves {
            true => None,
            false => {
                let many = match &direction {
                    D::Forward(Count::Known(1)) | D::Backward(Count::Known(1)) => false,
                    D::Absolute(_) | D::Relative(_) => false,
                    D::Forward(_) | D::Backward(_) => true,
                };
                if many {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "FETCH statement cannot return multiple rows",
                    ));
                }
                self.expect("into")?;
                Some(self.targets()?)
            }
        };
        self.expect_mark(";")?;
        Ok(PlpgsqlStatement::Fetch(Box::new(Fetch {
            cursor,
            direction,
            targets,
        })))
    }
}
