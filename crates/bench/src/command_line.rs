//! The command line of `logstead bench`, and what it means.
//!
//! A command is a list of [`RunConfig`]s, each one run's whole configuration, and how often each is repeated. An option
//! that was given several values multiplies the cells.
//!
//! Invariant: a [`BenchOptions`] is valid; what is not is refused here, naming the option.
//!
//! Does not: say what a run is made of (`options`) or which runs an experiment has (`experiment`).

mod cli;
mod parsed_args;

use crate::options::{RunConfig, combine};
use clap::ArgMatches;
use parsed_args::ParsedArgs;
use std::path::PathBuf;

pub use cli::command;

/// A whole command.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The workload, or the experiment.
    pub name: String,
    /// What is run.
    pub cells: Vec<RunConfig>,
    /// How often each is run; repetitions go through all cells in turn.
    pub repeat: u32,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where the HTML goes.
    pub html: Option<PathBuf>,
    /// Its logs in directories are removed when their run has ended, and its runs are shown side by side only.
    pub is_experiment: bool,
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum BenchCommand {
    /// Runs.
    Run(BenchOptions),
    /// A report of runs made before.
    Report {
        /// Their results.
        files: Vec<PathBuf>,
        /// Where the report goes.
        html: PathBuf,
    },
    /// The names of the experiments.
    Experiments,
}

impl BenchOptions {
    /// Reads the arguments of a workload of `bench`.
    pub fn read(arguments: &ArgMatches) -> Result<BenchOptions, String> {
        match BenchCommand::read(arguments)? {
            BenchCommand::Run(options) => Ok(options),
            BenchCommand::Report { .. } | BenchCommand::Experiments => Err("nothing to run".into()),
        }
    }
}

