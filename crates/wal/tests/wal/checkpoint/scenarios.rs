//! What lies where around a checkpoint's starts.

use super::rig::{Machine, Server, lane};
use super::{commit, from_to};
use logstead_types::{Csn, Epoch};
use logstead_wal::block::MAGIC;
use logstead_wal::{EntryDependencies, inspect};

const BLOCK: u64 = 4096;

fn on(floor: u64, list: &[u64]) -> EntryDependencies {
    EntryDependencies {
        floor: Csn(floor),
        list: list.iter().map(|&csn| Csn(csn)).collect(),
    }
}

/// The start is the end of a segment: nothing more fits, or not the next block. That block lies at the start of the
/// next segment.
#[test]
fn a_start_whose_segment_was_just_rolled_over() {
    // The first segment has 32 KiB: eight blocks of one transaction, or seven, and then one of two blocks' size.
    for (blocks, rows) in [(8, 1), (7, 20)] {
        let machine = Machine::new(1);
        let server = machine.start(1).unwrap();
        commit(&server, 1..=blocks);
        let start = server.starts()[0];
        assert_eq!((start.at.segment, start.at.offset), (0, blocks * BLOCK));
        server.checkpoint(blocks + 1).unwrap();
        for csn in blocks + 1..=blocks + rows {
            assert!(server.push(0, csn));
        }
        assert!(server.flush(0));
        let last = blocks + rows + 1;
        commit(&server, last..=last);
        assert_eq!(server.starts()[0].at.segment, 1);
        drop(server);
        for _ in 0..2 {
            let server = machine.start(1).unwrap();
            assert_eq!(server.survivors, from_to(blocks + 1, last));
        }
        // And the other way round: what the checkpoint holds ends with a segment that is then removed.
        let server = machine.start(1).unwrap();
        commit(&server, last + 1..=last + 9);
        let truncated = server.checkpoint(last + 10).unwrap();
        assert!(truncated.segments > 1, "{truncated:?}");
        commit(&server, last + 10..=last + 11);
        drop(server);
        assert_eq!(
            machine.start(1).unwrap().survivors,
            from_to(last + 10, last + 11)
        );
    }
}

/// A segment that was trimmed becomes a later one of the same lane and epoch: blocks with right headers lie behind the
/// end.
#[test]
fn segments_of_the_same_epoch_are_recycled() {
    let mut stale = 0;
    for tail in 0..40 {
        let machine = Machine::new(tail);
        let server = machine.start(1).unwrap();
        let mut csn = 1;
        for _ in 0..3 {
            commit(&server, csn..=csn + 40);
            csn += 41;
            server.checkpoint(csn).unwrap();
        }
        if tail > 0 {
            commit(&server, csn..=csn + tail - 1);
        }
        let start = server.starts()[0].at;
        drop(server);
        let count = |bytes: &mut Vec<u8>| {
            let behind = bytes.get(start.offset as usize..).unwrap_or(&[]);
            let blocks = behind.chunks(BLOCK as usize);
            stale += blocks.filter(|block| block.starts_with(&MAGIC)).count();
        };
        let path = Machine::segment(0, start.segment);
        machine.files.tamper(&path, count).unwrap();
        for life in 0..2 {
            let server = machine.start(1).unwrap();
            let expected: Vec<u64> = (csn..csn + tail).collect();
            assert_eq!(server.survivors, expected, "tail {tail}, life {life}");
        }
    }
    assert!(stale > 100, "{stale}");
}

#[test]
fn marks_of_later_epochs_stay_and_those_of_earlier_ones_go() {
    let machine = Machine::new(1);
    let marks = |server: &Server| -> Vec<u32> {
        let manifest = server.log.manifest_writer.manifest();
        manifest.marks.iter().map(|mark| mark.epoch.0).collect()
    };
    let mut csn = 1;
    for _ in 0..3 {
        let server = machine.start(2).unwrap();
        commit(&server, csn..=csn + 4);
        csn += 5;
    }
    let server = machine.start(2).unwrap();
    assert_eq!(marks(&server), [1, 2, 3]);
    commit(&server, csn..=csn + 4);
    server.checkpoint(csn + 5).unwrap();
    assert!(marks(&server).is_empty());
    commit(&server, csn + 5..=csn + 6);
    let first = csn + 5;
    csn += 7;
    drop(server);
    // Epochs without a checkpoint; one of them writes nothing.
    for write in [true, false, true] {
        let server = machine.start(2).unwrap();
        assert_eq!(server.survivors, from_to(first, csn - 1));
        if write {
            commit(&server, csn..=csn + 4);
            csn += 5;
        }
    }
    let server = machine.start(2).unwrap();
    assert_eq!(server.survivors, from_to(first, csn - 1));
    assert_eq!(marks(&server), [4, 5, 7]);
    let manifest = server.log.manifest_writer.manifest();
    assert_eq!(manifest.marks[0].base, Csn(first));
    assert_eq!(manifest.checkpoint.unwrap().epoch, Epoch(4));
    drop(server);
    let verified = inspect::verify("/db", &machine.env).unwrap();
    assert_eq!(
        (verified.records, verified.next_csn),
        (csn - first, Csn(csn))
    );
}

