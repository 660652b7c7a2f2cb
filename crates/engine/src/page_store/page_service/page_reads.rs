//! Rows as of a read point, asked of replicas: what the primary has let go of because its log is durable.
//!
//! Chunks are divided among those that give rows: for each chunk every replica has a weight (rendezvous hashing), and
//! the one with the highest is asked. So each of several replicas has to keep its own share of them in memory, and
//! where one goes only its share moves. One that does not answer in time, or says that it cannot, is replaced by the
//! next.
//!
//! A wait that comes to nothing is paid for once, and not for each chunk:
//! - A replica that is behind is asked only for what it has applied.
//! - One that was silent is not asked again before it has answered, be it late.
//! - One that was silent, or that needed long to say that it cannot, is left alone for a while, each time for longer,
//!   up to [`REST_MAX`]; so is one whose rows were not what they should be.
//!
//! The caller waits, which is a loader's thread and never a worker; what several ask for goes out together.
//!
//! Does not: judge what is given ([`crate::load`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use logstead_env::Instant;
use logstead_types::{Csn, Epoch, TableId};
use parking_lot::Condvar;

use super::{Offer, PageRequest, PageServiceOffer, PageServices, State};

/// How long a replica may take for rows before another one is asked, if not told otherwise.
pub(super) const READ_TIME_MAX: Duration = Duration::from_secs(1);
/// With a replica that has not shown for so long what it was sent nothing leaves memory.
const LAG_MAX: Duration = Duration::from_secs(5);
/// Who takes longer to say that it does not tell them is left alone for a while.
const REFUSAL_TIME_MAX: Duration = Duration::from_millis(200);
/// For how long a replica is left alone: the first time, and at most.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(30);
/// Rows that a replica is asked for at a time.
const PENDING_MAX: usize = 256;

/// Rows that a replica is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Its number, which no other one of this life of the server has.
    pub number: u64,
    /// The server's life.
    pub epoch: Epoch,
    /// The read point: everything below is to be applied.
    pub from: Csn,
    /// The table.
    pub table: TableId,
    /// The number of its chunk of 64 rows.
    pub chunk: u64,
    /// A bit for each row of the chunk that is wanted.
    pub slots: u64,
}

/// A row that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// Its place in the chunk.
    pub slot: u8,
    /// The CSN that wrote it.
    pub csn: Csn,
    /// Its bytes.
    pub row: Vec<u8>,
}

/// What a replica says to a [`PageRead`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageReadAnswer {
    /// The number.
    pub number: u64,
    /// Those of the rows that there are; or why it does not tell.
    pub rows: Result<Vec<PageRow>, String>,
}

/// Rows that a replica has told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToldRows {
    /// Those of the rows that there are.
    pub(crate) rows: Vec<PageRow>,
    /// Who has told them.
    by: u64,
}

/// How well a replica keeps up with the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaLag {
    /// It has what it is asked for, or will have it within moments.
    #[default]
    Short,
    /// Who asks it for what it does not have yet may wait in vain. What leaves memory now is asked for later.
    Long,
    /// Nothing is to leave memory on its account.
    TooLong,
}

impl ReplicaLag {
    /// Of a replica that has not shown for so long what it was sent.
    pub fn of(unshown_for: Duration) -> ReplicaLag {
        match unshown_for {
            lag if lag > LAG_MAX => ReplicaLag::TooLong,
            lag if lag > READ_TIME_MAX => ReplicaLag::Long,
            _ => ReplicaLag::Short,
        }
    }
}

/// What is known of a replica that may be asked for rows.
#[derive(Debug, Default)]
pub(super) struct ReadAvailability {
    /// It tells rows when it is asked.
    gives_rows: bool,
    /// It was asked for rows, and has not answered in time: it is not asked again before it has.
    is_silent: bool,
    /// It has applied everything below.
    applied: Csn,
    lag: ReplicaLag,
    /// It is left alone until then.
    rests_until: Instant,
    /// For how long it was left alone the last time; zero if it has told rows since.
    rest: Duration,
}

impl ReadAvailability {
    fn is_reachable(&self, now: Instant) -> bool {
        self.gives_rows && !self.is_silent && now >= self.rests_until
    }

    /// May it be asked for rows as of this read point?
    fn may_tell(&self, from: Csn, now: Instant) -> bool {
        self.is_reachable(now) && (self.lag == ReplicaLag::Short || from <= self.applied)
    }

    /// It is left alone, for longer than the last time, and at least for that long.
    fn rests(&mut self, at_least: Duration, now: Instant) {
        // Several may have waited for it at the same time.
        if now >= self.rests_until {
            self.rest = (self.rest * 2).clamp(at_least.max(REST_MIN), REST_MAX);
            self.rests_until = now + self.rest;
        }
    }
}

/// Rows that somebody waits for.
pub(super) struct PendingRead {
    pub(super) offer: u64,
    answer: Option<Result<Vec<PageRow>, String>>,
    /// Told when there is an answer, or nobody to give one.
    pub(super) done: Arc<Condvar>,
}

