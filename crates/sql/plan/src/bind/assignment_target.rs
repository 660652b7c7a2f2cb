//! Assignments to parts of columns: `SET c.field = 1, a[2] = 3`, `INSERT INTO t (c.field, a[1:2])`.
//!
//! The new value of the column is the old one with the part replaced; where there was none, the other parts are NULL.
//! Several assignments to parts of one column are made one after the other.

use super::subscript::is_slice;
use super::{Binder, ColId};
use crate::query::expr::Expr;
use logstead_sql_catalog::{Column, Relation};
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{self, Indirection, Name};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, geometry, oid};
use logstead_types::SqlState;

/// What of a column is assigned to.
pub(crate) struct AssignmentTarget<'a> {
    /// The column.
    pub position: usize,
    /// The way to the part; none for the whole.
    pub path: &'a [Indirection],
}

/// A step on the way to a part.
enum Step<'a> {
    /// A field of a record.
    Field(&'a Name),
    /// An element or a slice of an array: subscripts that follow each other.
    Subscripts(&'a [Indirection]),
}

/// The first step of a way, and what is behind it.
fn first_step(path: &[Indirection]) -> Option<(Step<'_>, &[Indirection])> {
    let (first, rest) = path.split_first()?;
    Some(match first {
        Indirection::Field(name) => (Step::Field(name), rest),
        Indirection::Index(_) | Indirection::Slice(..) | Indirection::Star => {
            let field = rest.iter().position(|part| !is_subscript(part));
            let (subscripts, rest) = path.split_at(field.map_or(path.len(), |at| at + 1));
            (Step::Subscripts(subscripts), rest)
        }
    })
}

fn is_subscript(part: &Indirection) -> bool {
    matches!(part, Indirection::Index(_) | Indirection::Slice(..))
}

/// A part to which values are assigned: its type, and how messages name it.
pub(crate) struct AssignedType {
    pub ty: SqlType,
    name: String,
}

impl<'a> AssignmentTarget<'a> {
    /// Why DEFAULT is none for a part.
    pub(crate) fn no_default(&self) -> &'static str {
        match self.path.first() {
            Some(part) if is_subscript(part) => "cannot set an array element to DEFAULT",
            _ => "cannot set a subfield to DEFAULT",
        }
    }

    /// A whole column.
    pub(crate) fn whole(position: usize) -> AssignmentTarget<'a> {
        AssignmentTarget {
            position,
            path: &[],
        }
    }
}

impl Binder<'_> {
    /// What a name with dots stands for where values are assigned.
    pub(crate) fn part_target<'t>(
        &self,
        target: &'t ast::ResTarget,
        relation: &Relation,
    ) -> Result<AssignmentTarget<'t>> {
        let position = self.attribute(relation, target.column(), target.location)?;
        let path = target.indirection.as_slice();
        if path.is_empty() {
            return Ok(AssignmentTarget { position, path });
        }
        let at = self.at(target.location);
        if path.contains(&Indirection::Star) {
            let message = "row expansion via \"*\" is not supported here";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(at));
        }
        if let Some(column) = relation.columns.get(position) {
            self.part(column, path).map_err(|e| e.at(at))?;
        }
        Ok(AssignmentTarget { position, path })
    }

    /// The part of a column at the end of a path.
    pub(crate) fn part(&self, column: &Column, path: &[Indirection]) -> Result<AssignedType> {
        let mut part = AssignedType {
            ty: column.ty,
            name: column.name.clone(),
        };
        let mut left = path;
        while let Some((step, rest)) = first_step(left) {
            left = rest;
            match step {
                Step::Field(field) => {
                    let ty = field_type(&part, field, self.types())?.1;
                    part = AssignedType {
                        ty,
                        name: field.to_string(),
                    };
                }
                Step::Subscripts(subscripts) => {
                    let element = element_type(part.ty, self.types())?;
                    if !is_slice(subscripts) {
                        part.ty = element;
                    }
                }
            }
        }
        Ok(part)
    }

    /// Brings a value to the type of the part it is assigned to.
    pub(crate) fn assign_part(
        &mut self,
        value: Expr,
        column: &Column,
        path: &[Indirection],
        at: Option<usize>,
    ) -> Result<Expr> {
        if path.is_empty() {
            return self.assign(value, column, at);
        }
        let part = self.part(column, path)?;
        let from = value.ty();
        let (what, is_of) = match path.last() {
            Some(Indirection::Field(_)) => ("subfield", "is of"),
            _ => ("subscripted assignment to", "requires"),
        };
        match self.try_coerce(value, part.ty, CastContext::Assignment, at)? {
            Some(value) => Ok(value),
            None => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "{what} \"{}\" {is_of} type {} but expression is of type {}",
                    part.name,
                    self.types().format_type(part.ty),
                    self.types().format_type(SqlType::of(from.oid))
                ),
            )
            .hint("You will need to rewrite or cast the expression.")
            .at(at)),
        }
    }

    /// The column's value with a part replaced.
    pub(crate) fn with_part(
        &mut self,
        old: Expr,
        column: &Column,
        path: &[Indirection],
        value: Expr,
    ) -> Result<Expr> {
        let whole = AssignedType {
            ty: old.ty(),
            name: column.name.clone(),
        };
        let changed = self.replaced(old, &whole, path, value)?;
        match column.domain {
            Some(domain) => self.as_domain(changed, domain),
            None => Ok(changed),
        }
    }

    /// Puts a value of a new row, or a part of one, in its place.
    pub(crate) fn give_part(
        &mut self,
        given: &mut [Option<Expr>],
        relation: &Relation,
        target: &AssignmentTarget<'_>,
        value: Expr,
    ) -> Result<()> {
        let lost = || SqlError::internal("a target that is no column");
        let column = relation.columns.get(target.position).ok_or_else(lost)?;
        let slot = given.get_mut(target.position).ok_or_else(lost)?;
        let value = match target.path {
            [] => value,
            path => {
                let null = Expr::Const(Datum::Null, column.ty);
                self.with_part(slot.take().unwrap_or(null), column, path, value)?
            }
        };
        *slot = Some(value);
        Ok(())
    }

    /// A column of the row that is changed, as its new value is made of it: nobody asks to see it.
    pub(crate) fn old_value(&mut self, first: ColId, position: usize, column: &Column) -> Expr {
        self.give_column(first + position);
        Expr::Column(first + position, column.ty)
    }
}

