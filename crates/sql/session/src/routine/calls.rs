//! Calls of functions: out of a statement that is running, and back into it.
//!
//! Invariants:
//! - The statement that calls goes on as if nothing had been: with its own view of the data, its own events, its own
//!   catalog. What a function wrote it does not see.
//! - A function that is not volatile reads what the statement around it reads, and writes nothing.
//! - The role and the settings that a function asked for are given back however it ends.

use super::values::VariableKind;
use super::{Activation, Session};
use crate::cached_plan::CachedPlan;
use crate::client::{Client, LocalFuture};
use crate::portal::CollectedRows;
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::routine::{Language, Routine as Definition, RoutineBody};
use logstead_sql_catalog::trigger::BuiltInTrigger;
use logstead_sql_exec::{Caller, Execution, PendingCall, RowSink};
use logstead_sql_func::{self as func, FunctionImpl, RoutineFunction, SessionActions};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SettingValues;
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{Datum, SqlType, oid, record, user};
use logstead_types::{SqlState, TableId};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// What a function gives, and what it has given.
pub(super) struct ReturnState {
    /// The columns of a row of a set.
    pub(super) columns: Vec<SqlType>,
    /// A set's rows so far.
    pub(super) rows: CollectedRows,
    /// Variables of OUT parameters.
    pub(super) outputs: Vec<usize>,
}

/// 42804 unless a record has the fields that the list of columns behind the call says.
fn fits_list(ty: SqlType, wanted: &[SqlType], types: TypeLookup<'_>) -> Result<()> {
    let shape = types.types.tuple_desc_of(ty);
    let given = shape.iter().flat_map(|shape| shape.iter());
    let given: Vec<SqlType> = given.map(|(_, ty)| *ty).collect();
    let wrong = |detail: String| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "returned record type does not match expected record type",
        )
        .detail(detail)
    };
    if given.len() != wanted.len() {
        return Err(wrong(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            given.len(),
            wanted.len()
        )));
    }
    for (number, (given, wanted)) in (1..).zip(given.iter().zip(wanted)) {
        if given.oid != types.types.base_type(*wanted).oid {
            return Err(wrong(format!(
                "Returned type {} does not match expected type {} in column {number}.",
                types.format_type(*given),
                types.format_type(*wanted),
            )));
        }
    }
    Ok(())
}

/// The columns that are wanted of a function, as the types that they are declared to be: domains are asked.
fn declared_columns(
    definition: &Definition,
    wanted: &[SqlType],
    types: &UserTypes,
) -> Vec<SqlType> {
    let mut declared: Vec<TypeId> = definition.outputs().map(|arg| arg.ty).collect();
    if declared.is_empty() {
        let is_whole = matches!(wanted, [one] if one.oid == definition.result);
        match user::is_composite(definition.result) && !is_whole {
            true => {
                let shape = types.declared_shape(definition.result);
                let fields = shape.iter().flat_map(|shape| shape.iter());
                declared.extend(fields.map(|(_, ty)| ty.oid));
            }
            false => declared.push(definition.result),
        }
    }
    if declared.len() != wanted.len() {
        return wanted.to_vec();
    }
    let column = |(declared, wanted): (TypeId, &SqlType)| match user::domain_in(declared) {
        Some(_) => SqlType::of(declared),
        None => *wanted,
    };
    declared.into_iter().zip(wanted).map(column).collect()
}

