//! Between transactions and the certifier: what an operation of a SERIALIZABLE transaction notes, and how one is asked
//! whether it may commit.
//!
//! Does not: decide that (`crate::serializable`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use logstead_commit::{CommitInsertLock, CommitReservation, Reservation};
use logstead_types::{Csn, Dsn, IndexId, Rid, TableId};

use crate::engine::EngineInner;
use crate::error::CommitError;
use crate::index::Index;
use crate::serializable::ranges::KeyRange;
use crate::serializable::reads::{RangeId, ReadSet};
use crate::serializable::state::{ActiveTxn, ActiveTxnId, SnapshotSafety};
use crate::serializable::writes::{ROWS_MAX, TableWrites, WriteSet};
use crate::serializable::{Certifier, CertifyOutcome, Ordinal};
use crate::stats::add;
use crate::table::Table;
use crate::tree::interleave::point;
use crate::txn::index_cursor::IndexCursor;
use crate::txn::write::TxnWrites;
use crate::txn::{Isolation, Txn};
use crate::version::{Guard, VersionKind};

/// Tables below this are the system catalog: not tracked, as in PostgreSQL.
const USER_TABLES: TableId = TableId(16_384);

/// What a SERIALIZABLE transaction keeps for the certifier from its snapshot on.
pub(crate) struct TrackedTxn {
    pub(super) begun: ActiveTxn,
    pub(super) reads: ReadSet,
    /// From which place on writers count as overwriting what is read now: the begin, or, while a later view is swapped
    /// in, that view's.
    from: Ordinal,
}

/// A transaction that has its CSN, and its lane to itself.
pub(crate) struct CsnAssigned<'e, 'w> {
    pub(crate) entrance: CommitInsertLock<'e>,
    pub(crate) csn: (Csn, Reservation<'e>),
    /// What only certification needed. Giving memory back takes time, so it is kept until `reserved` is cleared (T12).
    pub(crate) dropped_later: Option<DeferredDrop<'w>>,
}

type SeenIndexes<'w> = Vec<(&'w Arc<Table>, u64)>;

/// See [`CsnAssigned`].
pub(crate) struct DeferredDrop<'w>(
    #[expect(dead_code, reason = "kept, and dropped later")]
    (Box<TrackedTxn>, WriteSet, SeenIndexes<'w>),
);

/// How far a transaction has got with its lane.
enum CommitLaneAccess<'e> {
    /// It has room there.
    Reserved(CommitReservation),
    /// It has the lane's lock.
    Locked(CommitInsertLock<'e>),
}

impl CommitLaneAccess<'_> {
    /// The lock is given back.
    fn left(self) -> Self {
        match self {
            CommitLaneAccess::Locked(entrance) => CommitLaneAccess::Reserved(entrance.leave()),
            outside => outside,
        }
    }
}

/// Which of a transaction's ranges a cursor extends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CursorTrack {
    ticket: ActiveTxnId,
    range: RangeId,
}

impl Txn {
    fn certifier(&self) -> &Certifier {
        &self.engine().certifier
    }

    /// Takes the snapshot of a SERIALIZABLE transaction.
    pub(crate) fn begin_tracked(&mut self) -> Csn {
        let worker = self.worker.clone();
        let certifier = &worker.inner().certifier;
        let (snapshot, begun) = certifier.begin(self.read_only, || worker.acquire_snapshot());
        self.tracked = begun.map(|begun| {
            Box::new(TrackedTxn {
                from: begun.begin,
                begun,
                reads: ReadSet::default(),
            })
        });
        snapshot
    }

    /// Declares that the transaction changes nothing, if it has no snapshot yet: a SERIALIZABLE one may then have
    /// nothing to certify. If it has changes all the same, it does not commit.
    pub fn declare_read_only(&mut self) {
        if !self.has_snapshot() && self.work.is_none() {
            self.read_only = true;
        }
    }

