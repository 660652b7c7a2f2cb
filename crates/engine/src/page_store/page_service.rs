//! Orders for replicas that write the pages of checkpoints: who offers it, which order is under way, and what comes
//! back.
//!
//! A replica offers itself by its stream ([`PageServices::offer`]). Who takes a checkpoint gives one of them an order
//! ([`PageServices::give`]) and waits for replies, each of which names its order. There is one order at a time. What
//! comes of it is not judged here.
//!
//! Invariant: a replica gets no order before it has said that the one before has ended. So one that is stopped, or has
//! no home, costs one wait, and no more until it speaks again or connects anew.
//!
//! A replica may also be asked for rows as of a read point ([`page_reads`]).
//!
//! Does not: know how messages travel, or what an order is about.

mod page_reads;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use logstead_checkpoint::ObjectId;
use logstead_env::Clock;
use logstead_types::{Csn, Epoch};
use parking_lot::{Condvar, Mutex, MutexGuard};

pub use page_reads::{PageRead, PageReadAnswer, PageRow, ReplicaLag};
use page_reads::{PendingRead, ReadAvailability};

/// How long a replica may be silent, if not told otherwise.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Records that an order names, at most.
const WHOLE_MAX: usize = 64;
/// Replies that nobody has looked at; more are dropped, for they are none of a replica that does what it says.
const REPLIES_MAX: usize = 64;

/// What a replica is to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrder {
    /// Its number, which no other order of this life of the server has.
    pub number: u64,
    /// The server's life.
    pub epoch: Epoch,
    /// The record in force, upon which it is to be put, and its checksum.
    pub record: (ObjectId, u32),
    /// The checkpoint is to be one at this CSN, or above.
    pub from: Csn,
    /// The numbers of this epoch that are the replica's, for objects.
    pub numbers: Range<u32>,
    /// The most that it writes in a second; 0 stands for no limit.
    pub bandwidth_bytes: u64,
    /// Records that are whole, and stay so as long as the order does: what these name of indexes may be named again.
    pub whole: Vec<ObjectId>,
}

/// What a replica is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageRequest {
    /// To write a checkpoint.
    Order(PageOrder),
    /// The order with this number is given up: what comes of it is not published any more.
    Cancel(u64),
    /// To tell rows.
    Read(PageRead),
}

/// What a replica says of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageReply {
    /// It writes the checkpoint at this CSN.
    Begun {
        /// The order.
        order: u64,
        /// The CSN.
        csn: Csn,
    },
    /// It has come further.
    Working {
        /// The order.
        order: u64,
    },
    /// All is stored.
    Written {
        /// The order.
        order: u64,
        /// The object with a record of what was written, and its checksum.
        record: (ObjectId, u32),
        /// The record of which tiles of indexes are named again, if that is not the one in force.
        tiles: Option<ObjectId>,
    },
    /// It does not do it, and stores nothing more.
    Refused {
        /// The order.
        order: u64,
        /// Why.
        why: String,
    },
}

impl PageReply {
    /// The order.
    pub fn order(&self) -> u64 {
        match self {
            PageReply::Begun { order, .. }
            | PageReply::Working { order }
            | PageReply::Written { order, .. }
            | PageReply::Refused { order, .. } => *order,
        }
    }

    /// Is it the last one of its order?
    fn is_end(&self) -> bool {
        matches!(self, PageReply::Written { .. } | PageReply::Refused { .. })
    }
}

/// A replica that offers itself.
struct Offer {
    id: u64,
    requests: VecDeque<PageRequest>,
    waker: Option<Waker>,
    /// The order whose end it has not told.
    open: Option<u64>,
    rows: ReadAvailability,
}

#[derive(Default)]
struct State {
    offers: Vec<Offer>,
    next_offer: u64,
    next_order: u64,
    /// Of the order under way.
    replies: VecDeque<PageReply>,
    current: Option<u64>,
    /// Rows that were asked for, by number.
    reads: HashMap<u64, PendingRead>,
    next_read: u64,
}

impl State {
    fn offer(&mut self, id: u64) -> Option<&mut Offer> {
        self.offers.iter_mut().find(|offer| offer.id == id)
    }
}

