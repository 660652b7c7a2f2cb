//! From tokens to lexemes: dictionaries and configurations.
//!
//! Owns: [`Dictionary`], [`Config`], their names and OIDs, English stop words, and [`Lexemes`], which turns texts into
//! lexemes with places. All configurations use the default parser; which dictionary gets a token follows from its kind.

use super::parser::{Parser, TokenKind};
use super::vector::{LEXEME_BYTES_MAX, Lexeme};
use crate::error::{Result, SqlError};
use crate::interrupt::Pace;
use crate::value::Oid;
use crate::value::build::Room;
use crate::value::case::lower_text;
use crate::value::names::split_qualified;
use logstead_types::SqlState;
use rust_stemmers::{Algorithm, Stemmer};

/// OID of the default parser.
pub const PARSER: Oid = 3722;
/// OID of the template of `simple`.
pub const SIMPLE_TEMPLATE: Oid = 3727;
/// OID of the template of stemmers.
pub const SNOWBALL_TEMPLATE: Oid = 13_150;

/// A dictionary.
pub struct Dictionary {
    /// `pg_ts_dict.oid`
    pub oid: Oid,
    /// `dictname`
    pub name: &'static str,
    /// `dictinitoption`
    pub options: Option<&'static str>,
    stemmer: Option<Algorithm>,
    /// In order.
    stop_words: &'static [&'static str],
}

/// A configuration.
pub struct Config {
    /// `pg_ts_config.oid`
    pub oid: Oid,
    /// `cfgname`
    pub name: &'static str,
    /// For words.
    words: &'static Dictionary,
}

static SIMPLE_DICTIONARY: Dictionary = Dictionary {
    oid: 3765,
    name: "simple",
    options: None,
    stemmer: None,
    stop_words: &[],
};

static ENGLISH_STEM: Dictionary = Dictionary {
    oid: 13_163,
    name: "english_stem",
    options: Some("language = 'english', stopwords = 'english'"),
    stemmer: Some(Algorithm::English),
    stop_words: ENGLISH_STOP_WORDS,
};

/// All dictionaries.
pub static DICTIONARIES: [&Dictionary; 2] = [&SIMPLE_DICTIONARY, &ENGLISH_STEM];

/// All configurations.
pub static CONFIGS: [Config; 2] = [
    Config {
        oid: 3748,
        name: "simple",
        words: &SIMPLE_DICTIONARY,
    },
    Config {
        oid: 13_164,
        name: "english",
        words: &ENGLISH_STEM,
    },
];

/// The configuration with this OID.
pub fn config_by_oid(oid: Oid) -> Option<&'static Config> {
    CONFIGS.iter().find(|c| c.oid == oid)
}

/// The configuration of this name in `pg_catalog`.
pub fn config_by_name(name: &str) -> Option<&'static Config> {
    CONFIGS.iter().find(|c| c.name == name)
}

/// The dictionary with this OID.
pub fn dictionary_by_oid(oid: Oid) -> Option<&'static Dictionary> {
    DICTIONARIES.iter().copied().find(|d| d.oid == oid)
}

/// The dictionary of this name in `pg_catalog`.
pub fn dictionary_by_name(name: &str) -> Option<&'static Dictionary> {
    DICTIONARIES.iter().copied().find(|d| d.name == name)
}

fn named<T>(text: &str, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
    let parts = split_qualified(text)?;
    let found = match parts.as_slice() {
        [name] => find(name),
        [schema, name] if schema == "pg_catalog" => find(name),
        _ => None,
    };
    found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("text search {what} \"{}\" does not exist", parts.join(".")),
        )
    })
}

/// The configuration that a text names, qualified or not.
pub fn named_config(text: &str) -> Result<&'static Config> {
    named(text, "configuration", config_by_name)
}

/// The dictionary that a text names, qualified or not.
pub fn named_dictionary(text: &str) -> Result<&'static Dictionary> {
    named(text, "dictionary", dictionary_by_name)
}

/// The dictionary that a configuration has for a kind of token; `None`: such tokens are left out.
pub fn dictionary_for(config: &Config, kind: TokenKind) -> Option<&'static Dictionary> {
    match kind {
        TokenKind::Blank | TokenKind::Tag | TokenKind::Protocol | TokenKind::Entity => None,
        TokenKind::AsciiWord
        | TokenKind::Word
        | TokenKind::HwordPart
        | TokenKind::HwordAsciiPart
        | TokenKind::AsciiHword
        | TokenKind::Hword => Some(config.words),
        _ => Some(&SIMPLE_DICTIONARY),
    }
}

/// A stemmer gets no word that is longer, in bytes.
const STEMMED_MAX: usize = 1000;

impl Dictionary {
    /// The lexeme of a token; `None` for a stop word.
    pub fn lexeme(&self, token: &str) -> Option<String> {
        let lower = lower_text(token);
        let Some(algorithm) = self.stemmer else {
            return Some(lower);
        };
        if lower.len() > STEMMED_MAX {
            return Some(lower);
        }
        if lower.is_empty() || self.stop_words.binary_search(&lower.as_str()).is_ok() {
            return None;
        }
        Some(Stemmer::create(algorithm).stem(&lower).into_owned())
    }
}

/// What the reading of a token costs beside its bytes, in bytes that are copied one by one.
pub const TOKEN_STEPS: usize = 200;
/// Words that are charged at a time.
const CHARGED_TOGETHER: usize = 1024;
/// What a word takes until the vector is made: with its place and its text, here and as a lexeme.
const LEXEME_COST_BYTES: usize = 2 * size_of::<Lexeme<'static>>() + 64;

/// Lexemes of texts, one after the other, with their places.
pub struct Lexemes {
    config: &'static Config,
    /// The place of the last word.
    pub at: u32,
    /// (place, lexeme), in order of places.
    pub found: Vec<(u32, String)>,
    room: Room,
    pace: Pace,
}

impl Lexemes {
    /// Those of a text that begins now.
    pub fn new(config: &'static Config) -> Lexemes {
        Lexemes {
            config,
            at: 0,
            found: Vec::new(),
            room: Room::default(),
            pace: Pace::default(),
        }
    }

    /// Adds those of a text. Stop words have a place, too.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let mut parser = Parser::new(text);
        while let Some(token) = parser.token() {
            self.pace.spent(TOKEN_STEPS + token.text.len())?;
            let Some(dictionary) = dictionary_for(self.config, token.kind) else {
                continue;
            };
            if token.text.len() >= LEXEME_BYTES_MAX {
                continue;
            }
            self.at = self.at.saturating_add(1);
            if let Some(lexeme) = dictionary.lexeme(token.text) {
                if self.found.len().is_multiple_of(CHARGED_TOGETHER) {
                    let words = self.found.len() + CHARGED_TOGETHER;
                    self.room.hold(words * LEXEME_COST_BYTES)?;
                }
                self.found.push((self.at, lexeme));
            }
        }
        Ok(())
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
