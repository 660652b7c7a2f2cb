//! What an operator holds between its rows, charged to the server's memory budget.
//!
//! Each operator that keeps rows has a [`OperatorMemory`] and tells it how much it keeps; what `work_mem` allows one
//! operator is checked beside it (`batch::check_memory`). Given back when the operator's state is dropped.

use logstead_engine::{Charge, Memory};
use logstead_sql_types::error::Result;
use logstead_sql_types::error::out_of_memory;

/// An operator's memory is charged in steps of this, and not at all below the first: small statements go on when the
/// budget is used up.
const STEP_BYTES: usize = 64 << 10;

/// An operator's part of the memory budget.
#[derive(Default)]
pub struct OperatorMemory(Option<Charge>);

impl OperatorMemory {
    /// Only `held_bytes` are kept any more.
    pub(crate) fn shrink(&mut self, held_bytes: usize) {
        let charged = held_bytes / STEP_BYTES * STEP_BYTES;
        if let Some(charge) = &mut self.0
            && charge.bytes() > charged
        {
            // Less is never refused.
            let _ = charge.set(charged);
        }
    }

    /// Charges `held_bytes` in all; fails with 53200 if the budget has no room for what is more than before. Without an
    /// account (an expression alone) nothing is charged.
    pub fn set(&mut self, held_bytes: usize, memory: Option<&'static Memory>) -> Result<()> {
        let charged = held_bytes / STEP_BYTES * STEP_BYTES;
        if charged == self.0.as_ref().map_or(0, Charge::bytes) {
            return Ok(());
        }
        let Some(memory) = memory else { return Ok(()) };
        let charge = self.0.get_or_insert_with(|| memory.charge());
        charge.set(charged).map_err(|error| out_of_memory(&error))
    }
}
