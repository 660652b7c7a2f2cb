//! Calls of functions that the session runs: what an execution stops for, and goes on with when it was answered.
//!
//! Does not: make calls (`routine`, `trigger`) or run functions.

use crate::after_triggers::TransitionTables;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::trigger::{Trigger, TriggerEvent};
use logstead_sql_plan::Callee;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::{Datum, SqlType};
use std::collections::VecDeque;
use std::sync::Arc;

/// A call that an execution waits for.
pub struct PendingCall {
    /// Whom the answer is for.
    pub(crate) number: u64,
    /// What is called.
    pub callee: Arc<Callee>,
    /// Its arguments.
    pub args: Vec<Datum>,
    /// Their types.
    pub types: Vec<SqlType>,
    /// What a trigger's function is told instead.
    pub trigger: Option<TriggerCall>,
}

impl PendingCall {
    /// The table that an action of a foreign key changes, if the call is of a BEFORE trigger of that.
    pub fn acted_on(&self) -> Option<RelationId> {
        let fired = self.trigger.as_ref()?;
        (self.number == ACTION).then_some(fired.table.oid)
    }
}

/// What stops for calls, and goes on when they were answered.
pub trait Caller {
    /// The call that it waits for.
    fn take_call(&mut self) -> Option<Box<PendingCall>>;
    /// Gives it the rows of the call that it waited for.
    fn answer(&mut self, call: &PendingCall, rows: VecDeque<Vec<Datum>>);
}

/// 0A000 where nobody can run a function.
pub fn no_calls(place: &str) -> SqlError {
    SqlError::unsupported(format!("a call of a PL/pgSQL function in {place}"))
}

/// The number of a call that an action of a foreign key stops for.
pub(crate) const ACTION: u64 = u64::MAX;

/// What a trigger's function is told.
pub struct TriggerCall {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// Its table.
    pub table: Arc<Relation>,
    /// What fired it.
    pub event: TriggerEvent,
    /// The row as it was: of all positions.
    pub old: Option<Vec<Datum>>,
    /// The row as it is to be.
    pub new: Option<Vec<Datum>>,
    /// All rows that the statement has changed.
    pub captured: Option<Arc<TransitionTables>>,
}
