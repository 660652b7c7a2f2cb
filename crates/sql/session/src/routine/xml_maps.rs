//! `table_to_xml`, `query_to_xml`, `schema_to_xml` and `database_to_xml`: rows as XML.
//!
//! Their queries are run by the privileges of who calls, and read what the statement around them reads. They change
//! nothing.

use super::Session;
use super::sql::{add_text_context, refuse_computed};
use crate::cached_plan::Statement;
use crate::client::{Client, LocalFuture};
use logstead_sql_exec::PendingCall;
use logstead_sql_func::SessionInfo;
use logstead_sql_func::{XmlMapFunction, append_value, xml_name};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::ObjectNames;
use logstead_types::SqlState;
use std::rc::Rc;

/// What the attributes are named by that say that a value is NULL.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// How rows are written.
#[derive(Clone, Copy)]
struct Style<'a> {
    /// NULLs are elements.
    nulls: bool,
    /// Each row is a document.
    forest: bool,
    /// The namespace of all.
    namespace: &'a str,
}

fn no_query() -> SqlError {
    SqlError::new(SqlState::DATA_EXCEPTION, "invalid query")
}

fn begin(name: &str, style: Style<'_>, is_top: bool, out: &mut Builder) -> Result<()> {
    out.push_byte(b'<')?;
    out.push_str(name)?;
    if is_top {
        out.push_str(" xmlns:xsi=\"")?;
        out.push_str(INSTANCE)?;
        out.push_byte(b'"')?;
        if !style.namespace.is_empty() {
            out.push_str(" xmlns=\"")?;
            out.push_str(style.namespace)?;
            out.push_byte(b'"')?;
        }
    }
    out.push_str(">\n")
}

fn end(name: &str, out: &mut Builder) -> Result<()> {
    out.push_str("</")?;
    out.push_str(name)?;
    out.push_str(">\n")
}

