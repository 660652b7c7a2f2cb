//! Everything goes wrong at random, for thousands of appends over many lives of a server; each life is ended by another
//! process that takes the lane over at a random moment, with the old one dead, or alive and writing.
//!
//! Judged after each life: what was told to be appended is there, once, in order; and once the fence has returned,
//! whatever the old writer is told was there already.

use super::rig::{self, LANE, TestWriter};
use logstead_env::{Random, SimRandom};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions, Rates};
use logstead_home::{HomeError, LaneAppends, LaneSegments, NamedValues};
use std::collections::VecDeque;
use std::time::Duration;

const LIVES: u64 = 6;

/// Appends that a writer makes as fast as it can. From then on it goes slowly: a lane of so many segments takes long to
/// list, and on a busy machine who fences it would never come up with who writes.
const HURRY: u64 = 3_000;

fn bucket(kind: u64, seed: u64) -> MemoryBucket {
    let options = match kind {
        0 => MemoryOptions::appendable(5 + seed % 9),
        1 => MemoryOptions {
            creates_in_two_steps: true,
            ..MemoryOptions::appendable(5 + seed % 9)
        },
        _ => MemoryOptions::plain(),
    };
    MemoryBucket::new(MemoryOptions { seed, ..options })
}

/// Writes until it is told to stop or cannot go on; gives how many appends were told to have succeeded.
fn write(writer: &mut TestWriter<'_>, random: &SimRandom, most: u64) -> u64 {
    let depth = writer.home.capabilities().appends_in_flight_max;
    let mut under_way = VecDeque::new();
    let mut told = 0;
    // No further one can be begun; those under way may have succeeded.
    let mut stopped = false;
    let mut failed = false;
    let mut begun = 0;
    loop {
        while begun < most && under_way.len() < depth && !stopped {
            let len = 80 + random.below(700) as usize;
            match writer.room(len).and_then(|()| writer.begin(len)) {
                Ok((_, answer)) => under_way.push_back(answer),
                Err(HomeError::Fenced(_)) => stopped = true,
                Err(error) => panic!("a lane fails because it is fenced only: {error}"),
            }
            begun += 1;
            if begun > HURRY {
                logstead_env::sleep(Duration::from_millis(1));
            }
        }
        let Some(answer) = under_way.pop_front() else {
            return told;
        };
        match answer.recv().expect("told").1 {
            Ok(()) => {
                assert!(!failed, "nothing succeeds behind what failed");
                told += 1;
            }
            Err(HomeError::Fenced(_)) => (stopped, failed) = (true, true),
            Err(error) => panic!("a lane fails because it is fenced only: {error}"),
        }
    }
}

/// One history; gives the number of appends that were told.
fn storm(kind: u64, seed: u64) -> u64 {
    let random = SimRandom::new(seed ^ 0xbad5_eed0 ^ kind << 32);
    let bucket = bucket(kind, seed);
    bucket.set_rates(Rates {
        not_now: random.below(60),
        vanishes: random.below(60),
        lost_reply: random.below(60),
        duplicate: random.below(60),
        delay: random.below(60),
        slow: random.below(200),
        truncated: random.below(60),
        short: random.below(60),
    });
    let mut total = 0;
    let mut lives = Vec::new();
    for life in 1..=LIVES {
        let first = life << 32;
        let old_home = rig::open(&bucket.handle(life as u32));
        let new_home = rig::open(&bucket.handle(100 + life as u32));
        let mut old = TestWriter::open(&old_home, life as u32, first);
        let before = random.below(60);
        let told = write(&mut old, &SimRandom::new(random.u64()), before);
        assert_eq!(told, before, "nobody fences yet");
        let dies = random.below(3) == 0;
        let (chain, told) = if dies {
            // What it has on its way stays in the network.
            for _ in 0..random.below(4) {
                let _unheard = old.begin(100);
            }
            drop(old_home);
            new_home.fence(LANE, first, "the next").expect("fences");
            (rig::chain(&new_home, life as u32, first), told)
        } else {
            let seed = random.u64();
            let late = random.below(40);
            std::thread::scope(|scope| {
                let writing = scope.spawn(|| write(&mut old, &SimRandom::new(seed), u64::MAX));
                for _ in 0..late {
                    // Time passes, in requests.
                    new_home.get("manifest").expect("reads");
                }
                new_home.fence(LANE, first, "the next").expect("fences");
                let chain = rig::chain(&new_home, life as u32, first);
                (chain, told + writing.join().expect("no panic"))
            })
        };
        // More may be there than was told, never less.
        assert!(
            u64::from(chain.blocks) >= told,
            "kind {kind} seed {seed} life {life}: {told} told, {chain:?}"
        );
        // Whatever is still in the network changes nothing.
        bucket.land_all();
        assert_eq!(
            rig::chain(&new_home, life as u32, first),
            chain,
            "kind {kind} seed {seed} life {life}"
        );
        // The next server removes what lies behind the end, as recovery does, and perhaps a whole old life.
        for info in new_home.list_segments(LANE).expect("lists") {
            if info.segment > chain.end.segment {
                new_home.trim(LANE, info.segment).expect("trims");
            }
        }
        lives.push((life, first, chain));
        if random.below(4) == 0 {
            let gone = lives.remove(random.below(lives.len() as u64) as usize);
            for info in new_home.list_segments(LANE).expect("lists") {
                if info.segment >> 32 == gone.0 {
                    new_home.trim(LANE, info.segment).expect("trims");
                }
            }
        }
        total += told;
    }
    let reader = rig::open(&bucket.handle(99));
    for (life, first, chain) in lives {
        assert_eq!(
            rig::chain(&reader, life as u32, first),
            chain,
            "kind {kind} seed {seed}"
        );
    }
    total
}

fn storms(kind: u64) {
    let mut total = 0;
    for seed in 0..8 {
        total += storm(kind, seed);
    }
    assert!(total > 800, "{total} appends are too few to say anything");
}

#[test]
fn storms_over_appendable_objects() {
    storms(0);
}

#[test]
fn storms_over_objects_made_in_two_steps() {
    storms(1);
}

#[test]
fn storms_over_plain_objects() {
    storms(2);
}
