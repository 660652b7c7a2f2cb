//! What clients do: random transactions over few keys, and the record of what they saw and were told.
//!
//! A value begins with the number of the transaction that wrote it. Whoever reads or overwrites it depends on that one;
//! whoever finds nothing depends on who deleted it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use logstead_engine::{
    CommitError, Engine, ExpectPresent, FaultError, Guard, Index, Isolation, Outcome, RowBuilder,
    RowRef, Table, Txn, Worker, WriteError,
};
use logstead_sim::crash::{Key, KeyState, Oracle, WriterId};
use logstead_types::Csn;

use logstead_sim::Dice;

use crate::watched::Watched;

/// Keys there are.
pub(crate) const KEYS: u64 = 6;

/// What all clients share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) oracle: Oracle,
    pub(crate) writers: BTreeMap<Csn, WriterId>,
    pub(crate) next_writer: WriterId,
    /// Visible, and their clients have not heard of it.
    pub(crate) unacknowledged: BTreeMap<WriterId, Csn>,
    /// Of this life, those whose records are in a side segment.
    pub(crate) large: BTreeSet<Csn>,
    pub(crate) counts: Counts,
    /// The first thing that was wrong.
    pub(crate) wrong: Option<String>,
}

/// What happened, to see that everything does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: u64,
    pub(crate) answered: u64,
    pub(crate) errors_told: u64,
    pub(crate) rolled_back: u64,
    pub(crate) large: u64,
}

impl Shared {
    /// Takes in what has become hardened.
    pub(crate) fn hear_of_hardened(&mut self, home: &Watched) {
        for csn in home.take_hardened() {
            if let Some(&writer) = self.writers.get(&csn) {
                self.oracle.hardened(writer);
            }
        }
    }

    fn check<T>(&mut self, result: Result<T, String>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(what) => {
                self.wrong.get_or_insert(what);
                None
            }
        }
    }
}

pub(crate) type Log = Rc<RefCell<Shared>>;

/// Tables that the keys are spread over: what is tracked by pages tells tables apart.
pub(crate) const TABLES: u64 = 3;

/// The tables of one life.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) engine: Engine,
    pub(crate) rows: Vec<(Arc<Table>, Arc<Index>)>,
    pub(crate) ledger: Arc<Table>,
}

impl Tables {
    /// What a transaction reads of a key, brought in if it is absent.
    pub(crate) fn read(&self, txn: &mut Txn, key: Key) -> Result<Option<Vec<u8>>, FaultError> {
        let (_, by_key) = self.of(key);
        loop {
            let absent = {
                let guard = Guard::pin();
                match txn.get(by_key, &key.to_be_bytes(), &guard) {
                    Ok(row) => return Ok(row.map(|row| value_of(row.bytes))),
                    Err(absent) => absent,
                }
            };
            absent.load_here(txn)?;
        }
    }

    fn of(&self, key: Key) -> &(Arc<Table>, Arc<Index>) {
        &self.rows[(key % TABLES) as usize]
    }
}

pub(crate) fn row(key: Key, value: &[u8]) -> Vec<u8> {
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&key.to_be_bytes()));
    row.push(Some(value));
    row.finish().to_vec()
}

pub(crate) fn number_of(row: RowRef<'_>) -> u64 {
    let bytes = row.column(0).and_then(|bytes| bytes.try_into().ok());
    u64::from_be_bytes(bytes.expect("eight bytes"))
}

pub(crate) fn value_of(row: RowRef<'_>) -> Vec<u8> {
    row.column(1).expect("a value").to_vec()
}

fn writer_of(row: RowRef<'_>) -> Option<WriterId> {
    let bytes = row.column(1)?.first_chunk()?;
    Some(u64::from_be_bytes(*bytes))
}

/// The transaction cannot go on.
enum Stop {
    /// It rolls back, and its client hears nothing of rows.
    Retry,
    /// It rolls back, and its client hears of a row that this one wrote (T15).
    Told(Option<WriterId>),
}

/// One transaction as its client knows it.
struct Attempt {
    writer: WriterId,
    /// The moment of the statement's snapshot.
    snapshot: u64,
    follows: BTreeSet<WriterId>,
    own: BTreeMap<Key, KeyState>,
    large: bool,
}

