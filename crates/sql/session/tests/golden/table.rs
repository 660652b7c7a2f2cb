//! Tables as psql prints them: `print_aligned_text` of PostgreSQL's `fe_utils/print.c`, with border 1 and lines of
//! ASCII.

use logstead_sql_types::TypeId;
use logstead_sql_types::value::oid;
use std::fmt::Write;

/// A column of a result.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: TypeId,
}

impl Column {
    fn is_right_aligned(&self) -> bool {
        const CID: TypeId = TypeId::new(29);
        matches!(
            self.ty,
            oid::INT2
                | oid::INT4
                | oid::INT8
                | oid::FLOAT4
                | oid::FLOAT8
                | oid::NUMERIC
                | oid::OID
                | oid::XID
                | oid::XID8
                | oid::MONEY
                | CID
        )
    }
}

/// Rows with their columns.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// A line of a cell, and how wide it is on a terminal.
struct Line {
    text: String,
    width: usize,
}

impl Table {
    /// Appends the table; `null` stands for NULL.
    pub(crate) fn print(&self, null: &str, out: &mut String) {
        let headers: Vec<Vec<Line>> = self.columns.iter().map(|c| lines(&c.name)).collect();
        let cells = |row: &Vec<Option<String>>| -> Vec<Vec<Line>> {
            let cell = |cell: &Option<String>| lines(cell.as_deref().unwrap_or(null));
            row.iter().map(cell).collect()
        };
        let rows: Vec<Vec<Vec<Line>>> = self.rows.iter().map(cells).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = std::iter::once(&headers)
                    .chain(&rows)
                    .map(|row| &row[column]);
                cells.flatten().map(|line| line.width).max().unwrap_or(0)
            })
            .collect();
        if !self.columns.is_empty() {
            header(&headers, &widths, out);
        }
        let rule = |width: &usize| "-".repeat(width + 2);
        let rules: Vec<String> = widths.iter().map(rule).collect();
        match rules.is_empty() {
            true => out.push_str("--\n"),
            false => out.push_str(&(rules.join("+") + "\n")),
        }
        for row in rows.iter().filter(|row| !row.is_empty()) {
            self.row(row, &widths, out);
        }
        let _written = match self.rows.len() {
            1 => writeln!(out, "(1 row)\n"),
            count => writeln!(out, "({count} rows)\n"),
        };
    }

    fn row(&self, cells: &[Vec<Line>], widths: &[usize], out: &mut String) {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..height {
            for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let is_last = i + 1 == cells.len();
                let goes_on = number + 1 < cell.len();
                out.push(' ');
                let (text, pad) = match cell.get(number) {
                    Some(line) => (line.text.as_str(), width - line.width),
                    None => ("", *width),
                };
                let pad = " ".repeat(pad);
                let is_right = self.columns[i].is_right_aligned() && number < cell.len();
                if is_right {
                    out.push_str(&pad);
                }
                out.push_str(text);
                if !is_right && (!is_last || goes_on) {
                    out.push_str(&pad);
                }
                match (goes_on, is_last) {
                    (true, _) => out.push('+'),
                    (false, true) => {}
                    (false, false) => out.push(' '),
                }
                if !is_last {
                    out.push('|');
                }
            }
            out.push('\n');
        }
    }
}

/// The names, each in the middle.
fn header(cells: &[Vec<Line>], widths: &[usize], out: &mut String) {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..height {
        for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
            out.push(' ');
            match cell.get(number) {
                Some(line) => {
                    let pad = width - line.width;
                    let (left, right) = (" ".repeat(pad / 2), " ".repeat(pad.div_ceil(2)));
                    let _written = write!(out, "{left}{}{right}", line.text);
                }
                None => out.push_str(&" ".repeat(*width)),
            }
            out.push(if number + 1 < cell.len() { '+' } else { ' ' });
            if i + 1 < cells.len() {
                out.push('|');
            }
        }
        out.push('\n');
    }
}

/// The lines of a value, with what a terminal would not show written out: `pg_wcsformat`.
fn lines(value: &str) -> Vec<Line> {
    let line = |text: &str| {
        let mut line = Line {
            text: String::new(),
            width: 0,
        };
        for c in text.chars() {
            match width(c) {
                _ if c == '\t' => {
                    let pad = 8 - line.width % 8;
                    line.text.push_str(&" ".repeat(pad));
                    line.width += pad;
                }
                _ if c == '\r' => line.push_written("\\r"),
                None if c.is_ascii() => line.push_written(&format!("\\x{:02X}", u32::from(c))),
                None => line.push_written(&format!("\\u{:04X}", u32::from(c))),
                Some(width) => {
                    line.text.push(c);
                    line.width += width;
                }
            }
        }
        line
    };
    value.split('\n').map(line).collect()
}

impl Line {
    fn push_written(&mut self, text: &str) {
        self.text.push_str(text);
        self.width += text.len();
    }
}

/// Columns that a character takes on a terminal; none for those that are not shown. The blocks that scripts have
/// characters of, not all of Unicode.
pub(crate) fn width(c: char) -> Option<usize> {
    match u32::from(c) {
        0..0x20 | 0x7f..0xa0 => None,
        // Marks over and behind letters: Latin, Arabic, Tamil.
        0x300..0x370 | 0x64b..0x660 | 0xbc0 | 0xbcd => Some(0),
        // Chinese, Japanese, Korean, emoji.
        0x1100..0x1160 | 0x2e80..0xa4d0 | 0xac00..0xd7a4 | 0xff00..0xff61 | 0x1f300..0x1f650 => {
            Some(2)
        }
        _ => Some(1),
    }
}
