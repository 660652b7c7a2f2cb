//! Reads a log offline: `logstead log verify URL` and `logstead log dump URL`, of every kind of home.
//!
//! Nothing is changed. A local home's lock is taken, so they refuse politely while a server runs there. Homes in
//! buckets have no such lock, and none is needed: what is read is one moment of the log (`recovery::consistent_cut`),
//! whoever is at work there. What came after it is not counted; a dump shows what of it lies before the moment's ends,
//! and marks it.
//!
//! A list of homes is read as one, by a majority of its members. One copy of several can be read by its own URL too:
//! its record holds the manifest as this copy knows it. One that was away lacks what the others have.

use crate::entry::{EntryBody, EntryReader};
use crate::manifest::{self, CheckpointRef, Manifest, ManifestError};
use crate::record::{RecordReader, RowRecord};
use crate::recovery::{
    self, ConsistentCut, LaneListing, LaneScan, LogView, RecoveryError, RecoveryReport, RedoHandler,
};
use logstead_env::{Clock, Env, RealClock};
use logstead_home::{HomeError, LogHome, named_in_record, open_read_only};
use logstead_types::{Csn, DatabaseId};
use std::cell::RefCell;
use std::io::{self, Write};

/// What a good log holds.
#[derive(Clone, Debug)]
pub struct LogReport {
    /// The manifest.
    pub manifest: Manifest,
    /// What a recovery would find.
    pub report: RecoveryReport,
    /// Records in the surviving entries.
    pub records: u64,
    /// The first CSN that a server would draw.
    pub next_csn: Csn,
    /// The highest CSN of the moment that was read: what came after it is not counted.
    pub moment: Csn,
    /// A server may have been at work while the log was read.
    pub in_use: bool,
    /// It is one of several copies.
    pub is_copy: bool,
}

/// An offline look failed.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The log is bad or cannot be read.
    #[error(transparent)]
    Log(#[from] RecoveryError),
    /// The dump cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl From<HomeError> for InspectError {
    fn from(error: HomeError) -> InspectError {
        InspectError::Log(RecoveryError::Home(error))
    }
}

/// Decodes and counts records. What a checkpoint holds is not its business.
struct Count(u64);

