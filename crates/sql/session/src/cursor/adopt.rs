//! Portals of the protocol as cursors, and the other way round: to PostgreSQL they are one thing.
//!
//! A portal becomes a cursor when FETCH or MOVE names it, or when it is about to lock rows, which WHERE CURRENT OF may
//! want; Execute goes on with it then. All others stay portals, which keep less of what they give.

use super::{CurrentOfState, Cursor, CursorPosition, CursorRows, CursorState, Scrollability};
use crate::cached_plan::PermittedPlan;
use crate::client::Client;
use crate::open_transaction::BlockState;
use crate::portal::{Portal, PortalState};
use crate::{Session, aborted};
use logstead_sql_exec::Execution;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// A portal's row of `pg_cursors`.
pub(super) fn shown(name: &str, portal: &Portal) -> logstead_sql_catalog::context::CursorRow {
    logstead_sql_catalog::context::CursorRow {
        name: name.to_owned(),
        statement: portal.statement.text.text.to_string(),
        holdable: false,
        binary: false,
        scrollable: false,
        created: portal.created,
        current: logstead_sql_catalog::context::CurrentRow::default(),
    }
}

impl Session {
    /// Makes a cursor of the portal of that name if it is one of a query that may go on.
    pub(crate) async fn adopt_portal(&mut self, name: &str) -> Result<()> {
        let Some(portal) = self.portals.get(name) else {
            return Ok(());
        };
        let goes_on = matches!(
            portal.state,
            PortalState::Ready | PortalState::Running { .. } | PortalState::Done
        );
        if self.cursors.contains(name) || !portal.statement.is_query() || !goes_on {
            return Ok(());
        }
        let begins = matches!(portal.state, PortalState::Ready);
        let (statement, params) = (Rc::clone(&portal.statement), portal.params.clone());
        let permitted = match begins {
            true => {
                self.enter_as_of(&statement, &params).await?;
                Some(self.prepare_run(&statement).await?)
            }
            false => None,
        };
        let plan = match &permitted {
            Some(permitted) => permitted.cached(),
            None => self.plan(&statement)?,
        };
        if plan.writes() {
            return Err(SqlError::unsupported(
                "FETCH from a portal that changes rows",
            ));
        }
        let Some(mut portal) = self.portals.remove(name) else {
            return Ok(());
        };
        if portal.state.is_suspended() {
            self.suspended = self.suspended.saturating_sub(1);
        }
        let mut current_of = CurrentOfState::default();
        let columns = plan.columns.clone();
        let reads = plan.locks.iter().map(|(table, _)| table.id()).collect();
        let params = params.as_slice().into();
        let state = match (portal.state, permitted) {
            (PortalState::Running { plan, execution }, _) => CursorState::Running {
                plan,
                execution: Box::new(execution),
                params,
            },
            (_, Some(plan)) => {
                portal.role =
                    logstead_sql_catalog::context::RoleContext::current_role(&*self.context);
                self.begin_run(&plan.catalog).await?;
                let prepared = self.current_of_plan(&plan, &mut current_of)?;
                CursorState::Running {
                    plan,
                    execution: Box::new(Execution::new(prepared)),
                    params,
                }
            }
            (_, None) => CursorState::Ended,
        };
        let cursor = Cursor {
            view: None,
            reads,
            text: Rc::clone(&statement.text.text),
            columns,
            binary: false,
            formats: portal.formats,
            hold: false,
            back: Scrollability::Never,
            created: portal.created,
            level: portal.level,
            role: portal.role,
            persisted: false,
            rows: CursorRows::after(portal.given),
            place: CursorPosition {
                at: portal.given,
                at_start: portal.given == 0,
                at_end: matches!(state, CursorState::Ended),
            },
            state,
            current_of,
        };
        self.cursors.insert(name.to_owned(), cursor);
        Ok(())
    }

    /// Execute of a portal that is about to begin and will lock rows: it is a cursor from now on.
    pub(crate) async fn execute_as_cursor(
        &mut self,
        name: String,
        portal: Portal,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.portals.insert(name.clone(), portal);
        self.adopt_portal(&name).await?;
        self.execute_cursor(&name, rows_max, client).await
    }

    /// Execute of a cursor.
    pub(crate) async fn execute_cursor(
        &mut self,
        name: &str,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        if self.block == BlockState::Failed {
            return Err(aborted());
        }
        let mut cursor = self
            .cursors
            .take(name)
            .ok_or_else(|| crate::portal::unknown_cursor(name))?;
        let count = match rows_max {
            0 => u64::MAX,
            rows => rows,
        };
        let given = match cursor.state {
            CursorState::Failed => Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("portal \"{name}\" cannot be run"),
            )),
            _ => {
                client.start_rows(&cursor.columns, cursor.formats());
                let mut out = super::FetchDest {
                    client: &mut *client,
                    gives: true,
                };
                self.forward(&mut cursor, count, &mut out).await
            }
        };
        if given.is_err() {
            cursor.state = CursorState::Failed;
            cursor.rows = CursorRows::default();
        }
        self.cursors.insert(name.to_owned(), cursor);
        let given = given?;
        if given < count {
            client.command_complete(&format_args!("SELECT {given}"));
        } else {
            client.portal_suspended();
        }
        Ok(())
    }

    /// A plan that also tells which rows its rows come from, if it can.
    pub(super) fn current_of_plan(
        &mut self,
        plan: &PermittedPlan,
        current_of: &mut CurrentOfState,
    ) -> Result<Arc<logstead_sql_exec::Prepared>> {
        let Some(planned) = super::current_of_plan(plan.prepared.plan()) else {
            return Ok(Arc::clone(&plan.prepared));
        };
        current_of.tables = planned.tables;
        current_of.locks = planned.locks;
        if !planned.locks {
            current_of._view = Some(self.transaction()?.txn.view());
        }
        Ok(Arc::new(logstead_sql_exec::prepare(planned.plan)))
    }
}
