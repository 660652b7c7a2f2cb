//! Names and expressions as SQL text: quoting, splitting qualified names, the columns an expression mentions.

use super::Relation;
use crate::error::{Result, SqlError};
pub use crate::func::quote_identifier as quote_ident;
use crate::value::Oid;
use logstead_types::SqlState;
use sqlparser::ast::{Expr, FunctionArg, FunctionArguments, Visit, Visitor};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

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

/// Where the first of a character stands that is neither in double quotes nor, if those count, in parentheses or
/// brackets.
/// `None` if there is none; 22P02 if the text ends within any of these.
fn first_outside(text: &str, wanted: char, nests: bool) -> Result<Option<usize>> {
    let (mut quoted, mut depth) = (false, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c == wanted && depth == 0 => return Ok(Some(at)),
            '(' | '[' if nests => depth += 1,
            ')' | ']' if nests => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    match nests && (quoted || depth > 0) {
        true => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "improper type name",
        )),
        false => Ok(None),
    }
}

/// The text of a name and the types in parentheses behind it, as `regprocedure` and `regoperator` read them; 0 stands
/// for NONE, where that may
/// stand.
pub(crate) fn name_and_types(text: &str, allows_none: bool) -> Result<(&str, Vec<Oid>)> {
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what);
    let open = first_outside(text, '(', false)?;
    let open = open.ok_or_else(|| wrong("expected a left parenthesis"))?;
    let (name, rest) = text.split_at(open);
    let inner = rest.get(1..).unwrap_or_default().trim_end();
    let inner = inner.strip_suffix(')');
    let inner = inner.ok_or_else(|| wrong("expected a right parenthesis"))?;
    let mut types = Vec::new();
    let mut rest = Some(inner.trim_start()).filter(|inner| !inner.is_empty());
    while let Some(part) = rest {
        if part.is_empty() {
            return Err(wrong("expected a type name"));
        }
        let comma = first_outside(part, ',', true)?;
        let named = part.get(..comma.unwrap_or(part.len())).unwrap_or_default();
        let named = named.trim_end();
        types.push(match allows_none && named.eq_ignore_ascii_case("none") {
            true => 0,
            false => crate::bind::type_by_text(named)?,
        });
        rest = comma.map(|comma| part.get(comma + 1..).unwrap_or_default().trim_start());
    }
    Ok((name, types))
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

/// Does a stored expression take the table's whole row: by the table's name, or as `name.*`?
pub fn takes_row(text: &str, relation: &Relation) -> bool {
    struct Rows<'a>(&'a Relation);
    impl Visitor for Rows<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_row = match expr {
                Expr::Identifier(ident) => {
                    let name = fold(ident);
                    let mut columns = self.0.columns.iter();
                    name == self.0.name && !columns.any(|c| !c.dropped && c.name == name)
                }
                Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => true,
                Expr::Function(function) => match &function.args {
                    FunctionArguments::List(list) => list.args.iter().any(|arg| {
                        use sqlparser::ast::FunctionArgExpr as Arg;
                        let arg = match arg {
                            FunctionArg::Unnamed(arg)
                            | FunctionArg::Named { arg, .. }
                            | FunctionArg::ExprNamed { arg, .. } => arg,
                        };
                        matches!(arg, Arg::QualifiedWildcard(_))
                    }),
                    _ => false,
                },
                _ => false,
            };
            match is_row {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    let expr = crate::parse::parse_expr(text);
    expr.is_ok_and(|expr| expr.visit(&mut Rows(relation)).is_break())
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
