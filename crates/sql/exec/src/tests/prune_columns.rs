//! What of scans nobody reads, and that nobody misses it.

use super::world::*;
use crate::prepare;
use logstead_sql_plan::expr::{Expr, Subquery, SubqueryKind};
use logstead_sql_plan::*;
use logstead_sql_types::value::SqlType;
use logstead_sql_types::value::user::UserTypes;
use std::sync::Arc;

/// Each scan's columns that are not read, as positions, outermost and left first.
fn unread(plan: &Plan, out: &mut Vec<Vec<usize>>) {
    if let Node::SeqScan(scan) = &plan.node {
        let marked = scan
            .unread
            .iter()
            .enumerate()
            .filter(|(_, unread)| **unread);
        out.push(marked.map(|(at, _)| at).collect());
    }
    for child in logstead_sql_plan::instrumentation::children(plan) {
        unread(child, out);
    }
}

fn project(input: Plan, exprs: Vec<Expr>) -> Plan {
    let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
    let input = Box::new(input);
    plan(Node::Project { input, exprs }, &types)
}

#[test]
fn what_only_a_filter_reads_goes_no_further() {
    let world = World::new();
    let t = world.table();
    let row = |i: i32| vec![int(i), text(&format!("r{i}")), big(i64::from(i % 2))];
    let rows = values((1..=4).map(row).collect());
    let insert = plan(Node::Insert(Box::new(insert(&t, rows))), &[]);
    world.run(insert, &[]).unwrap();
    let six: Vec<SqlType> = T.iter().chain(&T).copied().collect();
    let filtered = |filter: Expr| {
        let mut scan = scan(&t, false);
        scan.filter = filter.into();
        Box::new(plan(Node::SeqScan(scan), &T))
    };
    let is_not = |word: &str| binary("<>", column(1, TEXT), text(word));
    let check = |made: Plan, expected: &[&[usize]], rows: &[&str]| {
        let mut found = Vec::new();
        unread(prepare(made.clone()).plan(), &mut found);
        assert_eq!(found, expected);
        let mut given = world.rows(made, &[]);
        given.sort_unstable();
        assert_eq!(given, rows);
    };
    let hashed = |kind, exprs| {
        let join = Node::HashJoin {
            left: filtered(is_not("r1")),
            right: filtered(is_not("r2")),
            kind,
            left_keys: vec![column(2, BIGINT)],
            right_keys: vec![column(2, BIGINT)],
            condition: Some(binary("<", column(0, INT), column(3, INT))),
        };
        project(plan(join, &six), exprs)
    };
    // The texts are the filters' alone, the keys the join's.
    let firsts = || vec![column(0, INT), column(3, INT)];
    check(hashed(JoinKind::Inner, firsts()), &[&[1], &[1]], &["2 4"]);
    check(
        hashed(JoinKind::Left, vec![column(0, INT), column(4, TEXT)]),
        &[&[1], &[]],
        &["2 r4", "3 -", "4 -"],
    );
    // A row that is grouped is read by the calls and keys alone.
    let count =
        logstead_sql_func::resolve_aggregate("count", &[BIGINT], UserTypes::default().lookup(&[]))
            .unwrap();
    let counted = Node::Aggregate {
        input: filtered(is_not("r4")),
        keys: Vec::new(),
        aggregates: vec![AggregateCall {
            aggregate: count.aggregate,
            user: None,
            args: vec![column(2, BIGINT)],
            distinct: false,
            filter: None,
            order: Vec::new(),
            ty: BIGINT,
        }],
        sets: None,
    };
    check(plan(counted, &[BIGINT]), &[&[0, 1]], &["3"]);
    // The right side of a lateral loop reads the left row, from however deep inside.
    let outer = |level, index, ty| Expr::Outer { level, index, ty };
    let inner = |condition| {
        Expr::Subquery(Arc::new(Subquery {
            plan: project(*filtered(condition), vec![column(0, INT)]),
            kind: SubqueryKind::Exists,
            uncorrelated: false,
            ty: BOOL,
            shared: 0,
            call: false,
        }))
    };
    let lateral = |right: Box<Plan>| {
        let node = Node::NestedLoop {
            left: filtered(is_not("r1")),
            right,
            kind: JoinKind::Inner,
            condition: None,
            lateral: true,
        };
        project(plan(node, &six), vec![column(0, INT), column(3, INT)])
    };
    let same = binary("=", column(1, TEXT), outer(1, 1, TEXT));
    check(
        lateral(filtered(same)),
        &[&[2], &[1, 2]],
        &["2 2", "3 3", "4 4"],
    );
    let same = binary("=", column(1, TEXT), outer(2, 1, TEXT));
    let right = plan(
        Node::Filter {
            input: filtered(binary("=", column(0, INT), int(4))),
            condition: inner(same),
        },
        &T,
    );
    check(
        lateral(Box::new(right)),
        // A subquery may read any column of the row that it is asked about.
        &[&[2], &[]],
        &["2 4", "3 4", "4 4"],
    );
}
