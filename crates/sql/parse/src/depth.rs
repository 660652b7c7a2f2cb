//! How deep a statement's tree may be, and on how much stack it is handled.
//!
//! PostgreSQL counts the bytes of stack that it uses (`max_stack_depth`) and takes chains of thousands of operators.
//! Here the depth of a tree is bounded from its tokens, before there is a tree: it is made, bound, planned and dropped
//! by functions that call themselves, most of which the compiler has written. A statement whose depth is no more than
//! [`SHALLOW`] is handled on a session's ordinary stack. A deeper query gets as much as it needs, on a segment that
//! continues the stack ([`logstead_fiber::with_stack`]). What is kept (a view, a condition of CHECK) is never deep: it
//! is read at places that have ordinary stacks.
//!
//! Invariant: whatever the text, nothing overflows a stack. 54001 instead.

use crate::ast::Stmt;
use logstead_fiber::{StackAllocError, with_stack};
use logstead_sql_types::error::Result;
use logstead_sql_types::error::too_deep;
use logstead_types::SqlState;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// Levels that any stack has room for.
pub(super) const SHALLOW: usize = 500;
/// Levels of a query's tree, about as many as PostgreSQL has with the usual `max_stack_depth`.
const LEVELS_MAX: usize = 10_000;
/// AND / OR in a row at one level (flattened when bound).
pub(super) const CONJUNCTIONS_MAX: usize = 10_000;
/// Stack for a level: what binding one takes at most, where nothing is optimized.
const LEVEL_BYTES: usize = 32 << 10;
/// Stack for the deepest plans.
const PLAN_STACK_BYTES: usize = 256 << 20;

/// The depth of a statement's tree, or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    /// All.
    pub(super) levels: usize,
    /// Is there more in it than what is kept may have?
    pub(super) deep: bool,
}

impl Depth {
    /// Of a tree with so many levels. 54001 if that is more than any may have.
    pub(super) fn of_levels(levels: usize) -> Result<Depth> {
        match levels > LEVELS_MAX {
            true => Err(too_deep()),
            false => Ok(Depth {
                levels,
                deep: levels > SHALLOW,
            }),
        }
    }

    /// Stack for the statement; 0 if any has it.
    pub(super) fn stack_bytes(self) -> usize {
        match self.deep {
            true => (self.levels + SHALLOW) * LEVEL_BYTES,
            false => 0,
        }
    }
}

/// Runs what handles a deep tree. 54001 if the system has no memory for the stack.
pub fn on_enough_stack<T>(bytes: usize, run: impl FnOnce() -> Result<T>) -> Result<T> {
    match bytes {
        0 => run(),
        _ => with_stack(bytes, run).unwrap_or_else(|StackAllocError| Err(too_deep())),
    }
}

/// Plans a statement whose tree takes so much stack. What comes of the tree may be deeper than it is: views and WITH in
/// each other become one plan. If that does not fit, it is planned once more, with as much stack as any plan may take.
pub fn planned_on_enough_stack<T>(tree_bytes: usize, plan: impl Fn() -> Result<T>) -> Result<T> {
    let planned = on_enough_stack(tree_bytes, &plan);
    match &planned {
        Err(error)
            if error.code() == SqlState::STATEMENT_TOO_COMPLEX && tree_bytes < PLAN_STACK_BYTES =>
        {
            on_enough_stack(PLAN_STACK_BYTES, plan)
        }
        _ => planned,
    }
}

/// A statement's tree.
#[derive(Clone, Debug)]
pub struct StatementTree {
    stmt: Arc<Stmt>,
    depth: Depth,
}

impl StatementTree {
    pub(super) fn new(stmt: Arc<Stmt>, depth: Depth) -> StatementTree {
        StatementTree { stmt, depth }
    }

    /// The tree of a statement that this one consists of.
    pub fn part(&self, stmt: Stmt) -> StatementTree {
        StatementTree::new(Arc::new(stmt), self.depth)
    }

    /// Stack that is needed by whoever goes through all of it; 0 if any has it.
    pub fn stack_bytes(&self) -> usize {
        self.depth.stack_bytes()
    }
}

impl From<Stmt> for StatementTree {
    /// A tree that is not deep.
    fn from(stmt: Stmt) -> StatementTree {
        StatementTree::new(Arc::new(stmt), Depth::default())
    }
}

impl Deref for StatementTree {
    type Target = Stmt;

    fn deref(&self) -> &Stmt {
        &self.stmt
    }
}

/// Drops what may be deep, on a stack that is long enough, and leaves `nothing` in its place. If the system has no
/// memory for one, what is to be dropped stays: better than the process's end.
pub fn drop_deep<T>(value: &mut T, nothing: T, stack_bytes: usize) {
    let value = std::mem::replace(value, nothing);
    if stack_bytes == 0 {
        return;
    }
    let mut value = ManuallyDrop::new(Some(value));
    let _no_memory = with_stack(stack_bytes, || drop(value.take()));
}
