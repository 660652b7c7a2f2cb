//! Functions in FROM: their columns, WITH ORDINALITY, column definition lists, and UNNEST of several arrays.

use super::names::{FunctionName, output_name};
use super::routine::{ResolvedFunction, RoutineCall};
use super::{Binder, Clause, RelSource};
use crate::query::expr::Expr;
use crate::query::{From, FromList, Select};
use crate::{Node, OutputColumn, Plan, build};
use logstead_sql_catalog::ColumnOrigin;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{self, Alias, ColumnDefinition};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{Datum, SqlType, oid, record, user};
use logstead_types::SqlState;
use std::sync::Arc;

/// What is said of a function in FROM beside its call.
pub(super) struct RangeFunctionClauses<'n> {
    /// WITH ORDINALITY
    pub(super) ordinality: bool,
    /// What it is called.
    pub(super) alias: Option<&'n Alias>,
    /// The columns of its rows.
    pub(super) coldeflist: &'n [ColumnDefinition],
}

/// What a call in FROM calls.
enum CalledInFrom {
    Routine(RoutineCall),
    /// A built-in function, with these arguments.
    BuiltIn(Vec<Expr>),
}

/// What a column definition list behind all of an item may be said of.
fn check_coldeflist(item: &ast::RangeFunction) -> Result<()> {
    // UNNEST of several arrays is several functions.
    let is_unnest = |(function, _): &(ast::Expr, _)| match function {
        ast::Expr::FuncCall(call) => call.unnested().is_some(),
        _ => false,
    };
    if item.functions.iter().any(|(_, own)| !own.is_empty()) {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "multiple column definition lists are not allowed for the same function",
        ));
    }
    let (message, hint) = match item.functions.as_slice() {
        [function] if !item.is_rowsfrom && is_unnest(function) => (
            "UNNEST() with multiple arguments cannot have a column definition list",
            "Use separate UNNEST() calls inside ROWS FROM(), and attach a column definition list to each one.",
        ),
        [function] if item.ordinality && !is_unnest(function) => (
            "WITH ORDINALITY cannot be used with a column definition list",
            "Put the column definition list inside ROWS FROM().",
        ),
        [function] if !is_unnest(function) => return Ok(()),
        _ => (
            "ROWS FROM() with multiple functions cannot have a column definition list",
            "Put a separate column definition list for each function inside ROWS FROM().",
        ),
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message).hint(hint))
}

/// The type of a column of a column definition list. All texts are in one order, so nobody has needed COLLATE.
pub(super) fn defined_type(column: &ColumnDefinition, lookup: NameLookup<'_>) -> Result<SqlType> {
    match column.coll_clause {
        Some(_) => Err(SqlError::unsupported("COLLATE in a column definition list")),
        None => logstead_sql_catalog::type_name::sql_type(&column.type_name, lookup),
    }
}

