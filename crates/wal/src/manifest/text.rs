//! The manifest's text: one item per line, one form for each manifest, so that what is decoded encodes to the same
//! bytes.
//!
//! The version follows from what is in it: one without a checkpoint is written as it was before there were checkpoints.

use super::{
    AbandonedEpochs, CheckpointRef, DiscardedSegments, EpochLane, FORMAT_VERSION,
    FORMAT_VERSION_WITHOUT_CHECKPOINT, LaneSpan, LeaseHolder, Manifest, RecoveryMark, RedoPoint,
};
use crate::FormatError;
use logstead_env::ProcessIdentity;
use logstead_home::{ObjectId, Position};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use std::fmt::Write as _;

/// Why bytes are no manifest that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// They are not what the format says.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A newer server wrote them.
    #[error("its format version is {0}, and this server knows versions up to {FORMAT_VERSION}")]
    Newer(u64),
    /// It stands for the manifest of a copy that is being made.
    #[error("it is a copy that was not completed")]
    Unfinished,
}

/// How what stands in a manifest's place begins while a copy is being made.
const UNFINISHED: &str = "logstead copy ";

/// What stands in a manifest's place while a copy is being made: of which database, and what it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedCopy {
    /// The database that the copy will be.
    pub database: DatabaseId,
    /// The database that it is a copy of.
    pub source: DatabaseId,
}

impl UnfinishedCopy {
    /// Its text.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = format!(
            "{UNFINISHED}1\ndatabase {:016x}\nsource {:016x}\n",
            self.database.0, self.source.0
        );
        let crc = crc32c::crc32c(out.as_bytes());
        out.push_str(&format!("crc {crc:08x}\n"));
        out.into_bytes()
    }

    /// Reads it; `None`: it is something else, or damaged.
    pub fn decode(bytes: &[u8]) -> Option<UnfinishedCopy> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parser = Parser { text, at: 0 };
        let version = parser.line("logstead copy #").ok()?[0];
        check_crc(text).ok()?;
        let database = parser.line("database %").ok()?[0];
        let source = parser.line("source %").ok()?[0];
        let (database, source) = (DatabaseId(database), DatabaseId(source));
        (version == 1).then_some(UnfinishedCopy { database, source })
    }
}

impl Manifest {
    /// The manifest's text.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = String::new();
        self.write(&mut out);
        let crc = crc32c::crc32c(out.as_bytes());
        out.push_str(&format!("crc {crc:08x}\n"));
        out.into_bytes()
    }

    fn write(&self, out: &mut String) {
        // Writing to a String does not fail.
        let version = if self.checkpoint.is_some() {
            FORMAT_VERSION
        } else {
            FORMAT_VERSION_WITHOUT_CHECKPOINT
        };
        let _ = writeln!(out, "logstead manifest {version}");
        let _ = writeln!(out, "database {:016x}", self.database.get());
        let _ = writeln!(out, "epoch {}", self.epoch);
        if let Some(holder) = &self.holder {
            let LeaseHolder {
                owner,
                renewals,
                duration_ms,
                owed_ms,
                since,
                process,
            } = holder;
            let _ = writeln!(
                out,
                "lease owner {owner:016x} renewals {renewals} duration-ms {duration_ms} owed-ms {owed_ms} since {since} \
                 host {} process {} started {} boot {:032x} namespaces {} {}",
                process.host,
                process.process,
                process.started,
                process.boot,
                process.process_namespace,
                process.time_namespace
            );
        }
        for origin in &self.lanes {
            let _ = writeln!(
                out,
                "lane {} first-segment {}",
                origin.lane, origin.first_segment
            );
        }
        if let Some(checkpoint) = &self.checkpoint {
            write_checkpoint(checkpoint, out);
        }
        for mark in &self.marks {
            let RecoveryMark {
                epoch,
                base,
                first_unaccounted,
                annulled_from,
                next,
                spans,
            } = mark;
            let _ = writeln!(
                out,
                "mark epoch {epoch} base {base} first-unaccounted {first_unaccounted} next {next}"
            );
            if let Some(from) = annulled_from {
                let _ = writeln!(out, "annulled from {from}");
            }
            for LaneSpan {
                lane,
                first_segment,
                end,
                blocks,
            } in spans
            {
                let _ = writeln!(
                    out,
                    "span lane {lane} first-segment {first_segment} end-segment {} end-offset {} blocks {blocks}",
                    end.segment, end.offset
                );
            }
        }
        for DiscardedSegments {
            lane,
            first_segment,
            last_segment,
        } in &self.discarded
        {
            let _ = writeln!(
                out,
                "discarded lane {lane} first-segment {first_segment} last-segment {last_segment}"
            );
        }
        for AbandonedEpochs {
            first_epoch,
            last_epoch,
        } in &self.given_up
        {
            let _ = writeln!(
                out,
                "given-up first-epoch {first_epoch} last-epoch {last_epoch}"
            );
        }
    }

    /// Reads a manifest's text, checking its checksum and its rules.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| FormatError::new("no text", error.valid_up_to()))?;
        if text.starts_with(UNFINISHED) {
            return Err(ManifestError::Unfinished);
        }
        if !text.starts_with("logstead manifest ") {
            return Err(FormatError::new("no manifest", 0).into());
        }
        let mut parser = Parser { text, at: 0 };
        let version = parser.line("logstead manifest #")?[0];
        // Before the checksum: a later format may have another.
        if version > u64::from(FORMAT_VERSION) {
            return Err(ManifestError::Newer(version));
        }
        if version < u64::from(FORMAT_VERSION_WITHOUT_CHECKPOINT) {
            return Err(FormatError::new("unknown format version", 0).into());
        }
        check_crc(text)?;
        let manifest = parser.manifest()?;
        if manifest.encode() != bytes {
            return Err(FormatError::new("numbers are not in their one form", 0).into());
        }
        manifest.check().map_err(|what| FormatError::new(what, 0))?;
        Ok(manifest)
    }
}

