//! What is written at a place, and names as identifiers.

use super::Lower;
use crate::ast::{Location, Name, Names};
use crate::lexer::{Lexer, Token, TokenKind as T};
use crate::lowered as library;
use crate::names::needs_quotes;
use logstead_sql_types::value::names::{NAME_LENGTH_MAX, truncate_name};

/// A name as long as names may be.
pub(super) fn cut(name: &Name) -> Name {
    match name.len() <= NAME_LENGTH_MAX {
        true => name.clone(),
        false => truncate_name(name).into(),
    }
}

pub(super) fn cut_all(names: &Names) -> Names {
    names.iter().map(cut).collect()
}

impl<'a> Lower<'a> {
    /// The token at a place.
    pub(super) fn token(&self, location: Location) -> Option<Token> {
        Lexer::token_at(self.text(), location.byte()?)
    }

    /// A token as it is written.
    pub(super) fn written(&self, token: Token) -> &'a str {
        self.text()
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// Does a name in quotes stand at a place?
    pub(super) fn is_quoted(&self, location: Location) -> bool {
        let token = self.token(location);
        token.is_some_and(|token| token.kind == T::QuotedIdent)
    }

    /// A name as an identifier: in quotes where it would be folded or read as a word of the grammar without.
    pub(crate) fn ident(&self, name: &str, location: Location) -> library::Ident {
        library::Ident {
            value: name.to_owned(),
            quote_style: needs_quotes(name).then_some('"'),
            location,
        }
    }

    /// A word of the grammar as an identifier, which is without quotes.
    pub(super) fn word(&self, word: &str, location: Location) -> library::Ident {
        library::Ident {
            value: word.to_owned(),
            quote_style: None,
            location,
        }
    }

    /// A name that nobody can write.
    pub(super) fn marked(&self, mark: &str, location: Location) -> library::Ident {
        library::Ident {
            value: mark.to_owned(),
            quote_style: Some('"'),
            location,
        }
    }

    /// The names of a qualified one that begins at `location`.
    pub(super) fn idents(&self, names: &[Name], location: Location) -> Vec<library::Ident> {
        names
            .iter()
            .map(|name| self.ident(name, location))
            .collect()
    }

    /// A qualified name.
    pub(crate) fn object_name(&self, names: &[Name], location: Location) -> library::ObjectName {
        library::ObjectName::from(self.idents(names, location))
    }
}
