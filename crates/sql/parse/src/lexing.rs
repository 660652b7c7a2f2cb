//! From text to the tokens of one statement each, with what the grammar library's tokenizer does not do as PostgreSQL
//! does: literals that go on in the next line, `U&` with its own escape character, letters right behind a number.

use super::lexer::Lexer;
use super::position::{Walk, byte_of, token_error};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::build::Room;
use logstead_types::SqlState;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace, Word};
use std::borrow::Cow;

/// Texts of fewer bytes are not charged.
const CHARGED_BYTES_MIN: usize = 64 << 10;

/// What the tokens of a text take until it is parsed, the text of each aside.
fn room_for_tokens(text: &str) -> Result<Room> {
    if text.len() < CHARGED_BYTES_MIN {
        return Ok(Room::default());
    }
    // With the white space between them, which is tokens as well.
    let tokens = Lexer::count(text).saturating_mul(2);
    let bytes = tokens.saturating_mul(size_of::<TokenWithSpan>());
    Room::of(bytes.saturating_add(text.len()))
}

/// The statements of a text, each as its tokens without white space.
pub(super) fn statements(text: &str) -> Result<Vec<Vec<TokenWithSpan>>> {
    let _charged = room_for_tokens(text)?;
    let dialect = PostgreSqlDialect {};
    let cleared = super::operators::without_comments_behind(text);
    let (cleared, unicode) = without_unicode_marks(cleared);
    let (cleared, mut escaped) = super::escapes::read_ahead(cleared)?;
    let tokens = Tokenizer::new(&dialect, &cleared)
        .tokenize_with_location()
        .map_err(|error| token_error(text, &error))?;
    let mut statements = Vec::new();
    let mut one: Vec<TokenWithSpan> = Vec::new();
    // A line has ended since the last token.
    let mut new_line = false;
    let mut commented = false;
    let mut walk = Walk::default();
    for token in tokens {
        match &token.token {
            Token::Whitespace(space) => {
                // A comment with an end of its own is in the way of a literal that goes on.
                commented |= matches!(space, Whitespace::MultiLineComment(_));
                new_line |= matches!(
                    space,
                    Whitespace::Newline | Whitespace::SingleLineComment { .. }
                );
                continue;
            }
            Token::EOF => {}
            Token::SemiColon if super::routines::in_atomic_body(&one) => one.push(token),
            Token::SemiColon => {
                if !one.is_empty() {
                    statements.push(std::mem::take(&mut one));
                }
            }
            Token::SingleQuotedString(more)
                if new_line && !commented && goes_on(&mut one, more) => {}
            // No statement has two literals one behind the other; the grammar library would take the second for a name.
            Token::SingleQuotedString(_)
                if matches!(
                    one.last().map(|t| &t.token),
                    Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))
                ) =>
            {
                return Err(super::position::error_at_token(text, &token));
            }
            Token::EscapedStringLiteral(_) if !escaped.is_empty() => {
                let start = walk.byte_of(text, token.span.start);
                let mut token = token;
                if let Some(value) = escaped.remove(&start) {
                    token.token = Token::EscapedStringLiteral(value);
                }
                one.push(token);
            }
            Token::SingleQuotedString(_)
                if !unicode.is_empty()
                    && unicode.contains(&walk.byte_of(text, token.span.start)) =>
            {
                let mut token = token;
                token.span.start.column -= 2;
                token.token = Token::UnicodeStringLiteral(String::new());
                one.push(token);
            }
            Token::Number(..) | Token::HexStringLiteral(_) | Token::Placeholder(_) => {
                no_junk(text, walk.byte_of(text, token.span.start))?;
                one.push(token);
            }
            Token::Word(word) if word.quote_style.is_some() && word.value.is_empty() => {
                let start = walk.byte_of(text, token.span.start);
                let before = text.get(..start).unwrap_or_default();
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "zero-length delimited identifier at or near \"\"\"\"",
                )
                .at(Some(before.chars().count() + 1)));
            }
            Token::CustomBinaryOperator(_) => match super::operators::with_signs(&token) {
                Some(all) => one.extend(all),
                None => one.push(token),
            },
            _ => one.push(token),
        }
        (new_line, commented) = (false, false);
    }
    if !one.is_empty() {
        statements.push(one);
    }
    for one in &mut statements {
        super::operators::of_images(one);
        if one
            .iter()
            .any(|t| is_u(&t.token) || matches!(t.token, Token::UnicodeStringLiteral(_)))
        {
            unicode_escapes(text, one)?;
        }
    }
    Ok(statements)
}

