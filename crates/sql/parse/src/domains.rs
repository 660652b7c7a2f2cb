//! CREATE and ALTER DOMAIN, which the grammar library lacks in the main.

use super::kind::StatementKind;
use super::rewrite::is_word;
use super::roles::Words;
use super::types::TypeCommand;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A CHECK of a domain.
#[derive(Clone, Debug)]
pub struct DomainCheckClause {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// The condition.
    pub condition: ast::Expr,
    /// NOT VALID.
    pub not_valid: bool,
}

/// CREATE DOMAIN.
#[derive(Clone, Debug)]
pub struct CreateDomain {
    /// Its name.
    pub name: ast::ObjectName,
    /// What it is made over.
    pub data_type: ast::DataType,
    /// COLLATE.
    pub collation: Option<ast::ObjectName>,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
    /// NOT NULL.
    pub not_null: bool,
    /// CHECKs.
    pub checks: Vec<DomainCheckClause>,
}

/// What ALTER DOMAIN does.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterDomain {
    Default(Option<ast::Expr>),
    NotNull(bool),
    Add(DomainCheckClause),
    Drop { if_exists: bool, name: String },
    RenameConstraint { from: String, to: String },
    Validate(String),
    Rename(String),
    SetSchema(String),
}

fn not_for_domains(what: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("{what} constraints not possible for domains"),
    )
}

