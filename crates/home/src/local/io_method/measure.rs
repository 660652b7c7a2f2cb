//! Which way of writing is the best here? A few dozen writes of each to a scratch file, when the home is opened.
//!
//! The same device answers differently by the way it is asked, and differently again when all cores are busy: a way
//! that lets a kernel thread finish the write then waits for the scheduler's next tick, a hundred times as long as the
//! write. So each way is tried on the idle machine and with a spinning thread on every core, by the caller itself and
//! handed off. The tries are interleaved, because devices change their pace within milliseconds.
//!
//! The best is the one with the lowest average time (a slow write among many counts), by the geometric mean over the
//! kinds of writes; `pwrite`, the simplest, stays unless another one is clearly better. Nothing that goes wrong here is
//! an error: a way that fails is no candidate, and the report says why.

use super::{AppendWrite, IoMethod, IoMethodRunner, LaneWriteOrder, Piece};
use crate::{Buffer, Position};
use logstead_env::{Access, Env, File, FileLock, Instant, JobQueue};
use logstead_types::LaneId;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the idle part and the busy part take, at most; the first few writes of each are waited for.
const IDLE_TIME: Duration = Duration::from_millis(60);
const BUSY_TIME: Duration = Duration::from_millis(90);
/// Sizes that commits write.
const SIZES: [usize; 2] = [4 << 10, 16 << 10];
/// Writes by the caller, one after the other.
const WRITES: usize = 2;
/// Writes handed off together.
const HANDED_OFF: usize = 4;
/// Writes of each kind are enough then.
const ROUNDS_MAX: usize = 16;
/// Bytes of the scratch file.
const SCRATCH_BYTES: usize = 512 << 10;
/// How much better than `pwrite` another way must be.
const CLEARLY: f64 = 0.8;
/// Threads that keep the machine busy, at most.
const SPINNERS_MAX: usize = 16;

/// What a way took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct IoMethodTiming {
    pub(in super::super) way: IoMethod,
    pub(in super::super) busy: bool,
    pub(in super::super) handed_off: bool,
    pub(in super::super) size_bytes: usize,
    pub(in super::super) p50: Duration,
    pub(in super::super) max: Duration,
    pub(in super::super) writes: usize,
}

/// What was found.
#[derive(Debug)]
pub(in super::super) struct IoMethodChoice {
    pub(in super::super) way: IoMethod,
    /// Why this one.
    pub(in super::super) why: String,
    pub(in super::super) figures: Vec<IoMethodTiming>,
}

impl IoMethodChoice {
    /// What an append by the caller took, idle, if it was measured.
    pub(in super::super) fn append_latency_us(&self) -> Option<u32> {
        let alone = |figure: &&IoMethodTiming| {
            figure.way == self.way
                && !figure.busy
                && !figure.handed_off
                && figure.size_bytes == SIZES[1]
        };
        let figure = self.figures.iter().find(alone)?;
        u32::try_from(figure.p50.as_micros())
            .ok()
            .map(|micros| micros.max(1))
    }

    /// Names and values, for people.
    pub(in super::super) fn report(&self) -> Vec<(String, String)> {
        let mut report = vec![
            ("way".to_owned(), self.way.to_string()),
            ("way chosen because".to_owned(), self.why.clone()),
        ];
        report.extend(self.figures.iter().map(|figure| {
            let name = format!(
                "{} of {} KiB, {}, cores {}",
                figure.way,
                figure.size_bytes >> 10,
                if figure.handed_off {
                    "four handed off"
                } else {
                    "by the caller"
                },
                if figure.busy { "busy" } else { "idle" },
            );
            let value = format!(
                "p50 {} us, max {} us of {} writes",
                figure.p50.as_micros(),
                figure.max.as_micros(),
                figure.writes
            );
            (name, value)
        }));
        report
    }
}

/// A way being tried.
struct Candidate {
    way: IoMethod,
    ways: IoMethodRunner,
    of_lane: Option<JobQueue<AppendWrite>>,
    file: Arc<dyn File>,
    order: Arc<LaneWriteOrder>,
    cells: Vec<Cell>,
    failed: Option<String>,
}

