//! What is not in memory: rows or an index leaf that an operation needs.
//!
//! An operation that meets one gives [`PageFault`] and has changed nothing; a cursor has not moved. The caller drops
//! its guard and rows, awaits [`PageFault::wait`], and begins the operation again, which may meet the next one. That is
//! not a lock: nobody stands in the way, and NOWAIT waits too.
//!
//! Who needs one row asks for that alone; who goes over a table asks for chunks ([`PageFault::with_neighbours`]).
//!
//! Inside the engine [`AbsentRow`] stands for it where only row numbers are known.

use std::fmt;
use std::sync::Arc;

use logstead_types::{Rid, TableId};

use crate::as_of::AsOfDatabase;
use crate::fault::{FaultTarget, FaultWait, SlotRequest};
use crate::index::Index;
use crate::memory::OutOfMemory;
use crate::rows::TableRows;
use crate::txn::Txn;
use crate::version::{CHUNK_SLOTS, SlotSet};

/// A row that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbsentRow(pub(crate) Rid);

impl AbsentRow {
    /// Whose it is.
    #[cold]
    pub(crate) fn of(self, rows: &Arc<TableRows>) -> PageFault {
        let slot = (self.0.0 % CHUNK_SLOTS as u64) as usize;
        let slots = SlotRequest::of(SlotSet::one(slot));
        PageFault::rows(rows, self.0.0 / CHUNK_SLOTS as u64, slots)
    }
}

/// What an operation needs and is not in memory. Wait for it, then begin the operation again.
#[derive(Clone)]
pub struct PageFault {
    wanted: Arc<FaultTarget>,
    /// Who wants it does not need it if it cannot be had.
    is_optional: bool,
}

impl PageFault {
    /// Rows of the `number`-th chunk of `rows`.
    #[cold]
    fn rows(rows: &Arc<TableRows>, number: u64, slots: SlotRequest) -> PageFault {
        PageFault::of(FaultTarget::Rows {
            rows: rows.clone(),
            number,
            slots,
        })
    }

    fn of(wanted: FaultTarget) -> PageFault {
        PageFault {
            wanted: Arc::new(wanted),
            is_optional: false,
        }
    }

    /// The same for who wants an empty slot: if it cannot be had he takes another one when he tries again.
    #[must_use]
    pub(crate) fn for_insert(self) -> PageFault {
        PageFault {
            is_optional: true,
            ..self
        }
    }

    /// The same with what lies beside it, for who is about to need that too.
    #[must_use]
    pub fn with_neighbours(self) -> PageFault {
        match &*self.wanted {
            FaultTarget::Rows {
                rows,
                number,
                slots,
            } => {
                let slots = SlotRequest {
                    needed: slots.needed,
                    beside: SlotSet::ALL,
                };
                PageFault::rows(rows, *number, slots)
            }
            FaultTarget::Leaf { .. } | FaultTarget::Past { .. } | FaultTarget::Room { .. } => self,
        }
    }

    /// The same with some of the chunk's rows beside it.
    #[must_use]
    pub(crate) fn beside(self, beside: SlotSet) -> PageFault {
        match &*self.wanted {
            FaultTarget::Rows {
                rows,
                number,
                slots,
            } if !beside.is_empty() => {
                let needed = slots.needed;
                PageFault::rows(rows, *number, SlotRequest { needed, beside })
            }
            _ => self,
        }
    }

    /// The leaf of `index` that begins at `low`.
    #[cold]
    pub(crate) fn leaf(index: &Arc<Index>, low: &[u8]) -> PageFault {
        PageFault::of(FaultTarget::Leaf {
            index: index.clone(),
            low: low.into(),
        })
    }

    /// What a past is made of, or the indexes of one of its tables.
    #[cold]
    pub(crate) fn past(past: &Arc<AsOfDatabase>, table: Option<TableId>) -> PageFault {
        PageFault::of(FaultTarget::Past {
            past: Arc::clone(past),
            table,
        })
    }

    /// Is it memory itself that is wanting? Who cannot wait for it fails with this.
    pub fn out_of_memory(&self, txn: &Txn) -> Option<OutOfMemory> {
        match &*self.wanted {
            FaultTarget::Room { .. } => Some(txn.engine().memory().exhausted()),
            FaultTarget::Rows { .. } | FaultTarget::Leaf { .. } | FaultTarget::Past { .. } => None,
        }
    }

    /// Brings it in on the calling thread, which blocks: for a start, when nobody is served yet, and where nothing can wait.
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
        let loaded = txn.engine().faults.load_here(&self.wanted);
        txn.unless_optional(self.is_optional, loaded)
    }

    /// Memory, of which there is none now.
    #[cold]
    pub(crate) fn room(bytes: usize, from_reserve: bool) -> PageFault {
        PageFault::of(FaultTarget::Room {
            bytes: bytes as u64,
            from_reserve,
        })
    }

    /// Is it memory, and not something that is in a checkpoint?
    pub fn is_room(&self) -> bool {
        matches!(*self.wanted, FaultTarget::Room { .. })
    }

    /// Waits until it is worth trying again. Dropping the future ends the wait.
    pub fn wait(self, txn: &mut Txn) -> FaultWait<'_> {
        FaultWait::new(self.wanted, self.is_optional, txn)
    }
}

impl fmt::Debug for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Absent({:?})", self.wanted)
    }
}

impl fmt::Display for PageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not in memory", self.wanted)
    }
}

impl std::error::Error for PageFault {}

/// Why what is absent does not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// What the home has is damaged (XX001); it says what and where. Nothing of it is served.
    #[error("{0}")]
    Damaged(String),
    /// The home cannot be read (58030).
    #[error("{0}")]
    Unreachable(String),
    /// A restore point whose pages are laid out as older servers did (0A000).
    #[error(
        "the restore point is in the format of an older server: it can be restored or branched from, but not read beside the present"
    )]
    Older,
    /// A replica has not read it yet, and what it would read it from is gone since the primary's checkpoint at this CSN
    /// (72000): the replica begins again at a newer one.
    #[error(
        "snapshot too old: what the replica began with is gone since the checkpoint at CSN {0}"
    )]
    TooOld(logstead_types::Csn),
    /// The memory budget is used up, and nothing can be evicted (53200).
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The engine is closing, or another server has taken over.
    #[error("the server is closing")]
    Closing,
}

impl From<logstead_checkpoint::CheckpointError> for FaultError {
    fn from(error: logstead_checkpoint::CheckpointError) -> FaultError {
        use logstead_checkpoint::CheckpointError;
        match error {
            CheckpointError::Home(_) => FaultError::Unreachable(error.to_string()),
            CheckpointError::Overtaken => FaultError::Closing,
            CheckpointError::Damaged(_) | CheckpointError::Misuse(_) | CheckpointError::Pins(_) => {
                FaultError::Damaged(error.to_string())
            }
        }
    }
}

/// For who has not the means to wait, and knows that everything is in memory: an engine without a memory limit evicts
/// nothing, so everything is once it has been there.
pub trait ExpectPresent<T> {
    /// What was found.
    ///
    /// # Panics
    /// If something is absent.
    fn expect_present(self) -> T;
}

impl<T> ExpectPresent<T> for Result<T, PageFault> {
    #[track_caller]
    fn expect_present(self) -> T {
        match self {
            Ok(found) => found,
            #[expect(
                clippy::panic,
                reason = "documented: the caller says that it cannot be"
            )]
            Err(absent) => panic!("{absent}"),
        }
    }
}
