//! `pg_sleep` and its kin: a statement that asks to sleep does so when it has run, before any of its rows leaves.
//!
//! Expressions cannot wait, and a worker's thread serves many sessions: what they ask for is added up while they are
//! evaluated, and the session's task sleeps then. So a statement does not see the time pass between two of its own
//! expressions.

use super::Session;
use crate::limits::{StatementTimeouts, run_with_limits};
use logstead_sql_types::error::Result;
use std::sync::Arc;
use std::time::Duration;

/// Asked for at once by a statement, at most: about 290 years, PostgreSQL's infinity.
const SLEEP_US_MAX: u64 = i64::MAX as u64;

impl Session {
    /// Sleeps as long as the statement has asked for, unless it is cancelled or out of time before.
    pub(super) async fn sleep_as_asked(&mut self) -> Result<()> {
        let wanted_us = self.context.sleep_us.take();
        if wanted_us == 0 {
            return Ok(());
        }
        // Nothing is locked that it waits for.
        let limits = StatementTimeouts {
            lock_ms: 0,
            ..self.limits_left(self.limits())?
        };
        let signals = Arc::clone(&self.signals);
        // While it sleeps the worker has nothing of this session to do.
        let was_working = self.working.take().is_some();
        let sleep = tokio::time::sleep(Duration::from_micros(wanted_us.min(SLEEP_US_MAX)));
        let slept = run_with_limits(&signals, limits, async {
            sleep.await;
            Ok(())
        });
        let slept = slept.await;
        if was_working {
            self.begin_request();
        }
        slept
    }
}
