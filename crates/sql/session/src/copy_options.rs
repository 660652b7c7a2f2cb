//! What the options of COPY come to, checked in PostgreSQL's order and with its messages.

use super::copy_format::{CopyFormat, ForceColumns};
use logstead_sql_catalog::Relation;
use logstead_sql_ddl::def_elem::{conflicting, get_boolean, get_string};
use logstead_sql_parse::ast::{DefArg, DefElem, Name};
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

fn unsupported(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// The options as they were given.
#[derive(Default)]
struct RawCopyOptions {
    format: Option<(bool, bool)>,
    freeze: Option<bool>,
    delimiter: Option<String>,
    null: Option<String>,
    /// Is there one, and does it name the columns?
    header: Option<(bool, bool)>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<ForceColumns>,
    force_not_null: Option<Vec<String>>,
    force_null: Option<Vec<String>>,
    encoding: Option<Encoding>,
}

/// Takes an option's value; 42601 if there is one already.
fn once<T>(
    place: &mut Option<T>,
    option: &DefElem,
    text: &str,
    value: impl FnOnce(&DefElem) -> Result<T>,
) -> Result<()> {
    if place.is_some() {
        return Err(conflicting(option, text));
    }
    *place = Some(value(option)?);
    Ok(())
}

/// 22023 for an option's value, which is told by where the option stands.
fn wrong_value(option: &DefElem, text: &str, message: String) -> SqlError {
    invalid(message).at(option.location.character(text))
}

/// The value as a text; of a list of names they with points between them.
fn string(option: &DefElem) -> Result<String> {
    match &option.arg {
        Some(DefArg::List(names)) => Ok(strings(names)?.join(".")),
        _ => get_string(option),
    }
}

/// The texts of a list.
fn strings(list: &[DefArg]) -> Result<Vec<String>> {
    let name = |value: &DefArg| match value {
        DefArg::String(name) => Ok(name.to_string()),
        _ => Err(SqlError::internal("a name that is no text")),
    };
    list.iter().map(name).collect()
}

fn header(option: &DefElem, from: bool) -> Result<(bool, bool)> {
    match &option.arg {
        Some(DefArg::String(word)) if word.eq_ignore_ascii_case("match") => match from {
            true => Ok((true, true)),
            false => Err(unsupported(format!(
                "cannot use \"{word}\" with HEADER in COPY TO"
            ))),
        },
        _ => match get_boolean(option) {
            Ok(on) => Ok((on, false)),
            Err(_) => Err(syntax(format!(
                "{} requires a Boolean value or \"match\"",
                option.name
            ))),
        },
    }
}

fn names(option: &DefElem, text: &str) -> Result<Vec<String>> {
    match &option.arg {
        Some(DefArg::List(names)) => strings(names),
        _ => {
            let message = format!(
                "argument to option \"{}\" must be a list of column names",
                option.name
            );
            Err(wrong_value(option, text, message))
        }
    }
}

fn encoding(option: &DefElem, text: &str) -> Result<Encoding> {
    let found = Encoding::named(&string(option)?).ok_or_else(|| {
        let message = format!(
            "argument to option \"{}\" must be a valid encoding name",
            option.name
        );
        wrong_value(option, text, message)
    })?;
    match found.is_supported() {
        true => Ok(found),
        false => Err(SqlError::unsupported(found.what())),
    }
}

/// Is it text, CSV (the first) or binary (the second)?
fn format(option: &DefElem, text: &str) -> Result<(bool, bool)> {
    match string(option)?.as_str() {
        "text" => Ok((false, false)),
        "csv" => Ok((true, false)),
        "binary" => Ok((false, true)),
        other => {
            let message = format!("COPY format \"{other}\" not recognized");
            Err(wrong_value(option, text, message))
        }
    }
}

impl RawCopyOptions {
    fn read(options: &[DefElem], from: bool, text: &str) -> Result<RawCopyOptions> {
        let mut given = RawCopyOptions::default();
        for option in options {
            match &*option.name {
                "format" => once(&mut given.format, option, text, |o| format(o, text))?,
                "freeze" => once(&mut given.freeze, option, text, get_boolean)?,
                "delimiter" => once(&mut given.delimiter, option, text, string)?,
                "null" => once(&mut given.null, option, text, string)?,
                "header" => once(&mut given.header, option, text, |o| header(o, from))?,
                "quote" => once(&mut given.quote, option, text, string)?,
                "escape" => once(&mut given.escape, option, text, string)?,
                "force_quote" => {
                    once(&mut given.force_quote, option, text, |o| match &o.arg {
                        Some(DefArg::Star) => Ok(ForceColumns::All),
                        _ => names(o, text).map(ForceColumns::These),
                    })?;
                }
                "force_not_null" => {
                    once(&mut given.force_not_null, option, text, |o| names(o, text))?;
                }
                "force_null" => once(&mut given.force_null, option, text, |o| names(o, text))?,
                "convert_selectively" => {
                    let found = |other: &&DefElem| other.name == option.name;
                    if options.iter().filter(found).count() > 1 {
                        return Err(conflicting(option, text));
                    }
                    return Err(SqlError::unsupported("COPY with CONVERT_SELECTIVELY"));
                }
                "encoding" => once(&mut given.encoding, option, text, |o| encoding(o, text))?,
                other => {
                    let error = syntax(format!("option \"{other}\" not recognized"));
                    return Err(error.at(option.location.character(text)));
                }
            }
        }
        Ok(given)
    }
}

/// The one byte of an option.
fn single(name: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(unsupported(format!(
            "COPY {name} must be a single one-byte character"
        ))),
    }
}

