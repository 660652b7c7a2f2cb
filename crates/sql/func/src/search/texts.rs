//! From texts to tsvectors and tsqueries, and what shows how that is done.

use crate::Rows;
use crate::arithmetic::bad_args;
use crate::json::node::{Document, Node};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::CancelChecker;
use logstead_sql_types::memory::MemoryReservation;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::json::JsonType;
use logstead_sql_types::value::search::dictionary;
use logstead_sql_types::value::search::dictionary::{Lexemes, TOKEN_STEPS, TsConfig};
use logstead_sql_types::value::search::parser::{KINDS, Parser};
use logstead_sql_types::value::search::query::{
    Node as QueryNode, Op, QueryItem, Word, cleanup_stop_words,
};
use logstead_sql_types::value::search::query_parser;
use logstead_sql_types::value::search::query_parser::PushOperand;
use logstead_sql_types::value::search::vector::{
    Lexeme, PLACE_MAX, PLACES_MAX, Vector, WordPosition,
};
use logstead_sql_types::value::{Datum, oid};
use logstead_types::SqlState;
use std::borrow::Cow;

fn config(d: &Datum) -> Result<&'static TsConfig> {
    let oid = d.as_oid()?;
    dictionary::config_by_oid(oid).ok_or_else(|| {
        SqlError::new(
            SqlState::INTERNAL_ERROR,
            format!("cache lookup failed for text search configuration {oid}"),
        )
    })
}

fn session_config(cx: &dyn IoContext) -> Result<&'static TsConfig> {
    let name = cx.setting("default_text_search_config").unwrap_or_default();
    dictionary::named_config(&name)
}

/// The configuration of a call and its other arguments.
pub(super) fn configured<'a>(
    cx: &dyn IoContext,
    a: &'a [Datum],
) -> Result<(&'static TsConfig, &'a [Datum])> {
    match a {
        [first @ Datum::Oid(_), rest @ ..] => Ok((config(first)?, rest)),
        _ => Ok((session_config(cx)?, a)),
    }
}

/// `get_current_ts_config`
pub(super) fn current_config(cx: &dyn IoContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(session_config(cx)?.oid))
}

fn vector_of(lexemes: Lexemes) -> Result<Datum> {
    let mut found: Vec<Lexeme<'static>> = lexemes
        .found
        .into_iter()
        .map(|(at, text)| Lexeme {
            text: Cow::Owned(text),
            places: vec![WordPosition {
                at: at.min(u32::from(PLACE_MAX)) as u16,
                weight: 0,
            }],
        })
        .collect();
    // Lexemes of no characters are in no text.
    found.retain(|l| !l.text.is_empty());
    let mut vector = Vector::of(found);
    for lexeme in &mut vector.lexemes {
        // One less than a tsvector may have: that is how many a text gives.
        lexeme.places.truncate(PLACES_MAX - 1);
    }
    vector.datum()
}

/// `to_tsvector` of a text, or of the strings of a JSON value
pub fn to_vector(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let (config, rest) = configured(cx, a)?;
    let mut lexemes = Lexemes::new(config);
    match rest {
        [Datum::Text(text)] => lexemes.add(text)?,
        [json @ Datum::Jsonb(_)] => add_json(json, STRINGS, &mut lexemes)?,
        _ => return Err(bad_args(a)),
    }
    vector_of(lexemes)
}

/// `to_tsvector` of json, which is a text that is not taken as one
pub(super) fn json_strings_to_vector(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let (config, rest) = configured(cx, a)?;
    let mut lexemes = Lexemes::new(config);
    let [json] = rest else {
        return Err(bad_args(a));
    };
    add_json(json, STRINGS, &mut lexemes)?;
    vector_of(lexemes)
}

/// `json_to_tsvector`, `jsonb_to_tsvector`
pub(super) fn json_to_vector(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let (config, rest) = configured(cx, a)?;
    let [json, filter] = rest else {
        return Err(bad_args(a));
    };
    let wanted = wanted_kinds(filter)?;
    let mut lexemes = Lexemes::new(config);
    add_json(json, wanted, &mut lexemes)?;
    vector_of(lexemes)
}

