//! The experiments.

use logstead_engine::{AckTiming, ForceCommit, ProtocolKind, QueueKind, Tracking};

use super::{
    Builder, Experiment, SIMULATED_IN_FLIGHT, SIMULATED_IN_FLIGHT_TPCC, SIMULATED_WORKERS,
    append_each, autonomous, naive, shared_lanes,
};
use crate::options::{AppendPath, Setting, WorkloadKind, Ycsb};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

pub(super) const ALL: [Experiment; 21] = [
    Experiment {
        name: "bare",
        about: "one append with nothing around it, on this disk and on the models: the yardstick",
        cells: bare,
    },
    Experiment {
        name: "commit",
        about: "one to four clients' commits on this disk beside bare writes at the same concurrency",
        cells: commit,
    },
    Experiment {
        name: "protocols",
        about: "group, pipelined with both queues, autonomous, grouped lanes; YCSB-A, TPC-C, TATP on this disk",
        cells: protocols,
    },
    Experiment {
        name: "open-loop",
        about: "latency at rising offered load, by protocol",
        cells: open_loop,
    },
    Experiment {
        name: "ablation-a",
        about: "from flush pipelining to autonomous commit, step by step",
        cells: ablation_a,
    },
    Experiment {
        name: "flush-unit",
        about: "flush units of 4 to 128 KiB",
        cells: flush_unit,
    },
    Experiment {
        name: "ack-group",
        about: "autonomous commit with acknowledgment groups of 1 to 8 workers",
        cells: ack_group,
    },
    Experiment {
        name: "acknowledge",
        about: "autonomous commit that acknowledges when a block has hardened, and by dice as in the paper",
        cells: acknowledge,
    },
    Experiment {
        name: "force-commit",
        about: "autonomous commit whose idle workers flush at once, and with a probability as in the paper, by sessions",
        cells: force_commit,
    },
    Experiment {
        name: "workers",
        about: "1 to 64 workers, by protocol",
        cells: workers,
    },
    Experiment {
        name: "homes",
        about: "models of S3 Standard, S3 Express, gp3 and io2, and homes given: naive, shared lanes with dsn, with exact",
        cells: homes,
    },
    Experiment {
        name: "overhead",
        about: "homes given: appends by the client library alone, and through the home",
        cells: overhead,
    },
    Experiment {
        name: "cost",
        about: "requests and dollars per million transactions by protocol, on the model of S3 Express and homes given",
        cells: cost,
    },
    Experiment {
        name: "sharing",
        about: "1, 2, 4 workers per lane and buffers of 128 KiB to 4 MiB, TPC-C on the model of S3 Express and homes given",
        cells: sharing,
    },
    Experiment {
        name: "gather",
        about: "how long a lane waits for the workers that its last flush has set free, on the model of S3 Express",
        cells: gather,
    },
    Experiment {
        name: "ablation-b",
        about: "from the naive variant to exact tracking on the model of S3 Express and homes given, step by step",
        cells: ablation_b,
    },
    Experiment {
        name: "tracking",
        about: "horizon, leanstore (unsafe), gsn, dsn, exact with everything else alike, on this disk and on the model of S3 Express",
        cells: tracking,
    },
    Experiment {
        name: "false-waits",
        about: "how long commits waited for nothing, by tracking, judged afterwards by the dependency graph of what was read",
        cells: false_waits,
    },
    Experiment {
        name: "delta",
        about: "bytes of log with deltas and with whole rows, TPC-C, YCSB and TATP",
        cells: delta,
    },
    Experiment {
        name: "mixed",
        about: "what YCSB suffers from TPC-C on other workers, by tracking",
        cells: mixed,
    },
    Experiment {
        name: "recovery",
        about: "time to the first query and to full speed, by size of the data and of the log's tail",
        cells: recovery,
    },
];

/// A baseline's settings.
fn protocol(kind: ProtocolKind, queue: QueueKind) -> Vec<Setting> {
    vec![Setting::Protocol(kind), Setting::Queue(queue)]
}

