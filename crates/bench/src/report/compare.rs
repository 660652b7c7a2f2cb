//! Runs of one section side by side: a table of medians over repetitions, and charts.
//!
//! A section whose runs have places on an axis is drawn as lines over it, another one as bars and curves. Figures of
//! repetitions are their medians, percentile by percentile; the table gives the range of the throughput as well.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::chart::{Bar, Bars, Lines, Scale, Series, escape, short};
use super::html::{curve, curves, facts, table};
use super::record::{Document, Latency, Run, Share};
use super::{PERCENTILES, grouped, time, workers};

/// Axes are logarithmic when the largest value is so many times the smallest.
const LOG_FROM: f64 = 8.0;
/// Figures by name in the order in which they are shown; others follow by name.
const FIGURES_FIRST: [&str; 4] = [
    "appends per commit",
    "appends per second",
    "appended bytes per commit",
    "record bytes per commit",
];

/// Of these, what a terminal has room for.
const FIGURES_BRIEF: [&str; 9] = [
    "needless wait beyond 100 us, % of commits",
    "needless wait, mean us",
    "appends per second",
    "requests per million commits",
    "dollars per million commits",
    "CPU us per append",
    "record bytes per commit",
    "hardened and not yet committed, %",
    "until the first query, ms",
];

/// The repetitions of one configuration.
struct Point<'a> {
    series: &'a str,
    x: Option<f64>,
    runs: Vec<&'a Run>,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

impl Point<'_> {
    fn name(&self, axis: Option<&str>) -> String {
        match (self.x, axis) {
            (Some(x), Some(axis)) => format!("{}, {axis} {}", self.series, short(x)),
            _ => self.series.to_owned(),
        }
    }

    fn each(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| value(run)).collect();
        (!values.is_empty()).then(|| median(values))
    }

    fn throughputs(&self) -> Vec<f64> {
        self.runs
            .iter()
            .filter_map(|run| run.total().map(|total| total.per_second))
            .collect()
    }

    fn latency(&self, of: fn(&Run) -> Option<&Latency>, percentile: usize) -> Option<f64> {
        self.each(|run| of(run).map(|latency| latency.shown()[percentile] as f64))
    }

    /// The curve whose value at each percentile is the median of the repetitions', as far as all of them go.
    fn curve(&self, of: fn(&Run) -> Option<&Latency>) -> Latency {
        let curves: Vec<&Latency> = self.runs.iter().filter_map(|run| of(run)).collect();
        let Some(first) = curves.iter().min_by_key(|latency| latency.curve.len()) else {
            return Latency::default();
        };
        Latency {
            curve: first
                .curve
                .iter()
                .enumerate()
                .map(|(at, (percentile, _))| {
                    let values = curves.iter().map(|latency| latency.curve[at].1 as f64);
                    (*percentile, median(values.collect()) as u64)
                })
                .collect(),
            ..Latency::default()
        }
    }

    fn shares(&self) -> Vec<Share> {
        let Some(first) = self.runs.iter().find(|run| !run.shares.is_empty()) else {
            return Vec::new();
        };
        first
            .shares
            .iter()
            .map(|share| Share {
                name: share.name.clone(),
                mean_ns: self
                    .each(|run| {
                        let same = run.shares.iter().find(|other| other.name == share.name);
                        same.map(|share| share.mean_ns)
                    })
                    .unwrap_or(0.0),
                ..Share::default()
            })
            .collect()
    }
}

/// Of those that wrote: who only read has often nothing to wait for, and would hide the others.
fn commit(run: &Run) -> Option<&Latency> {
    run.total().map(|total| &total.writing_latency_ns)
}

fn whole(run: &Run) -> Option<&Latency> {
    run.total().map(|total| &total.whole_latency_ns)
}

