//! One backup after the other: see [`super`].
//!
//! What is remembered of the round before is only used while the target's manifest is the one that it has stored.
//!
//! Does not: know when a round is due.

use super::points::{CopiedPoints, KnownRecords, PointCopier, needed_by, store_pins};
use super::target::{BackupLabel, Target};
use super::{
    BACKUP, BackupError, BackupReport, LANE_MIN, MOMENTS, OTHER_BACKUP, Obsolete, PARTS_MERGED,
    ROUNDS, source_of,
};
use crate::copy::{CopyStats, sizes_of};
use crate::pins::{PINS, Pins};
use crate::record::CheckpointRecord;
use logstead_env::Env;
use logstead_home::{HomeError, LogHome, Tag};
use logstead_types::{Csn, Epoch, LaneId};
use logstead_wal::copy::{CopiedPart, Destination, TailCopy, TailCut, TailStart};
use logstead_wal::manifest::{self, Manifest, RecoveryMark};
use logstead_wal::number_limits::next_epoch;
use logstead_wal::recovery::RecoveryError;
use std::collections::BTreeSet;

/// After so many rounds in which there was nothing new, the target is looked at all the same.
const IDLE_ROUNDS_MAX: u32 = 100;

/// Lanes that a session opens of a target, at most, and in one round.
const LANES_MAX: u16 = 1 << 14;
const LANES_OF_A_ROUND_MAX: u16 = 2 * (ROUNDS * MOMENTS) as u16;
/// From so many on, the target is better opened anew.
const LANES_KEPT: u16 = 128;

/// A part of the tail that stays while the source's manifest does.
#[derive(Clone, Debug)]
struct TailPart {
    copied: CopiedPart,
    /// How often it was merged.
    level: u32,
    /// From where the source's log was read for it; `None`: from the checkpoint on.
    start: Option<TailStart>,
}

/// What the round before has left.
struct LastRound {
    /// The source's.
    manifest: Manifest,
    pins: Option<Pins>,
    /// Of the target's manifest.
    tag: Tag,
    /// The list of pins that the target has.
    pins_stored: Option<Vec<u8>>,
    position: (Csn, Vec<u64>),
    parts: Vec<TailPart>,
    complete: Csn,
    next: Csn,
    start: TailStart,
    known: KnownRecords,
    report: BackupReport,
    idle_rounds: u32,
}

/// What a round has copied, of which nothing counts yet.
struct Round<'h> {
    manifest: Manifest,
    pins: Option<Pins>,
    points: CopiedPoints,
    tail: ReadTail<'h>,
}

/// A tail that was read.
struct ReadTail<'h> {
    /// Parts of the round before that stay as they are.
    stay: Vec<TailPart>,
    /// What is behind those.
    copy: TailCopy<'h>,
    /// How often that was merged, and from where on it was read.
    level: u32,
    read_from: Option<TailStart>,
    /// Above the CSNs that were seen before.
    next: Csn,
    /// For the round after this one.
    start: TailStart,
    position: (Csn, Vec<u64>),
}

/// Makes backups of one database in one place, one after the other.
#[derive(Default)]
pub struct BackupSession {
    last: Option<LastRound>,
    /// Lanes of the target that were taken. A home opens each of its lanes once.
    lanes: u16,
}

/// The pins of the source, as its newest checkpoint says whether it has some.
fn pins_of(from: &LogHome, manifest: &Manifest) -> Result<Option<Pins>, BackupError> {
    let has_pins = match &manifest.checkpoint {
        Some(newest) => {
            let objects = from.objects.as_ref();
            let read =
                CheckpointRecord::read(objects, manifest.database, newest.object, newest.crc);
            read?.has_pins
        }
        None => false,
    };
    let (pins, tag) =
        Pins::read_of(from.names.as_ref(), has_pins).map_err(crate::CheckpointError::from)?;
    Ok(tag.map(|_| pins))
}

impl BackupSession {
    /// Knows nothing yet: its first round copies the whole tail.
    pub fn new() -> BackupSession {
        BackupSession::default()
    }

