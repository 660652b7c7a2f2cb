//! Types that a procedure's declarations name, and how a value of one type becomes one of another.

use super::Binder;
use crate::PlanContext;
use crate::permissions::Bound;
use crate::query::expr::Expr;
use logstead_sql_catalog::type_name::sql_type;
use logstead_sql_func::CastContext;
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{self, RangeVar};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, user};
use logstead_types::SqlState;

/// What is put in front of a type's name to have it read.
const LEAD: &str = "SELECT NULL::";

/// The type that a name means: any type of SQL, or a table's row. It may be a domain.
pub fn declared_type(text: &str, cx: &PlanContext<'_>) -> Result<SqlType> {
    let back = |mut error: SqlError| {
        let fields = error.fields_mut();
        fields.position = fields
            .position
            .map(|position| position.saturating_sub(LEAD.len()).max(1));
        error
    };
    let whole = format!("{LEAD}{text}");
    let parsed = parse::parse(&whole).map_err(back)?;
    let named = match parsed.first().map(|one| &**one.statement) {
        Some(ast::Stmt::Select(query)) => { query.core() }
            .and_then(|core| core.target_list.first())
            .filter(|target| target.name.is_none()),
        _ => None,
    };
    let Some(ast::Expr::TypeCast(cast)) = named.and_then(|target| target.val.as_ref()) else {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("invalid type name \"{text}\""),
        ));
    };
    match sql_type(&cast.type_name, cx.lookup()) {
        Ok(ty) => Ok(ty),
        Err(error) => {
            let mut binder = Binder::new(cx, &whole);
            let row = binder.row_type_named(&cast.type_name);
            row.ok_or_else(|| error.at(Some(1)))
        }
    }
}

/// The type of a table's column: its domain, if it has one.
pub fn column_type(parts: &[String], cx: &PlanContext<'_>) -> Result<SqlType> {
    let Some((column, table)) = parts.split_last().filter(|(_, table)| !table.is_empty()) else {
        let name = parts.join(".");
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("%TYPE reference \"{name}\" names neither a variable nor a column"),
        ));
    };
    let relation = Binder::new(cx, "").relation(&RangeVar::of(table)?)?;
    let found = relation
        .columns
        .iter()
        .find(|c| c.name == *column && !c.dropped);
    let found = found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                relation.name
            ),
        )
    })?;
    Ok(match found.domain {
        Some(domain) => SqlType::of(domain),
        None => found.ty,
    })
}

/// The type of a table's rows.
pub fn row_type(parts: &[String], cx: &PlanContext<'_>) -> Result<SqlType> {
    let mut binder = Binder::new(cx, "");
    let name = RangeVar::of(parts)?;
    let relation = binder.relation(&name);
    match (binder.row_type(&name), relation) {
        (Some(ty), _) => Ok(ty),
        (None, Err(error)) => {
            // A composite type has rows, too.
            let named = declared_type(&parts.join("."), cx);
            named
                .ok()
                .filter(|ty| user::is_composite(ty.oid))
                .ok_or(error)
        }
        (None, Ok(relation)) => Err(SqlError::unsupported(format!(
            "the row type of \"{}\"",
            relation.name
        ))),
    }
}

/// What makes a value of one type one of another, as an assignment in a procedure does: a cast if there is one, else
/// through text. Over a row of the value alone. It may ask a domain whether it takes the value.
pub fn assignment_cast(from: SqlType, to: SqlType, cx: &PlanContext<'_>) -> Result<Bound<Expr>> {
    let mut binder = Binder::new(cx, "");
    let value = Expr::Column(0, from);
    if let Some(cast) = binder.try_coerce(value.clone(), to, CastContext::Assignment, None)? {
        return Ok(binder.into_bound_expression(cast));
    }
    let base = cx.catalog.types.base_type(SqlType::of(to.oid));
    let read = Expr::CastViaText(Box::new(value), base);
    let cast = binder.try_coerce(read, to, CastContext::Assignment, None)?;
    let cast = cast.ok_or_else(|| {
        SqlError::internal("a value of a domain's base type is none of the domain")
    })?;
    Ok(binder.into_bound_expression(cast))
}
