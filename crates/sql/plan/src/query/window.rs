//! Window functions: what a plan says of a window, and how a block's windows become nodes.
//!
//! Each window is a node of its own over rows that are sorted by its partition and its order; windows whose sort begins
//! as another's stand above it and share its sort. The node adds one column per call to its input's.
//!
//! Invariant: partition and order of a [`Window`] are plain columns of its input, and nothing in it has a subquery that
//! could have to wait: what is more is computed by a projection below.

use super::user_aggregate::UserAggregate;
use super::walk;
use crate::SortKey;
use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::Aggregate;
use logstead_sql_types::value::SqlType;
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

    /// The same, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        [&mut self.start, &mut self.end]
            .into_iter()
            .filter_map(FrameBound::offset_mut)
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
        self.frame.exprs_mut(f);
        for call in &mut self.calls {
            call.args
                .iter_mut()
                .chain(&mut call.filter)
                .for_each(&mut *f);
        }
    }
}
