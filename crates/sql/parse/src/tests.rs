use super::*;
use crate::ast::{
    ConstraintKind, CreateAsQuery, Persistence, Stmt, TableElement, ViewCheckOption, table_like,
};
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

fn error(text: &str) -> (String, Option<usize>) {
    let error = parse(text).unwrap_err();
    (error.fields().message.clone(), error.fields().position)
}

#[test]
fn splits_statements_and_keeps_their_places() {
    let text = "select 1; ;\n select ';' -- x;\n;";
    let all = parse(text).unwrap();
    assert_eq!(
        all.iter()
            .map(|p| &text[p.start..p.end])
            .collect::<Vec<_>>(),
        ["select 1", "select ';'"]
    );
    assert!(parse("  -- nothing\n").unwrap().is_empty());
}

/// In time that grows with the text: as many names as here would be moved as often as there are statements.
#[test]
fn each_of_many_statements_has_the_names_cut_in_it() {
    let name = |i: usize| format!("{i:0>70}_{}", i % 3);
    let one = |i: usize| match i % 3 {
        0 => "select 1;".to_owned(),
        1 => format!("select 1 as \"{}\";", name(i)),
        _ => format!("select \"{}\" from \"{}\";;", name(i), name(i + 1)),
    };
    let text: String = (0..30_000).map(one).collect();
    let all = parse(&text).unwrap();
    assert_eq!(all.len(), 30_000);
    for (i, statement) in all.iter().enumerate() {
        let cut: Vec<_> = { statement.truncated.iter() }
            .map(|cut| cut.name.to_string())
            .collect();
        let expected: Vec<_> = (i..i + i % 3).map(name).collect();
        assert_eq!(cut, expected, "statement {i}");
    }
}

#[test]
fn syntax_errors_are_postgresql_s() {
    assert_eq!(
        error("selec 1"),
        ("syntax error at or near \"selec\"".into(), Some(1))
    );
    assert_eq!(
        error("select 1 +"),
        ("syntax error at end of input".into(), Some(11))
    );
    assert_eq!(
        error("select 'é', a form t"),
        ("syntax error at or near \"t\"".into(), Some(20))
    );
    assert_eq!(
        error("select 'abc"),
        (
            "unterminated quoted string at or near \"'abc\"".into(),
            Some(8)
        )
    );
    assert_eq!(
        error("select \"abc"),
        (
            "unterminated quoted identifier at or near \"\"abc\"".into(),
            Some(8)
        )
    );
    assert_eq!(
        error("insert into t values (1"),
        ("syntax error at end of input".into(), Some(24))
    );
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| format!("select {}1{}", "(".repeat(n), ")".repeat(n));
    let run = |text: String| {
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || parse(&text).map(|_| ()).map_err(|e| e.code()))
            .unwrap()
            .join()
            .unwrap()
    };
    assert_eq!(run(deep(30)), Ok(()));
    assert_eq!(run(deep(100_000)), Err(SqlState::STATEMENT_TOO_COMPLEX));
    assert_eq!(
        run(format!("select 1{}", "+1".repeat(100_000))),
        Err(SqlState::STATEMENT_TOO_COMPLEX)
    );
    assert_eq!(
        run(format!("select {}true", "not ".repeat(900))),
        Err(SqlState::STATEMENT_TOO_COMPLEX)
    );
    assert_eq!(
        run(format!("select true{}", " or true".repeat(9_000))),
        Ok(())
    );
    assert_eq!(
        run(format!("select true{}", " or true".repeat(11_000))),
        Err(SqlState::STATEMENT_TOO_COMPLEX)
    );
    assert_eq!(
        run(format!(
            "select * from t where a in (1{})",
            ",1".repeat(50_000)
        )),
        Ok(())
    );
}

