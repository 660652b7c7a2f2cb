//! What comes back after a crash, and what must not. Each test names the scenario it stands for.

use crate::rig;

use logstead_env::{Buffer, CrashLoss, Fault};
use logstead_home::Position;
use logstead_types::{BlockNo, Csn, LaneId, Rid, TableId};
use logstead_wal::block::{HEADER_LEN, Header};
use logstead_wal::recovery::{self, RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, RecordReader, RowRecord, inspect};
use rig::forge::{Arrives, Forge, Tx};
use rig::{Machine, Server, lane, options};

fn upto(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

#[test]
fn what_was_flushed_comes_back_in_order_whatever_the_lanes() {
    let machine = Machine::new(1);
    let mut next = 1;
    for lanes in [3u16, 1, 4, 2] {
        let server = machine.start(lanes).unwrap();
        assert_eq!(server.survivors, upto(next - 1));
        assert_eq!(server.log.next_csn, Csn(next));
        for _ in 0..200 {
            assert!(server.commit((next * 7 % u64::from(lanes)) as u16, next));
            next += 1;
        }
        drop(server);
        machine.files.reboot();
    }
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, upto(next - 1));
    assert_eq!(server.log.report.entries_dropped, 0);
    drop(server);
    let verified = inspect::verify("/db", &machine.env).unwrap();
    assert_eq!((verified.records, verified.next_csn), (next - 1, Csn(next)));
}

#[test]
fn restarts_without_writes_leave_no_marks_and_no_segments_behind() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    assert!(server.commit(0, 1));
    drop(server);
    for _ in 0..20 {
        drop(machine.start(2).unwrap());
    }
    let server = machine.start(2).unwrap();
    assert_eq!(server.survivors, [1]);
    assert_eq!(
        server.home.segments.list_segments(lane(0)).unwrap().len(),
        2
    );
    assert_eq!(
        server.home.segments.list_segments(lane(1)).unwrap().len(),
        1
    );
    let manifest =
        String::from_utf8(server.home.names.get("manifest").unwrap().unwrap().0).unwrap();
    assert_eq!(manifest.matches("mark ").count(), 1, "{manifest}");
}

/// T2 and the lessons: acknowledged means durable, for every crash point of a workload; and the survivors are the same
/// for every crash point of the recovery after it.
#[test]
fn crash_at_every_io_of_work_and_of_recovery() {
    fn work(machine: &Machine) -> u64 {
        let Ok(server) = machine.start(2) else {
            return 0;
        };
        let first = server.log.next_csn.get();
        let mut acknowledged = first - 1;
        for csn in first..first + 60 {
            // Lane 0 is flushed after each entry, lane 1 after three: their ends differ at a crash.
            if !server.push((csn % 2) as u16, csn)
                || !server.flush(0)
                || (csn % 6 == 0 && !server.flush(1))
            {
                return acknowledged;
            }
            acknowledged = server.horizon(csn + 1) - 1;
        }
        acknowledged
    }
    let whole = Machine::new(0);
    work(&whole);
    let work_ios = whole.files.operations();
    assert!(work_ios > 60, "{work_ios}");
    let mut crashes = 0;
    for crash_at in 0..work_ios {
        let machine = Machine::new(crash_at);
        machine.files.fail_at(crash_at, Fault::Crash);
        let acknowledged = work(&machine);
        assert!(machine.files.is_crashed());
        machine.files.reboot();
        let recovering = machine.fork(1);
        let expected = recovering.start(2).unwrap().survivors;
        assert_eq!(
            expected,
            upto(expected.len() as u64),
            "crash at {crash_at}: no holes"
        );
        assert!(
            expected.len() as u64 >= acknowledged,
            "crash at {crash_at}: acknowledged {acknowledged} lost"
        );
        let recovery_ios = recovering.files.operations();
        // Every third crash point of the work is enough to cross with every one of recovery.
        for recovery_crash_at in (0..recovery_ios).filter(|_| crash_at % 3 == 0) {
            let again = machine.fork(recovery_crash_at);
            again.files.fail_at(recovery_crash_at, Fault::Crash);
            assert!(again.start(2).is_err());
            again.files.reboot();
            let survivors = again.start(2).unwrap().survivors;
            assert_eq!(
                survivors, expected,
                "crash at {crash_at}, then in recovery at {recovery_crash_at}"
            );
            crashes += 1;
        }
        // Life goes on after it: CSNs that were annulled are not drawn again, and a second crash gives the same and
        // more.
        let first = recovering.start(2).unwrap().log.next_csn.get();
        let last = work(&recovering);
        recovering.files.reboot();
        let survivors = recovering.start(1).unwrap().survivors;
        let all: Vec<u64> = expected.into_iter().chain(first..=last).collect();
        assert_eq!(survivors, all, "crash at {crash_at}: work after recovery");
    }
    assert!(crashes > 300, "{crashes}");
}

