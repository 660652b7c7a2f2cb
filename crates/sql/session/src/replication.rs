//! Sessions of replicas, which follow this server's log by a stream: what PostgreSQL calls a walsender.
//!
//! Owns: the commands of a replication connection, whoever may have one, what is kept for its replica, and how far that
//! has come (`pg_stat_replication`). The log is sent as the lanes' blocks ([`BlockFeed`](logstead_engine::BlockFeed))
//! and the horizon; the replica reads at the home what it was not sent, so nothing here waits for a replica.
//!
//! Invariant: a horizon is told after all blocks that were written before it was read, as far as they are still there.
//!
//! Does not: know how messages look (`logstead_wire::replication`).

use super::Session;
use crate::backend_status::BackendStatus;
use logstead_engine::{
    Csn, Engine, FeedBlock, FeedReader, ObjectId, PageReadAnswer, PageReply, PageRequest,
    PageServiceOffer, ReplicaHoldGuard, ReplicaLag, Watermark, server_identity,
};
use logstead_env::Env;
use logstead_sql_catalog::context::ReplicationRow;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{DatabaseId, Epoch, SqlState};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Bytes of blocks that are sent at once.
const BATCH_BYTES: usize = 1 << 20;
/// Horizons whose replay is waited for, to tell how long it took.
const UNANSWERED_MAX: usize = 4096;

/// What a replication connection asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationCommand {
    /// `IDENTIFY_SYSTEM`
    IdentifySystem,
    /// `START_REPLICATION BLOCKS <database> TIMELINE <epoch>`: the blocks that are written from now on.
    StartReplication(FollowedLog),
}

/// Which log a replica follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedLog {
    /// The database.
    pub database: DatabaseId,
    /// The epoch that it has come to.
    pub epoch: Epoch,
}

impl ReplicationCommand {
    /// Reads a command. 42601 for what is none, 0A000 for those of PostgreSQL that there are not.
    pub fn parse(text: &str) -> Result<ReplicationCommand> {
        let text = text.trim().trim_end_matches(';');
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let is = |word: &str, name: &str| word.eq_ignore_ascii_case(name);
        let syntax = || {
            SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error: \"{text}\" is no replication command"),
            )
        };
        match words.as_slice() {
            [word] if is(word, "IDENTIFY_SYSTEM") => Ok(ReplicationCommand::IdentifySystem),
            [start, blocks, database, timeline, epoch]
                if is(start, "START_REPLICATION")
                    && is(blocks, "BLOCKS")
                    && is(timeline, "TIMELINE") =>
            {
                let database = u64::from_str_radix(database, 16).map_err(|_| syntax())?;
                Ok(ReplicationCommand::StartReplication(FollowedLog {
                    database: DatabaseId(database),
                    epoch: Epoch(epoch.parse().map_err(|_| syntax())?),
                }))
            }
            [word, ..] => {
                const OTHERS: [&str; 8] = [
                    "BASE_BACKUP",
                    "CREATE_REPLICATION_SLOT",
                    "DROP_REPLICATION_SLOT",
                    "READ_REPLICATION_SLOT",
                    "START_REPLICATION",
                    "TIMELINE_HISTORY",
                    "SHOW",
                    "SELECT",
                ];
                match OTHERS.iter().find(|name| is(word, name)) {
                    Some(name) => Err(SqlError::unsupported(format!(
                        "{name} in a replication connection"
                    ))),
                    None => Err(syntax()),
                }
            }
            [] => Err(syntax()),
        }
    }
}

/// What `IDENTIFY_SYSTEM` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemIdentity {
    /// The database's number.
    pub database: DatabaseId,
    /// The server's life.
    pub epoch: Epoch,
    /// Everything below it is durable.
    pub horizon: Csn,
    /// Where the log is.
    pub home: String,
    /// This server's number; see [`server_identity`].
    pub server: u64,
}

impl Session {
    /// Is it one of a replication connection?
    pub fn is_replication(&self) -> bool {
        self.replication
    }

    /// What `IDENTIFY_SYSTEM` tells.
    pub fn identify_system(&self) -> SystemIdentity {
        let engine = &self.context.instance.engine;
        SystemIdentity {
            database: engine.database(),
            epoch: engine.epoch(),
            horizon: engine.horizon(),
            home: engine.home().describe(),
            server: self.context.instance.identity,
        }
    }

