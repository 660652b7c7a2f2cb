//! Two ways to take along what other workers have logged: ours, which moves a lane's buffer under both lanes' locks,
//! and LeanStore's, which copies it and claims it by a compare-and-swap ([`CursorBuffer`]).
//!
//! Nothing around them but what decides when: workers spend some time, log an entry, and at the end of each transaction
//! write a flush unit, their own or together with what they rob. Latency is from the push to the moment at which the
//! worker, which looks after each transaction, finds the entry hardened. Both ways write blocks with headers and
//! checksums to the same kind of home, each worker its own lane in its own thread.
//!
//! Does not: acknowledge, or make a log that recovery could read.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_commit::{CursorBuffer, CursorClaim};
use logstead_engine::{Env, LogHome};
use logstead_env::{Buffer, Clock, JoinHandle};
use logstead_home::RoomRequest;
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::block::{FORMAT_VERSION, HEADER_LEN, Header};
use logstead_wal::{EntryDependencies, FlushMode, Lane, LaneConfig, LaneStart};
use parking_lot::Mutex;

use crate::measure::{Latencies, latencies};
use crate::options::Home;
use crate::{BenchError, home};

/// Words of an entry: 160 bytes, as in the paper.
const ENTRY_WORDS: usize = 20;
/// Bytes of each worker's buffer.
const BUFFER_BYTES: usize = 1 << 20;
/// A worker looks at the time of stopping so often, in transactions.
const LOOK_EVERY: u64 = 64;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealMethod {
    /// Nobody robs anybody.
    None,
    /// The lane's: under both locks.
    Locks,
    /// LeanStore's: by a compare-and-swap of the victim's cursor.
    Cursors,
}

/// What is run.
#[derive(Clone, Debug)]
pub struct StealOptions {
    /// Which way.
    pub way: StealMethod,
    /// Worker threads.
    pub workers: usize,
    /// Workers that rob each other.
    pub steal_group: usize,
    /// Bytes worth a write.
    pub flush_unit_bytes: usize,
    /// What a transaction takes beside logging.
    pub execute_ns: u64,
    /// Length of the run.
    pub run_ns: u64,
    /// Where blocks go: a directory, or what a URL names.
    pub home: StealHome,
}

/// Where blocks go.
#[derive(Clone, Debug)]
pub enum StealHome {
    /// An empty directory.
    Local(PathBuf),
    /// A URL, as `sim://?model=nvme`.
    Url(String),
    /// Nowhere.
    Discarded,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct StealFigures {
    /// Entries logged.
    pub entries: u64,
    /// Seconds.
    pub seconds: f64,
    /// Blocks written.
    pub blocks: u64,
    /// How often somebody took along what another worker had.
    pub steals: u64,
    /// How often that came to nothing.
    pub failed: u64,
    /// From the push to the moment at which the worker found it hardened.
    pub latency: Latencies,
}

/// What the two ways have in common.
trait Logs: Send + Sync {
    /// Logs an entry; the cursor behind it. Nothing if there is no room.
    fn push(&self, worker: usize, entry: &[u64; ENTRY_WORDS]) -> Option<u64>;
    /// Bytes that a worker has logged and nobody has taken.
    fn dirty_bytes(&self, worker: usize) -> usize;
    /// Writes what the worker has, and what these have; how many of them were robbed, and how many were not.
    fn write(&self, worker: usize, of: &[usize]) -> Result<(u64, u64), String>;
    /// Up to where a worker's entries are durable.
    fn hardened(&self, worker: usize) -> u64;
}

fn start(lane: usize) -> LaneStart {
    LaneStart {
        database: DatabaseId(7),
        epoch: Epoch(1),
        lane: LaneId(lane as u16),
        first_segment: 0,
    }
}

struct Lanes {
    lanes: Vec<Lane>,
    csn: AtomicU64,
    flush_unit_bytes: usize,
}

impl Logs for Lanes {
    fn push(&self, worker: usize, entry: &[u64; ENTRY_WORDS]) -> Option<u64> {
        let mut bytes = [0; ENTRY_WORDS * 8];
        for (place, word) in bytes.chunks_exact_mut(8).zip(entry) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let lane = &self.lanes[worker];
        let room = lane.room(bytes.len()).ok()?;
        let csn = Csn(1 + self.csn.fetch_add(1, Ordering::SeqCst));
        let deps = EntryDependencies::floor(Csn::ZERO);
        Some(lane.push(room, csn, 0, &deps, &bytes).end.0)
    }

