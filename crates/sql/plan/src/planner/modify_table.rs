//! INSERT, UPDATE, DELETE and MERGE: their source rows are planned, and what they say of these is put over positions.

use crate::layout::resolve_at;
use crate::planner::{Planner, RequiredOrder, build};
use crate::query::expr::{ColId, Expr};
use crate::query::{BoundChange, ChangeSource, ChangedRows};
use crate::{Layout, Node, OutputColumn, Plan, SecurityQuals};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};

/// What a change costs for each source row, beside it.
const COST_OF_CHANGE: f64 = 0.05;

/// Source rows of UPDATE, DELETE and MERGE.
struct SourceRows {
    plan: Plan,
    /// WHERE, for newer versions of the rows.
    recheck: SecurityQuals,
    /// The target's columns, the others, and what is hidden of the target's row. RETURNING sees it with the new values.
    layout: Layout,
}

impl Planner<'_> {
    /// Plans a change.
    pub(super) fn plan_change(&mut self, mut change: BoundChange) -> Result<Plan> {
        let mut result = Ok(());
        change.exprs_mut(&mut |expr| {
            if result.is_ok() {
                result = self.plan_sublinks(expr);
            }
        });
        result?;
        let nothing = ChangeSource::Query(crate::query::QueryTree::Values(Vec::new(), Vec::new()));
        let (source, recheck) = match std::mem::replace(&mut change.source, nothing) {
            ChangeSource::Query(body) => (self.plan_body(body)?, SecurityQuals::default()),
            ChangeSource::Rows(rows) => {
                let rows = self.source_rows(rows)?;
                change.exprs_mut(&mut |expr| resolve_at(expr, &rows.layout, 0));
                (rows.plan, rows.recheck)
            }
        };
        let (rows, cost) = (source.rows, source.cost + source.rows * COST_OF_CHANGE);
        let BoundChange {
            mut node, columns, ..
        } = change;
        match &mut node {
            Node::Insert(insert) => insert.source = source,
            Node::Update(update) => {
                update.source = source;
                update.recheck = recheck;
            }
            Node::Delete(delete) => {
                delete.source = source;
                delete.recheck = recheck;
            }
            Node::Merge(merge) => merge.source = source,
            _ => return Err(SqlError::internal("a change that changes nothing")),
        }
        Ok(Plan {
            node,
            columns,
            rows,
            cost,
        })
    }

    /// The rows of a target, as [`crate::Update`] wants them.
    fn source_rows(&mut self, rows: ChangedRows) -> Result<SourceRows> {
        let ChangedRows {
            relation,
            rel,
            mut list,
        } = rows;
        self.plan_sublinks_in_list(&mut list)?;
        let (first, width) = (self.range.rels[rel].first, self.range.rels[rel].width);
        let row_id = self.range.rels[rel].row_id;
        if row_id.is_none() && relation.view().is_none() {
            return Err(SqlError::internal("the target has no row id"));
        }
        let hidden = |id: &ColId| row_id.is_some_and(|row_id| *id == row_id || *id == row_id + 1);
        let recheck =
            SecurityQuals::hiding(self.range.guards_of([rel]), list.conditions.iter().cloned());
        let planned = self.plan_from(list, &RequiredOrder::default())?;
        let own = first..first + width;
        let mut ids: Vec<ColId> = own.clone().collect();
        let others = planned.layout.ids().iter().copied();
        ids.extend(others.filter(|id| !own.contains(id) && !hidden(id)));
        if let Some(row_id) = row_id {
            ids.extend([row_id, row_id + 1]);
        }
        let mut exprs = Vec::with_capacity(ids.len());
        let mut columns = Vec::with_capacity(ids.len());
        for (i, &id) in ids.iter().enumerate() {
            let info = self.info(id);
            columns.push(OutputColumn {
                domain: None,
                name: info.name.to_string(),
                ty: info.ty,
                origin: info.origin,
            });
            exprs.push(match planned.layout.position(id) {
                Some(position) => Expr::Column(position, info.ty),
                None => {
                    let dropped = relation.columns.get(i);
                    let ty = dropped
                        .ok_or_else(|| SqlError::internal("a lost column"))?
                        .ty;
                    Expr::Const(Datum::Null, ty)
                }
            });
        }
        if row_id.is_none() {
            // A view's rows have none.
            for _ in 0..2 {
                let ty = SqlType::of(oid::INT8);
                exprs.push(Expr::Const(Datum::Null, ty));
                columns.push(OutputColumn {
                    domain: None,
                    name: String::new(),
                    ty,
                    origin: None,
                });
            }
        }
        let plan = build::project(planned.plan, exprs, columns);
        let layout = Layout::new(ids);
        Ok(SourceRows {
            plan,
            recheck: recheck.over(&layout),
            layout,
        })
    }
}
