//! The queue of events: what a transaction has still to check, and which AFTER triggers it has still to fire, for rows
//! that it has written. Foreign keys and deferrable unique keys are such triggers in PostgreSQL (`AfterTriggers` of
//! `trigger.c`); here they are rules, and wait in the same queue.
//!
//! Owns: the queue ([`EventQueue`]). Does not: decide which rows come into it (`event_recorder`), check rules
//! (`constraints`), or fire triggers (`trigger`).
//!
//! The life of an event:
//! 1. INSERT, UPDATE or DELETE has written a row. If the table has rules and one of their columns changed, an event
//!    with the row's number is queued: for the statement's end, or, when the constraint is deferred, for COMMIT.
//! 2. At the statement's end the queue is emptied in order. A referencing row is checked, an action (CASCADE ...)
//!    changes referencing rows, and whatever that changes is queued behind.
//! 3. Deferred events wait for SET CONSTRAINTS or COMMIT. A savepoint remembers how far the queue was: rolling back to
//!    it takes later events back, and brings back those that were checked since.
//!
//! # Why no orphan is committed
//!
//! P is the referenced row, R the referencing one. Rules:
//! - F1 The check of R comes after R was written, finds P as committed (or its own), and takes RowLock::KeyShare on P's
//!   newest version, which is held to the end of the transaction.
//! - F2 Deleting P or changing its key takes RowLock::Update, which conflicts with KeyShare. The check for referencing
//!   rows comes after P was changed, under a snapshot taken then, at every isolation level.
//! - F3 A plan knows all foreign keys of its tables. Making a foreign key takes ShareRowExclusive on the referenced and
//!   on the referencing table, so that writers with older plans have ended (T10). Validating one keeps nobody from
//!   writing: all who do have it in their plans, rows older than the key are checked by one snapshot, and P that goes
//!   afterwards is met by F2.
//!
//! Interleavings; A inserts or moves R, B deletes P or changes its key:
//! 1. A checks, then B writes: B waits for A's KeyShare (F1, F2). A commits: B goes on, and its check, whose snapshot
//!    is taken after its write, sees R: 23503. A rolls back: R is gone, B succeeds.
//! 2. B writes, then A checks: A waits for B. B commits: there is no P any more, A fails with 23503 (40001 if its
//!    snapshot still shows P). B rolls back: A locks P and goes on.
//! 3. B writes, and has checked, before R is even written: as 2, A's check is to come.
//! 4. R is written before, and checked after, B's check: B's check does not see R in flight and need not: A's check
//!    meets B's version of P, as 2.
//! 5. A deletes R or moves it away, B deletes P while A is in flight: B's check finds R's committed version and waits
//!    for A like any other locker. A commits: R is gone, B succeeds. A rolls back: 23503.
//! 6. CASCADE meets R that A has changed or locked: it waits, looks again, and changes R only if it still references P.
//!    A snapshot that does not see A's change fails with 40001: an action never rests on rows its transaction cannot
//!    see.
//! 7. P is deleted and another row with its key inserted, in one transaction: B's check of NO ACTION finds the other
//!    row and is content. A that had to wait for the row that went fails, as in PostgreSQL: it waited for that row, not
//!    for its key.
//! 8. Two transactions check R1 and R2 against one P: KeyShare goes with KeyShare. An update of P that changes no key
//!    does too.
//! 9. Deferred: A writes R and commits later, its check runs before its CSN is drawn, its locks are held until its
//!    versions are visible. B that deleted P in between is met as 2, B that comes later as 1.
//!
//! Every version examined counts as read (T1), errors wait until what they tell is durable (T15): both come with the
//! engine's reads.

mod transition_tables;

pub use transition_tables::{TransitionTables, WrittenRow};

use crate::OperatorMemory;
use logstead_engine::Memory;
use logstead_sql_catalog::Timing;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::RuleSet;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid};
use logstead_types::Rid;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a row that AFTER triggers wait for takes besides its bytes.
const ROW_BYTES: usize = 128;

/// Something to check: a rule and the row that was written.
#[derive(Clone)]
pub(crate) struct AfterTriggerEvent {
    /// Which of the queue's rule sets.
    set: u32,
    /// Which table of it.
    pub(crate) table: u32,
    /// Which rule of the table's list that `what` means.
    pub(crate) rule: u32,
    /// The row that was written.
    pub(crate) rid: Rid,
    pub(crate) what: EventKind,
}

