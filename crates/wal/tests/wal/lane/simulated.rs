//! Random work on lanes over simulated homes, each crashed somewhere with blocks in flight: what was hardened is found
//! by recovery, each entry once, through several lives.

use logstead_env::{Clock, Env, Random, SimClock, SimRandom};
use logstead_home::simulated::{Fault, FaultRates, MODELS, Model, SimulatedOptions};
use logstead_home::{LogHome, SimulatedHome};
use logstead_types::Csn;
use logstead_wal::recovery::{self, RecoveryOptions};
use logstead_wal::{Cursor, EntryDependencies, FlushMode, Lane, LaneConfig, NoRoom};
use std::sync::Arc;

const LANES: u64 = 3;
const LIVES: usize = 3;

struct World {
    home: SimulatedHome,
    env: Env,
    random: SimRandom,
    /// While there is work; recovery is not what is tested here.
    faults: FaultRates,
    /// Every CSN that a lane has ever called hardened.
    hardened: Vec<u64>,
    next_csn: u64,
}

impl World {
    fn new(model: &Model, seed: u64, faults: FaultRates) -> World {
        let mut model = model.clone();
        // Segments fill up soon.
        model.appends_per_segment = model.appends_per_segment.min(10);
        model.segment_size_bytes = model.segment_size_bytes.min(96 << 10);
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(seed);
        let env = Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..env
        };
        let options = SimulatedOptions::new(model, seed);
        let home = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
        World {
            home: home.with_inline_writes(),
            env,
            random: SimRandom::new(seed),
            faults,
            hardened: Vec::new(),
            next_csn: 1,
        }
    }

    fn draw(&self, below: u64) -> u64 {
        self.random.u64() % below
    }

    /// Opens the log, and checks what it holds.
    fn open(&mut self) -> Vec<Lane> {
        let options = RecoveryOptions {
            lanes: LANES as u16,
            lane: LaneConfig {
                buffer_size_bytes: 8192,
                ..LaneConfig::default()
            },
            accept_data_loss: false,
            lease: logstead_wal::lease::LeaseOptions::default(),
        };
        let home = LogHome::from(self.home.clone());
        let mut found = Vec::new();
        let log = recovery::open(&home, &self.env, &options, &mut |csn, records| {
            assert!(records.iter().all(|byte| *byte == csn.get() as u8));
            found.push(csn.get());
            Ok(())
        })
        .expect("recovers");
        assert!(found.is_sorted_by(|a, b| a < b), "an entry found twice");
        for csn in &self.hardened {
            assert!(
                found.binary_search(csn).is_ok(),
                "{csn} was hardened and is gone"
            );
        }
        self.next_csn = self.next_csn.max(log.next_csn.get());
        log.lanes
    }

    /// One life: work, and a crash in the middle of it.
    fn live(&mut self) {
        let lanes = self.open();
        self.home.set_faults(self.faults);
        let mut pushed: Vec<(u64, usize, Cursor)> = Vec::new();
        for _ in 0..20 + self.draw(200) {
            let at = self.draw(LANES) as usize;
            let lane = &lanes[at];
            match self.draw(10) {
                0..4 => {
                    let len = 1 + self.draw(lane.inline_size_max() as u64 / 2) as usize;
                    match lane.room(len) {
                        Ok(room) => {
                            let csn = self.next_csn;
                            self.next_csn += 1;
                            let records = vec![csn as u8; len];
                            let end = lane
                                .push(room, Csn(csn), 0, &EntryDependencies::default(), &records)
                                .end;
                            pushed.push((csn, at, end));
                        }
                        Err(NoRoom::Full) => {
                            self.home.step();
                        }
                        Err(NoRoom::Failed(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                4 => {
                    lane.flush(FlushMode::Inline);
                }
                5 | 6 => {
                    lane.flush(FlushMode::Handoff);
                }
                7 => {
                    let victim = &lanes[self.draw(LANES) as usize];
                    lane.steal(victim, usize::MAX);
                }
                _ => {
                    self.home.step();
                }
            }
            for (lane, at) in lanes.iter().zip(0..) {
                let of_lane =
                    |&&(_, of, end): &&(u64, usize, Cursor)| of == at && end > lane.hardened();
                let lowest = pushed.iter().filter(of_lane).map(|(csn, _, _)| *csn).min();
                let first = lane.first_not_durable();
                assert_eq!(first, Csn(lowest.unwrap_or(u64::MAX)), "of lane {at}");
            }
        }
        let hardened = pushed
            .iter()
            .filter(|(_, at, end)| lanes[*at].hardened() >= *end);
        self.hardened.extend(hardened.map(|(csn, _, _)| *csn));
        self.home.set_faults(FaultRates::default());
        self.home.crash();
        self.home.reboot();
    }
}

fn explore(faults: FaultRates) {
    let seeds = std::env::var("LOGSTEAD_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20);
    let mut hardened = 0;
    for model in &MODELS {
        for seed in 0..seeds {
            println!("model {} seed {seed}", model.name);
            let mut world = World::new(model, seed, faults);
            for _ in 0..LIVES {
                world.live();
            }
            world.open();
            hardened += world.hardened.len();
        }
    }
    assert!(hardened > 0, "something hardened");
}

#[test]
fn t2_what_hardened_survives_crashes_of_simulated_homes() {
    explore(FaultRates::default());
}

#[test]
fn t2_what_hardened_survives_crashes_of_homes_with_faults() {
    let faults = FaultRates::default()
        .with(Fault::LostReply, 0.02)
        .with(Fault::Delay, 0.05)
        .with(Fault::Duplicate, 0.02)
        .with(Fault::Transient, 0.05);
    explore(faults);
}
