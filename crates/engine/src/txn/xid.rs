//! Transaction ids: what a transaction is called by those who ask for its name.
//!
//! A transaction has a CSN only when it commits. One that is to be named before ([`Worker::assign_xid`]) is given a CSN
//! of its own right away, by a
//! void entry in the log, as its id; so ids and CSNs are numbers of one kind, no two are alike, and none comes again in
//! a later life of the
//! server if anything that a crash spares can name it: whoever writes it down draws a higher CSN. A row's version is
//! known by the id of its writer, if that has
//! one, and by its writer's CSN otherwise ([`Engine::xid_of`]).
//!
//! Owns: which ids belong to transactions that run, and to which CSN those belong that have committed.
//!
//! Invariants:
//! - The pair of a writer's CSN and id is here before the CSN is visible in any version (`Committing` comes before the
//!   draw, and whoever meets the
//!   versions of a transaction that is Committing waits for it).
//! - An id is among the running ones until then; while one is drawn, and while its transaction is between its own draw
//!   and that moment, whoever asks for all
//!   running ones waits.
//!
//! It keeps the newest [`PAIRS_MAX`] pairs. Older rows, and those of earlier lives, are known by CSN: a name that was
//! given out for them before is nobody's
//! from then on.

use crate::xid::{ABORTED_MAX, PAIRS_MAX, XidSnapshot, XidState, XidStatus};
use std::sync::atomic::Ordering;

use logstead_commit::PushBody;
use logstead_env::abort_on_panic;
use logstead_types::Csn;
use logstead_wal::RoomRequest;

use crate::engine::Engine;
use crate::error::CommitError;
use crate::txn::precommit::{commit_error, take_room};
use crate::worker::Worker;

/// A transaction's id. Dropped without a commit, the transaction was rolled back.
pub struct Xid {
    engine: Engine,
    number: u64,
}

impl Xid {
    /// The number.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn set(&self, running: XidState) {
        let mut ids = self.engine.inner().xids.ids.lock();
        ids.running.insert(self.number, running);
    }

    /// Before the transaction draws its CSN.
    pub(crate) fn begin_commit(&self) {
        self.set(XidState::Committing);
    }

    /// It was refused a CSN.
    pub(crate) fn refused(&self) {
        self.set(XidState::Active);
    }

    /// It has committed; with a CSN, if it has changed anything. Before its state tells of it.
    pub(crate) fn committed(self, csn: Option<Csn>) {
        let xids = &self.engine.inner().xids;
        let mut ids = xids.ids.lock();
        ids.running.remove(&self.number);
        let Some(csn) = csn else { return };
        let at = ids.pairs.partition_point(|(before, _)| *before < csn.0);
        ids.pairs.insert(at, (csn.0, self.number));
        while ids.pairs.len() > PAIRS_MAX {
            if let Some((csn, _)) = ids.pairs.pop_front() {
                ids.paired_from = ids.paired_from.max(csn);
            }
        }
        xids.some.store(true, Ordering::SeqCst);
    }
}

impl Drop for Xid {
    fn drop(&mut self) {
        let mut ids = self.engine.inner().xids.ids.lock();
        // None if it has committed.
        if ids.running.remove(&self.number).is_some() {
            ids.aborted.insert(self.number);
            if ids.aborted.len() > ABORTED_MAX
                && let Some(oldest) = ids.aborted.pop_first()
            {
                ids.forgotten = ids.forgotten.max(oldest);
            }
        }
    }
}

impl Worker {
    /// Gives a transaction of this worker an id. Waits while the log has no room for the entry that takes the number;
    /// is refused, as who writes more, while the
    /// home keeps the room that is left for who removes.
    pub async fn assign_xid(&self) -> Result<Xid, CommitError> {
        let worker = self.id();
        if self.0.inner().replica_base.is_some() {
            return Err(CommitError::Replica);
        }
        if self.0.is_short_of_space() {
            self.engine().ask_for_checkpoint(false);
            return Err(CommitError::DiskFull);
        }
        let mut asked = RoomRequest::default();
        let place = take_room(&self.0, 0, &mut asked).await;
        let place = place.map_err(commit_error)?;
        let engine = self.0.inner();
        let path = &engine.path;
        let mut nothing = path.new_dependency_set();
        let began_at = path.now();
        // A CSN without an entry would be a gap in the log for ever.
        let _watch = abort_on_panic("drawing a transaction's id");
        // Who takes a snapshot above it and asks who runs finds it, or waits. Not under the lock: the lane's may have
        // to be waited for.
        engine.xids.ids.lock().drawing += 1;
        let entrance = path.enter(place, &mut nothing);
        let drawn = path.draw(worker);
        let csn = drawn.0;
        let body = PushBody::Inline(&[]);
        let pushed = path.push(worker, entrance, drawn, &mut nothing, body, began_at);
        let mut ids = engine.xids.ids.lock();
        ids.running.insert(csn.0, XidState::Active);
        ids.drawing -= 1;
        drop(ids);
        let xid = Xid {
            engine: self.engine().clone(),
            number: csn.0,
        };
        if pushed.was_clean || path.shares_lanes() {
            self.0.call_dirty_hook();
        }
        path.precommitted(worker, &pushed);
        Ok(xid)
    }
}

impl Engine {
    /// What the writer of a version is called, whose CSN this is.
    pub fn xid_of(&self, csn: Csn) -> u64 {
        let xids = &self.inner().xids;
        if !xids.some.load(Ordering::SeqCst) {
            return csn.0;
        }
        let ids = xids.ids.lock();
        match ids.pairs.binary_search_by_key(&csn.0, |(csn, _)| *csn) {
            Ok(at) => ids.pairs.get(at).map_or(csn.0, |(_, xid)| *xid),
            Err(_) => csn.0,
        }
    }

    /// Which ids a snapshot with this CSN, which has been taken, does not see. None: it is so old that this is not
    /// known any more.
    pub fn xid_snapshot(&self, snapshot: Csn) -> Option<XidSnapshot> {
        let mut spins = 0_u32;
        let ids = loop {
            let ids = self.inner().xids.ids.lock();
            if ids.drawing == 0 && !ids.running.values().any(|of| *of == XidState::Committing) {
                break ids;
            }
            drop(ids);
            spins += 1;
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        };
        let end = snapshot.0;
        if ids.paired_from >= end {
            return None;
        }
        let mut running: Vec<u64> = ids.running.range(..end).map(|(xid, _)| *xid).collect();
        let later = ids.pairs.partition_point(|(csn, _)| *csn < end);
        running.extend(ids.pairs.range(later..).map(|(_, xid)| *xid));
        running.retain(|xid| *xid < end);
        running.sort_unstable();
        Some(XidSnapshot { end, running })
    }

    /// What has become of the transaction with this id.
    pub fn xid_status(&self, xid: u64) -> XidStatus {
        if xid >= self.inner().horizon().counter().0 {
            return XidStatus::Future;
        }
        let ids = self.inner().xids.ids.lock();
        match (ids.running.contains_key(&xid), ids.aborted.contains(&xid)) {
            (true, _) => XidStatus::InProgress,
            (_, true) => XidStatus::Aborted,
            _ if xid <= ids.forgotten => XidStatus::Forgotten,
            _ => XidStatus::Committed,
        }
    }
}