    /// Waits for a snapshot from which a SERIALIZABLE transaction declared read-only can read without being tracked and
    /// without ever failing: READ ONLY DEFERRABLE. Ready at once for all others, and if it has its snapshot already.
    /// Dropping the future ends the wait.
    pub fn safe_snapshot(&mut self) -> SafeSnapshot<'_> {
        SafeSnapshot::new(self)
    }

    pub(crate) fn wants_safe_snapshot(&self) -> bool {
        self.isolation() == Isolation::Serializable && self.read_only && !self.has_snapshot()
    }

    /// Where what is read now is put.
    pub(crate) fn reads_from(&self) -> Ordinal {
        self.tracked.as_ref().map_or(Ordinal::NONE, |t| t.from)
    }

    /// Puts what is read from now on at `from`; gives where it was put before.
    pub(crate) fn read_from(&mut self, from: Ordinal) -> Ordinal {
        match &mut self.tracked {
            Some(tracked) => {
                if from > tracked.begun.begin {
                    // It sees everything below.
                    tracked.reads.examined = tracked.reads.examined.max(from.before());
                }
                std::mem::replace(&mut tracked.from, from)
            }
            None => Ordinal::NONE,
        }
    }

    /// A snapshot of now, besides the transaction's own.
    pub(crate) fn latest_snapshot(&mut self) -> (Csn, Ordinal) {
        let worker = self.worker.clone();
        if self.isolation() != Isolation::Serializable {
            return (worker.acquire_snapshot(), Ordinal::NONE);
        }
        self.snapshot();
        let certifier = &worker.inner().certifier;
        certifier.observe(|| worker.acquire_snapshot())
    }

    /// Notes that a row was read as the snapshot sees it.
    #[inline]
    pub(crate) fn track_row(&mut self, table: TableId, rid: Rid) {
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            tracked.reads.row(table, rid, tracked.from);
        }
    }

    /// Notes that a whole table was read.
    #[inline]
    pub(crate) fn track_table(&mut self, table: TableId) {
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            tracked.reads.whole_table(table, tracked.from);
        }
    }

    /// Notes that a key was looked up.
    #[inline]
    pub(crate) fn track_key(&mut self, index: &Index, key: &[u8]) {
        let table = index.rows.table;
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            if tracked.begun.begin <= index.attached() {
                tracked.reads.whole_table(table, tracked.from);
            } else {
                tracked.reads.key(table, index.id(), key, tracked.from);
            }
        }
    }

    /// Notes how far a cursor has walked: up to the entry it stands on, or to the end of its range.
    #[inline]
    pub(crate) fn track_cursor(&mut self, cursor: &mut IndexCursor, at_end: bool) {
        let table = cursor.index().rows.table;
        let Some(tracked) = &mut self.tracked else {
            return;
        };
        if table < USER_TABLES {
            return;
        }
        let ActiveTxn { ticket, begin } = tracked.begun;
        if begin <= cursor.index().attached() {
            return tracked.reads.whole_table(table, tracked.from);
        }
        let range = match cursor.track.filter(|track| track.ticket == ticket) {
            Some(track) => track.range,
            None => {
                let (start, end) = cursor.range();
                if end.is_some_and(|end| end <= start) {
                    return;
                }
                // Nothing yet, at the end it starts from.
                let nothing = match (cursor.is_reverse(), end) {
                    (true, end) => KeyRange {
                        start: end.unwrap_or_default().to_vec(),
                        end: end.map(<[u8]>::to_vec),
                    },
                    (false, _) => KeyRange {
                        start: start.to_vec(),
                        end: Some(start.to_vec()),
                    },
                };
                let index = cursor.index().id();
                let range = tracked.reads.begin_range(
                    table,
                    index,
                    nothing,
                    cursor.is_merged(),
                    tracked.from,
                );
                cursor.track = Some(CursorTrack { ticket, range });
                range
            }
        };
        let Some(walked) = tracked.reads.range_mut(range) else {
            return;
        };
        let key = match cursor.is_merged() {
            true => cursor.key().get(1..).unwrap_or_default(),
            false => cursor.key(),
        };
        match (at_end, cursor.is_reverse()) {
            (true, false) => walked.end = cursor.range().1.map(<[u8]>::to_vec),
            (true, true) => walked.start_with(cursor.range().0),
            (false, false) => walked.end_with(key),
            (false, true) => walked.start_with(key),
        }
    }

    /// The place of the next writer, to be taken before newest versions are examined.
    #[inline]
    pub(crate) fn newest_from(&mut self) -> Ordinal {
        if self.isolation() != Isolation::Serializable {
            return Ordinal::NONE;
        }
        self.snapshot();
        self.certifier().next()
    }

    /// Notes that newest versions were examined, the newest of them of `seen`.
    pub(crate) fn track_examined(&mut self, seen: Dsn) {
        let Some(snapshot) = self.snapshot_if_any() else {
            return;
        };
        let next = self.certifier().next();
        if let Some(tracked) = &mut self.tracked
            && seen.get() >= snapshot.get()
        {
            let examined = &mut tracked.reads.examined;
            *examined = (*examined).max(next.before());
        }
    }

    /// Notes that a row's newest version was read when `from` was the next place.
    pub(crate) fn track_newest_row(&mut self, table: TableId, rid: Rid, from: Ordinal) {
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            tracked.reads.row(table, rid, from);
        }
    }

    /// Notes that the newest versions of a whole table were read, beginning when `from` was the next place.
    pub(crate) fn track_newest_table(&mut self, table: TableId, from: Ordinal) {
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            tracked.reads.whole_table(table, from);
        }
    }

    /// Notes that nobody else has a key, as of when `from` was the next place.
    pub(crate) fn track_newest_key(
        &mut self,
        table: TableId,
        index: IndexId,
        key: &[u8],
        from: Ordinal,
    ) {
        if let Some(tracked) = &mut self.tracked
            && table >= USER_TABLES
        {
            tracked.reads.key(table, index, key, from);
        }
    }

    /// Is it settled already that the transaction cannot commit?
    pub(crate) fn is_doomed(&self) -> bool {
        self.tracked
            .as_ref()
            .is_some_and(|t| self.certifier().check(t.begun, &t.reads).is_err())
    }

    /// Lets the certifier forget a transaction that ends without being certified.
    pub(crate) fn untrack(&mut self) {
        if let Some(tracked) = self.tracked.take() {
            self.certifier().end(tracked.begun);
        }
    }

    /// Asks whether a transaction without changes may commit.
    pub(crate) fn certify_reader(&mut self) -> Result<(), CommitError> {
        let Some(tracked) = self.tracked.take() else {
            return Ok(());
        };
        let decision = self
            .certifier()
            .certify_reader(tracked.begun, &tracked.reads);
        decision.map_err(|_| self.refused())
    }

    /// Enters the lane, sets the transaction Committing and draws its CSN, after certification if it is SERIALIZABLE.
    ///
    /// In this order: who waits for the lane's lock is still Running, so nobody waits for it; and who takes a snapshot
    /// above the CSN meets nothing that is Running any more (T4).
    ///
    /// The certifier's mutex is for all SERIALIZABLE transactions, so nobody waits for a lane while he has it. Who
    /// finds his lane busy gives the mutex back, waits for the lane, and comes again with its lock: whoever has the
    /// mutex by then only tries lanes.
    pub(crate) fn draw<'e, 'w>(
        &mut self,
        engine: &'e EngineInner,
        place: CommitReservation,
        draw: impl Fn() -> (Csn, Reservation<'e>),
        work: &'w TxnWrites,
        guard: &Guard,
    ) -> Result<CsnAssigned<'e, 'w>, CommitError> {
        if self.read_only {
            return Err(CommitError::ReadOnly);
        }
        let state = work.writer.state();
        point();
        if self.worker.counts_accesses && !state.close() {
            return Err(CommitError::InstanceRestarted);
        }
        let path = &engine.path;
        let Some(tracked) = self.tracked.take() else {
            let entrance = path.enter(place, &mut self.deps);
            state.begin_commit();
            point();
            return Ok(CsnAssigned {
                entrance,
                csn: draw(),
                dropped_later: None,
            });
        };
        let mut lane = Some(CommitLaneAccess::Reserved(place));
        loop {
            let (writes, seen) = self.write_set(work, guard);
            loop {
                let fresh = || seen.iter().all(|(table, n)| table.indexes_attached() == *n);
                let enter = || match lane.take()? {
                    CommitLaneAccess::Locked(entrance) => Some(entrance),
                    CommitLaneAccess::Reserved(place) => {
                        match path.try_enter(place, &mut self.deps) {
                            Ok(entrance) => Some(entrance),
                            Err(place) => {
                                lane = Some(CommitLaneAccess::Reserved(place));
                                None
                            }
                        }
                    }
                };
                let draw = |entrance, publish: &dyn Fn()| {
                    // Before the place is visible to others; see "Newest versions".
                    state.begin_commit();
                    publish();
                    point();
                    (entrance, draw())
                };
                let (begun, reads) = (tracked.begun, &tracked.reads);
                let certifier = &engine.certifier;
                match certifier.certify(begun, reads, &writes, fresh, enter, draw) {
                    CertifyOutcome::Yes((entrance, csn)) => {
                        return Ok(CsnAssigned {
                            entrance,
                            csn,
                            dropped_later: Some(DeferredDrop((tracked, writes, seen))),
                        });
                    }
                    CertifyOutcome::No(_) => return Err(self.refused()),
                    CertifyOutcome::Stale => {
                        // Working the writes out again takes other locks.
                        lane = lane.map(CommitLaneAccess::left);
                        break;
                    }
                    CertifyOutcome::Busy => {
                        lane = lane.map(|lane| match lane {
                            CommitLaneAccess::Reserved(place) => {
                                CommitLaneAccess::Locked(path.enter(place, &mut self.deps))
                            }
                            inside => inside,
                        });
                    }
                }
            }
        }
    }

    fn refused(&self) -> CommitError {
        add(&self.worker.counters().serialization_failures, 1);
        CommitError::Serialization
    }

    /// What the transaction leaves behind, and how many indexes had been attached to each table when its keys were
    /// made.
    fn write_set<'w>(&self, work: &'w TxnWrites, guard: &Guard) -> (WriteSet, SeenIndexes<'w>) {
        let buffers = &work.buffers;
        let mut writes = WriteSet::new();
        let mut seen = Vec::new();
        for (at, table) in buffers.tables.iter().enumerate() {
            if table.id() < USER_TABLES {
                continue;
            }
            let mut rows: Vec<Rid> = buffers
                .writes
                .iter()
                .filter(|w| w.table as usize == at && w.what.is_change())
                .map(|w| w.rid)
                .collect();
            rows.sort_unstable();
            rows.dedup();
            if rows.is_empty() {
                continue;
            }
            let whole = rows.len() > ROWS_MAX;
            let mut keys = Vec::new();
            if whole {
                rows = Vec::new();
            } else {
                table.with_indexes(self.worker.instance, |indexes| {
                    // Under the lock that attaching takes.
                    seen.push((table, table.indexes_attached()));
                    for rid in &rows {
                        new_keys(table, indexes, *rid, work, guard, &mut keys);
                    }
                });
            }
            writes.push(TableWrites {
                table: table.id(),
                whole,
                rows,
                keys,
            });
        }
        (writes, seen)
    }
}

