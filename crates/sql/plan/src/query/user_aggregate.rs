//! Aggregates that users have made, as plans call them: their functions bound over a row of the state and what is given
//! to it.

use crate::query::expr::Expr;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::{Datum, SqlType};

/// An aggregate that a user has made, for arguments of certain types.
pub struct UserAggregate {
    /// `pg_proc.oid`
    pub oid: FunctionId,
    /// The name by which it is called.
    pub name: String,
    /// How many of the call's arguments are direct ones, which only the final function is given.
    pub direct: usize,
    /// How it is computed.
    pub plain: Transitions,
    /// How it is computed over frames whose first row moves, if it was told.
    pub moving: Option<Transitions>,
}

/// How an aggregate is computed.
pub struct Transitions {
    /// The next state, over a row of the state and the arguments.
    pub step: Expr,
    /// It is not called for NULLs.
    pub strict: bool,
    /// The first state.
    pub initial: Datum,
    /// The state without what was added first, over the same row.
    pub inverse: Option<Expr>,
    /// The result, over a row of the state, the direct arguments, and as many NULLs as it has arguments for the types'
    /// sake; without it the state is the result.
    pub finish: Option<Expr>,
    /// How many NULLs.
    pub extra: usize,
    /// Type of the state.
    pub state: SqlType,
}

impl Transitions {
    /// What its functions are.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [&self.step]
            .into_iter()
            .chain(&self.inverse)
            .chain(&self.finish)
    }
}
