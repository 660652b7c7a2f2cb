//! `logstead bench` without the server around it, quick to build; the papers' mechanisms in virtual time (`papers
//! [WORKERS [TRANSACTIONS [EXECUTE_NS [LOOK_NS]]]]`); and two ways to steal log (`stealing DIRECTORY [SECONDS
//! [REPEAT]]`).

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use logstead_bench::stealing::{StealFigures, StealHome, StealMethod, StealOptions, run as steal};
use logstead_bench::virtual_time::{CostModel, VirtualFigures, VirtualOptions, run as run_virtual};
use logstead_bench::{Bar, BenchCommand, command};
use logstead_engine::{AckTiming, CommitOptions, Env, ForceCommit, ProtocolKind, Tracking};

fn main() -> ExitCode {
    let said = match std::env::args().nth(1).as_deref() {
        Some("papers") => papers(),
        Some("stealing") => stealing(),
        _ => bench(),
    };
    match said {
        Ok(text) => {
            let _pipe_may_be_closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _pipe_may_be_closed = writeln!(std::io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<String, String> {
    let matches = command().get_matches();
    let env = Env::real();
    match BenchCommand::read(&matches)? {
        BenchCommand::Run(options) => {
            let results = logstead_bench::run(&options, &env, &Arc::default(), &mut Bar::new())
                .map_err(|error| error.to_string())?;
            results
                .write_files(&env)
                .map_err(|error| error.to_string())?;
            match results.broken().next() {
                None => Ok(results.text()),
                Some(check) => Err(format!("{}{check:?}", results.text())),
            }
        }
        BenchCommand::Report { files, html } => {
            logstead_bench::report_files(&files, &html, &env).map_err(|error| error.to_string())
        }
        BenchCommand::Experiments => Ok(logstead_bench::experiment::describe()),
    }
}

fn autonomous(unit: usize) -> CommitOptions {
    CommitOptions {
        protocol: ProtocolKind::Autonomous,
        flush_unit_bytes: unit,
        ..CommitOptions::default()
    }
}

fn line(name: &str, figures: &VirtualFigures) -> String {
    let counts = &figures.counts;
    let us = |p: f64| counts.writing.value_at_percentile(p) as f64 / 1e3;
    let path = &figures.path;
    let per = |n: u64| n as f64 / path.entries.max(1) as f64;
    let waits = path.waits;
    let looked = waits.none + waits.horizon + waits.gsn + waits.predecessor;
    format!(
        "| {name} | {:.0} | {:.1} | {:.1} | {:.1} | {:.2} | {:.3} | {:.1} % |\n",
        counts.committed as f64 / figures.seconds,
        us(50.0),
        us(99.0),
        us(99.9),
        per(path.looks),
        per(path.appends),
        100.0 * (looked - waits.none) as f64 / looked.max(1) as f64,
    )
}

fn table(title: &str, rows: &[(String, VirtualOptions)]) -> Result<String, String> {
    let mut text = format!(
        "\n{title}\n\n| | transactions/s | p50 us | p99 us | p99.9 us | looks per commit | appends per commit | hardened, not committed |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    for (name, options) in rows {
        let figures = run_virtual(options).map_err(|error| format!("{name}: {error}"))?;
        text += &line(name, &figures);
    }
    Ok(text)
}

/// An argument by its place.
fn argument(number: usize, default: u64) -> Result<u64, String> {
    let given = std::env::args().nth(number);
    given.map_or(Ok(default), |text| {
        text.parse().map_err(|_| format!("{text}: a number"))
    })
}

/// Who robs whom how; runs alternate, and each figure is the median of its repetitions.
fn stealing() -> Result<String, String> {
    let dir = std::env::args().nth(2).ok_or("a directory is expected")?;
    let (seconds, repeat) = (argument(3, 2)?, argument(4, 3)?);
    let env = Env::real();
    let mut text = String::from(
        "| home | flush unit KiB | workers | way | entries/s | p50 us | p99 us | p99.9 us | entries per block | steals per block | \
         failed steals % |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let homes = ["none", "model nvme", "disk"];
    let mut number = 0;
    for place in homes {
        for unit in [4, 16] {
            for workers in [2, 8] {
                let ways = [StealMethod::None, StealMethod::Locks, StealMethod::Cursors];
                let mut runs = vec![Vec::new(); ways.len()];
                for _ in 0..repeat {
                    for (way, runs) in ways.into_iter().zip(&mut runs) {
                        number += 1;
                        let home = match place {
                            "disk" => StealHome::Local(format!("{dir}/steal-{number}").into()),
                            "none" => StealHome::Discarded,
                            _ => StealHome::Url("sim://?model=nvme&seed=1".into()),
                        };
                        let options = StealOptions {
                            way,
                            workers,
                            steal_group: 8,
                            flush_unit_bytes: unit << 10,
                            execute_ns: 3_000,
                            run_ns: seconds * 1_000_000_000,
                            home,
                        };
                        let run = steal(&options, &env).map_err(|error| error.to_string())?;
                        runs.push(run);
                    }
                }
                for (way, runs) in ways.into_iter().zip(runs) {
                    let median = |of: &dyn Fn(&StealFigures) -> f64| {
                        let mut all: Vec<f64> = runs.iter().map(of).collect();
                        all.sort_by(f64::total_cmp);
                        all[all.len() / 2]
                    };
                    let us =
                        |p: f64| median(&|run| run.latency.value_at_percentile(p) as f64 / 1e3);
                    let blocks = |run: &StealFigures| run.blocks.max(1) as f64;
                    text += &format!(
                        "| {place} | {unit} | {workers} | {way:?} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} | {:.2} | {:.1} |\n",
                        median(&|run| run.entries as f64 / run.seconds),
                        us(50.0),
                        us(99.0),
                        us(99.9),
                        median(&|run| run.entries as f64 / blocks(run)),
                        median(&|run| run.steals as f64 / blocks(run)),
                        median(&|run| {
                            100.0 * run.failed as f64 / (run.failed + run.steals).max(1) as f64
                        }),
                    );
                }
            }
        }
    }
    Ok(text)
}

/// The papers' mechanisms beside ours, on so many workers as the second argument says.
fn papers() -> Result<String, String> {
    let workers = argument(2, 64)? as usize;
    let base = VirtualOptions {
        workers,
        transactions: argument(3, 200_000)?,
        prices: CostModel {
            execute: argument(4, CostModel::default().execute)?,
            look: argument(5, CostModel::default().look)?,
            ..CostModel::default()
        },
        ..VirtualOptions::default()
    };
    let with = |commit: CommitOptions| VirtualOptions {
        commit,
        ..base.clone()
    };
    let mut text = format!("{workers} workers in virtual time, {:?}\n", base.prices);
    let mut rows = Vec::new();
    for acknowledging in [AckTiming::WhenHardened, AckTiming::AtRandom] {
        for ack_group in [2, 8] {
            let commit = CommitOptions {
                acknowledging,
                ack_group,
                ..autonomous(4 << 10)
            };
            rows.push((
                format!("{acknowledging:?}, groups of {ack_group}"),
                with(commit),
            ));
        }
    }
    text += &table(
        "Acknowledgment, autonomous, 4 KiB, 64 sessions per worker",
        &rows,
    )?;
    let mut rows = Vec::new();
    for (sessions, think_ns) in [(1, 0), (1, 100_000), (4, 100_000), (16, 100_000), (64, 0)] {
        for force_commit in [ForceCommit::AtOnce, ForceCommit::IfIdleLong] {
            let commit = CommitOptions {
                force_commit,
                ..autonomous(4 << 10)
            };
            let name = format!(
                "{sessions} sessions, think {} us, {force_commit:?}",
                think_ns / 1000
            );
            let options = VirtualOptions {
                sessions,
                think_ns,
                transactions: base.transactions / 2,
                ..with(commit)
            };
            rows.push((name, options));
        }
    }
    text += &table("Force commit, autonomous, 4 KiB", &rows)?;
    let mut rows = Vec::new();
    for steal_group in [0, 8] {
        for sessions in [4, 64] {
            let commit = CommitOptions {
                steal_group,
                ..autonomous(16 << 10)
            };
            let options = VirtualOptions {
                sessions,
                ..with(commit)
            };
            rows.push((
                format!("steal group {steal_group}, {sessions} sessions"),
                options,
            ));
        }
    }
    text += &table("Stealing, autonomous, 16 KiB", &rows)?;
    for (model, commit, sessions) in [
        ("nvme", autonomous(4 << 10), 64),
        ("s3express", CommitOptions::default(), 8),
    ] {
        let mut rows = Vec::new();
        for tracking in Tracking::ALL.into_iter().chain([Tracking::LeanStore]) {
            let commit = CommitOptions {
                tracking,
                may_lose: !tracking.is_safe(),
                ..commit
            };
            let options = VirtualOptions {
                model,
                sessions,
                operations: if model == "nvme" { 1 } else { 10 },
                ..with(commit)
            };
            rows.push((tracking.name().to_owned(), options));
        }
        text += &table(
            &format!("Tracking, {}, {model}", commit.protocol.name()),
            &rows,
        )?;
    }
    Ok(text)
}
