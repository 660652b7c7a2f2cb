//! DEFAULT and CHECK expressions: bound to see that they are right, stored as text, evaluated over stored rows.
//!
//! Whoever keeps one needs no right to call the functions in it (`DdlContext::may_define`); whoever evaluates it over
//! rows does (`DdlContext::may_run`).

use super::DdlContext;
use crate::pg_catalog::calls;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::text::quote_literal;
use logstead_sql_catalog::{Catalog, Relation, RelationKind, deparse};
use logstead_sql_exec::{self as exec, EvalContext};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{self, FuncName, Location, Value, VisitMut, VisitorMut};
use logstead_sql_plan::bind;
use logstead_sql_plan::bind::explicit;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Bound, PlanContext, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{Datum, OutputStyle, SqlType, oid, text_io};
use logstead_sql_types::{FunctionId, RelationId, SchemaId};
use logstead_types::SqlState;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Does something with a planning context over `catalog`.
pub(super) fn with_planner<T>(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    run: impl FnOnce(&PlanContext<'_>) -> Result<T>,
) -> Result<T> {
    let rows_of = |_: &Relation| 1_000.0;
    run(&PlanContext {
        catalog,
        search_path: cx.search_path,
        param_types: &[],
        parameters_fixed: true,
        session: cx.session,
        variables: None,
        rows_of: &rows_of,
        evaluate: logstead_sql_exec::evaluate,
    })
}

/// The text under which a column's DEFAULT is stored and shown: literals take the column's type, as PostgreSQL prints
/// them.
pub(super) fn default_text(
    expr: &ast::Expr,
    ty: SqlType,
    cx: &mut DdlContext<'_>,
) -> Result<Option<String>> {
    let base = SqlType::of(ty.oid);
    Ok(match literal(expr) {
        Some(Literal::Null) => None,
        Some(Literal::String(text)) => {
            let value = text_io::input(base, &text, Some(cx.session));
            let value = value.map_err(|e| e.at(cx.at(expr.location())))?;
            let catalog = cx.catalog()?;
            let spelling = TypeSpelling::numbered(cx.lookup(&catalog).types());
            let style = OutputStyle {
                types_by_number: true,
                ..OutputStyle::of(cx.session).for_storage()
            };
            Some(constant_text(&value, base, &style, spelling)?)
        }
        Some(Literal::Negative(digits)) => {
            let whole = !digits.contains(['.', 'e', 'E']);
            let small = digits.parse::<u32>().is_ok_and(|n| n <= 1 << 31);
            let name = match (whole, small) {
                (true, true) => "integer",
                (true, false) if digits.parse::<u64>().is_ok_and(|n| n <= 1 << 63) => "bigint",
                _ => "numeric",
            };
            Some(format!("'-{digits}'::{name}"))
        }
        None => {
            let nothing = no_columns();
            let catalog = cx.catalog()?;
            let text = cx.text;
            let calls = with_planner(cx, &catalog, |plan| {
                bind::kept_calls(expr, text, &nothing, plan, "DEFAULT")
            })?;
            let expr = &by_number(expr, &calls);
            let lookup = cx.lookup(&catalog);
            let spelling = TypeSpelling::numbered(lookup.types());
            let text = deparse::normal(&explicit(expr, &nothing, lookup), spelling);
            let text = numbered(&text, cx)?;
            let reads =
                parse::parse_expr(&text).and_then(|e| bound(cx, &catalog, &nothing, &e, "DEFAULT"));
            Some(match reads {
                Ok(_) => text,
                Err(_) => {
                    let spelling = TypeSpelling::named(cx.lookup(&catalog).types());
                    numbered(&format!("({})", deparse::plain(expr, spelling)), cx)?
                }
            })
        }
    })
}

/// As [`default_text`], of a column. Of one that is declared as a domain, DEFAULT NULL is kept: it stands before the
/// domain's own.
pub(super) fn column_default_text(
    expr: &ast::Expr,
    ty: SqlType,
    is_domain: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<String>> {
    match default_text(expr, ty, cx)? {
        None if is_domain => {
            let ty = SqlType::of(ty.oid);
            let catalog = cx.catalog()?;
            let spelling = TypeSpelling::numbered(cx.lookup(&catalog).types());
            Ok(Some(format!("NULL::{}", spelling.format_type(ty))))
        }
        text => Ok(text),
    }
}

/// A relation without columns: what a DEFAULT sees.
fn no_columns() -> Relation {
    Relation {
        oid: RelationId::new(0),
        name: String::new(),
        schema: SchemaId::new(0),
        schema_name: String::new(),
        kind: RelationKind::Table,
        columns: Vec::new(),
        indexes: Vec::new(),
        constraints: Vec::new(),
        storage: logstead_types::TableId(0),
        schema_version: 0,
        security: logstead_sql_catalog::RowSecurity::default(),
        distribution: Default::default(),
        shared_names: Default::default(),
    }
}

/// The text under which a CHECK condition is stored: with its types, if it reads back so.
pub(super) fn check_text(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    expr: &ast::Expr,
) -> String {
    let text = stored_text(cx, catalog, relation, expr, "CHECK");
    constants_numbered(&text, cx.lookup(catalog)).unwrap_or(text)
}

/// The text under which an expression over a table's row is stored: with its types, if it reads back so.
pub(super) fn stored_text(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    expr: &ast::Expr,
    what: &str,
) -> String {
    let calls = with_planner(cx, catalog, |plan| {
        bind::kept_calls(expr, cx.text, relation, plan, what)
    });
    let calls = calls.unwrap_or_default();
    let expr = &by_number(expr, &calls);
    let lookup = cx.lookup(catalog);
    let spelling = TypeSpelling::numbered(lookup.types());
    let text = deparse::normal(&explicit(expr, relation, lookup), spelling);
    let reads = parse::parse_expr(&text).and_then(|e| bound(cx, catalog, relation, &e, what));
    if reads.is_ok() {
        text
    } else {
        format!(
            "({})",
            deparse::plain(expr, TypeSpelling::named(lookup.types()))
        )
    }
}

/// The expression with the users' functions that it calls by number instead of name.
fn by_number(expr: &ast::Expr, calls: &[(Location, FunctionId, String)]) -> ast::Expr {
    struct SourceNumbering<'c>(&'c [(Location, FunctionId, String)]);
    impl VisitorMut for SourceNumbering<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
            if let ast::Expr::FuncCall(call) = expr {
                let location = call.location;
                let here = |at: &Location| at.byte() == location.byte();
                if let Some((_, routine, name)) = self.0.iter().find(|(at, ..)| here(at)) {
                    call.funcname = FuncName::Stored {
                        oid: routine.get(),
                        called: name.as_str().into(),
                    };
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = expr.clone();
    let _ = expr.visit(&mut SourceNumbering(calls));
    expr
}

/// 0A000 for an expression that is to be computed over rows that are there already, which a table's definition cannot
/// wait for.
pub(super) fn refuse_calls(expr: &Expr) -> Result<()> {
    match walk::needs_more_than_row(expr) {
        true => Err(SqlError::unsupported(
            "a function that is more than an expression, over the rows that a table already has",
        )),
        false => Ok(()),
    }
}

/// The text with sequences by number instead of name, so that renaming them changes nothing; see
/// `calls::default_shown`.
fn numbered(text: &str, cx: &mut DdlContext<'_>) -> Result<String> {
    const CALL: &str = "nextval('";
    let catalog = cx.catalog()?;
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(CALL) {
        let (before, after) = rest.split_at(at + CALL.len());
        out.push_str(before);
        let Some(end) = after.find('\'') else {
            rest = after;
            break;
        };
        let (name, tail) = after.split_at(end);
        let oid = calls::relation_by_text(name, cx.lookup(&catalog))?.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
            )
        })?;
        out.push_str(&oid.to_string());
        rest = tail;
        if !rest.starts_with("'::regclass") {
            // A bare or text literal: as a regclass constant, which it becomes anyway.
            let literal = rest
                .strip_prefix("'::text")
                .or_else(|| rest.strip_prefix('\''))
                .unwrap_or(rest);
            out.push_str("'::regclass");
            rest = literal;
        }
    }
    out.push_str(rest);
    constants_numbered(&out, cx.lookup(&catalog))
}

