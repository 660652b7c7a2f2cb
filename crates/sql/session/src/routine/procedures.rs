//! CALL, as a statement of a client and of a body.

use super::calls::ReturnState;
use super::{Activation, Session};
use crate::Reply;
use crate::cached_plan::Statement;
use crate::client::{Client, LocalFuture};
use crate::portal::CollectedRows;
use logstead_sql_catalog::routine::{Language, Routine as Definition};
use logstead_sql_exec::{EvalContext, eval};
use logstead_sql_parse::ast::{self, CallStmt, Stmt};
use logstead_sql_parse::plpgsql::tree::{Expr, Target};
use logstead_sql_plan::OutputColumn;
use logstead_sql_plan::bind::{ProcedureCall, bind_procedure_call};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// The columns that CALL gives: a procedure's OUT and INOUT parameters.
pub(crate) fn call_columns(call: &ProcedureCall, types: &UserTypes) -> Vec<OutputColumn> {
    let outputs = call.routine.outputs();
    outputs
        .zip(1..)
        .map(|(arg, number): (_, usize)| OutputColumn {
            name: match arg.name.is_empty() {
                true => format!("column{number}"),
                false => arg.name.clone(),
            },
            ty: types.base_type(SqlType::of(arg.ty)),
            domain: None,
            origin: None,
        })
        .collect()
}

impl Session {
    /// What a CALL means.
    pub(crate) fn bound_call(
        &mut self,
        statement: &Statement,
        stmt: &CallStmt,
    ) -> Result<ProcedureCall> {
        let catalog = self.catalog()?;
        let text = Rc::clone(&statement.text.text);
        let (variables, declared) = (statement.variables.clone(), statement.declared.clone());
        let call = self.with_planning(&catalog, |cx| {
            let cx = logstead_sql_plan::PlanContext {
                param_types: &declared,
                parameters_fixed: !statement.takes_parameters,
                variables: variables.as_deref(),
                ..*cx
            };
            bind_procedure_call(&stmt.funccall, &text, &cx)
        })?;
        call.check(&mut self.context.checker(&catalog))
    }

