//! The manifest: which database this is, which epoch writes where, and the recovery marks of the epochs before.
//!
//! A text of lines, so that a person can read it; the last line is the CRC-32C of everything before it.
//!
//! ```text
//! logstead manifest 1
//! database 00000000075bcd15
//! epoch 3
//! lease owner 0f1e2d3c4b5a6978 renewals 41 duration-ms 10000 owed-ms 0 since 1767225600 host db-1 process 4711 started 90210 boot 0123456789abcdef0123456789abcdef namespaces 4026531836 4026531834
//! lane 0 first-segment 12
//! mark epoch 2 base 100 first-unaccounted 151 next 160
//! annulled from 155
//! span lane 0 first-segment 9 end-segment 11 end-offset 4096 blocks 7
//! discarded lane 0 first-segment 4 last-segment 5
//! crc 89abcdef
//! ```
//!
//! Invariants:
//! - An epoch's lanes are in the manifest before its first block is written, so every block lies in a span that the
//!   manifest names.
//! - A mark settles its epoch for good: entries at or above `first_unaccounted` survive only by the rule of
//!   [`recovery`](crate::recovery), evaluated over exactly the blocks inside the spans; what lies behind a span's end is
//!   never read again (Aurora's truncation ranges).
//! - Where a loss of data was accepted, the mark names the first CSN that may depend on it: no entry from there on survives.
//! - Marks are in the order of their epochs; each one's `base` is the `next` of the one before.
//! - The line `lease` says who may write, at homes that no kernel's lock keeps (see [`lease`](crate::lease)); others have none. No two
//!   states of a manifest with such a line are equal: its owner never writes a number of `renewals` twice.

use crate::FormatError;
use logstead_env::ProcessIdentity;
use logstead_home::Position;
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use std::fmt::Write as _;

/// The format this code writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The name under which the home keeps the manifest.
pub const NAME: &str = "manifest";
/// How often a manifest that does not decode is read again before it counts as damaged: an answer that something in between cut
/// short looks the same.
pub(crate) const LOOKS: u32 = 4;

/// Where a lane begins in the present epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The lane.
    pub lane: LaneId,
    /// Its first segment in this epoch.
    pub first_segment: u64,
}

/// What one lane wrote in a past epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The lane.
    pub lane: LaneId,
    /// Its first segment in that epoch.
    pub first_segment: u64,
    /// Where it ended: nothing from here on counts.
    pub end: Position,
    /// Number of its blocks.
    pub blocks: u64,
}

/// What became of a past epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The epoch.
    pub epoch: Epoch,
    /// Its first CSN.
    pub base: Csn,
    /// Its first CSN that no entry accounts for.
    pub first_unaccounted: Csn,
    /// After an accepted loss of data: nothing of the epoch from this CSN on survives, whatever it hangs on.
    pub annulled_from: Option<Csn>,
    /// First CSN of the epoch after it: above every CSN seen.
    pub next: Csn,
    /// What its lanes wrote.
    pub spans: Vec<Span>,
}

/// Segments given up by a start that accepted a loss of data: not read, and not removed, so that an expert may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The lane.
    pub lane: LaneId,
    /// First of them.
    pub first_segment: u64,
    /// Last of them.
    pub last_segment: u64,
}

/// Who may write, for how long: the lease, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// A random number: one start of one server.
    pub owner: u64,
    /// Grows with everything that this owner writes here.
    pub renewals: u64,
    /// The lease runs out this long after it was written last, at the latest; 0: it was given back.
    pub duration_ms: u64,
    /// The lease of somebody before may hold for this long after that; 0: none does.
    pub owed_ms: u64,
    /// When the owner took it, in seconds since 1970, for people only.
    pub since: u64,
    /// The owner's process.
    pub process: ProcessIdentity,
}

impl Holder {
    /// The owner gave the lease back: it answers nobody any more.
    pub fn is_released(&self) -> bool {
        self.duration_ms == 0
    }

    /// For how long somebody may answer clients after this was written.
    pub fn lasts(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.duration_ms.max(self.owed_ms))
    }

    /// When the owner took it, for people: `2026-01-01 00:00:00 UTC`.
    pub fn since_utc(&self) -> String {
        let (days, seconds) = (self.since / 86_400, self.since % 86_400);
        // Years begin in March, so that a leap day is a year's last one; eras of 400 years are all alike.
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, later) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        let year = era * 400 + year + later;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Which database this is.
    pub database: DatabaseId,
    /// The epoch that writes, or wrote last.
    pub epoch: Epoch,
    /// Who may write; `None` where the kernel's lock says it.
    pub holder: Option<Holder>,
    /// Its lanes.
    pub lanes: Vec<Origin>,
    /// The epochs before that wrote anything.
    pub marks: Vec<Mark>,
    /// Segments given up.
    pub discarded: Vec<Discarded>,
}

impl Manifest {
    /// First CSN of the present epoch.
    pub fn base(&self) -> Csn {
        self.marks.last().map_or(Csn(1), |mark| mark.next)
    }

