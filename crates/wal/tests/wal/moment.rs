//! Who reads a log beside a running server reads one moment of it: whatever the server does between any two of the
//! reader's requests.

use crate::rig;

use logstead_env::{Env, RealClock};
use logstead_home::{LocalHome, LogHome, MemoryHome, NamedValues, Position};
use logstead_types::{DatabaseId, Epoch, LaneId};
use logstead_wal::copy::{Destination, TailCopy};
use logstead_wal::inspect::{self, manifest_of};
use logstead_wal::manifest::{self, Manifest};
use logstead_wal::recovery::{self, RecoveryError, RecoveryOptions};
use parking_lot::Mutex;
use rig::beside::{Beside, Work};
use rig::{Machine, Server, Taken, options};
use std::collections::BTreeSet;
use std::sync::Arc;

const PLACE: Destination = Destination {
    database: DatabaseId(77),
    epoch: Epoch(5),
    lane: LaneId(9),
    rest: None,
};

/// What is in a copy of the tail: a server is started on it.
fn copy(from: &LogHome) -> Vec<u64> {
    let manifest = manifest_of(from).unwrap();
    let to = MemoryHome::new(256 << 10);
    let target = LogHome::from(to.clone());
    let tail = TailCopy::read(from, &manifest, &RealClock::new(), &target, PLACE).unwrap();
    let tail = tail.finish().unwrap();
    let manifest = Manifest {
        epoch: Epoch(PLACE.epoch.get() + 1),
        marks: tail.parts().map(|part| part.mark.clone()).collect(),
        ..Manifest::first(PLACE.database)
    };
    to.put_if_absent(manifest::NAME, &manifest.encode())
        .unwrap();
    let to = LogHome::from(to);
    let (env, _) = Env::simulated(1);
    let mut taken = Taken::default();
    recovery::open_with(&to, &env, &options(), false, &mut taken).unwrap();
    taken.survivors
}

/// A server in memory.
fn server(lanes: u16) -> (MemoryHome, Work) {
    let home = MemoryHome::new(32 << 10);
    let (env, _) = Env::simulated(1);
    let options = RecoveryOptions { lanes, ..options() };
    let server = Server::open(LogHome::from(home.clone()), &env, &options, false).unwrap();
    (home, Work::new(server))
}

/// Two transactions, one after the other, in two lanes, at any two places of the reading: the second one never comes
/// without the first.
#[test]
fn an_entry_never_comes_without_its_predecessor_in_another_lane() {
    let (mut both, mut neither, mut runs) = (0, 0, 0);
    for (first, second) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        for at in 0.. {
            let mut asked = 0;
            for then in at.. {
                let (_, mut work) = server(3);
                (0..3).for_each(|lane| work.commit(lane, &[lane]));
                let home = work.server.home.clone();
                let before = work.committed.clone();
                let work = Arc::new(Mutex::new(work));
                let beside = Arc::clone(&work);
                let from = Beside::new(&home, move |request| {
                    let mut work = beside.lock();
                    if request == at {
                        work.commit(first, &[5]);
                    }
                    if request == then {
                        work.commit(second, &[5]);
                    }
                });
                let found = copy(&from.home());
                asked = from.requests();
                drop(from);
                let work = Arc::into_inner(work).expect("the reader is gone");
                let judged = work.into_inner().judge(&found, &before);
                assert_eq!(judged, Ok(()), "{first} at {at}, {second} at {then}");
                runs += 1;
                both += u32::from(found.contains(&5));
                neither += u32::from(!found.contains(&4));
                if then >= asked {
                    break;
                }
            }
            if at >= asked {
                break;
            }
        }
    }
    assert!(
        runs > 300 && both > 50 && neither > 50,
        "{runs} {both} {neither}"
    );
}

/// A small generator of numbers, so that a seed says all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % below
    }
}

