//! How well a text matches a query: `ts_rank` and `ts_rank_cd`.
//!
//! Owns: both measures. Ranks are compared and shown by clients, so they are PostgreSQL's to the last bit: where it
//! computes in single precision, so do we. A lexeme without places stands at the last place there is.

use super::matching::{MatchTarget, PhraseMatch, matches};
use super::query::{Node, Op, Query, Word};
use super::vector::{Lexeme, PLACE_MAX, Vector, WordPosition};
use std::collections::BTreeMap;

/// What the weights D, C, B and A count, unless they are given.
pub const WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];

/// What a rank is divided by: bits of the last argument.
mod by {
    pub(super) const LOG_LENGTH: i32 = 1;
    pub(super) const LENGTH: i32 = 2;
    pub(super) const DISTANCE: i32 = 4;
    pub(super) const UNIQUE: i32 = 8;
    pub(super) const LOG_UNIQUE: i32 = 16;
    pub(super) const ITSELF: i32 = 32;
}

/// The different words of a query, in order.
fn unique_words(query: &Query) -> Vec<&Word> {
    let mut words: Vec<&Word> = query.words().collect();
    // Of those with the same text the last one counts.
    words.reverse();
    words.sort_by(|a, b| a.text.cmp(&b.text));
    words.dedup_by(|a, b| a.text == b.text);
    words
}

/// The lexemes that a word of a query stands for.
fn lexemes_of<'v>(vector: &'v Vector<'v>, word: &Word) -> Vec<&'v Lexeme<'v>> {
    if word.prefix {
        vector.beginning(&word.text).iter().collect()
    } else {
        vector.find(&word.text).into_iter().collect()
    }
}

const NO_PLACE: &[WordPosition] = &[WordPosition {
    at: PLACE_MAX,
    weight: 0,
}];

fn places_of<'v>(lexeme: &'v Lexeme<'v>) -> (&'v [WordPosition], bool) {
    if lexeme.places.is_empty() {
        (NO_PLACE, true)
    } else {
        (&lexeme.places, false)
    }
}

/// What two words so far apart are worth together.
fn nearness(distance: i32) -> f32 {
    if distance > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * (f64::from(distance as f32) / 1.5 - 2.0).exp())) as f32
}

fn rank_or(weights: &[f32; 4], vector: &Vector<'_>, query: &Query) -> f32 {
    let words = unique_words(query);
    let mut sum: f32 = 0.0;
    for word in &words {
        for lexeme in lexemes_of(vector, word) {
            let (places, _) = places_of(lexeme);
            let (mut one, mut best, mut best_at): (f32, f32, usize) = (0.0, -1.0, 0);
            for (j, place) in places.iter().enumerate() {
                let w = weights[usize::from(place.weight & 3)];
                one += w / ((j + 1) * (j + 1)) as f32;
                if w > best {
                    best = w;
                    best_at = j;
                }
            }
            // The heaviest place counts as if it were the first; the sum of 1/n² is the divisor.
            let heaviest = best + one - best / ((best_at + 1) * (best_at + 1)) as f32;
            sum = (f64::from(sum) + f64::from(heaviest) / 1.64493406685) as f32;
        }
    }
    if !words.is_empty() {
        sum /= words.len() as f32;
    }
    sum
}

fn rank_and(weights: &[f32; 4], vector: &Vector<'_>, query: &Query) -> f32 {
    let words = unique_words(query);
    if words.len() < 2 {
        return rank_or(weights, vector, query);
    }
    // Of a prefix the last lexeme is what later words are compared with.
    let mut seen: Vec<Option<(&[WordPosition], bool)>> = vec![None; words.len()];
    let mut rank: f32 = -1.0;
    for (i, word) in words.iter().enumerate() {
        for lexeme in lexemes_of(vector, word) {
            let (places, none) = places_of(lexeme);
            if let Some(slot) = seen.get_mut(i) {
                *slot = Some((places, none));
            }
            for (others, others_none) in seen.iter().take(i).flatten() {
                for place in places {
                    for other in *others {
                        let mut distance = (i32::from(place.at) - i32::from(other.at)).abs();
                        if distance == 0 {
                            if !none && !others_none {
                                continue;
                            }
                            distance = i32::from(PLACE_MAX) + 1;
                        }
                        let w = |p: &WordPosition| weights[usize::from(p.weight & 3)];
                        let product: f32 = w(place) * w(other) * nearness(distance);
                        let one = f64::from(product).sqrt() as f32;
                        rank = if rank < 0.0 {
                            one
                        } else {
                            (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(one))) as f32
                        };
                    }
                }
            }
        }
    }
    rank
}

