//! Appends to every node of a volume's list by itself: what a commit to a fleet is compared with.
//!
//! The same bytes go to each node over its own connection, and an append is done when a majority has it, as that of a
//! fleet is: of six nodes the fourth fastest tells. Nothing of a home of several is in the way: no common places, no
//! order among nodes, no register. A node that has as many in flight as it takes is left out of an append.

use std::sync::Arc;

use logstead_engine::{Env, LogHome};
use logstead_env::Buffer;
use logstead_home::{HomeError, HomeOptions, LaneAppends, NoRoom, RoomRequest};
use logstead_types::LaneId;
use parking_lot::{Condvar, Mutex};

/// The nodes, each a home of its own.
pub(super) fn open_nodes(url: &str, env: &Env) -> Result<Vec<LogHome>, String> {
    let nodes = logstead_home::fleet_nodes(url).map_err(|error| error.to_string())?;
    let open = |url: &String| logstead_home::open(url, env, &HomeOptions::default());
    let opened: Result<Vec<LogHome>, _> = nodes.iter().map(open).collect();
    opened.map_err(|error| error.to_string())
}

/// A thread's lane, on every node.
pub(super) struct QuorumTarget {
    nodes: Vec<Arc<dyn LaneAppends>>,
    lane: LaneId,
    needed: usize,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<QuorumState>,
    told: Condvar,
}

#[derive(Default)]
struct QuorumState {
    /// Counts appends, so that what comes late is not taken for the next one's.
    append: u64,
    stored: usize,
    /// By node.
    in_flight: Vec<usize>,
    spares: Vec<Buffer>,
    failure: Option<String>,
}

impl QuorumTarget {
    pub(super) fn new(nodes: &[LogHome], lane: LaneId) -> Result<QuorumTarget, NoRoom> {
        for node in nodes {
            node.appends.open_lane(lane, 0)?;
        }
        let shared = Shared::default();
        shared.state.lock().in_flight = vec![0; nodes.len()];
        Ok(QuorumTarget {
            nodes: nodes.iter().map(|node| Arc::clone(&node.appends)).collect(),
            lane,
            needed: nodes.len() / 2 + 1,
            shared: Arc::new(shared),
        })
    }

    /// Those that take another append now; too few are [`NoRoom::Busy`].
    fn ready(&self, len: usize) -> Result<Vec<usize>, NoRoom> {
        let in_flight = self.shared.state.lock().in_flight.clone();
        let mut ready = Vec::with_capacity(self.nodes.len());
        for (number, node) in self.nodes.iter().enumerate() {
            if in_flight[number] >= node.capabilities().appends_in_flight_max {
                continue;
            }
            match node.ensure_room(self.lane, len as u64, &mut RoomRequest::default()) {
                Ok(()) => ready.push(number),
                Err(NoRoom::Busy) => {}
                Err(error) => return Err(error),
            }
        }
        match ready.len() >= self.needed {
            true => Ok(ready),
            false => Err(NoRoom::Busy),
        }
    }

    /// Do enough of them take another append?
    pub(super) fn ensure_room(&self, len: usize) -> Result<(), NoRoom> {
        self.ready(len).map(drop)
    }

    /// One append; gives the buffer back.
    pub(super) fn append(&mut self, buffer: Buffer, len: usize) -> Result<Buffer, String> {
        let ready = loop {
            match self.ready(len) {
                Ok(ready) => break ready,
                Err(NoRoom::Busy) => logstead_env::sleep(super::ROOM_PAUSE),
                Err(error) => return Err(error.to_string()),
            }
        };
        let (append, mut spares) = {
            let state = &mut *self.shared.state.lock();
            state.append += 1;
            state.stored = 0;
            ready.iter().for_each(|&node| state.in_flight[node] += 1);
            (state.append, std::mem::take(&mut state.spares))
        };
        // The others are not waited for, so each node has a copy of its own.
        for &number in &ready {
            let node = &self.nodes[number];
            let at = node
                .place(self.lane, len as u64)
                .map_err(|error| error.to_string())?;
            let mut block = spares.pop().unwrap_or_else(|| Buffer::zeroed(len));
            block.as_mut_slice()[..len].copy_from_slice(&buffer.as_slice()[..len]);
            let shared = Arc::clone(&self.shared);
            let done = move |block, result: Result<(), HomeError>| {
                let state = &mut *shared.state.lock();
                state.in_flight[number] -= 1;
                state.spares.push(block);
                if let Err(error) = result {
                    state.failure.get_or_insert(error.to_string());
                } else if state.append == append {
                    state.stored += 1;
                }
                shared.told.notify_one();
            };
            node.append(self.lane, at, block, len, Box::new(done));
        }
        let mut state = self.shared.state.lock();
        state.spares.append(&mut spares);
        while state.stored < self.needed {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            self.shared.told.wait(&mut state);
        }
        Ok(buffer)
    }
}
