//! Version chains under shuttle: a scheduler takes the turn wherever threads can meet, in thousands of orders. The
//! memory account tells at the end whether everything was freed, and freed once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use shuttle::scheduler::RandomScheduler;
use shuttle::thread;
use shuttle::{Config, Runner};

use super::page_mark::{NO_LANE, PageMark};
use super::*;
use crate::memory::Account;
use crate::tree::interleave::set_hook;
use crate::txn_id::TxnId;

const ROW: VersionKind = VersionKind::Row {
    keys_changed: false,
};

/// Runs `test` in many orders, on a chunk of its own with `oldest` in slot 0; afterwards nothing is left of it.
fn explore(test: fn(Arc<Chunk>)) {
    let account = Account::open(u64::MAX);
    let memory = account.memory();
    let mut config = Config::default();
    config.max_steps = shuttle::MaxSteps::None;
    let rounds = std::env::var("LOGSTEAD_STRESS_ROUNDS").ok();
    let schedules = rounds.and_then(|n| n.parse().ok()).unwrap_or(2_000);
    Runner::new(RandomScheduler::new(schedules), config).run(move || {
        let mut slots = UnsharedSlots::new(memory);
        slots.replace(0, Csn(1), Some(b"oldest"));
        let chunk = Arc::new(Chunk::absent(memory));
        bring_all(&chunk, slots);
        set_hook(Some(thread::yield_now));
        test(chunk);
        set_hook(None);
    });
    Guard::wait_for_retired();
    assert_eq!(memory.used_bytes(), 0, "everything is freed");
}

/// Somebody has begun to free what was retired and is held up: what waits for that is not done by others meanwhile.
#[test]
fn what_is_deferred_waits_for_who_frees_what_was_retired_before() {
    let (begun, has_begun) = channel::<()>();
    let (go_on, may_go_on) = channel::<()>();
    let is_free = Arc::new(AtomicBool::new(false));
    {
        // One guard, so that nobody takes either before both are there.
        let guard = Guard::pin();
        let is_free = Arc::clone(&is_free);
        guard.0.defer(move || {
            let _told = begun.send(());
            // Also if the test is over.
            let _told = may_go_on.recv();
        });
        guard.flush();
        guard.defer(move || is_free.store(true, Ordering::SeqCst));
        guard.flush();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Whichever thread of this process it is that begins: this one must not.
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                Guard::pin().flush();
                std::thread::yield_now();
            }
        });
        has_begun.recv().expect("somebody begins");
        let others = scope.spawn(|| (0..1_000).for_each(|_| Guard::pin().flush()));
        let others = others.join();
        let too_early = is_free.load(Ordering::SeqCst);
        drop(go_on);
        over.store(true, Ordering::SeqCst);
        others.expect("ends");
        assert!(!too_early);
    });
    while !is_free.load(Ordering::SeqCst) {
        Guard::pin().flush();
        std::thread::yield_now();
    }
}

/// Fills a chunk that is absent.
fn bring_all(chunk: &Chunk, rows: UnsharedSlots) {
    let guard = Guard::pin();
    let absence = chunk.absence(&guard).expect("nobody brings anything");
    let brought = chunk.bring(&absence, rows, &SlotSet::ALL, &SlotSet::NONE, &guard);
    assert_eq!(brought, Some(SlotSet::ALL));
}

impl Chunk {
    /// [`Chunk::install`], where nobody evicts.
    #[expect(clippy::too_many_arguments, reason = "as the original")]
    fn put<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        writer: &VersionWriter,
        kind: VersionKind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        guard: &'g Guard,
    ) -> Option<VersionRef<'g>> {
        let installed = self.install(slot, expected, writer, kind, lock, command, row, guard);
        installed.expect("nobody evicts")
    }
}

/// The newest version in slot 0, where nobody evicts.
fn newest<'g>(chunk: &Chunk, guard: &'g Guard) -> Option<VersionRef<'g>> {
    chunk.head(0, guard).expect("nobody evicts")
}