/// `ts_rank`
pub fn rank(weights: &[f32; 4], vector: &Vector<'_>, query: &Query, method: i32) -> f32 {
    let Some(top) = query.nodes.last() else {
        return 0.0;
    };
    if vector.lexemes.is_empty() {
        return 0.0;
    }
    let mut rank = match top {
        Node::Op(Op::And | Op::Phrase(_)) => rank_and(weights, vector, query),
        _ => rank_or(weights, vector, query),
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    let size = vector.lexemes.len();
    let length = vector.length();
    if method & by::LOG_LENGTH != 0 {
        rank = (f64::from(rank) / (((length + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & by::LENGTH != 0 {
        rank /= length as f32;
    }
    if method & by::UNIQUE != 0 {
        rank /= size as f32;
    }
    if method & by::LOG_UNIQUE != 0 {
        rank = (f64::from(rank) / (((size + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & by::ITSELF != 0 {
        rank /= rank + 1.0;
    }
    rank
}

/// A place of the text at which words of the query stand.
struct DocPosition {
    place: WordPosition,
    /// The words, by their number in the query.
    words: Vec<usize>,
}

/// The words of the query that have been met between two spots, and where.
struct QueryRepresentation<'q> {
    /// The first number of a word with this text is the one that counts.
    numbers: BTreeMap<(&'q str, u8, bool), Vec<usize>>,
    at: Vec<Vec<u32>>,
}

impl MatchTarget for QueryRepresentation<'_> {
    fn has(&self, word: &Word) -> bool {
        !matches!(self.places(word), PhraseMatch::Nowhere)
    }

    fn places(&self, word: &Word) -> PhraseMatch {
        let key = (word.text.as_str(), word.weights, word.prefix);
        let numbers = self.numbers.get(&key).into_iter().flatten();
        let at = numbers.filter_map(|n| self.at.get(*n)).flatten();
        PhraseMatch::among(at.copied().collect())
    }
}

impl QueryRepresentation<'_> {
    fn forget(&mut self) {
        self.at.iter_mut().for_each(Vec::clear);
    }

    fn meet(&mut self, spot: &DocPosition) {
        for word in &spot.words {
            if let Some(at) = self.at.get_mut(*word) {
                at.push(u32::from(spot.place.at));
            }
        }
    }
}

/// Spots at which words of the query stand, in order.
fn spots(vector: &Vector<'_>, query: &Query) -> Vec<DocPosition> {
    let mut found: BTreeMap<(u16, u8, &str), Vec<usize>> = BTreeMap::new();
    for (number, word) in query.words().enumerate() {
        for lexeme in lexemes_of(vector, word) {
            for place in &lexeme.places {
                if word.weights == 0 || word.weights >> place.weight & 1 == 1 {
                    let key = (place.at, place.weight, &*lexeme.text);
                    found.entry(key).or_default().push(number);
                }
            }
        }
    }
    let spot = |((at, weight, _), words): ((u16, u8, &str), Vec<usize>)| DocPosition {
        place: WordPosition { at, weight },
        words,
    };
    found.into_iter().map(spot).collect()
}

/// `ts_rank_cd`: the shorter the stretches of the text that match, the better.
pub fn rank_cover(weights: &[f32; 4], vector: &Vector<'_>, query: &Query, method: i32) -> f32 {
    let spots = spots(vector, query);
    if spots.is_empty() {
        return 0.0;
    }
    let inverse = weights.map(|w| 1.0 / f64::from(w));
    let mut numbers: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (number, word) in query.words().enumerate() {
        let key = (word.text.as_str(), word.weights, word.prefix);
        numbers.entry(key).or_default().push(number);
    }
    let count = query.words().count();
    let mut met = QueryRepresentation {
        numbers,
        at: vec![Vec::new(); count],
    };
    let (mut rank, mut closeness, mut before) = (0f64, 0f64, 0f64);
    let mut covers = 0usize;
    let mut from = 0;
    while let Some((first, last)) = cover(&spots, query, &mut met, &mut from) {
        let stretch = &spots[first..=last];
        let sum: f64 = stretch
            .iter()
            .map(|s| inverse[usize::from(s.place.weight & 3)])
            .sum();
        let worth = stretch.len() as f64 / sum;
        let (p, q) = (
            i32::from(spots[first].place.at),
            i32::from(spots[last].place.at),
        );
        let between = (last - first) as i32;
        let mut noise = (q - p) - between;
        if noise < 0 {
            noise = between / 2;
        }
        rank += worth / f64::from(1 + noise);
        let middle = f64::from(q + p) / 2.0;
        if covers > 0 && middle > before {
            closeness += 1.0 / (middle - before);
        }
        before = middle;
        covers += 1;
    }
    let size = vector.lexemes.len();
    let length = vector.length();
    if method & by::LOG_LENGTH != 0 {
        rank /= ((length + 1) as f64).ln();
    }
    if method & by::LENGTH != 0 {
        rank /= length as f64;
    }
    if method & by::DISTANCE != 0 && covers > 0 && closeness > 0.0 {
        rank /= covers as f64 / closeness;
    }
    if method & by::UNIQUE != 0 {
        rank /= size as f64;
    }
    if method & by::LOG_UNIQUE != 0 {
        rank /= ((size + 1) as f64).ln() / 2f64.ln();
    }
    if method & by::ITSELF != 0 {
        rank /= rank + 1.0;
    }
    rank as f32
}

/// The next stretch of spots that matches and cannot be made shorter from its left: its first and last spot.
fn cover(
    spots: &[DocPosition],
    query: &Query,
    met: &mut QueryRepresentation<'_>,
    from: &mut usize,
) -> Option<(usize, usize)> {
    loop {
        met.forget();
        let mut last = None;
        for (i, spot) in spots.iter().enumerate().skip(*from) {
            met.meet(spot);
            if matches(query, met) {
                last = Some(i);
                break;
            }
        }
        let last = last?;
        met.forget();
        for i in (*from..=last).rev() {
            met.meet(&spots[i]);
            if matches(query, met) {
                *from = i + 1;
                return Some((i, last));
            }
        }
        // Only what is negated can make a stretch match that does not match backwards.
        *from += 1;
    }
}
