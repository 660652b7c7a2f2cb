//! A bound SELECT to a plan: FROM, grouping, set-returning functions, order, DISTINCT, LIMIT, in this order.

use crate::layout::Layout;
use crate::planner::build::{self, limit, project, sort};
use crate::planner::scan::{Path, PathKeys, RequiredOrder};
use crate::planner::{Planner, windows};
use crate::query::expr::Expr;
use crate::query::plain_column;
use crate::query::{ColId, RelSource};
use crate::query::{Distinct, From, FromList, Grouping, Output, RowMark, Select};
use crate::rewrite::fold_constants as fold;
use crate::{
    AggregateCall, GroupingSets, LockTarget, Node, OutputColumn, Plan, SecurityQuals, SortKey,
    cost, walk,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};

/// Plans one SELECT.
pub(super) fn plan_select(planner: &mut Planner<'_>, mut select: Select) -> Result<Plan> {
    folded(&mut select);
    rewrite_sublinks(planner, &mut select)?;
    let Select {
        from,
        grouping,
        mut windows,
        sets,
        sets_last,
        grouped_sets,
        outputs,
        distinct,
        mut order,
        limit: limit_expr,
        offset,
        ties,
        locks,
        ..
    } = select;
    // ORDER BY an output that is a plain column is ORDER BY that column.
    for key in &mut order {
        if let Expr::Column(id, _) = &key.expr
            && let Some(output) = outputs.iter().find(|o| o.id == *id)
            && matches!(output.expr, Expr::Column(..) | Expr::Const(..))
        {
            key.expr = output.expr.clone();
        }
    }
    // What is the same for all rows, as a column of an enclosing query, puts them in no order.
    order.retain(|key| !is_same_for_all(&key.expr));
    let distinct = match distinct {
        Distinct::On(mut keys) => {
            for key in &mut keys {
                if let Expr::Column(id, _) = key
                    && let Some(output) = outputs.iter().find(|o| o.id == *id)
                    && matches!(output.expr, Expr::Column(..) | Expr::Const(..))
                {
                    *key = output.expr.clone();
                }
            }
            Distinct::On(keys)
        }
        other => other,
    };

    if !windows.is_empty() {
        windows::arrange(
            &mut windows,
            sort_exprs(&order, &grouping, &distinct, &outputs),
        );
    }
    let set_ids: Vec<ColId> = sets.iter().map(|(id, _)| *id).collect();
    let required = if windows.is_empty() {
        required(
            &grouping,
            &sets,
            &distinct,
            &order,
            &outputs,
            limit_expr.as_ref(),
            offset.as_ref(),
        )
    } else if grouping.is_none() {
        RequiredOrder {
            order: windows::wanted(&windows),
            limit: None,
        }
    } else {
        RequiredOrder::default()
    };
    let extreme = min_max_order(planner, &from, grouping.as_ref());
    let mut recheck = SecurityQuals::default();
    if locks.is_some() {
        // The policies of the tables come first, as in their scans.
        let marked = locks.iter().flatten().map(|mark| mark.rel);
        let guard = planner.range.guards_of(marked);
        recheck = SecurityQuals::hiding(guard, from.conditions.iter().cloned());
    }
    let mut planned = if from.items.is_empty() {
        let plan = Plan {
            node: Node::OneRow,
            columns: Vec::new(),
            rows: 1.0,
            cost: 0.01,
        };
        let layout = Layout::default();
        let plan = planner.filtered(plan, from.conditions, &layout);
        Path {
            ordered: true,
            ..Path::new(plan, layout)
        }
    } else {
        match extreme {
            Some((required, condition)) => {
                let mut from = from;
                from.conditions.push(condition);
                let mut planned = planner.plan_from(from, &required)?;
                if planned.ordered {
                    let one = Expr::Const(
                        logstead_sql_types::value::Datum::Int8(1),
                        SqlType::of(oid::INT8),
                    );
                    planned.plan = limit(planned.plan, Some(one), None);
                }
                planned.ordered = false;
                planned
            }
            None => planner.plan_from(from, &required)?,
        }
    };
    if let Some(grouping) = grouping {
        planned = project_sets(planned, grouped_sets)?;
        planned = aggregate(planned, grouping, planner)?;
    }
    let windowed = !windows.is_empty();
    if windowed {
        planned = windows::windows(planner, planned, windows, &order, &outputs)?;
    }
    let keys_below = order.iter().all(|k| below(&k.expr, &outputs));
    let on_below = match &distinct {
        Distinct::On(keys) => keys.iter().all(|k| below(k, &outputs)),
        _ => true,
    };
    // Where nothing is sorted by them, sets come behind DISTINCT ON: all rows of the first one.
    let reads_set = |expr: &Expr| {
        let mut ids = Vec::new();
        walk::column_ids(expr, &mut ids);
        let read = |o: &Output| ids.contains(&o.id) && !matches!(o.expr, Expr::Column(..));
        ids.iter().any(|id| set_ids.contains(id)) || outputs.iter().any(read)
    };
    let last = sets_last && keys_below && on_below && !order.iter().any(|k| reads_set(&k.expr));
    let (sets, last_sets) = match last {
        true => (Vec::new(), sets),
        false => (sets, Vec::new()),
    };
    if !sets.is_empty() {
        planned = project_sets(planned, sets)?;
    }

    // Sort below the projection when the keys are there already; else the projection computes them.
    let ordered = planned.ordered && (windowed || !required.order.is_empty()) && set_ids.is_empty();
    let columns: Vec<OutputColumn> = outputs.iter().map(|o| o.column.clone()).collect();
    let Path {
        mut plan,
        mut layout,
        ..
    } = planned;
    let locks = locks.map(|marks| lock_targets(planner, &marks, &layout));
    if locks.is_some() || (keys_below && on_below && !matches!(distinct, Distinct::All)) {
        let substitute = |expr: Expr| match &expr {
            Expr::Column(id, _) => match outputs.iter().find(|o| o.id == *id) {
                Some(output) => output.expr.clone(),
                None => expr,
            },
            _ => expr,
        };
        let keys: Vec<SortKey> = order
            .into_iter()
            .map(|k| SortKey {
                expr: layout.resolve(substitute(k.expr)),
                ..k
            })
            .collect();
        let tied = tied(ties, &keys);
        if !ordered {
            plan = sort(plan, keys);
        }
        if let Distinct::On(keys) = distinct {
            let keys = keys
                .into_iter()
                .map(|k| layout.resolve(substitute(k)))
                .collect();
            plan = distinct_on(plan, keys);
        }
        if !last_sets.is_empty() {
            Path { plan, layout, .. } = project_sets(Path::new(plan, layout), last_sets)?;
        }
        if let Some(targets) = locks {
            let recheck = recheck.over(&layout);
            let (rows, cost, columns) = (
                plan.rows,
                plan.cost + plan.rows * 0.01,
                plan.columns.clone(),
            );
            plan = Plan {
                node: Node::LockRows {
                    input: Box::new(plan),
                    targets,
                    recheck,
                },
                columns,
                rows,
                cost,
            };
        }
        let exprs = outputs
            .into_iter()
            .map(|o| layout.resolve(o.expr))
            .collect();
        // LIMIT stays below the projection only for locks' sake: rows beyond it must not be locked; either way is the
        // same to the client.
        if ties {
            plan = build::limit_with_ties(plan, limit_expr, offset, tied);
            return Ok(project(plan, exprs, columns));
        }
        plan = project(plan, exprs, columns);
        return Ok(limit(plan, limit_expr, offset));
    }

    let width = outputs.len();
    let mut exprs: Vec<Expr> = Vec::with_capacity(width);
    let mut ids: Vec<ColId> = Vec::with_capacity(width);
    for output in &outputs {
        exprs.push(layout.resolve(output.expr.clone()));
        ids.push(output.id);
    }
    let mut all_columns = columns.clone();
    let mut extra = |expr: Expr, ids: &mut Vec<ColId>, exprs: &mut Vec<Expr>| -> Expr {
        let ty = expr.ty();
        if let Expr::Column(id, _) = &expr
            && let Some(position) = ids.iter().position(|i| i == id)
        {
            return Expr::Column(position, ty);
        }
        if let Some(position) = outputs.iter().position(|o| walk::same(&o.expr, &expr)) {
            return Expr::Column(position, ty);
        }
        ids.push(usize::MAX);
        exprs.push(layout.resolve(expr));
        all_columns.push(OutputColumn {
            domain: None,
            name: String::new(),
            ty,
            origin: None,
        });
        Expr::Column(exprs.len() - 1, ty)
    };
    let keys: Vec<SortKey> = order
        .into_iter()
        .map(|k| SortKey {
            expr: extra(k.expr, &mut ids, &mut exprs),
            desc: k.desc,
            nulls_first: k.nulls_first,
        })
        .collect();
    let all = matches!(distinct, Distinct::All);
    let on: Option<Vec<Expr>> = match distinct {
        Distinct::On(keys) => Some(
            keys.into_iter()
                .map(|k| extra(k, &mut ids, &mut exprs))
                .collect(),
        ),
        _ => None,
    };
    let extended = exprs.len() > width;
    plan = project(plan, exprs, all_columns);
    if all {
        let (rows, cost, columns) = (
            plan.rows,
            plan.cost + plan.rows * 0.015,
            plan.columns.clone(),
        );
        plan = Plan {
            node: Node::Distinct(Box::new(plan)),
            columns,
            rows,
            cost,
        };
    }
    let tied = tied(ties, &keys);
    if all || !ordered {
        plan = sort(plan, keys);
    }
    if let Some(on) = on {
        plan = distinct_on(plan, on);
    }
    if ties {
        plan = build::limit_with_ties(plan, limit_expr.clone(), offset.clone(), tied);
    }
    if extended {
        let exprs = columns
            .iter()
            .enumerate()
            .map(|(i, c)| Expr::Column(i, c.ty))
            .collect();
        plan = project(plan, exprs, columns);
    }
    if ties {
        return Ok(plan);
    }
    Ok(limit(plan, limit_expr, offset))
}

