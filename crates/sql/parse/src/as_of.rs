//! AS OF: the past that a statement reads.
//!
//! `AS OF 'time or restore point'`, `AS OF TIMESTAMP '...'`, `AS OF SYSTEM TIME '...'`, or a parameter in the place of the text. It stands at the end of a query that is the statement, or EXPLAIN's,
//! PREPARE's or COPY's; or, as other products have it, behind FROM and in front of WHERE and what follows that. Wherever it stands it speaks for the whole statement, so it is refused where it looks as
//! if it spoke for a part: behind one of several tables, in one query of a UNION, in a subquery. It is taken out of the tokens, because the grammar library does not know it.

use super::kind::StatementKind;
use super::position::position_of;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast::{self, CopySource};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What the clause says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsOf {
    /// What it names.
    pub point: AsOfPoint,
    /// It says that this is a time, not the name of a restore point.
    pub is_time: bool,
    /// Where in the text it says so.
    pub position: usize,
}

/// The point of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOfPoint {
    /// By a text.
    Text(String),
    /// By a parameter, counted from 0.
    Parameter(usize),
}

/// What may come behind the clause: then it stood behind FROM.
const BEHIND_FROM: [&str; 4] = ["where", "group", "having", "window"];
/// The same of what belongs to a whole query.
const BEHIND_ALL: [&str; 5] = ["order", "limit", "offset", "fetch", "for"];
/// A query that has parts.
const OPERATIONS: [&str; 3] = ["union", "intersect", "except"];
/// Beginnings of statements that have the clause at their end.
const BEGINNINGS: [&str; 6] = ["select", "with", "values", "table", "explain", "prepare"];

/// More parameters than this there are not.
const PARAMETERS_MAX: usize = 65_535;

/// 0A000: there, it does not speak for the statement.
pub(super) fn not_there() -> SqlError {
    SqlError::unsupported("AS OF here").hint(
        "A SELECT, VALUES or TABLE that is a statement may end with it, and reads the whole database as of then. SET logstead.as_of = '...' has all that follows do so.",
    )
}

/// Takes the clause out of a statement that may have it, if it has one.
pub(super) fn take(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Option<AsOf> {
    let opens = |at: usize| tokens.get(at).is_some_and(|t| t.token == Token::LParen);
    // COPY has its query in parentheses.
    let wanted = if is_word(tokens.first(), "copy") && opens(1) {
        1
    } else if opens(0) || BEGINNINGS.iter().any(|word| is_word(tokens.first(), word)) {
        0
    } else {
        return None;
    };
    let mut depth = 0_usize;
    let mut found = None;
    let mut has_parts = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => {
                depth = depth.saturating_sub(1);
                if depth < wanted {
                    break;
                }
            }
            _ if depth != wanted => {}
            _ if found.is_none() && words(tokens, at, &["as", "of"]) => {
                found = clause(text, tokens, at).map(|(clause, end)| (clause, at, end));
            }
            _ => has_parts |= OPERATIONS.iter().any(|word| is_word(Some(token), word)),
        }
    }
    let (clause, at, end) = found?;
    let follows = |words: &[&str]| words.iter().any(|word| is_word(tokens.get(end), word));
    let ends = match tokens.get(end) {
        None => wanted == 0,
        Some(token) => wanted == 1 && token.token == Token::RParen,
    };
    if ends || follows(&BEHIND_ALL) || (follows(&BEHIND_FROM) && !has_parts) {
        tokens.drain(at..end);
        return Some(clause);
    }
    None
}

/// The clause that begins at `at`, with where it ends; none if AS OF is an alias, or names no point.
fn clause(text: &str, tokens: &[TokenWithSpan], at: usize) -> Option<(AsOf, usize)> {
    let mut end = at + 2;
    let mut is_time = true;
    if words(tokens, end, &["system", "time"]) {
        end += 2;
    } else if is_word(tokens.get(end), "timestamptz") {
        end += 1;
    } else if is_word(tokens.get(end), "timestamp") {
        end += 1;
        if words(tokens, end + 1, &["time", "zone"])
            && ["with", "without"]
                .iter()
                .any(|w| is_word(tokens.get(end), w))
        {
            end += 3;
        }
    } else {
        is_time = false;
    }
    let token = tokens.get(end)?;
    let point = match &token.token {
        Token::SingleQuotedString(point) | Token::EscapedStringLiteral(point) => {
            AsOfPoint::Text(point.clone())
        }
        Token::Placeholder(name) => {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            let index = number.checked_sub(1)?;
            (index < PARAMETERS_MAX).then_some(AsOfPoint::Parameter(index))?
        }
        _ => return None,
    };
    let position = position_of(text, token.span.start);
    let clause = AsOf {
        point,
        is_time,
        position,
    };
    Some((clause, end + 1))
}

