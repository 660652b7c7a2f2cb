//! XML's constructs, which are no calls in PostgreSQL's grammar: XMLELEMENT(NAME ...), XMLPARSE(DOCUMENT ...), `x IS
//! DOCUMENT` and their like.
//!
//! Each travels as a call of a function of a name that nobody can write, whose arguments are what the binder needs in
//! order; `IS DOCUMENT`
//! as IS DISTINCT FROM such a name. Inner constructs are rewritten first: the walk goes from the last token to the
//! first.

use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::Range;

/// What the names of the constructs begin with; the construct's own in lower case follows.
const XML_MARK: &str = "\0";

/// Constructs that look like calls.
const CONSTRUCTS: [&str; 10] = [
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// Parts of XMLTABLE that travel as calls within it.
const PARTS: [&str; 2] = ["xmlcolumn", "xmlnamespaces"];

/// The construct that a function's name means, if any does.
pub fn xml_construct(name: &str) -> Option<&str> {
    let name = name.strip_prefix(XML_MARK)?;
    (name == "xmldocument" || CONSTRUCTS.contains(&name) || PARTS.contains(&name)).then_some(name)
}

pub(super) fn marked(construct: &str) -> Token {
    Token::Word(Word {
        value: format!("{XML_MARK}{construct}"),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    })
}

/// The word as an identifier: folded unless it was quoted.
pub(super) fn folded(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    }
}

pub(super) fn is(tokens: &[TokenWithSpan], at: usize, wanted: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *wanted)
}

/// Where the parenthesis ends that begins at `open`.
pub(super) fn close_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first token of a range, outside of parentheses, that is the word.
pub(super) fn find_word(
    tokens: &[TokenWithSpan],
    range: Range<usize>,
    word: &str,
) -> Option<usize> {
    let mut depth = 0_usize;
    range.into_iter().find(|at| {
        match tokens[*at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_word(tokens.get(*at), word)
    })
}

/// The items of a list, which commas part.
pub(super) fn items(tokens: &[TokenWithSpan], range: Range<usize>) -> Vec<Range<usize>> {
    let mut depth = 0_usize;
    let mut begin = range.start;
    let mut found = Vec::new();
    for at in range.clone() {
        match tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                found.push(begin..at);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(begin..range.end);
    found
}

/// Might there be any of it?
fn names_xml(token: &TokenWithSpan) -> bool {
    let Token::Word(word) = &token.token else {
        return false;
    };
    let head = word.value.get(..3).unwrap_or_default();
    word.quote_style.is_none()
        && (head.eq_ignore_ascii_case("xml") || word.value.eq_ignore_ascii_case("document"))
}

/// Rewrites all constructs of a statement or expression.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if !tokens.iter().any(names_xml) {
        return Ok(());
    }
    set_option(tokens);
    for at in (0..tokens.len()).rev() {
        if !names_xml(&tokens[at]) {
            continue;
        }
        if is_word(tokens.get(at), "document") {
            document_test(tokens, at);
            continue;
        }
        let qualified = at > 0 && tokens[at - 1].token == Token::Period;
        let construct = CONSTRUCTS.iter().find(|name| is_word(tokens.get(at), name));
        if let Some(construct) = construct
            && !qualified
            && is(tokens, at + 1, &Token::LParen)
            && let Some(close) = close_of(tokens, at + 1)
        {
            let mut call = Call {
                text,
                tokens,
                construct,
                open: at + 1,
                close,
            };
            call.rewrite()?;
            tokens[at].token = marked(construct);
        }
    }
    Ok(())
}

/// SET XML OPTION DOCUMENT is SET xmloption TO document.
fn set_option(tokens: &mut [TokenWithSpan]) {
    let at = match tokens.get(1) {
        scope if is_word(scope, "local") || is_word(scope, "session") => 2,
        _ => 1,
    };
    if is_word(tokens.first(), "set") && words(tokens, at, &["xml", "option"]) {
        tokens[at].token = Token::make_word("xmloption", None);
        tokens[at + 1].token = Token::make_word("to", None);
    }
}

/// `x IS [NOT] DOCUMENT`, whose last word is at `at`.
fn document_test(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_not = at >= 2 && words(tokens, at - 2, &["is", "not"]);
    if at == 0 || !(is_not || is_word(tokens.get(at - 1), "is")) {
        return;
    }
    let span = tokens[at].span;
    let word = |word| TokenWithSpan {
        token: Token::make_word(word, None),
        span,
    };
    // A literal, which no name is looked up for.
    tokens[at].token = Token::SingleQuotedString(format!("{XML_MARK}xmldocument"));
    tokens.splice(at..at, [word("DISTINCT"), word("FROM")]);
}

