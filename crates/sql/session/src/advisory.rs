//! Advisory locks: locks of numbers that mean something to applications only.
//!
//! Owns: who holds and who waits for each of them ([`AdvisoryLocks`], one table per server), and what a session holds
//! ([`SessionLocks`]). A lock is asked for inside an expression, which cannot wait. A statement gives up the
//! evaluation, waits, and makes it again (`exec::wait`), so the rest of it happens when the lock is had. An expression
//! that stands alone is waited for when it has been evaluated, before its value leaves
//! (`Session::wait_for_advisory_locks`).
//!
//! Rules: shared locks go with each other, exclusive ones with nothing but the same session's. Who waited longest gets
//! the lock, and nobody overtakes who waits, unless he has that very lock already, or one that the other waits for: he
//! stands in front of that one then. Locks of a session are counted and last until as many unlocks; those of a
//! transaction until it ends or rolls back to a savepoint before.
//!
//! Invariants:
//! - A lock is free before what its holder has committed is durable, as all locks are. Whoever gives it back leaves the
//!   newest commit of its session, which stands for those before, and whoever has it then depends on what was left by
//!   those whose locks conflict. No answer tells of the lock before that is durable, not even in the middle of a
//!   transaction (`Session::settle`).
//! - Every wait stands in its lock's queue; whoever gives something back hands on to the head of the queue under the
//!   table's mutex, so no wake-up is lost (T13).
//! - Waits in a circle are found by the one who closes it, who fails with 40P01 and has left the queue then. Circles
//!   that pass through a row or table lock are looked for by those who wait here, when they begin and every second
//!   (`session::advisory_wait`).

use foldhash::fast::FixedState;
use logstead_engine::{CommitWait, Csn, Engine};
use logstead_sql_catalog::context::{AdvisoryLockRequest, AdvisoryLockRow};
use logstead_sql_func::{AdvisoryLockFunction, AdvisoryLockScope};
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::future::Future;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// What is locked: a database's number, as `pg_locks` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LockTag {
    pub(super) database: DatabaseOid,
    pub(super) class: u32,
    pub(super) object: u32,
    /// 1: one bigint; 2: two integers.
    pub(super) kind: i16,
}

impl LockTag {
    fn hash(&self) -> u64 {
        FixedState::default().hash_one(self)
    }

    /// The key that a function's arguments name.
    fn of(database: DatabaseOid, args: &[Datum]) -> Result<LockTag> {
        match args {
            [Datum::Int8(key)] => {
                let bits = key.cast_unsigned();
                Ok(LockTag {
                    database,
                    class: (bits >> 32) as u32,
                    object: bits as u32,
                    kind: 1,
                })
            }
            [Datum::Int4(class), Datum::Int4(object)] => Ok(LockTag {
                database,
                class: class.cast_unsigned(),
                object: object.cast_unsigned(),
                kind: 2,
            }),
            _ => Err(SqlError::internal("an advisory lock's key has other types")),
        }
    }
}

/// How it is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AdvisoryLockMode {
    Shared,
    Exclusive,
}

impl AdvisoryLockMode {
    fn name(self) -> &'static str {
        match self {
            AdvisoryLockMode::Shared => "ShareLock",
            AdvisoryLockMode::Exclusive => "ExclusiveLock",
        }
    }
}

fn conflict(a: AdvisoryLockMode, b: AdvisoryLockMode) -> bool {
    a == AdvisoryLockMode::Exclusive || b == AdvisoryLockMode::Exclusive
}

/// All advisory locks of a server.
pub(super) struct AdvisoryLocks {
    table: Mutex<LockTable>,
    /// It keeps what was left with locks that were given back.
    engine: Engine,
}

#[derive(Default)]
struct LockTable {
    locks: BTreeMap<LockTag, Lock>,
    /// What each session that waits is in the queue of. It waits for one lock at most.
    waiting: HashMap<i32, LockTag>,
    next_ticket: u64,
}

#[derive(Default)]
struct Lock {
    /// How often each session holds it, by process number and mode.
    holders: BTreeMap<(i32, AdvisoryLockMode), usize>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    ticket: u64,
    pid: i32,
    mode: AdvisoryLockMode,
    waker: Option<Waker>,
}