/// A server with one lane and five blocks, and the places of the blocks.
fn five_blocks() -> (Machine, Vec<Position>) {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    for csn in 1..=5 {
        assert!(server.commit(0, csn));
    }
    let places = (0..5)
        .map(|block| Position {
            segment: 0,
            offset: block * 4096,
        })
        .collect();
    (machine, places)
}

fn flip(machine: &Machine, at: Position, byte: u64) {
    let change = |bytes: &mut Vec<u8>| bytes[(at.offset + byte) as usize] ^= 0x10;
    machine
        .files
        .tamper(&Machine::segment(0, at.segment), change)
        .unwrap();
}

#[test]
fn a_torn_last_block_is_the_end() {
    for byte in [0, 20, 40, 79, 80, 87, 88, 200] {
        let (machine, places) = five_blocks();
        flip(&machine, places[4], byte);
        let server = machine.start(1).unwrap();
        assert_eq!(server.survivors, upto(4), "byte {byte}");
        assert_eq!(server.log.next_csn, Csn(5));
    }
}

#[test]
fn a_flipped_bit_in_the_middle_is_corruption() {
    for byte in [0, 20, 40, 79, 80, 87, 88, 200] {
        let (machine, places) = five_blocks();
        flip(&machine, places[2], byte);
        let Err(RecoveryError::Corrupt(found)) = machine.start(1).map(|_| ()) else {
            panic!("byte {byte}")
        };
        assert_eq!(
            (found.lane, found.block, found.at),
            (LaneId(0), BlockNo(2), places[2])
        );
        let text = RecoveryError::Corrupt(found).to_string();
        assert!(
            text.contains("lane 0, block 2, byte offset 8192 of segment 0"),
            "{text}"
        );
        assert!(text.contains("--accept-data-loss"), "{text}");
        assert!(inspect::verify("/db", &machine.env).is_err());
    }
}

#[test]
fn accepted_data_loss_drops_everything_from_the_hole_on_for_good() {
    let (machine, places) = five_blocks();
    // A later epoch builds on what will be lost.
    let server = machine.start(1).unwrap();
    assert!(server.commit(0, 6));
    drop(server);
    drop(machine.start(1).unwrap());
    flip(&machine, places[2], 100);
    assert!(matches!(machine.start(1), Err(RecoveryError::Corrupt(_))));
    let server = machine
        .start_with(RecoveryOptions {
            accept_data_loss: true,
            ..options()
        })
        .unwrap();
    assert_eq!(server.survivors, upto(2));
    assert!(server.log.report.loss.is_some());
    let next = server.log.next_csn.get();
    assert_eq!(next, 7, "no CSN is drawn twice");
    assert!(server.commit(0, next));
    drop(server);
    for _ in 0..2 {
        let server = machine.start(1).unwrap();
        assert_eq!(
            server.survivors,
            [1, 2, 7],
            "without the option, and the damage is not read again"
        );
        assert!(
            server
                .home
                .segments
                .list_segments(lane(0))
                .unwrap()
                .iter()
                .any(|info| info.segment == 0),
            "evidence is kept"
        );
    }
}

