//! What stands behind a value: subscripts and slices of arrays and documents, and fields of composite values.
//!
//! Owns: binding of `a[i]`, `a[i:j]`, `document['key']` and `(row).field`. Invariant: the subscripts of one value are
//! all slices as soon as one of them is.

use super::Binder;
use super::expr::field_of;
use crate::query::expr::Expr;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{self, Expr as Ast, Indirection};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::array::{DIMENSIONS_MAX, too_many_dimensions};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, geometry, oid};
use logstead_types::SqlState;

impl Binder<'_> {
    /// a.b[1], (array)[1], (item).column.
    pub(super) fn access(&mut self, node: &ast::AIndirection) -> Result<Expr> {
        let (root, mut chain) = (&node.arg, node.indirection.as_slice());
        // In parentheses it is a record, if there is a column of that name; otherwise what the column belongs to.
        let mut value = match (root, chain.first()) {
            // A field of all columns of an item is the one of that name, as it is called here.
            (Ast::ColumnRef(column), Some(Indirection::Field(name))) if column.star => {
                let mut fields = column.fields.clone();
                fields.push(name.clone());
                match self.resolve_qualified(&fields, None).ok() {
                    Some(column) => {
                        chain = &chain[1..];
                        column
                    }
                    None => self.expr(root)?,
                }
            }
            (Ast::ColumnRef(column), Some(Indirection::Field(_))) => match self.expr(root).ok() {
                Some(record) => record,
                None => {
                    let mut fields = column.fields.clone();
                    while let Some(Indirection::Field(name)) = chain.first() {
                        fields.push(name.clone());
                        chain = &chain[1..];
                    }
                    self.resolve_qualified(&fields, self.at(column.location))?
                }
            },
            _ => self.expr(root)?,
        };
        while let Some((access, rest)) = chain.split_first() {
            // Several subscripts of an array ask one thing of it.
            let subscripts = chain
                .iter()
                .take_while(|access| {
                    matches!(access, Indirection::Index(_) | Indirection::Slice(..))
                })
                .count();
            let sliced = is_slice(&chain[..subscripts]);
            if sliced || (subscripts > 1 && is_array(value.ty(), self.user_types())) {
                value = self.subscripts(
                    value,
                    &chain[..subscripts],
                    sliced,
                    self.at(root.location()),
                )?;
                chain = &chain[subscripts..];
                continue;
            }
            // What consists of a fixed number of parts has one dimension.
            if subscripts > 1
                && let Some((part, _)) = geometry::parts_of(value.ty().oid)
            {
                value = Expr::Const(Datum::Null, SqlType::of(part));
                chain = &chain[subscripts..];
                continue;
            }
            chain = rest;
            match access {
                Indirection::Field(field) => {
                    let at = self.at(root.location());
                    value = field_of(value, field, self.types()).map_err(|e| e.at(at))?;
                }
                Indirection::Star => {
                    let message = "row expansion via \"*\" is not supported here";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                        .at(self.at(root.location())));
                }
                Indirection::Slice(..) => {
                    return Err(SqlError::unsupported("this kind of slice"));
                }
                Indirection::Index(index) => {
                    let ty = value.ty();
                    let at = self.at(root.location());
                    if ty.oid == oid::JSONB {
                        let (_, step) = self.document_step(index)?;
                        value = self.named_call("jsonb_extract_path", vec![value, step], at)?;
                        continue;
                    }
                    if ty.oid == oid::HSTORE {
                        if subscripts > 1 {
                            return Err(SqlError::new(
                                SqlState::FEATURE_NOT_SUPPORTED,
                                "hstore allows only one subscript",
                            )
                            .at(at));
                        }
                        let key = self.expr(index)?;
                        value = self.named_call("fetchval", vec![value, key], at)?;
                        continue;
                    }
                    let element = match ty.oid {
                        oid::NAME => Some(oid::CHAR),
                        shape => match geometry::parts_of(shape) {
                            Some((part, _)) => Some(part),
                            None => self.user_types().element_of(ty.oid),
                        },
                    };
                    let Some(element) = element else {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!(
                                "cannot subscript type {} because it does not support subscripting",
                                self.types().format_type(ty)
                            ),
                        )
                        .at(at));
                    };
                    let index = self.subscript(index)?;
                    value = Expr::Subscript {
                        array: Box::new(value),
                        index: Box::new(index),
                        ty: SqlType {
                            oid: element,
                            typmod: ty.typmod,
                        },
                    };
                }
            }
        }
        Ok(value)
    }

    /// A step into a document: the text of a key or of a number, and whether it is a number.
    pub(super) fn document_step(&mut self, index: &Ast) -> Result<(bool, Expr)> {
        let place = self.at(index.location());
        let step = self.expr(index)?;
        let step = self.settle(step)?;
        let from = step.ty().oid;
        let fits = |to| logstead_sql_func::can_coerce(from, to, CastContext::Implicit);
        let wrong = |hint: &str| {
            let ty = self.types().format_type_bare(from);
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("subscript type {ty} is not supported"),
            )
            .hint(hint)
            .at(place)
        };
        let number = match (fits(oid::INT4), fits(oid::TEXT)) {
            (number, text) if number != text => number,
            (true, _) => {
                return Err(wrong(
                    "jsonb subscript must be coercible to only one type, integer or text.",
                ));
            }
            _ => {
                return Err(wrong(
                    "jsonb subscript must be coercible to either integer or text.",
                ));
            }
        };
        let text = SqlType::of(oid::TEXT);
        let step = self.coerce(step, text, CastContext::Explicit, place)?;
        Ok((number, step))
    }

    /// The number between the brackets.
    pub(super) fn subscript(&mut self, index: &Ast) -> Result<Expr> {
        let place = self.at(index.location());
        let index = self.expr(index)?;
        let int4 = SqlType::of(oid::INT4);
        self.try_coerce(index, int4, CastContext::Assignment, place)?
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    "array subscript must have type integer",
                )
                .at(place)
            })
    }

    /// array[low:high]...; a bound that is left out is the array's, and a number alone among slices is one from the
    /// first to it. Or, if nothing is
    /// sliced, array[i][j]...
    fn subscripts(
        &mut self,
        array: Expr,
        chain: &[Indirection],
        sliced: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        if chain.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(chain.len()).at(at));
        }
        let ty = match array.ty() {
            ty if !sliced => ty,
            ty if ty.oid == oid::INT2VECTOR => SqlType::of(oid::INT2_ARRAY),
            ty if ty.oid == oid::OIDVECTOR => SqlType::of(oid::OID_ARRAY),
            ty if ty.oid == oid::JSONB => {
                return Err(self.no_slices(chain));
            }
            ty if geometry::parts_of(ty.oid).is_some() => return Err(no_fixed_slices()),
            ty => ty,
        };
        let Some(element) = self.user_types().element_of(ty.oid) else {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    self.types().format_type(ty)
                ),
            )
            .at(at));
        };
        let constant = |number| Expr::Const(Datum::Int4(number), SqlType::of(oid::INT4));
        let mut args = vec![array];
        for access in chain {
            match access {
                Indirection::Index(index) => {
                    if sliced {
                        args.push(constant(1));
                    }
                    args.push(self.subscript(index)?);
                }
                Indirection::Slice(lower, upper) => {
                    for (bound, end) in [(lower, i32::MIN), (upper, i32::MAX)] {
                        args.push(match bound {
                            Some(bound) => self.subscript(bound)?,
                            None => constant(end),
                        });
                    }
                }
                _ => return Err(SqlError::unsupported("this kind of subscript").at(at)),
            }
        }
        if sliced {
            return self.call(&logstead_sql_func::ARRAY_SLICE, args, ty);
        }
        let element = SqlType {
            oid: element,
            typmod: ty.typmod,
        };
        self.call(&logstead_sql_func::ARRAY_ELEMENT, args, element)
    }
}

impl Binder<'_> {
    /// Documents have no slices; that is told of the first subscript.
    pub(super) fn no_slices(&self, subscripts: &[Indirection]) -> SqlError {
        let bound = subscripts.first().and_then(|subscript| match subscript {
            Indirection::Index(index) => Some(index),
            Indirection::Slice(lower, upper) => upper.as_ref().or(lower.as_ref()),
            Indirection::Field(_) | Indirection::Star => None,
        });
        let message = "jsonb subscript does not support slices";
        SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            .at(bound.and_then(|bound| self.at(bound.location())))
    }
}

/// Is any of the subscripts a slice? Then all are.
pub(super) fn is_slice(subscripts: &[Indirection]) -> bool {
    { subscripts.iter() }.any(|subscript| matches!(subscript, Indirection::Slice(..)))
}

/// What consists of a fixed number of parts has no slices.
fn no_fixed_slices() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "slices of fixed-length arrays not implemented",
    )
}

/// True for arrays whose elements are values of their own: vectors are one.
pub(super) fn is_array(ty: SqlType, types: &UserTypes) -> bool {
    types.element_of(ty.oid).is_some() && !matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR)
}