impl Offer {
    fn push(&mut self, request: PageRequest) {
        self.requests.push_back(request);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// See the module's documentation.
pub struct PageServices {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
    silence_max_us: AtomicU64,
    read_time_max_us: AtomicU64,
}

impl PageServices {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> PageServices {
        PageServices {
            clock,
            state: Mutex::default(),
            changed: Condvar::new(),
            silence_max_us: AtomicU64::new(SILENCE_MAX.as_micros() as u64),
            read_time_max_us: AtomicU64::new(page_reads::READ_TIME_MAX.as_micros() as u64),
        }
    }

    /// How long a replica with an order may be silent.
    pub fn set_silence_max(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        self.silence_max_us.store(micros, Ordering::Relaxed);
    }

    fn silence_max(&self) -> Duration {
        Duration::from_micros(self.silence_max_us.load(Ordering::Relaxed))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// As many of these records as an order may name.
    pub(crate) fn named(mut whole: Vec<ObjectId>) -> Vec<ObjectId> {
        whole.truncate(WHOLE_MAX);
        whole
    }

    /// A replica writes checkpoints for this server, until that is dropped.
    pub fn offer(self: &Arc<Self>) -> PageServiceOffer {
        let mut state = self.locked();
        let id = state.next_offer;
        state.next_offer += 1;
        state.offers.push(Offer {
            id,
            requests: VecDeque::new(),
            waker: None,
            open: None,
            rows: ReadAvailability::default(),
        });
        PageServiceOffer {
            services: Arc::clone(self),
            id,
        }
    }

    /// How many offer themselves.
    pub fn offers(&self) -> usize {
        self.locked().offers.len()
    }

    /// May one be given an order now?
    pub(crate) fn is_any_ready(&self) -> bool {
        self.locked()
            .offers
            .iter()
            .any(|offer| offer.open.is_none())
    }

    /// Gives a replica that is ready the order that `make` makes, told its number, which is not below `first`. Nothing:
    /// none is ready, or no order was made.
    pub(crate) fn give(
        self: &Arc<Self>,
        first: u64,
        make: impl FnOnce(u64) -> Option<PageOrder>,
    ) -> Option<OrderUnderWay> {
        let mut state = self.locked();
        let state = &mut *state;
        let offer = state.offers.iter_mut().rev();
        let offer = offer.into_iter().find(|offer| offer.open.is_none())?;
        let number = state.next_order.max(first);
        let order = make(number)?;
        state.next_order = number + 1;
        offer.open = Some(number);
        offer.push(PageRequest::Order(order));
        state.current = Some(number);
        state.replies.clear();
        Some(OrderUnderWay {
            services: Arc::clone(self),
            number,
            offer: offer.id,
            has_ended: false,
            was_refused: false,
        })
    }
}

/// What is known of an order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OrderEvent {
    /// The replica has said this.
    Reply(PageReply),
    /// It says nothing any more.
    Silent,
    /// It is not connected any more.
    Gone,
}

/// An order that was given. Dropping it cancels it, if the replica has not told its end.
pub(crate) struct OrderUnderWay {
    services: Arc<PageServices>,
    number: u64,
    offer: u64,
    has_ended: bool,
    was_refused: bool,
}

impl OrderUnderWay {
    /// Has the replica told its end? Then it stores nothing more for it.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Has it ended by a refusal?
    pub(crate) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Waits for what the replica says next, `most` at the longest. `pause` is called now and then, and ends the
    /// waiting by an error.
    pub(crate) fn next<E>(
        &mut self,
        most: Duration,
        mut pause: impl FnMut() -> Result<(), E>,
    ) -> Result<OrderEvent, E> {
        const LOOK: Duration = Duration::from_millis(20);
        let most = most.min(self.services.silence_max());
        let mut waited = Duration::ZERO;
        let mut state = self.services.locked();
        loop {
            if let Some(reply) = state.replies.pop_front() {
                self.has_ended |= reply.is_end();
                self.was_refused |= matches!(reply, PageReply::Refused { .. });
                return Ok(OrderEvent::Reply(reply));
            }
            if state.offer(self.offer).is_none() {
                return Ok(OrderEvent::Gone);
            }
            if waited >= most {
                return Ok(OrderEvent::Silent);
            }
            if self.services.changed.wait_for(&mut state, LOOK).timed_out() {
                waited += LOOK;
                MutexGuard::unlocked(&mut state, &mut pause)?;
            }
        }
    }
}

impl Drop for OrderUnderWay {
    fn drop(&mut self) {
        let mut state = self.services.locked();
        state.current = None;
        state.replies.clear();
        if !self.has_ended
            && let Some(offer) = state.offer(self.offer)
        {
            offer.push(PageRequest::Cancel(self.number));
        }
    }
}

/// A replica's side of it, in the session that serves its stream. Dropping it takes the offer back.
pub struct PageServiceOffer {
    services: Arc<PageServices>,
    id: u64,
}

impl PageServiceOffer {
    /// Takes what the replica is to be told next, if there is something.
    pub fn take(&self) -> Option<PageRequest> {
        let mut state = self.services.locked();
        state.offer(self.id)?.requests.pop_front()
    }

    /// Ready when there is something to be told.
    pub fn poll_request(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.services.locked();
        let Some(offer) = state.offer(self.id) else {
            return Poll::Pending;
        };
        if offer.requests.is_empty() {
            offer.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The replica has said this.
    pub fn replied(&self, reply: PageReply) {
        let mut state = self.services.locked();
        let order = reply.order();
        let Some(offer) = state
            .offer(self.id)
            .filter(|offer| offer.open == Some(order))
        else {
            // Of an order that it does not have.
            return;
        };
        if reply.is_end() {
            offer.open = None;
        }
        // What comes too late for anybody tells that much.
        if state.current == Some(order) && state.replies.len() < REPLIES_MAX {
            state.replies.push_back(reply);
            self.services.changed.notify_all();
        }
    }
}

impl Drop for PageServiceOffer {
    fn drop(&mut self) {
        let mut state = self.services.locked();
        state.offers.retain(|offer| offer.id != self.id);
        self.services.changed.notify_all();
        let reads = state.reads.values();
        reads.filter(|read| read.offer == self.id).for_each(|read| {
            read.done.notify_all();
        });
    }
}
