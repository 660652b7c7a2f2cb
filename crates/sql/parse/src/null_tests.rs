//! `x ISNULL` and `x NOTNULL`, which the grammar library takes for names: they travel as IS NULL and IS NOT NULL.

use super::rewrite::is_word;
use sqlparser::keywords::Keyword as K;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words behind which an operand, or the name of something else, begins.
const BEFORE_OPERANDS: [K; 40] = [
    K::AGGREGATE,
    K::ALL,
    K::ALTER,
    K::AND,
    K::ANY,
    K::AS,
    K::BETWEEN,
    K::BY,
    K::CASE,
    K::CREATE,
    K::DISTINCT,
    K::DROP,
    K::ELSE,
    K::EXISTS,
    K::FROM,
    K::FUNCTION,
    K::HAVING,
    K::ILIKE,
    K::IN,
    K::INTO,
    K::IS,
    K::JOIN,
    K::LIKE,
    K::LIMIT,
    K::NOT,
    K::OFFSET,
    K::ON,
    K::OR,
    K::PROCEDURE,
    K::RETURNING,
    K::SELECT,
    K::SET,
    K::SIMILAR,
    K::THEN,
    K::TO,
    K::TYPE,
    K::USING,
    K::WHEN,
    K::WHERE,
    K::WITH,
];

/// Does an operand end with this token?
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || !BEFORE_OPERANDS.contains(&word.keyword),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Placeholder(_)
        | Token::RParen
        | Token::RBracket => true,
        _ => false,
    }
}

/// Puts the words of the standard in their places.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let wanted: &[&str] = if is_word(tokens.get(at), "isnull") {
            &["IS", "NULL"]
        } else if is_word(tokens.get(at), "notnull") {
            &["IS", "NOT", "NULL"]
        } else {
            at += 1;
            continue;
        };
        let next = tokens.get(at + 1).map(|t| &t.token);
        let called = matches!(next, Some(Token::LParen | Token::Period));
        if called || !ends_operand(&tokens[at - 1].token) {
            at += 1;
            continue;
        }
        let span = tokens[at].span;
        let words = wanted.iter().map(|word| TokenWithSpan {
            token: Token::make_word(word, None),
            span,
        });
        tokens.splice(at..=at, words);
        at += wanted.len();
    }
}