#[test]
fn a_lost_block_before_a_later_one_in_flight_is_the_end_not_corruption() {
    // T2: n and n + 1 were in flight together; only n + 1 arrived. Its header does not claim that n is durable.
    let (machine, places) = five_blocks();
    machine
        .files
        .tamper(&Machine::segment(0, 0), |bytes| {
            let at = places[4].offset as usize;
            let (mut header, _) = Header::decode(&bytes[at..]).unwrap();
            header.durable_through = 3;
            bytes[at..at + HEADER_LEN].copy_from_slice(&header.encode().0);
            let lost = places[3].offset as usize;
            bytes[lost..lost + 4096].fill(0);
        })
        .unwrap();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, upto(3));
    // The new epoch writes, and what lay behind the end never comes back.
    assert!(server.commit(0, server.log.next_csn.get()));
    drop(server);
    assert_eq!(machine.start(1).unwrap().survivors, upto(4));
}

/// Blocks 3, 4, ... were in flight together and 3 is not there. It is the end unless some later block, however far
/// behind, was built when 3 was durable.
#[test]
fn a_hole_is_corruption_if_any_later_block_covers_it() {
    // `None`: all blocks behind the hole say that only the first three are durable.
    for covered_by in [None, Some(4), Some(5), Some(40)] {
        let machine = Machine::new(1);
        let server = machine.start(1).unwrap();
        let mut forge = Forge::new(server.home.clone(), &server.log);
        for block in 0..=40u64 {
            let durable_through = match covered_by {
                _ if block <= 3 => block,
                Some(first) if block >= first => 4,
                _ => 3,
            };
            let tx = Tx {
                csn: block + 1,
                deps: EntryDependencies::default(),
                side: false,
            };
            let arrives = if block == 3 {
                Arrives::Absent
            } else {
                Arrives::Whole
            };
            forge.block(0, durable_through, &[tx], arrives);
        }
        assert!(
            server.home.segments.list_segments(lane(0)).unwrap().len() > 2,
            "over several segments"
        );
        drop((forge, server));
        match (machine.start(1), covered_by) {
            (Ok(server), None) => {
                assert_eq!(server.survivors, upto(3));
                let next = server.log.next_csn.get();
                assert!(server.commit(0, next));
                drop(server);
                assert_eq!(machine.start(1).unwrap().survivors, [1, 2, 3, next]);
            }
            (Err(RecoveryError::Corrupt(found)), Some(by)) => {
                assert_eq!((found.block, found.at.offset), (BlockNo(3), 3 * 4096));
                assert!(
                    found.proof.starts_with(&format!("block {by} at")),
                    "{found}"
                );
            }
            (Ok(_), _) => panic!("covered by {covered_by:?} and not reported"),
            (Err(error), _) => panic!("{covered_by:?}: {error}"),
        }
    }
}

/// What arrives late, where a recovery has found a lane's end, does not continue the lane: the mark counts its blocks.
#[test]
fn a_block_that_arrives_after_the_mark_was_written_is_not_read() {
    let (machine, places) = five_blocks();
    let mut late = Vec::new();
    let segment = Machine::segment(0, 0);
    let lose = |bytes: &mut Vec<u8>| {
        late = bytes.clone();
        bytes[places[3].offset as usize..].fill(0);
    };
    machine.files.tamper(&segment, lose).unwrap();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, upto(3));
    assert!(server.commit(0, 4));
    drop(server);
    machine
        .files
        .tamper(&segment, |bytes| *bytes = late)
        .unwrap();
    for _ in 0..2 {
        let server = machine.start(1).unwrap();
        assert_eq!(server.survivors, upto(4));
        assert_eq!(server.log.report.entries, 4);
    }
}

#[test]
fn stale_bytes_behind_the_end_are_no_tail() {
    // Bytes of an earlier life, or of a block with the right number but another history, lie where the next would be.
    let (machine, places) = five_blocks();
    machine
        .files
        .tamper(&Machine::segment(0, 0), |bytes| {
            let (from, to) = (places[3].offset as usize, places[4].offset as usize + 4096);
            let (mut header, _) = Header::decode(&bytes[from..]).unwrap();
            bytes.copy_within(from..from + 4096, to);
            header.block = BlockNo(5);
            header.durable_through = 0;
            bytes[to..to + HEADER_LEN].copy_from_slice(&header.encode().0);
        })
        .unwrap();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, upto(5));
    assert_eq!(server.log.report.entries, 5);
}

