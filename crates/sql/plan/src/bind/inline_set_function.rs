//! Rows of functions of LANGUAGE sql that are one query: in FROM, and in a select list.

use super::from_function::{RangeFunctionClauses, defined_type};
use super::inline_function::Shape;
use super::routine::RoutineCall;
use super::sublink::SubLinkContext;
use super::{Binder, Frame};
use crate::OutputColumn;
use crate::query::QueryTree;
use crate::query::expr::{Expr, SubqueryKind};
use crate::query::{From, FromList, Select};
use logstead_sql_catalog::ColumnOrigin;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::Alias;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, info, oid, record, user};
use logstead_types::SqlState;
use std::sync::Arc;

impl Binder<'_> {
    /// The rows of a call in FROM.
    pub(super) fn inlined_item(
        &mut self,
        call: RoutineCall,
        called_as: &RangeFunctionClauses<'_>,
        at: Option<usize>,
    ) -> Result<FromList> {
        let mut shape = self.shape(&call).map_err(|e| e.at(at))?;
        let unknown = matches!(shape, Shape::Unknown);
        let own;
        let mut alias = called_as.alias;
        match (unknown, called_as.coldeflist) {
            (true, columns @ [_, ..]) => {
                let mut fields: Vec<(Arc<str>, SqlType)> = Vec::new();
                for column in columns {
                    fields.push((
                        (&*column.colname).into(),
                        defined_type(column, self.lookup())?,
                    ));
                }
                let ty = record::record_type(&fields)?;
                shape = Shape::Row(fields, ty);
                own = alias.map(|alias| Alias::of(alias.name.clone()));
                alias = own.as_ref();
            }
            (true, []) => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "a column definition list is required for functions returning \"record\"",
                )
                .at(at));
            }
            (false, [_, ..]) => {
                let message = match &shape {
                    Shape::Row(..) if call.routine.outputs().next().is_some() => {
                        "a column definition list is redundant for a function with OUT parameters"
                    }
                    Shape::Row(..) => {
                        "a column definition list is redundant for a function returning a named composite type"
                    }
                    _ => {
                        "a column definition list is only allowed for functions returning \"record\""
                    }
                };
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            (false, []) => {}
        }
        if call.result.oid == oid::TRIGGER {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "function \"{}\" in FROM has unsupported return type trigger",
                    call.called
                ),
            )
            .at(at));
        }
        let own_name = { call.routine.outputs() }.find(|arg| !arg.name.is_empty());
        let single: Arc<str> = match (own_name, alias) {
            (Some(arg), _) => arg.name.as_str().into(),
            (None, Some(alias)) => (&*alias.name).into(),
            (None, None) => call.called.as_str().into(),
        };
        let name = call.called.clone();
        if self.is_run(&call.routine).map_err(|e| e.at(at))? {
            let columns = match &shape {
                Shape::Row(columns, _) => columns.clone(),
                Shape::Scalar(ty) => vec![(single, *ty)],
                Shape::Void | Shape::Unknown => vec![(single, call.result)],
            };
            let columns = { columns.into_iter() }
                .map(|(name, ty)| (name, self.user_types().base_type(ty), None));
            return self.called_item(call, &shape, columns.collect(), alias);
        }
        let barrier = self.hides(&call);
        let result = call.result.oid;
        let bound = self.with_own(|b| b.rows_of_call(call, &shape));
        let (body, own) = bound.map_err(|e| e.at(at))?;
        let types = body.types();
        let columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)> = match &shape {
            Shape::Row(columns, _) => { columns.iter().zip(types) }
                .map(|((name, _), ty)| (Arc::clone(name), ty, None))
                .collect(),
            _ => types
                .into_iter()
                .map(|ty| (Arc::clone(&single), ty, None))
                .collect(),
        };
        let source = self.subquery_source(body, own, barrier, false)?;
        let scalar = !matches!(shape, Shape::Row(..));
        let rel = self.add_item(source, columns, &name, alias)?;
        if let Some(item) = self.frame()?.ns.last_mut() {
            item.scalar = scalar;
            item.composite = user::is_composite(result).then_some(result);
        }
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }

    /// Is a body evaluated with the rights of somebody else?
    fn hides(&self, call: &RoutineCall) -> bool {
        call.routine.definer || self.definer.is_some()
    }

    /// The rows of a call, as a query of columns.
    fn rows_of_call(&mut self, call: RoutineCall, shape: &Shape) -> Result<QueryTree> {
        if !call.routine.set {
            // One row, whatever the body gives.
            let row_columns = match shape {
                Shape::Row(columns, _) => Some(columns),
                _ => None,
            };
            let value = match shape {
                // What the list of columns says is what is wanted.
                Shape::Row(..) if call.result.oid == oid::RECORD => self.value_as(call, shape)?,
                _ => self.inlined_value(call, None)?,
            };
            let mut select = Select::default();
            if let Some(columns) = row_columns {
                let (rel, first) = self.row_of(vec![value.clone()])?;
                select.from.items.push(From::Rel(rel));
                let row = Expr::Column(first, value.ty());
                for (field, (_, ty)) in super::expr::fields_of(&row, self.user_types())
                    .into_iter()
                    .zip(columns)
                {
                    let field = match field.ty().oid == ty.oid {
                        true => self.with_typmod(field, *ty, CastContext::Assignment)?,
                        false => field,
                    };
                    let output = self.made_output("", field);
                    select.outputs.push(output);
                }
            } else {
                let output = self.made_output("", value);
                select.outputs.push(output);
            }
            return Ok(QueryTree::Select(Box::new(select)));
        }
        let strict = call.routine.strict;
        let barrier = self.hides(&call);
        let (placed, beforehand) = self.placed(&call.args)?;
        let mut items: Vec<From> = Vec::new();
        items.extend(beforehand.map(|row| From::Rel(row.rel)));
        let bound = self.with_own(|b| b.body(&call, shape, placed.clone()));
        let ((mut body, whole), own) = bound?;
        if matches!(shape, Shape::Void) {
            return Err(SqlError::unsupported("SETOF void"));
        }
        if whole {
            // The row's fields are the columns.
            body = self.settle_body(body)?;
            let ty = body.types().first().copied();
            let ty = ty.unwrap_or(SqlType::of(oid::RECORD));
            let fields = super::expr::fields_of(&Expr::Column(0, ty), self.user_types());
            let columns = { fields.iter() }.map(|field| OutputColumn {
                name: String::new(),
                ty: field.ty(),
                domain: None,
                origin: None,
            });
            let columns = columns.collect();
            body = QueryTree::Project(Box::new(body), fields, columns);
        }
        if barrier && !matches!(body, QueryTree::Project(..)) {
            // Its rows are made with the owner's rights: no condition of the caller is asked of others, not even of
            // those that tell nobody, as these would be asked of what the rows are made of.
            body = self.settle_body(body)?;
            let columns = self.range.body_columns(&body);
            let same = { columns.iter().enumerate() }.map(|(at, c)| Expr::Column(at, c.ty));
            body = QueryTree::Project(Box::new(body), same.collect(), columns);
        }
        let test = if strict {
            Self::any_null(&placed)
        } else {
            None
        };
        if items.is_empty() && test.is_none() {
            return Ok(body);
        }
        let columns = self.range.body_columns(&body);
        let columns = { columns.into_iter() }.map(|c| (c.name.as_str().into(), c.ty, None));
        let columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)> = columns.collect();
        let source = self.subquery_source(body, own, barrier, false)?;
        self.frames.push(Frame::new());
        let rel = self.add_item(source, columns, "", None);
        self.frames.pop();
        let rel = rel?;
        items.push(From::Rel(rel));
        let mut select = Select {
            from: FromList {
                items,
                conditions: test
                    .into_iter()
                    .map(|test| Expr::Not(Box::new(test)))
                    .collect(),
            },
            ..Select::default()
        };
        let (first, width) = (self.range.rels[rel].first, self.range.rels[rel].width);
        for id in first..first + width {
            let column = self.use_column(id);
            let output = self.made_output("", column);
            select.outputs.push(output);
        }
        Ok(QueryTree::Select(Box::new(select)))
    }

    /// The value of a call that gives a record of no known fields, as one of those.
    fn value_as(&mut self, call: RoutineCall, shape: &Shape) -> Result<Expr> {
        let Shape::Row(columns, _) = shape else {
            return self.inlined_value(call, None);
        };
        if call.routine.outputs().next().is_some() {
            return self.inlined_value(call, None);
        }
        let value = self.inlined_value(call, None)?;
        let known = self.user_types().tuple_desc_of(value.ty());
        let types = |shape: &[(Arc<str>, SqlType)]| -> Vec<TypeId> {
            shape.iter().map(|(_, ty)| ty.oid).collect()
        };
        match known {
            // The names are those of the list; its modifiers are put on the fields.
            Some(known) if types(&known) == types(columns) => {
                let named = columns.iter().zip(known.iter());
                let named: Vec<(Arc<str>, SqlType)> = named
                    .map(|((name, _), (_, ty))| (Arc::clone(name), *ty))
                    .collect();
                let ty = record::record_type(&named)?;
                Ok(Expr::Relabel(Box::new(value), ty))
            }
            _ => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "function return row and query-specified return row do not match",
            )),
        }
    }

    /// The rows of a call in a select list: they are collected, and given one by one.
    pub(crate) fn inlined_rows_as_set(
        &mut self,
        call: RoutineCall,
        at: Option<usize>,
    ) -> Result<Expr> {
        let shape = self.shape(&call).map_err(|e| e.at(at))?;
        let element = match &shape {
            Shape::Scalar(ty) => self.user_types().base_type(*ty),
            Shape::Row(_, ty) => *ty,
            Shape::Void | Shape::Unknown => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "set-valued function called in context that cannot accept a set",
                )
                .at(at));
            }
        };
        let Some(array) = info::array_of(element.oid).filter(|_| element.oid != oid::RECORD) else {
            return Err(SqlError::unsupported(format!(
                "calling function {}, which gives a set of {}, in a select list",
                call.routine.name,
                self.types().format_type_bare(element.oid)
            ))
            .hint("Call it in FROM.")
            .at(at));
        };
        if self.user_types().element_of(element.oid).is_some() {
            return Err(SqlError::unsupported(format!(
                "calling function {}, which gives a set of arrays, in a select list",
                call.routine.name
            ))
            .hint("Call it in FROM.")
            .at(at));
        }
        if self.is_run(&call.routine).map_err(|e| e.at(at))? {
            let types = (element, SqlType::of(array));
            let collected = self.called_rows(call, &shape, types)?;
            return self.resolved_call(Some("pg_catalog"), "unnest", vec![collected], at);
        }
        let start = self.query_start();
        let frames = std::mem::take(&mut self.frames);
        let rows = self.within_query(|b| b.rows_of_call(call, &shape));
        self.frames = frames;
        let mut body = rows
            .and_then(|body| self.settle_body(body))
            .map_err(|e| e.at(at))?;
        if let Shape::Row(_, ty) = &shape {
            let columns = self.range.body_columns(&body);
            let exprs = { columns.iter().enumerate() }.map(|(at, c)| Expr::Column(at, c.ty));
            let value = Expr::Array(exprs.collect(), *ty);
            let column = OutputColumn {
                name: String::new(),
                ty: *ty,
                domain: None,
                origin: None,
            };
            body = QueryTree::Project(Box::new(body), vec![value], vec![column]);
        }
        let of = SubLinkContext {
            each_row_if_volatile: true,
            ..SubLinkContext::plain(SubqueryKind::Array(element.oid), SqlType::of(array))
        };
        let collected = self.sublink(start, body, of)?;
        self.resolved_call(Some("pg_catalog"), "unnest", vec![collected], at)
    }
}