    fn dirty_bytes(&self, worker: usize) -> usize {
        self.lanes[worker].dirty_bytes()
    }

    fn write(&self, worker: usize, of: &[usize]) -> Result<(u64, u64), String> {
        let thief = &self.lanes[worker];
        let robbed = |victim: &&usize| {
            self.lanes[**victim].is_dirty()
                && thief.steal(&self.lanes[**victim], self.flush_unit_bytes) > 0
        };
        let done = of.iter().filter(robbed).count() as u64;
        thief.flush(FlushMode::Inline);
        match thief.failure() {
            Some(error) => Err(error.to_string()),
            None => Ok((done, of.len() as u64 - done)),
        }
    }

    fn hardened(&self, worker: usize) -> u64 {
        self.lanes[worker].hardened().0
    }
}

/// What a worker needs to write blocks: its own thread's only.
struct StealingWriter {
    buffer: Buffer,
    block: u64,
    previous_crc: u32,
    claims: Vec<(usize, CursorClaim)>,
}

struct Cursors {
    home: LogHome,
    buffers: Vec<CursorBuffer>,
    writers: Vec<Mutex<StealingWriter>>,
    csn: AtomicU64,
    most_words: u64,
    blocks: AtomicU64,
}

impl Logs for Cursors {
    fn push(&self, worker: usize, entry: &[u64; ENTRY_WORDS]) -> Option<u64> {
        // As many CSNs as the other way draws.
        self.csn.fetch_add(1, Ordering::SeqCst);
        self.buffers[worker].push(entry.iter().copied())
    }

    fn dirty_bytes(&self, worker: usize) -> usize {
        self.buffers[worker].unclaimed() as usize * 8
    }

    fn write(&self, worker: usize, of: &[usize]) -> Result<(u64, u64), String> {
        // Nobody else asks for it.
        let mut writer = self.writers[worker].lock();
        let writer = &mut *writer;
        let (mut len, mut failed) = (HEADER_LEN, 0);
        for &from in std::iter::once(&worker).chain(of) {
            let mut end = len;
            let bytes = writer.buffer.as_mut_slice();
            let most = self.most_words.min(((bytes.len() - len) / 8) as u64);
            let claim = self.buffers[from].claim(most, |word| {
                bytes[end..end + 8].copy_from_slice(&word.to_le_bytes());
                end += 8;
            });
            match claim {
                Some(claim) => {
                    len = end;
                    writer.claims.push((from, claim));
                }
                None => failed += u64::from(from != worker),
            }
        }
        let taken = writer.claims.iter().filter(|(of, _)| *of != worker).count() as u64;
        if writer.claims.is_empty() {
            return Ok((0, failed));
        }
        let payload = &writer.buffer.as_slice()[HEADER_LEN..len];
        let header = Header {
            version: FORMAT_VERSION,
            database: DatabaseId(7),
            epoch: Epoch(1),
            lane: LaneId(worker as u16),
            block: BlockNo(writer.block),
            durable_through: writer.block,
            payload_len: payload.len() as u32,
            entries: (payload.len() / (ENTRY_WORDS * 8)) as u32,
            csn_lowest: Csn(1),
            csn_highest: Csn(1),
            horizon: Csn::ZERO,
            payload_crc: crc32c::crc32c(payload),
            previous_header_crc: writer.previous_crc,
        };
        let (header, crc) = header.encode();
        writer.buffer.as_mut_slice()[..HEADER_LEN].copy_from_slice(&header);
        let padded = len.next_multiple_of(self.home.capabilities().block_alignment);
        writer.buffer.as_mut_slice()[len..padded].fill(0);
        let lane = LaneId(worker as u16);
        let mut asked = RoomRequest::default();
        while self
            .home
            .appends
            .ensure_room(lane, padded as u64, &mut asked)
            .is_err()
        {
            std::hint::spin_loop();
        }
        let at = self.home.appends.place(lane, padded as u64);
        let at = at.map_err(|error| error.to_string())?;
        let inline = self.home.inline_appends.as_ref();
        let inline = inline.ok_or("this home does not offer appends in the caller's thread")?;
        let written = inline.append_inline(lane, at, &writer.buffer, padded);
        written.map_err(|error| error.to_string())?;
        writer.block += 1;
        writer.previous_crc = crc;
        self.blocks.fetch_add(1, Ordering::Relaxed);
        for (of, claim) in writer.claims.drain(..) {
            self.buffers[of].written(&claim);
        }
        Ok((taken, failed))
    }