    /// True if the segment was given up by a start that accepted a loss.
    pub fn is_discarded(&self, lane: LaneId, segment: u64) -> bool {
        let covers = |gone: &Discarded| {
            gone.lane == lane && (gone.first_segment..=gone.last_segment).contains(&segment)
        };
        self.discarded.iter().any(covers)
    }

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
        let _ = writeln!(out, "logstead manifest {FORMAT_VERSION}");
        let _ = writeln!(out, "database {:016x}", self.database.get());
        let _ = writeln!(out, "epoch {}", self.epoch);
        if let Some(holder) = &self.holder {
            let Holder {
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
        for mark in &self.marks {
            let Mark {
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
            for Span {
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
        for Discarded {
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
    }

    /// Reads a manifest's text, checking its checksum and its rules.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, FormatError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| FormatError::new("no text", error.valid_up_to()))?;
        if !text.starts_with("logstead manifest ") {
            return Err(FormatError::new("no manifest", 0));
        }
        let mut parser = Parser { text, at: 0 };
        let version: u32 = parser.line("logstead manifest #", 10)?[0]
            .try_into()
            .unwrap_or(u32::MAX);
        if version != FORMAT_VERSION {
            return Err(FormatError::new("unknown format version", 0));
        }
        check_crc(text)?;
        let manifest = parser.manifest()?;
        if manifest.encode() != bytes {
            return Err(FormatError::new("numbers are not in their one form", 0));
        }
        manifest.check().map_err(|what| FormatError::new(what, 0))?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), &'static str> {
        let mut base = Csn(1);
        let mut epoch = Epoch(0);
        for mark in &self.marks {
            if mark.epoch <= epoch || mark.epoch >= self.epoch {
                return Err("marks are not in the order of their epochs");
            }
            if mark.base != base
                || mark.first_unaccounted < base
                || mark.next < mark.first_unaccounted
            {
                return Err("the CSNs of a mark do not follow one another");
            }
            if mark
                .annulled_from
                .is_some_and(|from| from < mark.first_unaccounted || from > mark.next)
            {
                return Err("a mark annuls what it counts as accounted for, or what came after it");
            }
            if mark
                .spans
                .iter()
                .any(|span| span.end.segment < span.first_segment)
            {
                return Err("a span ends before it begins");
            }
            (epoch, base) = (mark.epoch, mark.next);
        }
        Ok(())
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

    /// Reads one line of the given shape: words must match, each `#` stands for any word.
    fn words(&mut self, shape: &'static str) -> Result<Vec<&'a str>, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let text: &'a str = self.text;
        let rest = &text[self.at..];
        let end = rest.find('\n').ok_or(error.clone())?;
        let mut words = rest[..end].split(' ');
        let mut found = Vec::new();
        for expected in shape.split(' ') {
            let word = words.next().ok_or(error.clone())?;
            if expected == "#" {
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

    /// The same where each `#` is a number.
    fn line(&mut self, shape: &'static str, radix: u32) -> Result<Vec<u64>, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let words = self.words(shape)?.into_iter();
        let numbers = words.map(|word| u64::from_str_radix(word, radix));
        numbers.collect::<Result<_, _>>().map_err(|_| error)
    }

    fn holder(&mut self) -> Result<Holder, FormatError> {
        let error = FormatError::new("a line is not as expected", self.at);
        let words = self.words(
            "lease owner # renewals # duration-ms # owed-ms # since # host # process # started # boot # namespaces # #",
        )?;
        let number = |at: usize| words[at].parse::<u64>().map_err(|_| error.clone());
        Ok(Holder {
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

    fn manifest(&mut self) -> Result<Manifest, FormatError> {
        let database = DatabaseId(self.line("database #", 16)?[0]);
        let epoch = self.line("epoch #", 10)?[0];
        let epoch = self.epoch(epoch)?;
        let mut manifest = Manifest {
            database,
            epoch,
            holder: None,
            lanes: Vec::new(),
            marks: Vec::new(),
            discarded: Vec::new(),
        };
        if self.next_is("lease") {
            manifest.holder = Some(self.holder()?);
        }
        while self.next_is("lane") {
            let n = self.line("lane # first-segment #", 10)?;
            manifest.lanes.push(Origin {
                lane: self.lane(n[0])?,
                first_segment: n[1],
            });
        }
        while self.next_is("mark") {
            let n = self.line("mark epoch # base # first-unaccounted # next #", 10)?;
            let mut mark = Mark {
                epoch: self.epoch(n[0])?,
                base: Csn(n[1]),
                first_unaccounted: Csn(n[2]),
                annulled_from: None,
                next: Csn(n[3]),
                spans: Vec::new(),
            };
            if self.next_is("annulled") {
                mark.annulled_from = Some(Csn(self.line("annulled from #", 10)?[0]));
            }
            while self.next_is("span") {
                let n = self.line(
                    "span lane # first-segment # end-segment # end-offset # blocks #",
                    10,
                )?;
                mark.spans.push(Span {
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
            let n = self.line("discarded lane # first-segment # last-segment #", 10)?;
            let lane = self.lane(n[0])?;
            manifest.discarded.push(Discarded {
                lane,
                first_segment: n[1],
                last_segment: n[2],
            });
        }
        if !self.next_is("crc") {
            return Err(FormatError::new("a line is not as expected", self.at));
        }
        Ok(manifest)
    }
}