impl Session {
    /// Runs one of the functions.
    pub(super) fn xml_map_call<'a>(
        &'a mut self,
        function: XmlMapFunction,
        call: &'a PendingCall,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Datum>> {
        Box::pin(async move {
            let (what, said) = match call.args.as_slice() {
                [what, said @ ..] if said.len() == 3 => (Some(what), said),
                said => (None, said),
            };
            let [Datum::Bool(nulls), Datum::Bool(forest), namespace] = said else {
                return Ok(Datum::Null);
            };
            if what.is_some_and(Datum::is_null) || namespace.is_null() {
                return Ok(Datum::Null);
            }
            let style = Style {
                nulls: *nulls,
                forest: *forest,
                namespace: namespace.as_str()?,
            };
            let mut out = Builder::default();
            // Its query may call it again.
            self.enter_body().await?;
            self.stable += 1;
            let ran = match (function, what) {
                (XmlMapFunction::Query, Some(query)) => {
                    let query = query.as_str()?;
                    self.xml_of_query(query, None, style, true, &mut out, client)
                        .await
                }
                (XmlMapFunction::Table, Some(table)) => {
                    let table = RelationId::new(table.as_oid()?);
                    self.xml_of_table(table, style, true, &mut out, client)
                        .await
                }
                (XmlMapFunction::Schema, Some(schema)) => {
                    let schema = schema.as_str()?;
                    self.xml_of_schema(schema, style, true, &mut out, client)
                        .await
                }
                _ => self.xml_of_database(style, &mut out, client).await,
            };
            self.stable -= 1;
            self.routines = self.routines.saturating_sub(1);
            ran?;
            out.finish_text()
        })
    }

    /// Runs a query; `row` gets its columns and each of its rows.
    async fn each_row(
        &mut self,
        query: &str,
        client: &mut dyn Client,
        row: impl FnMut(&[logstead_sql_plan::OutputColumn], &[Datum]) -> Result<()>,
    ) -> Result<()> {
        let ran = self.each_row_of(query, client, row).await;
        ran.map_err(|error| match error.code() == SqlState::DATA_EXCEPTION {
            true => error,
            false => add_text_context(error, query),
        })
    }

    async fn each_row_of(
        &mut self,
        query: &str,
        client: &mut dyn Client,
        mut row: impl FnMut(&[logstead_sql_plan::OutputColumn], &[Datum]) -> Result<()>,
    ) -> Result<()> {
        let parsed = self.worker.caches.borrow_mut().parse(query)?;
        if parsed.statements.len() != 1 {
            return Err(no_query());
        }
        let statement = Statement::new(parsed, Some(0), Vec::new());
        refuse_computed(&statement)?;
        if !statement.is_query() {
            return match statement.parsed() {
                Some(parsed) => self.refuse_utility_in_stable(parsed),
                None => Err(no_query()),
            };
        }
        let plan = self.prepare_run(&statement).await?;
        if !plan.gives_rows() {
            return Err(no_query());
        }
        let mut rows = self.keep_rows(plan, Vec::new(), client).await?;
        while let Some(values) = self.next_row(&mut rows).await? {
            row(Session::columns_of(&rows), &values)?;
        }
        Ok(())
    }

    async fn xml_of_query(
        &mut self,
        query: &str,
        table: Option<&str>,
        style: Style<'_>,
        is_top: bool,
        out: &mut Builder,
        client: &mut dyn Client,
    ) -> Result<()> {
        let name = table.map(|table| xml_name(table, true, false));
        let whole = name.clone().unwrap_or_else(|| "table".to_owned());
        let of_row = name.unwrap_or_else(|| "row".to_owned());
        if !style.forest {
            begin(&whole, style, is_top, out)?;
            out.push_byte(b'\n')?;
        }
        let context = Rc::clone(&self.context);
        let mut names: Vec<String> = Vec::new();
        self.each_row(query, client, |columns, values| {
            if names.is_empty() {
                names.extend(columns.iter().map(|c| xml_name(&c.name, true, false)));
            }
            match style.forest {
                true => begin(&of_row, style, is_top, out)?,
                false => out.push_str("<row>\n")?,
            }
            for ((column, name), value) in columns.iter().zip(&names).zip(values) {
                if value.is_null() {
                    if style.nulls {
                        out.push_str("  <")?;
                        out.push_str(name)?;
                        out.push_str(" xsi:nil=\"true\"/>\n")?;
                    }
                    continue;
                }
                out.push_str("  <")?;
                out.push_str(name)?;
                out.push_byte(b'>')?;
                append_value(&*context, column.ty, value, true, out)?;
                out.push_str("</")?;
                out.push_str(name)?;
                out.push_str(">\n")?;
            }
            match style.forest {
                true => {
                    end(&of_row, out)?;
                    out.push_byte(b'\n')
                }
                false => out.push_str("</row>\n\n"),
            }
        })
        .await?;
        match style.forest {
            true => Ok(()),
            false => end(&whole, out),
        }
    }

    async fn xml_of_table(
        &mut self,
        table: RelationId,
        style: Style<'_>,
        is_top: bool,
        out: &mut Builder,
        client: &mut dyn Client,
    ) -> Result<()> {
        let shown = self.context.relation_name(table);
        let catalog = self.catalog()?;
        let found = catalog.relations.get(&table);
        let (Some(shown), Some(relation)) = (shown, found) else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation with OID {table} does not exist"),
            ));
        };
        let name = relation.name.clone();
        let query = format!("SELECT * FROM {shown}");
        self.xml_of_query(&query, Some(&name), style, is_top, out, client)
            .await
    }

    async fn xml_of_schema(
        &mut self,
        schema: &str,
        style: Style<'_>,
        is_top: bool,
        out: &mut Builder,
        client: &mut dyn Client,
    ) -> Result<()> {
        let literal = format!("'{}'", schema.replace('\'', "''"));
        let mut found = false;
        let known = format!("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {literal}");
        self.each_row(&known, client, |_, _| {
            found = true;
            Ok(())
        })
        .await?;
        if !found {
            return Err(SqlError::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{schema}\" does not exist"),
            ));
        }
        let tables = format!(
            "SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = {literal} AND c.relkind IN ('r', 'm', 'v') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY c.relname"
        );
        let tables = self.relations(&tables, client).await?;
        let name = xml_name(schema, true, false);
        begin(&name, style, is_top, out)?;
        out.push_byte(b'\n')?;
        for table in tables {
            self.xml_of_table(table, style, false, out, client).await?;
            out.push_byte(b'\n')?;
        }
        end(&name, out)
    }

    async fn xml_of_database(
        &mut self,
        style: Style<'_>,
        out: &mut Builder,
        client: &mut dyn Client,
    ) -> Result<()> {
        let name = xml_name(self.context.database(), true, false);
        let mut schemas: Vec<String> = Vec::new();
        let visible = "SELECT nspname::text FROM pg_catalog.pg_namespace WHERE pg_catalog.has_schema_privilege(oid, 'USAGE') \
                       AND NOT (nspname ~ '^pg_' OR nspname = 'information_schema') ORDER BY nspname";
        self.each_row(visible, client, |_, values| {
            if let [schema] = values {
                schemas.push(schema.as_str()?.to_owned());
            }
            Ok(())
        })
        .await?;
        begin(&name, style, true, out)?;
        out.push_byte(b'\n')?;
        for schema in schemas {
            self.xml_of_schema(&schema, style, false, out, client)
                .await?;
            out.push_byte(b'\n')?;
        }
        end(&name, out)
    }

    async fn relations(&mut self, query: &str, client: &mut dyn Client) -> Result<Vec<RelationId>> {
        let mut found = Vec::new();
        self.each_row(query, client, |_, values| {
            if let [one] = values {
                found.push(RelationId::new(one.as_oid()?));
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }
}