struct Cell {
    busy: bool,
    handed_off: bool,
    size_bytes: usize,
    took: Vec<Duration>,
}

/// Chooses the way for the home in `dir`.
pub(in super::super) fn choose(
    env: &Env,
    wanted: IoMethod,
    scratch: &Path,
    lock: Option<&Arc<dyn FileLock>>,
) -> IoMethodChoice {
    let chosen = |way, why: &str| IoMethodChoice {
        way,
        why: why.to_owned(),
        figures: Vec::new(),
    };
    match wanted {
        IoMethod::Auto if env.files.is_simulated() => {
            chosen(IoMethod::Pwrite, "nothing to measure")
        }
        IoMethod::Auto => {
            let choice = measure(env, scratch, lock);
            // If it stays, it goes when the home is opened next.
            let _unfinished_files_are_removed = env.files.remove(scratch);
            choice.unwrap_or_else(|error| {
                chosen(IoMethod::Pwrite, &format!("measuring failed: {error}"))
            })
        }
        way => chosen(way, "as the settings say"),
    }
}

fn measure(
    env: &Env,
    scratch: &Path,
    lock: Option<&Arc<dyn FileLock>>,
) -> io::Result<IoMethodChoice> {
    let mode = IoMethod::Pwrite.open_mode(Access::Replace);
    let file = env.files.open(scratch, mode)?;
    file.fill_with_zeros(0, SCRATCH_BYTES as u64, SCRATCH_BYTES, &mut || {})?;
    file.sync()?;
    let direct = file.is_direct();
    drop(file);
    let ways: &[IoMethod] = if direct {
        &[IoMethod::Pwrite, IoMethod::Threads, IoMethod::Uring]
    } else {
        // Past the page cache there is nothing to be gained here.
        &[IoMethod::Pwrite, IoMethod::Portable]
    };
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for &way in ways {
        match Candidate::new(env, way, scratch, lock) {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => refused.push(format!("{way} is not available: {error}")),
        }
    }
    let now = || env.clock.monotonic();
    try_all(env, &mut candidates, false, now() + IDLE_TIME);
    let spinning = Spinners::start(env);
    try_all(env, &mut candidates, true, now() + BUSY_TIME);
    drop(spinning);
    Ok(judge(&mut candidates, refused))
}

impl Candidate {
    fn new(
        env: &Env,
        way: IoMethod,
        scratch: &Path,
        lock: Option<&Arc<dyn FileLock>>,
    ) -> io::Result<Candidate> {
        let file = env.files.open(scratch, way.open_mode(Access::ReadWrite))?;
        let mut cells = Vec::new();
        for busy in [false, true] {
            for handed_off in [false, true] {
                cells.extend(SIZES.map(|size_bytes| Cell {
                    busy,
                    handed_off,
                    size_bytes,
                    took: Vec::with_capacity(HANDED_OFF * ROUNDS_MAX),
                }));
            }
        }
        let ways = IoMethodRunner::new(way, env, true, lock.cloned())?;
        Ok(Candidate {
            way,
            of_lane: ways.lane_writer(env, "log-try")?,
            ways,
            file: Arc::from(file),
            order: Arc::new(LaneWriteOrder::new(LaneId(0))),
            cells,
            failed: None,
        })
    }

