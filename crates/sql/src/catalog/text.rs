//! Names and expressions as SQL text: quoting, splitting qualified names, the columns an expression mentions.

use super::Relation;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast::{Expr, Visit, Visitor};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Longest name in bytes (PostgreSQL's NAMEDATALEN - 1).
pub const NAME_LENGTH_MAX: usize = 63;

/// A name as an SQL identifier: in quotes unless it would read back the same without.
pub fn quote_ident(name: &str) -> String {
    let plain = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && RESERVED.binary_search(&name).is_err();
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// A string as an SQL literal.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// Words that quote_ident puts in quotes: every keyword but the unreserved ones.
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

/// Splits `schema."Name"` into its parts, folding what is not quoted to lower case.
pub fn split_qualified(text: &str) -> Result<Vec<String>> {
    let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => split_quoted(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find(['.', '"', ' ']).unwrap_or(rest.len());
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
            return (!name.is_empty()).then(|| (name, text.get(at + 1..).unwrap_or_default()));
        }
    }
    None
}

/// Positions of the columns that a stored expression mentions, in the order of the table.
pub fn columns_in(text: &str, relation: &Relation) -> Vec<usize> {
    let Ok(expr) = crate::parse::parse_expr(text) else {
        return Vec::new();
    };
    columns_of(&expr, relation)
}

/// Positions of the columns that an expression mentions, in the order of the table.
pub fn columns_of(expr: &Expr, relation: &Relation) -> Vec<usize> {
    struct Names<'a>(&'a Relation, BTreeSet<usize>);
    impl Visitor for Names<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let ident = match expr {
                Expr::Identifier(ident) => Some(ident),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if let Some(ident) = ident {
                let name = fold(ident);
                if let Some(position) = self
                    .0
                    .columns
                    .iter()
                    .position(|c| !c.dropped && c.name == name)
                {
                    self.1.insert(position);
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(relation, BTreeSet::new());
    let _ = expr.visit(&mut names);
    names.1.into_iter().collect()
}

/// An identifier's value: folded to lower case unless quoted.
pub fn fold(ident: &sqlparser::ast::Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
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
