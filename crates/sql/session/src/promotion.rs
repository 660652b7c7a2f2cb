//! `pg_promote()`: a session asks that the replica become the primary, the server decides.
//!
//! Owns: [`Promotion`], what both share. Requests have numbers; a decision holds for all requests up to its number.

use super::configuration::denied;
use super::{Session, SessionContext};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The answers of sessions that have asked have that long to leave before the sessions end.
const ANSWER_TIME: Duration = Duration::from_secs(1);
const ANSWER_POLL: Duration = Duration::from_millis(20);

/// Up to which request it was decided, and how.
type Decision = (u64, std::result::Result<(), String>);

/// What sessions ask, and what came of it.
#[derive(Debug)]
pub struct Promotion {
    /// The number of the newest request.
    requests: watch::Sender<u64>,
    decisions: watch::Sender<Decision>,
    /// Sessions that wait for a decision.
    waiting: AtomicUsize,
}

impl Default for Promotion {
    fn default() -> Promotion {
        Promotion {
            requests: watch::Sender::new(0),
            decisions: watch::Sender::new((0, Ok(()))),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// A session that waits, while it does.
struct Waiting<'p>(&'p Promotion);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Promotion {
    /// Asks for it; the number of the request.
    pub fn request(&self) -> u64 {
        let mut number = 0;
        self.requests.send_modify(|newest| {
            *newest += 1;
            number = *newest;
        });
        number
    }

    /// What was decided of a request, once it was: an error says why the server stays a replica.
    pub async fn decision(&self, number: u64) -> std::result::Result<(), String> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        let mut decisions = self.decisions.subscribe();
        let decided = decisions.wait_for(|(decided, _)| *decided >= number).await;
        match decided {
            Ok(decision) => decision.1.clone(),
            // The sender is this object's own.
            Err(_) => Err("the server has ended".to_owned()),
        }
    }

    /// The newest request that was not decided, once there is one.
    pub async fn requested(&self) -> u64 {
        let decided = self.decisions.borrow().0;
        let mut requests = self.requests.subscribe();
        let newest = requests.wait_for(|newest| *newest > decided).await;
        newest.map_or(decided, |newest| *newest)
    }

    /// Decides all requests up to this one.
    pub fn decide(&self, number: u64, outcome: std::result::Result<(), String>) {
        self.decisions.send_if_modified(|decision| {
            let is_newer = number > decision.0;
            if is_newer {
                *decision = (number, outcome);
            }
            is_newer
        });
    }

    /// The server is promoted, whoever asked for it: all requests are granted, those too that are still to come.
    pub fn grant_all(&self) {
        self.decide(u64::MAX, Ok(()));
    }

    /// Waits a little until whoever asked has the answer.
    pub async fn answers_have_left(&self) {
        let left = async {
            while self.waiting.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(ANSWER_POLL).await;
            }
            // What was decided is still to be written to the client.
            tokio::time::sleep(ANSWER_POLL).await;
        };
        // Whoever has not read it by then is told of the end of the session.
        let _in_time = tokio::time::timeout(ANSWER_TIME, left).await;
    }
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
