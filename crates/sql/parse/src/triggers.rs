//! CREATE, ALTER and DROP TRIGGER, and COMMENT ON TRIGGER.
//!
//! The grammar library reads most of them, but keeps no place of the condition: its text is what is stored (`catalog::trigger`).

use super::StatementKind;
use super::Timing;
use super::policies::PolicyClause;
use super::rewrite::words;
use super::roles::Words;
use super::{TriggerEvent, TriggerTime};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about triggers.
#[derive(Clone, Debug)]
pub struct TriggerStatement {
    /// The trigger.
    pub name: String,
    /// Its table or view.
    pub table: ast::ObjectName,
    /// What becomes of it.
    pub action: TriggerAction,
}

/// What a statement does with a trigger.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TriggerAction {
    Create(Box<NewTrigger>),
    Rename(String),
    Drop {
        if_exists: bool,
    },
    /// COMMENT ON; none removes it.
    Comment(Option<String>),
}

/// CREATE TRIGGER.
#[derive(Clone, Debug)]
pub struct NewTrigger {
    /// OR REPLACE.
    pub or_replace: bool,
    /// When it fires.
    pub time: TriggerTime,
    /// What makes it fire.
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF.
    pub columns: Vec<String>,
    /// FOR EACH ROW.
    pub row: bool,
    /// WHEN.
    pub when: Option<PolicyClause>,
    /// What it calls.
    pub function: ast::ObjectName,
    /// With what.
    pub args: Vec<String>,
    /// CONSTRAINT: when it fires, and FROM.
    pub constraint: Option<(Timing, Option<ast::ObjectName>)>,
    /// REFERENCING.
    pub transitions: Vec<Transition>,
}

/// What REFERENCING names.
#[derive(Clone, Debug)]
pub struct Transition {
    /// NEW rather than OLD.
    pub new: bool,
    /// TABLE rather than ROW.
    pub table: bool,
    /// Its name.
    pub name: String,
}

impl TriggerStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self.action {
            TriggerAction::Create(_) => "CREATE TRIGGER",
            TriggerAction::Rename(_) => "ALTER TRIGGER",
            TriggerAction::Drop { .. } => "DROP TRIGGER",
            TriggerAction::Comment(_) => "COMMENT",
        }
    }
}

/// The statement, if it is one of these.
pub(super) fn triggers(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let heads: [&[&str]; 7] = [
        &["create", "trigger"],
        &["create", "or", "replace", "trigger"],
        &["create", "constraint", "trigger"],
        &["create", "or", "replace", "constraint", "trigger"],
        &["alter", "trigger"],
        &["drop", "trigger"],
        &["comment", "on", "trigger"],
    ];
    let Some(head) = heads.iter().find(|head| words(tokens, 0, head)) else {
        return Ok(None);
    };
    let is_constraint = head.contains(&"constraint");
    if is_constraint && head.contains(&"replace") {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported",
        ));
    }
    let mut w = Words {
        text,
        tokens,
        at: head.len(),
    };
    let drops = head.contains(&"drop");
    let if_exists = drops && w.take_all(&["if", "exists"]);
    let name = w.ident()?;
    let statement = if head.contains(&"create") {
        w.new_trigger(name, head.contains(&"replace"), is_constraint)?
    } else {
        w.expect("on")?;
        let table = w.object()?;
        let action = if drops {
            let _either = w.take("cascade") || w.take("restrict");
            TriggerAction::Drop { if_exists }
        } else if head.contains(&"comment") {
            w.expect("is")?;
            TriggerAction::Comment(match w.take("null") {
                true => None,
                false => Some(w.string()?),
            })
        } else if w.take_all(&["rename", "to"]) {
            TriggerAction::Rename(w.ident()?)
        } else if w.is("depends") || w.is("no") {
            return Err(SqlError::unsupported(
                "ALTER TRIGGER ... DEPENDS ON EXTENSION",
            ));
        } else {
            return Err(w.error());
        };
        TriggerStatement {
            name,
            table,
            action,
        }
    };
    w.end()?;
    Ok(Some(StatementKind::Trigger(Box::new(statement))))
}

