//! The server is at work while its log is read: between any two requests of the follower anything may happen.

use super::rig::Machine;
use super::rig::beside::{Beside, Work};
use super::rig::forge::{Arrives, Forge, Tx};
use super::streamed::Transport;
use super::{Dice, Receiver, from_to, start};
use logstead_home::{LocalHome, LogHome, MemoryHome};
use logstead_types::{Csn, Epoch};
use logstead_wal::EntryDependencies;
use logstead_wal::recovery::RecoveryError;
use logstead_wal::recovery::follow::{FollowError, Follower};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One step of a server that has several blocks on their way, which arrive in any order, and lanes that steal.
fn step(home: &MemoryHome, work: &mut Work, dice: &mut Dice) {
    let lanes = work.server.log.lanes.len();
    let lane = dice.below(lanes);
    match dice.below(11) {
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
        7 => {
            work.server.log.lanes[lane].record_horizon();
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

/// Everything that is on its way arrives.
fn settle_all(home: &MemoryHome, work: &mut Work) {
    loop {
        (0..work.server.log.lanes.len()).for_each(|lane| work.send(lane));
        if !home.complete() {
            break;
        }
        work.settle();
    }
    work.settle();
}

/// What happens beside the follower.
struct TestWriter {
    work: Work,
    dice: Dice,
    /// Steps of the server that are left in this round.
    left: usize,
    most: usize,
}

/// Follows a busy server through several lives, by its stream if there is one. Gives how many entries were handed over,
/// and how often entries above a
/// gap were among them.
pub(super) fn follow(
    seed: u64,
    mut transport: Option<&mut Transport>,
) -> Result<(usize, usize), String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let memory = MemoryHome::new(32 << 10);
    let work = Work::new(start(&memory, 1 + dice.below(4) as u16));
    let writer = Arc::new(Mutex::new(Some(TestWriter {
        work,
        most: 1 + dice.below(12),
        dice,
        left: 0,
    })));
    memory.set_paused(true);
    let (beside, memory_beside) = (Arc::clone(&writer), memory.clone());
    let from = Beside::new(&LogHome::from(memory.clone()), move |_| {
        let mut writer = beside.lock();
        let Some(TestWriter {
            work,
            dice,
            left,
            most,
        }) = &mut *writer
        else {
            return;
        };
        let steps = dice.below(*most + 1).min(*left);
        *left -= steps;
        (0..steps).for_each(|_| step(&memory_beside, work, dice));
    });
    let home = from.home();
    let mut follower = Follower::open(&home).map_err(|error| error.to_string())?;
    let mut given = Receiver::default();
    // What earlier lives have left, and how often that has gaps.
    let (mut survivors, mut gaps) = (Vec::new(), 0);
    for _ in 0..3 {
        let base = {
            let writer = writer.lock();
            writer
                .as_ref()
                .map_or(0, |writer| writer.work.server.log.next_csn.get())
        };
        if let (Some(transport), Some(writer)) = (&mut transport, &*writer.lock()) {
            transport.connect(&writer.work.server);
        }
        for _ in 0..12 {
            if let Some(writer) = &mut *writer.lock() {
                writer.left = 60;
            }
            let progress = match &mut transport {
                None => given
                    .round(&mut follower)
                    .map_err(|error| error.to_string())?,
                Some(transport) => {
                    if let Some(TestWriter { work, dice, .. }) = &mut *writer.lock() {
                        for _ in 0..dice.below(20) {
                            step(&memory, work, dice);
                            transport.carry(&work.server);
                        }
                    }
                    transport.round(&mut given, &mut follower)?
                }
            };
            let writer = writer.lock();
            let committed = writer.as_ref().map(|writer| &writer.work.committed);
            let live: Vec<u64> = given.0.iter().copied().filter(|csn| *csn >= base).collect();
            if live != (base..progress.next.get().max(base)).collect::<Vec<_>>() {
                return Err(format!("not all up to {}: {live:?}", progress.next));
            }
            if let Some(early) = live
                .iter()
                .find(|csn| committed.is_none_or(|all| !all.contains(csn)))
            {
                return Err(format!("{early} is not committed"));
            }
        }
        // The server dies, with whatever is on its way, and is started again.
        let Some(TestWriter {
            work,
            mut dice,
            most,
            ..
        }) = writer.lock().take()
        else {
            return Err("no server".to_owned());
        };
        let acknowledged: BTreeSet<u64> = work.committed.clone();
        drop(work);
        memory.crash();
        for _ in 0..dice.below(3) {
            // Nobody is there: nothing more is handed over than was durable.
            given
                .round(&mut follower)
                .map_err(|error| error.to_string())?;
        }
        let server = start(&memory, 1 + dice.below(4) as u16);
        survivors.clone_from(&server.survivors);
        if given.0 != survivors[..given.0.len().min(survivors.len())] {
            return Err(format!("{:?} is no prefix of {survivors:?}", given.0));
        }
        if let Some(lost) = acknowledged.iter().find(|csn| !survivors.contains(csn)) {
            return Err(format!("{lost} was acknowledged and is lost"));
        }
        gaps += usize::from(
            survivors
                .last()
                .is_some_and(|last| *last != survivors.len() as u64),
        );
        memory.set_paused(true);
        let work = Work::new(server);
        *writer.lock() = Some(TestWriter {
            work,
            dice,
            left: 0,
            most,
        });
    }
    let mut guard = writer.lock();
    if let Some(TestWriter { work, .. }) = &mut *guard {
        settle_all(&memory, work);
        memory.set_paused(false);
        assert!(work.server.log.lanes[0].record_horizon());
        survivors.extend(&work.committed);
    }
    drop(guard);
    given
        .round(&mut follower)
        .map_err(|error| error.to_string())?;
    given
        .round(&mut follower)
        .map_err(|error| error.to_string())?;
    if given.0 != survivors {
        return Err(format!("{:?} instead of {survivors:?}", given.0));
    }
    let progress = follower.progress();
    if progress.entries != given.0.len() as u64 || progress.waiting != 0 {
        return Err(format!("{progress:?} of {}", given.0.len()));
    }
    *writer.lock() = None;
    memory.crash();
    Ok((given.0.len(), gaps))
}

/// Blocks arrive late and in any order, lanes steal, servers die with blocks on their way and are started again with
/// other lanes.
#[test]
fn a_busy_server_is_followed_through_its_lives() {
    let seeds: u64 = match std::env::var("LOGSTEAD_SEEDS") {
        Ok(seeds) => seeds.parse().unwrap(),
        Err(_) => 60,
    };
    let (mut entries, mut gaps, mut wrong) = (0, 0, Vec::new());
    for seed in 1..=seeds {
        match follow(seed, None) {
            Ok((given, with_gaps)) => {
                entries += given;
                gaps += with_gaps;
            }
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {seeds}: {:?}",
        wrong.len(),
        wrong.first()
    );
    assert!(
        entries as u64 > 50 * seeds && gaps as u64 > seeds / 2,
        "{entries} {gaps}"
    );
}

/// Two transactions, one after the other, in two lanes, at any two places of a round: what one lane tells of the other
/// is no loss there, though that was read before.
#[test]
fn what_comes_while_lanes_are_read_is_no_loss() {
    let (mut runs, mut late) = (0, 0);
    for (first, second) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        for at in 0.. {
            let mut asked = 0;
            for then in at.. {
                let memory = MemoryHome::new(32 << 10);
                let mut work = Work::new(start(&memory, 3));
                (0..3).for_each(|lane| work.commit(lane, &[lane]));
                let home = work.server.home.clone();
                let work = Arc::new(Mutex::new(work));
                let beside = Arc::clone(&work);
                let from = Beside::new(&home, move |request| {
                    let mut work = beside.lock();
                    if request == at {
                        work.commit(first, &[5]);
                        // Its block tells of the one before.
                        work.commit(second, &[4]);
                    }
                    if request == then {
                        work.commit(second, &[5]);
                    }
                });
                let home = from.home();
                let mut follower = Follower::open(&home).unwrap();
                let mut given = Receiver::default();
                given.take(&mut follower);
                asked = asked.max(from.requests());
                let progress = given.take(&mut follower);
                assert_eq!(given.0, from_to(1, progress.next.get() - 1), "{at} {then}");
                late += usize::from(given.0.len() > 3);
                let last = {
                    let work = work.lock();
                    assert!(work.server.log.lanes[0].record_horizon());
                    work.server.horizon(u64::MAX).min(3 + 3)
                };
                given.take(&mut follower);
                assert!(
                    given.0.len() as u64 >= 3 && given.0.len() as u64 <= last,
                    "{at} {then}"
                );
                runs += 1;
                if then >= asked {
                    break;
                }
            }
            if at >= asked {
                break;
            }
        }
    }
    assert!(runs > 150 && late > 100, "{runs} {late}");
}

/// A round that fails anywhere is repeated, and goes on with what was not handed over.
#[test]
fn a_round_is_repeated_after_an_error() {
    for at in 0.. {
        let memory = MemoryHome::new(32 << 10);
        let mut work = Work::new(start(&memory, 3));
        (0..100).for_each(|csn| work.commit(csn % 3, &[csn % 7]));
        assert!(work.server.log.lanes[1].record_horizon());
        let (home, refusing) = (work.server.home.clone(), memory.clone());
        let from = Beside::new(&home, move |request| {
            if request == at {
                refusing.set_presence(logstead_home::Availability::Refusing);
            }
        });
        let home = from.home();
        let mut given = Receiver::default();
        let mut failures = 0;
        let mut follower = loop {
            match Follower::open(&home) {
                Ok(follower) => break follower,
                Err(FollowError::Log(RecoveryError::Home(_))) => failures += 1,
                Err(error) => panic!("at {at}: {error}"),
            }
            memory.set_presence(logstead_home::Availability::Up);
        };
        while let Err(error) = given.round(&mut follower) {
            assert!(
                matches!(error, FollowError::Log(RecoveryError::Home(_))),
                "{error}"
            );
            failures += 1;
            memory.set_presence(logstead_home::Availability::Up);
        }
        assert_eq!(given.0, from_to(1, 100), "at {at}");
        let asked = from.requests();
        assert_eq!(failures, u32::from(at < asked), "at {at} of {asked}");
        if at >= asked {
            break;
        }
    }
}

/// The receiver fails, and is asked again.
#[test]
fn what_was_not_taken_comes_again() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 2));
    (0..20).for_each(|csn| work.commit(csn % 2, &[csn % 7]));
    assert!(work.server.log.lanes[1].record_horizon());
    let mut follower = Follower::open(&work.server.home).unwrap();
    let (mut given, mut failures) = (Vec::new(), 0);
    loop {
        let round = follower.round(&mut |csn, _| {
            if csn.get() % 5 == 0 && failures < csn.get() / 5 {
                failures += 1;
                return Err("not now".into());
            }
            given.push(csn.get());
            Ok(())
        });
        match round {
            Ok(progress) => {
                assert_eq!((progress.next, progress.entries), (Csn(21), 20));
                break;
            }
            Err(FollowError::Log(RecoveryError::Apply { csn, .. })) => {
                assert_eq!(csn.get() % 5, 0);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((given, failures), (from_to(1, 20), 4));
}

/// One lane is far ahead of the other in what it holds: nothing of it is read before it is due.
#[test]
fn little_is_kept_of_a_lane_that_is_ahead() {
    let memory = MemoryHome::new(4 << 20);
    let mut work = Work::new(start(&memory, 2));
    (0..1600).for_each(|csn| work.commit(usize::from(csn >= 800), &[csn % 7]));
    assert!(work.server.log.lanes[0].record_horizon());
    let mut follower = Follower::open(&work.server.home).unwrap();
    let mut given = Receiver::default();
    let progress = given.take(&mut follower);
    assert_eq!(given.0, from_to(1, 1600));
    // A batch of each lane has some 200 entries.
    assert!(progress.waiting_most < 450, "{progress:?}");
}

/// A lane was read to its end, and then the server goes on in it and in others: these are not read any further than to
/// what tells that something is missing.
#[test]
fn little_is_kept_of_what_comes_meanwhile() {
    for at in 0..4 {
        let memory = MemoryHome::new(4 << 20);
        let mut work = Work::new(start(&memory, 2));
        (0..4).for_each(|csn| work.commit(csn % 2, &[csn % 7]));
        let home = work.server.home.clone();
        let work = Arc::new(Mutex::new(work));
        let (beside, begun) = (Arc::clone(&work), Arc::new(AtomicUsize::new(usize::MAX)));
        let begin = Arc::clone(&begun);
        let from = Beside::new(&home, move |request| {
            if begin.load(Ordering::SeqCst).checked_add(at) == Some(request) {
                (0..1200).for_each(|csn| beside.lock().commit(csn % 2, &[csn % 7]));
            }
        });
        let home = from.home();
        let mut follower = Follower::open(&home).unwrap();
        let mut given = Receiver::default();
        given.take(&mut follower);
        begun.store(from.requests(), Ordering::SeqCst);
        for _ in 0..3 {
            given.take(&mut follower);
        }
        assert!(work.lock().server.log.lanes[0].record_horizon());
        let progress = given.take(&mut follower);
        assert_eq!(given.0, from_to(1, 1204), "at {at}");
        // Each lane has some 600 entries, and a batch 200.
        assert!(progress.waiting_most < 450, "at {at}: {progress:?}");
    }
}

/// What is above the horizon waits, and no more is read of any lane than may tell of a higher one.
#[test]
fn what_no_horizon_covers_waits() {
    let memory = MemoryHome::new(4 << 20);
    let mut work = Work::new(start(&memory, 2));
    memory.set_paused(true);
    // 1 is on its way, and everything else arrives.
    assert!(work.write(0, &[0], false));
    work.send(0);
    for csn in 2..=500 {
        assert!(work.write(1, &[csn % 3], false));
        work.send(1);
        assert!(memory.complete_at(1));
        work.settle();
    }
    let home = work.server.home.clone();
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    for _ in 0..3 {
        let progress = given.take(&mut follower);
        assert_eq!(
            (progress.next, progress.waiting, progress.waiting_most),
            (Csn(1), 499, 499)
        );
    }
    assert!(memory.complete());
    memory.set_paused(false);
    work.settle();
    // It is there, but nobody has told that it is durable.
    assert_eq!(given.take(&mut follower).next, Csn(1));
    assert!(work.server.log.lanes[1].record_horizon());
    let progress = given.take(&mut follower);
    assert_eq!((progress.next, progress.waiting), (Csn(501), 0));
    assert_eq!(given.0, from_to(1, 500));
}

/// Somebody else tells the horizon, of the epoch that is read.
#[test]
fn a_horizon_may_come_from_elsewhere() {
    let memory = MemoryHome::new(32 << 10);
    let mut work = Work::new(start(&memory, 2));
    (0..20).for_each(|csn| work.commit(csn % 2, &[csn % 7]));
    let mut follower = Follower::open(&work.server.home).unwrap();
    let mut given = Receiver::default();
    assert_eq!(given.take(&mut follower).next, Csn(20));
    let epoch = work.server.log.epoch;
    follower.learn(Epoch(epoch.get() + 1), Csn(21));
    assert_eq!(given.take(&mut follower).next, Csn(20));
    follower.learn(epoch, Csn(21));
    assert_eq!(given.take(&mut follower).next, Csn(21));
    assert_eq!(given.0, from_to(1, 20));
}

/// A block that was durable is damaged before it was read: that is no end of its lane.
#[test]
fn a_lost_block_is_named() {
    let machine = Machine::new(1);
    let server = machine.start(2).unwrap();
    (1..=6).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
    let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
    let mut follower = Follower::open(&home).unwrap();
    let mut given = Receiver::default();
    given.take(&mut follower);
    (7..=10).for_each(|csn| assert!(server.commit((csn % 2) as u16, csn)));
    // The fifth block of lane 1, which holds 9.
    let damage = |bytes: &mut Vec<u8>| bytes[4 * 4096 + 200] ^= 1;
    machine
        .files
        .tamper(&Machine::segment(1, 0), damage)
        .unwrap();
    // 10's block tells of 9. The round that reads it has learnt that too late, the next one is sure.
    assert_eq!(given.take(&mut follower).next, Csn(9));
    let error = given.round(&mut follower).unwrap_err().to_string();
    assert!(
        error.contains("lane 1, block 4") && error.contains("payload"),
        "{error}"
    );
    assert_eq!(given.0, from_to(1, 8));
}

/// A block can be read, and a crash takes it back; the next server may draw its CSN again. `later`: a later one has
/// come, and survives.
#[test]
fn what_a_crash_takes_back_was_never_handed_over() {
    for later in [false, true] {
        let machine = Machine::new(1);
        let server = machine.start(2).unwrap();
        let mut forge = Forge::new(server.home.clone(), &server.log);
        let tx = |csn| Tx {
            csn,
            deps: EntryDependencies::default(),
            side: false,
        };
        forge.block(0, 0, &[tx(1)], Arrives::Whole);
        forge.block(1, 0, &[tx(2)], Arrives::Whole);
        forge.horizon = Csn(3);
        forge.block(0, 1, &[tx(3)], Arrives::Whole);
        if later {
            forge.block(1, 1, &[tx(4)], Arrives::Whole);
        }
        let home = LogHome::from(LocalHome::open_beside("/db", &machine.env).unwrap());
        let mut follower = Follower::open(&home).unwrap();
        let mut given = Receiver::default();
        let progress = given.take(&mut follower);
        let waiting = 1 + usize::from(later);
        assert_eq!((progress.next, progress.waiting), (Csn(3), waiting));
        drop((forge, server));
        let take_back = |bytes: &mut Vec<u8>| bytes[4096..8192].fill(0);
        machine
            .files
            .tamper(&Machine::segment(0, 0), take_back)
            .unwrap();
        let server = machine.start(2).unwrap();
        let mut survivors = vec![1, 2];
        survivors.extend(later.then_some(4));
        assert_eq!(server.survivors, survivors);
        // Another transaction, in another lane; without a later one it has the CSN of the one that was taken back.
        let next = server.log.next_csn;
        assert_eq!(next, Csn(if later { 5 } else { 3 }));
        assert!(server.commit(1, next.get()) && server.lane(0).record_horizon());
        let progress = given.take(&mut follower);
        assert_eq!((progress.next, progress.waiting), (next.next(), 0));
        survivors.push(next.get());
        assert_eq!(given.0, survivors);
        assert_eq!(progress.entries, survivors.len() as u64);
    }
}
