//! An expression's tokens.

use super::super::names::{is_name_char, is_name_start};
use super::XPathError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, its prefix included; `*` behind the colon is one.
    Name(String),
    Star,
    Number(f64),
    Literal(String),
    Variable,
    /// `and`, `or`, `div`, `mod`, where an operator can stand.
    Word(&'static str),
    /// Anything else.
    Sign(&'static str),
}

/// Most tokens of an expression.
const TOKENS_MAX: usize = 10_000;

/// Longer signs first.
const SIGNS: [&str; 22] = [
    "::", "//", "..", "!=", "<=", ">=", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-", "=",
    "<", ">", "$", "*",
];

/// The rest behind a name without a colon.
fn name_end(text: &str) -> usize {
    text.char_indices()
        .find(|(at, c)| match at {
            0 => *c == ':' || !is_name_start(*c),
            _ => *c == ':' || !is_name_char(*c),
        })
        .map_or(text.len(), |(at, _)| at)
}

/// A name, with its prefix if it has one: `prefix:local`, `prefix:*`.
fn name(text: &str) -> &str {
    let end = name_end(text);
    let behind = &text[end..];
    if end == 0 || behind.starts_with("::") {
        return &text[..end];
    }
    let Some(local) = behind.strip_prefix(':') else {
        return &text[..end];
    };
    match local.starts_with('*') {
        true => &text[..end + 2],
        false => &text[..end + 1 + name_end(local)],
    }
}

/// Does an operand end here? Then a name is an operator, and a star multiplies.
fn ends_operand(token: Option<&Token>) -> bool {
    match token {
        None | Some(Token::Word(_)) => false,
        Some(Token::Sign(sign)) => matches!(*sign, ")" | "]" | "." | ".."),
        Some(_) => true,
    }
}

/// The tokens of an expression.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, XPathError> {
    let mut found: Vec<Token> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        if found.len() >= TOKENS_MAX {
            return Err(XPathError::Syntax);
        }
        if matches!(first, '"' | '\'') {
            let (literal, behind) = rest[1..].split_once(first).ok_or(XPathError::Syntax)?;
            found.push(Token::Literal(literal.to_owned()));
            rest = behind;
            continue;
        }
        let is_digit = |c: char| c.is_ascii_digit();
        if is_digit(first) || first == '.' && rest[1..].starts_with(is_digit) {
            let end = rest.find(|c: char| !is_digit(c)).unwrap_or(rest.len());
            let behind = &rest[end..];
            let end = match behind.strip_prefix('.') {
                Some(digits) => {
                    let more = digits.find(|c: char| !is_digit(c));
                    end + 1 + more.unwrap_or(digits.len())
                }
                None => end,
            };
            let number = rest[..end].trim_end_matches('.');
            found.push(Token::Number(
                number.parse().map_err(|_| XPathError::Syntax)?,
            ));
            rest = &rest[end..];
            continue;
        }
        let word = name(rest);
        if !word.is_empty() {
            if word.ends_with(':') {
                return Err(XPathError::Syntax);
            }
            let operator = ["and", "or", "div", "mod"].into_iter().find(|w| *w == word);
            found.push(match operator.filter(|_| ends_operand(found.last())) {
                Some(operator) => Token::Word(operator),
                None => Token::Name(word.to_owned()),
            });
            rest = &rest[word.len()..];
            continue;
        }
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let sign = sign.ok_or(XPathError::Syntax)?;
        rest = &rest[sign.len()..];
        found.push(match sign {
            "*" if !ends_operand(found.last()) => Token::Star,
            "$" => {
                let name = name(rest);
                if name.is_empty() {
                    return Err(XPathError::Syntax);
                }
                rest = &rest[name.len()..];
                Token::Variable
            }
            sign => Token::Sign(sign),
        });
    }
}