impl Lock {
    fn held_against(&self, pid: i32, mode: AdvisoryLockMode) -> impl Iterator<Item = i32> + '_ {
        let holders = self.holders.keys();
        holders
            .filter(move |(holder, held)| *holder != pid && conflict(*held, mode))
            .map(|(holder, _)| *holder)
    }

    /// Is it free for a newcomer?
    fn is_free(&self, pid: i32, mode: AdvisoryLockMode) -> bool {
        self.holders.contains_key(&(pid, mode))
            || (self.held_against(pid, mode).next().is_none()
                && !self
                    .waiters
                    .iter()
                    .any(|w| w.pid != pid && conflict(w.mode, mode)))
    }

    fn hold(&mut self, pid: i32, mode: AdvisoryLockMode) {
        *self.holders.entry((pid, mode)).or_default() += 1;
    }

    /// Where a newcomer stands in the queue: behind all, unless the session holds what one of them waits for. These two
    /// would wait for each other.
    fn place(&self, pid: i32) -> usize {
        let held_against = |waiter: &Waiter| {
            [AdvisoryLockMode::Shared, AdvisoryLockMode::Exclusive]
                .into_iter()
                .any(|held| conflict(held, waiter.mode) && self.holders.contains_key(&(pid, held)))
        };
        let place = self.waiters.iter().position(held_against);
        place.unwrap_or(self.waiters.len())
    }

    /// Can who stands in front of the others from `place` on have it at once?
    fn is_free_at(&self, place: usize, pid: i32, mode: AdvisoryLockMode) -> bool {
        let mut ahead = self.waiters.iter().take(place);
        !ahead.any(|w| conflict(w.mode, mode)) && self.held_against(pid, mode).next().is_none()
    }

    /// Gives it to those at the head of the queue that it is free for.
    fn hand_on(&mut self, waiting: &mut HashMap<i32, LockTag>) {
        while let Some(first) = self.waiters.front()
            && self.held_against(first.pid, first.mode).next().is_none()
            && let Some(first) = self.waiters.pop_front()
        {
            self.hold(first.pid, first.mode);
            waiting.remove(&first.pid);
            if let Some(waker) = first.waker {
                waker.wake();
            }
        }
    }
}

impl LockTable {
    fn hand_on(&mut self, key: LockTag) {
        if let Some(lock) = self.locks.get_mut(&key) {
            lock.hand_on(&mut self.waiting);
            if lock.holders.is_empty() && lock.waiters.is_empty() {
                self.locks.remove(&key);
            }
        }
    }

    /// Whom a session waits for.
    fn waits_for(&self, pid: i32) -> Vec<i32> {
        let lock = self.waiting.get(&pid).and_then(|key| self.locks.get(key));
        if let Some(lock) = lock
            && let Some(at) = lock.waiters.iter().position(|w| w.pid == pid)
            && let Some(waiter) = lock.waiters.get(at)
        {
            let ahead = lock.waiters.iter().take(at);
            let ahead = ahead
                .filter(|w| conflict(w.mode, waiter.mode))
                .map(|w| w.pid);
            return lock.held_against(pid, waiter.mode).chain(ahead).collect();
        }
        Vec::new()
    }

    fn waits_in_a_circle(&self, pid: i32) -> bool {
        let mut seen = HashSet::new();
        let mut next = self.waits_for(pid);
        while let Some(other) = next.pop() {
            if other == pid {
                return true;
            }
            if seen.insert(other) {
                next.extend(self.waits_for(other));
            }
        }
        false
    }
}

impl AdvisoryLocks {
    /// Nobody holds any.
    pub(super) fn new(engine: Engine) -> AdvisoryLocks {
        AdvisoryLocks {
            table: Mutex::default(),
            engine,
        }
    }

    /// What those did who had a lock before that is had now, as far as it is not durable.
    pub(super) fn left(&self, key: LockTag, mode: AdvisoryLockMode) -> CommitWait {
        let mut left = CommitWait::none();
        for before in [AdvisoryLockMode::Shared, AdvisoryLockMode::Exclusive] {
            if conflict(before, mode) {
                left.merge(&self.engine.handed_over(key.hash(), before as usize));
            }
        }
        left
    }

    /// Takes a lock if it is free.
    pub(super) fn take(&self, key: LockTag, pid: i32, mode: AdvisoryLockMode) -> bool {
        let mut table = self.table.lock();
        if let Some(lock) = table.locks.get(&key)
            && !lock.is_free(pid, mode)
        {
            return false;
        }
        table.locks.entry(key).or_default().hold(pid, mode);
        true
    }