/// The protocols as the papers compare them.
fn variants() -> Vec<(&'static str, Vec<Setting>)> {
    vec![
        ("group", protocol(ProtocolKind::Group, QueueKind::Latched)),
        (
            "pipelined, latched queue",
            protocol(ProtocolKind::Pipelined, QueueKind::Latched),
        ),
        (
            "pipelined",
            protocol(ProtocolKind::Pipelined, QueueKind::LockFree),
        ),
        ("autonomous, 4 KiB", autonomous(4 * KIB)),
        ("autonomous, 16 KiB", autonomous(16 * KIB)),
        (
            "grouped lanes",
            protocol(ProtocolKind::GroupedLanes, QueueKind::LockFree),
        ),
    ]
}

/// The same without the queue's baseline.
fn variants_lock_free() -> Vec<(&'static str, Vec<Setting>)> {
    let mut variants = variants();
    variants.retain(|(name, _)| !name.contains("latched"));
    variants
}

fn bare(b: &mut Builder) {
    let local = [b.local()];
    for way in [AppendPath::File, AppendPath::Inline, AppendPath::Handoff] {
        for size in [4 * KIB, 16 * KIB, 64 * KIB] {
            for concurrency in [1, 4] {
                b.bare("this disk", (size, way), concurrency, &[&local]);
            }
        }
    }
    for model in ["s3standard", "s3express", "gp3", "io2", "nvme"] {
        let home = [b.simulated(model)];
        let section = format!("model {model}");
        for (size, concurrency) in [(4 * KIB, 1), (16 * KIB, SIMULATED_WORKERS)] {
            b.bare(&section, (size, AppendPath::Handoff), concurrency, &[&home]);
        }
    }
}

fn commit(b: &mut Builder) {
    let local = [b.local()];
    let updates = b.ycsb(0.0, 1);
    for workers in [1, 2, 4] {
        let section = format!("{workers} at a time");
        b.bare(&section, (4 * KIB, AppendPath::File), workers, &[&local]);
        b.bare(&section, (4 * KIB, AppendPath::Inline), workers, &[&local]);
        let load = [Setting::Workers(workers), Setting::InFlight(1)];
        for (series, settings) in variants_lock_free() {
            b.cell(&section, series, &updates, &[&local, &settings, &load]);
        }
    }
}

fn protocols(b: &mut Builder) {
    let local = [b.local()];
    let cores = logstead_env::core_count() as u32;
    for (section, kind) in [
        ("YCSB-A", b.ycsb(0.5, 1)),
        ("TPC-C", b.tpcc(cores)),
        ("TATP", b.tatp()),
    ] {
        for (series, settings) in variants() {
            b.cell(section, series, &kind, &[&local, &settings]);
        }
    }
}

fn open_loop(b: &mut Builder) {
    let local = [b.local(), Setting::InFlight(1024)];
    let kind = b.ycsb(0.5, 1);
    let loads: &[f64] = b.sized(
        &[2e3, 10e3, 50e3, 100e3],
        &[2e3, 5e3, 10e3, 20e3, 50e3, 100e3, 150e3, 200e3, 300e3],
    );
    for (series, settings) in variants_lock_free() {
        for load in loads {
            let x = Setting::OpenLoop(*load);
            b.point("YCSB-A", series, &kind, &[&local, &settings], &x);
        }
    }
}

fn ablation_a(b: &mut Builder) {
    let local = [b.local()];
    // More workers than cores, so that there is somebody to rob.
    let workers = logstead_env::core_count() + 2;
    let own = |ack_group, steal_group| {
        let mut settings = autonomous(16 * KIB);
        settings.push(Setting::AckGroup(ack_group));
        settings.push(Setting::StealGroup(steal_group));
        settings
    };
    let steps = [
        (
            "1 flush pipelining, latched queue",
            protocol(ProtocolKind::Pipelined, QueueKind::Latched),
        ),
        (
            "2 + lock-free queue",
            protocol(ProtocolKind::Pipelined, QueueKind::LockFree),
        ),
        (
            "3 + autonomous flush, each acknowledges all",
            own(workers, 0),
        ),
        ("4 + acknowledgment in groups of two", own(2, 0)),
        ("5 + stealing", own(2, 8)),
    ];
    for (section, kind) in [
        ("YCSB-A", b.ycsb(0.5, 1)),
        ("TPC-C", b.tpcc(workers as u32)),
    ] {
        for (series, settings) in &steps {
            let load = [Setting::Workers(workers)];
            b.cell(section, series, &kind, &[&local, settings, &load]);
        }
    }
}

