//! How one FROM item is read.

use super::layout::Layout;
use super::merge_join::{Sorted, as_wanted};
use super::{
    Guarded, NO_VERSION, Node, OutputColumn, Plan, ROW_NUMBER, Scan, SetOpKind, build, estimate,
    walk,
};
use crate::bind::{Binder, COLUMN_BASE, ColId, Source};
use crate::expr::Expr;
use logstead_sql_catalog::Relation;
use logstead_sql_func::Volatility;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use std::sync::Arc;

/// A plan with the identities of its columns.
#[derive(Clone)]
pub(crate) struct Planned {
    pub plan: Plan,
    pub layout: Layout,
    /// Rows come in the order that was wanted.
    pub ordered: bool,
    /// What they are sorted by, where that is known.
    pub(super) order: Vec<Sorted>,
    /// How a table could be read in another order.
    pub(super) again: Option<Box<Again>>,
}

/// A scan of a table, to be planned once more.
#[derive(Clone)]
pub(super) struct Again {
    pub(super) rel: usize,
    pub(super) conditions: Vec<Expr>,
}

impl Planned {
    /// Rows of which no order is known.
    pub(crate) fn new(plan: Plan, layout: Layout) -> Planned {
        Planned {
            plan,
            layout,
            ordered: false,
            order: Vec::new(),
            again: None,
        }
    }
}

/// An order of rows: column or expression, descending, NULLs first.
pub(crate) type Wanted = Vec<(Expr, bool, bool)>;

/// What the reader of a scan would like.
#[derive(Default)]
pub(crate) struct Wish {
    pub order: Wanted,
    /// Rows that will be taken.
    pub limit: Option<f64>,
}

/// A subquery's columns that nobody asks for are not computed, unless computing them does something: one that fails
/// fails nothing.
fn leave_out(plan: &mut Plan, used: &[bool]) {
    let width = plan.columns.len();
    if width != used.len() {
        return;
    }
    match &mut plan.node {
        Node::Limit { input, .. } => leave_out(input, used),
        Node::SetOp {
            kind: SetOpKind::Union,
            all: true,
            left,
            right,
        } => {
            leave_out(left, used);
            leave_out(right, used);
        }
        Node::Filter { input, condition } => {
            let mut used = used.to_vec();
            note_used(condition, &mut used);
            leave_out(input, &used);
        }
        Node::Project { input, exprs } if exprs.len() == width => {
            for ((expr, column), used) in exprs.iter_mut().zip(&plan.columns).zip(used) {
                if !*used && !does_something(expr) {
                    *expr = Expr::Const(Datum::Null, column.ty);
                }
            }
            let mut below = vec![false; input.columns.len()];
            for expr in exprs.iter() {
                note_used(expr, &mut below);
            }
            leave_out(input, &below);
        }
        Node::Aggregate {
            keys, aggregates, ..
        } => {
            for (call, used) in aggregates.iter_mut().zip(used.iter().skip(keys.len())) {
                let mut computed = call.args.iter().chain(&call.filter);
                if *used || !call.order.is_empty() || computed.any(does_something) {
                    continue;
                }
                // It stays in its place, over no row.
                for arg in &mut call.args {
                    *arg = Expr::Const(Datum::Null, arg.ty());
                }
                call.distinct = false;
                call.filter = Some(Expr::Const(Datum::Bool(false), SqlType::of(oid::BOOL)));
            }
        }
        _ => {}
    }
}

/// Whether computing an expression does something besides.
fn does_something(expr: &Expr) -> bool {
    let within = |e: &Expr| matches!(e, Expr::Subquery(subquery) if changes(&subquery.plan));
    walk::is_volatile(expr) || walk::any(expr, &within)
}

/// Whether a plan does something besides giving rows. Expressions are not looked at.
fn changes(plan: &Plan) -> bool {
    let own = match &plan.node {
        Node::FunctionScan { function, .. } => function.volatility == Volatility::Volatile,
        Node::RoutineScan { .. }
        | Node::LockRows { .. }
        | Node::Insert(_)
        | Node::Update(_)
        | Node::Delete(_)
        | Node::Merge(_) => true,
        _ => false,
    };
    own || crate::stats::children(plan).into_iter().any(changes)
}

/// Notes the columns that an expression reads.
fn note_used(expr: &Expr, used: &mut [bool]) {
    match expr {
        Expr::Column(column, _) => match used.get_mut(*column) {
            Some(used) => *used = true,
            None => used.fill(true),
        },
        // Its plan may read any of them.
        Expr::Subquery(_) => used.fill(true),
        _ => walk::children(expr, &mut |child| note_used(child, used)),
    }
}

/// A function's rows, of which these columns are computed anew.
fn asking(plan: Plan, asked: Vec<(usize, Expr)>) -> Plan {
    let columns = plan.columns.clone();
    let given = columns.iter().enumerate();
    let mut exprs: Vec<Expr> = given.map(|(at, c)| Expr::Column(at, c.ty)).collect();
    for (at, expr) in asked {
        if let Some(place) = exprs.get_mut(at) {
            *place = expr;
        }
    }
    build::project(plan, exprs, columns)
}

