//! Where names and literals begin and end, and identifiers.
//!
//! The grammar's tree has the first byte of a node. Spans have both ends: errors tell the operator behind an
//! operand by the operand's end, and what the catalog keeps is cut out of the text. So the token at a place is looked
//! at once more.

use super::Lower;
use crate::ast::{Location, Name};
use crate::lexer::{Lexer, Token, TokenKind as T};
use crate::lowered as library;
use crate::lowered::Span;
use crate::names::needs_quotes;

/// Signs and parentheses that may stand in front of a number that has taken a sign.
const BEFORE_NUMBER_MAX: usize = 64;

impl<'a> Lower<'a> {
    /// The token at a place.
    pub(super) fn token(&self, location: Location) -> Option<Token> {
        Lexer::token_at(self.text(), location.byte()?)
    }

    /// The token behind another one.
    pub(super) fn token_behind(&self, token: Token) -> Option<Token> {
        Lexer::token_at(self.text(), token.end as usize)
    }

    /// A token as it is written.
    pub(super) fn written(&self, token: Token) -> &'a str {
        self.text()
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// Does this word stand at a place, without quotes?
    pub(super) fn is_written(&self, location: Location, word: &str) -> bool {
        let token = self.token(location);
        token.is_some_and(|token| self.written(token).eq_ignore_ascii_case(word))
    }

    /// Does a name in quotes stand at a place?
    pub(super) fn is_quoted(&self, location: Location) -> bool {
        let token = self.token(location);
        token.is_some_and(|token| token.kind == T::QuotedIdent)
    }

    /// A token's span.
    pub(super) fn token_span(&self, token: Token) -> Span {
        Span::new(
            self.place(token.start as usize),
            self.place(token.end as usize),
        )
    }

    /// The span of the token at a place; the empty span if the place is not known.
    pub(crate) fn span(&self, location: Location) -> Span {
        match self.token(location) {
            Some(token) => self.token_span(token),
            None => Span::empty(),
        }
    }

    /// The number at a place, which signs may stand in front of.
    pub(super) fn number_at(&self, location: Location) -> Option<Token> {
        let mut token = self.token(location)?;
        for _ in 0..BEFORE_NUMBER_MAX {
            match token.kind {
                T::IConst | T::FConst => return Some(token),
                T::Minus | T::Plus | T::LParen => token = self.token_behind(token)?,
                _ => return None,
            }
        }
        None
    }

    /// A name as an identifier: in quotes where it would be folded or read as a word of the grammar without.
    pub(crate) fn ident(&self, name: &str, location: Location) -> library::Ident {
        self.spanned_ident(name, self.span(location))
    }

    /// A name as an identifier, without a place.
    pub(super) fn unplaced_ident(&self, name: &str) -> library::Ident {
        self.spanned_ident(name, Span::empty())
    }

    fn spanned_ident(&self, name: &str, span: Span) -> library::Ident {
        library::Ident {
            value: name.to_owned(),
            quote_style: needs_quotes(name).then_some('"'),
            span,
        }
    }

    /// A word of the grammar as an identifier, which is without quotes.
    pub(super) fn word(&self, word: &str, location: Location) -> library::Ident {
        library::Ident {
            value: word.to_owned(),
            quote_style: None,
            span: self.span(location),
        }
    }

    /// A name that nobody can write.
    pub(super) fn marked(&self, mark: &str, span: Span) -> library::Ident {
        library::Ident {
            value: mark.to_owned(),
            quote_style: Some('"'),
            span,
        }
    }

    /// The names of a qualified one that begins at `location`.
    pub(super) fn idents(&self, names: &[Name], location: Location) -> Vec<library::Ident> {
        let mut token = self.token(location);
        let mut idents = Vec::with_capacity(names.len());
        for name in names {
            let span = token.map_or_else(Span::empty, |token| self.token_span(token));
            idents.push(self.spanned_ident(name, span));
            let behind = token.and_then(|token| self.token_behind(token));
            // Names that the grammar qualifies by itself stand where the one name is.
            if let Some(dot) = behind.filter(|token| token.kind == T::Dot) {
                token = self.token_behind(dot);
            }
        }
        idents
    }

    /// A qualified name.
    pub(crate) fn object_name(&self, names: &[Name], location: Location) -> library::ObjectName {
        library::ObjectName::from(self.idents(names, location))
    }

    /// The bracket that ends what one begins.
    pub(super) fn end_of_brackets(&self, open: Token) -> Option<Token> {
        let mut depth = 0_usize;
        let mut token = open;
        loop {
            match token.kind {
                T::LBracket => depth += 1,
                T::RBracket => depth = depth.checked_sub(1)?,
                T::End | T::Error => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(token);
            }
            token = self.token_behind(token)?;
        }
    }

    /// The spans of names in the parentheses behind a token.
    pub(super) fn spans_in_parentheses(&self, behind: Option<Token>, count: usize) -> Vec<Span> {
        let mut spans = vec![Span::empty(); count];
        let mut at = behind.and_then(|token| self.token_behind(token));
        for span in &mut spans {
            // In front of it is the parenthesis or a comma.
            let name = at
                .filter(|token| matches!(token.kind, T::LParen | T::Comma))
                .and_then(|token| self.token_behind(token));
            let Some(name) = name else { break };
            *span = self.token_span(name);
            at = self.token_behind(name);
        }
        spans
    }
}
