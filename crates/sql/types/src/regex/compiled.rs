//! Compiled regular expressions: by the library that takes linear time whatever the pattern, or, for back references
//! and lookaround, by one that goes back and tries again, no more often than [`BACKTRACK_MAX`] for a match.

use super::INTERRUPT_MATCHES;
use super::lex::TOO_COMPLEX;
use super::match_preference::{self, MatchEndFinder, automaton};
use crate::error::{Result, SqlError};
use crate::interrupt::{check_for_interrupts, no_suspend};
use logstead_types::SqlState;
use regex_automata::Input;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};
use std::cell::{Cell, OnceCell, RefCell};

/// Steps back after which a match is given up: some tens of milliseconds.
const BACKTRACK_MAX: usize = 500_000;
/// Most bytes that a compiled expression takes.
pub(crate) const SIZE_BYTES_MAX: usize = 16 << 20;
/// Sizes that are tried one after the other, so that it is known about how large an expression is: the library does not
/// tell.
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
pub(crate) fn grew() -> bool {
    GREW.take()
}

/// A compiled expression.
pub struct Compiled {
    by: MatchEngine,
    /// Numbered groups.
    groups: usize,
    /// About how many bytes it takes as long as no groups have been looked for.
    bytes: usize,
}

enum MatchEngine {
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
    /// Its characters, repetitions written out.
    places: usize,
    /// Made for the first text that may take long.
    stepped: OnceCell<Option<SteppedDfa>>,
}

/// What tells where matches and groups end.
#[derive(Default)]
struct Finder {
    /// Finds the ends that are PostgreSQL's, where they may be others than the library's.
    ends: Option<MatchEndFinder>,
    /// States times places.
    places: usize,
}

/// Characters that an expression may match one after the other, its repetitions written out: about what PostgreSQL
/// takes.
const PLACES_IN_PATTERN_MAX: usize = 50_000;
/// Places times bytes of text that the library is given at once: some tens of milliseconds at worst.
const AT_ONCE_MAX: usize = 16 << 20;
/// States that the automaton may make between two looks for interrupts, times places.
const WORK_BETWEEN: usize = 1 << 20;

/// How many places a pattern has when its repetitions are written out.
fn weight(pattern: &str, options: Options) -> usize {
    // What the parser below does not know is bounded by its length, and in its steps.
    let parsed = syntax::parse_with(pattern, &match_preference::syntax_of(options));
    parsed.map_or(pattern.len(), |hir| places(&hir))
}

fn places(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1);
            places(&repetition.sub).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => places(&capture.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            all.iter().map(places).fold(0, usize::saturating_add)
        }
    }
}

/// Whether there is a match ahead.
enum MatchAhead {
    None,
    Some,
    /// The library is to be asked: that takes no time to speak of, or there is no other way.
    Unknown,
}

/// The automaton that finds whether there is a match, in steps.
struct SteppedDfa {
    dfa: DFA,
    /// Not held while others go on: it is taken out and put back.
    cache: RefCell<Option<dfa::Cache>>,
}

impl Linear {
    /// Whether a match begins at byte `from` or behind it, if finding that may take long: then it is found in steps,
    /// between which others go on.
    fn ends_ahead(&self, text: &str, from: usize) -> Result<MatchAhead> {
        let bytes = text.as_bytes().get(from..).unwrap_or_default().len();
        if bytes.saturating_mul(self.places.max(1)) <= AT_ONCE_MAX {
            return Ok(MatchAhead::Unknown);
        }
        let stepped = self.stepped.get_or_init(|| self.make_stepped());
        let Some(stepped) = stepped else {
            return Ok(MatchAhead::Unknown);
        };
        let mut cache = match stepped.cache.take() {
            Some(cache) => cache,
            None => stepped.dfa.create_cache(),
        };
        let ahead = self.step_through(&stepped.dfa, &mut cache, text, from);
        stepped.cache.replace(Some(cache));
        ahead
    }

    fn make_stepped(&self) -> Option<SteppedDfa> {
        let nfa = automaton(&self.pattern, self.options, false)?;
        let dfa = DFA::builder()
            .configure(
                DFA::config()
                    .skip_cache_capacity_check(true)
                    .unicode_word_boundary(true),
            )
            .build_from_nfa(nfa)
            .ok()?;
        Some(SteppedDfa {
            dfa,
            cache: RefCell::new(None),
        })
    }

