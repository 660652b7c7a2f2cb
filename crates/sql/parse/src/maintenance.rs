//! VACUUM and ANALYZE: which tables, which columns.

use super::fold;
use super::index_commands::parsed;
use super::kind::StatementKind;
use super::position::error_at_token;
use super::rewrite::is_word;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::names::parse_bool;
use logstead_types::SqlState;
use sqlparser::ast::ObjectName;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// VACUUM, ANALYZE.
#[derive(Clone, Debug)]
pub struct Maintain {
    /// VACUUM was said.
    pub vacuum: bool,
    /// Statistics are to be gathered.
    pub analyze: bool,
    /// Tables with the columns that are named; none are all.
    pub targets: Vec<(ObjectName, Vec<String>)>,
}

impl Maintain {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        if self.vacuum { "VACUUM" } else { "ANALYZE" }
    }
}

/// VACUUM or ANALYZE, if it is one.
pub(super) fn maintenance(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let vacuum = is_word(tokens.first(), "vacuum");
    if !vacuum && !is_analyze(tokens.first()) {
        return Ok(None);
    }
    let mut found = Maintain {
        vacuum,
        analyze: !vacuum,
        targets: Vec::new(),
    };
    let mut at = 1;
    if matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen)) {
        at = options(text, tokens, &mut found)?;
    } else {
        if vacuum {
            for word in ["full", "freeze"] {
                at += usize::from(is_word(tokens.get(at), word));
            }
        }
        at += usize::from(is_word(tokens.get(at), "verbose"));
        if vacuum && is_analyze(tokens.get(at)) {
            found.analyze = true;
            at += 1;
        }
    }
    let rest = tokens.get(at..).unwrap_or_default();
    if rest.first().is_some_and(|t| t.token != Token::EOF) {
        found.targets = parsed(text, rest, |p| p.parse_comma_separated(target))?;
    }
    if !found.analyze && found.targets.iter().any(|(_, columns)| !columns.is_empty()) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "ANALYZE option must be specified when a column list is provided",
        ));
    }
    Ok(Some(StatementKind::Maintain(Box::new(found))))
}

fn is_analyze(token: Option<&TokenWithSpan>) -> bool {
    is_word(token, "analyze") || is_word(token, "analyse")
}

fn target(
    p: &mut Parser<'_>,
) -> std::result::Result<(ObjectName, Vec<String>), sqlparser::parser::ParserError> {
    let name = p.parse_object_name(false)?;
    let mut columns = Vec::new();
    if p.consume_token(&Token::LParen) {
        let named = p.parse_comma_separated(Parser::parse_identifier)?;
        p.expect_token(&Token::RParen)?;
        columns = named.iter().map(fold).collect();
    }
    Ok((name, columns))
}

/// The options in parentheses; gives the place behind them.
fn options(text: &str, tokens: &[TokenWithSpan], found: &mut Maintain) -> Result<usize> {
    let tag = found.tag();
    let (mut full, mut toast) = (false, true);
    let mut at = 2;
    loop {
        let Some(token) = tokens.get(at) else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "syntax error at end of input",
            ));
        };
        let Token::Word(word) = &token.token else {
            return Err(error_at_token(text, token));
        };
        let option = word.value.to_lowercase();
        at += 1;
        let mut value = None;
        if let Some(next) = tokens.get(at)
            && !matches!(next.token, Token::Comma | Token::RParen)
        {
            value = Some(match &next.token {
                Token::Word(word) => word.value.to_lowercase(),
                Token::Number(digits, _) => digits.clone(),
                Token::SingleQuotedString(text) => text.to_lowercase(),
                Token::Minus | Token::Plus => {
                    let sign = if next.token == Token::Minus { "-" } else { "" };
                    at += 1;
                    match tokens.get(at) {
                        Some(TokenWithSpan {
                            token: Token::Number(digits, _),
                            ..
                        }) => format!("{sign}{digits}"),
                        Some(other) => return Err(error_at_token(text, other)),
                        None => {
                            return Err(SqlError::new(
                                SqlState::SYNTAX_ERROR,
                                "syntax error at end of input",
                            ));
                        }
                    }
                }
                _ => return Err(error_at_token(text, next)),
            });
            at += 1;
        }
        let known = match option.as_str() {
            "verbose" | "skip_locked" => true,
            "analyze"
            | "analyse"
            | "full"
            | "freeze"
            | "disable_page_skipping"
            | "process_toast"
            | "truncate" => found.vacuum,
            "index_cleanup" | "parallel" => {
                value = None;
                found.vacuum
            }
            _ => false,
        };
        if !known {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized {tag} option \"{option}\""),
            ));
        }
        let on = match &value {
            None => true,
            Some(value) => parse_bool(value).ok_or_else(|| {
                SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("{option} requires a Boolean value"),
                )
            })?,
        };
        if option.starts_with("analy") {
            found.analyze = on;
        }
        full = if option == "full" { on } else { full };
        toast = if option == "process_toast" { on } else { toast };
        match tokens.get(at).map(|t| &t.token) {
            Some(Token::Comma) => at += 1,
            Some(Token::RParen) if full && !toast => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "PROCESS_TOAST required with VACUUM FULL",
                ));
            }
            Some(Token::RParen) => return Ok(at + 1),
            _ => {
                return Err(match tokens.get(at) {
                    Some(token) => error_at_token(text, token),
                    None => SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input"),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{StatementKind, parse};

    fn said(text: &str) -> (bool, bool, Vec<(String, Vec<String>)>) {
        let parsed = parse(text).unwrap().remove(0);
        let StatementKind::Maintain(found) = parsed.kind else {
            panic!("{text}");
        };
        let targets = found.targets.iter();
        let targets = targets.map(|(name, columns)| (name.to_string(), columns.clone()));
        (found.vacuum, found.analyze, targets.collect())
    }

    #[test]
    fn what_is_named_and_what_is_asked_for() {
        assert_eq!(said("analyze"), (false, true, vec![]));
        assert_eq!(said("vacuum full freeze verbose"), (true, false, vec![]));
        let t = |columns: &[&str]| {
            let columns = columns.iter().map(|c| (*c).to_owned()).collect();
            ("s.t".to_owned(), columns)
        };
        assert_eq!(
            said("ANALYZE VERBOSE s.t (a, \"B\"), s.t"),
            (false, true, vec![t(&["a", "B"]), t(&[])])
        );
        assert_eq!(
            said("VACUUM (FULL, ANALYZE true, PARALLEL 2) s.t"),
            (true, true, vec![t(&[])])
        );
        assert_eq!(
            said("VACUUM (ANALYZE off) s.t"),
            (true, false, vec![t(&[])])
        );
        for (wrong, code) in [
            ("analyze (full)", "42601"),
            ("vacuum (parallel x, nonsense)", "42601"),
            ("vacuum (verbose maybe)", "42601"),
            ("vacuum t (a)", "0A000"),
            ("analyze t x", "42601"),
        ] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{wrong}");
        }
    }
}