/// What was done to the row, and so which list its rule is in.
#[derive(Clone)]
pub(crate) enum EventKind {
    /// It got a key that must be alone: `TableRules::unique`.
    Unique,
    /// The same, and deferred, but it is not known whether anything is in its way: that is asked when the statement
    /// ends.
    UniqueUnchecked,
    /// It got a key that must be there: `TableRules::child`.
    Referencing,
    /// It had these values, and is deleted: `TableRules::parent`.
    Deleted(Box<[Datum]>),
    /// It had the first half of these values, and has the second: `TableRules::parent`.
    Updated(Box<[Datum]>),
    /// An AFTER trigger is to be fired: `TableRules::triggers`.
    AfterTrigger(Arc<WrittenRow>),
}

/// What SET CONSTRAINTS has said.
#[derive(Clone, Default)]
pub struct SetConstraintState {
    all: Option<bool>,
    /// By constraint OID; true is DEFERRED.
    single: Vec<(Oid, bool)>,
}

impl SetConstraintState {
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

struct DeferredEvent {
    event: AfterTriggerEvent,
    judged: bool,
}

/// The queue of a transaction.
#[derive(Default)]
pub struct EventQueue {
    sets: Vec<Arc<RuleSet>>,
    /// For the end of the statement.
    now: VecDeque<AfterTriggerEvent>,
    /// Deferred, oldest first; checked ones stay as long as a savepoint may bring them back.
    deferred: Vec<DeferredEvent>,
    /// Positions in `deferred`, in the order they were checked.
    judged: Vec<usize>,
    /// Statements that others are run inside of, whose events are aside.
    suspended: usize,
    /// Where an action is that stopped for a trigger.
    pub(crate) action: ReferentialActionState,
    /// What the rows take that AFTER triggers wait for.
    kept_bytes: usize,
    kept: OperatorMemory,
    /// What those take that deferred ones wait for.
    deferred_bytes: usize,
    kept_deferred: OperatorMemory,
    /// What SET CONSTRAINTS has said.
    pub modes: SetConstraintState,
}

/// What a statement has still to check, while another one is run inside of it.
pub struct SuspendedEvents {
    now: VecDeque<AfterTriggerEvent>,
    action: ReferentialActionState,
    kept_bytes: usize,
    kept: OperatorMemory,
}

/// Where an action is, and the row of it that BEFORE triggers are seeing. Each of their calls stops the action, which
/// goes on with this row when that was answered, as the command that it is: so it is told of what the trigger has
/// written over.
#[derive(Default)]
pub(crate) struct ReferentialActionState {
    /// It has stopped for a trigger.
    pub(crate) stopped: bool,
    /// The rows that are to be changed, and how many of them are done; they are looked for once.
    pub(crate) rows: Option<(Vec<Rid>, usize)>,
    /// The row.
    pub(crate) rid: Option<Rid>,
    /// The number of the next trigger.
    pub(crate) at: usize,
    /// What the triggers before have made of it.
    pub(crate) new: Option<Vec<Datum>>,
    /// What the last one gave.
    pub(crate) answered: Option<VecDeque<Vec<Datum>>>,
    /// A BEFORE trigger of a statement was asked.
    pub(crate) opening: bool,
    /// Tables that actions of the statement change, by how.
    begun: Vec<ActionTable>,
    /// Rows that were changed, by table and how.
    captured: Vec<(RelationId, TriggerEvent, Arc<TransitionTables>)>,
}

/// How far the triggers of statements have come of a table that actions change.
pub(crate) struct ActionTable {
    table: RelationId,
    event: TriggerEvent,
    /// The number of the next BEFORE trigger.
    pub(crate) at: usize,
    /// How often an action has ended: AFTER triggers are fired behind the last one.
    ended: u64,
}

impl ReferentialActionState {
    /// How far those of a table have come.
    pub(crate) fn begun(&mut self, table: RelationId, event: TriggerEvent) -> &mut ActionTable {
        let known = self.begun.iter();
        let known = known
            .clone()
            .position(|begun| begun.table == table && begun.event == event);
        let at = known.unwrap_or_else(|| {
            self.begun.push(ActionTable {
                table,
                event,
                at: 0,
                ended: 0,
            });
            self.begun.len() - 1
        });
        &mut self.begun[at]
    }

