//! EXPLAIN [ANALYZE].

use super::utility::text_column;
use super::{Reply, Session};
use crate::error::{Result, SqlError};
use crate::exec::{self, Execution, Progress, RowSink, StoredColumn};
use crate::parse::{Parsed, StatementKind};
use crate::plan::{ExplainOptions, explain};
use crate::value::Datum;
use logstead_engine::RowRef;
use logstead_types::SqlState;
use sqlparser::ast;
use std::rc::Rc;
use std::sync::Arc;

/// Counts rows and forgets them.
struct Discarded;

impl RowSink for Discarded {
    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn stored_row(&mut self, _row: RowRef<'_>, _columns: &[StoredColumn]) -> Result<()> {
        Ok(())
    }
}

impl Session {
    pub(super) async fn explain(&mut self, parsed: &Parsed, text: &Rc<str>) -> Result<Reply> {
        let ast::Statement::Explain {
            analyze,
            verbose,
            statement,
            format,
            options,
            ..
        } = &*parsed.statement
        else {
            return Err(SqlError::unsupported("EXPLAIN of a table"));
        };
        let mut chosen = ExplainOptions {
            verbose: *verbose,
            ..ExplainOptions::default()
        };
        let (mut analyze, mut summary) = (*analyze, None);
        if let Some(format) = format {
            refuse_format(&format.to_string())?;
        }
        for option in options.iter().flatten() {
            let argument = option
                .arg
                .as_ref()
                .map(|arg| arg.to_string().trim_matches('\'').to_lowercase());
            let on = match argument.as_deref() {
                None => true,
                Some(word) => crate::settings::parse_bool(word).unwrap_or(true),
            };
            match option.name.value.to_lowercase().as_str() {
                "analyze" => analyze = on,
                "verbose" => chosen.verbose = on,
                "costs" => chosen.costs = on,
                "timing" => chosen.timing = on,
                "summary" => summary = Some(on),
                // Nothing more to say about these.
                "buffers" | "settings" | "wal" => {}
                "format" => refuse_format(&argument.unwrap_or_default())?,
                other => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized EXPLAIN option \"{other}\""),
                    ));
                }
            }
        }
        let (inner, types, params) = match &**statement {
            ast::Statement::Execute {
                name: Some(name),
                parameters,
                ..
            } => {
                let prepared = self.find_statement(&super::prepared::statement_name(name))?;
                let promise = self.promise(&prepared)?;
                let params = self.arguments(parameters, &promise.param_types)?;
                let types = promise.param_types.iter().map(|ty| Some(ty.oid)).collect();
                let parsed = prepared
                    .parsed()
                    .ok_or_else(|| SqlError::unsupported("EXPLAIN of nothing"))?;
                (Arc::clone(&parsed.statement), types, params)
            }
            other => (Arc::new(other.clone()), Vec::new(), Vec::new()),
        };
        if !matches!(crate::parse::kind_of(&inner), StatementKind::Query) {
            return Err(SqlError::unsupported(format!("EXPLAIN {inner}")));
        }
        let path = Rc::clone(&self.context.settings.borrow().typed().search_path);
        let clock = Arc::clone(&self.worker.instance.env.clock);
        let begun = clock.monotonic();
        let catalog = self.catalog()?;
        let mut planned = self.plan_ast(&inner, text, &types, &path, &catalog)?;
        let planning = clock.monotonic().since(begun);
        self.context
            .may_use(&super::permit::needs(&mut planned), &catalog)?;
        if !analyze {
            let mut lines = explain(&planned.plan, &chosen);
            if summary == Some(true) {
                lines.push(format!(
                    "Planning Time: {:.3} ms",
                    planning.as_secs_f64() * 1e3
                ));
            }
            return Ok(reply(lines));
        }
        // The plan is run as a statement of this transaction would be.
        let once = super::statement::Statement::once(Rc::clone(text), inner, types);
        let plan = self.prepare_run(&once).await?;
        self.settle_suspended().await?;
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        let engine = self.worker.instance.engine.clone();
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        context.catalog.replace(Arc::clone(&plan.catalog));
        let mut execution = Execution::measured(Arc::clone(&plan.prepared));
        let begun = clock.monotonic();
        let open = self.transaction()?;
        open.txn.begin_statement();
        loop {
            let mut cx = exec::ExecContext {
                txn: &mut open.txn,
                params: &params,
                session: &*context,
                catalog: &plan.catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes,
            };
            let progress =
                super::run::guarded(&signals, limits, execution.run(&mut cx, 0, &mut Discarded))
                    .await?;
            if matches!(progress, Progress::Done { .. } | Progress::Suspended) {
                break;
            }
        }
        let running = clock.monotonic().since(begun);
        let stats = execution.stats();
        let mut lines = explain(
            plan.prepared.plan(),
            &ExplainOptions {
                stats: Some(&stats),
                ..chosen
            },
        );
        if summary != Some(false) {
            lines.push(format!(
                "Planning Time: {:.3} ms",
                planning.as_secs_f64() * 1e3
            ));
            lines.push(format!(
                "Execution Time: {:.3} ms",
                running.as_secs_f64() * 1e3
            ));
        }
        Ok(reply(lines))
    }
}

fn refuse_format(format: &str) -> Result<()> {
    if format.eq_ignore_ascii_case("text") {
        return Ok(());
    }
    Err(SqlError::unsupported(format!(
        "EXPLAIN with FORMAT {}",
        format.to_uppercase()
    )))
}

fn reply(lines: Vec<String>) -> Reply {
    Reply::Rows {
        columns: vec![text_column("QUERY PLAN")],
        rows: lines
            .into_iter()
            .map(|line| vec![Datum::Text(line.into())])
            .collect(),
        tag: "EXPLAIN".to_owned(),
    }
}
