//! The table for people.

use std::fmt::Write;

use super::{
    Document, PERCENTILES, configuration, grouped, parameters, per_second, rows, summary, time,
    workers,
};
use crate::options::RunConfig;
use crate::{Results, RunOutcome};

/// Renders rows of cells; the first column is aligned to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            if column == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What is the same in all of the lists, and for each list what is not.
fn common_capabilities(
    lists: &[Vec<(&'static str, String)>],
) -> (Vec<(&'static str, String)>, Vec<String>) {
    let Some((first, others)) = lists.split_first() else {
        return (Vec::new(), Vec::new());
    };
    let alike = |fact: &&(&'static str, String)| others.iter().all(|list| list.contains(fact));
    let all: Vec<(&'static str, String)> = first.iter().filter(alike).cloned().collect();
    let own = lists
        .iter()
        .map(|list| {
            let own = list.iter().filter(|fact| !all.contains(fact));
            let texts: Vec<String> = own.map(|(name, value)| format!("{name} {value}")).collect();
            texts.join("; ")
        })
        .collect();
    (all, own)
}

fn has_more_than_cores(results: &Results, count: usize) -> String {
    workers(count, count > results.machine.cores)
}

pub(crate) fn render(results: &Results) -> String {
    let mut text = format!("{}\n", results.options.name);
    let _infallible = writeln!(text, "  machine: {}", results.machine.describe());
    let facts = |cell: &RunConfig| {
        let mut facts = parameters(&cell.kind);
        facts.extend(configuration(cell));
        facts
    };
    // Before anything has ended, what was asked for.
    let cells: Vec<&RunConfig> = match results.outcomes.len() {
        0 => results.options.cells.iter().collect(),
        _ => results.outcomes.iter().map(|o| &o.cell).collect(),
    };
    let lists: Vec<_> = cells.into_iter().map(facts).collect();
    let (alike, own) = common_capabilities(&lists);
    for (name, value) in alike {
        let _infallible = writeln!(text, "  {name}: {value}");
    }
    // An experiment has many runs, and they are there to be compared.
    if !results.options.is_experiment {
        for (outcome, own) in results.outcomes.iter().zip(own) {
            text += &render_outcome(results, outcome, &own);
        }
    }
    if results.outcomes.len() > 1 {
        text += &summary(&Document::of(results));
    }
    if results.options.is_experiment {
        let all = results.outcomes.iter().flat_map(|outcome| &outcome.checks);
        text += &checks(&all.cloned().collect::<Vec<_>>());
    }
    if !results.micro.is_empty() {
        text.push('\n');
        let mut lines = vec![vec![
            "operation".into(),
            "workers".into(),
            "per transaction".into(),
            "ns each".into(),
            "per second".into(),
        ]];
        for figure in &results.micro {
            lines.push(vec![
                figure.operation.name().into(),
                has_more_than_cores(results, figure.workers),
                figure.per_transaction.to_string(),
                format!("{:.0}", figure.nanos()),
                grouped(figure.rate() as u64),
            ]);
        }
        text += &table(&lines);
    }
    for figure in &results.loads {
        let memory = figure.memory_bytes.map_or_else(String::new, |bytes| {
            format!(
                ", {:.0} bytes of memory per row",
                bytes as f64 / figure.rows.max(1) as f64
            )
        });
        let _infallible = writeln!(
            text,
            "\n{}: {} rows in {:.2} s, {} per second{memory}, {} bytes of log per row",
            has_more_than_cores(results, figure.workers),
            grouped(figure.rows),
            figure.seconds,
            grouped(per_second(figure.rows, figure.seconds) as u64),
            figure.log_bytes / figure.rows.max(1),
        );
    }
    text += &checks(&results.checks);
    for left in &results.left_behind {
        let _infallible = writeln!(text, "  left behind: {left}");
    }
    text
}

fn render_outcome(results: &Results, outcome: &RunOutcome, own: &str) -> String {
    let label = &outcome.cell.label;
    let several = results.options.cells.len() > 1 || results.options.repeat > 1;
    let mut text = format!(
        "\n{}{}, {:.2} s{}\n",
        if several {
            format!("{}: {}: ", label.section, label.series)
        } else {
            String::new()
        },
        has_more_than_cores(results, outcome.workers()),
        outcome.seconds,
        if outcome.interrupted {
            ", INTERRUPTED"
        } else {
            ""
        }
    );
    if results.options.repeat > 1 {
        let _infallible = writeln!(text, "  repetition {}", outcome.repetition + 1);
    }
    if !own.is_empty() {
        let _infallible = writeln!(text, "  {own}");
    }
    if outcome.rows > 0 {
        let _infallible = writeln!(
            text,
            "  loaded {} rows in {:.2} s, {} per second",
            grouped(outcome.rows),
            outcome.load_seconds,
            grouped(per_second(outcome.rows, outcome.load_seconds) as u64)
        );
    }
    text.push('\n');
    let mut header: Vec<String> = ["", "committed", "per s", "rolled back", "40001", "40P01"]
        .map(str::to_owned)
        .to_vec();
    for which in ["commit", "whole"] {
        for (_, name) in PERCENTILES {
            header.push(format!("{which} {name}"));
        }
        header.push(format!("{which} max"));
    }
    let mut lines = vec![header];
    for (name, counts) in rows(outcome) {
        let mut line = vec![
            name,
            grouped(counts.committed),
            grouped(per_second(counts.committed, outcome.seconds) as u64),
            grouped(counts.rolled_back),
            grouped(counts.conflicts),
            grouped(counts.deadlocks),
        ];
        for latencies in [&counts.commit, &counts.whole] {
            for (percentile, _) in PERCENTILES {
                line.push(time(latencies.value_at_percentile(percentile)));
            }
            line.push(time(latencies.max()));
        }
        lines.push(line);
    }
    text += &table(&lines);
    if outcome.measured.backlog > 0 {
        let _infallible = writeln!(
            text,
            "  {} arrivals were not served when the run ended: the offered load is too high",
            grouped(outcome.measured.backlog)
        );
    }
    let stats = &outcome.stats;
    if let Some(record_bytes) = stats.log_bytes.checked_div(stats.commits) {
        let path = &outcome.path;
        let _infallible = writeln!(
            text,
            "  log: {record_bytes} bytes of records per writing transaction, {:.1} transactions per append of {} bytes",
            path.entries as f64 / path.appends.max(1) as f64,
            grouped(path.appended_bytes / path.appends.max(1)),
        );
    }
    text += &checks(&outcome.checks);
    text
}

fn checks(checks: &[crate::ConsistencyCheck]) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for check in checks {
        if let Err(why) = &check.result {
            text += &format!("  NOT CONSISTENT: {}: {why}\n", check.name);
        }
    }
    let held = checks.iter().filter(|c| c.result.is_ok()).count();
    text += &format!("  checked: {held} of {} conditions hold\n", checks.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1"], ["long", "1000"]];
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
            .collect();
        assert_eq!(table(&rows), "  a        1\n  long  1000\n");
    }
}
