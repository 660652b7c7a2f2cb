//! What a server keeps for the replicas that follow its log by a stream: checkpoints that they read from, and the log
//! that they have not applied.
//!
//! A replica tells, now and then, the CSN below which it has applied everything, and the records of the checkpoints
//! that it reads rows and leaves from. The rules:
//!
//! - H1 *Checkpoints.* A record that is held stays, with all that it names ([`logstead_checkpoint::Holds`]). A replica
//!   is given what this server has published and is whole, and nothing else. What was the newest when it spoke last is
//!   held until it speaks again: it may adopt that in between.
//! - H2 *The log.* A replica that has applied everything below `r` needs the entries from `r` on. Each checkpoint that
//!   is published has places behind which all entries at or above its CSN lie. So for a replica at `r` those of the
//!   newest checkpoint with a CSN of at most `r` stay ([`ReplicaHolds::decide`]). What lies before the places of the
//!   oldest that is needed is forgotten under the same mutex under which replicas tell, before anything is removed:
//!   nobody is promised a log that has gone. Those places are not behind any that the replica reads a lane from: it
//!   tells `r` when it has read each lane to its end, or past a block with a horizon above `r`, and such a block was
//!   sealed behind them.
//! - H3 *Bounds.* Nothing is kept that a newer checkpoint superseded longer than `limit` ago, nothing for a replica
//!   that was cut off longer than [`GONE_MAX`] ago, and nothing while the home has little room. That is looked at with
//!   each checkpoint, also one for which nothing has changed.
//! - H4 *One epoch.* A replica has a stream of the running epoch only, so it has read those before. The checkpoint that
//!   a start has loaded stands for all of the running epoch.
//!
//! Does not: say what a replica does when its checkpoint is gone, which takes a newer one, waits, or ends a query with
//! 72000 (`page_store::replica_base`).
//!
//! Nothing waits for a replica. A hold is no promise either: after a start of the server it is gone, and a replica that
//! does not find what it wants begins again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logstead_checkpoint::{Holds, ObjectHold};
use logstead_env::Instant;
use logstead_home::ObjectId;
use logstead_types::Csn;
use logstead_wal::LogFloor;
use logstead_wal::manifest::RedoPoint;
use parking_lot::Mutex;

/// How long the holds of a replica stay that was cut off: so long it has to come back.
const GONE_MAX: Duration = Duration::from_secs(60);
/// Checkpoints that one replica may name: the one with its leaves, and the one with its rows, before and after a
/// change.
const RECORDS_MAX: usize = 4;
/// Replicas that were cut off, of which something is kept; of more the first are forgotten.
const GONE_COUNT_MAX: usize = 64;
/// Checkpoints whose places are remembered; of more every second one is forgotten, so that more of the log is kept.
const PUBLISHED_MAX: usize = 4096;

/// A checkpoint of this epoch, or the one that it began with.
struct PublishedAt {
    csn: Csn,
    starts: Vec<RedoPoint>,
    superseded_at: Option<Instant>,
}

/// A record that a replica has named.
struct NamedRecord {
    object: ObjectId,
    /// Nothing: it is not whole, or has been held for long enough.
    hold: Option<ObjectHold>,
}

#[derive(Default)]
struct ReplicaHold {
    replayed: Option<Csn>,
    records: Vec<NamedRecord>,
    /// The newest record when it spoke last.
    latest: Option<NamedRecord>,
    gone_at: Option<Instant>,
}

impl ReplicaHold {
    fn records_mut(&mut self) -> impl Iterator<Item = &mut NamedRecord> {
        self.records.iter_mut().chain(&mut self.latest)
    }

    fn holds(&self, object: ObjectId) -> bool {
        let mut records = self.records.iter().chain(&self.latest);
        records.any(|record| record.object == object && record.hold.is_some())
    }
}

struct HoldsState {
    /// By CSN. The last is the newest.
    published: VecDeque<PublishedAt>,
    /// The newest record; and when those before were superseded, as long as they may be held.
    newest: Option<ObjectId>,
    superseded: BTreeMap<ObjectId, Instant>,
    replicas: BTreeMap<u64, ReplicaHold>,
    next_id: u64,
    /// Something was let go since a decision.
    has_released: bool,
}

/// What becomes of what is kept.
pub(crate) struct HoldsDecision {
    /// From where on the log stays; nothing: no replica needs any of it.
    pub(crate) floor: Option<LogFloor>,
    /// Something may be removed that was kept before.
    pub(crate) has_released: bool,
}

/// What is kept for one replica, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaHoldReport {
    /// [`ReplicaHoldGuard::id`].
    pub id: u64,
    /// It is connected.
    pub is_connected: bool,
    /// It has applied everything below; unknown until it has said so.
    pub replayed: Option<Csn>,
    /// The log is kept for it from the entry with this CSN on; nothing if what it needs was not kept.
    pub log_from: Option<Csn>,
    /// Checkpoints that are kept for it.
    pub checkpoints: usize,
}