#[test]
fn an_annulled_entry_never_comes_back() {
    // CSN 2 is lost with lane 1; 3 was durable in lane 0 but never acknowledged. Later epochs draw 4 and on.
    let machine = Machine::new(1);
    machine.files.set_loss(CrashLoss::All);
    let server = machine.start(2).unwrap();
    assert!(server.commit(0, 1) && server.push(1, 2) && server.commit(0, 3));
    assert_eq!(server.horizon(4), 2);
    drop(server);
    machine.files.reboot();
    let server = machine.start(2).unwrap();
    assert_eq!(server.survivors, [1]);
    assert_eq!(server.log.report.entries_dropped, 1);
    assert_eq!(server.log.next_csn, Csn(4));
    assert!(server.commit(1, 4) && server.commit(0, 5));
    drop(server);
    for lanes in [1, 2] {
        assert_eq!(machine.start(lanes).unwrap().survivors, [1, 4, 5]);
    }
}

#[test]
fn precise_dependencies_survive_above_the_gap() {
    // 2 is lost. 3 names only 1: it survives. 4 names 2, 5 names 4: neither does. 6 names 3.
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    let on = |list: &[u64]| EntryDependencies {
        floor: Csn(0),
        list: list.iter().map(|&csn| Csn(csn)).collect(),
    };
    assert!(server.commit(0, 1) && server.push(1, 2));
    for (csn, dep) in [(3, 1), (4, 2), (5, 4), (6, 3)] {
        assert!(server.push_with(0, csn, &on(&[dep])) && server.flush(0));
    }
    drop(server);
    machine.files.reboot();
    for _ in 0..2 {
        assert_eq!(machine.start(2).unwrap().survivors, [1, 3, 6]);
    }
}

#[test]
fn t7_a_tail_read_from_the_cache_is_made_durable_before_it_is_built_on() {
    // The disk says that the write failed, and the page cache shows it all the same. The process restarts, not the
    // machine.
    let machine = Machine::new(1);
    machine.files.set_loss(CrashLoss::All);
    let server = machine.start(1).unwrap();
    assert!(server.commit(0, 1));
    machine.files.fail_syncs();
    assert!(!server.commit(0, 2));
    assert!(server.lane(0).failure().is_some());
    drop(server);
    machine.files.clear_faults();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, [1, 2]);
    assert!(server.commit(0, 3));
    drop(server);
    machine.files.reboot();
    assert_eq!(machine.start(1).unwrap().survivors, [1, 2, 3]);
}

fn commit_side(server: &Server, csn: u64) {
    push_side(server, csn, &EntryDependencies::floor(Csn(csn - 1)));
    assert!(server.flush(0));
}

fn push_side(server: &Server, csn: u64, deps: &EntryDependencies) {
    let (done, finished) = std::sync::mpsc::channel();
    let mut side = server.lane(0).begin_side_segment().unwrap();
    // In pieces: the checksum is of them all.
    for piece in rig::row_of(Csn(csn)).chunks(3) {
        side.append(piece.to_vec());
    }
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    let side = finished.recv().unwrap().unwrap();
    let room = server.lane(0).room(0).unwrap();
    server.lane(0).push_side(room, Csn(csn), 0, deps, &side);
}

#[test]
fn side_segments_come_back_and_orphans_go() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    assert!(server.commit(0, 1));
    commit_side(&server, 2);
    assert!(server.commit(0, 3));
    // T8: durable, and its transaction never drew a CSN.
    let mut orphan = server.lane(0).begin_side_segment().unwrap();
    orphan.append(vec![1; 100]);
    orphan.finish(Box::new(|result| assert!(result.is_ok())));
    assert_eq!(
        server.home.sides.list_side_segments(lane(0)).unwrap().len(),
        2
    );
    drop(server);
    machine.files.reboot();
    let server = machine.start(1).unwrap();
    assert_eq!(server.survivors, upto(3));
    assert_eq!(
        server.home.sides.list_side_segments(lane(0)).unwrap(),
        [1 << 32]
    );
    drop(server);
    let path = std::path::Path::new("/db/log/lane-0000/side-0000000100000000.rec");
    machine.files.tamper(path, |bytes| bytes[50] ^= 1).unwrap();
    let text = machine.start(1).map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("wrong checksum of a side segment"), "{text}");
    let server = machine
        .start_with(RecoveryOptions {
            accept_data_loss: true,
            ..options()
        })
        .unwrap();
    assert_eq!(server.survivors, [1]);
    drop(server);
    assert_eq!(machine.start(1).unwrap().survivors, [1]);
}