/// Number and type of a field.
fn field_type(
    whole: &AssignedType,
    field: &str,
    types: TypeLookup<'_>,
) -> Result<(usize, SqlType)> {
    let shape = types.types.tuple_desc_of(whole.ty).ok_or_else(|| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "cannot assign to field \"{field}\" of column \"{}\" because its type {} is not a composite type",
                whole.name,
                types.format_type(whole.ty)
            ),
        )
    })?;
    types.refuse_domains(whole.ty.oid)?;
    let found = shape.iter().position(|(name, _)| **name == *field);
    let found = found.and_then(|at| Some((at, shape.get(at)?.1)));
    found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!(
                "cannot assign to field \"{field}\" of column \"{}\" because there is no such column in data type {}",
                whole.name,
                types.format_type(whole.ty)
            ),
        )
    })
}

/// The type of an array's elements, or of what is in a document.
fn element_type(array: SqlType, types: TypeLookup<'_>) -> Result<SqlType> {
    if array.oid == oid::HSTORE {
        return Err(SqlError::unsupported("assignment to a subscript of hstore"));
    }
    // What is in a document is one.
    if array.oid == oid::JSONB {
        return Ok(SqlType::of(oid::JSONB));
    }
    if let Some((part, _)) = geometry::parts_of(array.oid) {
        return Ok(SqlType::of(part));
    }
    let fixed = matches!(array.oid, oid::INT2VECTOR | oid::OIDVECTOR);
    let element = types.types.element_of(array.oid).filter(|_| !fixed);
    let element = element.ok_or_else(|| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "cannot subscript type {} because it does not support subscripting",
                types.format_type(array)
            ),
        )
    })?;
    Ok(SqlType {
        oid: element,
        typmod: array.typmod,
    })
}

