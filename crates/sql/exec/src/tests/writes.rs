//! INSERT, UPDATE, DELETE: constraints and their texts, conflicts, waits, and the same results by key and by operators.

use super::world::*;
use crate::prepare;
use logstead_engine::Isolation;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::*;
use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::Datum;
use std::sync::Arc;

fn error(result: logstead_sql_types::Result<(Vec<Vec<Datum>>, u64)>) -> SqlError {
    result.expect_err("the statement fails")
}

fn three(world: &World) -> Arc<logstead_sql_catalog::Relation> {
    let t = world.table();
    let rows = (1..=3)
        .map(|i| vec![int(i), text(&format!("r{i}")), big(i64::from(i) * 10)])
        .collect();
    let (_, count) = world
        .run(
            plan(Node::Insert(Box::new(insert(&t, values(rows)))), &[]),
            &[],
        )
        .unwrap();
    assert_eq!(count, 3);
    t
}

fn update_by_key(
    t: &Arc<logstead_sql_catalog::Relation>,
    assignments: Vec<(usize, Expr)>,
) -> Update {
    Update {
        generated: 0,
        rules: None,
        table: Arc::clone(t),
        source: by_key(t, true),
        assignments,
        recheck: binary("=", column(0, INT), Expr::Param(0, INT)).into(),
        policies: Vec::new(),
        checks: Vec::new(),
        given: Vec::new(),
        returning: None,
    }
}

fn update(update: Update) -> Plan {
    plan(Node::Update(Box::new(update)), &[])
}

/// The same statement without the straight path: a filter that is always true stands in the way.
fn slow(mut update: Update) -> Update {
    let source = std::mem::replace(&mut update.source, plan(Node::OneRow, &[]));
    let condition = Expr::Const(Datum::Bool(true), BOOL);
    update.source = plan(
        Node::Filter {
            input: Box::new(source),
            condition,
        },
        &T,
    );
    update
}

#[test]
fn an_insert_is_seen_and_a_second_one_of_the_key_is_refused() {
    let world = World::new();
    let t = three(&world);
    assert_eq!(world.rows(all(&t), &[]), ["1 r1 10", "2 r2 20", "3 r3 30"]);
    assert!(prepare(by_key(&t, false)).is_by_key());
    assert_eq!(
        world.rows(by_key(&t, false), &[Datum::Int4(2)]),
        ["2 r2 20"]
    );
    assert!(world.rows(by_key(&t, false), &[Datum::Null]).is_empty());
    let again = insert(&t, values(vec![vec![int(2), text("x"), big(1)]]));
    let error = error(world.run(plan(Node::Insert(Box::new(again)), &[]), &[]));
    let fields = error.fields();
    assert_eq!(fields.code.as_str(), "23505");
    assert_eq!(
        fields.message,
        "duplicate key value violates unique constraint \"t_pkey\""
    );
    assert_eq!(
        fields.detail.as_deref(),
        Some("Key (a)=(2) already exists.")
    );
    assert_eq!(fields.constraint.as_deref(), Some("t_pkey"));
    assert_eq!(
        (fields.schema.as_deref(), fields.table.as_deref()),
        (Some("public"), Some("t"))
    );
}

#[test]
fn not_null_and_check_show_the_failing_row() {
    let world = World::new();
    let t = three(&world);
    let null = Expr::Const(Datum::Null, BIGINT);
    let row = insert(
        &t,
        values(vec![vec![int(4), text(&"x".repeat(70)), null.clone()]]),
    );
    let failed = error(world.run(plan(Node::Insert(Box::new(row)), &[]), &[]));
    assert_eq!(
        failed.fields().message,
        "null value in column \"c\" of relation \"t\" violates not-null constraint"
    );
    let detail = format!("Failing row contains (4, {}..., null).", "x".repeat(64));
    assert_eq!(failed.fields().detail.as_deref(), Some(detail.as_str()));
    assert_eq!(failed.fields().column.as_deref(), Some("c"));
    for plan_of in [
        update_by_key(&t, vec![(2, null.clone())]),
        slow(update_by_key(&t, vec![(2, null)])),
    ] {
        let failed = error(world.run(update(plan_of), &[Datum::Int4(2)]));
        assert_eq!(
            failed.fields().detail.as_deref(),
            Some("Failing row contains (2, r2, null).")
        );
    }
    let check = || {
        vec![Check {
            kind: logstead_sql_plan::CheckKind::Constraint,
            name: "t_c_check".to_owned(),
            expr: binary(">", column(2, BIGINT), big(0)),
        }]
    };
    for make in [update_by_key, |t: &_, a| slow(update_by_key(t, a))] {
        let mut checked = make(&t, vec![(2, binary("-", column(2, BIGINT), big(100)))]);
        checked.checks = check();
        let failed = error(world.run(update(checked), &[Datum::Int4(3)]));
        assert_eq!(
            failed.fields().message,
            "new row for relation \"t\" violates check constraint \"t_c_check\""
        );
        assert_eq!(
            failed.fields().detail.as_deref(),
            Some("Failing row contains (3, r3, -70).")
        );
    }
}

