//! Damage beside checkpoints: what is corruption, what is the end, what is given up and kept for who wants to look; and
//! homes that fail while a checkpoint is named.

use super::rig::{Machine, Server, lane, options};
use super::{commit, from_to};
use logstead_env::{CrashLoss, Fault};
use logstead_home::{HomeError, Position};
use logstead_types::{Csn, Epoch};
use logstead_wal::manifest::AbandonedEpochs;
use logstead_wal::recovery::{RecoveryError, RecoveryOptions};
use logstead_wal::{EntryDependencies, inspect};

fn flip(machine: &Machine, at: Position, byte: u64) {
    let change = |bytes: &mut Vec<u8>| bytes[(at.offset + byte) as usize] ^= 0x10;
    let path = Machine::segment(0, at.segment);
    machine.files.tamper(&path, change).unwrap();
}

/// One lane, a checkpoint after four blocks, and four blocks behind it, all in one segment; gives the start.
fn eight_blocks() -> (Machine, Position) {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    commit(&server, 1..=4);
    server.checkpoint(5).unwrap();
    let start = server.starts()[0].at;
    commit(&server, 5..=8);
    (machine, start)
}

fn block(start: Position, number: u64) -> Position {
    Position {
        offset: start.offset + number * 4096,
        ..start
    }
}

fn corruption(machine: &Machine) -> String {
    let Err(error @ RecoveryError::Corrupt(_)) = machine.start(1).map(drop) else {
        panic!("it starts")
    };
    assert!(inspect::verify("/db", &machine.env).is_err());
    error.to_string()
}

fn accepting(machine: &Machine) -> Server {
    let options = RecoveryOptions {
        accept_data_loss: true,
        ..options()
    };
    machine.start_with(options).unwrap()
}

#[test]
fn damage_before_a_start_hurts_nobody() {
    for number in 1..=4 {
        let (machine, start) = eight_blocks();
        let at = Position {
            offset: start.offset - number * 4096,
            ..start
        };
        flip(&machine, at, 30);
        assert_eq!(machine.start(1).unwrap().survivors, from_to(5, 8));
    }
}

#[test]
fn damage_behind_a_start_is_corruption_and_a_torn_tail_is_the_end() {
    for byte in [0, 20, 40, 79, 80, 87, 88, 200] {
        for number in 0..3 {
            let (machine, start) = eight_blocks();
            flip(&machine, block(start, number), byte);
            let text = corruption(&machine);
            let place = format!("lane 0, block {}, byte offset", 4 + number);
            assert!(text.contains(&place), "{text}");
        }
        let (machine, start) = eight_blocks();
        flip(&machine, block(start, 3), byte);
        assert_eq!(machine.start(1).unwrap().survivors, from_to(5, 7));
    }
}

/// The block at a start is known by its number and by the block before it, as any other.
#[test]
fn a_start_that_does_not_fit_its_block_finds_nothing() {
    let (machine, _) = eight_blocks();
    let home = machine.home().unwrap();
    let (bytes, tag) = home.names.get("manifest").unwrap().unwrap();
    let mut manifest = logstead_wal::manifest::Manifest::decode(&bytes).unwrap();
    manifest.checkpoint.as_mut().unwrap().starts[0].previous_header_crc ^= 1;
    home.names
        .compare_and_swap("manifest", tag, &manifest.encode())
        .unwrap();
    drop(home);
    assert!(corruption(&machine).contains("does not continue the chain"));
}

#[test]
fn a_start_whose_segment_is_gone_is_corruption() {
    let (machine, start) = eight_blocks();
    let path = Machine::segment(0, start.segment);
    let whole = machine.fork(1);
    machine
        .files
        .tamper(&path, |bytes| bytes.truncate(8192))
        .unwrap();
    let text = corruption(&machine);
    assert!(text.contains("in the checkpoint, were durable"), "{text}");
    // What is behind it only is the end, if nothing says more.
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(start.offset as usize);
    whole.files.tamper(&path, cut).unwrap();
    assert!(whole.start(1).unwrap().survivors.is_empty());
}