impl RedoHandler for Count {
    fn checkpoint(
        &mut self,
        _database: DatabaseId,
        _at: &CheckpointRef,
    ) -> Result<(), RecoveryError> {
        Ok(())
    }

    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        for record in RecordReader::new(records) {
            record.map_err(|error| RecoveryError::Apply {
                csn,
                source: error.into(),
            })?;
            self.0 += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

/// The root of the log in a home, also in one copy of several.
pub fn manifest_of(home: &LogHome) -> Result<Manifest, RecoveryError> {
    Ok(read_manifest(home)?.0)
}

/// How often a look begins again because a server at work was faster.
const TRIES: u32 = 20;
/// How often another moment is taken of the same manifest, because what the one before was made of is not there.
const MOMENTS: u32 = 3;

/// Which look at a log this is.
#[derive(Clone, Copy, Debug)]
struct InspectOptions {
    /// A server may be at work.
    in_use: bool,
    /// It is one of several copies.
    is_copy: bool,
    /// What is not there was looked for in several moments.
    is_last: bool,
}

/// What went wrong with the log in an error, if it was the log.
trait OfLog: From<RecoveryError> {
    fn log_error(self) -> Result<RecoveryError, Self>;
}

impl OfLog for RecoveryError {
    fn log_error(self) -> Result<RecoveryError, RecoveryError> {
        Ok(self)
    }
}

impl OfLog for InspectError {
    fn log_error(self) -> Result<RecoveryError, InspectError> {
        match self {
            InspectError::Log(error) => Ok(error),
            InspectError::Output(_) => Err(self),
        }
    }
}

/// Looks at a moment of a log beside which a server may be at work. `begin` is told of each manifest before its moment
/// is taken.
///
/// The manifest is read again when the lanes' segments are listed. If it has changed, some may have been removed before
/// that, and the list may be too short: then it begins again. If it has not, what was found without an error is all of
/// the moment, though a newer checkpoint be there by then ([`LaneListing`]). After an error the manifest is read once
/// more: what was there to be read may have been removed since. If it has not changed, the error is one of the log, but
/// for what is gone since the moment was taken: of a list of homes a member may be out of reach by now, and the others
/// give another moment.
fn beside<T, E: OfLog>(
    home: &LogHome,
    ahead: bool,
    mut begin: impl FnMut(&Manifest) -> Result<(), E>,
    mut look: impl FnMut(&ConsistentCut, InspectOptions) -> Result<T, E>,
) -> Result<T, E> {
    let (mut tries, mut moments) = (0, 0);
    loop {
        let (manifest, is_copy) = read_manifest(home)?;
        let held = manifest.holder.as_ref();
        moments += 1;
        let how = InspectOptions {
            in_use: home.capabilities().leased && held.is_some_and(|holder| !holder.is_released()),
            is_copy,
            is_last: moments == MOMENTS,
        };
        begin(&manifest)?;
        let listed = LaneListing::new(home, &manifest)?;
        if !read_manifest(home)?.0.is_of_log(&manifest) {
            moments = 0;
            tries += 1;
            if tries == TRIES {
                return Err(RecoveryError::TooFast(home.describe()).into());
            }
            continue;
        }
        let looked = listed
            .take(ahead)
            .map_err(E::from)
            .and_then(|moment| look(&moment, how));
        let error = match looked.map_err(E::log_error) {
            Ok(found) => return Ok(found),
            Err(Ok(error)) => error,
            Err(Err(other)) => return Err(other),
        };
        match (read_manifest(home), error) {
            (Err(_), error) => return Err(error.into()),
            (Ok((now, _)), _) if !now.is_of_log(&manifest) => {
                moments = 0;
                tries += 1;
                if tries == TRIES {
                    return Err(RecoveryError::TooFast(home.describe()).into());
                }
            }
            (Ok(_), RecoveryError::Gone(_)) if moments < MOMENTS => {}
            (Ok(_), RecoveryError::Gone(loss) | RecoveryError::Corrupt(loss)) => {
                let error = match is_copy {
                    true => RecoveryError::Incomplete(loss),
                    false => RecoveryError::Corrupt(loss),
                };
                return Err(error.into());
            }
            (Ok(_), error) => return Err(error.into()),
        }
    }
}

/// Reads the whole log that `url` names as a recovery would, and decodes every record.
pub fn verify(url: &str, env: &Env) -> Result<LogReport, RecoveryError> {
    let home = open_read_only(url, env)?;
    verify_with(&home, env.clock.as_ref(), true)
}

/// The same for any home.
pub fn verify_home(home: &LogHome) -> Result<LogReport, RecoveryError> {
    verify_with(home, &RealClock::new(), false)
}

fn verify_with(home: &LogHome, clock: &dyn Clock, ahead: bool) -> Result<LogReport, RecoveryError> {
    let look = |moment: &ConsistentCut, how: InspectOptions| {
        let InspectOptions {
            in_use, is_copy, ..
        } = how;
        let mut count = Count(0);
        let reading = LogView::of_moment(moment, home, clock, ahead).of_copy(is_copy);
        let replayed = recovery::replay(&reading, false, &mut count)?;
        let settled = Manifest {
            marks: replayed.marks,
            ..moment.manifest().clone()
        };
        Ok(LogReport {
            manifest: moment.manifest().clone(),
            report: replayed.report,
            records: count.0,
            next_csn: settled.base(),
            moment: moment.last(),
            in_use,
            is_copy,
        })
    };
    beside(home, ahead, |_| Ok(()), look)
}

/// The manifest, also of one copy of several (then true), where it is kept in the copy's record.
fn read_manifest(home: &LogHome) -> Result<(Manifest, bool), RecoveryError> {
    let no_log = || RecoveryError::NoLog(home.describe());
    let mut looks = 0;
    loop {
        let (bytes, _) = home.names.get(manifest::NAME)?.ok_or_else(no_log)?;
        let (bytes, is_copy) = match named_in_record(&bytes, manifest::NAME) {
            Some(named) => (named.ok_or_else(no_log)?, true),
            None => (bytes, false),
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) => return Ok((manifest, is_copy)),
            // It may have been cut short on its way.
            Err(_) if looks < manifest::LOOKS => looks += 1,
            Err(ManifestError::Unfinished) => {
                return Err(RecoveryError::UnfinishedCopy(home.describe()));
            }
            Err(error @ ManifestError::Newer(_)) => {
                return Err(RecoveryError::NewerFormat {
                    home: home.describe(),
                    what: error.to_string(),
                });
            }
            Err(error) => {
                return Err(RecoveryError::BadManifest {
                    home: home.describe(),
                    what: error.to_string(),
                });
            }
        }
    }
}

/// Writes everything in the log that `url` names as text, lane by lane; also what a recovery would drop.
pub fn dump(url: &str, env: &Env, out: &mut impl Write) -> Result<(), InspectError> {
    dump_home(&open_read_only(url, env)?, out)
}

/// The same for any home.
pub fn dump_home(home: &LogHome, out: &mut impl Write) -> Result<(), InspectError> {
    let clock = RealClock::new();
    let out = RefCell::new(out);
    let mut begun = false;
    let begin = |manifest: &Manifest| {
        let mut out = out.borrow_mut();
        if std::mem::replace(&mut begun, true) {
            writeln!(out, "\na server has changed the log meanwhile: once more\n")?;
        }
        Ok(out.write_all(&manifest.encode())?)
    };
    let look = |moment: &ConsistentCut, how: InspectOptions| {
        let mut out = out.borrow_mut();
        let reading = LogView::of_moment(moment, home, &clock, false);
        let manifest = moment.manifest();
        let is_current = || Ok::<_, RecoveryError>(read_manifest(home)?.0.is_of_log(manifest));
        let mut dump = |scans: Vec<LaneScan<'_>>, last| {
            for scan in scans {
                let held_below = manifest.held_below(scan.target().epoch);
                let marks = Marks { held_below, last };
                dump_lane(scan, &marks, how, &is_current, &mut **out)?;
            }
            Ok::<_, InspectError>(())
        };
        for mark in &manifest.marks {
            let scans = reading.settled(mark).map_err(RecoveryError::Home)?;
            dump(scans, Csn(u64::MAX))?;
        }
        let scans = reading.unsettled().map_err(RecoveryError::Home)?;
        dump(scans, moment.last())?;
        writeln!(
            out,
            "\nthe moment that was read: all lanes up to CSN {}",
            moment.last()
        )?;
        Ok(())
    };
    beside(home, false, begin, look)
}

