//! Where numbers end: refused before anything is promised that needs them, with the rest going on. Each test begins
//! near the end.

use crate::rig;

use logstead_env::{Clock, RealClock, SimClock};
use logstead_home::{
    Buffer, LaneAppends, LaneSegments, LogHome, MemoryHome, Position, SideSegments,
};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::copy::{Destination, TailCopy};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::Manifest;
use logstead_wal::number_limits::{
    EPOCH_END, NumbersExhausted, SIDES_END, next_epoch, segment_end,
};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::{
    EntryDependencies, FlushMode, FlushOutcome, Lane, LaneConfig, LaneStart, NoRoom,
};
use rig::{Machine, Server, row_of};
use std::sync::Arc;

/// Segment numbers of one epoch never come to those of the next one, whatever was promised before the first refusal.
#[test]
fn a_lane_near_the_end_of_its_segment_numbers_refuses_and_keeps_what_it_promised() {
    let home = MemoryHome::new(32 * 1024);
    let (lane, epoch) = (LaneId(0), Epoch(7));
    let end = segment_end(epoch, home.capabilities().leased);
    home.open_lane(lane, end - 2).unwrap();
    let start = LaneStart {
        database: DatabaseId(1),
        epoch,
        lane,
        first_segment: end - 2,
    };
    let config = LaneConfig {
        buffer_size_bytes: 8 * 1024,
        ..LaneConfig::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let written = Lane::new(LogHome::from(home.clone()), clock, start, config);
    // Taken before the end is in sight, and used behind it.
    let promised = written.room(100).unwrap();
    let mut csn = 1;
    let refused = loop {
        match written.room(1000) {
            Ok(room) => {
                written.push(room, Csn(csn), 0, &EntryDependencies::default(), &[7; 1000]);
                csn += 1;
                assert_eq!(written.flush(FlushMode::Inline), FlushOutcome::Durable);
            }
            Err(refused) => break refused,
        }
        assert!(csn < 100, "it never refuses");
    };
    assert!(
        matches!(refused, NoRoom::UsedUp(NumbersExhausted::Segments)),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("restart the server"),
        "{refused}"
    );
    assert!(csn > 10, "two segments were filled before");
    written.push(
        promised,
        Csn(csn),
        0,
        &EntryDependencies::default(),
        &[7; 100],
    );
    assert_eq!(written.flush(FlushMode::Inline), FlushOutcome::Durable);
    assert_eq!(written.first_not_durable(), Csn(u64::MAX));
    let segments = home.list_segments(lane).unwrap();
    assert_eq!(segments.first().unwrap().segment, end - 2);
    assert!(segments.last().unwrap().segment < end + 10);
    let mut block = Buffer::zeroed(4096);
    let read = home.read(lane, Position::start_of(end - 2), &mut block);
    assert_eq!(read.unwrap(), 4096, "reading goes on");
    assert!(written.room(1).is_err());
}

/// Where servers can overtake one another, the numbers that are kept back lie below the next epoch's.
#[test]
fn segment_numbers_end_before_the_next_epochs_begin() {
    for epoch in [Epoch(1), Epoch(7), Epoch(u32::MAX - 1)] {
        let next = u64::from(epoch.get() + 1) << 32;
        assert_eq!(segment_end(epoch, true), next - (1 << 20));
        assert!(segment_end(epoch, false) > next);
    }
    assert!(segment_end(Epoch(u32::MAX), true) > u64::from(u32::MAX) << 32);
}

fn change_manifest(server: Server, change: impl FnOnce(&mut Manifest)) {
    let (bytes, tag) = server.home.names.get("manifest").unwrap().unwrap();
    let mut manifest = Manifest::decode(&bytes).unwrap();
    change(&mut manifest);
    let bytes = manifest.encode();
    server
        .home
        .names
        .compare_and_swap("manifest", tag, &bytes)
        .unwrap();
}

fn used_up(started: Result<Server, RecoveryError>) -> NumbersExhausted {
    match started.map(drop) {
        Err(RecoveryError::UsedUp(what)) => what,
        Err(error) => panic!("{error}"),
        Ok(()) => panic!("it starts"),
    }
}

#[test]
fn a_start_without_an_epoch_left_is_refused_and_changes_nothing() {
    let machine = Machine::new(1);
    let before_last = Epoch(EPOCH_END.get() - 2);
    let server = machine.start(1).unwrap();
    change_manifest(server, |manifest| manifest.epoch = before_last);
    let server = machine.start(1).unwrap();
    assert_eq!(server.log.epoch, Epoch(EPOCH_END.get() - 1));
    assert!(server.commit(0, 1));
    drop(server);
    for _ in 0..2 {
        assert_eq!(used_up(machine.start(1)), NumbersExhausted::Epochs);
        let verified = logstead_wal::inspect::verify("/db", &machine.env).unwrap();
        assert_eq!(verified.report.entries, 1, "reading goes on");
    }
    assert_eq!(next_epoch(Epoch(u32::MAX)), Err(NumbersExhausted::Epochs));
    assert_eq!(next_epoch(Epoch(7)), Ok(Epoch(8)));
}

#[test]
fn a_start_whose_lanes_have_no_segment_numbers_left_is_refused() {
    for last in [segment_end(Epoch(2), false) - 1, u64::MAX] {
        let machine = Machine::new(1);
        let server = machine.start(1).unwrap();
        change_manifest(server, |manifest| manifest.lanes[0].first_segment = last);
        assert_eq!(used_up(machine.start(1)), NumbersExhausted::Segments);
    }
}

/// The copy of a large transaction gets a side segment's number of its own epoch, or none.
#[test]
fn a_copy_without_a_side_segment_number_left_is_refused() {
    let machine = Machine::new(1);
    let server = machine.start(1).unwrap();
    assert!(server.commit(0, 1));
    let long = row_of(Csn(2)).repeat(2000);
    let (told, stored) = std::sync::mpsc::channel();
    let mut side = server.lane(0).begin_side_segment().unwrap();
    side.append(long);
    side.finish(Box::new(move |result| told.send(result).unwrap()));
    let side = stored.recv().unwrap().unwrap();
    let room = server.lane(0).room(0).unwrap();
    server
        .lane(0)
        .push_side(room, Csn(2), 0, &EntryDependencies::default(), &side);
    assert!(server.flush(0));
    let place = Destination {
        database: DatabaseId(77),
        epoch: Epoch(5),
        lane: LaneId(3),
        rest: None,
    };
    for (taken, refused) in [(SIDES_END - 1, true), (SIDES_END - 2, false)] {
        let to = MemoryHome::new(4 << 20);
        let (told, stored) = std::sync::mpsc::channel();
        let mut writer = to.begin_side_segment(place.lane, (5 << 32) + taken);
        writer.append(vec![1]);
        writer.finish(Box::new(move |result| told.send(result.is_ok()).unwrap()));
        assert!(stored.recv().unwrap());
        let manifest = manifest_of(&server.home).unwrap();
        let target = LogHome::from(to.clone());
        let read = TailCopy::read(&server.home, &manifest, &RealClock::new(), &target, place);
        match read.and_then(TailCopy::finish) {
            Err(RecoveryError::UsedUp(NumbersExhausted::Sides)) => assert!(refused),
            Ok(copied) => {
                let sides = copied.prefix.unwrap().sides;
                assert!(!refused && sides == [(5 << 32) + SIDES_END - 1]);
            }
            Err(error) => panic!("{error}"),
        }
    }
}