/// Five transactions, a checkpoint of them, and four with side segments behind it, which begin at the place.
fn four_sides_behind_a_checkpoint() -> (Machine, Position) {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    commit(&server, 1..=5);
    server.checkpoint(6).unwrap();
    let start = server.starts()[0].at;
    for csn in 6..=9 {
        let deps = EntryDependencies::floor(Csn(csn - 1));
        assert!(server.push_side(0, csn, &deps) && server.flush(0));
    }
    drop(server);
    (machine, start)
}

/// A loss behind the checkpoint, accepted: the mark annuls, from the checkpoint's CSN on. What was given up outlives
/// later checkpoints.
#[test]
fn what_was_given_up_is_kept_when_a_checkpoint_makes_its_mark_superfluous() {
    let (machine, start) = four_sides_behind_a_checkpoint();
    flip(&machine, block(start, 1), 30);
    corruption(&machine);
    let server = accepting(&machine);
    assert_eq!(server.survivors, [6]);
    assert_eq!(
        server.log.next_csn,
        Csn(7),
        "nothing behind the hole was read"
    );
    let manifest = server.log.manifest_writer.manifest();
    assert_eq!(manifest.marks[0].annulled_from, Some(Csn(7)));
    assert_eq!(manifest.marks[0].base, Csn(6));
    let next = server.log.next_csn.0;
    commit(&server, next..=next + 3);
    drop(server);
    // Before and after the checkpoint that needs the mark no more, and over restarts.
    let evidence = |server: &Server, what: &str| {
        assert!(server.segments(0).contains(&start.segment), "{what}");
        assert_eq!(
            server.home.sides.list_side_segments(lane(0)).unwrap().len(),
            4,
            "{what}"
        );
    };
    let server = machine.start(1).unwrap();
    let expected: Vec<u64> = [6].into_iter().chain(next..=next + 3).collect();
    assert_eq!(server.survivors, expected);
    evidence(&server, "without a checkpoint");
    server.checkpoint(next + 4).unwrap();
    let manifest = server.log.manifest_writer.manifest();
    assert!(manifest.marks.is_empty());
    let given_up = AbandonedEpochs {
        first_epoch: Epoch(1),
        last_epoch: Epoch(1),
    };
    assert_eq!(manifest.given_up, [given_up]);
    evidence(&server, "with a checkpoint");
    commit(&server, next + 4..=next + 5);
    drop(server);
    for _ in 0..3 {
        let server = machine.start(1).unwrap();
        evidence(&server, "at later starts");
        let csn = server.log.next_csn.0;
        commit(&server, csn..=csn);
        server.checkpoint(csn + 1).unwrap();
        evidence(&server, "at later checkpoints");
        let manifest = server.log.manifest_writer.manifest();
        let first = manifest.lanes[0].first_segment;
        for segment in server.segments(0) {
            let kept = manifest.is_discarded(lane(0), segment) || segment >= first;
            assert!(kept, "segment {segment} is nobody's");
        }
    }
}

/// The loss begins with the first block that is needed, so that the epoch has no span: it is marked all the same, over
/// later starts.
#[test]
fn a_loss_directly_behind_the_starts_is_marked() {
    let (machine, start) = four_sides_behind_a_checkpoint();
    flip(&machine, block(start, 0), 30);
    corruption(&machine);
    let server = accepting(&machine);
    assert!(server.survivors.is_empty());
    drop(server);
    for life in 0..3 {
        let server = machine.start(1).unwrap();
        let manifest = server.log.manifest_writer.manifest();
        let mark = &manifest.marks[0];
        assert_eq!((mark.epoch, mark.annulled_from), (Epoch(1), Some(Csn(6))));
        assert!(mark.spans.is_empty());
        assert!(server.segments(0).contains(&start.segment), "life {life}");
        let sides = server.home.sides.list_side_segments(lane(0)).unwrap();
        assert_eq!(sides.len(), 4, "life {life}");
        let csn = server.log.next_csn.0;
        commit(&server, csn..=csn);
    }
}

