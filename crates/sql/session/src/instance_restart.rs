//! `logstead_restart_instance()`: what an instance has in memory is dropped and served again, and the sessions are told
//! whose transactions are in the way.
//!
//! A thread does it, as it blocks; the statement waits until all is served again. A statement that is cancelled
//! meanwhile gives up waiting, and it is done all the same. What was dropped is brought back by the thread behind that.
//!
//! A transaction that has written or locked something there cannot commit any more. If its session runs a statement,
//! that ends with 40001, and so does the transaction. If the session waits for its client, that has [`GRACE_ROUNDS`]
//! to send the next statement; then the session ends with 57P02: there is no other way to tell a client that is silent,
//! and one that commits without looking must not take the answer for another one.
//!
//! Does not: drop or load anything ([`Engine::drop_instance`](logstead_engine::Engine::drop_instance)).

use crate::Session;
use crate::context::SessionContext;
use crate::instance::Instance;
use crate::instance_status::InstanceRestarts;
use logstead_engine::{InstanceId, RestartError, RestartRound};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// So long transactions may take to be rolled back, in rounds of a millisecond.
const ROUNDS_MAX: usize = 10_000;
/// So long a client may be silent.
const GRACE_ROUNDS: usize = 100;

fn restart_error(error: &RestartError) -> SqlError {
    let code = match error {
        RestartError::NoInstance(_) => SqlState::INVALID_PARAMETER_VALUE,
        RestartError::OneInstance => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        RestartError::Busy(_) | RestartError::InTheWay { .. } => SqlState::OBJECT_IN_USE,
    };
    SqlError::new(code, "the instance could not be restarted").detail(format!("{error}."))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl SessionContext {
    /// `logstead_restart_instance`, of a superuser.
    pub(crate) fn ask_for_restart(&self, instance: i32) -> Result<()> {
        let instances = self.instance.engine.instances();
        if self.instance.instances.is_none() {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "no instance can be restarted: the server has one instance",
            )
            .hint("A server that is started with \"instances\" has more."));
        }
        let number = u16::try_from(instance).ok().map(InstanceId);
        let number = number.filter(|number| usize::from(number.0) < instances.count());
        let number = number.ok_or_else(|| {
            let message = format!("instance {instance} does not exist");
            let last = instances.count() - 1;
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .detail(format!("Instances are numbered from 0 to {last}."))
        })?;
        self.restarts_asked.borrow_mut().push(number);
        Ok(())
    }
}

impl Session {
    /// Restarts the instances that the statement has asked for, one after the other.
    pub(super) async fn do_restarts(&mut self) -> Result<()> {
        let asked = std::mem::take(&mut *self.context.restarts_asked.borrow_mut());
        for number in asked {
            let (answer, answered) = oneshot::channel();
            let instance = Arc::clone(&self.worker.instance);
            let env = instance.env.clone();
            let work = move || instance.restart(number, answer);
            let started = env.spawn("restart", None, work);
            started.map_err(|error| {
                SqlError::new(SqlState::IO_ERROR, "the instance could not be restarted")
                    .detail(format!("No thread for it: {error}."))
            })?;
            self.wait_idle(async {
                match answered.await {
                    Ok(outcome) => outcome.map_err(|error| restart_error(&error)),
                    Err(_) => Err(SqlError::internal("a restart's thread has panicked")),
                }
            })
            .await?;
        }
        Ok(())
    }
}

impl Instance {
    /// The thread.
    fn restart(
        &self,
        number: InstanceId,
        answer: oneshot::Sender<std::result::Result<(), RestartError>>,
    ) {
        let Some(status) = &self.instances else {
            return;
        };
        let restarts = status.restarts_of(number);
        let begun = self.env.clock.monotonic();
        let dropped = {
            let _under_way = restarts.begin();
            let told = |round: RestartRound<'_>| self.end_transactions(round);
            self.engine.drop_instance(number, ROUNDS_MAX, told)
        };
        let dropped = match dropped {
            Ok(dropped) => dropped,
            Err(error) => {
                tracing::warn!("instance {number} was not restarted: {error}");
                let _may_have_given_up = answer.send(Err(error));
                return;
            }
        };
        let count = restarts.note(dropped.took);
        tracing::info!(
            "instance {number} was restarted: {} rows in {} chunks have left memory, and are served again after {:?}",
            dropped.rows,
            dropped.chunks(),
            dropped.took
        );
        let _may_have_given_up = answer.send(Ok(()));
        let goes_on = || !self.is_stopping() && restarts.count.load(Ordering::Relaxed) == count;
        let bytes = self.engine.bring_back_instance(dropped, goes_on);
        let took = self.env.clock.monotonic().since(begun);
        if goes_on() {
            let took_us = micros(took).max(1);
            restarts.loaded_us.store(took_us, Ordering::Relaxed);
            tracing::info!("{bytes} bytes of instance {number} are in memory again after {took:?}");
        }
    }

    /// Has the sessions end whose transactions are in the way of a restart.
    fn end_transactions(&self, round: RestartRound<'_>) {
        if round.condemned.is_empty() {
            return;
        }
        self.each_session(|_, live, signals| {
            // Held: the session cannot be in another transaction before it is told.
            let now = live.0.lock();
            if !{ now.transaction }.is_some_and(|of| round.condemned.contains(&of)) {
                return;
            }
            if signals.is_running() {
                signals.fail_transaction();
            } else if round.number >= GRACE_ROUNDS {
                signals.end_with_transaction();
            }
        });
    }
}

/// Says that a restart is under way while it lives.
struct UnderWay<'r>(&'r InstanceRestarts);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InstanceRestarts {
    fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }

    /// All of it is served again. How many restarts there were.
    fn note(&self, took: Duration) -> u64 {
        self.loaded_us.store(0, Ordering::Relaxed);
        self.takeover_us.store(micros(took), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}
