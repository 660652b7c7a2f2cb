//! A lane has lost its last acknowledged blocks while others went on: nothing in the lane itself tells, but their
//! blocks recorded the horizon (`recovery::recorded_horizon`). And what looks alike and is no loss.

use crate::rig;

use logstead_env::CrashLoss;
use logstead_types::{BlockNo, Csn, LaneId};
use logstead_wal::block::{FORMAT_VERSION, FORMAT_VERSION_WITHOUT_HORIZON, HEADER_LEN, Header};
use logstead_wal::recovery::{Corruption, RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, inspect};
use rig::forge::{Arrives, Forge, Tx};
use rig::{Machine, Server, options};

const LANES: u16 = 3;
/// Where the block with CSN 7 lies in its lane: the third one.
const LOST_AT: usize = 2 * 4096;

fn accepting(machine: &Machine, lanes: u16) -> Server {
    let options = RecoveryOptions {
        accept_data_loss: true,
        lanes,
        ..options()
    };
    machine.start_with(options).unwrap()
}

fn refusal(machine: &Machine, lanes: u16) -> Corruption {
    let Err(RecoveryError::Corrupt(found)) = machine.start(lanes).map(drop) else {
        panic!("it starts")
    };
    let verified = inspect::verify("/db", &machine.env);
    assert!(matches!(verified, Err(RecoveryError::Corrupt(_))));
    *found
}

/// An entry that names no predecessor: all it depends on was Committed when it was pushed.
fn commit(server: &Server, lane: u16, csn: u64) {
    assert!(server.push_with(lane, csn, &EntryDependencies::default()) && server.flush(lane));
}

/// Two blocks in each lane; then 7, the last one of lane `last`, acknowledged; then the others go on.
fn others_go_on(last: u16) -> Machine {
    let machine = Machine::new(1);
    let server = machine.start(LANES).unwrap();
    (1..=6).for_each(|csn| commit(&server, (csn % 3) as u16, csn));
    commit(&server, last, 7);
    commit(&server, (last + 1) % LANES, 8);
    commit(&server, (last + 2) % LANES, 9);
    machine
}

type Damage = fn(&mut Vec<u8>);

const DAMAGES: [(&str, Damage); 6] = [
    ("no block starts here", |bytes| {
        bytes[LOST_AT..LOST_AT + 4096].fill(0);
    }),
    ("wrong checksum of a block header", |bytes| {
        bytes[LOST_AT + 30] ^= 1;
    }),
    ("wrong checksum of a block's horizon", |bytes| {
        bytes[LOST_AT + HEADER_LEN - 2] ^= 1;
    }),
    ("wrong checksum of a block's payload", |bytes| {
        bytes[LOST_AT + 200] ^= 1;
    }),
    ("the segment ends", |bytes| bytes.truncate(LOST_AT)),
    ("does not continue the chain", |bytes| {
        bytes.copy_within(0..4096, LOST_AT);
    }),
];

#[test]
fn a_lanes_last_acknowledged_block_that_is_lost_is_named() {
    for last in 0..LANES {
        for (why, damage) in DAMAGES {
            let machine = others_go_on(last);
            let segment = Machine::segment(last, 0);
            machine.files.tamper(&segment, damage).unwrap();
            let found = refusal(&machine, LANES);
            let place = (found.lane, found.block, found.at.offset);
            assert_eq!(place, (LaneId(last), BlockNo(2), LOST_AT as u64), "{found}");
            assert!(found.what.contains(why), "{found}");
            let proof = format!(
                "no lane has an entry with CSN 7, and block 2 of lane {} at segment 0 offset {LOST_AT} says that all below 9 were durable",
                (last + 2) % LANES
            );
            assert!(found.proof.contains(&proof), "{found}");
            // Refused again, and nothing was changed.
            assert_eq!(refusal(&machine, LANES), found);
            let server = accepting(&machine, LANES);
            assert_eq!(server.survivors, [1, 2, 3, 4, 5, 6], "{why}");
            assert!(server.log.report.loss.is_some());
            let next = server.log.next_csn.get();
            assert_eq!(next, 10, "no CSN is drawn twice");
            commit(&server, 0, next);
            drop(server);
            for lanes in [1, LANES] {
                // What was accepted stays so: the blocks are there that told of it.
                let server = machine.start(lanes).unwrap();
                assert_eq!(server.survivors, [1, 2, 3, 4, 5, 6, next]);
                assert_eq!(server.log.report.loss, None);
            }
            machine
                .files
                .tamper(&segment, |bytes| {
                    let kept = bytes.len() > LOST_AT && bytes[LOST_AT..].iter().any(|b| *b != 0);
                    let lost = ["no block starts here", "the segment ends"].contains(&why);
                    assert!(kept || lost, "{why}: evidence is kept");
                })
                .unwrap();
        }
    }
}