/// The keys that a row has now and had not before `work`.
fn new_keys(
    table: &Table,
    indexes: &[Arc<Index>],
    rid: Rid,
    work: &TxnWrites,
    guard: &Guard,
    keys: &mut Vec<(IndexId, Box<[u8]>)>,
) {
    // A row that the transaction has written is in memory.
    let Ok(mut at) = table.rows.head(rid, guard) else {
        return;
    };
    let mut new: Option<&[u8]> = None;
    let mut old: Option<&[u8]> = None;
    let mut own = false;
    while let Some(version) = at {
        at = version.next(guard);
        match version.kind() {
            VersionKind::LockOnly => continue,
            VersionKind::Tombstone if version.is_of(&work.writer) => {
                // Deleted: it has no keys any more.
                if !own {
                    return;
                }
            }
            VersionKind::Row { .. } if version.is_of(&work.writer) => {
                if !own {
                    new = Some(version.row());
                }
            }
            VersionKind::Tombstone => break,
            VersionKind::Row { .. } => {
                old = Some(version.row());
                break;
            }
        }
        own = true;
    }
    let Some(new) = new else { return };
    let (mut new_key, mut old_key) = (Vec::new(), Vec::new());
    for index in indexes {
        new_key.clear();
        if !index.key(new, &mut new_key).has_entry() {
            continue;
        }
        old_key.clear();
        let had =
            old.is_some_and(|old| index.key(old, &mut old_key).has_entry() && old_key == new_key);
        if !had {
            keys.push((index.id(), new_key.as_slice().into()));
        }
    }
}

