//! Who is active, and the decision itself: events in, decisions out.

use std::collections::{BTreeMap, BTreeSet};

use super::certified_history::CertifiedHistory;
use super::ordinal::Ordinal;
use super::reads::ReadSet;
use super::writes::TableWrites;

/// Identifies an active transaction; a later one has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ActiveTxnId(u64);

/// An active transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveTxn {
    pub(crate) ticket: ActiveTxnId,
    /// It sees exactly the certified writers below this.
    pub(crate) begin: Ordinal,
}

/// It must not commit: some order of reads and writes would be a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SerializationFailure;

/// A reader that waits until it knows whether its snapshot is safe.
#[derive(Debug)]
struct Waiter {
    begun: ActiveTxn,
    /// Some concurrent writer has an sstamp below its begin.
    unsafe_: bool,
}

/// What has become of a reader's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotSafety {
    /// Writers that began before it are still active.
    Unknown,
    /// Nothing of what it reads needs to be kept, and it needs no certification.
    Safe,
    /// It must take another snapshot.
    Unsafe,
}

#[derive(Debug)]
pub(super) struct CertifierState {
    /// The place of the next writer.
    next: Ordinal,
    tickets: u64,
    /// Tracked transactions: what they began with grows with their tickets.
    active: BTreeMap<ActiveTxnId, Ordinal>,
    /// Those among them that may write.
    writers: BTreeSet<ActiveTxnId>,
    waiters: Vec<Waiter>,
    kept: CertifiedHistory,
}

impl CertifierState {
    pub(super) fn new() -> CertifierState {
        CertifierState {
            next: Ordinal(1),
            tickets: 0,
            active: BTreeMap::new(),
            writers: BTreeSet::new(),
            waiters: Vec::new(),
            kept: CertifiedHistory::default(),
        }
    }

    /// The place of the next writer.
    pub(super) fn next(&self) -> Ordinal {
        self.next
    }

    /// Is anybody tracked?
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    fn ticket(&mut self) -> ActiveTxnId {
        self.tickets += 1;
        ActiveTxnId(self.tickets)
    }

    /// A transaction takes its snapshot now. `None`: it is a reader whose snapshot is safe.
    pub(super) fn begin(&mut self, read_only: bool) -> Option<ActiveTxn> {
        if read_only && self.writers.is_empty() {
            return None;
        }
        let ticket = self.ticket();
        self.active.insert(ticket, self.next);
        if !read_only {
            self.writers.insert(ticket);
        }
        Some(ActiveTxn {
            ticket,
            begin: self.next,
        })
    }

    /// A reader takes its snapshot now and wants to know whether it is safe before it reads. `None`: it is.
    pub(super) fn begin_waiting(&mut self) -> Option<ActiveTxnId> {
        if self.writers.is_empty() {
            return None;
        }
        let begun = ActiveTxn {
            ticket: self.ticket(),
            begin: self.next,
        };
        self.waiters.push(Waiter {
            begun,
            unsafe_: false,
        });
        Some(begun.ticket)
    }

    /// What has become of the wait; one that is over is forgotten.
    pub(super) fn safety(&mut self, ticket: ActiveTxnId) -> SnapshotSafety {
        let Some(at) = self.waiters.iter().position(|w| w.begun.ticket == ticket) else {
            return SnapshotSafety::Unsafe;
        };
        let safety = self.look(&self.waiters[at]);
        if safety != SnapshotSafety::Unknown {
            self.waiters.swap_remove(at);
        }
        safety
    }

    fn look(&self, waiter: &Waiter) -> SnapshotSafety {
        if waiter.unsafe_ {
            SnapshotSafety::Unsafe
        } else if self
            .writers
            .first()
            .is_some_and(|w| *w < waiter.begun.ticket)
        {
            SnapshotSafety::Unknown
        } else {
            SnapshotSafety::Safe
        }
    }

    /// Ends a wait.
    pub(super) fn stop_waiting(&mut self, ticket: ActiveTxnId) {
        self.waiters.retain(|w| w.begun.ticket != ticket);
    }

    /// Whose wait is over?
    pub(super) fn settled(&self) -> impl Iterator<Item = ActiveTxnId> {
        self.waiters
            .iter()
            .filter(|w| self.look(w) != SnapshotSafety::Unknown)
            .map(|w| w.begun.ticket)
    }

    /// The least sstamp of those who overwrote what the transaction has read, its pstamp so far: must it fail?
    pub(super) fn check(
        &self,
        begin: Ordinal,
        reads: &ReadSet,
    ) -> Result<(), SerializationFailure> {
        if self.kept.overwriters(begin, reads) <= begin.before().max(reads.examined) {
            return Err(SerializationFailure);
        }
        Ok(())
    }

    /// The end of a transaction that changed nothing. It is not active any more, whatever the answer.
    pub(super) fn certify_reader(
        &mut self,
        begun: ActiveTxn,
        reads: &ReadSet,
    ) -> Result<(), SerializationFailure> {
        if reads.examined > Ordinal::NONE {
            // It has looked beyond its snapshot: its place is now, like a writer's.
            return self.certify(begun, reads, &[]);
        }
        let decision = self.check(begun.begin, reads);
        self.end(begun.ticket, None);
        let place = begun.begin.before();
        if decision.is_ok() && place >= self.oldest() {
            self.kept.add_reads(reads, place);
            self.kept.trim(self.oldest());
        }
        decision
    }

    /// The end of a transaction that changed something: its place is the next. It is not active any more, whatever the
    /// answer.
    pub(super) fn certify(
        &mut self,
        begun: ActiveTxn,
        reads: &ReadSet,
        writes: &[TableWrites],
    ) -> Result<(), SerializationFailure> {
        let place = self.next;
        let sstamp = self.kept.overwriters(begun.begin, reads).min(place);
        let pstamp = begun
            .begin
            .before()
            .max(reads.examined)
            .max(self.kept.readers(writes));
        if sstamp <= pstamp {
            self.end(begun.ticket, None);
            return Err(SerializationFailure);
        }
        self.next = Ordinal(place.0 + 1);
        self.end(begun.ticket, Some(sstamp));
        if !self.active.is_empty() {
            self.kept.add_reads(reads, place);
            self.kept.add_writes(writes, place, sstamp);
            self.kept.trim(self.oldest());
        }
        Ok(())
    }

    /// A transaction is over: committed as a writer with `sstamp`, or without a trace.
    pub(super) fn end(&mut self, ticket: ActiveTxnId, sstamp: Option<Ordinal>) {
        if self.active.remove(&ticket).is_none() {
            return;
        }
        if self.writers.remove(&ticket)
            && let Some(sstamp) = sstamp
        {
            for waiter in &mut self.waiters {
                if ticket < waiter.begun.ticket && sstamp < waiter.begun.begin {
                    waiter.unsafe_ = true;
                }
            }
        }
        if self.active.is_empty() {
            self.kept.clear();
        }
    }

    /// The begin of the oldest active transaction, or what the next one's would be.
    fn oldest(&self) -> Ordinal {
        self.active.values().next().copied().unwrap_or(self.next)
    }

    /// As if the limit of what is kept were reached.
    #[cfg(test)]
    pub(super) fn fold(&mut self) {
        self.kept.fold();
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> &CertifiedHistory {
        &self.kept
    }
}