/// A latency's name and where it is found.
type Latencies = (&'static str, fn(&Run) -> Option<&Latency>);

/// Both, the commit's first. Clients over the wire know only the whole transaction's.
const LATENCIES: [Latencies; 2] = [("commit", commit), ("whole", whole)];

/// Did anybody measure it?
fn has(points: &[Point<'_>], of: fn(&Run) -> Option<&Latency>) -> bool {
    points
        .iter()
        .flat_map(|point| &point.runs)
        .any(|run| of(run).is_some_and(|latency| latency.count > 0))
}

/// Keeps what every run has alike.
fn shared<'a>(
    runs: &[&'a Run],
    of: fn(&Run) -> &BTreeMap<String, String>,
) -> Vec<(&'a String, &'a String)> {
    let Some((first, others)) = runs.split_first() else {
        return Vec::new();
    };
    of(first)
        .iter()
        .filter(|(name, value)| others.iter().all(|run| of(run).get(*name) == Some(value)))
        .collect()
}

/// The sections in their order, each with its runs.
fn sections(document: &Document) -> Vec<(&str, Vec<&Run>)> {
    let mut sections: Vec<(&str, Vec<&Run>)> = Vec::new();
    for run in &document.runs {
        match sections.iter_mut().find(|(name, _)| *name == run.section) {
            Some((_, runs)) => runs.push(run),
            None => sections.push((&run.section, vec![run])),
        }
    }
    sections
}

/// Every section of the document.
pub(super) fn render(html: &mut String, document: &Document) {
    let sections = sections(document);
    let several = sections.len() > 1;
    for (section, runs) in sections {
        if several {
            let _infallible = writeln!(html, "<h3>{}</h3>", escape(section));
        }
        facts(
            html,
            shared(&runs, |run| &run.parameters)
                .into_iter()
                .chain(shared(&runs, |run| &run.configuration)),
        );
        compare(html, &runs);
    }
}

/// What the runs' axis shows, if they have one.
fn axis<'a>(runs: &[&'a Run]) -> Option<&'a str> {
    let place = runs.iter().find_map(|run| run.x.as_ref());
    place.map(|x| x.name.as_str())
}

/// Repetitions together.
fn grouped_runs<'a>(runs: &[&'a Run]) -> Vec<Point<'a>> {
    let mut points: Vec<Point<'a>> = Vec::new();
    for run in runs {
        let x = run.x.as_ref().map(|x| x.value);
        match points
            .iter_mut()
            .find(|point| point.series == run.series && point.x == x)
        {
            Some(point) => point.runs.push(run),
            None => points.push(Point {
                series: &run.series,
                x,
                runs: vec![run],
            }),
        }
    }
    points
}

fn compare(html: &mut String, runs: &[&Run]) {
    let axis = axis(runs);
    let points = grouped_runs(runs);
    overview(html, &points, axis);
    match axis {
        Some(axis) => lines(html, &points, axis),
        None => bars(html, &points),
    }
    stacked(html, &points, axis);
}

