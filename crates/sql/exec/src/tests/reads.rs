//! Operators over literal rows and a small table.

use super::world::*;
use crate::{Execution, Progress, prepare};
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_func::{Function, FunctionImpl, Volatility, resolve_aggregate};
use logstead_sql_plan::expr::{Expr, Subquery, SubqueryKind};
use logstead_sql_plan::*;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, oid};
use std::sync::Arc;

const TWO: [SqlType; 2] = [INT, INT];
const FOUR: [SqlType; 4] = [INT, INT, INT, INT];

fn key(at: usize, desc: bool) -> SortKey {
    SortKey {
        expr: column(at, INT),
        desc,
        nulls_first: desc,
    }
}

fn sort(input: Plan, keys: Vec<SortKey>) -> Plan {
    plan(
        Node::Sort {
            input: Box::new(input),
            keys,
        },
        &TWO,
    )
}

fn limit(input: Plan, limit: i64, offset: i64) -> Plan {
    plan(
        Node::Limit {
            input: Box::new(input),
            limit: Some(big(limit)),
            offset: Some(big(offset)),
            ties: Vec::new(),
        },
        &TWO,
    )
}

fn null() -> Expr {
    Expr::Const(Datum::Null, INT)
}

fn with_null(mut rows: Vec<Vec<Expr>>) -> Plan {
    rows.push(vec![null(), int(0)]);
    values(rows)
}

#[test]
fn sort_limit_distinct_and_set_operations() {
    let world = World::new();
    let rows = || ints(&[(3, 1), (1, 2), (2, 3), (1, 4)]);
    assert_eq!(
        world.rows(sort(rows(), vec![key(0, false), key(1, true)]), &[]),
        ["1 4", "1 2", "2 3", "3 1"]
    );
    assert_eq!(
        world.rows(limit(sort(rows(), vec![key(0, true)]), 2, 1), &[]),
        ["2 3", "1 2"]
    );
    assert!(world.rows(limit(rows(), 0, 0), &[]).is_empty());
    let negative = world.run(limit(rows(), -1, 0), &[]).unwrap_err();
    assert_eq!(
        (negative.code().as_str(), &*negative.fields().message),
        ("2201W", "LIMIT must not be negative")
    );
    let twice = || ints(&[(1, 1), (1, 1), (2, 2), (1, 1)]);
    assert_eq!(
        world.rows(plan(Node::Distinct(Box::new(twice())), &TWO), &[]),
        ["1 1", "2 2"]
    );
    let set = |kind, all| {
        let (left, right) = (Box::new(twice()), Box::new(ints(&[(1, 1), (1, 1), (3, 3)])));
        plan(
            Node::SetOp {
                kind,
                all,
                left,
                right,
            },
            &TWO,
        )
    };
    assert_eq!(
        world.rows(set(SetOpKind::Union, false), &[]),
        ["1 1", "2 2", "3 3"]
    );
    assert_eq!(world.rows(set(SetOpKind::Union, true), &[]).len(), 7);
    assert_eq!(world.rows(set(SetOpKind::Intersect, false), &[]), ["1 1"]);
    assert_eq!(
        world.rows(set(SetOpKind::Intersect, true), &[]),
        ["1 1", "1 1"]
    );
    assert_eq!(world.rows(set(SetOpKind::Except, false), &[]), ["2 2"]);
    assert_eq!(
        world.rows(set(SetOpKind::Except, true), &[]),
        ["2 2", "1 1"]
    );
    let on = plan(
        Node::DistinctOn {
            input: Box::new(sort(rows(), vec![key(0, false), key(1, true)])),
            keys: vec![column(0, INT)],
        },
        &TWO,
    );
    assert_eq!(world.rows(on, &[]), ["1 4", "2 3", "3 1"]);
}

#[test]
fn a_sort_of_many_runs_is_in_order_and_stable() {
    let world = World::new();
    let series = Node::FunctionScan {
        function: &SERIES,
        args: vec![int(1), int(50_000)],
        ordinality: false,
        alias: "g".into(),
    };
    let spread = binary("%", binary("*", column(0, INT), int(7)), int(1000));
    let rows = Node::Project {
        input: Box::new(plan(series, &[INT])),
        exprs: vec![spread, column(0, INT)],
    };
    let (rows, _) = world
        .run(sort(plan(rows, &TWO), vec![key(0, false)]), &[])
        .unwrap();
    let pairs: Vec<(i32, i32)> = rows
        .iter()
        .map(|row| (row[0].as_i32().unwrap(), row[1].as_i32().unwrap()))
        .collect();
    assert_eq!(pairs.len(), 50_000);
    assert!(pairs.is_sorted());
}

