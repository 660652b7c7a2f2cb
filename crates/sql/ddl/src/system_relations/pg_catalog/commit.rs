//! Views of the commit path: what every lane has done, where the time of commits goes, and what was decided about both.
//!
//! They read counters and copy histograms, for which they hold a worker's ack queue for some microseconds: whoever
//! comes by to acknowledge meanwhile leaves a note and does not wait. Counters are read one after the other while work
//! goes on, so figures of one row may be some transactions apart.

use super::cells::row;
use logstead_engine::{AdaptiveStatus, CommitPath, Phase, TunedSetting, WorkerId};
use logstead_sql_catalog::{VirtualContext, VirtualTable};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// The views. No relation of PostgreSQL 15 has these OIDs.
pub(super) static VIEWS: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    12900 logstead_commit = lanes {
        protocol TEXT, tracking TEXT, queue TEXT, lane INT4, workers INT4, commits INT8, entries INT8, flushes INT8,
        flushes_inline INT8, flushes_handed_off INT8, bytes INT8, payload_bytes INT8, sides INT8, steals INT8,
        stolen_bytes INT8, parked INT8, waits_none INT8, waits_horizon INT8, waits_gsn INT8, waits_predecessor INT8,
        refused_buffer INT8, refused_allocation INT8, refused_home INT8,
    }
    12901 logstead_commit_latency = latencies {
        phase TEXT, count INT8, mean_us FLOAT8, p50_us FLOAT8, p90_us FLOAT8, p99_us FLOAT8, p99_9_us FLOAT8, max_us FLOAT8,
    }
    12902 logstead_adaptive = adaptive {
        decided_at TIMESTAMPTZ, what TEXT, value_before INT8, value INT8, reason TEXT, append_us FLOAT8, wait_us FLOAT8,
        commits_per_second INT8, appends_per_second INT8, bytes_per_append INT8, busy_percent INT8,
    }
};

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn path(cx: &VirtualContext<'_>) -> Option<Arc<CommitPath>> {
    cx.catalog.notes.live.as_ref()?.commit_path()
}

/// `logstead_commit`
fn lanes(cx: &VirtualContext<'_>) -> Rows {
    let Some(path) = path(cx) else {
        return Ok(Vec::new());
    };
    let options = path.options();
    let mut workers = vec![0_i32; path.lanes().len()];
    for worker in 0..path.worker_count() {
        // Their number fits: workers are numbered so.
        let worker = WorkerId(u16::try_from(worker).unwrap_or(u16::MAX));
        workers[path.lane_number_of(worker)] += 1;
    }
    let rows = path.lane_stats().into_iter().zip(workers).zip(0_i32..);
    let rows = rows.map(|((stats, workers), lane)| {
        let (counters, waits) = (&stats.lane, &stats.waits);
        row![
            options.protocol.name(),
            options.tracking.name(),
            options.queue.name(),
            lane,
            workers,
            count(stats.commits),
            count(counters.entries),
            count(counters.blocks),
            count(counters.flushes_inline),
            count(counters.flushes_handed_off),
            count(counters.bytes),
            count(counters.payload_bytes),
            count(counters.sides),
            count(counters.steals),
            count(counters.stolen_bytes),
            count(counters.parked),
            count(waits.none),
            count(waits.horizon),
            count(waits.gsn),
            count(waits.predecessor),
            count(counters.refused_full),
            count(counters.refused_allowance),
            count(counters.refused_home),
        ]
    });
    Ok(rows.collect())
}

/// `logstead_adaptive`: what is in force, then the decisions, the newest first.
fn adaptive(cx: &VirtualContext<'_>) -> Rows {
    let Some(path) = path(cx) else {
        return Ok(Vec::new());
    };
    let AdaptiveStatus {
        adapt,
        tuning,
        measured,
        decisions,
    } = path.adaptive();
    let ns = |ns: u64| ns as f64 / 1e3;
    // In the units of the settings.
    let unit = |what: TunedSetting, value: u64| match what {
        TunedSetting::Lanes | TunedSetting::FlushUnit | TunedSetting::Buffer => count(value),
        TunedSetting::FlushTimeout | TunedSetting::Gather => count(value / 1000),
    };
    let now = TunedSetting::ALL.map(|what| {
        let (value, follows) = match what {
            TunedSetting::Lanes => (tuning.lanes as u64, adapt.lanes),
            TunedSetting::FlushUnit => (tuning.flush_unit_bytes as u64, adapt.flush_unit),
            TunedSetting::Buffer => (tuning.buffer_bytes as u64, adapt.buffer),
            TunedSetting::FlushTimeout => (tuning.flush_timeout_ns, adapt.flush_timeout),
            TunedSetting::Gather => (tuning.gather_ns, adapt.gather),
        };
        let reason = if follows {
            "in force; adapts"
        } else {
            "in force; fixed"
        };
        (None, what, None, value, reason.to_owned(), measured)
    });
    let decided = decisions.into_iter().rev().map(|kept| {
        let of = kept.decision;
        let (at, from) = (Some(kept.at_micros), Some(of.from));
        (at, of.what, from, of.to, of.reason, of.measured)
    });
    let rows = now.into_iter().chain(decided);
    let rows = rows.map(|(at, what, from, to, reason, measured)| {
        row![
            at.map_or(Datum::Null, Datum::TimestampTz),
            what.name(),
            from.map(|from| unit(what, from)),
            unit(what, to),
            reason,
            ns(measured.append_ns),
            ns(measured.wait_ns),
            count(measured.commits_per_second),
            count(measured.appends_per_second),
            count(measured.bytes_per_append),
            count(measured.busy_percent),
        ]
    });
    Ok(rows.collect())
}

/// `logstead_commit_latency`
fn latencies(cx: &VirtualContext<'_>) -> Rows {
    let Some(path) = path(cx) else {
        return Ok(Vec::new());
    };
    let latencies = path.latencies();
    let rows = Phase::ALL.map(|phase| {
        let times = latencies.of(phase);
        let us = |ns: f64| (!times.is_empty()).then_some(ns / 1e3);
        let quantile = |q: f64| us(times.value_at_quantile(q) as f64);
        row![
            phase.name(),
            count(times.len()),
            us(times.mean()),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            us(times.max() as f64),
        ]
    });
    Ok(rows.into())
}