fn csv_only(name: &str) -> SqlError {
    unsupported(format!("COPY {name} available only in CSV mode"))
}

impl CopyFormat {
    /// Reads the options of a COPY `from` the client or to it. `text` is that of the statement.
    pub(super) fn read(options: &[DefElem], from: bool, text: &str) -> Result<CopyFormat> {
        let given = RawCopyOptions::read(options, from, text)?;
        let (csv, binary) = given.format.unwrap_or_default();
        if binary && given.delimiter.is_some() {
            return Err(syntax("cannot specify DELIMITER in BINARY mode"));
        }
        if binary && given.null.is_some() {
            return Err(syntax("cannot specify NULL in BINARY mode"));
        }
        let delimiter = match &given.delimiter {
            Some(text) => single("delimiter", text)?,
            None if csv => b',',
            None => b'\t',
        };
        let null = given
            .null
            .unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() });
        if matches!(delimiter, b'\n' | b'\r') {
            return Err(invalid(
                "COPY delimiter cannot be newline or carriage return",
            ));
        }
        if null.contains(['\n', '\r']) {
            return Err(invalid(
                "COPY null representation cannot use newline or carriage return",
            ));
        }
        let is_taken = matches!(delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9');
        if !csv && is_taken {
            return Err(invalid(format!(
                "COPY delimiter cannot be \"{}\"",
                char::from(delimiter)
            )));
        }
        let (header, header_matches) = given.header.unwrap_or_default();
        if binary && header {
            return Err(unsupported("cannot specify HEADER in BINARY mode"));
        }
        let quote = match &given.quote {
            Some(_) if !csv => return Err(csv_only("quote")),
            Some(text) => single("quote", text)?,
            None => b'"',
        };
        if csv && delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        let escape = match &given.escape {
            Some(_) if !csv => return Err(csv_only("escape")),
            Some(text) => single("escape", text)?,
            None => quote,
        };
        let forces = [
            ("force quote", given.force_quote.is_some(), false),
            ("force not null", given.force_not_null.is_some(), true),
            ("force null", given.force_null.is_some(), true),
        ];
        for (name, is_given, when_from) in forces {
            if is_given && !csv {
                return Err(csv_only(name));
            }
            if is_given && when_from != from {
                let way = if when_from { "FROM" } else { "TO" };
                return Err(unsupported(format!(
                    "COPY {name} only available using COPY {way}"
                )));
            }
        }
        if null.as_bytes().contains(&delimiter) {
            return Err(unsupported(
                "COPY delimiter must not appear in the NULL specification",
            ));
        }
        if csv && null.as_bytes().contains(&quote) {
            return Err(unsupported(
                "CSV quote character must not appear in the NULL specification",
            ));
        }
        Ok(CopyFormat {
            binary,
            csv,
            delimiter,
            null,
            header,
            header_matches,
            freeze: given.freeze.unwrap_or_default(),
            quote,
            escape,
            force_quote: given
                .force_quote
                .unwrap_or_else(|| ForceColumns::These(Vec::new())),
            force_not_null: given.force_not_null.unwrap_or_default(),
            force_null: given.force_null.unwrap_or_default(),
            encoding: given.encoding,
        })
    }
}

/// Attribute positions of the named columns; all live ones if none is named.
pub(crate) fn copied_columns(relation: &Relation, names: &[Name]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..relation.columns.len())
            .filter(|i| !relation.columns[*i].dropped && !relation.columns[*i].generated)
            .collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let found = relation
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == **name)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        relation.name
                    ),
                )
            })?;
        if relation.columns[found].generated {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .detail("Generated columns cannot be used in COPY."));
        }
        if positions.contains(&found) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        positions.push(found);
    }
    Ok(positions)
}
