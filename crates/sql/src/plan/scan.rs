//! Access paths: how one FROM item is read, and which conditions an index answers.

use super::estimate::{self, selectivity};
use super::layout::Layout;
use super::{KeyRange, Node, OutputColumn, Plan, Scan, walk};
use crate::bind::{Binder, COLUMN_BASE, ColId, Source};
use crate::catalog::{IndexDef, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::func::{self, CastContext, Comparison};
use crate::value::{Datum, SqlType, info, oid};
use std::sync::Arc;

/// A plan with the identities of its columns.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) layout: Layout,
    /// Rows come in the order that was wanted.
    pub(crate) ordered: bool,
}

/// An order of rows: column, descending, NULLs first.
pub(crate) type Wanted = Vec<(ColId, bool, bool)>;

/// What the reader of a scan would like.
#[derive(Default)]
pub(crate) struct Wish {
    pub(crate) order: Wanted,
    /// Rows that will be taken.
    pub(crate) limit: Option<f64>,
}

/// A condition as an index sees it: column position, comparison, value of the column's type.
enum Indexable {
    Compare(usize, Comparison, Expr),
    Any(usize, Expr, f64),
}

struct Candidate {
    index: Arc<IndexDef>,
    range: KeyRange,
    /// Conditions the range answers.
    answered: Vec<usize>,
    rows: f64,
    cost: f64,
    ordered: bool,
    reverse: bool,
    equal_columns: usize,
}