    /// Makes `to` a backup of the database in `from`, beside which a server may be at work, or brings the backup that
    /// it is up to date. May be called again after any error or crash.
    pub fn round(
        &mut self,
        from: &LogHome,
        to: &LogHome,
        env: &Env,
    ) -> Result<BackupReport, BackupError> {
        if let Some(report) = self.idle(from, to)? {
            return Ok(report);
        }
        // After an error nothing of it is known to be true.
        let last = self.last.take();
        if self.lanes > LANES_MAX - LANES_OF_A_ROUND_MAX {
            return Err(HomeError::Unsupported("more backups since it was opened").into());
        }
        let (report, next) = round(from, to, env, (last, &mut self.lanes))?;
        self.last = Some(next);
        Ok(report)
    }

    /// The target is to be opened anew, if it is, for [`BackupSession::opened_anew`].
    pub fn has_many_lanes(&self) -> bool {
        self.lanes >= LANES_KEPT
    }

    /// The target was opened anew: what is known of it stays true.
    pub fn opened_anew(&mut self) {
        self.lanes = 0;
    }

    /// What to say if there is nothing new.
    fn idle(&mut self, from: &LogHome, to: &LogHome) -> Result<Option<BackupReport>, BackupError> {
        let Some(last) = &mut self.last else {
            return Ok(None);
        };
        let is_still = || Ok::<_, BackupError>(source_of(from)?.is_of_log(&last.manifest));
        if !is_still()? {
            return Ok(None);
        }
        if last.idle_rounds >= IDLE_ROUNDS_MAX {
            last.idle_rounds = 0;
            let now = to.names.get(manifest::NAME)?;
            let pins = to.names.get(PINS)?.map(|(bytes, _)| bytes);
            if now.is_none_or(|(_, tag)| tag != last.tag) || pins != last.pins_stored {
                self.last = None;
                return Ok(None);
            }
        }
        // Whatever is missing is looked for by a whole round.
        let Ok(cut) = TailCut::take(from, &last.manifest, Some(&last.start), last.complete) else {
            return Ok(None);
        };
        let (pins, tag) = Pins::read(from.names.as_ref()).map_err(crate::CheckpointError::from)?;
        let is_same = cut.position() == last.position && tag.map(|_| pins) == last.pins;
        // Another server may have begun an epoch while the lanes of this one were read.
        if !is_same || !is_still()? {
            return Ok(None);
        }
        last.idle_rounds += 1;
        Ok(Some(BackupReport {
            copied: CopyStats::default(),
            incremental: true,
            entries: 0,
            entry_bytes: 0,
            rounds: 0,
            removed: 0,
            is_idle: true,
            ..last.report
        }))
    }
}

/// Which parts of the last round's tail stay, how often the next one was merged then, and from where on it is read.
fn parts_that_stay(last: &LastRound) -> (Vec<TailPart>, u32, Option<TailStart>) {
    let mut stay = last.parts.clone();
    let (mut level, mut start) = (0, Some(last.start.clone()));
    if last.idle_rounds > 0 && stay.len() < 2 * PARTS_MERGED {
        // Where nothing happened for a while, little comes now.
        return (stay, level, start);
    }
    loop {
        let small = stay.iter().rev().take_while(|part| part.level <= level);
        let small = small.count();
        if small < PARTS_MERGED {
            return (stay, level, start);
        }
        let merged = stay.split_off(stay.len() - small);
        level += 1;
        start = merged.into_iter().next().and_then(|first| first.start);
    }
}

/// Takes a moment of the source's log and reads what is not copied yet.
fn read_tail<'h>(
    from: &LogHome,
    manifest: &Manifest,
    last: Option<&LastRound>,
    env: &Env,
    (to, place): (&'h LogHome, Destination),
) -> Result<ReadTail<'h>, RecoveryError> {
    let (stay, level, read_from) = last.map_or((Vec::new(), 0, None), parts_that_stay);
    let begin = manifest.checkpoint.as_ref().map_or(Csn(1), |at| at.csn);
    let base = stay.last().map_or(begin, |part| part.copied.mark.next);
    let (start, copied) = match last {
        Some(last) => (Some(&last.start), last.complete),
        None => (None, manifest.base()),
    };
    let cut = TailCut::take(from, manifest, start, copied)?;
    let (start, position) = (cut.start(), cut.position());
    let cut = cut.read_from(read_from.as_ref(), manifest);
    let clock = env.clock.as_ref();
    Ok(ReadTail {
        stay,
        copy: TailCopy::of_cut(from, &cut, clock, to, (place, base))?,
        level,
        read_from,
        next: last.map_or(Csn::ZERO, |last| last.next),
        start,
        position,
    })
}

