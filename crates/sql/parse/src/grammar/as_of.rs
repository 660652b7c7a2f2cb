//! AS OF: the past that a statement reads. Our extension.
//!
//! `AS OF 'time or restore point'`, `AS OF TIMESTAMP '...'`, `AS OF SYSTEM TIME '...'`, or a parameter in the place
//! of the text. It stands at the end of a query that is the statement, or EXPLAIN's, PREPARE's or COPY's; or, as
//! other products have it, behind FROM and in front of WHERE and what follows that. Wherever it stands it speaks for
//! the whole statement, so it is refused where it looks as if it spoke for a part: behind one of several tables, in
//! one query of a UNION, in a subquery. A text never means something else because of it: nothing that PostgreSQL
//! accepts has AS OF in front of a literal or a parameter.

use super::Parser;
use super::expr::Rule;
use super::names::is_non_reserved_word;
use crate::ast::{AsOfClause, CopySource, Expr, SelectStmt, Stmt};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// More parameters than this there are not.
const PARAMETERS_MAX: u32 = 65_535;

/// The clause of the statement that is read.
#[derive(Debug, Default)]
pub(super) struct AsOfContext {
    /// It, until the query has it.
    clause: Option<Box<AsOfClause>>,
    /// There was one.
    is_said: bool,
    /// It stood behind FROM.
    is_behind_from: bool,
    /// The statement's query has parts: UNION and its like.
    has_parts: bool,
    /// Queries in the statement's query that are open.
    subqueries: usize,
    /// The statement's query stands in parentheses.
    pub(super) is_copy: bool,
}

/// 0A000: there, it does not speak for the statement.
fn not_there() -> SqlError {
    SqlError::unsupported("AS OF here").hint(
        "A SELECT, VALUES or TABLE that is a statement may end with it, and reads the whole database as of then. SET logstead.as_of = '...' has all that follows do so.",
    )
}

