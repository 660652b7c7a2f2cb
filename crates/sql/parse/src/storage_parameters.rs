//! Storage parameters as the grammar library lacks them: without a value, and with the name of what they are of.

use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Writes the lists of WITH, SET and RESET as the library knows them: `a.b` as one name, `a` as `a = true`.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let alters = words(tokens, 0, &["alter", "table"])
        || words(tokens, 0, &["alter", "index"])
        || words(tokens, 0, &["alter", "materialized"]);
    let creates = is_word(tokens.first(), "create")
        && (1..4).any(|at| is_word(tokens.get(at), "table") || is_word(tokens.get(at), "index"));
    if !alters && !creates {
        return Ok(());
    }
    // No table has OIDs: SET WITHOUT OIDS says what is.
    if let Some(at) = (3..tokens.len()).find(|at| words(tokens, *at, &["set", "without", "oids"])) {
        let span = tokens[at].span;
        let said = [
            Token::make_keyword("SET"),
            Token::LParen,
            Token::make_word("oids", None),
            Token::Eq,
            Token::make_keyword("FALSE"),
            Token::RParen,
        ];
        let said = said.map(|token| TokenWithSpan { token, span });
        tokens.splice(at..at + 3, said);
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                let resets = alters && is_word(before, "reset");
                let sets = alters && is_word(before, "set");
                if depth == 0 && (resets || sets || (creates && is_word(before, "with"))) {
                    at = list(tokens, at + 1, resets)?;
                    continue;
                }
                depth += 1;
            }
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// One list; gives the place behind it.
fn list(tokens: &mut Vec<TokenWithSpan>, mut at: usize, resets: bool) -> Result<usize> {
    let is = |tokens: &[TokenWithSpan], at: usize, wanted: &Token| {
        tokens.get(at).is_some_and(|t| t.token == *wanted)
    };
    loop {
        let Some(Token::Word(word)) = tokens.get(at).map(|t| &t.token) else {
            return Ok(at);
        };
        let folded = |word: &Word| match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        };
        let mut name = folded(word);
        if is(tokens, at + 1, &Token::Period)
            && let Some(Token::Word(second)) = tokens.get(at + 2).map(|t| &t.token)
        {
            name = format!("{name}.{}", folded(second));
            tokens.drain(at + 1..at + 3);
            tokens[at].token = Token::Word(Word {
                value: name,
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
        }
        at += 1;
        let span = tokens[at - 1].span;
        if is(tokens, at, &Token::Eq) {
            if resets {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "RESET must not include values for parameters",
                ));
            }
            let mut depth = 0_usize;
            while let Some(token) = tokens.get(at) {
                match token.token {
                    Token::LParen => depth += 1,
                    Token::RParen if depth == 0 => break,
                    Token::RParen => depth -= 1,
                    Token::Comma if depth == 0 => break,
                    _ => {}
                }
                at += 1;
            }
        } else if !resets && (is(tokens, at, &Token::Comma) || is(tokens, at, &Token::RParen)) {
            let value = [Token::Eq, Token::make_keyword("TRUE")];
            tokens.splice(at..at, value.map(|token| TokenWithSpan { token, span }));
            at += 2;
        }
        match tokens.get(at).map(|t| &t.token) {
            Some(Token::Comma) => at += 1,
            Some(Token::RParen) => return Ok(at + 1),
            _ => return Ok(at),
        }
    }
}
