//! Cursors: the head of DECLARE, FETCH and MOVE with all their directions. The grammar library knows some of it.

use super::constraints::error_at;
use super::fold;
use super::kind::{DeclareCursor, FetchDirection, FetchRows};
use super::rewrite::is_word;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A word that is a name.
fn ident(text: &str, tokens: &[TokenWithSpan], at: usize) -> Result<String> {
    match tokens.get(at).map(|t| (&t.token, t.span)) {
        Some((Token::Word(word), span)) => Ok(fold(&word.clone().into_ident(span))),
        _ => Err(error_at(text, tokens, at)),
    }
}

/// DECLARE name ... CURSOR ... FOR: what it says, and where its query begins; `None` for any other statement.
pub(super) fn declare(
    text: &str,
    tokens: &[TokenWithSpan],
) -> Result<Option<(DeclareCursor, usize)>> {
    if !is_word(tokens.first(), "declare") {
        return Ok(None);
    }
    let mut declare = DeclareCursor {
        name: ident(text, tokens, 1)?,
        binary: false,
        insensitive: false,
        scroll: None,
        hold: false,
    };
    let both = |one: &str, other: &str| {
        SqlError::new(
            SqlState::new(b"42P11"),
            format!("cannot specify both {one} and {other}"),
        )
    };
    let (mut asensitive, mut no_scroll, mut scroll) = (false, false, false);
    let mut at = 2;
    while !is_word(tokens.get(at), "cursor") {
        if is_word(tokens.get(at), "binary") {
            declare.binary = true;
        } else if is_word(tokens.get(at), "insensitive") {
            declare.insensitive = true;
        } else if is_word(tokens.get(at), "asensitive") {
            asensitive = true;
        } else if is_word(tokens.get(at), "scroll") {
            scroll = true;
        } else if is_word(tokens.get(at), "no") && is_word(tokens.get(at + 1), "scroll") {
            no_scroll = true;
            at += 1;
        } else {
            return Err(error_at(text, tokens, at));
        }
        at += 1;
    }
    at += 1;
    for (word, hold) in [("with", true), ("without", false)] {
        if is_word(tokens.get(at), word) {
            if !is_word(tokens.get(at + 1), "hold") {
                return Err(error_at(text, tokens, at + 1));
            }
            declare.hold = hold;
            at += 2;
            break;
        }
    }
    if !is_word(tokens.get(at), "for") {
        return Err(error_at(text, tokens, at));
    }
    if scroll && no_scroll {
        return Err(both("SCROLL", "NO SCROLL"));
    }
    if declare.insensitive && asensitive {
        return Err(both("ASENSITIVE", "INSENSITIVE"));
    }
    declare.scroll = match (scroll, no_scroll) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    if tokens.len() <= at + 1 {
        return Err(error_at(text, tokens, at + 1));
    }
    Ok(Some((declare, at + 1)))
}

/// Where the statement begins that is explained.
pub(super) fn behind_explain(tokens: &[TokenWithSpan]) -> Option<usize> {
    if !is_word(tokens.first(), "explain") {
        return None;
    }
    let mut at = 1;
    if matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen)) {
        let end = tokens.iter().position(|t| t.token == Token::RParen);
        at = end.map_or(tokens.len(), |end| end + 1);
    }
    while is_word(tokens.get(at), "analyze") || is_word(tokens.get(at), "verbose") {
        at += 1;
    }
    Some(at)
}

/// EXPLAIN of DECLARE is EXPLAIN of its query.
pub(super) fn explained(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let Some(at) = behind_explain(tokens) else {
        return Ok(());
    };
    if let Some((_, from)) = declare(text, tokens.get(at..).unwrap_or_default())? {
        tokens.drain(at..at + from);
    }
    Ok(())
}

/// A count with its sign; moves `at` past it.
fn count(text: &str, tokens: &[TokenWithSpan], at: &mut usize) -> Result<Option<i64>> {
    let mut next = *at;
    let negative = match tokens.get(next).map(|t| &t.token) {
        Some(Token::Minus) => {
            next += 1;
            true
        }
        Some(Token::Plus) => {
            next += 1;
            false
        }
        _ => false,
    };
    match tokens.get(next).map(|t| &t.token) {
        Some(Token::Number(digits, _)) => {
            let value: i32 = digits.parse().map_err(|_| error_at(text, tokens, next))?;
            *at = next + 1;
            let value = i64::from(value);
            Ok(Some(if negative { -value } else { value }))
        }
        _ if next > *at => Err(error_at(text, tokens, next)),
        _ => Ok(None),
    }
}

/// FETCH and MOVE; `None` for any other statement.
pub(super) fn fetch(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<FetchRows>> {
    let moves = is_word(tokens.first(), "move");
    if !moves && !is_word(tokens.first(), "fetch") {
        return Ok(None);
    }
    use FetchDirection as D;
    let mut at = 1;
    let is = |at: usize, word: &str| is_word(tokens.get(at), word);
    // A word that stands alone is the cursor's name, whatever it is.
    let alone = tokens.len() == 2 && matches!(tokens[1].token, Token::Word(_));
    let direction = if alone {
        D::Forward(1)
    } else if let Some(n) = count(text, tokens, &mut at)? {
        D::Forward(n)
    } else {
        let word = at;
        at += 1;
        if is(word, "next") {
            D::Forward(1)
        } else if is(word, "prior") {
            D::Backward(1)
        } else if is(word, "first") {
            D::Absolute(1)
        } else if is(word, "last") {
            D::Absolute(-1)
        } else if is(word, "all") {
            D::Forward(D::ALL)
        } else if is(word, "absolute") || is(word, "relative") {
            let n = count(text, tokens, &mut at)?.ok_or_else(|| error_at(text, tokens, at))?;
            match is(word, "absolute") {
                true => D::Absolute(n),
                false => D::Relative(n),
            }
        } else if is(word, "forward") || is(word, "backward") {
            let n = if is(at, "all") && tokens.len() > at + 1 {
                at += 1;
                D::ALL
            } else {
                count(text, tokens, &mut at)?.unwrap_or(1)
            };
            match is(word, "forward") {
                true => D::Forward(n),
                false => D::Backward(n),
            }
        } else {
            at = word;
            D::Forward(1)
        }
    };
    if (is(at, "from") || is(at, "in")) && tokens.len() > at + 1 {
        at += 1;
    }
    let name = ident(text, tokens, at)?;
    if tokens.len() > at + 1 {
        return Err(error_at(text, tokens, at + 1));
    }
    Ok(Some(FetchRows {
        name,
        moves,
        direction,
    }))
}
