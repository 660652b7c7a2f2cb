//! Results for people, for programs, and for the record.

mod chart;
mod compare;
pub mod html;
mod record;
pub(crate) mod text;

pub use record::{
    AxisPoint, Condition, Document, Latency, Load, Machine, Micro, Run, Share, Transactions,
};

use crate::options::{RunConfig, RunLimit, Tpcc, WorkloadKind, Ycsb, isolation_text, size_text};
use crate::random::Distribution;
use crate::{Counts, RunOutcome};

/// Percentiles that are shown.
const PERCENTILES: [(f64, &str); 5] = [
    (50.0, "p50"),
    (90.0, "p90"),
    (99.0, "p99"),
    (99.9, "p99.9"),
    (99.99, "p99.99"),
];

/// A chart of curves that stands by itself, as a file.
pub(crate) fn chart_of_curves(
    title: &str,
    x_label: &str,
    x_marks: &[(f64, String)],
    curves: Vec<(String, Vec<(f64, f64)>)>,
) -> String {
    let lines = chart::Lines {
        title,
        x_label,
        x_marks: x_marks.to_vec(),
        x_scale: chart::Scale::Linear,
        y_scale: chart::Scale::Linear,
        y_text: &chart::short,
        series: curves
            .into_iter()
            .map(|(name, points)| chart::Series { name, points })
            .collect(),
    };
    // A page gives its charts their font and ground; a file has to bring them along.
    let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" style=\"background:#fff\" font-family=\"sans-serif\" font-size=\"12\" ";
    lines.render().replacen("<svg ", head, 1)
}

/// A time in three digits.
fn time(nanos: u64) -> String {
    let scaled = |value: f64, unit: &str| {
        if value < 9.995 {
            format!("{value:.2} {unit}")
        } else if value < 99.95 {
            format!("{value:.1} {unit}")
        } else {
            format!("{value:.0} {unit}")
        }
    };
    let value = nanos as f64;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => scaled(value / 1e3, "us"),
        1_000_000..1_000_000_000 => scaled(value / 1e6, "ms"),
        _ => scaled(value / 1e9, "s"),
    }
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A count with its thousands apart.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

fn describe_distribution(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".into(),
        Distribution::Zipfian { theta } => format!("zipfian, theta {theta}"),
        Distribution::Hotspot { keys, accesses } => {
            format!("hotspot, {accesses} of the accesses to {keys} of the keys")
        }
    }
}

fn ycsb_parameters(ycsb: &Ycsb) -> Vec<(&'static str, String)> {
    vec![
        ("table size", grouped(ycsb.table_size)),
        ("reads", format!("{}", ycsb.read_ratio)),
        (
            "updates",
            if ycsb.read_modify_write {
                "after a read in a statement of its own".into()
            } else {
                "in one statement".into()
            },
        ),
        ("operations per transaction", ycsb.operations.to_string()),
        ("keys", describe_distribution(ycsb.distribution)),
    ]
}

fn tpcc_parameters(tpcc: &Tpcc) -> Vec<(&'static str, String)> {
    vec![
        ("warehouses", tpcc.warehouses.to_string()),
        ("items", grouped(u64::from(tpcc.items))),
        ("customers per district", grouped(u64::from(tpcc.customers))),
    ]
}

/// The workload's parameters.
fn parameters(kind: &WorkloadKind) -> Vec<(&'static str, String)> {
    match kind {
        WorkloadKind::Ycsb(ycsb) => ycsb_parameters(ycsb),
        WorkloadKind::Tpcc(tpcc) => tpcc_parameters(tpcc),
        WorkloadKind::Mixed {
            tpcc_workers,
            tpcc,
            ycsb,
        } => {
            let mut all = vec![("workers of TPC-C", tpcc_workers.to_string())];
            all.extend(tpcc_parameters(tpcc));
            all.extend(ycsb_parameters(ycsb));
            all
        }
        WorkloadKind::Tatp { subscribers } => {
            vec![("subscribers", grouped(u64::from(*subscribers)))]
        }
        WorkloadKind::SmallBank {
            accounts,
            distribution,
        } => vec![
            ("customers", grouped(*accounts)),
            ("keys", describe_distribution(*distribution)),
        ],
        WorkloadKind::Micro { rows } | WorkloadKind::Load { rows } => {
            vec![("rows", grouped(*rows))]
        }
        WorkloadKind::Recovery { ycsb, tail } => {
            let mut all = ycsb_parameters(ycsb);
            all.push(("transactions before the crash", grouped(*tail)));
            all
        }
        WorkloadKind::Bare { size_bytes, way } => vec![
            ("bytes of an append", size_text(*size_bytes)),
            ("way", way.name().into()),
        ],
    }
}

