//! CREATE, ALTER and DROP POLICY, and COMMENT ON POLICY.
//!
//! The grammar library reads most of them, but keeps no places of the expressions: their text is what is stored (`catalog::security`).

use super::StatementKind;
use super::position::byte_of;
use super::rewrite::words;
use super::roles::{RoleName, Words};
use logstead_sql_types::error::Result;
use sqlparser::ast::{self, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What a policy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    /// `pg_policy.polcmd`.
    pub fn code(self) -> char {
        match self {
            PolicyCommand::All => '*',
            PolicyCommand::Select => 'r',
            PolicyCommand::Insert => 'a',
            PolicyCommand::Update => 'w',
            PolicyCommand::Delete => 'd',
        }
    }

    /// The command of a code.
    pub fn of_code(code: u8) -> Option<PolicyCommand> {
        Some(match code {
            b'*' => PolicyCommand::All,
            b'r' => PolicyCommand::Select,
            b'a' => PolicyCommand::Insert,
            b'w' => PolicyCommand::Update,
            b'd' => PolicyCommand::Delete,
            _ => return None,
        })
    }

    /// As `pg_policies` shows it.
    pub fn word(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }
}

/// USING (...) or WITH CHECK (...).
#[derive(Clone, Debug)]
pub struct PolicyClause {
    /// The condition; its spans count in the whole text.
    pub expr: ast::Expr,
    /// First byte and end of what is in the parentheses.
    pub range: (usize, usize),
}

/// A statement about policies.
#[derive(Clone, Debug)]
pub struct PolicyStatement {
    /// The policy.
    pub name: String,
    /// Its table.
    pub table: ast::ObjectName,
    /// What becomes of it.
    pub action: PolicyAction,
}

/// What a statement does with a policy.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum PolicyAction {
    Create {
        permissive: bool,
        command: PolicyCommand,
        roles: Vec<RoleName>,
        using: Option<PolicyClause>,
        check: Option<PolicyClause>,
    },
    Alter {
        roles: Option<Vec<RoleName>>,
        using: Option<PolicyClause>,
        check: Option<PolicyClause>,
    },
    Rename(String),
    Drop {
        if_exists: bool,
    },
    /// COMMENT ON; none removes it.
    Comment(Option<String>),
}

impl PolicyStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self.action {
            PolicyAction::Create { .. } => "CREATE POLICY",
            PolicyAction::Alter { .. } | PolicyAction::Rename(_) => "ALTER POLICY",
            PolicyAction::Drop { .. } => "DROP POLICY",
            PolicyAction::Comment(_) => "COMMENT",
        }
    }
}