/// The names of figures that any run has.
fn figure_names(points: &[Point<'_>]) -> Vec<String> {
    let mut names: Vec<String> = FIGURES_FIRST.map(str::to_owned).to_vec();
    for run in points.iter().flat_map(|point| &point.runs) {
        for name in run.figures.keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names.retain(|name| {
        let has = |run: &&Run| run.figures.contains_key(name);
        points.iter().any(|point| point.runs.iter().any(has))
    });
    names
}

fn overview(html: &mut String, points: &[Point<'_>], axis: Option<&str>) {
    table(html, "", &overview_lines(points, axis, false));
}

/// A line for each configuration, and a head; `brief` leaves out what a terminal has no room for.
fn overview_lines(points: &[Point<'_>], axis: Option<&str>, brief: bool) -> Vec<Vec<String>> {
    let mut figures = figure_names(points);
    let mut latencies: Vec<Latencies> = LATENCIES
        .into_iter()
        .filter(|(_, of)| has(points, *of))
        .collect();
    let mut head = vec![axis.map_or("", |_| "run").to_owned()];
    if brief {
        let is_brief = |name: &String| FIGURES_BRIEF.contains(&name.as_str());
        if figures.iter().any(is_brief) {
            figures.retain(is_brief);
        }
        latencies.truncate(1);
        head.push("per s".into());
    } else {
        head.extend(["workers", "runs", "per s", "from", "to"].map(str::to_owned));
    }
    for (which, _) in &latencies {
        head.extend(PERCENTILES.map(|(_, name)| format!("{which} {name}")));
        head.push(format!("{which} mean"));
    }
    head.extend(figures.iter().cloned());
    let mut lines = vec![head];
    for point in points {
        let throughputs = point.throughputs();
        let bound = |join: fn(f64, f64) -> f64| throughputs.iter().copied().reduce(join);
        let rate = |value: Option<f64>| grouped(value.unwrap_or(0.0) as u64);
        let mut line = vec![point.name(axis)];
        if brief {
            line.push(rate(Some(median(throughputs.clone()))));
        } else {
            line.extend([
                point.runs.first().map_or(String::new(), |run| {
                    workers(run.workers, run.more_workers_than_cores)
                }),
                point.runs.len().to_string(),
                rate(Some(median(throughputs.clone()))),
                rate(bound(f64::min)),
                rate(bound(f64::max)),
            ]);
        }
        for (_, of) in &latencies {
            for percentile in 0..PERCENTILES.len() {
                let value = point.latency(*of, percentile).unwrap_or(0.0);
                line.push(time(value as u64));
            }
            let mean = point.each(|run| of(run).map(|latency| latency.mean));
            line.push(time(mean.unwrap_or(0.0) as u64));
        }
        for name in &figures {
            let value = point.each(|run| run.figures.get(name).copied());
            line.push(value.map_or(String::new(), short));
        }
        lines.push(line);
    }
    lines
}

/// Every section's name and a brief table of it.
pub(super) fn brief(document: &Document) -> Vec<(&str, Vec<Vec<String>>)> {
    sections(document)
        .into_iter()
        .map(|(section, runs)| {
            let axis = axis(&runs);
            (section, overview_lines(&grouped_runs(&runs), axis, true))
        })
        .collect()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// One curve for each series, over the axis.
fn over_axis(points: &[Point<'_>], value: impl Fn(&Point<'_>) -> Option<f64>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for point in points {
        let (Some(x), Some(y)) = (point.x, value(point)) else {
            continue;
        };
        match series.iter_mut().find(|s| s.name == point.series) {
            Some(series) => series.points.push((x, y)),
            None => series.push(Series {
                name: point.series.to_owned(),
                points: vec![(x, y)],
            }),
        }
    }
    for each in &mut series {
        each.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    series
}

fn lines(html: &mut String, points: &[Point<'_>], axis: &str) {
    let mut places: Vec<f64> = points.iter().filter_map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (low, high) = (
        places.first().copied().unwrap_or(1.0),
        places.last().copied().unwrap_or(1.0),
    );
    let chart = |title: &str, y_scale, y_text: &dyn Fn(f64) -> String, series| {
        Lines {
            title,
            x_label: axis,
            x_marks: places.iter().map(|x| (*x, short(*x))).collect(),
            x_scale: if low > 0.0 && high / low > LOG_FROM {
                Scale::Log
            } else {
                Scale::Linear
            },
            y_scale,
            y_text,
            series,
        }
        .render()
    };
    let as_time = |nanos: f64| time(nanos as u64);
    html.push_str(&chart(
        "Committed transactions per second",
        Scale::Linear,
        &short,
        over_axis(points, |point| Some(median(point.throughputs()))),
    ));
    for (which, of) in LATENCIES.into_iter().filter(|(_, of)| has(points, *of)) {
        for (percentile, (_, name)) in PERCENTILES.iter().enumerate() {
            html.push_str(&chart(
                &format!("{} latency {name}", capitalised(which)),
                Scale::Log,
                &as_time,
                over_axis(points, |point| point.latency(of, percentile)),
            ));
        }
    }
    for name in figure_names(points) {
        html.push_str(&chart(
            &name,
            Scale::Linear,
            &short,
            over_axis(points, |point| {
                point.each(|run| run.figures.get(&name).copied())
            }),
        ));
    }
}

fn bars(html: &mut String, points: &[Point<'_>]) {
    if points.len() > 1 {
        let chart = |title: &str, value: &dyn Fn(&Point<'_>) -> Option<f64>, text| {
            Bars {
                title,
                parts: Vec::new(),
                bars: points
                    .iter()
                    .map(|point| Bar {
                        name: point.series.to_owned(),
                        parts: vec![value(point).unwrap_or(0.0)],
                    })
                    .collect(),
                text,
            }
            .render()
        };
        html.push_str(&chart(
            "Committed transactions per second",
            &|point| Some(median(point.throughputs())),
            &short,
        ));
        for name in figure_names(points) {
            let value = |point: &Point<'_>| point.each(|run| run.figures.get(&name).copied());
            html.push_str(&chart(&name, &value, &short));
        }
    }
    for (which, of) in LATENCIES.into_iter().filter(|(_, of)| has(points, *of)) {
        let title = match which {
            "commit" => "Commit latency of who wrote: end of forward processing to acknowledgment",
            _ => "Whole transaction",
        };
        let series = points
            .iter()
            .map(|point| curve(point.series, &point.curve(of)));
        html.push_str(&curves(title, series.collect()));
    }
}

fn stacked(html: &mut String, points: &[Point<'_>], axis: Option<&str>) {
    let shares: Vec<(String, Vec<Share>)> = points
        .iter()
        .map(|point| (point.name(axis), point.shares()))
        .filter(|(_, shares)| !shares.is_empty())
        .collect();
    let Some((_, first)) = shares.first() else {
        return;
    };
    let parts: Vec<String> = first.iter().map(|share| share.name.clone()).collect();
    let bars = shares
        .into_iter()
        .map(|(name, shares)| Bar {
            name,
            parts: parts
                .iter()
                .map(|part| {
                    let share = shares.iter().find(|share| share.name == *part);
                    share.map_or(0.0, |share| share.mean_ns)
                })
                .collect(),
        })
        .collect();
    html.push_str(
        &Bars {
            title: "Where a transaction's time goes, on average",
            parts,
            bars,
            text: &|nanos| time(nanos as u64),
        }
        .render(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::{AxisPoint, Transactions};

    fn run(series: &str, x: Option<f64>, per_second: f64, p99: u64) -> Run {
        Run {
            section: "s".into(),
            series: series.into(),
            x: x.map(|value| AxisPoint {
                name: "load".into(),
                value,
            }),
            transactions: vec![Transactions {
                per_second,
                writing_latency_ns: Latency {
                    p99,
                    count: 2,
                    curve: vec![(50.0, p99 / 2), (99.0, p99)],
                    ..Latency::default()
                },
                ..Transactions::default()
            }],
            ..Run::default()
        }
    }

    fn point<'a>(runs: &[&'a Run]) -> Point<'a> {
        Point {
            series: "a",
            x: None,
            runs: runs.to_vec(),
        }
    }

    #[test]
    fn repetitions_are_given_by_their_median() {
        let runs = [
            run("a", None, 10.0, 100),
            run("a", None, 30.0, 900),
            run("a", None, 20.0, 200),
        ];
        let all: Vec<&Run> = runs.iter().collect();
        let three = point(&all);
        assert_eq!(median(three.throughputs()), 20.0);
        assert_eq!(three.latency(commit, 2), Some(200.0));
        assert_eq!(three.curve(commit).curve, [(50.0, 100), (99.0, 200)]);
        assert_eq!(median(point(&all[..2]).throughputs()), 20.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn runs_are_grouped_by_series_and_place() {
        let runs = [
            run("a", Some(1.0), 10.0, 1),
            run("b", Some(1.0), 20.0, 2),
            run("a", Some(100.0), 30.0, 3),
            run("a", Some(100.0), 50.0, 5),
        ];
        let all: Vec<&Run> = runs.iter().collect();
        let mut html = String::new();
        compare(&mut html, &all);
        // The mean of the two middle ones, and their range.
        assert!(
            html.contains(
                "<td>a, load 100</td><td>0 workers</td><td>2</td><td>40</td><td>30</td><td>50</td>"
            ),
            "{html}"
        );
        assert_eq!(
            html.matches("polyline").count(),
            2 * 6,
            "two curves, six charts"
        );
    }

    #[test]
    fn only_what_all_runs_have_alike_is_shared() {
        let (mut a, mut b) = (Run::default(), Run::default());
        for (name, one, other) in [("same", "1", "1"), ("differs", "1", "2")] {
            a.configuration.insert(name.into(), one.into());
            b.configuration.insert(name.into(), other.into());
        }
        a.configuration.insert("only one has it".into(), "1".into());
        let alike = shared(&[&a, &b], |run| &run.configuration);
        assert_eq!(alike, [(&"same".to_owned(), &"1".to_owned())]);
    }
}
