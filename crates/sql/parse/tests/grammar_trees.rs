//! What the grammar makes of statements: trees, places, depth, references by number, AS OF.

use logstead_sql_parse::ast::*;
use logstead_sql_parse::grammar::{parse, parse_expr, parse_stored_expr, parse_stored_type_name};
use logstead_types::SqlState;

fn one(text: &str) -> RawStmt {
    let mut all = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn select(text: &str) -> SelectStmt {
    match one(text).stmt {
        Stmt::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

fn expr(text: &str) -> Expr {
    parse_expr(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// An expression with parentheses around each operator's operands.
fn shape(expr: &Expr) -> String {
    match expr {
        Expr::Const(Const {
            value: Value::Integer(number),
            ..
        }) => number.to_string(),
        Expr::Const(node) => format!("{:?}", node.value),
        Expr::ColumnRef(node) => node.fields.join("."),
        Expr::AExpr(node) => {
            let left = node
                .lexpr
                .as_ref()
                .map(|left| shape(left) + " ")
                .unwrap_or_default();
            format!("({left}{} {})", node.op.name, shape(&node.rexpr))
        }
        Expr::BoolExpr(node) => {
            let args: Vec<String> = node.args.iter().map(shape).collect();
            format!("{:?}[{}]", node.op, args.join(", "))
        }
        Expr::TypeCast(node) => format!("({}::{:?})", shape(&node.arg), node.type_name.name),
        Expr::NullTest(node) => format!(
            "({} is{} null)",
            shape(&node.arg),
            if node.negated { " not" } else { "" }
        ),
        Expr::Like(node) => format!("({} like {})", shape(&node.expr), shape(&node.pattern)),
        Expr::Between(node) => format!(
            "({} between {} and {})",
            shape(&node.expr),
            shape(&node.low),
            shape(&node.high)
        ),
        Expr::FuncCall(node) => {
            let args: Vec<String> = node.args.iter().map(|arg| shape(&arg.value)).collect();
            format!("{:?}({})", node.funcname, args.join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_in_postgresql() {
    for (text, expected) in [
        ("1 + 2 * 3 ^ 4", "(1 + (2 * (3 ^ 4)))"),
        ("2 ^ 3 ^ 4", "((2 ^ 3) ^ 4)"),
        ("- a ^ 2", "((- a) ^ 2)"),
        ("-5", "-5"),
        ("a - -5", "(a - -5)"),
        ("a || b + c", "(a || (b + c))"),
        ("NOT a = b AND c OR d", "Or[And[Not[(a = b)], c], d]"),
        ("a AND b AND (c AND d)", "And[a, b, And[c, d]]"),
        ("(a AND b) AND c", "And[a, b, c]"),
        ("a < b IS NULL", "((a < b) is null)"),
        ("a IS NULL = b", "((a is null) = b)"),
        ("a = b LIKE c", "(a = (b like c))"),
        ("a BETWEEN b AND c AND d", "And[(a between b and c), d]"),
        ("a + NOT b = c", "(a + Not[(b = c)])"),
        ("@ a || b", "((@ a) || b)"),
        ("a OPERATOR(s.+) b * c", "(a + (b * c))"),
        ("a.b.c", "a.b.c"),
    ] {
        assert_eq!(shape(&expr(text)), expected, "{text}");
    }
    for text in [
        "a = b = c",
        "a < b > c",
        "a LIKE b LIKE c",
        "a BETWEEN 1 AND 2 BETWEEN 3 AND 4",
        "a IS DISTINCT FROM b IS NULL",
    ] {
        assert!(parse_expr(text).is_err(), "{text}");
    }
    assert!(parse_expr("a IS NULL IS NULL").is_ok());
}

#[test]
fn nodes_know_their_places() {
    let text = "SELECT ä, f(x) + 10 FROM t WHERE a = ANY ($1)";
    let query = select(text);
    let SelectBody::Select(core) = &query.body else {
        panic!("{query:?}");
    };
    let Some(Expr::AExpr(sum)) = &core.target_list[1].val else {
        panic!("{core:?}");
    };
    assert_eq!(sum.location.byte(), text.find('+'));
    assert_eq!(sum.rexpr.location().byte(), text.find("10"));
    let place = core.target_list[1].val.as_ref().map(Expr::location);
    assert_eq!(place.and_then(Location::byte), text.find("f(x)"));
    assert_eq!(place.and_then(|place| place.character(text)), Some(11));
    let Some(Expr::AExpr(any)) = &core.where_clause else {
        panic!("{core:?}");
    };
    assert_eq!(
        (any.kind, any.location.byte()),
        (AExprKind::OpAny, text.find('='))
    );
}

#[test]
fn statements_begin_and_end() {
    let text = ";; SELECT 1 ; -- c\n  BEGIN;\n/* x */ INSERT INTO t VALUES (1) /* y */ ;;";
    let all = parse(text).expect("three statements");
    let parts: Vec<&str> = all.iter().map(|one| &text[one.start..one.end]).collect();
    assert_eq!(parts, ["SELECT 1", "BEGIN", "INSERT INTO t VALUES (1)"]);
    assert_eq!(parse(" -- nothing\n;").expect("none"), []);
    let Stmt::Prepare(prepare) = one("PREPARE p AS SELECT 1").stmt else {
        panic!("PREPARE");
    };
    assert_eq!(prepare.query_range, (13, 21));
}

#[test]
fn parentheses_hold_queries_rows_and_expressions() {
    for text in [
        "SELECT ((SELECT 1))",
        "SELECT ((SELECT 1) + 1)",
        "SELECT ((SELECT 1) UNION SELECT 2)",
        "SELECT (((SELECT 1)) ORDER BY 1)",
        "SELECT 1 IN ((SELECT 1), 2)",
        "SELECT 1 IN (((SELECT 1)))",
        "SELECT ((1, 2), 3) = ((1, 2), (SELECT 3))",
        "SELECT (1, 2) OVERLAPS (ROW(3, 4))",
        "SELECT (values) FROM t",
        "SELECT * FROM ((a JOIN b USING (x)) JOIN c ON true) AS j",
        "SELECT * FROM ((SELECT 1) UNION (SELECT 2)) AS q",
        "SELECT * FROM (((SELECT 1) AS x CROSS JOIN y))",
        "((SELECT 1) UNION SELECT 2) ORDER BY 1 LIMIT 2",
    ] {
        match text {
            "SELECT (1, 2) OVERLAPS (ROW(3, 4))" => assert!(parse(text).is_err()),
            _ => assert_eq!(parse(text).map(|all| all.len()), Ok(1), "{text}"),
        }
    }
    let SelectBody::Select(core) = select("SELECT ((SELECT 1) + 1)").body else {
        panic!("SELECT");
    };
    assert!(matches!(&core.target_list[0].val, Some(Expr::AExpr(_))));
}

/// Text of so many copies with something between and around them.
fn repeated(front: &str, part: &str, count: usize, middle: &str, back: &str) -> String {
    format!(
        "{}{middle}{}",
        front.repeat(count),
        format!("{part}{back}").repeat(count)
    )
}

#[test]
fn chains_may_be_of_any_length() {
    for (text, is_deep) in [
        (format!("SELECT 1{}", " + 1".repeat(100_000)), true),
        (
            format!("SELECT true{}", " AND true OR false".repeat(50_000)),
            false,
        ),
        (format!("SELECT true{}", " AND true".repeat(100_000)), false),
        (
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(10_000)),
            true,
        ),
        (format!("SELECT '1'{}", "::text".repeat(100_000)), true),
        (
            format!("SELECT * FROM t{}", " CROSS JOIN t".repeat(20_000)),
            true,
        ),
        (
            format!("SELECT * FROM t{}", " JOIN t ON true".repeat(20_000)),
            true,
        ),
        (format!("VALUES (1){}", ", (1)".repeat(100_000)), false),
    ] {
        let statement = one(&text);
        assert_eq!(statement.levels > 5_000, is_deep, "{}", &text[..40]);
        let copy = statement.clone();
        assert!(copy == statement);
        assert!(format!("{copy:?}").len() > text.len());
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = 3_000;
    let nested = [
        repeated("(", "", deep, "1", ")"),
        repeated("NOT ", "", deep, "true", ""),
        repeated("- ", "", deep, "x", ""),
        repeated("f(", "", deep, "1", ")"),
        repeated("CASE WHEN true THEN ", "", deep, "1", " END"),
        repeated("(SELECT ", "", deep, "1", ")"),
        repeated("ARRAY[", "", deep, "1", "]"),
        repeated("CAST(", "", deep, "1", " AS int)"),
    ];
    for text in &nested {
        let statement = one(&format!("SELECT {text}"));
        assert!(statement.clone() == statement);
    }
    let joins = repeated("(a JOIN ", "", 3_000, "b", " ON true)");
    assert!(parse(&format!("SELECT * FROM {joins}")).is_ok());
    for text in [
        repeated("(", "", 50_000, "1", ")"),
        repeated("NOT ", "", 50_000, "true", ""),
        repeated("(SELECT ", "", 50_000, "1", ")"),
        repeated("f(", "", 50_000, "1", ")"),
        repeated("ARRAY[", "", 50_000, "1", "]"),
    ] {
        let error = parse(&format!("SELECT {text}")).expect_err("too deep");
        assert_eq!(error.code(), SqlState::STATEMENT_TOO_COMPLEX);
    }
    // What never ends is refused where it ends, at once.
    assert!(parse(&format!("SELECT {}", "(".repeat(9_000))).is_err());
}

#[test]
fn stored_texts_name_objects_by_number() {
    let stored = parse_stored_expr("\"\u{3}123:f\"(a::\"\u{2}456\")").expect("a stored text");
    let Expr::FuncCall(call) = &stored else {
        panic!("{stored:?}");
    };
    assert_eq!(
        call.funcname,
        FuncName::Stored {
            oid: 123,
            called: "f".into()
        }
    );
    let Expr::TypeCast(cast) = &call.args[0].value else {
        panic!("{call:?}");
    };
    assert_eq!(cast.type_name.name, TypeRef::Stored(456));
    let name = parse_stored_type_name("\"\u{2}7\"[]").expect("a stored type");
    assert_eq!(
        (name.name, name.array_bounds),
        (TypeRef::Stored(7), vec![None])
    );
    let views =
        logstead_sql_parse::grammar::parse_stored("SELECT x FROM \"\u{1}2\" AS v").expect("a view");
    assert!(format!("{views:?}").contains("Source(2)"));
    for text in ["\"\u{3}123:f\"(1)", "1::\"\u{2}456\""] {
        let error = parse_expr(text).expect_err("a mark");
        assert_eq!(error.code(), SqlState::FEATURE_NOT_SUPPORTED);
    }
}

/// The point of a statement's AS OF, and whether it is a time.
fn as_of(text: &str) -> Option<(String, bool)> {
    let query = match one(text).stmt {
        Stmt::Select(query) => *query,
        Stmt::Explain(explain) => match explain.query {
            Stmt::Select(query) => *query,
            other => panic!("{other:?}"),
        },
        Stmt::Prepare(prepare) => match prepare.query {
            Stmt::Select(query) => *query,
            other => panic!("{other:?}"),
        },
        Stmt::Copy(copy) => match copy.source {
            CopySource::Query(query) => match *query {
                Stmt::Select(query) => *query,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    query.as_of.map(|clause| {
        let point = match clause.parameter() {
            Some(number) => format!("${number}"),
            None => clause.text().unwrap_or_default().to_owned(),
        };
        (point, clause.is_time)
    })
}

#[test]
fn as_of_speaks_for_a_statement() {
    let told = |point: &str, is_time| Some((point.to_owned(), is_time));
    assert_eq!(as_of("SELECT 1 AS OF 'then'"), told("then", false));
    assert_eq!(as_of("TABLE t as of 'it''s'"), told("it's", false));
    assert_eq!(
        as_of("VALUES (1) AS OF SYSTEM TIME '-1s'"),
        told("-1s", true)
    );
    assert_eq!(as_of("SELECT $1 AS OF $2"), told("$2", false));
    for text in [
        "WITH a AS (SELECT 1) SELECT * FROM a AS OF TIMESTAMP '2026-01-31'",
        "(SELECT 1) UNION SELECT 2 AS OF TIMESTAMPTZ '2026-01-31'",
        "SELECT a FROM t ORDER BY a LIMIT 3 AS OF TIMESTAMP WITH TIME ZONE '2026-01-31'",
        "SELECT a FROM t AS OF TIMESTAMP '2026-01-31' WHERE a > 1 ORDER BY a",
        "SELECT a FROM t UNION SELECT 1 AS OF TIMESTAMP '2026-01-31' ORDER BY 1",
        "EXPLAIN (ANALYZE) SELECT a FROM t AS OF TIMESTAMP '2026-01-31'",
        "COPY (SELECT a FROM t AS OF TIMESTAMP '2026-01-31') TO STDOUT",
        "PREPARE p AS SELECT a FROM t AS OF TIMESTAMP '2026-01-31'",
    ] {
        assert_eq!(as_of(text), told("2026-01-31", true), "{text}");
    }
    for text in [
        "SELECT 1 AS of",
        "SELECT 1 AS of, 'x' AS of",
        "SELECT of.a AS of FROM t AS of WHERE of.a = 'x'",
        "SELECT 1 AS of UNION SELECT 2",
        "SELECT 1 AS of -- 'x'",
    ] {
        assert_eq!(as_of(text), None, "{text}");
    }
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
        "SELECT * FROM t FOR SYSTEM_TIME AS OF 'x'",
    ] {
        let error = parse(text).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(error.code(), SqlState::FEATURE_NOT_SUPPORTED, "{text}");
    }
    let error = parse("SELECT 1 + AS OF 'x'").expect_err("no operand");
    assert_eq!(error.code(), SqlState::SYNTAX_ERROR);
}
