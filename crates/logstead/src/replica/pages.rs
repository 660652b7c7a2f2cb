//! Pages of the primary's checkpoints, which this replica writes when it is asked (`page_service`).
//!
//! An order comes by the stream. A thread of its own opens the home to store objects there, and hands it to the thread
//! that follows the log: that begins the checkpoint between two rounds, as soon as snapshots see what the order wants,
//! and hands it back; then the first thread writes, and tells the primary. Whatever fails is told as a refusal.
//!
//! Invariant: of each order the primary hears the end, if the stream stands, and after that nothing is stored for it.
//!
//! Does not: know what a checkpoint consists of ([`logstead_engine::ReplicaCheckpoint`]), or publish one.

use super::stream::StreamLink;
use crate::branch::open_branch;
use crate::config::Config;
use crate::open::place;
use logstead_engine::{PageOrder, PageReply, PageRequest, Replica, ReplicaCheckpoint};
use logstead_env::Env;
use logstead_home::LogHome;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;
use tracing::{debug, info};

/// How often the primary is told that the replica is at work.
const TELL_PAUSE: Duration = Duration::from_secs(1);

/// An order that is not begun yet.
struct Waiting {
    order: PageOrder,
    /// Gives the home.
    home: Receiver<Result<LogHome, String>>,
    opened: Option<LogHome>,
    /// Where what is begun goes.
    begun: Sender<ReplicaCheckpoint>,
}

/// Serves the orders of one stream after the other; see the module's documentation.
pub(super) struct PageWriter {
    config: Arc<Config>,
    env: Env,
    link: Arc<StreamLink>,
    waiting: Option<Waiting>,
    /// The order that is begun, or written.
    current: Option<u64>,
}

/// The home, to store objects in.
fn open_home(config: &Config, env: &Env) -> Result<LogHome, String> {
    let url = place(config);
    let open = |url: &str| logstead_home::open_to_store_objects(url, env);
    let home = match &config.branch {
        Some(branch) => open_branch(&url, branch, env, open).map_err(|error| error.to_string()),
        None => open(&url).map_err(|error| error.to_string()),
    };
    home.map_err(|why| format!("the home cannot be opened to store objects there: {why}"))
}

impl PageWriter {
    /// Of the replica with these settings, if it writes pages.
    pub(super) fn new(
        config: &Arc<Config>,
        env: &Env,
        link: &Arc<StreamLink>,
    ) -> Option<PageWriter> {
        config.page_service.then(|| PageWriter {
            config: Arc::clone(config),
            env: env.clone(),
            link: Arc::clone(link),
            waiting: None,
            current: None,
        })
    }

    fn refuse(&self, order: u64, why: &str) {
        debug!("an order to write a checkpoint is refused: {why}");
        self.link.tells(PageReply::Refused {
            order,
            why: why.to_owned(),
        });
    }

    /// Between two rounds: takes what the primary has asked, and begins what can be begun.
    pub(super) fn step(&mut self, replica: &mut Replica<'_>) {
        while let Some(request) = self.link.take_request() {
            match request {
                PageRequest::Order(order) => {
                    self.drop_waiting();
                    self.take(order);
                }
                PageRequest::Cancel(number) => {
                    let waits = self.waiting.as_ref().map(|waiting| waiting.order.number);
                    if waits == Some(number) {
                        self.drop_waiting();
                    }
                    if self.current.take_if(|current| *current == number).is_some() {
                        replica.give_up_checkpoint();
                    }
                }
                // They have a line of their own.
                PageRequest::Read(_) => {}
            }
        }
        let Some(mut waiting) = self.waiting.take() else {
            return;
        };
        let number = waiting.order.number;
        if waiting.opened.is_none() {
            match waiting.home.try_recv() {
                Ok(Ok(home)) => waiting.opened = Some(home),
                Ok(Err(why)) => return self.refuse(number, &why),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    return self.refuse(number, "its thread has ended");
                }
            }
        }
        let Some(home) = waiting.opened.take() else {
            self.waiting = Some(waiting);
            return;
        };
        if replica.engine().next_csn() < waiting.order.from {
            waiting.opened = Some(home);
            self.waiting = Some(waiting);
            return;
        }
        match replica.begin_checkpoint(waiting.order, home) {
            Ok(begun) => {
                self.current = Some(number);
                self.link.tells(PageReply::Begun {
                    order: number,
                    csn: begun.csn(),
                });
                if waiting.begun.send(begun).is_err() {
                    self.refuse(number, "its thread has ended");
                }
            }
            Err(error) => self.refuse(number, &error.to_string()),
        }
    }

    /// Has a thread open the home for an order, and write what is begun.
    fn take(&mut self, order: PageOrder) {
        let number = order.number;
        let (to_follower, home) = channel();
        let (begun, from_follower) = channel();
        let (config, env, link) = (
            Arc::clone(&self.config),
            self.env.clone(),
            Arc::clone(&self.link),
        );
        let body = move || {
            let opened = open_home(&config, &env);
            let is_open = opened.is_ok();
            if to_follower.send(opened).is_err() || !is_open {
                return;
            }
            link.wake_follower();
            // It is given up, and the end was told.
            let Ok(begun) = from_follower.recv() else {
                return;
            };
            write(begun, &env, &link);
        };
        match self.env.spawn("page-service", None, body) {
            // It ends by itself.
            Ok(_) => {
                self.waiting = Some(Waiting {
                    order,
                    home,
                    opened: None,
                    begun,
                });
            }
            Err(error) => self.refuse(number, &format!("its thread cannot be started: {error}")),
        }
    }

    fn drop_waiting(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.refuse(waiting.order.number, "it was given up");
        }
    }

    /// Nobody hears what becomes of an order any more. What was written all the same may have been published: the next
    /// checkpoint that is adopted tells.
    pub(super) fn disconnected(&mut self, replica: &Replica<'_>) {
        self.drop_waiting();
        if self.current.take().is_some() {
            replica.end_checkpoint();
        }
    }
}

/// Writes what was begun, and tells the primary.
fn write(begun: ReplicaCheckpoint, env: &Env, link: &StreamLink) {
    let (order, csn) = (begun.number(), begun.csn());
    let mut told = env.clock.monotonic();
    let end = begun.write(|| {
        let now = env.clock.monotonic();
        if now.since(told) >= TELL_PAUSE {
            told = now;
            link.tells(PageReply::Working { order });
        }
    });
    match &end {
        PageReply::Refused { why, .. } => {
            info!("the pages of a checkpoint were not written: {why}")
        }
        _ => debug!("the pages of the checkpoint at CSN {csn} are written"),
    }
    link.tells(end);
}