/// An entry does not list what was Committed when it drew its CSN. So once something acknowledged is lost, the lists of
/// what came later prove nothing, and all of it goes, for good.
#[test]
fn accepted_data_loss_drops_later_entries_whatever_their_lists_say() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    let nothing = EntryDependencies::default();
    assert!(server.commit(0, 1) && server.commit(1, 2));
    // 3 changes what 2 wrote, which is Committed by now; 4 shows that the block of 2 was durable.
    assert!(server.push_with(0, 3, &nothing) && server.flush(0));
    assert!(server.push_with(1, 4, &nothing) && server.flush(1));
    drop(server);
    let change = |bytes: &mut Vec<u8>| bytes[100] ^= 1;
    machine
        .files
        .tamper(&Machine::segment(1, 0), change)
        .unwrap();
    assert!(matches!(machine.start(2), Err(RecoveryError::Corrupt(_))));
    let accept = RecoveryOptions {
        accept_data_loss: true,
        lanes: 2,
        ..options()
    };
    let server = machine.start_with(accept).unwrap();
    assert_eq!(server.survivors, [1]);
    assert_eq!(server.log.report.entries_dropped, 1, "3; 4 was not read");
    let next = server.log.next_csn.get();
    assert_eq!(next, 4);
    assert!(server.commit(1, next));
    drop(server);
    for lanes in [1, 2, 1] {
        let server = machine.start(lanes).unwrap();
        assert_eq!(
            server.survivors,
            [1, 4],
            "the lost one and its followers stay away"
        );
    }
    let (manifest, _) = machine
        .home()
        .unwrap()
        .names
        .get("manifest")
        .unwrap()
        .unwrap();
    let manifest = String::from_utf8(manifest).unwrap();
    assert!(manifest.contains("\nannulled from 2\n"), "{manifest}");
}