/// Makes joins of the block's subqueries where that may be, and plans the others.
fn rewrite_sublinks(planner: &mut Planner<'_>, select: &mut Select) -> Result<()> {
    if select.may_join_sublinks {
        planner.range.pull_up_sublinks(select);
        planner.range.decorrelate(&mut select.from);
    }
    planner.plan_sublinks_in_block(select)
}

/// Folds what a block says of constants. HAVING that no group can pass is asked before any row is, and where there are
/// neither keys nor aggregates nothing is asked of the rows at all.
fn folded(select: &mut Select) {
    let computed = fold::conditions(&mut select.from.conditions);
    select
        .outputs
        .iter_mut()
        .for_each(|o| fold::whole(&mut o.expr));
    select
        .order
        .iter_mut()
        .for_each(|k| fold::whole(&mut k.expr));
    let Some(grouping) = &mut select.grouping else {
        return;
    };
    for (_, call) in &mut grouping.aggregates {
        call.args.iter_mut().for_each(fold::whole);
        call.filter.iter_mut().for_each(fold::whole);
    }
    fold::conditions(&mut grouping.having);
    if grouping.sets.is_some() {
        return;
    }
    if computed
        && grouping.keys.is_empty()
        && grouping.aggregates.is_empty()
        && grouping.calls.is_empty()
        && select.grouped_sets.is_empty()
        && select.locks.is_none()
    {
        select.from = FromList::default();
    } else if grouping.having.iter().any(fold::is_never) {
        select.from.conditions = grouping.having.clone();
    }
}

