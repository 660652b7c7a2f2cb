//! A consistent cut of a log, and who may read without one.
//!
//! Recovery owns the log that it reads: it holds the kernel's lock, or it has taken the lease and fenced the lanes
//! ([`LogOwnership`]). A lane's end then stays where it is. Everybody else may have a server at work beside them, which
//! appends to one lane while another one is read. Such a reader reads a [`ConsistentCut`]: a set of entries that a
//! crash at one cut could have left.
//!
//! **Why one pass over the lanes is not enough.** An entry names only predecessors that were not Committed when it was
//! pushed. Lane A is read to its end. Then P is written to A, and P is Committed. Then E, which overwrites what P
//! wrote, is written to lane B, and does not name P. Then B is read. The reader has E and not P, and nothing in E
//! tells.
//!
//! **The rule.**
//! 1. The first pass reads every lane of the unsettled epoch to its end. `M` is the highest CSN it meets.
//! 2. Each further pass lists the segments anew and reads every lane on, from where the pass before stopped. The passes
//!    end with the first one that finds no entry at or below `M` in any lane.
//! 3. The cut is what the passes before the last one have read, without the entries above `M`. Recovery's own rule
//!    says which of these entries survive.
//!
//! There are finitely many CSNs up to `M`, and each pass but the last one finds one of them, so the passes end. Nobody
//! has to be alive for that: where a server has died with a block on its way, the next pass finds nothing, and the gap
//! stays.
//!
//! **Why that is one cut.** The last pass begins at a time `t`.
//! - *What was in the lanes before `t` is complete up to `M`.* Each entry that was durable before `t` lies in a block
//!   that was durable before `t` with all earlier blocks of the lane that wrote it, whichever lane pushed it (stolen
//!   entries, T14). The last pass reads that lane at least as far. So the entry was read, by the last pass or before.
//!   If its CSN is at most `M`, the last pass did not find it, so it was read before.
//! - *The cut is closed.* Each of its entries E was read before `t`, so E was pushed before `t`. A predecessor P
//!   that E does not name was Committed before E was pushed, hence durable before `t`, and its CSN is below that of E,
//!   so at most `M`: P is in the cut. So is, in turn, what P hangs on. Named predecessors and floors are judged by
//!   what is in the cut, as after a crash.
//! - *What was acknowledged before the first pass began is in the cut.* It was durable then, so the first pass has
//!   met it, so it is at or below `M`.
//! - *It is a crash's.* A crash at `t` may keep every block that was read before `t`, and keeps all that was durable.
//!   What it leaves above `M` is not in the cut, and nothing in the cut hangs on it, because whatever an entry
//!   hangs on has a smaller CSN.
//! - *Horizons.* All CSNs below the horizon that a block's header may record were durable when that block was sealed.
//!   Blocks of the cut were sealed before `t`. So below `min(horizon, M + 1)` no CSN is missing from the cut.
//!   This does not hold for blocks that the last pass meets, which may have been sealed after `t`: they are not in the
//!   cut, though nothing in them is at or below `M`.
//!
//! **What it takes from the home.** A block that was durable before a lane is read again is found then.
//! - Local homes are read with O_DIRECT: the kernel writes back what its cache has of the file before it reads. A
//!   segment's file is there under its name before its first block is written.
//! - Buckets show what was stored as soon as it is acknowledged. A listing may be older than the object's end, which is
//!   asked for.
//! - Of a home of homes, each block is looked for in all members that are up, and reading fails if these are fewer than
//!   the members that surely have met each acknowledged block.
//! - One of several homes, read alone, gives no cut: it may lack what was acknowledged. `log verify`, `log dump` and
//!   `fsck` look at it and say so; a backup of it is refused.
//!
//! **What the caller does.** A cut is one of the log that its manifest names. The server may publish a checkpoint
//! and remove what that made superfluous, or another server may begin an epoch. So whoever needs the newest state reads
//! the manifest again afterwards, and begins again if it has changed. Blocks that have gone meanwhile are an error,
//! never an earlier end.
//!
//! **Who reads on and on** takes no cuts. It learns a horizon `H` first and then reads every lane to its end, and
//! has all CSNs below `H` after this one pass: see [`follow`](super::follow).
//!
//! Memory: passes keep ends and no payloads. What is read of a cut is read a second time.
//!
//! Does not: judge entries (`merge`), or know whether a server is at work.

use super::read::SHORT_BYTES;
use super::scan::{LaneScan, ScanTarget};
use crate::FormatError;
use crate::error::{Corruption, RecoveryError};
use crate::lease::Lease;
use crate::manifest::{EpochLane, Manifest, RecoveryMark, RedoPoint};
use logstead_env::{Clock, spawn_scoped};
use logstead_home::{HomeError, LogHome};
use logstead_types::Csn;
use parking_lot::Mutex;