/// See the module's documentation.
pub struct ReplicaHolds {
    holds: Arc<Holds>,
    limit_us: AtomicU64,
    state: Mutex<HoldsState>,
}

impl HoldsState {
    /// The newest checkpoint that holds nothing at or above a CSN: its number among the published ones.
    fn before(&self, csn: Csn) -> Option<usize> {
        let after = self.published.partition_point(|at| at.csn <= csn);
        after.checked_sub(1)
    }

    /// Forgets the first of too many that were cut off.
    fn forget_gone(&mut self) {
        let gone = |(id, replica): (&u64, &ReplicaHold)| Some((replica.gone_at?, *id));
        let mut gone: Vec<(Instant, u64)> = self.replicas.iter().filter_map(gone).collect();
        gone.sort_unstable();
        let surplus = gone.len().saturating_sub(GONE_COUNT_MAX);
        for (_, id) in gone.drain(..surplus) {
            self.replicas.remove(&id);
            self.has_released = true;
        }
    }
}

impl ReplicaHolds {
    /// The epoch begins with this checkpoint, if there is one.
    pub(crate) fn new(holds: Arc<Holds>, loaded: Option<(ObjectId, Csn)>) -> ReplicaHolds {
        let whole_epoch = PublishedAt {
            csn: loaded.map_or(Csn::ZERO, |(_, csn)| csn),
            starts: Vec::new(),
            superseded_at: None,
        };
        ReplicaHolds {
            holds,
            limit_us: AtomicU64::new(0),
            state: Mutex::new(HoldsState {
                published: VecDeque::from([whole_epoch]),
                newest: loaded.map(|(object, _)| object),
                superseded: BTreeMap::new(),
                replicas: BTreeMap::new(),
                next_id: 0,
                has_released: false,
            }),
        }
    }

    /// How long something is kept that a newer checkpoint has superseded; zero, as at the beginning: nothing is.
    pub fn set_limit(&self, limit: Duration) {
        let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        self.limit_us.store(micros, Ordering::Relaxed);
    }

    fn limit(&self) -> Duration {
        Duration::from_micros(self.limit_us.load(Ordering::Relaxed))
    }

    /// A replica follows from now on, until that is dropped.
    pub fn follow(self: &Arc<Self>, clock: Arc<dyn logstead_env::Clock>) -> ReplicaHoldGuard {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.replicas.insert(id, ReplicaHold::default());
        ReplicaHoldGuard {
            holds: Arc::clone(self),
            clock,
            id,
        }
    }

    /// A checkpoint was published.
    pub(crate) fn published(
        &self,
        object: ObjectId,
        csn: Csn,
        starts: Vec<RedoPoint>,
        now: Instant,
    ) {
        let mut state = self.state.lock();
        if let Some(before) = state.newest.replace(object) {
            state.superseded.insert(before, now);
        }
        // Its name can be read before it is known here, and a replica may have been faster.
        for replica in state.replicas.values_mut() {
            for record in replica
                .records_mut()
                .filter(|record| record.object == object)
            {
                record.hold = self.hold(object);
            }
        }
        if let Some(last) = state.published.back_mut() {
            last.superseded_at = Some(now);
        }
        state.published.push_back(PublishedAt {
            csn,
            starts,
            superseded_at: None,
        });
        if state.published.len() > PUBLISHED_MAX {
            let (last, mut number) = (state.published.len() - 1, 0);
            state.published.retain(|_| {
                number += 1;
                number % 2 == 1 || number > last
            });
        }
    }

    fn hold(&self, object: ObjectId) -> Option<ObjectHold> {
        (!self.limit().is_zero())
            .then(|| self.holds.hold_object(object))
            .flatten()
    }

    /// Is anything kept, or may be, that no checkpoint needs?
    pub(crate) fn keeps_anything(&self) -> bool {
        let state = self.state.lock();
        !state.replicas.is_empty() || state.published.len() > 1
    }

