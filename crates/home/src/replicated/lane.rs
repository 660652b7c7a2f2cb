//! One lane over several children: which append each child gets next, and which are durable. Pure: the home does what it says.
//!
//! Invariants:
//! - Appends go to each child in the order of the lane, at most so many together.
//! - A child counts for an append only when it has all earlier ones of this life too (T2).
//! - Appends become durable in the order of the lane, each once, and none after the lane has failed.
//!
//! Does not: call a child, or decide that one is dropped.

use crate::{Buffer, Completion, HomeError, Position, Rollover};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// An append that is claimed, and perhaps given.
struct Entry {
    at: Position,
    len: usize,
    /// What the claim was for, a multiple of the alignment.
    claimed: u64,
    /// `None`: not given yet, or nobody needs it any more.
    block: Option<Arc<Buffer>>,
    capacity: usize,
    given: bool,
    done: Option<Completion>,
}

/// A child's progress; entries are counted from the lane's opening.
#[derive(Default)]
struct Progress {
    issued: u64,
    /// All before this are done.
    done_to: u64,
    done_behind: BTreeSet<u64>,
    in_flight: usize,
    /// Somebody is handing it appends.
    busy: bool,
    /// And is to look again.
    again: bool,
    dropped: bool,
    queued_bytes: u64,
}

/// What a child is to append now.
pub(super) struct ChildAppend {
    pub(super) number: u64,
    pub(super) at: Position,
    pub(super) len: usize,
    pub(super) claimed: u64,
    pub(super) block: Arc<Buffer>,
}

/// Somebody who waits.
pub(super) struct AppendOutcome {
    done: Completion,
    block: Arc<Buffer>,
    result: Result<(), HomeError>,
}

impl AppendOutcome {
    /// Without any lock held.
    pub(super) fn complete(self) {
        let AppendOutcome {
            done,
            block,
            result,
        } = self;
        // A slow child may still need the bytes: then there is another buffer for it.
        let block = Arc::try_unwrap(block);
        let block = block.unwrap_or_else(|shared| Buffer::zeroed(shared.capacity()));
        done(block, result);
    }
}

/// See the module's documentation.
pub(super) struct ReplicatedLane {
    rollover: Rollover,
    needed: usize,
    /// Which children count.
    votes: Vec<bool>,
    in_flight_max: Vec<usize>,
    next: Position,
    appends_in_segment: u64,
    /// Number of the first entry that is still here.
    first: u64,
    entries: VecDeque<Entry>,
    /// The first that is not durable.
    durable_to: u64,
    children: Vec<Progress>,
    failed: Option<HomeError>,
}

impl ReplicatedLane {
    pub(super) fn new(
        first_segment: u64,
        rollover: Rollover,
        needed: usize,
        votes: Vec<bool>,
        in_flight_max: Vec<usize>,
    ) -> ReplicatedLane {
        ReplicatedLane {
            rollover,
            needed,
            children: votes.iter().map(|_| Progress::default()).collect(),
            votes,
            in_flight_max,
            next: Position::start_of(first_segment),
            appends_in_segment: 0,
            first: 0,
            entries: VecDeque::new(),
            durable_to: 0,
            failed: None,
        }
    }

    pub(super) fn failed(&self) -> Option<&HomeError> {
        self.failed.as_ref()
    }

