//! Promotion: a replica becomes the primary, in the same process and on the same sockets.
//!
//! **Rule.** Whoever has the log is the primary, and nobody else says so. A promotion opens the log as any server does
//! that starts there: the kernel's lock or the lease is taken, every lane is fenced, the log is read to its end, and
//! the mark is written ([`logstead_engine::Engine::open`]). So what was acknowledged is there, and whoever had the log
//! before can acknowledge nothing more (T3). The replica answers reads meanwhile. If the log cannot be had, because a
//! server has it, nothing has changed, and the replica goes on. Once it is had, the replica's sessions end, and the
//! server goes on with the engine that was opened.
//!
//! Asked for by `pg_promote()` and `logstead promote`, or tried again and again with `promote_when_primary_lost`. A
//! promotion that is asked for takes the lease of a server that may be alive only with `--take-over`.

use crate::config::Config;
use crate::open::{Failure, OpenLog, open_log, say};
use logstead_env::Env;
use logstead_sql_session::Promotion;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{info, warn};

/// Between two tries to have a log whose primary may be lost. At a store the look itself takes a part of the lease's
/// duration.
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// What came of a try.
type Tried = Result<OpenLog, Failure>;

/// The replica's tries to become the primary.
pub(super) struct Promoting {
    config: Arc<Config>,
    env: Env,
    promotion: Arc<Promotion>,
    /// A try under way, and the number of who asked for it; 0: nobody did.
    trying: Option<(u64, oneshot::Receiver<Tried>)>,
    /// When the next one is due that nobody asks for.
    try_at: Instant,
}

impl Promoting {
    pub(super) fn new(config: &Arc<Config>, env: &Env, promotion: &Arc<Promotion>) -> Promoting {
        Promoting {
            config: Arc::clone(config),
            env: env.clone(),
            promotion: Arc::clone(promotion),
            trying: None,
            try_at: Instant::now() + TRY_PAUSE,
        }
    }

    /// The log, once a try has had it. May be dropped at any time and called again.
    pub(super) async fn next(&mut self) -> OpenLog {
        loop {
            let number = match &mut self.trying {
                None => {
                    let number = self.due().await;
                    self.begin(number);
                    continue;
                }
                Some((number, _)) => *number,
            };
            let tried = match &mut self.trying {
                Some((_, tried)) => tried.await,
                None => continue,
            };
            self.trying = None;
            self.try_at = Instant::now() + TRY_PAUSE;
            let outcome = match tried {
                Ok(Ok(log)) => {
                    self.promotion.decide(number, Ok(()));
                    return log;
                }
                Ok(Err((_, why))) => why,
                Err(_) => "the thread that opens the log has panicked".to_owned(),
            };
            if number > 0 {
                warn!("the replica is not promoted: {outcome}");
                self.promotion.decide(number, Err(outcome));
            }
        }
    }

    /// Waits until a try is due; the number of who asks for it, or 0.
    async fn due(&self) -> u64 {
        let lost = async {
            match self.config.promote_when_primary_lost {
                true => tokio::time::sleep_until(self.try_at).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            number = self.promotion.requested() => number,
            () = lost => 0,
        }
    }

    fn begin(&mut self, number: u64) {
        let (done, tried) = oneshot::channel();
        let config = self.config.promoted();
        let env = self.env.clone();
        if number > 0 {
            info!("a promotion is asked for");
        }
        let started = self.env.spawn("promotion", None, move || {
            let log = match number {
                // Most tries find the primary at work: that is not worth a word.
                0 => open_log(&config, &env, |_| {}),
                _ => open_log(&config, &env, say),
            };
            // Nobody hears it if the server stops: the log is given back with it.
            let _heard = done.send(log);
        });
        match started {
            Ok(_) => self.trying = Some((number, tried)),
            Err(error) => {
                let why = format!("cannot start the thread that opens the log: {error}");
                warn!("the replica is not promoted: {why}");
                self.promotion.decide(number, Err(why));
            }
        }
    }
}