/// A crash left a lane's last block whole, but not all of the zeros behind it, up to which it was written: the block is
/// durable, and the start completes it.
#[test]
fn a_block_whose_padding_is_torn_is_whole() {
    for lane in 0..LANES {
        let machine = Machine::new(1);
        let server = machine.start(LANES).unwrap();
        (1..=6).for_each(|csn| commit(&server, (csn % 3) as u16, csn));
        drop(server);
        let segment = Machine::segment(lane, 0);
        let torn = machine.files.tamper(&segment, |bytes| {
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            assert_ne!(end % 4096, 0, "there is padding");
            bytes.truncate(end);
        });
        torn.unwrap();
        for _ in 0..2 {
            let server = machine.start(LANES).unwrap();
            assert_eq!(server.survivors, [1, 2, 3, 4, 5, 6]);
        }
    }
}

/// A whole lane is gone: its only segment was removed.
#[test]
fn a_lane_without_its_segment_is_named() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    commit(&server, 1, 1);
    commit(&server, 0, 2);
    drop(server);
    machine.env.files.remove(&Machine::segment(1, 0)).unwrap();
    let dir = "/db/log/lane-0001".as_ref();
    machine.env.files.sync_dir(dir).unwrap();
    let found = refusal(&machine, 2);
    assert_eq!((found.lane, found.block), (LaneId(1), BlockNo(0)));
    assert!(accepting(&machine, 2).survivors.is_empty());
    assert!(machine.start(2).unwrap().survivors.is_empty());
}

/// Which of two lanes had it nobody knows.
#[test]
fn all_lanes_that_may_have_lost_it_are_named() {
    let machine = Machine::new(1);
    let server = machine.start(LANES).unwrap();
    commit(&server, 0, 1);
    commit(&server, 1, 2);
    commit(&server, 2, 3);
    drop(server);
    for lane in [0, 1] {
        let zero = |bytes: &mut Vec<u8>| bytes[..4096].fill(0);
        let segment = Machine::segment(lane, 0);
        machine.files.tamper(&segment, zero).unwrap();
    }
    let found = refusal(&machine, LANES);
    assert_eq!((found.lane, found.block), (LaneId(0), BlockNo(0)));
    let or = "(or it was block 0 of lane 1 at segment 0 offset 0: no block starts here at byte 0)";
    assert!(found.what.contains(or), "{found}");
    assert!(found.proof.contains("CSN 1,"), "{found}");
    assert!(accepting(&machine, LANES).survivors.is_empty());
}

/// What had not become durable holds back the horizon: a crash that takes it leaves a gap that is none of a loss.
#[test]
fn a_gap_at_the_horizon_is_no_loss() {
    for last in 0..LANES {
        let machine = Machine::new(1);
        machine.files.set_loss(CrashLoss::All);
        let server = machine.start(LANES).unwrap();
        (1..=6).for_each(|csn| commit(&server, (csn % 3) as u16, csn));
        assert!(server.push(last, 7));
        for csn in 8..20 {
            commit(&server, (last + 1 + (csn % 2) as u16) % LANES, csn);
        }
        drop(server);
        machine.files.reboot();
        let server = machine.start(LANES).unwrap();
        let survivors: Vec<u64> = (1..=6).chain(8..20).collect();
        assert_eq!(server.survivors, survivors);
        // And the next epoch's horizons begin above it: 7 is settled, and 20 is the next one.
        let next = server.log.next_csn.get();
        assert_eq!(next, 20);
        commit(&server, 0, next);
        commit(&server, 1, next + 1);
        drop(server);
        assert_eq!(machine.start(1).unwrap().survivors.len(), 20);
    }
}

/// What lies below a checkpoint is not looked for, whatever the blocks behind it say.
#[test]
fn what_a_checkpoint_holds_is_no_gap() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    (1..=80).for_each(|csn| commit(&server, (csn % 2) as u16, csn));
    let removed = server.checkpoint(81).unwrap();
    assert!(removed.segments > 0, "entries below it are gone");
    let start = server.starts()[0];
    commit(&server, 0, 81);
    // Perhaps at the start of the next segment.
    let end = server.starts()[0].at;
    commit(&server, 1, 82);
    drop(server);
    let whole = machine.fork(1);
    assert_eq!(whole.start(2).unwrap().survivors, [81, 82]);
    // Behind it a loss is one.
    let zero = |bytes: &mut Vec<u8>| {
        let end = end.offset as usize;
        bytes[end - 4096..end].fill(0);
    };
    let segment = Machine::segment(0, end.segment);
    machine.files.tamper(&segment, zero).unwrap();
    let found = refusal(&machine, 2);
    assert_eq!((found.lane, found.block.get()), (LaneId(0), start.block));
    assert!(found.proof.contains("CSN 81,"), "{found}");
}

fn tx(csn: u64) -> Tx {
    Tx {
        csn,
        deps: EntryDependencies::default(),
        side: false,
    }
}