    /// Where rows of a table go that are changed now.
    pub(super) fn capture(
        &mut self,
        table: RelationId,
        event: TriggerEvent,
    ) -> Arc<TransitionTables> {
        let mut known = self.captured.iter();
        let known = known.position(|(of, by, _)| *of == table && *by == event);
        let Some(at) = known else {
            let captured = Arc::<TransitionTables>::default();
            self.captured.push((table, event, Arc::clone(&captured)));
            return captured;
        };
        let captured = &mut self.captured[at].2;
        if !captured.is_open() {
            *captured = Arc::default();
        }
        Arc::clone(captured)
    }

    /// The row that is to be changed next.
    pub(crate) fn row(&self) -> Option<Rid> {
        let (rows, done) = self.rows.as_ref()?;
        rows.get(*done).copied()
    }

    /// It is changed, or left out.
    pub(crate) fn row_done(&mut self) {
        if let Some((_, done)) = &mut self.rows {
            *done += 1;
        }
        (self.rid, self.at, self.new, self.answered) = (None, 0, None, None);
    }

    /// How often an action has done this to a table.
    pub(crate) fn ended(&self, table: RelationId, event: TriggerEvent) -> u64 {
        let mut known = self.begun.iter();
        known
            .find(|begun| begun.table == table && begun.event == event)
            .map_or(0, |begun| begun.ended)
    }

    /// Another action has.
    pub(super) fn end(&mut self, table: RelationId, event: TriggerEvent) -> u64 {
        let begun = self.begun(table, event);
        begun.ended += 1;
        begun.ended
    }

    /// Another event is checked.
    pub(crate) fn next_event(&mut self) {
        *self = ReferentialActionState {
            begun: std::mem::take(&mut self.begun),
            captured: std::mem::take(&mut self.captured),
            ..ReferentialActionState::default()
        };
    }
}

/// How far the queue was when a savepoint was made.
#[derive(Clone, Default)]
pub struct EventQueueMark {
    deferred: usize,
    judged: usize,
    deferred_bytes: usize,
    modes: SetConstraintState,
}

impl EventQueue {
    /// Takes aside what the running statement has still to check, because another one is run inside of it.
    pub fn suspend(&mut self) -> SuspendedEvents {
        self.suspended += 1;
        SuspendedEvents {
            now: std::mem::take(&mut self.now),
            action: std::mem::take(&mut self.action),
            kept_bytes: std::mem::take(&mut self.kept_bytes),
            kept: std::mem::take(&mut self.kept),
        }
    }

    /// A row is kept for deferred AFTER triggers.
    pub(super) fn keep_deferred(&mut self, bytes: usize, memory: &'static Memory) -> Result<()> {
        self.deferred_bytes += bytes + ROW_BYTES;
        self.kept_deferred.set(self.deferred_bytes, Some(memory))
    }

    /// A row is kept for AFTER triggers.
    pub(super) fn keep(&mut self, bytes: usize, memory: &'static Memory) -> Result<()> {
        self.kept_bytes += bytes + ROW_BYTES;
        self.kept.set(self.kept_bytes, Some(memory))
    }

    /// The statement goes on.
    pub fn resume(&mut self, suspended: SuspendedEvents) {
        self.suspended = self.suspended.saturating_sub(1);
        let since = std::mem::replace(&mut self.now, suspended.now);
        self.action = suspended.action;
        (self.kept_bytes, self.kept) = (suspended.kept_bytes, suspended.kept);
        self.now.extend(since);
    }

    /// Queues an event.
    pub(super) fn push(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rule: usize,
        rid: Rid,
        what: EventKind,
        deferred: bool,
    ) {
        let known = self.sets.iter().rposition(|s| Arc::ptr_eq(s, set));
        let set = known.unwrap_or_else(|| {
            self.sets.push(Arc::clone(set));
            self.sets.len() - 1
        });
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let event = AfterTriggerEvent {
            set: number(set),
            table: number(table),
            rule: number(rule),
            rid,
            what,
        };
        if deferred {
            self.deferred.push(DeferredEvent {
                event,
                judged: false,
            });
        } else {
            self.now.push_back(event);
        }
    }

