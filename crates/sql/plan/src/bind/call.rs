//! Calls by name with bound arguments: `func::resolve_function` chooses among the built-in functions of the name,
//! and the arguments are brought to its types.

use super::Binder;
use super::coerce::is_pseudo;
use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, FunctionImpl};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, info, multirange, oid, range, record, user};
use logstead_types::SqlState;

impl Binder<'_> {
    /// Calls the built-in function `name`.
    pub(crate) fn named_call(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        self.resolved_call(None, name, args, at)
    }

    pub(crate) fn resolved_call(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: Vec<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        // A literal in parentheses behind a type's name is of that type, whatever functions of the name there are.
        if let ([ty], [_]) = (types.as_slice(), args.as_slice())
            && ty.oid == oid::UNKNOWN
            && schema.is_none_or(|s| s == "pg_catalog")
            && let Some(target) = func::type_cast_call(name, &types, self.user_types())
        {
            let mut args = args;
            return match args.pop() {
                Some(arg) => self.coerce(arg, SqlType::of(target), CastContext::Explicit, at),
                None => Err(SqlError::internal("an argument vanished")),
            };
        }
        // What nothing has given a type yet has none.
        if let ([ty], "pg_typeof") = (types.as_slice(), name)
            && ty.oid == oid::UNKNOWN
            && schema.is_none_or(|s| s == "pg_catalog")
        {
            let told = Datum::Oid(oid::UNKNOWN.get());
            return Ok(Expr::Const(told, SqlType::of(oid::REGTYPE)));
        }
        let resolved = match func::resolve_function(schema, name, &types, self.types()) {
            Ok(resolved) => resolved,
            Err(error) => {
                if let Some(made) = self.range_call(schema, name, &args, at)? {
                    return Ok(made);
                }
                // The notation of functions for a column of a row.
                if let ([ty], [row]) = (types.as_slice(), args.as_slice())
                    && schema.is_none()
                    && record::is_record(ty.oid)
                    && let Ok(field) = super::expr::field_of(row.clone(), name, self.types())
                {
                    return Ok(field);
                }
                let Ok([arg]) = <[Expr; 1]>::try_from(args) else {
                    return Err(error.at(at));
                };
                // type(x) is a cast when there is no such function.
                if schema.is_none_or(|s| s == "pg_catalog")
                    && let Some(target) = func::type_cast_call(name, &types, self.user_types())
                {
                    return self.coerce(arg, SqlType::of(target), CastContext::Explicit, at);
                }
                // So may column(row) be one of its fields.
                if schema.is_none()
                    && record::is_record(arg.ty().oid)
                    && let Ok(field) = super::expr::field_of(arg, name, self.types())
                {
                    return Ok(field);
                }
                return Err(error.at(at));
            }
        };
        if self.definer.is_some() && asks_role(resolved.function.name) {
            return Err(SqlError::unsupported(format!(
                "calling {name} in a function with SECURITY DEFINER"
            ))
            .at(at));
        }
        let mut coerced = Vec::with_capacity(args.len());
        for (i, arg) in args.into_iter().enumerate() {
            let target = resolved.args.get(i).copied().unwrap_or(arg.ty());
            let function = resolved.function;
            let any = function.args.get(i).copied().or(function.variadic) == Some(oid::ANY);
            coerced.push(self.argument(arg, target, any, at)?);
        }
        // Fields are filled by their types, which know nothing of domains.
        if resolved.function.name.contains("_populate_record")
            && let Some(row) = coerced.first()
            && self.user_types().row_with_domains(row.ty().oid).is_none()
            && walk::any(row, &|e| self.domain_of(e).is_some())
        {
            let what = format!("{name} of a row with columns of domains");
            return Err(SqlError::unsupported(what).at(at));
        }
        if matches!(resolved.function.body, FunctionImpl::Run(_)) {
            return self.run_value(resolved.function, coerced, at);
        }
        // Domains are asked about its fields when the row is there.
        if super::from_function::rows_filled(resolved.function, &mut coerced, self.user_types())
            .is_some()
        {
            let value = match resolved.function.is_set() {
                true => self.set_call(resolved.function, coerced, resolved.result, at)?,
                false => self.call(resolved.function, coerced, resolved.result)?,
            };
            return self.as_row(value, resolved.result.oid);
        }
        if resolved.function.is_set() {
            self.refuse_settings_read(resolved.function, &coerced)
                .map_err(|e| e.at(at))?;
            return self.set_call(resolved.function, coerced, resolved.result, at);
        }
        // What a value is declared as, no value tells.
        if resolved.function.name == "pg_typeof"
            && let [arg] = coerced.as_slice()
            && let Some(domain) = self.domain_of(arg)
        {
            return Ok(Expr::Const(Datum::Oid(domain.get()), resolved.result));
        }
        // A NULL tells nothing about its column, the column's declaration does. One without a type has none.
        let untyped =
            matches!(coerced.as_slice(), [Expr::Const(Datum::Null, ty)] if ty.oid == oid::TEXT);
        if resolved.function.name == "pg_typeof"
            && !untyped
            && let [
                Expr::Column(_, ty)
                | Expr::Outer { ty, .. }
                | Expr::Param(_, ty)
                | Expr::Const(_, ty)
                | Expr::Coalesce(_, ty)
                | Expr::Case { ty, .. },
            ] = coerced.as_slice()
        {
            return Ok(Expr::Const(Datum::Oid(ty.oid.get()), resolved.result));
        }
        // Nor does a text tell that it is json, or of which kind of strings it is.
        if resolved.function.name == "pg_typeof"
            && let [arg] = coerced.as_slice()
            && (record::is_record(arg.ty().oid)
                || range::is_range(arg.ty().oid)
                || multirange::is_multirange(arg.ty().oid)
                || matches!(
                    arg.ty().oid,
                    oid::TEXT
                        | oid::JSON
                        | oid::XML
                        | oid::XML_ARRAY
                        | oid::JSON_ARRAY
                        | oid::VARCHAR
                        | oid::BPCHAR
                        | oid::CITEXT
                        | oid::HSTORE
                        | oid::NAME
                        | oid::INET
                        | oid::CIDR
                        | oid::REFCURSOR
                        | oid::VARBIT
                        | oid::XID
                        | oid::XID8
                        | oid::CID
                        | oid::TID
                        | oid::PG_SNAPSHOT
                        | oid::TXID_SNAPSHOT
                )
                || matches!(arg, Expr::Subquery(called) if called.call)
                || matches!(arg, Expr::SubLink(called) if called.call))
        {
            let told = Expr::Const(Datum::Oid(arg.ty().oid.get()), resolved.result);
            // What does something is evaluated for that.
            return Ok(match walk::is_volatile(arg) {
                true => Expr::Case {
                    arms: vec![(Expr::IsNull(Box::new(arg.clone()), false), told.clone())],
                    otherwise: Some(Box::new(told)),
                    ty: resolved.result,
                },
                false => told,
            });
        }
        if func::takes_labels(resolved.function) {
            let labels = enum_labels(
                coerced.first().map_or(oid::INVALID, |arg| arg.ty().oid),
                resolved.function.name,
                self.types(),
            );
            coerced.push(labels.map_err(|e| e.at(at))?);
        }
        self.call(resolved.function, coerced, resolved.result)
    }

    /// A call whose last argument is VARIADIC.
    pub(crate) fn variadic_call(
        &mut self,
        schema: Option<&str>,
        name: &str,
        args: Vec<Expr>,
        at: Option<usize>,
        array_at: Option<usize>,
    ) -> Result<Expr> {
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        let resolved = func::resolve_variadic(schema, name, &types, self.types()).map_err(
            |error| match error.code() == SqlState::DATATYPE_MISMATCH {
                true => error.at(array_at),
                false => error.at(at),
            },
        )?;
        if resolved.function.is_set() {
            return Err(SqlError::unsupported("VARIADIC in a call that gives rows").at(at));
        }
        let number = Datum::Oid(resolved.function.oid.get());
        let mut coerced = vec![Expr::Const(number, SqlType::of(oid::OID))];
        for (arg, target) in args.into_iter().zip(resolved.args) {
            coerced.push(self.argument(arg, target, target.oid == oid::ANY, at)?);
        }
        self.call(&func::VARIADIC_CALL, coerced, resolved.result)
    }

    /// An argument brought to the type that resolution chose. `any`: the function takes any type, which gives a
    /// parameter none.
    pub(crate) fn argument(
        &mut self,
        arg: Expr,
        target: SqlType,
        any: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        if any && matches!(arg, Expr::Param(..)) {
            return Ok(arg);
        }
        let arg = if is_pseudo(target.oid) {
            self.settle(arg)?
        } else {
            arg
        };
        // A modifier never comes from a signature.
        self.coerce(arg, SqlType::of(target.oid), CastContext::Implicit, at)
    }

    /// A set-returning function in a select list: its value is a column that `ProjectSet` fills.
    fn set_call(
        &mut self,
        function: &'static func::Function,
        args: Vec<Expr>,
        ty: SqlType,
        at: Option<usize>,
    ) -> Result<Expr> {
        let clause = self.clause();
        let frame = self.frame()?;
        if frame.in_aggregate {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "aggregate function calls cannot contain set-returning function calls",
            )
            .at(at));
        }
        if clause == super::Clause::From {
            return Err(SqlError::unsupported_text(
                "set-returning functions must appear at top level of FROM",
            )
            .at(at));
        }
        if !clause.allows_sets() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "set-returning functions are not allowed in {}",
                    clause.words()
                ),
            )
            .at(at));
        }
        let mut ty = ty;
        if ty.oid == oid::RECORD {
            let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
            let columns = self.cx.catalog.record_columns(function, &types);
            let populates = ["json_populate_recordset", "jsonb_populate_recordset"];
            if columns.is_empty() && populates.contains(&function.name) {
                let message = format!(
                    "could not determine row type for result of {}",
                    function.name
                );
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list.")
                    .at(at));
            }
            if columns.is_empty() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "function returning record called in context that cannot accept type record",
                )
                .at(at));
            }
            ty = record::record_type(&columns)?;
        }
        let id = self.computed(function.name, ty);
        let frame = self.frame()?;
        frame.sets.push((id, Expr::Call { function, args, ty }));
        frame.sets_at.push(at);
        Ok(Expr::Column(id, ty))
    }

    /// How many set-returning calls stand in the query block so far.
    pub(crate) fn sets_met(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.sets.len())
    }

    /// 0A000 if some have come since in what does not compute all its parts.
    pub(crate) fn refuse_sets_since(&self, met: usize, what: &str) -> Result<()> {
        if self.sets_met() <= met {
            return Ok(());
        }
        let at = self.frames.last().and_then(|frame| frame.sets_at.get(met));
        Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("set-returning functions are not allowed in {what}"),
        )
        .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
        .at(at.copied().flatten()))
    }
}

/// Does a built-in function go by the role that runs the statement?
fn asks_role(name: &str) -> bool {
    let known = [
        "currval",
        "lastval",
        "nextval",
        "pg_has_role",
        "row_security_active",
        "set_config",
        "setval",
    ];
    known.contains(&name) || (name.starts_with("has_") && name.ends_with("_privilege"))
}

/// The labels of an enum in order, as a constant.
fn enum_labels(ty: TypeId, wanted: &str, types: TypeLookup<'_>) -> Result<Expr> {
    let found = types.types.get(ty);
    let labels = found.as_ref().map_or(&[][..], |t| t.labels());
    // Only what is asked for has to be usable already.
    let labels = match wanted {
        "enum_first" => labels.get(..1).unwrap_or_default(),
        "enum_last" => labels.last().map_or(&[][..], std::slice::from_ref),
        _ => labels,
    };
    let values: Result<Vec<Datum>> = labels.iter().map(|l| user::usable(ty, l, types)).collect();
    let array = info::array_of(ty).unwrap_or(oid::ANYARRAY);
    Ok(Expr::Const(Datum::array(ty, values?), SqlType::of(array)))
}
