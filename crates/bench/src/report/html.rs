//! A report with charts: one file, without scripts and without anything from elsewhere.

use std::fmt::Write;

use super::{configuration, grouped, parameters, per_second, rows, time, workers};
use crate::measure::STEP_NS;
use crate::{Latencies, Outcome, Results};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1b1f24}\
h1,h2{font-weight:600}table{border-collapse:collapse;margin:1em 0;font-size:13px}\
td,th{padding:3px 9px;text-align:right;border-bottom:1px solid #d8dee4;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto;margin:.5em 0 1.5em}\
.bad{color:#b00020;font-weight:600}.facts td{text-align:left;white-space:normal}\
text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;fill:#1b1f24}";
const COLOURS: [&str; 8] = [
    "#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#1b7c83", "#953800", "#6e7781",
];
/// The drawing, and the place of the plot in it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Percentiles at which curves are drawn.
const CURVE: [f64; 15] = [
    0.0, 10.0, 25.0, 50.0, 60.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999,
];

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// How values lie on an axis.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Log,
}

struct Chart<'a> {
    title: &'a str,
    x_label: &'a str,
    /// Where the horizontal axis is marked, and with what.
    x_marks: Vec<(f64, String)>,
    y_scale: Scale,
    y_text: &'a dyn Fn(f64) -> String,
    series: Vec<Series>,
}

impl Chart<'_> {
    fn render(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        if points().next().is_none() {
            return String::new();
        }
        let fold = |pick: fn(&(f64, f64)) -> f64, join: fn(f64, f64) -> f64| {
            points().map(pick).reduce(join).unwrap_or(0.0)
        };
        let (x_low, x_high) = (fold(|p| p.0, f64::min), fold(|p| p.0, f64::max));
        let y_high = fold(|p| p.1, f64::max).max(1e-9);
        let (y_low, y_high, marks) = match self.y_scale {
            Scale::Linear => {
                let step = nice(y_high / 4.0);
                let top = (y_high / step).ceil() * step;
                let marks = (0..=(top / step).round() as u32).map(|n| f64::from(n) * step);
                (0.0, top, marks.collect::<Vec<_>>())
            }
            Scale::Log => {
                let low = fold(|p| p.1, f64::min).max(1.0).log10().floor();
                let high = y_high.max(10.0).log10().ceil().max(low + 1.0);
                let marks = (low as i32..=high as i32).map(|n| 10_f64.powi(n));
                (low, high, marks.collect())
            }
        };
        let x = |value: f64| {
            let part = if x_high > x_low {
                (value - x_low) / (x_high - x_low)
            } else {
                0.5
            };
            LEFT + part * (WIDTH - LEFT - RIGHT)
        };
        let y = |value: f64| {
            let value = match self.y_scale {
                Scale::Linear => value,
                Scale::Log => value.max(1.0).log10(),
            };
            HEIGHT - BOTTOM - (value - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)
        };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><text class=\"title\" x=\"{LEFT}\" y=\"18\">{}</text>",
            escape(self.title)
        );
        for mark in marks {
            let at = y(mark);
            let _infallible = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#d8dee4\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0,
                escape(&(self.y_text)(mark))
            );
        }
        for (value, text) in &self.x_marks {
            let _infallible = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x(*value),
                HEIGHT - BOTTOM + 18.0,
                escape(text)
            );
        }
        let _infallible = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            HEIGHT - 8.0,
            escape(self.x_label)
        );
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let path: Vec<String> = series
                .points
                .iter()
                .map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py)))
                .collect();
            let _infallible = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                path.join(" ")
            );
            if series.points.len() <= 16 {
                for point in &path {
                    let (px, py) = point.split_once(',').unwrap_or(("0", "0"));
                    let _infallible = write!(
                        svg,
                        "<circle cx=\"{px}\" cy=\"{py}\" r=\"3\" fill=\"{colour}\"/>"
                    );
                }
            }
            let line = TOP + 8.0 + at as f64 * 18.0;
            let _infallible = write!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT + 12.0,
                line - 5.0,
                WIDTH - RIGHT + 30.0,
                line,
                escape(&series.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|n| *n >= value)
        .unwrap_or(10.0 * power)
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M", v / 1e6),
        v if v >= 1e3 => format!("{} k", v / 1e3),
        v => format!("{v}"),
    }
}

/// Places a percentile so that each further nine takes the same room.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

fn curve(name: &str, latencies: &Latencies) -> Series {
    Series {
        name: name.to_owned(),
        points: CURVE
            .iter()
            // Beyond what the count can tell, a percentile is just the maximum.
            .filter(|p| latencies.len() as f64 * (1.0 - **p / 100.0) >= 1.0)
            .map(|p| (nines(*p), latencies.value_at_percentile(*p) as f64))
            .collect(),
    }
}

fn percentile_marks() -> Vec<(f64, String)> {
    [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999]
        .into_iter()
        .map(|p| (nines(p), format!("{p} %")))
        .collect()
}

