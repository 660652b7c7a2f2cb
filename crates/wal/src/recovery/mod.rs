//! How a database comes back from its log.
//!
//! 1. Read the manifest (or make the first one). Where no kernel's lock keeps others out: take the lease in it, by
//!    compare and swap, and then fence the lanes of its epoch; nothing is read before (T3).
//! 2. Read every lane of every epoch up to its end (`scan`), in parallel; settled epochs end where their mark says.
//! 3. Hand the survivors (`merge` decides: below the first gap all, above it by their lists) to the caller, in CSN
//!    order, while lanes are read; ask it whether it has taken all of them
//!    well.
//! 4. Write the tails of the last epoch's lanes again, durably: what was read may come from a cache that never reached
//!    the disk, or from one copy of several (T7). Where there are several copies, each gets what it lacks.
//! 5. Write the recovery mark and the next epoch's lanes, in one atomic step.
//! 6. Give back what nothing needs, open the new lanes on fresh segments.
//! 7. Wait until a lease that was taken from a living server has run out: until then it may still answer (T15).
//!
//! Invariants: nothing but rewriting what is there happens before step 5, and step 5 is atomic, so a crash anywhere
//! gives the same survivors at the next attempt. Steps after 5 can be repeated or left out without effect on the data.
//!
//! **Two starts at one home.** Any step may be the last one for hours, and go on after another server has taken the
//! lease:
//! - The lanes to be fenced are those of the manifest's epoch. Lanes of earlier epochs were fenced before the mark that
//!   ended theirs; a later epoch's lanes are opened only after its mark, and the mark of a start that was overtaken
//!   fails: it is a compare and swap from the state with its own lease.
//! - Segments of different epochs never share a number (`epoch << 32` is the first), so opening, fencing and giving
//!   back by who was overtaken meet nothing of a later epoch. What it gives back lies outside the spans of marks that
//!   never change.
//! - What it writes again (step 4) are blocks of settled lanes, each with the one content it ever had.
//! - What it stores of an older checkpoint ([`RedoHandler::upgrade`]) has numbers of its own, and what it removes has
//!   lower ones than it had before it last looked whether the home was its own.
//!
//! Does not: know what records mean.

mod consistent_cut;
mod copies;
pub mod follow;
mod merge;
mod read;
mod read_log;
mod recorded_horizon;
mod scan;
mod side;
mod window;

pub use crate::error::{ApplyError, Corruption, RecoveryError};
pub(crate) use consistent_cut::{ConsistentCut, LaneListing, LogView};
pub(crate) use read_log::{ReplayOutcome, replay};
pub(crate) use scan::LaneScan;

use crate::lane::{Lane, LaneConfig, LaneStart};
use crate::lease::{Lease, LeaseOptions};
use crate::manifest::{self, CheckpointRef, EpochLane, Manifest};
use crate::manifest_writer::ManifestWriter;
use crate::number_limits::first_number;
use crate::number_limits::{EPOCH_END, NumbersExhausted, next_epoch, segment_end};
use crate::stored_manifest::read_manifest;
use crate::truncate::{self, TruncationReport};
use consistent_cut::LogOwnership;
use logstead_env::{Clock, Env, Instant};
use logstead_home::{HomeError, LogHome, NoRoom, Position, Tag};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use std::sync::Arc;
use std::time::Duration;

/// How to open a log.
#[derive(Clone, Debug)]
pub struct RecoveryOptions {
    /// Number of lanes from now on; it may differ from before.
    pub lanes: u16,
    /// Their sizes.
    pub lane: LaneConfig,
    /// Start although acknowledged data is gone, dropping everything from the first hole on.
    pub accept_data_loss: bool,
    /// How the right to write is taken, where no kernel's lock gives it.
    pub lease: LeaseOptions,
}