    /// Stands in line for a lock, in front of those who wait for what the session holds of it (PostgreSQL's
    /// `ProcSleep`).
    /// It has the lock at once if that is free there; 40P01 if those before wait for this session.
    pub(super) fn queue(
        &self,
        key: LockTag,
        pid: i32,
        mode: AdvisoryLockMode,
    ) -> Result<AdvisoryLockWait<'_>> {
        let mut table = self.table.lock();
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        let lock = table.locks.entry(key).or_default();
        let place = lock.place(pid);
        let free = lock.is_free_at(place, pid, mode);
        if free {
            lock.hold(pid, mode);
        } else {
            let waiter = Waiter {
                ticket,
                pid,
                mode,
                waker: None,
            };
            lock.waiters.insert(place, waiter);
            table.waiting.insert(pid, key);
        }
        let circle = !free && table.waits_in_a_circle(pid);
        drop(table);
        let wait = AdvisoryLockWait {
            locks: self,
            key,
            pid,
            mode,
            ticket,
            taken: false,
        };
        if circle {
            return Err(deadlock());
        }
        Ok(wait)
    }

    /// Gives a lock back as often as `times` says. `committed`: the newest that the session has committed, if anything.
    fn give_back(
        &self,
        (key, mode): (LockTag, AdvisoryLockMode),
        pid: i32,
        times: usize,
        committed: Csn,
    ) {
        if committed > Csn::ZERO {
            // Before anybody can take it.
            self.engine.hand_over(key.hash(), mode as usize, committed);
        }
        let mut table = self.table.lock();
        if let Some(lock) = table.locks.get_mut(&key)
            && let Some(count) = lock.holders.get_mut(&(pid, mode))
        {
            *count = count.saturating_sub(times);
            if *count == 0 {
                lock.holders.remove(&(pid, mode));
            }
        }
        table.hand_on(key);
    }

    /// Does a session wait for a lock?
    pub(super) fn is_waiting(&self, pid: i32) -> bool {
        self.table.lock().waiting.contains_key(&pid)
    }

    /// Whom a session waits for.
    pub(super) fn blocking(&self, pid: i32) -> Vec<i32> {
        self.table.lock().waits_for(pid)
    }

    /// `pg_locks`.
    pub(super) fn rows(&self) -> Vec<AdvisoryLockRow> {
        let table = self.table.lock();
        let mut rows = Vec::new();
        for (key, lock) in &table.locks {
            let held = lock.holders.keys().map(|(pid, mode)| (*pid, *mode, true));
            let waiting = lock.waiters.iter().map(|w| (w.pid, w.mode, false));
            rows.extend(
                held.chain(waiting)
                    .map(|(pid, mode, granted)| AdvisoryLockRow {
                        database: key.database,
                        class: key.class,
                        object: key.object,
                        kind: key.kind,
                        pid,
                        mode: mode.name(),
                        granted,
                    }),
            );
        }
        rows
    }
}

/// A place in a lock's queue; dropped before the lock is had, it is given up.
pub(super) struct AdvisoryLockWait<'l> {
    locks: &'l AdvisoryLocks,
    key: LockTag,
    pid: i32,
    mode: AdvisoryLockMode,
    ticket: u64,
    taken: bool,
}

impl Future for AdvisoryLockWait<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let locks = self.locks;
        let mut table = locks.table.lock();
        let lock = table.locks.get_mut(&self.key);
        let waiter = lock.and_then(|lock| {
            let mut waiters = lock.waiters.iter_mut();
            waiters.find(|w| w.ticket == self.ticket)
        });
        match waiter {
            Some(waiter) => {
                waiter.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            // Who leaves the queue otherwise is dropped.
            None => {
                drop(table);
                self.taken = true;
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl Drop for AdvisoryLockWait<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut table = self.locks.table.lock();
        let lock = table.locks.get_mut(&self.key);
        let left = lock.is_some_and(|lock| {
            let waiting = lock.waiters.len();
            lock.waiters.retain(|w| w.ticket != self.ticket);
            lock.waiters.len() < waiting
        });
        if left {
            table.waiting.remove(&self.pid);
            table.hand_on(self.key);
        } else {
            // It came in the meantime, and nobody was told.
            drop(table);
            let lock = (self.key, self.mode);
            self.locks.give_back(lock, self.pid, 1, Csn::ZERO);
        }
    }
}

pub(super) fn deadlock() -> SqlError {
    SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .hint("See server log for query details.")
}

/// The most that one session holds, each counted once however often it is held: PostgreSQL has room for some 6,400 in
/// all, by default.
const LOCKS_MAX: usize = 10_000;

/// Locks of one session.
#[derive(Default)]
pub(super) struct SessionLocks {
    /// How often the session holds each.
    session: BTreeMap<(LockTag, AdvisoryLockMode), usize>,
    /// What its transaction holds: by the number of savepoints that stood then, how often.
    transaction: BTreeMap<(LockTag, AdvisoryLockMode), BTreeMap<usize, usize>>,
    /// What the running statement has still to wait for; whether it is the transaction's.
    pub(crate) wanted: Vec<(LockTag, AdvisoryLockMode, bool)>,
    /// What a part of it that was given up has waited for and not asked for again.
    pub(super) granted: Vec<(LockTag, AdvisoryLockMode, bool)>,
    /// What to warn of when the statement has run.
    pub(crate) warnings: Vec<String>,
    /// What the former holders of locks did that unsent answers tell of.
    inherited: CommitWait,
    /// The newest that the session has committed.
    committed: Csn,
}

/// Locks of a transaction that its session has done with.
pub(super) struct DetachedLocks {
    /// How often it holds each.
    locks: Vec<((LockTag, AdvisoryLockMode), usize)>,
    pid: i32,
    /// The newest that the session had committed.
    committed: Csn,
}

impl DetachedLocks {
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn give_back(&mut self, to: &AdvisoryLocks) {
        for (lock, times) in self.locks.drain(..) {
            to.give_back(lock, self.pid, times, self.committed);
        }
    }
}

/// A session's part of the table, for the functions.
pub(super) struct AdvisoryLockFunctions<'s> {
    pub(super) locks: &'s AdvisoryLocks,
    pub(super) holdings: &'s mut SessionLocks,
    pub(super) database: DatabaseOid,
    pub(super) pid: i32,
    pub(super) level: usize,
    /// What the transaction depends on.
    pub(super) depends_on: &'s RefCell<CommitWait>,
}