/// Blanks the `U&` in front of literals, of which the library's tokenizer refuses what PostgreSQL takes: pairs of
/// surrogates, and backslashes where UESCAPE names another character. Gives where those literals begin.
fn without_unicode_marks(text: Cow<'_, str>) -> (Cow<'_, str>, Vec<usize>) {
    use super::operators::{
        comment, comment_length, dollar_length, has_escapes, is_of_name, quoted_length,
    };
    if !text.contains("&'") {
        return (text, Vec::new());
    }
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            _ if comment(rest) => comment_length(rest),
            b'\'' => quoted_length(rest, b'\'', has_escapes(bytes, at)),
            b'"' => quoted_length(rest, b'"', false),
            b'$' => dollar_length(bytes, at),
            b'u' | b'U' if rest.get(1..3) == Some(b"&'") => {
                found.push(at + 2);
                2
            }
            b if is_of_name(b) => rest.iter().take_while(|b| is_of_name(**b)).count(),
            _ => 1,
        };
    }
    if found.is_empty() {
        return (text, found);
    }
    let mut blanked = String::with_capacity(text.len());
    let mut from = 0;
    for quote in &found {
        blanked.push_str(text.get(from..quote - 2).unwrap_or_default());
        blanked.push_str("  ");
        from = *quote;
    }
    blanked.push_str(text.get(from..).unwrap_or_default());
    (Cow::Owned(blanked), found)
}

/// 0A000 for names that begin as those do by which texts that the catalog keeps name functions, types and tables by
/// number: who writes one would get at an object without being asked for the right to its schema.
pub(super) fn refuse_marks(text: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let marked = |token: &&TokenWithSpan| match &token.token {
        Token::Word(word) => word.value.starts_with(|c: char| c < '\t'),
        _ => false,
    };
    match tokens.iter().find(marked) {
        None => Ok(()),
        Some(token) => {
            let error = SqlError::unsupported("an identifier that begins with a control character");
            Err(error.at(super::span_position(text, token.span)))
        }
    }
}

/// Literals in dollars become literals in quotes: the grammar library knows them in expressions only.
pub(super) fn plain_literals(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::DollarQuotedString(text) = &mut token.token {
            token.token = Token::SingleQuotedString(std::mem::take(&mut text.value));
        }
    }
}

/// Adds the next line's part to a literal.
fn goes_on(one: &mut [TokenWithSpan], more: &str) -> bool {
    match one.last_mut().map(|t| &mut t.token) {
        Some(Token::SingleQuotedString(text)) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

/// Letters right behind the number at `start` are an error: the tokenizer would take them for the next word.
fn no_junk(text: &str, start: usize) -> Result<()> {
    let rest = text.get(start..).unwrap_or_default();
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let part = bytes.get(from..).unwrap_or_default();
        part.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let (what, mut end) = match bytes.first() {
        Some(b'$') => ("parameter", 1 + digits(1)),
        Some(b'0'..=b'9' | b'.') => {
            let mut end = digits(0);
            // `1..2` is no number with a point.
            if bytes.get(end) == Some(&b'.') && bytes.get(end + 1) != Some(&b'.') {
                end += 1 + digits(end + 1);
            }
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if matches!(bytes.get(end), Some(b'e' | b'E')) && digits(end + 1 + signed) > 0 {
                end += 1 + signed + digits(end + 1 + signed);
            }
            ("numeric literal", end)
        }
        _ => return Ok(()),
    };
    let starts = |b: u8| b == b'_' || b.is_ascii_alphabetic() || b >= 0x80;
    if end == 0 || !bytes.get(end).is_some_and(|b| starts(*b)) {
        return Ok(());
    }
    // An exponent that is only begun ends at its sign.
    let exponent = matches!(bytes.get(end), Some(b'e' | b'E'));
    let goes_on = |b: &&u8| starts(**b) || b.is_ascii_digit() || **b == b'$';
    end += match exponent && matches!(bytes.get(end + 1), Some(b'+' | b'-')) {
        true => 2,
        false => bytes.iter().skip(end).take_while(goes_on).count(),
    };
    let near = rest.get(..end).unwrap_or_default();
    let error = SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("trailing junk after {what} at or near \"{near}\""),
    );
    Err(error.at(Some(
        text.get(..start).unwrap_or_default().chars().count() + 1,
    )))
}

/// The word in front of `&"name"`.
fn is_u(token: &Token) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("u"))
}