#[test]
fn update_and_delete_by_key_and_by_operators_agree() {
    for fast in [true, false] {
        let world = World::new();
        let t = three(&world);
        let mut change = update_by_key(&t, vec![(2, binary("+", column(2, BIGINT), big(1)))]);
        change.returning = Some(vec![column(0, INT), column(1, TEXT), column(2, BIGINT)]);
        let change = if fast { change } else { slow(change) };
        assert_eq!(prepare(update(change.clone())).is_by_key(), fast);
        assert_eq!(
            world.rows(update(change.clone()), &[Datum::Int4(2)]),
            ["2 r2 21"]
        );
        assert_eq!(world.run(update(change), &[Datum::Int4(9)]).unwrap().1, 0);
        let moved = update_by_key(&t, vec![(0, int(3))]);
        let moved = if fast { moved } else { slow(moved) };
        let failed = error(world.run(update(moved), &[Datum::Int4(1)]));
        assert_eq!(
            failed.fields().detail.as_deref(),
            Some("Key (a)=(3) already exists.")
        );
        let source = if fast {
            by_key(&t, true)
        } else {
            slow(update_by_key(&t, Vec::new())).source
        };
        let delete = Delete {
            rules: None,
            table: Arc::clone(&t),
            source,
            recheck: SecurityQuals::default(),
            returning: Some(vec![column(1, TEXT)]),
        };
        let delete = plan(Node::Delete(Box::new(delete)), &[TEXT]);
        assert_eq!(world.rows(delete, &[Datum::Int4(1)]), ["r1"]);
        assert_eq!(world.rows(all(&t), &[]), ["2 r2 21", "3 r3 30"]);
    }
}

#[test]
fn on_conflict_does_nothing_or_updates_once() {
    let world = World::new();
    let t = three(&world);
    let with = |rows: Vec<Vec<Expr>>, update: Option<ConflictUpdate>| {
        let mut insert = insert(&t, values(rows));
        insert.conflict = Some(OnConflict {
            indexes: vec![Arc::clone(&t.indexes[0])],
            update,
        });
        insert.returning = Some(vec![column(0, INT), column(2, BIGINT)]);
        plan(Node::Insert(Box::new(insert)), &[INT, BIGINT])
    };
    let add = || {
        Some(ConflictUpdate {
            hidden: false,
            policies: Vec::new(),
            generated: 0,
            assignments: vec![(2, binary("+", column(2, BIGINT), column(5, BIGINT)))],
            wanted: binary("<>", column(0, INT), int(3)).into(),
        })
    };
    let row = |a, c| vec![int(a), text("new"), big(c)];
    assert_eq!(
        world.rows(with(vec![row(1, 5), row(4, 5)], None), &[]),
        ["4 5"]
    );
    assert_eq!(world.rows(with(vec![row(1, 5)], add()), &[]), ["1 15"]);
    assert!(world.rows(with(vec![row(3, 5)], add()), &[]).is_empty());
    let failed = error(world.run(with(vec![row(7, 1), row(7, 2)], add()), &[]));
    assert_eq!(failed.code().as_str(), "21000");
    assert_eq!(
        world.rows(with(vec![row(8, 1), row(8, 2)], None), &[]),
        ["8 1"]
    );
    assert_eq!(
        world.rows(all(&t), &[]),
        ["1 r1 15", "2 r2 20", "3 r3 30", "4 new 5", "8 new 1"]
    );
}

#[test]
fn a_waiting_update_works_on_the_newest_version() {
    for fast in [true, false] {
        let world = World::new();
        let t = three(&world);
        let add = |fast| {
            let add = update_by_key(&t, vec![(2, binary("+", column(2, BIGINT), big(1)))]);
            Arc::new(prepare(update(if fast { add } else { slow(add) })))
        };
        let local = tokio::task::LocalSet::new();
        block_on(local.run_until(async {
            let mut first = world.begin();
            let plan = add(fast);
            assert_eq!(
                world
                    .run_in(&mut first, &plan, &[Datum::Int4(2)])
                    .await
                    .unwrap()
                    .1,
                1
            );
            let second = async {
                let mut second = world.begin();
                let (_, count) = world
                    .run_in(&mut second, &plan, &[Datum::Int4(2)])
                    .await
                    .unwrap();
                second.precommit().await.unwrap();
                count
            };
            let end_first = async {
                tokio::task::yield_now().await;
                first.precommit().await.unwrap();
            };
            let (count, ()) = tokio::join!(second, end_first);
            assert_eq!(count, 1);
        }));
        assert_eq!(world.rows(all(&t), &[])[1..2], ["2 r2 22"]);
    }
}

