//! Compiled regular expressions: by the library that takes linear time whatever the pattern, or, for back references and lookaround, by
//! one that goes back and tries again, no more often than [`BACKTRACK_MAX`] for a match.

use super::regex_choice::Ends;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// Steps back after which a match is given up: some tens of milliseconds.
const BACKTRACK_MAX: usize = 500_000;
/// Most bytes that a compiled expression takes.
const SIZE_BYTES_MAX: usize = 16 << 20;

/// A compiled expression.
pub(super) enum Compiled {
    /// With what finds the ends that are PostgreSQL's, where they may be others.
    Linear(regex::Regex, Option<Box<Ends>>),
    Backtracking(Box<fancy_regex::Regex>),
}

/// How an expression is compiled.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) ignore_case: bool,
    pub(super) newline_stops: bool,
    pub(super) newline_anchors: bool,
    /// It has back references or lookaround.
    pub(super) backtracks: bool,
    /// Whether the shortest match is wanted, or the longest; none if there is but one.
    pub(super) shortest: Option<bool>,
}

/// A part of a text.
#[derive(Clone, Copy)]
pub(super) struct Part<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Part<'t> {
    pub(super) fn new(text: &'t str, start: usize, end: usize) -> Part<'t> {
        Part { text, start, end }
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn as_str(&self) -> &'t str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }
}

/// A match: the whole of it, then its groups.
pub(super) struct Found<'t>(Vec<Option<Part<'t>>>);

impl<'t> Found<'t> {
    pub(super) fn get(&self, group: usize) -> Option<Part<'t>> {
        self.0.get(group).copied().flatten()
    }
}

fn gave_up(_: fancy_regex::Error) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "regular expression is too complex to be matched against this text",
    )
}

impl Compiled {
    /// Compiles an expression in the libraries' words, or gives theirs for what is wrong with it.
    pub(super) fn new(pattern: &str, options: Options) -> Result<Compiled, String> {
        if options.backtracks {
            return fancy_regex::RegexBuilder::new(pattern)
                .case_insensitive(options.ignore_case)
                .dot_matches_new_line(!options.newline_stops)
                .multi_line(options.newline_anchors)
                .backtrack_limit(BACKTRACK_MAX)
                .delegate_size_limit(SIZE_BYTES_MAX)
                .build()
                .map(|regex| Compiled::Backtracking(Box::new(regex)))
                .map_err(|e| e.to_string());
        }
        regex::RegexBuilder::new(pattern)
            .case_insensitive(options.ignore_case)
            .dot_matches_new_line(!options.newline_stops)
            .multi_line(options.newline_anchors)
            .size_limit(SIZE_BYTES_MAX)
            .build()
            .map(|regex| {
                let ends = options
                    .shortest
                    .and_then(|s| Ends::new(pattern, options, s));
                Compiled::Linear(regex, ends.map(Box::new))
            })
            .map_err(|e| e.to_string())
    }

    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match self {
            Compiled::Linear(regex, _) => Ok(regex.is_match(text)),
            Compiled::Backtracking(regex) => regex.is_match(text).map_err(gave_up),
        }
    }

    /// Groups, the whole match being one.
    pub(super) fn captures_len(&self) -> usize {
        match self {
            Compiled::Linear(regex, _) => regex.captures_len(),
            Compiled::Backtracking(regex) => regex.captures_len(),
        }
    }

    /// The first match that begins at byte `from` or behind it.
    pub(super) fn find_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Found<'t>>> {
        let part = |start: usize, end: usize| Part { text, start, end };
        Ok(match self {
            Compiled::Linear(regex, ends) => {
                let Some(found) = regex.captures_at(text, from) else {
                    return Ok(None);
                };
                let whole = found.get(0).map_or(0..0, |whole| whole.range());
                let end = ends.as_ref().and_then(|ends| ends.end(text, whole.start));
                match (ends, end) {
                    (Some(_), Some(end)) if end != whole.end && regex.captures_len() == 1 => {
                        Some(Found(vec![Some(part(whole.start, end))]))
                    }
                    (Some(ends), Some(end)) if end != whole.end => {
                        Some(Found(ends.divide(text, whole.start, end)?))
                    }
                    _ => {
                        let groups = found.iter();
                        Some(Found(
                            groups
                                .map(|g| g.map(|m| part(m.start(), m.end())))
                                .collect(),
                        ))
                    }
                }
            }
            Compiled::Backtracking(regex) => {
                let found = regex.captures_from_pos(text, from).map_err(gave_up)?;
                found.map(|found| {
                    let groups = found.iter();
                    Found(
                        groups
                            .map(|g| g.map(|m| part(m.start(), m.end())))
                            .collect(),
                    )
                })
            }
        })
    }

    /// What a text is divided by: matches one behind the other, none of them empty right behind another one.
    pub(super) fn find_all<'t>(&self, text: &'t str) -> Result<Vec<Part<'t>>> {
        let mut all: Vec<Part<'t>> = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find_at(text, from)? {
            let Some(whole) = found.get(0) else { break };
            let behind = all.last().is_some_and(|last| last.end == whole.end);
            from = whole.end;
            if whole.is_empty() {
                let next = text.get(from..).and_then(|rest| rest.chars().next());
                if !behind {
                    all.push(whole);
                }
                match next {
                    Some(c) => from += c.len_utf8(),
                    None => break,
                }
                continue;
            }
            all.push(whole);
        }
        Ok(all)
    }
}
