//! WITH: the queries that are kept, around what reads them.
//!
//! What changes something is run to its end once, whether it is read or not ([`CteExecution`]).

use crate::planner::Planner;
use crate::query::expr::Expr;
use crate::query::{Definition, QueryTree};
use crate::{CteExecution, Node, Plan, walk};
use logstead_sql_types::error::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// A query of WITH that is kept, planned.
struct PlannedDefinition {
    slot: usize,
    name: Arc<str>,
    plan: Plan,
    /// The recursive term, and whether all its rows are kept.
    recursive: Option<(Box<Plan>, bool)>,
}

impl Planner<'_> {
    /// Plans a body with the queries that it reads.
    pub(super) fn plan_with(
        &mut self,
        definitions: Vec<Definition>,
        body: QueryTree,
    ) -> Result<Plan> {
        let definitions = definitions
            .into_iter()
            .map(|definition| self.plan_definition(definition))
            .collect::<Result<Vec<_>>>()?;
        let plan = self.plan_body(body)?;
        Ok(around(definitions, plan))
    }

    /// Plans a query of WITH. From then on it is known how many rows it gives.
    fn plan_definition(&mut self, definition: Definition) -> Result<PlannedDefinition> {
        let Definition {
            slot,
            name,
            body,
            recursive,
        } = definition;
        let plan = self.plan_body(body)?;
        self.range.set_cte_rows(slot, plan.rows);
        let recursive = match recursive {
            None => None,
            Some((term, all)) => {
                let term = self.plan_body(term)?;
                // A guess: each round gives as many as the first one, ten times.
                self.range.set_cte_rows(slot, plan.rows * 10.0);
                Some((Box::new(term), all))
            }
        };
        Ok(PlannedDefinition {
            slot,
            name,
            plan,
            recursive,
        })
    }
}

/// Puts definitions around what reads them.
fn around(definitions: Vec<PlannedDefinition>, mut plan: Plan) -> Plan {
    // An expression cannot wait for a locked row: what it reads of changes is there before.
    let within = RefCell::new(Vec::new());
    read_within(&plan, &within);
    for definition in &definitions {
        read_within(&definition.plan, &within);
        if let Some((term, _)) = &definition.recursive {
            read_within(term, &within);
        }
    }
    let mut within = within.into_inner();
    for definition in definitions.iter().rev() {
        if within.contains(&definition.slot) {
            reads(&definition.plan, &mut within);
            if let Some((term, _)) = &definition.recursive {
                reads(term, &mut within);
            }
        }
    }
    for definition in definitions.into_iter().rev() {
        let (rows, cost) = (plan.rows, plan.cost + definition.plan.cost);
        let columns = plan.columns.clone();
        let execution = match (
            definition.plan.is_change(),
            within.contains(&definition.slot),
        ) {
            (false, _) => CteExecution::AsRead,
            (true, false) => CteExecution::ToTheEnd,
            (true, true) => CteExecution::Before,
        };
        plan = Plan {
            node: Node::With {
                slot: definition.slot,
                name: definition.name,
                definition: Box::new(definition.plan),
                recursive: definition.recursive,
                execution,
                body: Box::new(plan),
            },
            columns,
            rows,
            cost,
        };
    }
    plan
}

/// The queries of WITH that a plan reads, but for those that subqueries in its expressions do.
fn reads(plan: &Plan, out: &mut Vec<usize>) {
    if let Node::CteScan { slot, .. } = &plan.node {
        out.push(*slot);
    }
    for below in crate::instrumentation::children(plan) {
        reads(below, out);
    }
}

/// The queries of WITH that subqueries in a plan's expressions read.
fn read_within(plan: &Plan, out: &RefCell<Vec<usize>>) {
    let look = |expr: &Expr| {
        walk::any(expr, &|e| {
            if let Expr::Subquery(subquery) = e {
                reads(&subquery.plan, &mut out.borrow_mut());
            }
            false
        });
    };
    walk::plan_exprs(plan, 0, &mut |expr, _| look(expr));
    walk::change_exprs(plan, &mut |expr| look(expr));
}
