//! What the commit path has the lanes record: a log that has lost what was acknowledged tells so, whichever lane it was
//! in, and no other log does.

use std::path::PathBuf;
use std::sync::Arc;

use logstead_commit::{
    AdaptiveSettings, CommitOptions, CommitPath, CommitWait, ProtocolKind, PushBody, Tracking,
};
use logstead_env::{CrashLoss, Env, SimFiles};
use logstead_home::{LocalHome, LocalOptions, LogHome};
use logstead_types::{BlockNo, Csn, LaneId, WorkerId};
use logstead_wal::block::Header;
use logstead_wal::recovery::follow::Follower;
use logstead_wal::recovery::{self, RecoveredLog, RecoveryError, RecoveryOptions};
use logstead_wal::{LaneConfig, RoomRequest};

const WORKERS: u16 = 3;
const BLOCK: usize = 4096;

struct Machine {
    files: SimFiles,
    env: Env,
}

/// A server: its commit path, and the home below.
struct Server {
    path: Arc<CommitPath>,
    survivors: Vec<u64>,
}

fn commit_options(protocol: ProtocolKind, tracking: Tracking) -> CommitOptions {
    CommitOptions {
        protocol,
        tracking,
        workers_per_lane: 1,
        lane_buffer_bytes: 8192,
        blocks_in_flight_max: 1,
        flush_unit_bytes: 1,
        adapt: AdaptiveSettings {
            lanes: true,
            ..AdaptiveSettings::NOTHING
        },
        threads: false,
        ..CommitOptions::default()
    }
}

impl Machine {
    fn new() -> Machine {
        let files = SimFiles::new(1);
        let (env, _) = Env::simulated(1);
        let env = Env {
            files: Arc::new(files.clone()),
            ..env
        };
        Machine { files, env }
    }

    fn recover(&self, accept_data_loss: bool) -> Result<(RecoveredLog, Vec<u64>), RecoveryError> {
        let options = LocalOptions {
            segment_size_bytes: 64 * 1024,
            first_segment_size_bytes: 64 * 1024,
            segment_size_bytes_min: 64 * 1024,
            threads: false,
            ..LocalOptions::default()
        };
        let home = LogHome::from(LocalHome::open("/db", &self.env, options)?);
        let options = RecoveryOptions {
            lanes: WORKERS,
            lane: LaneConfig {
                buffer_size_bytes: 8192,
                blocks_in_flight_max: Some(1),
                allocation_limit: None,
            },
            accept_data_loss,
            lease: logstead_wal::lease::LeaseOptions::default(),
        };
        let mut survivors = Vec::new();
        let recovered = recovery::open(&home, &self.env, &options, &mut |csn, _| {
            survivors.push(csn.0);
            Ok(())
        })?;
        Ok((recovered, survivors))
    }

    fn start(&self, options: &CommitOptions) -> Server {
        let (log, survivors) = self.recover(false).expect("recovers");
        let path = CommitPath::new(
            options,
            usize::from(WORKERS),
            log.lanes,
            log.next_csn,
            &self.env,
        );
        Server {
            path: path.expect("starts no thread"),
            survivors,
        }
    }

    fn segment(lane: u16) -> PathBuf {
        PathBuf::from(format!("/db/log/lane-{lane:04}/000000000000.seg"))
    }

    /// The headers of a lane's blocks.
    fn blocks(&self, lane: u16) -> Vec<Header> {
        let mut headers = Vec::new();
        let look = |bytes: &mut Vec<u8>| {
            let blocks = bytes.chunks(BLOCK).map(Header::decode);
            headers.extend(blocks.map_while(|decoded| decoded.ok().map(|(header, _)| header)));
        };
        let segment = Machine::segment(lane);
        self.files.tamper(&segment, look).expect("it is there");
        headers
    }
}

impl Server {
    /// A transaction of this worker, up to Precommitted.
    fn precommit(&self, worker: u16) -> Csn {
        let (path, id) = (&self.path, WorkerId(worker));
        let place = path.room(id, 4, &mut RoomRequest::default()).expect("room");
        let mut dependency_set = path.new_dependency_set();
        let entrance = path.enter(place, &mut dependency_set);
        let drawn = path.draw(id);
        let csn = drawn.0;
        let body = PushBody::Inline(&[7; 4]);
        let pushed = path.push(id, entrance, drawn, &mut dependency_set, body, 0);
        path.precommitted(id, &pushed);
        csn
    }

