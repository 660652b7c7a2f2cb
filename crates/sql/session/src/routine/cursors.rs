//! Cursors of bodies: variables that have the names of the session's cursors.
//!
//! A cursor that a body opens is one of the session's (`session::cursor`) by the name that its variable has. So SQL
//! names it as any other, whoever the name is given to goes on with it, and it stays open when the body has ended,
//! until its transaction does.

use super::sql::{
    add_text_context, is_not_a_query, many_queries, not_a_query_but, refuse_computed,
};
use super::{Activation, Session};
use crate::cached_plan::{PermittedPlan, Statement};
use crate::capturing_client::CapturingClient;
use crate::client::{Client, LocalFuture};
use crate::cursor::DeclareCursor;
use crate::portal::unknown_cursor;
use logstead_sql_parse::ast::{FETCH_ALL, FetchDirection, FetchStmt};
use logstead_sql_parse::plpgsql::tree::{
    Argument, Count, Direction, Expr, Fetch, OpenSource, VarNo,
};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::collections::VecDeque;
use std::rc::Rc;

/// A query that is to be opened: its plan, the values of its parameters, its text.
struct QueryToOpen {
    plan: PermittedPlan,
    params: Vec<Datum>,
    text: Rc<str>,
    scroll: Option<bool>,
}

/// Rows that were fetched, with their columns.
type Fetched = (Vec<OutputColumn>, VecDeque<Vec<Datum>>);

impl Session {
    /// The name that a cursor's variable has.
    fn cursor_name(&self, act: &Activation, variable: VarNo) -> Option<String> {
        match &act.values[variable] {
            Datum::Text(name) => Some(name.to_string()),
            _ => None,
        }
    }

