//! CREATE, ALTER and DROP of types, which the grammar library lacks in the main.

use super::domains::{AlterDomain, CreateDomain};
use super::kind::StatementKind;
use super::roles::Words;
use crate::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about types.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TypeCommand {
    CreateEnum {
        name: ast::ObjectName,
        labels: Vec<String>,
    },
    AddValue {
        name: ast::ObjectName,
        if_not_exists: bool,
        label: String,
        /// The neighbour, and whether the new one comes before it.
        at: Option<(String, bool)>,
    },
    RenameValue {
        name: ast::ObjectName,
        from: String,
        to: String,
    },
    Rename {
        name: ast::ObjectName,
        new: String,
    },
    SetSchema {
        name: ast::ObjectName,
        schema: String,
    },
    CreateDomain(CreateDomain),
    AlterDomain {
        name: ast::ObjectName,
        alter: AlterDomain,
    },
    Drop {
        domain: bool,
        if_exists: bool,
        names: Vec<ast::ObjectName>,
        cascade: bool,
    },
}

impl TypeCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeCommand::CreateEnum { .. } => "CREATE TYPE",
            TypeCommand::Drop { domain: false, .. } => "DROP TYPE",
            TypeCommand::Drop { domain: true, .. } => "DROP DOMAIN",
            TypeCommand::CreateDomain(_) => "CREATE DOMAIN",
            TypeCommand::AlterDomain { .. } => "ALTER DOMAIN",
            _ => "ALTER TYPE",
        }
    }
}

impl Words<'_> {
    fn labels(&mut self) -> Result<Vec<String>> {
        let mut labels = Vec::new();
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        if self.take_token(&Token::RParen) {
            return Ok(labels);
        }
        loop {
            labels.push(self.string()?);
            if self.take_token(&Token::RParen) {
                return Ok(labels);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    fn create_type(&mut self) -> Result<StatementKind> {
        let name = self.object()?;
        if self.take_all(&["as", "enum"]) {
            let labels = self.labels()?;
            return Ok(of(TypeCommand::CreateEnum { name, labels }));
        }
        let what = if self.take_all(&["as", "range"]) {
            "CREATE TYPE ... AS RANGE"
        } else if self.take("as") {
            "CREATE TYPE of a composite type"
        } else {
            "CREATE TYPE of a base type"
        };
        self.at = self.tokens.len();
        Ok(StatementKind::Unsupported(what))
    }

    fn alter_type(&mut self) -> Result<StatementKind> {
        let name = self.object()?;
        Ok(of(if self.take_all(&["add", "value"]) {
            let if_not_exists = self.take_all(&["if", "not", "exists"]);
            let label = self.string()?;
            let at = if self.take("before") {
                Some((self.string()?, true))
            } else if self.take("after") {
                Some((self.string()?, false))
            } else {
                None
            };
            TypeCommand::AddValue {
                name,
                if_not_exists,
                label,
                at,
            }
        } else if self.take_all(&["rename", "value"]) {
            let from = self.string()?;
            self.expect("to")?;
            let to = self.string()?;
            TypeCommand::RenameValue { name, from, to }
        } else if self.take_all(&["rename", "to"]) {
            let new = self.ident()?;
            TypeCommand::Rename { name, new }
        } else if self.take_all(&["set", "schema"]) {
            let schema = self.ident()?;
            TypeCommand::SetSchema { name, schema }
        } else if ["add", "drop", "alter", "rename", "set"]
            .iter()
            .any(|word| self.is(word))
        {
            self.at = self.tokens.len();
            return Ok(StatementKind::Unsupported("this form of ALTER TYPE"));
        } else {
            return Err(self.error());
        }))
    }

    fn drop_types(&mut self, domain: bool) -> Result<StatementKind> {
        let if_exists = self.take_all(&["if", "exists"]);
        let mut names = vec![self.object()?];
        while self.take_token(&Token::Comma) {
            names.push(self.object()?);
        }
        let cascade = self.take("cascade");
        if !cascade {
            self.take("restrict");
        }
        Ok(of(TypeCommand::Drop {
            domain,
            if_exists,
            names,
            cascade,
        }))
    }
}

fn of(command: TypeCommand) -> StatementKind {
    StatementKind::Type(Box::new(command))
}

/// The statement, if it is about types.
pub(super) fn types(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    let kind = if words.take_all(&["create", "type"]) {
        words.create_type()?
    } else if words.take_all(&["alter", "type"]) {
        words.alter_type()?
    } else if words.take_all(&["drop", "type"]) {
        words.drop_types(false)?
    } else if words.take_all(&["drop", "domain"]) {
        words.drop_types(true)?
    } else if let Some(kind) = words.domains()? {
        kind
    } else {
        return Ok(None);
    };
    words.end()?;
    Ok(Some(kind))
}