/// The rule of who takes a checkpoint, with log stealing: what is pushed after the starts were asked for lies behind
/// them, in whichever lane it leaves.
#[test]
fn stolen_entries_lie_behind_the_thiefs_start() {
    for steal in [false, true] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        commit(&server, 1..=10);
        // Pushed before, sealed after; and pushed after.
        assert!(server.push(1, 11));
        let starts = server.starts();
        assert!(server.push(1, 12));
        if steal {
            assert!(server.lane(0).steal(server.lane(1), usize::MAX) > 0);
            assert!(server.flush(0));
        } else {
            assert!(server.flush(1));
        }
        server.publish(server.checkpoint_at(12, starts)).unwrap();
        server.log.manifest_writer.truncate(None).unwrap();
        commit(&server, 13..=14);
        drop(server);
        for _ in 0..2 {
            let server = machine.start(2).unwrap();
            assert_eq!(server.survivors, [12, 13, 14]);
            assert_eq!(server.log.report.entries_in_checkpoint, 1, "that is 11");
        }
    }
}

#[test]
fn what_hangs_on_what_the_checkpoint_holds_survives_above_a_gap() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=9);
    server.checkpoint(10).unwrap();
    // 10 is lost with lane 1.
    assert!(server.push(1, 10));
    for (csn, deps) in [
        (11, on(0, &[5])),
        (12, on(9, &[])),
        (13, on(10, &[])),
        (14, on(0, &[9, 12])),
        (15, on(0, &[10])),
    ] {
        assert!(server.push_with(0, csn, &deps) && server.flush(0));
    }
    drop(server);
    machine.files.reboot();
    for _ in 0..2 {
        let server = machine.start(2).unwrap();
        assert_eq!(server.survivors, [11, 12, 14]);
        assert_eq!(server.log.report.entries_dropped, 2);
        assert_eq!(server.log.next_csn, Csn(16));
    }
}

fn side_ids(server: &Server, number: u16) -> Vec<u64> {
    let ids = server.home.sides.list_side_segments(lane(number)).unwrap();
    ids.iter().map(|id| id & 0xffff_ffff).collect()
}

/// T8: a side segment goes with the first checkpoint that holds its entry, whichever lane wrote that, and however much
/// of its segment is still needed. The entry stays, and names nothing.
#[test]
fn t8_side_segments_live_until_a_checkpoint_holds_their_entries() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    let side = |number, csn: u64| {
        assert!(server.push_side(number, csn, &EntryDependencies::floor(Csn(csn - 1))))
    };
    // Side segment 0 of lane 0, and one of lane 1 whose entry lane 0 writes.
    side(0, 1);
    side(1, 2);
    assert!(server.lane(0).steal(server.lane(1), usize::MAX) > 0 && server.flush(0));
    // One whose transaction has not drawn its CSN.
    let open = server.lane(0).begin_side_segment().unwrap();
    open.finish(Box::new(|stored| assert!(stored.is_ok())));
    let truncated = server.checkpoint(3).unwrap();
    assert_eq!(
        (truncated.segments, truncated.sides),
        (0, 2),
        "their segment is written to"
    );
    assert_eq!(side_ids(&server, 0), [1], "its entry is to come");
    assert_eq!(side_ids(&server, 1).len(), 0);
    // Behind a start and below the CSN.
    let starts = server.starts();
    side(1, 3);
    assert!(server.flush(1));
    for csn in 4..=40 {
        assert!(server.commit(0, csn));
    }
    server.publish(server.checkpoint_at(41, starts)).unwrap();
    assert_eq!(server.log.manifest_writer.truncate(None).unwrap().sides, 1);
    assert_eq!(side_ids(&server, 1).len(), 0, "the checkpoint holds it");
    drop(server);
    // The entries behind the starts are read, and nothing that they name. Nobody has an entry for the open one.
    let server = machine.start(2).unwrap();
    assert!(server.survivors.is_empty());
    assert_eq!(server.log.report.entries_in_checkpoint, 38);
    assert_eq!(
        (side_ids(&server, 0).len(), side_ids(&server, 1).len()),
        (0, 0)
    );
    assert_eq!(server.log.next_csn, Csn(41));
}

/// A side segment is known by its block: it stays while any entry of that may be needed.
#[test]
fn a_side_segment_whose_block_reaches_above_a_checkpoint_waits_for_the_next_one() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    let starts = server.starts();
    assert!(server.push_side(0, 1, &EntryDependencies::floor(Csn(0))));
    assert!(server.push(0, 2) && server.flush(0));
    server.publish(server.checkpoint_at(2, starts)).unwrap();
    assert_eq!(server.log.manifest_writer.truncate(None).unwrap().sides, 0);
    assert_eq!(side_ids(&server, 0), [0]);
    drop(server);
    // Who starts knows the entry itself.
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, [2]);
    assert_eq!(side_ids(&server, 0).len(), 0);
}

