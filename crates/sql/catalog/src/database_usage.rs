//! Who uses which database: what keeps a database from being dropped, renamed or copied under somebody, and somebody
//! from entering one that is.
//!
//! Invariants: a session is in its database from before it looks at its catalog until it has let go of everything; a
//! database is closed only while nobody is in it, but for who copies the one that it is in itself, and while it is
//! closed nobody enters. Who has entered looks again whether the database is still there. Those who copy a database
//! close it beside each other, who drops or renames it alone.

use logstead_sql_types::DatabaseOid;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What a database is closed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// It is dropped or renamed: nobody is in it, and nobody else closes it.
    Change,
    /// It is copied: nobody is in it but, if it is so, who copies it.
    Copy {
        /// It is the database of the session that copies it.
        own: bool,
    },
}

#[derive(Default)]
struct UsageCount {
    sessions: usize,
    /// Somebody drops or renames it.
    changed: bool,
    /// So many copy it.
    copies: usize,
    /// They wait until somebody has left, or the database is open again.
    waiting: Vec<Waker>,
}

impl UsageCount {
    fn is_closed(&self) -> bool {
        self.changed || self.copies > 0
    }

    fn can_be_closed(&self, closing: CloseReason) -> bool {
        match closing {
            CloseReason::Change => self.sessions == 0 && !self.is_closed(),
            CloseReason::Copy { own } => self.sessions <= usize::from(own) && !self.changed,
        }
    }

    fn wait(&mut self, task: &mut Context<'_>) {
        if !self.waiting.iter().any(|w| w.will_wake(task.waker())) {
            self.waiting.push(task.waker().clone());
        }
    }
}

/// The databases that are in use, or closed.
#[derive(Default)]
pub struct DatabaseUsage(Mutex<HashMap<DatabaseOid, UsageCount>>);

impl DatabaseUsage {
    /// Somebody comes; nobody does while the database is closed.
    pub fn enter(self: &Arc<Self>, database: DatabaseOid) -> Option<DatabaseConnection> {
        let mut all = self.0.lock();
        let found = all.entry(database).or_default();
        if found.is_closed() {
            return None;
        }
        found.sessions += 1;
        Some(DatabaseConnection {
            all: Arc::clone(self),
            database,
        })
    }

    /// How many are in a database.
    pub fn sessions(&self, database: DatabaseOid) -> usize {
        self.0
            .lock()
            .get(&database)
            .map_or(0, |found| found.sessions)
    }

    /// Closes a database for everybody who comes, unless somebody is in it, or has closed it for what does not go
    /// beside this.
    pub fn close(
        self: &Arc<Self>,
        database: DatabaseOid,
        closing: CloseReason,
    ) -> Option<DatabaseCloseGuard> {
        let mut all = self.0.lock();
        let found = all.entry(database).or_default();
        if !found.can_be_closed(closing) {
            return None;
        }
        match closing {
            CloseReason::Change => found.changed = true,
            CloseReason::Copy { .. } => found.copies += 1,
        }
        Some(DatabaseCloseGuard {
            all: Arc::clone(self),
            database,
            closing,
        })
    }

