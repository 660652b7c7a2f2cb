//! How a database comes back from its log.
//!
//! 1. Read the manifest (or make the first one).
//! 2. Read every lane of every epoch up to its end, in parallel; settled epochs end where their mark says.
//! 3. Hand the survivors to the caller, in CSN order, while lanes are read; ask it whether it has taken all of them well.
//! 4. Write the tails of the last epoch's lanes again, durably: what was read may come from a cache that never reached
//!    the disk (T7).
//! 5. Write the recovery mark and the next epoch's lanes, in one atomic step.
//! 6. Give back what nothing needs, open the new lanes on fresh segments.
//!
//! Invariants: nothing but rewriting what is there happens before step 5, and step 5 is atomic, so a crash anywhere gives
//! the same survivors at the next attempt. Steps after 5 can be repeated or left out without effect on the data.
//!
//! Does not: know what records mean.

mod errors;
mod merge;
mod read;
mod replay;
mod scan;
mod side;
mod window;

pub use errors::{ApplyError, Corruption, RecoveryError};
pub(crate) use replay::{Reading, Replayed, read_manifest, replay};
pub(crate) use scan::{LaneScan, Target};

use crate::lane::{Lane, LaneConfig, LaneStart};
use crate::manifest::{self, Manifest, Origin};
use logstead_env::{Clock, Env, Instant};
use logstead_home::{Buffer, HomeError, LogHome, NoRoom, Position, Tag};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How to open a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of lanes from now on; it may differ from before.
    pub lanes: u16,
    /// Their sizes.
    pub lane: LaneConfig,
    /// Start although acknowledged data is gone, dropping everything from the first hole on.
    pub accept_data_loss: bool,
}

/// Where a lane of some epoch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneReport {
    /// The epoch.
    pub epoch: Epoch,
    /// The lane.
    pub lane: LaneId,
    /// Its number of blocks.
    pub blocks: u64,
    /// Its end.
    pub end: Position,
}

/// Who receives the survivors.
pub trait Survivors {
    /// Records of the survivor with this CSN, whole ones. Survivors come in CSN order; one that is very long comes in
    /// several calls, void ones are left out.
    fn take(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError>;

    /// That was all. An error keeps recovery from changing anything.
    fn finish(&mut self) -> Result<(), RecoveryError>;
}

/// Receives the survivors one by one: CSN and records.
pub type Apply<'a> = dyn FnMut(Csn, &[u8]) -> Result<(), ApplyError> + 'a;

/// Survivors given to a function.
pub(crate) struct OneByOne<'r, 'a>(pub(crate) &'r mut Apply<'a>);

impl Survivors for OneByOne<'_, '_> {
    fn take(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        (self.0)(csn, records).map_err(|source| RecoveryError::Apply { csn, source })
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

/// How long recovery took, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Reading the lanes, judging, and handing over survivors, which go on together.
    pub reading: Duration,
    /// Of that: nothing could be handed over because lanes were still being read.
    pub waited_for_lanes: Duration,
    /// Of that: nothing more could be handed over because applying was behind. Told by who applies.
    pub waited_for_tables: Duration,
    /// After the last lane was read: until the caller had dealt with all survivors.
    pub finishing: Duration,
    /// Writing the lanes' tails again (T7).
    pub tails: Duration,
    /// Writing the recovery mark.
    pub mark: Duration,
    /// Giving back what nothing needs, and opening the new lanes.
    pub opening: Duration,
}

/// Tells how long each part takes.
struct Stopwatch<'c> {
    clock: &'c dyn Clock,
    since: Instant,
}

impl Stopwatch<'_> {
    fn lap(&mut self) -> Duration {
        let begun = std::mem::replace(&mut self.since, self.clock.monotonic());
        self.since.since(begun)
    }
}

/// What recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// There was no log; this is a new one.
    pub created: bool,
    /// Entries handed over.
    pub entries: u64,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Entries found and not handed over: none of them was acknowledged.
    pub entries_dropped: u64,
    /// The lanes of every epoch.
    pub lanes: Vec<LaneReport>,
    /// Entries among those handed over whose records were in side segments.
    pub sides: u64,
    /// The loss that was accepted, if one was.
    pub loss: Option<Corruption>,
    /// How long it took.
    pub took: Took,
}