/// Naming a checkpoint fails at each of its steps. What is told to be named has surely that name, also if a directory's
/// sync failed and its content could be seen all the same; and nothing is removed that a state needs which a crash may
/// bring back.
#[test]
fn t7_a_checkpoint_whose_name_may_be_lost_removes_nothing() {
    let (mut failed, mut named) = (0, 0);
    for operation in 0..12 {
        let machine = Machine::new(operation);
        machine.files.set_loss(CrashLoss::All);
        let server = machine.start(1).unwrap();
        commit(&server, 1..=40);
        let first = machine.files.operations();
        machine.files.fail_at(first + operation, Fault::Error);
        let manifest_writer = &server.log.manifest_writer;
        let published = server.publish(server.checkpoint_at(41, server.starts()));
        let operations = machine.files.operations() - first;
        machine.files.clear_faults();
        let known = manifest_writer.manifest().checkpoint.is_some();
        assert_eq!(known, published.is_ok(), "operation {operation}");
        failed += u64::from(!known);
        named += u64::from(known && operation < operations);
        let truncated = manifest_writer.truncate(None).unwrap();
        assert_eq!(truncated.segments > 0, known, "operation {operation}");
        drop(server);
        machine.files.reboot();
        let server = machine.start(1).unwrap();
        let held = server.log.report.checkpoint.0;
        assert!(held == 41 || !known, "operation {operation}: it is gone");
        let expected = if held == 41 {
            Vec::new()
        } else {
            from_to(1, 40)
        };
        assert_eq!(server.survivors, expected, "operation {operation}");
    }
    assert!(failed >= 4 && named == 1, "{failed}, {named}");
}

/// The server died before it removed what a checkpoint made superfluous, and the next start cannot: it starts, and a
/// later one removes it.
#[test]
fn a_start_that_cannot_remove_what_is_superfluous_starts() {
    let mut left_over = 0;
    for operation in 0..60 {
        let machine = Machine::new(operation);
        let server = machine.start(1).unwrap();
        commit(&server, 1..=40);
        let starts = server.starts();
        let needed = starts[0].at.segment;
        server.publish(server.checkpoint_at(41, starts)).unwrap();
        drop(server);
        let first = machine.files.operations();
        machine.files.fail_at(first + operation, Fault::Error);
        let started = machine.start(1);
        machine.files.clear_faults();
        if let Ok(server) = started {
            let segments = server.segments(0);
            left_over += u64::from(segments.iter().any(|&segment| segment < needed));
            assert!(server.commit(0, server.log.next_csn.0));
        }
        let server = machine.start(1).unwrap();
        assert_eq!(server.log.report.checkpoint, Csn(41));
        let segments = server.segments(0);
        assert!(segments.iter().all(|&segment| segment >= needed));
    }
    assert!(left_over > 0, "no removal failed");
}

/// Somebody else's manifest is where ours was: not what a kernel's lock allows, and not written over.
#[test]
fn a_manifest_that_somebody_has_replaced_is_left_alone() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    commit(&server, 1..=3);
    let (bytes, tag) = server.home.names.get("manifest").unwrap().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let other = text.replace("database ", "database f");
    server
        .home
        .names
        .compare_and_swap("manifest", tag, other.as_bytes())
        .unwrap();
    for _ in 0..2 {
        let published = server.publish(server.checkpoint_at(4, server.starts()));
        assert!(
            matches!(published, Err(HomeError::Conflict(_))),
            "{published:?}"
        );
    }
    let (there, _) = server.home.names.get("manifest").unwrap().unwrap();
    assert_eq!(there, other.as_bytes());
}