/// A construct that is being rewritten.
pub(super) struct Call<'t> {
    text: &'t str,
    pub(super) tokens: &'t mut Vec<TokenWithSpan>,
    construct: &'static str,
    pub(super) open: usize,
    pub(super) close: usize,
}

impl Call<'_> {
    pub(super) fn syntax_error<T>(&self, at: usize) -> Result<T> {
        Err(match self.tokens.get(at) {
            Some(token) => error_at_token(self.text, token),
            None => error_at_token(self.text, &TokenWithSpan::new_eof()),
        })
    }

    pub(super) fn is_word(&self, at: usize, word: &str) -> bool {
        at < self.close && is_word(self.tokens.get(at), word)
    }

    /// A token that stands where another one does.
    pub(super) fn made(&self, token: Token, at: usize) -> TokenWithSpan {
        let span = self.tokens[at.min(self.tokens.len() - 1)].span;
        TokenWithSpan { token, span }
    }

    pub(super) fn literal(&self, value: &str, at: usize) -> TokenWithSpan {
        self.made(Token::SingleQuotedString(value.to_owned()), at)
    }

    /// Puts other tokens in the place of some.
    pub(super) fn replace(&mut self, range: Range<usize>, by: Vec<TokenWithSpan>) {
        self.close = self.close - range.len() + by.len();
        self.tokens.splice(range, by);
    }

    /// `name.*` is the whole row, as `name` alone is.
    fn whole_rows(&mut self) {
        for at in (self.open + 1..self.close.saturating_sub(2)).rev() {
            let ends = matches!(
                self.tokens[at + 3].token,
                Token::Comma | Token::RParen | Token::Word(_)
            );
            if matches!(self.tokens[at].token, Token::Word(_))
                && is(self.tokens, at + 1, &Token::Period)
                && is(self.tokens, at + 2, &Token::Mul)
                && ends
            {
                self.replace(at + 1..at + 3, Vec::new());
            }
        }
    }

    fn rewrite(&mut self) -> Result<()> {
        let first = self.open + 1;
        self.whole_rows();
        match self.construct {
            "xmlelement" | "xmlpi" => {
                let label = first + 1;
                if !self.is_word(first, "name") {
                    return self.syntax_error(first);
                }
                let Some(name) = self.tokens.get(label).and_then(folded) else {
                    return self.syntax_error(label);
                };
                if label + 1 < self.close && !is(self.tokens, label + 1, &Token::Comma) {
                    return self.syntax_error(label + 1);
                }
                let name = self.literal(&name, label);
                self.replace(first..label + 1, vec![name]);
            }
            "xmlattributes" | "xmlforest" => self.named_values()?,
            "xmlparse" | "xmlserialize" => {
                let kind = ["document", "content"].into_iter();
                let Some(kind) = kind.into_iter().find(|kind| self.is_word(first, kind)) else {
                    return self.syntax_error(first);
                };
                let kind = self.literal(&kind.to_ascii_uppercase(), first);
                let comma = self.made(Token::Comma, first);
                self.replace(first..first + 1, vec![kind, comma]);
                match self.construct {
                    "xmlparse" => self.white_space(),
                    _ => self.target_type()?,
                }
            }
            "xmlroot" => self.root()?,
            "xmlexists" => self.passing()?,
            "xmltable" => super::xml_table::rewrite(self)?,
            _ => {}
        }
        Ok(())
    }

    /// `value AS name`, or a column, which names itself: the name as a literal, and the value.
    fn named_values(&mut self) -> Result<()> {
        for item in items(self.tokens, self.open + 1..self.close)
            .into_iter()
            .rev()
        {
            let comma = self.made(Token::Comma, item.start);
            if let Some(at) = find_word(self.tokens, item.clone(), "as") {
                let name = self.tokens.get(at + 1).and_then(folded);
                let (Some(name), true) = (name, at + 2 == item.end) else {
                    return self.syntax_error(at + 1);
                };
                let name = self.literal(&name, at + 1);
                self.replace(at..item.end, Vec::new());
                self.replace(item.start..item.start, vec![name, comma]);
                continue;
            }
            match self.column_name(item.clone()) {
                Some(name) => {
                    let name = self.literal(&name, item.start);
                    self.replace(item.start..item.start, vec![name, comma]);
                }
                None => {
                    let what = match self.construct {
                        "xmlforest" => "element",
                        _ => "attribute",
                    };
                    let position = self.tokens.get(item.start);
                    let position = position.and_then(|t| super::span_position(self.text, t.span));
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unnamed XML {what} value must be a column reference"),
                    )
                    .at(position));
                }
            }
        }
        Ok(())
    }

    /// The name of the column that these tokens are.
    fn column_name(&self, item: Range<usize>) -> Option<String> {
        let tokens = self.tokens.get(item)?;
        let is_name = tokens.iter().enumerate().all(|(at, token)| match at % 2 {
            0 => matches!(token.token, Token::Word(_)),
            _ => token.token == Token::Period,
        });
        let constant = ["null", "true", "false"];
        let alone = tokens.len() == 1;
        if !is_name
            || tokens.len() % 2 == 0
            || alone && constant.iter().any(|word| is_word(tokens.first(), word))
        {
            return None;
        }
        folded(tokens.last()?)
    }

    /// XMLPARSE's [PRESERVE | STRIP] WHITESPACE.
    fn white_space(&mut self) {
        let Some(at) = self.close.checked_sub(2) else {
            return;
        };
        for word in ["preserve", "strip"] {
            if self.is_word(at, word) && self.is_word(at + 1, "whitespace") {
                let comma = self.made(Token::Comma, at);
                let word = self.literal(&word.to_ascii_uppercase(), at);
                self.replace(at..at + 2, vec![comma, word]);
                return;
            }
        }
    }

    /// XMLSERIALIZE's AS type, as a NULL of that type.
    fn target_type(&mut self) -> Result<()> {
        let Some(at) = find_word(self.tokens, self.open + 1..self.close, "as") else {
            return self.syntax_error(self.close);
        };
        let made = vec![
            self.made(Token::Comma, at),
            self.made(Token::make_word("NULL", None), at),
            self.made(Token::DoubleColon, at),
        ];
        self.replace(at..at + 1, made);
        Ok(())
    }

    /// XMLROOT(value, VERSION text | NO VALUE [, STANDALONE YES | NO | NO VALUE]).
    fn root(&mut self) -> Result<()> {
        let parts = items(self.tokens, self.open + 1..self.close);
        let [_, version, rest @ ..] = parts.as_slice() else {
            return self.syntax_error(self.close);
        };
        if let [alone, more @ ..] = rest {
            if !self.is_word(alone.start, "standalone") || !more.is_empty() {
                return self.syntax_error(alone.start);
            }
            let said = match self
                .tokens
                .get(alone.start + 1..alone.end)
                .unwrap_or_default()
            {
                [word] if is_word(Some(word), "yes") => "YES",
                [word] if is_word(Some(word), "no") => "NO",
                [no, value] if is_word(Some(no), "no") && is_word(Some(value), "value") => {
                    "NO VALUE"
                }
                _ => return self.syntax_error(alone.start + 1),
            };
            let said = self.literal(said, alone.start);
            self.replace(alone.clone(), vec![said]);
        }
        if !self.is_word(version.start, "version") {
            return self.syntax_error(version.start);
        }
        let value = version.start + 1..version.end;
        if value.len() == 2 && words(self.tokens, value.start, &["no", "value"]) {
            let null = self.made(Token::make_word("NULL", None), value.start);
            self.replace(version.clone(), vec![null]);
        } else {
            self.replace(version.start..version.start + 1, Vec::new());
        }
        Ok(())
    }

    /// BY REF or BY VALUE.
    pub(super) fn is_mechanism(&self, at: usize) -> bool {
        self.is_word(at, "by") && (self.is_word(at + 1, "ref") || self.is_word(at + 1, "value"))
    }

    /// XMLEXISTS(path PASSING [BY REF | BY VALUE] value [BY REF | BY VALUE]).
    fn passing(&mut self) -> Result<()> {
        let Some(at) = find_word(self.tokens, self.open + 1..self.close, "passing") else {
            return self.syntax_error(self.close);
        };
        if self.close >= at + 3 && self.is_mechanism(self.close - 2) {
            self.replace(self.close - 2..self.close, Vec::new());
        }
        let comma = self.made(Token::Comma, at);
        match self.is_mechanism(at + 1) {
            true => self.replace(at..at + 3, vec![comma]),
            false => self.replace(at..at + 1, vec![comma]),
        }
        Ok(())
    }
}