    /// The same, acknowledged.
    fn commit(&self, worker: u16) -> Csn {
        let csn = self.precommit(worker);
        for worker in 0..WORKERS {
            self.path.idle(WorkerId(worker), true, None);
        }
        assert!(
            self.path.is_reached(&CommitWait::of(csn)),
            "{csn} is Committed"
        );
        csn
    }

    fn horizon(&self) -> Csn {
        self.path.csns().get()
    }
}

/// Of every lane, its last acknowledged block is lost, after the others have gone on.
#[test]
fn what_was_acknowledged_and_is_lost_is_missed() {
    for protocol in [ProtocolKind::Autonomous, ProtocolKind::GroupedLanes] {
        for tracking in Tracking::ALL {
            for last in 0..WORKERS {
                let machine = Machine::new();
                let server = machine.start(&commit_options(protocol, tracking));
                for worker in 0..WORKERS {
                    server.commit(worker);
                }
                let lost = server.commit(last);
                for other in (0..WORKERS).filter(|worker| *worker != last) {
                    server.commit(other);
                }
                drop(server);
                let zero = |bytes: &mut Vec<u8>| bytes[BLOCK..2 * BLOCK].fill(0);
                machine
                    .files
                    .tamper(&Machine::segment(last), zero)
                    .expect("it is there");
                let Err(RecoveryError::Corrupt(found)) = machine.recover(false).map(drop) else {
                    panic!("{protocol:?}, {tracking:?}, lane {last}: it starts");
                };
                assert_eq!((found.lane, found.block), (LaneId(last), BlockNo(1)));
                assert!(found.proof.contains(&format!("CSN {lost},")), "{found}");
                let (_, survivors) = machine.recover(true).expect("the loss is accepted");
                assert_eq!(survivors, (1..lost.0).collect::<Vec<_>>());
            }
        }
    }
}

/// Workers go over to another lane; the one that they have left loses its last block.
#[test]
fn a_lane_that_is_used_no_more_is_held_to_it_too() {
    let machine = Machine::new();
    let options = commit_options(ProtocolKind::GroupedLanes, Tracking::Exact);
    assert!(options.moves_lanes());
    let server = machine.start(&options);
    for worker in 0..WORKERS {
        server.commit(worker);
    }
    assert!(server.path.use_lanes(1));
    for worker in 0..WORKERS {
        server.commit(worker);
    }
    assert_eq!(machine.blocks(2).len(), 1, "nobody writes there any more");
    drop(server);
    let (_, survivors) = machine.recover(false).expect("nothing is lost");
    assert_eq!(survivors, [1, 2, 3, 4, 5, 6]);
    let machine = {
        let machine = Machine::new();
        let server = machine.start(&options);
        (0..WORKERS).for_each(|worker| {
            server.commit(worker);
        });
        server.path.use_lanes(1);
        server.commit(0);
        machine
    };
    let rot = |bytes: &mut Vec<u8>| bytes[90] ^= 1;
    machine
        .files
        .tamper(&Machine::segment(2), rot)
        .expect("it is there");
    let Err(RecoveryError::Corrupt(found)) = machine.recover(false).map(drop) else {
        panic!("it starts")
    };
    // Nobody knows whether it was in lane 1, whose blocks were sealed before.
    let found = found.to_string();
    let rotten = "block 0 of lane 2 at segment 0 offset 0: wrong checksum of a block's payload";
    assert!(found.contains(rotten), "{found}");
    assert!(found.contains("CSN 3,"), "{found}");
}

/// A block records what was published when it was sealed, and that is as far as everything was durable: never its own
/// entries.
#[test]
fn blocks_record_the_horizon_of_their_sealing() {
    let machine = Machine::new();
    let server = machine.start(&commit_options(ProtocolKind::Autonomous, Tracking::Exact));
    assert_eq!(server.horizon(), Csn(1));
    for round in 0..4 {
        for worker in 0..WORKERS {
            let before = server.horizon();
            let csn = server.commit(worker);
            assert_eq!(before, csn, "everything before it was acknowledged");
            let blocks = machine.blocks(worker);
            assert_eq!(blocks.len(), round + 1);
            let last = blocks[round];
            assert_eq!((last.horizon, last.csn_lowest), (before, csn));
        }
    }
}