#[test]
fn joins_of_every_kind_by_hash_and_by_loop() {
    let world = World::new();
    let left = || {
        with_null(vec![
            vec![int(1), int(10)],
            vec![int(2), int(20)],
            vec![int(2), int(21)],
        ])
    };
    let right = || {
        with_null(vec![
            vec![int(2), int(200)],
            vec![int(2), int(201)],
            vec![int(3), int(300)],
        ])
    };
    for kind in [
        JoinKind::Inner,
        JoinKind::Left,
        JoinKind::Right,
        JoinKind::Full,
        JoinKind::Semi,
        JoinKind::Anti,
    ] {
        let types: &[SqlType] = if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            &TWO
        } else {
            &FOUR
        };
        let hash = Node::HashJoin {
            left: Box::new(left()),
            right: Box::new(right()),
            kind,
            left_keys: vec![column(0, INT)],
            right_keys: vec![column(0, INT)],
            condition: None,
        };
        let nested = Node::NestedLoop {
            left: Box::new(left()),
            right: Box::new(right()),
            kind,
            condition: Some(binary("=", column(0, INT), column(2, INT))),
            lateral: false,
        };
        let (mut hash, mut nested) = (
            world.rows(plan(hash, types), &[]),
            world.rows(plan(nested, types), &[]),
        );
        hash.sort();
        nested.sort();
        assert_eq!(hash, nested, "{kind:?}");
        let expected = match kind {
            JoinKind::Inner => 4,
            JoinKind::Left => 6,
            JoinKind::Right => 6,
            JoinKind::Full => 8,
            JoinKind::Semi | JoinKind::Anti => 2,
        };
        assert_eq!(hash.len(), expected, "{kind:?}: {hash:?}");
    }
}

#[test]
fn big_joins_keep_their_place_across_batches() {
    let world = World::new();
    let rows: Vec<(i32, i32)> = (0..1000).map(|i| (i % 10, i)).collect();
    let join = Node::HashJoin {
        left: Box::new(ints(&rows)),
        right: Box::new(ints(&rows)),
        kind: JoinKind::Inner,
        left_keys: vec![column(0, INT)],
        right_keys: vec![column(0, INT)],
        condition: Some(binary("<", column(1, INT), column(3, INT))),
    };
    assert_eq!(
        world.run(plan(join, &FOUR), &[]).unwrap().1,
        10 * (100 * 99 / 2)
    );
}

#[test]
fn index_ranges_lateral_loops_and_any() {
    let world = World::new();
    let t = world.table();
    let rows = (1..=600)
        .map(|i| vec![int(i), text(&format!("r{i}")), big(i64::from(i % 7))])
        .collect();
    world
        .run(
            plan(Node::Insert(Box::new(insert(&t, values(rows)))), &[]),
            &[],
        )
        .unwrap();
    let bound = |(v, inclusive)| KeyBound {
        keys: vec![int(v)],
        inclusive,
    };
    let range = |lower: Option<(i32, bool)>, upper: Option<(i32, bool)>| KeyRange {
        lower: lower.map(bound),
        upper: upper.map(bound),
        ..KeyRange::default()
    };
    // By operators and straight from stored bytes.
    let always = || Expr::Const(Datum::Bool(true), BOOL);
    let firsts = |range: KeyRange, reverse| -> Vec<i32> {
        let input = Box::new(by_range(&t, range.clone(), reverse, false));
        let slow = plan(
            Node::Filter {
                input,
                condition: always(),
            },
            &T,
        );
        let slow = world.rows(slow, &[]);
        assert_eq!(
            world.rows(by_range(&t, range.clone(), reverse, false), &[]),
            slow
        );
        let (rows, _) = world.run(by_range(&t, range, reverse, false), &[]).unwrap();
        rows.iter().map(|row| row[0].as_i32().unwrap()).collect()
    };
    assert_eq!(
        firsts(range(Some((5, true)), Some((8, false))), false),
        [5, 6, 7]
    );
    assert_eq!(
        firsts(range(Some((5, false)), Some((8, true))), true),
        [8, 7, 6]
    );
    assert_eq!(firsts(range(Some((598, false)), None), false), [599, 600]);
    assert_eq!(firsts(range(None, Some((2, true))), false), [1, 2]);
    assert_eq!(firsts(KeyRange::default(), false).len(), 600);
    let items = vec![int(9), int(7), null(), int(9), int(1000)];
    let any = KeyRange {
        equal: vec![ScanKey::Any(Expr::Array(
            items,
            SqlType::of(oid::INT4_ARRAY),
        ))],
        ..KeyRange::default()
    };
    assert_eq!(firsts(any.clone(), false), [7, 9]);
    assert_eq!(firsts(any, true), [9, 7]);
    let mut some = scan(&t, false);
    some.columns = vec![2, 0];
    some.filter = binary("=", column(1, INT), int(30)).into();
    let exprs = vec![column(1, INT), column(0, BIGINT)];
    let input = Box::new(plan(Node::SeqScan(some), &[BIGINT, INT]));
    let some = plan(Node::Project { input, exprs }, &[INT, BIGINT]);
    assert_eq!(world.rows(some, &[]), ["30 2"]);
    let inner = KeyRange {
        equal: vec![ScanKey::Value(Expr::Outer {
            level: 1,
            index: 1,
            ty: INT,
        })],
        ..KeyRange::default()
    };
    let join = Node::NestedLoop {
        left: Box::new(ints(&[(1, 7), (2, 9999), (3, 8)])),
        right: Box::new(by_range(&t, inner, false, false)),
        kind: JoinKind::Left,
        condition: None,
        lateral: true,
    };
    let types = [INT, INT, INT, TEXT, BIGINT];
    assert_eq!(
        world.rows(plan(join, &types), &[]),
        ["1 7 7 r7 0", "2 9999 - - -", "3 8 8 r8 1"]
    );
}

