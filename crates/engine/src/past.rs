//! Opening and closing pasts: the database as of a restore point, beside the present.
//!
//! Does not: say what a past is made of, or read it: `as_of` has the type [`AsOfDatabase`] and its invariants.

use crate::as_of::{AsOfDatabase, OpenAsOfDatabase};
use crate::engine::Engine;
use logstead_checkpoint::{RecoveryPoint, RecoveryTarget};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

impl Engine {
    /// The database as of a restore point, or of the newest checkpoint, to be read beside the present: the newest that
    /// fits. None: there is no such point any more. Asks nobody and reads nothing; see [`AsOfDatabase::opened`].
    pub fn past(&self, which: &RecoveryTarget) -> Option<Arc<AsOfDatabase>> {
        let inner = self.inner();
        let pasts = &inner.pasts;
        let mut points: Vec<RecoveryPoint> = inner.checkpoints.fitting(which);
        let mut open = pasts.open.lock();
        let records = points.iter().map(|point| &point.record);
        let hold = pasts.place.holds.hold(records)?;
        let held = hold.record().object;
        let same = open
            .iter_mut()
            .find(|kept| kept.past.hold.record().object == held);
        if let Some(same) = same {
            same.unused_since = None;
            return Some(Arc::clone(&same.past));
        }
        let at = points.iter().position(|point| point.record.object == held);
        let past = Arc::new(AsOfDatabase {
            number: pasts.opened.fetch_add(1, Ordering::Relaxed) + 1,
            names: at.map_or_else(Vec::new, |at| points.swap_remove(at).names),
            hold,
            place: Arc::clone(&pasts.place),
            workers: self.worker_count(),
            memory: self.memory(),
            opened: OnceLock::new(),
            notes: OnceLock::new(),
        });
        open.push(OpenAsOfDatabase {
            past: Arc::clone(&past),
            unused_since: None,
        });
        Some(past)
    }

    /// How many pasts are open, used or not.
    pub fn open_pasts(&self) -> usize {
        self.inner().pasts.open.lock().len()
    }

    /// How many pasts were closed so far: what was made of their tables may go.
    pub fn closed_pasts(&self) -> u64 {
        self.inner().pasts.closed.load(Ordering::Acquire)
    }

    /// Closes the pasts that nobody uses any more, if that has been so for a minute. A server's threads do so by
    /// themselves.
    pub fn tidy_pasts(&self) {
        let inner = self.inner();
        inner.pasts.tidy(inner.env.clock.as_ref(), false);
    }
}
