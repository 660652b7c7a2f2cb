//! `pg_promote()`: a session asks that the replica become the primary, the server decides.
//!
//! Owns: [`Promotion`], what both share. What a session does with it stands in `checkpoint`.
//! Requests have numbers; a decision holds for all requests up to its number.

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
