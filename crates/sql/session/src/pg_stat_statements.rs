//! What clients see of the statistics of statements: the view and its functions, for those who may.
//!
//! Does not: count (`statement_statistics`).

use crate::Session;
use crate::cached_plan::ParsedText;
use crate::cached_plan::Statement;
use crate::context::SessionContext;
use crate::statement_statistics::{PgssEntry, PgssHashKey, kind_of};
use logstead_sql_catalog::context::RoleContext;
use logstead_sql_catalog::context::StatementRow;
use logstead_sql_catalog::role::READ_ALL_STATS;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::{DatabaseOid, RoleId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// The counters of a statement.
    pub(crate) fn counted(&self, statement: &Statement) -> Arc<PgssEntry> {
        let text: &ParsedText = &statement.text;
        let role = self.context.current_role();
        // Of a text of several statements each is a kind of its own.
        let alone = text.statements.len() == 1;
        if alone
            && let Some(counted) = &*text.counted.0.borrow()
            && counted.kind.role == role
            && counted.kind.database == self.database
            && !counted.forgotten.load(Ordering::Relaxed)
        {
            return Arc::clone(counted);
        }
        let whole: &str = &text.text;
        let part = statement
            .parsed()
            .and_then(|parsed| whole.get(parsed.start..parsed.end));
        let (query, query_id) = kind_of(part.unwrap_or(whole));
        let kind = PgssHashKey {
            role,
            database: self.database,
            query_id,
        };
        let statistics = &self.worker.instance.statistics;
        let counted = statistics.of(kind, || query.into());
        if alone {
            text.counted.0.replace(Some(Arc::clone(&counted)));
        }
        counted
    }
}

impl SessionContext {
    pub(crate) fn statistics_rows(&self) -> Vec<StatementRow> {
        let roles = self.roles(&self.catalog.borrow());
        let me = self.current_role();
        let sees_all = roles.has_privileges_of(me, READ_ALL_STATS);
        self.instance
            .statistics
            .rows(|role| sees_all || roles.has_privileges_of(me, role))
    }

    /// `pg_stat_statements_reset`
    pub(crate) fn reset_statistics(&self, args: &[Datum]) -> Result<Datum> {
        self.superuser_only("reset the statistics of statements")?;
        let oid = |at: usize| match args.get(at) {
            Some(Datum::Oid(oid)) if *oid != 0 => Some(*oid),
            _ => None,
        };
        let query_id = match args.get(2) {
            Some(Datum::Int8(id)) => *id,
            _ => 0,
        };
        let (role, database) = (oid(0).map(RoleId::new), oid(1).map(DatabaseOid::new));
        self.instance.statistics.reset(role, database, query_id);
        Ok(Datum::text(""))
    }
}