#[test]
fn grouping_with_distinct_filter_and_order() {
    let world = World::new();
    let call = |name: &str, arg: Option<Expr>| {
        let types: Vec<SqlType> = arg.iter().map(Expr::ty).collect();
        let resolved = resolve_aggregate(name, &types, UserTypes::default().lookup(&[])).unwrap();
        AggregateCall {
            aggregate: resolved.aggregate,
            user: None,
            args: arg.into_iter().collect(),
            distinct: false,
            filter: None,
            order: Vec::new(),
            ty: resolved.result,
        }
    };
    let rows = || {
        with_null(vec![
            vec![int(1), int(5)],
            vec![int(2), int(7)],
            vec![int(1), int(5)],
        ])
    };
    let calls = |first: Option<usize>| {
        let mut distinct = call("count", Some(column(1, INT)));
        distinct.distinct = true;
        let mut filtered = call("count", None);
        filtered.filter = binary(">", column(1, INT), int(5)).into();
        let _ = first;
        vec![
            call("count", None),
            distinct,
            filtered,
            call("count", Some(column(0, INT))),
        ]
    };
    let group = |keys: Vec<Expr>, input: Plan| {
        let types = vec![BIGINT; keys.len() + 4];
        plan(
            Node::Aggregate {
                sets: None,
                input: Box::new(input),
                keys,
                aggregates: calls(None),
            },
            &types,
        )
    };
    assert_eq!(
        world.rows(group(vec![column(0, INT)], rows()), &[]),
        ["1 2 1 0 2", "2 1 1 1 1", "- 1 1 0 0"]
    );
    assert_eq!(world.rows(group(Vec::new(), rows()), &[]), ["4 3 1 3"]);
    let none = plan(
        Node::Limit {
            input: Box::new(rows()),
            limit: Some(big(0)),
            offset: None,
            ties: Vec::new(),
        },
        &TWO,
    );
    assert_eq!(world.rows(group(Vec::new(), none), &[]), ["0 0 0 0"]);
}

#[test]
fn recursive_queries_end_under_a_limit_and_without_duplicates() {
    let world = World::new();
    let one = |expr| plan(Node::Values(vec![vec![expr]]), &[INT]);
    let scan = || {
        plan(
            Node::CteScan {
                slot: 0,
                name: "r".into(),
            },
            &[INT],
        )
    };
    let next = |expr| {
        plan(
            Node::Project {
                input: Box::new(scan()),
                exprs: vec![expr],
            },
            &[INT],
        )
    };
    let with = |recursive: Plan, all: bool, body: Plan| {
        let node = Node::With {
            slot: 0,
            name: "r".into(),
            definition: Box::new(one(int(1))),
            recursive: Some((Box::new(recursive), all)),
            execution: CteExecution::AsRead,
            body: Box::new(body),
        };
        plan(node, &[INT])
    };
    let first = plan(
        Node::Limit {
            input: Box::new(scan()),
            limit: Some(big(4)),
            offset: None,
            ties: Vec::new(),
        },
        &[INT],
    );
    let endless = with(next(binary("+", column(0, INT), int(1))), true, first);
    assert_eq!(world.rows(endless, &[]), ["1", "2", "3", "4"]);
    let wrap = with(
        next(binary("%", binary("+", column(0, INT), int(1)), int(3))),
        false,
        scan(),
    );
    assert_eq!(world.rows(wrap, &[]), ["1", "2", "0"]);
}

