//! Judges crashes: what clients were told against what came back.
//!
//! Owns its own record of who depends on whom. It is kept by the test at the moments at which its scripts read and
//! write, from what the values themselves say about who wrote them, and knows nothing of CSNs, floors or lists: the
//! engine's tracking is what is on trial.
//!
//! What is checked, at each crash:
//! - what was acknowledged has survived;
//! - whoever has survived, all it read or overwrote has survived;
//! - what any client was told (rows, absent rows, errors that tell of rows) was written by survivors;
//! - every row is the one that the survivors' writes, in their order, give;
//! - what an earlier recovery dropped or kept stays dropped or kept.
//!
//! And while the machine runs: nobody is told anything before all of it, and all that it depends on, is hardened; and
//! nobody who could be told is called uncommitted ([`Oracle::committable`]).
//!
//! A transaction's survival shows in the ledger: each one that writes also leaves its number there.
//!
//! **Copies.** A backup or a branch that is made beside the running machine is one moment of it, and is judged by
//! [`Oracle::copied`]:
//! - what anybody was told of before the reading began is in it ([`Oracle::told`]);
//! - whoever is in it, all it read or overwrote is in it;
//! - every row is the one that the writes of those in it, in their order, give;
//! - nothing is in it that never was, or that a crash has taken back.
//!
//! A copy may be of a moment that is long past. So the judge of a machine that is read keeps what is superseded and
//! what earlier lives knew ([`Oracle::keep_history`]); the judge of others forgets it with each crash.

use std::collections::{BTreeMap, BTreeSet};

/// Number of a transaction, never used twice.
pub type WriterId = u64;

/// A key of the rows that transactions share.
pub type Key = u64;

/// What a key holds: the row that has it, and the row's value. `None`: no row has it.
pub type KeyState = Option<(u64, Vec<u8>)>;

/// One state of a key.
#[derive(Clone, Debug)]
struct Version {
    order: u64,
    writer: WriterId,
    state: KeyState,
}

impl Version {
    fn value(&self) -> Option<&[u8]> {
        self.state.as_ref().map(|(_, value)| value.as_slice())
    }

    fn row(&self) -> Option<u64> {
        self.state.as_ref().map(|(row, _)| *row)
    }
}

/// What is known of a transaction that has become visible in this life.
#[derive(Clone, Debug, Default)]
struct Record {
    /// Whom it read or overwrote.
    follows: BTreeSet<WriterId>,
    hardened: bool,
    acknowledged: bool,
}

/// What a crash did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Transactions of this life that survived.
    pub survived: u64,
    /// Those of them that nobody had acknowledged.
    pub survived_unacknowledged: u64,
    /// Transactions of this life that did not survive.
    pub lost: u64,
    /// Those of them that were on stable storage but whose predecessors were not.
    pub lost_though_hardened: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// How many transactions have become visible.
    order: u64,
    keys: BTreeMap<Key, Vec<Version>>,
    records: BTreeMap<WriterId, Record>,
    answers: Vec<(WriterId, BTreeSet<WriterId>)>,
    /// Survivors of earlier lives.
    settled: BTreeSet<WriterId>,
    /// What earlier lives lost.
    lost: BTreeSet<WriterId>,
    keeps_history: bool,
    /// Whom survivors of earlier lives followed, if history is kept.
    past: BTreeMap<WriterId, BTreeSet<WriterId>>,
}

/// What a copy holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Transactions in it.
    pub transactions: u64,
    /// Those of them that nobody had been told of when the reading began.
    pub later: u64,
    /// Transactions of this life that are visible by now and not in it.
    pub left_out: u64,
}

impl Oracle {
    /// The moment of a snapshot taken now.
    pub fn now(&self) -> u64 {
        self.order
    }

    fn visible(&self, key: Key, snapshot: u64) -> Option<&Version> {
        let versions = self.keys.get(&key)?;
        versions.iter().rev().find(|v| v.order <= snapshot)
    }

    /// Someone has read `key` in the snapshot and seen `value`: whom it depends on. An error if that is not what is
    /// there.
    pub fn read(
        &self,
        key: Key,
        snapshot: u64,
        value: Option<&[u8]>,
    ) -> Result<Option<WriterId>, String> {
        let version = self.visible(key, snapshot);
        let expected = version.and_then(Version::value);
        if expected != value {
            return Err(format!(
                "key {key} reads {:?}, not {:?}",
                value.map(head),
                expected.map(head)
            ));
        }
        Ok(version.map(|version| version.writer))
    }

