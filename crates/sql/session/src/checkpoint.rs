//! CHECKPOINT, and restore points: waits until a checkpoint that began after it is published. `pg_promote()`: asks for
//! a promotion, and waits for what comes of it.
//!
//! A request ([`CheckpointRequests`](super::checkpoint_requests::CheckpointRequests)) that is cancelled, or whose
//! session ends, gives up waiting; the checkpoint is taken all the same.
//!
//! Does not: take checkpoints by itself (the engine's `Checkpointer`), or know what one is.

use super::alter_system::denied;
use super::context::SessionContext;
use super::{Reply, Session};
use crate::limits::{StatementTimeouts, run_with_limits};
use crate::worker_sessions::WaitingGuard;
use logstead_engine::{CheckpointError, FaultError, PagesError, RestorePointError};
use logstead_sql_func::RestorePointRequest;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The client's error for a checkpoint that was not taken. The one before is in force.
fn checkpoint_error(error: &CheckpointError) -> SqlError {
    let code = match error {
        CheckpointError::Stopped => SqlState::ADMIN_SHUTDOWN,
        CheckpointError::Replica => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        CheckpointError::Fault(FaultError::TooOld(_)) => SqlState::SNAPSHOT_TOO_OLD,
        CheckpointError::DiskFull(_) => SqlState::DISK_FULL,
        CheckpointError::LogFailed(_)
        | CheckpointError::Overtaken
        | CheckpointError::Pages(PagesError::Home(_) | PagesError::Overtaken) => SqlState::IO_ERROR,
        CheckpointError::Pages(PagesError::Damaged(_) | PagesError::Pins(_))
        | CheckpointError::Fault(FaultError::Damaged(_)) => SqlState::DATA_CORRUPTED,
        CheckpointError::Fault(FaultError::Unreachable(_)) => SqlState::IO_ERROR,
        CheckpointError::Fault(FaultError::OutOfMemory(_)) => SqlState::OUT_OF_MEMORY,
        CheckpointError::Fault(FaultError::Closing) => SqlState::ADMIN_SHUTDOWN,
        CheckpointError::Busy
        | CheckpointError::Interrupted
        | CheckpointError::Pages(PagesError::Misuse(_))
        | CheckpointError::Fault(FaultError::Older | FaultError::InstanceRestarted) => {
            SqlState::INTERNAL_ERROR
        }
    };
    SqlError::new(code, "checkpoint request failed").detail(format!("{error}."))
}

fn restore_point_error(error: &RestorePointError) -> SqlError {
    let code = match error {
        RestorePointError::Exists(_) => SqlState::DUPLICATE_OBJECT,
        RestorePointError::Missing(_) => SqlState::UNDEFINED_OBJECT,
        RestorePointError::Name => SqlState::INVALID_PARAMETER_VALUE,
        RestorePointError::Checkpoint(error) => return checkpoint_error(error),
    };
    SqlError::new(code, error.to_string())
}

impl SessionContext {
    /// `pg_promote(wait, wait_seconds)`: with `wait` the statement waits for what comes of it.
    pub(super) fn request_promotion(&self, wait: bool, wait_seconds: i32) -> Result<()> {
        if !self.is_superuser() {
            return Err(denied("for function pg_promote"));
        }
        let Some(promotion) = self.instance.promotion() else {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "recovery is not in progress",
            )
            .hint("Recovery control functions can only be executed during recovery."));
        };
        let seconds = u64::try_from(wait_seconds)
            .ok()
            .filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or_else(|| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "\"wait_seconds\" must not be negative or zero",
            )
        })?;
        let number = promotion.request();
        if wait {
            let limit = Duration::from_secs(seconds);
            self.promotion_asked.set(Some((number, limit)));
        }
        Ok(())
    }
}

impl Session {
    /// CHECKPOINT.
    pub(super) async fn checkpoint(&mut self) -> Result<Reply> {
        let instance = Arc::clone(&self.worker.instance);
        let asked = instance.checkpoints.ask(&instance.engine, &instance.env);
        let answer = asked.map_err(|error| {
            SqlError::new(SqlState::IO_ERROR, "checkpoint request failed")
                .detail(format!("No thread for it: {error}."))
        })?;
        let taken = async {
            match answer.await {
                Ok(outcome) => outcome.map_err(|error| checkpoint_error(&error)),
                Err(_) => Err(SqlError::internal("the checkpoint's thread has panicked")),
            }
        };
        self.wait_idle(taken).await?;
        Ok(Reply::tag("CHECKPOINT"))
    }

    /// Waits for a thread that does something for this session.
    pub(super) async fn wait_idle(&mut self, done: impl Future<Output = Result<()>>) -> Result<()> {
        let signals = Arc::clone(&self.signals);
        let limits = StatementTimeouts {
            // It waits for no lock.
            lock_ms: 0,
            ..self.limits()
        };
        // Meanwhile the worker has nothing of this session to do.
        let was_working = self.working.take().is_some();
        let outcome = {
            let _count = WaitingGuard::new(&self.worker);
            run_with_limits(&signals, limits, done).await
        };
        if was_working {
            self.begin_request();
        }
        outcome
    }

    /// Makes and drops the restore points that the statement has asked for, one after the other. A statement that is
    /// cancelled meanwhile gives up waiting; what was begun is done all the same.
    pub(super) async fn do_restore_points(&mut self) -> Result<()> {
        let requests = std::mem::take(&mut *self.context.restore_points.borrow_mut());
        let instance = Arc::clone(&self.worker.instance);
        for request in requests {
            let (answer, answered) = oneshot::channel();
            let engine = instance.engine.clone();
            let work = move || {
                let outcome = match &request {
                    RestorePointRequest::Create(name) => engine.create_restore_point(name),
                    RestorePointRequest::Drop(name) => engine.drop_restore_point(name),
                };
                let _may_have_given_up = answer.send(outcome);
            };
            let started = instance.env.spawn("restore point", None, work);
            started.map_err(|error| {
                SqlError::new(SqlState::IO_ERROR, "restore point request failed")
                    .detail(format!("No thread for it: {error}."))
            })?;
            self.wait_idle(async {
                match answered.await {
                    Ok(outcome) => outcome.map_err(|error| restore_point_error(&error)),
                    Err(_) => Err(SqlError::internal("a restore point's thread has panicked")),
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for what becomes of the promotion that the statement has asked for.
    pub(super) async fn wait_for_promotion(&mut self, number: u64, limit: Duration) -> Result<()> {
        let Some(promotion) = self.worker.instance.promotion().cloned() else {
            return Ok(());
        };
        self.wait_idle(async move {
            match tokio::time::timeout(limit, promotion.decision(number)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(why)) => Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the server could not be promoted",
                )
                .detail(format!("{why}."))
                .hint("A primary that is alive is stopped first, or shut out by a replica that was started with --take-over.")),
                Err(_) => Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("server did not promote within {} seconds", limit.as_secs()),
                )),
            }
        })
        .await
    }
}
