//! What a bare durable write takes, by way of writing, size and number in flight, on idle and on busy cores.
//!
//! `cargo run --release -p logstead-home --example ways [DIR]` writes into a new directory in DIR (or here) and prints
//! a table. Ways are tried in turn, several rounds of each, because a device changes its pace within seconds.

use logstead_env::{Buffer, Env, Instant, core_count};
use logstead_home::{InlineAppends, IoMethod, LaneAppends, LocalHome, LocalOptions, Position};
use logstead_types::LaneId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const WAYS: [IoMethod; 4] = [
    IoMethod::Pwrite,
    IoMethod::Threads,
    IoMethod::Uring,
    IoMethod::Portable,
];
const SIZES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];
const IN_FLIGHT: [usize; 3] = [1, 4, 16];
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_millis(120);

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Writers {
    /// As many threads, each on a lane of its own, each waiting for its write.
    Callers,
    /// One lane, as many appends handed off together.
    HandedOff,
}

/// A line of the table: busy cores, writers, number in flight, way's place, size.
type Cell = (bool, Writers, usize, usize, usize);

fn main() {
    let env = Env::real();
    let root = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let number = env.random.u64();
    let root = root.join(format!("logstead-ways-{number:x}"));
    let mut homes: Vec<(usize, Arc<LocalHome>)> = Vec::new();
    for (index, way) in WAYS.into_iter().enumerate() {
        let options = LocalOptions {
            way,
            first_segment_size_bytes: 2 << 20,
            segment_size_bytes: 2 << 20,
            segment_size_bytes_min: 1 << 20,
            ..LocalOptions::default()
        };
        match LocalHome::open(root.join(way.name()), &env, options) {
            Ok(home) => homes.push((index, Arc::new(home))),
            Err(error) => println!("{way} is not available here: {error}"),
        }
    }
    for (_, home) in &homes {
        for lane in 0..IN_FLIGHT[IN_FLIGHT.len() - 1] {
            let lane = LaneId(u16::try_from(lane).expect("few lanes"));
            home.open_lane(lane, 0).expect("there is room");
        }
    }
    let mut took: BTreeMap<Cell, Vec<Duration>> = BTreeMap::new();
    for busy in [false, true] {
        let spinners = busy.then(|| Spinners::start(&env));
        for _ in 0..ROUNDS {
            for size in SIZES {
                for count in IN_FLIGHT {
                    for writers in [Writers::Callers, Writers::HandedOff] {
                        for (way, home) in &homes {
                            let times = match writers {
                                Writers::Callers => callers(&env, home, size, count),
                                Writers::HandedOff => handed_off(&env, home, size, count),
                            };
                            took.entry((busy, writers, count, *way, size))
                                .or_default()
                                .extend(times);
                        }
                    }
                }
            }
        }
        drop(spinners);
    }
    print(&mut took);
    drop(homes);
    #[allow(clippy::disallowed_methods, reason = "the example cleans up")]
    std::fs::remove_dir_all(&root).expect("cleans up");
}

fn place(slot: usize) -> Position {
    Position {
        segment: 0,
        offset: (slot * SIZES[SIZES.len() - 1]) as u64,
    }
}

fn callers(env: &Env, home: &Arc<LocalHome>, size: usize, count: usize) -> Vec<Duration> {
    let until = env.clock.monotonic() + TIME;
    let (done, times) = mpsc::channel();
    for slot in 0..count {
        let (clock, home, done) = (Arc::clone(&env.clock), Arc::clone(home), done.clone());
        let lane = LaneId(u16::try_from(slot).expect("few lanes"));
        let writer = move || {
            let block = Buffer::zeroed(size);
            let mut times = Vec::new();
            loop {
                let begun = clock.monotonic();
                if begun >= until {
                    break;
                }
                let written = home.append_inline(lane, place(0), &block, size);
                written.expect("writes");
                times.push(clock.monotonic().since(begun));
            }
            drop(home);
            done.send(times).expect("main waits");
        };
        env.spawn("writer", None, writer).expect("starts");
    }
    drop(done);
    times.iter().flatten().collect()
}

fn handed_off(env: &Env, home: &Arc<LocalHome>, size: usize, count: usize) -> Vec<Duration> {
    let until = env.clock.monotonic() + TIME;
    let (done, completions) = mpsc::channel::<(usize, Buffer, Instant, Instant)>();
    let submit = |slot, block| {
        let (done, clock) = (done.clone(), Arc::clone(&env.clock));
        let begun = clock.monotonic();
        let told = move |block, result: Result<(), _>| {
            result.expect("writes");
            done.send((slot, block, begun, clock.monotonic()))
                .expect("main waits");
        };
        home.append(LaneId(0), place(slot), block, size, Box::new(told));
    };
    for slot in 0..count {
        submit(slot, Buffer::zeroed(size));
    }
    let (mut times, mut in_flight) = (Vec::new(), count);
    while in_flight > 0 {
        let (slot, block, begun, ended) = completions.recv().expect("completes");
        times.push(ended.since(begun));
        if ended < until {
            submit(slot, block);
        } else {
            in_flight -= 1;
        }
    }
    times
}

/// Microseconds at the two quantiles, and writes per second.
fn summary(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_micros();
    let per_second = times.len() as f64 / (TIME.as_secs_f64() * ROUNDS as f64);
    format!("{} / {} ({:.1}k)", at(50), at(99), per_second / 1000.0)
}

fn print(took: &mut BTreeMap<Cell, Vec<Duration>>) {
    println!("| cores | writers | in flight | way | 4 KiB | 16 KiB | 64 KiB |");
    println!("|---|---|---|---|---|---|---|");
    let rows: Vec<(bool, Writers, usize, usize)> = took
        .keys()
        .map(|&(busy, writers, count, way, _)| (busy, writers, count, way))
        .collect();
    let mut last = None;
    for row in rows {
        if last == Some(row) {
            continue;
        }
        last = Some(row);
        let (busy, writers, count, way) = row;
        let cells = SIZES.map(|size| {
            let times = took.get_mut(&(busy, writers, count, way, size));
            times.map_or_else(String::new, |times| summary(times))
        });
        println!(
            "| {} | {} | {count} | {} | {} |",
            if busy { "busy" } else { "idle" },
            match writers {
                Writers::Callers => "callers",
                Writers::HandedOff => "handed off",
            },
            WAYS[way],
            cells.join(" | ")
        );
    }
}

struct Spinners(Arc<AtomicBool>);

impl Spinners {
    fn start(env: &Env) -> Spinners {
        let stop = Arc::new(AtomicBool::new(false));
        for core in 0..core_count() {
            let stop = Arc::clone(&stop);
            let spin = move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            env.spawn("busy", Some(core), spin).expect("starts");
        }
        Spinners(stop)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