pub(crate) struct Client {
    pub(crate) tables: Tables,
    pub(crate) worker: Worker,
    pub(crate) log: Log,
    pub(crate) home: Arc<Watched>,
    pub(crate) dice: Dice,
    /// Bytes of a value that makes a transaction large.
    pub(crate) large_bytes: usize,
    /// One transaction in so many is.
    pub(crate) large_one_in: u64,
}

async fn breathe() {
    logstead_engine::yield_now().await;
}

impl Client {
    pub(crate) async fn run(mut self, count: u64) {
        for _ in 0..count {
            if self.transaction().await.is_none() {
                // The log has failed: the process would end.
                return;
            }
            if self.dice.one_in(3) {
                breathe().await;
            }
        }
    }

    /// `None`: the log has failed.
    async fn transaction(&mut self) -> Option<()> {
        let isolation = match self.dice.roll(8) {
            0..4 => Isolation::ReadCommitted,
            4..7 => Isolation::RepeatableRead,
            _ => Isolation::Serializable,
        };
        let writer = {
            let mut log = self.log.borrow_mut();
            log.next_writer += 1;
            log.next_writer
        };
        let mut txn = self.worker.begin(isolation);
        let mut attempt = Attempt {
            writer,
            snapshot: 0,
            follows: BTreeSet::new(),
            own: BTreeMap::new(),
            large: self.dice.one_in(self.large_one_in),
        };
        let only_reads = self.dice.one_in(4);
        let statements = if only_reads && self.dice.one_in(2) {
            1
        } else {
            1 + self.dice.roll(4)
        };
        for number in 0..statements {
            match self
                .statement(&mut txn, &mut attempt, only_reads, number == 0)
                .await
            {
                Ok(()) => {}
                Err(Stop::Retry) => {
                    txn.abort();
                    breathe().await;
                    return Some(());
                }
                Err(Stop::Told(told)) => {
                    let awaits = txn.commit_wait();
                    txn.abort();
                    self.tables.engine.acknowledged(awaits).await.ok()?;
                    let log = &mut *self.log.borrow_mut();
                    log.hear_of_hardened(&self.home);
                    log.counts.errors_told += 1;
                    let answer = log.oracle.answered(writer, told.into_iter().collect());
                    log.check(answer);
                    return Some(());
                }
            }
            if self.dice.one_in(2) {
                breathe().await;
            }
        }
        if self.dice.one_in(16) {
            self.log.borrow_mut().counts.rolled_back += 1;
            txn.abort();
            return Some(());
        }
        self.commit(txn, attempt).await
    }

    async fn statement(
        &mut self,
        txn: &mut Txn,
        attempt: &mut Attempt,
        only_reads: bool,
        first: bool,
    ) -> Result<(), Stop> {
        self.begin_statement(txn, attempt, first);
        let key = self.dice.roll(KEYS);
        match self.dice.roll(if only_reads { 3 } else { 12 }) {
            0..3 => {
                for key in key..(key + 1 + self.dice.roll(2)).min(KEYS) {
                    self.look(txn, attempt, key)?;
                }
            }
            3 => {
                // Nothing of it stays but that it was there (T1).
                let savepoint = txn.savepoint();
                let before = attempt.own.clone();
                self.write(txn, attempt, key, false).await?;
                if self.dice.one_in(2) {
                    breathe().await;
                }
                txn.rollback_to(savepoint);
                attempt.own = before;
            }
            4..6 => self.write(txn, attempt, key, true).await?,
            6 => self.insert_blindly(txn, attempt, key).await?,
            _ => self.write(txn, attempt, key, false).await?,
        }
        txn.end_statement();
        Ok(())
    }

    fn begin_statement(&self, txn: &mut Txn, attempt: &mut Attempt, first: bool) {
        txn.begin_statement();
        if first || txn.isolation() == Isolation::ReadCommitted {
            txn.snapshot();
            attempt.snapshot = self.log.borrow().oracle.now();
        }
    }

