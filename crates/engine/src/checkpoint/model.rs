//! A chunk between writers, readers, a collector, checkpoints, an evictor of rows and of what only the log has, and
//! loaders of single rows, under shuttle: in
//! whatever order they meet, every snapshot sees what was committed below it, a checkpoint holds exactly that, and at
//! the end every byte is freed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use logstead_commit::Horizon;
use logstead_types::{Csn, WorkerId};
use parking_lot::Mutex;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};

use super::walk::{ChunkView, row_at};
use crate::logged_chunks::{LoggedChunk, LoggedChunks, LoggedTotals};
use crate::memory::{Account, Memory};
use crate::row_lock::RowLock;
use crate::snapshot_pins::SnapshotPins;
use crate::snapshots::{PublishedSnapshots, Snapshots, VisibilityBounds};
use crate::tree::interleave::{point, set_hook};
use crate::txn_id::TxnId;
use crate::txn_state::TxnState;
use crate::version::{
    CHUNK_SLOTS, Chunk, Guard, LogEvictionBounds, SlotSet, SlotsAbsent, UnsharedSlots, VersionKind,
    VersionWriter, WriterStatus,
};

/// The rows of a chunk, as a page has them.
type Page = BTreeMap<u16, (Csn, Vec<u8>)>;

/// A row, or none.
type Value = Option<Vec<u8>>;

const ROW: VersionKind = VersionKind::Row {
    keys_changed: false,
};
/// The slots that are written: the first to be frozen, one in the middle, and the last.
const SLOTS: [usize; 4] = [0, 1, CHUNK_SLOTS / 2 - 1, CHUNK_SLOTS - 1];
/// Those who do little at a time: each of their steps may be the last before somebody else's.
const QUICK: &str = "quick";

fn meet() {
    if thread::current().name() == Some(QUICK) || thread_rng().gen_range(0..8) == 0 {
        thread::yield_now();
    }
}

struct World {
    memory: &'static Memory,
    chunk: Chunk,
    horizon: Horizon,
    /// Of two readers and the checkpoints.
    published: [CachePadded<PublishedSnapshots>; 3],
    /// What only the log has.
    logged: LoggedChunks,
    totals: Arc<LoggedTotals>,
    /// The newest checkpoint.
    newest: Mutex<(Csn, Page)>,
    /// What was committed, by slot.
    history: Mutex<BTreeMap<usize, BTreeMap<Csn, Value>>>,
    /// What snapshots have seen.
    seen: Mutex<Vec<(Csn, usize, Value)>>,
    /// Rows that went, and whole chunks.
    gone: AtomicUsize,
    evictions: AtomicUsize,
    /// How often the chunk has left with what only the log has, and was written then, and has come back.
    left: AtomicUsize,
    left_written: AtomicUsize,
    left_came_back: AtomicUsize,
    busy: AtomicUsize,
}

impl World {
    fn new(memory: &'static Memory) -> World {
        World {
            memory,
            chunk: Chunk::new(memory),
            horizon: Horizon::new(3, Csn(10)),
            published: [
                PublishedSnapshots::new(),
                PublishedSnapshots::new(),
                PublishedSnapshots::new(),
            ],
            logged: LoggedChunks::default(),
            totals: Arc::default(),
            newest: Mutex::new((Csn(0), Page::new())),
            history: Mutex::default(),
            seen: Mutex::default(),
            gone: AtomicUsize::new(0),
            evictions: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            left_written: AtomicUsize::new(0),
            left_came_back: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
        }
    }

    /// One transaction on a slot, unless another one has it: brings the row or its deletion about, or is rolled back.
    fn write(
        &self,
        worker: u16,
        id: u64,
        slot: usize,
        delete: bool,
        commits: bool,
    ) -> Result<(), SlotsAbsent> {
        let guard = Guard::pin();
        let head = self.chunk.head(slot, &guard)?;
        let busy = head.is_some_and(
            |head| matches!(head.writer_status(), WriterStatus::InProgress(state) if state.committed().is_none()),
        );
        let delete = delete && head.is_some_and(|head| head.kind() == ROW);
        let writer = VersionWriter::new(TxnState::new(TxnId(id)));
        let row = id.to_be_bytes();
        let (kind, row) = if delete {
            (VersionKind::Tombstone, &[][..])
        } else {
            (ROW, &row[..])
        };
        let lock = RowLock::NoKeyUpdate;
        if busy
            || self
                .chunk
                .install(slot, head, &writer, kind, lock, 1, row, &guard)?
                .is_none()
        {
            return Ok(());
        }
        point();
        if !commits {
            let undone = self.chunk.prune_lock().pop(slot, &writer, &guard);
            assert!(undone.is_some(), "what is in flight stays");
            writer.state().aborted();
            return Ok(());
        }
        writer.state().begin_commit();
        point();
        let (csn, reservation) = self.horizon.draw(WorkerId(worker));
        let now = (kind == ROW).then(|| row.to_vec());
        self.history
            .lock()
            .entry(slot)
            .or_default()
            .insert(csn, now);
        point();
        drop(reservation);
        point();
        writer.state().precommitted(csn);
        point();
        self.chunk.stamp(slot, &writer, csn, &guard);
        Ok(())
    }