/// Where a lane of some epoch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneReport {
    /// The epoch.
    pub epoch: Epoch,
    /// The lane.
    pub lane: LaneId,
    /// Its first block that is needed: the others are in a checkpoint.
    pub first_block: u64,
    /// Its number of blocks, those included.
    pub blocks: u64,
    /// Its end.
    pub end: Position,
}

/// Who receives the survivors.
pub trait RedoHandler {
    /// Called first, if the manifest names a checkpoint, when nobody else can write any more: gives another checkpoint
    /// that says the same, to be named in its place, if it is to be stored in another way. `epoch` is the one that
    /// wrote last. What it names is durable. `is_ours` fails if another server has taken over since the manifest was
    /// read.
    fn upgrade(
        &mut self,
        database: DatabaseId,
        epoch: Epoch,
        at: &CheckpointRef,
        is_ours: &mut dyn FnMut() -> Result<(), HomeError>,
    ) -> Result<Option<CheckpointRef>, RecoveryError> {
        let _as_it_is = (database, epoch, at, is_ours);
        Ok(None)
    }

    /// The log begins at this checkpoint of the database: what survived below its CSN is in it, and is not handed over.
    /// Called before anything is taken, unless the log begins at its beginning. Who knows nothing of checkpoints
    /// refuses.
    fn checkpoint(
        &mut self,
        database: DatabaseId,
        at: &CheckpointRef,
    ) -> Result<(), RecoveryError> {
        let csn = at.csn;
        let what = format!(
            "the log of database {database} begins at a checkpoint: what survived below CSN {csn} is not in it"
        );
        Err(RecoveryError::Refused(what.into()))
    }

    /// Records of the survivor with this CSN, whole ones. Survivors come in CSN order; one that is very long comes in
    /// several calls, void ones are left out.
    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError>;

    /// Below this CSN of the epoch that wrote last every CSN has an entry that was handed over, if it is not void. Who
    /// still comes lies above a gap.
    fn gap(&mut self, first_unaccounted: Csn) {
        let _nothing_to_do = first_unaccounted;
    }

    /// That was all. An error keeps recovery from changing anything.
    fn finish(&mut self) -> Result<(), RecoveryError>;
}

/// Receives the survivors one by one: CSN and records.
pub type ApplyFn<'a> = dyn FnMut(Csn, &[u8]) -> Result<(), ApplyError> + 'a;

/// Survivors given to a function.
pub(crate) struct ApplyEach<'r, 'a>(pub(crate) &'r mut ApplyFn<'a>);

