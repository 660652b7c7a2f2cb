//! Large transactions: their records lie in side segments.

use super::rig::beside::Beside;
use super::{Receiver, start};
use logstead_home::{Availability, LogHome, MemoryHome};
use logstead_types::{Csn, Rid, TableId};
use logstead_wal::recovery::RecoveryError;
use logstead_wal::recovery::follow::{FollowError, Follower};
use logstead_wal::{EntryDependencies, RecordReader, RowRecord};

#[test]
fn records_in_side_segments_are_handed_over() {
    let memory = MemoryHome::new(32 << 10);
    let server = start(&memory, 2);
    for csn in 1..=20 {
        let lane = (csn % 2) as u16;
        let pushed = match csn % 3 {
            0 => server.push_side(lane, csn, &EntryDependencies::default()),
            _ => server.push_with(lane, csn, &EntryDependencies::default()),
        };
        assert!(pushed && server.flush(lane));
    }
    assert!(server.lane(1).record_horizon());
    let mut follower = Follower::open(&server.home).unwrap();
    let mut given = Receiver::default();
    assert_eq!(given.take(&mut follower).next, Csn(21));
    assert_eq!(given.0, super::from_to(1, 20));
}

/// A checkpoint has removed the side segment of an entry that was read and not handed over; or it is lost.
#[test]
fn a_side_segment_that_is_gone_was_removed_or_is_lost() {
    for is_removed in [true, false] {
        let memory = MemoryHome::new(32 << 10);
        let server = start(&memory, 1);
        assert!(server.commit(0, 1));
        assert!(server.push_side(0, 2, &EntryDependencies::default()) && server.flush(0));
        let mut follower = Follower::open(&server.home).unwrap();
        let mut given = Receiver::default();
        assert_eq!(given.take(&mut follower).next, Csn(2));
        match is_removed {
            true => assert_eq!(server.checkpoint(3).unwrap().sides, 1),
            false => {
                let sides = server
                    .home
                    .sides
                    .list_side_segments(super::rig::lane(0))
                    .unwrap();
                server
                    .home
                    .sides
                    .remove_side_segment(super::rig::lane(0), sides[0])
                    .unwrap();
                assert!(server.lane(0).record_horizon());
            }
        }
        let error = given.round(&mut follower).unwrap_err();
        match is_removed {
            true => {
                let FollowError::Removed { next, checkpoint } = error else {
                    panic!("{error}")
                };
                assert_eq!((next, checkpoint), (Csn(2), Csn(3)));
            }
            false => assert!(
                matches!(error, FollowError::Log(RecoveryError::Corrupt(_))),
                "{error}"
            ),
        }
        assert_eq!(given.0, [1]);
    }
}

/// A side segment that is longer than is held in memory comes in pieces. A request that fails in the middle of it
/// repeats nothing.
#[test]
fn a_long_side_segment_comes_once_whatever_fails() {
    const ROW: usize = 300_000;
    const ROWS: u64 = 34;
    let memory = MemoryHome::new(32 << 10);
    let server = start(&memory, 1);
    let mut side = server.lane(0).begin_side_segment().unwrap();
    let mut records = Vec::new();
    for rid in 1..=ROWS {
        RowRecord::Insert {
            table: TableId(20_000),
            rid: Rid(rid),
            row: &vec![rid as u8; ROW],
        }
        .encode(&mut records);
    }
    side.append(records);
    let (done, finished) = std::sync::mpsc::channel();
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    let side = finished.recv().unwrap().unwrap();
    let room = server.lane(0).room(0).unwrap();
    server
        .lane(0)
        .push_side(room, Csn(1), 0, &EntryDependencies::default(), &side);
    assert!(server.flush(0));
    let mut pieces_most = 0;
    for at in 0.. {
        let refusing = memory.clone();
        let from = Beside::new(&LogHome::from(memory.clone()), move |request| {
            if request == at {
                refusing.set_presence(Availability::Refusing);
            }
        });
        let home = from.home();
        memory.set_presence(Availability::Up);
        let Ok(mut follower) = Follower::open(&home) else {
            continue;
        };
        follower.learn(server.log.epoch, Csn(2));
        let (mut rids, mut pieces) = (Vec::new(), 0);
        loop {
            let round = follower.round(&mut |csn, records| {
                assert_eq!(csn, Csn(1));
                pieces += 1;
                for record in RecordReader::new(records) {
                    let RowRecord::Insert { rid, row, .. } = record? else {
                        panic!("an insert")
                    };
                    assert_eq!(row, vec![rid.get() as u8; ROW]);
                    rids.push(rid.get());
                }
                Ok(())
            });
            match round {
                Ok(progress) => {
                    assert_eq!((progress.next, progress.entries), (Csn(2), 1));
                    break;
                }
                Err(FollowError::Log(RecoveryError::Home(_))) => {
                    memory.set_presence(Availability::Up)
                }
                Err(error) => panic!("at {at}: {error}"),
            }
        }
        assert_eq!(rids, super::from_to(1, ROWS), "at {at}");
        pieces_most = pieces_most.max(pieces);
        if at >= from.requests() {
            break;
        }
    }
    assert!(pieces_most > 5, "{pieces_most}");
}
