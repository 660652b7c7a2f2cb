//! What clients were told, by whichever server, against what is there.
//!
//! Each transaction that writes has a number, which it leaves in the ledger and as the value of the keys that it
//! writes. What is checked:
//! - whoever was acknowledged is found by every later recovery;
//! - what a recovery has found stays, and what it has not found never comes back, nor what a server that was overtaken
//!   wrote later;
//! - a server that was overtaken acknowledges nothing but what its successor has found;
//! - whoever is there, whom it overwrote is there, and each key has the value that the last one of them wrote;
//! - nobody is told a value that somebody else was told to be overwritten before it asked.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type WriterId = u64;
pub(crate) type Key = u64;

/// What happened, to see that everything does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: u64,
    pub(crate) answered: u64,
    pub(crate) recoveries: u64,
    /// Transactions that a recovery did not find.
    pub(crate) annulled: u64,
    /// Those that it found, and that nobody had acknowledged.
    pub(crate) survived_unacknowledged: u64,
    /// Acknowledged by a server when its successor had recovered.
    pub(crate) acknowledged_late: u64,
    /// Visible at a server when its successor had recovered.
    pub(crate) written_late: u64,
}

/// A transaction that has become visible.
struct Record {
    epoch: u32,
    csn: u64,
    /// Whom it overwrote.
    follows: BTreeSet<WriterId>,
}

#[derive(Default)]
pub(crate) struct Judge {
    next_writer: WriterId,
    records: BTreeMap<WriterId, Record>,
    /// By key, in order: the epoch, and who wrote it.
    keys: BTreeMap<Key, Vec<(u32, WriterId)>>,
    acknowledged: BTreeSet<WriterId>,
    /// Found by the last recovery.
    found: BTreeSet<WriterId>,
    /// Not found by some recovery.
    annulled: BTreeSet<WriterId>,
    /// Of the server that recovered last.
    epoch: u32,
    pub(crate) counts: Counts,
    wrong: Vec<String>,
}

