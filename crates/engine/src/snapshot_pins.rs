//! Snapshots that are kept although no running transaction has them: those that were exported.
//!
//! Does not: know transactions; [`exported_snapshot`](crate::txn::exported_snapshot) pins and unpins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use logstead_types::Csn;
use parking_lot::Mutex;

/// The pins of an engine.
#[derive(Default)]
pub(crate) struct SnapshotPins {
    /// How often each snapshot is pinned.
    pins: Mutex<BTreeMap<u64, usize>>,
    /// How many there are: who computes bounds takes no lock when there are none.
    count: AtomicUsize,
}

impl SnapshotPins {
    pub(crate) fn pin(&self, snapshot: Csn) {
        let mut pins = self.pins.lock();
        *pins.entry(snapshot.0).or_default() += 1;
        self.count.store(pins.len(), Ordering::SeqCst);
    }

    pub(crate) fn unpin(&self, snapshot: Csn) {
        let mut pins = self.pins.lock();
        if let Some(uses) = pins.get_mut(&snapshot.0) {
            *uses -= 1;
            if *uses == 0 {
                pins.remove(&snapshot.0);
            }
        }
        self.count.store(pins.len(), Ordering::SeqCst);
    }

    /// Adds the pinned snapshots to a list.
    #[inline]
    pub(crate) fn add_to(&self, snapshots: &mut impl Extend<u64>) {
        if self.count.load(Ordering::SeqCst) != 0 {
            snapshots.extend(self.pins.lock().keys().copied());
        }
    }
}
