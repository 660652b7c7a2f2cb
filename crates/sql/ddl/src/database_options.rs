//! What CREATE and ALTER DATABASE are told: options, encodings, locales, tablespaces.
//!
//! There is one encoding, UTF8, one order of text, that of its bytes, and one tablespace. What asks for another is
//! 0A000 if PostgreSQL has it, and PostgreSQL's error if it has not.

use super::{DdlContext, def_elem};
use logstead_sql_catalog::database::{Database, TEMPLATE0};
use logstead_sql_catalog::settings;
use logstead_sql_parse::ast::{DefArg, DefElem};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What the options say.
#[derive(Default)]
pub(super) struct DatabaseOptions {
    pub(super) owner: Option<String>,
    pub(super) template: Option<String>,
    pub(super) is_template: Option<bool>,
    pub(super) allow_connections: Option<bool>,
    pub(super) connection_limit: Option<i32>,
    collate: Option<String>,
    ctype: Option<String>,
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// 42601 for an option that stands there twice.
fn once(options: &[DefElem], text: &str) -> Result<()> {
    for (at, option) in options.iter().enumerate() {
        if options[..at].iter().any(|other| other.name == option.name) {
            return Err(def_elem::conflicting(option, text));
        }
    }
    Ok(())
}

/// The value of an option; none for DEFAULT.
fn value<T>(option: &DefElem, get: impl FnOnce(&DefElem) -> Result<T>) -> Result<Option<T>> {
    option.arg.is_some().then(|| get(option)).transpose()
}

fn word(option: &DefElem) -> Result<Option<String>> {
    value(option, def_elem::get_string)
}

fn boolean(option: &DefElem) -> Result<Option<bool>> {
    value(option, def_elem::get_boolean)
}

fn limit(option: &DefElem) -> Result<Option<i32>> {
    match value(option, def_elem::get_int32)? {
        Some(limit) if limit < -1 => Err(invalid(format!("invalid connection limit: {limit}"))),
        limit => Ok(limit),
    }
}

/// Other encodings of PostgreSQL, as their names begin.
const ENCODINGS: [&str; 15] = [
    "sqlascii", "euc", "latin", "iso8859", "win", "koi8", "mule", "johab", "sjis", "shiftjis",
    "big5", "gb", "uhc", "alt", "abc",
];

fn encoding(option: &DefElem, text: &str) -> Result<()> {
    let position = option.location.character(text);
    let name = match &option.arg {
        None | Some(DefArg::Integer(6)) => return Ok(()),
        Some(DefArg::Integer(code @ 0..=41)) => {
            return Err(SqlError::unsupported(format!("the encoding {code}")));
        }
        Some(DefArg::Integer(code)) => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("{code} is not a valid encoding code"),
            )
            .at(position));
        }
        Some(_) => def_elem::get_string(option)?,
    };
    if settings::is_utf8(&name) {
        return Ok(());
    }
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    if ENCODINGS.iter().any(|known| plain.starts_with(known)) {
        return Err(
            SqlError::unsupported(format!("the encoding {name}")).hint("Databases are in UTF8.")
        );
    }
    Err(SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("{name} is not a valid encoding name"),
    )
    .at(position))
}

/// A locale that orders by bytes, as the system calls it; 0A000 for others.
fn locale(name: &str) -> Result<String> {
    match name {
        "C" | "POSIX" => return Ok("C".to_owned()),
        "C.UTF-8" | "C.utf8" => return Ok(name.to_owned()),
        _ => {}
    }
    // Language, territory, and more: en_US.UTF-8.
    let mut letters = name.chars().take_while(char::is_ascii_alphabetic);
    let language = letters.by_ref().count();
    let rest = name.get(language..).unwrap_or_default();
    if (2..=3).contains(&language) && (rest.is_empty() || rest.starts_with(['_', '.', '-'])) {
        return Err(SqlError::unsupported(format!("the locale \"{name}\""))
            .hint("Databases are of the locale C, and order text by its bytes."));
    }
    Err(SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("invalid locale name: \"{name}\""),
    ))
}

/// The one tablespace of databases.
pub(super) fn tablespace(name: &str) -> Result<()> {
    match name {
        "pg_default" => Ok(()),
        "pg_global" => Err(invalid("pg_global cannot be used as default tablespace")),
        _ => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("tablespace \"{name}\" does not exist"),
        )),
    }
}

