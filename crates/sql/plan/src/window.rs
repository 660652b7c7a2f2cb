//! Window functions: what a plan says of a window, and how a block's windows become nodes.
//!
//! Each window is a node of its own over rows that are sorted by its partition and its order; windows whose sort begins
//! as another's stand above it and share its sort. The node adds one column per call to its input's.
//!
//! Invariant: partition and order of a [`Window`] are plain columns of its input, and nothing in it has a subquery that
//! could have to wait: what is more is computed by a projection below.

use super::build::{project, sort};
use super::layout::Layout;
use super::scan::{Planned, Wanted};
use super::{Node, OutputColumn, Plan, SortKey, UserAggregate, estimate, walk};
use crate::bind::query::{BoundWindow, Output};
use crate::bind::{Binder, ColId};
use crate::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::Aggregate;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, SqlType};
use std::sync::Arc;

/// A window and what is computed over it.
#[derive(Clone)]
pub struct Window {
    /// PARTITION BY: columns of the input.
    pub partition: Vec<Expr>,
    /// ORDER BY: columns of the input.
    pub order: Vec<SortKey>,
    /// The frame.
    pub frame: WindowFrame,
    /// What is computed, each a column after the input's.
    pub calls: Vec<WindowCall>,
}

/// A frame: which rows of the partition a row's calls look at.
#[derive(Clone)]
pub struct WindowFrame {
    /// What bounds count.
    pub units: FrameUnits,
    /// Where it begins.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
    /// What is left out of it.
    pub exclude: FrameExclusion,
}

impl Default for WindowFrame {
    /// RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW.
    fn default() -> WindowFrame {
        WindowFrame {
            units: FrameUnits::Range,
            start: FrameBound::Unbounded,
            end: FrameBound::CurrentRow,
            exclude: FrameExclusion::NoOthers,
        }
    }
}

impl WindowFrame {
    /// Whether it is the frame of a window that says nothing of one.
    pub fn is_default(&self) -> bool {
        self.units == FrameUnits::Range
            && matches!(self.start, FrameBound::Unbounded)
            && matches!(self.end, FrameBound::CurrentRow)
            && self.exclude == FrameExclusion::NoOthers
    }
}

/// What a frame's bounds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameUnits {
    Rows,
    Range,
    Groups,
}

/// An end of a frame. Offsets refer to no row; of ROWS and GROUPS they are bigint, of RANGE of a type that can be added
/// to the order's.
#[derive(Clone)]
pub enum FrameBound {
    /// UNBOUNDED: PRECEDING as a start, FOLLOWING as an end.
    Unbounded,
    /// CURRENT ROW.
    CurrentRow,
    /// `offset` PRECEDING.
    Preceding(Expr),
    /// `offset` FOLLOWING.
    Following(Expr),
}

impl FrameBound {
    /// Its offset.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }

    fn offset_mut(&mut self) -> Option<&mut Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }

    /// Do they mean the same?
    pub fn same(&self, other: &FrameBound) -> bool {
        match (self, other) {
            (FrameBound::Unbounded, FrameBound::Unbounded)
            | (FrameBound::CurrentRow, FrameBound::CurrentRow) => true,
            (FrameBound::Preceding(a), FrameBound::Preceding(b))
            | (FrameBound::Following(a), FrameBound::Following(b)) => walk::same(a, b),
            _ => false,
        }
    }
}

/// EXCLUDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum FrameExclusion {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// One call over a window.
#[derive(Clone)]
pub struct WindowCall {
    /// Which.
    pub function: WindowFunction,
    /// It is this aggregate, which a user has made.
    pub user: Option<Arc<UserAggregate>>,
    /// Arguments over the input row.
    pub args: Vec<Expr>,
    /// FILTER (WHERE ...), of aggregates.
    pub filter: Option<Expr>,
    /// Result type.
    pub ty: SqlType,
}

/// What a call computes.
#[derive(Clone, Copy)]
pub enum WindowFunction {
    /// A function of windows only.
    Own(&'static func::WindowFunction),
    /// An aggregate, over the frame.
    Aggregate(&'static Aggregate),
}

impl WindowCall {
    /// The function's name.
    pub fn name(&self) -> &str {
        match &self.user {
            Some(user) => &user.name,
            None => self.function.name(),
        }
    }
}

impl WindowFunction {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            WindowFunction::Own(function) => function.name,
            WindowFunction::Aggregate(aggregate) => aggregate.name,
        }
    }
}

impl WindowFrame {
    /// The expressions of its bounds.
    pub fn exprs(&self, f: &mut dyn FnMut(&Expr)) {
        [&self.start, &self.end]
            .into_iter()
            .filter_map(FrameBound::offset)
            .for_each(f);
    }
}

impl Window {
    /// All its expressions.
    pub fn exprs<'w>(&'w self, f: &mut dyn FnMut(&'w Expr)) {
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|key| f(&key.expr));
        [&self.frame.start, &self.frame.end]
            .into_iter()
            .filter_map(FrameBound::offset)
            .for_each(&mut *f);
        for call in &self.calls {
            call.args.iter().chain(&call.filter).for_each(&mut *f);
        }
    }

    /// As [`Window::exprs`], to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.partition.iter_mut().for_each(&mut *f);
        self.order.iter_mut().for_each(|key| f(&mut key.expr));
        [&mut self.frame.start, &mut self.frame.end]
            .into_iter()
            .filter_map(FrameBound::offset_mut)
            .for_each(&mut *f);
        for call in &mut self.calls {
            call.args
                .iter_mut()
                .chain(&mut call.filter)
                .for_each(&mut *f);
        }
    }
}

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
pub(crate) fn wanted(windows: &[BoundWindow]) -> Wanted {
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
    binder: &mut Binder<'_>,
    input: Planned,
    windows: Vec<BoundWindow>,
    order: &[SortKey],
    outputs: &[Output],
) -> Result<Planned> {
    let Planned {
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
    let mut below = Below::default();
    let windows: Vec<BoundWindow> = windows
        .into_iter()
        .map(|window| below.take(binder, window))
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
    Ok(Planned {
        ordered: !wanted.is_empty() && begins_with(&sorted, &wanted),
        ..Planned::new(plan, layout)
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
            origin: (0, 0),
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
    node.exprs_mut(&mut |expr| walk::resolve_at(expr, &layout, 0));
    let (rows, cost) = (plan.rows, plan.cost + plan.rows * estimate::WINDOW);
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
struct Below {
    computed: Vec<(ColId, Expr)>,
}

impl Below {
    /// The window with everything computed that has to be: keys, which are looked at more than once, and subqueries,
    /// for which a row may have to wait.
    fn take(&mut self, binder: &mut Binder<'_>, mut window: BoundWindow) -> BoundWindow {
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
            self.column(binder, expr);
        }
        for key in &mut window.order {
            self.column(binder, &mut key.expr);
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
                    self.column(binder, expr);
                }
            }
        }
        window
    }

    fn column(&mut self, binder: &mut Binder<'_>, expr: &mut Expr) {
        if matches!(expr, Expr::Column(..)) {
            return;
        }
        self.replace(expr);
        if matches!(expr, Expr::Column(..)) {
            return;
        }
        let ty = expr.ty();
        let id = binder.computed("", ty);
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
                origin: (0, 0),
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
