//! What the options of COPY come to, checked in PostgreSQL's order and with its messages.

use super::copy_format::{CopyFormat, ForceColumns};
use crate::transaction::fold;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::settings::parse_bool;
use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::{CopyOption, CopyValue, redundant_option};
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
    option: &CopyOption,
    value: impl FnOnce(&CopyOption) -> Result<T>,
) -> Result<()> {
    if place.is_some() {
        return Err(redundant_option(option));
    }
    *place = Some(value(option)?);
    Ok(())
}

fn text(option: &CopyOption) -> Result<String> {
    match &option.value {
        CopyValue::Text(text) | CopyValue::Number(text) => Ok(text.clone()),
        CopyValue::All => Ok("*".to_owned()),
        CopyValue::Names(names) => Ok(names.join(".")),
        CopyValue::Nothing => Err(syntax(format!("{} requires a parameter", option.name))),
    }
}

/// A truth value, as definitions have it: a word that is abbreviated is none.
fn truth(option: &CopyOption) -> Option<bool> {
    match &option.value {
        CopyValue::Nothing => Some(true),
        CopyValue::Number(digits) => match digits.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        },
        CopyValue::Text(word) => {
            let whole = ["true", "false", "on", "off"];
            let is_whole = whole.iter().any(|w| word.eq_ignore_ascii_case(w));
            is_whole.then(|| parse_bool(word)).flatten()
        }
        CopyValue::All | CopyValue::Names(_) => None,
    }
}

fn header(option: &CopyOption, from: bool) -> Result<(bool, bool)> {
    if let Some(on) = truth(option) {
        return Ok((on, false));
    }
    match &option.value {
        CopyValue::Text(word) if word.eq_ignore_ascii_case("match") => match from {
            true => Ok((true, true)),
            false => Err(unsupported(format!(
                "cannot use \"{word}\" with HEADER in COPY TO"
            ))),
        },
        _ => Err(syntax(format!(
            "{} requires a Boolean value or \"match\"",
            option.name
        ))),
    }
}

fn names(option: &CopyOption) -> Result<Vec<String>> {
    match &option.value {
        CopyValue::Names(names) => Ok(names.clone()),
        _ => Err(invalid(format!(
            "argument to option \"{}\" must be a list of column names",
            option.name
        ))
        .at(option.position)),
    }
}

fn encoding(option: &CopyOption) -> Result<Encoding> {
    let found = Encoding::named(&text(option)?).ok_or_else(|| {
        invalid(format!(
            "argument to option \"{}\" must be a valid encoding name",
            option.name
        ))
        .at(option.position)
    })?;
    match found.is_supported() {
        true => Ok(found),
        false => Err(SqlError::unsupported(found.what())),
    }
}

/// Is it text, CSV (the first) or binary (the second)?
fn format(option: &CopyOption) -> Result<(bool, bool)> {
    match text(option)?.as_str() {
        "text" => Ok((false, false)),
        "csv" => Ok((true, false)),
        "binary" => Ok((false, true)),
        other => {
            Err(invalid(format!("COPY format \"{other}\" not recognized")).at(option.position))
        }
    }
}

impl RawCopyOptions {
    fn read(options: &[CopyOption], from: bool) -> Result<RawCopyOptions> {
        let mut given = RawCopyOptions::default();
        for option in options {
            match option.name.as_str() {
                "format" => once(&mut given.format, option, format)?,
                "freeze" => once(&mut given.freeze, option, |option| {
                    truth(option)
                        .ok_or_else(|| syntax(format!("{} requires a Boolean value", option.name)))
                })?,
                "delimiter" => once(&mut given.delimiter, option, text)?,
                "null" => once(&mut given.null, option, text)?,
                "header" => once(&mut given.header, option, |option| header(option, from))?,
                "quote" => once(&mut given.quote, option, text)?,
                "escape" => once(&mut given.escape, option, text)?,
                "force_quote" => once(&mut given.force_quote, option, |option| {
                    match &option.value {
                        CopyValue::All => Ok(ForceColumns::All),
                        _ => names(option).map(ForceColumns::These),
                    }
                })?,
                "force_not_null" => once(&mut given.force_not_null, option, names)?,
                "force_null" => once(&mut given.force_null, option, names)?,
                "convert_selectively" => {
                    let found = |other: &&CopyOption| other.name == option.name;
                    if options.iter().filter(found).count() > 1 {
                        return Err(redundant_option(option));
                    }
                    return Err(SqlError::unsupported("COPY with CONVERT_SELECTIVELY"));
                }
                "encoding" => once(&mut given.encoding, option, encoding)?,
                other => {
                    return Err(
                        syntax(format!("option \"{other}\" not recognized")).at(option.position)
                    );
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
    /// Reads the options of a COPY `from` the client or to it.
    pub(super) fn read(options: &[CopyOption], from: bool) -> Result<CopyFormat> {
        let given = RawCopyOptions::read(options, from)?;
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
pub(crate) fn copied_columns(relation: &Relation, names: &[ast::Ident]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..relation.columns.len())
            .filter(|i| !relation.columns[*i].dropped && !relation.columns[*i].generated)
            .collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let name = fold(name);
        let found = relation
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == name)
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