/// One step of a server that has several blocks on their way, which arrive in any order, and lanes that steal.
fn step(home: &MemoryHome, work: &mut Work, dice: &mut Dice) {
    let lanes = work.server.log.lanes.len();
    let lane = dice.below(lanes);
    match dice.below(10) {
        0..4 => {
            let keys = [dice.below(3), dice.below(3)];
            let by_floor = dice.below(4) == 0;
            if !work.write(lane, &keys[..1 + dice.below(2)], by_floor) {
                work.send(lane);
            }
        }
        4..6 => work.send(lane),
        6 => {
            if work.steal(lane, dice.below(lanes)) > 0 {
                work.send(lane);
            }
        }
        _ => {
            let waiting = home.waiting();
            if waiting > 0 {
                home.complete_at(dice.below(waiting));
            }
        }
    }
    work.settle();
}

/// Steps that the server takes while a copy is made.
const STEPS: usize = 600;

/// A busy server, of which a copy is made, seed by seed.
#[test]
fn a_copy_of_a_busy_server_is_one_moment_of_it() {
    let seeds: u64 = match std::env::var("LOGSTEAD_SEEDS") {
        Ok(seeds) => seeds.parse().unwrap(),
        Err(_) => 150,
    };
    let (mut later, mut wrong) = (0, Vec::new());
    for seed in 1..=seeds {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (memory, mut work) = server(2 + dice.below(4) as u16);
        memory.set_paused(true);
        for _ in 0..dice.below(60) {
            step(&memory, &mut work, &mut dice);
        }
        let home = work.server.home.clone();
        let before = work.committed.clone();
        let most = 1 + dice.below(120);
        // A busy server, but not for ever.
        let state = Arc::new(Mutex::new((work, dice, STEPS)));
        let (beside, memory_beside) = (Arc::clone(&state), memory.clone());
        let from = Beside::new(&home, move |_| {
            let (work, dice, left) = &mut *beside.lock();
            let steps = dice.below(most).min(*left);
            *left -= steps;
            (0..steps).for_each(|_| step(&memory_beside, work, dice));
        });
        let found = copy(&from.home());
        drop(from);
        let state = Arc::into_inner(state).expect("the reader is gone");
        let (work, ..) = state.into_inner();
        later += usize::from(found.iter().any(|csn| !before.contains(csn)));
        if let Err(why) = work.judge(&found, &before) {
            wrong.push(format!("seed {seed}: {why}"));
        }
        memory.crash();
    }
    assert!(
        wrong.is_empty(),
        "{} of {seeds}: {:?}",
        wrong.len(),
        wrong.first()
    );
    assert!(later as u64 > seeds / 4, "{later}");
}

/// What `log verify` counts is one moment: with a server that acknowledges everything at once, nothing is there that
/// does not count, also where entries name predecessors in other lanes.
#[test]
fn verify_counts_one_moment() {
    for at in 0.. {
        let (_, mut work) = server(3);
        (0..6).for_each(|csn| work.commit(csn % 3, &[csn]));
        let home = work.server.home.clone();
        let work = Mutex::new(work);
        let from = Beside::new(&home, move |request| {
            if request >= at && request < at + 40 {
                let mut work = work.lock();
                let lanes = [request % 3, (request + 1 + request / 3 % 2) % 3];
                assert!(lanes.iter().all(|&lane| work.write(lane, &[6], false)));
                lanes.iter().for_each(|&lane| work.send(lane));
            }
        });
        let found = inspect::verify_home(&from.home()).unwrap();
        let asked = from.requests();
        let report = &found.report;
        assert_eq!(report.entries_dropped, 0, "at {at}");
        assert_eq!(
            report.entries,
            found.moment.get(),
            "at {at}: a prefix of all"
        );
        assert_eq!(found.next_csn, found.moment.next(), "at {at}");
        assert!(found.moment.get() >= 6, "at {at}");
        drop(from);
        if at >= asked {
            break;
        }
    }
}

