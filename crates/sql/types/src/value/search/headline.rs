//! What of a text to show beside a match: `ts_headline`.
//!
//! Owns: [`Options`] and [`headline`]. A *piece* is a token of the text, with the word of the query that it is, if any.
//! A *cover* is a stretch of pieces in which the query matches, with a word of the query at either end. Without
//! fragments one stretch is shown, grown from the cover that makes the best one; with fragments up to so many covers,
//! each stretched to both sides.

use super::dictionary::{TsConfig, dictionary_for};
use super::matching::{MatchTarget, PhraseMatch, PositionSet, matches};
use super::parser::{Parser, Token, TokenKind};
use super::query::{Query, Word};
use super::vector::{LEXEME_BYTES_MAX, PLACE_MAX};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::{Builder, MemoryReservation};
use crate::value::Datum;
use logstead_types::SqlState;

/// So many comparisons with words of the query are made between two looks for interrupts.
const COMPARED_MAX: usize = 4096;

/// The options of a headline.
#[derive(Clone, Debug)]
pub struct Options {
    max_words: i32,
    min_words: i32,
    short_word: i32,
    max_fragments: i32,
    start: String,
    stop: String,
    delimiter: String,
    all: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_words: 35,
            min_words: 15,
            short_word: 3,
            max_fragments: 0,
            start: "<b>".to_owned(),
            stop: "</b>".to_owned(),
            delimiter: " ... ".to_owned(),
            all: false,
        }
    }
}

fn wrong(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

/// A mark, which may not be longer than PostgreSQL's.
fn mark<'v>(name: &str, value: &'v String) -> Result<&'v String> {
    match i16::try_from(value.len()) {
        Ok(_) => Ok(value),
        Err(_) => Err(wrong(format!("value for \"{name}\" is too long"))),
    }
}

impl Options {
    /// Takes options as `name = value` pairs.
    pub fn read(given: &[(String, String)]) -> Result<Options> {
        let mut o = Options::default();
        for (name, value) in given {
            let number = || -> Result<i32> {
                value.trim().parse().map_err(|_| {
                    SqlError::new(
                        SqlState::INVALID_TEXT_REPRESENTATION,
                        format!("invalid input syntax for type integer: \"{value}\""),
                    )
                })
            };
            match name.to_ascii_lowercase().as_str() {
                "maxwords" => o.max_words = number()?,
                "minwords" => o.min_words = number()?,
                "shortword" => o.short_word = number()?,
                "maxfragments" => o.max_fragments = number()?,
                "startsel" => o.start.clone_from(mark("StartSel", value)?),
                "stopsel" => o.stop.clone_from(mark("StopSel", value)?),
                "fragmentdelimiter" => o.delimiter.clone_from(mark("FragmentDelimiter", value)?),
                "highlightall" => {
                    o.all = matches!(
                        value.to_ascii_lowercase().as_str(),
                        "1" | "on" | "true" | "t" | "y" | "yes"
                    );
                }
                _ => {
                    return Err(wrong(format!(
                        "unrecognized headline parameter: \"{name}\""
                    )));
                }
            }
        }
        if !o.all {
            if o.min_words >= o.max_words {
                return Err(wrong("MinWords should be less than MaxWords"));
            }
            if o.min_words <= 0 {
                return Err(wrong("MinWords should be positive"));
            }
            if o.short_word < 0 {
                return Err(wrong("ShortWord should be >= 0"));
            }
            if o.max_fragments < 0 {
                return Err(wrong("MaxFragments should be >= 0"));
            }
        }
        Ok(o)
    }
}

/// A token of the text.
struct HeadlineWord<'t> {
    token: Token<'t>,
    /// Its place among the words.
    at: u32,
    /// The word of the query that it is, by number.
    word: Option<usize>,
    /// The piece before once more, which is another word of the query as well.
    again: bool,
    shown: bool,
    marked: bool,
    /// Left out, because its parts follow.
    skipped: bool,
    /// A tag: a blank is shown for it.
    blanked: bool,
}

fn has_parts(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Url | TokenKind::NumHword | TokenKind::AsciiHword | TokenKind::Hword
    )
}

fn is_no_word(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Blank | TokenKind::Tag) || has_parts(kind)
}

