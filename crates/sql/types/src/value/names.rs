//! Names of objects as SQL text: quoting, splitting qualified ones, their longest length.

use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// Longest name in bytes (PostgreSQL's NAMEDATALEN - 1).
pub const NAME_LENGTH_MAX: usize = 63;

/// A string as an SQL literal.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// Splits `schema."Name"` into its parts, folding what is not quoted to lower case.
pub fn split_qualified(text: &str) -> Result<Vec<String>> {
    let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => split_quoted(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find(|c: char| c == '.' || is_blank(c));
                let end = end.unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                if word.is_empty() {
                    return Err(invalid());
                }
                (word.to_ascii_lowercase(), after)
            }
        };
        parts.push(part);
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(parts);
        }
        rest = rest.strip_prefix('.').ok_or_else(invalid)?.trim_start();
    }
}

fn split_quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '"' {
            name.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == '"') {
            name.push('"');
            chars.next();
        } else {
            return Some((name, text.get(at + 1..).unwrap_or_default()));
        }
    }
    None
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Cuts a name to 63 bytes at a character's border.
pub fn truncate_name(name: &str) -> &str {
    if name.len() <= NAME_LENGTH_MAX {
        return name;
    }
    let mut end = NAME_LENGTH_MAX;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}

/// Quotes an identifier if it needs to be: not lower case, or a reserved word.
pub fn quote_identifier(t: &str) -> String {
    if is_plain_identifier(t) {
        t.to_owned()
    } else {
        format!("\"{}\"", t.replace('"', "\"\""))
    }
}

/// True if the name means itself without quotes.
pub fn is_plain_identifier(t: &str) -> bool {
    t.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && t.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && RESERVED.binary_search(&t).is_err()
}

/// Every keyword that PostgreSQL does not leave to be a name everywhere, sorted.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// PostgreSQL's spellings of truth: on, true, yes, 1 and their unique prefixes.
pub fn parse_bool(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let prefix = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    if prefix("true", 1) || prefix("yes", 1) || prefix("on", 2) || value == "1" {
        Some(true)
    } else if prefix("false", 1) || prefix("no", 1) || prefix("off", 2) || value == "0" {
        Some(false)
    } else {
        None
    }
}