    /// Reads a key in the snapshot.
    fn look(&self, txn: &mut Txn, attempt: &mut Attempt, key: Key) -> Result<(), Stop> {
        // The machine stops meanwhile: nobody hears of it.
        self.tables.read(txn, key).map_err(|_| Stop::Retry)?;
        let (_, by_key) = self.tables.of(key);
        let guard = Guard::pin();
        // It was brought in.
        let row = txn.get(by_key, &key.to_be_bytes(), &guard).expect_present();
        let value = row.map(|row| value_of(row.bytes));
        if let Some(own) = attempt.own.get(&key) {
            if own.as_ref().map(|(_, value)| value) != value.as_ref() {
                let what = format!(
                    "{} sees {value:?} of {key}, not its own {own:?}",
                    attempt.writer
                );
                self.log.borrow_mut().wrong.get_or_insert(what);
            }
            return Ok(());
        }
        let log = &mut *self.log.borrow_mut();
        let read = log.oracle.read(key, attempt.snapshot, value.as_deref());
        attempt.follows.extend(log.check(read).flatten());
        Ok(())
    }

    /// The newest state of the row that the snapshot has of the key.
    fn note_newest(&self, attempt: &mut Attempt, key: Key, row: Option<RowRef<'_>>) {
        let writer = match row {
            None => self
                .log
                .borrow()
                .oracle
                .deleter_since(key, attempt.snapshot),
            Some(row) => writer_of(row),
        };
        attempt
            .follows
            .extend(writer.filter(|&writer| writer != attempt.writer));
    }

    fn value(&mut self, attempt: &Attempt) -> Vec<u8> {
        let mut value = attempt.writer.to_be_bytes().to_vec();
        let bytes = if attempt.large {
            self.large_bytes
        } else {
            self.dice.roll(40) as usize
        };
        value.resize(8 + bytes, (bytes % 251) as u8);
        value
    }

