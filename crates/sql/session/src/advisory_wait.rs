//! Waiting for advisory locks, with an eye on circles of waits: through rows and tables, too.
//!
//! Who waits for a row or a table knows nothing of advisory locks. So who waits for one of these looks whom those wait
//! for who are in the way, whatever for, when the wait begins and every second.

use super::advisory::{AdvisoryLockMode, LockTag, deadlock};
use super::context::SessionContext;
use super::instance::Instance;
use crate::Session;
use crate::limits::run_with_limits;
use logstead_sql_catalog::context::AdvisoryLockRequest;
use logstead_sql_exec::Cancel;
use logstead_sql_types::error::Result;
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How often who waits looks for a circle of waits: PostgreSQL's `deadlock_timeout`.
const LOOK: Duration = Duration::from_secs(1);

impl Instance {
    /// Waits for a lock in its queue, and fails with 40P01 if those in the way wait for this session, whatever for.
    pub(super) async fn wait_in_queue(
        &self,
        key: LockTag,
        pid: i32,
        mode: AdvisoryLockMode,
        statement: &Cancel,
    ) -> Result<()> {
        let mut wait = std::pin::pin!(self.advisory.queue(key, pid, mode)?);
        loop {
            let mut look = std::pin::pin!(tokio::time::sleep(LOOK));
            let taken = std::future::poll_fn(|cx| {
                if let Poll::Ready(taken) = wait.as_mut().poll(cx) {
                    return Poll::Ready(Some(taken));
                }
                look.as_mut().poll(cx).map(|()| None)
            });
            match taken.await {
                Some(taken) => return taken,
                None if self.waits_in_a_circle(pid) => return Err(deadlock()),
                None => statement.set_looked(),
            }
        }
    }

    /// Does one of those wait for a session for whom it waits, for locks of whatever kind?
    fn waits_in_a_circle(&self, pid: i32) -> bool {
        let mut seen = HashSet::new();
        let mut next = self.in_the_way(pid, false);
        while let Some(other) = next.pop() {
            if other == pid {
                return true;
            }
            if seen.insert(other) {
                next.extend(self.in_the_way(other, false));
            }
        }
        false
    }
}

impl SessionContext {
    /// Waits for a lock that an expression wants, which asks for it again.
    pub(super) async fn wait_for_wanted(&self, wanted: AdvisoryLockRequest) -> Result<()> {
        let key = LockTag {
            database: self.catalog.borrow().database,
            class: wanted.class,
            object: wanted.object,
            kind: wanted.kind,
        };
        let mode = match wanted.shared {
            true => AdvisoryLockMode::Shared,
            false => AdvisoryLockMode::Exclusive,
        };
        if !self.instance.advisory.take(key, self.pid, mode) {
            let signals = Arc::clone(&self.signals);
            let wait = self
                .instance
                .wait_in_queue(key, self.pid, mode, signals.statement());
            wait.await?;
        }
        let level = wanted.of_transaction.then_some(self.level.get());
        let left = self.instance.advisory.left(key, mode);
        let mut holdings = self.advisory.borrow_mut();
        holdings.note(key, mode, level);
        holdings.granted.push((key, mode, wanted.of_transaction));
        holdings.inherit(&left, &self.depends_on);
        Ok(())
    }
}

impl SessionContext {
    /// Gives back what the transaction has locked since the savepoint in front of which `index` others stand.
    pub(crate) fn unlock_advisory_since(&self, index: usize) {
        let mut holdings = self.advisory.borrow_mut();
        holdings.end_transaction(&self.instance.advisory, self.pid, Some(index));
    }
}

impl Session {
    /// The session gives back all that is its own, not its transaction's.
    pub(crate) fn forget_advisory_locks(&mut self) {
        let mut holdings = self.context.advisory.borrow_mut();
        holdings.end_session(&self.worker.instance.advisory, self.context.pid);
    }

    /// Waits for the locks that the statement has asked for; gives what is to be warned of.
    pub(crate) async fn wait_for_advisory_locks(&mut self) -> Result<Vec<String>> {
        let (wanted, warnings) = {
            let mut holdings = self.context.advisory.borrow_mut();
            let wanted = std::mem::take(&mut holdings.wanted);
            (wanted, std::mem::take(&mut holdings.warnings))
        };
        let instance = Arc::clone(&self.worker.instance);
        let (pid, level) = (self.context.pid, self.savepoints.len());
        for (key, mode, of_transaction) in wanted {
            let limits = self.limits();
            let signals = Arc::clone(&self.signals);
            // Its own later request may have been granted meanwhile.
            if !instance.advisory.take(key, pid, mode) {
                let wait = instance.wait_in_queue(key, pid, mode, signals.statement());
                // While it waits the worker has nothing of this session to do.
                let was_working = self.working.take().is_some();
                let waited = run_with_limits(&signals, limits, wait).await;
                if was_working {
                    self.begin_request();
                }
                waited?;
            }
            let mut holdings = self.context.advisory.borrow_mut();
            holdings.note(key, mode, of_transaction.then_some(level));
            let left = instance.advisory.left(key, mode);
            holdings.inherit(&left, &self.context.depends_on);
        }
        Ok(warnings)
    }
}