/// A server that has died with a block on its way leaves a gap for ever: the reader does not wait for what is in it.
#[test]
fn a_gap_that_stays_is_not_waited_for() {
    let (memory, mut work) = server(2);
    (0..4).for_each(|csn| work.commit(csn % 2, &[csn]));
    memory.set_paused(true);
    // 5 is on its way. 6 hangs on it and is stored; 7 does not, and is stored.
    assert!(work.write(0, &[5], false));
    work.send(0);
    assert!(work.write(1, &[5], false) && work.write(1, &[6], false));
    work.send(1);
    assert!(memory.complete_at(1));
    work.settle();
    let home = work.server.home.clone();
    let from = Beside::new(&home, |_| {});
    assert_eq!(copy(&from.home()), [1, 2, 3, 4, 7]);
    let first = from.requests();
    let found = inspect::verify_home(&from.home()).unwrap();
    assert_eq!((found.report.entries, found.report.entries_dropped), (5, 1));
    assert_eq!((found.moment.get(), found.next_csn.get()), (7, 8));
    // Two passes, and the moment: of each lane a listing and a read each time.
    assert!(first <= 2 * 3 * 3, "{first} requests");
}

/// A block that is sealed while the last pass reads tells of a horizon that the moment has not: what was on its way
/// when that pass began is not lost.
#[test]
fn a_horizon_beyond_the_moment_is_no_loss() {
    let mut without = 0;
    for at in 0.. {
        let (memory, mut work) = server(2);
        (0..2).for_each(|lane| work.commit(lane, &[lane]));
        memory.set_paused(true);
        // 3 is on its way, and 4 is stored.
        assert!(work.write(0, &[5], false));
        work.send(0);
        assert!(work.write(1, &[6], false));
        work.send(1);
        assert!(memory.complete_at(1));
        let home = work.server.home.clone();
        let work = Mutex::new(work);
        let from = Beside::new(&home, move |request| {
            if request == at {
                memory.complete();
                memory.set_paused(false);
                let mut work = work.lock();
                work.settle();
                work.commit(1, &[4]);
            }
        });
        let found = copy(&from.home());
        assert!(
            found == [1, 2, 4] || found == [1, 2, 3, 4] || found == [1, 2, 3, 4, 5],
            "at {at}: {found:?}"
        );
        without += u32::from(found == [1, 2, 4]);
        if at >= from.requests() {
            break;
        }
    }
    assert!(without > 1, "{without}");
}