/// A key that is the same for every row.
fn is_same_for_all(key: &Expr) -> bool {
    match key {
        Expr::Const(..) | Expr::Param(..) | Expr::Outer { .. } => true,
        Expr::Relabel(arg, _) => is_same_for_all(arg),
        _ => false,
    }
}

/// What rows must agree in to tie. Where all keys are constants, all rows do.
fn tied(ties: bool, keys: &[SortKey]) -> Vec<Expr> {
    if !ties {
        return Vec::new();
    }
    let keys: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
    if keys.is_empty() {
        let yes = Expr::Const(
            logstead_sql_types::value::Datum::Bool(true),
            SqlType::of(oid::BOOL),
        );
        return vec![yes];
    }
    keys
}

fn distinct_on(plan: Plan, keys: Vec<Expr>) -> Plan {
    let (rows, cost, columns) = (
        plan.rows,
        plan.cost + plan.rows * 0.01,
        plan.columns.clone(),
    );
    Plan {
        node: Node::DistinctOn {
            input: Box::new(plan),
            keys,
        },
        columns,
        rows,
        cost,
    }
}

/// A sort key that costs nothing to compute before the projection.
fn below(expr: &Expr, outputs: &[Output]) -> bool {
    match expr {
        Expr::Column(id, _) => !outputs
            .iter()
            .any(|o| o.id == *id && !matches!(o.expr, Expr::Column(..))),
        _ => false,
    }
}

