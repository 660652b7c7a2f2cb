//! How far a run is: a bar on a terminal, and nothing elsewhere.

use std::io::{IsTerminal, Write};

use crate::options::Label;

/// Columns of the bar.
const WIDTH: usize = 40;
/// The bar is drawn again when it has moved by this part.
const STEP: f64 = 0.005;
/// Rows loaded between two drawings.
const ROWS_STEP: u64 = 100_000;

/// Hears how far a run is.
pub trait ProgressListener {
    /// Run `number` of `total` begins, counted from 0.
    fn begin(&mut self, number: usize, total: usize, label: &Label);
    /// So many rows are loaded.
    fn loading(&mut self, rows: u64);
    /// So many transactions are done, and this part of the run.
    fn running(&mut self, transactions: u64, part: f64);
    /// The conditions are being checked.
    fn checking(&mut self);
    /// The run is over.
    fn end(&mut self);
}

/// Says nothing.
pub struct NoProgress;

impl ProgressListener for NoProgress {
    fn begin(&mut self, _number: usize, _total: usize, _label: &Label) {}
    fn loading(&mut self, _rows: u64) {}
    fn running(&mut self, _transactions: u64, _part: f64) {}
    fn checking(&mut self) {}
    fn end(&mut self) {}
}

/// Draws a bar on standard error.
pub struct Bar {
    terminal: bool,
    drawn: f64,
    rows: u64,
    /// Which of several runs it is.
    run: String,
}

impl Bar {
    /// A bar, if standard error is a terminal.
    pub fn new() -> Bar {
        Bar {
            terminal: std::io::stderr().is_terminal(),
            drawn: -1.0,
            rows: 0,
            run: String::new(),
        }
    }

    fn draw(&self, text: &str) {
        if self.terminal {
            let mut out = std::io::stderr().lock();
            // A terminal that is gone takes the bar with it and nothing else.
            let _nobody_looks = write!(
                out,
                "\r\x1b[K{}{text}",
                if text.is_empty() { "" } else { &self.run }
            )
            .and_then(|()| out.flush());
        }
    }
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl ProgressListener for Bar {
    fn begin(&mut self, number: usize, total: usize, label: &Label) {
        if total > 1 {
            self.run = format!(
                "{}/{total} {}: {} ",
                number + 1,
                label.section,
                label.series
            );
        }
    }

    fn loading(&mut self, rows: u64) {
        if rows / ROWS_STEP != self.rows {
            self.rows = rows / ROWS_STEP;
            self.draw(&format!("loading: {rows} rows"));
        }
    }

    fn running(&mut self, transactions: u64, part: f64) {
        let part = part.clamp(0.0, 1.0);
        if (part - self.drawn).abs() >= STEP {
            self.drawn = part;
            let full = (part * WIDTH as f64) as usize;
            let done = match transactions {
                0 => String::new(),
                n => format!("  {n} transactions"),
            };
            self.draw(&format!(
                "[{}{}] {:3.0} %{done}",
                "#".repeat(full),
                " ".repeat(WIDTH - full),
                part * 100.0
            ));
        }
    }

    fn checking(&mut self) {
        self.draw("checking");
    }

    fn end(&mut self) {
        self.draw("");
        self.drawn = -1.0;
        self.rows = 0;
    }
}
