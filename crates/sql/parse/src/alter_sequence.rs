//! ALTER SEQUENCE, read through the grammar of CREATE SEQUENCE.

use super::kind::AlterSequence;
use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast::{self, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The command behind the words ALTER SEQUENCE.
pub(super) fn alter_sequence(text: &str, tokens: &[TokenWithSpan]) -> Result<AlterSequence> {
    let mut at = 0;
    let if_exists = words(tokens, 0, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    // The name and the options up to RESTART / OWNED / RENAME go through the grammar of CREATE SEQUENCE.
    let mut create = Vec::with_capacity(tokens.len() + 2);
    let mut restart = None;
    let mut owned_by = None;
    let mut rename = None;
    let span = tokens
        .first()
        .map(|t| t.span)
        .unwrap_or_else(sqlparser::tokenizer::Span::empty);
    for (word, keyword) in [("CREATE", Keyword::CREATE), ("SEQUENCE", Keyword::SEQUENCE)] {
        create.push(TokenWithSpan {
            token: Token::Word(Word {
                value: word.to_owned(),
                quote_style: None,
                keyword,
            }),
            span,
        });
    }
    let end_error = |at: usize| match tokens.get(at) {
        Some(token) => error_at_token(text, token),
        None => error_at_token(text, &TokenWithSpan::new_eof()),
    };
    while let Some(token) = tokens.get(at) {
        if is_word(Some(token), "restart") {
            at += 1;
            if is_word(tokens.get(at), "with") {
                at += 1;
            }
            let minus = matches!(tokens.get(at).map(|t| &t.token), Some(Token::Minus));
            if minus {
                at += 1;
            }
            restart = match tokens.get(at).map(|t| &t.token) {
                Some(Token::Number(digits, _)) => {
                    let value: i64 = digits.parse().map_err(|_| end_error(at))?;
                    at += 1;
                    Some(Some(if minus { -value } else { value }))
                }
                _ if minus => return Err(end_error(at)),
                _ => Some(None),
            };
        } else if words(tokens, at, &["owned", "by"]) || words(tokens, at, &["rename", "to"]) {
            let owned = is_word(tokens.get(at), "owned");
            at += 2;
            let mut parts = Vec::new();
            loop {
                match tokens.get(at).map(|t| &t.token) {
                    Some(Token::Word(word)) => parts.push(word.clone().into_ident(tokens[at].span)),
                    _ => return Err(end_error(at)),
                }
                at += 1;
                if matches!(tokens.get(at).map(|t| &t.token), Some(Token::Period)) {
                    at += 1;
                } else {
                    break;
                }
            }
            if owned {
                owned_by = Some(ast::ObjectName::from(parts));
            } else {
                rename = parts.pop();
            }
        } else if words(tokens, at, &["set", "schema"]) || words(tokens, at, &["owner", "to"]) {
            return Err(SqlError::unsupported(
                "ALTER SEQUENCE SET SCHEMA / OWNER TO",
            ));
        } else {
            create.push(token.clone());
            at += 1;
        }
    }
    super::sequence_options::sort_all(&mut create);
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(create);
    let statement = parser
        .parse_statement()
        .map_err(|error| super::position::parse_error(text, &error, &parser.peek_token()))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(error_at_token(text, &rest));
    }
    let Statement::CreateSequence {
        name,
        mut sequence_options,
        data_type,
        ..
    } = statement
    else {
        return Err(end_error(0));
    };
    let options = std::mem::take(&mut sequence_options);
    Ok(AlterSequence {
        if_exists,
        name,
        restart,
        data_type,
        options,
        owned_by,
        rename,
    })
}