#[test]
fn subqueries_and_in_with_nulls() {
    let world = World::new();
    let sub = |plan: Plan, kind, uncorrelated, ty| {
        Expr::Subquery(Arc::new(Subquery {
            plan,
            kind,
            uncorrelated,
            ty,
            shared: 0,
            call: false,
        }))
    };
    let project = |exprs: Vec<Expr>| {
        let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
        plan(
            Node::Project {
                input: Box::new(ints(&[(1, 1), (2, 2)])),
                exprs,
            },
            &types,
        )
    };
    let equal =
        logstead_sql_func::resolve_operator("=", Some(INT), INT, UserTypes::default().lookup(&[]))
            .unwrap()
            .function;
    let differ =
        logstead_sql_func::resolve_operator("<>", Some(INT), INT, UserTypes::default().lookup(&[]))
            .unwrap()
            .function;
    for hashable in [true, false] {
        let contains = |rows: Vec<Vec<Expr>>, all: bool| {
            let ops = vec![if all { differ } else { equal }];
            let kind = SubqueryKind::Compare {
                left: vec![column(0, INT)],
                ops,
                equals: Vec::new(),
                all,
                hashable,
            };
            sub(values(rows), kind, true, BOOL)
        };
        let some = || vec![vec![int(2)], vec![int(5)]];
        let nulls = || vec![vec![int(2)], vec![null()]];
        let exprs = vec![
            contains(some(), false),
            contains(some(), true),
            contains(nulls(), false),
            contains(nulls(), true),
        ];
        assert_eq!(
            world.rows(project(exprs), &[]),
            ["false true - -", "true false true false"]
        );
    }
    let outer = Expr::Outer {
        level: 1,
        index: 0,
        ty: INT,
    };
    let one = |expr: Expr| {
        plan(
            Node::Project {
                input: Box::new(plan(Node::OneRow, &[])),
                exprs: vec![expr],
            },
            &[INT],
        )
    };
    let scalar = sub(
        one(binary("+", outer.clone(), int(40))),
        SubqueryKind::Scalar,
        false,
        INT,
    );
    let missing = Node::Filter {
        input: Box::new(ints(&[(1, 1)])),
        condition: binary("=", column(0, INT), outer),
    };
    let exists = sub(plan(missing, &TWO), SubqueryKind::Exists, false, BOOL);
    assert_eq!(
        world.rows(project(vec![scalar, exists]), &[]),
        ["41 true", "42 false"]
    );
    let many = sub(ints(&[(1, 1), (2, 2)]), SubqueryKind::Scalar, true, INT);
    let failed = world.run(project(vec![many]), &[]).unwrap_err();
    assert_eq!(failed.code().as_str(), "21000");
}

#[test]
fn conditions_short_circuit_and_know_three_values() {
    let world = World::new();
    let unknown = || Expr::Const(Datum::Null, BOOL);
    let no = || Expr::Const(Datum::Bool(false), BOOL);
    let fails = || binary("=", binary("/", int(1), int(0)), int(1));
    let exprs = vec![
        Expr::And(vec![unknown(), no(), fails()]),
        Expr::Or(vec![unknown(), no()]),
        Expr::Not(Box::new(unknown())),
        Expr::Coalesce(vec![null(), int(1), binary("/", int(1), int(0))], INT),
        Expr::Case {
            arms: vec![(unknown(), int(1)), (Expr::Not(Box::new(no())), int(2))],
            otherwise: None,
            ty: INT,
        },
        Expr::IsDistinct {
            left: Box::new(null()),
            right: Box::new(int(1)),
            negated: false,
        },
    ];
    let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
    let one = Node::Project {
        input: Box::new(plan(Node::OneRow, &[])),
        exprs,
    };
    assert_eq!(world.rows(plan(one, &types), &[]), ["false - - 1 2 true"]);
    let division = plan(
        Node::Project {
            input: Box::new(plan(Node::OneRow, &[])),
            exprs: vec![fails()],
        },
        &[BOOL],
    );
    assert_eq!(
        world.run(division, &[]).unwrap_err().code().as_str(),
        "22012"
    );
}