impl AdvisoryLockFunctions<'_> {
    /// A blocking function: its value, if the lock was free or has been waited for; else what to wait for.
    pub(super) fn ask(
        mut self,
        scope: AdvisoryLockScope,
        args: &[Datum],
    ) -> Result<Result<Datum, AdvisoryLockRequest>> {
        let (key, mode) = self.wanted(scope.shared, args)?;
        let of_transaction = scope.of_transaction;
        let void = Datum::Text("".into());
        let granted = &mut self.holdings.granted;
        if let Some(at) = granted
            .iter()
            .position(|g| *g == (key, mode, of_transaction))
        {
            granted.swap_remove(at);
            return Ok(Ok(void));
        }
        self.refuse_too_many(key, mode)?;
        if self.take(key, mode, of_transaction) {
            return Ok(Ok(void));
        }
        Ok(Err(AdvisoryLockRequest {
            class: key.class,
            object: key.object,
            kind: key.kind,
            shared: mode == AdvisoryLockMode::Shared,
            of_transaction,
        }))
    }

    /// The lock that a function's arguments name.
    fn wanted(&self, shared: bool, args: &[Datum]) -> Result<(LockTag, AdvisoryLockMode)> {
        let mode = match shared {
            true => AdvisoryLockMode::Shared,
            false => AdvisoryLockMode::Exclusive,
        };
        Ok((LockTag::of(self.database, args)?, mode))
    }

    fn refuse_too_many(&self, key: LockTag, mode: AdvisoryLockMode) -> Result<()> {
        if self.holdings.len() < LOCKS_MAX || self.holdings.holds(key, mode) {
            return Ok(());
        }
        Err(
            SqlError::new(SqlState::OUT_OF_MEMORY, "out of shared memory").hint(format!(
                "A session holds at most {LOCKS_MAX} advisory locks."
            )),
        )
    }

    /// Takes the lock if it is free.
    fn take(&mut self, key: LockTag, mode: AdvisoryLockMode, of_transaction: bool) -> bool {
        let taken = self.locks.take(key, self.pid, mode);
        if taken {
            self.holdings
                .note(key, mode, of_transaction.then_some(self.level));
            let left = self.locks.left(key, mode);
            self.holdings.inherit(&left, self.depends_on);
        }
        taken
    }

    /// pg_advisory_lock and its kin.
    pub(super) fn call(mut self, function: AdvisoryLockFunction, args: &[Datum]) -> Result<Datum> {
        let (scope, tries) = match function {
            AdvisoryLockFunction::UnlockAll => {
                self.unlock_all();
                return Ok(Datum::Text("".into()));
            }
            AdvisoryLockFunction::Unlock { shared } => {
                let (key, mode) = self.wanted(shared, args)?;
                return Ok(Datum::Bool(self.unlock(key, mode)));
            }
            AdvisoryLockFunction::Lock(scope) => (scope, false),
            AdvisoryLockFunction::TryLock(scope) => (scope, true),
        };
        let (key, mode) = self.wanted(scope.shared, args)?;
        self.refuse_too_many(key, mode)?;
        let taken = self.take(key, mode, scope.of_transaction);
        if !taken && !tries {
            let wanted = &mut self.holdings.wanted;
            wanted.push((key, mode, scope.of_transaction));
        }
        Ok(match tries {
            true => Datum::Bool(taken),
            false => Datum::Text("".into()),
        })
    }

    fn unlock(&mut self, key: LockTag, mode: AdvisoryLockMode) -> bool {
        let Some(count) = self.holdings.session.get_mut(&(key, mode)) else {
            let text = format!("you don't own a lock of type {}", mode.name());
            self.holdings.warnings.push(text);
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.holdings.session.remove(&(key, mode));
        }
        let committed = self.holdings.committed;
        self.locks.give_back((key, mode), self.pid, 1, committed);
        true
    }

    pub(super) fn unlock_all(&mut self) {
        self.holdings.end_session(self.locks, self.pid);
    }
}