/// The text with the relations that constants of type regclass name by number.
fn constants_numbered(text: &str, lookup: NameLookup<'_>) -> Result<String> {
    if !text.contains(logstead_sql_catalog::dependents_index::REGCLASS_END) {
        return Ok(text.to_owned());
    }
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(quote) = bytes.get(at).copied() {
        let start = at + 1;
        if quote != b'\'' && quote != b'"' {
            at = start;
            continue;
        }
        // A backslash escapes in E'' alone; a doubled quote does in all of them.
        let escapes = at > 0 && matches!(bytes.get(at - 1), Some(b'E' | b'e'));
        let mut end = start;
        while let Some(byte) = bytes.get(end).copied() {
            let doubled = byte == quote && bytes.get(end + 1) == Some(&quote);
            if doubled || (escapes && byte == b'\\') {
                end += 2;
            } else if byte == quote {
                break;
            } else {
                end += 1;
            }
        }
        at = end + 1;
        let constant = quote == b'\'' && !escapes;
        let (Some(name), Some(tail)) = (text.get(start..end), text.get(end..)) else {
            continue;
        };
        if !constant || !tail.starts_with(logstead_sql_catalog::dependents_index::REGCLASS_END) {
            continue;
        }
        let found = calls::relation_by_text(&name.replace("''", "'"), lookup)?;
        if let Some(relation) = found {
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str(&relation.to_string());
            copied = end;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

enum Literal {
    Null,
    String(String),
    Negative(String),
}

fn literal(expr: &ast::Expr) -> Option<Literal> {
    match expr {
        ast::Expr::Const(node) => match &node.value {
            Value::Null => Some(Literal::Null),
            Value::String(text) => Some(Literal::String(text.to_string())),
            number => {
                let digits = number.digits()?;
                let digits = digits.strip_prefix('-')?;
                Some(Literal::Negative(digits.to_owned()))
            }
        },
        _ => None,
    }
}

/// A constant of a type as PostgreSQL prints it in an expression.
fn constant_text(
    value: &Datum,
    ty: SqlType,
    style: &OutputStyle<'_>,
    spelling: TypeSpelling<'_>,
) -> Result<String> {
    // A relation is kept by number: renaming it changes nothing, and who evaluates the text need not look it up.
    if let (oid::REGCLASS, Datum::Oid(relation)) = (ty.oid, value) {
        return Ok(format!(
            "'{relation}{}",
            logstead_sql_catalog::dependents_index::REGCLASS_END
        ));
    }
    let text = text_io::to_text(value, ty, style)?;
    let number = text.starts_with(|c: char| c.is_ascii_digit());
    Ok(match ty.oid {
        oid::BOOL => (if text == "t" { "true" } else { "false" }).to_owned(),
        oid::INT4 if number => text,
        oid::NUMERIC if number && text.contains(['.', 'e', 'E']) => text,
        _ => format!("{}::{}", quote_literal(&text), spelling.format_type(ty)),
    })
}

/// The default of a column of `relation`, coerced to its type.
pub(super) fn bound_default(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    position: usize,
) -> Result<Bound<Expr>> {
    let bound = with_planner(cx, catalog, |plan| {
        bind::default_expr(relation, position, plan)
    });
    bound.map_err(|mut error| {
        let fields = error.fields_mut();
        fields.message =
            fields
                .message
                .replacen("but expression is of", "but default expression is of", 1);
        error
    })
}

/// A CHECK condition over the full row of `relation`.
pub(super) fn bound_check(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    expr: &ast::Expr,
) -> Result<Bound<Expr>> {
    written(cx, catalog, relation, expr, "CHECK")
}

/// An expression of the statement itself: errors point into its text.
pub(super) fn written(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    expr: &ast::Expr,
    what: &str,
) -> Result<Bound<Expr>> {
    with_planner(cx, catalog, |plan| {
        bind::bind_scalar(expr, cx.text, relation, plan, what)
    })
}

/// An expression from stored text, over the full row of `relation`: its places mean nothing to the client.
pub(super) fn bound(
    cx: &DdlContext<'_>,
    catalog: &Arc<Catalog>,
    relation: &Relation,
    expr: &ast::Expr,
    what: &str,
) -> Result<Bound<Expr>> {
    let bound = with_planner(cx, catalog, |plan| {
        bind::bind_scalar(expr, "", relation, plan, what)
    });
    bound.map_err(|mut error| {
        error.fields_mut().position = None;
        error
    })
}

/// Evaluates an expression over a row.
pub(super) fn eval(cx: &DdlContext<'_>, expr: &Expr, row: &[Datum]) -> Result<Datum> {
    exec::eval(
        expr,
        row,
        &EvalContext {
            params: &[],
            session: cx.session,
        },
    )
}