impl Words<'_> {
    /// What follows the name in CREATE TRIGGER.
    fn new_trigger(
        &mut self,
        name: String,
        or_replace: bool,
        is_constraint: bool,
    ) -> Result<TriggerStatement> {
        let time = if is_constraint {
            self.expect("after")?;
            TriggerTime::After
        } else if self.take("before") {
            TriggerTime::Before
        } else if self.take("after") {
            TriggerTime::After
        } else if self.take_all(&["instead", "of"]) {
            TriggerTime::InsteadOf
        } else {
            return Err(self.error());
        };
        let (mut events, mut columns) = (Vec::new(), Vec::new());
        loop {
            let found = TriggerEvent::ALL
                .into_iter()
                .find(|event| self.is(&event.word().to_lowercase()));
            let event = found.ok_or_else(|| self.error())?;
            if events.contains(&event) {
                let near = event.word();
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("duplicate trigger events specified at or near \"{near}\""),
                ));
            }
            self.at += 1;
            events.push(event);
            if event == TriggerEvent::Update && self.take("of") {
                columns.push(self.ident()?);
                while self.take_token(&Token::Comma) {
                    columns.push(self.ident()?);
                }
            }
            if !self.take("or") {
                break;
            }
        }
        self.expect("on")?;
        let table = self.object()?;
        let constraint = match is_constraint {
            true => {
                let from = match self.take("from") {
                    true => Some(self.object()?),
                    false => None,
                };
                Some((self.timing()?, from))
            }
            false => None,
        };
        let mut transitions = Vec::new();
        if !is_constraint && self.take("referencing") {
            while self.is("old") || self.is("new") {
                let new = self.take("new");
                if !new {
                    self.expect("old")?;
                }
                let table = self.take("table");
                if !table {
                    // The word may be left out.
                    self.take("row");
                }
                self.take("as");
                let name = self.ident()?;
                transitions.push(Transition { new, table, name });
            }
            if transitions.is_empty() {
                return Err(self.error());
            }
        }
        let mut row = false;
        if is_constraint || self.is("for") {
            self.expect("for")?;
            self.take("each");
            row = self.take("row");
            if !row && (is_constraint || !self.take("statement")) {
                return Err(self.error());
            }
        }
        let when = match self.take("when") {
            true => Some(self.policy_clause()?),
            false => None,
        };
        self.expect("execute")?;
        if !self.take("function") {
            self.expect("procedure")?;
        }
        let function = self.object()?;
        let args = self.trigger_args()?;
        Ok(TriggerStatement {
            name,
            table,
            action: TriggerAction::Create(Box::new(NewTrigger {
                or_replace,
                time,
                events,
                columns,
                row,
                when,
                function,
                args,
                constraint,
                transitions,
            })),
        })
    }

    /// [NOT] DEFERRABLE and INITIALLY.
    fn timing(&mut self) -> Result<Timing> {
        let (mut deferrable, mut deferred) = (None, None);
        loop {
            let at = self.at;
            let conflict = |near: &str| {
                SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("conflicting constraint properties at or near \"{near}\""),
                )
            };
            if self.take_all(&["not", "deferrable"]) {
                if deferrable.replace(false) == Some(true) {
                    return Err(conflict("NOT"));
                }
            } else if self.take("deferrable") {
                if deferrable.replace(true) == Some(false) {
                    return Err(conflict("DEFERRABLE"));
                }
            } else if self.take_all(&["initially", "immediate"]) {
                if deferred.replace(false) == Some(true) {
                    return Err(conflict("INITIALLY"));
                }
            } else if self.take_all(&["initially", "deferred"])
                && deferred.replace(true) == Some(false)
            {
                return Err(conflict("INITIALLY"));
            }
            if self.at == at {
                break;
            }
        }
        match (deferrable, deferred.unwrap_or(false)) {
            (Some(false), true) => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
            )),
            (_, true) => Ok(Timing::Deferred),
            (Some(true), false) => Ok(Timing::Deferrable),
            (_, false) => Ok(Timing::Immediate),
        }
    }

    /// Literals and words, which all are texts.
    fn trigger_args(&mut self) -> Result<Vec<String>> {
        let mut args = Vec::new();
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        if self.take_token(&Token::RParen) {
            return Ok(args);
        }
        loop {
            let arg = match self.token() {
                Some(Token::Number(digits, _)) => {
                    let digits = digits.clone();
                    self.at += 1;
                    digits
                }
                Some(Token::Word(_)) => self.ident()?,
                _ => self.string()?,
            };
            args.push(arg);
            if self.take_token(&Token::RParen) {
                return Ok(args);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }
}