fn writer(id: u64) -> VersionWriter {
    VersionWriter::new(TxnState::new(TxnId(id)))
}

/// Commits `writer`, which wrote in slot 0: as `precommit` does it.
fn commit(chunk: &Chunk, writer: &VersionWriter, csn: Csn) {
    let guard = Guard::pin();
    writer.state().begin_commit();
    point();
    writer.state().precommitted(csn);
    point();
    chunk.stamp(0, writer, csn, &guard);
}

/// The CSN and row of the version that a snapshot sees, as `Txn::see` does it.
fn see<'g>(chunk: &Chunk, snapshot: Csn, guard: &'g Guard) -> Option<(Csn, &'g [u8])> {
    let mut at = newest(chunk, guard);
    while let Some(version) = at {
        at = version.next(guard);
        let csn = match version.writer_status() {
            WriterStatus::Committed(csn) => Some(csn),
            WriterStatus::InProgress(state) => state.committed(),
        };
        if let Some(csn) = csn.filter(|csn| *csn < snapshot) {
            return Some((csn, version.row()));
        }
    }
    None
}

/// Sweeps what no snapshot in `live`, and none that is taken from now on, can see: as `garbage` does it.
fn sweep(chunk: &Chunk, live: &[u64]) {
    let guard = Guard::pin();
    let mut newer: Option<Csn> = None;
    chunk.prune_lock().sweep(0, &guard, |version, _| {
        let csn = match version.writer_status() {
            WriterStatus::Committed(csn) => Some(csn),
            WriterStatus::InProgress(state) => state.committed(),
        };
        let Some(csn) = csn else { return false };
        newer
            .replace(csn)
            .is_some_and(|newer| !live.iter().any(|s| csn.0 < *s && *s <= newer.0))
    });
}

/// Of two that install above one version one wins, and only its version is there.
#[test]
fn two_installers_one_wins() {
    explore(|chunk| {
        let threads: Vec<_> = [b"a", b"b"]
            .into_iter()
            .enumerate()
            .map(|(n, row)| {
                let chunk = chunk.clone();
                thread::spawn(move || {
                    let guard = Guard::pin();
                    let head = newest(&chunk, &guard);
                    let newest = head.is_some_and(|v| v.row() == b"oldest");
                    let me = writer(n as u64);
                    let won = newest
                        && chunk
                            .put(0, head, &me, ROW, RowLock::NoKeyUpdate, 1, row, &guard)
                            .is_some();
                    if won {
                        commit(&chunk, &me, Csn(2 + n as u64));
                    }
                    won
                })
            })
            .collect();
        let won: Vec<bool> = threads
            .into_iter()
            .map(|t| t.join().expect("ends"))
            .collect();
        assert_eq!(won.iter().filter(|w| **w).count(), 1);
        let guard = Guard::pin();
        let head = newest(&chunk, &guard).expect("a version");
        assert_eq!(head.row(), if won[0] { b"a" } else { b"b" });
        let below = head.next(&guard).expect("the one before");
        assert_eq!(
            (below.row(), below.next(&guard).is_none()),
            (&b"oldest"[..], true)
        );
    });
}

/// Two snapshots see what they see, whatever others install, commit and stamp, and whatever two collectors unlink
/// between and around them meanwhile.
#[test]
fn readers_find_their_versions_while_others_commit_stamp_and_prune() {
    explore(|chunk| {
        let install = |csn: u64, chunk: &Chunk| {
            let guard = Guard::pin();
            let me = writer(csn);
            let head = newest(chunk, &guard);
            chunk
                .put(
                    0,
                    head,
                    &me,
                    ROW,
                    RowLock::NoKeyUpdate,
                    1,
                    &[csn as u8],
                    &guard,
                )
                .expect("nobody else writes");
            drop(guard);
            commit(chunk, &me, Csn(csn));
        };
        install(2, &chunk);
        let write = {
            let chunk = chunk.clone();
            thread::spawn(move || (3..5).for_each(|csn| install(csn, &chunk)))
        };
        let collectors: Vec<_> = (0..2)
            .map(|_| {
                let chunk = chunk.clone();
                thread::spawn(move || (0..2).for_each(|_| sweep(&chunk, &[2, 3])))
            })
            .collect();
        for _ in 0..2 {
            let guard = Guard::pin();
            assert_eq!(see(&chunk, Csn(2), &guard), Some((Csn(1), &b"oldest"[..])));
            assert_eq!(see(&chunk, Csn(3), &guard), Some((Csn(2), &[2][..])));
        }
        write.join().expect("ends");
        collectors.into_iter().for_each(|c| c.join().expect("ends"));
        sweep(&chunk, &[]);
        let guard = Guard::pin();
        let head = newest(&chunk, &guard).expect("a version");
        assert_eq!((head.row(), head.next(&guard).is_none()), (&[4][..], true));
        assert!(matches!(
            head.writer_status(),
            WriterStatus::Committed(Csn(4))
        ));
    });
}

