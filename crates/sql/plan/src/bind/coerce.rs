//! Types brought together: literals of unknown type, parameters, casts, modifiers; constants folded on the way.

use super::Binder;
use crate::query::expr::Expr;
use crate::rewrite::fold_constants::folded_call;
use logstead_sql_func as func;
use logstead_sql_func::{Cast, CastContext, Function, Volatility};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, oid, record, text_io, user};
use logstead_types::SqlState;

impl Binder<'_> {
    /// Brings `expr` to `target`. `None` if there is no such cast in this context.
    pub(crate) fn try_coerce(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CastContext,
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        let from = expr.ty();
        if user::domain_in(target.oid).is_some() {
            return self.coerce_to_domain(expr, target.oid, context, at);
        }
        if from.oid == target.oid {
            return Ok(Some(self.with_typmod(expr, target, context)?));
        }
        // A vector is cast as the array that it is.
        if from.oid == oid::OIDVECTOR
            && !matches!(
                target.oid,
                oid::OID_ARRAY | oid::OIDVECTOR | oid::INT2VECTOR
            )
            && self.user_types().element_of(target.oid).is_some()
        {
            let plain = SqlType::of(oid::OID_ARRAY);
            return match self.try_coerce(expr, plain, CastContext::Explicit, at)? {
                Some(array) => self.try_coerce(array, target, context, at),
                None => Ok(None),
            };
        }
        let asked = target.typmod == user::DOMAINS_ASKED;
        let untyped_param = matches!(expr, Expr::Param(..)) && from.oid == oid::UNKNOWN;
        if !asked
            && self.user_types().row_with_domains(target.oid).is_some()
            && !untyped_param
            && !matches!(expr, Expr::Const(Datum::Null, _))
        {
            let asking = SqlType {
                oid: target.oid,
                typmod: user::DOMAINS_ASKED,
            };
            return match self.try_coerce(expr, asking, context, at)? {
                Some(value) => self.as_row(value, target.oid).map(Some),
                None => Ok(None),
            };
        }
        let (target, plain) =
            match asked && self.user_types().row_with_domains(target.oid).is_some() {
                true => (SqlType::of(target.oid), target),
                false => (target, SqlType::of(target.oid)),
            };
        if is_pseudo(target.oid) {
            // A polymorphic parameter takes what it gets; a literal becomes text.
            if from.oid == oid::UNKNOWN {
                return self.try_coerce(expr, SqlType::of(oid::TEXT), context, at);
            }
            return Ok(Some(expr));
        }
        if record::is_record(from.oid) && record::is_record(target.oid) {
            let wanted = if asked { plain } else { target };
            return self.coerce_record(expr, wanted, context, at);
        }
        if from.oid == oid::UNKNOWN {
            return match expr {
                Expr::Const(Datum::Null, _) => Ok(Some(Expr::Const(Datum::Null, target))),
                Expr::Const(datum, _) => {
                    let text = match &datum {
                        Datum::Text(text) => text.clone(),
                        _ => {
                            return Err(SqlError::internal(
                                "a literal of unknown type that is no text",
                            ));
                        }
                    };
                    // An interval's modifier steers its input; every other one is applied to the value.
                    let read = if target.oid == oid::INTERVAL {
                        target
                    } else {
                        plain
                    };
                    if depends_on_session(target.oid, self.user_types()) {
                        self.session_dependent = true;
                    }
                    let value = text_io::input(read, &text, Some(self.cx.session))
                        .map_err(|e| e.at(self.literal_at(&text, at)))?;
                    if depends_on_session(target.oid, self.user_types()) {
                        self.fix_literal(&text, SqlType::of(target.oid), &value)?;
                    }
                    let value = Expr::Const(value, SqlType::of(target.oid));
                    self.with_typmod(value, target, context).map(Some)
                }
                Expr::Param(index, _) => {
                    let known = self.params.get(index).copied().flatten();
                    match known {
                        None => self.params[index] = Some(SqlType::of(target.oid)),
                        Some(ty) if ty.oid == target.oid => {}
                        Some(ty) => return Err(self.two_types(index, ty, target.oid).at(at)),
                    }
                    let param = Expr::Param(index, SqlType::of(target.oid));
                    self.with_typmod(param, target, context).map(Some)
                }
                // Anything else of unknown type is text inside.
                other => {
                    let text = Expr::Relabel(Box::new(other), SqlType::of(oid::TEXT));
                    let to = if plain.typmod == -1 { target } else { plain };
                    self.try_coerce(text, to, CastContext::Explicit, at)
                }
            };
        }
        let Some(cast) = func::find_cast(from.oid, plain.oid, context) else {
            return Ok(None);
        };
        let cast = match cast {
            Cast::Relabel => match expr {
                Expr::Const(datum, _) => {
                    let value =
                        func::apply_cast(cast, &datum, from, plain, false, Some(self.cx.session));
                    Expr::Const(value.map_err(|e| e.at(at))?, plain)
                }
                expr => Expr::Relabel(Box::new(expr), plain),
            },
            Cast::Function(function) => {
                let mut args = vec![expr];
                // Some make another value for another modifier.
                if function.args.len() > 1 {
                    args.push(Expr::Const(
                        Datum::Int4(target.typmod),
                        SqlType::of(oid::INT4),
                    ));
                }
                self.call(function, args, plain).map_err(|e| e.at(at))?
            }
            Cast::ViaText => Expr::CastViaText(Box::new(expr), plain),
        };
        if !matches!(cast, Expr::Const(..)) {
            self.refuse_spelling(from, plain).map_err(|e| e.at(at))?;
        }
        self.with_typmod(cast, target, context).map(Some)
    }

    /// Brings `expr` to `target` or says that it cannot be cast.
    pub(crate) fn coerce(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CastContext,
        at: Option<usize>,
    ) -> Result<Expr> {
        let from = expr.ty();
        match self.try_coerce(expr, target, context, at)? {
            Some(expr) => Ok(expr),
            None => Err(SqlError::new(
                SqlState::CANNOT_COERCE,
                format!(
                    "cannot cast type {} to {}",
                    self.types().format_type(SqlType::of(from.oid)),
                    self.types().format_type(SqlType::of(target.oid))
                ),
            )
            .at(at)),
        }
    }

    pub(super) fn with_typmod(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CastContext,
    ) -> Result<Expr> {
        let ty = expr.ty();
        if target.typmod < 0 || ty.typmod == target.typmod {
            return Ok(expr);
        }
        let explicit = context == CastContext::Explicit;
        match expr {
            Expr::Const(datum, _) => Ok(Expr::Const(
                logstead_sql_types::value::typmod::coerce_typmod(datum, target, explicit)?,
                target,
            )),
            expr => Ok(Expr::CoerceTypmod {
                arg: Box::new(expr),
                ty: target,
                explicit,
            }),
        }
    }

    /// The expression as a boolean condition of `clause`.
    pub(crate) fn condition(&mut self, expr: Expr, what: &str, at: Option<usize>) -> Result<Expr> {
        let from = expr.ty();
        match self.try_coerce(expr, SqlType::of(oid::BOOL), CastContext::Assignment, at)? {
            Some(expr) => Ok(expr),
            None => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "argument of {what} must be type boolean, not type {}",
                    self.types().format_type(SqlType::of(from.oid))
                ),
            )
            .at(at)),
        }
    }

    /// Literals and parameters of unknown type become text.
    pub(crate) fn settle(&mut self, expr: Expr) -> Result<Expr> {
        if expr.ty().oid == oid::UNKNOWN {
            return self.coerce(expr, SqlType::of(oid::TEXT), CastContext::Implicit, None);
        }
        Ok(expr)
    }

    /// Brings expressions to their common type, as UNION, CASE, VALUES and ARRAY do.
    pub(crate) fn unify(
        &mut self,
        exprs: Vec<(Expr, Option<usize>)>,
        what: &str,
    ) -> Result<(Vec<Expr>, SqlType)> {
        let ty = self.common(
            &exprs
                .iter()
                .map(|(e, at)| (e.ty(), *at))
                .collect::<Vec<_>>(),
            what,
        )?;
        let mut out = Vec::with_capacity(exprs.len());
        for (expr, at) in exprs {
            let from = expr.ty();
            match self.try_coerce(expr, SqlType::of(ty.oid), CastContext::Implicit, at)? {
                Some(expr) => out.push(expr),
                None => {
                    return Err(SqlError::new(
                        SqlState::CANNOT_COERCE,
                        format!(
                            "{what} could not convert type {} to {}",
                            self.types().format_type(SqlType::of(from.oid)),
                            self.types().format_type(SqlType::of(ty.oid))
                        ),
                    )
                    .at(at));
                }
            }
        }
        Ok((out, ty))
    }

    /// The common type of some types; the modifier survives when all share it.
    pub(crate) fn common(&self, types: &[(SqlType, Option<usize>)], what: &str) -> Result<SqlType> {
        let Some((first, _)) = types.first() else {
            return Ok(SqlType::of(oid::TEXT));
        };
        if first.oid != oid::UNKNOWN && types.iter().all(|(ty, _)| ty == first) {
            return Ok(*first);
        }
        if first.oid != oid::UNKNOWN && types.iter().all(|(ty, _)| ty.oid == first.oid) {
            return Ok(SqlType::of(first.oid));
        }
        let only: Vec<SqlType> = types.iter().map(|(ty, _)| *ty).collect();
        match func::common_type(&only, self.types()) {
            Ok(ty) => Ok(SqlType::of(if ty.oid == oid::UNKNOWN {
                oid::TEXT
            } else {
                ty.oid
            })),
            Err(_) => {
                // The first pair that does not fit, as PostgreSQL names it.
                let mut so_far = SqlType::of(oid::UNKNOWN);
                for (ty, at) in types {
                    match func::common_type(&[so_far, *ty], self.types()) {
                        Ok(ty) => so_far = ty,
                        Err(_) => {
                            return Err(SqlError::new(
                                SqlState::DATATYPE_MISMATCH,
                                format!(
                                    "{what} types {} and {} cannot be matched",
                                    self.types().format_type(SqlType::of(so_far.oid)),
                                    self.types().format_type(SqlType::of(ty.oid))
                                ),
                            )
                            .at(*at));
                        }
                    }
                }
                Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("{what} types cannot be matched"),
                ))
            }
        }
    }

    /// A call, evaluated now when it can be.
    pub(crate) fn call(
        &mut self,
        function: &'static Function,
        args: Vec<Expr>,
        ty: SqlType,
    ) -> Result<Expr> {
        self.refuse_settings_read(function, &args)?;
        if function.volatility == Volatility::Volatile {
            self.volatile = true;
        }
        folded_call(function, args, ty)
    }

    /// 42P08: a parameter is wanted as two types.
    pub(super) fn two_types(&self, index: usize, known: SqlType, wanted: TypeId) -> SqlError {
        SqlError::new(
            SqlState::AMBIGUOUS_PARAMETER,
            format!("inconsistent types deduced for parameter ${}", index + 1),
        )
        .detail(format!(
            "{} versus {}",
            self.types().format_type(known),
            self.types().format_type(SqlType::of(wanted))
        ))
    }
}

/// Types whose literals mean what the session says, and arrays of them.
fn depends_on_session(ty: TypeId, types: &UserTypes) -> bool {
    matches!(
        types.element_of(ty).unwrap_or(ty),
        oid::DATE
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
            | oid::DATERANGE
            | oid::TSRANGE
            | oid::TSTZRANGE
            | oid::DATEMULTIRANGE
            | oid::TSMULTIRANGE
            | oid::TSTZMULTIRANGE
            | oid::REGCLASS
            | oid::REGTYPE
            | oid::REGPROC
            | oid::REGNAMESPACE
            | oid::REGPROCEDURE
            | oid::REGOPER
            | oid::REGOPERATOR
            | oid::REGCOLLATION
            | oid::REGROLE
    )
}

/// Types that stand for others in signatures.
pub(crate) fn is_pseudo(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::ANY
            | oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}
