//! A random history of several transactions on one thread against a model: every commit is a new state of a map, every
//! snapshot sees the state at its CSN, through scans and both indexes; crashes keep a prefix.

use std::collections::BTreeMap;

use logstead_engine::{
    CommitOptions, EngineOptions, ExpectPresent, FlushMode, Guard, Isolation, SavepointId,
    Tracking, Txn, WriteError,
};
use logstead_home::MemoryHome;
use logstead_types::{Csn, WorkerId};

use crate::world::*;

type State = BTreeMap<i64, i64>;

struct Dice(u64);
impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

struct Session {
    txn: Txn,
    /// What it sees: the state at its snapshot and its own changes.
    sees: State,
    changes: BTreeMap<i64, Option<i64>>,
    savepoint: Option<(SavepointId, BTreeMap<i64, Option<i64>>, State)>,
}

fn check(world: &World, session: &mut Session, seed: u64) {
    session.txn.begin_statement();
    let expected: Vec<_> = session.sees.iter().map(|(k, b)| (*k, *b)).collect();
    assert_eq!(world.scan(&mut session.txn), expected, "seed {seed}");
    assert_eq!(
        world.walk(&mut session.txn, &world.by_key, false),
        expected,
        "seed {seed}"
    );
    let mut by_balance = world.walk(&mut session.txn, &world.by_balance, true);
    assert!(by_balance.is_sorted_by(|a, b| a.1 >= b.1), "seed {seed}");
    by_balance.sort_unstable();
    assert_eq!(by_balance, expected, "seed {seed}");
}

/// Two workers in mode `horizon`: what survives a crash is a prefix of what was committed.
fn prefix_world(home: MemoryHome) -> World {
    let options = EngineOptions {
        workers: 2,
        commit: CommitOptions {
            tracking: Tracking::Horizon,
            ..CommitOptions::default()
        },
        ..EngineOptions::default()
    };
    World::open_as(home, options).expect("opens")
}