/// A log that is open for writing.
#[derive(Debug)]
pub struct Recovered {
    /// Which database it is.
    pub database: DatabaseId,
    /// This life of the server.
    pub epoch: Epoch,
    /// The lanes, by number.
    pub lanes: Vec<Lane>,
    /// The first CSN to draw.
    pub next_csn: Csn,
    /// What was found.
    pub report: Report,
}

/// Opens the log in `home`: hands the survivors to `apply` in CSN order (the records of an entry, see
/// [`Records`](crate::Records); void entries are left out), and returns the lanes of the new epoch. All in this thread.
pub fn open(
    home: &Arc<dyn LogHome>,
    env: &Env,
    options: &Options,
    apply: &mut Apply<'_>,
) -> Result<Recovered, RecoveryError> {
    open_with(home, env, options, false, &mut OneByOne(apply))
}

/// The same for survivors of any kind. `ahead`: threads read long lanes ahead; what comes out is the same.
pub fn open_with(
    home: &Arc<dyn LogHome>,
    env: &Env,
    options: &Options,
    ahead: bool,
    survivors: &mut dyn Survivors,
) -> Result<Recovered, RecoveryError> {
    if options.lanes == 0 {
        return Err(RecoveryError::Options(
            "a log needs at least one lane".to_owned(),
        ));
    }
    let clock = env.clock.as_ref();
    let since = clock.monotonic();
    let mut watch = Stopwatch { clock, since };
    let reading = Reading {
        home: home.as_ref(),
        clock,
        ahead,
    };
    let (manifest, tag, mut replayed) = match read_manifest(home.as_ref())? {
        Some((manifest, tag)) => {
            let replayed = replay(&reading, &manifest, options.accept_data_loss, survivors)?;
            (manifest, Some(tag), replayed)
        }
        None => (
            first_manifest(home.as_ref(), env)?,
            None,
            Replayed::nothing(),
        ),
    };
    replayed.report.took.reading = watch.lap();
    survivors.finish()?;
    replayed.report.took.finishing = watch.lap();
    rewrite_tails(home.as_ref(), &replayed)?;
    replayed.report.took.tails = watch.lap();
    let next = next_manifest(
        home.as_ref(),
        &manifest,
        &replayed,
        options.lanes,
        tag.is_none(),
    )?;
    write_manifest(home.as_ref(), tag, &next)?;
    replayed.report.took.mark = watch.lap();
    if replayed.report.loss.is_none() {
        give_back(home.as_ref(), &next, &replayed)?;
    }
    let mut lanes = Vec::new();
    for origin in &next.lanes {
        home.open_lane(origin.lane, origin.first_segment)
            .map_err(|error| no_room(home.as_ref(), error))?;
        let start = LaneStart {
            database: next.database,
            epoch: next.epoch,
            lane: origin.lane,
        };
        let clock = Arc::clone(&env.clock);
        lanes.push(Lane::new(
            Arc::clone(home),
            clock,
            start,
            options.lane.clone(),
        ));
    }
    replayed.report.took.opening = watch.lap();
    let report = Report {
        created: tag.is_none(),
        ..replayed.report
    };
    Ok(Recovered {
        database: next.database,
        epoch: next.epoch,
        lanes,
        next_csn: next.base(),
        report,
    })
}

fn no_room(home: &dyn LogHome, error: NoRoom) -> RecoveryError {
    match error {
        NoRoom::DiskFull | NoRoom::Busy => RecoveryError::DiskFull(home.describe()),
        NoRoom::Failed(error) => from_home(home, error),
    }
}

fn from_home(home: &dyn LogHome, error: HomeError) -> RecoveryError {
    if error.is_disk_full() {
        RecoveryError::DiskFull(home.describe())
    } else {
        RecoveryError::Home(error)
    }
}

fn first_manifest(home: &dyn LogHome, env: &Env) -> Result<Manifest, RecoveryError> {
    if !home.lanes()?.is_empty() {
        return Err(RecoveryError::NoManifest(home.describe()));
    }
    let database = DatabaseId(env.random.u64());
    Ok(Manifest {
        database,
        epoch: Epoch(0),
        lanes: Vec::new(),
        marks: Vec::new(),
        discarded: Vec::new(),
    })
}

/// T7: what recovery builds on must be on the disk, not only in the cache it was read from.
fn rewrite_tails(home: &dyn LogHome, replayed: &Replayed) -> Result<(), RecoveryError> {
    for end in &replayed.last_ends {
        for unsure in &end.unsure {
            let len = usize::try_from(unsure.len).unwrap_or(usize::MAX);
            let mut block = Buffer::zeroed(len);
            let count = home.read(end.lane, unsure.at, &mut block)?;
            if count != len {
                let what = format!("read lane {} {}", end.lane, unsure.at);
                return Err(HomeError::io(what, std::io::ErrorKind::UnexpectedEof.into()).into());
            }
            home.rewrite(end.lane, unsure.at, &block, len)
                .map_err(|error| from_home(home, error))?;
        }
    }
    Ok(())
}