impl Binder<'_> {
    /// Reads FROM item `rel` under `conditions` (all of them about this item alone, or about columns that an enclosing row
    /// gives: those only answer through an index, see `lateral`).
    pub(crate) fn scan(
        &mut self,
        rel: usize,
        conditions: Vec<Expr>,
        wish: &Wish,
    ) -> Result<Planned> {
        match &self.rels[rel].source {
            Source::Table(table) => {
                let table = table.clone();
                self.table_scan(rel, &table, conditions, wish)
            }
            Source::Virtual(relation, table) => {
                let (relation, table) = (relation.clone(), *table);
                let rows = (self.cx.rows_of)(&relation).max(1.0);
                let (columns, layout, outputs) = self.wanted_columns(rel, &relation);
                let share: f64 = conditions.iter().map(|c| selectivity(c, rows)).product();
                let filter = crate::bind::and(conditions).map(|c| layout.resolve(c));
                let alias = self.rels[rel].alias.clone();
                let plan = Plan {
                    node: Node::VirtualScan {
                        table,
                        columns,
                        filter,
                        alias,
                    },
                    columns: outputs,
                    rows: (rows * share).max(1.0),
                    cost: rows * 0.01,
                };
                Ok(Planned {
                    plan,
                    layout,
                    ordered: false,
                })
            }
            Source::Plan(_) | Source::Cte { .. } | Source::Function { .. } => {
                self.other_scan(rel, conditions)
            }
        }
    }

    fn other_scan(&mut self, rel: usize, conditions: Vec<Expr>) -> Result<Planned> {
        let item = &mut self.rels[rel];
        let ids: Vec<ColId> = (item.first..item.first + item.width).collect();
        let alias = item.alias.clone();
        let plan = match &mut item.source {
            Source::Plan(plan) => *plan
                .take()
                .ok_or_else(|| SqlError::internal("a subquery was planned twice"))?,
            Source::Cte { slot, rows } => {
                let (node, rows) = (Node::CteScan { slot: *slot }, *rows);
                let columns = ids.iter().map(|&id| self.output_column(id)).collect();
                Plan {
                    node,
                    columns,
                    rows,
                    cost: rows * 0.01,
                }
            }
            Source::Function {
                function,
                args,
                ordinality,
            } => {
                let rows = if matches!(function.body, func::Body::Set(_)) {
                    100.0
                } else {
                    1.0
                };
                let node = Node::FunctionScan {
                    function,
                    args: std::mem::take(args),
                    ordinality: *ordinality,
                    alias,
                };
                let columns = ids.iter().map(|&id| self.output_column(id)).collect();
                Plan {
                    node,
                    columns,
                    rows,
                    cost: rows * 0.01,
                }
            }
            Source::Table(_) | Source::Virtual(..) => {
                return Err(SqlError::internal("a stored relation has its scan"));
            }
        };
        let layout = Layout::new(ids);
        let plan = super::build::filter(plan, conditions, &layout);
        Ok(Planned {
            plan,
            layout,
            ordered: false,
        })
    }

    fn output_column(&self, id: ColId) -> OutputColumn {
        let info = self.info(id);
        OutputColumn {
            name: info.name.to_string(),
            ty: info.ty,
            origin: info.origin,
        }
    }

    /// Attribute positions that are referred to, with their identities and descriptions.
    fn wanted_columns(
        &self,
        rel: usize,
        relation: &Relation,
    ) -> (Vec<usize>, Layout, Vec<OutputColumn>) {
        let item = &self.rels[rel];
        let mut columns = Vec::new();
        let mut ids = Vec::new();
        let mut outputs = Vec::new();
        for (position, column) in relation.columns.iter().enumerate() {
            let id = item.first + position;
            if column.dropped || !self.info(id).used {
                continue;
            }
            columns.push(position);
            ids.push(id);
            outputs.push(OutputColumn {
                name: column.name.clone(),
                ty: column.ty,
                origin: self.info(id).origin,
            });
        }
        (columns, Layout::new(ids), outputs)
    }

    fn table_scan(
        &mut self,
        rel: usize,
        table: &Arc<Relation>,
        conditions: Vec<Expr>,
        wish: &Wish,
    ) -> Result<Planned> {
        let rows = (self.cx.rows_of)(table).max(estimate::ROWS_MIN);
        let candidate = self.best_index(rel, table, &conditions, wish, rows)?;
        let (columns, mut layout, mut outputs) = self.wanted_columns(rel, table);
        if let Some(row_id) = self.rels[rel].row_id {
            let mut ids = layout.ids().to_vec();
            ids.extend([row_id, row_id + 1]);
            layout = Layout::new(ids);
            for _ in 0..2 {
                outputs.push(OutputColumn {
                    name: String::new(),
                    ty: SqlType::of(oid::INT8),
                    origin: (0, 0),
                });
            }
        }
        let row_id = self.rels[rel].row_id.is_some();
        let alias = self.rels[rel].alias.clone();
        let share: f64 = conditions.iter().map(|c| selectivity(c, rows)).product();
        let make_scan = |filter: Vec<Expr>| Scan {
            table: table.clone(),
            columns,
            filter: crate::bind::and(filter).map(|c| layout.resolve(c)),
            row_id,
            alias,
        };
        let Some(candidate) = candidate else {
            let plan = Plan {
                node: Node::SeqScan(make_scan(conditions)),
                columns: outputs,
                rows: (rows * share).max(1.0),
                cost: estimate::seq_scan(rows),
            };
            return Ok(Planned {
                plan,
                layout,
                ordered: false,
            });
        };
        let rest: Vec<Expr> = conditions
            .into_iter()
            .enumerate()
            .filter(|(i, _)| !candidate.answered.contains(i))
            .map(|(_, c)| c)
            .collect();
        let rest_share: f64 = rest.iter().map(|c| selectivity(c, rows)).product();
        let scan = make_scan(rest);
        let plan = Plan {
            node: Node::IndexScan {
                scan,
                index: candidate.index,
                range: candidate.range,
                reverse: candidate.reverse,
            },
            columns: outputs,
            rows: (candidate.rows * rest_share).max(1.0),
            cost: candidate.cost,
        };
        Ok(Planned {
            plan,
            layout,
            ordered: candidate.ordered,
        })
    }

    /// Whether an index answers equalities on some of the item's columns: rows per lookup and its cost. For join planning.
    pub(crate) fn index_lookup(
        &mut self,
        rel: usize,
        conditions: &[Expr],
    ) -> Result<Option<(f64, f64)>> {
        let Source::Table(table) = &self.rels[rel].source else {
            return Ok(None);
        };
        let table = table.clone();
        let rows = (self.cx.rows_of)(&table).max(estimate::ROWS_MIN);
        let best = self.best_index(rel, &table, conditions, &Wish::default(), rows)?;
        Ok(best
            .filter(|c| c.equal_columns > 0)
            .map(|c| (c.rows, c.cost)))
    }

    fn best_index(
        &mut self,
        rel: usize,
        table: &Arc<Relation>,
        conditions: &[Expr],
        wish: &Wish,
        rows: f64,
    ) -> Result<Option<Candidate>> {
        if table.indexes.is_empty() {
            return Ok(None);
        }
        let first = self.rels[rel].first;
        let mut usable = Vec::with_capacity(conditions.len());
        for condition in conditions {
            usable.push(self.indexable(first, table, condition)?);
        }
        let share: f64 = conditions.iter().map(|c| selectivity(c, rows)).product();
        let total = (rows * share).max(1.0);
        let limited = |cost: f64, produced: f64| match wish.limit {
            Some(limit) if limit < produced => cost * (limit / produced.max(1.0)),
            _ => cost,
        };
        let seq = {
            let scan = estimate::seq_scan(rows);
            if wish.order.is_empty() {
                limited(scan, total)
            } else {
                scan + estimate::sort(total)
            }
        };
        let mut best: Option<Candidate> = None;
        let mut best_cost = seq;
        for index in table.indexes.iter().filter(|index| index.is_plain()) {
            let Some(mut candidate) = match_index(index, &usable, rows) else {
                continue;
            };
            let (ordered, reverse) = order_of(
                index,
                candidate.equal_columns,
                candidate.range.any.is_some(),
                wish,
                first,
            );
            candidate.ordered = ordered && !wish.order.is_empty();
            candidate.reverse = candidate.ordered && reverse;
            let bounded = !candidate.answered.is_empty();
            if !bounded && !candidate.ordered {
                continue;
            }
            let cost = if wish.order.is_empty() || candidate.ordered {
                limited(candidate.cost, total)
            } else {
                candidate.cost + estimate::sort(total)
            };
            // An index that answers an equality beats reading everything whatever the table's size is today: the plan is
            // kept while the table grows.
            let equality = candidate.equal_columns > 0 || candidate.range.any.is_some();
            let better = cost < best_cost || (best.is_none() && equality);
            if better {
                best_cost = cost;
                best = Some(candidate);
            }
        }
        Ok(best)
    }

    /// Reads a condition as something an index on the item can answer.
    fn indexable(
        &mut self,
        first: ColId,
        table: &Relation,
        condition: &Expr,
    ) -> Result<Option<Indexable>> {
        let width = table.columns.len();
        let own = |e: &Expr| {
            plain_column(e)
                .filter(|id| (first..first + width).contains(id))
                .map(|id| id - first)
        };
        match condition {
            Expr::Call { function, args, .. } => {
                let [left, right] = args.as_slice() else {
                    return Ok(None);
                };
                let Some((comparison, _, _)) = func::operator_class(function.oid) else {
                    return Ok(None);
                };
                if comparison == Comparison::Ne {
                    return Ok(None);
                }
                let (position, comparison, value) = match (own(left), own(right)) {
                    (Some(position), None) => (position, comparison, right),
                    (None, Some(position)) => (position, comparison.commuted(), left),
                    _ => return Ok(None),
                };
                if !key_value(value, first, width) {
                    return Ok(None);
                }
                let column = SqlType::of(table.columns[position].ty.oid);
                let key = self.key_expr(value, column, comparison)?;
                Ok(key.map(|key| Indexable::Compare(position, comparison, key)))
            }
            Expr::ArrayCompare {
                left,
                array,
                op,
                all: false,
            } => {
                let Some(position) = own(left) else {
                    return Ok(None);
                };
                if !is_equality(op.oid) || !key_value(array, first, width) {
                    return Ok(None);
                }
                let column = table.columns[position].ty.oid;
                let Some(wanted) = info::array_of(column) else {
                    return Ok(None);
                };
                let from = array.ty();
                let key = if from.oid == wanted {
                    array.as_ref().clone()
                } else if same_bytes(info::element_of(from.oid).unwrap_or(0), column) {
                    Expr::Relabel(array.clone(), SqlType::of(wanted))
                } else {
                    match array.as_ref() {
                        Expr::Const(Datum::Array(value), _) => {
                            let Some(items) = narrow_items(&value.items, column) else {
                                return Ok(None);
                            };
                            Expr::Const(Datum::array(column, items), SqlType::of(wanted))
                        }
                        _ => return Ok(None),
                    }
                };
                let count = match &key {
                    Expr::Const(Datum::Array(value), _) => value.items.len() as f64,
                    _ => 10.0,
                };
                Ok(Some(Indexable::Any(position, key, count)))
            }
            Expr::InList {
                left,
                list,
                op,
                negated: false,
            } => {
                let Some(position) = own(left) else {
                    return Ok(None);
                };
                if !is_equality(op.oid) || !list.iter().all(|e| key_value(e, first, width)) {
                    return Ok(None);
                }
                let column = table.columns[position].ty.oid;
                let Some(array) = info::array_of(column) else {
                    return Ok(None);
                };
                let mut keys = Vec::with_capacity(list.len());
                for item in list {
                    match self.key_expr(item, SqlType::of(column), Comparison::Eq)? {
                        Some(key) => keys.push(key),
                        None => return Ok(None),
                    }
                }
                let count = keys.len() as f64;
                let key = if keys.iter().all(|k| matches!(k, Expr::Const(..))) {
                    let items = keys
                        .into_iter()
                        .map(|k| match k {
                            Expr::Const(datum, _) => datum,
                            _ => Datum::Null,
                        })
                        .collect();
                    Expr::Const(Datum::array(column, items), SqlType::of(array))
                } else {
                    Expr::Array(keys, SqlType::of(array))
                };
                Ok(Some(Indexable::Any(position, key, count)))
            }
            _ => Ok(None),
        }
    }

    /// `value` as an expression of exactly the column's type, if comparing with it means the same.
    fn key_expr(
        &mut self,
        value: &Expr,
        column: SqlType,
        comparison: Comparison,
    ) -> Result<Option<Expr>> {
        let from = value.ty().oid;
        if from == column.oid {
            return Ok(Some(value.clone()));
        }
        if same_bytes(from, column.oid) {
            return Ok(Some(match value {
                Expr::Const(datum, _) => Expr::Const(datum.clone(), column),
                other => Expr::Relabel(Box::new(other.clone()), column),
            }));
        }
        let (Some(from_width), Some(to_width)) = (int_width(from), int_width(column.oid)) else {
            return Ok(None);
        };
        if from_width < to_width {
            return self.try_coerce(value.clone(), column, CastContext::Implicit, None);
        }
        if let Expr::Const(datum, _) = value {
            return Ok(narrow(datum, column.oid).map(|d| Expr::Const(d, column)));
        }
        if comparison != Comparison::Eq {
            return Ok(None);
        }
        // A value beyond the column's range equals no row: NULL, which matches nothing.
        let wide = SqlType::of(from);
        let bounds = match column.oid {
            oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let bound = |n: i64| match from {
            oid::INT8 => Some(Expr::Const(Datum::Int8(n), wide)),
            _ => i32::try_from(n)
                .ok()
                .map(|n| Expr::Const(Datum::Int4(n), wide)),
        };
        let (Some(low), Some(high)) = (bound(bounds.0), bound(bounds.1)) else {
            return Ok(None);
        };
        let above = self.operator(">=", value.clone(), low, None)?;
        let below = self.operator("<=", value.clone(), high, None)?;
        let Some(cast) = self.try_coerce(value.clone(), column, CastContext::Explicit, None)?
        else {
            return Ok(None);
        };
        Ok(Some(Expr::Case {
            arms: vec![(Expr::And(vec![above, below]), cast)],
            otherwise: None,
            ty: column,
        }))
    }
}