#[test]
fn a_lost_side_segment_above_the_gap_is_corruption_and_takes_what_came_later_with_it() {
    let machine = Machine::new(1);
    machine.files.set_loss(CrashLoss::All);
    let server = machine.start(2).unwrap();
    let on = |list: &[u64]| EntryDependencies {
        floor: Csn(0),
        list: list.iter().map(|&csn| Csn(csn)).collect(),
    };
    // 2 never becomes durable: the gap.
    assert!(server.commit(0, 1) && server.push(1, 2));
    assert!(server.push_with(0, 3, &on(&[1])) && server.flush(0));
    push_side(&server, 4, &on(&[]));
    push_side(&server, 5, &on(&[2]));
    assert!(server.push_with(0, 6, &on(&[])) && server.flush(0));
    drop(server);
    machine.files.reboot();
    let whole = machine.fork(1);
    assert_eq!(whole.start(2).unwrap().survivors, [1, 3, 4, 6]);
    let sides = whole
        .home()
        .unwrap()
        .sides
        .list_side_segments(lane(0))
        .unwrap();
    assert_eq!(sides, [1 << 32], "of the dropped one nothing is left");
    let path = "/db/log/lane-0000/side-0000000100000000.rec".as_ref();
    machine.env.files.remove(path).unwrap();
    machine
        .env
        .files
        .sync_dir("/db/log/lane-0000".as_ref())
        .unwrap();
    let text = machine.start(2).map(|_| ()).unwrap_err().to_string();
    for part in [
        "a side segment is missing",
        "0000000100000000",
        "the records of CSN 4",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let accept = RecoveryOptions {
        accept_data_loss: true,
        lanes: 2,
        ..options()
    };
    assert_eq!(machine.start_with(accept).unwrap().survivors, [1, 3]);
    for _ in 0..2 {
        let server = machine.start(2).unwrap();
        assert_eq!(server.survivors, [1, 3]);
        let sides = server.home.sides.list_side_segments(lane(0)).unwrap();
        assert_eq!(sides, [(1 << 32) + 1], "evidence is kept");
    }
}

#[test]
fn a_very_long_side_segment_comes_in_pieces_of_whole_records() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    let row = vec![7; 700_000];
    let mut records = Vec::new();
    for rid in 0..30 {
        let (table, rid, row) = (TableId(1), Rid(rid), &row[..]);
        RowRecord::Insert { table, rid, row }.encode(&mut records);
    }
    let (done, finished) = std::sync::mpsc::channel();
    let mut side = server.lane(0).begin_side_segment().unwrap();
    records
        .chunks(1 << 20)
        .for_each(|piece| side.append(piece.to_vec()));
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    let side = finished.recv().unwrap().unwrap();
    let room = server.lane(0).room(0).unwrap();
    server
        .lane(0)
        .push_side(room, Csn(1), 0, &EntryDependencies::default(), &side);
    assert!(server.flush(0));
    drop(server);
    let home = machine.home().unwrap();
    let mut calls: Vec<Vec<u8>> = Vec::new();
    let mut take = |csn, records: &[u8]| {
        assert_eq!(csn, Csn(1));
        calls.push(records.to_vec());
        Ok(())
    };
    recovery::open(&home, &machine.env, &options(), &mut take).unwrap();
    assert!(calls.len() > 10);
    for call in &calls {
        assert!(RecordReader::new(call).all(|record| record.is_ok()));
        assert!(call.len() < 2 << 20, "never all of it in memory");
    }
    assert_eq!(calls.concat(), records);
}

#[test]
fn a_block_that_a_mark_counts_may_not_go_missing() {
    let (machine, places) = five_blocks();
    drop(machine.start(1).unwrap());
    flip(&machine, places[4], 100);
    let text = machine.start(1).map(|_| ()).unwrap_err().to_string();
    assert!(
        text.contains("the recovery mark of its epoch counts 5 blocks"),
        "{text}"
    );
}

#[test]
fn foreign_directories_and_bad_manifests_are_refused() {
    let (machine, _) = five_blocks();
    machine
        .files
        .tamper("/db/manifest".as_ref(), |bytes| bytes[30] ^= 1)
        .unwrap();
    assert!(matches!(
        machine.start(1),
        Err(RecoveryError::BadManifest { .. })
    ));
    machine.env.files.remove("/db/manifest".as_ref()).unwrap();
    assert!(matches!(
        machine.start(1),
        Err(RecoveryError::NoManifest(_))
    ));
    let machine = Machine::new(2);
    drop(machine.home().unwrap());
    assert!(matches!(
        inspect::verify("/db", &machine.env),
        Err(RecoveryError::NoLog(_))
    ));
}

#[test]
fn a_full_disk_at_start_is_said_and_passes() {
    let (machine, _) = five_blocks();
    machine.files.set_capacity(Some(machine.files.used()));
    assert!(matches!(machine.start(1), Err(RecoveryError::DiskFull(_))));
    machine.files.set_capacity(None);
    assert_eq!(machine.start(1).unwrap().survivors, upto(5));
}

#[test]
fn foreign_blocks_are_never_replayed() {
    // The segment of another database, byte for byte, in our directory.
    let (other, _) = five_blocks();
    let stolen = other.env.files.read(&Machine::segment(0, 0)).unwrap();
    let machine = Machine::new(99);
    drop(machine.start(1).unwrap());
    machine
        .files
        .tamper(&Machine::segment(0, 0), |bytes| *bytes = stolen)
        .unwrap();
    assert_eq!(machine.start(1).unwrap().survivors, upto(0));
    let mut block = Buffer::zeroed(4096);
    assert_eq!(
        machine
            .home()
            .unwrap()
            .segments
            .read(lane(0), Position::start_of(9), &mut block)
            .unwrap(),
        0
    );
}
