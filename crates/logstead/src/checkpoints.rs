//! Checkpoints of a running server: the thread that takes them, what people are told of them, and the last one at a
//! stop.
//!
//! At an orderly stop, when everything is flushed, one more is taken, so that the next start has no log to read. It is
//! worth some seconds, not more: the log holds everything anyway. So it is given up after [`LAST_TIME`], or at a second
//! signal, and what was written for it is removed by the next server. With `checkpoint_interval = 0` there is none.

use logstead_engine::{CheckpointError, CheckpointReport, Checkpointer, Engine, Evictor, Warmup};
use logstead_env::Env;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::time::Duration;
use tracing::{debug, info, warn};

/// How long a stop waits for the last checkpoint.
const LAST_TIME: Duration = Duration::from_secs(5);

/// Takes checkpoints while the server runs.
pub(crate) struct Checkpoints {
    /// Dropping it waits for the one under way, which may wait for a home that does not answer.
    thread: ManuallyDrop<Checkpointer>,
    /// The same of these: the evictor takes checkpoints too, when it is in want.
    memory: (ManuallyDrop<Evictor>, ManuallyDrop<Warmup>),
    by_itself: bool,
}

impl Checkpoints {
    /// Starts the thread; `interval` zero: only when asked.
    pub(crate) fn start(
        engine: &Engine,
        interval: Duration,
        evictor: ManuallyDrop<Evictor>,
        warmup: Warmup,
    ) -> std::io::Result<Checkpoints> {
        // Nor does a start that fails here wait for them.
        let memory = (evictor, ManuallyDrop::new(warmup));
        let by_itself = !interval.is_zero();
        let thread = Checkpointer::start(engine, by_itself.then_some(interval), Box::new(say))?;
        Ok(Checkpoints {
            thread: ManuallyDrop::new(thread),
            memory,
            by_itself,
        })
    }

    /// Takes the last one, unless that takes long or `cut_short` comes. Afterwards none is published any more, or the
    /// manifest has been given up to a later server.
    pub(crate) async fn finish(
        self,
        engine: &Engine,
        env: &Env,
        cut_short: impl Future<Output = ()>,
    ) {
        // A stop is no load on anybody.
        engine.set_checkpoint_bandwidth(0);
        let (done, ended) = tokio::sync::oneshot::channel();
        let (taker, by_itself) = (engine.clone(), self.by_itself);
        let last = env.spawn("last checkpoint", None, move || {
            // Also the one under way is waited for here.
            let taken = by_itself.then(|| taker.checkpoint());
            drop(ManuallyDrop::into_inner(self.thread));
            drop(ManuallyDrop::into_inner(self.memory.0));
            drop(ManuallyDrop::into_inner(self.memory.1));
            // Nobody may wait any more.
            let _waited_for = done.send(taken);
        });
        if let Err(error) = last {
            warn!("no last checkpoint: {error}");
            return;
        }
        tokio::select! {
            taken = ended => match taken {
                Ok(Some(Ok(report))) => info!("the last checkpoint is at CSN {}", report.csn),
                Ok(Some(Err(error))) => warn!("no last checkpoint: {error}"),
                Ok(None) => {}
                Err(_) => warn!("no last checkpoint: its thread has panicked"),
            },
            () = tokio::time::sleep(LAST_TIME) => {
                engine.stop_checkpoints();
                info!("the last checkpoint was given up: it takes more than {} s", LAST_TIME.as_secs());
            }
            () = cut_short => {
                engine.stop_checkpoints();
                info!("the last checkpoint was given up: a second signal came");
            }
        }
    }
}

/// Tells people what came of a checkpoint.
fn say(taken: &Result<CheckpointReport, CheckpointError>) {
    match taken {
        Ok(report) => {
            if let Some(why) = &report.collection_failed {
                warn!(
                    "what no checkpoint needs any more could not be removed, the next one tries again: {why}"
                );
            }
            if report.written {
                debug!(
                    "checkpoint at CSN {}{}: {} pages, {} delta pages, {} rows, {} bytes; {} segments of the log removed; took {:?}",
                    report.csn,
                    match report.by_replica {
                        true => ", written by a replica",
                        false => "",
                    },
                    report.pages,
                    report.delta_pages,
                    report.rows,
                    report.bytes,
                    report.segments_removed,
                    report.took,
                );
            }
        }
        Err(CheckpointError::Stopped) => {}
        Err(error) => warn!("no checkpoint was taken, the one before stays in force: {error}"),
    }
}
