//! How often lanes allocate once they are warm: counted by the global allocator, on this thread alone.
#![allow(unsafe_code, reason = "a counting allocator")]

use logstead_env::SimClock;
use logstead_home::{LaneAppends, LogHome, MemoryHome};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::{
    EntryDependencies, FlushMode, FlushOutcome, Lane, LaneConfig, LaneStart, LogAllocationLimit,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn lanes() -> [Lane; 2] {
    // One segment for all that is written: a new one would be counted.
    let home = MemoryHome::new(16 << 20);
    let allocation_limit = Arc::new(LogAllocationLimit::new(1 << 20));
    [0, 1].map(|number| {
        home.open_lane(LaneId(number), 0).unwrap();
        let start = LaneStart {
            database: DatabaseId(1),
            epoch: Epoch(1),
            lane: LaneId(number),
            first_segment: 0,
        };
        let config = LaneConfig {
            buffer_size_bytes: 64 * 1024,
            blocks_in_flight_max: Some(4),
            allocation_limit: Some(Arc::clone(&allocation_limit)),
        };
        let clock = Arc::new(SimClock::new());
        Lane::new(LogHome::from(home.clone()), clock, start, config)
    })
}

fn push(lane: &Lane, csn: u64) {
    let room = lane.room(100).unwrap();
    let deps = EntryDependencies {
        floor: Csn(csn - 1),
        list: [Csn(csn - 1)].into_iter().collect(),
    };
    lane.push(room, Csn(csn), 0, &deps, &[7; 100]);
}

/// Allocations by `rounds` of `work`, after as many to warm up.
fn allocations(rounds: u64, mut work: impl FnMut(u64)) -> u64 {
    (1..=rounds).for_each(&mut work);
    let before = COUNT.get();
    (rounds + 1..=2 * rounds).for_each(&mut work);
    COUNT.get() - before
}

#[test]
fn pushes_flushes_and_thefts_allocate_nothing() {
    let [thief, victim] = lanes();
    let count = allocations(200, |round| {
        push(&victim, 3 * round);
        push(&victim, 3 * round + 1);
        push(&thief, 3 * round + 2);
        assert!(thief.steal(&victim, usize::MAX) > 0);
        assert_eq!(thief.flush(FlushMode::Inline), FlushOutcome::Durable);
        assert_eq!(victim.hardened(), victim.pushed());
    });
    assert_eq!(count, 0);
}

#[test]
fn a_flush_that_is_handed_off_allocates_its_completion() {
    let [lane, _] = lanes();
    let count = allocations(200, |round| {
        push(&lane, round + 1);
        assert_eq!(lane.flush(FlushMode::Handoff), FlushOutcome::Started);
    });
    assert_eq!(count, 200);
}

/// Pages that this thread has had to ask the system for.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel's counters of this thread"
)]
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The tenth field; the second one, a name in brackets, may have blanks.
    let behind_the_name = stat.rsplit(')').next().unwrap();
    behind_the_name.split(' ').nth(8).unwrap().parse().unwrap()
}

/// T12: the memory that an entry fills is there before its CSN is drawn, also in a buffer that was never used.
#[test]
fn t12_an_entry_meets_no_page_that_was_not_touched_before() {
    let [lane, _] = lanes();
    let records = vec![7; lane.inline_size_max()];
    let mut entries = 0;
    for csn in 1..=12 {
        let room = lane.room(records.len()).unwrap();
        page_faults();
        let mut entrance = lane.enter(room);
        let before = page_faults();
        entrance.push(Csn(csn), 0, &EntryDependencies::default(), &records);
        let faults = page_faults() - before;
        drop(entrance);
        assert_eq!(faults, 0, "entry {csn}");
        entries += 1;
        // Each block takes a buffer of its own at first.
        if csn % 3 == 0 {
            assert_eq!(lane.flush(FlushMode::Inline), FlushOutcome::Durable);
        }
    }
    assert_eq!(entries, 12);
}
