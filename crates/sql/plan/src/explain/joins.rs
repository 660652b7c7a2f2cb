//! What is shown of a join.

use super::{Names, Reader, expr_text};
use crate::query::expr::Expr;
use crate::{JoinKind, Node, Plan};

impl Reader<'_> {
    /// The equalities that a join goes by, and what they are called.
    pub(super) fn join_keys(
        &self,
        plan: &Plan,
        outer: &[Names],
    ) -> Option<(&'static str, Vec<String>)> {
        let (label, left, right, keys): (_, _, _, Vec<(&Expr, &Expr)>) = match &plan.node {
            Node::HashJoin {
                left,
                right,
                left_keys,
                right_keys,
                ..
            } => {
                let keys = left_keys.iter().zip(right_keys).collect();
                ("Hash Cond", left, right, keys)
            }
            Node::MergeJoin {
                left, right, keys, ..
            } => {
                let keys = keys.iter().map(|key| (&key.left, &key.right)).collect();
                ("Merge Cond", left, right, keys)
            }
            _ => return None,
        };
        let (l, r) = (self.names(left), self.names(right));
        let pairs = keys.into_iter().map(|(a, b)| {
            let (a, b) = (
                expr_text(a, &l, outer, self.types),
                expr_text(b, &r, outer, self.types),
            );
            format!("({a} = {b})")
        });
        Some((label, pairs.collect()))
    }
}

/// What JSON calls a kind of join.
pub(super) fn join_type(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Right => "Right",
        JoinKind::Full => "Full",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
    }
}

/// What stands behind the method in a join's title.
pub(super) fn join_words(kind: JoinKind, hash: bool) -> &'static str {
    match (kind, hash) {
        (JoinKind::Inner, true) => " Join",
        (JoinKind::Inner, false) => "",
        (JoinKind::Left, _) => " Left Join",
        (JoinKind::Right, _) => " Right Join",
        (JoinKind::Full, _) => " Full Join",
        (JoinKind::Semi, _) => " Semi Join",
        (JoinKind::Anti, _) => " Anti Join",
    }
}