    /// Who wrote the newest state of a key.
    pub fn newest(&self, key: Key) -> Option<WriterId> {
        let versions = self.keys.get(&key)?;
        versions.last().map(|version| version.writer)
    }

    /// Who deleted the row that the snapshot has of a key.
    pub fn deleter_since(&self, key: Key, snapshot: u64) -> Option<WriterId> {
        let row = self.visible(key, snapshot)?.row();
        let mut later = self.keys.get(&key)?.iter();
        let other = later.find(|version| version.order > snapshot && version.row() != row);
        other.map(|version| version.writer)
    }

    /// Everybody who has become visible in this life.
    pub fn everybody(&self) -> impl Iterator<Item = WriterId> {
        self.records.keys().copied()
    }

    /// A transaction has become visible: its writes, in any order, and whom it follows.
    pub fn visible_now(
        &mut self,
        writer: WriterId,
        follows: BTreeSet<WriterId>,
        writes: impl IntoIterator<Item = (Key, KeyState)>,
    ) {
        self.order += 1;
        let order = self.order;
        for (key, state) in writes {
            self.keys.entry(key).or_default().push(Version {
                order,
                writer,
                state,
            });
        }
        let record = Record {
            follows,
            ..Record::default()
        };
        self.records.insert(writer, record);
    }

    /// The transaction's entry, and everything before it in its stream, is on stable storage.
    pub fn hardened(&mut self, writer: WriterId) {
        if let Some(record) = self.records.get_mut(&writer) {
            record.hardened = true;
        }
    }

    /// The first one among these and their predecessors that is not hardened.
    fn first_soft(&self, of: impl IntoIterator<Item = WriterId>) -> Option<WriterId> {
        let mut left: Vec<WriterId> = of.into_iter().collect();
        let mut seen: BTreeSet<WriterId> = left.iter().copied().collect();
        while let Some(writer) = left.pop() {
            if self.settled.contains(&writer) {
                continue;
            }
            let Some(record) = self.records.get(&writer).filter(|r| r.hardened) else {
                return Some(writer);
            };
            left.extend(record.follows.iter().filter(|next| seen.insert(**next)));
        }
        None
    }

    /// May clients hear of it, by the precise rule?
    pub fn committable(&self, writer: WriterId) -> bool {
        self.first_soft([writer]).is_none()
    }

    /// A client hears that its transaction is committed.
    pub fn acknowledged(&mut self, writer: WriterId) -> Result<(), String> {
        if let Some(soft) = self.first_soft([writer]) {
            return Err(format!(
                "{writer} was acknowledged before {soft} was hardened"
            ));
        }
        let record = self.records.get_mut(&writer);
        let record = record.ok_or(format!("{writer} was acknowledged and never visible"))?;
        record.acknowledged = true;
        Ok(())
    }

    /// A client hears something that these transactions wrote; `reader` is who asked.
    pub fn answered(&mut self, reader: WriterId, told: BTreeSet<WriterId>) -> Result<(), String> {
        if let Some(soft) = self.first_soft(told.iter().copied()) {
            return Err(format!(
                "{reader} was told what {soft} wrote before that was hardened"
            ));
        }
        self.answers.push((reader, told));
        Ok(())
    }

    /// Nothing is forgotten from now on: copies are made.
    pub fn keep_history(&mut self) {
        self.keeps_history = true;
    }

    /// Everything that somebody has been told of by now, or that has survived a crash: what a copy must hold whose
    /// reading begins now.
    pub fn told(&self) -> BTreeSet<WriterId> {
        let acknowledged = self
            .records
            .iter()
            .filter(|(_, record)| record.acknowledged);
        let answers = self.answers.iter().flat_map(|(_, told)| told);
        let told = self
            .settled
            .iter()
            .chain(acknowledged.map(|(writer, _)| writer));
        told.chain(answers).copied().collect()
    }

    /// The most of these that can be one moment: without those who follow somebody who is not among them. Earlier
    /// lives' survivors are.
    pub fn closed(&self, among: &BTreeSet<WriterId>) -> BTreeSet<WriterId> {
        let mut closed = among.clone();
        loop {
            let is_in = |next: &WriterId| closed.contains(next) || self.settled.contains(next);
            let all_are_in = |writer: &&WriterId| {
                let record = self.records.get(writer);
                record.is_none_or(|record| record.follows.iter().all(is_in))
            };
            let left: BTreeSet<WriterId> = closed.iter().filter(all_are_in).copied().collect();
            if left.len() == closed.len() {
                return closed;
            }
            closed = left;
        }
    }