/// How entries are marked.
struct Marks {
    /// Entries below this CSN are in the checkpoint.
    held_below: Csn,
    /// Entries above this CSN came after the moment that is read.
    last: Csn,
}

fn dump_lane(
    mut scan: LaneScan<'_>,
    marks: &Marks,
    how: InspectOptions,
    is_current: &dyn Fn() -> Result<bool, RecoveryError>,
    out: &mut impl Write,
) -> Result<(), InspectError> {
    let target = *scan.target();
    write!(out, "\nepoch {} lane {}", target.epoch, target.lane)?;
    match target.from.block {
        0 => writeln!(out)?,
        first => writeln!(out, " from block {first}")?,
    }
    while let Some(block) = scan.next()? {
        let header = &block.header;
        write!(out, "block {} at {}: ", header.block, block.at)?;
        match header.entries {
            // It records the horizon.
            0 => write!(out, "no entries")?,
            entries => write!(
                out,
                "{entries} entries, {} bytes, CSN {}..{}",
                header.payload_len, header.csn_lowest, header.csn_highest
            )?,
        }
        writeln!(
            out,
            ", durable through {}, horizon {}",
            header.durable_through, header.horizon
        )?;
        for entry in EntryReader::new(block.payload) {
            match entry {
                Ok(entry) => {
                    let list: Vec<u64> = entry.deps.list.iter().map(|csn| csn.get()).collect();
                    let note = match entry.csn {
                        csn if csn < marks.held_below => " in the checkpoint",
                        csn if csn > marks.last => " after the moment",
                        _ => "",
                    };
                    writeln!(
                        out,
                        "  entry {} floor {} list {list:?}{note}",
                        entry.csn, entry.deps.floor
                    )?;
                    match entry.body {
                        EntryBody::Inline(records) => dump_records(records, out)?,
                        EntryBody::Side(side) => writeln!(
                            out,
                            "    in side segment {:016x} of lane {}, {} bytes, crc {:08x}",
                            side.id, side.lane, side.length, side.crc
                        )?,
                    }
                }
                Err(error) => writeln!(out, "  bad entry: {error}")?,
            }
        }
    }
    match scan.corruption()? {
        // Perhaps of what a server has removed since the manifest was read; perhaps a server that was not there then.
        Some(loss) if (loss.may_be_removed && !how.is_last) || !is_current()? => {
            return Err(RecoveryError::of_loss(loss).into());
        }
        Some(loss) if how.is_copy => writeln!(out, "NOT IN THIS COPY: {loss}")?,
        Some(loss) => writeln!(out, "CORRUPT: {loss}")?,
        None => writeln!(out, "end at {} after {} blocks", scan.at(), scan.blocks())?,
    }
    Ok(())
}

fn dump_records(records: &[u8], out: &mut impl Write) -> Result<(), InspectError> {
    if records.is_empty() {
        writeln!(out, "    void")?;
    }
    for record in RecordReader::new(records) {
        match record {
            Ok(RowRecord::Insert { table, rid, row }) => {
                writeln!(out, "    insert table {table} rid {rid} {}", Hex(row))?;
            }
            Ok(RowRecord::Update { table, rid, delta }) => {
                writeln!(out, "    update table {table} rid {rid} {}", Hex(delta))?;
            }
            Ok(RowRecord::Delete { table, rid }) => {
                writeln!(out, "    delete table {table} rid {rid}")?
            }
            Err(error) => writeln!(out, "    bad record: {error}")?,
        }
    }
    Ok(())
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
