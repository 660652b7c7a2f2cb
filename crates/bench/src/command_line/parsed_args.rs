//! From arguments to values, with errors that name the option.

use std::path::PathBuf;

use clap::ArgMatches;
use logstead_engine::{CommitOptions, Isolation};

use crate::command_line::{BenchCommand, BenchOptions};
use crate::experiment::{self, Scale, UserHome};
use crate::options::{
    AppendPath, CommonOptions, Home, NAMES, RunConfig, RunLimit, Setting, Tpcc, WorkloadKind, Ycsb,
};
use crate::random::Distribution;

/// Sessions per worker when nothing is said.
const IN_FLIGHT: usize = 64;
/// The same in an open loop, where arrivals must find one free.
const IN_FLIGHT_OPEN: usize = 1024;

/// Options given.
pub(super) struct ParsedArgs<'a>(pub(super) &'a ArgMatches);

/// The arguments of `report`.
pub(super) fn report(arguments: &ArgMatches) -> Result<BenchCommand, String> {
    let given = ParsedArgs(arguments);
    let files = arguments
        .get_many::<String>("FILE")
        .into_iter()
        .flatten()
        .map(PathBuf::from)
        .collect();
    Ok(BenchCommand::Report {
        files,
        html: given.path("html").unwrap_or_else(|| "report.html".into()),
    })
}

/// The arguments of `experiment`.
pub(super) fn experiment(arguments: &ArgMatches) -> Result<BenchCommand, String> {
    let given = ParsedArgs(arguments);
    let Some(name) = given.text("NAME") else {
        return Ok(BenchCommand::Experiments);
    };
    let quick = arguments.get_flag("quick");
    let seconds = match given.text("seconds") {
        Some(_) => Some(given.number("seconds", 1.0, 0.01, 1e6)?),
        None => None,
    };
    let scale = Scale {
        quick,
        seconds,
        repeat: given.number("repeat", if quick { 1 } else { 3 }, 1, 1000)?,
        dir: given
            .path("dir")
            .unwrap_or_else(|| "bench/results/logs".into()),
        seed: given.number("seed", 1, 0, u64::MAX)?,
        homes: arguments
            .get_many::<String>("home")
            .into_iter()
            .flatten()
            .map(|text| UserHome::read(text))
            .collect::<Result<_, _>>()?,
    };
    let cells = experiment::cells(name, &scale)?;
    Ok(BenchCommand::Run(BenchOptions {
        name: name.to_owned(),
        cells,
        repeat: scale.repeat,
        json: given.path("json"),
        html: given.path("html"),
        is_experiment: true,
    }))
}

