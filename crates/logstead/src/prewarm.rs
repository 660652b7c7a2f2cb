//! What is in memory, on its way from an engine that ends to the one that goes on: at a promotion, at a replacement,
//! and when a replica begins again (`autoprewarm`).
//!
//! Does not: know how it is brought in there ([`logstead_engine::PrewarmList`]).

use crate::config::Config;
use logstead_engine::{Engine, PrewarmList};
use logstead_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// Clients that have paused wait for a list at most so long. What is listed by then counts.
const LIST_TIME: Duration = Duration::from_millis(50);

/// A list that is being made while an engine still serves.
pub(crate) struct Listing {
    listed: Option<oneshot::Receiver<PrewarmList>>,
    is_enough: Arc<AtomicBool>,
}

impl Listing {
    /// Begins, on a thread of its own, unless `autoprewarm` is off.
    pub(crate) fn start(config: &Config, env: &Env, engine: &Engine) -> Listing {
        let mut listing = Listing {
            listed: None,
            is_enough: Arc::default(),
        };
        if !config.autoprewarm {
            return listing;
        }
        let (done, listed) = oneshot::channel();
        let (engine, enough) = (engine.clone(), Arc::clone(&listing.is_enough));
        let started = env.spawn("prewarm list", None, move || {
            let list = engine.prewarm_list(|| !enough.load(Ordering::Relaxed));
            // Its memory is free once nobody has it.
            drop(engine);
            let _nobody_waits_at_a_stop = done.send(list);
        });
        match started {
            Ok(_) => listing.listed = Some(listed),
            Err(error) => warn!("memory will be cold: cannot start a thread: {error}"),
        }
        listing
    }

    /// The list, if there is one, however long it takes.
    pub(crate) async fn whole(self) -> Option<PrewarmList> {
        self.listed?.await.ok()
    }

    /// The list, if there is one, soon. Nothing of the engine is kept afterwards.
    pub(crate) async fn ended(self) -> Option<PrewarmList> {
        let mut listed = self.listed?;
        match tokio::time::timeout(LIST_TIME, &mut listed).await {
            Ok(listed) => listed.ok(),
            Err(_) => {
                self.is_enough.store(true, Ordering::Relaxed);
                listed.await.ok()
            }
        }
    }
}
