//! Behind each checkpoint no more is in a home than is live and twice what was written between two checkpoints, in
//! each of its copies, whatever the sizes of
//! transactions, and though the server stops and starts in between.
//!
//! Every kind of home there is: files, buckets whose objects are appended to (made in one request or in two), buckets
//! whose objects are written once, and lists of
//! these. The crash simulator (`tests/crash`) holds the same in lives that end anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use logstead_engine::{Env, LeaseOptions, LocalHome, LocalOptions, LogHome};
use logstead_env::{Clock, SimClock, SimFiles};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{
    ObjectHome, ObjectOptions, ReplicatedHome, ReplicatedOptions, Source, WriteConcern,
};

use crate::from_environment;
use crate::life::{Dice, Life, Rows, SEGMENT_BYTES_MAX};

/// Appends to a segment in a bucket, so that lanes go on to others there, too.
const APPENDS_PER_SEGMENT: u64 = 24;
/// What is neither live nor log: the manifest, records of checkpoints, fences, the register of a list.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Transactions between two checkpoints, at most.
const TRANSACTIONS: u64 = 24;
const CHECKPOINTS: u64 = 14;

/// Where one copy of everything lies.
enum Place {
    Files(Env, Arc<SimFiles>),
    Bucket(MemoryBucket),
}

impl Place {
    fn files(seed: u64) -> Place {
        let (env, files) = Env::simulated(seed);
        Place::Files(env, files)
    }

    fn appendable(creates_in_two_steps: bool) -> Place {
        Place::Bucket(MemoryBucket::new(MemoryOptions {
            creates_in_two_steps,
            // The head and the margin for fences take two.
            ..MemoryOptions::appendable(APPENDS_PER_SEGMENT + 2)
        }))
    }

    fn plain() -> Place {
        Place::Bucket(MemoryBucket::new(MemoryOptions::plain()))
    }

