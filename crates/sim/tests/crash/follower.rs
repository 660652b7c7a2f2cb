//! Somebody follows the machine's log through all of its lives: between any two of its requests transactions run,
//! blocks are flushed, checkpoints are taken, the log is truncated, the machine stops and comes back. It may read
//! blocks that a crash takes back. The machine also sends its blocks and its horizon: of the blocks some come late, in
//! another order, twice, damaged, or not at all, and those of a life before may come in the next.
//!
//! Judged:
//! - what was handed over before the machine stopped has survived that;
//! - what somebody was told of is handed over in the end, or is in the checkpoint at which the follower began again;
//! - from the newest checkpoint on it is what one reads who begins there, and as many entries as `log verify` counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_engine::{Engine, FeedBlock, FeedReader};
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_sim::crash::WriterId;
use logstead_types::Csn;
use logstead_wal::inspect::verify_home;
use logstead_wal::recovery::follow::{FollowError, Follower, StreamedBlocks};
use logstead_wal::recovery::{ApplyFn, RecoveryError};
use parking_lot::Mutex;

use crate::baton::{Baton, Beside};
use crate::script::Log;
use crate::watched::Watched;
use logstead_sim::Dice;

/// Steps of the machine between two requests.
const GAP_STEPS_MAX: u64 = 60;

/// What became of followers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FollowerCounts {
    /// Entries with records that were handed over.
    pub(crate) handed: u64,
    /// Of those, how many while the life that wrote them went on.
    pub(crate) handed_live: u64,
    /// How often it began again at a checkpoint.
    pub(crate) removed: u64,
    /// Those somebody was told of.
    pub(crate) told: u64,
    /// Entries handed over without a look at the home.
    pub(crate) streamed: u64,
    /// Entries that the last look at the whole log has counted.
    pub(crate) counted: u64,
}

impl FollowerCounts {
    pub(crate) fn add(&mut self, other: &FollowerCounts) {
        self.handed += other.handed;
        self.handed_live += other.handed_live;
        self.removed += other.removed;
        self.told += other.told;
        self.streamed += other.streamed;
        self.counted += other.counted;
    }
}

/// From one beginning to its end.
#[derive(Clone, Debug, Default)]
struct Stretch {
    begin: Csn,
    handed: BTreeSet<Csn>,
    next: Csn,
}

type Stretches = Arc<Mutex<Vec<Stretch>>>;

/// Ends the follower, at the latest when the machine is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What the machine sends, on its way to the follower.
#[derive(Default)]
struct Stream {
    blocks: Arc<StreamedBlocks>,
    /// Of this life.
    reader: Option<FeedReader>,
    under_way: Vec<FeedBlock>,
    /// Entries that were handed over by it.
    entries: Arc<AtomicU64>,
}

impl Stream {
    /// Some of what was sent comes.
    fn carry(&mut self, engine: &Engine, dice: &mut Dice) {
        if self.reader.is_none() && dice.one_in(10) {
            self.reader = Some(engine.commit_path().feed().follow());
            self.blocks.begin(engine.database(), engine.epoch());
        }
        let Some(reader) = &mut self.reader else {
            return;
        };
        let horizon = engine.horizon();
        while reader.take(1 << 20, &mut self.under_way) {}
        while !self.under_way.is_empty() && !dice.one_in(3) {
            let at = dice.roll(self.under_way.len() as u64) as usize;
            let block = self.under_way.swap_remove(at);
            let mut bytes = block.bytes.to_vec();
            let len = bytes.len() as u64;
            match dice.roll(12) {
                0 => continue,
                1 => bytes[dice.roll(len) as usize] ^= 1 << dice.roll(8),
                2 => bytes.truncate(dice.roll(len) as usize),
                3 => self.under_way.push(block.clone()),
                _ => {}
            }
            // What has no room is read at the home.
            let _has_room = self.blocks.add(block.lane, block.at, bytes.into());
        }
        if dice.one_in(2) {
            self.blocks.learn(horizon);
        }
        if dice.one_in(200) {
            self.reader = None;
        }
    }
}

