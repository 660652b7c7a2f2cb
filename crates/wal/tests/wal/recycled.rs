//! Segments that held something before: recovery ends where the log ends, whatever lies behind.
//!
//! A home may give a trimmed segment to its lane again as it is. These tests put blocks of earlier segments behind the
//! end of the log, in their old places, as such a segment has them.

use crate::rig;

use rig::{Machine, Server};

/// Blocks of the first segment and of the second.
const BLOCKS: u64 = 8 + 12;

fn upto(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

fn commit(server: &Server, csns: std::ops::RangeInclusive<u64>) {
    for csn in csns {
        assert!(server.commit(0, csn), "{csn}");
    }
}

/// Puts what `from` holds behind the first `blocks` blocks of `to`.
fn recycle(machine: &Machine, from: u64, to: u64, blocks: usize) {
    let mut stale = Vec::new();
    let segment = |number| Machine::segment(0, number);
    let read = |bytes: &mut Vec<u8>| stale.clone_from(bytes);
    machine.files.tamper(&segment(from), read).expect("there");
    let overwrite = |bytes: &mut Vec<u8>| {
        let end = bytes.len().min(stale.len());
        let behind = (blocks * 4096).min(end)..end;
        bytes[behind.clone()].copy_from_slice(&stale[behind]);
    };
    machine
        .files
        .tamper(&segment(to), overwrite)
        .expect("there");
}

/// The lane's segments by number.
fn segments(server: &Server) -> Vec<u64> {
    let infos = server
        .home
        .segments
        .list_segments(rig::lane(0))
        .expect("lists");
    infos.iter().map(|info| info.segment).collect()
}

#[test]
fn blocks_of_the_same_life_behind_the_end_are_no_tail_and_no_corruption() {
    for tail in 1..12 {
        for from in 0..2 {
            let machine = Machine::new(tail);
            let server = machine.start(1).expect("starts");
            commit(&server, 1..=BLOCKS + tail);
            drop(server);
            recycle(&machine, from, 2, usize::try_from(tail).expect("small"));
            let server = machine.start(1).expect("starts");
            assert_eq!(server.survivors, upto(BLOCKS + tail), "tail {tail}");
            commit(&server, BLOCKS + tail + 1..=BLOCKS + tail + 9);
            drop(server);
            let server = machine.start(1).expect("starts");
            assert_eq!(server.survivors, upto(BLOCKS + tail + 9), "tail {tail}");
        }
    }
}

#[test]
fn blocks_of_an_earlier_life_behind_the_end_are_no_tail_and_no_corruption() {
    for tail in 0..7 {
        let machine = Machine::new(tail);
        let server = machine.start(1).expect("starts");
        commit(&server, 1..=BLOCKS);
        drop(server);
        let server = machine.start(1).expect("starts");
        let first = *segments(&server).last().expect("its first");
        commit(&server, BLOCKS + 1..=BLOCKS + tail);
        drop(server);
        for from in 0..2 {
            recycle(&machine, from, first, usize::try_from(tail).expect("small"));
            let server = machine.fork(tail).start(1).expect("starts");
            assert_eq!(server.survivors, upto(BLOCKS + tail), "tail {tail}");
        }
    }
}

/// Many lives, each ending in a crash with a segment prepared and not used: the next life begins in it.
#[test]
fn lives_that_begin_in_recycled_segments_lose_nothing() {
    let machine = Machine::new(1);
    let mut last = 0;
    for life in 1..20 {
        let server = machine.start(1).expect("starts");
        assert_eq!(server.survivors, upto(last), "life {life}");
        commit(&server, last + 1..=last + life * 3);
        last += life * 3;
        drop(server);
        machine.files.reboot();
    }
}