const KEYS: u8 = 1;
const STRINGS: u8 = 2;
const NUMBERS: u8 = 4;
const BOOLEANS: u8 = 8;

fn wanted_kinds(filter: &Datum) -> Result<u8> {
    let wrong = |text: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
    const POSSIBLE: &str =
        "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
    let document = Document::of(filter)?;
    let root = document.root();
    let items: Vec<Node<'_>> = match root.kind() {
        JsonType::Array => root.elements().collect(),
        JsonType::Object => {
            return Err(wrong(
                "wrong flag type, only arrays and scalars are allowed".to_owned(),
            ));
        }
        _ => vec![root],
    };
    let mut wanted = 0;
    for item in items {
        if item.kind() != JsonType::String {
            return Err(wrong("flag array element is not a string".to_owned()).hint(POSSIBLE));
        }
        let word = item.text()?.unwrap_or_default();
        wanted |= match word.to_ascii_lowercase().as_str() {
            "all" => KEYS | STRINGS | NUMBERS | BOOLEANS,
            "key" => KEYS,
            "string" => STRINGS,
            "numeric" => NUMBERS,
            "boolean" => BOOLEANS,
            _ => {
                return Err(wrong(format!("wrong flag in flag array: \"{word}\"")).hint(POSSIBLE));
            }
        };
    }
    Ok(wanted)
}

fn add_json(json: &Datum, wanted: u8, lexemes: &mut Lexemes) -> Result<()> {
    let document = Document::of(json)?;
    add_node(document.root(), wanted, lexemes)
}

/// Adds a part of a JSON value: a word that ends it and one that begins the next are no neighbours.
fn add_apart(text: &str, lexemes: &mut Lexemes) -> Result<()> {
    let before = lexemes.found.len();
    lexemes.add(text)?;
    if lexemes.found.len() > before {
        lexemes.at = lexemes.at.saturating_add(1);
    }
    Ok(())
}

/// The depth of JSON values is bounded when they are read.
fn add_node(node: Node<'_>, wanted: u8, lexemes: &mut Lexemes) -> Result<()> {
    let flag = match node.kind() {
        JsonType::Null => 0,
        JsonType::True | JsonType::False => BOOLEANS,
        JsonType::Number => NUMBERS,
        JsonType::String => STRINGS,
        JsonType::Array => {
            for element in node.elements() {
                add_node(element, wanted, lexemes)?;
            }
            0
        }
        JsonType::Object => {
            for (key, value) in node.members() {
                if wanted & KEYS != 0 {
                    add_apart(key, lexemes)?;
                }
                add_node(value, wanted, lexemes)?;
            }
            0
        }
    };
    if wanted & flag != 0
        && let Some(text) = node.text()?
    {
        add_apart(&text, lexemes)?;
    }
    Ok(())
}

/// Turns the words of a query into lexemes.
struct PushMorph<'a> {
    config: &'static TsConfig,
    /// What stands between the lexemes of one word.
    between: Op,
    all: &'a str,
}

impl PushOperand for PushMorph<'_> {
    fn word(
        &mut self,
        text: &str,
        weights: u8,
        prefix: bool,
        out: &mut Vec<QueryItem>,
    ) -> Result<()> {
        query_parser::check_word(text, self.all)?;
        let mut lexemes = Lexemes::new(self.config);
        lexemes.add(text)?;
        if lexemes.found.is_empty() {
            out.push(QueryItem::StopWord);
            return Ok(());
        }
        let (mut before, mut count) = (0, 0);
        let mut put = |part: QueryItem, count: &mut usize| {
            out.push(part);
            if *count > 0 {
                out.push(QueryItem::Node(QueryNode::Op(self.between)));
            }
            *count += 1;
        };
        for (at, lexeme) in lexemes.found {
            // Stop words between two others keep their places.
            while before > 0 && before + 1 < at {
                put(QueryItem::StopWord, &mut count);
                before += 1;
            }
            before = at;
            let word = Word {
                text: lexeme,
                weights,
                prefix,
            };
            put(QueryItem::Node(QueryNode::Word(word)), &mut count);
        }
        Ok(())
    }
}