/// See the module's documentation.
pub(crate) struct FollowerBeside {
    home: Arc<Watched>,
    leased: bool,
    /// Before the thread is waited for.
    stop: Stop,
    beside: Beside<Result<(), String>>,
    stretches: Stretches,
    stream: Stream,
    dice: Dice,
    gap: u64,
    /// Transactions of the life before that had been handed over when it ended.
    handed: Vec<(Csn, WriterId)>,
    /// Those of all lives that somebody was told of.
    told: BTreeMap<Csn, WriterId>,
    counts: FollowerCounts,
}

impl FollowerBeside {
    pub(crate) fn new(home: &Arc<Watched>, env: &Env, leased: bool, seed: u64) -> FollowerBeside {
        let baton = Baton::new();
        let pause = Arc::clone(&baton);
        let beside = home
            .home
            .reader_beside(Some(seed), leased, move || pause.pause());
        let source = LogHome::from(beside);
        let (stop, stretches) = (Arc::new(AtomicBool::new(false)), Stretches::default());
        let (stopped, into) = (Arc::clone(&stop), Arc::clone(&stretches));
        let stream = Stream::default();
        let (blocks, entries) = (Arc::clone(&stream.blocks), Arc::clone(&stream.entries));
        let between = Arc::clone(&baton);
        let read = move || {
            let by_stream = StreamedRounds {
                blocks,
                entries,
                between,
                dice: Dice::new(seed ^ 0x57ea),
            };
            follow(&source, &stopped, &into, by_stream)
        };
        FollowerBeside {
            home: Arc::clone(home),
            leased,
            stop: Stop(stop),
            beside: Beside::begin(env, baton, read),
            stretches,
            stream,
            dice: Dice::new(seed ^ 0xf011_0e4e),
            gap: 0,
            handed: Vec::new(),
            told: BTreeMap::new(),
            counts: FollowerCounts::default(),
        }
    }

    /// The machine has taken a step.
    pub(crate) fn step(&mut self, engine: &Engine) {
        self.stream.carry(engine, &mut self.dice);
        self.gap = self.gap.saturating_sub(1);
        while self.gap == 0 && self.beside.baton.step() {
            self.gap = match self.dice.roll(6) {
                0 => self.dice.roll(GAP_STEPS_MAX),
                1 | 2 => 1 + self.dice.roll(4),
                _ => 0,
            };
        }
    }

    /// Does an idle lane record the horizon now?
    pub(crate) fn is_pause(&mut self) -> bool {
        self.dice.one_in(40)
    }

    /// The machine has stopped.
    pub(crate) fn crashed(&mut self, log: &Log) {
        self.stream.reader = None;
        let log = log.borrow();
        let told = log.oracle.told();
        let writers = log.writers.iter().map(|(csn, writer)| (*csn, *writer));
        self.told
            .extend(writers.clone().filter(|(_, writer)| told.contains(writer)));
        let stretches = self.stretches.lock();
        let handed = stretches.last().map(|stretch| &stretch.handed);
        let was_handed = |csn: &Csn| handed.is_some_and(|handed| handed.contains(csn));
        let before = self.handed.len();
        self.handed
            .extend(writers.filter(|(csn, _)| was_handed(csn)));
        self.counts.handed_live += (self.handed.len() - before) as u64;
    }

    /// It has come back, and what has survived is known.
    pub(crate) fn recovered(&mut self, log: &Log) -> Result<(), String> {
        let survived = log.borrow().oracle.told();
        for (csn, writer) in std::mem::take(&mut self.handed) {
            if !survived.contains(&writer) {
                return Err(format!(
                    "CSN {csn} of {writer} was handed over, and a crash has taken it back"
                ));
            }
        }
        Ok(())
    }