/// `U&'text'` and `U&"name"`, each with UESCAPE or without, become what they stand for.
fn unicode_escapes(text: &str, one: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut at = 0;
    while at < one.len() {
        let span = one[at].span;
        let literal = matches!(one[at].token, Token::UnicodeStringLiteral(_));
        let name = is_u(&one[at].token)
            && matches!(one.get(at + 1).map(|t| &t.token), Some(Token::Ampersand))
            && matches!(one.get(at + 2).map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_some())
            && one[at + 1].span.start == span.end
            && one[at + 2].span.start == one[at + 1].span.end;
        if !literal && !name {
            at += 1;
            continue;
        }
        let behind = if name { at + 3 } else { at + 1 };
        let own = super::rewrite::is_word(one.get(behind), "uescape");
        let escape = match one.get(behind + 1).map(|t| &t.token) {
            Some(Token::SingleQuotedString(character)) if own => escape_character(character)?,
            _ if own => {
                let near = one.get(behind + 1);
                let error = match near {
                    Some(near) => super::position::error_at_token(text, near),
                    None => {
                        return Err(super::position::error_at_token(
                            text,
                            &TokenWithSpan::new_eof(),
                        ));
                    }
                };
                let near = error
                    .fields()
                    .message
                    .strip_prefix("syntax error")
                    .unwrap_or_default();
                let message = format!("UESCAPE must be followed by a simple string literal{near}");
                return Err(
                    SqlError::new(SqlState::SYNTAX_ERROR, message).at(error.fields().position)
                );
            }
            _ => '\\',
        };
        // The library would read the literal's escapes by its own rule: they are read here as they were written.
        let last = one.get(behind - 1).map_or(span, |t| t.span);
        let written = text
            .get(byte_of(text, span.start)..byte_of(text, last.end))
            .unwrap_or_default();
        let quote = if name { '"' } else { '\'' };
        let inside = written
            .split_once(quote)
            .and_then(|(_, rest)| rest.strip_suffix(quote))
            .unwrap_or_default()
            .replace(&format!("{quote}{quote}"), &quote.to_string());
        let value = logstead_sql_types::value::escapes::unescape_unicode(&inside, escape).map_err(
            |error| match error
                .fields()
                .message
                .starts_with("invalid Unicode code point")
            {
                true => SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape value"),
                false => error,
            },
        )?;
        let token = match name {
            true => Token::Word(Word {
                value,
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            }),
            false => Token::SingleQuotedString(value),
        };
        let end = if own { behind + 2 } else { behind };
        one.splice(at..end.min(one.len()), [TokenWithSpan { token, span }]);
        at += 1;
    }
    Ok(())
}

fn escape_character(said: &str) -> Result<char> {
    let mut chars = said.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None)
            if !c.is_ascii_hexdigit() && !matches!(c, '+' | '\'' | '"') && !c.is_whitespace() =>
        {
            Ok(c)
        }
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("invalid Unicode escape character at or near \"'{said}'\""),
        )),
    }
}
