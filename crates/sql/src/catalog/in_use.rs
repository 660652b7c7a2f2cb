//! Who uses which database: what keeps a database from being dropped or renamed under somebody, and somebody from entering one that is.
//!
//! Invariants: a session is in its database from before it looks at its catalog until it has let go of everything; a database is closed
//! only while nobody is in it, and while it is closed nobody enters. Who has entered looks again whether the database is still there.

use crate::value::Oid;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Use {
    sessions: usize,
    closed: bool,
    /// They wait until the last one has left, or the database is open again.
    waiting: Vec<Waker>,
}

/// The databases that are in use, or closed.
#[derive(Default)]
pub(crate) struct InUse(Mutex<HashMap<Oid, Use>>);

impl InUse {
    /// Somebody comes; nobody does while the database is closed.
    pub(crate) fn enter(self: &Arc<Self>, database: Oid) -> Option<Entered> {
        let mut all = self.0.lock();
        let found = all.entry(database).or_default();
        if found.closed {
            return None;
        }
        found.sessions += 1;
        Some(Entered {
            all: Arc::clone(self),
            database,
        })
    }

    /// How many are in a database.
    pub(crate) fn sessions(&self, database: Oid) -> usize {
        self.0
            .lock()
            .get(&database)
            .map_or(0, |found| found.sessions)
    }

    /// Closes a database for everybody, unless somebody is in it, or has closed it.
    pub(crate) fn close(self: &Arc<Self>, database: Oid) -> Option<Closed> {
        let mut all = self.0.lock();
        let found = all.entry(database).or_default();
        if found.sessions > 0 || found.closed {
            return None;
        }
        found.closed = true;
        Some(Closed {
            all: Arc::clone(self),
            database,
        })
    }

    /// Ready when nobody is in the database, nor keeps it closed.
    pub(crate) fn poll_left(&self, database: Oid, task: &mut Context<'_>) -> Poll<()> {
        let mut all = self.0.lock();
        match all
            .get_mut(&database)
            .filter(|found| found.sessions > 0 || found.closed)
        {
            None => Poll::Ready(()),
            Some(found) => {
                if !found.waiting.iter().any(|w| w.will_wake(task.waker())) {
                    found.waiting.push(task.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

/// A session is in a database while it has this.
pub(crate) struct Entered {
    all: Arc<InUse>,
    database: Oid,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        let Some(found) = all.get_mut(&self.database) else {
            return;
        };
        found.sessions = found.sessions.saturating_sub(1);
        if found.sessions == 0 {
            let waiting = std::mem::take(&mut found.waiting);
            all.remove(&self.database);
            drop(all);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// A database is closed while this is there.
pub(crate) struct Closed {
    all: Arc<InUse>,
    database: Oid,
}

impl Closed {
    pub(crate) fn database(&self) -> Oid {
        self.database
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let found = self.all.0.lock().remove(&self.database);
        let waiting = found.map(|found| found.waiting);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_database_is_entered_by_nobody_and_a_used_one_is_not_closed() {
        let all = Arc::new(InUse::default());
        let mut task = Context::from_waker(Waker::noop());
        let one = all.enter(5).unwrap();
        let two = all.enter(5).unwrap();
        assert_eq!(all.sessions(5), 2);
        assert!(all.close(5).is_none());
        assert!(all.close(6).is_some(), "another is not in use");
        drop(one);
        assert!(all.poll_left(5, &mut task).is_pending());
        drop(two);
        assert!(all.poll_left(5, &mut task).is_ready());
        let closed = all.close(5).unwrap();
        assert!(all.close(5).is_none());
        assert!(all.enter(5).is_none());
        assert!(all.poll_left(5, &mut task).is_pending(), "it is closed");
        drop(closed);
        assert!(all.poll_left(5, &mut task).is_ready());
        assert!(all.enter(5).is_some());
        assert!(all.0.lock().is_empty());
    }
}