impl Session {
    /// Runs the function that an execution waits for, and gives it the rows.
    pub(crate) fn answer<'a>(
        &'a mut self,
        execution: &'a mut Execution,
        plan: &'a CachedPlan,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        let tables = plan.locks.iter().map(|(table, _)| table.id()).collect();
        self.answer_caller(execution, tables, &plan.catalog, client)
    }

    /// The same of whatever stops for calls, which has these tables in use and was planned with this catalog.
    pub(crate) fn answer_caller<'a>(
        &'a mut self,
        caller: &'a mut dyn Caller,
        tables: Vec<TableId>,
        catalog: &'a Arc<Catalog>,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let call = caller
                .take_call()
                .ok_or_else(|| SqlError::internal("nothing was called"))?;
            let volatile = call.callee.volatile && self.stable == 0;
            let open = self.transaction()?;
            let view = volatile.then(|| open.txn.view());
            let aside = open.events.suspend();
            let in_use = self.in_use.len();
            self.in_use.extend(tables);
            self.stable += usize::from(!volatile);
            self.atomic += 1;
            let mut ran = self.call_function(&call, client).await;
            // What a cursor that it opened shows is what was there then.
            if volatile
                && ran.is_ok()
                && let Err(error) = self.settle_opened().await
            {
                ran = Err(error);
            }
            self.atomic = self.atomic.saturating_sub(1);
            self.stable -= usize::from(!volatile);
            self.in_use.truncate(in_use);
            if let Some(open) = &mut self.open {
                open.events.resume(aside);
                if let Some(view) = view {
                    open.txn.resume_view(view);
                }
            }
            self.context.catalog.replace(Arc::clone(catalog));
            user::enter(catalog);
            caller.answer(&call, ran?);
            Ok(())
        })
    }

    async fn call_function(
        &mut self,
        call: &PendingCall,
        client: &mut dyn Client,
    ) -> Result<VecDeque<Vec<Datum>>> {
        let built_in = func::function_by_oid(call.callee.oid).map(|f| f.body);
        if let Some(FunctionImpl::Run(function)) = built_in {
            let value = match function {
                RoutineFunction::XmlMap(function) => {
                    self.xml_map_call(function, call, client).await?
                }
                RoutineFunction::LargeObject(function) => {
                    self.large_object_call(function, call, client).await?
                }
            };
            return Ok(VecDeque::from([vec![value]]));
        }
        let catalog = self.catalog()?;
        if let Some(fired) = &call.trigger
            && let Some((which, _)) = BuiltInTrigger::by_oid(call.callee.oid)
        {
            return super::built_in::run(which, fired, &*self.context);
        }
        let found = catalog.routines.get(call.callee.oid).cloned();
        let definition = found.ok_or_else(|| {
            SqlError::internal(format!(
                "cache lookup failed for function {}",
                call.callee.oid
            ))
        })?;
        let role = match (definition.definer, call.acted_on()) {
            (true, _) => Some(catalog.owner_of(definition.oid)),
            // An action of a foreign key does all as the owner of the table that it changes.
            (false, Some(table)) => catalog.table_acts_as(table),
            (false, None) => None,
        };
        let before = self.context.as_role.get();
        if let Some(role) = role {
            self.context.act_as(Some(role));
        }
        let settings = self.enter_settings(&definition);
        let ran = match settings {
            Ok(_) => match &call.trigger {
                Some(fired) => self.run_trigger(&definition, fired, client).await,
                None => self.run_function(&definition, call, client).await,
            },
            Err(ref error) => Err(error.clone()),
        };
        self.context.act_as(before);
        if let (Ok(old), true) = (settings, ran.is_ok()) {
            self.leave_settings(old)?;
        }
        ran
    }

    /// Puts what was set before.
    pub(super) fn leave_settings(&mut self, old: Vec<(String, String)>) -> Result<()> {
        for (name, value) in old.into_iter().rev() {
            self.context.set_setting(&name, &value, true)?;
        }
        Ok(())
    }

    /// Puts the settings of a function's SET clauses; what was set before.
    pub(super) fn enter_settings(
        &mut self,
        definition: &Definition,
    ) -> Result<Vec<(String, String)>> {
        let mut old = Vec::new();
        for item in &definition.config {
            let Some((name, value)) = item.split_once('=') else {
                continue;
            };
            if let Some(before) = self.context.setting(name) {
                old.push((name.to_owned(), before));
            }
            self.context.set_setting(name, value, true)?;
        }
        Ok(old)
    }

    async fn run_function(
        &mut self,
        definition: &Arc<Definition>,
        call: &PendingCall,
        client: &mut dyn Client,
    ) -> Result<VecDeque<Vec<Datum>>> {
        if definition.language == Language::Sql {
            return self.sql_function(definition, call, client).await;
        }
        let routine = self.function(definition, &call.types)?;
        let mut act = Activation::new(routine, true);
        let mut values = call.args.iter().cloned();
        for (number, arg) in definition.args.iter().enumerate() {
            if arg.mode.is_input() {
                act.values[number] = values.next().unwrap_or(Datum::Null);
            }
        }
        let callee = &call.callee;
        let outputs = definition.args.iter().enumerate();
        let outputs = outputs
            .filter(|(_, arg)| arg.mode.is_output())
            .map(|(number, _)| number);
        act.giving = Some(ReturnState {
            columns: declared_columns(definition, &callee.columns, &self.context.types()),
            rows: CollectedRows::within(self.worker.instance.engine.memory()),
            outputs: outputs.collect(),
        });
        self.activate(&mut act, client).await?;
        let Some(giving) = act.giving.take() else {
            return Err(SqlError::internal("a function lost what it gives"));
        };
        if callee.set {
            return Ok(giving.rows.into_rows());
        }
        let listed = match callee.row {
            true => callee.columns.as_slice(),
            false => &[],
        };
        let given = self.result(&mut act, &giving, definition, (callee.result, listed));
        let value = given.map_err(|error| error.context(act.context()))?;
        let row = match callee.row {
            false => vec![value],
            true => match value {
                Datum::Array(array) => array.items.clone(),
                _ => vec![Datum::Null; callee.columns.len()],
            },
        };
        Ok(VecDeque::from([row]))
    }

    /// What a function that gives no set gives.
    fn result(
        &mut self,
        act: &mut Activation,
        giving: &ReturnState,
        definition: &Definition,
        (result, wanted): (SqlType, &[SqlType]),
    ) -> Result<Datum> {
        if let [only] = giving.outputs.as_slice() {
            return Ok(act.values[*only].clone());
        }
        if !giving.outputs.is_empty() {
            let outputs = giving.outputs.iter();
            return Ok(record::record(
                outputs.map(|number| act.values[*number].clone()).collect(),
            ));
        }
        if definition.result == oid::VOID {
            return Ok(Datum::text(""));
        }
        let Some((value, ty)) = act.returned.take() else {
            return Err(SqlError::new(
                SqlState::new(b"2F005"),
                "control reached end of function without RETURN",
            ));
        };
        (act.line, act.doing) = (0, "while casting return value to function's return type");
        if definition.result == oid::RECORD && !wanted.is_empty() && record::is_record(ty.oid) {
            self.context
                .with_types(|types| fits_list(ty, wanted, types))?;
        }
        if user::is_composite(result.oid) && ty.oid == oid::RECORD && !value.is_null() {
            let shape = self.context.types().declared_shape(result.oid);
            let wanted: Vec<SqlType> = shape
                .iter()
                .flat_map(|s| s.iter())
                .map(|(_, ty)| *ty)
                .collect();
            if self.context.tuple_desc_of(ty).is_some() {
                self.context
                    .with_types(|types| fits_list(ty, &wanted, types))?;
            }
        }
        self.converted(act, value, ty, result)
    }

    /// A value as one of a type that may be a composite one.
    pub(super) fn converted(
        &self,
        act: &Activation,
        value: Datum,
        from: SqlType,
        to: SqlType,
    ) -> Result<Datum> {
        match VariableKind::of(to) {
            VariableKind::Row(to) if from.oid != to.oid && !value.is_null() => {
                let shape = match record::is_record(from.oid) {
                    true => self.context.tuple_desc_of(from),
                    false => None,
                };
                let Some(shape) = shape else {
                    return Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        "cannot return non-composite value from function returning composite type",
                    ));
                };
                let wanted = self.context.tuple_desc_of(to);
                if wanted.is_some_and(|wanted| wanted.len() != shape.len()) {
                    return Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        "returned record type does not match expected record type",
                    ));
                }
                let types: Vec<SqlType> = shape.iter().map(|(_, ty)| *ty).collect();
                let fields = super::values::fields_of(&value, types.len());
                self.row_value(act, to, fields, &types)
            }
            VariableKind::Row(_) => Ok(value),
            VariableKind::Record if record::is_record(from.oid) || value.is_null() => Ok(value),
            VariableKind::Record => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "cannot return non-composite value from function returning composite type",
            )),
            VariableKind::Scalar(to) => self.cast(act, value, from, to),
        }
    }

    /// A function's body, ready to be run with arguments of these types.
    pub(super) fn function(
        &mut self,
        definition: &Arc<Definition>,
        types: &[SqlType],
    ) -> Result<Rc<super::Routine>> {
        let catalog = self.catalog()?;
        let key = (definition.oid, types.to_vec());
        if let Some((made_with, routine)) = self.functions.get(&key)
            && Arc::ptr_eq(made_with, &catalog)
        {
            return Ok(Rc::clone(routine));
        }
        let path = self.context.path_in(&catalog);
        let known = self.context.lookup(&catalog, &path).types();
        let given = logstead_sql_catalog::body_context::body_context(definition, types, known);
        let RoutineBody::Text(text) = &definition.body;
        let shown = definition.signature(&definition.name, known);
        let routine = self.routine(text, shown, &given).map_err(|mut error| {
            let fields = error.fields_mut();
            if let Some(position) = fields.position.take() {
                fields.inner_query = Some((position, text.clone()));
            }
            error
        })?;
        let routine = Rc::new(routine);
        // Those of older catalogs are of no use any more.
        let current = |made_with: &Arc<_>| Arc::ptr_eq(made_with, &catalog);
        if self
            .functions
            .values()
            .any(|(made_with, _)| !current(made_with))
        {
            self.functions
                .retain(|_, (made_with, _)| current(made_with));
        }
        self.functions
            .insert(key, (Arc::clone(&catalog), Rc::clone(&routine)));
        Ok(routine)
    }

    /// RETURN NEXT.
    pub(super) async fn return_next(
        &mut self,
        act: &mut Activation,
        expr: Option<&logstead_sql_parse::plpgsql::tree::Expr>,
        client: &mut dyn Client,
    ) -> Result<()> {
        let given = match expr {
            Some(expr) => Some(self.value(act, expr, client).await?),
            None => None,
        };
        let Some(giving) = &act.giving else {
            return Err(SqlError::internal("a block gives no rows"));
        };
        let columns = giving.columns.clone();
        let row = match given {
            None => {
                let outputs = giving.outputs.iter();
                outputs.map(|number| act.values[*number].clone()).collect()
            }
            Some((value, ty)) => match columns.as_slice() {
                [only] if !record::is_record(ty.oid) || record::is_record(only.oid) => {
                    vec![self.converted(act, value, ty, *only)?]
                }
                _ => {
                    let shape = match record::is_record(ty.oid) {
                        true => self.context.tuple_desc_of(ty),
                        false => None,
                    };
                    let wrong = || {
                        SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            "wrong record type supplied in RETURN NEXT",
                        )
                    };
                    let shape = shape.ok_or_else(wrong)?;
                    if shape.len() != columns.len() {
                        return Err(wrong());
                    }
                    let fields = super::values::fields_of(&value, shape.len());
                    let mut row = Vec::with_capacity(columns.len());
                    for ((field, (_, from)), to) in
                        fields.into_iter().zip(shape.iter()).zip(&columns)
                    {
                        row.push(self.converted(act, field, *from, *to)?);
                    }
                    row
                }
            },
        };
        if let Some(giving) = &mut act.giving {
            giving.rows.row(&row)?;
        }
        Ok(())
    }

    /// RETURN QUERY.
    pub(super) async fn return_rows(
        &mut self,
        act: &mut Activation,
        mut rows: super::evaluate::QueryRows,
    ) -> Result<()> {
        let catalog = match rows.plan() {
            Some(plan) => Arc::clone(&plan.catalog),
            None => self.catalog()?,
        };
        // As they are declared: a domain is no other type.
        let columns = Session::columns_of(&rows).iter();
        let given: Vec<SqlType> = columns
            .map(|c| c.domain_in(&catalog).map_or(c.ty, SqlType::of))
            .collect();
        let Some(giving) = &act.giving else {
            return Err(SqlError::internal("a block gives no rows"));
        };
        let wanted = &giving.columns;
        let wrong = |detail: String| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "structure of query does not match function result type",
            )
            .detail(detail)
        };
        if given.len() != wanted.len() {
            return Err(wrong(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                given.len(),
                wanted.len()
            )));
        }
        for (number, (given, wanted)) in (1..).zip(given.iter().zip(wanted)) {
            let same = match user::domain_in(wanted.oid) {
                Some(_) => given.oid == wanted.oid,
                None => catalog.types.base_type(*given).oid == catalog.types.base_type(*wanted).oid,
            };
            if !same {
                let (given, wanted) = self
                    .context
                    .with_types(|types| (types.format_type(*given), types.format_type(*wanted)));
                return Err(wrong(format!(
                    "Returned type {given} does not match expected type {wanted} in column {number}."
                )));
            }
        }
        let mut count = 0;
        while let Some(row) = self.next_row(&mut rows).await? {
            count += 1;
            if let Some(giving) = &mut act.giving {
                giving.rows.row(&row)?;
            }
        }
        act.row_count = count;
        act.found(count > 0);
        Ok(())
    }
}