    /// Lets go of what is kept long enough, or of everything if there is no room for it, and decides from where on the
    /// log stays.
    pub(crate) fn decide(&self, now: Instant, has_room: bool) -> HoldsDecision {
        let limit = self.limit();
        let is_over = |since: Instant, most: Duration| {
            !has_room || limit.is_zero() || now.since(since) > most
        };
        let mut state = self.state.lock();
        let state = &mut *state;
        let gone_max = limit.min(GONE_MAX);
        let count = state.replicas.len();
        state
            .replicas
            .retain(|_, replica| replica.gone_at.is_none_or(|at| !is_over(at, gone_max)));
        let mut has_released =
            std::mem::take(&mut state.has_released) || state.replicas.len() < count;
        for replica in state.replicas.values_mut() {
            for record in replica.records_mut() {
                let superseded = state.superseded.get(&record.object);
                if superseded.is_some_and(|at| is_over(*at, limit)) {
                    has_released |= record.hold.take().is_some();
                }
            }
        }
        // Before its time is over a record keeps the moment, whoever names it again.
        let replicas = &state.replicas;
        let is_held = |object| replicas.values().any(|replica| replica.holds(object));
        state
            .superseded
            .retain(|object, at| !is_over(*at, limit) || is_held(*object));
        let newest = state.published.len() - 1;
        let stays = |at: &usize| {
            let superseded = state.published[*at].superseded_at;
            superseded.is_none_or(|at| !is_over(at, limit))
        };
        let needed = state
            .replicas
            .values()
            .filter_map(|replica| state.before(replica.replayed?));
        let oldest = needed.filter(stays).min();
        let first = oldest.unwrap_or(newest);
        state.published.drain(..first);
        let floor = state.published.front().filter(|_| oldest.is_some());
        HoldsDecision {
            floor: floor.map(|floor| LogFloor {
                csn: floor.csn,
                starts: floor.starts.clone(),
            }),
            has_released: has_released || first > 0,
        }
    }

    /// What is kept for whom.
    pub fn report(&self) -> Vec<ReplicaHoldReport> {
        let state = self.state.lock();
        let line = |(id, replica): (&u64, &ReplicaHold)| {
            let at = replica.replayed.and_then(|replayed| state.before(replayed));
            ReplicaHoldReport {
                id: *id,
                is_connected: replica.gone_at.is_none(),
                replayed: replica.replayed,
                log_from: at.map(|at| state.published[at].csn),
                checkpoints: replica
                    .records
                    .iter()
                    .filter(|record| record.hold.is_some())
                    .count(),
            }
        };
        state.replicas.iter().map(line).collect()
    }
}

/// One replica that follows. Dropping it says that the replica was cut off.
pub struct ReplicaHoldGuard {
    holds: Arc<ReplicaHolds>,
    clock: Arc<dyn logstead_env::Clock>,
    id: u64,
}

impl ReplicaHoldGuard {
    /// Its number in [`ReplicaHolds::report`].
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The replica has applied everything below `replayed`, and needs the log from there on.
    pub fn has_replayed(&self, replayed: Csn) {
        let mut state = self.holds.state.lock();
        let newest = state.newest;
        if let Some(replica) = state.replicas.get_mut(&self.id) {
            // It does not go back, and need not be believed that it does.
            replica.replayed = replica.replayed.max(Some(replayed));
            state.has_released |= self.has_spoken(replica, newest);
        }
    }

    /// It may adopt the newest checkpoint before it speaks again. True: what was the newest before is held no longer.
    fn has_spoken(&self, replica: &mut ReplicaHold, newest: Option<ObjectId>) -> bool {
        if replica.latest.as_ref().map(|latest| latest.object) == newest {
            return false;
        }
        let latest = newest.map(|object| NamedRecord {
            object,
            hold: self.holds.hold(object),
        });
        let before = std::mem::replace(&mut replica.latest, latest);
        before.is_some_and(|before| before.hold.is_some())
    }

    /// The replica reads from these checkpoints, and no others any more. Of many the first are held.
    pub fn reads(&self, records: impl IntoIterator<Item = ObjectId>) {
        let mut state = self.holds.state.lock();
        let HoldsState {
            newest,
            superseded,
            replicas,
            has_released,
            ..
        } = &mut *state;
        let Some(replica) = replicas.get_mut(&self.id) else {
            return;
        };
        let mut before = std::mem::take(&mut replica.records);
        for object in records.into_iter().take(RECORDS_MAX) {
            let known = before.iter().position(|record| record.object == object);
            replica.records.push(match known {
                Some(at) => before.swap_remove(at),
                None => {
                    let is_own = *newest == Some(object) || superseded.contains_key(&object);
                    let hold = is_own.then(|| self.holds.hold(object)).flatten();
                    NamedRecord { object, hold }
                }
            });
        }
        *has_released |= before.iter().any(|record| record.hold.is_some());
        *has_released |= self.has_spoken(replica, *newest);
    }
}

impl Drop for ReplicaHoldGuard {
    fn drop(&mut self) {
        let now = self.clock.monotonic();
        let mut state = self.holds.state.lock();
        if let Some(replica) = state.replicas.get_mut(&self.id) {
            replica.gone_at = Some(now);
            // One that has said nothing is none.
            if replica.replayed.is_none() && replica.records.is_empty() {
                state.replicas.remove(&self.id);
                state.has_released = true;
            }
        }
        state.forget_gone();
    }
}
