//! Appends with nothing around them: what a commit's latency is compared with.
//!
//! So many threads as there are workers append blocks of one size, one after the other, each to a file or a lane of its
//! own, or, if workers share a lane, as many at a time to each lane. A latency is that of one append.
//!
//! `quorum` is the yardstick of a fleet: the same append to each node by itself, done when a majority has it.
//!
//! Does not: make entries, headers or checksums; read back what it wrote.

mod quorum;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_engine::{Env, LogHome};
use logstead_env::{Access, Buffer, DIRECT_ALIGNMENT, JoinHandle, OpenMode};
use logstead_home::{HomeError, InlineAppends, LaneAppends, NoRoom, RoomRequest};
use logstead_types::LaneId;
use parking_lot::{Condvar, Mutex};

use crate::driver::{RunOutcome, WATCH, nanos};
use crate::home;
use crate::measure::Measurements;
use crate::options::{AppendPath, Home, RunConfig, RunLimit};
use crate::resource_usage::ResourceUsage;
use crate::{BenchError, ProgressListener, client};
use quorum::QuorumTarget;

/// A thread's file in [`AppendPath::File`]: it is written from the beginning again when it is full.
const FILE_BYTES: u64 = 16 << 20;
/// Between two looks for room in a lane that has none yet.
const ROOM_PAUSE: std::time::Duration = std::time::Duration::from_micros(200);

/// Where a thread's appends go.
enum Target {
    File {
        file: Box<dyn logstead_env::File>,
        next: u64,
    },
    Lane {
        appends: Arc<dyn LaneAppends>,
        /// This way of appending, if it is the one that is measured.
        inline: Option<Arc<dyn InlineAppends>>,
        lane: LaneId,
        /// Held from the place's claim to the append: appends are given in the order of their places.
        order: Arc<Mutex<()>>,
        done: Arc<Done>,
    },
    Quorum(QuorumTarget),
}

/// A completion that a thread waits for.
#[derive(Default)]
struct Done {
    result: Mutex<Option<(Buffer, Result<(), HomeError>)>>,
    arrived: Condvar,
}

impl Target {
    fn file(env: &Env, path: &Path) -> std::io::Result<Target> {
        let mode = OpenMode {
            access: Access::Replace,
            direct: true,
            durable_writes: true,
        };
        let file = env.files.open(path, mode)?;
        // Only bytes that exist on disk are written in place: neither length nor extents change while it is measured.
        let zeros = Buffer::zeroed(1 << 20);
        let mut at = 0;
        while at < FILE_BYTES {
            file.write_all_at(at, zeros.as_slice())?;
            at += zeros.capacity() as u64;
        }
        file.sync()?;
        Ok(Target::File { file, next: 0 })
    }

    /// One append; gives the buffer back.
    fn append(&mut self, buffer: Buffer, len: usize) -> Result<Buffer, String> {
        match self {
            Target::File { file, next } => {
                if *next + len as u64 > FILE_BYTES {
                    *next = 0;
                }
                file.write_all_at(*next, &buffer.as_slice()[..len])
                    .map_err(|error| error.to_string())?;
                if !file.writes_are_durable() {
                    file.sync().map_err(|error| error.to_string())?;
                }
                *next += len as u64;
                Ok(buffer)
            }
            Target::Quorum(nodes) => nodes.append(buffer, len),
            Target::Lane {
                appends,
                inline,
                lane,
                order,
                done,
            } => {
                let mut asked = RoomRequest::default();
                let placed = loop {
                    let placed = order.lock();
                    match appends.ensure_room(*lane, len as u64, &mut asked) {
                        Ok(()) => break placed,
                        // Others of this lane used what was there.
                        Err(NoRoom::Busy) => drop(placed),
                        Err(error) => return Err(error.to_string()),
                    }
                    logstead_env::sleep(ROOM_PAUSE);
                };
                let at = appends
                    .place(*lane, len as u64)
                    .map_err(|error| error.to_string())?;
                if let Some(inline) = inline {
                    inline
                        .append_inline(*lane, at, &buffer, len)
                        .map_err(|error| error.to_string())?;
                    return Ok(buffer);
                }
                let told = Arc::clone(done);
                appends.append(
                    *lane,
                    at,
                    buffer,
                    len,
                    Box::new(move |buffer, result| {
                        *told.result.lock() = Some((buffer, result));
                        told.arrived.notify_one();
                    }),
                );
                drop(placed);
                let mut result = done.result.lock();
                loop {
                    if let Some((buffer, result)) = result.take() {
                        return result.map(|()| buffer).map_err(|error| error.to_string());
                    }
                    done.arrived.wait(&mut result);
                }
            }
        }
    }