/// Is a statement that had the clause one that can read the past?
pub(super) fn check(statement: &ast::Statement, kind: &StatementKind) -> Result<()> {
    use ast::Statement as S;
    let query = match (kind, statement) {
        (StatementKind::Query, S::Query(query)) => query,
        (StatementKind::Explain, S::Explain { statement, .. })
        | (StatementKind::Prepared, S::Prepare { statement, .. }) => match &**statement {
            S::Query(query) => query,
            _ => return Err(not_there()),
        },
        (
            StatementKind::Copy(_),
            S::Copy {
                source: CopySource::Query(query),
                to: true,
                ..
            },
        ) => query,
        _ => return Err(not_there()),
    };
    match query.locks.is_empty() {
        true => Ok(()),
        false => Err(SqlError::unsupported("a locking clause with AS OF")
            .hint("Rows of the past cannot be locked.")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use logstead_types::SqlState;

    fn as_of(text: &str) -> Option<AsOf> {
        let parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        parsed[0].as_of.clone()
    }

    fn refused(text: &str) -> SqlState {
        match parse(text) {
            Ok(parsed) => panic!("{text}: {:?}", parsed[0].as_of),
            Err(error) => error.code(),
        }
    }

    #[test]
    fn it_ends_what_reads() {
        let text = |point: &str, is_time, position| {
            Some(AsOf {
                point: AsOfPoint::Text(point.to_owned()),
                is_time,
                position,
            })
        };
        assert_eq!(as_of("SELECT 1 AS OF 'then'"), text("then", false, 16));
        assert_eq!(as_of("TABLE t as of 'it''s'"), text("it's", false, 15));
        assert_eq!(
            as_of("VALUES (1) AS OF SYSTEM TIME '-1s'"),
            text("-1s", true, 30)
        );
        for query in [
            "WITH a AS (SELECT 1) SELECT * FROM a AS OF TIMESTAMP '2026-01-31'",
            "(SELECT 1) UNION SELECT 2 AS OF TIMESTAMPTZ '2026-01-31'",
            "SELECT a FROM t ORDER BY a LIMIT 3 AS OF TIMESTAMP WITH TIME ZONE '2026-01-31'",
            "SELECT a FROM t AS OF TIMESTAMP '2026-01-31' WHERE a > 1 ORDER BY a",
            "SELECT a FROM t UNION SELECT 1 AS OF TIMESTAMP '2026-01-31' ORDER BY 1",
            "EXPLAIN (ANALYZE) SELECT a FROM t AS OF TIMESTAMP '2026-01-31'",
            "COPY (SELECT a FROM t AS OF TIMESTAMP '2026-01-31') TO STDOUT",
            "PREPARE p AS SELECT a FROM t AS OF TIMESTAMP '2026-01-31'",
        ] {
            let found = as_of(query).unwrap_or_else(|| panic!("{query}"));
            assert!(found.is_time, "{query}");
            assert_eq!(found.point, AsOfPoint::Text("2026-01-31".to_owned()));
        }
        let parameter = as_of("SELECT $1 AS OF $2").expect("a parameter");
        assert_eq!(parameter.point, AsOfPoint::Parameter(1));
    }

    #[test]
    fn a_name_is_a_name() {
        for text in [
            "SELECT 1 AS of",
            "SELECT 1 AS of, 'x' AS of",
            "SELECT of.a AS of FROM t AS of WHERE of.a = 'x'",
            "SELECT 1 AS of UNION SELECT 2",
            "SELECT 1 AS of -- 'x'",
        ] {
            assert_eq!(as_of(text), None, "{text}");
        }
    }

    #[test]
    fn elsewhere_it_is_refused() {
        for text in [
            "SELECT * FROM (SELECT 1 AS OF 'x') q",
            "(SELECT 1 AS OF 'x')",
            "SELECT * FROM t AS OF 'x' JOIN u USING (a)",
            "SELECT * FROM t AS OF 'x', u",
            "SELECT * FROM t AS OF 'x' WHERE a = 1 UNION SELECT * FROM t",
            "SELECT 1 AS OF 'x' AS OF 'y'",
            "SELECT 1 AS OF now()",
            "SELECT * FROM t AS OF 'x' FOR UPDATE",
            "SELECT 1 INTO u AS OF 'x'",
            "CREATE TABLE u AS SELECT * FROM t AS OF 'x'",
            "CREATE VIEW v AS SELECT * FROM t AS OF 'x'",
            "INSERT INTO t SELECT * FROM t AS OF 'x'",
            "EXPLAIN DELETE FROM t AS OF 'x'",
            "DECLARE c CURSOR FOR SELECT * FROM t AS OF 'x'",
            "COPY (SELECT 1) TO STDOUT AS OF 'x'",
            "COPY t TO STDOUT AS OF 'x'",
        ] {
            assert_eq!(refused(text), SqlState::FEATURE_NOT_SUPPORTED, "{text}");
        }
        // What is wrong besides is told as ever.
        assert_eq!(
            refused("SELECT FRM AS OF 'x'  ,"),
            SqlState::FEATURE_NOT_SUPPORTED
        );
        assert_eq!(refused("SELECT 1 + AS OF 'x'"), SqlState::SYNTAX_ERROR);
    }
}
