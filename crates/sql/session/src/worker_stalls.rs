//! Looking at the marks of the workers: which of them something has held for long, and what clients see of that.
//!
//! Invariant: the text of a statement is told to those who may see it in `pg_stat_activity`; the log has it only where
//! statements are logged (`log_min_duration_statement`).
//!
//! Does not: write the marks (`watchdog`).

use crate::Instance;
use crate::context::SessionContext;
use crate::watchdog::{HELD_MAX, StallRecord, WatchdogState, WorkerWatchdog};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::context::WorkerRow;
use logstead_sql_catalog::role::READ_ALL_STATS;
use logstead_sql_types::RoleId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two lines in the log; what comes meanwhile is only counted.
const PAUSE: Duration = Duration::from_secs(1);

impl Instance {
    /// Looks at all workers, to be called some ten times in a tenth of a second: what has held one of them for that
    /// long is counted, named, and told to the log.
    pub fn watch_workers(&self, looks: &mut WatchdogState) {
        let watchdogs = self.watchdogs.lock().clone();
        let now = self.env.clock.monotonic();
        looks.seen.resize(watchdogs.len(), (0, now, false));
        for (watchdog, seen) in watchdogs.iter().zip(&mut looks.seen) {
            let polls = watchdog.polls.load(Ordering::Relaxed);
            if polls != seen.0 {
                *seen = (polls, now, false);
                continue;
            }
            let took = now.since(seen.1);
            if polls.is_multiple_of(2) || took < HELD_MAX {
                continue;
            }
            let mut found = watchdog.found.lock();
            found.longest = found.longest.max(took);
            if std::mem::replace(&mut seen.2, true) {
                if let Some(last) = &mut found.last {
                    last.took = took;
                }
                continue;
            }
            found.held += 1;
            let hold = self.hold(watchdog.pid.load(Ordering::Relaxed), took);
            if looks.told.is_none_or(|told| now.since(told) >= PAUSE) {
                looks.told = Some(now);
                self.tell_of(watchdog, &hold);
            }
            found.last = Some(hold);
        }
    }

    fn hold(&self, pid: i32, took: Duration) -> StallRecord {
        let (mut role, mut query) = (None, String::new());
        self.each_session(|other, live, _| {
            if other == pid {
                (role, query) = live.statement();
            }
        });
        StallRecord {
            pid,
            at: self.env.clock.now_micros_since_2000(),
            took,
            role,
            query,
        }
    }

    fn tell_of(&self, watchdog: &WorkerWatchdog, hold: &StallRecord) {
        let worker = watchdog.worker;
        let settings = self.settings.now();
        let logged = settings.get("log_min_duration_statement");
        let logs_statements = logged.is_some_and(|least| least != "-1");
        match logs_statements {
            true => tracing::warn!(
                pid = hold.pid,
                "a statement has held worker {worker} for {} ms: {}",
                hold.took.as_millis(),
                hold.query
            ),
            false => tracing::warn!(
                pid = hold.pid,
                "a statement has held worker {worker} for {} ms",
                hold.took.as_millis()
            ),
        }
    }

    /// Writes that are left to undo behind sessions.
    pub fn writes_to_undo(&self) -> u64 {
        let watchdogs = self.watchdogs.lock();
        let left = |watchdog: &Arc<WorkerWatchdog>| watchdog.undone_writes.load(Ordering::Relaxed);
        watchdogs.iter().map(left).sum()
    }

    /// How often a worker was held for longer than a tenth of a second.
    pub fn workers_held(&self) -> u64 {
        let watchdogs = self.watchdogs.lock();
        watchdogs
            .iter()
            .map(|watchdog| watchdog.found.lock().held)
            .sum()
    }
}

impl SessionContext {
    /// Rows of `logstead_workers`.
    pub(crate) fn worker_rows(&self) -> Vec<WorkerRow> {
        let roles = self.roles(&self.catalog.borrow());
        let me = self.current_role();
        let sees_all = roles.has_privileges_of(me, READ_ALL_STATS);
        let may_see = |role: Option<RoleId>| {
            sees_all || role.is_some_and(|role| roles.has_privileges_of(me, role))
        };
        let watchdogs: Vec<Arc<WorkerWatchdog>> = self.instance.watchdogs.lock().clone();
        let row = |watchdog: &Arc<WorkerWatchdog>| {
            let found = watchdog.found.lock().clone();
            let last = found.last.as_ref();
            WorkerRow {
                worker: i32::from(watchdog.worker.0),
                held: found.held,
                longest: found.longest,
                last: last.map(|last| (last.at, last.pid, last.took)),
                query: last.map(|last| match may_see(last.role) {
                    true => last.query.clone(),
                    false => "<insufficient privilege>".to_owned(),
                }),
                undone: watchdog.undone.load(Ordering::Relaxed),
                undone_writes: watchdog.undone_writes.load(Ordering::Relaxed),
            }
        };
        let mut rows: Vec<WorkerRow> = watchdogs.iter().map(row).collect();
        rows.sort_by_key(|row| row.worker);
        rows
    }
}
