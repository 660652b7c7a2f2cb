//! Languages of text search: stems and stop words.
//!
//! Stems are the Snowball project's, stop words PostgreSQL's lists. Where the libraries differ from PostgreSQL 15 in a
//! few words, these are put right here. What is left: some Finnish words with ž or š, and some French ones with ï or ë,
//! have other stems.

use rust_stemmers::{Algorithm, Stemmer};

/// A language that words are stemmed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Arabic.
    Arabic,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// English.
    English,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Modern Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian, of whichever written form.
    Norwegian,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Tamil.
    Tamil,
    /// Turkish.
    Turkish,
}

/// A list of stop words.
enum StopWords {
    /// PostgreSQL has no list.
    None,
    /// The whole list.
    List(&'static [&'static str]),
    /// The library's list of this language, without the words of `without`, and with those of `with`.
    Library {
        code: &'static str,
        without: &'static [&'static str],
        with: &'static [&'static str],
    },
}

/// The library's list as it is.
const fn library(code: &'static str) -> StopWords {
    StopWords::Library {
        code,
        without: &[],
        with: &[],
    }
}

impl Language {
    /// Its name, as in `to_tsvector('english', ...)`.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Arabic => "arabic",
            Language::Danish => "danish",
            Language::Dutch => "dutch",
            Language::English => "english",
            Language::Finnish => "finnish",
            Language::French => "french",
            Language::German => "german",
            Language::Greek => "greek",
            Language::Hungarian => "hungarian",
            Language::Italian => "italian",
            Language::Norwegian => "norwegian",
            Language::Portuguese => "portuguese",
            Language::Romanian => "romanian",
            Language::Russian => "russian",
            Language::Spanish => "spanish",
            Language::Swedish => "swedish",
            Language::Tamil => "tamil",
            Language::Turkish => "turkish",
        }
    }

    const fn algorithm(self) -> Algorithm {
        match self {
            Language::Arabic => Algorithm::Arabic,
            Language::Danish => Algorithm::Danish,
            Language::Dutch => Algorithm::Dutch,
            Language::English => Algorithm::English,
            Language::Finnish => Algorithm::Finnish,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Greek => Algorithm::Greek,
            Language::Hungarian => Algorithm::Hungarian,
            Language::Italian => Algorithm::Italian,
            Language::Norwegian => Algorithm::Norwegian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Romanian => Algorithm::Romanian,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Tamil => Algorithm::Tamil,
            Language::Turkish => Algorithm::Turkish,
        }
    }

    const fn list(self) -> StopWords {
        match self {
            Language::Arabic | Language::Greek | Language::Romanian | Language::Tamil => {
                StopWords::None
            }
            Language::English => StopWords::List(ENGLISH_STOP_WORDS),
            Language::Danish => library("da"),
            Language::Dutch => library("nl"),
            Language::Finnish => library("fi"),
            Language::Italian => library("it"),
            Language::Norwegian => library("no"),
            Language::Russian => library("ru"),
            Language::Swedish => library("sv"),
            Language::Turkish => library("tr"),
            Language::French => StopWords::Library {
                code: "fr",
                without: &["ils", "les"],
                with: &[],
            },
            Language::German => StopWords::Library {
                code: "de",
                without: &["dass", "unsere", "unserem", "unseren", "unseres"],
                with: &["unse", "unsem", "unsen", "unses"],
            },
            Language::Hungarian => StopWords::Library {
                code: "hu",
                without: &["elsõ", "elõ", "elõször", "elõtt", "õ", "õk", "õket"],
                with: &["első", "elő", "először", "előtt", "ő", "ők", "őket"],
            },
            Language::Portuguese => StopWords::Library {
                code: "pt",
                without: &["é"],
                with: &[],
            },
            Language::Spanish => StopWords::Library {
                code: "es",
                without: &["vosotras", "vosotros"],
                with: &["vosostras", "vosostros"],
            },
        }
    }

    /// Are there words that are left out?
    pub(super) const fn has_stop_words(self) -> bool {
        !matches!(self.list(), StopWords::None)
    }

    /// Words that are in nearly every text and are left out, in order.
    pub(super) fn stop_words(self) -> Vec<String> {
        let mut words = match self.list() {
            StopWords::None => Vec::new(),
            StopWords::List(words) => words.iter().map(|&word| word.to_owned()).collect(),
            StopWords::Library {
                code,
                without,
                with,
            } => {
                let mut words = stop_words::get(code);
                words.retain(|word| !word.is_empty() && !without.contains(&word.as_str()));
                words.extend(with.iter().map(|&word| word.to_owned()));
                words
            }
        };
        words.sort_unstable();
        words.dedup();
        words
    }

    /// The stem of a word in lower case. A word of which nothing would be left is its own.
    pub(super) fn stem(self, word: String) -> String {
        let word = match self {
            // The algorithm of before did not know that they are one letter.
            Language::Russian if word.contains('ё') => word.replace('ё', "е"),
            _ => word,
        };
        let stem = Stemmer::create(self.algorithm()).stem(&word);
        match stem.is_empty() {
            true => word,
            false => stem.into_owned(),
        }
    }
}

/// Words that are in every English text (the list of the Snowball project that PostgreSQL uses too), in order.
const ENGLISH_STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "now",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "s",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];
