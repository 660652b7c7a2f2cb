//! A plan as lines of text.

use super::{ExplainOptions, Shown, Value};
use crate::instrumentation::NodeDetail;
use std::fmt::Write as _;

/// The lines of a plan.
pub(super) fn lines(shown: &Shown, options: &ExplainOptions<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    node(shown, options, 0, &mut lines);
    lines
}

/// How a node did what it did.
fn measured(detail: &NodeDetail) -> Option<String> {
    Some(match detail {
        NodeDetail::None => return None,
        NodeDetail::Sort { method, disk, kib } => {
            let place = if *disk { "Disk" } else { "Memory" };
            format!("Sort Method: {method}  {place}: {kib}kB")
        }
        NodeDetail::Hash {
            batches,
            memory_kib,
        } => format!("Batches: {batches}  Memory Usage: {memory_kib}kB"),
        NodeDetail::Groups {
            batches,
            memory_kib,
            disk_kib,
        } => {
            let mut line = format!("Batches: {batches}  Memory Usage: {memory_kib}kB");
            if *disk_kib > 0 {
                let _ = write!(line, "  Disk Usage: {disk_kib}kB");
            }
            line
        }
    })
}

/// Prints a node whose title begins at column `at`.
fn node(shown: &Shown, options: &ExplainOptions<'_>, at: usize, lines: &mut Vec<String>) {
    let arrow = match at {
        0 => String::new(),
        _ => format!("{}->  ", " ".repeat(at - 4)),
    };
    let mut line = format!("{arrow}{}", shown.title);
    if options.costs {
        let _ = write!(
            line,
            "  (cost={:.2}..{:.2} rows={:.0} width={})",
            shown.startup,
            shown.cost,
            shown.rows.max(1.0),
            shown.width
        );
    }
    if options.stats.is_some()
        && let Some(stats) = shown.stats
    {
        let rows = stats.rows / stats.loops.max(1);
        if stats.loops == 0 {
            line.push_str(" (never executed)");
        } else if options.timing {
            let per_loop = stats.time_us as f64 / 1000.0 / stats.loops as f64;
            let _ = write!(
                line,
                " (actual time={:.3}..{per_loop:.3} rows={rows} loops={})",
                0.0, stats.loops
            );
        } else {
            let _ = write!(line, " (actual rows={rows} loops={})", stats.loops);
        }
    }
    lines.push(line);
    let detail = " ".repeat(at + 2);
    if options.verbose && !shown.output.is_empty() {
        lines.push(format!("{detail}Output: {}", shown.output.join(", ")));
    }
    for (label, value) in &shown.details {
        match value {
            Value::Text(text) => lines.push(format!("{detail}{label}: {text}")),
            Value::List(items) => lines.push(format!("{detail}{label}: {}", items.join(", "))),
            Value::Count(count) => lines.push(format!("{detail}{label}: {count}")),
            Value::Flag(true) => lines.push(format!("{detail}{label}: true")),
            Value::Flag(false) => {}
        }
    }
    if options.stats.is_some()
        && let Some(stats) = shown.stats
        && let Some(line) = measured(&stats.detail)
    {
        lines.push(format!("{detail}{line}"));
    }
    // What is made before the node stands before its inputs, what is asked for each row behind them.
    let beside = |relation: &str, lines: &mut Vec<String>| {
        for (_, name, plan) in shown.beside.iter().filter(|b| b.0 == relation) {
            lines.push(format!("{detail}{name}"));
            node(plan, options, at + 8, lines);
        }
    };
    beside("InitPlan", lines);
    for (_, input) in &shown.inputs {
        node(input, options, at + 6, lines);
    }
    beside("SubPlan", lines);
}