fn round(
    from: &LogHome,
    to: &LogHome,
    env: &Env,
    (last, lanes): (Option<LastRound>, &mut u16),
) -> Result<(BackupReport, LastRound), BackupError> {
    let first = source_of(from)?;
    let source = first.database;
    let target = Target::look(to, env, source)?;
    let found_pins = to.names.get(PINS)?;
    let pins_there = match &found_pins {
        Some((bytes, _)) => Pins::decode(bytes).map_err(crate::CheckpointError::from)?,
        None => Pins::default(),
    };
    let doubtful = target.clear(to)?;
    let mut last = last.filter(|last| last.tag == target.tag && last.manifest.database == source);
    let mut known = last
        .as_mut()
        .map_or_else(KnownRecords::new, |last| std::mem::take(&mut last.known));
    let mut done = BackupReport {
        database: target.database,
        incremental: target.before.is_some(),
        ..BackupReport::default()
    };
    let before = target
        .before
        .as_ref()
        .map_or(Epoch(0), |before| before.epoch);
    let mut epoch = target.take_epochs(to, source, before.max(first.epoch))?;
    let mut moments = 0;
    let round = loop {
        let manifest = source_of(from)?;
        if manifest.database != source {
            return Err(BackupError::Refused {
                target: to.describe(),
                what: "the source is another database than it was",
            });
        }
        if epoch <= manifest.epoch {
            epoch = target.take_epochs(to, source, manifest.epoch)?;
        }
        moments += 1;
        let place = Destination {
            database: target.database,
            epoch,
            // A round that was given up may have stored something in its own.
            lane: LaneId(LANE_MIN + *lanes),
            rest: Some((
                next_epoch(epoch).map_err(RecoveryError::from)?,
                LaneId(LANE_MIN + *lanes + 1),
            )),
        };
        *lanes += 2;
        let is_still = || Ok::<_, BackupError>(source_of(from)?.is_of_log(&manifest));
        let mut copy = || {
            let pins = pins_of(from, &manifest)?;
            let mut copier = PointCopier {
                from,
                source,
                to,
                database: target.database,
                doubtful: &doubtful,
                there: sizes_of(to.objects.as_ref())?,
                known: &mut known,
                copied: CopyStats::default(),
            };
            let points = copier.copy(&manifest, pins.as_ref(), &pins_there);
            done.copied.add(copier.copied);
            Ok::<_, BackupError>((pins, points?))
        };
        let round = match copy() {
            // If there is a newer one by now, this one's tail may be gone.
            Ok((pins, points)) if is_still()? => {
                let last = last.as_ref();
                let last = last.filter(|last| last.manifest.is_of_log(&manifest));
                let tail = read_tail(from, &manifest, last, env, (to, place));
                tail.map(|tail| (pins, points, tail))
                    .map_err(BackupError::from)
            }
            Ok(_) => Err(BackupError::TooFast),
            Err(error) => Err(error),
        };
        match (is_still()?, round) {
            (true, Ok((pins, points, tail))) => {
                break Round {
                    manifest,
                    pins,
                    points,
                    tail,
                };
            }
            // What the moment is made of is not there: of a list of homes a member may be out of reach since.
            (true, Err(BackupError::Log(RecoveryError::Gone(loss)))) => {
                if moments == MOMENTS {
                    return Err(RecoveryError::Corrupt(loss).into());
                }
            }
            (true, Err(error)) => return Err(error),
            // Whatever was found may be because of what was removed.
            (false, _) => {
                moments = 0;
                done.rounds += 1;
            }
        }
        if done.rounds == ROUNDS {
            return Err(BackupError::TooFast);
        }
    };
    let points = round.points;
    (done.points, done.points_left_out) = (points.count, points.left_out);
    done.csn = round.tail.position.0;
    // Above the tail's, and above those of all objects.
    let next_epoch = next_epoch(epoch).and_then(next_epoch);
    let next_epoch = next_epoch.map_err(RecoveryError::from)?;
    let mut kept = store(round.tail, &mut done)?;
    let next = Manifest {
        epoch: next_epoch,
        checkpoint: points.checkpoint.clone(),
        marks: kept.marks,
        ..Manifest::first(target.database)
    };
    if let Some(pins) = &points.pins {
        store_pins(to, &found_pins, pins)?;
    }
    let bytes = next.encode();
    let crc = crc32c::crc32c(&bytes);
    let (stamp, tag) = target.stamp(to, source, |stamp| {
        stamp.manifests.retain(|known| *known != crc);
        stamp.manifests.push(crc);
        Ok(())
    })?;
    let newest = next.checkpoint.as_ref().map(|newest| newest.object);
    let needed_before = match target.before.as_ref().map(|before| needed_by(to, before)) {
        Some(Ok(needed)) => needed,
        // It cannot be read, or another backup that was faster has removed it: what it needed is found by number.
        None | Some(Err(BackupError::Checkpoint(_))) => BTreeSet::new(),
        Some(Err(error)) => return Err(error),
    };
    let needed = (&points.needed, &needed_before);
    let mut obsolete = Obsolete::list(to, newest, needed, &kept.parts)?;
    let stored = target.store(to, &bytes)?;
    // What was there when it was listed, the backup before may have removed since.
    let there = sizes_of(to.objects.as_ref())?;
    if points.needed.iter().any(|id| !there.contains_key(id)) {
        return Err(Target::refused(to, OTHER_BACKUP));
    }
    obsolete.spare_branches(to, target.database)?;
    let only = BackupLabel {
        manifests: vec![crc],
        ..stamp
    };
    match to.names.compare_and_swap(BACKUP, tag, &only.encode()) {
        // Whoever has added something since needs what is there, and ours is in it.
        Ok(_) | Err(HomeError::Conflict(_)) => {}
        Err(error) => return Err(error.into()),
    }
    done.removed = obsolete.remove(to, stored)?;
    known.retain(|_, record| points.needed.contains(&record.retained.object));
    let pins_stored = match &points.pins {
        Some(pins) => Some(pins.encode()),
        None => found_pins.map(|(bytes, _)| bytes),
    };
    let last = LastRound {
        manifest: round.manifest,
        pins: round.pins,
        tag: stored,
        pins_stored,
        position: kept.position,
        parts: std::mem::take(&mut kept.stay),
        complete: kept.complete,
        next: kept.next,
        start: kept.start,
        known,
        report: done,
        idle_rounds: 0,
    };
    Ok((done, last))
}