/// What ORDER BY, GROUP BY and DISTINCT sort by, in the order in which PostgreSQL comes to it.
fn sort_exprs(
    order: &[SortKey],
    grouping: &Option<Grouping>,
    distinct: &Distinct,
    outputs: &[Output],
) -> Vec<Expr> {
    let mut exprs: Vec<Expr> = order.iter().map(|key| key.expr.clone()).collect();
    for expr in &mut exprs {
        if let Expr::Column(id, _) = expr
            && let Some(output) = outputs.iter().find(|o| o.id == *id)
        {
            *expr = output.expr.clone();
        }
    }
    exprs.extend(
        grouping
            .iter()
            .flat_map(|g| &g.keys)
            .map(|(_, key)| key.clone()),
    );
    match distinct {
        Distinct::No => {}
        Distinct::All => exprs.extend(outputs.iter().map(|o| o.expr.clone())),
        Distinct::On(keys) => exprs.extend(keys.iter().cloned()),
    }
    exprs
}

/// The order and number of rows that FROM should give, where nothing in between changes them.
fn required(
    grouping: &Option<Grouping>,
    sets: &[(ColId, Expr)],
    distinct: &Distinct,
    order: &[SortKey],
    outputs: &[Output],
    limit: Option<&Expr>,
    offset: Option<&Expr>,
) -> RequiredOrder {
    if grouping.is_some() || !sets.is_empty() || matches!(distinct, Distinct::All) {
        return RequiredOrder::default();
    }
    let mut wanted: PathKeys = Vec::with_capacity(order.len());
    for key in order {
        // An output that is computed is what an index on the expression may hold.
        let expr = match &key.expr {
            Expr::Column(id, _) => outputs
                .iter()
                .find(|o| o.id == *id)
                .map_or(&key.expr, |o| &o.expr),
            other => other,
        };
        wanted.push((expr.clone(), key.desc, key.nulls_first));
    }
    let skipped = match offset {
        None => Some(0.0),
        some => build::limit_rows(some),
    };
    let limit = match distinct {
        Distinct::No => match limit {
            // A parameter: some small page.
            Some(Expr::Param(..)) => Some(100.0),
            limit => build::limit_rows(limit).zip(skipped).map(|(l, o)| l + o),
        },
        _ => None,
    };
    RequiredOrder {
        order: wanted,
        limit,
    }
}