impl Words<'_> {
    /// Reads with the library's grammar from here.
    pub(super) fn by_grammar<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
    ) -> Result<T> {
        let rest = self.tokens.get(self.at..).unwrap_or_default().to_vec();
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(rest);
        let found = read(&mut parser);
        self.at += parser.index();
        found.map_err(|_| self.error())
    }

    /// A type's name.
    pub(super) fn data_type(&mut self) -> Result<ast::DataType> {
        self.by_grammar(|parser| parser.parse_data_type())
    }

    fn parenthesised(&mut self) -> Result<ast::Expr> {
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        let expr = self.by_grammar(|parser| parser.parse_expr())?;
        match self.take_token(&Token::RParen) {
            true => Ok(expr),
            false => Err(self.error()),
        }
    }

    /// The expression of a DEFAULT among other clauses: it ends where the next one begins.
    fn default_expr(&mut self) -> Result<ast::Expr> {
        // The first token is the expression's whatever it is.
        let mut depth = usize::from(self.token() == Some(&Token::LParen));
        let mut end = self.at + 1;
        while let Some(token) = self.tokens.get(end) {
            let clause = [
                "not",
                "null",
                "check",
                "constraint",
                "default",
                "collate",
                "unique",
                "primary",
                "references",
            ];
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0 && clause.iter().any(|word| is_word(Some(token), word)) => break,
                _ => {}
            }
            end += 1;
        }
        let Some(tokens) = self.tokens.get(..end) else {
            return Err(self.error());
        };
        let mut words = Words {
            text: self.text,
            tokens,
            at: self.at,
        };
        let expr = words.by_grammar(|parser| parser.parse_expr());
        self.at = words.at.min(end);
        match expr {
            Ok(expr) if self.at == end => Ok(expr),
            _ => Err(self.error()),
        }
    }

    /// What a constraint of a table is, and none of a domain.
    fn refuse_constraint(&mut self) -> Result<()> {
        if self.take("unique") {
            return Err(not_for_domains("unique"));
        }
        if self.take_all(&["primary", "key"]) {
            return Err(not_for_domains("primary key"));
        }
        if self.take("references") || self.take_all(&["foreign", "key"]) {
            return Err(not_for_domains("foreign key"));
        }
        if self.take("exclude") {
            return Err(not_for_domains("exclusion"));
        }
        if self.is("deferrable") || self.is("initially") {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "specifying constraint deferrability not supported for domains",
            ));
        }
        Ok(())
    }

    fn check(&mut self, name: Option<String>) -> Result<DomainCheckClause> {
        let condition = self.parenthesised()?;
        if self.take_all(&["no", "inherit"]) {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                "check constraints for domains cannot be marked NO INHERIT",
            ));
        }
        Ok(DomainCheckClause {
            name,
            condition,
            not_valid: false,
        })
    }

    fn create_domain(&mut self) -> Result<StatementKind> {
        let name = self.object()?;
        self.take("as");
        let data_type = self.data_type()?;
        let mut create = CreateDomain {
            name,
            data_type,
            collation: None,
            default: None,
            not_null: false,
            checks: Vec::new(),
        };
        let mut null: Option<bool> = None;
        let conflict = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
        while !self.done() {
            if self.take("collate") {
                let collation = self.object()?;
                if create.collation.replace(collation).is_some() {
                    return Err(conflict("multiple COLLATE clauses not allowed"));
                }
                continue;
            }
            let constraint = match self.take("constraint") {
                true => Some(self.ident()?),
                false => None,
            };
            self.refuse_constraint()?;
            if self.take("check") {
                let check = self.check(constraint)?;
                create.checks.push(check);
            } else if self.take("default") {
                let default = self.default_expr()?;
                if create.default.replace(default).is_some() {
                    return Err(conflict("multiple default expressions"));
                }
            } else if self.is("not") || self.is("null") {
                let not = self.take("not");
                self.expect("null")?;
                if null.is_some_and(|before| before != not) {
                    return Err(conflict("conflicting NULL/NOT NULL constraints"));
                }
                null = Some(not);
                create.not_null = not;
            } else {
                return Err(self.error());
            }
        }
        Ok(of(TypeCommand::CreateDomain(create)))
    }

    fn alter_domain(&mut self) -> Result<StatementKind> {
        let name = self.object()?;
        let alter = if self.take_all(&["set", "default"]) {
            AlterDomain::Default(Some(self.by_grammar(|parser| parser.parse_expr())?))
        } else if self.take_all(&["drop", "default"]) {
            AlterDomain::Default(None)
        } else if self.take_all(&["set", "not", "null"]) {
            AlterDomain::NotNull(true)
        } else if self.take_all(&["drop", "not", "null"]) {
            AlterDomain::NotNull(false)
        } else if self.take_all(&["drop", "constraint"]) {
            let if_exists = self.take_all(&["if", "exists"]);
            let name = self.ident()?;
            // Nothing depends on a CHECK.
            if !self.take("cascade") {
                self.take("restrict");
            }
            AlterDomain::Drop { if_exists, name }
        } else if self.take("add") {
            let constraint = match self.take("constraint") {
                true => Some(self.ident()?),
                false => None,
            };
            self.refuse_constraint()?;
            self.expect("check")?;
            let mut check = self.check(constraint)?;
            check.not_valid = self.take_all(&["not", "valid"]);
            self.refuse_constraint()?;
            AlterDomain::Add(check)
        } else if self.take_all(&["rename", "constraint"]) {
            let from = self.ident()?;
            self.expect("to")?;
            let to = self.ident()?;
            AlterDomain::RenameConstraint { from, to }
        } else if self.take_all(&["validate", "constraint"]) {
            AlterDomain::Validate(self.ident()?)
        } else if self.take_all(&["rename", "to"]) {
            AlterDomain::Rename(self.ident()?)
        } else if self.take_all(&["set", "schema"]) {
            AlterDomain::SetSchema(self.ident()?)
        } else {
            return Err(self.error());
        };
        Ok(of(TypeCommand::AlterDomain { name, alter }))
    }

    /// The statement, if it makes or alters a domain.
    pub(super) fn domains(&mut self) -> Result<Option<StatementKind>> {
        if self.take_all(&["create", "domain"]) {
            return self.create_domain().map(Some);
        }
        if self.take_all(&["alter", "domain"]) {
            return self.alter_domain().map(Some);
        }
        Ok(None)
    }
}

fn of(command: TypeCommand) -> StatementKind {
    StatementKind::Type(Box::new(command))
}