impl Judge {
    pub(crate) fn next_writer(&mut self) -> WriterId {
        self.next_writer += 1;
        self.next_writer
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    pub(crate) fn is_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    pub(crate) fn verdict(&self) -> Result<(), String> {
        match self.wrong.is_empty() {
            true => Ok(()),
            false => Err(self.wrong.join("\n")),
        }
    }

    /// A transaction has become visible at the server of an epoch.
    pub(crate) fn visible(&mut self, epoch: u32, writer: WriterId, csn: u64, keys: &BTreeSet<Key>) {
        self.counts.written_late += u64::from(epoch < self.epoch);
        let mut follows = BTreeSet::new();
        for &key in keys {
            let writers = self.keys.entry(key).or_default();
            // Of this server, or what it has recovered.
            let before = writers
                .iter()
                .rev()
                .find(|(of, writer)| *of == epoch || *of < epoch && self.found.contains(writer));
            follows.extend(before.map(|(_, writer)| *writer));
            writers.push((epoch, writer));
            // One server's, in its order; what others write beside it comes before or behind.
            writers.sort_by_key(|(epoch, _)| *epoch);
        }
        if epoch < self.epoch {
            // Of a server that was overtaken: nobody ever finds it.
            self.annulled.insert(writer);
        }
        let record = Record {
            epoch,
            csn,
            follows,
        };
        self.records.insert(writer, record);
    }

    /// A client is told that its transaction is committed.
    pub(crate) fn acknowledged(&mut self, epoch: u32, writer: WriterId) {
        self.counts.acknowledged += 1;
        if epoch < self.epoch {
            self.counts.acknowledged_late += 1;
            if !self.found.contains(&writer) {
                self.wrong(format!(
                    "the server of epoch {epoch} has acknowledged {writer}, which that of epoch {} did not find",
                    self.epoch
                ));
            }
        }
        self.acknowledged.insert(writer);
    }

    /// What somebody who asks now must be told of a key, or what is newer.
    pub(crate) fn floor(&self, key: Key) -> Option<WriterId> {
        let writers = self.keys.get(&key)?;
        let told = |(_, writer): &&(u32, WriterId)| self.acknowledged.contains(writer);
        writers.iter().rev().find(told).map(|(_, writer)| *writer)
    }

    /// A client is told the value of a key; `floor` is what that had to be when it asked.
    pub(crate) fn answered(
        &mut self,
        epoch: u32,
        key: Key,
        floor: Option<WriterId>,
        value: Option<WriterId>,
    ) {
        self.counts.answered += 1;
        let place = |writer: Option<WriterId>| {
            let writers = self.keys.get(&key);
            let place = |writer| writers?.iter().position(|(_, of)| *of == writer);
            writer.map(place)
        };
        let (asked, told) = (place(floor).flatten(), place(value).flatten());
        if told < asked {
            self.wrong(format!(
                "the server of epoch {epoch} has told {value:?} of key {key}, and {floor:?} was acknowledged before it was asked"
            ));
        }
        if value.is_some_and(|value| self.annulled.contains(&value)) {
            self.wrong(format!(
                "the server of epoch {epoch} has told {value:?} of key {key}, which was annulled"
            ));
        }
    }

    /// The server of an epoch has recovered this.
    pub(crate) fn recovered(
        &mut self,
        epoch: u32,
        ledger: &BTreeSet<WriterId>,
        rows: &BTreeMap<Key, WriterId>,
    ) {
        if epoch <= self.epoch {
            // It was overtaken while it started: it acknowledges nothing.
            return;
        }
        self.counts.recoveries += 1;
        let mut wrong = Vec::new();
        for writer in self.acknowledged.difference(ledger) {
            wrong.push(format!(
                "{writer} was acknowledged, and is gone in epoch {epoch}"
            ));
        }
        for writer in self.found.difference(ledger) {
            wrong.push(format!(
                "{writer} was found before, and is gone in epoch {epoch}"
            ));
        }
        for writer in self.annulled.intersection(ledger) {
            wrong.push(format!(
                "{writer} was annulled, and is back in epoch {epoch}"
            ));
        }
        for writer in ledger {
            match self.records.get(writer) {
                None => wrong.push(format!("{writer} is there and was never visible")),
                Some(record) => {
                    if let Some(gone) = record.follows.difference(ledger).next() {
                        wrong.push(format!("{writer} is there, and {gone} is not"));
                    }
                }
            }
        }
        for (key, writers) in &self.keys {
            let there = |(_, writer): &&(u32, WriterId)| ledger.contains(writer);
            let expected = writers.iter().rev().find(there).map(|(_, writer)| writer);
            if expected != rows.get(key) {
                let found = rows.get(key);
                wrong.push(format!("key {key} is {found:?}, not {expected:?}"));
            }
        }
        let of_before = |(writer, record): (&WriterId, &Record)| {
            (record.epoch < epoch && !ledger.contains(writer)).then_some(*writer)
        };
        let before = self.annulled.len();
        self.annulled
            .extend(self.records.iter().filter_map(of_before));
        self.counts.annulled += (self.annulled.len() - before) as u64;
        let new = ledger.difference(&self.found);
        let unacknowledged = new.filter(|writer| !self.acknowledged.contains(writer));
        self.counts.survived_unacknowledged += unacknowledged.count() as u64;
        self.found.clone_from(ledger);
        self.epoch = epoch;
        self.wrong.extend(wrong);
    }

    /// Entries that must be there, by epoch and CSN: what was acknowledged, and what was found.
    pub(crate) fn told(&self) -> BTreeSet<(u32, u64)> {
        let writers = self.acknowledged.union(&self.found);
        let records = writers.filter_map(|writer| self.records.get(writer));
        records.map(|record| (record.epoch, record.csn)).collect()
    }

    /// Of the server that recovered last.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
}
