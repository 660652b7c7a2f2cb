//! DO.

use logstead_sql_types::error::SqlError;

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
    /// A block whose body begins at this character of the text, from 1, if it stands there as it is.
    pub(crate) fn new(language: String, body: String, begins: Option<usize>) -> DoBlock {
        DoBlock {
            language,
            body,
            begins,
        }
    }

    /// An error of the body as one of the text.
    pub fn place(&self, mut error: SqlError, text: &str) -> SqlError {
        let fields = error.fields_mut();
        let Some(position) = fields.position.take() else {
            return error;
        };
        match self.begins {
            Some(begins) => fields.position = Some(begins + position - 1),
            None => {
                let _ = text;
                fields.inner_query = Some((position, self.body.clone()));
            }
        }
        error
    }
}