/// SELECT min(a) FROM t: the first entry of an index on a, if there is one.
fn min_max_order(
    planner: &Planner<'_>,
    from: &FromList,
    grouping: Option<&Grouping>,
) -> Option<(RequiredOrder, Expr)> {
    let grouping = grouping?;
    if grouping.sets.is_some() || !grouping.calls.is_empty() {
        return None;
    }
    let ([], [(_, call)], [From::Rel(rel)]) = (
        grouping.keys.as_slice(),
        grouping.aggregates.as_slice(),
        from.items.as_slice(),
    ) else {
        return None;
    };
    let desc = match call.aggregate.name {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let [arg] = call.args.as_slice() else {
        return None;
    };
    let RelSource::Table(table) = &planner.range.rels[*rel].source else {
        return None;
    };
    // Only an index on an expression makes it worth asking for its order.
    let may_be_key = plain_column(arg).is_some()
        || (table.indexes.iter().any(|i| i.positions().is_none())
            && crate::immutable::is_immutable(arg));
    if call.filter.is_some() || !may_be_key {
        return None;
    }
    let condition = Expr::IsNull(Box::new(arg.clone()), true);
    Some((
        RequiredOrder {
            order: vec![(arg.clone(), desc, desc)],
            limit: Some(1.0),
        },
        condition,
    ))
}

fn aggregate(input: Path, grouping: Grouping, planner: &Planner<'_>) -> Result<Path> {
    let Path { plan, layout, .. } = input;
    let groups = match &grouping.sets {
        None => planner.groups(grouping.keys.iter().map(|(_, key)| key), plan.rows),
        Some(sets) => sets
            .iter()
            .map(|set| {
                let keys = set.iter().filter_map(|at| grouping.keys.get(*at));
                planner.groups(keys.map(|(_, key)| key), plan.rows)
            })
            .sum(),
    };
    let mut ids = Vec::new();
    let mut columns = Vec::new();
    let mut keys = Vec::with_capacity(grouping.keys.len());
    for (id, key) in grouping.keys {
        columns.push(describe(planner, id));
        ids.push(id);
        keys.push(layout.resolve(key));
    }
    let mut aggregates = Vec::with_capacity(grouping.aggregates.len());
    for (id, mut call) in grouping.aggregates {
        columns.push(describe(planner, id));
        ids.push(id);
        walk::call_exprs_mut(&mut call, &mut |e| crate::layout::resolve_at(e, &layout, 0));
        aggregates.push(AggregateCall { ..call });
    }
    let mut calls = Vec::with_capacity(grouping.calls.len());
    for (id, asked) in grouping.calls {
        columns.push(describe(planner, id));
        ids.push(id);
        calls.push(asked);
    }
    let one_set = || vec![(0..keys.len()).collect()];
    let sets = match (grouping.sets, calls.is_empty()) {
        (None, true) => None,
        (sets, _) => Some(Box::new(GroupingSets {
            sets: sets.unwrap_or_else(one_set),
            calls,
        })),
    };
    let rows = if keys.is_empty() { 1.0 } else { groups };
    let cost = plan.cost + plan.rows * 0.02 + rows * cost::ROW;
    let node = Node::Aggregate {
        input: Box::new(plan),
        keys,
        aggregates,
        sets,
    };
    let layout = Layout::new(ids);
    let plan = Plan {
        node,
        columns,
        rows,
        cost,
    };
    let plan = planner.filtered(plan, grouping.having, &layout);
    Ok(Path::new(plan, layout))
}

fn describe(planner: &Planner<'_>, id: ColId) -> OutputColumn {
    let info = planner.info(id);
    OutputColumn {
        domain: None,
        name: info.name.to_string(),
        ty: info.ty,
        origin: info.origin,
    }
}

/// Set-returning calls become columns, innermost first when one feeds another.
fn project_sets(mut planned: Path, mut sets: Vec<(ColId, Expr)>) -> Result<Path> {
    while !sets.is_empty() {
        let waiting: Vec<ColId> = sets.iter().map(|(id, _)| *id).collect();
        let (now, later): (Vec<_>, Vec<_>) = sets.into_iter().partition(|(_, call)| {
            let mut ids = Vec::new();
            walk::column_ids(call, &mut ids);
            !ids.iter().any(|id| waiting.contains(id))
        });
        if now.is_empty() {
            return Err(SqlError::internal("set-returning calls in a circle"));
        }
        let mut ids = planned.layout.ids().to_vec();
        let mut columns = planned.plan.columns.clone();
        let mut exprs: Vec<Expr> = columns
            .iter()
            .enumerate()
            .map(|(i, c)| Expr::Column(i, c.ty))
            .collect();
        for (id, call) in now {
            let ty = call.ty();
            exprs.push(planned.layout.resolve(call));
            columns.push(OutputColumn {
                domain: None,
                name: String::new(),
                ty,
                origin: None,
            });
            ids.push(id);
        }
        let rows = planned.plan.rows * 10.0;
        let cost = planned.plan.cost + rows * 0.01;
        let node = Node::ProjectSet {
            input: Box::new(planned.plan),
            exprs,
        };
        let plan = Plan {
            node,
            columns,
            rows,
            cost,
        };
        planned = Path::new(plan, Layout::new(ids));
        sets = later;
    }
    Ok(planned)
}

fn lock_targets(planner: &Planner<'_>, marks: &[RowMark], layout: &Layout) -> Vec<LockTarget> {
    let mut targets = Vec::new();
    for &RowMark { rel, lock, wait } in marks {
        let item = &planner.range.rels[rel];
        let (RelSource::Table(table), Some(row_id)) = (&item.source, item.row_id) else {
            continue;
        };
        let Some(row_id) = layout.position(row_id) else {
            continue;
        };
        let columns = (0..item.width)
            .filter_map(|i| {
                layout
                    .position(item.first + i)
                    .map(|position| (i, position))
            })
            .collect();
        targets.push(LockTarget {
            table: table.clone(),
            columns,
            row_id,
            lock,
            wait,
        });
    }
    targets
}
