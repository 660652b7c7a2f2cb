//! What a correlated subquery gave, by the outer values that it refers to: who asks again with the same values runs
//! nothing.
//!
//! Invariant: what is kept is what a run would give. So nothing volatile is in the plan, and no WITH query is read (the
//! working table of a recursive one changes); values count as the same only if nobody can tell them apart, which leaves
//! out types with equal values that look different (1.0 and 1.00). Where hardly anything is asked again, nothing is
//! kept any more.

use crate::context::ExecutorContext;
use crate::key_table::KeyTable;
use crate::operator_memory::OperatorMemory;
use crate::rescan_invariant::reads_cte;
use logstead_sql_plan::expr::{Expr, Subquery, SubqueryKind};
use logstead_sql_plan::{Plan, walk};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, key, oid};

/// After so many questions it is looked at whether one in [`FOUND_IN`] was asked before.
const JUDGED_AFTER: usize = 512;
const FOUND_IN: usize = 16;

/// See the module.
pub(crate) struct MemoizeCache {
    /// Level, column and type of the outer values.
    refers_to: Vec<(usize, usize, TypeId)>,
    keys: KeyTable,
    /// What was given for each key.
    values: Vec<Datum>,
    values_bytes: usize,
    held: OperatorMemory,
    key: Vec<u8>,
    /// Questions that came to an answer: a run that is interrupted asks again each time that it goes on.
    asked: usize,
    /// Those of them that were answered with what is kept.
    found: usize,
}

impl MemoizeCache {
    /// For a subquery whose values can be kept.
    pub(crate) fn of(subquery: &Subquery) -> Option<MemoizeCache> {
        if walk::has_routine(&subquery.plan) || walk::locks_rows(&subquery.plan) {
            return None;
        }
        let is_value = matches!(subquery.kind, SubqueryKind::Scalar | SubqueryKind::Exists);
        if !is_value || subquery.uncorrelated {
            return None;
        }
        let mut found = OuterReferences {
            refers_to: Vec::new(),
            changes: false,
        };
        found.look_at(&subquery.plan, 0);
        let all_plain = found.refers_to.iter().all(|(.., ty)| is_plain(*ty));
        if found.changes || found.refers_to.is_empty() || !all_plain {
            return None;
        }
        Some(MemoizeCache {
            refers_to: found.refers_to,
            keys: KeyTable::default(),
            values: Vec::new(),
            values_bytes: 0,
            held: OperatorMemory::default(),
            key: Vec::new(),
            asked: 0,
            found: 0,
        })
    }

    /// What it gave for the values that it is asked with now, `row` being the innermost outer row.
    pub(crate) fn find(&mut self, row: &[Datum], cx: &ExecutorContext<'_>) -> Option<Datum> {
        if self.gave_up() {
            return None;
        }
        self.key.clear();
        for (level, column, ty) in &self.refers_to {
            let value = match level {
                1 => row.get(*column),
                _ => {
                    let at = cx.outer.len().checked_sub(level - 1);
                    let outer = at.and_then(|at| cx.outer.get(at));
                    outer.and_then(|outer| outer.get(*column))
                }
            };
            let Some(value) = value else {
                self.key.clear();
                return None;
            };
            key::encode_key(*ty, value, false, false, &mut self.key);
        }
        let number = self.keys.find(&self.key)?;
        self.asked += 1;
        self.found += 1;
        self.values.get(number).cloned()
    }

    /// Keeps what it gave for the values of the last [`find`](Self::find), if there is room.
    pub(crate) fn keep(&mut self, value: &Datum, cx: &ExecutorContext<'_>) -> Result<()> {
        self.asked += 1;
        if self.gave_up() {
            (self.keys, self.values, self.values_bytes) = Default::default();
            return self.held.set(0, cx.memory());
        }
        let held_bytes = self.keys.size_bytes() + self.values_bytes;
        if held_bytes > cx.work_mem_bytes || self.key.is_empty() {
            return Ok(());
        }
        let own_bytes = match value {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            Datum::Null | Datum::Bool(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) => 0,
            // Not worth finding out how large it is.
            Datum::Array(_) | Datum::Jsonb(_) => return Ok(()),
            _ => 0,
        };
        if self.keys.insert(&self.key).1 {
            self.values.push(value.clone());
            self.values_bytes += std::mem::size_of::<Datum>() + own_bytes;
            self.held.set(held_bytes, cx.memory())?;
        }
        Ok(())
    }

    fn gave_up(&self) -> bool {
        self.asked >= JUDGED_AFTER && self.found < self.asked / FOUND_IN
    }
}

/// Whether values of a type that are equal are the same in every respect.
fn is_plain(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::TEXT
            | oid::VARCHAR
            | oid::NAME
            | oid::DATE
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID
            | oid::BYTEA
    )
}

/// What a plan refers to outside of itself.
struct OuterReferences {
    refers_to: Vec<(usize, usize, TypeId)>,
    /// It may give something else the next time.
    changes: bool,
}

impl OuterReferences {
    /// Looks at a plan that lies `depth` rows below the subquery's own.
    fn look_at(&mut self, plan: &Plan, depth: usize) {
        self.changes |= reads_cte(plan);
        walk::plan_exprs(plan, depth, &mut |expr, depth| {
            self.changes |= walk::is_volatile(expr);
            self.look_into(expr, depth);
        });
    }

    fn look_into(&mut self, expr: &Expr, depth: usize) {
        match expr {
            Expr::Outer { level, index, ty } if *level > depth => {
                let refers_to = (level - depth, *index, ty.oid);
                if !self.refers_to.contains(&refers_to) {
                    self.refers_to.push(refers_to);
                }
            }
            Expr::Subquery(subquery) => self.look_at(&subquery.plan, depth + 1),
            _ => {}
        }
        walk::children(expr, &mut |child| self.look_into(child, depth));
    }
}