/// The column identity behind binary-compatible casts.
pub(crate) fn plain_column(expr: &Expr) -> Option<ColId> {
    match expr {
        Expr::Column(id, _) if *id >= COLUMN_BASE => Some(*id),
        Expr::Relabel(inner, ty) if same_bytes(inner.ty().oid, ty.oid) => plain_column(inner),
        _ => None,
    }
}

/// Types whose values have the same bytes and order.
fn same_bytes(a: u32, b: u32) -> bool {
    a == b || (matches!(a, oid::TEXT | oid::VARCHAR) && matches!(b, oid::TEXT | oid::VARCHAR))
}

fn int_width(ty: u32) -> Option<u8> {
    match ty {
        oid::INT2 => Some(2),
        oid::INT4 => Some(4),
        oid::INT8 => Some(8),
        _ => None,
    }
}

fn narrow(datum: &Datum, ty: u32) -> Option<Datum> {
    let value = match datum {
        Datum::Null => return Some(Datum::Null),
        Datum::Int2(n) => i64::from(*n),
        Datum::Int4(n) => i64::from(*n),
        Datum::Int8(n) => *n,
        _ => return None,
    };
    match ty {
        oid::INT2 => i16::try_from(value).ok().map(Datum::Int2),
        oid::INT4 => i32::try_from(value).ok().map(Datum::Int4),
        oid::INT8 => Some(Datum::Int8(value)),
        _ => None,
    }
}

