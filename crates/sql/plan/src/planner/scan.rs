//! How one FROM item is read. Whether by an index, and by which, `index_path` decides.

use crate::layout::Layout;
use crate::planner::Planner;
use crate::planner::merge_join::{PathKey, as_wanted};
use crate::query::expr::Expr;
use crate::query::{ColId, RelSource};
use crate::rewrite::prune_columns::prune;
use crate::{NO_VERSION, Node, OutputColumn, Plan, ROW_NUMBER, Scan, SecurityQuals, build, cost};
use logstead_sql_catalog::Relation;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use std::sync::Arc;

/// A plan with the identities of its columns.
#[derive(Clone)]
pub(crate) struct Path {
    pub plan: Plan,
    pub layout: Layout,
    /// Rows come in the order that was wanted.
    pub ordered: bool,
    /// What they are sorted by, where that is known.
    pub(super) order: Vec<PathKey>,
    /// How a table could be read in another order.
    pub(super) rescan: Option<Box<Rescan>>,
}

/// A scan of a table, to be planned once more.
#[derive(Clone)]
pub(super) struct Rescan {
    pub(super) rel: usize,
    pub(super) conditions: Vec<Expr>,
}

impl Path {
    /// Rows of which no order is known.
    pub(crate) fn new(plan: Plan, layout: Layout) -> Path {
        Path {
            plan,
            layout,
            ordered: false,
            order: Vec::new(),
            rescan: None,
        }
    }
}

/// An order of rows: column or expression, descending, NULLs first.
pub(crate) type PathKeys = Vec<(Expr, bool, bool)>;

/// What the reader of a scan would like.
#[derive(Default)]
pub(crate) struct RequiredOrder {
    pub order: PathKeys,
    /// Rows that will be taken.
    pub limit: Option<f64>,
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

impl Planner<'_> {
    /// Reads FROM item `rel` under `conditions` (all of them about this item alone, or about columns that an enclosing
    /// row gives: those only answer through an index, see `lateral`).
    pub(crate) fn scan(
        &mut self,
        rel: usize,
        conditions: Vec<Expr>,
        required: &RequiredOrder,
    ) -> Result<Path> {
        match &self.range.rels[rel].source {
            RelSource::Table(table) => {
                let table = table.clone();
                self.table_scan(rel, &table, conditions, required)
            }
            RelSource::Virtual(relation, table) => {
                let (relation, table) = (relation.clone(), *table);
                let rows = cost::virtual_rows((self.cx.rows_of)(&relation));
                let (mut columns, mut layout, mut outputs) = self.wanted_columns(rel, &relation);
                if let Some(row_id) = self.range.rels[rel].row_id {
                    columns.extend([ROW_NUMBER, NO_VERSION]);
                    (layout, outputs) = with_row_id(&layout, outputs, row_id);
                }
                let share = self.share(conditions.iter(), rows);
                let filter = crate::query::expr::and(conditions).map(|c| layout.resolve(c));
                let alias = self.range.rels[rel].alias.clone();
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
                Ok(Path::new(plan, layout))
            }
            RelSource::Plan(_)
            | RelSource::Query(_)
            | RelSource::Cte { .. }
            | RelSource::Function { .. } => self.other_scan(rel, conditions),
        }
    }

    fn other_scan(&mut self, rel: usize, conditions: Vec<Expr>) -> Result<Path> {
        let first = self.range.rels[rel].first;
        let ids: Vec<ColId> = (first..first + self.range.rels[rel].width).collect();
        let used: Vec<bool> = ids.iter().map(|&id| self.info(id).used).collect();
        let cte_rows = match self.range.rels[rel].source {
            RelSource::Cte { slot } => self.range.cte_rows(slot),
            _ => 0.0,
        };
        let item = &mut self.range.rels[rel];
        let alias = item.alias.clone();
        let plan = match &mut item.source {
            RelSource::Plan(plan) => {
                let mut plan = *plan
                    .take()
                    .ok_or_else(|| SqlError::internal("a subquery was planned twice"))?;
                prune(&mut plan, &used);
                plan
            }
            RelSource::Cte { slot } => {
                let (slot, rows) = (*slot, cte_rows);
                let node = Node::CteScan { slot, name: alias };
                let columns = ids.iter().map(|&id| self.output_column(id)).collect();
                Plan {
                    node,
                    columns,
                    rows,
                    cost: rows * 0.01,
                }
            }
            RelSource::Function {
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
            RelSource::Table(_) | RelSource::Virtual(..) | RelSource::Query(_) => {
                return Err(SqlError::internal("a stored relation has its scan"));
            }
        };
        let layout = Layout::new(ids);
        let plan = self.filtered(plan, conditions, &layout);
        Ok(Path::new(plan, layout))
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
        let item = &self.range.rels[rel];
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
        required: &RequiredOrder,
    ) -> Result<Path> {
        // An index may answer what row security asks, as it may the rest.
        let guards = self.range.rels[rel].guard.len();
        let conditions = match guards {
            0 => conditions,
            _ => [self.range.rels[rel].guard.clone(), conditions].concat(),
        };
        let rows = self.table_rows(table);
        let current_of = self.range.rels[rel].current_of.clone();
        let candidate = match &current_of {
            Some(_) => None,
            None => self.best_index(rel, table, &conditions, required, rows)?,
        };
        let (columns, mut layout, mut outputs) = self.wanted_columns(rel, table);
        if let Some(row_id) = self.range.rels[rel].row_id {
            (layout, outputs) = with_row_id(&layout, outputs, row_id);
        }
        let row_id = self.range.rels[rel].row_id.is_some();
        let alias = self.range.rels[rel].alias.clone();
        let share = self.share(conditions.iter(), rows);
        let make_scan = |conditions: Vec<(usize, Expr)>| {
            let (guard, own): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|(at, _)| *at < guards);
            let bare = |all: Vec<(usize, Expr)>| all.into_iter().map(|(_, c)| c);
            Scan {
                table: table.clone(),
                columns,
                filter: SecurityQuals::hiding(bare(guard).collect(), bare(own)).over(&layout),
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
            return Ok(Path::new(plan, layout));
        }
        let Some(candidate) = candidate else {
            let plan = Plan {
                node: Node::SeqScan(make_scan(conditions)),
                columns: outputs,
                rows: (rows * share).max(1.0),
                cost: cost::seq_scan(rows),
            };
            return Ok(Path::new(plan, layout));
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
        Ok(Path {
            ordered: candidate.ordered,
            order: match candidate.ordered {
                true => as_wanted(&required.order),
                false => Vec::new(),
            },
            ..Path::new(plan, layout)
        })
    }
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
        origin: None,
    }));
    (Layout::new(ids), outputs)
}
