//! Loops.

use super::{Activation, Flow, Session};
use crate::client::{Client, LocalFuture};
use logstead_sql_parse::ast::FetchDirection;
use logstead_sql_parse::plpgsql::tree::{Argument, Expr, For, ForSource, Statement, Target, VarNo};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

use super::evaluate::QueryRows;

/// What a loop does after a round.
enum LoopControl {
    Again,
    Over(Flow),
}

fn after(flow: Flow, label: &Option<String>) -> LoopControl {
    match flow {
        Flow::Next | Flow::Continue(None) => LoopControl::Again,
        Flow::Exit(None) => LoopControl::Over(Flow::Next),
        Flow::Exit(Some(name)) if label.as_ref() == Some(&name) => LoopControl::Over(Flow::Next),
        Flow::Continue(Some(name)) if label.as_ref() == Some(&name) => LoopControl::Again,
        flow => LoopControl::Over(flow),
    }
}

impl Session {
    /// A loop over a cursor, which stands on the row of each round, so that WHERE CURRENT OF finds it.
    async fn cursor_loop(
        &mut self,
        act: &mut Activation,
        looped: &For,
        (cursor, args): (VarNo, &[Argument]),
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        let name = self.open_for_loop(act, cursor, args, client).await?;
        let ran = self.rounds_of_cursor(act, looped, &name, any, client).await;
        self.cursors.close(&name);
        ran
    }

    async fn rounds_of_cursor(
        &mut self,
        act: &mut Activation,
        looped: &For,
        name: &str,
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        loop {
            let next = FetchDirection::Forward(1);
            let (columns, mut rows) = self.fetch_rows(name, next, client).await?;
            let Some(row) = rows.pop_front() else {
                if !*any {
                    self.assign_row(act, &looped.targets, &columns, None)?;
                }
                return Ok(Flow::Next);
            };
            *any = true;
            if act.worked >= super::STATEMENTS_AT_ONCE {
                act.worked = 0;
                self.breathe().await?;
            }
            self.assign_row(act, &looped.targets, &columns, Some(&row))?;
            let body = &looped.body;
            if let LoopControl::Over(flow) = self.round(act, body, &looped.label, client).await? {
                return Ok(flow);
            }
        }
    }

    /// One round of a loop.
    async fn round(
        &mut self,
        act: &mut Activation,
        body: &[Statement],
        label: &Option<String>,
        client: &mut dyn Client,
    ) -> Result<LoopControl> {
        // A body without statements is a round, too.
        act.worked += 1;
        Ok(after(self.statements(act, body, client).await?, label))
    }

