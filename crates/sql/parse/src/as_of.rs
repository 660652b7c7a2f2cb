//! AS OF: the past that a statement reads.
//!
//! `AS OF 'time or restore point'`, `AS OF TIMESTAMP '...'`, `AS OF SYSTEM TIME '...'`, or a parameter in the place of
//! the text. It stands at the end of a query that is the statement, or EXPLAIN's, PREPARE's or COPY's; or, as other
//! products have it, behind FROM and in front of WHERE and what follows that. Wherever it stands it speaks for the
//! whole statement, so it is refused where it looks as if it spoke for a part: behind one of several tables, in one
//! query of a UNION, in a subquery.

use crate::ast::{CopySource, SelectStmt, Stmt};

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

/// What a statement, or the query in it, is as of.
pub(crate) fn of_stmt(stmt: &Stmt, text: &str) -> Option<AsOf> {
    match stmt {
        Stmt::Select(query) => of_query(query, text),
        Stmt::Prepare(prepare) => of_stmt(&prepare.query, text),
        Stmt::Explain(explain) => of_stmt(&explain.query, text),
        Stmt::Copy(copy) => match &copy.source {
            CopySource::Query(query) => of_stmt(query, text),
            CopySource::Relation { .. } => None,
        },
        _ => None,
    }
}

fn of_query(query: &SelectStmt, text: &str) -> Option<AsOf> {
    let clause = query.as_of.as_deref()?;
    let point = match (clause.text(), clause.parameter()) {
        (Some(text), _) => AsOfPoint::Text(text.to_owned()),
        (None, number) => AsOfPoint::Parameter((number? as usize).checked_sub(1)?),
    };
    Some(AsOf {
        point,
        is_time: clause.is_time,
        position: clause.location.character(text)?,
    })
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
