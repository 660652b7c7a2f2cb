//! Everything measured, for programs.

use super::{PERCENTILES, configuration, parameters, per_second, rows};
use crate::measure::STEP_NS;
use crate::{Check, Latencies, Outcome, Results};

/// A JSON value.
enum Json {
    Text(String),
    Integer(u64),
    Number(f64),
    Bool(bool),
    Null,
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

impl Json {
    fn write(&self, out: &mut String, indent: usize) {
        match self {
            Json::Text(text) => write_text(text, out),
            Json::Integer(n) => out.push_str(&n.to_string()),
            Json::Number(n) if n.is_finite() => out.push_str(&n.to_string()),
            Json::Number(_) | Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Json::List(values) => {
                // Lists of plain values stay on one line.
                out.push('[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    value.write(out, indent);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { ",\n" } else { "\n" });
                    out.push_str(&"  ".repeat(indent + 1));
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(out, indent + 1);
                }
                out.push('\n');
                out.push_str(&"  ".repeat(indent));
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn latencies(latencies: &Latencies) -> Json {
    let mut fields: Vec<(String, Json)> = PERCENTILES
        .iter()
        .map(|(percentile, name)| {
            let value = latencies.value_at_percentile(*percentile);
            ((*name).to_owned(), Json::Integer(value))
        })
        .collect();
    fields.push((
        "p99.99".into(),
        Json::Integer(latencies.value_at_percentile(99.99)),
    ));
    fields.push(("max".into(), Json::Integer(latencies.max())));
    fields.push(("mean".into(), Json::Number(latencies.mean())));
    fields.push(("count".into(), Json::Integer(latencies.len())));
    Json::Object(fields)
}

fn checks(checks: &[Check]) -> Json {
    Json::List(
        checks
            .iter()
            .map(|check| {
                object([
                    ("condition", text(&*check.name)),
                    ("holds", Json::Bool(check.result.is_ok())),
                    (
                        "found",
                        match &check.result {
                            Ok(()) => Json::Null,
                            Err(why) => text(&**why),
                        },
                    ),
                ])
            })
            .collect(),
    )
}

fn outcome(results: &Results, outcome: &Outcome) -> Json {
    let transactions = rows(outcome)
        .into_iter()
        .map(|(name, counts)| {
            object([
                ("name", text(name)),
                ("committed", Json::Integer(counts.committed)),
                (
                    "per_second",
                    Json::Number(per_second(counts.committed, outcome.seconds)),
                ),
                ("rolled_back", Json::Integer(counts.rolled_back)),
                ("retries_40001", Json::Integer(counts.conflicts)),
                ("retries_40P01", Json::Integer(counts.deadlocks)),
                ("commit_latency_ns", latencies(&counts.commit)),
                ("whole_latency_ns", latencies(&counts.whole)),
            ])
        })
        .collect();
    let steps = outcome.measured.timeline.iter();
    object([
        ("workers", Json::Integer(outcome.workers as u64)),
        (
            "more_workers_than_cores",
            Json::Bool(outcome.workers > results.machine.cores),
        ),
        ("interrupted", Json::Bool(outcome.interrupted)),
        ("seconds", Json::Number(outcome.seconds)),
        ("rows_loaded", Json::Integer(outcome.rows)),
        ("load_seconds", Json::Number(outcome.load_seconds)),
        ("transactions", Json::List(transactions)),
        (
            "arrivals_not_served",
            Json::Integer(outcome.measured.backlog),
        ),
        ("log_bytes", Json::Integer(outcome.stats.log_bytes)),
        ("writing_commits", Json::Integer(outcome.stats.commits)),
        ("flushes", Json::Integer(outcome.stats.flushes)),
        ("chain_steps", Json::Integer(outcome.stats.chain_steps)),
        ("timeline_step_ns", Json::Integer(STEP_NS)),
        (
            "timeline",
            Json::List(steps.map(|n| Json::Integer(*n)).collect()),
        ),
        ("checks", checks(&outcome.checks)),
    ])
}

pub(crate) fn render(results: &Results) -> String {
    let machine = &results.machine;
    let pairs = |pairs: Vec<(&str, String)>| {
        Json::Object(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), text(value)))
                .collect(),
        )
    };
    let micro = results.micro.iter().map(|figure| {
        object([
            ("operation", text(figure.operation.name())),
            ("workers", Json::Integer(figure.workers as u64)),
            (
                "more_workers_than_cores",
                Json::Bool(figure.workers > machine.cores),
            ),
            ("per_transaction", Json::Integer(figure.per_transaction)),
            ("operations", Json::Integer(figure.operations)),
            ("ns", Json::Number(figure.nanos())),
            ("per_second", Json::Number(figure.rate())),
        ])
    });
    let loads = results.loads.iter().map(|figure| {
        object([
            ("workers", Json::Integer(figure.workers as u64)),
            ("rows", Json::Integer(figure.rows)),
            ("seconds", Json::Number(figure.seconds)),
            (
                "memory_bytes",
                figure.memory_bytes.map_or(Json::Null, Json::Integer),
            ),
            ("log_bytes", Json::Integer(figure.log_bytes)),
        ])
    });
    let json = object([
        ("workload", text(results.options.kind.name())),
        (
            "machine",
            object([
                ("processor", text(&*machine.processor)),
                ("cores", Json::Integer(machine.cores as u64)),
                ("memory_bytes", Json::Integer(machine.memory_bytes)),
                ("kernel", text(&*machine.kernel)),
                ("commit", text(machine.commit)),
                ("optimised", Json::Bool(machine.optimised)),
            ]),
        ),
        ("parameters", pairs(parameters(&results.options.kind))),
        ("configuration", pairs(configuration(&results.options))),
        (
            "runs",
            Json::List(
                results
                    .outcomes
                    .iter()
                    .map(|o| outcome(results, o))
                    .collect(),
            ),
        ),
        ("micro", Json::List(micro.collect())),
        ("load", Json::List(loads.collect())),
        ("checks", checks(&results.checks)),
    ]);
    let mut out = String::new();
    json.write(&mut out, 0);
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_json_says() {
        let json = object([
            ("a\"b\\", text("x\ny\u{1}ü")),
            (
                "list",
                Json::List(vec![
                    Json::Integer(1),
                    Json::Number(0.5),
                    Json::Number(f64::NAN),
                    Json::Bool(true),
                ]),
            ),
        ]);
        let mut out = String::new();
        json.write(&mut out, 0);
        assert_eq!(
            out,
            "{\n  \"a\\\"b\\\\\": \"x\\ny\\u0001ü\",\n  \"list\": [1, 0.5, null, true]\n}"
        );
    }
}
