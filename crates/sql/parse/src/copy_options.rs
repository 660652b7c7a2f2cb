//! The options of COPY in both spellings, of which the grammar library knows a part: they are taken off, and it sees
//! the rest.

use super::rewrite::is_word;
use super::roles::Words;
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Options that begin behind so many tokens have no place in the text.
const PLACED_TOKENS: usize = 1 << 10;

/// What COPY says behind its source and target.
#[derive(Clone, Debug, Default)]
pub struct CopyClauses {
    /// The condition of WHERE.
    pub condition: Option<Box<ast::Expr>>,
    /// The options in the order of the text.
    pub options: Vec<CopyOption>,
}

/// One option, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOption {
    /// Its name, folded as names are.
    pub name: String,
    /// What stands behind it.
    pub value: CopyValue,
    /// Where it stands in the text, in characters from 1.
    pub position: Option<usize>,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyValue {
    /// None was given.
    Nothing,
    /// A word or a literal.
    Text(String),
    /// A number as it was written.
    Number(String),
    /// `*`.
    All,
    /// A list of names in parentheses.
    Names(Vec<String>),
}

/// Takes the options off a COPY.
pub(super) fn take(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<CopyOption>> {
    if !is_word(tokens.first(), "copy") {
        return Ok(Vec::new());
    }
    let binary = is_word(tokens.get(1), "binary")
        && matches!(tokens.get(2).map(|t| &t.token), Some(Token::Word(_)))
        && !is_word(tokens.get(2), "from")
        && !is_word(tokens.get(2), "to");
    let Some(direction) = direction(tokens) else {
        return Ok(Vec::new());
    };
    let mut behind = direction + 2;
    if is_word(tokens.get(direction + 1), "program") {
        behind += 1;
    }
    if behind > tokens.len() {
        return Ok(Vec::new());
    }
    let mut at = Words {
        text,
        tokens,
        at: behind,
    };
    let mut options = Vec::new();
    if binary {
        options.push(at.option_at(1, "format", CopyValue::Text("binary".to_owned())));
    }
    let using = at.is("using") || at.is("delimiters");
    if using {
        let begin = at.at;
        at.take("using");
        at.expect("delimiters")?;
        let value = CopyValue::Text(at.string()?);
        options.push(at.option_at(begin, "delimiter", value));
    }
    // WITH may stand alone.
    at.take("with");
    if at.token() == Some(&Token::LParen) {
        at.at += 1;
        loop {
            options.push(at.generic_option()?);
            if !at.take_token(&Token::Comma) {
                break;
            }
        }
        if !at.take_token(&Token::RParen) {
            return Err(at.error());
        }
        at.end()?;
    } else {
        while !at.done() {
            options.push(at.plain_option()?);
        }
    }
    tokens.truncate(behind);
    if binary {
        tokens.remove(1);
    }
    Ok(options)
}

/// Where TO or FROM stands, outside of parentheses.
fn direction(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Word(_)
                if depth == 0 && (is_word(Some(token), "to") || is_word(Some(token), "from")) =>
            {
                return Some(at);
            }
            _ => {}
        }
    }
    None
}

impl Words<'_> {
    fn option_at(&self, at: usize, name: &str, value: CopyValue) -> CopyOption {
        // To find a place costs as much as the text is long: those of what nobody writes are left out.
        let token = self.tokens.get(at).filter(|_| at < PLACED_TOKENS);
        CopyOption {
            name: name.to_owned(),
            value,
            position: token.and_then(|token| super::span_position(self.text, token.span)),
        }
    }

    /// One of `(name [value], ...)`.
    fn generic_option(&mut self) -> Result<CopyOption> {
        let begin = self.at;
        let name = self.ident()?;
        let value = match self.token() {
            None | Some(Token::Comma | Token::RParen) => CopyValue::Nothing,
            Some(Token::Mul) => {
                self.at += 1;
                CopyValue::All
            }
            Some(Token::LParen) => {
                self.at += 1;
                let mut names = vec![self.word_or_literal()?];
                while self.take_token(&Token::Comma) {
                    names.push(self.word_or_literal()?);
                }
                if !self.take_token(&Token::RParen) {
                    return Err(self.error());
                }
                CopyValue::Names(names)
            }
            Some(Token::Number(..) | Token::Minus | Token::Plus) => {
                let sign = self.take_token(&Token::Minus);
                if !sign {
                    self.take_token(&Token::Plus);
                }
                let Some(Token::Number(digits, _)) = self.token() else {
                    return Err(self.error());
                };
                let number = format!("{}{digits}", if sign { "-" } else { "" });
                self.at += 1;
                CopyValue::Number(number)
            }
            Some(_) => CopyValue::Text(self.word_or_literal()?),
        };
        Ok(self.option_at(begin, &name, value))
    }

    fn word_or_literal(&mut self) -> Result<String> {
        match self.token() {
            Some(Token::Word(_)) => self.ident(),
            _ => self.string(),
        }
    }

    /// One of the older spelling, which has no parentheses.
    fn plain_option(&mut self) -> Result<CopyOption> {
        let begin = self.at;
        let format = |name: &str| CopyValue::Text(name.to_owned());
        let (name, value) = if self.take("binary") {
            ("format", format("binary"))
        } else if self.take("csv") {
            ("format", format("csv"))
        } else if self.take("freeze") {
            ("freeze", CopyValue::Nothing)
        } else if self.take("header") {
            ("header", CopyValue::Nothing)
        } else if self.take("encoding") {
            ("encoding", CopyValue::Text(self.string()?))
        } else if self.take("force") {
            if self.take("quote") {
                ("force_quote", self.copied()?)
            } else if self.take_all(&["not", "null"]) {
                ("force_not_null", self.copied_names()?)
            } else if self.take("null") {
                ("force_null", self.copied_names()?)
            } else {
                return Err(self.error());
            }
        } else {
            let literals = ["delimiter", "null", "quote", "escape"];
            let Some(name) = literals.into_iter().find(|name| self.take(name)) else {
                return Err(self.error());
            };
            self.take("as");
            (name, CopyValue::Text(self.string()?))
        };
        Ok(self.option_at(begin, name, value))
    }

    fn copied(&mut self) -> Result<CopyValue> {
        if self.take_token(&Token::Mul) {
            return Ok(CopyValue::All);
        }
        self.copied_names()
    }

    fn copied_names(&mut self) -> Result<CopyValue> {
        let mut names = vec![self.ident()?];
        while self.take_token(&Token::Comma) {
            names.push(self.ident()?);
        }
        Ok(CopyValue::Names(names))
    }
}

/// 42601, PostgreSQL's text, for an option that is given twice.
pub fn redundant_option(option: &CopyOption) -> SqlError {
    SqlError::new(
        logstead_types::SqlState::SYNTAX_ERROR,
        "conflicting or redundant options",
    )
    .at(option.position)
}