    /// Somebody takes a snapshot and looks at every slot, again when the chunk is back.
    fn read(&self, reader: usize) {
        let mut snapshots = Snapshots::default();
        let snapshot = snapshots.acquire(&self.horizon, &self.published[reader]);
        for slot in SLOTS {
            let found = loop {
                let guard = Guard::pin();
                match row_at(&self.chunk, slot, snapshot, &guard) {
                    Ok(found) => break found.map(|(_, row)| row.to_vec()),
                    Err(SlotsAbsent) => thread::yield_now(),
                }
            };
            self.seen.lock().push((snapshot, slot, found));
        }
        snapshots.release(snapshot, &self.published[reader]);
    }

    fn bounds(&self) -> VisibilityBounds {
        self.horizon.advance(|| Csn(u64::MAX));
        VisibilityBounds::read(&self.horizon, &self.published, &SnapshotPins::default())
    }

    /// What the garbage collector does.
    fn collect(&self) {
        let bounds = self.bounds();
        for slot in SLOTS {
            let guard = Guard::pin();
            let Ok(Some(head)) = self.chunk.peek(slot, &guard) else {
                continue;
            };
            let csn = |version: crate::version::VersionRef<'_>| match version.writer_status() {
                WriterStatus::Committed(csn) => Some(csn),
                WriterStatus::InProgress(_) => None,
            };
            let mut prune = self.chunk.prune_lock();
            if head.kind() == VersionKind::Tombstone
                && csn(head).is_some_and(|csn| bounds.gone(csn).is_ok())
            {
                prune.take_all(slot, head, &guard);
                continue;
            }
            let mut newer: Option<Csn> = None;
            prune.sweep(slot, &guard, |version, _| {
                let Some(csn) = csn(version) else {
                    return false;
                };
                newer
                    .replace(csn)
                    .is_some_and(|newer| bounds.droppable(csn, newer).is_ok())
            });
        }
    }

    /// A checkpoint, which writes what has changed, or all; one that fails is given up after it was written.
    fn checkpoint(&self, fails: bool, whole: bool) {
        let mut snapshots = Snapshots::default();
        let snapshot = snapshots.acquire(&self.horizon, &self.published[2]);
        snapshots.publish(&self.published[2]);
        while self.horizon.get() < snapshot {
            self.horizon.advance(|| Csn(u64::MAX));
            thread::yield_now();
        }
        let (since, mut page) = self.newest.lock().clone();
        let mut written = None;
        if self.chunk.begin_writing(false).is_some() {
            let guard = Guard::pin();
            let seen = loop {
                match ChunkView::look(&self.chunk, snapshot, &guard) {
                    Ok(seen) => break Ok(seen),
                    Err(SlotsAbsent) => match self.logged.get(0) {
                        Some(logged) => break Err(logged),
                        None => assert!(self.chunk.is_present(), "what was changed is nowhere"),
                    },
                }
            };
            let seen = match seen {
                Ok(seen) => seen,
                Err(logged) => {
                    return self.write_logged(fails, &logged, snapshot, snapshots);
                }
            };
            let gone: Vec<u16> = seen.gone(&self.chunk.saved()).collect();
            let since = if whole { Csn(0) } else { since };
            page.retain(|slot, _| match whole {
                true => seen.absent.contains((*slot).into()),
                false => !gone.contains(slot),
            });
            for slot in seen.absent.iter() {
                assert!(page.contains_key(&(slot as u16)), "slot {slot} is nowhere");
            }
            point();
            // Rows may come back between one look and the next.
            let seen =
                ChunkView::look(&self.chunk, snapshot, &guard).expect("what was changed is there");
            page.extend(
                seen.rows_since(since)
                    .map(|(slot, csn, row)| (slot, (csn, row.to_vec()))),
            );
            written = Some(seen.present);
        }
        point();
        if !fails {
            *self.newest.lock() = (snapshot, page);
            point();
        }
        if let Some(present) = written {
            if !fails {
                self.chunk.set_saved(&present);
            }
            self.chunk.end_writing(fails);
        }
        snapshots.release(snapshot, &self.published[2]);
    }

    /// What the log up to a CSN says of the chunk.
    fn log_below(&self, below: Csn) -> Page {
        let history = self.history.lock();
        let newest = |(slot, commits): (&usize, &BTreeMap<Csn, Value>)| {
            let (csn, row) = commits.range(..below).next_back()?;
            Some((*slot as u16, (*csn, row.clone()?)))
        };
        history.iter().filter_map(newest).collect()
    }

    /// The rest of a checkpoint that has found the chunk away.
    fn write_logged(
        &self,
        fails: bool,
        logged: &LoggedChunk,
        snapshot: Csn,
        mut snapshots: Snapshots,
    ) {
        point();
        let page = self.log_below(snapshot);
        let mut present = SlotSet::NONE;
        page.keys().for_each(|slot| present.insert((*slot).into()));
        assert_eq!(
            Some(present),
            logged.present,
            "it has changed below the snapshot"
        );
        point();
        if !fails {
            *self.newest.lock() = (snapshot, page);
            point();
            self.logged.written(0, || self.chunk.learn_saved(&present));
            self.left_written.fetch_add(1, Ordering::Relaxed);
        }
        self.chunk.end_writing(fails);
        snapshots.release(snapshot, &self.published[2]);
    }

    fn evict_to_log(&self) {
        let published = self.newest.lock().0;
        self.horizon.advance(|| Csn(u64::MAX));
        let horizon = self.horizon.get();
        let none = SnapshotPins::default();
        let of_checkpoints = VisibilityBounds::read(&self.horizon, &self.published[2..], &none);
        let bounds = LogEvictionBounds {
            published,
            below: horizon.min(of_checkpoints.oldest()),
        };
        point();
        let left = self.chunk.evict_to_log(&bounds, &Guard::pin(), |left| {
            let read_point = self.horizon.get();
            let logged = LoggedChunk::new(read_point, &left, &self.totals, self.memory);
            self.logged.keep(0, logged);
        });
        self.left.fetch_add(left.is_ok().into(), Ordering::Relaxed);
    }

    fn evict(&self, spared: &SlotSet) {
        let published = self.newest.lock().0;
        point();
        if let Ok(evicted) = self.chunk.evict(published, spared, &Guard::pin()) {
            self.gone.fetch_add(evicted.rows, Ordering::Relaxed);
            if evicted.whole {
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Brings rows back that are absent, unless somebody else does.
    fn load(&self, wanted: &SlotSet) {
        let Some(absence) = self.chunk.absence(&Guard::pin()) else {
            return;
        };
        if let Some(logged) = self.logged.get(0) {
            if *absence.slots() != SlotSet::ALL {
                return;
            }
            let wanted = wanted.union(&logged.dirty);
            point();
            // Whoever gives it may have come further.
            self.horizon.advance(|| Csn(u64::MAX));
            let page = self.log_below(self.horizon.get());
            let mut rows = UnsharedSlots::new(self.memory);
            for (slot, (csn, row)) in page {
                if wanted.contains(slot.into()) {
                    rows.replace(slot.into(), csn, Some(&row));
                }
            }
            if !logged.agrees(&rows.filled(), &wanted) {
                assert!(!self.chunk.is_still(&absence), "not what left");
                return;
            }
            point();
            let brought = self.logged.bring(0, &logged, || {
                let nothing = SlotSet::NONE;
                let guard = Guard::pin();
                let brought = self.chunk.bring(&absence, rows, &wanted, &nothing, &guard);
                brought.is_some()
            });
            self.left_came_back
                .fetch_add(brought.into(), Ordering::Relaxed);
            return;
        }
        let wanted = wanted.both(absence.slots());
        point();
        let (_, page) = self.newest.lock().clone();
        point();
        let mut rows = UnsharedSlots::new(self.memory);
        let mut saved = SlotSet::NONE;
        for (slot, (csn, row)) in page {
            if wanted.contains(slot.into()) {
                rows.replace(slot.into(), csn, Some(&row));
            }
            saved.insert(slot.into());
        }
        if let Some(known) = self.chunk.saved_before()
            && known.both(&wanted) != saved.both(&wanted)
        {
            assert!(!self.chunk.is_still(&absence), "not what went");
            return;
        }
        point();
        // What comes too late is freed.
        let guard = Guard::pin();
        let _brought = self.chunk.bring(&absence, rows, &wanted, &saved, &guard);
    }

    /// Everything that was seen is what was committed below the snapshot.
    fn check(&self) {
        let history = self.history.lock();
        for (snapshot, slot, found) in &*self.seen.lock() {
            let commits = history.get(slot);
            let last = commits.and_then(|commits| commits.range(..*snapshot).next_back());
            let expected = last.and_then(|(_, row)| row.clone());
            assert_eq!(*found, expected, "slot {slot} at {snapshot}: {history:?}");
        }
    }
}

/// Starts somebody who comes to an end by himself: the others go on until all of them have.
fn start(world: &Arc<World>, body: impl Fn(&World) + Send + 'static) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    world.busy.fetch_add(1, Ordering::Relaxed);
    let body = move || {
        body(&world);
        world.busy.fetch_sub(1, Ordering::Relaxed);
    };
    thread::Builder::new()
        .name(QUICK.into())
        .spawn(body)
        .expect("spawned")
}

/// Starts somebody who does the same again and again while others are busy.
fn repeat(
    world: &Arc<World>,
    body: impl Fn(&World, u32) + Send + 'static,
) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || {
        let mut round = 0;
        while world.busy.load(Ordering::Relaxed) > 0 {
            body(&world, round);
            round += 1;
            thread::yield_now();
        }
    })
}