    fn step_through(
        &self,
        dfa: &DFA,
        cache: &mut dfa::Cache,
        text: &str,
        from: usize,
    ) -> Result<MatchAhead> {
        let input = Input::new(text).range(from..);
        let Ok(mut state) = dfa.start_state_forward(cache, &input) else {
            return Ok(MatchAhead::Unknown);
        };
        let between = (WORK_BETWEEN / self.places.max(1)).clamp(16, 1 << 16);
        for (at, byte) in text.as_bytes().iter().enumerate().skip(from) {
            if at % between == 0 {
                check_for_interrupts()?;
            }
            let Ok(next) = dfa.next_state(cache, state, *byte) else {
                return Ok(MatchAhead::Unknown);
            };
            state = next;
            if state.is_tagged() {
                if state.is_match() {
                    return Ok(MatchAhead::Some);
                }
                if state.is_dead() {
                    return Ok(MatchAhead::None);
                }
                if state.is_quit() {
                    return Ok(MatchAhead::Unknown);
                }
            }
        }
        Ok(match dfa.next_eoi_state(cache, state) {
            Ok(state) if state.is_match() => MatchAhead::Some,
            Ok(_) => MatchAhead::None,
            Err(_) => MatchAhead::Unknown,
        })
    }

    fn finder(&self) -> Result<&Finder> {
        // Sessions of a worker share it: none may come while another one makes it.
        let finder = no_suspend(|| {
            self.finder.get_or_init(|| {
                let finder = self.make_finder();
                GREW.set(true);
                finder
            })
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
                Some(MatchEndFinder::new(whole, nfa, shortest)?)
            }
        };
        Some(Finder { ends, places })
    }
}

/// How an expression is compiled.
#[derive(Clone, Copy, Default)]
pub struct Options {
    pub ignore_case: bool,
    pub newline_stops: bool,
    pub newline_anchors: bool,
    /// It has back references or lookaround.
    pub backtracks: bool,
    /// Whether the shortest match is wanted, or the longest; none if there is but one.
    pub shortest: Option<bool>,
    /// Numbered groups, also those that the libraries leave away.
    pub groups: usize,
}

/// A part of a text.
#[derive(Clone, Copy)]
pub struct Span<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

impl<'t> Span<'t> {
    pub fn new(text: &'t str, start: usize, end: usize) -> Span<'t> {
        Span { text, start, end }
    }

    pub fn start(&self) -> usize {
        self.start
    }

    pub fn end(&self) -> usize {
        self.end
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn as_str(&self) -> &'t str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }
}

/// A match: the whole of it, then its groups.
pub struct Captures<'t>(Vec<Option<Span<'t>>>);

impl<'t> Captures<'t> {
    /// What a group matched; group 0 is the whole match.
    pub fn get(&self, group: usize) -> Option<Span<'t>> {
        self.0.get(group).copied().flatten()
    }
}

fn gave_up(_: fancy_regex::Error) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "regular expression is too complex to be matched against this text",
    )
}

impl MatchEngine {
    fn new(
        pattern: &str,
        options: Options,
        size: usize,
        places: usize,
    ) -> Result<MatchEngine, String> {
        if options.backtracks {
            return fancy_regex::RegexBuilder::new(pattern)
                .case_insensitive(options.ignore_case)
                .dot_matches_new_line(!options.newline_stops)
                .multi_line(options.newline_anchors)
                .backtrack_limit(BACKTRACK_MAX)
                .delegate_size_limit(size)
                .build()
                .map(|regex| MatchEngine::Backtracking(Box::new(regex)))
                .map_err(|e| e.to_string());
        }
        let regex = regex::RegexBuilder::new(pattern)
            .case_insensitive(options.ignore_case)
            .dot_matches_new_line(!options.newline_stops)
            .multi_line(options.newline_anchors)
            .size_limit(size)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(MatchEngine::Linear(Box::new(Linear {
            regex,
            pattern: pattern.to_owned(),
            options,
            finder: OnceCell::new(),
            places,
            stepped: OnceCell::new(),
        })))
    }
}