impl Binder<'_> {
    fn replaced(
        &mut self,
        old: Expr,
        whole: &AssignedType,
        path: &[Indirection],
        value: Expr,
    ) -> Result<Expr> {
        let Some((step, rest)) = first_step(path) else {
            return Ok(value);
        };
        match step {
            Step::Field(field) => {
                let (at, ty) = field_type(whole, field, self.types())?;
                let mut fields = match &old {
                    // Nothing yet.
                    Expr::Const(Datum::Null, _) => {
                        let shape = self.user_types().tuple_desc_of(whole.ty);
                        let fields = shape.iter().flat_map(|shape| shape.iter());
                        let null = |(_, ty): &(_, SqlType)| Expr::Const(Datum::Null, *ty);
                        fields.map(null).collect()
                    }
                    old => super::expr::fields_of(old, self.user_types()),
                };
                let slot = fields
                    .get_mut(at)
                    .ok_or_else(|| SqlError::internal("a record without its field"))?;
                let inner = AssignedType {
                    ty,
                    name: field.to_string(),
                };
                let before = std::mem::replace(slot, Expr::Const(Datum::Null, ty));
                *slot = self.replaced(before, &inner, rest, value)?;
                Ok(Expr::Array(fields, whole.ty))
            }
            Step::Subscripts(subscripts) => self.with_element(old, whole, subscripts, rest, value),
        }
    }

    fn with_element(
        &mut self,
        old: Expr,
        whole: &AssignedType,
        subscripts: &[Indirection],
        rest: &[Indirection],
        value: Expr,
    ) -> Result<Expr> {
        if whole.ty.oid == oid::JSONB {
            return self.with_place(old, subscripts, value);
        }
        if geometry::parts_of(whole.ty.oid).is_some() {
            return self.with_fixed(old, whole, subscripts, rest, value);
        }
        let element = element_type(whole.ty, self.types())?;
        let constant = |datum, ty| Expr::Const(datum, SqlType::of(ty));
        let mut bounds = Vec::with_capacity(subscripts.len());
        let slice = is_slice(subscripts);
        for subscript in subscripts {
            match subscript {
                Indirection::Index(index) => {
                    // A number alone among slices is one from the first to it.
                    if slice {
                        bounds.push(constant(Datum::Int4(1), oid::INT4));
                    }
                    bounds.push(self.subscript(index)?);
                }
                Indirection::Field(_) | Indirection::Star => {}
                Indirection::Slice(lower, upper) => {
                    for bound in [lower, upper] {
                        bounds.push(match bound {
                            Some(bound) => self.subscript(bound)?,
                            None => constant(Datum::Bool(false), oid::BOOL),
                        });
                    }
                }
            }
        }
        let value = match (rest, slice) {
            ([], _) => value,
            (_, true) => {
                return Err(SqlError::unsupported("assignment to a part of a slice"));
            }
            (rest, false) => {
                let before = match &old {
                    Expr::Const(Datum::Null, _) => Expr::Const(Datum::Null, element),
                    old => {
                        let mut args = vec![old.clone()];
                        args.extend(bounds.iter().cloned());
                        self.call(&logstead_sql_func::ARRAY_ELEMENT, args, element)?
                    }
                };
                let inner = AssignedType {
                    ty: element,
                    name: whole.name.clone(),
                };
                self.replaced(before, &inner, rest, value)?
            }
        };
        let mut args = vec![
            constant(Datum::Oid(element.oid.get()), oid::OID),
            old,
            value,
        ];
        args.append(&mut bounds);
        let function = match slice {
            true => &logstead_sql_func::ARRAY_SET_SLICE,
            false => &logstead_sql_func::ARRAY_SET_ELEMENT,
        };
        self.call(function, args, whole.ty)
    }

    /// A value of a fixed number of parts with another one at a place.
    fn with_fixed(
        &mut self,
        old: Expr,
        whole: &AssignedType,
        subscripts: &[Indirection],
        rest: &[Indirection],
        value: Expr,
    ) -> Result<Expr> {
        if !rest.is_empty() {
            return Err(SqlError::unsupported(
                "assignment to a part of an element of a fixed-length array",
            ));
        }
        match subscripts {
            [Indirection::Index(index)] => {
                let args = vec![old, value, self.subscript(index)?];
                self.call(&logstead_sql_func::SET_FIXED_ELEMENT, args, whole.ty)
            }
            many if !is_slice(many) => Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "wrong number of array subscripts",
            )),
            _ => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "updates on slices of fixed-length arrays not implemented",
            )),
        }
    }

    /// A document with a value at a place.
    fn with_place(&mut self, old: Expr, subscripts: &[Indirection], value: Expr) -> Result<Expr> {
        let mut args = vec![old, value];
        let mut first = None;
        for subscript in subscripts {
            let Indirection::Index(index) = subscript else {
                return Err(self.no_slices(subscripts));
            };
            let (number, step) = self.document_step(index)?;
            first.get_or_insert(number);
            args.push(step);
        }
        let array = Datum::Bool(first == Some(true));
        args.insert(0, Expr::Const(array, SqlType::of(oid::BOOL)));
        self.call(
            &logstead_sql_func::JSONB_SET_ELEMENT,
            args,
            SqlType::of(oid::JSONB),
        )
    }
}
