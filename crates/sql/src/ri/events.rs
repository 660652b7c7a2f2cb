//! The queue of what a transaction has still to judge.

use super::set::RuleSet;
use crate::catalog::Timing;
use crate::value::{Datum, Oid};
use logstead_types::Rid;
use std::collections::VecDeque;
use std::sync::Arc;

/// Something to judge: a rule and the row that was written.
#[derive(Clone)]
pub(crate) struct Event {
    /// Which of the queue's rule sets.
    set: u32,
    /// Which table of it.
    pub(crate) table: u32,
    /// Which rule of the table's list that `what` means.
    pub(crate) rule: u32,
    /// The row that was written.
    pub(crate) rid: Rid,
    pub(crate) what: What,
}

/// What was done to the row, and so which list its rule is in.
#[derive(Clone)]
pub(crate) enum What {
    /// It got a key that must be alone: `TableRules::unique`.
    Unique,
    /// The same, and deferred, but it is not known whether anything is in its way: that is asked when the statement ends.
    Unasked,
    /// It got a key that must be there: `TableRules::child`.
    Referencing,
    /// It had these values, and is deleted: `TableRules::parent`.
    Deleted(Box<[Datum]>),
    /// It had the first half of these values, and has the second: `TableRules::parent`.
    Updated(Box<[Datum]>),
}

/// What SET CONSTRAINTS has said.
#[derive(Clone, Default)]
pub struct Modes {
    all: Option<bool>,
    /// By constraint OID; true is DEFERRED.
    single: Vec<(Oid, bool)>,
}

impl Modes {
    /// Is the constraint put off now?
    pub(crate) fn is_deferred(&self, constraint: Oid, timing: Timing) -> bool {
        if !timing.is_deferrable() {
            return false;
        }
        let single = self.single.iter().find(|(oid, _)| *oid == constraint);
        single
            .map(|(_, deferred)| *deferred)
            .or(self.all)
            .unwrap_or(timing.is_deferred())
    }

    /// SET CONSTRAINTS ALL.
    pub fn set_all(&mut self, deferred: bool) {
        self.all = Some(deferred);
        self.single.clear();
    }

    /// SET CONSTRAINTS name.
    pub fn set(&mut self, constraint: Oid, deferred: bool) {
        self.single.retain(|(oid, _)| *oid != constraint);
        self.single.push((constraint, deferred));
    }
}

struct Later {
    event: Event,
    judged: bool,
}

/// The queue of a transaction.
#[derive(Default)]
pub struct Events {
    sets: Vec<Arc<RuleSet>>,
    /// For the end of the statement.
    now: VecDeque<Event>,
    /// Deferred, oldest first; judged ones stay as long as a savepoint may bring them back.
    later: Vec<Later>,
    /// Positions in `later`, in the order they were judged.
    judged: Vec<usize>,
    /// Statements that others are run inside of, whose events are aside.
    aside: usize,
    /// What SET CONSTRAINTS has said.
    pub modes: Modes,
}

/// What a statement has still to judge, while another one is run inside of it.
pub(crate) struct Aside(VecDeque<Event>);

/// How far the queue was when a savepoint was made.
#[derive(Clone, Default)]
pub struct Mark {
    later: usize,
    judged: usize,
    modes: Modes,
}

impl Events {
    /// Takes aside what the running statement has still to judge, because another one is run inside of it.
    pub(crate) fn set_aside(&mut self) -> Aside {
        self.aside += 1;
        Aside(std::mem::take(&mut self.now))
    }

    /// The statement goes on.
    pub(crate) fn put_back(&mut self, aside: Aside) {
        self.aside = self.aside.saturating_sub(1);
        let since = std::mem::replace(&mut self.now, aside.0);
        self.now.extend(since);
    }

    /// Queues an event.
    pub(super) fn push(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rule: usize,
        rid: Rid,
        what: What,
        deferred: bool,
    ) {
        let known = self.sets.iter().rposition(|s| Arc::ptr_eq(s, set));
        let set = known.unwrap_or_else(|| {
            self.sets.push(Arc::clone(set));
            self.sets.len() - 1
        });
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let event = Event {
            set: number(set),
            table: number(table),
            rule: number(rule),
            rid,
            what,
        };
        if deferred {
            self.later.push(Later {
                event,
                judged: false,
            });
        } else {
            self.now.push_back(event);
        }
    }

    /// Is anything to be judged when the statement ends?
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        !self.now.is_empty()
    }

    /// Is anything deferred?
    #[inline]
    pub fn has_deferred(&self) -> bool {
        self.judged.len() < self.later.len()
    }

    /// The next event, and the rules it is about.
    pub(crate) fn next(&mut self) -> Option<(Event, Arc<RuleSet>)> {
        let event = self.now.pop_front()?;
        let set = Arc::clone(self.sets.get(event.set as usize)?);
        Some((event, set))
    }

    /// Makes deferred events due that are not put off (any more); `all` makes everything due, as COMMIT does.
    pub(crate) fn bring_due(&mut self, all: bool) {
        for (at, later) in self.later.iter_mut().enumerate() {
            if later.judged {
                continue;
            }
            let due = all
                || self.sets.get(later.event.set as usize).is_some_and(|set| {
                    set.constraint(&later.event)
                        .is_none_or(|(oid, timing)| !self.modes.is_deferred(oid, timing))
                });
            if due {
                later.judged = true;
                self.judged.push(at);
                self.now.push_back(later.event.clone());
            }
        }
    }

    /// Does a deferred event speak of a row of the table? Its definition must not change then.
    pub fn concern(&self, table: Oid) -> bool {
        self.later.iter().any(|later| {
            !later.judged
                && self
                    .sets
                    .get(later.event.set as usize)
                    .and_then(|set| set.tables.get(later.event.table as usize))
                    .is_some_and(|rules| rules.table.oid == table)
        })
    }

    /// Where the queue is: for a savepoint.
    pub fn mark(&self) -> Mark {
        Mark {
            later: self.later.len(),
            judged: self.judged.len(),
            modes: self.modes.clone(),
        }
    }

    /// Back to where the queue was.
    pub fn rollback_to(&mut self, mark: &Mark) {
        self.now.clear();
        for at in self.judged.drain(mark.judged.min(self.judged.len())..) {
            if let Some(later) = self.later.get_mut(at) {
                later.judged = false;
            }
        }
        self.later.truncate(mark.later);
        self.modes = mark.modes.clone();
    }

    /// Forgets what can never be needed again: called between statements of a transaction without savepoints.
    pub(crate) fn compact(&mut self) {
        if self.now.is_empty() && self.aside == 0 && !self.has_deferred() {
            self.later.clear();
            self.judged.clear();
            self.sets.clear();
        }
    }
}

#[cfg(test)]
mod tests;