impl Binder<'_> {
    /// Reads FROM item `rel` under `conditions` (all of them about this item alone, or about columns that an enclosing
    /// row gives: those only answer through an index, see `lateral`).
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
                let rows = estimate::virtual_rows((self.cx.rows_of)(&relation));
                let (mut columns, mut layout, mut outputs) = self.wanted_columns(rel, &relation);
                if let Some(row_id) = self.rels[rel].row_id {
                    columns.extend([ROW_NUMBER, NO_VERSION]);
                    (layout, outputs) = with_row_id(&layout, outputs, row_id);
                }
                let share = self.share(conditions.iter(), rows);
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
                Ok(Planned::new(plan, layout))
            }
            Source::Plan(_) | Source::Query(_) | Source::Cte { .. } | Source::Function { .. } => {
                self.other_scan(rel, conditions)
            }
        }
    }

    fn other_scan(&mut self, rel: usize, conditions: Vec<Expr>) -> Result<Planned> {
        let first = self.rels[rel].first;
        let ids: Vec<ColId> = (first..first + self.rels[rel].width).collect();
        let used: Vec<bool> = ids.iter().map(|&id| self.info(id).used).collect();
        let item = &mut self.rels[rel];
        let alias = item.alias.clone();
        let plan = match &mut item.source {
            Source::Plan(plan) => {
                let mut plan = *plan
                    .take()
                    .ok_or_else(|| SqlError::internal("a subquery was planned twice"))?;
                leave_out(&mut plan, &used);
                plan
            }
            Source::Cte { slot, rows } => {
                let (slot, rows) = (*slot, *rows);
                let node = Node::CteScan { slot, name: alias };
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
                asked,
            } => {
                let asked = std::mem::take(asked);
                let rows = if function.is_set() { 100.0 } else { 1.0 };
                let node = Node::FunctionScan {
                    function,
                    args: std::mem::take(args),
                    ordinality: *ordinality,
                    alias,
                };
                let columns = ids.iter().map(|&id| self.output_column(id)).collect();
                let plan = Plan {
                    node,
                    columns,
                    rows,
                    cost: rows * 0.01,
                };
                match asked.is_empty() {
                    true => plan,
                    false => asking(plan, asked),
                }
            }
            Source::Table(_) | Source::Virtual(..) | Source::Query(_) => {
                return Err(SqlError::internal("a stored relation has its scan"));
            }
        };
        let layout = Layout::new(ids);
        let plan = self.filtered(plan, conditions, &layout);
        Ok(Planned::new(plan, layout))
    }

    fn output_column(&self, id: ColId) -> OutputColumn {
        let info = self.info(id);
        OutputColumn {
            domain: None,
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
                domain: None,
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
        // An index may answer what row security asks, as it may the rest.
        let guards = self.rels[rel].guard.len();
        let conditions = match guards {
            0 => conditions,
            _ => [self.rels[rel].guard.clone(), conditions].concat(),
        };
        let rows = self.table_rows(table);
        let current_of = self.rels[rel].current_of.clone();
        let candidate = match &current_of {
            Some(_) => None,
            None => self.best_index(rel, table, &conditions, wish, rows)?,
        };
        let (columns, mut layout, mut outputs) = self.wanted_columns(rel, table);
        if let Some(row_id) = self.rels[rel].row_id {
            (layout, outputs) = with_row_id(&layout, outputs, row_id);
        }
        let row_id = self.rels[rel].row_id.is_some();
        let alias = self.rels[rel].alias.clone();
        let share = self.share(conditions.iter(), rows);
        let make_scan = |conditions: Vec<(usize, Expr)>| {
            let (guard, own): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|(at, _)| *at < guards);
            let bare = |all: Vec<(usize, Expr)>| all.into_iter().map(|(_, c)| c);
            Scan {
                table: table.clone(),
                columns,
                filter: Guarded::hiding(bare(guard).collect(), bare(own)).over(&layout),
                row_id,
                unread: Vec::new(),
                alias,
            }
        };
        let conditions: Vec<(usize, Expr)> = conditions.into_iter().enumerate().collect();
        if let Some(cursor) = current_of {
            let scan = make_scan(conditions);
            let plan = Plan {
                node: Node::RowScan { scan, cursor },
                columns: outputs,
                rows: 1.0,
                cost: 0.01,
            };
            return Ok(Planned::new(plan, layout));
        }
        let Some(candidate) = candidate else {
            let plan = Plan {
                node: Node::SeqScan(make_scan(conditions)),
                columns: outputs,
                rows: (rows * share).max(1.0),
                cost: estimate::seq_scan(rows),
            };
            return Ok(Planned::new(plan, layout));
        };
        let rest = conditions
            .into_iter()
            .filter(|(i, _)| !candidate.answered.contains(i))
            .collect();
        let scan = make_scan(rest);
        let plan = Plan {
            node: Node::IndexScan {
                scan,
                index: candidate.index,
                range: candidate.range,
                reverse: candidate.reverse,
            },
            columns: outputs,
            rows: (rows * share).min(candidate.rows).max(1.0),
            cost: candidate.cost,
        };
        Ok(Planned {
            ordered: candidate.ordered,
            order: match candidate.ordered {
                true => as_wanted(&wish.order),
                false => Vec::new(),
            },
            ..Planned::new(plan, layout)
        })
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
pub(super) fn same_bytes(a: u32, b: u32) -> bool {
    a == b || (matches!(a, oid::TEXT | oid::VARCHAR) && matches!(b, oid::TEXT | oid::VARCHAR))
}

/// What a scan gives, and behind it the row's number and its version's token.
fn with_row_id(
    layout: &Layout,
    mut outputs: Vec<OutputColumn>,
    row_id: ColId,
) -> (Layout, Vec<OutputColumn>) {
    let mut ids = layout.ids().to_vec();
    ids.extend([row_id, row_id + 1]);
    outputs.extend((0..2).map(|_| OutputColumn {
        domain: None,
        name: String::new(),
        ty: SqlType::of(oid::INT8),
        origin: (0, 0),
    }));
    (Layout::new(ids), outputs)
}