fn run(seed: u64) {
    let mut dice = Dice(seed);
    let mut world = prefix_world(MemoryHome::new(4 << 20));
    let mut workers = vec![
        world.engine.worker(WorkerId(0)),
        world.engine.worker(WorkerId(1)),
    ];
    // The committed states, by the CSN that made them.
    let mut states: Vec<(Csn, State)> = vec![(Csn(0), State::new())];
    let mut sessions: Vec<Session> = Vec::new();
    for _ in 0..1500 {
        match dice.roll(100) {
            0..12 if sessions.len() < 5 => {
                let worker = &workers[dice.roll(2) as usize];
                let mut txn = worker.begin(Isolation::RepeatableRead);
                txn.snapshot();
                let sees = states.last().expect("a state").1.clone();
                sessions.push(Session {
                    txn,
                    sees,
                    changes: BTreeMap::new(),
                    savepoint: None,
                });
            }
            12..70 if !sessions.is_empty() => {
                let at = dice.roll(sessions.len() as u64) as usize;
                let session = &mut sessions[at];
                session.txn.begin_statement();
                let (k, b) = (dice.roll(12) as i64, dice.roll(50) as i64);
                let newest = &states.last().expect("a state").1;
                let guard = Guard::pin();
                let found = session
                    .txn
                    .get(&world.by_key, &key(k), &guard)
                    .expect_present()
                    .map(|r| (r.rid, r.version, balance(&r)));
                assert_eq!(
                    found.map(|f| f.2),
                    session.sees.get(&k).copied(),
                    "seed {seed}"
                );
                let (result, change) = match found {
                    None => (
                        session.txn.insert(&world.table, &row(k, b)).map(|_| ()),
                        Some(b),
                    ),
                    Some((rid, version, _)) if dice.roll(3) == 0 => {
                        (session.txn.delete(&world.table, rid, version), None)
                    }
                    Some((rid, version, _)) => (
                        session.txn.update(&world.table, rid, version, &row(k, b)),
                        Some(b),
                    ),
                };
                match result {
                    Ok(()) => {
                        session.changes.insert(k, change);
                        match change {
                            Some(b) => session.sees.insert(k, b),
                            None => session.sees.remove(&k),
                        };
                    }
                    Err(WriteError::Blocked(_)) => {
                        let others = sessions.iter().enumerate();
                        assert!(
                            others
                                .filter(|(i, _)| *i != at)
                                .any(|(_, s)| s.changes.contains_key(&k)
                                    || s.savepoint.as_ref().is_some_and(|p| p.1.contains_key(&k))),
                            "seed {seed}: blocked on {k} by nobody"
                        );
                    }
                    Err(WriteError::Unique { .. }) => {
                        assert!(newest.contains_key(&k), "seed {seed}: {k}")
                    }
                    Err(WriteError::Serialization | WriteError::SerializationDelete) => {
                        // First committer wins: this one must give up.
                        sessions.swap_remove(at).txn.abort();
                    }
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            70..74 if !sessions.is_empty() => {
                let at = dice.roll(sessions.len() as u64) as usize;
                let session = &mut sessions[at];
                match session.savepoint.take() {
                    None => {
                        let id = session.txn.savepoint();
                        session.savepoint =
                            Some((id, session.changes.clone(), session.sees.clone()));
                    }
                    Some((id, changes, sees)) => {
                        assert!(session.txn.rollback_to(id));
                        (session.changes, session.sees) = (changes, sees);
                    }
                }
            }
            74..84 if !sessions.is_empty() => {
                let at = dice.roll(sessions.len() as u64) as usize;
                check(&world, &mut sessions[at], seed);
            }
            84..93 if !sessions.is_empty() => {
                let at = dice.roll(sessions.len() as u64) as usize;
                let session = sessions.swap_remove(at);
                if dice.roll(5) == 0 {
                    session.txn.abort();
                    continue;
                }
                let receipt = commit(session.txn);
                if let Some(csn) = receipt.csn {
                    let mut state = states.last().expect("a state").1.clone();
                    for (k, change) in session.changes {
                        match change {
                            Some(b) => state.insert(k, b),
                            None => state.remove(&k),
                        };
                    }
                    states.push((csn, state));
                }
            }
            93..96 => {
                workers[dice.roll(2) as usize].flush(FlushMode::Inline);
            }
            96..99 => {
                workers[dice.roll(2) as usize].collect_garbage(dice.roll(20) as usize);
            }
            99 if dice.roll(4) == 0 => {
                // Crash: at least what was acknowledged is there, as a prefix.
                let horizon = world.engine.horizon();
                sessions.clear();
                workers.clear();
                let home = world.home.clone();
                drop(world);
                home.crash();
                world = prefix_world(home);
                workers = vec![
                    world.engine.worker(WorkerId(0)),
                    world.engine.worker(WorkerId(1)),
                ];
                let mut txn = workers[0].begin(Isolation::ReadCommitted);
                let found: State = world.scan(&mut txn).into_iter().collect();
                drop(txn);
                let at = states.iter().rposition(|(_, state)| *state == found);
                let at = at.unwrap_or_else(|| panic!("seed {seed}: not a prefix"));
                let needed = states
                    .iter()
                    .rposition(|(csn, _)| *csn < horizon)
                    .unwrap_or(0);
                assert!(at >= needed, "seed {seed}: acknowledged work is lost");
                states.truncate(at + 1);
            }
            _ => {}
        }
    }
    for session in &mut sessions {
        check(&world, session, seed);
    }
    sessions.clear();
    for worker in &workers {
        worker.flush(FlushMode::Inline);
    }
    for worker in &workers {
        while worker.collect_garbage(1000) {}
    }
    let rows = states.last().expect("a state").1.len();
    assert_eq!(
        world.by_key.entry_count(),
        rows,
        "seed {seed}: every surplus entry is collected"
    );
    assert_eq!(world.by_balance.entry_count(), rows, "seed {seed}");
    assert_eq!(
        world.table.row_count_estimate(),
        rows as u64,
        "seed {seed}: every rid came back"
    );
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 1..=40u64 {
        run(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