impl SessionLocks {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.session.len() + self.transaction.len() + self.wanted.len()
    }

    fn holds(&self, key: LockTag, mode: AdvisoryLockMode) -> bool {
        self.session.contains_key(&(key, mode)) || self.transaction.contains_key(&(key, mode))
    }

    pub(super) fn note(&mut self, key: LockTag, mode: AdvisoryLockMode, level: Option<usize>) {
        let lock = (key, mode);
        let times = match level {
            Some(level) => {
                let levels = self.transaction.entry(lock).or_default();
                levels.entry(level).or_default()
            }
            None => self.session.entry(lock).or_default(),
        };
        *times += 1;
    }

    /// The session has committed something, which stands for all that it did before.
    pub(super) fn committed(&mut self, csn: Csn) {
        self.committed = csn;
    }

    /// Its newest commit; 0: none.
    pub(super) fn newest_commit(&self) -> Csn {
        self.committed
    }

    /// It has a lock that others left something with.
    pub(super) fn inherit(&mut self, left: &CommitWait, depends_on: &RefCell<CommitWait>) {
        if !left.is_none() {
            depends_on.borrow_mut().merge(left);
            self.inherited.merge(left);
        }
    }

    /// What answers wait for that tell of locks taken since this was asked last.
    pub(super) fn take_inherited(&mut self) -> CommitWait {
        std::mem::take(&mut self.inherited)
    }

    /// Gives back all that is the session's own.
    pub(crate) fn end_session(&mut self, locks: &AdvisoryLocks, pid: i32) {
        for (lock, count) in std::mem::take(&mut self.session) {
            locks.give_back(lock, pid, count, self.committed);
        }
    }

    /// A statement begins: nothing of an earlier one is waited for.
    pub(super) fn begin_statement(&mut self) {
        self.granted.clear();
        self.wanted.clear();
    }

    /// Gives back what the transaction has locked since the savepoint in front of which `index` others stand;
    /// everything without one.
    pub(super) fn end_transaction(
        &mut self,
        locks: &AdvisoryLocks,
        pid: i32,
        index: Option<usize>,
    ) {
        self.wanted.clear();
        let stays = |level: usize| index.is_some_and(|index| level <= index);
        let committed = self.committed;
        self.transaction.retain(|lock, levels| {
            let mut gone = 0;
            levels.retain(|level, times| {
                if !stays(*level) {
                    gone += *times;
                }
                stays(*level)
            });
            if gone > 0 {
                locks.give_back(*lock, pid, gone, committed);
            }
            !levels.is_empty()
        });
    }

    /// What the transaction holds: whoever takes it gives it back when the transaction is over.
    pub(super) fn take_transaction(&mut self, pid: i32) -> DetachedLocks {
        let taken = std::mem::take(&mut self.transaction).into_iter();
        DetachedLocks {
            locks: taken
                .map(|(lock, levels)| (lock, levels.into_values().sum()))
                .collect(),
            pid,
            committed: self.committed,
        }
    }

    pub(super) fn released(&mut self, index: usize) {
        for levels in self.transaction.values_mut() {
            // Those of the savepoints that are gone are those of what stands in front of them.
            let moved: usize = levels.split_off(&(index + 1)).into_values().sum();
            if moved > 0 {
                *levels.entry(index).or_default() += moved;
            }
        }
    }

    /// What is to be done when a statement has run?
    pub(super) fn has_work(&self) -> bool {
        !self.wanted.is_empty() || !self.warnings.is_empty()
    }
}

#[cfg(test)]
mod tests;
