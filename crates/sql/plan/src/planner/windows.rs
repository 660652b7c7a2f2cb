//! How a block's windows become nodes.
//!
//! Each window is a node of its own over rows that are sorted by its partition and its order; windows whose sort begins
//! as another's stand above it and share its sort. The node adds one column per call to its input's.

use super::Planner;
use super::build::{project, sort};
use super::scan::{Path, PathKeys};
use crate::layout::Layout;
use crate::query::expr::Expr;
use crate::query::{BoundWindow, ColId, Output};
use crate::{FrameUnits, Node, OutputColumn, Plan, SortKey, Window, cost, walk};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// The sort that a window needs: its partition, then its order. A partition key that the order has too takes its
/// direction.
pub(crate) fn sort_of(window: &BoundWindow) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    for expr in &window.partition {
        let ordered = window.order.iter().find(|key| walk::same(&key.expr, expr));
        keys.push(ordered.cloned().unwrap_or_else(|| SortKey {
            expr: expr.clone(),
            desc: false,
            nulls_first: false,
        }));
    }
    for key in &window.order {
        if !keys.iter().any(|known| walk::same(&known.expr, &key.expr)) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Puts a block's windows in the order in which they are computed, the first at the bottom: those that sort by most
/// come first, so that those that sort by the beginning of the same need no sort. `known` are the block's other sort
/// keys, which are numbered before the windows' own: that is how PostgreSQL goes about it, and what decides which order
/// unsorted results come in.
pub(crate) fn arrange(windows: &mut Vec<BoundWindow>, known: Vec<Expr>) {
    let mut numbered: Vec<Expr> = known;
    let mut number = |expr: &Expr| match numbered.iter().position(|e| walk::same(e, expr)) {
        Some(at) => at,
        None => {
            numbered.push(expr.clone());
            numbered.len() - 1
        }
    };
    for window in windows.iter() {
        window.order.iter().for_each(|key| {
            number(&key.expr);
        });
        window.partition.iter().for_each(|expr| {
            number(expr);
        });
    }
    type Numbered = Vec<(usize, bool, bool)>;
    let mut keyed: Vec<(Numbered, BoundWindow)> = windows
        .drain(..)
        .map(|window| {
            let keys = sort_of(&window)
                .iter()
                .map(|key| (number(&key.expr), key.desc, key.nulls_first))
                .collect();
            (keys, window)
        })
        .collect();
    keyed.sort_by(|(a, _), (b, _)| {
        let differing = a.iter().zip(b).find(|(a, b)| a != b);
        match differing {
            Some((a, b)) => b.cmp(a),
            None => b.len().cmp(&a.len()),
        }
    });
    windows.extend(keyed.into_iter().map(|(_, window)| window));
}

/// The order that FROM should give for the first window's sake.
pub(crate) fn wanted(windows: &[BoundWindow]) -> PathKeys {
    windows.first().map_or_else(Vec::new, |window| {
        sort_of(window)
            .into_iter()
            .map(|key| (key.expr, key.desc, key.nulls_first))
            .collect()
    })
}

/// Computes the windows over `input`. The result is `ordered` if its rows come as `order`, ORDER BY of the block, wants
/// them.
pub(crate) fn windows(
    planner: &mut Planner<'_>,
    input: Path,
    windows: Vec<BoundWindow>,
    order: &[SortKey],
    outputs: &[Output],
) -> Result<Path> {
    let Path {
        mut plan,
        mut layout,
        ordered,
        ..
    } = input;
    // What the rows are sorted by.
    let mut sorted = match ordered {
        true => windows.first().map(sort_of).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut below = WindowInput::default();
    let windows: Vec<BoundWindow> = windows
        .into_iter()
        .map(|window| below.take(planner, window))
        .collect();
    for key in &mut sorted {
        below.replace(&mut key.expr);
    }
    (plan, layout) = below.project(plan, layout);
    for window in windows {
        let keys = sort_of(&window);
        if !begins_with(&sorted, &keys) {
            let resolved = keys.iter().map(|key| SortKey {
                expr: layout.resolve(key.expr.clone()),
                ..*key
            });
            plan = sort(plan, resolved.collect());
            sorted = keys;
        }
        (plan, layout) = node(plan, layout, window);
    }
    let mut wanted: Vec<SortKey> = order.to_vec();
    for key in &mut wanted {
        if let Expr::Column(id, _) = &key.expr
            && let Some(output) = outputs.iter().find(|o| o.id == *id)
        {
            key.expr = output.expr.clone();
        }
        below.replace(&mut key.expr);
    }
    Ok(Path {
        ordered: !wanted.is_empty() && begins_with(&sorted, &wanted),
        ..Path::new(plan, layout)
    })
}

/// Whether rows sorted by `sorted` are sorted by `keys`.
fn begins_with(sorted: &[SortKey], keys: &[SortKey]) -> bool {
    keys.len() <= sorted.len()
        && keys.iter().zip(sorted).all(|(a, b)| {
            a.desc == b.desc && a.nulls_first == b.nulls_first && walk::same(&a.expr, &b.expr)
        })
}

fn node(plan: Plan, layout: Layout, window: BoundWindow) -> (Plan, Layout) {
    let mut ids = layout.ids().to_vec();
    let mut columns = plan.columns.clone();
    let mut calls = Vec::with_capacity(window.calls.len());
    for (id, call) in window.calls {
        columns.push(OutputColumn {
            domain: None,
            name: call.function.name().to_owned(),
            ty: call.ty,
            origin: None,
        });
        ids.push(id);
        calls.push(call);
    }
    let mut node = Window {
        partition: window.partition,
        order: window.order,
        frame: window.frame,
        calls,
    };
    node.exprs_mut(&mut |expr| crate::layout::resolve_at(expr, &layout, 0));
    let (rows, cost) = (plan.rows, plan.cost + plan.rows * cost::WINDOW);
    let plan = Plan {
        node: Node::Window {
            input: Box::new(plan),
            window: Box::new(node),
        },
        columns,
        rows,
        cost,
    };
    (plan, Layout::new(ids))
}

/// What is computed below the windows.
#[derive(Default)]
struct WindowInput {
    computed: Vec<(ColId, Expr)>,
}

impl WindowInput {
    /// The window with everything computed that has to be: keys, which are looked at more than once, and subqueries,
    /// for which a row may have to wait.
    fn take(&mut self, planner: &mut Planner<'_>, mut window: BoundWindow) -> BoundWindow {
        // A key that is the same on every row neither parts nor orders.
        window.partition.retain(|expr| !is_constant(expr));
        // But an offset of RANGE is counted from it.
        let ends = [&window.frame.start, &window.frame.end];
        let is_counted = window.frame.units == FrameUnits::Range
            && ends.iter().any(|end| end.offset().is_some());
        window
            .order
            .retain(|key| is_counted || !is_constant(&key.expr));
        for expr in &mut window.partition {
            self.column(planner, expr);
        }
        for key in &mut window.order {
            self.column(planner, &mut key.expr);
        }
        for (_, call) in &mut window.calls {
            let waits = |expr: &Expr| walk::may_wait(expr);
            // Arguments are evaluated only where the filter holds.
            if let Some(filter) = &call.filter
                && call.args.iter().any(waits)
            {
                let filter = filter.clone();
                for arg in &mut call.args {
                    let ty = arg.ty();
                    let value = std::mem::replace(arg, Expr::Const(Datum::Null, ty));
                    *arg = Expr::Case {
                        arms: vec![(filter.clone(), value)],
                        otherwise: None,
                        ty,
                    };
                }
            }
            for expr in call.args.iter_mut().chain(&mut call.filter) {
                if waits(expr) {
                    self.column(planner, expr);
                }
            }
        }
        window
    }

    fn column(&mut self, planner: &mut Planner<'_>, expr: &mut Expr) {
        if matches!(expr, Expr::Column(..)) {
            return;
        }
        self.replace(expr);
        if matches!(expr, Expr::Column(..)) {
            return;
        }
        let ty = expr.ty();
        let id = planner.range.computed("", ty);
        self.computed
            .push((id, std::mem::replace(expr, Expr::Column(id, ty))));
    }

    fn replace(&self, expr: &mut Expr) {
        if let Some((id, _)) = self.computed.iter().find(|(_, e)| walk::same(e, expr)) {
            *expr = Expr::Column(*id, expr.ty());
        }
    }

    /// A row of the plan's columns and what is computed.
    fn project(&self, plan: Plan, layout: Layout) -> (Plan, Layout) {
        if self.computed.is_empty() {
            return (plan, layout);
        }
        let mut columns = plan.columns.clone();
        let mut exprs: Vec<Expr> = columns
            .iter()
            .enumerate()
            .map(|(i, column)| Expr::Column(i, column.ty))
            .collect();
        let mut ids = layout.ids().to_vec();
        for (id, expr) in &self.computed {
            columns.push(OutputColumn {
                domain: None,
                name: String::new(),
                ty: expr.ty(),
                origin: None,
            });
            exprs.push(layout.resolve(expr.clone()));
            ids.push(*id);
        }
        (project(plan, exprs, columns), Layout::new(ids))
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(..) | Expr::Param(..))
}