/// Undo takes away its own versions and nothing else, while a collector prunes the chain below and another writer waits
/// for its turn.
#[test]
fn undo_meets_a_collector_and_the_next_writer() {
    explore(|chunk| {
        let guard = Guard::pin();
        let first = writer(1);
        let head = newest(&chunk, &guard);
        let above = chunk.put(
            0,
            head,
            &first,
            ROW,
            RowLock::NoKeyUpdate,
            1,
            b"one",
            &guard,
        );
        chunk
            .put(
                0,
                above,
                &first,
                ROW,
                RowLock::NoKeyUpdate,
                2,
                b"two",
                &guard,
            )
            .expect("its own row lock");
        drop(guard);
        let next = {
            let chunk = chunk.clone();
            thread::spawn(move || {
                let me = writer(2);
                loop {
                    let guard = Guard::pin();
                    let head = newest(&chunk, &guard).expect("a version");
                    if matches!(head.writer_status(), WriterStatus::Committed(_))
                        && chunk
                            .put(
                                0,
                                Some(head),
                                &me,
                                ROW,
                                RowLock::NoKeyUpdate,
                                1,
                                b"next",
                                &guard,
                            )
                            .is_some()
                    {
                        break;
                    }
                    point();
                }
                commit(&chunk, &me, Csn(5));
            })
        };
        let collector = {
            let chunk = chunk.clone();
            thread::spawn(move || (0..3).for_each(|_| sweep(&chunk, &[])))
        };
        for row in [b"two", b"one"] {
            let guard = Guard::pin();
            let popped = chunk.prune_lock().pop(0, &first, &guard);
            assert_eq!(popped.map(VersionRef::row), Some(&row[..]));
        }
        first.state().aborted();
        let guard = Guard::pin();
        assert!(
            chunk.prune_lock().pop(0, &first, &guard).is_none(),
            "not another's"
        );
        drop(guard);
        next.join().expect("ends");
        collector.join().expect("ends");
        assert_eq!(first.named.get(), 0, "its state can be freed");
        let guard = Guard::pin();
        assert_eq!(see(&chunk, Csn(9), &guard), Some((Csn(5), &b"next"[..])));
    });
}

