//! The way from one type to another, PostgreSQL's `find_coercion_pathway`, and a value taken along it.
//!
//! Does not: have the code of conversions (`cast`, and each type's own module).

use crate::{Cast, CastContext, FunctionImpl, registry};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::text_io::{OutputStyle, truncate_name};
use logstead_sql_types::value::{Datum, Inet, SqlType, info, multirange, oid, text_io, user};
use logstead_sql_types::{FunctionId, TypeId};

/// `multirange(anyrange)`
const MULTIRANGE_OF_RANGE: FunctionId = FunctionId::new(4298);

/// The way from one type to another in a context, if there is one (PostgreSQL's find_coercion_pathway).
pub fn find_cast(from: TypeId, to: TypeId, context: CastContext) -> Option<Cast> {
    if from == to {
        return Some(Cast::Relabel);
    }
    if from == oid::UNKNOWN {
        return Some(Cast::ViaText);
    }
    if user::class(from) == Some(user::UserTypeClass::Range)
        && multirange::multirange_of(from) == Some(to)
        && context == CastContext::Explicit
    {
        return registry::function_by_oid(MULTIRANGE_OF_RANGE).map(Cast::Function);
    }
    if to == oid::RECORD && user::is_composite(from) {
        return Some(Cast::Relabel);
    }
    if let Some(row) = registry::cast_row(from, to) {
        if context < row.context {
            return None;
        }
        return Some(match row.function {
            _ if row.via_text => Cast::ViaText,
            None => Cast::Relabel,
            Some(function) => Cast::Function(registry::function_by_oid(function)?),
        });
    }
    // Arrays go element by element; text carries them.
    if let (Some(f), Some(t)) = (info::element_of(from), info::element_of(to))
        && !matches!(to, oid::INT2VECTOR | oid::OIDVECTOR)
    {
        return match find_cast(f, t, context)? {
            Cast::Relabel if matches!(from, oid::INT2VECTOR | oid::OIDVECTOR) => {
                Some(Cast::Relabel)
            }
            _ => Some(Cast::ViaText),
        };
    }
    let string = |t| info::category(t) == 'S';
    if context == CastContext::Explicit && to == oid::CSTRING && string(from)
        || context >= CastContext::Assignment && from == oid::CSTRING && string(to)
    {
        return Some(Cast::ViaText);
    }
    if (context >= CastContext::Assignment && string(to))
        || (context == CastContext::Explicit && string(from))
    {
        let pseudo = |t| info::by_oid(t).is_none_or(|i| i.kind == 'p');
        // Values of pg_stats are arrays of whatever their column is.
        let written = matches!(
            from,
            oid::ANYARRAY | oid::VOID | oid::RECORD | oid::RECORD_ARRAY
        ) || !pseudo(from);
        return (written && !pseudo(to)).then_some(Cast::ViaText);
    }
    None
}

/// Converts a value along a cast found by [`find_cast`] and applies the target's modifier. NULL stays NULL.
pub fn apply_cast(
    cast: Cast,
    d: &Datum,
    from: SqlType,
    to: SqlType,
    explicit: bool,
    cx: Option<&dyn IoContext>,
) -> Result<Datum> {
    if d.is_null() {
        return Ok(Datum::Null);
    }
    let v = match cast {
        Cast::Relabel => relabel(d, to.oid),
        Cast::Function(f) => match (&f.body, cx) {
            // It makes another value for another modifier.
            (FunctionImpl::Pure(code), _) if f.args.len() > 1 => {
                code(&[d.clone(), Datum::Int4(to.typmod)])?
            }
            (FunctionImpl::Pure(code), _) => code(std::slice::from_ref(d))?,
            (FunctionImpl::DateTime(code), Some(cx)) => code(cx, std::slice::from_ref(d))?,
            (FunctionImpl::Io(code), Some(cx)) => code(cx, std::slice::from_ref(d))?,
            _ => {
                return Err(SqlError::internal(format!(
                    "cast function {} needs a session",
                    f.name
                )));
            }
        },
        Cast::ViaText => {
            if let (Datum::Text(s), true) = (d, to.typmod >= 0) {
                let plain = text_io::input(SqlType::of(to.oid), s, cx)?;
                return super::coerce_typmod(plain, to, explicit);
            }
            if let (Datum::Array(a), Some(element)) = (d, info::element_of(to.oid)) {
                let target = SqlType {
                    oid: element,
                    typmod: to.typmod,
                };
                let step =
                    find_cast(a.element, element, CastContext::Explicit).ok_or_else(|| {
                        SqlError::internal("no cast between the elements of two arrays")
                    })?;
                let items: Result<Vec<Datum>> = a
                    .items
                    .iter()
                    .map(|i| apply_cast(step, i, SqlType::of(a.element), target, explicit, cx))
                    .collect();
                let array = a.with_items(element, items?);
                return Ok(Datum::Array(std::sync::Arc::new(array)));
            }
            let style = cx.map_or(OutputStyle::UTC, OutputStyle::of);
            let text = text_io::to_text(d, from, &style)?;
            text_io::input(SqlType::of(to.oid), &text, cx)?
        }
    };
    super::coerce_typmod(v, to, explicit)
}

/// A vector becomes a plain array by its element type; other relabelled values are the same.
fn relabel(d: &Datum, to: TypeId) -> Datum {
    match (d, to) {
        (Datum::Text(s), oid::NAME) => Datum::text(truncate_name(s)),
        (Datum::Inet(v), oid::INET) => Datum::inet(Inet { cidr: false, ..**v }),
        _ => d.clone(),
    }
}
