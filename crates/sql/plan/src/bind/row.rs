//! Rows as values: `ROW(a, b)`, and the name of a FROM item that stands for its row.

use super::scope::{NsColumn, NsColumnSource};
use super::{Binder, RelSource};
use crate::query::expr::Expr;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{ColumnRef, Expr as Ast, Name, RangeVar, TypeName, TypeRef};
use logstead_sql_parse::schema_and_name;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid, record};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::Arc;

impl Binder<'_> {
    /// `ROW(...)`: a record with fields f1, f2 ...
    pub(crate) fn row(&mut self, fields: Vec<Expr>) -> Result<Expr> {
        let mut settled = Vec::with_capacity(fields.len());
        let mut shape: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(fields.len());
        for (field, number) in fields.into_iter().zip(1..) {
            // A literal waits for the type that the row may yet be cast to; its value is the text that it is otherwise.
            let field = match field {
                Expr::Const(..) => field,
                field => self.settle(field)?,
            };
            let ty = match field.ty() {
                ty if ty.oid == oid::UNKNOWN => SqlType::of(oid::TEXT),
                ty => ty,
            };
            shape.push((format!("f{number}").into(), ty));
            settled.push(field);
        }
        Ok(Expr::Array(settled, record::record_type(&shape)?))
    }

    /// The type of a table's rows, if a table has the name of a type, which is nothing but a name.
    pub(crate) fn row_type_named(&mut self, name: &TypeName) -> Option<SqlType> {
        match &name.name {
            TypeRef::Named(names) if name.typmods.is_empty() && name.array_bounds.is_empty() => {
                self.row_type(&RangeVar::of(names).ok()?)
            }
            _ => None,
        }
    }

    /// The same of a table's name.
    pub(crate) fn row_type(&mut self, name: &RangeVar) -> Option<SqlType> {
        let relation = self.relation(name).ok()?;
        self.cx.catalog.types.row_type(relation.oid)
    }

    /// A record as one of another type; `None` if there is no way. Whatever is a record is one of no name in
    /// particular; the fields of one that is written out are brought to those of a composite type.
    pub(crate) fn coerce_record(
        &mut self,
        value: Expr,
        target: SqlType,
        context: CastContext,
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        let from = value.ty();
        let shape = self.user_types().tuple_desc_of(from);
        if target.oid == oid::RECORD {
            // Its fields stay known.
            let ty = match shape {
                Some(shape) => record::record_type(&shape)?,
                None => target,
            };
            return Ok(Some(Expr::Relabel(Box::new(value), ty)));
        }
        if from.oid != oid::RECORD {
            return Ok(None);
        }
        if matches!(value, Expr::Const(Datum::Null, _)) {
            return Ok(Some(Expr::Const(Datum::Null, target)));
        }
        self.types()
            .refuse_unchecked_domains(target)
            .map_err(|e| e.at(at))?;
        let target = SqlType::of(target.oid);
        let refused = |types: TypeLookup<'_>, detail: &str| {
            SqlError::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type record to {}", types.format_type(target)),
            )
            .detail(detail)
            .at(at)
        };
        let wanted = self
            .user_types()
            .tuple_desc_of(target)
            .ok_or_else(|| SqlError::internal("a composite type without fields"))?;
        let Expr::Array(fields, _) = value else {
            // What is made elsewhere must have the fields already.
            let same = shape.is_some_and(|shape| {
                let types =
                    |shape: &record::TupleDesc| shape.iter().map(|f| f.1).collect::<Vec<_>>();
                types(&shape) == types(&wanted)
            });
            return Ok(same.then(|| Expr::Relabel(Box::new(value), target)));
        };
        if fields.len() != wanted.len() {
            return Err(refused(
                self.types(),
                match fields.len() < wanted.len() {
                    true => "Input has too few columns.",
                    false => "Input has too many columns.",
                },
            ));
        }
        let mut brought = Vec::with_capacity(fields.len());
        for ((field, (_, ty)), number) in fields.into_iter().zip(wanted.iter()).zip(1..) {
            let is = field.ty();
            match self.try_coerce(field, *ty, context, at)? {
                Some(field) => brought.push(field),
                None => {
                    let types = self.types();
                    return Err(refused(
                        types,
                        &format!(
                            "Cannot cast type {} to {} in column {number}.",
                            types.format_type(SqlType::of(is.oid)),
                            types.format_type(SqlType::of(ty.oid))
                        ),
                    ));
                }
            }
        }
        Ok(Some(Expr::Array(brought, target)))
    }

    /// `item.*` among the fields of a row: its columns, one by one.
    pub(crate) fn columns_of(&mut self, item: &ColumnRef) -> Result<Vec<Expr>> {
        let at = self.at(item.location);
        let (schema, rel) = schema_and_name(&item.fields, &self.cx.catalog.database_name)?;
        let found = self
            .find_item(schema.as_deref(), &rel)
            .map_err(|e| e.at(at))?;
        let Some((level, index)) = found else {
            return Err(self.missing_item(schema.as_deref(), &rel).at(at));
        };
        let live = |c: &&NsColumn| !matches!(c.what, NsColumnSource::Gone { .. });
        let columns = self.frames[level].ns[index].columns.iter().filter(live);
        let columns: Vec<NsColumn> = columns.cloned().collect();
        let fields = columns.into_iter();
        fields
            .map(|column| self.found(level, column.what, at))
            .collect()
    }

    /// A row of VALUES with the columns that each `item.*` stands for.
    pub(crate) fn starred<'a>(&self, row: &'a [Ast]) -> Result<Cow<'a, [Ast]>> {
        if !row
            .iter()
            .any(|item| matches!(item, Ast::ColumnRef(column) if column.star))
        {
            return Ok(Cow::Borrowed(row));
        }
        let mut items = Vec::with_capacity(row.len());
        for item in row {
            let column = match item {
                Ast::ColumnRef(column) if column.star => column,
                item => {
                    items.push(item.clone());
                    continue;
                }
            };
            let location = column.location;
            let at = self.at(location);
            let (schema, rel) = schema_and_name(&column.fields, &self.cx.catalog.database_name)?;
            let found = self
                .find_item(schema.as_deref(), &rel)
                .map_err(|e| e.at(at))?;
            let Some((level, index)) = found else {
                return Err(self.missing_item(schema.as_deref(), &rel).at(at));
            };
            for column in &self.frames[level].ns[index].columns {
                if !matches!(column.what, NsColumnSource::Gone { .. }) {
                    let names = [schema.as_deref(), Some(&rel), Some(&column.name)];
                    items.push(Ast::ColumnRef(Box::new(ColumnRef {
                        fields: names.into_iter().flatten().map(Name::from).collect(),
                        star: false,
                        location,
                    })));
                }
            }
        }
        Ok(Cow::Owned(items))
    }

    /// `item.*` as one value.
    pub(crate) fn whole_row_of(&mut self, name: &[Name], at: Option<usize>) -> Result<Expr> {
        let (schema, rel) = schema_and_name(name, &self.cx.catalog.database_name)?;
        match self
            .find_item(schema.as_deref(), &rel)
            .map_err(|e| e.at(at))?
        {
            Some(found) => self.whole_row(found, at),
            None => Err(self.missing_item(schema.as_deref(), &rel).at(at)),
        }
    }

    /// The row of a FROM item as a record. It is NULL where an outer join found none: where a table's row has no
    /// number, and of anything else where all columns are NULL.
    pub(crate) fn whole_row(
        &mut self,
        (level, index): (usize, usize),
        at: Option<usize>,
    ) -> Result<Expr> {
        let item = &self.frames[level].ns[index];
        let (nullable, scalar) = (item.nullable, item.scalar);
        let (table, row, composite) = (item.table, item.row, item.composite);
        let part = |c: &NsColumn| Some((Arc::clone(&c.name), c.part_of_row()?.clone()));
        let columns: Vec<(Arc<str>, NsColumnSource)> =
            item.columns.iter().filter_map(part).collect();
        let number = columns.first().filter(|_| nullable && table.is_some());
        let number = number.and_then(|(_, what)| self.row_number(what));
        let mut fields = Vec::with_capacity(columns.len());
        let mut shape: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(columns.len());
        for (name, what) in columns {
            let field = self.found(level, what, at)?;
            shape.push((name, field.ty()));
            fields.push(field);
        }
        if scalar && fields.len() == 1 {
            return Ok(fields.remove(0));
        }
        // Of a table's or view's own type, whatever the columns are called here.
        let own = match composite {
            None => row.and_then(|row| self.cx.catalog.types.row_type(row)),
            Some(composite) => Some(SqlType::of(composite)),
        };
        let own = own.filter(|own| {
            self.user_types().tuple_desc_of(*own).is_some_and(|row| {
                let pairs = row.iter().zip(&shape);
                row.len() == shape.len() && { pairs }.all(|(a, b)| a.1 == b.1)
            })
        });
        let ty = match own {
            Some(own) => own,
            None => record::record_type(&shape)?,
        };
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
    fn row_number(&mut self, what: &NsColumnSource) -> Option<Expr> {
        let NsColumnSource::Column(id) = what else {
            return None;
        };
        let rel = self.info(*id).rel;
        if !matches!(self.range.rels.get(rel)?.source, RelSource::Table(_)) {
            return None;
        }
        self.give_row_id(rel);
        let id = self.range.rels.get(rel)?.row_id?;
        Some(Expr::Column(id, SqlType::of(oid::INT8)))
    }
}
