//! The ends of connections of a simulation.

use super::current;
use super::network::{Cut, SimNetwork};
use crate::Instant;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are under way in one direction, at most: who writes more waits.
const WINDOW_BYTES: usize = 256 << 10;

/// One direction of a connection.
pub(super) struct Pipe {
    ends: Cut,
    delay_us: u64,
    /// What was sent and not read, each with when it arrives.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    /// Of the first of it, bytes that were read.
    read: usize,
    bytes: usize,
    /// Whoever writes has ended it: behind what is under way there is nothing.
    closed: bool,
    /// Behind what is under way it is broken.
    broken: bool,
}

impl Pipe {
    pub(super) fn new(ends: Cut, delay_us: u64) -> Pipe {
        Pipe {
            ends,
            delay_us,
            under_way: VecDeque::new(),
            read: 0,
            bytes: 0,
            closed: false,
            broken: false,
        }
    }

    pub(super) fn ends(&self) -> Cut {
        self.ends
    }

    /// Breaks it behind some of the bytes that are under way.
    pub(super) fn break_at(&mut self, chance: u64, now: Instant) {
        if let Some((_, first)) = self.under_way.front_mut() {
            first.drain(..self.read);
        }
        self.read = 0;
        let mut left = usize::try_from(chance % (self.bytes as u64 + 1)).unwrap_or(0);
        for (_, bytes) in &mut self.under_way {
            bytes.truncate(left);
            left -= bytes.len();
        }
        self.under_way.retain(|(_, bytes)| !bytes.is_empty());
        self.bytes = self.under_way.iter().map(|(_, bytes)| bytes.len()).sum();
        // It is heard at once, unless bytes come first.
        for (due, _) in &mut self.under_way {
            *due = (*due).min(now);
        }
        self.broken = true;
    }

    /// Nothing of it comes any more.
    fn cut_off(&mut self, broken: bool) {
        self.under_way.clear();
        (self.read, self.bytes) = (0, 0);
        (self.closed, self.broken) = (true, broken);
    }
}

/// One end of a connection. Clones are of the same end.
#[derive(Clone)]
pub struct SimStream {
    network: SimNetwork,
    input: Arc<Mutex<Pipe>>,
    output: Arc<Mutex<Pipe>>,
    timeouts: Arc<Mutex<Timeouts>>,
}

#[derive(Default)]
struct Timeouts {
    read: Option<Duration>,
    write: Option<Duration>,
}

impl SimStream {
    pub(super) fn new(
        network: SimNetwork,
        input: Arc<Mutex<Pipe>>,
        output: Arc<Mutex<Pipe>>,
    ) -> SimStream {
        SimStream {
            network,
            input,
            output,
            timeouts: Arc::default(),
        }
    }

    /// How long a read waits for bytes.
    pub fn set_read_timeout(&self, time: Duration) {
        self.timeouts.lock().read = Some(time);
    }

    /// How long a write waits for room.
    pub fn set_write_timeout(&self, time: Duration) {
        self.timeouts.lock().write = Some(time);
    }

    fn wake(&self, pipe: &Arc<Mutex<Pipe>>) {
        self.network.threads().wake(Arc::as_ptr(pipe).addr(), true);
    }

    /// Ends both directions; what was sent still arrives.
    pub fn shut_down(&self) {
        self.input.lock().cut_off(false);
        self.output.lock().closed = true;
        self.wake(&self.input);
        self.wake(&self.output);
    }

    /// Ends both directions, for both ends.
    pub(super) fn reset(&self) {
        for pipe in [&self.input, &self.output] {
            pipe.lock().cut_off(true);
            self.wake(pipe);
        }
    }

    /// Sends all of it.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(caller) = current() else {
            return Err(ErrorKind::Unsupported.into());
        };
        let threads = self.network.threads();
        let until = self.timeouts.lock().write.map(|time| threads.now() + time);
        for piece in bytes.chunks(WINDOW_BYTES) {
            loop {
                let mut output = self.output.lock();
                if output.broken || output.closed {
                    return Err(ErrorKind::BrokenPipe.into());
                }
                if output.bytes == 0 || output.bytes + piece.len() <= WINDOW_BYTES {
                    let (ends, delay_us) = (output.ends, output.delay_us);
                    let due = threads.now() + self.network.delay(ends, delay_us);
                    let last = output.under_way.back().map_or(due, |(last, _)| *last);
                    output.under_way.push_back((due.max(last), piece.to_vec()));
                    output.bytes += piece.len();
                    break;
                }
                drop(output);
                if until.is_some_and(|until| threads.now() >= until) {
                    return Err(ErrorKind::WouldBlock.into());
                }
                caller.wait(Arc::as_ptr(&self.output).addr(), until);
            }
            self.wake(&self.output);
        }
        Ok(())
    }
}

impl Read for SimStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(caller) = current() else {
            return Err(ErrorKind::Unsupported.into());
        };
        let threads = self.network.threads();
        let until = self.timeouts.lock().read.map(|time| threads.now() + time);
        loop {
            let mut input = self.input.lock();
            let now = threads.now();
            // What is broken is heard of through a cut as well: each end gives up by itself.
            let comes = input.broken || !self.network.is_cut(input.ends);
            let due = input.under_way.front().map(|(due, _)| *due);
            match due {
                Some(due) if comes && due <= now => {
                    let from = input.read;
                    let first = input.under_way.front();
                    let bytes =
                        first.map_or(&[][..], |(_, bytes)| bytes.get(from..).unwrap_or(&[]));
                    let count = bytes.len().min(into.len());
                    into[..count].copy_from_slice(&bytes[..count]);
                    let all = count == bytes.len();
                    input.read += count;
                    input.bytes -= count;
                    if all {
                        input.under_way.pop_front();
                        input.read = 0;
                    }
                    drop(input);
                    // There is room for more.
                    self.wake(&self.input);
                    return Ok(count);
                }
                None if input.broken => return Err(ErrorKind::ConnectionReset.into()),
                None if input.closed && comes => return Ok(0),
                _ => {}
            }
            drop(input);
            if until.is_some_and(|until| now >= until) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let due = due.filter(|_| comes);
            let next = due.into_iter().chain(until).min();
            caller.wait(Arc::as_ptr(&self.input).addr(), next);
        }
    }
}

/// Who listens; ends with it.
pub struct SimListener {
    pub(super) network: SimNetwork,
    pub(super) address: SocketAddr,
    pub(super) key: Arc<u64>,
}

impl SimListener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next one that connects.
    pub fn accept(&self) -> io::Result<(SimStream, SocketAddr)> {
        let Some(caller) = current() else {
            return Err(ErrorKind::Unsupported.into());
        };
        loop {
            if let Some(accepted) = self.network.next_waiting(self.address) {
                return Ok(accepted);
            }
            caller.wait(Arc::as_ptr(&self.key).addr(), None);
        }
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.network.stop_listening(self.address);
    }
}
