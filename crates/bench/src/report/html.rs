//! A report with charts: one file, without scripts and without anything from elsewhere.
//!
//! Runs of one document and section are compared (`compare`); what each of them gave by itself folds out below.

use std::fmt::Write;

use super::chart::{Lines, Scale, Series, escape, short};
use super::compare;
use super::record::{Condition, Document, Latency, Run};
use super::{grouped, per_second, time, workers};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1060px;margin:2em auto;padding:0 1em;color:#1b1f24}\
h1,h2,h3{font-weight:600}table{border-collapse:collapse;margin:1em 0;font-size:13px}\
td,th{padding:3px 9px;text-align:right;border-bottom:1px solid #d8dee4;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto;margin:.5em 0 1.5em}\
.bad{color:#b00020;font-weight:600}.facts td{text-align:left;white-space:normal}.wide{overflow-x:auto}\
summary{cursor:pointer;margin:.3em 0}\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;fill:#1b1f24}";

/// Places a percentile so that each further nine takes the same room.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Latencies as a curve over percentiles.
pub(super) fn curve(name: &str, latency: &Latency) -> Series {
    Series {
        name: name.to_owned(),
        points: latency
            .curve
            .iter()
            .map(|(percentile, value)| (nines(*percentile), *value as f64))
            .collect(),
    }
}

/// The chart of such curves.
pub(super) fn curves(title: &str, series: Vec<Series>) -> String {
    let marks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
    let last = series
        .iter()
        .flat_map(|s| &s.points)
        .map(|p| p.0)
        .fold(0.0, f64::max);
    Lines {
        title,
        x_label: "percentile",
        x_marks: marks
            .into_iter()
            .filter(|p| nines(*p) <= last + 1e-9)
            .map(|p| (nines(p), format!("{p} %")))
            .collect(),
        x_scale: Scale::Linear,
        y_scale: Scale::Log,
        y_text: &|nanos| time(nanos as u64),
        series,
    }
    .render()
}

/// A table; the first line is its head.
pub(super) fn table(html: &mut String, class: &str, lines: &[Vec<String>]) {
    let _infallible = write!(html, "<div class=\"wide\"><table class=\"{class}\">");
    for line in lines {
        html.push_str("<tr>");
        for cell in line {
            let _infallible = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table></div>\n");
}

/// A run's name among all of its document.
fn title(run: &Run) -> String {
    let x = run.x.as_ref().map_or(String::new(), |x| {
        format!(", {} {}", x.name, short(x.value))
    });
    format!(
        "{}: {}{x}, {}, repetition {}",
        run.section,
        run.series,
        workers(run.workers, run.more_workers_than_cores),
        run.repetition + 1
    )
}

fn run(html: &mut String, run: &Run) {
    let _infallible = write!(
        html,
        "<details><summary>{}{}</summary>",
        escape(&title(run)),
        if run.interrupted {
            " <span class=\"bad\">interrupted</span>"
        } else {
            ""
        }
    );
    let mut lines = vec![
        [
            "",
            "committed",
            "per s",
            "rolled back",
            "40001",
            "40P01",
            "commit p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
            "whole p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for kind in &run.transactions {
        let mut line = vec![
            kind.name.clone(),
            grouped(kind.committed),
            grouped(kind.per_second as u64),
            grouped(kind.rolled_back),
            grouped(kind.retries_40001),
            grouped(kind.retries_40p01),
        ];
        for latency in [&kind.commit_latency_ns, &kind.whole_latency_ns] {
            line.extend(latency.shown().map(time));
        }
        lines.push(line);
    }
    table(html, "", &lines);
    if run.arrivals_not_served > 0 {
        let _infallible = write!(
            html,
            "<p class=\"bad\">{} arrivals were not served when the run ended: the offered load is too high</p>",
            grouped(run.arrivals_not_served)
        );
    }
    let step = run.timeline_step_ns as f64 / 1e9;
    let points: Vec<(f64, f64)> = run
        .timeline
        .iter()
        .enumerate()
        .map(|(at, n)| (at as f64 * step, *n as f64 / step.max(1e-9)))
        .collect();
    let last = points.last().map_or(0.0, |p| p.0);
    html.push_str(
        &Lines {
            title: "Transactions per second",
            x_label: "seconds",
            x_marks: (0..=4)
                .map(|n| last * f64::from(n) / 4.0)
                .map(|at| (at, format!("{at:.1}")))
                .collect(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            y_text: &short,
            series: vec![Series {
                name: "ended".into(),
                points,
            }],
        }
        .render(),
    );
    for (name, commit) in [
        (
            "Commit latency: end of forward processing to acknowledgment",
            true,
        ),
        ("Whole transaction", false),
    ] {
        let measured = |latency: &&Latency| latency.count > 0;
        let series = run.transactions.iter().filter_map(|kind| {
            let latency = if commit {
                &kind.commit_latency_ns
            } else {
                &kind.whole_latency_ns
            };
            Some(latency)
                .filter(measured)
                .map(|latency| curve(&kind.name, latency))
        });
        html.push_str(&curves(name, series.collect()));
    }
    facts(html, run.parameters.iter().chain(&run.configuration));
    checks(html, &run.checks);
    html.push_str("</details>\n");
}

/// Names and values.
pub(super) fn facts<'a>(html: &mut String, facts: impl Iterator<Item = (&'a String, &'a String)>) {
    let lines: Vec<Vec<String>> = facts
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    if !lines.is_empty() {
        table(html, "facts", &lines);
    }
}

fn checks(html: &mut String, checks: &[Condition]) {
    for check in checks {
        let name = escape(&check.condition);
        let _infallible = if check.holds {
            write!(html, "<div>&#10003; {name}</div>")
        } else {
            let found = check.found.as_deref().unwrap_or("it does not hold");
            write!(
                html,
                "<div class=\"bad\">&#10007; {name}: {}</div>",
                escape(found)
            )
        };
    }
}

/// One report of all documents.
pub(crate) fn render(documents: &[Document]) -> String {
    let mut names: Vec<&str> = documents.iter().map(|d| d.name.as_str()).collect();
    names.dedup();
    let name = escape(&format!("logstead bench {}", names.join(", ")));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{name}</title>\
         <style>{STYLE}</style>\n<h1>{name}</h1>\n"
    );
    let mut machine = "";
    for document in documents {
        if documents.len() > 1 {
            let _infallible = write!(html, "<h2>{}</h2>", escape(&document.name));
        }
        // Once for all that follow, and again when it changes.
        if document.machine.description != machine {
            machine = &document.machine.description;
            table(
                &mut html,
                "facts",
                &[vec!["machine".to_owned(), machine.to_owned()]],
            );
        }
        let broken: Vec<Condition> = document
            .runs
            .iter()
            .flat_map(|run| &run.checks)
            .chain(&document.checks)
            .filter(|check| !check.holds)
            .cloned()
            .collect();
        checks(&mut html, &broken);
        compare::render(&mut html, document);
        for each in &document.runs {
            run(&mut html, each);
        }
        micro(&mut html, document);
        for load in &document.load {
            let _infallible = write!(
                html,
                "<p>{}: {} rows in {:.2} s, {} per second</p>",
                escape(&workers(
                    load.workers,
                    load.workers > document.machine.cores
                )),
                grouped(load.rows),
                load.seconds,
                grouped(per_second(load.rows, load.seconds) as u64)
            );
        }
        checks(&mut html, &document.checks);
    }
    html.push_str("</html>\n");
    html
}

fn micro(html: &mut String, document: &Document) {
    if document.micro.is_empty() {
        return;
    }
    let mut lines = vec![
        [
            "operation",
            "workers",
            "per transaction",
            "ns each",
            "per second",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut series: Vec<Series> = Vec::new();
    let mut marks: Vec<(f64, String)> = Vec::new();
    for figure in &document.micro {
        lines.push(vec![
            figure.operation.clone(),
            workers(figure.workers, figure.more_workers_than_cores),
            figure.per_transaction.to_string(),
            format!("{:.0}", figure.ns),
            grouped(figure.per_second as u64),
        ]);
        let name = format!("{} x {}", figure.operation, figure.per_transaction);
        let mark = (figure.workers as f64, figure.workers.to_string());
        let point = (mark.0, figure.ns);
        if !marks.contains(&mark) {
            marks.push(mark);
        }
        match series.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                name,
                points: vec![point],
            }),
        }
    }
    table(html, "", &lines);
    html.push_str(
        &Lines {
            title: "Nanoseconds of a worker per operation",
            x_label: "workers",
            x_marks: marks,
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            y_text: &|nanos| time(nanos as u64),
            series,
        }
        .render(),
    );
}