fn table(html: &mut String, class: &str, lines: &[Vec<String>]) {
    let _infallible = write!(html, "<table class=\"{class}\">");
    for line in lines {
        html.push_str("<tr>");
        for cell in line {
            let _infallible = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>\n");
}

fn outcome(html: &mut String, results: &Results, outcome: &Outcome) {
    let _infallible = write!(
        html,
        "<h2>{}{}</h2>",
        escape(&workers(results, outcome.workers)),
        if outcome.interrupted {
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
            "p99",
            "p99.9",
            "whole p50",
            "p99",
            "p99.9",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let kinds = rows(outcome);
    for (name, counts) in &kinds {
        let at = |latencies: &Latencies, p: f64| time(latencies.value_at_percentile(p));
        lines.push(vec![
            name.clone(),
            grouped(counts.committed),
            grouped(per_second(counts.committed, outcome.seconds) as u64),
            grouped(counts.rolled_back),
            grouped(counts.conflicts),
            grouped(counts.deadlocks),
            at(&counts.commit, 50.0),
            at(&counts.commit, 99.0),
            at(&counts.commit, 99.9),
            at(&counts.whole, 50.0),
            at(&counts.whole, 99.0),
            at(&counts.whole, 99.9),
        ]);
    }
    table(html, "", &lines);
    let step = STEP_NS as f64 / 1e9;
    let points: Vec<(f64, f64)> = outcome
        .measured
        .timeline
        .iter()
        .enumerate()
        .map(|(at, n)| (at as f64 * step, *n as f64 / step))
        .collect();
    let last = points.last().map_or(0.0, |p| p.0);
    html.push_str(
        &Chart {
            title: "Transactions per second",
            x_label: "seconds",
            x_marks: (0..=4)
                .map(|n| {
                    (
                        last * f64::from(n) / 4.0,
                        format!("{:.1}", last * f64::from(n) / 4.0),
                    )
                })
                .collect(),
            y_scale: Scale::Linear,
            y_text: &short,
            series: vec![Series {
                name: "ended".into(),
                points,
            }],
        }
        .render(),
    );
    for (title, commit) in [
        (
            "Commit latency: end of forward processing to acknowledgment",
            true,
        ),
        ("Whole transaction", false),
    ] {
        let series = kinds.iter().map(|(name, counts)| {
            curve(
                name,
                if commit {
                    &counts.commit
                } else {
                    &counts.whole
                },
            )
        });
        html.push_str(
            &Chart {
                title,
                x_label: "percentile",
                x_marks: percentile_marks(),
                y_scale: Scale::Log,
                y_text: &|nanos| time(nanos as u64),
                series: series.collect(),
            }
            .render(),
        );
    }
    checks(html, &outcome.checks);
}

fn checks(html: &mut String, checks: &[crate::Check]) {
    for check in checks {
        let _infallible = match &check.result {
            Ok(()) => write!(html, "<div>&#10003; {}</div>", escape(&check.name)),
            Err(why) => write!(
                html,
                "<div class=\"bad\">&#10007; {}: {}</div>",
                escape(&check.name),
                escape(why)
            ),
        };
    }
}

pub(crate) fn render(results: &Results) -> String {
    let name = results.options.kind.name();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>logstead bench {name}</title>\
         <style>{STYLE}</style>\n<h1>logstead bench {name}</h1>\n"
    );
    let mut facts = vec![vec!["machine".to_owned(), results.machine.describe()]];
    let given = parameters(&results.options.kind);
    for (name, value) in given.into_iter().chain(configuration(&results.options)) {
        facts.push(vec![name.to_owned(), value]);
    }
    table(&mut html, "facts", &facts);
    if results.outcomes.len() > 1 {
        let points = results.outcomes.iter().map(|o| {
            let committed = o.measured.total().committed;
            (o.workers as f64, per_second(committed, o.seconds))
        });
        let marks = results
            .outcomes
            .iter()
            .map(|o| (o.workers as f64, o.workers.to_string()));
        html.push_str(
            &Chart {
                title: "Committed transactions per second",
                x_label: "workers",
                x_marks: marks.collect(),
                y_scale: Scale::Linear,
                y_text: &short,
                series: vec![Series {
                    name: name.to_owned(),
                    points: points.collect(),
                }],
            }
            .render(),
        );
    }
    for each in &results.outcomes {
        outcome(&mut html, results, each);
    }
    micro(&mut html, results);
    for figure in &results.loads {
        let _infallible = write!(
            html,
            "<p>{}: {} rows in {:.2} s, {} per second</p>",
            escape(&workers(results, figure.workers)),
            grouped(figure.rows),
            figure.seconds,
            grouped(per_second(figure.rows, figure.seconds) as u64)
        );
    }
    checks(&mut html, &results.checks);
    html.push_str("</html>\n");
    html
}

fn micro(html: &mut String, results: &Results) {
    if results.micro.is_empty() {
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
    for figure in &results.micro {
        lines.push(vec![
            figure.operation.name().to_owned(),
            workers(results, figure.workers),
            figure.per_transaction.to_string(),
            format!("{:.0}", figure.nanos()),
            grouped(figure.rate() as u64),
        ]);
        let name = format!("{} x {}", figure.operation.name(), figure.per_transaction);
        let point = (figure.workers as f64, figure.nanos());
        match series.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                name,
                points: vec![point],
            }),
        }
    }
    table(html, "", &lines);
    let marks = results
        .options
        .common
        .workers
        .iter()
        .map(|n| (*n as f64, n.to_string()));
    html.push_str(
        &Chart {
            title: "Nanoseconds of a worker per operation",
            x_label: "workers",
            x_marks: marks.collect(),
            y_scale: Scale::Log,
            y_text: &|nanos| time(nanos as u64),
            series,
        }
        .render(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(
            escape("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }

    #[test]
    fn axes_have_round_marks() {
        for (value, round) in [
            (1.0, 1.0),
            (1.1, 2.0),
            (3.0, 5.0),
            (70.0, 100.0),
            (0.03, 0.05),
        ] {
            assert!((nice(value) - round).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_chart_of_one_point_has_no_infinite_place() {
        let chart = Chart {
            title: "t",
            x_label: "x",
            x_marks: vec![(1.0, "1".into())],
            y_scale: Scale::Linear,
            y_text: &short,
            series: vec![Series {
                name: "s".into(),
                points: vec![(1.0, 0.0)],
            }],
        };
        let svg = chart.render();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