    /// The machine is through: the follower goes to the end of the log.
    pub(crate) fn finish(self) -> Result<FollowerCounts, String> {
        let FollowerBeside {
            home,
            leased,
            beside,
            stop,
            stretches,
            stream,
            told,
            mut counts,
            ..
        } = self;
        drop(stop);
        while beside.baton.step() {}
        let followed = beside.found();
        followed
            .unwrap_or_else(|| Err("it panicked".to_owned()))
            .map_err(|error| format!("the follower: {error}"))?;
        let stretches = stretches.lock().clone();
        let Some(last) = stretches.last() else {
            return Err("it has never begun".to_owned());
        };
        for stretch in &stretches {
            let missing = told
                .range(stretch.begin..stretch.next)
                .find(|(csn, _)| !stretch.handed.contains(csn));
            if let Some((csn, writer)) = missing {
                return Err(format!(
                    "somebody was told of {writer}, CSN {csn}, and it was not handed over between {} and {}",
                    stretch.begin, stretch.next
                ));
            }
            counts.handed += stretch.handed.len() as u64;
        }
        if let Some((csn, writer)) = told.range(last.next..).next() {
            return Err(format!("CSN {csn} of {writer} is not reached"));
        }
        counts.removed = stretches.len() as u64 - 1;
        counts.told = told.len() as u64;
        counts.streamed = stream.entries.load(Ordering::SeqCst);
        // Who begins now.
        let quiet = LogHome::from(home.home.reader_beside(None, leased, || {}));
        let mut anew = BTreeSet::new();
        let mut follower = Follower::open(&quiet).map_err(|error| error.to_string())?;
        let begin = follower.begin().map_or(Csn(1), |begin| begin.csn);
        let progress = follower
            .round(&mut |csn, _| {
                anew.insert(csn);
                Ok(())
            })
            .map_err(|error| error.to_string())?;
        let behind: BTreeSet<Csn> = last.handed.range(begin..).copied().collect();
        let of_last: BTreeSet<Csn> = anew.range(last.begin..).copied().collect();
        if behind != of_last {
            let wrong = behind.symmetric_difference(&of_last).collect::<Vec<_>>();
            return Err(format!(
                "from {begin} on it has not read the log: {wrong:?}"
            ));
        }
        let verified = verify_home(&quiet).map_err(|error| error.to_string())?;
        // Above its horizon the last life may have more.
        let settled = progress.entries + progress.waiting as u64;
        counts.counted = verified.report.entries;
        if settled != counts.counted {
            return Err(format!("{progress:?}, and {} are there", counts.counted));
        }
        Ok(counts)
    }
}

/// Rounds of what has come by the stream, between those that read the home.
struct StreamedRounds {
    blocks: Arc<StreamedBlocks>,
    entries: Arc<AtomicU64>,
    /// The machine goes on between two of them.
    between: Arc<Baton>,
    dice: Dice,
}

impl StreamedRounds {
    fn run(
        &mut self,
        follower: &mut Follower<'_>,
        apply: &mut ApplyFn<'_>,
    ) -> Result<(), FollowError> {
        while !self.dice.one_in(4) {
            let before = follower.progress().entries;
            let round = follower.streamed_round(&self.blocks, apply);
            let now = follower.progress().entries;
            self.entries.fetch_add(now - before, Ordering::SeqCst);
            if round?.is_none() {
                break;
            }
            self.between.pause();
        }
        Ok(())
    }
}

/// Follows until the machine is through, and then to the end.
fn follow(
    home: &LogHome,
    stop: &AtomicBool,
    into: &Stretches,
    mut by_stream: StreamedRounds,
) -> Result<(), String> {
    loop {
        let mut follower = match Follower::open(home) {
            Ok(follower) => follower,
            // The machine has not begun.
            Err(FollowError::Log(RecoveryError::NoLog(_) | RecoveryError::Home(_))) => continue,
            Err(error) => return Err(error.to_string()),
        };
        let begin = follower.begin().map_or(Csn(1), |begin| begin.csn);
        into.lock().push(Stretch {
            begin,
            handed: BTreeSet::new(),
            next: begin,
        });
        loop {
            let is_last = stop.load(Ordering::SeqCst);
            let mut apply = |csn, _: &[u8]| {
                let mut stretches = into.lock();
                let Some(stretch) = stretches.last_mut() else {
                    return Err("nothing was begun".into());
                };
                if stretch.handed.last().is_some_and(|last| *last > csn) {
                    return Err(format!("{csn} out of order").into());
                }
                stretch.handed.insert(csn);
                Ok(())
            };
            let streamed = match is_last {
                true => Ok(()),
                false => by_stream.run(&mut follower, &mut apply),
            };
            let round = streamed.and_then(|()| follower.round(&mut apply));
            follower.forget_streamed(&by_stream.blocks);
            match round {
                Ok(progress) => {
                    if let Some(stretch) = into.lock().last_mut() {
                        stretch.next = progress.next;
                    }
                    if is_last {
                        return Ok(());
                    }
                }
                Err(FollowError::Removed { .. }) => break,
                Err(FollowError::Log(RecoveryError::Home(_))) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
