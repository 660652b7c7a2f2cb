//! The function call message: one function by its number, without a query. libpq's large objects are made of it.
//!
//! Owns: what the message says as a query of that call, and its result as bytes. It is a statement like any other:
//! outside of a block a transaction of its own.

use super::Session;
use super::cached_plan::Statement;
use super::client::Client;
use crate::capturing_client::CapturingClient;
use crate::open_transaction::BlockState;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_exec::Execution;
use logstead_sql_func as func;
use logstead_sql_types::encoding::ConversionDirection;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, binary_io, text_io};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

/// The body of FunctionCall.
pub struct FunctionCallRequest<'a> {
    /// OID of the function.
    pub function: FunctionId,
    /// Argument formats: none, one for all, or one each; 1 is binary.
    pub formats: &'a [i16],
    /// Arguments, `None` for NULL.
    pub values: &'a [Option<&'a [u8]>],
    /// Format of the result.
    pub result_format: i16,
}

/// The bytes of a result; none is NULL.
type ResultBytes = Option<Vec<u8>>;

impl Session {
    /// Runs a function call to its end; the result, unless it failed, which is told.
    pub async fn function_call(
        &mut self,
        call: &FunctionCallRequest<'_>,
        client: &mut dyn Client,
    ) -> Result<Option<ResultBytes>> {
        self.drop_portal("");
        self.in_simple_query = true;
        self.extended_since = None;
        let done = match self.call_by_number(call, client).await {
            Err(error) if !error.fields().fatal => {
                self.unwind().await;
                self.fail(error, client);
                None
            }
            result => Some(result?),
        };
        self.rest();
        Ok(done)
    }

    async fn call_by_number(
        &mut self,
        call: &FunctionCallRequest<'_>,
        client: &mut dyn Client,
    ) -> Result<ResultBytes> {
        self.begin_statement();
        self.report_activity("<FASTPATH> function call");
        if self.block == BlockState::Failed {
            return Err(SqlError::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        self.refuse_beside_as_of()?;
        self.follow_as_of().await?;
        self.follow_token().await?;
        let (text, types) = self.query_of_call(call)?;
        let mut params = Vec::with_capacity(types.len());
        for (at, (bytes, ty)) in call.values.iter().zip(&types).enumerate() {
            let binary = match call.formats {
                [] => false,
                [all] => *all == 1,
                each => each.get(at) == Some(&1),
            };
            params.push(self.parameter(*bytes, SqlType::of(*ty), binary)?);
        }
        let parsed = self.worker.caches.borrow_mut().parse(&text)?;
        let declared = types.into_iter().map(Some).collect();
        let statement = Statement::new(Rc::clone(&parsed), Some(0), declared);
        let plan = self.prepare_run(&statement).await?;
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let mut quiet = CapturingClient::new(client, self.worker.instance.engine.memory());
        self.run(&plan, &mut execution, &params, true, 0, &mut quiet)
            .await?;
        let row = quiet.into_rows().pop_front();
        let value = row.and_then(|row| row.into_iter().next());
        let ty = plan.columns.first().map(|column| column.ty);
        let bytes = match (value, ty) {
            (Some(value), Some(ty)) => self.result_bytes(&value, ty, call.result_format == 1)?,
            _ => None,
        };
        // Outside of a block it is committed before the client hears of it.
        if self.block == BlockState::None {
            self.commit(client).await?;
        }
        self.worker.step();
        Ok(bytes)
    }

    /// The call as a query, and the types of its parameters.
    fn query_of_call(&mut self, call: &FunctionCallRequest<'_>) -> Result<(String, Vec<TypeId>)> {
        let catalog = self.catalog()?;
        let unknown = || {
            SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function with OID {} does not exist", call.function),
            )
        };
        let (schema, name, types) = match func::function_by_oid(call.function) {
            Some(function) => {
                if function.is_set() || function.variadic.is_some() {
                    return Err(SqlError::unsupported(format!(
                        "the function call message for function {}",
                        function.name
                    )));
                }
                let (schema, name) = ("pg_catalog".to_owned(), function.name.to_owned());
                (schema, name, function.args.to_vec())
            }
            None => {
                let routine = catalog.routines.get(call.function).ok_or_else(unknown)?;
                if routine.set || routine.procedure || routine.variadic().is_some() {
                    return Err(SqlError::unsupported(format!(
                        "the function call message for {} {}",
                        routine.word(),
                        routine.name
                    )));
                }
                let (schema, name) = (routine.schema_name.clone(), routine.name.clone());
                (schema, name, routine.input_types())
            }
        };
        if types.len() != call.values.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "function call message contains {} arguments but function requires {}",
                    call.values.len(),
                    types.len()
                ),
            ));
        }
        if types.iter().any(|ty| func::is_polymorphic(*ty)) {
            return Err(SqlError::unsupported(format!(
                "the function call message for function {name}, whose arguments may be of any type"
            )));
        }
        let mut text = format!("SELECT {}.{}(", quote_ident(&schema), quote_ident(&name));
        for number in 1..=types.len() {
            let comma = if number > 1 { ", " } else { "" };
            let _writes = write!(text, "{comma}${number}");
        }
        text.push(')');
        Ok((text, types))
    }

    fn result_bytes(&self, value: &Datum, ty: SqlType, binary: bool) -> Result<ResultBytes> {
        if value.is_null() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match binary {
            true => binary_io::binary_output(value, ty, &mut bytes)?,
            false => text_io::output(value, ty, &self.context.output_style(), &mut bytes)?,
        }
        let encoding = self.context.client_encoding();
        if encoding.is_plain() {
            return Ok(Some(bytes));
        }
        let mut converted = Vec::new();
        match (binary, std::str::from_utf8(&bytes)) {
            (true, _) => encoding.convert_binary(
                ty.oid,
                &bytes,
                ConversionDirection::ToClient,
                &mut converted,
            )?,
            (false, Ok(text)) => encoding.encode(text, &mut converted)?,
            (false, Err(_)) => return Err(SqlError::internal("a text is not UTF-8")),
        }
        Ok(Some(converted))
    }
}
