//! Promotion: a replica becomes the primary, in the same process and on the same sockets.
//!
//! **Rule.** Whoever has the log is the primary, and nobody else says so. A promotion opens the log as any server does
//! that starts there: the kernel's lock or the lease is taken, every lane is fenced, the log is read to its end, and
//! the mark is written ([`logstead_engine::Engine::open`]). So what was acknowledged is there, and whoever had the log
//! before can acknowledge nothing more (T3). The catalog is opened as well. The replica answers reads meanwhile. If the
//! log cannot be had, because a
//! server has it, nothing has changed, and the replica goes on. Once it is had, the replica's sessions pause, and go on
//! with the engine that was opened ([`crate::client_handover`]).
//!
//! **Which log.** A start makes a log where there is none. A promotion does not: before it opens anything it looks
//! whether the log of the database that was followed is there. What it has opened must reach as far as the replica has
//! shown; otherwise it is given back.
//!
//! Asked for by `pg_promote()` and `logstead promote`, or tried again and again with `promote_when_primary_lost`. A
//! promotion that is asked for takes the lease of a server that may be alive only with `--take-over`.

use crate::config::Config;
use crate::open::{Failure, OpenInstance, open_instance, open_log, place, release, say};
use logstead_env::Env;
use logstead_home::LogHome;
use logstead_sql_catalog::ReplicaStatus;
use logstead_sql_session::Promotion;
use logstead_types::{Csn, DatabaseId};
use logstead_wal::manifest::{self, Manifest};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{info, warn};

/// Between two tries to have a log whose primary may be lost. At a store the look itself takes a part of the lease's
/// duration.
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// What came of a try.
type Tried = Result<OpenInstance, Failure>;

/// The replica's tries to become the primary.
pub(super) struct PromotionAttempts {
    config: Arc<Config>,
    env: Env,
    status: Arc<ReplicaStatus>,
    promotion: Arc<Promotion>,
    /// Which database is followed, once anything is.
    database: Arc<OnceLock<DatabaseId>>,
    /// A try under way, and the number of who asked for it; 0: nobody did.
    trying: Option<(u64, oneshot::Receiver<Tried>)>,
    /// When the next one is due that nobody asks for.
    try_at: Instant,
}

impl PromotionAttempts {
    pub(super) fn new(
        config: &Arc<Config>,
        env: &Env,
        status: &Arc<ReplicaStatus>,
        promotion: &Arc<Promotion>,
    ) -> PromotionAttempts {
        PromotionAttempts {
            config: Arc::clone(config),
            env: env.clone(),
            status: Arc::clone(status),
            promotion: Arc::clone(promotion),
            database: Arc::default(),
            trying: None,
            try_at: Instant::now() + TRY_PAUSE,
        }
    }

    /// Where whoever follows says which database that is.
    pub(super) fn database(&self) -> &Arc<OnceLock<DatabaseId>> {
        &self.database
    }

    /// The log with its catalog, once a try has had it. May be dropped at any time and called again.
    pub(super) async fn next(&mut self) -> OpenInstance {
        loop {
            if self.trying.is_none() {
                let number = self.due().await;
                self.begin(number);
            }
            if let Some(log) = self.outcome().await {
                return log;
            }
        }
    }

    /// The log, if a try that is under way has it in the end. May be dropped at any time and called again.
    pub(super) async fn outcome(&mut self) -> Option<OpenInstance> {
        let (number, tried) = self.trying.as_mut()?;
        let number = *number;
        let tried = tried.await;
        self.trying = None;
        self.try_at = Instant::now() + TRY_PAUSE;
        let why = match tried {
            Ok(Ok(log)) => {
                // Whoever has asked meanwhile has it too.
                self.promotion.grant_all();
                return Some(log);
            }
            Ok(Err((_, why))) => why,
            Err(_) => "the thread that opens the log has panicked".to_owned(),
        };
        self.refuse(number, why);
        None
    }

    fn refuse(&self, number: u64, why: String) {
        if number > 0 {
            warn!("the replica is not promoted: {why}");
            self.promotion.decide(number, Err(why));
        }
    }

    /// The server stops: a log that a try has had already is given back.
    pub(super) fn give_up(self) {
        if let Some((_, mut tried)) = self.trying
            && let Ok(Ok((instance, _))) = tried.try_recv()
        {
            release(&instance.engine, &self.env, self.config.lease_duration);
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
        self.try_at = Instant::now() + TRY_PAUSE;
        let (done, tried) = oneshot::channel();
        let attempt = Attempt {
            followed: Arc::clone(&self.config),
            config: self.config.promoted(),
            env: self.env.clone(),
            is_asked_for: number > 0,
            database: self.database.get().copied(),
            shown: self.status.report().visible,
        };
        if number > 0 {
            info!("a promotion is asked for");
        }
        let started = self.env.spawn("promotion", None, move || {
            // Nobody hears it if the server stops.
            if let Err(Ok((instance, _))) = done.send(attempt.open()) {
                release(
                    &instance.engine,
                    &attempt.env,
                    attempt.config.lease_duration,
                );
            }
        });
        match started {
            Ok(_) => self.trying = Some((number, tried)),
            Err(error) => {
                let why = format!("cannot start the thread that opens the log: {error}");
                self.refuse(number, why);
            }
        }
    }
}

/// One try.
struct Attempt {
    /// As the replica follows.
    followed: Arc<Config>,
    /// As the primary is started.
    config: Config,
    env: Env,
    /// Most tries that nobody asks for find the primary at work: that is not worth a word.
    is_asked_for: bool,
    /// Which database was followed, if anything was.
    database: Option<DatabaseId>,
    /// The replica has shown everything below.
    shown: Csn,
}

impl Attempt {
    fn open(&self) -> Tried {
        let refused = |why: String| (crate::EXIT_FAILURE, why);
        let manifest = self.manifest().map_err(refused)?;
        let there = manifest.map(|manifest| manifest.database);
        if there.is_none()
            || self
                .database
                .is_some_and(|followed| there != Some(followed))
        {
            let home = place(&self.followed);
            return Err(refused(format!(
                "{home} does not hold the log that was followed"
            )));
        }
        let log = match self.is_asked_for {
            true => open_log(&self.config, &self.env, say),
            false => open_log(&self.config, &self.env, |_| {}),
        }?;
        let next = log.next_csn();
        if log.was_made() || next < self.shown {
            let why = format!(
                "the log ends at CSN {next}, and the replica has shown everything below {}",
                self.shown
            );
            log.give_back(&self.env, self.config.lease_duration);
            return Err(refused(why));
        }
        open_instance(&self.config, &self.env, log, true)
    }

    /// What the home says of its log; nothing is changed there.
    fn manifest(&self) -> Result<Option<Manifest>, String> {
        let home = super::follow::open_home(&self.followed, &self.env);
        let home = home.map_err(|error| error.to_string())?;
        manifest_of(&home)
    }
}

/// The manifest that a home has, if it has one.
pub(super) fn manifest_of(home: &LogHome) -> Result<Option<Manifest>, String> {
    let stored = home.names.get(manifest::NAME);
    let Some((bytes, _)) = stored.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    Manifest::decode(&bytes)
        .map(Some)
        .map_err(|error| error.to_string())
}
