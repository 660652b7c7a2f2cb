//! Where CSNs end: who would draw one is refused, before anything is promised; what was drawn is acknowledged, and
//! reading goes on.

use std::sync::Arc;

use logstead_commit::{CommitOptions, CommitPath, CommitWait, ProtocolKind, PushBody};
use logstead_env::{Clock, Env, SimClock};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId, WorkerId};
use logstead_wal::number_limits::{CSN_END, NumbersExhausted};
use logstead_wal::{Lane, LaneConfig, LaneStart, NoRoom, RoomRequest};

fn path(next: Csn) -> Arc<CommitPath> {
    let home = LogHome::from(MemoryHome::new(1 << 20));
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(1);
    let options = CommitOptions {
        protocol: ProtocolKind::Autonomous,
        workers_per_lane: 1,
        flush_unit_bytes: 1,
        threads: false,
        ..CommitOptions::default()
    };
    let lane = |number| {
        home.appends.open_lane(LaneId(number), 0).expect("opens");
        let start = LaneStart {
            database: DatabaseId(1),
            epoch: Epoch(1),
            lane: LaneId(number),
            first_segment: 0,
        };
        Lane::new(home.clone(), clock.clone(), start, LaneConfig::default())
    };
    let lanes = (0..2).map(lane).collect();
    CommitPath::new(&options, 2, lanes, next, &env).expect("starts no thread")
}

#[test]
fn commits_end_with_the_csns_and_reading_goes_on() {
    let path = path(Csn(CSN_END.0 - 3));
    let mut drawn = Vec::new();
    let refused = loop {
        let worker = WorkerId(drawn.len() as u16 % 2);
        match path.room(worker, 4, &mut RoomRequest::default()) {
            Ok(place) => {
                let mut dependency_set = path.new_dependency_set();
                let entrance = path.enter(place, &mut dependency_set);
                let drawn_now = path.draw(worker);
                let csn = drawn_now.0;
                let body = PushBody::Inline(&[7; 4]);
                let pushed = path.push(worker, entrance, drawn_now, &mut dependency_set, body, 0);
                path.precommitted(worker, &pushed);
                path.idle(worker, true, None);
                drawn.push(csn);
            }
            Err(refused) => break refused,
        }
        assert!(drawn.len() < 10, "it never refuses");
    };
    assert!(
        matches!(refused, NoRoom::UsedUp(NumbersExhausted::Csns)),
        "{refused}"
    );
    assert_eq!(drawn, [3, 2, 1].map(|before| Csn(CSN_END.0 - before)));
    for csn in &drawn {
        assert!(
            path.is_reached(&CommitWait::of(*csn)),
            "{csn} is acknowledged"
        );
    }
    assert_eq!(path.csns().get(), CSN_END);
    assert!(path.failure().is_none(), "the log goes on");
    // A transaction's state keeps two bits beside the CSN, a version's stamp one.
    assert_eq!(CSN_END.0 << 2 >> 2, CSN_END.0);
}