/// In a pause one block without entries records what nobody has recorded, and whoever follows the log sees all of it.
#[test]
fn the_horizon_of_a_pause_is_recorded_once() {
    let machine = Machine::new();
    let server = machine.start(&commit_options(ProtocolKind::Autonomous, Tracking::Exact));
    assert!(!server.path.record_horizon(), "nothing was committed");
    let blocks = || {
        let lanes = (0..WORKERS).map(|lane| machine.blocks(lane));
        lanes.flatten().collect::<Vec<Header>>()
    };
    let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).expect("opens"));
    let mut follower = Follower::open(&home).expect("follows");
    let mut last = Csn(0);
    for pause in 1..=3 {
        (0..WORKERS).for_each(|worker| last = server.commit(worker));
        let mut round = || {
            let round = follower.round(&mut |_, _| Ok(()));
            round.expect("a round").next
        };
        assert_eq!(round(), last, "the last one is not told of");
        assert!(server.path.record_horizon());
        assert!(!server.path.record_horizon(), "it is recorded");
        assert_eq!(round(), last.next());
        let void = blocks().into_iter().filter(|block| block.entries == 0);
        let horizons: Vec<Csn> = void.map(|block| block.horizon).collect();
        assert_eq!(horizons.len(), pause);
        assert_eq!(horizons.iter().max(), Some(&last.next()));
    }
    drop((follower, server));
    assert_eq!(machine.recover(false).expect("recovers").1.len(), 9);
}

/// A thread looks for pauses. It is woken by the first commit after one.
#[test]
fn pauses_are_found() {
    let machine = Machine::new();
    let options = CommitOptions {
        threads: true,
        horizon_pause: Some(std::time::Duration::from_millis(1)),
        ..commit_options(ProtocolKind::Autonomous, Tracking::Exact)
    };
    let server = machine.start(&options);
    let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).expect("opens"));
    let mut follower = Follower::open(&home).expect("follows");
    for _ in 0..10 {
        let last = server.commit(1);
        while follower.round(&mut |_, _| Ok(())).expect("a round").next <= last {
            std::thread::yield_now();
        }
    }
    let voids = machine
        .blocks(0)
        .iter()
        .chain(&machine.blocks(1))
        .chain(&machine.blocks(2))
        .filter(|block| block.entries == 0)
        .count();
    assert_eq!(voids, 10, "one a pause");
}

/// Who has drawn and not pushed holds back what the others record, and so a crash that takes his entry leaves no gap
/// below that.
#[test]
fn who_is_between_draw_and_push_holds_the_recorded_horizon_back() {
    let machine = Machine::new();
    machine.files.set_loss(CrashLoss::All);
    let server = machine.start(&commit_options(ProtocolKind::Autonomous, Tracking::Exact));
    server.commit(0);
    let (csn, reservation) = server.path.draw(WorkerId(0));
    assert_eq!(csn, Csn(2));
    let others: Vec<Csn> = [1, 2, 1, 2].map(|worker| server.commit(worker)).to_vec();
    assert_eq!(others, [3, 4, 5, 6].map(Csn));
    for lane in [1, 2] {
        let recorded = machine.blocks(lane).into_iter().map(|block| block.horizon);
        assert!(recorded.into_iter().all(|horizon| horizon <= csn));
    }
    machine.files.reboot();
    std::mem::forget(reservation);
    drop(server);
    let (log, survivors) = machine
        .recover(false)
        .expect("nothing acknowledged is lost");
    assert_eq!(survivors, [1, 3, 4, 5, 6]);
    // The next life begins above the gap: what it records is above it too, and says nothing of it.
    let options = commit_options(ProtocolKind::Autonomous, Tracking::Exact);
    assert_eq!(log.next_csn, Csn(7));
    drop(log);
    let server = machine.start(&options);
    assert_eq!(server.horizon(), Csn(7));
    server.commit(0);
    server.commit(1);
    drop(server);
    let server = machine.start(&options);
    assert_eq!(server.survivors, [1, 3, 4, 5, 6, 7, 8]);
}