    /// CALL.
    pub(crate) fn call<'a>(
        &'a mut self,
        statement: &'a Statement,
        stmt: &'a CallStmt,
        params: &'a [Datum],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Reply>> {
        Box::pin(async move {
            let call = self.bound_call(statement, stmt)?;
            if call.param_types.len() > params.len() {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_PARAMETER,
                    format!("there is no parameter ${}", params.len() + 1),
                ));
            }
            let atomic = self.is_atomic();
            self.begin_call().await?;
            let values = self.call_arguments(&call, params)?;
            let given = self.run_procedure(&call, values, atomic, client).await?;
            let columns = call_columns(&call, &self.context.types());
            Ok(match columns.is_empty() {
                true => Reply::tag("CALL"),
                false => Reply::Rows {
                    columns,
                    rows: vec![given],
                    tag: "CALL".to_owned(),
                },
            })
        })
    }

    /// CALL has a view of its own, as any statement: what others have not yet read they read before, with their own
    /// view and as their own role.
    async fn begin_call(&mut self) -> Result<()> {
        self.settle_suspended().await?;
        let open = self.transaction()?;
        open.txn.begin_statement();
        open.fix_snapshot();
        Ok(())
    }

    fn call_arguments(&self, call: &ProcedureCall, params: &[Datum]) -> Result<Vec<Datum>> {
        let cx = EvalContext {
            params,
            session: &*self.context,
        };
        call.args.iter().map(|arg| eval(arg, &[], &cx)).collect()
    }

    /// Runs a procedure; the values of its OUT and INOUT parameters.
    async fn run_procedure(
        &mut self,
        call: &ProcedureCall,
        values: Vec<Datum>,
        atomic: bool,
        client: &mut dyn Client,
    ) -> Result<Vec<Datum>> {
        let definition: &Arc<Definition> = &call.routine;
        let types: Vec<SqlType> = call
            .args
            .iter()
            .map(logstead_sql_plan::expr::Expr::ty)
            .collect();
        let role = definition.definer.then(|| {
            let catalog = self.context.catalog.borrow();
            catalog.owner_of(definition.oid)
        });
        let before = self.context.as_role.get();
        if let Some(role) = role {
            self.context.act_as(Some(role));
        }
        let settings = self.enter_settings(definition);
        let ran = match &settings {
            Ok(_) if definition.language == Language::Sql => {
                self.run_sql_procedure(definition, &types, values, client)
                    .await
            }
            Ok(_) => {
                self.run_body(definition, &types, values, atomic, client)
                    .await
            }
            Err(error) => Err(error.clone()),
        };
        self.context.act_as(before);
        let given = ran?;
        self.leave_settings(settings?)?;
        Ok(given)
    }

    /// The same of one of LANGUAGE plpgsql, with the role and the settings that it has.
    async fn run_body(
        &mut self,
        definition: &Arc<Definition>,
        types: &[SqlType],
        values: Vec<Datum>,
        atomic: bool,
        client: &mut dyn Client,
    ) -> Result<Vec<Datum>> {
        let routine = self.function(definition, types)?;
        let changes_itself = definition.definer || !definition.config.is_empty();
        let mut act = Activation::new(routine, atomic || changes_itself);
        let mut given = values.into_iter();
        let mut outputs = Vec::new();
        for (number, arg) in definition.args.iter().enumerate() {
            if arg.mode.is_input() {
                act.values[number] = given.next().unwrap_or(Datum::Null);
            }
            if arg.mode.is_output() {
                outputs.push(number);
            }
        }
        act.giving = Some(ReturnState {
            columns: Vec::new(),
            rows: CollectedRows::within(self.worker.instance.engine.memory()),
            outputs: outputs.clone(),
        });
        self.activate(&mut act, client).await?;
        let values = outputs.into_iter().map(|number| act.values[number].clone());
        Ok(values.collect())
    }

    /// CALL in a body: OUT and INOUT parameters go into the variables that stand there.
    pub(super) async fn call_in_body(
        &mut self,
        act: &mut Activation,
        statement: &Expr,
        client: &mut dyn Client,
    ) -> Result<()> {
        let piece = self
            .piece(act, statement)
            .map_err(|error| self.add_context(error, statement))?;
        let Some(Stmt::Call(stmt)) = piece.statement.utility() else {
            return self
                .sql_statement(act, statement, None, false, client)
                .await;
        };
        if let Some(parsed) = piece.statement.parsed() {
            let refused = self.refuse_utility_in_stable(parsed);
            refused.map_err(|error| self.add_context(error, statement))?;
        }
        let call = self
            .bound_call(&piece.statement, stmt)
            .map_err(|error| self.add_context(error, statement))?;
        let targets = self.writable(act, stmt, &call, statement)?;
        let params = Session::params_used_of(act, &piece, &call.params_used);
        self.begin_call().await?;
        let values = self.call_arguments(&call, &params);
        let values = values.map_err(|error| self.add_context(error, statement))?;
        let atomic = self.is_atomic();
        let ran = self.run_procedure(&call, values, atomic, client).await;
        let given = ran.map_err(|error| self.add_context(error, statement))?;
        let columns = call_columns(&call, &self.context.types());
        for ((target, value), column) in targets.iter().zip(given).zip(columns) {
            self.put(act, target, Vec::new(), value, column.ty)?;
        }
        Ok(())
    }

    /// The variables that stand where a procedure has OUT and INOUT parameters.
    fn writable(
        &self,
        act: &Activation,
        stmt: &CallStmt,
        call: &ProcedureCall,
        expr: &Expr,
    ) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        let mut given = stmt.funccall.args.iter();
        let (written, declared) = (given.len(), call.routine.args.len());
        let all = match call.routine.variadic() {
            None => written == declared,
            _ => written >= declared,
        };
        for arg in &call.routine.args {
            let written = match all || arg.mode.is_input() {
                true => given.next(),
                false => None,
            };
            if !arg.mode.is_output() {
                continue;
            }
            let variable = match written {
                Some(ast::FuncArg {
                    name: None,
                    value: ast::Expr::ColumnRef(column),
                    ..
                }) if !column.star && column.fields.len() == 1 => {
                    let parts: Vec<String> =
                        column.fields.iter().map(ToString::to_string).collect();
                    act.routine.body.variable_of(expr.scope, &parts)
                }
                _ => None,
            };
            let Some(variable) = variable else {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                        arg.name
                    ),
                ));
            };
            targets.push(Target::Variable(variable));
        }
        Ok(targets)
    }
}
