//! Which of the matches that begin at one place is the match: PostgreSQL's rule, which is POSIX's and not the
//! library's.
//!
//! The library takes the first that its alternatives and quantifiers lead to. PostgreSQL takes the longest of all, or
//! the shortest if the first quantifier says so, and only then divides it among the groups. So the end is looked for by
//! itself, by an automaton that knows no preference; where it is not the library's, the groups are found by going back,
//! as far as that end and no other. Both take time in proportion to the length of the match.

use super::compiled::{Options, SIZE_BYTES_MAX, Span};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::{MemoryReservation, STRIDE_BYTES};
use logstead_types::SqlState;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{NFA, State, WhichCaptures};
use regex_automata::util::primitives::{NonMaxUsize, StateID};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use std::cell::RefCell;

/// Places times states that a division among groups may look at.
const VISITS_MAX: usize = 1 << 27;

/// What quantifiers prefer, as the levels of an expression are read: a stack of them.
#[derive(Debug)]
pub(crate) struct PreferenceStack {
    levels: Vec<PreferenceLevel>,
    /// The preference of what stands right in front.
    atom: Option<bool>,
    quantifiers: usize,
    alternatives: bool,
    lazy: bool,
}

#[derive(Debug, Default)]
struct PreferenceLevel {
    /// Whether the first quantifier with a preference prefers what is short.
    first: Option<bool>,
    alternatives: bool,
    /// A group with a number of its own stands in it.
    divided: bool,
}

/// A quantifier.
pub(crate) struct Quantifier {
    /// `{m}`: it has no preference of its own.
    pub exactly: bool,
    pub lazy: bool,
    /// `{m,n}` with the same number twice.
    pub fixed: bool,
}

impl PreferenceStack {
    pub(crate) fn new() -> PreferenceStack {
        PreferenceStack {
            levels: vec![PreferenceLevel::default()],
            atom: None,
            quantifiers: 0,
            alternatives: false,
            lazy: false,
        }
    }

    pub(crate) fn plain_atom(&mut self) {
        self.atom = None;
    }

    pub(crate) fn open(&mut self) {
        self.levels.push(PreferenceLevel::default());
    }

    pub(crate) fn alternative(&mut self) {
        self.alternatives = true;
        if let Some(level) = self.levels.last_mut() {
            level.alternatives = true;
        }
        self.atom = None;
    }

    /// The end of a group: whether no group within it divides what it matches.
    pub(crate) fn close(&mut self, captures: bool) -> bool {
        if self.levels.len() < 2 {
            return false;
        }
        let Some(level) = self.levels.pop() else {
            return false;
        };
        self.atom = preference(&level);
        self.note(self.atom);
        if let Some(outer) = self.levels.last_mut() {
            outer.divided |= captures || level.divided;
        }
        !level.divided
    }

    fn note(&mut self, preference: Option<bool>) {
        if let Some(level) = self.levels.last_mut()
            && level.first.is_none()
        {
            level.first = preference;
        }
    }

    /// Whether what stands right in front prefers to be short, if it prefers anything.
    pub(crate) fn atom(&self) -> Option<bool> {
        self.atom
    }

    /// A quantifier behind an atom. True if what the atom prefers is not what the quantifier says: then the atom's own
    /// quantifiers are to be turned round.
    pub(crate) fn quantifier(&mut self, quantifier: &Quantifier) -> bool {
        self.quantifiers += 1;
        if quantifier.exactly {
            return false;
        }
        self.lazy |= quantifier.lazy;
        let turned = quantifier.fixed && self.atom == Some(!quantifier.lazy);
        // If the atom's preference was the first of its level, the quantifier's is now.
        if let Some(level) = self.levels.last_mut()
            && (level.first.is_none() || level.first == self.atom)
        {
            level.first = Some(quantifier.lazy);
        }
        self.atom = Some(quantifier.lazy);
        turned
    }

    /// Whether the shortest match is the match; none if the library's is it in any case.
    pub(crate) fn shortest(&self) -> Option<bool> {
        if !self.alternatives && !self.lazy && self.quantifiers < 2 {
            return None;
        }
        let whole = self.levels.first()?;
        Some(preference(whole) == Some(true))
    }
}

fn preference(level: &PreferenceLevel) -> Option<bool> {
    match level.alternatives {
        true => Some(false),
        false => level.first,
    }
}

/// Finds the ends of matches of one expression, and their groups.
pub(crate) struct MatchEndFinder {
    shortest: bool,
    dfa: Option<(DFA, RefCell<dfa::Cache>)>,
    vm: PikeVM,
    /// The machine's memory, once the automaton above has failed.
    cache: RefCell<Option<pikevm::Cache>>,
    /// With the groups, if there are any.
    nfa: NFA,
}

/// How the library reads an expression.
pub(crate) fn syntax_of(options: Options) -> syntax::Config {
    syntax::Config::new()
        .case_insensitive(options.ignore_case)
        .dot_matches_new_line(!options.newline_stops)
        .multi_line(options.newline_anchors)
}

/// The automaton of an expression, if it is not too large.
pub(crate) fn automaton(pattern: &str, options: Options, groups: bool) -> Option<NFA> {
    let syntax = syntax_of(options);
    let captures = match groups {
        true => WhichCaptures::All,
        false => WhichCaptures::Implicit,
    };
    NFA::compiler()
        .syntax(syntax)
        .configure(
            NFA::config()
                .nfa_size_limit(Some(SIZE_BYTES_MAX))
                .which_captures(captures),
        )
        .build(pattern)
        .ok()
}

