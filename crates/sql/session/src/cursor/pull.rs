//! Taking rows out of a cursor's plan: as they are fetched, and the rest of them before the transaction's snapshot
//! moves on.

use super::{Cursor, CursorState, ROWS_AT_ONCE};
use crate::Session;
use crate::client::{BufferedNotices, Client};
use crate::cursor::rows::CursorRows;
use crate::limits::run_with_limits;
use crate::portal::CollectedRows;
use logstead_sql_exec::wait::wait_for_file;
use logstead_sql_exec::{Progress, StatementContext};
use logstead_sql_types::error::Result;
use std::rc::Rc;
use std::sync::Arc;

impl Session {
    /// Takes up to `rows_max` rows out of a cursor's plan.
    pub(super) async fn pull(
        &mut self,
        cursor: &mut Cursor,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        let Some(mut view) = cursor.view.take() else {
            return self.pull_rows(cursor, rows_max, client).await;
        };
        self.transaction()?.txn.swap_view(&mut view);
        let pulled = self.pull_rows(cursor, rows_max, client).await;
        if let Some(open) = &mut self.open {
            open.txn.swap_view(&mut view);
        }
        // Nothing of a transaction stays with all rows.
        cursor.view = matches!(cursor.state, CursorState::Running { .. }).then_some(view);
        pulled
    }

    async fn pull_rows(
        &mut self,
        cursor: &mut Cursor,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<()> {
        let CursorState::Running {
            plan,
            execution,
            params,
        } = &mut cursor.state
        else {
            return Ok(());
        };
        let mut limits = self.limits();
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        let engine = self.worker.instance.engine.clone();
        context.catalog.replace(Arc::clone(&plan.catalog));
        self.set_deadline(limits);
        // A statement that failed may have left some.
        context.sleep_us.set(0);
        let mut collected = CollectedRows::within(engine.memory());
        let progress = loop {
            let open = self.transaction()?;
            let mut cx = StatementContext {
                txn: &mut open.txn,
                params,
                session: &*context,
                catalog: &plan.catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes,
                spill: Some(context.spill()),
            };
            let run = execution.run(&mut cx, rows_max, &mut collected);
            let progress = run_with_limits(&signals, limits, run).await?;
            if progress != Progress::Call {
                break progress;
            }
            self.answer(execution, plan, client).await?;
            limits = self.limits_left(limits)?;
        };
        if !context.restore_points.borrow().is_empty() {
            self.do_restore_points().await?;
        }
        if !context.restarts_asked.borrow().is_empty() {
            self.do_restarts().await?;
        }
        if let Some((number, limit)) = context.promotion_asked.take() {
            Box::pin(self.wait_for_promotion(number, limit)).await?;
        }
        if context.advisory.borrow().has_work() {
            self.wait_for_advisory_locks().await?;
        }
        if context.sleep_us.get() > 0 {
            self.sleep_as_asked().await?;
        }
        let rows = &mut cursor.rows;
        let allowance = context.spill();
        let spill = || Some(allowance.spill());
        rows.extend(collected.into_rows(), cursor.back, work_mem_bytes, spill)?;
        let held_bytes = rows.size_bytes();
        rows.held.set(held_bytes, Some(engine.memory()))?;
        while let Some(obstacle) = rows.behind()? {
            wait_for_file(obstacle, signals.statement()).await?;
        }
        match progress {
            Progress::Done { .. } => cursor.state = CursorState::Ended,
            Progress::Call | Progress::Suspended | Progress::Full { .. } => {
                // Each run counts its work anew.
                logstead_sql_types::interrupt::check_for_interrupts()?;
            }
        }
        Ok(())
    }

    /// Before a new statement moves the transaction's snapshot on, cursors take the rest of their rows, unless they
    /// have a view of their own.
    pub(crate) async fn settle_cursors(&mut self) -> Result<()> {
        self.end_plans(|cursor| cursor.view.is_none()).await
    }

    /// The transaction is about to commit: the cursors that outlive it take the rest of their rows.
    pub(crate) async fn hold_cursors(&mut self) -> Result<()> {
        self.end_plans(|cursor| cursor.hold).await
    }

    async fn end_plans(&mut self, which: impl Fn(&Cursor) -> bool) -> Result<()> {
        if !self.cursors.are_running() {
            return Ok(());
        }
        let running = |c: &Cursor| matches!(c.state, CursorState::Running { .. }) && which(c);
        let cursors = self.cursors.by_name.iter();
        let names: Vec<String> = cursors
            .filter(|(_, cursor)| running(cursor))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let Some(mut cursor) = self.cursors.take(&name) else {
                continue;
            };
            let mut pulled = Ok(());
            let mut nobody = BufferedNotices::default();
            let before = self.context.enter_role(cursor.role);
            while pulled.is_ok() && matches!(cursor.state, CursorState::Running { .. }) {
                pulled = self.pull(&mut cursor, ROWS_AT_ONCE, &mut nobody).await;
            }
            self.context.act_as(before);
            if pulled.is_err() {
                cursor.state = CursorState::Failed;
                cursor.rows = CursorRows::default();
            }
            self.cursors.insert(name, cursor);
            self.buffered_notices.append(&mut nobody.told);
            pulled?;
        }
        Ok(())
    }
}
