//! Waiting for what is absent, and doing without it.
//!
//! Does not: bring anything in (`page_loader`, `load`).

use crate::fault_error::FaultError;
use crate::memory::OutOfMemory;
use crate::memory_queue::{GRANTS_MAX, MemoryRequest};
use crate::page_fault::{FaultTarget, PageFault, SlotRequest};
use crate::page_loader::{FaultPoll, FaultTicket};
use crate::txn::Txn;
use crate::version::SlotSet;
use logstead_types::TableId;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The rows that a transaction has waited for last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultLocation {
    table: TableId,
    chunk: u64,
    slots: SlotSet,
}

impl Txn {
    /// What came of a wait. If who waited can do without, he is not told that it cannot be read: that is counted, and
    /// after some times he does not ask any more.
    pub(crate) fn unless_optional(
        &self,
        is_optional: bool,
        outcome: Result<(), FaultError>,
    ) -> Result<(), FaultError> {
        match outcome {
            Err(FaultError::Damaged(_) | FaultError::Unreachable(_)) if is_optional => {
                self.unread_slots.set(self.unread_slots.get() + 1);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// What it is about to wait for, with what it is likely to want next.
    fn widen(&mut self, wanted: Arc<FaultTarget>) -> Arc<FaultTarget> {
        let FaultTarget::Rows {
            rows,
            number,
            slots,
        } = &*wanted
        else {
            return wanted;
        };
        let before = self.last_fault;
        let now = FaultLocation {
            table: rows.table,
            chunk: *number,
            slots: slots.all(),
        };
        self.last_fault = Some(now);
        let beside = before.is_some_and(|before| {
            (before.table, before.chunk) == (now.table, now.chunk)
                && !now.slots.minus(&before.slots).is_empty()
        });
        if !beside {
            return wanted;
        }
        Arc::new(FaultTarget::Rows {
            rows: Arc::clone(rows),
            number: *number,
            slots: SlotRequest {
                needed: slots.needed,
                beside: SlotSet::ALL,
            },
        })
    }
}

impl PageFault {
    /// Is it memory itself that is wanting? Who cannot wait for it fails with this.
    pub fn out_of_memory(&self, txn: &Txn) -> Option<OutOfMemory> {
        match &*self.wanted {
            FaultTarget::Room { .. } => Some(txn.engine().memory().exhausted()),
            FaultTarget::Rows { .. }
            | FaultTarget::Leaf { .. }
            | FaultTarget::Past { .. }
            | FaultTarget::Lost => None,
        }
    }

    /// Brings it in on the calling thread, which blocks: for a start, when nobody is served yet, and where nothing can
    /// wait.
    pub fn load_here(&self, txn: &Txn) -> Result<(), FaultError> {
        if let FaultTarget::Room {
            bytes,
            from_reserve,
        } = *self.wanted
        {
            let held = txn.held_bytes.get();
            let granted = txn
                .engine()
                .memory_queue
                .request_blocking(bytes, from_reserve, held)?;
            txn.granted.replace(Some(granted));
            return Ok(());
        }
        if txn.has_lost(&self.wanted) {
            return Err(FaultError::InstanceRestarted);
        }
        let loaded = txn.engine().faults.load_here(&self.wanted);
        txn.unless_optional(self.is_optional, loaded)
    }

    /// Waits until it is worth trying again. Dropping the future ends the wait.
    pub fn wait(self, txn: &mut Txn) -> FaultWait<'_> {
        FaultWait::new(self.wanted, self.is_optional, txn)
    }
}

/// Future of [`PageFault::wait`](crate::PageFault::wait).
#[must_use = "a wait does nothing unless polled"]
pub struct FaultWait<'t> {
    wanted: Arc<FaultTarget>,
    /// Not to be used while it waits.
    txn: &'t mut Txn,
    ticket: Option<FaultTicket>,
    /// The place among those who wait for memory.
    room: Option<Arc<MemoryRequest>>,
    /// Who waits goes on if it cannot be had.
    is_optional: bool,
}

impl<'t> FaultWait<'t> {
    pub(crate) fn new(
        wanted: Arc<FaultTarget>,
        is_optional: bool,
        txn: &'t mut Txn,
    ) -> FaultWait<'t> {
        FaultWait {
            wanted: txn.widen(wanted),
            txn,
            ticket: None,
            room: None,
            is_optional,
        }
    }
}

impl Future for FaultWait<'_> {
    type Output = Result<(), FaultError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let FaultTarget::Room {
            bytes,
            from_reserve,
        } = *this.wanted
        {
            let room = &this.txn.engine().memory_queue;
            let held = this.txn.held_bytes.get();
            if this.room.is_none() && this.txn.grants.get() > GRANTS_MAX && room.is_used_up_by(held)
            {
                return Poll::Ready(Err(this.txn.engine().memory().exhausted().into()));
            }
            let want = this
                .room
                .get_or_insert_with(|| room.request_beside(bytes, from_reserve, held));
            return match want.poll(cx.waker()) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(granted)) => {
                    this.txn.grants.set(this.txn.grants.get().saturating_add(1));
                    this.txn.granted.replace(Some(granted));
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            };
        }
        if let Some(ticket) = &this.ticket {
            let outcome = std::task::ready!(ticket.poll(cx.waker()));
            return Poll::Ready(this.txn.unless_optional(this.is_optional, outcome));
        }
        if this.txn.has_lost(&this.wanted) {
            return Poll::Ready(Err(FaultError::InstanceRestarted));
        }
        let engine = this.txn.engine();
        if engine.memory_queue.is_used_up_by(this.txn.held_bytes.get()) {
            let refused = Err(engine.memory().exhausted().into());
            return Poll::Ready(this.txn.unless_optional(this.is_optional, refused));
        }
        match engine.faults.ask(&this.wanted, cx.waker()) {
            FaultPoll::Done(outcome) => {
                Poll::Ready(this.txn.unless_optional(this.is_optional, outcome))
            }
            FaultPoll::Waiting(ticket) => {
                this.ticket = Some(ticket);
                Poll::Pending
            }
        }
    }
}
