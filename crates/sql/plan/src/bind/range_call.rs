//! Calls of the functions that every range and multirange has: `floatrange(1, 2, '[]')`, `floatmultirange(floatrange(1,
//! 2))`.
//!
//! They are not kept: a type's name, called with so many arguments, is one of them where no other function is meant.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::UserTypeClass;
use logstead_sql_types::value::{SqlType, user};

impl Binder<'_> {
    /// The call of a user's range or multirange type; none if the name is not of one, or the arguments are not its.
    pub(super) fn range_call(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: &[Expr],
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        let Some(ty) = self.lookup().user_type(schema, name)? else {
            return Ok(None);
        };
        if !matches!(
            user::class(ty),
            Some(UserTypeClass::Range | UserTypeClass::Multirange)
        ) {
            return Ok(None);
        }
        let Some((function, taken)) = func::range_constructor(ty, args.len()) else {
            return Ok(None);
        };
        let mut coerced = Vec::with_capacity(args.len());
        for (arg, target) in args.iter().zip(taken) {
            match self.try_coerce(arg.clone(), target, CastContext::Implicit, at)? {
                Some(arg) => coerced.push(arg),
                None => return Ok(None),
            }
        }
        self.call(function, coerced, SqlType::of(ty)).map(Some)
    }
}