fn flush_unit(b: &mut Builder) {
    let local = [b.local()];
    let cores = logstead_env::core_count() as u32;
    for (section, kind) in [("YCSB-A", b.ycsb(0.5, 1)), ("TPC-C", b.tpcc(cores))] {
        for (series, settings) in [
            ("autonomous", autonomous(4 * KIB)),
            (
                "grouped lanes",
                protocol(ProtocolKind::GroupedLanes, QueueKind::LockFree),
            ),
        ] {
            for unit in [4, 8, 16, 32, 64, 128] {
                let x = Setting::FlushUnit(unit * KIB);
                b.point(section, series, &kind, &[&local, &settings], &x);
            }
        }
    }
}

fn ack_group(b: &mut Builder) {
    let local = [b.local(), Setting::Workers(8)];
    for (section, kind) in [("YCSB-A", b.ycsb(0.5, 1)), ("TPC-C", b.tpcc(8))] {
        for (series, unit) in [
            ("autonomous, 4 KiB", 4 * KIB),
            ("autonomous, 16 KiB", 16 * KIB),
        ] {
            for group in [1, 2, 4, 8] {
                let x = Setting::AckGroup(group);
                b.point(section, series, &kind, &[&local, &autonomous(unit)], &x);
            }
        }
    }
}

fn acknowledge(b: &mut Builder) {
    let kind = b.ycsb(0.5, 1);
    let homes = [
        ("this disk", b.local()),
        ("model nvme", b.simulated("nvme")),
    ];
    for (place, home) in homes {
        for workers in [1, 4].map(|each| each * logstead_env::core_count()) {
            for when in AckTiming::ALL {
                let own = [
                    home.clone(),
                    Setting::Workers(workers),
                    Setting::AckTiming(when),
                ];
                let section = format!("YCSB-A, {place}, {workers} workers");
                let settings: [&[Setting]; 2] = [&own, &autonomous(4 * KIB)];
                b.cell(&section, when.name(), &kind, &settings);
            }
        }
    }
}

fn force_commit(b: &mut Builder) {
    let kind = b.ycsb(0.5, 1);
    let homes = [
        ("this disk", b.local()),
        ("model nvme", b.simulated("nvme")),
    ];
    for (place, home) in homes {
        for when in ForceCommit::ALL {
            for sessions in [1, 4, 16, 64] {
                let own = [home.clone(), Setting::ForceCommit(when)];
                let x = Setting::InFlight(sessions);
                let settings: [&[Setting]; 2] = [&own, &autonomous(4 * KIB)];
                let section = format!("YCSB-A, {place}");
                b.point(&section, when.name(), &kind, &settings, &x);
            }
        }
    }
}

fn workers(b: &mut Builder) {
    let local = [b.local()];
    let kind = b.ycsb(0.5, 1);
    let counts: &[usize] = b.sized(&[1, 2, 8, 32], &[1, 2, 4, 8, 16, 32, 64]);
    for (series, settings) in variants_lock_free() {
        for count in counts {
            // As many sessions at each number, so that only the workers differ.
            let load = [Setting::InFlight((256 / count).max(1))];
            let x = Setting::Workers(*count);
            b.point("YCSB-A", series, &kind, &[&local, &settings, &load], &x);
        }
    }
}

/// What every experiment on a model has.
fn simulated_load(kind: &WorkloadKind) -> Vec<Setting> {
    let in_flight = match kind {
        WorkloadKind::Tpcc(_) | WorkloadKind::Mixed { .. } => SIMULATED_IN_FLIGHT_TPCC,
        _ => SIMULATED_IN_FLIGHT,
    };
    vec![
        Setting::Workers(SIMULATED_WORKERS),
        Setting::InFlight(in_flight),
    ]
}

