//! From tokens to lexemes: dictionaries and configurations.
//!
//! Owns: [`Dictionary`], [`TsConfig`], their names and OIDs, and [`Lexemes`], which turns texts into lexemes with
//! places. All configurations use the default parser; which dictionary gets a token follows from its kind. Stems and
//! stop words are [`Language`]'s.

use super::language::Language;
use super::parser::{Parser, TokenKind};
use super::vector::{LEXEME_BYTES_MAX, Lexeme};
use crate::error::{Result, SqlError};
use crate::interrupt::CancelChecker;
use crate::memory::MemoryReservation;
use crate::value::Oid;
use crate::value::case::lower_text;
use crate::value::names::split_qualified;
use logstead_types::SqlState;
use std::sync::OnceLock;

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
    /// What it stems words of; `simple` stems none.
    pub language: Option<Language>,
    /// In order. Made with the first word that is looked for.
    stop_words: OnceLock<Vec<String>>,
}

/// A configuration.
pub struct TsConfig {
    /// `pg_ts_config.oid`
    pub oid: Oid,
    /// `cfgname`
    pub name: &'static str,
    /// For words.
    words: &'static Dictionary,
    /// For words of ASCII letters alone: where the language is written in other letters, these are taken for English.
    ascii_words: &'static Dictionary,
}

const fn dictionary(oid: Oid, name: &'static str, language: Option<Language>) -> Dictionary {
    Dictionary {
        oid,
        name,
        language,
        stop_words: OnceLock::new(),
    }
}

const fn stemmer(oid: Oid, name: &'static str, language: Language) -> Dictionary {
    dictionary(oid, name, Some(language))
}

/// All dictionaries, in the order of [`CONFIGS`]. The numbers are those of PostgreSQL 15.
pub static DICTIONARIES: [Dictionary; 19] = [
    dictionary(3765, "simple", None),
    stemmer(13_151, "arabic_stem", Language::Arabic),
    stemmer(13_159, "danish_stem", Language::Danish),
    stemmer(13_161, "dutch_stem", Language::Dutch),
    stemmer(13_163, "english_stem", Language::English),
    stemmer(13_165, "finnish_stem", Language::Finnish),
    stemmer(13_167, "french_stem", Language::French),
    stemmer(13_169, "german_stem", Language::German),
    stemmer(13_171, "greek_stem", Language::Greek),
    stemmer(13_175, "hungarian_stem", Language::Hungarian),
    stemmer(13_181, "italian_stem", Language::Italian),
    stemmer(13_187, "norwegian_stem", Language::Norwegian),
    stemmer(13_189, "portuguese_stem", Language::Portuguese),
    stemmer(13_191, "romanian_stem", Language::Romanian),
    stemmer(13_193, "russian_stem", Language::Russian),
    stemmer(13_197, "spanish_stem", Language::Spanish),
    stemmer(13_199, "swedish_stem", Language::Swedish),
    stemmer(13_201, "tamil_stem", Language::Tamil),
    stemmer(13_203, "turkish_stem", Language::Turkish),
];

const SIMPLE: usize = 0;
const ENGLISH: usize = 4;

/// The configuration of the dictionary at `at`.
const fn config(oid: Oid, name: &'static str, at: usize) -> TsConfig {
    let words = &DICTIONARIES[at];
    let ascii_words = match words.language {
        Some(Language::Russian) => &DICTIONARIES[ENGLISH],
        _ => words,
    };
    TsConfig {
        oid,
        name,
        words,
        ascii_words,
    }
}

/// All configurations.
pub static CONFIGS: [TsConfig; DICTIONARIES.len()] = [
    config(3748, "simple", SIMPLE),
    config(13_152, "arabic", 1),
    config(13_160, "danish", 2),
    config(13_162, "dutch", 3),
    config(13_164, "english", ENGLISH),
    config(13_166, "finnish", 5),
    config(13_168, "french", 6),
    config(13_170, "german", 7),
    config(13_172, "greek", 8),
    config(13_176, "hungarian", 9),
    config(13_182, "italian", 10),
    config(13_188, "norwegian", 11),
    config(13_190, "portuguese", 12),
    config(13_192, "romanian", 13),
    config(13_194, "russian", 14),
    config(13_198, "spanish", 15),
    config(13_200, "swedish", 16),
    config(13_202, "tamil", 17),
    config(13_204, "turkish", 18),
];