impl MatchEndFinder {
    /// `whole` is the automaton that knows no groups, `nfa` the one that does.
    pub(crate) fn new(whole: NFA, nfa: NFA, shortest: bool) -> Option<MatchEndFinder> {
        let dfa = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All))
            .build_from_nfa(whole.clone())
            .ok();
        let vm = PikeVM::builder()
            .configure(PikeVM::config().match_kind(MatchKind::All))
            .build_from_nfa(whole)
            .ok()?;
        Some(MatchEndFinder {
            shortest,
            dfa: dfa.map(|dfa| {
                let cache = RefCell::new(dfa.create_cache());
                (dfa, cache)
            }),
            cache: RefCell::new(None),
            vm,
            nfa,
        })
    }

    /// Where the match ends that begins at `start`.
    pub(crate) fn end(&self, text: &str, start: usize) -> Option<usize> {
        let input = Input::new(text)
            .range(start..)
            .anchored(Anchored::Yes)
            .earliest(self.shortest);
        if let Some((dfa, cache)) = &self.dfa
            && let Ok(found) = dfa.try_search_fwd(&mut cache.borrow_mut(), &input)
        {
            return found.map(|found| found.offset());
        }
        let mut slots = [None::<NonMaxUsize>; 2];
        let mut cache = self.cache.borrow_mut();
        let cache = cache.get_or_insert_with(|| self.vm.create_cache());
        self.vm.search_slots(cache, &input, &mut slots)?;
        slots[1].map(NonMaxUsize::get)
    }

    /// The match and its groups, if it begins and ends there.
    pub(crate) fn divide<'t>(
        &self,
        text: &'t str,
        start: usize,
        end: usize,
    ) -> Result<Vec<Option<Span<'t>>>> {
        let slots = way(&self.nfa, text.as_bytes(), start, end)?;
        let groups = slots.chunks(2).map(|pair| match pair {
            [Some(start), Some(end)] => Some(Span::new(text, *start, *end)),
            _ => None,
        });
        Ok(groups.collect())
    }
}

enum BacktrackFrame {
    Visit(StateID, usize),
    Restore(usize, Option<usize>),
}

/// The first way through an expression, by its own preferences, that begins and ends where it is told: the slots of its
/// groups.
fn way(nfa: &NFA, text: &[u8], start: usize, end: usize) -> Result<Vec<Option<usize>>> {
    let width = end - start + 1;
    let visits = nfa.states().len().saturating_mul(width);
    if visits > VISITS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "regular expression is too complex to be matched against this text",
        ));
    }
    let _room = MemoryReservation::of(visits / 8)?;
    let mut visited = vec![0_u64; visits.div_ceil(64)];
    let mut steps = 0_usize;
    let mut slots = vec![None; nfa.group_info().slot_len()];
    let mut todo = vec![BacktrackFrame::Visit(nfa.start_anchored(), start)];
    while let Some(next) = todo.pop() {
        let (mut state, mut at) = match next {
            BacktrackFrame::Visit(state, at) => (state, at),
            BacktrackFrame::Restore(slot, old) => {
                slots[slot] = old;
                continue;
            }
        };
        loop {
            steps += 1;
            if steps.is_multiple_of(STRIDE_BYTES) {
                check_for_interrupts()?;
            }
            let visit = state.as_usize() * width + (at - start);
            let bit = 1_u64 << (visit % 64);
            if visited[visit / 64] & bit != 0 {
                break;
            }
            visited[visit / 64] |= bit;
            let byte = text.get(at).copied().filter(|_| at < end);
            let moved = |next: Option<StateID>| next.filter(|_| byte.is_some());
            match nfa.state(state) {
                State::ByteRange { trans } => {
                    let next = byte.filter(|b| trans.matches_byte(*b)).map(|_| trans.next);
                    let Some(next) = moved(next) else { break };
                    (state, at) = (next, at + 1);
                }
                State::Sparse(sparse) => {
                    let Some(next) = moved(byte.and_then(|b| sparse.matches_byte(b))) else {
                        break;
                    };
                    (state, at) = (next, at + 1);
                }
                State::Dense(dense) => {
                    let Some(next) = moved(byte.and_then(|b| dense.matches_byte(b))) else {
                        break;
                    };
                    (state, at) = (next, at + 1);
                }
                State::Look { look, next } => {
                    if !nfa.look_matcher().matches(*look, text, at) {
                        break;
                    }
                    state = *next;
                }
                State::Union { alternates } => {
                    let Some((first, others)) = alternates.split_first() else {
                        break;
                    };
                    todo.extend(
                        others
                            .iter()
                            .rev()
                            .map(|other| BacktrackFrame::Visit(*other, at)),
                    );
                    state = *first;
                }
                State::BinaryUnion { alt1, alt2 } => {
                    todo.push(BacktrackFrame::Visit(*alt2, at));
                    state = *alt1;
                }
                State::Capture { next, slot, .. } => {
                    let slot = slot.as_usize();
                    if let Some(place) = slots.get_mut(slot) {
                        todo.push(BacktrackFrame::Restore(slot, *place));
                        *place = Some(at);
                    }
                    state = *next;
                }
                State::Fail => break,
                State::Match { .. } if at == end => return Ok(slots),
                State::Match { .. } => break,
            }
        }
    }
    // The automaton has found this end, so that there is a way.
    Err(SqlError::internal("a match without a way to it"))
}
