//! The network of a simulation: connections between processes, with delays, and what can go wrong with them.
//!
//! A connection is TCP's: bytes come in order or not at all. So what is lost is lost with its connection, and what
//! comes twice was asked for twice, over another one. Each connection has delays of its own: between connections there
//! is no order. A *cut* from one process to another keeps what is sent that way until it is mended, as lost packets are
//! that are sent again and again; who waits gives up before, or not.

use super::stream::{Pipe, SimListener, SimStream};
use super::{ProcessNumber, SimThreads, current};
use crate::random::{GOLDEN_GAMMA, split_mix};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A direction in which nothing comes through: from the first process to the second one.
pub type Cut = (ProcessNumber, ProcessNumber);

/// Delay of a connection, at least and at most, in microseconds.
const DELAY_US: (u64, u64) = (20, 800);
/// One connection in so many is as many times as far away.
const FAR_ONE_IN: u64 = 12;
/// Between two attempts to get through a cut.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The network of a simulation.
#[derive(Clone)]
pub struct SimNetwork(pub(super) SimThreads);

/// What there is of it.
pub(super) struct NetworkState {
    random: u64,
    listeners: BTreeMap<SocketAddr, Listening>,
    cuts: BTreeSet<Cut>,
    /// Processes whose connections are slow, and how many times slower.
    slow: BTreeMap<ProcessNumber, u32>,
    pipes: Vec<Weak<Mutex<Pipe>>>,
    next_port: u16,
}

/// Somebody listens.
struct Listening {
    process: ProcessNumber,
    waiting: VecDeque<(SimStream, SocketAddr)>,
    /// Its address is what whoever accepts waits for.
    key: Arc<u64>,
}

impl NetworkState {
    pub(super) fn new(seed: u64) -> NetworkState {
        NetworkState {
            random: split_mix(seed),
            listeners: BTreeMap::new(),
            cuts: BTreeSet::new(),
            slow: BTreeMap::new(),
            pipes: Vec::new(),
            next_port: 40_000,
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.random = self.random.wrapping_add(GOLDEN_GAMMA);
        split_mix(self.random) % sides.max(1)
    }

    fn delay_us(&mut self) -> u64 {
        let delay = DELAY_US.0 + self.roll(DELAY_US.1 - DELAY_US.0);
        match self.roll(FAR_ONE_IN) {
            0 => delay * FAR_ONE_IN,
            _ => delay,
        }
    }
}

impl SimNetwork {
    /// The network of the calling thread, if that is simulated.
    pub fn current() -> Option<SimNetwork> {
        current().map(|current| current.threads.network())
    }

    fn state(&self) -> &Mutex<NetworkState> {
        &self.0.shared.network
    }

    /// The calling thread's process listens.
    pub fn listen(&self, address: SocketAddr) -> io::Result<SimListener> {
        let process = current().map_or(0, |current| current.process());
        let mut state = self.state().lock();
        if state.listeners.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let key = Arc::default();
        let listening = Listening {
            process,
            waiting: VecDeque::new(),
            key: Arc::clone(&key),
        };
        state.listeners.insert(address, listening);
        Ok(SimListener {
            network: self.clone(),
            address,
            key,
        })
    }

    /// Nobody listens there any more; who was not accepted is refused.
    pub(super) fn stop_listening(&self, address: SocketAddr) {
        let stopped = self.state().lock().listeners.remove(&address);
        for (stream, _) in stopped.into_iter().flat_map(|of| of.waiting) {
            stream.reset();
        }
    }

    /// Who has connected and was not accepted yet.
    pub(super) fn next_waiting(&self, address: SocketAddr) -> Option<(SimStream, SocketAddr)> {
        let mut state = self.state().lock();
        state.listeners.get_mut(&address)?.waiting.pop_front()
    }

    /// Connects the calling thread's process with the one that listens there.
    pub fn connect(&self, address: SocketAddr, time: Duration) -> io::Result<SimStream> {
        let Some(caller) = current() else {
            return Err(ErrorKind::Unsupported.into());
        };
        let from = caller.process();
        let until = self.0.now() + time;
        loop {
            let mut state = self.state().lock();
            let delay_us = state.delay_us();
            let to = state.listeners.get(&address).map(|of| of.process);
            let is_cut = |to| state.cuts.contains(&(from, to)) || state.cuts.contains(&(to, from));
            let gets_through = to.is_none_or(|to| !is_cut(to));
            drop(state);
            if gets_through {
                // There and back.
                caller.sleep(Duration::from_micros(2 * delay_us));
                return self.connected(address, from, delay_us);
            }
            if self.0.now() >= until {
                return Err(ErrorKind::TimedOut.into());
            }
            caller.sleep(CONNECT_PAUSE);
        }
    }