/// A dump shows what lies before the moment's ends, and says what of it came later: the rest is all there is up to the
/// moment.
#[test]
fn a_dump_marks_what_came_after_its_moment() {
    let mut later = 0;
    for at in 0.. {
        let (_, mut work) = server(2);
        (0..4).for_each(|csn| work.commit(csn % 2, &[csn]));
        let home = work.server.home.clone();
        let work = Mutex::new(work);
        let from = Beside::new(&home, move |request| {
            if request >= at && request < at + 9 {
                (0..2).for_each(|lane| work.lock().commit(lane, &[6]));
            }
        });
        let mut out = Vec::new();
        inspect::dump_home(&from.home(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (mut counted, mut marked) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(entry) = line.strip_prefix("  entry ") {
                let csn = entry.split(' ').next().unwrap().parse::<u64>().unwrap();
                match line.ends_with(" after the moment") {
                    true => marked.insert(csn),
                    false => counted.insert(csn),
                };
            }
        }
        let last = text.lines().last().unwrap();
        let moment = last.strip_prefix("the moment that was read: all lanes up to CSN ");
        let moment: u64 = moment.unwrap().parse().unwrap();
        assert_eq!(counted, (1..=moment).collect(), "at {at}");
        assert!(marked.iter().all(|csn| *csn > moment), "at {at}");
        later += marked.len();
        if at >= from.requests() {
            break;
        }
    }
    assert!(later > 0);
}

/// The server takes a checkpoint and removes the log before it, at any place of the reading: the reader begins again,
/// or says that something is missing. It never takes what is left for all.
#[test]
fn what_is_removed_meanwhile_is_no_earlier_end() {
    let (mut again, mut refused, mut anew) = (0, 0, 0);
    for reader in ["verify", "dump", "tail"] {
        for at in 0.. {
            let machine = Machine::new(1);
            let server = Arc::new(machine.start(2).unwrap());
            (1..=40).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
            let from = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
            let beside = Arc::clone(&server);
            let from = Beside::new(&from, move |request| {
                if request == at {
                    beside.checkpoint(41).unwrap();
                    // Segments are made of those that were removed.
                    (41..=80).for_each(|csn| assert!(beside.commit((csn % 2) as u16, csn)));
                }
            });
            if reader == "dump" {
                // Also where nothing says that a server is there.
                let mut out = Vec::new();
                inspect::dump_home(&from.home(), &mut out).unwrap();
                let text = String::from_utf8(out).unwrap();
                assert!(!text.contains("CORRUPT"), "at {at}: {text}");
                let last = text.lines().last().unwrap();
                let whole = [40, 80].map(|moment| last.ends_with(&format!(" {moment}")));
                assert!(whole.contains(&true), "at {at}: {last}");
                anew += usize::from(text.contains("once more"));
            } else if reader == "tail" {
                let manifest = manifest_of(&from.home()).unwrap();
                let to = LogHome::from(MemoryHome::new(256 << 10));
                match TailCopy::read(&from.home(), &manifest, &RealClock::new(), &to, PLACE) {
                    Ok(read) => {
                        let entries = read.finish().unwrap().entries;
                        assert!([40, 80].contains(&entries), "at {at}: {entries}");
                    }
                    Err(RecoveryError::Gone(_)) => refused += 1,
                    Err(error) => panic!("at {at}: {error}"),
                }
            } else {
                let found = inspect::verify_home(&from.home()).unwrap();
                let (base, report) = (found.report.checkpoint.get().max(1), &found.report);
                assert_eq!(report.entries, found.next_csn.get() - base, "at {at}");
                assert_eq!(report.entries_dropped, 0, "at {at}");
                // All of the one moment, or all of the other one.
                let next = if base == 41 { 81 } else { 41 };
                assert_eq!(found.next_csn.get(), next, "at {at}");
                again += u32::from(base == 41);
            }
            if at >= from.requests() {
                break;
            }
        }
    }
    assert!(
        again > 1 && refused > 1 && anew > 1,
        "{again} {refused} {anew}"
    );
}

/// A server that takes a checkpoint whenever it is looked at is too fast, and no log is corrupt because of that.
#[test]
fn who_is_too_slow_is_told_so() {
    for dumps in [false, true] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        (1..=4).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
        let from = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
        let next = Mutex::new(5);
        let from = Beside::new(&from, move |_| {
            let mut next = next.lock();
            assert!(server.commit((*next % 2) as u16, *next));
            *next += 1;
            server.checkpoint(*next).unwrap();
        });
        let failed = match dumps {
            false => inspect::verify_home(&from.home()).map(drop).unwrap_err(),
            true => match inspect::dump_home(&from.home(), &mut Vec::new()).unwrap_err() {
                inspect::InspectError::Log(error) => error,
                error => panic!("{error}"),
            },
        };
        assert!(matches!(failed, RecoveryError::TooFast(_)), "{failed}");
    }
}

/// A block that is on its way comes to one copy, and to another one never; then the next ones say that it is durable.
/// It is there, and no damage.
#[test]
fn a_block_that_has_come_to_another_copy_is_not_lost() {
    for at in 0.. {
        let (_, mut work) = server(1);
        (0..2).for_each(|csn| work.commit(0, &[csn]));
        let home = work.server.home.clone();
        let third = Position {
            segment: home.segments.list_segments(LaneId(0)).unwrap()[0].segment,
            offset: 2 * 4096,
        };
        let work = Mutex::new(work);
        let from = Beside::lacking(&home, Some((LaneId(0), third)), move |request| {
            if request == at {
                (2..5).for_each(|csn| work.lock().commit(0, &[csn]));
            }
        });
        let found = inspect::verify_home(&from.home()).unwrap();
        assert!([2, 5].contains(&found.report.entries), "at {at}");
        if at >= from.requests() {
            break;
        }
    }
}

/// Long lanes are read by threads, and all of them are.
#[test]
fn long_lanes_are_read_side_by_side() {
    let home = MemoryHome::new(4 << 20);
    let (env, _) = Env::simulated(1);
    let options = RecoveryOptions {
        lanes: 5,
        ..options()
    };
    let server = Server::open(LogHome::from(home), &env, &options, false).unwrap();
    let mut work = Work::new(server);
    (0..50).for_each(|csn| work.commit(csn % 5, &[csn % 7]));
    let home = work.server.home.clone();
    assert_eq!(copy(&home), (1..=50).collect::<Vec<_>>());
}
