//! Errors and notices as libpq words them: `pqBuildErrorMessage3`. Places in the server's source are left out.

use super::table::width;
use logstead_sql_types::error::ErrorFields;
use std::fmt::Write;

/// How much is told: psql's VERBOSITY.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Sqlstate,
    Terse,
    Default,
    Verbose,
}

/// When CONTEXT is told: psql's SHOW_CONTEXT.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowContext {
    Never,
    Errors,
    Always,
}

/// What is told of errors and notices.
pub(crate) struct Wording {
    pub(crate) verbosity: Verbosity,
    pub(crate) context: ShowContext,
    /// The two lines about a position.
    pub(crate) positions: bool,
}

impl Wording {
    /// Appends a message of this severity about the statement that was sent.
    pub(crate) fn print(
        &self,
        severity: &str,
        fields: &ErrorFields,
        query: &str,
        out: &mut String,
    ) {
        let text = self.text(severity, fields, query);
        out.push_str(text.strip_suffix('\n').unwrap_or(&text));
        out.push('\n');
    }

    fn text(&self, severity: &str, fields: &ErrorFields, query: &str) -> String {
        let mut out = format!("{severity}:  ");
        let verbosity = self.verbosity;
        if verbosity == Verbosity::Sqlstate {
            return out + fields.code.as_str();
        }
        if verbosity == Verbosity::Verbose {
            let _written = write!(out, "{}: ", fields.code.as_str());
        }
        out.push_str(&fields.message);
        let inner = fields.inner_query.as_ref();
        let mut cursor: Option<(&str, usize)> = None;
        if let Some(position) = fields.position {
            cursor = Some((query, position));
        } else if let Some((position, query)) = inner {
            cursor = Some((query, *position));
        }
        let is_terse = verbosity == Verbosity::Terse;
        if let Some((_, position)) = cursor.filter(|_| is_terse) {
            let _written = write!(out, " at character {position}");
        }
        out.push('\n');
        if let Some((query, position)) = cursor.filter(|_| self.positions && !is_terse) {
            out.push_str(&error_position(query, position));
        }
        let mut field = |name: &str, value: Option<&String>| {
            if let Some(value) = value {
                let _written = writeln!(out, "{name}:  {value}");
            }
        };
        if !is_terse {
            let errors = self.context == ShowContext::Errors && severity == "ERROR";
            let context = errors || self.context == ShowContext::Always;
            field("DETAIL", fields.detail.as_ref());
            field("HINT", fields.hint.as_ref());
            field("QUERY", inner.map(|(_, query)| query));
            field("CONTEXT", fields.context.as_ref().filter(|_| context));
        }
        if verbosity == Verbosity::Verbose {
            field("SCHEMA NAME", fields.schema.as_ref());
            field("TABLE NAME", fields.table.as_ref());
            field("COLUMN NAME", fields.column.as_ref());
            field("DATATYPE NAME", fields.data_type.as_ref());
            field("CONSTRAINT NAME", fields.constraint.as_ref());
        }
        out
    }
}

/// Screen columns of an excerpt.
const DISPLAY_COLUMNS: usize = 60;
/// So far from the excerpt's end the position is, if it can be.
const RIGHT_CUT_MIN: usize = 10;

/// The line that a position is in, or a part of it, and below that a mark: `reportErrorPosition`.
fn error_position(query: &str, position: usize) -> String {
    let Some(at) = position.checked_sub(1) else {
        return String::new();
    };
    let characters: Vec<char> = query.chars().collect();
    if at > characters.len() {
        return String::new();
    }
    let is_end = |c: &char| matches!(c, '\r' | '\n');
    let (mut line, mut begin) = (1, 0);
    for (i, c) in characters[..at].iter().enumerate() {
        if is_end(c) {
            let is_second = *c == '\n' && i > 0 && characters[i - 1] == '\r';
            line += usize::from(!is_second);
            begin = i + 1;
        }
    }
    let length = characters[at..].iter().position(is_end);
    let mut end = length.map_or(characters.len(), |length| at + length);
    let columns_of = |c: &char| width(*c).unwrap_or(1).max(1);
    let columns =
        |from: usize, to: usize| characters[from..to].iter().map(columns_of).sum::<usize>();
    let (mut is_cut_left, mut is_cut_right) = (false, false);
    if columns(begin, end) > DISPLAY_COLUMNS {
        if DISPLAY_COLUMNS >= columns(begin, at) + RIGHT_CUT_MIN {
            while columns(begin, end) > DISPLAY_COLUMNS {
                end -= 1;
            }
            is_cut_right = true;
        } else {
            while at < end && columns(at, end) > RIGHT_CUT_MIN {
                end -= 1;
                is_cut_right = true;
            }
            while columns(begin, end) > DISPLAY_COLUMNS {
                begin += 1;
                is_cut_left = true;
            }
        }
    }
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let prefix = format!("LINE {line}: {}", dots(is_cut_left));
    let shown: String = characters[begin..end].iter().collect();
    let shown = shown.replace('\t', " ");
    let pad = " ".repeat(prefix.len() + columns(begin, at));
    format!("{prefix}{shown}{}\n{pad}^\n", dots(is_cut_right))
}