#[test]
fn repeatable_read_fails_where_read_committed_goes_on_and_deadlocks_are_named() {
    let world = World::new();
    let t = three(&world);
    let add = Arc::new(prepare(update(update_by_key(
        &t,
        vec![(2, binary("+", column(2, BIGINT), big(1)))],
    ))));
    block_on(async {
        let mut old = world.worker.begin(Isolation::RepeatableRead);
        world
            .run_in(&mut old, &Arc::new(prepare(all(&t))), &[])
            .await
            .unwrap();
        let mut new = world.begin();
        world
            .run_in(&mut new, &add, &[Datum::Int4(1)])
            .await
            .unwrap();
        new.precommit().await.unwrap();
        let failed = world
            .run_in(&mut old, &add, &[Datum::Int4(1)])
            .await
            .unwrap_err();
        assert_eq!(failed.code().as_str(), "40001");
        assert_eq!(
            failed.fields().message,
            "could not serialize access due to concurrent update"
        );
        old.abort();

        let (mut one, mut two) = (world.begin(), world.begin());
        world
            .run_in(&mut one, &add, &[Datum::Int4(1)])
            .await
            .unwrap();
        world
            .run_in(&mut two, &add, &[Datum::Int4(2)])
            .await
            .unwrap();
        let first = async {
            let result = world.run_in(&mut one, &add, &[Datum::Int4(2)]).await;
            one.abort();
            result
        };
        let second = async {
            let result = world.run_in(&mut two, &add, &[Datum::Int4(1)]).await;
            two.abort();
            result
        };
        let (first, second) = tokio::join!(first, second);
        let failed = match (first, second) {
            (Err(failed), Ok(_)) | (Ok(_), Err(failed)) => failed,
            other => panic!("one of two is the victim: {other:?}"),
        };
        assert_eq!(failed.code().as_str(), "40P01");
    });
}

#[test]
fn a_cancelled_statement_leaves_its_wait() {
    let world = World::new();
    let t = three(&world);
    let add = Arc::new(prepare(update(update_by_key(&t, vec![(2, big(0))]))));
    block_on(async {
        let (mut one, mut two) = (world.begin(), world.begin());
        world
            .run_in(&mut one, &add, &[Datum::Int4(1)])
            .await
            .unwrap();
        let cancel = async {
            tokio::task::yield_now().await;
            world.cancel.cancel(crate::CancelReason::User);
        };
        let (result, ()) = tokio::join!(world.run_in(&mut two, &add, &[Datum::Int4(1)]), cancel);
        let failed = result.unwrap_err();
        assert_eq!(failed.code().as_str(), "57014");
        assert_eq!(
            failed.fields().message,
            "canceling statement due to user request"
        );
    });
}

#[test]
fn for_update_locks_skips_or_refuses() {
    let world = World::new();
    let t = three(&world);
    let lock = |wait| {
        let targets = vec![LockTarget {
            table: Arc::clone(&t),
            columns: vec![(0, 0), (1, 1), (2, 2)],
            row_id: 3,
            lock: logstead_engine::RowLock::Update,
            wait,
        }];
        let input = Box::new(plan(Node::SeqScan(scan(&t, true)), &T));
        Arc::new(prepare(plan(
            Node::LockRows {
                input,
                targets,
                recheck: SecurityQuals::default(),
            },
            &T,
        )))
    };
    block_on(async {
        let (mut one, mut two) = (world.begin(), world.begin());
        let add = Arc::new(prepare(update(update_by_key(&t, vec![(2, big(0))]))));
        world
            .run_in(&mut one, &add, &[Datum::Int4(2)])
            .await
            .unwrap();
        let (rows, _) = world
            .run_in(&mut two, &lock(LockWait::Skip), &[])
            .await
            .unwrap();
        assert_eq!(rows.len(), 2);
        let failed = world
            .run_in(&mut two, &lock(LockWait::NoWait), &[])
            .await
            .unwrap_err();
        assert_eq!(
            failed.fields().message,
            "could not obtain lock on row in relation \"t\""
        );
        let end = async {
            tokio::task::yield_now().await;
            one.precommit().await.unwrap();
        };
        let plan = lock(LockWait::Block);
        let (waited, ()) = tokio::join!(world.run_in(&mut two, &plan, &[]), end);
        let (rows, _) = waited.unwrap();
        assert_eq!(rows[1][2].as_i64().unwrap(), 0);
    });
}

#[test]
fn an_inserter_takes_rows_from_outside_a_plan() {
    let world = World::new();
    let t = three(&world);
    let plan = plan(
        Node::Insert(Box::new(insert(&t, plan(Node::OneRow, &[])))),
        &[],
    );
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
            work_mem_bytes: 4 << 20,
            spill: None,
        };
        let mut inserter = crate::Inserter::new(Arc::new(prepare(plan))).unwrap();
        let row = |a| [Datum::Int4(a), Datum::Null, Datum::Int8(0)];
        let pushed = inserter.push(&mut cx, &row(4)).await.unwrap();
        assert_eq!(pushed, crate::Progress::Done { rows: 1 });
        assert_eq!(
            inserter
                .push(&mut cx, &row(4))
                .await
                .unwrap_err()
                .code()
                .as_str(),
            "23505"
        );
        let pushed = inserter.push(&mut cx, &row(5)).await.unwrap();
        assert_eq!(pushed, crate::Progress::Done { rows: 1 });
        txn.precommit().await.unwrap();
    });
    assert_eq!(world.rows(all(&t), &[])[3..], ["4 - 0", "5 - 0"]);
}