    /// Waits until the next append has room: no part of what is measured.
    fn make_room(&self, len: usize, stop: &AtomicBool) -> Result<(), String> {
        let mut asked = RoomRequest::default();
        let mut ensure_room = || match self {
            Target::File { .. } => Ok(()),
            Target::Lane { appends, lane, .. } => {
                appends.ensure_room(*lane, len as u64, &mut asked)
            }
            Target::Quorum(nodes) => nodes.ensure_room(len),
        };
        loop {
            match ensure_room() {
                Ok(()) => return Ok(()),
                Err(NoRoom::Busy) if !stop.load(Ordering::Relaxed) => {
                    logstead_env::sleep(ROOM_PAUSE);
                }
                Err(NoRoom::Busy) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn broken(error: impl std::fmt::Display) -> BenchError {
    BenchError::Open(error.to_string())
}

/// Each thread's, and what they have in common.
struct Targets {
    targets: Vec<Target>,
    home: String,
    log: Option<LogHome>,
    /// Lengths are multiples of it.
    alignment: usize,
}

fn targets(
    cell: &RunConfig,
    way: AppendPath,
    env: &Env,
    run: Option<usize>,
) -> Result<Targets, BenchError> {
    let common = &cell.common;
    if way == AppendPath::File {
        let Home::Local(dir) = &common.home else {
            return Err(BenchError::Open(
                "--way file needs a directory as --home".into(),
            ));
        };
        let dir = home::directory(dir, run, env)?;
        env.files.create_dir(&dir).map_err(broken)?;
        let targets = (0..common.workers)
            .map(|n| Target::file(env, &dir.join(format!("bare-{n}"))))
            .collect::<Result<_, _>>()
            .map_err(broken)?;
        return Ok(Targets {
            targets,
            home: format!("files in {}", dir.display()),
            log: None,
            alignment: DIRECT_ALIGNMENT,
        });
    }
    if way == AppendPath::Quorum {
        return quorum_targets(cell, env);
    }
    let home = home::open(&common.home, run, env)?;
    let capabilities = home.capabilities();
    if way == AppendPath::Inline && home.inline_appends.is_none() {
        return Err(BenchError::Open(format!(
            "--way inline: {} has no short writes",
            home.describe()
        )));
    }
    if way == AppendPath::Handoff
        && common.commit.workers_per_lane > capabilities.appends_in_flight_max
    {
        return Err(BenchError::Open(format!(
            "--workers-per-lane {}: {} takes {} appends of a lane at a time",
            common.commit.workers_per_lane,
            home.describe(),
            capabilities.appends_in_flight_max
        )));
    }
    let mut targets = Vec::new();
    let mut order = Arc::default();
    for thread in 0..common.workers {
        let lane = LaneId((thread / common.commit.workers_per_lane) as u16);
        if thread.is_multiple_of(common.commit.workers_per_lane) {
            home.appends.open_lane(lane, 0).map_err(broken)?;
            order = Arc::new(Mutex::new(()));
        }
        targets.push(Target::Lane {
            appends: Arc::clone(&home.appends),
            inline: home
                .inline_appends
                .clone()
                .filter(|_| way == AppendPath::Inline),
            lane,
            order: Arc::clone(&order),
            done: Arc::default(),
        });
    }
    Ok(Targets {
        targets,
        home: home.describe(),
        log: Some(home),
        alignment: capabilities.block_alignment,
    })
}

fn quorum_targets(cell: &RunConfig, env: &Env) -> Result<Targets, BenchError> {
    let Home::Url(url) = &cell.common.home else {
        return Err(broken(
            "--way quorum needs fleet://HOST:PORT,.../VOLUME as --home",
        ));
    };
    let nodes = quorum::open_nodes(url, env).map_err(BenchError::Open)?;
    let lane = |thread| QuorumTarget::new(&nodes, LaneId(thread as u16)).map(Target::Quorum);
    let targets: Result<Vec<Target>, _> = (0..cell.common.workers).map(lane).collect();
    let alignment = |node: &LogHome| node.capabilities().block_alignment;
    Ok(Targets {
        targets: targets.map_err(broken)?,
        home: url.clone(),
        log: None,
        alignment: nodes.iter().map(alignment).max().unwrap_or(1),
    })
}

/// Runs one cell.
pub(crate) fn run(
    cell: &RunConfig,
    (size_bytes, way): (usize, AppendPath),
    env: &Env,
    run: Option<usize>,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn ProgressListener,
) -> Result<RunOutcome, BenchError> {
    if way == AppendPath::Client {
        return client::run(cell, size_bytes, env, run, stop, progress);
    }
    let Targets {
        targets,
        home,
        log,
        alignment,
    } = targets(cell, way, env, run)?;
    let len = size_bytes.next_multiple_of(alignment);
    let usage = || {
        log.as_ref()
            .map(|log| log.status.usage())
            .unwrap_or_default()
    };
    let spent_before = ResourceUsage::of(usage(), env);
    let now = env.clock.monotonic().as_nanos();
    let (from, until, count) = match cell.common.until {
        RunLimit::Seconds { measured, warmup } => {
            let from = now + nanos(warmup);
            (from, from + nanos(measured), u64::MAX)
        }
        RunLimit::Transactions(n) => (now, u64::MAX, n.div_ceil(targets.len() as u64)),
    };
    let all = Arc::new(Mutex::new(Measurements::new(1)));
    let failure = Arc::new(Mutex::new(None));
    let done = Arc::new(AtomicU64::new(0));
    let mut threads: Vec<JoinHandle> = Vec::new();
    for (number, mut target) in targets.into_iter().enumerate() {
        let (clock, stop, all, failure) = (
            Arc::clone(&env.clock),
            Arc::clone(stop),
            Arc::clone(&all),
            Arc::clone(&failure),
        );
        let done = Arc::clone(&done);
        let body = move || {
            let mut buffer = Buffer::zeroed(len);
            buffer.as_mut_slice().fill(number as u8 | 1);
            let mut measured = Measurements::new(1);
            for _ in 0..count {
                let result = target.make_room(len, &stop);
                let began = clock.monotonic().as_nanos();
                if began >= until || stop.load(Ordering::Relaxed) {
                    break;
                }
                match result.and_then(|()| target.append(buffer, len)) {
                    Ok(returned) => buffer = returned,
                    Err(error) => {
                        failure.lock().get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                        break;
                    }
                }
                let end = clock.monotonic().as_nanos();
                measured.record(began, end, from, until);
                done.fetch_add(1, Ordering::Relaxed);
            }
            all.lock().add(&measured);
        };
        let thread = env.spawn(&format!("bare-{number}"), Some(number), body);
        threads.push(thread.map_err(broken)?);
    }
    while !threads.iter().all(JoinHandle::is_finished) {
        logstead_env::sleep(WATCH);
        let done = done.load(Ordering::Relaxed);
        let at = env.clock.monotonic().as_nanos();
        let part = match cell.common.until {
            RunLimit::Seconds { .. } => at.saturating_sub(now) as f64 / (until - now) as f64,
            RunLimit::Transactions(n) => done as f64 / n as f64,
        };
        progress.running(done, part);
    }
    for thread in threads {
        thread
            .join()
            .map_err(|_| BenchError::Failed("a thread panicked".into()))?;
    }
    if let Some(error) = failure.lock().take() {
        return Err(BenchError::Failed(error));
    }
    let spent = ResourceUsage::of(usage(), env).since(&spent_before);
    let measured = std::mem::take(&mut *all.lock());
    let seconds = measured.span.map_or(0.0, |(a, b)| (b - a) as f64 / 1e9);
    Ok(RunOutcome {
        seconds,
        kinds: vec!["append"],
        measured,
        figures: spent.figures(done.load(Ordering::Relaxed), "append"),
        home,
        interrupted: stop.load(Ordering::Relaxed),
        ..RunOutcome::empty(cell)
    })
}
