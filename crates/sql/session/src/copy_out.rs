//! COPY table or query TO STDOUT.

use super::cached_plan::Statement;
use super::client::Client;
use super::copy_format::{CopyFormat, ForceColumns, write_field};
use super::{Reply, Session, SessionContext, copy_binary};
use crate::copy_options::copied_columns;
use crate::limits::run_with_limits;
use logstead_sql_catalog::{RelationKind, text::quote_ident};
use logstead_sql_exec::{Execution, Progress, RowSink, StatementContext};
use logstead_sql_parse::ast::{Name, RangeVar};
use logstead_sql_types::encoding::ConversionDirection;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{self, Datum, SqlType};
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// Rows as lines of COPY data.
struct CopyDest<'a> {
    client: &'a mut dyn Client,
    format: &'a CopyFormat,
    columns: &'a [(SqlType, bool)],
    context: &'a SessionContext,
    line: &'a mut Vec<u8>,
    field: &'a mut Vec<u8>,
}

impl RowSink for CopyDest<'_> {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        if self.format.binary {
            // The header leaves with the first row.
            let encoding = self.format.encoding;
            copy_binary::write_row(row, self.columns, encoding, self.line)?;
            self.client.copy_out_data(self.line)?;
            self.line.clear();
            return Ok(());
        }
        self.line.clear();
        let style = self.context.output_style();
        for (i, (datum, (ty, quote_it))) in row.iter().zip(self.columns).enumerate() {
            if i > 0 {
                self.line.push(self.format.delimiter);
            }
            let alone = self.columns.len() == 1;
            if matches!(datum, Datum::Null) {
                write_field(self.line, None, self.format, false, alone)?;
            } else {
                self.field.clear();
                value::text_io::output(datum, *ty, &style, self.field)?;
                // Each byte may be escaped.
                logstead_sql_types::memory::ready(self.line, self.field.len().saturating_mul(2))?;
                write_field(self.line, Some(self.field), self.format, *quote_it, alone)?;
            }
        }
        self.line.push(b'\n');
        tell(self.line, self.format, self.field, self.client)
    }

    fn is_full(&self) -> bool {
        self.client.is_full()
    }
}

/// Sends a line, in the encoding that was asked for.
fn tell(
    line: &[u8],
    format: &CopyFormat,
    buffer: &mut Vec<u8>,
    client: &mut dyn Client,
) -> Result<()> {
    let Some(encoding) = format.encoding else {
        return client.copy_out_data(line);
    };
    buffer.clear();
    encoding.convert(line, ConversionDirection::ToClient, buffer)?;
    client.copy_out_data(buffer)
}

impl Session {
    /// The query that gives the rows of a table, or some of their columns.
    pub(super) fn rows_of_table(&mut self, name: &RangeVar, columns: &[Name]) -> Result<Statement> {
        let catalog = self.catalog()?;
        let relation = self.find_relation(&catalog, name)?;
        // Whether rows may be read at all is asked before which of them.
        let positions = copied_columns(&relation, columns)?;
        self.must_read(&catalog, &relation, &positions)?;
        if matches!(relation.kind, RelationKind::Sequence(_)) {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot copy from sequence \"{}\"", relation.name),
            ));
        }
        if relation.view().is_some() {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "cannot copy from {} \"{}\"",
                    if relation.has_rows() {
                        "materialized view"
                    } else {
                        "view"
                    },
                    relation.name
                ),
            )
            .hint("Try the COPY (SELECT ...) TO variant."));
        }
        let names = positions.into_iter();
        let names = names.map(|position| quote_ident(&relation.columns[position].name));
        let text = format!(
            "SELECT {} FROM {}.{}",
            names.collect::<Vec<_>>().join(", "),
            quote_ident(&relation.schema_name),
            quote_ident(&relation.name)
        );
        let parsed = self.worker.caches.borrow_mut().parse(&text)?;
        Ok(Statement::new(parsed, Some(0), Vec::new()))
    }

    pub(super) async fn copy_to(
        &mut self,
        once: Statement,
        format: CopyFormat,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        let plan = self.prepare_run(&once).await?;
        if !plan.gives_rows() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "COPY query must have a RETURNING clause",
            ));
        }
        let columns: Vec<(SqlType, bool)> = plan
            .columns
            .iter()
            .map(|column| {
                let quoted = match &format.force_quote {
                    ForceColumns::All => true,
                    ForceColumns::These(names) => names.contains(&column.name),
                };
                (column.ty, quoted)
            })
            .collect();
        client.copy_out(columns.len(), format.binary);
        let (mut line, mut field) = (Vec::new(), Vec::new());
        if format.binary {
            copy_binary::write_header(&mut line);
        }
        if format.header {
            for (i, column) in plan.columns.iter().enumerate() {
                if i > 0 {
                    line.push(format.delimiter);
                }
                write_field(
                    &mut line,
                    Some(column.name.as_bytes()),
                    &format,
                    false,
                    columns.len() == 1,
                )?;
            }
            line.push(b'\n');
            tell(&line, &format, &mut field, client)?;
        }
        self.settle_suspended().await?;
        let limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        let engine = self.worker.instance.engine.clone();
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        context.catalog.replace(Arc::clone(&plan.catalog));
        let open = self.transaction()?;
        open.begin_statement();
        if self.is_at_replica() {
            self.check_seen(&plan.catalog)?;
        }
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let mut rows_given = 0;
        loop {
            let open = self.transaction()?;
            let mut cx = StatementContext {
                txn: &mut open.txn,
                params: &[],
                session: &*context,
                catalog: &plan.catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes,
                spill: Some(context.spill()),
            };
            let mut sink = CopyDest {
                client: &mut *client,
                format: &format,
                columns: &columns,
                context: &context,
                line: &mut line,
                field: &mut field,
            };
            let progress =
                run_with_limits(&signals, limits, execution.run(&mut cx, 0, &mut sink)).await?;
            if context.sleep_us.get() > 0 {
                self.sleep_as_asked().await?;
            }
            match progress {
                Progress::Done { rows } => {
                    if format.binary {
                        copy_binary::write_trailer(&mut line);
                        client.copy_out_data(&line)?;
                    }
                    client.copy_out_done();
                    return Ok(Reply::Tag(format!("COPY {}", rows_given + rows)));
                }
                Progress::Call => self.answer(&mut execution, &plan, client).await?,
                Progress::Suspended => return Err(SqlError::internal("COPY was suspended")),
                Progress::Full { rows } => {
                    logstead_sql_types::interrupt::check_for_interrupts()?;
                    rows_given += rows;
                    self.flush_batch(client).await?;
                }
            }
        }
    }
}
