//! Comparisons by name, as the papers make them: which cells each of them runs.
//!
//! Every experiment gives its figures beside a yardstick of the same run (a bare append, the naive variant, the other
//! protocols): only ratios of one run mean anything. Models of cloud storage are simulated in real time.
//!
//! Does not: run, or judge, anything.

mod catalog;

use std::path::PathBuf;

use logstead_engine::{CommitOptions, Isolation, ProtocolKind, QueueKind, Tracking};

use crate::options::{
    AppendPath, CommonOptions, Home, Label, RunConfig, RunLimit, Setting, Tpcc, WorkloadKind, Ycsb,
};
use crate::random::Distribution;

/// Seconds that a quick experiment may measure altogether; the rest of its minute is loading and checking.
const QUICK_SECONDS: f64 = 24.0;
/// A quick run is not shorter, nor longer.
const QUICK_RUN_SECONDS: (f64, f64) = (0.3, 2.0);
/// A run that is not quick.
const RUN_SECONDS: f64 = 10.0;
/// Workers on simulated homes, as in the paper.
const SIMULATED_WORKERS: usize = 16;
/// Their sessions: enough to keep every lane in flight, too few to keep the cores of a small machine busy, since
/// latency would then tell of the cores.
const SIMULATED_IN_FLIGHT: usize = 8;
/// The same for TPC-C, whose transactions are larger.
const SIMULATED_IN_FLIGHT_TPCC: usize = 4;

/// How large an experiment is made.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Small tables and short runs.
    pub quick: bool,
    /// Length of each run, if given.
    pub seconds: Option<f64>,
    /// Repetitions.
    pub repeat: u32,
    /// For logs on local disk.
    pub dir: PathBuf,
    /// Determines every random number.
    pub seed: u64,
    /// Real homes that are measured beside the models.
    pub homes: Vec<UserHome>,
}

/// A home that the user wants measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHome {
    /// What the report calls it.
    pub name: String,
    /// Its URL; each run gets a prefix of its own below it.
    pub url: String,
}

impl UserHome {
    /// Reads `URL` or `NAME=URL`; without a name it is called by the URL up to its options.
    pub(crate) fn read(text: &str) -> Result<UserHome, String> {
        let is_name = |name: &&str| !name.is_empty() && !name.contains([':', '/', '?']);
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, url) = named.unwrap_or((text.split('?').next().unwrap_or(text), text));
        if !url.contains("://") {
            return Err(format!("--home {text}: URL or NAME=URL is expected"));
        }
        Ok(UserHome {
            name: name.to_owned(),
            url: url.to_owned(),
        })
    }
}

/// An experiment.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it compares.
    pub about: &'static str,
    cells: fn(&mut Builder),
}

/// All of them, in the order in which `logstead bench experiment` lists them.
pub fn all() -> &'static [Experiment] {
    &catalog::ALL
}

/// The cells of the one with this name.
pub(crate) fn cells(name: &str, scale: &Scale) -> Result<Vec<RunConfig>, String> {
    let Some(experiment) = all().iter().find(|experiment| experiment.name == name) else {
        let names: Vec<&str> = all().iter().map(|experiment| experiment.name).collect();
        return Err(format!("{name}: one of {} is expected", names.join(", ")));
    };
    let mut builder = Builder {
        scale: scale.clone(),
        cells: Vec::new(),
    };
    (experiment.cells)(&mut builder);
    let mut cells = builder.cells;
    if cells.is_empty() {
        return Err(format!("{name} has nothing to run without --home"));
    }
    let seconds = scale.seconds.unwrap_or(if scale.quick {
        let each = QUICK_SECONDS / (cells.len() as f64 * f64::from(scale.repeat));
        each.clamp(QUICK_RUN_SECONDS.0, QUICK_RUN_SECONDS.1)
    } else {
        RUN_SECONDS
    });
    for cell in &mut cells {
        cell.common.until = RunLimit::Seconds {
            measured: seconds,
            warmup: seconds / 5.0,
        };
    }
    Ok(cells)
}

/// The lists of all experiments, for people.
pub fn describe() -> String {
    let widest = all().iter().map(|e| e.name.len()).max().unwrap_or(0);
    all()
        .iter()
        .map(|experiment| format!("{:widest$}  {}\n", experiment.name, experiment.about))
        .collect()
}

/// Collects cells.
struct Builder {
    scale: Scale,
    cells: Vec<RunConfig>,
}