/// Some of the slots that are written, by chance; now and then all.
fn some_slots() -> SlotSet {
    let mut rng = thread_rng();
    if rng.gen_range(0..4) == 0 {
        return SlotSet::ALL;
    }
    let mut set = SlotSet::NONE;
    for slot in SLOTS {
        if rng.gen_range(0..2) == 0 {
            set.insert(slot);
        }
    }
    set
}

#[test]
fn rows_that_come_and_go_are_what_was_committed() {
    let account = Account::open(u64::MAX);
    let memory = account.memory();
    let gone = Arc::new([const { AtomicUsize::new(0) }; 5]);
    let mut config = Config::default();
    config.max_steps = shuttle::MaxSteps::None;
    // What was seen of a chunk lies on the stack.
    config.stack_size = 1 << 20;
    let rounds = std::env::var("LOGSTEAD_STRESS_ROUNDS").ok();
    let schedules = rounds.and_then(|n| n.parse().ok()).unwrap_or(200);
    let counted = Arc::clone(&gone);
    Runner::new(RandomScheduler::new(schedules), config).run(move || {
        set_hook(Some(meet));
        let world = Arc::new(World::new(memory));
        let mut all: Vec<_> = (1..3u64)
            .map(|n| {
                start(&world, move |world| {
                    for round in 0..6 {
                        let id = n * 100 + round;
                        let slot = SLOTS[(n + round) as usize % SLOTS.len()];
                        let (delete, commits) = (round % 2 == 1, round != 3);
                        while world.write(n as u16, id, slot, delete, commits).is_err() {
                            thread::yield_now();
                        }
                        // Others come between, now and then all of them.
                        (0..thread_rng().gen_range(0..60)).for_each(|_| thread::yield_now());
                    }
                })
            })
            .collect();
        for reader in 0..2 {
            all.push(start(&world, move |world| {
                (0..8).for_each(|_| world.read(reader));
            }));
        }
        all.push(repeat(&world, |world, _| world.collect()));
        all.push(repeat(&world, |world, n| {
            world.checkpoint(n % 3 == 2, n % 2 == 1);
        }));
        all.push(repeat(&world, |world, n| match n % 3 {
            0 => world.evict(&SlotSet::NONE),
            1 => world.evict_to_log(),
            _ => world.evict(&some_slots()),
        }));
        for _ in 0..2 {
            all.push(repeat(&world, |world, _| world.load(&some_slots())));
        }
        all.into_iter().for_each(|one| one.join().expect("ends"));
        world.load(&SlotSet::ALL);
        for _ in 0..2 {
            world.collect();
        }
        world.checkpoint(false, false);
        // When all is quiet it goes, and comes back as it was.
        let before = world.evictions.load(Ordering::Relaxed);
        world.evict(&SlotSet::NONE);
        assert_eq!(
            world.evictions.load(Ordering::Relaxed),
            before + 1,
            "nothing keeps it"
        );
        for slot in SLOTS {
            world.load(&SlotSet::one(slot));
        }
        world.read(0);
        world.check();
        counted[0].fetch_add(before, Ordering::Relaxed);
        let rows = world.gone.load(Ordering::Relaxed);
        counted[1].fetch_add(rows, Ordering::Relaxed);
        let left = [&world.left, &world.left_written, &world.left_came_back];
        for (counted, count) in counted[2..].iter().zip(left) {
            counted.fetch_add(count.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        set_hook(None);
    });
    for count in gone.iter() {
        let count = count.load(Ordering::Relaxed);
        assert!(count > 0, "nothing was evicted among others: {gone:?}");
    }
    Guard::wait_for_retired();
    assert_eq!(memory.used_bytes(), 0, "everything is freed");
}