    fn connected(
        &self,
        address: SocketAddr,
        from: ProcessNumber,
        delay_us: u64,
    ) -> io::Result<SimStream> {
        let mut state = self.state().lock();
        let Some(to) = state.listeners.get(&address).map(|of| of.process) else {
            return Err(ErrorKind::ConnectionRefused.into());
        };
        state.next_port = state.next_port.checked_add(1).unwrap_or(40_000);
        let own = SocketAddr::new(address.ip(), state.next_port);
        let pipe = |from, to| Arc::new(Mutex::new(Pipe::new((from, to), delay_us)));
        let (there, back) = (pipe(from, to), pipe(to, from));
        state.pipes.retain(|pipe| pipe.strong_count() > 0);
        state
            .pipes
            .extend([Arc::downgrade(&there), Arc::downgrade(&back)]);
        let stream = |input: &Arc<Mutex<Pipe>>, output: &Arc<Mutex<Pipe>>| {
            SimStream::new(self.clone(), Arc::clone(input), Arc::clone(output))
        };
        if let Some(listening) = state.listeners.get_mut(&address) {
            listening.waiting.push_back((stream(&there, &back), own));
            let key = Arc::as_ptr(&listening.key).addr();
            self.0.wake(key, true);
        }
        Ok(stream(&back, &there))
    }

    /// When bytes arrive that a process sends now over a connection of this delay.
    pub(super) fn delay(&self, (from, to): Cut, delay_us: u64) -> Duration {
        let mut state = self.state().lock();
        let slow = |process| state.slow.get(&process).copied().unwrap_or(1);
        let factor = u64::from(slow(from).max(slow(to)));
        let jitter = state.roll(delay_us / 2);
        Duration::from_micros((delay_us + jitter) * factor)
    }

    pub(super) fn is_cut(&self, cut: Cut) -> bool {
        self.state().lock().cuts.contains(&cut)
    }

    pub(super) fn threads(&self) -> &SimThreads {
        &self.0
    }

    /// From now on nothing comes through in this direction.
    pub fn cut(&self, cut: Cut) {
        self.state().lock().cuts.insert(cut);
    }

    /// All cuts are mended: what was sent comes through.
    pub fn mend(&self) {
        self.state().lock().cuts.clear();
        for pipe in self.pipes() {
            self.0.wake(Arc::as_ptr(&pipe).addr(), true);
        }
    }

    /// What a process sends, and what is sent to it, takes so many times as long; 1: as long as ever.
    pub fn slow_down(&self, process: ProcessNumber, times: u32) {
        self.state().lock().slow.insert(process, times);
    }

    fn pipes(&self) -> Vec<Arc<Mutex<Pipe>>> {
        let state = self.state().lock();
        state.pipes.iter().filter_map(Weak::upgrade).collect()
    }

    /// Breaks connections between two processes, or of one with all others; each with this chance, one in so many. Of
    /// what is under way in either direction some bytes come, and then both sides hear that it is broken.
    pub fn break_connections(&self, one: ProcessNumber, other: Option<ProcessNumber>, one_in: u64) {
        // Both directions of a connection are neighbours.
        for pair in self.pipes().chunks(2) {
            let Some(ends) = pair.first().map(|pipe| pipe.lock().ends()) else {
                continue;
            };
            let is_between = |(from, to): Cut| match other {
                Some(other) => (from, to) == (one, other) || (to, from) == (one, other),
                None => from == one || to == one,
            };
            if !is_between(ends) || self.state().lock().roll(one_in) != 0 {
                continue;
            }
            for pipe in pair {
                let ends = pipe.lock().ends();
                let mut state = self.state().lock();
                // What is behind a cut never comes.
                let chance = match state.cuts.contains(&ends) {
                    true => 0,
                    false => state.roll(u64::MAX),
                };
                drop(state);
                pipe.lock().break_at(chance, self.0.now());
                self.0.wake(Arc::as_ptr(pipe).addr(), true);
            }
        }
    }
}