/// A deleted row is buried and its slot used again, while one that has read the tombstone wants to install above it:
/// either the row stays, or the installation fails. It never ends up above a row that it has not read.
#[test]
fn burying_and_reuse_meet_who_has_read_the_tombstone() {
    explore(|chunk| {
        let guard = Guard::pin();
        let deleter = writer(1);
        let head = newest(&chunk, &guard);
        chunk
            .put(
                0,
                head,
                &deleter,
                VersionKind::Tombstone,
                RowLock::Update,
                1,
                &[],
                &guard,
            )
            .expect("nobody else");
        drop(guard);
        commit(&chunk, &deleter, Csn(2));
        let late = {
            let chunk = chunk.clone();
            thread::spawn(move || {
                let guard = Guard::pin();
                let head = newest(&chunk, &guard)?;
                let read = head.kind();
                let me = writer(2);
                point();
                let installed = chunk
                    .put(
                        0,
                        Some(head),
                        &me,
                        ROW,
                        RowLock::NoKeyUpdate,
                        1,
                        b"late",
                        &guard,
                    )
                    .is_some();
                // What was read stays readable, buried or not.
                assert!(read == head.kind());
                if installed {
                    commit(&chunk, &me, Csn(9));
                }
                Some((read, installed))
            })
        };
        let guard = Guard::pin();
        let tombstone = newest(&chunk, &guard).filter(|v| v.kind() == VersionKind::Tombstone);
        let buried = tombstone.is_some_and(|t| chunk.prune_lock().take_all(0, t, &guard));
        if buried {
            let reuser = writer(3);
            let again = chunk.put(
                0,
                None,
                &reuser,
                ROW,
                RowLock::NoKeyUpdate,
                1,
                b"again",
                &guard,
            );
            if again.is_some() {
                commit(&chunk, &reuser, Csn(4));
            }
        }
        drop(guard);
        let late = late.join().expect("ends");
        let guard = Guard::pin();
        let mut rows = Vec::new();
        let mut at = newest(&chunk, &guard);
        while let Some(version) = at {
            rows.push(version.row());
            at = version.next(&guard);
        }
        let expected: &[&[u8]] = match late {
            // It came first: the row is not buried.
            Some((VersionKind::Tombstone, true)) => &[b"late", b"", b"oldest"],
            // It read the new row.
            Some((_, true)) => &[b"late", b"again"],
            Some((_, false)) | None => &[b"again"],
        };
        assert_eq!(rows, expected);
        assert_eq!(buried, rows.last() == Some(&&b"again"[..]));
    });
}

#[test]
fn what_an_unshared_chunk_replaces_is_gone_at_once() {
    let account = Account::open(u64::MAX);
    let memory = account.memory();
    let mut chunk = UnsharedSlots::new(memory);
    let empty = memory.used_bytes();
    assert_eq!(chunk.row(3), None);
    for (csn, row) in [
        (1, Some(&b"one"[..])),
        (2, Some(b"two")),
        (
            3,
            Some(b"of another length, so that it does not fit in place of the other"),
        ),
        (4, None),
        (5, None),
        (6, Some(b"")),
        (7, Some(b"last")),
    ] {
        chunk.replace(3, Csn(csn), row);
        assert_eq!(chunk.row(3), row);
        let expected = row.map_or(0, |row| version_bytes(row.len())) as u64;
        assert_eq!(memory.used_bytes() - empty, expected, "after {csn}");
    }
    assert_eq!(chunk.row(4), None);
    let slots = chunk;
    let chunk = Chunk::absent(memory);
    bring_all(&chunk, slots);
    let guard = Guard::pin();
    let head = chunk.head(3, &guard).expect("present").expect("a row");
    assert!(matches!(
        head.writer_status(),
        WriterStatus::Committed(Csn(7))
    ));
    assert_eq!(
        (head.row(), head.kind(), head.command()),
        (&b"last"[..], ROW, 0)
    );
    assert!(head.next(&guard).is_none());
}

/// A chunk is local to a lane as long as whoever wrote there and is not hardened is of that lane.
#[test]
fn a_chunk_of_two_lanes_is_local_to_neither_until_both_have_hardened() {
    let nobody = PageMark(NO_LANE);
    assert!(nobody.is_local(0, 0) && nobody.is_local(1, 0));
    let first = nobody.stamped(0, 5, 0);
    assert!(first.is_local(0, 4));
    assert!(!first.is_local(1, 4));
    assert!(first.is_local(1, 5), "hardened everywhere");
    // Behind in its lane, but the chunk's GSN does not go back.
    let both = first.stamped(1, 3, 4);
    assert_eq!(both.gsn(), 5);
    assert!(!both.is_local(0, 4) && !both.is_local(1, 4));
    // One of them again: the other is still not hardened.
    let again = both.stamped(1, 7, 4);
    assert!(!again.is_local(0, 4) && !again.is_local(1, 4));
    let later = again.stamped(1, 9, 7);
    assert!(later.is_local(1, 7), "everybody before has hardened");
    assert!(!later.is_local(0, 8));
}