    /// What is to be done before that is told, where it may block: the number is left at the home. 58030 if it cannot
    /// be.
    pub fn identity_publication(&self) -> impl FnOnce() -> Result<()> + Send + 'static + use<> {
        let names = Arc::clone(&self.context.instance.engine.home().names);
        let identity = self.context.instance.identity;
        move || {
            let published = server_identity::publish(names.as_ref(), identity);
            published.map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))
        }
    }

    /// Begins to send the log to a replica. 55000 for one of another log, or of another life of the server; 0A000 at a
    /// replica.
    pub fn start_replication(&self, followed: FollowedLog) -> Result<ReplicationSender> {
        let engine = &self.context.instance.engine;
        if self.context.instance.store.replica_status().is_some() {
            return Err(SqlError::unsupported(
                "cascading replication: this server is a replica",
            ));
        }
        let own = FollowedLog {
            database: engine.database(),
            epoch: engine.epoch(),
        };
        let refused = if followed.database != own.database {
            Some(format!(
                "the replica follows database {}, and this server has database {}",
                followed.database, own.database
            ))
        } else if followed.epoch != own.epoch {
            Some(format!(
                "the replica reads epoch {} of the log, and this server writes epoch {}",
                followed.epoch, own.epoch
            ))
        } else {
            None
        };
        if let Some(why) = refused {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                why,
            ));
        }
        let holder = engine
            .replica_holds()
            .follow(Arc::clone(&self.context.instance.env.clock));
        let sender = ReplicationSender {
            reader: engine.commit_path().feed().follow(),
            horizon: Arc::clone(engine.commit_path().horizon_watermark()),
            env: self.context.instance.env.clone(),
            engine: engine.clone(),
            pages: None,
            live: Arc::clone(&self.context.live),
            sent: Csn::ZERO,
            unanswered: VecDeque::new(),
            lag: ReplicaLag::Short,
            progress: ReplicationRow {
                holder: holder.id(),
                ..ReplicationRow::default()
            },
            holder,
        };
        sender.live.replicates(Some(sender.progress));
        Ok(sender)
    }
}

/// Sends one replica the log; see the module's documentation.
pub struct ReplicationSender {
    reader: FeedReader,
    horizon: Arc<Watermark>,
    env: Env,
    engine: Engine,
    /// By which it is asked to write pages of checkpoints, if it does.
    pages: Option<PageServiceOffer>,
    live: Arc<BackendStatus>,
    sent: Csn,
    /// Horizons that were sent and that the replica does not show yet, and when that was.
    unanswered: VecDeque<(Csn, i64)>,
    progress: ReplicationRow,
    /// What was last said of how well it keeps up.
    lag: ReplicaLag,
    /// What is kept for it.
    holder: ReplicaHoldGuard,
}

impl ReplicationSender {
    /// Waits until the horizon is above what was sent, or the replica is to be asked something. An error: the log has
    /// failed.
    pub async fn until_due(&self) -> Result<()> {
        let mut horizon = pin!(Watermark::wait(
            Arc::clone(&self.horizon),
            self.sent.get() + 1
        ));
        let waited = poll_fn(|cx| {
            let pages = self.pages.as_ref();
            if pages.is_some_and(|pages| pages.poll_request(cx).is_ready()) {
                return Poll::Ready(Ok(()));
            }
            horizon.as_mut().poll(cx)
        });
        let waited = waited.await;
        waited.map_err(|failed| SqlError::new(SqlState::IO_ERROR, failed.to_string()))
    }

    /// The server's clock, in microseconds since 2000.
    pub fn now(&self) -> i64 {
        self.env.clock.now_micros_since_2000()
    }

    /// Takes blocks that are to be sent next. Gives the horizon that is to be told behind them, and whether there are
    /// more: then it is the one that was told last, for the new one comes behind all blocks that were written before
    /// it.
    pub fn take(&mut self, blocks: &mut Vec<FeedBlock>) -> (Csn, bool) {
        let horizon = Csn(self.horizon.get());
        let has_more = self.reader.take(BATCH_BYTES, blocks);
        if !has_more && horizon > self.sent {
            self.sent = horizon;
            self.progress.sent = horizon;
            if self.unanswered.len() < UNANSWERED_MAX {
                self.unanswered.push_back((horizon, self.now()));
            }
            self.live.replicates(Some(self.progress));
        }
        if self.lag() != self.lag {
            self.tell_progress();
        }
        (self.sent, has_more)
    }