/// How the text of a query is read.
#[derive(Clone, Copy, PartialEq)]
enum QuerySyntax {
    Operators,
    Plain(Op),
    Web,
}

fn make_query(cx: &dyn IoContext, a: &[Datum], reading: QuerySyntax) -> Result<Datum> {
    let (config, rest) = configured(cx, a)?;
    let [Datum::Text(text)] = rest else {
        return Err(bad_args(a));
    };
    let between = match reading {
        QuerySyntax::Plain(op) => op,
        _ => Op::Phrase(1),
    };
    let mut words = PushMorph {
        config,
        between,
        all: text,
    };
    let parts = match reading {
        QuerySyntax::Operators => query_parser::parse(text, &mut words)?,
        QuerySyntax::Web => query_parser::parse_web(text, &mut words)?,
        QuerySyntax::Plain(_) => {
            let mut parts = Vec::new();
            if !text.is_empty() {
                words.word(text, 0, false, &mut parts)?;
            }
            parts
        }
    };
    cleanup_stop_words(parts).datum()
}

/// `to_tsquery`
pub(super) fn to_query(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    make_query(cx, a, QuerySyntax::Operators)
}

/// `plainto_tsquery`
pub(super) fn plain_query(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    make_query(cx, a, QuerySyntax::Plain(Op::And))
}

/// `phraseto_tsquery`
pub(super) fn phrase_query(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    make_query(cx, a, QuerySyntax::Plain(Op::Phrase(1)))
}

/// `websearch_to_tsquery`
pub(super) fn web_query(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    make_query(cx, a, QuerySyntax::Web)
}

/// There is one parser, and it is asked for by name or number.
fn check_parser(d: &Datum) -> Result<()> {
    match d {
        Datum::Oid(oid) if *oid == dictionary::PARSER => Ok(()),
        Datum::Oid(oid) => Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            format!("cache lookup failed for text search parser {oid}"),
        )),
        other => match other.as_str()? {
            "default" | "pg_catalog.default" => Ok(()),
            name => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("text search parser \"{name}\" does not exist"),
            )),
        },
    }
}

/// `ts_token_type`
pub(super) fn token_types(a: &[Datum]) -> Result<Rows> {
    a.first().map_or(Ok(()), check_parser)?;
    let row = |(i, (alias, description)): (usize, &(&str, &str))| {
        vec![
            Datum::Int4(i as i32 + 1),
            Datum::text(*alias),
            Datum::text(*description),
        ]
    };
    Ok(KINDS.iter().enumerate().map(row).collect())
}

/// What a row of `ts_parse` takes beside the token's text.
const TOKEN_ROW_BYTES: usize = 2 * size_of::<Datum>() + size_of::<Vec<Datum>>() + 32;

/// `ts_parse`
pub(super) fn parse(a: &[Datum]) -> Result<Rows> {
    let [parser, Datum::Text(text)] = a else {
        return Err(bad_args(a));
    };
    check_parser(parser)?;
    let mut tokens = Parser::new(text);
    let mut rows = Vec::new();
    let (mut room, mut pace) = (MemoryReservation::default(), CancelChecker::default());
    while let Some(token) = tokens.token() {
        pace.spent(TOKEN_STEPS + token.text.len())?;
        room.hold((rows.len() + 1) * TOKEN_ROW_BYTES + text.len())?;
        rows.push(vec![
            Datum::Int4(token.kind as i32),
            Datum::text(token.text),
        ]);
    }
    Ok(rows)
}

/// `ts_lexize`
pub(super) fn lexize(a: &[Datum]) -> Result<Datum> {
    let [dictionary, Datum::Text(token)] = a else {
        return Err(bad_args(a));
    };
    let oid = dictionary.as_oid()?;
    let dictionary = dictionary::dictionary_by_oid(oid).ok_or_else(|| {
        SqlError::new(
            SqlState::INTERNAL_ERROR,
            format!("cache lookup failed for text search dictionary {oid}"),
        )
    })?;
    let lexemes = dictionary.lexeme(token).map(Datum::text);
    Ok(Datum::array(oid::TEXT, lexemes.into_iter().collect()))
}