    fn hardened(&self, worker: usize) -> u64 {
        self.buffers[worker].hardened()
    }
}

/// Runs it.
pub fn run(options: &StealOptions, env: &Env) -> Result<StealFigures, BenchError> {
    let place = match &options.home {
        StealHome::Local(dir) => Home::Local(dir.clone()),
        StealHome::Url(url) => Home::Url(url.clone()),
        StealHome::Discarded => Home::Discarded,
    };
    let home = home::open(&place, None, env)?;
    let capabilities = home.capabilities();
    for lane in 0..options.workers {
        let opened = home.appends.open_lane(LaneId(lane as u16), 0);
        opened.map_err(|error| BenchError::Open(error.to_string()))?;
    }
    let config = LaneConfig {
        buffer_size_bytes: BUFFER_BYTES,
        blocks_in_flight_max: Some(1),
        allocation_limit: None,
    };
    let lanes: Vec<Lane> = (0..options.workers)
        .filter(|_| options.way != StealMethod::Cursors)
        .map(|lane| {
            let clock = Arc::clone(&env.clock);
            Lane::new(home.clone(), clock, start(lane), config.clone())
        })
        .collect();
    let cursors = Arc::new(Cursors {
        buffers: (0..options.workers)
            .map(|_| CursorBuffer::new(BUFFER_BYTES / 8))
            .collect(),
        writers: (0..options.workers)
            .map(|_| {
                Mutex::new(StealingWriter {
                    buffer: Buffer::zeroed(
                        (BUFFER_BYTES + HEADER_LEN)
                            .next_multiple_of(capabilities.block_alignment.max(4096)),
                    ),
                    block: 0,
                    previous_crc: 0,
                    claims: Vec::with_capacity(options.steal_group),
                })
            })
            .collect(),
        csn: AtomicU64::new(0),
        most_words: u64::MAX,
        blocks: AtomicU64::new(0),
        home,
    });
    let logs: Arc<dyn Logs> = if options.way == StealMethod::Cursors {
        Arc::clone(&cursors) as Arc<dyn Logs>
    } else {
        Arc::new(Lanes {
            lanes: lanes.clone(),
            csn: AtomicU64::new(0),
            flush_unit_bytes: options.flush_unit_bytes,
        })
    };
    let total = Arc::new(Mutex::new(StealFigures {
        entries: 0,
        seconds: 0.0,
        blocks: 0,
        steals: 0,
        failed: 0,
        latency: latencies(),
    }));
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let stop = Arc::new(AtomicBool::new(false));
    let begun = env.clock.monotonic();
    let threads: Vec<JoinHandle> = (0..options.workers)
        .map(|worker| {
            let (logs, options, clock) = (Arc::clone(&logs), options.clone(), env.clock.clone());
            let (total, failure, stop) = (total.clone(), failure.clone(), stop.clone());
            env.spawn(&format!("worker-{worker}"), Some(worker), move || {
                match work(&*logs, worker, &options, &*clock, &stop) {
                    Ok(own) => {
                        let mut total = total.lock();
                        total.entries += own.entries;
                        total.steals += own.steals;
                        total.failed += own.failed;
                        // Both have the same constant bounds.
                        let _cannot_fail = total.latency.add(&own.latency);
                    }
                    Err(why) => {
                        stop.store(true, Ordering::Relaxed);
                        failure.lock().get_or_insert(why);
                    }
                }
            })
        })
        .collect::<Result<_, _>>()
        .map_err(|error| BenchError::Open(format!("cannot start a worker: {error}")))?;
    for thread in threads {
        let joined = thread.join();
        joined.map_err(|_| BenchError::Failed("a worker panicked".into()))?;
    }
    if let Some(why) = failure.lock().take() {
        return Err(BenchError::Failed(why));
    }
    let mut figures = total.lock().clone();
    figures.seconds = env.clock.monotonic().since(begun).as_secs_f64();
    figures.blocks = cursors.blocks.load(Ordering::Relaxed)
        + lanes.iter().map(|lane| lane.counters().blocks).sum::<u64>();
    Ok(figures)
}

fn work(
    logs: &dyn Logs,
    worker: usize,
    options: &StealOptions,
    clock: &dyn Clock,
    stop: &AtomicBool,
) -> Result<StealFigures, String> {
    let now = || clock.monotonic().as_nanos();
    let group = options.steal_group.max(1);
    let first = worker / group * group;
    let others: Vec<usize> = (first..(first + group).min(options.workers))
        .filter(|other| *other != worker && options.way != StealMethod::None)
        .collect();
    let mut own = StealFigures {
        entries: 0,
        seconds: 0.0,
        blocks: 0,
        steals: 0,
        failed: 0,
        latency: latencies(),
    };
    let mut pending: VecDeque<(u64, u64)> = VecDeque::with_capacity(1 << 13);
    let mut entry = [worker as u64; ENTRY_WORDS];
    let write = |own: &mut StealFigures, of: &[usize]| {
        let (taken, failed) = logs.write(worker, of)?;
        own.steals += taken;
        own.failed += failed;
        Ok::<(), String>(())
    };
    let until = now() + options.run_ns;
    let over = |entries: u64| entries.is_multiple_of(LOOK_EVERY) && now() >= until;
    while !over(own.entries) && !stop.load(Ordering::Relaxed) {
        let ready = now() + options.execute_ns;
        while now() < ready {
            std::hint::spin_loop();
        }
        entry[0] = own.entries;
        let end = loop {
            match logs.push(worker, &entry) {
                Some(end) => break end,
                None => write(&mut own, &[])?,
            }
        };
        own.entries += 1;
        pending.push_back((end, now()));
        let bytes = logs.dirty_bytes(worker);
        if bytes >= options.flush_unit_bytes {
            write(&mut own, &[])?;
        } else if !others.is_empty() {
            let there: usize = others.iter().map(|other| logs.dirty_bytes(*other)).sum();
            if there > 0 && bytes + there >= options.flush_unit_bytes {
                write(&mut own, &others)?;
            }
        }
        take_hardened(logs, worker, &mut pending, &mut own.latency, now);
    }
    // What the others hold of this one's is theirs to write.
    while !pending.is_empty() && !stop.load(Ordering::Relaxed) {
        if logs.dirty_bytes(worker) > 0 {
            write(&mut own, &[])?;
        }
        take_hardened(logs, worker, &mut pending, &mut own.latency, now);
    }
    Ok(own)
}

fn take_hardened(
    logs: &dyn Logs,
    worker: usize,
    pending: &mut VecDeque<(u64, u64)>,
    latency: &mut Latencies,
    now: impl Fn() -> u64,
) {
    let hardened = logs.hardened(worker);
    if pending.front().is_none_or(|(end, _)| *end > hardened) {
        return;
    }
    let at = now();
    while let Some(&(end, pushed_at)) = pending.front() {
        if end > hardened {
            return;
        }
        latency.saturating_record(at.saturating_sub(pushed_at));
        pending.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that was logged hardens, whichever way it is taken along.
    #[test]
    fn whatever_was_logged_hardens() {
        for way in [StealMethod::None, StealMethod::Locks, StealMethod::Cursors] {
            let options = StealOptions {
                way,
                workers: 4,
                steal_group: 4,
                flush_unit_bytes: 4096,
                execute_ns: 0,
                run_ns: 20_000_000,
                home: StealHome::Discarded,
            };
            let figures = run(&options, &Env::real()).expect("runs");
            assert!(figures.entries > 0, "{way:?}");
            assert_eq!(figures.latency.len(), figures.entries, "{way:?}");
            assert!(figures.blocks > 0, "{way:?}");
            assert!(way != StealMethod::None || figures.steals == 0);
        }
    }
}