/// What no headline should end with.
fn is_no_end(kind: TokenKind) -> bool {
    is_no_word(kind)
        || matches!(
            kind,
            TokenKind::SFloat
                | TokenKind::Version
                | TokenKind::Float
                | TokenKind::Int
                | TokenKind::UInt
                | TokenKind::Protocol
                | TokenKind::Entity
        )
}

fn pieces<'t>(
    config: &TsConfig,
    text: &'t str,
    words: &[&Word],
    room: &mut MemoryReservation,
) -> Result<Vec<HeadlineWord<'t>>> {
    let mut parser = Parser::new(text);
    let mut out: Vec<HeadlineWord<'t>> = Vec::new();
    let mut at = 0u32;
    // Comparisons since the last look for interrupts.
    let mut compared = 0;
    while let Some(token) = parser.token() {
        compared += words.len() + 1;
        if compared > COMPARED_MAX {
            compared = 0;
            check_for_interrupts()?;
        }
        if token.text.len() >= LEXEME_BYTES_MAX {
            continue;
        }
        let dictionary = dictionary_for(config, token.kind);
        let mut piece = HeadlineWord {
            token,
            at: 0,
            word: None,
            again: false,
            shown: false,
            marked: false,
            skipped: false,
            blanked: false,
        };
        let mut more = Vec::new();
        if let Some(dictionary) = dictionary {
            at = at.saturating_add(1);
            if let Some(lexeme) = dictionary.lexeme(token.text) {
                piece.at = at.min(u32::from(PLACE_MAX));
                let is = |w: &Word| match w.prefix {
                    true => lexeme.starts_with(&w.text),
                    false => lexeme == w.text,
                };
                let mut found = words.iter().enumerate().filter(|(_, w)| is(w));
                piece.word = found.next().map(|(i, _)| i);
                more.extend(found.map(|(i, _)| i));
            }
        }
        let place = piece.at;
        room.reserve(&mut out, 1 + more.len())?;
        out.push(piece);
        out.extend(more.into_iter().map(|word| HeadlineWord {
            token,
            at: place,
            word: Some(word),
            again: true,
            shown: false,
            marked: false,
            skipped: false,
            blanked: false,
        }));
    }
    Ok(out)
}

/// The words of a query that are in a stretch.
struct CoverWords<'p> {
    pieces: &'p [HeadlineWord<'p>],
    words: &'p [&'p Word],
}

impl MatchTarget for CoverWords<'_> {
    fn has(&self, word: &Word) -> bool {
        !matches!(self.places(word), PhraseMatch::Nowhere)
    }

    fn places(&self, word: &Word) -> PhraseMatch {
        // Each word is told from all others, equal ones too.
        let number = self.words.iter().position(|w| std::ptr::eq(*w, word));
        let here = self.pieces.iter().filter(|p| p.word == number);
        let mut at: Vec<u32> = here.map(|p| p.at).collect();
        if number.is_none() || at.is_empty() {
            return PhraseMatch::Nowhere;
        }
        at.dedup();
        PhraseMatch::At(PositionSet {
            at,
            negated: false,
            width: 0,
        })
    }
}

/// A text that is being cut.
struct HeadlineBuilder<'t> {
    pieces: Vec<HeadlineWord<'t>>,
    options: &'t Options,
}

/// A stretch of pieces, both ends included, and the words and words of the query in it.
#[derive(Clone, Copy, Debug)]
struct CoverPos {
    from: usize,
    to: usize,
    words: i32,
    hits: i32,
}