fn homes(b: &mut Builder) {
    for (section, kind) in [
        ("YCSB-A, 10 operations", b.ycsb(0.5, 10)),
        ("YCSB-B, 10 operations", b.ycsb(0.95, 10)),
    ] {
        let load = simulated_load(&kind);
        let mut own_lanes = shared_lanes(Tracking::Dsn);
        own_lanes.push(Setting::WorkersPerLane(1));
        for (series, model, settings) in [
            ("s3standard, dsn", "s3standard", own_lanes),
            ("gp3, naive", "gp3", naive()),
            ("io2, naive", "io2", naive()),
            ("s3express, naive", "s3express", naive()),
            (
                "s3express, shared lanes, dsn",
                "s3express",
                shared_lanes(Tracking::Dsn),
            ),
            (
                "s3express, shared lanes, exact",
                "s3express",
                shared_lanes(Tracking::Exact),
            ),
        ] {
            let home = [b.simulated(model)];
            b.cell(section, series, &kind, &[&home, &settings, &load]);
        }
        let home = [b.simulated("s3express")];
        let append = (16 * KIB, AppendPath::Handoff);
        b.bare(section, append, SIMULATED_WORKERS, &[&home]);
        for (name, home) in b.given() {
            let home = [home];
            for (series, settings) in [
                ("naive", naive()),
                ("shared lanes, dsn", shared_lanes(Tracking::Dsn)),
                ("shared lanes, exact", shared_lanes(Tracking::Exact)),
            ] {
                let series = format!("{name}, {series}");
                b.cell(section, &series, &kind, &[&home, &settings, &load]);
            }
            b.bare_named(section, &name, append, SIMULATED_WORKERS, &[&home]);
        }
    }
}

fn overhead(b: &mut Builder) {
    for (name, home) in b.given() {
        let home = [home];
        for (size, concurrency) in [(4 * KIB, 1), (64 * KIB, 1), (16 * KIB, SIMULATED_WORKERS)] {
            for way in [AppendPath::Client, AppendPath::Handoff] {
                b.bare(&name, (size, way), concurrency, &[&home]);
            }
        }
    }
}

fn cost(b: &mut Builder) {
    let kind = b.ycsb(0.5, 10);
    let load = simulated_load(&kind);
    let variants = [
        ("append for each transaction", append_each()),
        ("naive", naive()),
        ("group", protocol(ProtocolKind::Group, QueueKind::LockFree)),
        (
            "pipelined",
            protocol(ProtocolKind::Pipelined, QueueKind::LockFree),
        ),
        ("autonomous, 16 KiB", autonomous(16 * KIB)),
        ("grouped lanes", shared_lanes(Tracking::Exact)),
    ];
    for (name, home) in b.services() {
        let home = [home];
        let section = format!("YCSB-A, 10 operations, {name}");
        for (series, settings) in &variants {
            b.cell(&section, series, &kind, &[&home, &load, settings]);
        }
    }
}

fn sharing(b: &mut Builder) {
    let kind = b.tpcc(b.sized(4, 16));
    let load = simulated_load(&kind);
    for (name, home) in b.services() {
        let home = [home];
        let is_model = name.starts_with("model");
        let buffers: &[usize] = if is_model || !b.scale.quick {
            &[128 * KIB, 512 * KIB, MIB, 4 * MIB]
        } else {
            &[128 * KIB, MIB]
        };
        for per_lane in [1, 2, 4] {
            for &buffer in buffers {
                let own = [
                    Setting::WorkersPerLane(per_lane),
                    Setting::FlushUnit(buffer / 2),
                ];
                b.point(
                    &format!("TPC-C, {name}"),
                    &format!("{per_lane} workers per lane"),
                    &kind,
                    &[&home, &shared_lanes(Tracking::Exact), &load, &own],
                    &Setting::LaneBuffer(buffer),
                );
            }
        }
    }
}

fn gather(b: &mut Builder) {
    let kind = b.ycsb(0.5, 10);
    let load = simulated_load(&kind);
    let home = [b.simulated("s3express")];
    let section = "YCSB-A, 10 operations, s3express";
    for per_lane in [1, 2] {
        for micros in [0, 200, 500, 1_000, 2_000] {
            let own = [Setting::WorkersPerLane(per_lane)];
            let x = Setting::Gather(micros);
            b.point(
                section,
                &format!("{per_lane} workers per lane"),
                &kind,
                &[&home, &shared_lanes(Tracking::Exact), &load, &own],
                &x,
            );
        }
    }
}