impl Binder<'_> {
    /// UNNEST of several arrays side by side, as set-returning functions in one select list run.
    pub(super) fn unnest(
        &mut self,
        arrays: &[&ast::Expr],
        ordinality: bool,
        alias: Option<&Alias>,
    ) -> Result<FromList> {
        let known = TypeLookup {
            types: self.user_types(),
            search_path: &[],
        };
        let call = |name: &str, args: Vec<Expr>| -> Result<Expr> {
            let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
            let resolved = func::resolve_function(None, name, &types, known)?;
            Ok(Expr::Call {
                function: resolved.function,
                args,
                ty: resolved.result,
            })
        };
        let int4 = SqlType::of(oid::INT4);
        let mut exprs = Vec::with_capacity(arrays.len() + 1);
        let mut lengths = Vec::with_capacity(arrays.len());
        let mut columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)> = Vec::new();
        for array in arrays {
            let at = self.at(array.location());
            let bound = self.in_clause(Clause::From, |b| b.expr(array))?;
            lengths.push(call("cardinality", vec![bound.clone()]).map_err(|e| e.at(at))?);
            let set = call("unnest", vec![bound]).map_err(|e| e.at(at))?;
            columns.push(("unnest".into(), set.ty(), None));
            exprs.push(set);
        }
        if ordinality {
            let one = Expr::Const(Datum::Int4(1), int4);
            let last = Expr::Extreme(true, lengths, int4);
            exprs.push(call("generate_series", vec![one, last])?);
            columns.push(("ordinality".into(), SqlType::of(oid::INT8), None));
        }
        let described =
            |columns: &[(Arc<str>, SqlType, Option<ColumnOrigin>)]| -> Vec<OutputColumn> {
                columns
                    .iter()
                    .map(|(n, ty, origin)| OutputColumn {
                        domain: None,
                        name: n.to_string(),
                        ty: *ty,
                        origin: *origin,
                    })
                    .collect()
            };
        let one = Plan {
            node: Node::OneRow,
            columns: Vec::new(),
            rows: 1.0,
            cost: 0.01,
        };
        let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
        let node = Node::ProjectSet {
            input: Box::new(one),
            exprs,
        };
        let mut plan = Plan {
            node,
            columns: described(&columns),
            rows: 100.0,
            cost: 1.0,
        };
        if ordinality {
            let mut outputs = Vec::with_capacity(types.len());
            for (i, (ty, wanted)) in types.iter().zip(&columns).enumerate() {
                outputs.push(self.coerce(
                    Expr::Column(i, *ty),
                    wanted.1,
                    CastContext::Implicit,
                    None,
                )?);
            }
            plan = build::project(plan, outputs, described(&columns));
        }
        let rel = self.add_item(
            RelSource::Plan(Some(Box::new(plan))),
            columns,
            "unnest",
            alias,
        )?;
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }

    /// Functions in FROM.
    pub(super) fn range_function(&mut self, item: &ast::RangeFunction) -> Result<FromList> {
        if let Some(first) = item.coldeflist.first() {
            check_coldeflist(item).map_err(|e| e.at(self.at(first.location)))?;
        }
        let called = RangeFunctionClauses {
            ordinality: item.ordinality,
            alias: item.alias.as_deref(),
            coldeflist: &item.coldeflist,
        };
        match item.functions.as_slice() {
            functions if item.is_rowsfrom => self.rows_from(functions, &called),
            [(function, _)] => self.function_item(function, &called),
            _ => Err(SqlError::internal("no function in FROM")),
        }
    }

    /// A function in FROM, by whichever words (`func_expr_windowless`).
    pub(super) fn function_item(
        &mut self,
        function: &ast::Expr,
        called_as: &RangeFunctionClauses<'_>,
    ) -> Result<FromList> {
        match function {
            ast::Expr::FuncCall(call) if !call.agg_distinct && call.agg_order.is_empty() => {
                self.table_function(call, called_as)
            }
            // The grammar has neither in FROM.
            ast::Expr::FuncCall(_) => Err(SqlError::unsupported("this function in FROM")),
            value => self.value_item(value, called_as),
        }
    }

    /// COALESCE, CAST, CURRENT_DATE and their like in FROM: a row of the value.
    fn value_item(
        &mut self,
        value: &ast::Expr,
        called_as: &RangeFunctionClauses<'_>,
    ) -> Result<FromList> {
        let at = self.at(value.location());
        // As any function in FROM it has no aggregates. It is bound once: values within values would be bound 2^n
        // times.
        let (value_bound, own_ids) =
            self.in_block(|b| b.in_clause(Clause::From, |b| b.expr(value)))?;
        if !called_as.coldeflist.is_empty() {
            let message =
                "a column definition list is only allowed for functions returning \"record\"";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        if record::is_record(value_bound.ty().oid) {
            return Err(SqlError::unsupported("a row of this function in FROM").at(at));
        }
        let own = Alias::of(output_name(value, self.user_types()));
        let alias = called_as.alias.unwrap_or(&own);
        let value = self.settle(value_bound)?;
        let mut select = Select::default();
        self.output(alias.name.to_string(), value, &mut select.outputs);
        if called_as.ordinality {
            let one = Expr::Const(Datum::Int8(1), SqlType::of(oid::INT8));
            self.output("ordinality".to_owned(), one, &mut select.outputs);
        }
        let list = self.block_item(select, own_ids, Some(alias))?;
        if let Some(item) = self.frame()?.ns.last_mut() {
            item.scalar = !called_as.ordinality;
        }
        Ok(list)
    }

    /// A function in FROM that is called.
    fn table_function(
        &mut self,
        call: &ast::FuncCall,
        called_as: &RangeFunctionClauses<'_>,
    ) -> Result<FromList> {
        let at = self.at(call.location);
        // Several arrays side by side: no other function of the name takes as many.
        if let Some(arrays) = call.unnested() {
            return self.unnest(&arrays, called_as.ordinality, called_as.alias);
        }
        if called_as.ordinality {
            return self.ordinality_item(call, called_as, at);
        }
        match self.called_in_from(call, at)? {
            CalledInFrom::Routine(called) => self.inlined_item(called, called_as, at),
            CalledInFrom::BuiltIn(args) => self.built_in_item(call, args, called_as),
        }
    }

    /// What a call in FROM calls.
    fn called_in_from(&mut self, call: &ast::FuncCall, at: Option<usize>) -> Result<CalledInFrom> {
        let catalog = self.cx.catalog;
        let function = FunctionName::of(&call.funcname, &catalog.database_name)?;
        let called = self.in_clause(Clause::From, |b| b.routine_of_call(call, function, at))?;
        let chosen = match called {
            Some(ResolvedFunction::Routine(call)) => return Ok(CalledInFrom::Routine(call)),
            Some(ResolvedFunction::BuiltIn(args, None)) => Some(args),
            Some(ResolvedFunction::BuiltIn(_, Some(_))) => {
                return Err(SqlError::unsupported("VARIADIC in a call in FROM").at(at));
            }
            None => None,
        };
        let name = function.name;
        let args = match chosen {
            Some(args) => args,
            None => self.in_clause(Clause::From, |b| b.plain_args(call, name, at))?,
        };
        if function.oid.is_some() {
            return Err(super::function::no_stored_function(name, &args, self.types()).at(at));
        }
        Ok(CalledInFrom::BuiltIn(args))
    }

    /// A function in FROM WITH ORDINALITY. The rows of one that does not number them itself are those of the query
    /// that does.
    fn ordinality_item(
        &mut self,
        call: &ast::FuncCall,
        called_as: &RangeFunctionClauses<'_>,
        at: Option<usize>,
    ) -> Result<FromList> {
        let own = Alias::of(call.funcname.called().map_or("", |name| &**name));
        let alias = called_as.alias.unwrap_or(&own);
        // A function of one column calls it after its alias.
        let plain_alias = Alias::of(alias.name.clone());
        let plain = RangeFunctionClauses {
            ordinality: false,
            alias: Some(&plain_alias),
            coldeflist: &[],
        };
        // What it calls is known once its arguments are bound, which is done once: it happens in the query's block.
        let ((numbered, args), own_ids) =
            self.in_block(|b| match b.called_in_from(call, at)? {
                CalledInFrom::Routine(called) => b.in_frame(|b| {
                    let from = b.inlined_item(called, &plain, at)?;
                    Ok((Some(b.numbered(from)?), Vec::new()))
                }),
                CalledInFrom::BuiltIn(args) if b.is_run_built_in(call, &args)? => b.in_frame(|b| {
                    let from = b.built_in_item(call, args, &plain)?;
                    Ok((Some(b.numbered(from)?), Vec::new()))
                }),
                CalledInFrom::BuiltIn(args) => Ok((None, args)),
            })?;
        match numbered {
            Some(select) => self.block_item(select, own_ids, Some(alias)),
            None => self.built_in_item(call, args, called_as),
        }
    }

    /// Is a built-in function run by the session?
    fn is_run_built_in(&self, call: &ast::FuncCall, args: &[Expr]) -> Result<bool> {
        let FunctionName { schema, name, .. } =
            FunctionName::of(&call.funcname, &self.cx.catalog.database_name)?;
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        // Who binds the call says what is wrong with it.
        let resolved = func::resolve_function(schema, name, &types, self.types());
        Ok(resolved
            .is_ok_and(|resolved| matches!(resolved.function.body, func::FunctionImpl::Run(_))))
    }

    /// One of PostgreSQL's own functions in FROM, with its arguments.
    pub(super) fn built_in_item(
        &mut self,
        call: &ast::FuncCall,
        args: Vec<Expr>,
        called_as: &RangeFunctionClauses<'_>,
    ) -> Result<FromList> {
        let &RangeFunctionClauses {
            ordinality,
            alias,
            coldeflist,
        } = called_as;
        let at = self.at(call.location);
        let FunctionName { schema, name, .. } =
            FunctionName::of(&call.funcname, &self.cx.catalog.database_name)?;
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        let resolved =
            func::resolve_function(schema, name, &types, self.types()).map_err(|e| e.at(at))?;
        let mut coerced = Vec::with_capacity(args.len());
        for (i, arg) in args.into_iter().enumerate() {
            let target = resolved.args.get(i).copied().unwrap_or(arg.ty());
            let arg = if super::coerce::is_pseudo(target.oid) {
                self.settle(arg)?
            } else {
                arg
            };
            coerced.push(self.coerce(arg, SqlType::of(target.oid), CastContext::Implicit, at)?);
        }
        self.refuse_settings_read(resolved.function, &coerced)
            .map_err(|e| e.at(at))?;
        if resolved.function.volatility == func::Volatility::Volatile {
            self.volatile = true;
        }
        // A function of one result column names the column after its alias.
        let column_name: Arc<str> = match (func::result_name(resolved.function), alias) {
            (Some(name), _) => name.into(),
            (None, Some(alias)) => (&*alias.name).into(),
            (None, None) => name.into(),
        };
        let mut columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)> = Vec::new();
        // Columns that are declared as domains: these are asked when the rows are there.
        let mut declared: Vec<(usize, SqlType)> = Vec::new();
        // A column definition list says what the record is; the function gets it as the type of a NULL.
        let mut defined = None;
        if !coldeflist.is_empty() {
            if resolved.result.oid != oid::RECORD
                || !self
                    .cx
                    .catalog
                    .record_columns(resolved.function, &[])
                    .is_empty()
            {
                let message = match resolved.result.oid == oid::RECORD {
                    true => {
                        "a column definition list is redundant for a function with OUT parameters"
                    }
                    false => {
                        "a column definition list is only allowed for functions returning \"record\""
                    }
                };
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            let mut fields: Vec<(Arc<str>, SqlType)> = Vec::with_capacity(coldeflist.len());
            for (place, column) in coldeflist.iter().enumerate() {
                let ty = match defined_type(column, self.lookup())? {
                    ty if user::domain_in(ty.oid).is_some() => {
                        declared.push((place, ty));
                        self.user_types().base_type(ty)
                    }
                    ty => ty,
                };
                fields.push(((&*column.colname).into(), ty));
            }
            let wanted = record::record_type(&fields)?;
            let mut own = Alias::of(alias.map_or(name, |alias| &alias.name));
            if resolved.function.result == oid::ANYELEMENT {
                if described(coerced.first_mut(), &fields, wanted, self.types())
                    .map_err(|e| e.at(at))?
                {
                    own.colnames = coldeflist.iter().map(|c| c.colname.clone()).collect();
                }
            } else {
                coerced.insert(0, Expr::Const(Datum::Null, wanted));
            }
            defined = Some(own);
        }
        if !declared.is_empty() && resolved.function.result == oid::ANYELEMENT {
            return Err(SqlError::unsupported("a domain in a column definition list").at(at));
        }
        if let Some(row) = rows_filled(resolved.function, &mut coerced, self.user_types()) {
            let shape = self.user_types().declared_shape(row);
            let fields = shape.iter().flat_map(|shape| shape.iter()).enumerate();
            declared.extend(fields.map(|(place, (_, ty))| (place, *ty)));
            declared.retain(|(_, ty)| user::domain_in(ty.oid).is_some());
        }
        let is_defined = defined.is_some();
        let alias = defined.as_ref().or(alias);
        let types: Vec<SqlType> = coerced.iter().map(Expr::ty).collect();
        let of_records = types.first().is_some_and(|ty| ty.oid == oid::RECORD_ARRAY);
        let several = match of_records && !is_defined {
            // What their fields are called nobody has said.
            true => Vec::new(),
            false => self.cx.catalog.record_columns(resolved.function, &types),
        };
        if !several.is_empty() {
            columns.extend(several.into_iter().map(|(name, ty)| (name, ty, None)));
        } else if resolved.result.oid == oid::RECORD {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
            )
            .at(at));
        } else {
            columns.push((column_name, resolved.result, None));
        }
        if ordinality {
            columns.push(("ordinality".into(), SqlType::of(oid::INT8), None));
        }
        let mut asked = Vec::with_capacity(declared.len());
        for (place, ty) in declared {
            let Some((_, base, _)) = columns.get(place) else {
                continue;
            };
            let value = self.as_domain(Expr::Column(place, *base), ty.oid)?;
            asked.push((place, value));
        }
        let source = match resolved.function.body {
            func::FunctionImpl::Run(_) if ordinality => {
                return Err(SqlError::internal(
                    "a function that does not number its rows",
                ));
            }
            func::FunctionImpl::Run(_) => {
                let column = columns
                    .first()
                    .map_or_else(|| "".into(), |(n, ..)| Arc::clone(n));
                self.run_rows(resolved.function, coerced, column, at)?
            }
            _ => RelSource::Function {
                function: resolved.function,
                args: coerced,
                ordinality,
                asked,
            },
        };
        let scalar = columns.len() == 1 && !record::is_record(resolved.result.oid);
        let rel = self.add_item(source, columns, name, alias)?;
        let row = Some(resolved.result.oid).filter(|ty| user::is_composite(*ty));
        let composite = row.filter(|_| !ordinality);
        if let Some(item) = self.frame()?.ns.last_mut() {
            item.scalar = scalar;
            item.composite = composite;
        }
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }
}