    /// Takes back the AFTER triggers of a statement, not of its rows, that are queued for what was done to a table.
    pub(super) fn cancel_ended(&mut self, table: RelationId, by: TriggerEvent) {
        let sets = &self.sets;
        let is_such = |event: &AfterTriggerEvent| {
            let EventKind::AfterTrigger(written) = &event.what else {
                return false;
            };
            let rules = sets.get(event.set as usize);
            let rules = rules.and_then(|set| set.tables.get(event.table as usize));
            let is_of_table = rules.is_some_and(|rules| rules.table.oid == table);
            let is_of_row = written.old.is_some() || written.new.is_some();
            is_of_table && written.event == by && written.number == 0 && !is_of_row
        };
        if self.now.iter().any(is_such) {
            self.now.retain(|event| !is_such(event));
        }
    }

    /// Is anything to be checked when the statement ends?
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        !self.now.is_empty()
    }

    /// Is anything deferred?
    #[inline]
    pub fn has_deferred(&self) -> bool {
        self.judged.len() < self.deferred.len()
    }

    /// The next event, and the rules it is about.
    pub(crate) fn next(&mut self) -> Option<(AfterTriggerEvent, Arc<RuleSet>)> {
        let Some(event) = self.now.pop_front() else {
            (self.kept_bytes, self.kept) = (0, OperatorMemory::default());
            return None;
        };
        let set = Arc::clone(self.sets.get(event.set as usize)?);
        Some((event, set))
    }

    /// An event is to be checked once more, before all others.
    pub(crate) fn requeue(&mut self, event: AfterTriggerEvent) {
        self.now.push_front(event);
    }

    /// Makes deferred events due that are not put off (any more); `all` makes everything due, as COMMIT does.
    pub(crate) fn make_due(&mut self, all: bool) {
        for (at, deferred) in self.deferred.iter_mut().enumerate() {
            if deferred.judged {
                continue;
            }
            let due = all
                || self
                    .sets
                    .get(deferred.event.set as usize)
                    .is_some_and(|set| {
                        deferred
                            .event
                            .constraint(set)
                            .is_none_or(|(oid, timing)| !self.modes.is_deferred(oid, timing))
                    });
            if due {
                deferred.judged = true;
                self.judged.push(at);
                self.now.push_back(deferred.event.clone());
            }
        }
    }

    /// Does a deferred event speak of a row of the table? Its definition must not change then.
    pub fn has_deferred_for(&self, table: RelationId) -> bool {
        self.deferred.iter().any(|deferred| {
            !deferred.judged
                && self
                    .sets
                    .get(deferred.event.set as usize)
                    .and_then(|set| set.tables.get(deferred.event.table as usize))
                    .is_some_and(|rules| rules.table.oid == table)
        })
    }

    /// Where the queue is: for a savepoint.
    pub fn mark(&self) -> EventQueueMark {
        EventQueueMark {
            deferred: self.deferred.len(),
            judged: self.judged.len(),
            deferred_bytes: self.deferred_bytes,
            modes: self.modes.clone(),
        }
    }

    /// Back to where the queue was.
    pub fn rollback_to(&mut self, mark: &EventQueueMark) {
        self.now.clear();
        self.action = ReferentialActionState::default();
        (self.kept_bytes, self.kept) = (0, OperatorMemory::default());
        for at in self.judged.drain(mark.judged.min(self.judged.len())..) {
            if let Some(deferred) = self.deferred.get_mut(at) {
                deferred.judged = false;
            }
        }
        self.deferred.truncate(mark.deferred);
        self.deferred_bytes = self.deferred_bytes.min(mark.deferred_bytes);
        self.kept_deferred.shrink(self.deferred_bytes);
        self.modes = mark.modes.clone();
    }

    /// Forgets what can never be needed again: called between statements of a transaction without savepoints.
    pub fn compact(&mut self) {
        if self.now.is_empty() && self.suspended == 0 && !self.has_deferred() {
            self.deferred.clear();
            (self.deferred_bytes, self.kept_deferred) = (0, OperatorMemory::default());
            self.judged.clear();
            self.sets.clear();
        }
    }
}

#[cfg(test)]
mod tests;