    /// A copy has these numbers in its ledger and these rows; `told` is what [`Oracle::told`] said before its reading
    /// began.
    pub fn copied(
        &self,
        told: &BTreeSet<WriterId>,
        ledger: &BTreeSet<WriterId>,
        rows: &BTreeMap<Key, Vec<u8>>,
    ) -> Result<CopyReport, String> {
        if let Some(gone) = told.difference(ledger).next() {
            return Err(format!(
                "somebody was told of {gone} before the reading began, and it is not in the copy"
            ));
        }
        if let Some(back) = self.lost.intersection(ledger).next() {
            return Err(format!("{back} was lost in a crash, and is in the copy"));
        }
        for writer in ledger {
            let this_life = self.records.get(writer).map(|record| &record.follows);
            let Some(follows) = this_life.or_else(|| self.past.get(writer)) else {
                return Err(format!("{writer} is in the copy and was never visible"));
            };
            if let Some(gone) = follows.difference(ledger).next() {
                return Err(format!(
                    "{writer} is in the copy and {gone}, which it follows, is not"
                ));
            }
        }
        self.compare(ledger, rows)?;
        let left_out = self
            .records
            .keys()
            .filter(|writer| !ledger.contains(writer));
        Ok(CopyReport {
            transactions: ledger.len() as u64,
            later: ledger.difference(told).count() as u64,
            left_out: left_out.count() as u64,
        })
    }

    /// The machine has stopped and come back with these numbers in the ledger and these rows. Begins the next life.
    pub fn crashed(
        &mut self,
        ledger: &BTreeSet<WriterId>,
        rows: &BTreeMap<Key, Vec<u8>>,
    ) -> Result<CrashReport, String> {
        let mut aftermath = CrashReport::default();
        if let Some(gone) = self.settled.difference(ledger).next() {
            return Err(format!("{gone} survived an earlier crash, and is gone"));
        }
        if let Some(back) = self.lost.intersection(ledger).next() {
            return Err(format!("{back} was lost in an earlier crash, and is back"));
        }
        let known = |writer: &&WriterId| {
            self.settled.contains(*writer) || self.records.contains_key(*writer)
        };
        if let Some(unknown) = ledger.iter().find(|writer| !known(writer)) {
            return Err(format!("{unknown} survived and was never visible"));
        }
        for (writer, record) in &self.records {
            if ledger.contains(writer) {
                aftermath.survived += 1;
                aftermath.survived_unacknowledged += u64::from(!record.acknowledged);
                if let Some(gone) = record.follows.difference(ledger).next() {
                    return Err(format!(
                        "{writer} survived and {gone}, which it follows, did not"
                    ));
                }
            } else {
                aftermath.lost += 1;
                aftermath.lost_though_hardened += u64::from(record.hardened);
                if record.acknowledged {
                    return Err(format!("{writer} was acknowledged, and is gone"));
                }
            }
        }
        for (reader, told) in &self.answers {
            if let Some(gone) = told.difference(ledger).next() {
                return Err(format!(
                    "{reader} was told what {gone} wrote, which is gone"
                ));
            }
        }
        self.compare(ledger, rows)?;
        self.begin_life(ledger);
        Ok(aftermath)
    }

    fn compare(
        &self,
        ledger: &BTreeSet<WriterId>,
        rows: &BTreeMap<Key, Vec<u8>>,
    ) -> Result<(), String> {
        let survives = |version: &&Version| ledger.contains(&version.writer);
        for (key, versions) in &self.keys {
            let last = versions.iter().rev().find(survives);
            let expected = last.and_then(Version::value);
            let there = rows.get(key).map(Vec::as_slice);
            if expected != there {
                return Err(format!(
                    "key {key} is {:?}, not {:?}, which is what those who are there wrote",
                    there.map(head),
                    expected.map(head)
                ));
            }
        }
        match rows.keys().find(|key| !self.keys.contains_key(key)) {
            Some(key) => Err(format!("key {key} came from nowhere")),
            None => Ok(()),
        }
    }

