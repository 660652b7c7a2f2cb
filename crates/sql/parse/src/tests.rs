use super::*;
use crate::lowered as ast;
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
        let mut statement =
            StatementTree::into_statement(parse("select 1 + (select 2)")?.remove(0).statement);
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

#[test]
fn create_table_as_takes_bare_names_and_no_data() {
    let parsed = parse("create table d (q, \"R\") as select 1, 2 with no data").unwrap();
    let ast::Statement::CreateTable(table) = &**parsed[0].statement else {
        panic!("not a table");
    };
    assert!(table.no_data && table.columns.is_empty());
    let ast::SetExpr::Select(select) = &*table.query.as_ref().unwrap().body else {
        panic!("not a select");
    };
    let [
        ast::TableWithJoins {
            relation: ast::TableFactor::Derived { alias, .. },
            ..
        },
    ] = select.from.as_slice()
    else {
        panic!("{select:?}");
    };
    let columns = &alias.as_ref().unwrap().columns;
    let names: Vec<&str> = columns.iter().map(|c| c.name.value.as_str()).collect();
    assert_eq!(names, ["q", "R"]);
    let parsed = parse("create table d (q int, r text)").unwrap();
    assert!(
        matches!(&**parsed[0].statement, ast::Statement::CreateTable(t) if t.columns.len() == 2)
    );
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
fn what_is_not_supported_is_refused_by_its_name() {
    let refused = |text: &str| match parse(text).unwrap().remove(0).kind {
        StatementKind::Unsupported(name) => name,
        kind => panic!("{text}: {kind:?}"),
    };
    for (text, name) in [
        ("alter table t cluster on i", "ALTER TABLE CLUSTER ON"),
        (
            "alter table t set without cluster",
            "ALTER TABLE CLUSTER ON",
        ),
        ("alter sequence q set unlogged", "ALTER SEQUENCE SET LOGGED"),
        (
            "create table if not exists s.t of pair",
            "CREATE TABLE OF a type",
        ),
    ] {
        assert_eq!(refused(text), name, "{text}");
    }
    // PostgreSQL's syntax errors stay what they are.
    for text in [
        "drop operator",
        "drop operator equals",
        "drop operator === ()",
        "drop operator = (, int4)",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    // The words stand for themselves elsewhere.
    for text in [
        "create schema s",
        "create table t as select 1 as execute",
        "create table \"of\" (\"of\" int)",
        "create index i on only t (a)",
        "create unique index i on t (a) nulls not distinct",
        "alter table t set (fillfactor = 70)",
    ] {
        let parsed = parse(text).unwrap().remove(0);
        assert!(
            !matches!(parsed.kind, StatementKind::Unsupported(_)),
            "{text}"
        );
    }
}
