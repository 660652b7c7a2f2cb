//! `logstead bench`: runs a workload on the engine inside this process.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::ArgMatches;
use logstead_bench::{Bar, BenchCommand, BenchError, Results};
use logstead_env::Env;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a run that was ended with Ctrl-C, as shells expect it.
const EXIT_INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let request = match BenchCommand::read(arguments) {
        Ok(request) => request,
        Err(error) => return fail(EXIT_USAGE, &error),
    };
    let env = Env::real();
    let options = match request {
        BenchCommand::Run(options) => options,
        BenchCommand::Experiments => {
            // As below, of a pipe.
            let list = logstead_bench::experiment::describe();
            let _pipe_may_be_closed = std::io::stdout().write_all(list.as_bytes());
            return ExitCode::SUCCESS;
        }
        BenchCommand::Report { files, html } => {
            return match logstead_bench::report_files(&files, &html, &env) {
                Ok(said) => {
                    // As below, of a pipe.
                    let _pipe_may_be_closed = writeln!(std::io::stdout(), "{said}");
                    ExitCode::SUCCESS
                }
                Err(error) => fail(EXIT_FAILURE, &error.to_string()),
            };
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    if let Err(error) = stop_on_interrupt(&env, &stop) {
        return fail(EXIT_FAILURE, &format!("cannot listen for Ctrl-C: {error}"));
    }
    let results = match logstead_bench::run(&options, &env, &stop, &mut Bar::new()) {
        Ok(results) => results,
        Err(error @ BenchError::NotEmpty(_)) => return fail(EXIT_USAGE, &error.to_string()),
        Err(error @ BenchError::Interrupted) => return fail(EXIT_INTERRUPTED, &error.to_string()),
        Err(error) => return fail(EXIT_FAILURE, &error.to_string()),
    };
    // A reader that closed the pipe has read enough; the files are written all the same.
    let _pipe_may_be_closed = std::io::stdout().write_all(results.text().as_bytes());
    if let Err(error) = results.write_files(&env) {
        return fail(EXIT_FAILURE, &error.to_string());
    }
    ended(&results)
}

fn ended(results: &Results) -> ExitCode {
    match results.broken().count() {
        0 if results.interrupted() => ExitCode::from(EXIT_INTERRUPTED),
        0 => ExitCode::SUCCESS,
        n => fail(
            EXIT_FAILURE,
            &format!("{n} conditions do not hold: the engine has lost or made up data"),
        ),
    }
}

/// The first Ctrl-C ends the run early; a second one ends the process.
fn stop_on_interrupt(env: &Env, stop: &Arc<AtomicBool>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stop = Arc::clone(stop);
    // The signal is taken over before the run begins, not whenever the thread comes to it.
    let mut interrupt = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
    };
    env.spawn("interrupt", None, move || {
        runtime.block_on(async {
            interrupt.recv().await;
            stop.store(true, Ordering::Relaxed);
            interrupt.recv().await;
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        });
    })?;
    Ok(())
}
