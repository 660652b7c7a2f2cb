//! `logstead log`: reads a log offline.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::ArgMatches;
use logstead_env::Env;
use logstead_wal::inspect;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let env = Env::real();
    let Some((command, arguments)) = arguments.subcommand() else {
        return ExitCode::from(EXIT_USAGE);
    };
    let Some(url) = arguments.get_one::<String>("URL") else {
        return ExitCode::from(EXIT_USAGE);
    };
    match command {
        "verify" => match inspect::verify(url, &env) {
            Ok(report) => {
                // A reader that closed the pipe has read enough.
                let _pipe_may_be_closed = std::io::stdout().write_all(verified(&report).as_bytes());
                ExitCode::SUCCESS
            }
            Err(error) => fail(EXIT_FAILURE, &error.to_string()),
        },
        _ => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let dumped = inspect::dump(url, &env, &mut out);
            let flushed = out.flush();
            match dumped {
                Err(inspect::InspectError::Output(error))
                    if error.kind() == std::io::ErrorKind::BrokenPipe =>
                {
                    ExitCode::SUCCESS
                }
                Err(error) => fail(EXIT_FAILURE, &error.to_string()),
                Ok(()) => match flushed {
                    Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                        fail(EXIT_FAILURE, &format!("cannot write: {error}"))
                    }
                    _ => ExitCode::SUCCESS,
                },
            }
        }
    }
}

/// What a good log holds, in words.
pub(crate) fn verified(found: &inspect::LogReport) -> String {
    let report = &found.report;
    let mut text = format!(
        "the log is good: {} entries, {} records, {} bytes; the next CSN is {}\n",
        report.entries, found.records, report.bytes, found.next_csn
    );
    if report.checkpoint.get() > 0 {
        text += &format!(
            "it begins at a checkpoint: what survived below CSN {} is not in it, nor counted\n",
            report.checkpoint
        );
    }
    if report.entries_dropped > 0 {
        let when = if found.in_use {
            "not yet acknowledged at that moment"
        } else {
            "never acknowledged"
        };
        text += &format!(
            "{} entries at the ends were {when} and do not count\n",
            report.entries_dropped
        );
    }
    if found.is_copy {
        text += "this is one of several copies: the others may have more\n";
    }
    if found.in_use {
        text += &format!(
            "a server may be at work there: this is one moment of its log, up to CSN {}; what it wrote later is not counted\n",
            found.moment
        );
    }
    for lane in &report.lanes {
        let blocks = match lane.first_block {
            0 => format!("{} blocks", lane.blocks),
            first => format!("blocks {first} to {}, not included", lane.blocks),
        };
        text += &format!(
            "epoch {} lane {}: {blocks}, ends at byte {} of segment {}\n",
            lane.epoch, lane.lane, lane.end.offset, lane.end.segment
        );
    }
    text
}
