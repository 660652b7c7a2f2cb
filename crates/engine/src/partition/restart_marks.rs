//! Which virtual partitions are being dropped from memory, and from which snapshot on nobody misses what was dropped.
//!
//! Does not: drop anything ([`crate::instance_restart`], which says what it means).

use std::sync::atomic::{AtomicU64, Ordering};

use logstead_types::{Csn, PartitionId};
use parking_lot::Mutex;

use super::VIRTUAL_PARTITIONS;

/// What restarts have taken from memory. Read often, written hardly ever.
pub(crate) struct RestartMarks {
    /// A bit for each partition that is being dropped.
    restarting: AtomicU64,
    /// Of each partition the floor: snapshots below it may need what was dropped.
    floors: [AtomicU64; VIRTUAL_PARTITIONS as usize],
    /// The highest of them.
    highest: AtomicU64,
    /// Held by who restarts an instance.
    pub(crate) turn: Mutex<()>,
}

const _: () = assert!(VIRTUAL_PARTITIONS as u32 <= u64::BITS);

impl RestartMarks {
    pub(crate) const fn new() -> RestartMarks {
        RestartMarks {
            restarting: AtomicU64::new(0),
            floors: [const { AtomicU64::new(0) }; VIRTUAL_PARTITIONS as usize],
            highest: AtomicU64::new(0),
            turn: Mutex::new(()),
        }
    }

    /// Is it being dropped? Then nobody writes there.
    #[inline]
    pub(crate) fn is_restarting(&self, partition: PartitionId) -> bool {
        self.restarting.load(Ordering::SeqCst) & (1 << partition.0) != 0
    }

    /// Snapshots below this may need what was dropped of the partition.
    #[inline]
    pub(crate) fn floor(&self, partition: PartitionId) -> Csn {
        Csn(self.floors[usize::from(partition.0)].load(Ordering::SeqCst))
    }

    /// The same of any partition.
    #[inline]
    pub(crate) fn highest_floor(&self) -> Csn {
        Csn(self.highest.load(Ordering::SeqCst))
    }

    /// These are being dropped, by their bits, and no others.
    pub(crate) fn set_restarting(&self, partitions: u64) {
        self.restarting.store(partitions, Ordering::SeqCst);
    }

    /// Something of the partition is about to go that was superseded below this.
    pub(crate) fn raise(&self, partition: PartitionId, floor: Csn) {
        self.highest.fetch_max(floor.0, Ordering::SeqCst);
        let at = &self.floors[usize::from(partition.0)];
        at.fetch_max(floor.0, Ordering::SeqCst);
    }
}