    fn begin_life(&mut self, ledger: &BTreeSet<WriterId>) {
        let gone = self
            .records
            .keys()
            .filter(|writer| !ledger.contains(writer));
        self.lost.extend(gone);
        self.settled.clone_from(ledger);
        let records = std::mem::take(&mut self.records);
        if self.keeps_history {
            let survivors = records
                .into_iter()
                .filter(|(writer, _)| ledger.contains(writer));
            self.past
                .extend(survivors.map(|(writer, record)| (writer, record.follows)));
        }
        self.answers.clear();
        for versions in self.keys.values_mut() {
            versions.retain(|version| ledger.contains(&version.writer));
            if !self.keeps_history {
                // What was superseded nobody can see any more.
                versions.drain(..versions.len().saturating_sub(1));
            }
        }
        self.keys.retain(|_, versions| !versions.is_empty());
    }
}

/// Who wrote a value, and its length: values begin with the number of their writer.
fn head(value: &[u8]) -> (Option<WriterId>, usize) {
    let writer = value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    (writer, value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(writer: WriterId) -> Vec<u8> {
        writer.to_be_bytes().to_vec()
    }

    fn state(row: u64, writer: WriterId) -> KeyState {
        Some((row, value(writer)))
    }

    /// 1 writes key 7, 2 reads that and writes key 8; both hardened.
    fn two() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.visible_now(1, BTreeSet::new(), [(7, state(1, 1))]);
        let read = oracle.read(7, oracle.now(), Some(&value(1)));
        assert_eq!(read, Ok(Some(1)));
        oracle.visible_now(2, BTreeSet::from([1]), [(8, state(2, 2))]);
        oracle.hardened(2);
        oracle
    }

    fn both() -> BTreeMap<Key, Vec<u8>> {
        BTreeMap::from([(7, value(1)), (8, value(2))])
    }

    #[test]
    fn a_follower_is_told_after_its_predecessor_is_hardened() {
        let mut oracle = two();
        assert!(!oracle.committable(2));
        let early = oracle.clone().acknowledged(2).expect_err("1 is not");
        assert!(early.contains("before 1 was hardened"), "{early}");
        let early = oracle.clone().answered(3, BTreeSet::from([2]));
        assert!(early.is_err());
        oracle.hardened(1);
        assert!(oracle.committable(2));
        oracle.acknowledged(2).expect("both are hardened");
        oracle.answered(3, BTreeSet::from([2])).expect("the same");
    }

    #[test]
    fn every_kind_of_loss_is_found() {
        let hardened = || {
            let mut oracle = two();
            oracle.hardened(1);
            oracle
        };
        let found = |mut oracle: Oracle, ledger: &[WriterId], rows| {
            oracle.crashed(&ledger.iter().copied().collect(), &rows)
        };
        let why = |oracle, ledger: &[WriterId], rows| {
            found(oracle, ledger, rows).expect_err("a violation")
        };
        let aftermath = found(two(), &[1, 2], both()).expect("all survived");
        assert_eq!(aftermath.survived, 2);
        let aftermath = found(two(), &[], BTreeMap::new()).expect("nobody was told");
        assert_eq!((aftermath.lost, aftermath.lost_though_hardened), (2, 1));
        let text = why(two(), &[2], BTreeMap::from([(8, value(2))]));
        assert!(text.contains("2 survived and 1"), "{text}");
        let mut told = hardened();
        told.acknowledged(2).expect("may be told");
        let text = why(told, &[1], BTreeMap::from([(7, value(1))]));
        assert!(text.contains("2 was acknowledged"), "{text}");
        let mut told = hardened();
        told.answered(3, BTreeSet::from([1])).expect("may be told");
        let text = why(told, &[], BTreeMap::new());
        assert!(text.contains("3 was told"), "{text}");
        let text = why(two(), &[1, 2], BTreeMap::from([(7, value(1))]));
        assert!(text.contains("key 8 is None"), "{text}");
        let mut more = both();
        more.insert(9, value(1));
        assert!(why(two(), &[1, 2], more).contains("key 9 came from nowhere"));
        assert!(why(two(), &[5], BTreeMap::new()).contains("5 survived and was never"));
    }

    #[test]
    fn a_life_does_not_undo_the_one_before() {
        let mut oracle = two();
        let rows = BTreeMap::from([(7, value(1))]);
        oracle
            .crashed(&BTreeSet::from([1]), &rows)
            .expect("1 stays");
        let back = oracle.clone().crashed(&BTreeSet::from([1, 2]), &both());
        assert!(back.expect_err("a violation").contains("2 was lost"));
        let gone = oracle.clone().crashed(&BTreeSet::new(), &rows);
        assert!(gone.expect_err("a violation").contains("1 survived"));
        oracle
            .crashed(&BTreeSet::from([1]), &rows)
            .expect("the same");
    }

    #[test]
    fn a_snapshot_sees_what_was_there() {
        let mut oracle = two();
        let before = oracle.now();
        oracle.visible_now(3, BTreeSet::from([1]), [(7, None)]);
        assert_eq!(oracle.read(7, before, Some(&value(1))), Ok(Some(1)));
        assert_eq!(
            oracle.read(7, oracle.now(), None),
            Ok(Some(3)),
            "its deleter"
        );
        assert!(oracle.read(7, oracle.now(), Some(&value(1))).is_err());
        assert_eq!(oracle.read(99, oracle.now(), None), Ok(None));
        assert_eq!(oracle.newest(7), Some(3));
        oracle.visible_now(4, BTreeSet::from([3]), [(7, state(3, 4))]);
        assert_eq!(oracle.deleter_since(7, before), Some(3));
        let now = oracle.now();
        oracle.visible_now(5, BTreeSet::from([4]), [(7, state(3, 5))]);
        assert_eq!(oracle.deleter_since(7, now), None, "an update is none");
        oracle.visible_now(6, BTreeSet::from([5]), [(7, state(4, 6))]);
        assert_eq!(
            oracle.deleter_since(7, now),
            Some(6),
            "another row has the key"
        );
    }

    #[test]
    fn a_copy_that_is_no_moment_is_found() {
        let mut oracle = Oracle::default();
        oracle.keep_history();
        oracle.visible_now(1, BTreeSet::new(), [(7, state(1, 1))]);
        oracle.visible_now(2, BTreeSet::from([1]), [(8, state(2, 2))]);
        for writer in [1, 2] {
            oracle.hardened(writer);
        }
        assert_eq!(oracle.told(), BTreeSet::new());
        oracle.acknowledged(1).expect("may be told");
        let told = oracle.told();
        assert_eq!(told, BTreeSet::from([1]));
        oracle.visible_now(3, BTreeSet::from([1]), [(7, state(1, 3))]);
        let judge = |oracle: &Oracle, told: &[WriterId], ledger: &[WriterId], rows| {
            let set = |of: &[WriterId]| of.iter().copied().collect();
            oracle.copied(&set(told), &set(ledger), &rows)
        };
        let first = || BTreeMap::from([(7, value(1))]);
        let later = || BTreeMap::from([(7, value(3)), (8, value(2))]);
        // Any closed set is a moment that a crash could have left.
        let copied = judge(&oracle, &[1], &[1], first()).expect("a moment");
        assert_eq!(
            (copied.transactions, copied.later, copied.left_out),
            (1, 0, 2)
        );
        let copied = judge(&oracle, &[1], &[1, 2, 3], later()).expect("a moment");
        assert_eq!(
            (copied.transactions, copied.later, copied.left_out),
            (3, 2, 0)
        );
        judge(&oracle, &[1], &[1, 2], both()).expect("a moment");
        let among = |of: &[WriterId]| oracle.closed(&of.iter().copied().collect());
        assert_eq!(among(&[2, 3]), BTreeSet::new());
        assert_eq!(among(&[1, 3]), BTreeSet::from([1, 3]));
        let why = |told: &[WriterId], ledger: &[WriterId], rows| {
            judge(&oracle, told, ledger, rows).expect_err("no moment")
        };
        let text = why(&[1], &[], BTreeMap::new());
        assert!(text.contains("told of 1 before"), "{text}");
        let text = why(&[], &[2], BTreeMap::from([(8, value(2))]));
        assert!(text.contains("2 is in the copy and 1"), "{text}");
        let text = why(&[1], &[1, 2], later());
        assert!(text.contains("key 7 is"), "{text}");
        let text = why(&[1], &[1, 9], first());
        assert!(text.contains("9 is in the copy and was never"), "{text}");
        // What a crash has taken back is in no copy; what it left can still be copied as it was before.
        oracle
            .crashed(&BTreeSet::from([1, 3]), &BTreeMap::from([(7, value(3))]))
            .expect("2 was never acknowledged");
        let text = judge(&oracle, &[1], &[1, 2], both()).expect_err("no moment");
        assert!(text.contains("2 was lost"), "{text}");
        judge(&oracle, &[1], &[1], first()).expect("as it was");
        let copied = judge(&oracle, &[1, 3], &[1, 3], BTreeMap::from([(7, value(3))]));
        assert_eq!(copied.expect("as it is").left_out, 0);
    }
}
