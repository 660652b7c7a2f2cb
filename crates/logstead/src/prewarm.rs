//! What is in memory, on its way from an engine that ends to the one that goes on: at a promotion, at a replacement, and
//! when a replica begins again (`autoprewarm`).
//!
//! Does not: know how it is brought in there ([`logstead_engine::PrewarmList`]).

use crate::config::Config;
use logstead_engine::{Engine, PrewarmList};
use logstead_env::Env;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// Clients that pause wait for a list at most so long. What is listed by then counts.
const LIST_TIME: Duration = Duration::from_millis(100);

/// What is in an engine's memory; after `limit` what was listed by then.
pub(crate) fn list_within(engine: &Engine, env: &Env, limit: Duration) -> PrewarmList {
    let now = || Duration::from_nanos(env.clock.monotonic().as_nanos());
    let end = now() + limit;
    engine.prewarm_list(|| now() < end)
}

/// A list that is being made while an engine still serves.
pub(crate) struct Listing(Option<oneshot::Receiver<PrewarmList>>);

impl Listing {
    /// Begins, on a thread of its own, unless `autoprewarm` is off.
    pub(crate) fn start(config: &Config, env: &Env, engine: &Engine) -> Listing {
        if !config.autoprewarm {
            return Listing(None);
        }
        let (done, listed) = oneshot::channel();
        let (engine, own) = (engine.clone(), env.clone());
        let started = env.spawn("prewarm list", None, move || {
            let list = list_within(&engine, &own, LIST_TIME);
            // Its memory is free once nobody has it.
            drop(engine);
            let _nobody_waits_at_a_stop = done.send(list);
        });
        match started {
            Ok(_) => Listing(Some(listed)),
            Err(error) => {
                warn!("memory will be cold: cannot start a thread: {error}");
                Listing(None)
            }
        }
    }

    /// The list, if there is one.
    pub(crate) async fn ended(self) -> Option<PrewarmList> {
        self.0?.await.ok()
    }
}
