//! CREATE, ALTER and DROP DATABASE, and ALTER ROLE ... IN DATABASE.

use super::kind::StatementKind;
use super::roles::{RoleName, SettingChange, Words};
use logstead_sql_types::error::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// DEFAULT.
    Default,
    /// A whole number.
    Number(i32),
    /// A word or string.
    Word(String),
}

/// An option of CREATE or ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOption {
    /// In lower case, words joined by `_`.
    pub name: String,
    /// Its value.
    pub value: OptionValue,
    /// Where it stands in the text.
    pub position: Option<usize>,
}

/// A statement about databases.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DatabaseCommand {
    Create {
        name: String,
        options: Vec<DatabaseOption>,
    },
    Alter {
        name: String,
        options: Vec<DatabaseOption>,
    },
    Rename {
        name: String,
        new: String,
    },
    /// SET TABLESPACE.
    Move {
        name: String,
        tablespace: String,
    },
    /// SET and RESET, of one role or of all.
    Setting {
        name: String,
        role: Option<RoleName>,
        change: SettingChange,
        /// It was said with ALTER ROLE.
        of_role: bool,
    },
    RefreshCollation {
        name: String,
    },
    Drop {
        if_exists: bool,
        name: String,
        force: bool,
    },
}

impl DatabaseCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            DatabaseCommand::Create { .. } => "CREATE DATABASE",
            DatabaseCommand::Drop { .. } => "DROP DATABASE",
            DatabaseCommand::Setting { of_role: true, .. } => "ALTER ROLE",
            _ => "ALTER DATABASE",
        }
    }

    /// Does it run outside transaction blocks only?
    pub fn stands_alone(&self) -> bool {
        matches!(
            self,
            DatabaseCommand::Create { .. }
                | DatabaseCommand::Drop { .. }
                | DatabaseCommand::Move { .. }
        )
    }
}

impl Words<'_> {
    /// Options until the end of the statement.
    fn database_options(&mut self) -> Result<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        self.take("with");
        while !self.done() {
            let position = super::span_position(self.text, self.here());
            let name = match self.take_all(&["connection", "limit"]) {
                true => "connection_limit".to_owned(),
                false => self.ident()?,
            };
            self.take_token(&Token::Eq);
            let value = if self.take("default") {
                OptionValue::Default
            } else {
                self.option_value()?
            };
            options.push(DatabaseOption {
                name,
                value,
                position,
            });
        }
        Ok(options)
    }

    fn option_value(&mut self) -> Result<OptionValue> {
        Ok(match self.token() {
            Some(Token::Number(..) | Token::Minus | Token::Plus) => {
                self.take_token(&Token::Plus);
                OptionValue::Number(self.number()?)
            }
            Some(Token::Word(_)) => OptionValue::Word(self.ident()?),
            _ => OptionValue::Word(self.string()?),
        })
    }

    fn alter_database(&mut self) -> Result<DatabaseCommand> {
        let name = self.ident()?;
        if self.take_all(&["rename", "to"]) {
            let new = self.ident()?;
            return Ok(DatabaseCommand::Rename { name, new });
        }
        if self.take_all(&["refresh", "collation", "version"]) {
            return Ok(DatabaseCommand::RefreshCollation { name });
        }
        if self.take_all(&["set", "tablespace"]) {
            let tablespace = self.ident()?;
            return Ok(DatabaseCommand::Move { name, tablespace });
        }
        if self.is("set") || self.is("reset") {
            let change = self.setting_change()?;
            return Ok(DatabaseCommand::Setting {
                name,
                role: None,
                change,
                of_role: false,
            });
        }
        let options = self.database_options()?;
        Ok(DatabaseCommand::Alter { name, options })
    }

    fn drop_database(&mut self) -> Result<DatabaseCommand> {
        let if_exists = self.take_all(&["if", "exists"]);
        let name = self.ident()?;
        let mut force = false;
        let with = self.take("with");
        if self.take_token(&Token::LParen) {
            loop {
                self.expect("force")?;
                force = true;
                if !self.take_token(&Token::Comma) {
                    break;
                }
            }
            if !self.take_token(&Token::RParen) {
                return Err(self.error());
            }
        } else if with {
            return Err(self.error());
        }
        Ok(DatabaseCommand::Drop {
            if_exists,
            name,
            force,
        })
    }
}

/// What stands behind ALTER ROLE, if it goes on with IN DATABASE.
pub(super) fn of_role(words: &mut Words<'_>) -> Result<Option<DatabaseCommand>> {
    if !super::rewrite::words(words.tokens, words.at + 1, &["in", "database"]) {
        return Ok(None);
    }
    let role = match words.take("all") {
        true => None,
        false => Some(words.role()?),
    };
    words.at += 2;
    let name = words.ident()?;
    let change = words.setting_change()?;
    words.end()?;
    Ok(Some(DatabaseCommand::Setting {
        name,
        role,
        change,
        of_role: true,
    }))
}

/// The statement, if it is about databases.
pub(super) fn databases(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    let command = if words.take_all(&["create", "database"]) {
        let name = words.ident()?;
        let options = words.database_options()?;
        DatabaseCommand::Create { name, options }
    } else if words.take_all(&["alter", "database"]) {
        words.alter_database()?
    } else if words.take_all(&["drop", "database"]) {
        words.drop_database()?
    } else {
        return Ok(None);
    };
    words.end()?;
    Ok(Some(StatementKind::Database(Box::new(command))))
}