/// Languages that PostgreSQL has a configuration and a dictionary of, and that there are no stemmers for here.
const NOT_SUPPORTED: [&str; 10] = [
    "armenian",
    "basque",
    "catalan",
    "hindi",
    "indonesian",
    "irish",
    "lithuanian",
    "nepali",
    "serbian",
    "yiddish",
];

/// The configuration with this OID.
pub fn config_by_oid(oid: Oid) -> Option<&'static TsConfig> {
    CONFIGS.iter().find(|c| c.oid == oid)
}

/// The configuration of this name in `pg_catalog`.
pub fn config_by_name(name: &str) -> Option<&'static TsConfig> {
    CONFIGS.iter().find(|c| c.name == name)
}

/// The dictionary with this OID.
pub fn dictionary_by_oid(oid: Oid) -> Option<&'static Dictionary> {
    DICTIONARIES.iter().find(|d| d.oid == oid)
}

/// The dictionary of this name in `pg_catalog`.
pub fn dictionary_by_name(name: &str) -> Option<&'static Dictionary> {
    DICTIONARIES.iter().find(|d| d.name == name)
}

fn named<T>(text: &str, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
    let parts = split_qualified(text)?;
    let found = match parts.as_slice() {
        [name] => find(name),
        [schema, name] if schema == "pg_catalog" => find(name),
        _ => None,
    };
    found.ok_or_else(|| {
        let language = parts.last().map_or("", String::as_str);
        let language = language.strip_suffix("_stem").unwrap_or(language);
        let (state, why) = match NOT_SUPPORTED.contains(&language) {
            true => (SqlState::FEATURE_NOT_SUPPORTED, "is not supported"),
            false => (SqlState::UNDEFINED_OBJECT, "does not exist"),
        };
        let name = parts.join(".");
        SqlError::new(state, format!("text search {what} \"{name}\" {why}"))
    })
}

/// The configuration that a text names, qualified or not.
pub fn named_config(text: &str) -> Result<&'static TsConfig> {
    named(text, "configuration", config_by_name)
}

/// The dictionary that a text names, qualified or not.
pub fn named_dictionary(text: &str) -> Result<&'static Dictionary> {
    named(text, "dictionary", dictionary_by_name)
}

/// The dictionary that a configuration has for a kind of token; `None`: such tokens are left out.
pub fn dictionary_for(config: &TsConfig, kind: TokenKind) -> Option<&'static Dictionary> {
    match kind {
        TokenKind::Blank | TokenKind::Tag | TokenKind::Protocol | TokenKind::Entity => None,
        TokenKind::AsciiWord | TokenKind::HwordAsciiPart | TokenKind::AsciiHword => {
            Some(config.ascii_words)
        }
        TokenKind::Word | TokenKind::HwordPart | TokenKind::Hword => Some(config.words),
        _ => Some(&DICTIONARIES[SIMPLE]),
    }
}

/// A stemmer gets no word that is longer, in bytes.
const STEMMED_MAX: usize = 1000;

impl Dictionary {
    /// The lexeme of a token; `None` for a stop word.
    pub fn lexeme(&self, token: &str) -> Option<String> {
        let lower = lower_text(token);
        let Some(language) = self.language else {
            return Some(lower);
        };
        if lower.len() > STEMMED_MAX {
            return Some(lower);
        }
        let stop_words = self.stop_words.get_or_init(|| language.stop_words());
        if lower.is_empty() || stop_words.binary_search(&lower).is_ok() {
            return None;
        }
        Some(language.stem(lower))
    }

    /// `dictinitoption`
    pub fn options(&self) -> Option<String> {
        let language = self.language?;
        let name = language.name();
        Some(match language.has_stop_words() {
            true => format!("language = '{name}', stopwords = '{name}'"),
            false => format!("language = '{name}'"),
        })
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
    config: &'static TsConfig,
    /// The place of the last word.
    pub at: u32,
    /// (place, lexeme), in order of places.
    pub found: Vec<(u32, String)>,
    room: MemoryReservation,
    pace: CancelChecker,
}

impl Lexemes {
    /// Those of a text that begins now.
    pub fn new(config: &'static TsConfig) -> Lexemes {
        Lexemes {
            config,
            at: 0,
            found: Vec::new(),
            room: MemoryReservation::default(),
            pace: CancelChecker::default(),
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