/// Threads that read lanes in a pass.
const READERS_MAX: usize = 64;

/// Proof that nobody else writes to the log, nor will before its reader has done with it.
#[derive(Debug)]
pub(crate) struct LogOwnership(());

impl LogOwnership {
    /// Of a home that a kernel's lock keeps: it was opened for writing, so this process has the lock.
    ///
    /// # Panics
    /// If it is a home that no kernel's lock keeps: a bug that would read a log which another server still writes (T3).
    pub(super) fn locked(home: &LogHome) -> LogOwnership {
        assert!(!home.capabilities().leased, "a lease is taken first");
        LogOwnership(())
    }

    /// Of the lease that was taken: fences the lanes that its manifest names. Nothing is read before (T3).
    pub(super) fn fenced(home: &LogHome, lease: &Lease) -> Result<LogOwnership, HomeError> {
        let name = lease.name();
        for origin in &lease.manifest().lanes {
            home.segments
                .fence(origin.lane, origin.first_segment, &name)?;
        }
        Ok(LogOwnership(()))
    }

    /// How far each of its lanes is read.
    pub(super) fn bound(&self) -> ScanBound {
        ScanBound(ScanBoundKind::Owned)
    }
}

/// How far a scan reads a lane. Nobody scans without one, and only this module makes them.
#[derive(Clone, Debug)]
pub(crate) struct ScanBound(ScanBoundKind);

#[derive(Clone, Debug)]
enum ScanBoundKind {
    /// To its end, which stays where it is.
    Owned,
    /// To its present end: for a cut that is being taken, or by who reads on later.
    Taking,
    /// To where the cut ends.
    StopAt(StopPoint),
}

impl ScanBound {
    /// Of a lane that is followed beside its server.
    pub(super) fn of_follower() -> ScanBound {
        ScanBound(ScanBoundKind::Taking)
    }

    /// The lane may grow while it is read: what comes behind its end after that was found proves nothing.
    pub(super) fn grows(&self) -> bool {
        matches!(self.0, ScanBoundKind::Taking)
    }

    /// Where the lane ends in the cut that is read.
    pub(super) fn stop(&self) -> Option<&StopPoint> {
        match &self.0 {
            ScanBoundKind::StopAt(stop) => Some(stop),
            ScanBoundKind::Owned | ScanBoundKind::Taking => None,
        }
    }
}

/// Where a lane of the unsettled epoch ends in a cut.
#[derive(Clone, Debug)]
pub(super) struct StopPoint {
    /// The number of its blocks, those before its start included.
    pub(super) blocks: u64,
    /// Why there was no other block.
    pub(super) why: FormatError,
    /// Something proves that the next block was durable.
    pub(super) corruption: Option<Corruption>,
}

/// A cut of a log; see the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct ConsistentCut {
    manifest: Manifest,
    last: Csn,
    /// In the order of the manifest.
    lanes: Vec<StopPoint>,
    /// In the order of the manifest: no entry at or above the CSN that was asked for lies before.
    starts: Vec<RedoPoint>,
}

impl ConsistentCut {
    /// Takes a cut of the log that `manifest` names, not earlier than now, for who has copied all that is below
    /// `copied`, and wants to know from where on to read next time: see [`ConsistentCut::starts`].
    pub(crate) fn take_for(
        home: &LogHome,
        manifest: &Manifest,
        copied: Csn,
    ) -> Result<ConsistentCut, RecoveryError> {
        let mut listing = LaneListing::new(home, manifest)?;
        for lane in &mut listing.lanes {
            lane.copied = copied;
        }
        listing.take(true)
    }

    /// The log that it is one of.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The highest CSN that is in it (`M`); nothing above it is.
    pub(crate) fn last(&self) -> Csn {
        self.last
    }

    /// Where each lane of the unsettled epoch is to be read from by who has everything below the CSN of
    /// [`ConsistentCut::take_for`].
    pub(crate) fn starts(&self) -> &[RedoPoint] {
        &self.starts
    }

    /// How many blocks each lane has, those before its start included.
    pub(crate) fn blocks(&self) -> Vec<u64> {
        self.lanes.iter().map(|stop| stop.blocks).collect()
    }

    /// The same cut, read from where another manifest of the same epoch says: one that names a later checkpoint, or an
    /// earlier one.
    pub(crate) fn read_as(self, manifest: Manifest) -> ConsistentCut {
        ConsistentCut { manifest, ..self }
    }
}

