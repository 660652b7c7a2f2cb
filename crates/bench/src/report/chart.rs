//! Charts as SVG: lines, and bars that may have parts.
//!
//! Invariant: whatever the numbers, every coordinate is finite. Does not: know what is shown.

use std::fmt::Write;

/// The first colours of series; further ones come round again, dashed.
const COLOURS: [&str; 10] = [
    "#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#1b7c83", "#953800", "#6e7781",
    "#d4579b", "#4d5fc1",
];
/// The drawing, and the place of the plot in it.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 290.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Height of a line of the legend.
const LEGEND: f64 = 17.0;
/// Curves of at most so many points show them.
const POINTS_SHOWN: usize = 16;
/// Letters of a name that fit beside the plot, and before a bar.
const NAME_LETTERS: usize = 42;

/// Makes text safe inside HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// No longer than fits.
fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_LETTERS {
        return escape(name);
    }
    let kept: String = name.chars().take(NAME_LETTERS - 1).collect();
    format!("{}…", escape(&kept))
}

/// A curve.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// How values lie on an axis.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    Linear,
    Log,
}

/// Curves in one plot.
pub(super) struct Lines<'a> {
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    /// Where the horizontal axis is marked, and with what.
    pub(super) x_marks: Vec<(f64, String)>,
    pub(super) x_scale: Scale,
    pub(super) y_scale: Scale,
    pub(super) y_text: &'a dyn Fn(f64) -> String,
    pub(super) series: Vec<Series>,
}

impl Lines<'_> {
    pub(super) fn render(&self) -> String {
        let place = |value: f64| match self.x_scale {
            Scale::Linear => value,
            Scale::Log => value.max(1e-3).log10(),
        };
        let points = || self.series.iter().flat_map(|s| &s.points);
        if points().next().is_none() {
            return String::new();
        }
        let fold = |pick: fn(&(f64, f64)) -> f64, join: fn(f64, f64) -> f64| {
            points().map(pick).reduce(join).unwrap_or(0.0)
        };
        let (x_low, x_high) = (
            place(fold(|p| p.0, f64::min)),
            place(fold(|p| p.0, f64::max)),
        );
        let y_high = fold(|p| p.1, f64::max).max(1e-9);
        let (y_low, y_high, marks) = match self.y_scale {
            Scale::Linear => {
                let (top, marks) = linear_marks(y_high);
                (0.0, top, marks)
            }
            Scale::Log => {
                let low = fold(|p| p.1, f64::min).max(1.0).log10().floor();
                let high = y_high.max(10.0).log10().ceil().max(low + 1.0);
                let marks = (low as i32..=high as i32).map(|n| 10_f64.powi(n));
                (low, high, marks.collect())
            }
        };
        let height = HEIGHT.max(TOP + BOTTOM + LEGEND * self.series.len() as f64);
        let x = |value: f64| {
            let part = if x_high > x_low {
                (place(value) - x_low) / (x_high - x_low)
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
            height - BOTTOM - (value - y_low) / (y_high - y_low) * (height - TOP - BOTTOM)
        };
        let mut svg = open(height, self.title);
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
                height - BOTTOM + 18.0,
                escape(text)
            );
        }
        let _infallible = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            height - 8.0,
            escape(self.x_label)
        );
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let dash = match at / COLOURS.len() {
                0 => "",
                _ => " stroke-dasharray=\"6 3\"",
            };
            let path: Vec<String> = series
                .points
                .iter()
                .map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py)))
                .collect();
            let _infallible = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
                path.join(" ")
            );
            if series.points.len() <= POINTS_SHOWN {
                for (point, (_, value)) in path.iter().zip(&series.points) {
                    let (px, py) = point.split_once(',').unwrap_or(("0", "0"));
                    let _infallible = write!(
                        svg,
                        "<circle cx=\"{px}\" cy=\"{py}\" r=\"3\" fill=\"{colour}\"><title>{}: {}</title></circle>",
                        escape(&series.name),
                        escape(&(self.y_text)(*value))
                    );
                }
            }
            legend(&mut svg, at, colour, &series.name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// A bar: its name, and its parts in order.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<f64>,
}

/// Bars from left to right, one under the other; each may have several parts.
pub(super) struct Bars<'a> {
    pub(super) title: &'a str,
    /// Names of the parts; one part needs none.
    pub(super) parts: Vec<String>,
    pub(super) bars: Vec<Bar>,
    pub(super) text: &'a dyn Fn(f64) -> String,
}