fn write_checkpoint(checkpoint: &CheckpointRef, out: &mut String) {
    let CheckpointRef {
        object,
        crc,
        csn,
        epoch,
        starts,
    } = checkpoint;
    let _ = writeln!(
        out,
        "checkpoint object {object} crc {crc:08x} csn {csn} epoch {epoch}"
    );
    for RedoPoint {
        lane,
        at,
        block,
        previous_header_crc,
    } in starts
    {
        let _ = writeln!(
            out,
            "start lane {lane} segment {} offset {} block {block} previous-header-crc {previous_header_crc:08x}",
            at.segment, at.offset
        );
    }
}

fn check_crc(text: &str) -> Result<(), FormatError> {
    let error = |at| FormatError::new("wrong checksum", at);
    let at = text.rfind("crc ").ok_or(error(text.len()))?;
    let line = text[at..]
        .strip_prefix("crc ")
        .and_then(|rest| rest.strip_suffix('\n'))
        .ok_or(error(at))?;
    if line != format!("{:08x}", crc32c::crc32c(&text.as_bytes()[..at])) {
        return Err(error(at));
    }
    Ok(())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn next_is(&self, word: &str) -> bool {
        self.text[self.at..]
            .strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(' '))
    }

    /// Reads one line of the given shape: words must match, each `#` and each `%` stands for any word.
    fn words(&mut self, shape: &'static str) -> Result<Vec<&'a str>, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let text: &'a str = self.text;
        let rest = &text[self.at..];
        let end = rest.find('\n').ok_or(error.clone())?;
        let mut words = rest[..end].split(' ');
        let mut found = Vec::new();
        for expected in shape.split(' ') {
            let word = words.next().ok_or(error.clone())?;
            if matches!(expected, "#" | "%") {
                found.push(word);
            } else if expected != word {
                return Err(error);
            }
        }
        if words.next().is_some() {
            return Err(error);
        }
        self.at += end + 1;
        Ok(found)
    }

    /// The same where each `#` is a decimal number and each `%` a hexadecimal one.
    fn line(&mut self, shape: &'static str) -> Result<Vec<u64>, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let words = self.words(shape)?;
        let kinds = shape.split(' ').filter(|word| matches!(*word, "#" | "%"));
        let radix = |kind| if kind == "#" { 10 } else { 16 };
        let numbers = words.iter().zip(kinds);
        let numbers = numbers.map(|(word, kind)| u64::from_str_radix(word, radix(kind)));
        numbers.collect::<Result<_, _>>().map_err(|_| error)
    }

    fn holder(&mut self) -> Result<LeaseHolder, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let words = self.words(
            "lease owner # renewals # duration-ms # owed-ms # since # host # process # started # boot # namespaces # #",
        )?;
        let number = |at: usize| words[at].parse::<u64>().map_err(|_| error.clone());
        Ok(LeaseHolder {
            owner: u64::from_str_radix(words[0], 16).map_err(|_| error.clone())?,
            renewals: number(1)?,
            duration_ms: number(2)?,
            owed_ms: number(3)?,
            since: number(4)?,
            process: ProcessIdentity {
                host: words[5].to_owned(),
                process: words[6].parse().map_err(|_| error.clone())?,
                started: number(7)?,
                boot: u128::from_str_radix(words[8], 16).map_err(|_| error.clone())?,
                process_namespace: number(9)?,
                time_namespace: number(10)?,
            },
        })
    }

    fn lane(&self, number: u64) -> Result<LaneId, FormatError> {
        u16::try_from(number)
            .map(LaneId)
            .map_err(|_| FormatError::new("lane number too large", self.at))
    }

    fn epoch(&self, number: u64) -> Result<Epoch, FormatError> {
        u32::try_from(number)
            .map(Epoch)
            .map_err(|_| FormatError::new("epoch too large", self.at))
    }

    fn crc(&self, number: u64) -> Result<u32, FormatError> {
        u32::try_from(number).map_err(|_| FormatError::new("checksum too large", self.at))
    }

    fn checkpoint(&mut self) -> Result<CheckpointRef, FormatError> {
        let n = self.line("checkpoint object % crc % csn # epoch #")?;
        let mut checkpoint = CheckpointRef {
            object: ObjectId(n[0]),
            crc: self.crc(n[1])?,
            csn: Csn(n[2]),
            epoch: self.epoch(n[3])?,
            starts: Vec::new(),
        };
        while self.next_is("start") {
            let n = self.line("start lane # segment # offset # block # previous-header-crc %")?;
            checkpoint.starts.push(RedoPoint {
                lane: self.lane(n[0])?,
                at: Position {
                    segment: n[1],
                    offset: n[2],
                },
                block: n[3],
                previous_header_crc: self.crc(n[4])?,
            });
        }
        Ok(checkpoint)
    }

    fn manifest(&mut self) -> Result<Manifest, FormatError> {
        let database = DatabaseId(self.line("database %")?[0]);
        let epoch = self.line("epoch #")?[0];
        let epoch = self.epoch(epoch)?;
        let mut manifest = Manifest {
            epoch,
            ..Manifest::first(database)
        };
        if self.next_is("lease") {
            manifest.holder = Some(self.holder()?);
        }
        while self.next_is("lane") {
            let n = self.line("lane # first-segment #")?;
            manifest.lanes.push(EpochLane {
                lane: self.lane(n[0])?,
                first_segment: n[1],
            });
        }
        if self.next_is("checkpoint") {
            manifest.checkpoint = Some(self.checkpoint()?);
        }
        while self.next_is("mark") {
            let n = self.line("mark epoch # base # first-unaccounted # next #")?;
            let mut mark = RecoveryMark {
                epoch: self.epoch(n[0])?,
                base: Csn(n[1]),
                first_unaccounted: Csn(n[2]),
                annulled_from: None,
                next: Csn(n[3]),
                spans: Vec::new(),
            };
            if self.next_is("annulled") {
                mark.annulled_from = Some(Csn(self.line("annulled from #")?[0]));
            }
            while self.next_is("span") {
                let n =
                    self.line("span lane # first-segment # end-segment # end-offset # blocks #")?;
                mark.spans.push(LaneSpan {
                    lane: self.lane(n[0])?,
                    first_segment: n[1],
                    end: Position {
                        segment: n[2],
                        offset: n[3],
                    },
                    blocks: n[4],
                });
            }
            manifest.marks.push(mark);
        }
        while self.next_is("discarded") {
            let n = self.line("discarded lane # first-segment # last-segment #")?;
            let lane = self.lane(n[0])?;
            manifest.discarded.push(DiscardedSegments {
                lane,
                first_segment: n[1],
                last_segment: n[2],
            });
        }
        while self.next_is("given-up") {
            let n = self.line("given-up first-epoch # last-epoch #")?;
            let (first_epoch, last_epoch) = (self.epoch(n[0])?, self.epoch(n[1])?);
            manifest.given_up.push(AbandonedEpochs {
                first_epoch,
                last_epoch,
            });
        }
        if !self.next_is("crc") {
            return Err(FormatError::new("a line is not as expected", self.at));
        }
        Ok(manifest)
    }
}
