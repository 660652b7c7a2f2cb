//! WHEN of triggers: a condition over the row as it was and as it is to be.
//!
//! Invariant: what is bound here reads nothing but the two rows: no subqueries, so that it can be evaluated wherever a
//! row is written.

use super::constraint_rules::{Change, ReferentialActions};
use super::scope::NsColumnSource;
use super::updatable::Verb;
use super::{Binder, COLUMN_BASE, Clause, ColId, Frame};
use crate::constraints::{PlannedTrigger, TableTriggers};
use crate::permissions::Bound;
use crate::query::expr::Expr;
use crate::{Callee, Layout, Plan, PlanContext, walk};
use logstead_sql_catalog::trigger::{BuiltInTrigger, Trigger, TriggerEvent, TriggerTime};
use logstead_sql_catalog::{Relation, View};
use logstead_sql_func::Volatility;
use logstead_sql_parse::ast;
use logstead_sql_parse::policy_expr;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The names of the two rows, in their order.
const ROWS: [&str; 2] = ["old", "new"];

/// What CREATE TRIGGER must know of its condition.
pub struct TriggerQuery {
    /// The columns of OLD that it uses.
    pub old: Vec<usize>,
    /// Those of NEW.
    pub new: Vec<usize>,
    /// The rest, as of a view's query; its plan is none.
    pub query: super::ViewQuery,
}

fn refuse_subquery(bound: &Expr) -> Result<()> {
    match walk::has_subquery(bound) {
        true => Err(SqlError::unsupported(
            "a call of a PL/pgSQL function in WHEN of a trigger",
        )),
        false => Ok(()),
    }
}

/// Binds the condition of CREATE TRIGGER. `text` is what its spans count in.
pub fn bind_trigger(
    expr: &ast::Expr,
    text: &str,
    relation: &Arc<Relation>,
    cx: &PlanContext<'_>,
) -> Result<Bound<TriggerQuery>> {
    let mut binder = Binder::new(cx, text);
    binder.secures = false;
    binder.recorded = Some(Vec::new());
    binder.inlines = false;
    binder.frames.push(Frame::new());
    let mut rows = [(0, 0); 2];
    for (row, name) in rows.iter_mut().zip(ROWS) {
        let rel = binder.add_relation(relation, None)?;
        binder.rename_last(name.into(), relation)?;
        *row = (binder.range.rels[rel].first, binder.range.rels[rel].width);
    }
    let bound = binder.in_clause(Clause::Trigger, |b| b.condition_of(expr, "WHEN"));
    binder.frames.pop();
    let bound = bound?;
    let mut queries = false;
    let _: ControlFlow<()> = ast::visit_expressions(expr, |expr| {
        queries |= matches!(
            expr,
            ast::Expr::SubLink(node) if node.kind != ast::SubLinkKind::Array
        );
        ControlFlow::Continue(())
    });
    if queries {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in trigger WHEN condition",
        ));
    }
    refuse_subquery(&bound)?;
    let used = |(first, width): (ColId, usize)| {
        (0..width)
            .filter(|i| binder.info(first + i).used)
            .collect::<Vec<usize>>()
    };
    let (old, new) = (used(rows[0]), used(rows[1]));
    let query = binder.view_query(&Plan::nothing())?;
    Ok(binder.into_bound_expression(TriggerQuery { old, new, query }))
}

/// The condition of a trigger as it is shown: a whole row as `old.*`.
pub fn trigger_shown(
    relation: &Arc<Relation>,
    condition: &Arc<View>,
    cx: &PlanContext<'_>,
) -> Result<ast::Expr> {
    let mut shown = super::policy_shown(relation, condition, cx)?;
    let _: ControlFlow<()> = ast::visit_expressions_mut(&mut shown, |expr| {
        if let Some(row) = { expr.bare_name() }.filter(|name| ROWS.contains(&&***name)) {
            *expr = ast::Expr::all_columns(row);
        }
        ControlFlow::Continue(())
    });
    Ok(shown)
}

/// The triggers of a table that TRUNCATE fires.
pub fn truncate_triggers(
    relation: &Arc<Relation>,
    cx: &PlanContext<'_>,
) -> Result<Bound<Option<Arc<TableTriggers>>>> {
    let mut binder = Binder::new(cx, "");
    let triggers = binder.triggers(
        relation,
        Some(&Change::Truncate),
        &ReferentialActions::default(),
    )?;
    Ok(binder.into_bound_expression(triggers))
}