    fn used(&self) -> u64 {
        match self {
            Place::Files(_, files) => files.used(),
            Place::Bucket(bucket) => bucket.objects().iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    fn home(&self, env: &Env) -> LogHome {
        match self {
            Place::Files(own, _) => {
                let local = LocalOptions {
                    segment_size_bytes: SEGMENT_BYTES_MAX,
                    first_segment_size_bytes: 64 << 10,
                    segment_size_bytes_min: 32 << 10,
                    threads: false,
                    ..LocalOptions::default()
                };
                LogHome::from(LocalHome::open("/data", own, local).expect("opens"))
            }
            Place::Bucket(bucket) => {
                let objects = ObjectOptions {
                    segment_size_bytes_max: SEGMENT_BYTES_MAX,
                    appends_per_segment_max: APPENDS_PER_SEGMENT,
                    pause_min: Duration::ZERO,
                    pause_max: Duration::ZERO,
                    ..ObjectOptions::default()
                };
                LogHome::from(
                    ObjectHome::open(Arc::new(bucket.clone()), env, objects).expect("opens"),
                )
            }
        }
    }

    /// The server has stopped.
    fn reboot(&self) {
        if let Place::Files(_, files) = self {
            files.reboot();
        }
    }
}

struct World {
    places: Vec<Place>,
    ack: WriteConcern,
    dice: Dice,
    rows: Rows,
    /// Since the checkpoint before the last one, and since the last one.
    written: (u64, u64),
    /// The most that was there beside what is live, in thousandths of what is allowed.
    nearest: u64,
    sides_removed: u64,
    segments_removed: u64,
}

impl World {
    fn start(&self) -> Life {
        let clock = Arc::new(SimClock::new());
        let env = Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ..Env::simulated(1).0
        };
        let homes: Vec<_> = self.places.iter().map(|place| place.home(&env)).collect();
        let home = match <[_; 1]>::try_from(homes) {
            Ok([home]) => home,
            Err(homes) => {
                let options = ReplicatedOptions {
                    ack: self.ack,
                    threads: false,
                    ..ReplicatedOptions::default()
                };
                let sources = homes.into_iter().map(Source::of).collect();
                LogHome::from(ReplicatedHome::open(sources, &env, options).expect("opens"))
            }
        };
        let lease = LeaseOptions {
            take_over: true,
            threads: false,
            pause: Arc::new(move |time| clock.advance(time)),
            ..LeaseOptions::default()
        };
        let life = Life::open(home, &env, lease).expect("starts");
        assert_eq!(life.rows(), self.rows, "what was acknowledged");
        life
    }

    fn used(&self) -> u64 {
        self.places.iter().map(Place::used).sum()
    }

    /// An error says by how much the bound was broken.
    fn checkpoint(&mut self, life: &Life) -> Result<(), String> {
        let report = life.checkpoint().expect("there is room");
        if !report.written {
            return Ok(());
        }
        // Segments are made before they are written, and left where they end.
        let distance = self.written.0.max(self.written.1) + SEGMENT_BYTES_MAX;
        let copies = self.places.len() as u64;
        let allowed = copies * (2 * distance + SMALL_BYTES_MAX);
        let surplus = self.used().saturating_sub(copies * report.bytes_live);
        if surplus > allowed {
            return Err(format!(
                "{surplus} bytes beside {} that are live, {distance} between two checkpoints: {report:?}",
                report.bytes_live
            ));
        }
        self.nearest = self.nearest.max(surplus * 1000 / allowed);
        self.sides_removed += report.sides_removed;
        self.segments_removed += report.segments_removed;
        self.written = (self.written.1, 0);
        Ok(())
    }

    fn run(&mut self) -> Result<(), String> {
        for number in 0..CHECKPOINTS {
            let life = self.start();
            for _ in 0..1 + self.dice.roll(4) {
                for _ in 0..self.dice.roll(TRANSACTIONS) {
                    let large_alone = number % 3 == 0;
                    let done = match large_alone && self.rows.len() < 40 {
                        true => life.insert(&mut self.rows, &mut self.dice, &mut self.written.1),
                        false => life.transact(&mut self.rows, &mut self.dice, &mut self.written.1),
                    };
                    assert!(done, "there is room");
                }
                self.checkpoint(&life)?;
            }
            // What is written behind it is there with the next start.
            for _ in 0..self.dice.roll(4) {
                assert!(life.transact(&mut self.rows, &mut self.dice, &mut self.written.1));
            }
            drop(life);
            self.places.iter().for_each(Place::reboot);
        }
        let life = self.start();
        // One row that is written over all the time: next to nothing is live.
        for rid in self.rows.keys().copied().collect::<Vec<_>>() {
            life.delete(&mut self.rows, rid);
        }
        self.checkpoint(&life)?;
        for _ in 0..3 {
            for _ in 0..2 * TRANSACTIONS {
                life.insert(&mut self.rows, &mut self.dice, &mut self.written.1);
                let rid = *self.rows.keys().next().expect("one");
                life.delete(&mut self.rows, rid);
            }
            self.checkpoint(&life)?;
        }
        match (self.sides_removed, self.segments_removed) {
            (..=20, _) | (_, ..=2) => Err("too little was there to be removed".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A kind of home: how its places are made, and when an append is durable in a list.
type Kind = (&'static str, fn(u64) -> Vec<Place>, WriteConcern);

const KINDS: [Kind; 7] = [
    ("files", |seed| vec![Place::files(seed)], WriteConcern::All),
    (
        "appendable bucket",
        |_| vec![Place::appendable(false)],
        WriteConcern::All,
    ),
    (
        "appendable bucket, two steps",
        |_| vec![Place::appendable(true)],
        WriteConcern::All,
    ),
    ("plain bucket", |_| vec![Place::plain()], WriteConcern::All),
    (
        "list of buckets, all",
        |_| vec![Place::appendable(false), Place::appendable(true)],
        WriteConcern::All,
    ),
    (
        "list of buckets, majority",
        |_| (0..3).map(|_| Place::appendable(false)).collect(),
        WriteConcern::Majority,
    ),
    (
        "list of plain buckets, majority",
        |_| (0..3).map(|_| Place::plain()).collect(),
        WriteConcern::Majority,
    ),
];

#[test]
fn behind_a_checkpoint_is_what_is_live_and_twice_what_was_written_between_two() {
    let mut nearest = BTreeMap::new();
    let mut wrong = Vec::new();
    let first = from_environment("LOGSTEAD_SEED", 1);
    for seed in first..first + from_environment("LOGSTEAD_SEEDS", 96).div_ceil(48) {
        for (name, places, ack) in KINDS {
            let mut world = World {
                places: places(seed),
                ack,
                dice: Dice(seed << 8 | 1),
                rows: Rows::new(),
                written: (0, 0),
                nearest: 0,
                sides_removed: 0,
                segments_removed: 0,
            };
            if let Err(what) = world.run() {
                wrong.push(format!("seed {seed}, {name}: {what}"));
            }
            let of_kind: &mut u64 = nearest.entry(name).or_default();
            *of_kind = world.nearest.max(*of_kind);
        }
    }
    println!("thousandths of what is allowed: {nearest:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
