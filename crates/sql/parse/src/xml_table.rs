//! XMLTABLE([XMLNAMESPACES(...),] row PASSING document COLUMNS ...): it travels as a call whose arguments are the
//! expression for rows, the document,
//! the namespaces as a call of names and URIs, and for each column a call of its name, a NULL of its type, its
//! expression, its default, and
//! what else is said of it.

use super::rewrite::{is_word, words};
use super::xml::{Call, close_of, find_word, folded, is, items, marked};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::Range;

/// What may be said of a column.
const OPTIONS: [&str; 4] = ["path", "default", "not", "null"];

pub(super) fn rewrite(call: &mut Call<'_>) -> Result<()> {
    let mut made = Vec::new();
    let mut at = call.open + 1;
    let mut namespaces = Vec::new();
    if call.is_word(at, "xmlnamespaces") {
        let Some(close) = close_of(call.tokens, at + 1) else {
            return call.syntax_error(at + 1);
        };
        namespaces = of_namespaces(call, at, at + 2..close)?;
        if !is(call.tokens, close + 1, &Token::Comma) {
            return call.syntax_error(close + 1);
        }
        at = close + 2;
    }
    let Some(passing) = find_word(call.tokens, at..call.close, "passing") else {
        return call.syntax_error(call.close);
    };
    let Some(columns) = find_word(call.tokens, passing..call.close, "columns") else {
        return call.syntax_error(call.close);
    };
    let comma = call.made(Token::Comma, passing);
    made.extend(call.tokens[at..passing].iter().cloned());
    made.push(comma.clone());
    let begin = match call.is_mechanism(passing + 1) {
        true => passing + 3,
        false => passing + 1,
    };
    let end = match columns >= begin + 3 && call.is_mechanism(columns - 2) {
        true => columns - 2,
        false => columns,
    };
    made.extend(call.tokens[begin..end].iter().cloned());
    if !namespaces.is_empty() {
        made.push(comma.clone());
        made.append(&mut namespaces);
    }
    for item in items(call.tokens, columns + 1..call.close) {
        made.push(comma.clone());
        made.extend(of_column(call, item)?);
    }
    call.replace(call.open + 1..call.close, made);
    Ok(())
}

/// XMLNAMESPACES(uri AS name, DEFAULT uri): names, an empty one for the default, and URIs.
fn of_namespaces(call: &Call<'_>, at: usize, list: Range<usize>) -> Result<Vec<TokenWithSpan>> {
    let comma = call.made(Token::Comma, at);
    let mut made = vec![
        call.made(marked("xmlnamespaces"), at),
        call.made(Token::LParen, at),
    ];
    for (number, item) in items(call.tokens, list).into_iter().enumerate() {
        if number > 0 {
            made.push(comma.clone());
        }
        if call.is_word(item.start, "default") {
            made.extend([call.literal("", item.start), comma.clone()]);
            made.extend(call.tokens[item.start + 1..item.end].iter().cloned());
            continue;
        }
        let named = find_word(call.tokens, item.clone(), "as");
        let name = named.and_then(|at| folded(call.tokens.get(at + 1)?));
        let (Some(at), Some(name)) = (named, name) else {
            return call.syntax_error(item.end);
        };
        made.extend([call.literal(&name, at + 1), comma.clone()]);
        made.extend(call.tokens[item.start..at].iter().cloned());
    }
    made.push(call.made(Token::RParen, at));
    Ok(made)
}

/// `name type [PATH expression] [DEFAULT expression] [NOT NULL]`, or `name FOR ORDINALITY`.
fn of_column(call: &Call<'_>, item: Range<usize>) -> Result<Vec<TokenWithSpan>> {
    let first = item.start;
    let Some(name) = call.tokens.get(first).and_then(folded) else {
        return call.syntax_error(first);
    };
    let comma = call.made(Token::Comma, first);
    let null = call.made(Token::make_word("NULL", None), first);
    let (mut path, mut default) = (vec![null.clone()], vec![null.clone()]);
    let mut ty = vec![null.clone()];
    let mut said = "";
    if item.len() == 3 && words(call.tokens, first + 1, &["for", "ordinality"]) {
        said = "ORDINALITY";
    } else {
        let mut at = next_option(call.tokens, first + 1..item.end);
        if at == first + 1 {
            return call.syntax_error(at);
        }
        ty.push(call.made(Token::DoubleColon, first));
        ty.extend(call.tokens[first + 1..at].iter().cloned());
        let (mut has_path, mut has_default) = (false, false);
        while at < item.end {
            if words(call.tokens, at, &["not", "null"]) {
                said = "NOT NULL";
                at += 2;
                continue;
            }
            if call.is_word(at, "null") {
                at += 1;
                continue;
            }
            // A word of the option's own may begin its expression.
            let end = next_option(call.tokens, at + 2..item.end);
            let value = call.tokens.get(at + 1..end).unwrap_or_default().to_vec();
            let (taken, has) = match call.is_word(at, "path") {
                true => (&mut path, &mut has_path),
                false if call.is_word(at, "default") => (&mut default, &mut has_default),
                false => return call.syntax_error(at),
            };
            if std::mem::replace(has, true) {
                let what = call.tokens.get(at).and_then(folded).unwrap_or_default();
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    match what.as_str() {
                        "path" => "only one PATH value per column is allowed",
                        _ => "only one DEFAULT value is allowed",
                    },
                ));
            }
            *taken = value;
            at = end;
        }
    }
    let mut made = vec![
        call.made(marked("xmlcolumn"), first),
        call.made(Token::LParen, first),
        call.literal(&name, first),
    ];
    for part in [ty, path, default, vec![call.literal(said, first)]] {
        made.push(comma.clone());
        made.extend(part);
    }
    made.push(call.made(Token::RParen, first));
    Ok(made)
}

/// Where the next option begins, or the end.
fn next_option(tokens: &[TokenWithSpan], range: Range<usize>) -> usize {
    let mut depth = 0_usize;
    let end = range.end;
    let begin = range.start.min(end);
    (begin..end)
        .find(|at| {
            match tokens[*at].token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && OPTIONS.iter().any(|word| is_word(tokens.get(*at), word))
        })
        .unwrap_or(end)
}