impl BenchCommand {
    /// Reads the arguments of `bench`.
    pub fn read(arguments: &ArgMatches) -> Result<BenchCommand, String> {
        let Some((name, arguments)) = arguments.subcommand() else {
            return Err("which workload? try `logstead bench --help`".into());
        };
        match name {
            "report" => return parsed_args::report(arguments),
            "experiment" => return parsed_args::experiment(arguments),
            _ => {}
        }
        let given = ParsedArgs(arguments);
        let kinds = given.kinds(name)?;
        let (base, dimensions) = given.common(&kinds[0])?;
        let mut cells = Vec::new();
        for kind in &kinds {
            cells.extend(combine(name, kind, &base, &dimensions));
        }
        for cell in &mut cells {
            given.fit(cell, kinds.len() > 1)?;
        }
        Ok(BenchCommand::Run(BenchOptions {
            name: name.to_owned(),
            cells,
            repeat: given.number("repeat", 1, 1, 1000)?,
            json: given.path("json"),
            html: given.path("html"),
            is_experiment: false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Home, WorkloadKind};

    fn read(line: &str) -> Result<BenchOptions, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let matches = command()
            .try_get_matches_from(words)
            .map_err(|error| error.to_string())?;
        BenchOptions::read(&matches)
    }

    #[test]
    fn defaults_are_valid() {
        for name in [
            "ycsb",
            "tpcc",
            "tatp",
            "smallbank",
            "mixed",
            "micro",
            "load",
        ] {
            let options = read(name).expect(name);
            assert_eq!(options.cells.len(), 1);
            assert_eq!(options.cells[0].kind.name(), name);
            assert_eq!(options.cells[0].common.home, Home::Discarded);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("ycsb --mix Z", "--mix Z"),
            ("ycsb --mix A --read-ratio 0.5", "--read-ratio"),
            ("ycsb --read-ratio 1.5", "--read-ratio 1.5"),
            ("ycsb --workers 0", "--workers 0"),
            ("ycsb --workers 1,x", "--workers x"),
            ("ycsb --isolation dirty", "--isolation dirty"),
            ("ycsb --log disk", "--home disk"),
            ("ycsb --home local:", "--home local:"),
            ("ycsb --flush-unit 4x", "--flush-unit 4x"),
            ("ycsb --protocol gossip", "--protocol gossip"),
            ("ycsb --tracking none", "--tracking none"),
            ("ycsb --queue long", "--queue long"),
            ("ycsb --workers 2 --instances 3", "--instances 3"),
            ("tatp --workers 2 --instances 2", "--instances 2"),
            ("ycsb --cross-instance 2", "--cross-instance 2"),
            ("ycsb --delta maybe", "--delta maybe"),
            ("ycsb --lane-buffer 1k", "--lane-buffer 1k"),
            ("ycsb --repeat 0", "--repeat 0"),
            ("ycsb --distribution pareto", "--distribution pareto"),
            ("ycsb --seconds -1", "--seconds -1"),
            ("ycsb --seconds NaN", "--seconds NaN"),
            ("ycsb --transactions 5 --seconds 1", "--seconds"),
            ("ycsb --transactions 5 --open-loop 10", "--open-loop"),
            ("micro --open-loop 10", "--open-loop"),
            ("bare --open-loop 10", "--open-loop"),
            ("bare --way carrier-pigeon", "--way carrier-pigeon"),
            ("bare --home none", "--home none"),
            ("tpcc --warehouses 0", "--warehouses 0"),
            ("tatp --subscribers many", "--subscribers many"),
            ("mixed --workers 1", "--tpcc-workers"),
            ("recovery --trace-waits", "--trace-waits"),
            ("report", "FILE"),
            ("experiment alchemy", "alchemy"),
            ("experiment protocols --repeat 0", "--repeat 0"),
            ("chess", "chess"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn mixes_mean_what_ycsb_says() {
        let ycsb = |line: &str| match &read(line).expect(line).cells[0].kind {
            WorkloadKind::Ycsb(ycsb) => (ycsb.read_ratio, ycsb.read_modify_write),
            other => panic!("{other:?}"),
        };
        assert_eq!(ycsb("ycsb"), (0.5, false));
        assert_eq!(ycsb("ycsb --mix b"), (0.95, false));
        assert_eq!(ycsb("ycsb --mix F"), (0.5, true));
        assert_eq!(ycsb("ycsb --read-ratio 0.8 --rmw"), (0.8, true));
    }

    #[test]
    fn several_values_make_every_combination() {
        let options = read(
            "ycsb --workers 1,2,4 --flush-unit 4k,16k --isolation read-committed,serializable --repeat 3",
        )
        .expect("reads");
        assert_eq!(options.repeat, 3);
        assert_eq!(options.cells.len(), 12);
        let labels: Vec<(String, f64)> = options
            .cells
            .iter()
            .map(|cell| {
                let (axis, value) = cell.label.x.clone().expect("an axis");
                assert_eq!(axis, "workers");
                assert_eq!(value, cell.common.workers as f64);
                (cell.label.series.clone(), value)
            })
            .collect();
        assert_eq!(
            labels[1],
            ("flush-unit 4 KiB, isolation serializable".into(), 1.0)
        );
        let mut unique = labels.clone();
        unique.dedup();
        assert_eq!(unique.len(), 12, "{labels:?}");
    }

    #[test]
    fn homes_are_told_apart() {
        let home = |text: &str| {
            read(&format!("ycsb --home {text}")).expect(text).cells[0]
                .common
                .home
                .clone()
        };
        assert_eq!(home("local:a"), Home::Local("a".into()));
        assert_eq!(home("/a/b"), Home::Local("/a/b".into()));
        assert_eq!(home("file:///a"), Home::Local("/a".into()));
        assert_eq!(
            home("file:///dev/loop0"),
            Home::Url("file:///dev/loop0".into())
        );
        assert_eq!(
            home("sim://?model=gp3"),
            Home::Url("sim://?model=gp3".into())
        );
        assert_eq!(home("memory:"), Home::Memory);
        let two = read("ycsb --home memory --home sim://?model=gp3,io2").expect("reads");
        assert_eq!(two.cells[1].label.series, "home sim://?model=gp3,io2");
    }

    #[test]
    fn one_value_is_no_axis() {
        let options = read("tpcc --workers 4").expect("reads");
        assert_eq!(options.cells[0].label.x, None);
        assert_eq!(options.cells[0].label.series, "tpcc");
        match options.cells[0].kind {
            WorkloadKind::Tpcc(scale) => assert_eq!(scale.warehouses, 4),
            ref other => panic!("{other:?}"),
        }
    }
}
