//! Constraints that are judged after the row was written: foreign keys, and unique keys that are deferrable.
//!
//! Owns: what has to be judged for a change of a table ([`RuleSet`], made when a statement is planned), and the queue of what
//! a transaction still has to judge ([`Events`]). Does not judge: `exec::referential` does, when a statement ends, at SET
//! CONSTRAINTS ... IMMEDIATE and before COMMIT draws its CSN.
//!
//! The life of an event:
//! 1. INSERT, UPDATE or DELETE has written a row. If the table has rules and one of their columns changed, an event with the
//!    row's number is queued: for the statement's end, or, when the constraint is deferred, for COMMIT.
//! 2. At the statement's end the queue is emptied in order. A referencing row is checked, an action (CASCADE ...) changes
//!    referencing rows, and whatever that changes is queued behind.
//! 3. Deferred events wait for SET CONSTRAINTS or COMMIT. A savepoint remembers how far the queue was: rolling back to it takes
//!    later events back, and brings back those that were judged since.
//!
//! # Why no orphan is committed
//!
//! P is the referenced row, R the referencing one. Rules:
//! - F1 The check of R comes after R was written, finds P as committed (or its own), and takes RowLock::KeyShare on P's newest
//!   version, which is held to the end of the transaction.
//! - F2 Deleting P or changing its key takes RowLock::Update, which conflicts with KeyShare. The check for referencing rows
//!   comes after P was changed, under a snapshot taken then, at every isolation level.
//! - F3 A plan knows all foreign keys of its tables. Making a foreign key takes ShareRowExclusive on the referenced and on the
//!   referencing table, so that writers with older plans have ended (T10). Validating one keeps nobody from writing: all who do have it in
//!   their plans, rows older than the key are judged by one snapshot, and P that goes afterwards is met by F2.
//!
//! Interleavings; A inserts or moves R, B deletes P or changes its key:
//! 1. A checks, then B writes: B waits for A's KeyShare (F1, F2). A commits: B goes on, and its check, whose snapshot is taken
//!    after its write, sees R: 23503. A rolls back: R is gone, B succeeds.
//! 2. B writes, then A checks: A waits for B. B commits: there is no P any more, A fails with 23503 (40001 if its snapshot
//!    still shows P). B rolls back: A locks P and goes on.
//! 3. B writes, and has checked, before R is even written: as 2, A's check is to come.
//! 4. R is written before, and checked after, B's check: B's check does not see R in flight and need not: A's check meets
//!    B's version of P, as 2.
//! 5. A deletes R or moves it away, B deletes P while A is in flight: B's check finds R's committed version and waits for A
//!    like any other locker. A commits: R is gone, B succeeds. A rolls back: 23503.
//! 6. CASCADE meets R that A has changed or locked: it waits, looks again, and changes R only if it still references P. A
//!    snapshot that does not see A's change fails with 40001: an action never rests on rows its transaction cannot see.
//! 7. P is deleted and another row with its key inserted, in one transaction: B's check of NO ACTION finds the other row and is
//!    content. A that had to wait for the row that went fails, as in PostgreSQL: it waited for that row, not for its key.
//! 8. Two transactions check R1 and R2 against one P: KeyShare goes with KeyShare. An update of P that changes no key does too.
//! 9. Deferred: A writes R and commits later, its check runs before its CSN is drawn, its locks are held until its versions
//!    are visible. B that deleted P in between is met as 2, B that comes later as 1.
//!
//! Every version examined counts as read (T1), errors wait until what they tell is durable (T15): both come with the
//! engine's reads.

mod events;
mod rule;
mod set;
mod triggers;

pub(crate) use events::{Acting, Event, What};
pub use events::{Events, Mark, Modes};
pub(crate) use rule::{ForeignRule, KeyParts, UniqueRule, key_types};
pub(crate) use set::Queue;
pub use set::{RuleSet, TableRules};
pub(crate) use triggers::{Captured, Moment, Written};
pub use triggers::{Fire, TableTriggers};
