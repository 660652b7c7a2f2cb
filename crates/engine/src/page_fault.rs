//! What is not in memory: rows or an index leaf that an operation needs.
//!
//! An operation that meets one gives [`PageFault`] and has changed nothing; a cursor has not moved. The caller drops
//! its guard and rows, awaits [`PageFault::wait`], and begins the operation again, which may meet the next one. That is
//! not a lock: nobody stands in the way, and NOWAIT waits too.
//!
//! Who needs one row asks for that alone; who goes over a table asks for chunks ([`PageFault::with_neighbours`]).
//!
//! Inside the engine [`AbsentRow`] stands for it where only row numbers are known, and [`AbsentIndexLeaf`] in an index.
//!
//! Does not: wait (`txn::fault_wait`) or bring anything in (`page_loader`, `load`).

use crate::rows::AbsentRow;
use std::fmt;
use std::sync::Arc;

use logstead_types::TableId;

use crate::as_of::AsOfDatabase;
use crate::index::{AbsentIndexLeaf, Index};
use crate::rows::TableRows;
use crate::version::{CHUNK_SLOTS, SlotSet};

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
    pub(crate) wanted: Arc<FaultTarget>,
    /// Who wants it does not need it if it cannot be had.
    pub(crate) is_optional: bool,
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
            FaultTarget::Leaf { .. }
            | FaultTarget::Past { .. }
            | FaultTarget::Room { .. }
            | FaultTarget::Lost => self,
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

    /// Memory, of which there is none now.
    #[cold]
    pub(crate) fn room(bytes: usize, from_reserve: bool) -> PageFault {
        PageFault::of(FaultTarget::Room {
            bytes: bytes as u64,
            from_reserve,
        })
    }

    /// What the snapshot needs and nobody has any more: the wait fails.
    #[cold]
    pub(crate) fn lost() -> PageFault {
        PageFault::of(FaultTarget::Lost)
    }

    /// Is it memory, and not something that is in a checkpoint?
    pub fn is_room(&self) -> bool {
        matches!(*self.wanted, FaultTarget::Room { .. })
    }
}

impl AsOfDatabase {
    /// Has what it is made of been read? To be asked, and waited for, before anything else.
    pub fn opened(self: &Arc<AsOfDatabase>) -> Result<(), PageFault> {
        match self.opened.get() {
            Some(_) => Ok(()),
            None => Err(PageFault::past(self, None)),
        }
    }

    /// Has the table the indexes that were defined? To be asked, and waited for, before one is used.
    pub fn indexed(self: &Arc<AsOfDatabase>, id: TableId) -> Result<(), PageFault> {
        let table = self.opened.get().and_then(|opened| opened.tables.get(&id));
        match table {
            Some(table) if !table.indexes.lock().is_empty() => Err(PageFault::past(self, Some(id))),
            _ => Ok(()),
        }
    }
}

impl From<AbsentIndexLeaf> for PageFault {
    #[cold]
    fn from(AbsentIndexLeaf { index, low }: AbsentIndexLeaf) -> PageFault {
        PageFault::of(FaultTarget::Leaf { index, low })
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

/// Slots of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotRequest {
    /// Whose rows who waits cannot do without.
    pub(crate) needed: SlotSet,
    /// Whose rows he is likely to want next.
    pub(crate) beside: SlotSet,
}

impl SlotRequest {
    pub(crate) const NONE: SlotRequest = SlotRequest::of(SlotSet::NONE);

    /// These, and nothing beside them.
    pub(crate) const fn of(needed: SlotSet) -> SlotRequest {
        SlotRequest {
            needed,
            beside: SlotSet::NONE,
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> SlotSet {
        self.needed.union(&self.beside)
    }

    pub(crate) fn union(&self, other: &SlotRequest) -> SlotRequest {
        SlotRequest {
            needed: self.needed.union(&other.needed),
            beside: self.beside.union(&other.beside),
        }
    }
}

/// What is to be brought into memory.
#[derive(Clone)]
pub(crate) enum FaultTarget {
    /// Rows of a chunk.
    Rows {
        /// Whose.
        rows: Arc<TableRows>,
        /// Which chunk.
        number: u64,
        /// In which slots.
        slots: SlotRequest,
    },
    /// A leaf of an index.
    Leaf {
        /// Whose.
        index: Arc<Index>,
        /// The least key it may have.
        low: Box<[u8]>,
    },
    /// What a past is made of.
    Past {
        /// Which.
        past: Arc<AsOfDatabase>,
        /// The indexes of this table too.
        table: Option<TableId>,
    },
    /// What an old snapshot needs and a restarted instance had: it does not come back.
    Lost,
    /// Nothing in particular: memory for a write.
    Room {
        /// How much.
        bytes: u64,
        /// Whether it may come out of the reserve.
        from_reserve: bool,
    },
}

impl fmt::Debug for FaultTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultTarget::Rows {
                rows,
                number,
                slots,
            } => match slots.all().len() {
                1 => {
                    let slot = slots.needed.iter().next().unwrap_or_default() as u64;
                    let rid = number * CHUNK_SLOTS as u64 + slot;
                    write!(f, "row {rid} of table {}", rows.table)
                }
                _ => write!(f, "chunk {number} of table {}", rows.table),
            },
            FaultTarget::Past { past, table: None } => write!(f, "the past at CSN {}", past.csn()),
            FaultTarget::Past {
                past,
                table: Some(table),
            } => write!(f, "the indexes of table {table} at CSN {}", past.csn()),
            FaultTarget::Lost => f.write_str("what a restarted instance had"),
            FaultTarget::Room { bytes, .. } => write!(f, "memory for {bytes} bytes"),
            FaultTarget::Leaf { index, low } => {
                write!(
                    f,
                    "the leaf of index {} from {} on",
                    index.id(),
                    low.escape_ascii()
                )
            }
        }
    }
}

impl FaultTarget {
    /// Which rows of a chunk; none, if it is no rows.
    pub(crate) fn slots(&self) -> SlotRequest {
        match self {
            FaultTarget::Rows { slots, .. } => *slots,
            FaultTarget::Leaf { .. }
            | FaultTarget::Past { .. }
            | FaultTarget::Lost
            | FaultTarget::Room { .. } => SlotRequest::NONE,
        }
    }
}