    /// Updates or deletes the key, or inserts it if it is not there; waits as often as it must.
    async fn write(
        &mut self,
        txn: &mut Txn,
        attempt: &mut Attempt,
        key: Key,
        deletes: bool,
    ) -> Result<(), Stop> {
        let value = self.value(attempt);
        let (rows, by_key) = self.tables.of(key).clone();
        let mut newest = false;
        loop {
            self.look(txn, attempt, key)?;
            let (done, after) = {
                let guard = Guard::pin();
                let found = txn
                    .get(&by_key, &key.to_be_bytes(), &guard)
                    .expect_present();
                let found = match found {
                    Some(seen) if newest => {
                        let found = txn.read_newest(&rows, seen.rid, &guard).expect_present();
                        self.note_newest(attempt, key, found.map(|row| row.bytes));
                        found
                    }
                    other => other,
                };
                match found {
                    Some(seen) if deletes => {
                        let done = txn.delete(&rows, seen.rid, seen.version);
                        (done, None)
                    }
                    Some(seen) => {
                        let new = row(key, &value);
                        let done = txn.update(&rows, seen.rid, seen.version, &new);
                        (done, Some((seen.rid.0, value.clone())))
                    }
                    None if deletes => return Ok(()),
                    None => {
                        let new = row(key, &value);
                        let done = txn.insert(&rows, &new);
                        let after = done.as_ref().ok().map(|rid| (rid.0, value.clone()));
                        (done.map(|_| ()), after)
                    }
                }
            };
            match done {
                Ok(()) => {
                    // What it overwrites: nobody else can write the key before this one ends.
                    let top = self.log.borrow().oracle.newest(key);
                    attempt.follows.extend(top);
                    attempt.own.insert(key, after);
                    return Ok(());
                }
                Err(WriteError::Blocked(blocker)) => {
                    blocker.wait(txn).await.map_err(|_| Stop::Retry)?;
                    newest = txn.isolation() == Isolation::ReadCommitted;
                }
                Err(WriteError::Absent(absent)) => {
                    absent.load_here(txn).map_err(|_| Stop::Retry)?;
                }
                Err(WriteError::Changed) => newest = true,
                Err(WriteError::Gone | WriteError::SelfModified)
                | Err(WriteError::Unique { .. })
                    if txn.isolation() == Isolation::ReadCommitted =>
                {
                    // As a statement that begins now would see it.
                    self.begin_statement(txn, attempt, false);
                    newest = false;
                }
                Err(WriteError::Unique { .. }) => {
                    let top = self.log.borrow().oracle.newest(key);
                    return Err(Stop::Told(top));
                }
                Err(
                    WriteError::Serialization
                    | WriteError::SerializationDelete
                    | WriteError::Dependencies
                    | WriteError::InstanceRestarted
                    | WriteError::Deadlock,
                ) => return Err(Stop::Retry),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Inserts without a look; the key may well be there, and then the client is told.
    async fn insert_blindly(
        &mut self,
        txn: &mut Txn,
        attempt: &mut Attempt,
        key: Key,
    ) -> Result<(), Stop> {
        if attempt.own.contains_key(&key) {
            return Ok(());
        }
        let (rows, by_key) = self.tables.of(key).clone();
        if txn.isolation() != Isolation::ReadCommitted {
            // The snapshot may hold a row that is deleted by now: an insert would make it two.
            self.look(txn, attempt, key)?;
            let guard = Guard::pin();
            if txn
                .get(&by_key, &key.to_be_bytes(), &guard)
                .expect_present()
                .is_some()
            {
                return Ok(());
            }
        }
        let value = self.value(attempt);
        loop {
            match txn.insert(&rows, &row(key, &value)) {
                Ok(rid) => {
                    let top = self.log.borrow().oracle.newest(key);
                    attempt.follows.extend(top);
                    attempt.own.insert(key, Some((rid.0, value)));
                    return Ok(());
                }
                Err(WriteError::Blocked(blocker)) => {
                    blocker.wait(txn).await.map_err(|_| Stop::Retry)?;
                }
                Err(WriteError::Absent(absent)) => {
                    absent.load_here(txn).map_err(|_| Stop::Retry)?;
                }
                Err(WriteError::Unique { .. }) => {
                    let top = self.log.borrow().oracle.newest(key);
                    return Err(Stop::Told(top));
                }
                Err(
                    WriteError::Serialization
                    | WriteError::SerializationDelete
                    | WriteError::Dependencies
                    | WriteError::InstanceRestarted
                    | WriteError::Deadlock,
                ) => return Err(Stop::Retry),
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn commit(&mut self, mut txn: Txn, attempt: Attempt) -> Option<()> {
        let Attempt {
            writer,
            follows,
            own,
            large,
            ..
        } = attempt;
        let writes = !own.is_empty();
        let told = follows.clone();
        // As DDL does, which looks at more than rows.
        let everything = writes && self.dice.one_in(16);
        if everything {
            txn.depends_on_everything();
        }
        if writes {
            txn.begin_statement();
            loop {
                match txn.insert(&self.tables.ledger, &row(writer, &[])) {
                    Ok(_) => break,
                    // The machine stops, or an instance was restarted: it is rolled back.
                    Err(WriteError::Absent(absent)) if absent.load_here(&txn).is_err() => {
                        return Some(());
                    }
                    Err(WriteError::Absent(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let log = Rc::clone(&self.log);
            txn.on_end(Box::new(move |outcome| {
                if let Outcome::Committed(csn) = outcome {
                    let log = &mut *log.borrow_mut();
                    let mut follows = follows;
                    if everything {
                        follows.extend(log.oracle.everybody());
                    }
                    log.oracle.visible_now(writer, follows, own);
                    log.writers.insert(csn, writer);
                    log.unacknowledged.insert(writer, csn);
                    log.counts.large += u64::from(large);
                    log.large.extend(large.then_some(csn));
                }
            }));
        }
        let receipt = match txn.precommit().await {
            Ok(receipt) => receipt,
            Err(CommitError::Serialization | CommitError::InstanceRestarted) => return Some(()),
            Err(CommitError::LogFailed(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        self.tables
            .engine
            .acknowledged(receipt.waits_for)
            .await
            .ok()?;
        let log = &mut *self.log.borrow_mut();
        log.hear_of_hardened(&self.home);
        let judged = if writes {
            log.counts.acknowledged += 1;
            log.unacknowledged.remove(&writer);
            log.oracle.acknowledged(writer)
        } else {
            log.counts.answered += 1;
            log.oracle.answered(writer, told)
        };
        log.check(judged);
        Some(())
    }
}