fn ablation_b(b: &mut Builder) {
    for (workload, kind) in [
        ("YCSB-A, 10 operations", b.ycsb(0.5, 10)),
        ("TPC-C", b.tpcc(b.sized(4, 16))),
    ] {
        let load = simulated_load(&kind);
        for (name, home) in b.services() {
            let (home, section) = ([home], format!("{workload}, {name}"));
            for (series, settings) in [
                ("1 naive", naive()),
                (
                    "2 + deltas, lanes shared by two",
                    shared_lanes(Tracking::Horizon),
                ),
                ("3 + dsn", shared_lanes(Tracking::Dsn)),
                ("4 + exact", shared_lanes(Tracking::Exact)),
            ] {
                b.cell(&section, series, &kind, &[&home, &settings, &load]);
            }
        }
    }
}

const TRACKINGS: [Tracking; 5] = [
    Tracking::Horizon,
    Tracking::LeanStore,
    Tracking::Gsn,
    Tracking::Dsn,
    Tracking::Exact,
];

fn tracking(b: &mut Builder) {
    let (one, ten) = (b.ycsb(0.5, 1), b.ycsb(0.5, 10));
    let load = simulated_load(&ten);
    for (section, home, kind, load) in [
        ("YCSB-A on this disk", b.local(), one, Vec::new()),
        (
            "YCSB-A, 10 operations, s3express",
            b.simulated("s3express"),
            ten,
            load,
        ),
    ] {
        for tracking in TRACKINGS {
            let own = [home.clone(), Setting::Tracking(tracking)];
            b.cell(section, tracking.name(), &kind, &[&own, &load]);
        }
    }
}

fn false_waits(b: &mut Builder) {
    let WorkloadKind::Ycsb(ycsb) = b.ycsb(0.5, 10) else {
        return;
    };
    let kind = WorkloadKind::Ycsb(Ycsb {
        traced: true,
        ..ycsb
    });
    let load = simulated_load(&kind);
    for model in ["s3express", "gp3"] {
        let home = [b.simulated(model)];
        for tracking in TRACKINGS {
            let section = format!("YCSB-A, 10 operations, model {model}");
            let own = [Setting::Tracking(tracking)];
            b.cell(&section, tracking.name(), &kind, &[&home, &own, &load]);
        }
    }
}

fn delta(b: &mut Builder) {
    let cores = logstead_env::core_count() as u32;
    for (section, kind) in [
        ("TPC-C", b.tpcc(cores)),
        ("YCSB-A", b.ycsb(0.5, 1)),
        ("TATP", b.tatp()),
    ] {
        for (series, on) in [("deltas", true), ("whole rows", false)] {
            b.cell(section, series, &kind, &[&[Setting::Delta(on)]]);
        }
    }
}

fn mixed(b: &mut Builder) {
    let WorkloadKind::Ycsb(ycsb) = b.ycsb(0.5, 1) else {
        return;
    };
    let kind = WorkloadKind::Mixed {
        tpcc_workers: SIMULATED_WORKERS / 2,
        tpcc: b.tpcc_scale(4),
        ycsb,
    };
    let load = simulated_load(&kind);
    for model in ["s3express", "nvme"] {
        let home = [b.simulated(model)];
        for tracking in TRACKINGS {
            let section = format!("model {model}");
            let own = [Setting::Tracking(tracking)];
            b.cell(&section, tracking.name(), &kind, &[&home, &own, &load]);
        }
    }
}

fn recovery(b: &mut Builder) {
    let local = [b.local()];
    let sizes: &[u64] = b.sized(&[20_000, 100_000], &[100_000, 1_000_000, 4_000_000]);
    let tails: &[u64] = b.sized(
        &[1_000, 50_000, 200_000],
        &[1_000, 100_000, 1_000_000, 4_000_000],
    );
    for rows in sizes {
        for tail in tails {
            let kind = WorkloadKind::Recovery {
                ycsb: Ycsb {
                    table_size: *rows,
                    read_ratio: 0.0,
                    read_modify_write: false,
                    operations: 1,
                    distribution: crate::random::Distribution::Uniform,
                    traced: false,
                },
                tail: *tail,
            };
            b.cell("recovery", &format!("{rows} rows"), &kind, &[&local]);
            if let Some(cell) = b.cells.last_mut() {
                cell.label.x = Some(("transactions before the crash".into(), *tail as f64));
            }
        }
    }
}