/// Future of [`Txn::safe_snapshot`].
#[must_use = "a wait does nothing unless polled"]
pub struct SafeSnapshot<'t> {
    txn: &'t mut Txn,
    waiting: Option<ActiveTxnId>,
}

impl<'t> SafeSnapshot<'t> {
    pub(crate) fn new(txn: &'t mut Txn) -> SafeSnapshot<'t> {
        SafeSnapshot { txn, waiting: None }
    }
}

impl Future for SafeSnapshot<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            let worker = this.txn.worker.clone();
            let certifier = &worker.inner().certifier;
            let Some(ticket) = this.waiting else {
                if !this.txn.wants_safe_snapshot() {
                    return Poll::Ready(());
                }
                let (snapshot, ticket) = certifier.begin_waiting(|| worker.acquire_snapshot());
                this.txn.set_snapshot(snapshot);
                this.waiting = ticket;
                if ticket.is_none() {
                    return Poll::Ready(());
                }
                continue;
            };
            match certifier.poll_safety(ticket, cx.waker()) {
                SnapshotSafety::Unknown => return Poll::Pending,
                SnapshotSafety::Safe => {
                    this.waiting = None;
                    return Poll::Ready(());
                }
                SnapshotSafety::Unsafe => {
                    this.waiting = None;
                    this.txn.drop_snapshot();
                }
            }
        }
    }
}

impl Drop for SafeSnapshot<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.waiting.take() {
            self.txn.worker.inner().certifier.stop_waiting(ticket);
            // Not known to be safe.
            self.txn.drop_snapshot();
        }
    }
}