    /// Ready when the database can be closed.
    pub fn poll_left(
        &self,
        database: DatabaseOid,
        closing: CloseReason,
        task: &mut Context<'_>,
    ) -> Poll<()> {
        match self.0.lock().get_mut(&database) {
            Some(found) if !found.can_be_closed(closing) => {
                found.wait(task);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Ready when nobody keeps the database closed.
    pub fn poll_open(&self, database: DatabaseOid, task: &mut Context<'_>) -> Poll<()> {
        match self.0.lock().get_mut(&database) {
            Some(found) if found.is_closed() => {
                found.wait(task);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Changes how a database is used; wakes who waits for that.
    fn change(&self, database: DatabaseOid, change: impl FnOnce(&mut UsageCount)) {
        let mut all = self.0.lock();
        let Some(found) = all.get_mut(&database) else {
            return;
        };
        change(found);
        let waiting = std::mem::take(&mut found.waiting);
        if found.sessions == 0 && !found.is_closed() {
            all.remove(&database);
        }
        drop(all);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A session is in a database while it has this.
pub struct DatabaseConnection {
    all: Arc<DatabaseUsage>,
    database: DatabaseOid,
}

impl DatabaseConnection {
    /// The database.
    pub fn database(&self) -> DatabaseOid {
        self.database
    }
}

impl Drop for DatabaseConnection {
    fn drop(&mut self) {
        self.all.change(self.database, |found| {
            found.sessions = found.sessions.saturating_sub(1);
        });
    }
}

/// A database is closed while this is there.
pub struct DatabaseCloseGuard {
    all: Arc<DatabaseUsage>,
    database: DatabaseOid,
    closing: CloseReason,
}

impl DatabaseCloseGuard {
    /// The database, if it is closed for everybody.
    pub fn database(&self) -> Option<DatabaseOid> {
        (self.closing == CloseReason::Change).then_some(self.database)
    }
}

impl Drop for DatabaseCloseGuard {
    fn drop(&mut self) {
        let closing = self.closing;
        self.all.change(self.database, |found| match closing {
            CloseReason::Change => found.changed = false,
            CloseReason::Copy { .. } => found.copies = found.copies.saturating_sub(1),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: DatabaseOid = DatabaseOid::new(5);
    const OTHER: DatabaseOid = DatabaseOid::new(6);

    #[test]
    fn a_closed_database_is_entered_by_nobody_and_a_used_one_is_not_closed() {
        let all = Arc::new(DatabaseUsage::default());
        let mut task = Context::from_waker(Waker::noop());
        let one = all.enter(DATABASE).unwrap();
        let two = all.enter(DATABASE).unwrap();
        assert_eq!(all.sessions(DATABASE), 2);
        assert!(all.close(DATABASE, CloseReason::Change).is_none());
        assert!(
            all.close(OTHER, CloseReason::Change).is_some(),
            "another is not in use"
        );
        drop(one);
        assert!(
            all.poll_left(DATABASE, CloseReason::Change, &mut task)
                .is_pending()
        );
        drop(two);
        assert!(
            all.poll_left(DATABASE, CloseReason::Change, &mut task)
                .is_ready()
        );
        let closed = all.close(DATABASE, CloseReason::Change).unwrap();
        assert!(all.close(DATABASE, CloseReason::Change).is_none());
        assert!(all.enter(DATABASE).is_none());
        assert!(
            all.poll_left(DATABASE, CloseReason::Change, &mut task)
                .is_pending(),
            "it is closed"
        );
        drop(closed);
        assert!(
            all.poll_left(DATABASE, CloseReason::Change, &mut task)
                .is_ready()
        );
        assert!(all.enter(DATABASE).is_some());
        assert!(all.0.lock().is_empty());
    }
    #[test]
    fn copies_go_beside_each_other_and_beside_who_copies_its_own_database() {
        let all = Arc::new(DatabaseUsage::default());
        let mut task = Context::from_waker(Waker::noop());
        let own = all.enter(DATABASE).unwrap();
        assert!(
            all.close(DATABASE, CloseReason::Copy { own: false })
                .is_none()
        );
        let closed = all
            .close(DATABASE, CloseReason::Copy { own: true })
            .unwrap();
        assert!(all.enter(DATABASE).is_none());
        assert!(all.poll_open(DATABASE, &mut task).is_pending());
        drop(closed);
        assert!(all.poll_open(DATABASE, &mut task).is_ready());
        let other = all.enter(DATABASE).unwrap();
        assert!(
            all.close(DATABASE, CloseReason::Copy { own: true })
                .is_none()
        );
        drop((own, other));
        let one = all
            .close(DATABASE, CloseReason::Copy { own: false })
            .unwrap();
        let two = all
            .close(DATABASE, CloseReason::Copy { own: false })
            .unwrap();
        assert!(all.close(DATABASE, CloseReason::Change).is_none());
        drop(one);
        assert!(all.enter(DATABASE).is_none(), "one copy goes on");
        drop(two);
        assert!(all.close(DATABASE, CloseReason::Change).is_some());
        assert!(all.0.lock().is_empty());
    }
}
