//! Merge joins beside nested loops.

use super::world::*;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::*;
use logstead_sql_types::value::{Datum, SqlType};

const TWO: [SqlType; 2] = [INT, INT];
const FOUR: [SqlType; 4] = [INT, INT, INT, INT];

/// Rows of a key, which may be NULL, and a number.
fn rows(keys: impl Iterator<Item = Option<i32>>) -> Plan {
    let rows = keys.zip(0..).map(|(key, n)| {
        let key = key.map_or(Expr::Const(Datum::Null, INT), int);
        vec![key, int(n)]
    });
    values(rows.collect())
}

fn sorted(input: Plan, desc: bool, nulls_first: bool) -> Plan {
    let key = SortKey {
        expr: column(0, INT),
        desc,
        nulls_first,
    };
    let node = Node::Sort {
        input: Box::new(input),
        keys: vec![key],
    };
    plan(node, &TWO)
}

fn merged(left: Plan, right: Plan, kind: JoinKind, condition: Option<Expr>, desc: bool) -> Plan {
    let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let key = MergeKey {
        left: column(0, INT),
        right: column(0, INT),
        desc,
    };
    let node = Node::MergeJoin {
        left: Box::new(left),
        right: Box::new(right),
        kind,
        keys: vec![key],
        condition,
    };
    plan(node, if half { &TWO } else { &FOUR })
}

#[test]
fn every_kind_gives_what_a_loop_gives() {
    let world = World::new();
    // Groups of one row, of some, and one that goes on over several batches; keys that only one side has, at either end
    // too.
    let left = || rows((0..500).map(|i| (i % 11 != 0).then_some(i / 4 + 3)));
    let right = || {
        let keys = (0..900).map(|i| if i < 600 { 40 } else { (i - 600) / 3 });
        rows(keys.map(|key| (key % 13 != 5).then_some(key)))
    };
    let kinds = [
        JoinKind::Inner,
        JoinKind::Left,
        JoinKind::Right,
        JoinKind::Full,
        JoinKind::Semi,
        JoinKind::Anti,
    ];
    let further = || binary("<", column(1, INT), column(3, INT));
    for kind in kinds {
        for (condition, desc) in [(None, false), (Some(further()), true)] {
            let half = matches!(kind, JoinKind::Semi | JoinKind::Anti);
            let equal = binary("=", column(0, INT), column(2, INT));
            let nested = Node::NestedLoop {
                left: Box::new(left()),
                right: Box::new(right()),
                kind,
                condition: Some(match &condition {
                    Some(further) => Expr::And(vec![equal, further.clone()]),
                    None => equal,
                }),
                lateral: false,
            };
            let nested = plan(nested, if half { &TWO } else { &FOUR });
            // NULLs may stand anywhere.
            let (left, right) = (sorted(left(), desc, desc), sorted(right(), desc, !desc));
            let merged = merged(left, right, kind, condition, desc);
            let (mut merged, mut nested) = (world.rows(merged, &[]), world.rows(nested, &[]));
            merged.sort();
            nested.sort();
            assert!(merged.len() > 20, "{kind:?}");
            assert_eq!(merged, nested, "{kind:?} desc {desc}");
        }
    }
}

#[test]
fn a_side_that_is_not_sorted_ends_the_statement() {
    let world = World::new();
    let left = rows([1, 3, 2, 9].into_iter().map(Some));
    let right = rows([1, 2, 3].into_iter().map(Some));
    let join = merged(left, right, JoinKind::Left, None, false);
    let error = world.run(join, &[]).unwrap_err();
    assert_eq!(error.code().as_str(), "XX000");
}