/// The lanes of a log, their segments listed: what a cut is taken of.
///
/// Segments are removed from the first one on, and only when a newer manifest is there. So if the manifest is still the
/// same after the listing, nothing was missing from it; and what is removed later shows when it is read, as
/// [`RecoveryError::Gone`].
pub(crate) struct LaneListing<'h> {
    manifest: &'h Manifest,
    lanes: Vec<LaneCut<'h>>,
}

impl<'h> LaneListing<'h> {
    /// Lists the segments of all lanes of the manifest.
    pub(crate) fn new(
        home: &'h LogHome,
        manifest: &'h Manifest,
    ) -> Result<LaneListing<'h>, RecoveryError> {
        let origins = manifest.lanes.iter();
        let lanes: Result<Vec<LaneCut<'_>>, HomeError> = origins
            .map(|origin| LaneCut::new(home, ScanTarget::of_origin(manifest, origin)))
            .collect();
        Ok(LaneListing {
            manifest,
            lanes: lanes?,
        })
    }

    /// Takes the cut. `ahead`: threads read long lanes.
    pub(crate) fn take(self, ahead: bool) -> Result<ConsistentCut, RecoveryError> {
        let LaneListing {
            manifest,
            mut lanes,
        } = self;
        // Without any entry it is the state in which the epoch began.
        let mut last = Csn(manifest.base().get() - 1);
        let first = pass(&mut lanes, ahead)?;
        last = last.max(first.csn_highest);
        let ends = loop {
            let ends: Vec<u64> = lanes.iter().map(|lane| lane.scan.blocks()).collect();
            for lane in &mut lanes {
                lane.again = true;
            }
            let found = pass(&mut lanes, ahead)?;
            if found.csn_lowest.is_none_or(|lowest| lowest > last) {
                break ends;
            }
        };
        let starts = lanes.iter().map(|lane| lane.start).collect();
        let stops = lanes.iter_mut().zip(ends).map(|(lane, blocks)| {
            Ok(StopPoint {
                // Whoever comes to such a block is told, but not before.
                blocks: blocks + u64::from(lane.is_newer),
                why: lane.scan.why(),
                corruption: match lane.is_newer {
                    true => None,
                    false => lane.scan.corruption()?,
                },
            })
        });
        let lanes: Result<Vec<StopPoint>, RecoveryError> = stops.collect();
        Ok(ConsistentCut {
            manifest: manifest.clone(),
            last,
            lanes: lanes?,
            starts,
        })
    }
}

/// A lane of a cut that is being taken.
struct LaneCut<'h> {
    scan: LaneScan<'h>,
    /// It was read to an end before.
    again: bool,
    /// It ends at a block that only a newer server can read.
    is_newer: bool,
    /// What the pass that is going on has found.
    found: Result<CsnRange, RecoveryError>,
    /// Who takes the cut has everything below this CSN.
    copied: Csn,
    /// Behind the blocks at its beginning in which there is nothing else.
    start: RedoPoint,
    /// A block that has something else was read.
    has_started: bool,
}

/// The CSNs of entries that a pass has found.
#[derive(Clone, Copy, Debug, Default)]
struct CsnRange {
    csn_lowest: Option<Csn>,
    csn_highest: Csn,
}

impl CsnRange {
    fn add(&mut self, lowest: Csn, highest: Csn) {
        self.csn_lowest = Some(self.csn_lowest.map_or(lowest, |csn| csn.min(lowest)));
        self.csn_highest = self.csn_highest.max(highest);
    }
}