/// What a checkpoint holds is not missed, whether its side segment is still there or not.
#[test]
fn a_side_segment_named_behind_a_start_is_not_needed_by_restarts() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=3);
    let starts = server.starts();
    assert!(server.push_side(1, 4, &EntryDependencies::floor(Csn(3))) && server.flush(1));
    // The server stops before it removes anything.
    server.publish(server.checkpoint_at(5, starts)).unwrap();
    assert_eq!(side_ids(&server, 1), [0]);
    drop(server);
    for _ in 0..2 {
        let server = machine.start(1).unwrap();
        assert!(server.survivors.is_empty());
        assert_eq!(server.log.report.entries_in_checkpoint, 1);
        assert_eq!(side_ids(&server, 1).len(), 0);
        assert_eq!(server.log.next_csn, Csn(5));
    }
}

/// Whatever the sizes of transactions: after each checkpoint nothing is left beside the lanes but what it does not
/// hold, though no segment ever fills.
#[test]
fn side_segments_are_bounded_by_the_distance_between_checkpoints() {
    const DISTANCE: u64 = 10;
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    let (mut most, mut removed) = (0, 0);
    for csn in 1..=200 {
        assert!(
            server.push_side(0, csn, &EntryDependencies::floor(Csn(csn - 1))) && server.flush(0)
        );
        most = most.max(side_ids(&server, 0).len() as u64);
        if csn % DISTANCE == 0 {
            removed += server.checkpoint(csn + 1).unwrap().sides;
        }
    }
    assert_eq!((most, removed), (DISTANCE, 200));
}

#[test]
fn lanes_that_no_longer_exist_are_removed_whole() {
    let machine = Machine::new(1);
    let server = machine.start(4).unwrap();
    for csn in 1..=40 {
        let number = (csn % 4) as u16;
        let deps = EntryDependencies::floor(Csn(csn - 1));
        assert!(server.push_side(number, csn, &deps) && server.flush(number));
    }
    drop(server);
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, from_to(1, 40));
    commit(&server, 41..=42);
    let truncated = server.checkpoint(43).unwrap();
    assert_eq!(truncated.sides, 40);
    assert_eq!(server.home.segments.list_lanes().unwrap(), [lane(0)]);
    for number in 0..4 {
        assert!(side_ids(&server, number).is_empty());
    }
    drop(server);
    // They come back, with numbers that may have been used before.
    for csn in [43, 44] {
        let server = machine.start(4).unwrap();
        assert_eq!(server.survivors, from_to(43, csn - 1));
        assert!(server.commit((csn % 4) as u16, csn));
    }
}

#[test]
fn t7_the_tail_behind_a_start_is_made_durable_before_it_is_built_on() {
    let machine = Machine::new(1);
    machine.files.set_loss(logstead_env::CrashLoss::All);
    let server = machine.start(1).unwrap();
    commit(&server, 1..=5);
    server.checkpoint(6).unwrap();
    commit(&server, 6..=6);
    machine.files.fail_syncs();
    assert!(!server.commit(0, 7));
    drop(server);
    machine.files.clear_faults();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, [6, 7]);
    commit(&server, 8..=8);
    drop(server);
    machine.files.reboot();
    assert_eq!(machine.start(1).unwrap().survivors, [6, 7, 8]);
}

/// A first checkpoint of a log that has only lanes: nothing was ever written, or not in this epoch.
#[test]
fn a_checkpoint_of_an_epoch_that_has_written_nothing() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    server.checkpoint(1).unwrap();
    drop(server);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=7);
    drop(server);
    let server = machine.start(3).unwrap();
    assert_eq!(server.survivors, from_to(1, 7));
    let truncated = server.checkpoint(8).unwrap();
    assert_eq!(truncated.segments, 2, "all of the epoch before");
    drop(server);
    let server = machine.start(3).unwrap();
    assert!(server.survivors.is_empty());
    commit(&server, 8..=9);
    drop(server);
    assert_eq!(machine.start(1).unwrap().survivors, [8, 9]);
}

#[test]
fn golden_dump_of_a_truncated_log() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1..=40);
    let starts = server.starts();
    commit(&server, 41..=41);
    server.publish(server.checkpoint_at(42, starts)).unwrap();
    server.log.manifest_writer.truncate(None).unwrap();
    commit(&server, 42..=42);
    drop(server);
    let mut out = Vec::new();
    inspect::dump("/db", &machine.env, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    // Rows are in the other golden dump.
    let is_row = |line: &&str| !line.starts_with("    insert");
    let text: Vec<&str> = text.lines().filter(is_row).collect();
    let text = text.join("\n") + "\n";
    assert_eq!(
        text,
        include_str!("../golden/dump-truncated.txt"),
        "\n{text}"
    );
}