/// A chunk of which the checkpoint at CSN 9 has rows in the slots 0 to 3, as `number` says, absent as a whole.
fn stored(number: u8, slots: &SlotSet) -> UnsharedSlots {
    let mut rows = UnsharedSlots::new(&crate::memory::UNLIMITED);
    for slot in slots.iter() {
        rows.replace(slot, Csn(1), Some(&[number, slot as u8]));
    }
    rows
}

fn set(slots: &[usize]) -> SlotSet {
    let one = |set: SlotSet, slot: &usize| set.union(&SlotSet::one(*slot));
    slots.iter().fold(SlotSet::NONE, one)
}

/// What is in a slot; `Err`: it is absent.
fn peek<'g>(chunk: &Chunk, slot: usize, guard: &'g Guard) -> Result<Option<&'g [u8]>, SlotsAbsent> {
    let head = chunk.peek(slot, guard)?;
    Ok(head.map(VersionRef::row))
}

const PUBLISHED: Csn = Csn(9);

#[test]
fn rows_come_and_go_alone() {
    let guard = Guard::pin();
    let chunk = Chunk::absent(&crate::memory::UNLIMITED);
    let saved = set(&[0, 1, 2, 3]);
    let absence = chunk.absence(&guard).expect("nobody brings anything");
    assert_eq!(*absence.slots(), SlotSet::ALL);
    // A row that was read, and is not wanted, is not put in.
    let rows = stored(1, &set(&[0, 1, 2]));
    let brought = chunk.bring(&absence, rows, &set(&[0, 1]), &saved, &guard);
    assert_eq!(brought, Some(set(&[0, 1])));
    assert_eq!(peek(&chunk, 0, &guard), Ok(Some(&[1, 0][..])));
    for slot in [2, 3] {
        assert_eq!(peek(&chunk, slot, &guard), Err(SlotsAbsent));
    }
    assert_eq!(peek(&chunk, 4, &guard), Ok(None), "there is no row");
    let absence = chunk.absence(&guard).expect("nobody brings anything");
    assert_eq!(*absence.slots(), set(&[2, 3]));
    assert_eq!(
        chunk.evict(PUBLISHED, &set(&[0, 1]), &guard),
        Err(RetainReason::InUse)
    );
    let gone = chunk
        .evict(PUBLISHED, &set(&[1]), &guard)
        .expect("the other");
    assert_eq!((gone.rows, gone.whole), (1, false));
    assert_eq!(peek(&chunk, 0, &guard), Err(SlotsAbsent));
    assert_eq!(peek(&chunk, 1, &guard), Ok(Some(&[1, 1][..])));
    let gone = chunk.evict(PUBLISHED, &SlotSet::NONE, &guard).expect("all");
    assert_eq!((gone.rows, gone.whole), (1, true));
    assert!(!chunk.is_present());
}

/// What was read for an absence that is over is not put in, however the slot looks by now (ABA).
#[test]
fn what_is_stale_is_not_brought() {
    let guard = Guard::pin();
    let chunk = Chunk::absent(&crate::memory::UNLIMITED);
    let saved = set(&[0, 1]);
    let early = chunk.absence(&guard).expect("nobody brings anything");
    let rows = stored(2, &saved);
    assert!(chunk.bring(&early, rows, &saved, &saved, &guard).is_some());
    let evicted = chunk.evict(PUBLISHED, &set(&[1]), &guard);
    assert_eq!(evicted.map(|gone| gone.rows), Ok(1));
    assert!(!chunk.is_still(&early));
    let late = chunk.bring(&early, stored(1, &saved), &saved, &saved, &guard);
    assert_eq!(late, None);
    assert_eq!(peek(&chunk, 0, &guard), Err(SlotsAbsent));
    // One that was noted before the last slots went does not count for them.
    let partly = chunk.absence(&guard).expect("nobody brings anything");
    assert_eq!(*partly.slots(), set(&[0]));
    let gone = chunk.evict(PUBLISHED, &SlotSet::NONE, &guard).expect("all");
    assert!(gone.whole);
    let brought = chunk.bring(&partly, stored(2, &saved), &saved, &saved, &guard);
    assert_eq!(brought, Some(set(&[0])));
    assert_eq!(peek(&chunk, 0, &guard), Ok(Some(&[2, 0][..])));
    assert_eq!(
        peek(&chunk, 1, &guard),
        Err(SlotsAbsent),
        "it may have changed since"
    );
}

