//! Expressions: one arm per kind of syntax.

use super::Binder;
use super::operator::operator_name;
use super::subscript::is_array;
use crate::query::expr::Expr;
use logstead_sql_catalog::type_name;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{self, BoolTestKind, Expr as Ast, LikeKind};
use logstead_sql_parse::row_of;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::array::stacked;
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{Datum, SqlType, info, oid, record, user};
use logstead_types::SqlState;
use std::sync::Arc;

impl Binder<'_> {
    /// Binds an expression. Its type may still be unknown (a bare literal or parameter): see [`Binder::settle`].
    pub(crate) fn expr(&mut self, expr: &Ast) -> Result<Expr> {
        // The common leaves skip the depth bookkeeping.
        match expr {
            Ast::ColumnRef(column) => self.column_ref(column),
            Ast::Const(node) => self.literal(node),
            Ast::ParamRef(node) => self.parameter(*node),
            _ if self.collates => self.refuse_collations(expr, |b| b.deeper(|b| b.compound(expr))),
            _ => self.deeper(|b| b.compound(expr)),
        }
    }

    /// Binds a condition of a clause.
    pub(crate) fn condition_of(&mut self, expr: &Ast, what: &str) -> Result<Expr> {
        let bound = self.expr(expr)?;
        let at = self.at(expr.location());
        self.condition(bound, what, at)
    }

    pub(super) fn compound_anew(&mut self, expr: &Ast) -> Result<Expr> {
        match expr {
            Ast::AExpr(node) => self.a_expr(node),
            Ast::BoolExpr(node) => self.bool_expr(node),
            Ast::FuncCall(node) => self.func_call(node),
            Ast::TypeCast(node) => self.cast(node),
            Ast::NullTest(node) => self.is_null(&node.arg, node.negated),
            Ast::BooleanTest(node) => self.boolean_test(node),
            Ast::XmlExpr(node) => self.xml_expr(node),
            Ast::XmlSerialize(node) => self.xml_serialize(node),
            Ast::In(node) => self.in_list(node),
            Ast::SubLink(node) => self.sub_link(node),
            Ast::Between(node) => self.between(node),
            Ast::Like(node) => self.like(node),
            Ast::CaseExpr(node) => self.case(node),
            Ast::ArrayExpr(array) => self.array(array, None),
            Ast::Indirection(node) => self.access(node),
            Ast::CollateClause(node) => {
                let name = node.collname.join(".");
                let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
                if !matches!(
                    name,
                    "C" | "default" | "POSIX" | "ucs_basic" | "C.UTF-8" | "C.utf8"
                ) {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
                    )
                    .at(self.at(node.location)));
                }
                let operand = self.expr(&node.arg)?;
                self.settle(operand)
            }
            Ast::RowExpr(node) => {
                let fields = self.row_items(&node.args)?;
                self.row(fields)
            }
            Ast::CoalesceExpr(node) => self.coalesce(node),
            Ast::MinMaxExpr(node) => self.min_max(node),
            Ast::GroupingFunc(node) => self.grouping_call(node),
            Ast::SetToDefault(location) => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "DEFAULT is not allowed in this context",
            )
            .at(self.at(*location))),
            Ast::SqlValueFunction(node) => self.value_function(node),
            Ast::ColumnRef(column) => self.column_ref(column),
            Ast::Const(node) => self.literal(node),
            Ast::ParamRef(node) => self.parameter(*node),
            // PostgreSQL's grammar has it as the whole condition of a change alone.
            Ast::CurrentOf(node) => {
                Err(SqlError::unsupported("expression CURRENT OF").at(self.at(node.location)))
            }
        }
    }

    /// An operator in front of its operand.
    pub(super) fn sign(&mut self, node: &ast::AExpr) -> Result<Expr> {
        let at = self.at(node.location);
        let name = operator_name(&node.op).map_err(|e| e.at(at))?;
        let operand = self.expr(&node.rexpr)?;
        self.prefix_operator(name, operand, at)
    }

    /// CAST(x AS t), x::t.
    fn cast(&mut self, node: &ast::TypeCast) -> Result<Expr> {
        let (operand, type_name) = (&node.arg, &node.type_name);
        let type_at = self.at(type_name.location);
        let at = self.at(node.location).or(type_at);
        let ty = match type_name::sql_type(type_name, self.lookup()) {
            Ok(ty) => ty,
            // A temporary table's.
            Err(error) => { self.row_type_named(type_name) }.ok_or_else(|| error.at(type_at))?,
        };
        if let Ast::ArrayExpr(array) = operand
            && let Some(element) = self.user_types().element_of(ty.oid)
        {
            // Of a domain's base type: the domain is asked when the array is whole.
            let array = self.array(array, Some(SqlType::of(element)))?;
            return self.coerce(array, ty, CastContext::Explicit, at);
        }
        let value = self.value_for(operand, ty)?;
        self.coerce(value, ty, CastContext::Explicit, at)
    }

    /// The items of a row that is written out; `item.*` and `(record).*` among them are as many as there are fields.
    pub(crate) fn row_items(&mut self, items: &[Ast]) -> Result<Vec<Expr>> {
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            if let Ast::ColumnRef(column) = item
                && column.star
            {
                bound.append(&mut self.columns_of(column)?);
                continue;
            }
            match logstead_sql_parse::all_fields(item) {
                Some(record) => {
                    let fields = self.fields_of(&record)?;
                    bound.extend(fields.into_iter().map(|(_, field)| field));
                }
                None => bound.push(self.expr(item)?),
            }
        }
        Ok(bound)
    }

    /// An expression that is to be of a type: the items of a row that is written out need not have types of their own.
    pub(crate) fn value_for(&mut self, value: &Ast, ty: SqlType) -> Result<Expr> {
        let (Some(items), true) = (row_of(value), user::is_composite(ty.oid)) else {
            return self.expr(value);
        };
        if items
            .iter()
            .any(|item| logstead_sql_parse::all_fields(item).is_some())
        {
            return self.expr(value);
        }
        let shape = self.user_types().tuple_desc_of(ty);
        let fields = shape.iter().flat_map(|shape| shape.iter());
        let known = fields.map(|(_, ty)| *ty);
        let known = known.chain(std::iter::repeat(SqlType::of(oid::UNKNOWN)));
        let mut bound = Vec::with_capacity(items.len());
        let mut types: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(items.len());
        for ((item, field), number) in items.iter().zip(known).zip(1..) {
            let item = self.value_for(item, field)?;
            types.push((format!("f{number}").into(), item.ty()));
            bound.push(item);
        }
        Ok(Expr::Array(bound, record::record_type(&types)?))
    }

    pub(super) fn is_null(&mut self, operand: &Ast, negated: bool) -> Result<Expr> {
        if let Some(items) = row_of(operand) {
            // A row IS NULL when all its items are; IS NOT NULL when none is.
            let tests = items
                .iter()
                .map(|item| self.expr(item).map(|e| Expr::IsNull(Box::new(e), negated)))
                .collect::<Result<Vec<_>>>()?;
            return Ok(Expr::And(tests));
        }
        let operand = self.expr(operand)?;
        // A parameter gets no type from here: another place must give it one.
        let operand = if matches!(operand, Expr::Param(..)) {
            operand
        } else {
            self.settle(operand)?
        };
        // As of a row that is written out.
        let mut tests: Vec<Expr> = fields_of(&operand, self.user_types())
            .into_iter()
            .map(|field| Expr::IsNull(Box::new(field), negated))
            .collect();
        match tests.len() {
            // What record it is only the value tells.
            0 if operand.ty().oid == oid::RECORD
                && self.user_types().tuple_desc_of(operand.ty()).is_none() =>
            {
                let function = match negated {
                    true => &logstead_sql_func::ROW_IS_NOT_NULL,
                    false => &logstead_sql_func::ROW_IS_NULL,
                };
                self.call(function, vec![operand], SqlType::of(oid::BOOL))
            }
            0 => Ok(Expr::IsNull(Box::new(operand), negated)),
            1 => Ok(tests.remove(0)),
            _ => Ok(Expr::And(tests)),
        }
    }

    fn boolean_test(&mut self, node: &ast::BooleanTest) -> Result<Expr> {
        let (value, what) = match (node.kind, node.negated) {
            (BoolTestKind::True, false) => (Some(true), "IS TRUE"),
            (BoolTestKind::True, true) => (Some(true), "IS NOT TRUE"),
            (BoolTestKind::False, false) => (Some(false), "IS FALSE"),
            (BoolTestKind::False, true) => (Some(false), "IS NOT FALSE"),
            (BoolTestKind::Unknown, false) => (None, "IS UNKNOWN"),
            (BoolTestKind::Unknown, true) => (None, "IS NOT UNKNOWN"),
        };
        let arg = self.condition_of(&node.arg, what)?;
        Ok(Expr::IsBool {
            arg: Box::new(arg),
            value,
            negated: node.negated,
        })
    }

    fn between(&mut self, node: &ast::BetweenExpr) -> Result<Expr> {
        let at = self.at(node.location);
        let value = self.expr(&node.expr)?;
        let low = self.expr(&node.low)?;
        let high = self.expr(&node.high)?;
        if node.symmetric {
            let mut either = Vec::with_capacity(2);
            for (low, high) in [(low.clone(), high.clone()), (high, low)] {
                let from = self.operator(">=", value.clone(), low, at)?;
                let to = self.operator("<=", value.clone(), high, at)?;
                either.push(Expr::And(vec![from, to]));
            }
            let within = Expr::Or(either);
            return Ok(match node.negated {
                true => Expr::Not(Box::new(within)),
                false => within,
            });
        }
        if node.negated {
            let below = self.operator("<", value.clone(), low, at)?;
            let above = self.operator(">", value, high, at)?;
            return Ok(Expr::Or(vec![below, above]));
        }
        let from = self.operator(">=", value.clone(), low, at)?;
        let to = self.operator("<=", value, high, at)?;
        Ok(Expr::And(vec![from, to]))
    }

    /// LIKE, ILIKE, and SIMILAR TO with the words of its pattern put into those of a regular expression.
    fn like(&mut self, node: &ast::LikeExpr) -> Result<Expr> {
        let op = node.kind.operator(node.negated);
        let at = self.at(node.location);
        let value = self.expr(&node.expr)?;
        let mut args = vec![self.expr(&node.pattern)?];
        if let Some(escape) = &node.escape {
            args.push(self.expr(escape)?);
        }
        let pattern = match (node.kind, args.len()) {
            (LikeKind::SimilarTo, _) => self.named_call("similar_to_escape", args, at)?,
            (_, 2) => self.named_call("like_escape", args, at)?,
            (_, _) => args.remove(0),
        };
        self.operator(op, value, pattern, at)
    }

    /// ARRAY[...]; `wanted` is the element type of an enclosing cast.
    pub(crate) fn array(
        &mut self,
        array: &ast::AArrayExpr,
        wanted: Option<SqlType>,
    ) -> Result<Expr> {
        let mut items = Vec::with_capacity(array.elements.len());
        let mut nested = false;
        for item in &array.elements {
            // Brackets within brackets need not say again that they are an array, and are cast as the whole is.
            let bound = match item {
                Ast::ArrayExpr(inner) => self.array(inner, wanted)?,
                item => self.expr(item)?,
            };
            nested |= matches!(item, Ast::ArrayExpr(_)) || is_array(bound.ty(), self.user_types());
            items.push((bound, self.at(item.location())));
        }
        if nested {
            return self.stacked(items, wanted);
        }
        let (items, element) = match wanted {
            Some(element) => {
                let items = items
                    .into_iter()
                    .map(|(item, at)| self.coerce(item, element, CastContext::Explicit, at))
                    .collect::<Result<Vec<_>>>()?;
                (items, element)
            }
            None if items.is_empty() => {
                return Err(SqlError::new(
                    SqlState::INDETERMINATE_DATATYPE,
                    "cannot determine type of empty array",
                )
                .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
            }
            None => self.unify(items, "ARRAY")?,
        };
        let ty = info::array_type(element).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "could not find array type for data type {}",
                    self.types().format_type(element)
                ),
            )
        })?;
        if items.iter().all(|i| matches!(i, Expr::Const(..))) {
            let values = items
                .into_iter()
                .map(|item| match item {
                    Expr::Const(datum, _) => datum,
                    _ => Datum::Null,
                })
                .collect();
            return Ok(Expr::Const(Datum::array(element.oid, values), ty));
        }
        Ok(Expr::Array(items, ty))
    }

    /// ARRAY[...] of arrays: one of a dimension more.
    fn stacked(
        &mut self,
        items: Vec<(Expr, Option<usize>)>,
        wanted: Option<SqlType>,
    ) -> Result<Expr> {
        let wanted = wanted.and_then(|element| {
            Some(SqlType {
                oid: info::array_of(element.oid)?,
                typmod: element.typmod,
            })
        });
        let (items, ty) = match wanted {
            Some(array) => {
                let items = items
                    .into_iter()
                    .map(|(item, at)| self.coerce(item, array, CastContext::Explicit, at))
                    .collect::<Result<Vec<_>>>()?;
                (items, array)
            }
            None => self.unify(items, "ARRAY")?,
        };
        let ty = ty.plain();
        let constants = items.iter().map(|item| match item {
            Expr::Const(datum, _) => Some(datum.clone()),
            _ => None,
        });
        if let (Some(parts), Some(element)) = (
            constants.collect::<Option<Vec<_>>>(),
            self.user_types().element_of(ty.oid),
        ) {
            let array = stacked(element, &parts)?;
            return Ok(Expr::Const(Datum::Array(array.into()), ty));
        }
        Ok(Expr::Array(items, ty))
    }
}