impl Builder {
    /// Of two sizes, the one for this scale.
    fn sized<T>(&self, quick: T, full: T) -> T {
        if self.scale.quick { quick } else { full }
    }

    /// This machine's disk.
    fn local(&self) -> Setting {
        Setting::Home(Home::Local(self.scale.dir.clone()))
    }

    /// A model of a storage service.
    fn simulated(&self, model: &str) -> Setting {
        Setting::Home(Home::Url(format!(
            "sim://?model={model}&seed={}",
            self.scale.seed
        )))
    }

    /// The homes that the user gave.
    fn given(&self) -> Vec<(String, Setting)> {
        let homes = self.scale.homes.iter();
        homes
            .map(|given| {
                let home = Setting::Home(Home::Url(given.url.clone()));
                (given.name.clone(), home)
            })
            .collect()
    }

    /// The model of S3 Express, and the homes that the user gave.
    fn services(&self) -> Vec<(String, Setting)> {
        let mut services = vec![("model s3express".to_owned(), self.simulated("s3express"))];
        services.extend(self.given());
        services
    }

    /// YCSB of one operation per transaction, or more.
    fn ycsb(&self, read_ratio: f64, operations: u32) -> WorkloadKind {
        WorkloadKind::Ycsb(Ycsb {
            table_size: self.sized(100_000, 1_000_000),
            read_ratio,
            read_modify_write: false,
            operations,
            distribution: Distribution::Uniform,
            traced: false,
        })
    }

    fn tpcc_scale(&self, warehouses: u32) -> Tpcc {
        Tpcc {
            warehouses,
            items: self.sized(2_000, 100_000),
            customers: self.sized(100, 3_000),
        }
    }

    fn tpcc(&self, warehouses: u32) -> WorkloadKind {
        WorkloadKind::Tpcc(self.tpcc_scale(warehouses))
    }

    fn tatp(&self) -> WorkloadKind {
        WorkloadKind::Tatp {
            subscribers: self.sized(20_000, 100_000),
        }
    }

    /// A cell; settings later in the lists win.
    fn cell(&mut self, section: &str, series: &str, kind: &WorkloadKind, settings: &[&[Setting]]) {
        let mut common = CommonOptions {
            workers: logstead_env::core_count(),
            instances: 1,
            cross_instance: 0.0,
            // Set when all cells are known.
            until: RunLimit::Transactions(1),
            isolation: Isolation::ReadCommitted,
            home: Home::Memory,
            open_loop: None,
            in_flight: 64,
            commit: CommitOptions::default(),
            delta_records: true,
            seed: self.scale.seed,
        };
        for setting in settings.iter().copied().flatten() {
            setting.apply(&mut common);
        }
        self.cells.push(RunConfig {
            label: Label {
                section: section.to_owned(),
                series: series.to_owned(),
                x: None,
            },
            kind: kind.clone(),
            common,
        });
    }

    /// The same at a place on an axis, which the setting is.
    fn point(
        &mut self,
        section: &str,
        series: &str,
        kind: &WorkloadKind,
        settings: &[&[Setting]],
        x: &Setting,
    ) {
        let mut all = settings.to_vec();
        let own = [x.clone()];
        all.push(&own);
        self.cell(section, series, kind, &all);
        if let Some(cell) = self.cells.last_mut() {
            cell.label.x = x.number().map(|value| (x.name().to_owned(), value));
        }
    }

    /// Bare appends of a size, so many at a time, on the settings' home.
    fn bare(
        &mut self,
        section: &str,
        append: (usize, AppendPath),
        concurrency: usize,
        settings: &[&[Setting]],
    ) {
        self.bare_named(section, "", append, concurrency, settings);
    }

    /// The same, with the home's name in the series.
    fn bare_named(
        &mut self,
        section: &str,
        home: &str,
        (size_bytes, way): (usize, AppendPath),
        concurrency: usize,
        settings: &[&[Setting]],
    ) {
        let name = format!(
            "{home}{}bare append, {}, {}, {concurrency} at a time",
            if home.is_empty() { "" } else { ", " },
            way.name(),
            crate::options::size_text(size_bytes)
        );
        let mut all = settings.to_vec();
        let own = [Setting::Workers(concurrency), Setting::WorkersPerLane(1)];
        all.push(&own);
        self.cell(
            section,
            &name,
            &WorkloadKind::Bare { size_bytes, way },
            &all,
        );
    }
}