impl HeadlineBuilder<'_> {
    fn is_hit(&self, i: usize) -> bool {
        self.pieces[i].word.is_some() && !self.pieces[i].again
    }

    fn is_word(&self, i: usize) -> bool {
        !is_no_word(self.pieces[i].token.kind)
    }

    fn is_bad_end(&self, i: usize) -> bool {
        let piece = &self.pieces[i];
        let short = piece.token.text.len() as i64 <= i64::from(self.options.short_word);
        (is_no_end(piece.token.kind) || short) && !self.is_hit(i)
    }

    /// Piece `i` is in the span now.
    fn take(&self, span: &mut CoverPos, i: usize) {
        span.words += i32::from(self.is_word(i));
        span.hits += i32::from(self.is_hit(i));
    }

    fn drop(&self, span: &mut CoverPos, i: usize) {
        span.words -= i32::from(self.is_word(i));
        span.hits -= i32::from(self.is_hit(i));
    }

    /// The earliest and then shortest cover from `from` on.
    fn cover(
        &self,
        query: &Query,
        words: &[&Word],
        found: &[usize],
        from: usize,
    ) -> Result<Option<(usize, usize)>> {
        let mut longest = i64::from(self.options.max_words)
            .saturating_mul(10)
            .max(100);
        if self.options.max_fragments > 0 {
            longest = longest.saturating_mul(i64::from(self.options.max_fragments));
        }
        let first = found.partition_point(|&i| i < from);
        for (n, &p) in found.iter().enumerate().skip(first) {
            for &q in &found[n..] {
                if q > p && (q - p) as i64 >= longest {
                    break;
                }
                // A stretch is looked through for each word of the query.
                check_for_interrupts()?;
                let stretch = CoverWords {
                    pieces: &self.pieces[p..=q],
                    words,
                };
                if matches(query, &stretch) {
                    return Ok(Some((p, q)));
                }
            }
        }
        Ok(None)
    }

    /// The one stretch that is best to show for a cover.
    fn grown(&self, p: usize, q: usize) -> CoverPos {
        let (least, most) = (self.options.min_words, self.options.max_words);
        let mut span = CoverPos {
            from: p,
            to: p,
            words: 0,
            hits: 0,
        };
        let mut next = p;
        while next <= q && span.words < most {
            self.take(&mut span, next);
            span.to = next;
            next += 1;
        }
        if span.words >= most {
            // No room: an end that is bad may be moved back.
            let mut i = next.min(q);
            while span.words > least && self.is_bad_end(i) && i > 0 {
                self.drop(&mut span, i);
                i -= 1;
                span.to = i;
            }
            return span;
        }
        // Forward, from the last one on, to a good end.
        let mut i = next - 1;
        while i < self.pieces.len() && span.words < most {
            if i > q {
                self.take(&mut span, i);
            }
            span.to = i;
            if !self.is_bad_end(i) && span.words >= least {
                break;
            }
            i += 1;
        }
        if span.words < least {
            // The text has ended: backward.
            span.from = 0;
            for i in (0..p).rev() {
                self.take(&mut span, i);
                let full = span.words >= most;
                if full || (!self.is_bad_end(i) && span.words >= least) {
                    span.from = i;
                    break;
                }
            }
        }
        span
    }

    /// The words that a text begins with.
    fn beginning(&self) -> (usize, usize) {
        let (mut words, mut to) = (0, 0);
        for i in 0..self.pieces.len() {
            if words >= self.options.min_words {
                break;
            }
            words += i32::from(self.is_word(i));
            to = i;
        }
        (0, to)
    }

    fn show(&mut self, from: usize, to: usize) {
        let all = self.options.all;
        for piece in self.pieces.iter_mut().take(to + 1).skip(from) {
            let kind = piece.token.kind;
            piece.marked |= piece.word.is_some();
            piece.blanked |= !all && kind == TokenKind::Tag;
            piece.skipped |= has_parts(kind);
            piece.shown = !piece.again;
        }
    }

    /// Shows one stretch.
    fn one(&mut self, query: &Query, words: &[&Word], found: &[usize]) -> Result<()> {
        if self.options.all {
            if let Some(last) = self.pieces.len().checked_sub(1) {
                self.show(0, last);
            }
            return Ok(());
        }
        let mut best: Option<(CoverPos, bool)> = None;
        let mut from = 0;
        while let Some((p, q)) = self.cover(query, words, found, from)? {
            let span = self.grown(p, q);
            let whole = span.from <= p && span.to >= q;
            let better = best.is_none_or(|(b, b_whole)| {
                (whole, span.hits, !self.is_bad_end(span.to))
                    > (b_whole, b.hits, !self.is_bad_end(b.to))
            });
            if better {
                best = Some((span, whole));
            }
            from = p + 1;
        }
        let (from, to) = best.map_or_else(|| self.beginning(), |(b, _)| (b.from, b.to));
        if !self.pieces.is_empty() {
            self.show(from, to);
        }
        Ok(())
    }

    /// A part of a cover that begins and ends with a word of the query and is no longer than a fragment may be.
    fn fragment(&self, from: usize, to: usize) -> CoverPos {
        let from = (from..=to).find(|&i| self.is_hit(i)).unwrap_or(to);
        let mut span = CoverPos {
            from,
            to,
            words: 0,
            hits: 0,
        };
        let mut i = from;
        while i <= to && span.words < self.options.max_words {
            self.take(&mut span, i);
            i += 1;
        }
        if to > i {
            // It was cut: back to a word of the query.
            span.to = i;
            for i in (from..=i).rev() {
                span.to = i;
                if self.is_hit(i) {
                    break;
                }
                span.words -= i32::from(self.is_word(i));
            }
        }
        span
    }

    /// A fragment with what is around it.
    fn stretched(&self, span: CoverPos) -> CoverPos {
        let most = self.options.max_words;
        let CoverPos {
            mut from,
            mut to,
            mut words,
            hits,
        } = span;
        if words < most {
            let room = (most - words) / 2;
            let (mut used, mut mark) = (0, from);
            for i in (0..from).rev() {
                if used >= room || self.pieces[i].shown {
                    break;
                }
                if self.is_word(i) {
                    words += 1;
                    used += 1;
                }
                mark = i;
            }
            while mark < from && self.is_bad_end(mark) {
                words -= i32::from(self.is_word(mark));
                mark += 1;
            }
            from = mark;
            mark = to;
            for i in to + 1..self.pieces.len() {
                if words >= most || self.pieces[i].shown {
                    break;
                }
                words += i32::from(self.is_word(i));
                mark = i;
            }
            while mark > to && self.is_bad_end(mark) {
                words -= i32::from(self.is_word(mark));
                mark -= 1;
            }
            to = mark;
        }
        CoverPos {
            from,
            to,
            words,
            hits,
        }
    }

    /// Shows several stretches.
    fn several(&mut self, query: &Query, words: &[&Word], found: &[usize]) -> Result<()> {
        let mut left: Vec<CoverPos> = Vec::new();
        let mut from = 0;
        while let Some((p, q)) = self.cover(query, words, found, from)? {
            let mut start = p;
            while start <= q {
                let span = self.fragment(start, q);
                left.push(span);
                start = span.to + 1;
            }
            from = p + 1;
        }
        let mut any = false;
        for _ in 0..self.options.max_fragments {
            // Most words of the query, then fewest words, then first.
            let best = left
                .iter()
                .enumerate()
                .filter(|(_, s)| s.hits > 0 || s.words < i32::MAX)
                .max_by_key(|(i, s)| (s.hits, -s.words, std::cmp::Reverse(*i)))
                .map(|(i, _)| i);
            let Some(best) = best else { break };
            let span = self.stretched(left.remove(best));
            self.show(span.from, span.to);
            any = true;
            left.retain(|s| s.to < span.from || s.from > span.to);
        }
        if !any && !self.pieces.is_empty() {
            let (from, to) = self.beginning();
            self.show(from, to);
        }
        Ok(())
    }
}