/// Blocks from before horizons were recorded are read, and tell nothing: their last ones may be gone unnoticed, as
/// before.
#[test]
fn blocks_of_version_1_tell_nothing() {
    for (lost, survivors) in [
        (Arrives::Whole, vec![1, 2, 3]),
        (Arrives::Absent, vec![1, 3]),
    ] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        let mut forge = Forge::new(server.home.clone(), &server.log);
        forge.version = FORMAT_VERSION_WITHOUT_HORIZON;
        forge.block(0, 0, &[tx(1)], Arrives::Whole);
        forge.block(1, 0, &[tx(2)], lost);
        forge.block(0, 1, &[tx(3)], Arrives::Whole);
        drop((forge, server));
        machine
            .files
            .tamper(&Machine::segment(0, 0), |bytes| {
                let (header, _) = Header::decode(bytes).unwrap();
                assert_eq!((header.version, header.horizon), (1, Csn::ZERO));
            })
            .unwrap();
        let server = machine.start(2).unwrap();
        assert_eq!(server.survivors, survivors);
        // The next epoch's blocks are of today's version.
        commit(&server, 0, 4);
        drop(server);
        machine
            .files
            .tamper(&Machine::segment(0, 1), |bytes| {
                let (header, _) = Header::decode(bytes).unwrap();
                assert_eq!((header.version, header.horizon), (FORMAT_VERSION, Csn(4)));
            })
            .unwrap();
        assert_eq!(
            machine.start(1).unwrap().survivors.len(),
            survivors.len() + 1
        );
    }
}

/// Entries may lie in a lane in any order: what one lane's block says to be durable may come late in another.
#[test]
fn a_gap_waits_for_lanes_that_may_hold_it() {
    let machine = Machine::new(1);
    let server = machine.start(3).unwrap();
    let mut forge = Forge::new(server.home.clone(), &server.log);
    forge.block(0, 0, &[tx(1)], Arrives::Whole);
    forge.block(1, 0, &[tx(2)], Arrives::Whole);
    // Several batches of blocks, and then what everybody else has long been told of.
    for csn in 100..700 {
        forge.block(2, csn - 100, &[tx(csn)], Arrives::Whole);
    }
    let late: Vec<Tx> = (3..100).map(tx).collect();
    for (number, late) in late.chunks(12).enumerate() {
        forge.block(2, 600 + number as u64, late, Arrives::Whole);
    }
    forge.horizon = Csn(100);
    forge.block(1, 1, &[tx(700)], Arrives::Whole);
    drop((forge, server));
    let server = machine.start(3).unwrap();
    assert_eq!(server.survivors, (1..=700).collect::<Vec<_>>());
}

/// A long lane goes on behind a loss: it is not read to its end, nor kept, before the loss is told.
#[test]
fn a_loss_is_certain_before_the_other_lanes_end() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    let mut forge = Forge::new(server.home.clone(), &server.log);
    forge.block(0, 0, &[tx(1)], Arrives::Whole);
    forge.block(1, 0, &[tx(2)], Arrives::Absent);
    forge.horizon = Csn(3);
    for csn in 3..1000 {
        forge.block(0, csn - 2, &[tx(csn)], Arrives::Whole);
    }
    // Who came so far would find that it can read no more.
    forge.version = FORMAT_VERSION + 1;
    forge.block(0, 998, &[tx(1000)], Arrives::Whole);
    drop((forge, server));
    let found = refusal(&machine, 2);
    assert_eq!((found.lane, found.block), (LaneId(1), BlockNo(0)));
    assert!(found.proof.contains("CSN 2,"), "{found}");
    let Err(RecoveryError::NewerFormat { .. }) = machine
        .start_with(RecoveryOptions {
            accept_data_loss: true,
            lanes: 2,
            ..options()
        })
        .map(drop)
    else {
        panic!("what cannot be read cannot be given up")
    };
}

/// A horizon above what was drawn is the block's own fault.
#[test]
fn a_horizon_that_nothing_bears_out_is_corruption_of_its_block() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    let mut forge = Forge::new(server.home.clone(), &server.log);
    forge.block(0, 0, &[tx(1)], Arrives::Whole);
    forge.horizon = Csn(3);
    forge.block(0, 1, &[tx(2)], Arrives::Whole);
    drop((forge, server));
    // 2 lies in that very block, so it was not durable when the block was sealed; but it is there.
    assert_eq!(machine.start(1).unwrap().survivors, [1, 2]);
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    let mut forge = Forge::new(server.home.clone(), &server.log);
    forge.horizon = Csn(5);
    forge.block(0, 0, &[tx(1)], Arrives::Whole);
    forge.block(0, 1, &[tx(3)], Arrives::Whole);
    drop((forge, server));
    let found = refusal(&machine, 1);
    assert_eq!((found.lane, found.block), (LaneId(0), BlockNo(0)));
    assert!(found.what.contains("never was"), "{found}");
    assert_eq!(accepting(&machine, 1).survivors, [1]);
    assert_eq!(machine.start(1).unwrap().survivors, [1]);
}