fn next_manifest(
    home: &dyn LogHome,
    manifest: &Manifest,
    replayed: &Replayed,
    lanes: u16,
    created: bool,
) -> Result<Manifest, RecoveryError> {
    let epoch = manifest.epoch.get().checked_add(1);
    let epoch = Epoch(epoch.ok_or(RecoveryError::Options(
        "the log has used up its epochs".to_owned(),
    ))?);
    let mut discarded = manifest.discarded.clone();
    discarded.extend_from_slice(&replayed.discarded);
    let mut next = Manifest {
        database: manifest.database,
        epoch,
        lanes: Vec::new(),
        marks: replayed.marks.clone(),
        discarded,
    };
    for lane in (0..lanes).map(LaneId) {
        // A number is never used twice, also if its segment is gone.
        let listed = home
            .segments(lane)?
            .last()
            .map_or(0, |info| info.segment + 1);
        let marked = next
            .marks
            .iter()
            .flat_map(|mark| &mark.spans)
            .filter(|span| span.lane == lane);
        let marked = marked.map(|span| span.end.segment + 1).max().unwrap_or(0);
        let begun = manifest
            .lanes
            .iter()
            .find(|origin| origin.lane == lane && !created);
        let begun = begun.map_or(0, |origin| origin.first_segment + 1);
        next.lanes.push(Origin {
            lane,
            first_segment: listed.max(marked).max(begun),
        });
    }
    Ok(next)
}

fn write_manifest(
    home: &dyn LogHome,
    tag: Option<Tag>,
    manifest: &Manifest,
) -> Result<(), RecoveryError> {
    let bytes = manifest.encode();
    let written = match tag {
        Some(tag) => home.compare_and_swap(manifest::NAME, tag, &bytes),
        None => home.put_if_absent(manifest::NAME, &bytes),
    };
    written.map(|_| ()).map_err(|error| from_home(home, error))
}

/// Removes segments and side segments that no epoch needs, and the unused ends of those that are settled. What to
/// remove follows from the manifest; the listing only says what is there.
fn give_back(
    home: &dyn LogHome,
    manifest: &Manifest,
    replayed: &Replayed,
) -> Result<(), RecoveryError> {
    let mut ends: Vec<(LaneId, u64, Position)> = Vec::new();
    for span in manifest.marks.iter().flat_map(|mark| &mark.spans) {
        ends.push((span.lane, span.first_segment, span.end));
    }
    let live: HashSet<(LaneId, u64)> = replayed
        .sides
        .iter()
        .map(|side| (side.lane, side.id))
        .collect();
    for lane in home.lanes()? {
        let origin = manifest.lanes.iter().find(|origin| origin.lane == lane);
        for info in home.segments(lane)? {
            let segment = info.segment;
            if manifest.is_discarded(lane, segment)
                || origin.is_some_and(|origin| segment >= origin.first_segment)
            {
                continue;
            }
            let within = |&&(of, first, end): &&(LaneId, u64, Position)| {
                of == lane && (first..=end.segment).contains(&segment)
            };
            match ends.iter().find(within) {
                Some(&(_, _, end)) if end.segment == segment && info.size_bytes > end.offset => {
                    home.seal(lane, end)?
                }
                Some(_) => {}
                None => home.trim(lane, segment)?,
            }
        }
        for id in home.sides(lane)? {
            let epoch = id >> 32;
            let orphan = epoch < u64::from(manifest.epoch.get()) && !live.contains(&(lane, id));
            if orphan && !is_evidence(manifest, epoch) {
                home.remove_side(lane, id)?;
            }
        }
    }
    Ok(())
}

/// Was the epoch given up, in part or as a whole, when a loss was accepted? Its side segments are kept like its segments.
fn is_evidence(manifest: &Manifest, epoch: u64) -> bool {
    let marks = manifest.marks.iter();
    let last = marks
        .take_while(|mark| u64::from(mark.epoch.get()) <= epoch)
        .last();
    // Epochs behind such a mark that have none of their own went with it.
    last.is_some_and(|mark| mark.annulled_from.is_some())
}