impl Compiled {
    /// Compiles an expression in the libraries' words, or gives theirs for what is wrong with it.
    pub fn new(pattern: &str, options: Options) -> Result<Compiled, String> {
        let weight = weight(pattern, options);
        if weight > PLACES_IN_PATTERN_MAX {
            return Err(String::new());
        }
        let mut wrong = String::new();
        // A place takes some tens of bytes: what is known to be too small is not tried.
        for size in SIZES_TRIED.into_iter().filter(|size| *size >= weight * 16) {
            match MatchEngine::new(pattern, options, size, weight) {
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
    pub fn bytes(&self) -> usize {
        let finder = match &self.by {
            MatchEngine::Linear(linear) => linear.finder.get().and_then(Option::as_ref),
            MatchEngine::Backtracking(_) => None,
        };
        self.bytes + finder.map_or(0, |finder| finder.places * PLACE_BYTES)
    }

    /// Does it match anywhere in the text?
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match &self.by {
            MatchEngine::Linear(linear) => match linear.ends_ahead(text, 0)? {
                MatchAhead::None => Ok(false),
                MatchAhead::Some => Ok(true),
                MatchAhead::Unknown => Ok(linear.regex.is_match(text)),
            },
            MatchEngine::Backtracking(regex) => regex.is_match(text).map_err(gave_up),
        }
    }

    /// Groups, the whole match being one.
    pub fn captures_len(&self) -> usize {
        self.groups + 1
    }

    /// The first match that begins at byte `from` or behind it.
    pub fn find_at<'t>(&self, text: &'t str, from: usize) -> Result<Option<Captures<'t>>> {
        let part = |start: usize, end: usize| Span { text, start, end };
        Ok(match &self.by {
            MatchEngine::Linear(linear) => {
                let regex = &linear.regex;
                let ends = &linear.finder()?.ends;
                if let MatchAhead::None = linear.ends_ahead(text, from)? {
                    return Ok(None);
                }
                let Some(found) = regex.captures_at(text, from) else {
                    return Ok(None);
                };
                let whole = found.get(0).map_or(0..0, |whole| whole.range());
                let end = ends.as_ref().and_then(|ends| ends.end(text, whole.start));
                match (ends, end) {
                    (Some(_), Some(end)) if end != whole.end && regex.captures_len() == 1 => {
                        Some(Captures(vec![Some(part(whole.start, end))]))
                    }
                    (Some(ends), Some(end)) if end != whole.end => {
                        Some(Captures(ends.divide(text, whole.start, end)?))
                    }
                    _ => {
                        let groups = found.iter();
                        Some(Captures(
                            groups
                                .map(|g| g.map(|m| part(m.start(), m.end())))
                                .collect(),
                        ))
                    }
                }
            }
            MatchEngine::Backtracking(regex) => {
                let found = regex.captures_from_pos(text, from).map_err(gave_up)?;
                found.map(|found| {
                    let groups = found.iter();
                    Captures(
                        groups
                            .map(|g| g.map(|m| part(m.start(), m.end())))
                            .collect(),
                    )
                })
            }
        })
    }

    /// Gives to `each` what a text is divided by: matches one behind the other, none of them empty right behind another
    /// one.
    pub fn find_each<'t>(
        &self,
        text: &'t str,
        each: &mut dyn FnMut(Span<'t>) -> Result<()>,
    ) -> Result<()> {
        let mut last: Option<usize> = None;
        let mut from = 0;
        let mut count = 0_usize;
        while let Some(found) = self.find_at(text, from)? {
            count += 1;
            if count.is_multiple_of(INTERRUPT_MATCHES) {
                check_for_interrupts()?;
            }
            let Some(whole) = found.get(0) else { break };
            let behind = last == Some(whole.end);
            from = whole.end;
            if whole.is_empty() {
                let next = text.get(from..).and_then(|rest| rest.chars().next());
                if !behind {
                    last = Some(whole.end);
                    each(whole)?;
                }
                match next {
                    Some(c) => from += c.len_utf8(),
                    None => break,
                }
                continue;
            }
            last = Some(whole.end);
            each(whole)?;
        }
        Ok(())
    }
}