/// The statement, if it is one of these.
pub(super) fn policies(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let verbs: [(&[&str], Verb); 4] = [
        (&["create", "policy"], Verb::Create),
        (&["alter", "policy"], Verb::Alter),
        (&["drop", "policy"], Verb::Drop),
        (&["comment", "on", "policy"], Verb::Comment),
    ];
    let Some((head, verb)) = verbs.iter().find(|(head, _)| words(tokens, 0, head)) else {
        return Ok(None);
    };
    let mut words = Words {
        text,
        tokens,
        at: head.len(),
    };
    // IF EXISTS of ALTER POLICY is no syntax of PostgreSQL's.
    let if_exists = *verb == Verb::Drop && words.take_all(&["if", "exists"]);
    let name = words.ident()?;
    words.expect("on")?;
    let table = words.object()?;
    let action = match verb {
        Verb::Create => words.new_policy()?,
        Verb::Alter if words.take_all(&["rename", "to"]) => PolicyAction::Rename(words.ident()?),
        Verb::Alter => {
            let roles = match words.take("to") {
                true => Some(words.roles()?),
                false => None,
            };
            let (using, check) = words.policy_clauses()?;
            PolicyAction::Alter {
                roles,
                using,
                check,
            }
        }
        Verb::Drop => {
            let _either = words.take("cascade") || words.take("restrict");
            PolicyAction::Drop { if_exists }
        }
        Verb::Comment => {
            words.expect("is")?;
            PolicyAction::Comment(match words.take("null") {
                true => None,
                false => Some(words.string()?),
            })
        }
    };
    words.end()?;
    Ok(Some(StatementKind::Policy(Box::new(PolicyStatement {
        name,
        table,
        action,
    }))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Alter,
    Drop,
    Comment,
}

impl Words<'_> {
    /// What follows the table's name in CREATE POLICY.
    fn new_policy(&mut self) -> Result<PolicyAction> {
        let mut permissive = true;
        if self.take("as") {
            permissive = match (self.is("permissive"), self.is("restrictive")) {
                (true, _) => true,
                (_, true) => false,
                _ => return Err(self.unrecognized("row security option")),
            };
            self.at += 1;
        }
        let mut command = PolicyCommand::All;
        if self.take("for") {
            let all = [
                ("all", PolicyCommand::All),
                ("select", PolicyCommand::Select),
                ("insert", PolicyCommand::Insert),
                ("update", PolicyCommand::Update),
                ("delete", PolicyCommand::Delete),
            ];
            let found = all.iter().find(|(word, _)| self.is(word));
            command = found.ok_or_else(|| self.error())?.1;
            self.at += 1;
        }
        let roles = match self.take("to") {
            true => self.roles()?,
            false => vec![RoleName::Public],
        };
        let (using, check) = self.policy_clauses()?;
        Ok(PolicyAction::Create {
            permissive,
            command,
            roles,
            using,
            check,
        })
    }

    /// 42601 as PostgreSQL words it for a word in the place of AS's.
    fn unrecognized(&self, what: &str) -> logstead_sql_types::error::SqlError {
        match self.token() {
            Some(Token::Word(word)) => {
                let shown = word.value.to_lowercase();
                let message = format!("unrecognized {what} \"{shown}\"");
                let code = logstead_types::SqlState::SYNTAX_ERROR;
                logstead_sql_types::error::SqlError::new(code, message)
                    .hint("Only PERMISSIVE or RESTRICTIVE policies are supported currently.")
                    .at(super::span_position(self.text, self.tokens[self.at].span))
            }
            _ => self.error(),
        }
    }

    fn policy_clauses(&mut self) -> Result<(Option<PolicyClause>, Option<PolicyClause>)> {
        let using = match self.take("using") {
            true => Some(self.policy_clause()?),
            false => None,
        };
        let check = match self.take_all(&["with", "check"]) {
            true => Some(self.policy_clause()?),
            false => None,
        };
        Ok((using, check))
    }

    /// An expression in parentheses.
    pub(super) fn policy_clause(&mut self) -> Result<PolicyClause> {
        let open = self.at;
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut depth = 1_usize;
        while depth > 0 {
            match self.token() {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth -= 1,
                Some(_) => {}
                None => return Err(self.error()),
            }
            self.at += 1;
        }
        let inside = self
            .tokens
            .get(open + 1..self.at - 1)
            .unwrap_or_default()
            .to_vec();
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
            self.at = open + 1;
            return Err(self.error());
        };
        let range = (
            byte_of(self.text, first.span.start),
            byte_of(self.text, last.span.end),
        );
        // Read as the one column of a query, so that it goes through all that a query's expressions go through.
        let span = first.span;
        let mut query = vec![
            TokenWithSpan {
                token: Token::Word(Word {
                    value: "SELECT".to_owned(),
                    quote_style: None,
                    keyword: Keyword::SELECT,
                }),
                span,
            },
            self.tokens[open].clone(),
        ];
        query.extend(inside);
        query.push(self.tokens[self.at - 1].clone());
        let parsed = super::parse_one(self.text, query, super::Deep::No)?;
        match &**parsed.statement {
            Statement::Query(query) => match policy_expr(query) {
                Some(expr) => Ok(PolicyClause {
                    expr: expr.clone(),
                    range,
                }),
                None => Err(self.error()),
            },
            _ => Err(self.error()),
        }
    }
}

/// The one column of a query that stands for an expression.
pub fn policy_expr(query: &ast::Query) -> Option<&ast::Expr> {
    let select = query.body.as_select()?;
    match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(expr)] => Some(expr),
        _ => None,
    }
}
