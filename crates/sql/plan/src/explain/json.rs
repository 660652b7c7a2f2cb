//! A plan as JSON, with PostgreSQL's names.

use super::{ExplainOptions, ExplainTimes, Shown, Value};
use crate::instrumentation::NodeDetail;
use std::fmt::Write as _;

/// The whole document.
pub(super) fn document(shown: &Shown, options: &ExplainOptions<'_>, times: ExplainTimes) -> String {
    let mut out = String::from("[\n  {\n    \"Plan\": ");
    node(shown, options, None, 4, &mut out);
    if let Some(ms) = times.planning_ms {
        let _ = write!(out, ",\n    \"Planning Time\": {ms:.3}");
    }
    if options.stats.is_some() {
        out.push_str(",\n    \"Triggers\": [\n    ]");
    }
    if let Some(ms) = times.execution_ms {
        let _ = write!(out, ",\n    \"Execution Time\": {ms:.3}");
    }
    out.push_str("\n  }\n]");
    out
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// Prints a node; `relation` is what it is to the one above, and its name there.
fn node(
    shown: &Shown,
    options: &ExplainOptions<'_>,
    relation: Option<(&str, Option<&str>)>,
    indent: usize,
    out: &mut String,
) {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for (key, value) in &shown.kind {
        fields.push((key, quoted(value)));
    }
    if let Some((relation, name)) = relation {
        fields.push(("Parent Relationship", quoted(relation)));
        if let Some(name) = name {
            fields.push(("Subplan Name", quoted(name)));
        }
    }
    fields.push(("Parallel Aware", "false".to_owned()));
    fields.push(("Async Capable", "false".to_owned()));
    for (key, value) in &shown.target {
        fields.push((key, quoted(value)));
    }
    if options.costs {
        fields.push(("Startup Cost", format!("{:.2}", shown.startup)));
        fields.push(("Total Cost", format!("{:.2}", shown.cost)));
        fields.push(("Plan Rows", format!("{:.0}", shown.rows.max(1.0))));
        fields.push(("Plan Width", shown.width.to_string()));
    }
    if options.stats.is_some()
        && let Some(stats) = shown.stats
    {
        let loops = stats.loops.max(1);
        if options.timing {
            let ms = stats.time_us as f64 / 1000.0 / loops as f64;
            fields.push(("Actual Startup Time", "0.000".to_owned()));
            fields.push(("Actual Total Time", format!("{ms:.3}")));
        }
        fields.push(("Actual Rows", (stats.rows / loops).to_string()));
        fields.push(("Actual Loops", stats.loops.to_string()));
    }
    if options.verbose && !shown.output.is_empty() {
        fields.push(("Output", list(&shown.output)));
    }
    for (key, value) in &shown.details {
        fields.push((
            key,
            match value {
                Value::Text(text) => quoted(text),
                Value::List(items) => list(items),
                Value::Flag(flag) => flag.to_string(),
                Value::Count(count) => count.to_string(),
            },
        ));
    }
    if options.stats.is_some()
        && let Some(stats) = shown.stats
    {
        fields.extend(measured(&stats.detail));
    }
    let space = " ".repeat(indent);
    out.push('{');
    for (at, (key, value)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\n{space}  {}: {value}", quoted(key));
    }
    let beside = |wanted: &'static str| {
        shown
            .beside
            .iter()
            .filter(move |(relation, ..)| *relation == wanted)
            .map(|(relation, name, plan)| (*relation, Some(name.as_str()), plan))
    };
    let inputs = shown
        .inputs
        .iter()
        .map(|(relation, plan)| (*relation, None, plan));
    let below: Vec<_> = beside("InitPlan")
        .chain(inputs)
        .chain(beside("SubPlan"))
        .collect();
    if !below.is_empty() {
        let _ = write!(out, ",\n{space}  \"Plans\": [");
        for (at, (relation, name, plan)) in below.into_iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n{space}    ");
            node(plan, options, Some((relation, name)), indent + 4, out);
        }
        let _ = write!(out, "\n{space}  ]");
    }
    let _ = write!(out, "\n{space}}}");
}

/// How a node did what it did.
fn measured(detail: &NodeDetail) -> Vec<(&'static str, String)> {
    match detail {
        NodeDetail::None => Vec::new(),
        NodeDetail::Sort { method, disk, kib } => vec![
            ("Sort Method", quoted(method)),
            ("Sort Space Used", kib.to_string()),
            (
                "Sort Space Type",
                quoted(if *disk { "Disk" } else { "Memory" }),
            ),
        ],
        NodeDetail::Hash {
            batches,
            memory_kib,
        } => vec![
            ("Hash Batches", batches.to_string()),
            ("Peak Memory Usage", memory_kib.to_string()),
        ],
        NodeDetail::Groups {
            batches,
            memory_kib,
            disk_kib,
        } => vec![
            ("HashAgg Batches", batches.to_string()),
            ("Peak Memory Usage", memory_kib.to_string()),
            ("Disk Usage", disk_kib.to_string()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n\u{1}é"), "\"a\\\"b\\\\c\\n\\u0001é\"");
    }
}
