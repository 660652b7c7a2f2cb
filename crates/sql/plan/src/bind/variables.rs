//! Variables of a procedural language, as the SQL in it sees them: parameters with names, in a frame around the whole
//! statement.
//!
//! Invariant: what is stored (views, policies, checks, defaults) is bound without the frames around it, and never sees
//! a variable.

use super::from_function::RangeFunctionClauses;
use super::scope::{NsColumn, NsColumnSource, NsItem};
use super::{Binder, Frame};
use crate::query::FromList;
use crate::query::expr::Expr;
use logstead_sql_parse::ast::{self, Alias, FuncName};
use logstead_sql_parse::plpgsql::tree::VariableConflict;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::oid;
use logstead_types::SqlState;
use std::sync::Arc;

impl Binder<'_> {
    /// Puts the variables around the statement.
    pub(crate) fn see_variables(&mut self) {
        let Some(variables) = self.cx.variables else {
            return;
        };
        self.params = variables.types.iter().map(|ty| Some(*ty)).collect();
        self.params_used = vec![false; self.params.len()];
        let column = |(name, number): &(Arc<str>, usize)| NsColumn {
            name: Arc::clone(name),
            what: NsColumnSource::Merged(Expr::Param(*number, variables.types[*number]), None),
            in_row: None,
        };
        let mut frame = Frame::new();
        frame.ns.push(NsItem {
            alias: "".into(),
            schema: None,
            hidden_name: None,
            columns: variables.names.iter().map(column).collect(),
            rel_visible: false,
            columns_visible: true,
            table: None,
            rel: None,
            row: None,
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        });
        for group in &variables.groups {
            frame.ns.push(NsItem {
                alias: Arc::clone(&group.name),
                schema: group.block.clone(),
                hidden_name: None,
                columns: group.members.iter().map(column).collect(),
                rel_visible: true,
                columns_visible: false,
                table: None,
                rel: None,
                row: None,
                composite: None,
                nullable: false,
                scalar: false,
                barred: None,
            });
        }
        frame.is_of_variables = true;
        self.frames.push(frame);
    }

    /// The parameter that a variable of the type refcursor is.
    pub(crate) fn cursor_variable(&mut self, name: &str) -> Option<usize> {
        let variables = self.cx.variables?;
        let (_, number) = variables.names.iter().find(|(known, _)| **known == *name)?;
        if variables.types.get(*number)?.oid != oid::REFCURSOR {
            return None;
        }
        *self.params_used.get_mut(*number)? = true;
        Some(*number)
    }

    /// A table that only the body sees, as the function call that gives its rows.
    pub(crate) fn body_table(
        &mut self,
        name: &str,
        alias: Option<&Alias>,
    ) -> Result<Option<FromList>> {
        let Some(variables) = self.cx.variables.filter(|_| self.variables().is_some()) else {
            return Ok(None);
        };
        let mut tables = variables.tables.iter();
        let Some((_, number)) = tables.find(|(known, _)| **known == *name) else {
            return Ok(None);
        };
        if let Some(used) = self.params_used.get_mut(*number) {
            *used = true;
        }
        let rows = Expr::Param(*number, variables.types[*number]);
        // By its schema: a function of the same name that somebody has made is not meant.
        let unnest = ast::FuncCall::of(FuncName::of(["pg_catalog", "unnest"]), []);
        let own = Alias::of(name);
        let called = RangeFunctionClauses {
            ordinality: false,
            alias: Some(alias.unwrap_or(&own)),
            coldeflist: &[],
        };
        self.built_in_item(&unnest, vec![rows], &called).map(Some)
    }

    /// Are there variables around what is being bound?
    pub(crate) fn variables(&self) -> Option<&Frame> {
        self.frames.first().filter(|frame| frame.is_of_variables)
    }

    /// A column was found in sight: does a variable have the same name, and which of them is meant? True is the
    /// variable.
    pub(crate) fn prefers_variable(&self, name: &str, at: Option<usize>) -> Result<bool> {
        let Some(frame) = self.variables() else {
            return Ok(false);
        };
        let known = frame.ns.iter().filter(|item| item.columns_visible);
        let known = known
            .flat_map(|item| &item.columns)
            .any(|c| *c.name == *name);
        self.judge_conflict(known, name, at)
    }

    /// The same of a name with a dot.
    pub(crate) fn prefers_field(&self, rel: &str, name: &str, at: Option<usize>) -> Result<bool> {
        let Some(frame) = self.variables() else {
            return Ok(false);
        };
        let known = frame.ns.iter().any(|item| {
            item.rel_visible && *item.alias == *rel && item.columns.iter().any(|c| *c.name == *name)
        });
        self.judge_conflict(known, &format!("{rel}.{name}"), at)
    }

    /// Is a name that is no column's in sight both a variable's and a FROM item's, whose row it means then? The item,
    /// if that is meant.
    pub(crate) fn row_beside_variable(
        &self,
        name: &str,
        at: Option<usize>,
    ) -> Result<Option<(usize, usize)>> {
        let Some(frame) = self.variables() else {
            return Ok(None);
        };
        let is_variable = frame.ns.iter().any(|item| {
            (item.columns_visible && item.columns.iter().any(|c| *c.name == *name))
                || (item.rel_visible && *item.alias == *name)
        });
        let is_column = { self.frames.iter().skip(1).flat_map(|frame| &frame.ns) }
            .any(|item| item.columns_visible && item.columns.iter().any(|c| *c.name == *name));
        if !is_variable || is_column {
            return Ok(None);
        }
        let found = self.find_item(None, name).map_err(|e| e.at(at))?;
        let Some(found) = found.filter(|(level, _)| *level > 0) else {
            return Ok(None);
        };
        Ok((!self.judge_conflict(true, name, at)?).then_some(found))
    }

    fn judge_conflict(&self, known: bool, name: &str, at: Option<usize>) -> Result<bool> {
        match self.cx.variables.map(|variables| variables.conflict) {
            Some(VariableConflict::Error) if known => Err(SqlError::new(
                SqlState::AMBIGUOUS_COLUMN,
                format!("column reference \"{name}\" is ambiguous"),
            )
            .detail("It could refer to either a PL/pgSQL variable or a table column.")
            .at(at)),
            Some(VariableConflict::UseVariable) => Ok(known),
            _ => Ok(false),
        }
    }

    /// Why a record has no such field, if a record is what was named.
    pub(crate) fn no_field(&self, index: usize, field: &str) -> Option<SqlError> {
        // Behind the variables themselves come the groups.
        let group = self.cx.variables?.groups.get(index.checked_sub(1)?)?;
        if group.unassigned {
            let error = SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("record \"{}\" is not assigned yet", group.name),
            );
            return Some(
                error.detail("The tuple structure of a not-yet-assigned record is indeterminate."),
            );
        }
        group.record.then(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{}\" has no field \"{field}\"", group.name),
            )
        })
    }

    /// `$1` in a body: the parameter with that number.
    pub(crate) fn numbered_variable(&mut self, name: &str, at: Option<usize>) -> Result<Expr> {
        match self.find_column(name, at)? {
            Some(expr) => Ok(expr),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter {name}"),
            )
            .at(at)),
        }
    }
}