impl Parser<'_> {
    /// A query in a query.
    pub(super) fn subselect<R>(&mut self, rule: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.as_of.subqueries += 1;
        let read = rule(self);
        self.as_of.subqueries -= 1;
        read
    }

    /// Is the clause the next thing?
    pub(super) fn at_as_of(&self) -> bool {
        self.are(&[K::As, K::Of]) && self.as_of_point().is_some()
    }

    /// How many tokens in front of the clause's point, and whether it says that it is a time.
    fn as_of_point(&self) -> Option<(usize, bool)> {
        let is_word = |ahead: usize, word: &str| {
            let token = self.token_at(ahead);
            token.kind == T::Ident && self.tokens.written(token).eq_ignore_ascii_case(word)
        };
        let is_system = self.is_at(2, K::System) && self.is_at(3, K::Time);
        let (ahead, is_time) = if is_system {
            (4, true)
        } else if is_word(2, "timestamptz") {
            (3, true)
        } else if self.is_at(2, K::Timestamp) {
            let has_zone = self.kind_at(3) == T::WithLa || self.is_at(3, K::Without);
            match has_zone && self.is_at(4, K::Time) && self.is_at(5, K::Zone) {
                true => (6, true),
                false => (3, true),
            }
        } else {
            (2, false)
        };
        let is_point = match self.kind_at(ahead) {
            T::SConst => true,
            T::Param => {
                let written = self.tokens.written(self.token_at(ahead));
                let number = written.get(1..).and_then(|number| number.parse().ok());
                number.is_some_and(|number: u32| (1..=PARAMETERS_MAX).contains(&number))
            }
            _ => false,
        };
        is_point.then_some((ahead, is_time))
    }

    /// Reads the clause if it is the next thing.
    pub(super) fn opt_as_of(&mut self) -> Result<()> {
        if !self.is(K::As) || !self.at_as_of() {
            return Ok(());
        }
        let Some((ahead, is_time)) = self.as_of_point() else {
            return Ok(());
        };
        if self.as_of.subqueries > 0 || self.as_of.is_said {
            return Err(not_there());
        }
        self.pass_all(ahead);
        let location = self.here();
        let point = self.c_expr(Rule::B)?;
        let is_behind_from = self.is_any(&[K::Where, K::Group, K::Having, K::Window]);
        let is_end = match self.kind() {
            T::End | T::Semicolon => !self.as_of.is_copy,
            T::RParen => self.as_of.is_copy,
            _ => self.is_any(&[K::Order, K::Limit, K::Offset, K::Fetch, K::For]),
        };
        let speaks_for_all = is_end || is_behind_from && !self.as_of.has_parts;
        if !speaks_for_all {
            return Err(not_there());
        }
        self.as_of.is_said = true;
        self.as_of.is_behind_from = is_behind_from;
        self.as_of.clause = Some(Box::new(AsOfClause {
            point,
            is_time,
            location,
        }));
        Ok(())
    }

    /// Behind a statement the clause is out of place.
    pub(super) fn refuse_as_of(&self) -> Result<()> {
        match self.at_as_of() {
            true => Err(not_there()),
            false => Ok(()),
        }
    }

    /// UNION or its like comes next.
    pub(super) fn as_of_has_parts(&mut self) -> Result<()> {
        if self.as_of.subqueries == 0 {
            self.as_of.has_parts = true;
            if self.as_of.is_behind_from {
                return Err(not_there());
            }
        }
        Ok(())
    }

    /// The clause of a query that has been read.
    pub(super) fn as_of_of_query(&mut self) -> Option<Box<AsOfClause>> {
        match self.as_of.subqueries {
            0 => self.as_of.clause.take(),
            _ => None,
        }
    }

    /// Is a statement that has the clause one that can read the past?
    pub(super) fn check_as_of(&self, stmt: &Stmt) -> Result<()> {
        if !self.as_of.is_said {
            return Ok(());
        }
        let query: Option<&SelectStmt> = match stmt {
            Stmt::Select(query) => Some(query),
            Stmt::Explain(explain) => match &explain.query {
                Stmt::Select(query) => Some(query),
                _ => None,
            },
            Stmt::Prepare(prepare) => match &prepare.query {
                Stmt::Select(query) => Some(query),
                _ => None,
            },
            Stmt::Copy(copy) => match &copy.source {
                CopySource::Query(query) => match &**query {
                    Stmt::Select(query) => Some(query),
                    _ => None,
                },
                CopySource::Relation { .. } => None,
            },
            Stmt::DeclareCursor(_) => {
                return Err(SqlError::unsupported("AS OF in a cursor").hint(
                    "In a block that begins with SET LOCAL logstead.as_of = '...' cursors read the past.",
                ));
            }
            _ => None,
        };
        match query {
            Some(query) if query.as_of.is_some() && !into_in(query) => {
                match query.locking_clause.is_empty() {
                    true => Ok(()),
                    false => Err(SqlError::unsupported("a locking clause with AS OF")
                        .hint("Rows of the past cannot be locked.")),
                }
            }
            _ => Err(not_there()),
        }
    }

    /// A syntax error of a statement that says at what time it reads, as others' grammars have it, tells how that is
    /// said here.
    pub(super) fn unless_time(&self, error: SqlError, first: usize) -> SqlError {
        if error.code() != SqlState::SYNTAX_ERROR || self.as_of.is_said || self.at_as_of() {
            return error;
        }
        let tokens = self.tokens.tokens.get(first..).unwrap_or_default();
        let written = |at: usize| {
            tokens
                .get(at)
                .map_or("", |token| self.tokens.written(*token))
        };
        let mut words = (0..tokens.len())
            .take_while(|at| tokens.get(*at).is_some_and(|t| t.kind != T::Semicolon));
        let is = |at: usize, word: &str| written(at).eq_ignore_ascii_case(word);
        let names_time = words.any(|at| {
            // A name may follow that is no keyword of a clause, a literal, a parameter, a call.
            let goes_on = tokens.get(at + 2).is_some_and(|token| {
                is_non_reserved_word(token.kind)
                    || matches!(token.kind, T::SConst | T::Param | T::LParen | T::Minus)
            });
            is(at, "as") && is(at + 1, "of") && goes_on
                || is(at, "for") && (is(at + 1, "system_time") || is(at + 1, "system"))
        });
        match names_time {
            true => not_there(),
            false => error,
        }
    }
}

/// Does the query make a table?
fn into_in(query: &SelectStmt) -> bool {
    match &query.body {
        crate::ast::SelectBody::Select(core) => core.into_clause.is_some(),
        _ => false,
    }
}

impl AsOfClause {
    /// The literal, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.point {
            Expr::Const(crate::ast::Const {
                value: crate::ast::Value::String(text),
                ..
            }) => Some(text),
            _ => None,
        }
    }

    /// The parameter, counted from 1, if it is one.
    pub fn parameter(&self) -> Option<u32> {
        match &self.point {
            Expr::ParamRef(param) => Some(param.number),
            _ => None,
        }
    }
}