    /// Claims the next place.
    pub(super) fn place(&mut self, len: u64) -> Result<Position, HomeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let at = self.rollover.place(self.next, self.appends_in_segment, len);
        if at.segment != self.next.segment {
            self.appends_in_segment = 0;
        }
        self.appends_in_segment += 1;
        self.next = Position {
            offset: at.offset + len,
            ..at
        };
        self.entries.push_back(Entry {
            at,
            len: 0,
            claimed: len,
            block: None,
            capacity: 0,
            given: false,
            done: None,
        });
        Ok(at)
    }

    /// Gives an append its bytes; back comes who is to be told at once.
    pub(super) fn give(
        &mut self,
        at: Position,
        block: Buffer,
        len: usize,
        done: Completion,
    ) -> Option<AppendOutcome> {
        let index = self.entries.binary_search_by_key(&at, |entry| entry.at);
        let misuse = HomeError::Io {
            what: format!("append at {at}, which was not claimed or given before"),
            source: Arc::new(std::io::ErrorKind::InvalidInput.into()),
        };
        let entry = index.ok().and_then(|index| self.entries.get_mut(index));
        let refused = match (&self.failed, &entry) {
            (Some(error), _) => Some(error.clone()),
            (None, Some(entry)) if !entry.given && len as u64 <= entry.claimed => None,
            _ => Some(misuse),
        };
        let block = Arc::new(block);
        let (None, Some(entry)) = (&refused, entry) else {
            let result = Err(refused?);
            return Some(AppendOutcome {
                done,
                block,
                result,
            });
        };
        entry.given = true;
        entry.len = len;
        entry.capacity = block.capacity();
        entry.block = Some(block);
        entry.done = Some(done);
        for child in self.children.iter_mut().filter(|child| !child.dropped) {
            child.queued_bytes += len as u64;
        }
        None
    }

    /// Bytes that a child has been given and has not stored.
    pub(super) fn queued_bytes(&self, child: usize) -> u64 {
        self.children[child].queued_bytes
    }

    /// How many appends, from the first on, a child has stored.
    pub(super) fn stored_to(&self, child: usize) -> u64 {
        self.children[child].done_to
    }

    /// Has a child appends before it, under way or to come, in this segment or an earlier one?
    pub(super) fn needs_segment(&self, child: usize, segment: u64) -> bool {
        let progress = &self.children[child];
        let open = progress.done_to.checked_sub(self.first);
        let next = open.and_then(|index| self.entries.get(usize::try_from(index).ok()?));
        !progress.dropped && next.is_some_and(|entry| entry.at.segment <= segment)
    }

    /// Begins to hand a child its appends; false if somebody does, who then looks again.
    pub(super) fn begin(&mut self, child: usize) -> bool {
        let child = &mut self.children[child];
        child.again = child.busy;
        !std::mem::replace(&mut child.busy, true)
    }

    /// The next append for a child, while it may have one.
    pub(super) fn next_for(&self, child: usize) -> Option<ChildAppend> {
        let progress = &self.children[child];
        if self.failed.is_some()
            || progress.dropped
            || progress.in_flight >= self.in_flight_max[child]
        {
            return None;
        }
        let index = usize::try_from(progress.issued.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get(index)?;
        Some(ChildAppend {
            number: progress.issued,
            at: entry.at,
            len: entry.len,
            claimed: entry.claimed,
            block: Arc::clone(entry.block.as_ref()?),
        })
    }

    /// A child is being handed the append that came last from `next_for`.
    pub(super) fn issued(&mut self, child: usize) {
        let child = &mut self.children[child];
        child.issued += 1;
        child.in_flight += 1;
    }

    /// The child has nothing to do now: true if whoever hands it appends may go.
    pub(super) fn end(&mut self, child: usize) -> bool {
        let child = &mut self.children[child];
        let again = std::mem::take(&mut child.again);
        child.busy = again;
        !again
    }

    /// A child has stored an append.
    pub(super) fn stored(&mut self, child: usize, number: u64, len: usize) -> Vec<AppendOutcome> {
        let progress = &mut self.children[child];
        if progress.dropped {
            return Vec::new();
        }
        progress.in_flight -= 1;
        progress.queued_bytes -= len as u64;
        progress.done_behind.insert(number);
        while progress.done_behind.remove(&progress.done_to) {
            progress.done_to += 1;
        }
        self.advance()
    }

    /// What has become durable; entries that nobody needs go.
    fn advance(&mut self) -> Vec<AppendOutcome> {
        let mut told = Vec::new();
        while self.failed.is_none() {
            let index = usize::try_from(self.durable_to - self.first).unwrap_or(usize::MAX);
            let Some(entry) = self.entries.get_mut(index) else {
                break;
            };
            let has = |(child, votes): (&Progress, &bool)| {
                *votes && !child.dropped && child.done_to > self.durable_to
            };
            let count = self.children.iter().zip(&self.votes).map(has);
            if count.filter(|has| *has).count() < self.needed {
                break;
            }
            if let (Some(done), Some(block)) = (entry.done.take(), &entry.block) {
                told.push((done, Arc::clone(block)));
            }
            self.durable_to += 1;
        }
        let mut children = self.children.iter().filter(|child| !child.dropped);
        let all_issued = children.clone().map(|child| child.issued).min();
        let all_done = children.by_ref().map(|child| child.done_to).min();
        let to = all_issued.unwrap_or(u64::MAX).min(self.durable_to);
        for entry in self.entries.iter_mut().take((to - self.first) as usize) {
            entry.block = None;
        }
        let to = all_done.unwrap_or(u64::MAX).min(self.durable_to);
        self.entries.drain(..(to - self.first) as usize);
        self.first = to;
        let told = told.into_iter().map(|(done, block)| AppendOutcome {
            done,
            block,
            result: Ok(()),
        });
        told.collect()
    }

    /// A child gets no more appends, and counts for none that is not durable yet.
    pub(super) fn drop_child(&mut self, child: usize) -> Vec<AppendOutcome> {
        self.children[child].dropped = true;
        self.children[child].queued_bytes = 0;
        self.advance()
    }

    /// Nothing becomes durable here any more.
    pub(super) fn fail(&mut self, error: HomeError) -> Vec<AppendOutcome> {
        if self.failed.is_some() {
            return Vec::new();
        }
        self.failed = Some(error.clone());
        let mut told = Vec::new();
        for entry in &mut self.entries {
            if let (Some(done), Some(block)) = (entry.done.take(), entry.block.take()) {
                told.push(AppendOutcome {
                    done,
                    block,
                    result: Err(error.clone()),
                });
            }
        }
        told
    }
}