/// A tail that is in the target.
struct StoredTail {
    marks: Vec<RecoveryMark>,
    /// All parts, those that the next round replaces, too.
    parts: Vec<CopiedPart>,
    stay: Vec<TailPart>,
    complete: Csn,
    next: Csn,
    start: TailStart,
    position: (Csn, Vec<u64>),
}

/// Stores what was read and is not stored yet.
fn store(read: ReadTail<'_>, done: &mut BackupReport) -> Result<StoredTail, BackupError> {
    let ReadTail {
        mut stay,
        copy,
        level,
        read_from,
        next,
        start,
        position,
    } = read;
    done.parts_kept = stay.len() as u64;
    let tail = copy.finish()?;
    (done.entries, done.entry_bytes) = (tail.entries, tail.bytes);
    let next = next.max(tail.next);
    if let Some(mut copied) = tail.prefix {
        // What comes next begins there, whatever was seen above.
        copied.mark.next = tail.complete;
        stay.push(TailPart {
            copied,
            level,
            start: read_from,
        });
    }
    let parts: Vec<CopiedPart> = stay
        .iter()
        .map(|part| part.copied.clone())
        .chain(tail.rest)
        .collect();
    let mut marks: Vec<RecoveryMark> = parts.iter().map(|part| part.mark.clone()).collect();
    if let Some(last) = marks.last_mut() {
        last.next = last.next.max(next);
    }
    Ok(StoredTail {
        marks,
        parts,
        stay,
        complete: tail.complete,
        next,
        start,
        position,
    })
}