    fn cursor_named(&self, act: &Activation, variable: VarNo) -> Result<String> {
        self.cursor_name(act, variable).ok_or_else(|| {
            let name = &act.routine.body.variables[variable].name;
            SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("cursor variable \"{name}\" is null"),
            )
        })
    }

    /// 42P03 if the name that the variable has is taken.
    fn refuse_open(&self, act: &Activation, variable: VarNo) -> Result<Option<String>> {
        let name = self.cursor_name(act, variable);
        match &name {
            Some(known) if self.cursors.contains(known) || self.portals.contains_key(known) => {
                Err(SqlError::new(
                    SqlState::DUPLICATE_CURSOR,
                    format!("cursor \"{known}\" already in use"),
                ))
            }
            _ => Ok(name),
        }
    }

    /// OPEN.
    pub(super) fn open_variable<'a>(
        &'a mut self,
        act: &'a mut Activation,
        variable: VarNo,
        opens: &'a OpenSource,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let name = self.refuse_open(act, variable)?;
            let declared = &act.routine.body.variables[variable];
            if name.is_none() && declared.constant {
                return Err(SqlError::new(
                    SqlState::new(b"22005"),
                    format!("variable \"{}\" is declared CONSTANT", declared.name),
                ));
            }
            let opened = match opens {
                OpenSource::Bound(args) => self.opened_bound(act, variable, args, client).await?,
                OpenSource::Query(scroll, query) => self.opened_query(act, query, *scroll).await?,
                OpenSource::Execute(scroll, query, params) => {
                    self.opened_text(act, query, params, *scroll, client)
                        .await?
                }
            };
            self.open_named(act, variable, name, opened, false).await?;
            Ok(())
        })
    }

    /// Opens the cursor that a loop goes over; its name.
    pub(super) fn open_for_loop<'a>(
        &'a mut self,
        act: &'a mut Activation,
        variable: VarNo,
        args: &'a [Argument],
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<String>> {
        Box::pin(async move {
            let name = self.refuse_open(act, variable)?;
            let opened = self.opened_bound(act, variable, args, client).await?;
            let is_new = name.is_none();
            // COMMIT in the loop leaves it its rows.
            let name = self.open_named(act, variable, name, opened, true).await?;
            if is_new {
                act.values[variable] = Datum::Null;
            }
            Ok(name)
        })
    }

    async fn opened_bound(
        &mut self,
        act: &mut Activation,
        variable: VarNo,
        args: &[Argument],
        client: &mut dyn Client,
    ) -> Result<QueryToOpen> {
        let routine = Rc::clone(&act.routine);
        let Some(cursor) = &routine.body.variables[variable].cursor else {
            return Err(SqlError::internal("a cursor that is bound to nothing"));
        };
        let of = &routine.body.variables[variable].name;
        let wrong = |text: String| SqlError::new(SqlState::SYNTAX_ERROR, text);
        let mut given: Vec<Option<&Expr>> = vec![None; cursor.args.len()];
        for (at, (name, expr)) in args.iter().enumerate() {
            let place = match name {
                None => at,
                Some(name) => {
                    let mut known = cursor.args.iter();
                    let is = |arg: &VarNo| routine.body.variables[*arg].name == *name;
                    known.position(is).ok_or_else(|| {
                        wrong(format!("cursor \"{of}\" has no argument named \"{name}\""))
                    })?
                }
            };
            let Some(slot) = given.get_mut(place) else {
                return Err(wrong(format!("too many arguments for cursor \"{of}\"")));
            };
            if slot.replace(expr).is_some() {
                let name = &routine.body.variables[cursor.args[place]].name;
                return Err(wrong(format!(
                    "value for parameter \"{name}\" of cursor \"{of}\" specified more than once"
                )));
            }
        }
        let mut values = Vec::with_capacity(given.len());
        for expr in given {
            let Some(expr) = expr else {
                return Err(wrong(format!("not enough arguments for cursor \"{of}\"")));
            };
            values.push(self.value(act, expr, client).await?);
        }
        for (arg, (value, ty)) in cursor.args.iter().zip(values) {
            self.assign_variable(act, *arg, value, ty)?;
        }
        self.opened_query(act, &cursor.query, cursor.scroll).await
    }

    async fn opened_query(
        &mut self,
        act: &mut Activation,
        query: &Expr,
        scroll: Option<bool>,
    ) -> Result<QueryToOpen> {
        let piece = self
            .piece(act, query)
            .map_err(|error| self.add_context(error, query))?;
        if !piece.statement.is_query() {
            return Err(not_a_query_but(&piece.statement));
        }
        self.planned(act, query)?;
        let plan = self.prepare_run(&piece.statement).await;
        let plan = plan.map_err(|error| self.add_context(error, query))?;
        if !plan.gives_rows() {
            return Err(not_a_query_but(&piece.statement));
        }
        Ok(QueryToOpen {
            params: Session::params_of(act, &piece, &plan),
            plan,
            text: Rc::clone(&query.text),
            scroll,
        })
    }

    async fn opened_text(
        &mut self,
        act: &mut Activation,
        query: &Expr,
        params: &[Expr],
        scroll: Option<bool>,
        client: &mut dyn Client,
    ) -> Result<QueryToOpen> {
        let text = self.text_of(act, query, client).await?;
        let (values, types) = self.using(act, params, client).await?;
        let opened = async {
            let parsed = self.worker.caches.borrow_mut().parse(&text)?;
            if parsed.statements.len() != 1 {
                return Err(many_queries());
            }
            let statement = Statement::new(parsed, Some(0), types);
            refuse_computed(&statement)?;
            if !statement.is_query() {
                return Err(not_a_query_but(&statement));
            }
            let plan = self.prepare_run(&statement).await?;
            match plan.gives_rows() {
                true => Ok(plan),
                false => Err(not_a_query_but(&statement)),
            }
        };
        let plan = opened.await.map_err(|error| match is_not_a_query(&error) {
            true => error,
            false => add_text_context(error, &text),
        })?;
        Ok(QueryToOpen {
            plan,
            params: values,
            text: text.into(),
            scroll,
        })
    }

    /// Makes a cursor of an opened query, with a new name if it has none; its name.
    async fn open_named(
        &mut self,
        act: &mut Activation,
        variable: VarNo,
        name: Option<String>,
        opened: QueryToOpen,
        in_loop: bool,
    ) -> Result<String> {
        if opened.plan.writes() {
            return Err(SqlError::unsupported(
                "a cursor of PL/pgSQL over a statement that changes rows",
            ));
        }
        let is_new = name.is_none();
        let name = name.unwrap_or_else(|| self.unnamed_cursor());
        let declare = DeclareCursor {
            name: name.clone(),
            binary: false,
            insensitive: false,
            scroll: opened.scroll,
            hold: false,
        };
        let QueryToOpen {
            plan, params, text, ..
        } = opened;
        self.start_cursor(&declare, plan, text, &params).await?;
        if in_loop {
            self.cursors.goes_on(&name);
        }
        if is_new {
            let ty = SqlType::of(oid::REFCURSOR);
            self.assign_variable(act, variable, Datum::text(name.as_str()), ty)?;
        }
        Ok(name)
    }

    /// A name that no cursor has.
    fn unnamed_cursor(&mut self) -> String {
        loop {
            self.unnamed_cursors = self.unnamed_cursors.wrapping_add(1);
            let name = format!("<unnamed portal {}>", self.unnamed_cursors);
            if !self.cursors.contains(&name) && !self.portals.contains_key(&name) {
                return name;
            }
        }
    }

    /// Goes to a place of a cursor; the rows there.
    pub(super) fn fetch_rows<'a>(
        &'a mut self,
        name: &'a str,
        direction: FetchDirection,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Fetched>> {
        Box::pin(async move {
            let fetch = FetchStmt {
                portalname: name.into(),
                ismove: false,
                direction,
            };
            let mut quiet = CapturingClient::new(client, self.worker.instance.engine.memory());
            self.fetch(&fetch, &[], &mut quiet).await?;
            let rows = quiet.into_rows();
            let columns = self
                .cursors
                .columns(name)
                .map(|(columns, _)| columns.to_vec());
            let columns = columns.ok_or_else(|| unknown_cursor(name))?;
            Ok((columns, rows))
        })
    }

    /// FETCH and MOVE.
    pub(super) fn fetch_into<'a>(
        &'a mut self,
        act: &'a mut Activation,
        fetch: &'a Fetch,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let name = self.cursor_named(act, fetch.cursor)?;
            self.adopt_portal(&name).await?;
            if !self.cursors.contains(&name) {
                return Err(unknown_cursor(&name));
            }
            let direction = self.direction(act, &fetch.direction, client).await?;
            let Some(targets) = &fetch.targets else {
                let moved = FetchStmt {
                    portalname: name.into(),
                    ismove: true,
                    direction,
                };
                let mut quiet = CapturingClient::new(client, self.worker.instance.engine.memory());
                let count = self.fetched(&moved, &[], &mut quiet).await?;
                act.row_count = count;
                act.found(count > 0);
                return Ok(());
            };
            let (columns, rows) = self.fetch_rows(&name, direction, client).await?;
            act.row_count = rows.len() as u64;
            act.found(!rows.is_empty());
            self.assign_row(act, targets, &columns, rows.front().map(Vec::as_slice))
        })
    }

    async fn direction(
        &mut self,
        act: &mut Activation,
        direction: &Direction,
        client: &mut dyn Client,
    ) -> Result<FetchDirection> {
        let (of, count): (fn(i64) -> FetchDirection, &Count) = match direction {
            Direction::Forward(count) => (FetchDirection::Forward, count),
            Direction::Backward(count) => (FetchDirection::Backward, count),
            Direction::Absolute(count) => (FetchDirection::Absolute, count),
            Direction::Relative(count) => (FetchDirection::Relative, count),
        };
        let count = match count {
            Count::Known(count) => *count,
            Count::All => FETCH_ALL,
            Count::Computed(expr) => match self.value_as(act, expr, oid::INT4, client).await? {
                Datum::Int4(count) => i64::from(count),
                _ => {
                    return Err(SqlError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "relative or absolute cursor position is null",
                    ));
                }
            },
        };
        Ok(of(count))
    }

    /// CLOSE.
    pub(super) fn close_variable<'a>(
        &'a mut self,
        act: &'a mut Activation,
        variable: VarNo,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let name = self.cursor_named(act, variable)?;
            self.adopt_portal(&name).await?;
            match self.cursors.close(&name) {
                true => Ok(()),
                false => Err(unknown_cursor(&name)),
            }
        })
    }

    /// What a function has opened takes the rest of its rows: the statement that called it goes on with what it saw
    /// before.
    pub(super) fn settle_opened(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(self.settle_cursors())
    }
}