/// Each worker a lane of its own, tracking by the horizon, flushes when the buffer is full or time is up, whole rows in
/// the log: what the papers' optimizations are added to.
fn naive() -> Vec<Setting> {
    vec![
        Setting::Protocol(ProtocolKind::GroupedLanes),
        Setting::Queue(QueueKind::LockFree),
        Setting::Tracking(Tracking::Horizon),
        Setting::WorkersPerLane(1),
        Setting::FlushUnit(512 << 10),
        Setting::LaneBuffer(512 << 10),
        Setting::Gather(0),
        Setting::Delta(false),
    ]
}

/// Two workers share a lane of a mebibyte, as the paper has it; records are deltas.
fn shared_lanes(tracking: Tracking) -> Vec<Setting> {
    vec![
        Setting::Protocol(ProtocolKind::GroupedLanes),
        Setting::Tracking(tracking),
        Setting::WorkersPerLane(2),
        Setting::FlushUnit(512 << 10),
        Setting::LaneBuffer(1 << 20),
        // As `CommitOptions::defaults_for` has it for the model of S3 Express.
        Setting::Gather(1_000),
        Setting::Delta(true),
    ]
}

/// Sessions of which each has a lane of its own, and each commit an append: what grouping is compared with.
fn append_each() -> Vec<Setting> {
    vec![
        Setting::Protocol(ProtocolKind::Autonomous),
        Setting::Tracking(Tracking::Horizon),
        Setting::FlushUnit(1),
        Setting::StealGroup(0),
        Setting::WorkersPerLane(1),
        Setting::Gather(0),
        Setting::Delta(false),
        // Last, over the load's.
        Setting::InFlight(1),
    ]
}

/// Workers flush their own log.
fn autonomous(unit: usize) -> Vec<Setting> {
    vec![
        Setting::Protocol(ProtocolKind::Autonomous),
        Setting::FlushUnit(unit),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(quick: bool) -> Scale {
        Scale {
            quick,
            seconds: None,
            repeat: if quick { 1 } else { 3 },
            dir: "d".into(),
            seed: 7,
            homes: ["a=azure://c/p?endpoint=http://127.0.0.1:1", "s3://b/p"]
                .map(|text| UserHome::read(text).expect(text))
                .to_vec(),
        }
    }

    #[test]
    fn homes_have_names() {
        let read = |text| UserHome::read(text).map(|given| (given.name, given.url));
        let pair = |name: &str, url: &str| Ok((name.to_owned(), url.to_owned()));
        assert_eq!(read("x=s3://b?e=f"), pair("x", "s3://b?e=f"));
        assert_eq!(read("s3://b/p?e=f"), pair("s3://b/p", "s3://b/p?e=f"));
        for text in ["", "b", "x=b", "=s3"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_needs_a_home_says_so() {
        let nowhere = Scale {
            homes: Vec::new(),
            ..scale(true)
        };
        assert!(
            cells("overhead", &nowhere)
                .expect_err("no home")
                .contains("--home")
        );
    }

    #[test]
    fn every_experiment_has_distinct_cells_and_fits_a_minute() {
        for experiment in all() {
            for quick in [true, false] {
                let cells = cells(experiment.name, &scale(quick)).expect(experiment.name);
                assert!(cells.len() > 1, "{}", experiment.name);
                let mut labels: Vec<String> =
                    cells.iter().map(|c| format!("{:?}", c.label)).collect();
                labels.sort();
                labels.dedup();
                assert_eq!(labels.len(), cells.len(), "{}", experiment.name);
                let seconds: f64 = cells
                    .iter()
                    .map(|cell| match cell.common.until {
                        RunLimit::Seconds { measured, warmup } => measured + warmup,
                        RunLimit::Transactions(_) => panic!("{}", experiment.name),
                    })
                    .sum();
                assert!(!quick || seconds < 40.0, "{}: {seconds}", experiment.name);
                assert!(cells.iter().all(|cell| cell.common.seed == 7));
            }
        }
        assert!(cells("alchemy", &scale(true)).is_err());
        assert_eq!(describe().lines().count(), all().len());
    }

    #[test]
    fn the_naive_variant_is_naive() {
        let cells = cells("homes", &scale(true)).expect("cells");
        let cell = cells
            .iter()
            .find(|cell| cell.label.series.contains("naive"))
            .expect("is there");
        let commit = &cell.common.commit;
        assert_eq!(commit.tracking, Tracking::Horizon);
        assert_eq!(commit.workers_per_lane, 1);
        assert!(!cell.common.delta_records);
    }
}