/// The options of CREATE DATABASE.
pub(super) fn of_create(options: &[DefElem], cx: &mut DdlContext<'_>) -> Result<DatabaseOptions> {
    once(options, cx.text)?;
    let mut wanted = DatabaseOptions::default();
    let mut both = None;
    for option in options {
        match &*option.name {
            "owner" => wanted.owner = word(option)?,
            "template" => wanted.template = word(option)?,
            "encoding" => encoding(option, cx.text)?,
            "locale" => both = word(option)?,
            "lc_collate" => wanted.collate = word(option)?,
            "lc_ctype" => wanted.ctype = word(option)?,
            "is_template" => wanted.is_template = boolean(option)?,
            "allow_connections" => wanted.allow_connections = boolean(option)?,
            "connection_limit" => wanted.connection_limit = limit(option)?,
            "tablespace" => word(option)?.map_or(Ok(()), |name| tablespace(&name))?,
            "strategy" => match word(option)?.as_deref() {
                None | Some("wal_log" | "file_copy") => {}
                Some(other) => {
                    return Err(
                        invalid(format!("invalid create database strategy \"{other}\""))
                            .hint("Valid strategies are \"wal_log\" and \"file_copy\"."),
                    );
                }
            },
            "locale_provider" => match word(option)?.as_deref() {
                None | Some("libc") => {}
                Some("icu") => return Err(SqlError::unsupported("the locale provider icu")),
                Some(other) => {
                    return Err(SqlError::new(
                        SqlState::INVALID_OBJECT_DEFINITION,
                        format!("unrecognized locale provider: {other}"),
                    ));
                }
            },
            "icu_locale" => {
                return Err(SqlError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    "ICU locale cannot be specified unless locale provider is ICU",
                ));
            }
            "location" => cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::FEATURE_NOT_SUPPORTED,
                message: "LOCATION is not supported anymore".to_owned(),
                detail: None,
                hint: Some("Consider using tablespaces instead."),
            }),
            "oid" | "collation_version" => {
                let shown = option.name.to_uppercase();
                return Err(SqlError::unsupported(format!(
                    "CREATE DATABASE ... {shown}"
                )));
            }
            _ => return Err(unknown(option, cx.text)),
        }
    }
    wanted.collate = wanted.collate.or_else(|| both.clone());
    wanted.ctype = wanted.ctype.or(both);
    Ok(wanted)
}

fn unknown(option: &DefElem, text: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("option \"{}\" not recognized", option.name),
    )
    .at(option.location.character(text))
}

/// The options of ALTER DATABASE.
pub(super) fn of_alter(options: &[DefElem], text: &str) -> Result<DatabaseOptions> {
    once(options, text)?;
    let mut wanted = DatabaseOptions::default();
    for option in options {
        match &*option.name {
            "is_template" => wanted.is_template = boolean(option)?,
            "allow_connections" => wanted.allow_connections = boolean(option)?,
            "connection_limit" => wanted.connection_limit = limit(option)?,
            "tablespace" => word(option)?.map_or(Ok(()), |name| tablespace(&name))?,
            _ => return Err(unknown(option, text)),
        }
    }
    Ok(wanted)
}

/// LC_COLLATE and LC_CTYPE of a database that is made from another.
pub(super) fn locales(wanted: &DatabaseOptions, source: &Database) -> Result<(String, String)> {
    let of = |wanted: &Option<String>, source: &String| match wanted {
        Some(name) => locale(name),
        None => Ok(source.clone()),
    };
    let collate = of(&wanted.collate, &source.collate)?;
    let ctype = of(&wanted.ctype, &source.ctype)?;
    if source.oid != TEMPLATE0 {
        let pairs = [
            ("collation", "collation", &collate, &source.collate),
            ("LC_CTYPE", "LC_CTYPE", &ctype, &source.ctype),
        ];
        for (what, same, new, old) in pairs {
            if new != old {
                return Err(invalid(format!(
                    "new {what} ({new}) is incompatible with the {what} of the template database ({old})"
                ))
                .hint(format!(
                    "Use the same {same} as in the template database, or use template0 as template."
                )));
            }
        }
    }
    Ok((collate, ctype))
}
