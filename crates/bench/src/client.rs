//! Appends by a bucket's client alone: the yardstick of a home on objects.
//!
//! One thread with one runtime drives as many appends at a time as there are workers, each to an object of its own, as
//! the home does it with its lanes. Where a provider has no appends, each is an object of its own, put if it is absent.
//! A latency is that of one request, from the call of the client to its answer.
//!
//! Does not: retry, or know lanes. An append that fails ends the run.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use logstead_engine::{Env, HomeUsage};
use logstead_env::Clock;
use logstead_home::bucket::{Bucket, BucketError};
use parking_lot::Mutex;

use crate::driver::{RunOutcome, WATCH, nanos};
use crate::measure::Measurements;
use crate::options::{Home, RunConfig, RunLimit};
use crate::resource_usage::ResourceUsage;
use crate::{BenchError, ProgressListener, home};

/// What an object begins with, as a segment does; not measured.
const HEAD: &[u8] = &[0; 64];

fn broken(error: impl std::fmt::Display) -> BenchError {
    BenchError::Failed(error.to_string())
}

/// What the tasks have in common.
struct Plan {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    block: Bytes,
    from: u64,
    until: u64,
    count: u64,
}

/// The objects of one task.
struct Objects {
    prefix: String,
    number: u64,
    appends: u64,
    len: u64,
}

impl Objects {
    fn name(&self) -> String {
        format!("{}/{:010}", self.prefix, self.number)
    }

    /// Makes the next append possible: no part of what is measured.
    async fn make_room(&mut self, plan: &Plan) -> Result<(), BucketError> {
        let Some(limits) = plan.bucket.appends() else {
            self.number += 1;
            return Ok(());
        };
        let next = self.len + plan.block.len() as u64;
        if self.number == 0 || self.appends >= limits.appends_max || next > limits.object_bytes_max
        {
            self.number += 1;
            (self.appends, self.len) = (1, HEAD.len() as u64);
            let head = Bytes::from_static(HEAD);
            plan.bucket.create(&self.name(), head).await?;
        }
        Ok(())
    }

    async fn append(&mut self, plan: &Plan) -> Result<(), BucketError> {
        let (name, block) = (self.name(), plan.block.clone());
        if plan.bucket.appends().is_none() {
            return plan.bucket.put_if_absent(&name, block).await.map(drop);
        }
        plan.bucket.append(&name, self.len, block).await?;
        self.len += plan.block.len() as u64;
        self.appends += 1;
        Ok(())
    }
}

async fn task(plan: Rc<Plan>, prefix: String) -> Result<Measurements, BucketError> {
    let mut measured = Measurements::new(1);
    let mut objects = Objects {
        prefix,
        number: 0,
        appends: 0,
        len: 0,
    };
    for _ in 0..plan.count {
        objects.make_room(&plan).await?;
        let began = plan.clock.monotonic().as_nanos();
        if began >= plan.until || plan.stop.load(Ordering::Relaxed) {
            break;
        }
        objects.append(&plan).await?;
        let end = plan.clock.monotonic().as_nanos();
        measured.record(began, end, plan.from, plan.until);
        plan.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(measured)
}

/// Runs one cell.
pub(crate) fn run(
    cell: &RunConfig,
    size_bytes: usize,
    env: &Env,
    run: Option<usize>,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn ProgressListener,
) -> Result<RunOutcome, BenchError> {
    let refused = || BenchError::Open("--way client needs one bucket as --home".into());
    let Home::Url(url) = &cell.common.home else {
        return Err(refused());
    };
    let [url] = home::buckets(url)[..] else {
        return Err(refused());
    };
    let url = home::below(url, &home::prefix(run));
    let bucket = logstead_home::bucket::open(&url, env)
        .map_err(|error| BenchError::Open(error.to_string()))?;
    let described = bucket.describe();
    let usage = || {
        vec![HomeUsage {
            home: bucket.describe(),
            provider: bucket.provider().to_owned(),
            usage: bucket.usage(),
        }]
    };
    let spent_before = ResourceUsage::of(usage(), env);
    let now = env.clock.monotonic().as_nanos();
    let (from, until, count) = match cell.common.until {
        RunLimit::Seconds { measured, warmup } => {
            let from = now + nanos(warmup);
            (from, from + nanos(measured), u64::MAX)
        }
        RunLimit::Transactions(n) => (now, u64::MAX, n.div_ceil(cell.common.workers as u64)),
    };
    let done = Arc::new(AtomicU64::new(0));
    let plan = {
        let (bucket, clock) = (Arc::clone(&bucket), Arc::clone(&env.clock));
        let (stop, done) = (Arc::clone(stop), Arc::clone(&done));
        move || Plan {
            bucket,
            clock,
            stop,
            done,
            block: Bytes::from(vec![1; size_bytes]),
            from,
            until,
            count,
        }
    };
    let result = Arc::new(Mutex::new(None));
    let (told, tasks) = (Arc::clone(&result), cell.common.workers);
    let body = move || {
        let all = move || -> Result<Measurements, BenchError> {
            let runtime = home::runtime()?;
            let plan = Rc::new(plan());
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let tasks: Vec<_> = (0..tasks)
                    .map(|number| {
                        let task = task(Rc::clone(&plan), format!("{number:04}"));
                        tokio::task::spawn_local(task)
                    })
                    .collect();
                let mut all = Measurements::new(1);
                for task in tasks {
                    all.add(&task.await.map_err(broken)?.map_err(broken)?);
                }
                Ok(all)
            })
        };
        *told.lock() = Some(all());
    };
    let thread = env.spawn("bare-client", None, body).map_err(broken)?;
    while !thread.is_finished() {
        logstead_env::sleep(WATCH);
        let done = done.load(Ordering::Relaxed);
        let at = env.clock.monotonic().as_nanos();
        let part = match cell.common.until {
            RunLimit::Seconds { .. } => at.saturating_sub(now) as f64 / (until - now) as f64,
            RunLimit::Transactions(n) => done as f64 / n as f64,
        };
        progress.running(done, part);
    }
    thread
        .join()
        .map_err(|_| BenchError::Failed("a thread panicked".into()))?;
    let measured = result
        .lock()
        .take()
        .unwrap_or_else(|| Err(BenchError::Failed("a thread told nothing".into())))?;
    let spent = ResourceUsage::of(usage(), env).since(&spent_before);
    let seconds = measured.span.map_or(0.0, |(a, b)| (b - a) as f64 / 1e9);
    Ok(RunOutcome {
        seconds,
        kinds: vec!["append"],
        measured,
        figures: spent.figures(done.load(Ordering::Relaxed), "append"),
        home: described,
        interrupted: stop.load(Ordering::Relaxed),
        ..RunOutcome::empty(cell)
    })
}