impl ParsedArgs<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        // An option that this workload does not have was not given.
        let value = self.0.try_get_one::<String>(name).ok().flatten();
        value.map(String::as_str)
    }

    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    pub(super) fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &str,
        default: T,
        low: T,
        high: T,
    ) -> Result<T, String> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        text.replace('_', "")
            .parse()
            .ok()
            .filter(|n: &T| *n >= low && *n <= high)
            .ok_or_else(|| format!("--{name} {text}: a number from {low} to {high} is expected"))
    }

    fn distribution(&self) -> Result<Distribution, String> {
        match self.text("distribution").unwrap_or("uniform") {
            "uniform" => Ok(Distribution::Uniform),
            "zipfian" => Ok(Distribution::Zipfian {
                theta: self.number("theta", 0.99, 0.01, 5.0)?,
            }),
            "hotspot" => Ok(Distribution::Hotspot {
                keys: self.number("hot-keys", 0.2, 0.0, 1.0)?,
                accesses: self.number("hot-accesses", 0.8, 0.0, 1.0)?,
            }),
            other => Err(format!(
                "--distribution {other}: uniform, zipfian or hotspot is expected"
            )),
        }
    }

    /// The values of an option that takes several: as often as it was given, or separated by commas.
    fn settings(&self, name: &'static str) -> Result<Vec<Setting>, String> {
        let Ok(Some(values)) = self.0.try_get_many::<String>(name) else {
            return Ok(Vec::new());
        };
        values
            .flat_map(|text| match name {
                // An address may have commas in it.
                "home" => vec![text.as_str()],
                _ => text.split(',').collect(),
            })
            .map(|text| Setting::read(name, text))
            .collect()
    }

    /// What all workloads have, with the first value of each option, and all the values.
    pub(super) fn common(
        &self,
        kind: &WorkloadKind,
    ) -> Result<(CommonOptions, Vec<Vec<Setting>>), String> {
        let until = match self.text("transactions") {
            Some(_) => RunLimit::Transactions(self.number("transactions", 1, 1, u64::MAX)?),
            None => RunLimit::Seconds {
                measured: self.number("seconds", 10.0, 0.01, 1e6)?,
                warmup: self.number("warmup", 1.0, 0.0, 1e6)?,
            },
        };
        let dimensions: Vec<Vec<Setting>> = NAMES
            .into_iter()
            .map(|name| self.settings(name))
            .collect::<Result<_, _>>()?;
        let open_loop = dimensions[0].first().and_then(Setting::number);
        if open_loop.is_some() && matches!(until, RunLimit::Transactions(_)) {
            return Err("--open-loop goes with --seconds, not with --transactions".into());
        }
        let is_whole = !matches!(kind, WorkloadKind::Micro { .. } | WorkloadKind::Bare { .. });
        if !is_whole && open_loop.is_some() {
            return Err(format!(
                "--open-loop: {} measures single operations, one after the other",
                kind.name()
            ));
        }
        let mut common = CommonOptions {
            workers: logstead_env::core_count(),
            instances: 1,
            cross_instance: 0.0,
            until,
            isolation: Isolation::ReadCommitted,
            home: Home::Discarded,
            open_loop: None,
            in_flight: match open_loop {
                Some(_) => IN_FLIGHT_OPEN,
                None => IN_FLIGHT,
            },
            commit: CommitOptions::default(),
            delta_records: true,
            seed: self.number("seed", 1, 0, u64::MAX)?,
        };
        for setting in dimensions.iter().filter_map(|d| d.first()) {
            setting.apply(&mut common);
        }
        Ok((common, dimensions))
    }

    fn ycsb(&self) -> Result<Ycsb, String> {
        let (mut read_ratio, mut read_modify_write) = match self
            .text("mix")
            .unwrap_or("A")
            .to_ascii_uppercase()
            .as_str()
        {
            "A" => (0.5, false),
            "B" => (0.95, false),
            "C" => (1.0, false),
            "F" => (0.5, true),
            other => return Err(format!("--mix {other}: A, B, C or F is expected")),
        };
        if self.text("read-ratio").is_some() {
            read_ratio = self.number("read-ratio", 0.5, 0.0, 1.0)?;
        }
        read_modify_write |= self.0.get_flag("rmw");
        Ok(Ycsb {
            table_size: self.number("table-size", 1_000_000, 1, 1 << 40)?,
            read_ratio,
            read_modify_write,
            operations: self.number("ops", 1, 1, 100_000)?,
            distribution: self.distribution()?,
            traced: self.0.get_flag("trace-waits"),
        })
    }

    /// TPC-C's scale; as many warehouses as workers unless something is said.
    fn tpcc(&self) -> Result<Tpcc, String> {
        let workers = self.settings("workers")?;
        let most = workers
            .iter()
            .filter_map(Setting::number)
            .fold(0.0, f64::max) as u32;
        let default = match most {
            0 => logstead_env::core_count() as u32,
            n => n,
        };
        Ok(Tpcc {
            warehouses: self.number("warehouses", default, 1, 1 << 20)?,
            items: self.number("items", 100_000, 100, 1 << 24)?,
            customers: self.number("customers", 3000, 10, 1 << 20)?,
        })
    }

    /// The workload; several of them only for `bare`, of several sizes.
    pub(super) fn kinds(&self, name: &str) -> Result<Vec<WorkloadKind>, String> {
        Ok(vec![match name {
            "ycsb" => WorkloadKind::Ycsb(self.ycsb()?),
            "tpcc" => WorkloadKind::Tpcc(self.tpcc()?),
            "tatp" => WorkloadKind::Tatp {
                subscribers: self.number("subscribers", 100_000, 1, 1 << 30)?,
            },
            "smallbank" => WorkloadKind::SmallBank {
                accounts: self.number("accounts", 1_000_000, 2, 1 << 40)?,
                distribution: self.distribution()?,
            },
            "mixed" => WorkloadKind::Mixed {
                tpcc_workers: self.number("tpcc-workers", 1, 1, 1 << 16)?,
                tpcc: self.tpcc()?,
                ycsb: self.ycsb()?,
            },
            "micro" => WorkloadKind::Micro {
                rows: self.number("table-size", 1_000_000, 1000, 1 << 40)?,
            },
            "load" => WorkloadKind::Load {
                rows: self.number("rows", 1_000_000, 1, 1 << 40)?,
            },
            "recovery" => WorkloadKind::Recovery {
                ycsb: self.ycsb()?,
                tail: self.number("tail", 100_000, 1, u64::MAX)?,
            },
            "bare" => return self.bare(),
            other => return Err(format!("unknown workload {other}")),
        }])
    }

    fn bare(&self) -> Result<Vec<WorkloadKind>, String> {
        let mut kinds = Vec::new();
        for way in self.text("way").unwrap_or("file").split(',') {
            let way = [
                AppendPath::File,
                AppendPath::Inline,
                AppendPath::Handoff,
                AppendPath::Client,
                AppendPath::Quorum,
            ]
            .into_iter()
            .find(|known| known.name() == way.trim())
            .ok_or_else(|| {
                format!("--way {way}: file, inline, handoff, client or quorum is expected")
            })?;
            for size in self.text("size").unwrap_or("4k").split(',') {
                let size_bytes = crate::options::size("size", size, 1, 64 << 20)?;
                kinds.push(WorkloadKind::Bare { size_bytes, way });
            }
        }
        Ok(kinds)
    }

    /// What depends on both the workload and what all have.
    pub(super) fn fit(&self, cell: &mut RunConfig, several: bool) -> Result<(), String> {
        let CommonOptions {
            workers, instances, ..
        } = cell.common;
        if instances > workers {
            return Err(format!(
                "--instances {instances}: each has a worker at least, and there are {workers}; see --workers"
            ));
        }
        let is_divided = matches!(
            cell.kind,
            WorkloadKind::Ycsb(_)
                | WorkloadKind::Tpcc(_)
                | WorkloadKind::SmallBank { .. }
                | WorkloadKind::Mixed { .. }
        );
        if instances > 1 && !is_divided {
            return Err(format!(
                "--instances {instances}: {} has no divided tables",
                cell.kind.name()
            ));
        }
        match &cell.kind {
            WorkloadKind::Bare { size_bytes, way } => {
                if cell.common.home == Home::Discarded {
                    return Err("--home none: a bare append needs a home".into());
                }
                if several || cell.label.series == "bare" {
                    let name =
                        format!("{}, {}", way.name(), crate::options::size_text(*size_bytes));
                    cell.label.series = match cell.label.series.as_str() {
                        "bare" => name,
                        other => format!("{name}, {other}"),
                    };
                }
            }
            WorkloadKind::Mixed { ycsb, .. } | WorkloadKind::Recovery { ycsb, .. }
                if ycsb.traced =>
            {
                return Err("--trace-waits goes with ycsb alone".into());
            }
            WorkloadKind::Mixed { tpcc_workers, .. } if *tpcc_workers >= cell.common.workers => {
                return Err(format!(
                    "--tpcc-workers {tpcc_workers}: of {} workers at least one is left for YCSB; see --workers",
                    cell.common.workers
                ));
            }
            _ => {}
        }
        Ok(())
    }
}