/// All fields of a record; none of anything else, nor where nothing is known of them.
pub(super) fn fields_of(record: &Expr, types: &UserTypes) -> Vec<Expr> {
    let Some(shape) = types.tuple_desc_of(record.ty()) else {
        return Vec::new();
    };
    if let Expr::Array(fields, _) = record {
        return fields.clone();
    }
    let field = |(number, (_, ty)): (i32, &(Arc<str>, SqlType))| Expr::Subscript {
        array: Box::new(record.clone()),
        index: Box::new(Expr::Const(Datum::Int4(number), SqlType::of(oid::INT4))),
        ty: *ty,
    };
    (1..).zip(shape.iter()).map(field).collect()
}

/// A field of a record.
pub(super) fn field_of(value: Expr, field: &str, types: TypeLookup<'_>) -> Result<Expr> {
    let ty = value.ty();
    if !record::is_record(ty.oid) {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "column notation .{field} applied to type {}, which is not a composite type",
                types.format_type(ty)
            ),
        ));
    }
    let shape = types.types.tuple_desc_of(ty);
    let found = shape.iter().flat_map(|shape| shape.iter()).zip(1..);
    let found = found.filter(|((name, _), _)| **name == *field).last();
    let Some(((_, ty), number)) = found else {
        let message = match ty.oid {
            oid::RECORD => format!("could not identify column \"{field}\" in record data type"),
            _ => {
                let shown = types.format_type(ty);
                format!("column \"{field}\" not found in data type {shown}")
            }
        };
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    // A record's value is an array of its fields.
    Ok(Expr::Subscript {
        array: Box::new(value),
        index: Box::new(Expr::Const(Datum::Int4(number), SqlType::of(oid::INT4))),
        ty: *ty,
    })
}