impl RedoHandler for ApplyEach<'_, '_> {
    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        (self.0)(csn, records).map_err(|source| RecoveryError::Apply { csn, source })
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

/// How long recovery took, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryTimings {
    /// Making a checkpoint of an older format anew, before anything else.
    pub upgrading: Duration,
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
pub struct RecoveryReport {
    /// There was no log; this is a new one.
    pub created: bool,
    /// Entries handed over.
    pub entries: u64,
    /// Bytes of records in them.
    pub bytes: u64,
    /// What survived below this CSN is in a checkpoint and was not handed over; 0 if there is none.
    pub checkpoint: Csn,
    /// Pages of the checkpoint, and their bytes, that were loaded. Told by who loads them.
    pub checkpoint_pages: u64,
    /// Bytes of those pages.
    pub checkpoint_bytes: u64,
    /// Bytes of pages that were made anew because the checkpoint was of an older format. Told by who makes them.
    pub upgraded_bytes: u64,
    /// Chunks of the checkpoint that the log has changed and that were not read: their records are kept until they are.
    /// Told by who keeps them.
    pub tails_kept: u64,
    /// Bytes of those records.
    pub tail_bytes_kept: u64,
    /// Entries found that are in the checkpoint.
    pub entries_in_checkpoint: u64,
    /// Entries found and not handed over: none of them was acknowledged.
    pub entries_dropped: u64,
    /// Entries found that came after the moment that was read. A recovery, which reads all there is, finds none.
    pub entries_later: u64,
    /// The lanes of every epoch.
    pub lanes: Vec<LaneReport>,
    /// Entries among those handed over whose records were in side segments.
    pub sides: u64,
    /// The loss that was accepted, if one was.
    pub loss: Option<Corruption>,
    /// How long it took.
    pub took: RecoveryTimings,
}

/// A log that is open for writing.
#[derive(Debug)]
pub struct RecoveredLog {
    /// Which database it is.
    pub database: DatabaseId,
    /// This life of the server.
    pub epoch: Epoch,
    /// The lanes, by number.
    pub lanes: Vec<Lane>,
    /// The first CSN to draw.
    pub next_csn: Csn,
    /// What was found.
    pub report: RecoveryReport,
    /// The right to write and to answer, where no kernel's lock gives it.
    pub lease: Option<Arc<Lease>>,
    /// Changes the manifest from now on.
    pub manifest_writer: ManifestWriter,
}

/// Opens the log in `home`: hands the survivors to `apply` in CSN order (the records of an entry, see
/// [`RecordReader`](crate::RecordReader); void entries are left out), and returns the lanes of the new epoch. All in
/// this thread.
pub fn open(
    home: &LogHome,
    env: &Env,
    options: &RecoveryOptions,
    apply: &mut ApplyFn<'_>,
) -> Result<RecoveredLog, RecoveryError> {
    open_with(home, env, options, false, &mut ApplyEach(apply))
}

/// The same for survivors of any kind. `ahead`: threads read long lanes ahead; what comes out is the same.
pub fn open_with(
    home: &LogHome,
    env: &Env,
    options: &RecoveryOptions,
    ahead: bool,
    survivors: &mut dyn RedoHandler,
) -> Result<RecoveredLog, RecoveryError> {
    if options.lanes == 0 {
        return Err(RecoveryError::Options(
            "a log needs at least one lane".to_owned(),
        ));
    }
    if !home.capabilities().leased {
        return open_held(home, env, options, ahead, survivors, None);
    }
    let lease = Lease::claim(home, env, &options.lease)?;
    let opened = open_held(home, env, options, ahead, survivors, Some(&lease));
    if opened.is_err() {
        // The next start need not wait for a server that never was.
        lease.release();
    }
    opened
}

/// The same with the right to write.
fn open_held(
    home: &LogHome,
    env: &Env,
    options: &RecoveryOptions,
    ahead: bool,
    survivors: &mut dyn RedoHandler,
    lease: Option<&Arc<Lease>>,
) -> Result<RecoveredLog, RecoveryError> {
    let clock = env.clock.as_ref();
    let since = clock.monotonic();
    let mut watch = Stopwatch { clock, since };
    let mut found = match lease {
        Some(lease) => Some((lease.manifest(), None)),
        None => read_manifest(home)?.map(|(manifest, tag)| (manifest, Some(tag))),
    };
    let owner = match lease {
        Some(lease) => LogOwnership::fenced(home, lease)?,
        None => LogOwnership::locked(home),
    };
    let mut upgrading = Duration::ZERO;
    // With a kernel's lock it is nobody else's.
    let mut is_ours = || lease.map_or(Ok(()), |lease| lease.update(|_as_it_is| ()));
    if let Some((manifest, tag)) = &mut found
        && let Some(at) = &manifest.checkpoint
        && let Some(checkpoint) =
            survivors.upgrade(manifest.database, manifest.epoch, at, &mut is_ours)?
    {
        manifest.checkpoint = Some(checkpoint.clone());
        match lease {
            Some(lease) => {
                lease.update(|manifest| manifest.checkpoint = Some(checkpoint.clone()))?;
            }
            None => *tag = Some(write_manifest(home, *tag, manifest)?),
        }
        upgrading = watch.lap();
    }
    let (manifest, tag, mut replayed) = match found {
        Some((manifest, tag)) => {
            let reading = LogView::of_owner(&owner, home, &manifest, clock, ahead);
            let replayed = replay(&reading, options.accept_data_loss, survivors)?;
            (manifest, tag, replayed)
        }
        None => (first_manifest(home, env)?, None, ReplayOutcome::nothing()),
    };
    // Epochs are counted from 1: nothing was ever opened.
    let created = manifest.epoch == Epoch(0);
    replayed.report.took.upgrading = upgrading;
    replayed.report.took.reading = watch.lap();
    survivors.finish()?;
    replayed.report.took.finishing = watch.lap();
    rewrite_tails(home, &replayed)?;
    copies::complete(&owner, home, &manifest, &replayed)?;
    replayed.report.took.tails = watch.lap();
    let next = next_manifest(home, &manifest, &replayed, options.lanes, created)?;
    let stored = match lease {
        Some(lease) => {
            lease.update(|manifest| *manifest = next.clone())?;
            Stored::Leased(lease)
        }
        None => Stored::Here(write_manifest(home, tag, &next)?),
    };
    replayed.report.took.mark = watch.lap();
    if next.epoch.get() > EPOCH_END.get() / 2 {
        let (epoch, end) = (next.epoch, EPOCH_END);
        tracing::warn!(
            "log: this is start {epoch} of {end} that the log has numbers for: restore a dump of the database into a new one before they end"
        );
    }
    if replayed.report.loss.is_none() {
        let live = replayed.sides.iter().map(|side| (side.lane, side.id));
        let mut removed = TruncationReport::default();
        let outcome = truncate::remove_earlier(home, &next, &live.collect(), &mut removed);
        match outcome {
            Ok(()) => {}
            // Another server has taken over.
            Err(error @ HomeError::Fenced(_)) => return Err(error.into()),
            // The mark is written and nobody reads what is left: truncation or the next start removes it.
            Err(error) => tracing::warn!("log: removing what is not needed any more: {error}"),
        }
    }
    let mut lanes = Vec::new();
    for origin in &next.lanes {
        home.appends
            .open_lane(origin.lane, origin.first_segment)
            .map_err(|error| no_room(home, error))?;
        let start = LaneStart {
            database: next.database,
            epoch: next.epoch,
            lane: origin.lane,
            first_segment: origin.first_segment,
        };
        let clock = Arc::clone(&env.clock);
        lanes.push(Lane::new(home.clone(), clock, start, options.lane.clone()));
    }
    replayed.report.took.opening = watch.lap();
    if let Some(lease) = lease {
        lease.wait_out()?;
    }
    let report = RecoveryReport {
        created,
        ..replayed.report
    };
    let (database, epoch, next_csn) = (next.database, next.epoch, next.base());
    let handles = lanes.clone();
    let manifest_writer = match stored {
        Stored::Leased(lease) => ManifestWriter::leased(home.clone(), handles, Arc::clone(lease)),
        Stored::Here(tag) => ManifestWriter::new(home.clone(), handles, next, tag),
    };
    Ok(RecoveredLog {
        database,
        epoch,
        lanes,
        next_csn,
        report,
        lease: lease.cloned(),
        manifest_writer,
    })
}

/// The manifest of the new epoch is at the home.
enum Stored<'l> {
    /// The lease keeps its tag.
    Leased(&'l Arc<Lease>),
    Here(Tag),
}

fn no_room(home: &LogHome, error: NoRoom) -> RecoveryError {
    match error {
        NoRoom::DiskFull | NoRoom::Busy => RecoveryError::DiskFull(home.describe()),
        NoRoom::Failed(error) => from_home(home, error),
        NoRoom::Unavailable => RecoveryError::Home(unavailable()),
    }
}

/// Too few of several homes are there.
pub(crate) fn unavailable() -> HomeError {
    let error = std::io::Error::other(NoRoom::Unavailable.to_string());
    HomeError::io("store it", error)
}

fn from_home(home: &LogHome, error: HomeError) -> RecoveryError {
    if error.is_disk_full() {
        RecoveryError::DiskFull(home.describe())
    } else {
        RecoveryError::Home(error)
    }
}

fn first_manifest(home: &LogHome, env: &Env) -> Result<Manifest, RecoveryError> {
    if !home.segments.list_lanes()?.is_empty() {
        return Err(RecoveryError::NoManifest(home.describe()));
    }
    let database = DatabaseId(env.random.u64());
    Ok(Manifest::first(database))
}

/// T7: what recovery builds on must be on the disk, not only in the cache it was read from.
fn rewrite_tails(home: &LogHome, replayed: &ReplayOutcome) -> Result<(), RecoveryError> {
    for end in &replayed.last_ends {
        for unsure in &end.unsure {
            let len = usize::try_from(unsure.len).unwrap_or(usize::MAX);
            let block = unsure.bytes(home, end.lane)?;
            home.segments
                .rewrite(end.lane, unsure.at, &block, len)
                .map_err(|error| from_home(home, error))?;
        }
    }
    Ok(())
}

fn next_manifest(
    home: &LogHome,
    manifest: &Manifest,
    replayed: &ReplayOutcome,
    lanes: u16,
    created: bool,
) -> Result<Manifest, RecoveryError> {
    let epoch = next_epoch(manifest.epoch)?;
    let leased = home.capabilities().leased;
    let mut discarded = manifest.discarded.clone();
    discarded.extend_from_slice(&replayed.discarded);
    let mut next = Manifest {
        database: manifest.database,
        epoch,
        // A home with a kernel's lock has none, also if what lies there was copied from one that had.
        holder: manifest.holder.clone().filter(|_| leased),
        lanes: Vec::new(),
        checkpoint: manifest.checkpoint.clone(),
        marks: replayed.marks.clone(),
        discarded,
        given_up: manifest.given_up.clone(),
    };
    // What a server does late that was shut out meets nothing of this epoch.
    let fresh = if leased { first_number(epoch) } else { 0 };
    let after = |segment: u64| segment.saturating_add(1);
    for lane in (0..lanes).map(LaneId) {
        // A number is never used twice, also if its segment is gone.
        let listed = home
            .segments
            .list_segments(lane)?
            .last()
            .map_or(0, |info| after(info.segment));
        let marked = next
            .marks
            .iter()
            .flat_map(|mark| &mark.spans)
            .filter(|span| span.lane == lane);
        let marked = marked
            .map(|span| after(span.end.segment))
            .max()
            .unwrap_or(0);
        let begun = manifest
            .lanes
            .iter()
            .find(|origin| origin.lane == lane && !created);
        let begun = begun.map_or(0, |origin| after(origin.first_segment));
        let checkpoint = manifest.checkpoint.as_ref();
        let start = checkpoint.and_then(|checkpoint| checkpoint.start_of(lane));
        let start = start.map_or(0, |start| after(start.at.segment));
        let given_up = next.discarded.iter().filter(|gone| gone.lane == lane);
        let given_up = given_up.map(|gone| after(gone.last_segment)).max();
        let known = [listed, marked, begun, start, given_up.unwrap_or(0), fresh];
        let first_segment = known.into_iter().max().unwrap_or(0);
        if first_segment >= segment_end(epoch, leased) {
            return Err(NumbersExhausted::Segments.into());
        }
        next.lanes.push(EpochLane {
            lane,
            first_segment,
        });
    }
    Ok(next)
}

fn write_manifest(
    home: &LogHome,
    tag: Option<Tag>,
    manifest: &Manifest,
) -> Result<Tag, RecoveryError> {
    let bytes = manifest.encode();
    let written = match tag {
        Some(tag) => home.names.compare_and_swap(manifest::NAME, tag, &bytes),
        None => home.names.put_if_absent(manifest::NAME, &bytes),
    };
    written.map_err(|error| from_home(home, error))
}
