//! Names.

use crate::ast::Location;
use std::fmt;
/// A name, or a word of the grammar that stands where a name may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name without quotes.
    pub value: String,
    /// The quotes that it is written in. A name without is folded by who reads it.
    pub quote_style: Option<char>,
    /// Where it stands.
    pub location: Location,
}

impl Ident {
    /// A name without quotes that stands nowhere.
    pub fn new(value: impl Into<String>) -> Ident {
        Ident {
            value: value.into(),
            quote_style: None,
            location: Location::UNKNOWN,
        }
    }

    /// A name in quotes that stands nowhere.
    pub fn with_quote(quote: char, value: impl Into<String>) -> Ident {
        Ident {
            quote_style: Some(quote),
            ..Ident::new(value)
        }
    }
}

impl From<&str> for Ident {
    fn from(value: &str) -> Ident {
        Ident::new(value)
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quote_style {
            None => f.write_str(&self.value),
            Some(quote) => {
                let doubled = format!("{quote}{quote}");
                write!(f, "{quote}{}{quote}", self.value.replace(quote, &doubled))
            }
        }
    }
}

/// A name with what qualifies it in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName(pub Vec<Ident>);

impl From<Vec<Ident>> for ObjectName {
    fn from(parts: Vec<Ident>) -> ObjectName {
        ObjectName(parts)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            part.fmt(f)?;
        }
        Ok(())
    }
}