/// A page may be older than the slots that were dropped after it was looked up: which slots are empty is known better
/// here.
#[test]
fn slots_that_are_made_anew_are_as_the_newest_checkpoint_has_them() {
    let guard = Guard::pin();
    let chunk = Chunk::absent(&crate::memory::UNLIMITED);
    let first = chunk.absence(&guard).expect("nobody brings anything");
    let before = set(&[0, 1]);
    let rows = stored(1, &before);
    assert!(
        chunk
            .bring(&first, rows, &before, &before, &guard)
            .is_some()
    );
    let evicted = chunk.evict(PUBLISHED, &set(&[1]), &guard);
    assert!(evicted.is_ok());
    let absence = chunk.absence(&guard).expect("nobody brings anything");
    // Row 1 is deleted, and a checkpoint says so, before what was read comes.
    let head = chunk.peek(1, &guard).expect("there").expect("a row");
    assert!(chunk.prune_lock().take_all(1, head, &guard));
    assert_eq!(
        chunk.evict(PUBLISHED, &SlotSet::NONE, &guard),
        Err(RetainReason::Unsaved),
        "the checkpoint has what is not there"
    );
    chunk.set_saved(&set(&[0]));
    assert!(chunk.evict(PUBLISHED, &SlotSet::NONE, &guard).is_ok());
    assert!(!chunk.is_present());
    let rows = stored(1, &before);
    let brought = chunk.bring(&absence, rows, &set(&[0]), &before, &guard);
    assert_eq!(brought, Some(set(&[0])));
    assert_eq!(peek(&chunk, 1, &guard), Ok(None));
}

/// A chunk with CHANGED keeps its slots, whatever is in them: the next checkpoint looks at them.
#[test]
fn changed_slots_wait_for_a_checkpoint() {
    let guard = Guard::pin();
    let chunk = Chunk::absent(&crate::memory::UNLIMITED);
    let saved = set(&[0, 1]);
    let first = chunk.absence(&guard).expect("nobody brings anything");
    let rows = stored(1, &saved);
    assert!(chunk.bring(&first, rows, &saved, &saved, &guard).is_some());
    chunk.set_changed();
    let gone = chunk
        .evict(PUBLISHED, &SlotSet::NONE, &guard)
        .expect("rows");
    assert_eq!((gone.rows, gone.whole, gone.unsaved), (2, false, true));
    assert_eq!(chunk.begin_writing(false), Some(true));
    assert_eq!(
        chunk.evict(PUBLISHED, &SlotSet::NONE, &guard),
        Err(RetainReason::Unsaved)
    );
    chunk.end_writing(false);
    let gone = chunk.evict(PUBLISHED, &SlotSet::NONE, &guard);
    assert!(gone.expect("all").whole);
}

/// Who looks for a row is a reason to keep that one; who looks in passing is none.
#[test]
fn rows_that_were_looked_for_are_told_once() {
    let guard = Guard::pin();
    let chunk = Chunk::new(&crate::memory::UNLIMITED);
    for slot in [3, 63, 3] {
        assert!(chunk.head(slot, &guard).is_ok());
    }
    assert!(chunk.peek(5, &guard).is_ok());
    assert_eq!(chunk.take_touched(), set(&[3, 63]));
    assert_eq!(chunk.take_touched(), SlotSet::NONE);
    assert_eq!(set(&[3, 63, 0]).iter().collect::<Vec<_>>(), [0, 3, 63]);
    assert_eq!(SlotSet::ALL.iter().count(), CHUNK_SLOTS);
}
