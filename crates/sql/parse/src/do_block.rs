//! DO.

use crate::ast::{DefArg, DoStmt, Location};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// A block that is run once.
#[derive(Clone, Debug)]
pub struct DoBlock {
    /// Its language.
    pub language: String,
    /// Its body.
    pub body: String,
    /// The character at which the body begins in the text, from 1, if the text has it as it is.
    begins: Option<usize>,
}

impl DoBlock {
    /// The block of a statement of `text` (`ExecuteDoStmt`).
    pub fn of(stmt: &DoStmt, text: &str) -> Result<DoBlock> {
        let (mut language, mut body) = (None, None);
        for arg in &stmt.args {
            let Some(DefArg::String(value)) = &arg.arg else {
                return Err(SqlError::internal("an argument of DO that is no text"));
            };
            let is_again = match &*arg.name {
                "language" => language.replace(value.to_lowercase()).is_some(),
                _ => {
                    let begins = literal_begins(arg.location, value, text);
                    body.replace((value.to_string(), begins)).is_some()
                }
            };
            if is_again {
                let message = "conflicting or redundant options";
                return Err(
                    SqlError::new(SqlState::SYNTAX_ERROR, message).at(arg.location.character(text))
                );
            }
        }
        let Some((body, begins)) = body else {
            let message = "no inline code specified";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        Ok(DoBlock {
            language: language.unwrap_or_else(|| "plpgsql".to_owned()),
            body,
            begins,
        })
    }

    /// An error of the body as one of the text.
    pub fn place(&self, mut error: SqlError) -> SqlError {
        let fields = error.fields_mut();
        let Some(position) = fields.position.take() else {
            return error;
        };
        match self.begins {
            Some(begins) => fields.position = Some(begins + position - 1),
            None => fields.inner_query = Some((position, self.body.clone())),
        }
        error
    }
}

/// The character at which the value of a literal begins, from 1, if it stands in the text as it is.
fn literal_begins(location: Location, value: &str, text: &str) -> Option<usize> {
    let written = text.get(location.byte()?..)?;
    let lead = match written.strip_prefix('$') {
        Some(rest) => rest.find('$')? + 2,
        None if written.starts_with('\'') && !value.contains('\'') => 1,
        None => return None,
    };
    let as_it_is = written.get(lead..)?.starts_with(value);
    let lead = written.get(..lead)?.chars().count();
    as_it_is.then_some(location.character(text)? + lead)
}
