//! CREATE, ALTER and DROP of types, which the grammar library lacks in the main.

use super::domains::{AlterDomain, CreateDomain};
use super::kind::StatementKind;
use super::rewrite::is_word;
use super::roles::Words;
use logstead_sql_types::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// An attribute of a composite type.
#[derive(Clone, Debug)]
pub struct AttributeClause {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: ast::DataType,
    /// COLLATE.
    pub collation: Option<ast::ObjectName>,
}

/// What ALTER TYPE does with an attribute.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterAttribute {
    Add(AttributeClause),
    Drop { if_exists: bool, name: String },
    Type(AttributeClause),
}

/// What CREATE TYPE ... AS RANGE says of a range.
#[derive(Clone, Debug)]
pub struct RangeClause {
    /// Which of its attributes.
    pub attribute: String,
    /// The type, or a name that has the form of one.
    pub value: ast::DataType,
    /// The same as a name.
    pub name: Option<ast::ObjectName>,
}

/// A statement about types.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TypeCommand {
    CreateEnum {
        name: ast::ObjectName,
        labels: Vec<String>,
    },
    CreateComposite {
        name: ast::ObjectName,
        attributes: Vec<AttributeClause>,
    },
    CreateRange {
        name: ast::ObjectName,
        clauses: Vec<RangeClause>,
    },
    AlterAttributes {
        name: ast::ObjectName,
        changes: Vec<AlterAttribute>,
    },
    RenameAttribute {
        name: ast::ObjectName,
        from: String,
        to: String,
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
            TypeCommand::CreateEnum { .. }
            | TypeCommand::CreateComposite { .. }
            | TypeCommand::CreateRange { .. } => "CREATE TYPE",
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

    /// `name type [COLLATE collation]`
    fn attribute(&mut self) -> Result<AttributeClause> {
        let name = self.ident()?;
        let data_type = self.data_type()?;
        let collation = match self.take("collate") {
            true => Some(self.object()?),
            false => None,
        };
        Ok(AttributeClause {
            name,
            data_type,
            collation,
        })
    }

    fn attributes(&mut self) -> Result<Vec<AttributeClause>> {
        let mut attributes = Vec::new();
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        if self.take_token(&Token::RParen) {
            return Ok(attributes);
        }
        loop {
            attributes.push(self.attribute()?);
            if self.take_token(&Token::RParen) {
                return Ok(attributes);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    /// `(attribute = value, ...)`
    fn range_clauses(&mut self) -> Result<Vec<RangeClause>> {
        if !self.take_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut clauses = Vec::new();
        loop {
            let attribute = self.ident()?;
            if !self.take_token(&Token::Eq) {
                return Err(self.error());
            }
            let start = self.at;
            let name = self.object().ok();
            self.at = start;
            let value = self.data_type()?;
            clauses.push(RangeClause {
                attribute,
                value,
                name,
            });
            if self.take_token(&Token::RParen) {
                return Ok(clauses);
            }
            if !self.take_token(&Token::Comma) {
                return Err(self.error());
            }
        }
    }

    /// CASCADE or RESTRICT, which speak of typed tables: there are none.
    fn cascade_or_restrict(&mut self) {
        if !self.take("cascade") {
            self.take("restrict");
        }
    }

    /// The actions of ALTER TYPE on attributes.
    fn alter_attributes(&mut self) -> Result<Vec<AlterAttribute>> {
        let mut changes = Vec::new();
        loop {
            let change = if self.take_all(&["add", "attribute"]) {
                AlterAttribute::Add(self.attribute()?)
            } else if self.take_all(&["drop", "attribute"]) {
                let if_exists = self.take_all(&["if", "exists"]);
                let name = self.ident()?;
                AlterAttribute::Drop { if_exists, name }
            } else if self.take_all(&["alter", "attribute"]) {
                let name = self.ident()?;
                self.take_all(&["set", "data"]);
                self.expect("type")?;
                let data_type = self.data_type()?;
                let collation = match self.take("collate") {
                    true => Some(self.object()?),
                    false => None,
                };
                AlterAttribute::Type(AttributeClause {
                    name,
                    data_type,
                    collation,
                })
            } else {
                return Err(self.error());
            };
            self.cascade_or_restrict();
            changes.push(change);
            if !self.take_token(&Token::Comma) {
                return Ok(changes);
            }
        }
    }

    fn create_type(&mut self) -> Result<StatementKind> {
        let name = self.object()?;
        if self.take_all(&["as", "enum"]) {
            let labels = self.labels()?;
            return Ok(of(TypeCommand::CreateEnum { name, labels }));
        }
        if self.take_all(&["as", "range"]) {
            let clauses = self.range_clauses()?;
            return Ok(of(TypeCommand::CreateRange { name, clauses }));
        }
        let what = if self.take("as") {
            let attributes = self.attributes()?;
            return Ok(of(TypeCommand::CreateComposite { name, attributes }));
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
        } else if self.take_all(&["rename", "attribute"]) {
            let from = self.ident()?;
            self.expect("to")?;
            let to = self.ident()?;
            self.cascade_or_restrict();
            TypeCommand::RenameAttribute { name, from, to }
        } else if ["add", "drop", "alter"]
            .iter()
            .any(|word| self.is(word) && is_word(self.tokens.get(self.at + 1), "attribute"))
        {
            let changes = self.alter_attributes()?;
            TypeCommand::AlterAttributes { name, changes }
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
