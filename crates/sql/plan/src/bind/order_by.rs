//! ORDER BY and DISTINCT: by which values rows are ordered or held for equal.
//!
//! Owns: the meaning of a sort item (a column of the result by name or position, or an expression), its direction,
//! and which types can be ordered or grouped at all. Does not: decide how rows are sorted; the planner does.

use super::aggregate::alike;
use super::{Binder, Clause};
use crate::SortKey;
use crate::query::expr::Expr;
use crate::query::{Distinct, Output};
use logstead_sql_parse::ast::{self, Expr as Ast, Value};
use logstead_sql_parse::sort_direction;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::geometry::is_geometry;
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

impl Binder<'_> {
    pub(super) fn order_by(
        &mut self,
        items: &[ast::SortBy],
        outputs: &[Output],
    ) -> Result<Vec<SortKey>> {
        let mut keys: Vec<SortKey> = Vec::with_capacity(items.len());
        for item in items {
            let (desc, nulls_first) = sort_direction(&item.dir, item.nulls)?;
            let expr = self.sort_expr(&item.node, outputs, "ORDER BY")?;
            sortable(expr.ty(), self.at(item.node.location()), self.types())?;
            // A key that is there already orders nothing more.
            if !keys.iter().any(|k| alike(&k.expr, &expr)) {
                keys.push(SortKey {
                    expr,
                    desc,
                    nulls_first,
                });
            }
        }
        Ok(keys)
    }

    /// An item of ORDER BY or DISTINCT ON: an output by position or name, else an expression over the FROM row.
    fn sort_expr(&mut self, item: &Ast, outputs: &[Output], clause: &str) -> Result<Expr> {
        if let Some(output) = self.output_by_position(item, outputs, clause)? {
            return Ok(Expr::Column(output.id, output.column.ty));
        }
        if let Some(name) = item.bare_name() {
            let mut hits = outputs.iter().filter(|o| *o.column.name == **name);
            if let Some(first) = hits.next() {
                if hits.any(|other| !alike(&other.expr, &first.expr)) {
                    return Err(SqlError::new(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("{clause} \"{name}\" is ambiguous"),
                    )
                    .at(self.at(item.location())));
                }
                return Ok(Expr::Column(first.id, first.column.ty));
            }
        }
        let expr = self.expr(item)?;
        let expr = self.settle(expr)?;
        if let Some(output) = outputs.iter().find(|o| alike(&o.expr, &expr)) {
            return Ok(Expr::Column(output.id, output.column.ty));
        }
        Ok(expr)
    }

    pub(super) fn output_by_position<'o>(
        &self,
        item: &Ast,
        outputs: &'o [Output],
        clause: &str,
    ) -> Result<Option<&'o Output>> {
        let Ast::Const(node) = item else {
            return Ok(None);
        };
        let at = self.at(node.location);
        match &node.value {
            Value::Integer(position) => {
                let position = *position;
                let index = usize::try_from(position)
                    .ok()
                    .and_then(|p| p.checked_sub(1));
                let output = index.and_then(|i| outputs.get(i));
                output.map(Some).ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position {position} is not in select list"),
                    )
                    .at(at)
                })
            }
            Value::Float(_) | Value::String(_) => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("non-integer constant in {clause}"),
            )
            .at(at)),
            _ => Ok(None),
        }
    }

    pub(super) fn distinct(
        &mut self,
        distinct: &ast::Distinct,
        order: &mut Vec<SortKey>,
        outputs: &[Output],
    ) -> Result<Distinct> {
        match distinct {
            ast::Distinct::No => Ok(Distinct::No),
            ast::Distinct::All => {
                for output in outputs {
                    groupable(output.column.ty, None, self.types())?;
                }
                let foreign = order.iter().any(|key| match &key.expr {
                    Expr::Column(id, _) => !outputs.iter().any(|o| o.id == *id),
                    _ => true,
                });
                if foreign {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    ));
                }
                Ok(Distinct::All)
            }
            ast::Distinct::On(items) => {
                let mut keys: Vec<Expr> = Vec::new();
                self.in_clause(Clause::DistinctOn, |b| {
                    for item in items {
                        let expr = b.sort_expr(item, outputs, "DISTINCT ON")?;
                        if !keys.iter().any(|k| alike(k, &expr)) {
                            keys.push(expr);
                        }
                    }
                    Ok(())
                })?;
                // The keys must be the first of ORDER BY, in any order; keys that ORDER BY lacks follow it.
                let leading = order
                    .iter()
                    .take(keys.len())
                    .filter(|k| keys.iter().any(|key| alike(key, &k.expr)));
                let matched = leading.count();
                if matched < order.len().min(keys.len()) {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                    ));
                }
                for key in &keys {
                    if !order.iter().any(|k| alike(&k.expr, key)) {
                        order.push(SortKey {
                            expr: key.clone(),
                            desc: false,
                            nulls_first: false,
                        });
                    }
                }
                Ok(Distinct::On(keys))
            }
        }
    }
}

/// Types with neither equality nor order. Values of json are texts, of which several say the same.
pub(super) fn is_incomparable(ty: SqlType) -> bool {
    matches!(
        ty.oid,
        oid::JSON | oid::XML | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT | oid::VOID
    )
}

/// Numbers that come again, and so have no order.
pub(super) fn is_cyclic(ty: SqlType) -> bool {
    matches!(ty.oid, oid::XID | oid::CID)
}

/// The type that keeps a type from being compared: itself, or that of a field within.
pub(crate) fn unordered(ty: SqlType, types: &UserTypes) -> Option<SqlType> {
    let element = types.element_type(ty).unwrap_or(ty.plain());
    if is_incomparable(element) || is_geometry(element.oid) {
        return Some(ty);
    }
    let shape = types.tuple_desc_of(element);
    shape
        .iter()
        .flat_map(|shape| shape.iter())
        .find_map(|(_, field)| unordered(*field, types))
}

/// 42883 for types without an equality.
pub(super) fn groupable(ty: SqlType, at: Option<usize>, types: TypeLookup<'_>) -> Result<()> {
    if unordered(ty, types.types).is_some() && ty.oid != oid::VOID {
        return Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!(
                "could not identify an equality operator for type {}",
                types.format_type(ty)
            ),
        )
        .at(at));
    }
    match ty.oid {
        oid::VOID => sortable(ty, at, types),
        _ => Ok(()),
    }
}

/// 42883 for types without an order.
pub(super) fn sortable(ty: SqlType, at: Option<usize>, types: TypeLookup<'_>) -> Result<()> {
    if unordered(ty, types.types).is_some() || is_cyclic(ty) {
        return Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!(
                "could not identify an ordering operator for type {}",
                types.format_type(ty)
            ),
        )
        .hint("Use an explicit ordering operator or modify the query.")
        .at(at));
    }
    Ok(())
}
