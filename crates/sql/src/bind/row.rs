//! Rows as values: `ROW(a, b)`, and the name of a FROM item that stands for its row.

use super::names::schema_and_name;
use super::scope::{NsColumn, NsWhat};
use super::{Binder, Source};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::value::{Datum, SqlType, oid, record};
use sqlparser::ast;
use std::sync::Arc;

impl Binder<'_> {
    /// `ROW(...)`: a record with fields f1, f2 ...
    pub(crate) fn row(&mut self, fields: Vec<Expr>) -> Result<Expr> {
        let mut settled = Vec::with_capacity(fields.len());
        let mut shape: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(fields.len());
        for (field, number) in fields.into_iter().zip(1..) {
            let field = self.settle(field)?;
            shape.push((format!("f{number}").into(), field.ty()));
            settled.push(field);
        }
        Ok(Expr::Array(settled, record::record_type(&shape)?))
    }

    /// The type of a table's rows, if a table has that name.
    pub(crate) fn row_type(&mut self, name: &ast::ObjectName) -> Option<Result<SqlType>> {
        let relation = self.relation(name).ok()?;
        let live = relation.columns.iter().filter(|c| !c.dropped);
        if live.clone().any(|c| c.domain.is_some()) {
            return Some(Err(SqlError::unsupported(
                "the type of a table's rows with columns of domains",
            )));
        }
        let shape: Vec<(Arc<str>, SqlType)> =
            live.map(|c| (c.name.as_str().into(), c.ty)).collect();
        Some(record::record_type(&shape))
    }

    /// A value as a row of a table: NULL, or a record with fields of the same types.
    pub(crate) fn cast_to_row(
        &mut self,
        operand: &ast::Expr,
        row: SqlType,
        at: Option<usize>,
    ) -> Result<Expr> {
        let value = self.expr(operand)?;
        if matches!(value, Expr::Const(Datum::Null, _)) {
            return Ok(Expr::Const(Datum::Null, row));
        }
        let types = |ty| {
            record::shape_of(ty).map(|shape| shape.iter().map(|f| f.1.oid).collect::<Vec<_>>())
        };
        match (types(value.ty()), types(row)) {
            (Some(from), Some(to)) if from == to => Ok(Expr::Relabel(Box::new(value), row)),
            _ => Err(SqlError::unsupported("this cast to the type of a table's rows").at(at)),
        }
    }

    /// `item.*` as one value.
    pub(crate) fn whole_row_of(&mut self, name: &ast::ObjectName) -> Result<Expr> {
        let at = self.at(super::names::name_span(name));
        let (schema, rel) = schema_and_name(name, &self.cx.catalog.database_name)?;
        match self
            .find_item(schema.as_deref(), &rel)
            .map_err(|e| e.at(at))?
        {
            Some(found) => self.whole_row(found, at),
            None => Err(self.missing_item(schema.as_deref(), &rel).at(at)),
        }
    }

    /// The row of a FROM item as a record. It is NULL where an outer join found none: where a table's row has no number, and of
    /// anything else where all columns are NULL.
    pub(crate) fn whole_row(
        &mut self,
        (level, index): (usize, usize),
        at: Option<usize>,
    ) -> Result<Expr> {
        let item = &self.frames[level].ns[index];
        let (nullable, scalar, table) = (item.nullable, item.scalar, item.table);
        let live = |c: &&NsColumn| !matches!(c.what, NsWhat::Gone { .. });
        let columns: Vec<NsColumn> = item.columns.iter().filter(live).cloned().collect();
        let number = columns.first().filter(|_| nullable && table != 0);
        let number = number.and_then(|column| self.row_number(&column.what));
        let mut fields = Vec::with_capacity(columns.len());
        let mut shape: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(columns.len());
        for column in columns {
            let field = self.found(level, column.what, at)?;
            shape.push((column.name, field.ty()));
            fields.push(field);
        }
        if scalar && fields.len() == 1 {
            return Ok(fields.remove(0));
        }
        let ty = record::record_type(&shape)?;
        if !nullable {
            return Ok(Expr::Array(fields, ty));
        }
        let mut nulls: Vec<Expr> = fields
            .iter()
            .map(|field| Expr::IsNull(Box::new(field.clone()), false))
            .collect();
        let absent = match (number, nulls.len()) {
            (Some(number), _) => Expr::IsNull(Box::new(number), false),
            (None, 0) => Expr::Const(Datum::Bool(false), SqlType::of(oid::BOOL)),
            (None, 1) => nulls.remove(0),
            (None, _) => Expr::And(nulls),
        };
        Ok(Expr::Case {
            arms: vec![(absent, Expr::Const(Datum::Null, ty))],
            otherwise: Some(Box::new(Expr::Array(fields, ty))),
            ty,
        })
    }

    /// The number of the row that a table's column is of, as the table's scan gives it.
    fn row_number(&mut self, what: &NsWhat) -> Option<Expr> {
        let NsWhat::Column(id) = what else {
            return None;
        };
        let rel = self.info(*id).rel;
        if !matches!(self.rels.get(rel)?.source, Source::Table(_)) {
            return None;
        }
        self.give_row_id(rel);
        let id = self.rels.get(rel)?.row_id?;
        Some(Expr::Column(id, SqlType::of(oid::INT8)))
    }
}