/// Elements that fit the column; those that do not equal no row and are left out.
fn narrow_items(items: &[Datum], ty: u32) -> Option<Vec<Datum>> {
    int_width(ty)?;
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Datum::Null | Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => {
                out.extend(narrow(item, ty))
            }
            _ => return None,
        }
    }
    Some(out)
}

fn is_equality(function: u32) -> bool {
    matches!(func::operator_class(function), Some((Comparison::Eq, _, _)))
}

/// Whether an expression may be an index key: it does not depend on the scanned row and has one value per scan.
fn key_value(expr: &Expr, first: ColId, width: usize) -> bool {
    let mut ids = Vec::new();
    walk::column_ids(expr, &mut ids);
    !ids.iter().any(|id| (first..first + width).contains(id))
        && !walk::is_volatile(expr)
        && !walk::has_subquery(expr)
}

fn match_index(
    index: &Arc<IndexDef>,
    usable: &[Option<Indexable>],
    rows: f64,
) -> Option<Candidate> {
    let mut range = KeyRange::default();
    let mut answered = Vec::new();
    let mut found = rows;
    let mut equal_columns = 0;
    for column in &index.columns {
        let equal = usable.iter().enumerate().find_map(|(i, u)| match u {
            Some(Indexable::Compare(position, Comparison::Eq, key))
                if Some(*position) == column.position() =>
            {
                Some((i, key))
            }
            _ => None,
        });
        if let Some((i, key)) = equal {
            range.equal.push(key.clone());
            answered.push(i);
            equal_columns += 1;
            found = if index.unique && equal_columns == index.columns.len() {
                1.0
            } else {
                (found * estimate::EQUAL).max(1.0)
            };
            continue;
        }
        let any = usable.iter().enumerate().find_map(|(i, u)| match u {
            Some(Indexable::Any(position, key, count)) if Some(*position) == column.position() => {
                Some((i, key, *count))
            }
            _ => None,
        });
        if let Some((i, key, count)) = any {
            range.any = Some(key.clone());
            answered.push(i);
            let each = if index.unique && equal_columns + 1 == index.columns.len() {
                1.0
            } else {
                (found * estimate::EQUAL).max(1.0)
            };
            found = (each * count).min(found);
            break;
        }
        for (i, u) in usable.iter().enumerate() {
            let Some(Indexable::Compare(position, comparison, key)) = u else {
                continue;
            };
            if Some(*position) != column.position() {
                continue;
            }
            let (slot, inclusive) = match comparison {
                Comparison::Gt => (&mut range.lower, false),
                Comparison::Ge => (&mut range.lower, true),
                Comparison::Lt => (&mut range.upper, false),
                Comparison::Le => (&mut range.upper, true),
                Comparison::Eq | Comparison::Ne => continue,
            };
            if slot.is_none() {
                *slot = Some((key.clone(), inclusive));
                answered.push(i);
                found = (found * estimate::RANGE).max(1.0);
            }
        }
        break;
    }
    let cost = estimate::index_scan(found);
    Some(Candidate {
        index: index.clone(),
        range,
        answered,
        rows: found,
        cost,
        ordered: false,
        reverse: false,
        equal_columns,
    })
}

