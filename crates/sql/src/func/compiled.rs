//! Compiled regular expressions: by the library that takes linear time whatever the pattern, or, for back references and lookaround, by
//! one that goes back and tries again, no more often than [`BACKTRACK_MAX`] for a match.

use super::regex_choice::{Ends, automaton};
use super::regex_lex::TOO_COMPLEX;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::cell::{Cell, OnceCell};

/// Steps back after which a match is given up: some tens of milliseconds.
const BACKTRACK_MAX: usize = 500_000;
/// Most bytes that a compiled expression takes.
pub(super) const SIZE_BYTES_MAX: usize = 16 << 20;
/// Sizes that are tried one after the other, so that it is known about how large an expression is: the library does not tell.
const SIZES_TRIED: [usize; 4] = [
    SIZE_BYTES_MAX >> 6,
    SIZE_BYTES_MAX >> 4,
    SIZE_BYTES_MAX >> 2,
    SIZE_BYTES_MAX,
];
/// States times places for the ends of groups: what the library allocates to find groups in a long text.
const PLACES_MAX: usize = 2 << 20;
/// Bytes for each of them: the library has two tables.
const PLACE_BYTES: usize = 16;

thread_local! {
    /// Some expression's [`Compiled::bytes`] have become more.
    static GREW: Cell<bool> = const { Cell::new(false) };
}

/// Whether some expression has grown since this was last asked.
pub(super) fn grew() -> bool {
    GREW.take()
}

/// A compiled expression.
pub(super) struct Compiled {
    by: By,
    /// Numbered groups.
    groups: usize,
    /// About how many bytes it takes as long as no groups have been looked for.
    bytes: usize,
}

enum By {
    Linear(Box<Linear>),
    Backtracking(Box<fancy_regex::Regex>),
}

/// An expression that takes linear time.
struct Linear {
    regex: regex::Regex,
    pattern: String,
    options: Options,
    /// Made for the first match that is asked for; none if that would take too much memory.
    finder: OnceCell<Option<Finder>>,
}

/// What tells where matches and groups end.
#[derive(Default)]
struct Finder {
    /// Finds the ends that are PostgreSQL's, where they may be others than the library's.
    ends: Option<Ends>,
    /// States times places.
    places: usize,
}

impl Linear {
    fn finder(&self) -> Result<&Finder> {
        let finder = self.finder.get_or_init(|| {
            let finder = self.make_finder();
            GREW.set(true);
            finder
        });
        finder.as_ref().ok_or_else(|| TOO_COMPLEX.error())
    }

    fn make_finder(&self) -> Option<Finder> {
        let grouped = self.regex.captures_len() > 1;
        if !grouped && self.options.shortest.is_none() {
            return Some(Finder::default());
        }
        let nfa = automaton(&self.pattern, self.options, grouped)?;
        let places = match grouped {
            true => nfa
                .states()
                .len()
                .saturating_mul(nfa.group_info().slot_len()),
            false => 0,
        };
        if places > PLACES_MAX {
            return None;
        }
        let ends = match self.options.shortest {
            None => None,
            Some(shortest) => {
                let whole = match grouped {
                    true => automaton(&self.pattern, self.options, false)?,
                    false => nfa.clone(),
                };
                Some(Ends::new(whole, nfa, shortest)?)
            }
        };
        Some(Finder { ends, places })
    }
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
    /// Numbered groups, also those that the libraries leave away.
    pub(super) groups: usize,
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

impl By {
    fn new(pattern: &str, options: Options, size: usize) -> Result<By, String> {
        if options.backtracks {
            return fancy_regex::RegexBuilder::new(pattern)
                .case_insensitive(options.ignore_case)
                .dot_matches_new_line(!options.newline_stops)
                .multi_line(options.newline_anchors)
                .backtrack_limit(BACKTRACK_MAX)
                .delegate_size_limit(size)
                .build()
                .map(|regex| By::Backtracking(Box::new(regex)))
                .map_err(|e| e.to_string());
        }
        let regex = regex::RegexBuilder::new(pattern)
            .case_insensitive(options.ignore_case)
            .dot_matches_new_line(!options.newline_stops)
            .multi_line(options.newline_anchors)
            .size_limit(size)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(By::Linear(Box::new(Linear {
            regex,
            pattern: pattern.to_owned(),
            options,
            finder: OnceCell::new(),
        })))
    }
}

impl Compiled {
    /// Compiles an expression in the libraries' words, or gives theirs for what is wrong with it.
    pub(super) fn new(pattern: &str, options: Options) -> Result<Compiled, String> {
        let mut wrong = String::new();
        for size in SIZES_TRIED {
            match By::new(pattern, options, size) {
                Ok(by) => {
                    return Ok(Compiled {
                        by,
                        groups: options.groups,
                        bytes: 2 * size + pattern.len(),
                    });
                }
                Err(error) => wrong = error,
            }
        }
        Err(wrong)
    }

    /// About how many bytes of memory it holds.
    pub(super) fn bytes(&self) -> usize {
        let finder = match &self.by {
            By::Linear(linear) => linear.finder.get().and_then(Option::as_ref),
            By::Backtracking(_) => None,
        };
        self.bytes + finder.map_or(0, |finder| finder.places * PLACE_BYTES)
    }

    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match &self.by {
            By::Linear(linear) => Ok(linear.regex.is_match(text)),
            By::Backtracking(regex) => regex.is_match(text).map_err(gave_up),
        }
    }

    /// Groups, the whole match being one.
    pub(super) fn captures_len(&self) -> usize {
        self.groups + 1
    }

    /// The first match that begins at byte `from` or behind it.
    pub(super) fn find_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Found<'t>>> {
        let part = |start: usize, end: usize| Part { text, start, end };
        Ok(match &self.by {
            By::Linear(linear) => {
                let regex = &linear.regex;
                let ends = &linear.finder()?.ends;
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
            By::Backtracking(regex) => {
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