/// Of a function that fills rows, which knows nothing of domains: the type of the rows if it has columns of domains.
/// The function is told that they are asked.
pub(super) fn rows_filled(
    function: &func::Function,
    args: &mut [Expr],
    types: &UserTypes,
) -> Option<TypeId> {
    let row = args
        .first_mut()
        .filter(|_| function.name.contains("_populate_record"))?;
    let (of, _) = types.row_with_domains(row.ty().oid)?;
    let ty = SqlType {
        oid: of,
        typmod: user::DOMAINS_ASKED,
    };
    let told = std::mem::replace(row, Expr::Const(Datum::Null, ty));
    *row = Expr::Relabel(Box::new(told), ty);
    Some(of)
}

/// Gives a record of which nothing is known the type that a column definition list says. One whose fields are known
/// must have these types; it keeps the names that it has, which are those that are looked for.
fn described(
    record: Option<&mut Expr>,
    fields: &[(Arc<str>, SqlType)],
    wanted: SqlType,
    types: TypeLookup<'_>,
) -> Result<bool> {
    let Some(record) = record else {
        return Ok(false);
    };
    let wrong = |detail: String| {
        let message = "function return row and query-specified return row do not match";
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
    };
    let array = record.ty().oid == oid::RECORD_ARRAY;
    let one = types.types.element_type(record.ty()).unwrap_or(record.ty());
    if let Some(shape) = types.types.tuple_desc_of(one) {
        if shape.len() != fields.len() {
            let plural = if shape.len() == 1 { "" } else { "s" };
            return wrong(format!(
                "Returned row contains {} attribute{plural}, but query expects {}.",
                shape.len(),
                fields.len()
            ));
        }
        for (i, ((_, found), (_, wanted))) in shape.iter().zip(fields).enumerate() {
            if found.oid != wanted.oid {
                return wrong(format!(
                    "Returned type {} at ordinal position {}, but query expects {}.",
                    types.format_type(SqlType::of(found.oid)),
                    i + 1,
                    types.format_type(SqlType::of(wanted.oid))
                ));
            }
        }
        return Ok(true);
    }
    if array {
        return Err(SqlError::unsupported(
            "a column definition list for an array of records of which nothing is known",
        ));
    }
    let inner = std::mem::replace(record, Expr::Const(Datum::Null, wanted));
    if !matches!(inner, Expr::Const(Datum::Null, _)) {
        *record = Expr::Relabel(Box::new(inner), wanted);
    }
    Ok(false)
}