    /// LOOP and WHILE.
    pub(super) fn plain_loop<'a>(
        &'a mut self,
        act: &'a mut Activation,
        label: &'a Option<String>,
        condition: Option<&'a Expr>,
        body: &'a [Statement],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Flow>> {
        Box::pin(async move {
            loop {
                if act.worked >= super::STATEMENTS_AT_ONCE {
                    act.worked = 0;
                    self.breathe().await?;
                }
                if let Some(condition) = condition
                    && self.holds(act, condition, client).await? != Some(true)
                {
                    return Ok(Flow::Next);
                }
                if let LoopControl::Over(flow) = self.round(act, body, label, client).await? {
                    return Ok(flow);
                }
            }
        })
    }

    /// FOR and FOREACH.
    pub(super) fn for_loop<'a>(
        &'a mut self,
        act: &'a mut Activation,
        looped: &'a For,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Flow>> {
        Box::pin(async move {
            let mut any = false;
            let flow = match &looped.over {
                ForSource::Range {
                    bounds,
                    step,
                    reverse,
                } => {
                    let range = (&**bounds, step.as_ref(), *reverse);
                    self.range_loop(act, looped, range, &mut any, client).await
                }
                ForSource::Query(query) => {
                    let rows = self.open_query(act, query, client).await?;
                    self.rows_loop(act, looped, rows, &mut any, client).await
                }
                ForSource::Execute(query, params) => {
                    let rows = self.open_text(act, query, params, client).await?;
                    self.rows_loop(act, looped, rows, &mut any, client).await
                }
                ForSource::Cursor(cursor, args) => {
                    self.cursor_loop(act, looped, (*cursor, args), &mut any, client)
                        .await
                }
                ForSource::Array(array, slice) => {
                    self.array_loop(act, looped, array, *slice, &mut any, client)
                        .await
                }
            }?;
            act.found(any);
            Ok(flow)
        })
    }

    async fn bound(
        &mut self,
        act: &mut Activation,
        expr: &Expr,
        what: &str,
        client: &mut dyn Client,
    ) -> Result<i32> {
        match self.value_as(act, expr, oid::INT4, client).await? {
            Datum::Int4(value) => Ok(value),
            _ => Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("{what} of FOR loop cannot be null"),
            )),
        }
    }

    async fn range_loop(
        &mut self,
        act: &mut Activation,
        looped: &For,
        (bounds, step, reverse): (&(Expr, Expr), Option<&Expr>, bool),
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        let mut at = self.bound(act, &bounds.0, "lower bound", client).await?;
        let end = self.bound(act, &bounds.1, "upper bound", client).await?;
        let by = match step {
            Some(step) => self.bound(act, step, "BY value", client).await?,
            None => 1,
        };
        if by <= 0 {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "BY value of FOR loop must be greater than zero",
            ));
        }
        let Some(Target::Variable(counter)) = looped.targets.first() else {
            return Err(SqlError::internal("a loop without a counter"));
        };
        while if reverse { at >= end } else { at <= end } {
            *any = true;
            if act.worked >= super::STATEMENTS_AT_ONCE {
                act.worked = 0;
                self.breathe().await?;
            }
            act.values[*counter] = Datum::Int4(at);
            let body = &looped.body;
            if let LoopControl::Over(flow) = self.round(act, body, &looped.label, client).await? {
                return Ok(flow);
            }
            let next = match reverse {
                true => at.checked_sub(by),
                false => at.checked_add(by),
            };
            // Nothing is beyond the last integer.
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(Flow::Next)
    }

    /// What the rows are of stays in use until the loop ends.
    async fn rows_loop(
        &mut self,
        act: &mut Activation,
        looped: &For,
        rows: QueryRows,
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        let in_use = self.in_use.len();
        let locks = rows.plan().into_iter().flat_map(|plan| &plan.locks);
        let tables = locks.map(|(table, _)| table.id());
        self.in_use.extend(tables);
        let ran = self.rounds_of(act, looped, rows, any, client).await;
        self.in_use.truncate(in_use);
        ran
    }

    async fn rounds_of(
        &mut self,
        act: &mut Activation,
        looped: &For,
        mut rows: QueryRows,
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        while let Some(row) = self.next_row(&mut rows).await? {
            *any = true;
            if act.worked >= super::STATEMENTS_AT_ONCE {
                act.worked = 0;
                self.breathe().await?;
            }
            let columns = Session::columns_of(&rows);
            self.assign_row(act, &looped.targets, columns, Some(&row))?;
            let body = &looped.body;
            if let LoopControl::Over(flow) = self.round(act, body, &looped.label, client).await? {
                return Ok(flow);
            }
        }
        if !*any {
            let columns = Session::columns_of(&rows);
            self.assign_row(act, &looped.targets, columns, None)?;
        }
        Ok(Flow::Next)
    }

    async fn array_loop(
        &mut self,
        act: &mut Activation,
        looped: &For,
        array: &Expr,
        slice: usize,
        any: &mut bool,
        client: &mut dyn Client,
    ) -> Result<Flow> {
        let (value, ty) = self.value(act, array, client).await?;
        let Some(element) = self.context.element_of(ty.oid) else {
            let shown = self.context.with_types(|types| types.format_type(ty));
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("FOREACH expression must yield an array, not type {shown}"),
            ));
        };
        let Datum::Array(array) = value else {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "FOREACH expression must not be null",
            ));
        };
        let dims = array.dims();
        if slice > dims.len() {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                format!(
                    "slice dimension ({slice}) is out of the valid range 0..{}",
                    dims.len()
                ),
            ));
        }
        if let [Target::Variable(variable)] = looped.targets.as_slice() {
            let is = act.types[*variable].oid;
            let is_array = self.context.element_of(is).is_some();
            let wrong = match slice {
                0 if is_array => Some("FOREACH loop variable must not be of an array type"),
                0 => None,
                _ if is_array || is == oid::UNKNOWN => None,
                _ => Some("FOREACH ... SLICE loop variable must be of an array type"),
            };
            if let Some(wrong) = wrong {
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, wrong));
            }
        }
        let element = SqlType {
            oid: element,
            typmod: ty.typmod,
        };
        // The dimensions of a slice are the last ones.
        let inner = dims.get(dims.len() - slice..).unwrap_or_default();
        let size: usize = inner
            .iter()
            .map(|dim| usize::try_from(dim.len).unwrap_or(0))
            .product();
        for items in array.items.chunks(size.max(1)) {
            *any = true;
            if act.worked >= super::STATEMENTS_AT_ONCE {
                act.worked = 0;
                self.breathe().await?;
            }
            let (value, of) = match slice {
                0 => (items.first().cloned().unwrap_or(Datum::Null), element),
                _ => {
                    let part = Array::shaped(array.element, inner, items.to_vec())?;
                    (Datum::Array(Arc::new(part)), ty)
                }
            };
            match looped.targets.as_slice() {
                [target] => self.put(act, target, Vec::new(), value, of)?,
                targets => {
                    let Some(shape) = self.context.tuple_desc_of(of) else {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            "cannot assign non-composite value to a row variable",
                        ));
                    };
                    let fields = super::values::fields_of(&value, shape.len());
                    let columns: Vec<OutputColumn> = { shape.iter() }
                        .map(|(name, ty)| OutputColumn {
                            name: name.to_string(),
                            ty: *ty,
                            domain: None,
                            origin: None,
                        })
                        .collect();
                    self.assign_row(act, targets, &columns, Some(&fields))?;
                }
            }
            let body = &looped.body;
            if let LoopControl::Over(flow) = self.round(act, body, &looped.label, client).await? {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }
}