/// What a replica weighs for a chunk.
fn weight(offer: u64, read: &PageRead) -> u64 {
    let mix = |x: u64| {
        // SplitMix64's finalizer.
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    mix(mix(mix(offer.wrapping_add(1)) ^ u64::from(read.table.0)) ^ read.chunk)
}

impl State {
    /// The replica to be asked, but for those that were.
    fn best(&mut self, read: &PageRead, asked: &[u64], now: Instant) -> Option<&mut Offer> {
        let offers = self.offers.iter_mut();
        offers
            .filter(|offer| offer.rows.may_tell(read.from, now) && !asked.contains(&offer.id))
            .max_by_key(|offer| weight(offer.id, read))
    }
}

impl PageServices {
    /// How long a replica may take for rows before another one is asked.
    pub fn set_read_time_max(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        self.read_time_max_us.store(micros, Ordering::Relaxed);
    }

    /// Is there one that is asked for rows, and answers, and is not too far behind the log?
    pub(crate) fn any_answers(&self) -> bool {
        let now = self.clock.monotonic();
        let state = self.locked();
        let mut offers = state.offers.iter().map(|offer| &offer.rows);
        offers.any(|rows| rows.is_reachable(now) && rows.lag != ReplicaLag::TooLong)
    }

    /// Asks for rows, one replica after the other, and waits. Nothing: none tells them.
    pub(crate) fn read(&self, mut read: PageRead) -> Option<ToldRows> {
        let most = Duration::from_micros(self.read_time_max_us.load(Ordering::Relaxed));
        let mut asked = Vec::new();
        let mut state = self.locked();
        loop {
            if state.reads.len() >= PENDING_MAX {
                return None;
            }
            let number = state.next_read;
            read.number = number;
            let begun = self.clock.monotonic();
            let offer = state.best(&read, &asked, begun)?;
            let id = offer.id;
            asked.push(id);
            offer.push(PageRequest::Read(read));
            state.next_read += 1;
            let done = Arc::new(Condvar::new());
            let pending = PendingRead {
                offer: id,
                answer: None,
                done: Arc::clone(&done),
            };
            state.reads.insert(number, pending);
            let mut is_late = false;
            let answer = loop {
                let pending = state.reads.get_mut(&number);
                if let Some(answer) = pending.and_then(|pending| pending.answer.take()) {
                    break Some(answer);
                }
                match state.offer(id) {
                    Some(_) if is_late => break None,
                    Some(_) => is_late = done.wait_for(&mut state, most).timed_out(),
                    None => break None,
                }
            };
            state.reads.remove(&number);
            let now = self.clock.monotonic();
            if let Some(offer) = state.offer(id) {
                match &answer {
                    Some(Ok(_)) => offer.rows.rest = Duration::ZERO,
                    Some(Err(_)) if now.since(begun) < REFUSAL_TIME_MAX => {}
                    Some(Err(_)) => offer.rows.rests(REST_MIN, now),
                    None => {
                        offer.rows.is_silent = true;
                        offer.rows.rests(REST_MIN, now);
                        // If it was not sent yet, nobody waits for it any more.
                        offer.requests.retain(
                            |request| !matches!(request, PageRequest::Read(of) if of.number == number),
                        );
                    }
                }
            }
            match answer {
                Some(Ok(rows)) => return Some(ToldRows { rows, by: id }),
                Some(Err(why)) => tracing::debug!("a page service gives no rows: {why}"),
                None => {}
            }
        }
    }

    /// The rows were not what they should be: who has told them is left alone for long, and the server's log says so.
    pub(crate) fn were_wrong(&self, told: &ToldRows, what: &str) {
        let now = self.clock.monotonic();
        if let Some(offer) = self.locked().offer(told.by) {
            offer.rows.rests(REST_MAX, now);
        }
        tracing::warn!("a page service does not give what was there, the log is read: {what}");
    }
}

impl PageServiceOffer {
    /// The replica tells rows from now on, when it is asked.
    pub fn gives_rows(&self) {
        if let Some(offer) = self.services.locked().offer(self.id) {
            offer.rows.gives_rows = true;
        }
    }

    /// The replica has applied everything below this CSN, and keeps up that well.
    pub fn has_applied(&self, applied: Csn, lag: ReplicaLag) {
        if let Some(offer) = self.services.locked().offer(self.id) {
            offer.rows.applied = offer.rows.applied.max(applied);
            offer.rows.lag = lag;
        }
    }

    /// The replica has told rows.
    pub fn answered(&self, answer: PageReadAnswer) {
        let mut state = self.services.locked();
        if let Some(offer) = state.offer(self.id) {
            offer.rows.is_silent = false;
        }
        // What comes too late is nobody's.
        if let Some(pending) = state.reads.get_mut(&answer.number)
            && pending.offer == self.id
        {
            pending.answer = Some(answer.rows);
            pending.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