impl<'h> LaneCut<'h> {
    fn new(home: &'h LogHome, target: ScanTarget) -> Result<LaneCut<'h>, HomeError> {
        Ok(LaneCut {
            scan: LaneScan::new(home, target, ScanBound(ScanBoundKind::Taking))?,
            again: false,
            is_newer: false,
            found: Ok(CsnRange::default()),
            copied: Csn::ZERO,
            start: target.from,
            has_started: false,
        })
    }

    fn pass_block(&mut self, highest: Csn) {
        self.has_started |= highest >= self.copied;
        if !self.has_started {
            self.start = self.scan.redo_point();
        }
    }

    /// Reads the lane on, to where it ends now.
    fn read(&mut self) -> Result<CsnRange, RecoveryError> {
        if self.again {
            self.scan.read_on()?;
        }
        let mut found = CsnRange::default();
        loop {
            match self.scan.next() {
                Ok(Some(block)) => {
                    let (lowest, highest) = (block.header.csn_lowest, block.header.csn_highest);
                    found.add(lowest, highest);
                    self.pass_block(highest);
                }
                Ok(None) => return Ok(found),
                Err(RecoveryError::NewerFormat { .. }) => {
                    self.is_newer = true;
                    return Ok(found);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads every lane on, each to where it ends at some time after this began.
fn pass(lanes: &mut [LaneCut<'_>], ahead: bool) -> Result<CsnRange, RecoveryError> {
    let long = lanes
        .iter()
        .filter(|lane| lane.scan.size_bytes() > SHORT_BYTES);
    let readers = if ahead {
        long.count().min(READERS_MAX)
    } else {
        1
    };
    let queue = Mutex::new(lanes.iter_mut());
    let read = || {
        loop {
            // The lock is not held while the lane is read.
            let next = queue.lock().next();
            let Some(lane) = next else { return };
            lane.found = lane.read();
        }
    };
    std::thread::scope(|scope| {
        for reader in 1..readers {
            // As many threads as the system allows.
            if spawn_scoped(scope, &format!("read-lanes-{reader}"), read).is_err() {
                break;
            }
        }
        read();
    });
    let mut all = CsnRange::default();
    for lane in lanes {
        let found = std::mem::replace(&mut lane.found, Ok(CsnRange::default()))?;
        if let Some(lowest) = found.csn_lowest {
            all.add(lowest, found.csn_highest);
        }
    }
    Ok(all)
}

/// How a log is read: by its owner, or a cut of it.
pub(crate) struct LogView<'h> {
    home: &'h LogHome,
    manifest: &'h Manifest,
    clock: &'h dyn Clock,
    /// Threads read the lanes ahead of what is handed over.
    ahead: bool,
    /// `None`: its owner reads.
    moment: Option<&'h ConsistentCut>,
    /// It is one of several copies, which may lack what was acknowledged.
    is_copy: bool,
}

impl<'h> LogView<'h> {
    /// The owner reads the whole log.
    pub(super) fn of_owner(
        _proof: &LogOwnership,
        home: &'h LogHome,
        manifest: &'h Manifest,
        clock: &'h dyn Clock,
        ahead: bool,
    ) -> LogView<'h> {
        LogView {
            home,
            manifest,
            clock,
            ahead,
            moment: None,
            is_copy: false,
        }
    }

    /// Somebody else reads a cut that was taken in this home.
    pub(crate) fn of_moment(
        moment: &'h ConsistentCut,
        home: &'h LogHome,
        clock: &'h dyn Clock,
        ahead: bool,
    ) -> LogView<'h> {
        LogView {
            home,
            manifest: &moment.manifest,
            clock,
            ahead,
            moment: Some(moment),
            is_copy: false,
        }
    }

    /// The home is one of several copies, if so: it is read as it is.
    pub(crate) fn of_copy(self, is_copy: bool) -> LogView<'h> {
        LogView { is_copy, ..self }
    }

    /// All that was acknowledged is there to be read, in every lane: then the lanes are held to the horizons that their
    /// blocks record.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_copy
    }

    pub(crate) fn home(&self) -> &'h LogHome {
        self.home
    }

    pub(crate) fn manifest(&self) -> &'h Manifest {
        self.manifest
    }

    pub(super) fn clock(&self) -> &'h dyn Clock {
        self.clock
    }

    pub(super) fn ahead(&self) -> bool {
        self.ahead
    }

    /// Entries of the unsettled epoch above this CSN are not there; `None`: all are.
    pub(crate) fn last(&self) -> Option<Csn> {
        self.moment.map(ConsistentCut::last)
    }

    /// The lanes of a settled epoch, which end where its mark says.
    pub(crate) fn settled(&self, mark: &RecoveryMark) -> Result<Vec<LaneScan<'h>>, HomeError> {
        let scan = |span| {
            let target = ScanTarget::of_span(self.manifest, mark.epoch, span);
            LaneScan::new(self.home, target, ScanBound(ScanBoundKind::Owned))
        };
        mark.spans.iter().map(scan).collect()
    }

    /// The lanes of the unsettled epoch.
    pub(crate) fn unsettled(&self) -> Result<Vec<LaneScan<'h>>, HomeError> {
        let scan = |(index, origin): (usize, &EpochLane)| {
            let target = ScanTarget::of_origin(self.manifest, origin);
            let bound = match self.moment {
                Some(moment) => ScanBoundKind::StopAt(moment.lanes[index].clone()),
                None => ScanBoundKind::Owned,
            };
            LaneScan::new(self.home, target, ScanBound(bound))
        };
        self.manifest.lanes.iter().enumerate().map(scan).collect()
    }
}