/// generate_series(from, to)
static SERIES: Function = Function {
    oid: FunctionId::new(1067),
    name: "generate_series",
    args: &[oid::INT4, oid::INT4],
    variadic: None,
    result: oid::INT4,
    strict: true,
    volatility: Volatility::Immutable,
    body: FunctionImpl::Set(|args| {
        Ok((args[0].as_i32()?..=args[1].as_i32()?)
            .map(|i| vec![Datum::Int4(i)])
            .collect())
    }),
};

#[test]
fn sets_in_the_select_list_are_padded() {
    let world = World::new();
    let series = |to| Expr::Call {
        function: &SERIES,
        args: vec![int(1), int(to)],
        ty: INT,
    };
    let node = Node::ProjectSet {
        input: Box::new(ints(&[(7, 0)])),
        exprs: vec![column(0, INT), series(2), series(3)],
    };
    assert_eq!(
        world.rows(plan(node, &[INT, INT, INT]), &[]),
        ["7 1 1", "7 2 2", "7 - 3"]
    );
}

#[test]
fn a_portal_gives_rows_in_pieces() {
    let world = World::new();
    let t = world.table();
    let rows = (0..10)
        .map(|i| vec![int(i), text("r"), big(0)])
        .collect::<Vec<_>>();
    let source = insert(&t, values(rows.clone()));
    world
        .run(plan(Node::Insert(Box::new(source)), &[]), &[])
        .unwrap();
    for plan in [values(rows), all(&t)] {
        block_on(in_pieces(&world, plan));
    }
}

async fn in_pieces(world: &World, plan: Plan) {
    {
        let mut execution = Execution::new(Arc::new(prepare(plan)));
        let mut txn = world.begin();
        txn.begin_statement();
        let mut cx = crate::StatementContext {
            txn: &mut txn,
            params: &[],
            session: &ContextAdapter(&TestContext),
            catalog: &world.catalog,
            engine: &world.engine,
            cancel: &world.cancel,
            events: &mut crate::after_triggers::EventQueue::default(),
            work_mem_bytes: 4 << 20,
            spill: None,
        };
        let mut sink = Sink::default();
        assert_eq!(
            execution.run(&mut cx, 4, &mut sink).await.unwrap(),
            Progress::Suspended
        );
        assert_eq!(sink.0.len(), 4);
        execution.materialize(&mut cx).await.unwrap();
        assert_eq!(
            execution.run(&mut cx, 4, &mut sink).await.unwrap(),
            Progress::Suspended
        );
        assert_eq!(
            execution.run(&mut cx, 0, &mut sink).await.unwrap(),
            Progress::Done { rows: 2 }
        );
        assert_eq!(sink.0.len(), 10);
    }
}

/// What a statement says that may hold 8 kB and has nowhere to put more.
fn refused(node: Node) -> Option<String> {
    let world = World::new();
    let sorted = sort(plan(node, &[INT]), vec![key(0, false)]);
    block_on(async {
        let mut txn = world.begin();
        txn.begin_statement();
        let mut cx = crate::StatementContext {
            txn: &mut txn,
            params: &[],
            session: &ContextAdapter(&TestContext),
            catalog: &world.catalog,
            engine: &world.engine,
            cancel: &world.cancel,
            events: &mut crate::after_triggers::EventQueue::default(),
            work_mem_bytes: 1024,
            spill: None,
        };
        let mut execution = Execution::new(Arc::new(prepare(sorted)));
        let failed = execution
            .run(&mut cx, 0, &mut Sink::default())
            .await
            .unwrap_err();
        assert_eq!(failed.code().as_str(), "53200");
        failed.fields().detail.clone()
    })
}

#[test]
fn memory_is_bounded() {
    let scan = |function| Node::FunctionScan {
        function,
        args: vec![int(1), int(20_000)],
        ordinality: false,
        alias: "g".into(),
    };
    let at_once = refused(scan(&SERIES));
    assert_eq!(
        at_once.as_deref(),
        Some("A set needs more than 8 kB of memory.")
    );
    // Its rows are made one by one.
    let mut named = logstead_sql_func::functions_named("generate_series");
    let function = named.find(|f| f.args == [oid::INT4, oid::INT4]).unwrap();
    assert_eq!(
        refused(scan(function)).as_deref(),
        Some("A sort needs more than 8 kB of memory.")
    );
}