/// The headline of a text.
pub fn headline(config: &TsConfig, text: &str, query: &Query, options: &Options) -> Result<Datum> {
    let mut room = MemoryReservation::default();
    let mut words: Vec<&Word> = query.words().collect();
    // The last word of a query is the first one that is looked for.
    words.reverse();
    let mut cutter = HeadlineBuilder {
        pieces: pieces(config, text, &words, &mut room)?,
        options,
    };
    let hits = cutter.pieces.iter().enumerate();
    let found: Vec<usize> = hits
        .filter(|(_, p)| p.word.is_some())
        .map(|(i, _)| i)
        .collect();
    if options.max_fragments > 0 {
        cutter.several(query, &words, &found)?;
    } else {
        cutter.one(query, &words, &found)?;
    }
    let mut out = Builder::default();
    let (mut inside, mut fragments) = (false, 0);
    for piece in &cutter.pieces {
        if !piece.shown {
            inside &= piece.again;
            continue;
        }
        if !inside {
            inside = true;
            fragments += 1;
            if fragments > 1 {
                out.push_str(&options.delimiter)?;
            }
        }
        if piece.blanked {
            out.push_byte(b' ')?;
        } else if !piece.skipped {
            if piece.marked {
                out.push_str(&options.start)?;
            }
            out.push_str(piece.token.text)?;
            if piece.marked {
                out.push_str(&options.stop)?;
            }
        }
    }
    out.finish_text()
}
