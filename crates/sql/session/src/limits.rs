//! Time limits and cancellation around whatever a session waits for.
//!
//! Invariant: work that is cancelled, or out of time, is dropped where it stands.
//!
//! Does not: know what the work is (`run` for plans).

use crate::signals::Signals;
use crate::turns::in_turns;
use logstead_sql_exec::CancelReason;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Time limits of a statement, 0 is none.
#[derive(Clone, Copy)]
pub(crate) struct StatementTimeouts {
    pub(crate) statement_ms: u64,
    pub(crate) lock_ms: u64,
}

/// Runs `work` until it is done, cancelled, or out of time; then it is dropped where it stands. A long statement takes
/// turns.
pub(crate) async fn run_with_limits<T>(
    signals: &Signals,
    limits: StatementTimeouts,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let work = pin!(work);
    run_piece_with_limits(signals, limits, in_turns(signals, work)).await
}

/// The same of one of many small pieces of a statement, which takes turns by itself.
pub(crate) async fn run_piece_with_limits<T>(
    signals: &Signals,
    limits: StatementTimeouts,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut work = pin!(work);
    let mut statement_timer = pin!((limits.statement_ms > 0).then(|| sleep(limits.statement_ms)));
    let mut lock_timer = pin!(None);
    std::future::poll_fn(|cx| {
        // Before the work goes on, which may take longer than the limit without waiting for anybody.
        let over = lock_timer
            .as_mut()
            .as_pin_mut()
            .is_some_and(|timer: std::pin::Pin<&mut tokio::time::Sleep>| timer.poll(cx).is_ready());
        if let Poll::Ready(value) = work.as_mut().poll(cx) {
            return Poll::Ready(value);
        }
        signals.register(cx.waker());
        if let Err(error) = signals.statement().check() {
            return Poll::Ready(Err(error));
        }
        if let Some(timer) = statement_timer.as_mut().as_pin_mut()
            && timer.poll(cx).is_ready()
        {
            signals.statement().cancel(CancelReason::StatementTimeout);
        }
        // A statement that waits for a lock is not polled: the timer is set anew whenever it got on. One that waits for
        // something to be brought into memory has another limit to go by, and the timer begins again.
        if limits.lock_ms > 0 {
            if over && !signals.statement().is_loading() {
                // An error of this wait alone: whoever catches it goes on. A request to end the statement comes before
                // it.
                signals.statement().check()?;
                return Poll::Ready(Err(lock_timeout()));
            }
            if !signals.statement().take_looked() || lock_timer.is_none() {
                lock_timer.set(Some(sleep(limits.lock_ms)));
            }
            if let Some(timer) = lock_timer.as_mut().as_pin_mut()
                && timer.poll(cx).is_ready()
            {
                // It ran out during the look.
                cx.waker().wake_by_ref();
            }
        }
        match signals.statement().check() {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) => Poll::Pending,
        }
    })
    .await
}

fn lock_timeout() -> SqlError {
    SqlError::new(
        SqlState::LOCK_NOT_AVAILABLE,
        "canceling statement due to lock timeout",
    )
}

fn sleep(ms: u64) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_millis(ms))
}