    /// A few writes of one kind, one after the other or all at once.
    fn try_cell(&mut self, env: &Env, cell: usize) -> Result<(), String> {
        let (size, handed_off) = (self.cells[cell].size_bytes, self.cells[cell].handed_off);
        let clock = &env.clock;
        let place = |number: usize| Position {
            segment: 0,
            offset: (number * size) as u64,
        };
        if !handed_off {
            let block = Buffer::zeroed(size);
            for number in 0..WRITES {
                let begun = clock.monotonic();
                let piece = Piece {
                    at: place(number),
                    bytes: block.as_slice(),
                };
                let written = self
                    .ways
                    .write_inline(&self.order, self.file.as_ref(), piece);
                written.map_err(|error| error.to_string())?;
                self.cells[cell].took.push(clock.monotonic().since(begun));
            }
            return Ok(());
        }
        let (done, completions) = mpsc::channel();
        let begun = clock.monotonic();
        for number in 0..HANDED_OFF {
            let (done, clock) = (done.clone(), Arc::clone(clock));
            let write = AppendWrite {
                order: Arc::clone(&self.order),
                file: Arc::clone(&self.file),
                at: place(number),
                block: Buffer::zeroed(size),
                len: size,
                done: Box::new(move |_, result| {
                    let _listening = done.send((clock.monotonic(), result));
                }),
                keep: Arc::new(()),
            };
            self.ways.hand_off(self.of_lane.as_ref(), write);
        }
        for _ in 0..HANDED_OFF {
            let (at, result) = completions.recv().map_err(|error| error.to_string())?;
            result.map_err(|error| error.to_string())?;
            self.cells[cell].took.push(at.since(begun));
        }
        Ok(())
    }

    fn log_mean(&self, counted: &[bool]) -> f64 {
        let counted = self.cells.iter().zip(counted);
        let counted = counted.filter(|(_, counted)| **counted);
        let logs = counted.map(|(cell, _)| {
            let sum: f64 = cell.took.iter().map(Duration::as_secs_f64).sum();
            (sum / cell.took.len() as f64).max(1e-9).ln()
        });
        logs.sum()
    }
}

fn try_all(env: &Env, candidates: &mut [Candidate], busy: bool, until: Instant) {
    let cells = candidates.first().map_or(&[][..], |first| &first.cells[..]);
    let cells: Vec<usize> = (0..cells.len())
        .filter(|&cell| cells[cell].busy == busy)
        .collect();
    let mut waited_for = true;
    for _ in 0..ROUNDS_MAX {
        for &cell in &cells {
            for candidate in &mut *candidates {
                if !waited_for && env.clock.monotonic() >= until {
                    return;
                }
                if candidate.failed.is_none() {
                    candidate.failed = candidate.try_cell(env, cell).err();
                }
            }
            waited_for = false;
        }
    }
}

fn judge(candidates: &mut Vec<Candidate>, mut notes: Vec<String>) -> IoMethodChoice {
    candidates.retain(|candidate| match &candidate.failed {
        Some(error) => {
            notes.push(format!("{} failed: {error}", candidate.way));
            false
        }
        None => true,
    });
    // Only what every one of them has done is compared.
    let cells = candidates.first().map_or(0, |first| first.cells.len());
    let counted: Vec<bool> = (0..cells)
        .map(|cell| {
            candidates
                .iter()
                .all(|one| !one.cells[cell].took.is_empty())
        })
        .collect();
    let compared = counted.iter().filter(|counted| **counted).count();
    if compared == 0 {
        notes.insert(0, "nothing could be measured".to_owned());
        return IoMethodChoice {
            way: IoMethod::Pwrite,
            why: notes.join(", "),
            figures: Vec::new(),
        };
    }
    let score = |candidate: &Candidate| (candidate.log_mean(&counted) / compared as f64).exp();
    let plain = candidates
        .iter()
        .find(|one| one.way == IoMethod::Pwrite)
        .map(score);
    let best = candidates
        .iter()
        .min_by(|a, b| score(a).total_cmp(&score(b)));
    let way = match (best, plain) {
        (Some(best), Some(plain)) if score(best) < plain * CLEARLY => best.way,
        (Some(best), None) => best.way,
        _ => IoMethod::Pwrite,
    };
    let mut why: Vec<String> = candidates
        .iter()
        .map(|one| format!("{} {:.0} us", one.way, score(one) * 1e6))
        .collect();
    why.extend(notes);
    let figures = candidates.iter().flat_map(|candidate| {
        let done = candidate.cells.iter().filter(|cell| !cell.took.is_empty());
        done.map(|cell| {
            let mut took = cell.took.clone();
            took.sort_unstable();
            IoMethodTiming {
                way: candidate.way,
                busy: cell.busy,
                handed_off: cell.handed_off,
                size_bytes: cell.size_bytes,
                p50: took[took.len() / 2],
                max: took[took.len() - 1],
                writes: took.len(),
            }
        })
    });
    IoMethodChoice {
        way,
        why: format!("measured: {}", why.join(", ")),
        figures: figures.collect(),
    }
}