/// Whoever goes through a tree stays on the session's stack: what binds a part of it meanwhile asks how much is left of
/// that one.
#[test]
fn whoever_visits_a_tree_stays_on_the_stack() {
    use logstead_fiber::{on_stack, stack_depth};
    use std::ops::ControlFlow;
    let visiting = on_stack(async {
        let mut statement = Stmt::clone(&parse("select 1 + (select 2)")?.remove(0).statement);
        let begun = stack_depth();
        let mut deepest = 0;
        let _all: ControlFlow<()> = ast::visit_expressions_mut(&mut statement, |_| {
            deepest = deepest.max(stack_depth().wrapping_sub(begun));
            ControlFlow::Continue(())
        });
        Ok::<usize, SqlError>(deepest)
    });
    let mut visiting = std::pin::pin!(visiting);
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(deepest) = visiting.as_mut().poll(&mut task) else {
        panic!("it waits for something");
    };
    let deepest = deepest.unwrap();
    assert!((1..1 << 20).contains(&deepest), "{deepest} bytes away");
}

#[test]
fn postgresql_syntax_the_grammar_lacks() {
    for text in [
        "vacuum analyze t",
        "select * from t for no key update",
        "copy t from stdin with (freeze on)",
        "insert into t overriding system value values (1)",
        "insert into t values (1) on conflict (a) where b > 1 do update set a = 1 where t.a > 1",
        "table t",
        "drop index concurrently if exists a",
        "alter sequence if exists s.t restart with -3 increment by 2 owned by a.b",
        "reindex table t",
        "select 1 where 'r' operator(pg_catalog.=) any (array['r', 'v'])",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

fn utility(text: &str) -> std::sync::Arc<StatementTree> {
    let statement = parse(text).unwrap().remove(0).statement;
    assert!(!statement.is_planned(), "{text}");
    statement
}

#[test]
fn create_table_as_takes_bare_names_and_no_data() {
    let made = utility("create table d (q, \"R\") as select 1, 2 with no data");
    let Stmt::CreateTableAs(create) = &**made else {
        panic!("{made:?}");
    };
    assert!(create.into.skip_data && !create.is_select_into);
    let names: Vec<&str> = create.into.col_names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["q", "R"]);
    let made = utility("create table d (q int, r text)");
    assert!(matches!(&**made, Stmt::Create(create) if create.table_elts.len() == 2));
}

#[test]
fn select_into_is_create_table_as() {
    let made = utility("select 1 as a into temp t union select 2");
    let Stmt::CreateTableAs(create) = &**made else {
        panic!("{made:?}");
    };
    assert_eq!(made.tag(), "SELECT INTO");
    assert_eq!(create.into.rel.persistence, Persistence::Temporary);
    let CreateAsQuery::Select(query) = &create.query else {
        panic!("{create:?}");
    };
    assert!(query.into_clause().is_none());
}

#[test]
fn global_is_told() {
    let is_global = |text: &str| match &**utility(text) {
        Stmt::Create(create) => create.global,
        Stmt::CreateTableAs(create) => create.into.global,
        other => panic!("{other:?}"),
    };
    assert!(is_global("CREATE GLOBAL TEMP TABLE t (a int)"));
    assert!(is_global("CREATE GLOBAL TEMP TABLE t AS SELECT 1"));
    assert!(!is_global("CREATE LOCAL TEMP TABLE t (a int)"));
}

#[test]
fn the_text_of_a_view_is_its_query() {
    for (before, query, behind) in [
        ("CREATE VIEW v AS", "SELECT 'é' AS a", "/* c */"),
        (
            "CREATE VIEW v AS",
            "(SELECT 1 AS a)",
            "WITH LOCAL CHECK OPTION",
        ),
        (
            "CREATE OR REPLACE VIEW v (a) AS",
            "((TABLE t))",
            "WITH CHECK OPTION",
        ),
        ("CREATE RECURSIVE VIEW v (a) AS", "VALUES (1)", ""),
        (
            "CREATE MATERIALIZED VIEW v AS",
            "SELECT 1 LIMIT (2)",
            "WITH NO DATA",
        ),
    ] {
        let text = format!("{before} /* é */ {query} {behind};");
        let (range, is_checked, skips) = match &**utility(&text) {
            Stmt::View(view) => {
                let is_checked = view.with_check_option != ViewCheckOption::None;
                (view.query_range, is_checked, false)
            }
            Stmt::CreateTableAs(create) => (create.query_range, false, create.into.skip_data),
            other => panic!("{text}: {other:?}"),
        };
        let (start, end) = range.bytes().unwrap();
        assert_eq!(&text[start..end], query, "{text}");
        assert_eq!(is_checked, behind.contains("CHECK"), "{text}");
        assert_eq!(skips, behind.contains("NO DATA"), "{text}");
    }
}

#[test]
fn columns_carry_all_that_is_said_of_them() {
    let text = "CREATE TABLE t (a text COMPRESSION lz4 NOT NULL COLLATE \"C\" UNIQUE NULLS NOT DISTINCT, \
                b int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s.\"Q\" CYCLE CACHE 5), \
                c int REFERENCES p ON DELETE SET NULL (c), \
                LIKE s.o INCLUDING ALL EXCLUDING INDEXES)";
    let made = utility(text);
    let Stmt::Create(create) = &**made else {
        panic!("{made:?}");
    };
    use TableElement::{Column, Like};
    let [Column(a), Column(b), Column(c), Like(like)] = create.table_elts.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(a.compression.as_deref(), Some("lz4"));
    assert_eq!(&*a.coll_clause.as_ref().unwrap().name[0], "C");
    let [null, unique] = a.constraints.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(null.kind, ConstraintKind::NotNull);
    assert!(matches!(&unique.kind, ConstraintKind::Unique(key) if key.nulls_not_distinct));
    let ConstraintKind::Identity {
        by_default: false,
        options,
    } = &b.constraints[0].kind
    else {
        panic!("{text}");
    };
    let names: Vec<&str> = options.iter().map(|option| &*option.name).collect();
    assert_eq!(names, ["sequence_name", "cycle", "cache"]);
    let ConstraintKind::Foreign { references, .. } = &c.constraints[0].kind else {
        panic!("{text}");
    };
    assert_eq!(&*references.del_set_cols[0], "c");
    assert_eq!(like.options, table_like::ALL & !table_like::INDEXES);
}

#[test]
fn cases_have_room_of_their_own() {
    let run = |text: String| parse(&text).map(|_| ()).map_err(|e| e.code());
    // Arms stand beside each other, however many.
    let arms = " when a = 1 and b then 2".repeat(2_000);
    assert_eq!(run(format!("select case{arms} else 3 end from t")), Ok(()));
    // What CASE contains counts for itself, what it is part of goes on where it was.
    let chain = "+ case when a = 1 then 2 end ".repeat(600);
    assert_eq!(
        run(format!("select 1 {chain} from t")),
        Err(SqlState::STATEMENT_TOO_COMPLEX)
    );
    let inside = "+1".repeat(600);
    assert_eq!(
        run(format!("select case when a then 1{inside} end from t")),
        Err(SqlState::STATEMENT_TOO_COMPLEX)
    );
    // A name like it opens nothing that parentheses do not close.
    assert_eq!(
        run("select (1) as case, (2) as end from t".to_owned()),
        Ok(())
    );
}

#[test]
fn junk_behind_numbers_is_placed_on_later_lines_too() {
    assert_eq!(
        error("select 1, 'é', 2\n,\n 'ü', 22, 3x"),
        (
            "trailing junk after numeric literal at or near \"3x\"".into(),
            Some(30)
        )
    );
}

#[test]
fn an_operator_that_is_dropped_has_its_arguments() {
    for text in [
        "drop operator",
        "drop operator equals",
        "drop operator === ()",
        "drop operator = (, int4)",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
