//! What a child that catches up fetches from its peers by itself: the server says what it lacks, and whom to ask.
//!
//! The peers that are named for something are those that the server would read it of: children that have everything,
//! for a segment those where all from before the cut is stored. What these have of it changes no more, so it is the
//! same whether it goes through the server or not. An order that has no answer yet keeps the child from counting; so
//! does one that failed, until the server has copied that itself, as it does for children that cannot fetch.
//!
//! Orders are divided over the peers: each begins with another one, several are under way at a time, and who fails is
//! replaced by the next ([`CopyOrder::peers`]).
//!
//! Does not: move any of these bytes.

use super::super::Inner;
use super::super::child::{Attachment, no_answer};
use crate::{CopyItem, CopyOrder, CopyOrders, HomeError, Peer};
use logstead_types::Epoch;

use std::time::Duration;

/// Orders to one child that have no answer yet, at most.
const ORDERS_MAX: usize = 4;
/// Between two looks whether the child still catches up.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// So long no answer at all may come.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// After so many failures one behind the other the peers are asked for nothing more: they do not reach each other.
const FAILURES_MAX: usize = 8;

/// What was copied, and which way.
#[derive(Default)]
pub(super) struct CopiedBy {
    /// Segments, side segments and objects that came from the peers.
    pub(super) peers: u64,
    /// Bytes of the segments and objects among them.
    pub(super) peers_bytes: u64,
    /// What came through this server.
    pub(super) server: u64,
    /// Bytes of it.
    pub(super) server_bytes: u64,
}

/// Something that a child lacks, or may have otherwise.
pub(super) struct Lacking {
    pub(super) item: CopyItem,
    /// Children that have it.
    pub(super) sources: Vec<usize>,
    /// How long it is, if that is known.
    pub(super) size_bytes: u64,
}

/// A child that fetches.
pub(super) struct PeerFetching<'i> {
    inner: &'i Inner,
    child: usize,
    home: &'i Attachment,
    orders: Option<Box<dyn CopyOrders>>,
    /// There were orders.
    was_begun: bool,
    /// One behind the other.
    failures: usize,
    pub(super) copied: CopiedBy,
}

impl<'i> PeerFetching<'i> {
    /// What the child can do of it: nothing, perhaps.
    pub(super) fn begin(inner: &'i Inner, child: usize, home: &'i Attachment) -> PeerFetching<'i> {
        let begun = home.peer_copies.as_ref().map(|_| {
            inner.ask_bulk_of(child, home, 0, |home| {
                let begun = home.peer_copies.as_ref().map(|copies| copies.begin());
                begun.unwrap_or(Ok(None))
            })
        });
        let url = inner.children[child].url();
        let orders = match begun {
            None => None,
            Some(Ok(Some(orders))) => Some(orders),
            Some(Ok(None)) => {
                tracing::info!("log: {url} is of an older version: this server copies to it");
                None
            }
            Some(Err(error)) => {
                tracing::warn!("log: {url} does not fetch from its peers: {error}");
                None
            }
        };
        PeerFetching {
            was_begun: orders.is_some(),
            inner,
            child,
            home,
            orders,
            failures: 0,
            copied: CopiedBy::default(),
        }
    }

    /// Has it been ordered anything?
    pub(super) fn is_begun(&self) -> bool {
        self.was_begun
    }

    /// Children as the child's peers; `turn`: which of them is asked first.
    fn peers(&self, sources: &[usize], turn: usize) -> Vec<Peer> {
        let peer = |source: &usize| {
            let home = self.inner.up(*source)?;
            let copies = home.peer_copies.as_ref()?;
            Some(copies.peer())
        };
        let others = sources.iter().filter(|source| **source != self.child);
        let mut peers: Vec<Peer> = others.filter_map(peer).collect();
        let first = (self.child + turn) % peers.len().max(1);
        peers.rotate_left(first);
        peers
    }

    /// Has the child fetch all this; back comes what it could not, by its index.
    ///
    /// # Errors
    /// It does not catch up any more.
    pub(super) fn fetch(&mut self, lacking: &[Lacking]) -> Result<Vec<usize>, HomeError> {
        let mut left: Vec<usize> = Vec::new();
        let mut next = 0;
        let mut open = 0;
        let mut silence = Duration::ZERO;
        let (tell, told) = logstead_env::channel::<(usize, Result<(), HomeError>)>();
        while next < lacking.len() || open > 0 {
            self.inner.must_catch_up(self.child, self.home)?;
            while let Some(wanted) = lacking.get(next).filter(|_| open < ORDERS_MAX) {
                let index = next;
                next += 1;
                let peers = self.peers(&wanted.sources, index);
                let Some(orders) = self.orders.as_ref().filter(|_| !peers.is_empty()) else {
                    left.push(index);
                    continue;
                };
                let order = CopyOrder {
                    epoch: Epoch(self.inner.epoch() as u32),
                    item: wanted.item,
                    peers,
                };
                let tell = tell.clone();
                // Nobody may wait any more.
                let done = move |result| drop(tell.send((index, result)));
                orders.order(&order, Box::new(done));
                open += 1;
            }
            if open == 0 {
                continue;
            }
            match told.recv_timeout(LOOK_INTERVAL) {
                Ok((index, result)) => {
                    open -= 1;
                    silence = Duration::ZERO;
                    if !self.settle(&lacking[index], result) {
                        left.push(index);
                    }
                }
                Err(_) => {
                    silence += LOOK_INTERVAL;
                    if silence > SILENCE_MAX {
                        self.give_up(&no_answer("fetching from peers"));
                    }
                }
            }
        }
        left.sort_unstable();
        Ok(left)
    }

    /// An order has been answered: is it done?
    fn settle(&mut self, wanted: &Lacking, result: Result<(), HomeError>) -> bool {
        match result {
            Ok(()) => {
                self.failures = 0;
                self.copied.peers += 1;
                self.copied.peers_bytes += wanted.size_bytes;
                self.inner.children[self.child].note_copied(wanted.size_bytes, 0);
                true
            }
            Err(error) => {
                self.failures += 1;
                let url = self.inner.children[self.child].url();
                tracing::debug!("log: {url} does not fetch {:?}: {error}", wanted.item);
                if self.failures >= FAILURES_MAX {
                    self.give_up(&error);
                }
                false
            }
        }
    }

    /// No more orders. Those under way end with the connection, and are answered so.
    fn give_up(&mut self, error: &HomeError) {
        if self.orders.take().is_some() {
            let url = self.inner.children[self.child].url();
            tracing::warn!(
                "log: {url} does not fetch from its peers any more, this server copies: {error}"
            );
        }
    }

    /// Something came through this server.
    pub(super) fn note_by_server(&mut self, bytes: u64) {
        self.copied.server += 1;
        self.copied.server_bytes += bytes;
    }
}