/// Of what all workloads have, what matters to this one.
fn configuration(cell: &RunConfig) -> Vec<(&'static str, String)> {
    let common = &cell.common;
    let commit = &common.commit;
    let per_lane = match commit.workers_per_lane {
        usize::MAX => "all".to_owned(),
        n => n.to_string(),
    };
    let mut facts = vec![
        ("home", common.home.describe()),
        ("workers per lane", per_lane),
        ("seed", common.seed.to_string()),
    ];
    if matches!(cell.kind, WorkloadKind::Load { .. }) {
        return facts;
    }
    let is_micro = matches!(cell.kind, WorkloadKind::Micro { .. });
    facts.push((
        "length",
        match common.until {
            RunLimit::Seconds { measured, .. } if is_micro => {
                format!("{measured} s for all operations together")
            }
            RunLimit::Seconds { measured, warmup } => {
                format!("{measured} s after {warmup} s of warm-up")
            }
            RunLimit::Transactions(n) => format!("{} transactions", grouped(n)),
        },
    ));
    if matches!(cell.kind, WorkloadKind::Bare { .. }) {
        return facts;
    }
    facts.push(("isolation", isolation_text(common.isolation).into()));
    facts.extend([
        ("protocol", commit.protocol.name().to_owned()),
        ("tracking", commit.tracking.name().to_owned()),
        ("queue", commit.queue.name().to_owned()),
        ("flush unit", size_text(commit.flush_unit_bytes)),
        ("flush timeout", time(nanos(commit.flush_timeout))),
        ("gather", time(nanos(commit.gather))),
        ("lane buffer", size_text(commit.lane_buffer_bytes)),
        ("blocks in flight", commit.blocks_in_flight_max.to_string()),
        ("acknowledgment group", commit.ack_group.to_string()),
        ("steal group", commit.steal_group.to_string()),
        (
            "records of updates",
            if common.delta_records {
                "deltas"
            } else {
                "whole rows"
            }
            .to_owned(),
        ),
    ]);
    if !is_micro {
        facts.push((
            "load",
            match common.open_loop {
                Some(rate) => format!(
                    "open loop, {rate} per second, at most {} at a time per worker",
                    common.in_flight
                ),
                None => format!("closed loop, {} sessions per worker", common.in_flight),
            },
        ));
    }
    facts
}

/// A brief table of each section, for a terminal.
pub(crate) fn summary(document: &Document) -> String {
    compare::brief(document)
        .into_iter()
        .map(|(section, lines)| format!("\n{section}\n{}", text::table(&lines)))
        .collect()
}

/// Says what a number of workers means on a machine.
fn workers(workers: usize, more_than_cores: bool) -> String {
    let more = if more_than_cores {
        " (more than cores)"
    } else {
        ""
    };
    match workers {
        1 => format!("1 worker{more}"),
        n => format!("{n} workers{more}"),
    }
}

/// The kinds that occurred, and all together if there are several.
fn rows(outcome: &RunOutcome) -> Vec<(String, Counts)> {
    let mut rows: Vec<(String, Counts)> = outcome
        .kinds
        .iter()
        .zip(&outcome.measured.kinds)
        .filter(|(_, c)| c.committed + c.rolled_back + c.conflicts + c.deadlocks > 0)
        .map(|(name, counts)| ((*name).to_owned(), counts.clone()))
        .collect();
    if rows.len() != 1 || outcome.measured.backlog > 0 {
        rows.push(("all".into(), outcome.measured.total()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (12_345, "12.3 us"),
            (123_456, "123 us"),
            (1_234_567, "1.23 ms"),
            (12_000_000_000, "12.0 s"),
        ] {
            assert_eq!(time(nanos), text);
        }
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