impl Binder<'_> {
    /// The triggers that a change of the table may fire; none, for nearly all tables. What `acted` says is done to it
    /// by actions of foreign keys.
    pub(super) fn triggers(
        &mut self,
        relation: &Arc<Relation>,
        change: Option<&Change>,
        acted: &ReferentialActions,
    ) -> Result<Option<Arc<TableTriggers>>> {
        let catalog = Arc::clone(self.cx.catalog);
        let all = catalog.triggers.of(relation.oid);
        if all.is_empty() || catalog.past.is_some() {
            return Ok(None);
        }
        let mut fires = Vec::new();
        let replica = self.cx.session.scans().replica;
        for trigger in all.iter().filter(|trigger| trigger.enabled.fires(replica)) {
            let own = change.map_or_else(Vec::new, |change| fired(trigger, change, replica));
            let by_actions = acted_events(trigger, acted);
            if own.is_empty() && by_actions.is_empty() {
                continue;
            }
            let when = match &trigger.when {
                Some(when) => Some(self.trigger_condition(relation, when)?),
                None => None,
            };
            let function = catalog.routines.get(trigger.function);
            let (name, volatile) = match (function, BuiltInTrigger::by_oid(trigger.function)) {
                (Some(function), _) => (
                    (function.schema_name.clone(), function.name.clone()),
                    function.volatility == Volatility::Volatile,
                ),
                (None, Some((_, name))) => (("pg_catalog".to_owned(), name.to_owned()), true),
                // It was dropped by who does not know of a temporary table.
                (None, None) => {
                    let name = &trigger.name;
                    let message =
                        format!("the function of trigger \"{name}\" does not exist any more");
                    return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
                }
            };
            fires.push(PlannedTrigger {
                trigger: Arc::clone(trigger),
                callee: Arc::new(Callee {
                    oid: trigger.function,
                    name,
                    strict: false,
                    set: false,
                    volatile,
                    result: SqlType::of(oid::TRIGGER),
                    columns: Vec::new(),
                    row: true,
                }),
                own,
                by_actions,
                when,
            });
        }
        if fires.is_empty() {
            return Ok(None);
        }
        let mut domains = Vec::new();
        for (position, column) in relation.columns.iter().enumerate() {
            if let Some(domain) = column.domain {
                let value = Expr::Column(position, column.ty);
                domains.push((position, self.as_domain(value, domain)?));
            }
        }
        Ok(Some(Arc::new(TableTriggers {
            table: Arc::clone(relation),
            fires,
            domains,
        })))
    }

    /// Does a view's trigger do what a statement wants of it?
    pub(super) fn is_instead(&self, view: &Relation, verb: Verb) -> bool {
        let event = match verb {
            Verb::Insert => TriggerEvent::Insert,
            Verb::Update => TriggerEvent::Update,
            Verb::Delete => TriggerEvent::Delete,
        };
        let mut all = self.cx.catalog.triggers.of(view.oid).iter();
        all.any(|t| t.time == TriggerTime::InsteadOf && t.is_about(event))
    }

    /// Has a view any such trigger?
    pub(super) fn has_instead(&self, view: &Relation) -> bool {
        let mut all = self.cx.catalog.triggers.of(view.oid).iter();
        all.any(|t| t.time == TriggerTime::InsteadOf)
    }

    /// Does a BEFORE trigger see rows that an UPDATE writes? Then any column may change.
    pub(crate) fn rewrites_updates(&self, relation: &Relation) -> bool {
        let all = self.cx.catalog.triggers.of(relation.oid);
        let replica = !all.is_empty() && self.cx.session.scans().replica;
        all.iter()
            .any(|t| t.fires(replica, TriggerTime::Before, true, TriggerEvent::Update))
    }

    /// Binds a condition over the old row, followed by the new one.
    fn trigger_condition(&mut self, relation: &Arc<Relation>, when: &Arc<View>) -> Result<Expr> {
        // Columns of rows that no scan gives.
        let first = COLUMN_BASE + self.range.columns.len();
        for column in relation.columns.iter().chain(&relation.columns) {
            self.column(column.name.as_str().into(), column.ty, None, usize::MAX);
        }
        let width = relation.columns.len();
        let layout = Layout::new((first..first + 2 * width).collect());
        let bound = self.stored_body(relation.oid, when, None, |b, tree| {
            let expr = policy_expr(tree)
                .ok_or_else(|| SqlError::internal("a trigger without a condition"))?;
            b.frames.push(Frame::new());
            let bound = b.over_two_rows(relation, when, first, |b| {
                b.in_clause(Clause::Trigger, |b| b.condition_of(expr, "WHEN"))
            });
            b.frames.pop();
            bound
        })?;
        refuse_subquery(&bound)?;
        Ok(layout.resolve(bound))
    }

    fn over_two_rows<T>(
        &mut self,
        relation: &Arc<Relation>,
        when: &View,
        first: ColId,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let width = relation.columns.len();
        for (number, name) in ROWS.into_iter().enumerate() {
            let from = first + number * width;
            let what = (from..from + width).map(NsColumnSource::Column).collect();
            let item = self.relation_names(relation, what, None, when.sources.get(number))?;
            self.frame()?.ns.push(item);
            self.rename_last(name.into(), relation)?;
        }
        bind(self)
    }
}

/// By which events of a statement's own change a trigger is fired.
pub(super) fn fired(trigger: &Trigger, change: &Change, replica: bool) -> Vec<TriggerEvent> {
    if !trigger.enabled.fires(replica) {
        return Vec::new();
    }
    let (events, updated): (&[TriggerEvent], &[usize]) = match change {
        Change::Insert(updated) if updated.is_empty() => (&[TriggerEvent::Insert], updated),
        Change::Insert(updated) => (&[TriggerEvent::Insert, TriggerEvent::Update], updated),
        Change::Update(updated) => (&[TriggerEvent::Update], updated),
        Change::Delete => (&[TriggerEvent::Delete], &[]),
        Change::Truncate => (&[TriggerEvent::Truncate], &[]),
    };
    let concerns = |event: &TriggerEvent| {
        trigger.is_about(*event) && (*event != TriggerEvent::Update || trigger.concerns(updated))
    };
    events.iter().copied().filter(concerns).collect()
}

/// By which events of what actions of foreign keys do a trigger is fired.
fn acted_events(trigger: &Trigger, acted: &ReferentialActions) -> Vec<TriggerEvent> {
    let mut events = Vec::new();
    if !acted.updated.is_empty()
        && trigger.is_about(TriggerEvent::Update)
        && trigger.concerns(&acted.updated)
    {
        events.push(TriggerEvent::Update);
    }
    if acted.deleted && trigger.is_about(TriggerEvent::Delete) {
        events.push(TriggerEvent::Delete);
    }
    events
}