/// Whether an index scan gives the wanted order, and whether backwards.
fn order_of(index: &IndexDef, equal: usize, any: bool, wish: &Wish, first: ColId) -> (bool, bool) {
    if wish.order.is_empty() || any {
        return (false, false);
    }
    let fixed: Vec<ColId> = index.columns[..equal]
        .iter()
        .filter_map(|c| Some(first + c.position()?))
        .collect();
    let mut columns = index.columns[equal..].iter();
    let mut direction = None;
    for (id, desc, nulls_first) in &wish.order {
        if fixed.contains(id) {
            continue;
        }
        let Some(column) = columns.next() else {
            // Past the whole key of a unique index nothing is left to order.
            return (
                index.unique && direction.is_some(),
                direction.unwrap_or(false),
            );
        };
        if column.position().map(|position| first + position) != Some(*id) {
            return (false, false);
        }
        let forward = column.desc == *desc && column.nulls_first == *nulls_first;
        let backward = column.desc != *desc && column.nulls_first != *nulls_first;
        let reverse = match (forward, backward) {
            (true, _) => false,
            (_, true) => true,
            _ => return (false, false),
        };
        if direction.is_some_and(|d| d != reverse) {
            return (false, false);
        }
        direction = Some(reverse);
    }
    (true, direction.unwrap_or(false))
}