    /// The replica tells that its snapshots see everything below `replayed`, at `time` of its clock.
    pub fn replied(&mut self, replayed: Csn, time: i64) {
        // It cannot have more than it was told of, but by the home.
        let replayed = replayed.min(Csn(self.horizon.get()));
        let mut shown_since = None;
        while let Some(&(horizon, at)) = self.unanswered.front()
            && horizon <= replayed
        {
            shown_since = Some(at);
            self.unanswered.pop_front();
        }
        let progress = &mut self.progress;
        // As in PostgreSQL nothing is told of one that has nothing to do.
        progress.lag_us = match shown_since {
            Some(at) => Some((self.env.clock.now_micros_since_2000() - at).max(0)),
            None if self.unanswered.is_empty() && progress.replayed == replayed => None,
            None => progress.lag_us,
        };
        progress.replayed = progress.replayed.max(replayed);
        self.holder.has_replayed(progress.replayed);
        progress.reply_time = Some(time);
        self.live.replicates(Some(*progress));
        self.tell_progress();
    }

    /// How well it keeps up now.
    fn lag(&self) -> ReplicaLag {
        let oldest = self.unanswered.front();
        oldest.map_or(ReplicaLag::Short, |(_, at)| lag_of(*at, self.now()))
    }

    /// Tells who asks it for rows what it has, and how well it keeps up.
    fn tell_progress(&mut self) {
        self.lag = self.lag();
        if let Some(pages) = &self.pages {
            pages.has_applied(self.progress.replayed, self.lag);
        }
    }
}

impl ReplicationSender {
    /// The replica tells the records of the checkpoints that it reads from.
    pub fn reads(&self, checkpoints: Vec<ObjectId>) {
        self.holder.reads(checkpoints);
    }

    /// The replica writes pages of checkpoints from now on, when it is asked.
    pub fn writes_pages(&mut self) {
        if self.pages.is_none() {
            self.pages = Some(self.engine.page_services().offer());
            self.tell_progress();
        }
    }

    /// It also tells rows, when it is asked.
    pub fn tells_rows(&self) {
        if let Some(pages) = &self.pages {
            pages.gives_rows();
        }
    }

    /// It has told some.
    pub fn rows_answer(&self, answer: PageReadAnswer) {
        if let Some(pages) = &self.pages {
            pages.answered(answer);
        }
    }

    /// What it is asked next.
    pub fn take_page_request(&self) -> Option<PageRequest> {
        self.pages.as_ref()?.take()
    }

    /// It tells what becomes of an order.
    pub fn page_reply(&self, reply: PageReply) {
        if let Some(pages) = &self.pages {
            pages.replied(reply);
        }
    }
}

/// How well a replica keeps up that does not show yet what it was sent then. Both times are in microseconds.
fn lag_of(sent_at: i64, now: i64) -> ReplicaLag {
    // Zero where the clock was set back.
    let micros = u64::try_from(now.saturating_sub(sent_at)).unwrap_or(0);
    ReplicaLag::of(Duration::from_micros(micros))
}

impl Drop for ReplicationSender {
    fn drop(&mut self) {
        self.live.replicates(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let parse = ReplicationCommand::parse;
        assert_eq!(
            parse(" identify_system; ").unwrap(),
            ReplicationCommand::IdentifySystem
        );
        assert_eq!(
            parse("START_REPLICATION BLOCKS 00ff TIMELINE 7").unwrap(),
            ReplicationCommand::StartReplication(FollowedLog {
                database: DatabaseId(255),
                epoch: Epoch(7),
            })
        );
        for (text, code) in [
            ("", "42601"),
            ("IDENTIFY", "42601"),
            ("START_REPLICATION BLOCKS zz TIMELINE 7", "42601"),
            ("START_REPLICATION BLOCKS ff TIMELINE x", "42601"),
            ("START_REPLICATION BLOCKS ff TIMELINE 7 SLOT", "0A000"),
            ("START_REPLICATION 0/0 TIMELINE 1", "0A000"),
            ("SELECT 1", "0A000"),
            ("BASE_BACKUP ( LABEL 'x' )", "0A000"),
        ] {
            assert_eq!(parse(text).unwrap_err().code().as_str(), code, "{text}");
        }
    }

    #[test]
    fn a_replica_is_behind_that_has_not_shown_for_long_what_it_was_sent() {
        let second = 1_000_000;
        assert_eq!(lag_of(100, 100 + second), ReplicaLag::Short);
        assert_eq!(lag_of(100, 101 + second), ReplicaLag::Long);
        assert_eq!(lag_of(100, 101 + 5 * second), ReplicaLag::TooLong);
        // The clock was set back.
        assert_eq!(lag_of(100 + 9 * second, 100), ReplicaLag::Short);
        assert_eq!(lag_of(i64::MAX, i64::MIN), ReplicaLag::Short);
    }
}