impl Bars<'_> {
    pub(super) fn render(&self) -> String {
        const STEP: f64 = 24.0;
        const NAMES: f64 = 300.0;
        const VALUE: f64 = 80.0;
        let sum = |bar: &Bar| bar.parts.iter().sum::<f64>();
        let most = self.bars.iter().map(sum).fold(0.0, f64::max);
        if self.bars.is_empty() || most <= 0.0 || !most.is_finite() {
            return String::new();
        }
        let legend_width = if self.parts.len() > 1 { 170.0 } else { 0.0 };
        let rows = self.bars.len().max(if self.parts.len() > 1 {
            self.parts.len()
        } else {
            0
        });
        let height = TOP + STEP * rows as f64 + 10.0;
        let room = WIDTH - NAMES - VALUE - legend_width;
        let mut svg = open(height, self.title);
        for (at, bar) in self.bars.iter().enumerate() {
            let top = TOP + STEP * at as f64;
            let _infallible = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                NAMES - 8.0,
                top + 14.0,
                shortened(&bar.name)
            );
            let mut left = NAMES;
            for (part, value) in bar.parts.iter().enumerate() {
                let width = value.max(0.0) / most * room;
                let _infallible = write!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"18\" fill=\"{}\"><title>{}{}</title></rect>",
                    top,
                    COLOURS[part % COLOURS.len()],
                    self.parts
                        .get(part)
                        .map_or(String::new(), |name| format!("{}: ", escape(name))),
                    escape(&(self.text)(*value))
                );
                left += width;
            }
            let _infallible = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left + 6.0,
                top + 14.0,
                escape(&(self.text)(sum(bar)))
            );
        }
        if self.parts.len() > 1 {
            for (at, name) in self.parts.iter().enumerate() {
                let line = TOP + 10.0 + at as f64 * LEGEND;
                let _infallible = write!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"9\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{line:.1}\">{}</text>",
                    WIDTH - legend_width + 10.0,
                    line - 8.0,
                    COLOURS[at % COLOURS.len()],
                    WIDTH - legend_width + 28.0,
                    escape(name)
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn open(height: f64, title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><text class=\"title\" x=\"8\" y=\"18\">{}</text>",
        escape(title)
    )
}

fn legend(svg: &mut String, at: usize, colour: &str, name: &str) {
    let line = TOP + 8.0 + at as f64 * LEGEND;
    let _infallible = write!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{line:.1}\">{}</text>",
        WIDTH - RIGHT + 12.0,
        line - 5.0,
        WIDTH - RIGHT + 30.0,
        shortened(name)
    );
}

/// The top of a linear axis that begins at 0, and its marks.
fn linear_marks(high: f64) -> (f64, Vec<f64>) {
    let step = nice(high / 4.0);
    let top = (high / step).ceil() * step;
    let marks = (0..=(top / step).round() as u32).map(|n| f64::from(n) * step);
    (top, marks.collect())
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

/// A number with its thousands as a letter.
pub(super) fn short(value: f64) -> String {
    let digits = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value {
        v if v >= 1e6 => format!("{} M", digits(v / 1e6)),
        v if v >= 1e3 => format!("{} k", digits(v / 1e3)),
        v => digits(v),
    }
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
        assert!(shortened(&"<".repeat(100)).ends_with("&lt;…"));
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
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (999.0, "999"),
            (1234.0, "1.23 k"),
            (2e6, "2 M"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    fn finite(svg: &str) {
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn odd_numbers_have_finite_places() {
        for points in [vec![(1.0, 0.0)], vec![(0.0, 0.0), (0.0, 1e18)]] {
            for scale in [Scale::Linear, Scale::Log] {
                let chart = Lines {
                    title: "t",
                    x_label: "x",
                    x_marks: vec![(1.0, "1".into())],
                    x_scale: scale,
                    y_scale: scale,
                    y_text: &short,
                    series: vec![Series {
                        name: "s".into(),
                        points: points.clone(),
                    }],
                };
                let svg = chart.render();
                assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
                finite(&svg);
            }
        }
    }

    #[test]
    fn bars_share_their_length_by_their_parts() {
        let bars = |values: &[f64]| {
            Bars {
                title: "t",
                parts: vec!["a".into(), "b".into()],
                bars: vec![Bar {
                    name: "one".into(),
                    parts: values.to_vec(),
                }],
                text: &short,
            }
            .render()
        };
        let svg = bars(&[1.0, 3.0]);
        finite(&svg);
        // 960 less names, value and legend is 410.
        assert!(
            svg.contains("width=\"102.5\"") && svg.contains("width=\"307.5\""),
            "{svg}"
        );
        assert_eq!(bars(&[0.0, 0.0]), "");
        assert_eq!(bars(&[f64::NAN]), "");
    }
}