/// Threads that do nothing, on every core.
struct Spinners {
    stop: Arc<AtomicBool>,
}

impl Spinners {
    fn start(env: &Env) -> Spinners {
        let stop = Arc::new(AtomicBool::new(false));
        for core in 0..logstead_env::core_count().min(SPINNERS_MAX) {
            let stop = Arc::clone(&stop);
            // One thread less makes the machine a little less busy.
            let _started = env.spawn("log-try-busy", Some(core), move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Spinners { stop }
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(way: IoMethod, micros: [u64; 3]) -> Candidate {
        let (env, _) = Env::simulated(1);
        let mode = IoMethod::Pwrite.open_mode(Access::Replace);
        env.files.open(Path::new("/scratch"), mode).expect("opens");
        let mut candidate =
            Candidate::new(&env, IoMethod::Pwrite, Path::new("/scratch"), None).expect("opens");
        candidate.way = way;
        candidate.cells[0].took = micros.map(Duration::from_micros).to_vec();
        candidate
    }

    fn chosen(candidates: Vec<Candidate>) -> IoMethod {
        judge(&mut { candidates }, Vec::new()).way
    }

    #[test]
    fn the_best_is_chosen_and_pwrite_unless_another_is_clearly_better() {
        let pwrite = || candidate(IoMethod::Pwrite, [40, 40, 50]);
        let little_better = candidate(IoMethod::Uring, [40, 40, 45]);
        assert_eq!(chosen(vec![pwrite(), little_better]), IoMethod::Pwrite);
        let better = candidate(IoMethod::Uring, [20, 30, 25]);
        assert_eq!(chosen(vec![pwrite(), better]), IoMethod::Uring);
        // One slow write in three weighs more than two quick ones.
        let uneven = candidate(IoMethod::Uring, [30, 30, 4000]);
        assert_eq!(chosen(vec![pwrite(), uneven]), IoMethod::Pwrite);
    }

    #[test]
    fn what_fails_is_not_chosen_and_what_nobody_else_did_is_not_compared() {
        let mut failing = candidate(IoMethod::Uring, [1, 1, 1]);
        failing.failed = Some("the device is gone".to_owned());
        let choice = judge(
            &mut vec![candidate(IoMethod::Pwrite, [40, 40, 40]), failing],
            Vec::new(),
        );
        assert_eq!(choice.way, IoMethod::Pwrite);
        assert!(choice.why.contains("the device is gone"), "{}", choice.why);
        let mut more = candidate(IoMethod::Threads, [20, 20, 20]);
        more.cells[3].took = vec![Duration::from_secs(1)];
        let pwrite = candidate(IoMethod::Pwrite, [40, 40, 40]);
        assert_eq!(chosen(vec![pwrite, more]), IoMethod::Threads);
        assert_eq!(chosen(Vec::new()), IoMethod::Pwrite);
    }

    #[test]
    fn a_directory_that_takes_no_scratch_file_is_written_to_plainly() {
        let dir = tempfile::tempdir().expect("a directory");
        let scratch = dir.path().join("absent").join("scratch");
        let choice = choose(&Env::real(), IoMethod::Auto, &scratch, None);
        assert_eq!(choice.way, IoMethod::Pwrite);
        assert!(choice.why.starts_with("measuring failed"), "{}", choice.why);
    }

    #[test]
    fn the_machine_is_measured() {
        let dir = tempfile::tempdir().expect("a directory");
        let scratch = dir.path().join("scratch");
        let choice = choose(&Env::real(), IoMethod::Auto, &scratch, None);
        assert!(choice.why.starts_with("measured"), "{}", choice.why);
        let pwrite = |figure: &&IoMethodTiming| figure.way == IoMethod::Pwrite && !figure.busy;
        assert!(choice.figures.iter().find(pwrite).is_some());
        assert!(!scratch.exists(), "nothing stays");
    }
}
