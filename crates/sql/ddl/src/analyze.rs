//! ANALYZE and VACUUM: what tables hold is found out and kept, for the planner and for `pg_stats`.
//!
//! A small table's visible rows are all passed, so that its count is exact. Of a larger one some of its chunks are,
//! spread evenly over the table, each drawn from its part of it: the number of rows is what they have on average. Of
//! the rows that are passed a sample, in which each is as likely as any other, is looked at. So what it costs has a
//! bound, whatever the table's size. VACUUM has nothing to do by itself: old versions go while the server runs.

use super::{DdlContext, def_elem};
use logstead_engine::{PageFault, RowRef, ScanCursor, TableLock};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::statistics::{SampleValue, TableStatistics, of_column};
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::STATISTICS;
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_exec as exec;
use logstead_sql_exec::StoredColumn;
use logstead_sql_func::RandomNumbers;
use logstead_sql_parse::ast::{Name, VacuumRelation, VacuumStmt};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Values kept of a column, PostgreSQL's `default_statistics_target`.
const TARGET: usize = 100;
/// Rows looked at for each of them.
const ROWS_PER_TARGET: usize = 300;
/// The most chunks that are read of a table, of 64 rows each: ten times the rows of the sample, as many reads as a
/// second's at a slow disk.
const CHUNKS_MAX: u64 = 5_000;
/// Chunks that are passed between two yields.
const CHUNKS_PER_TURN: usize = 4;
/// Of a page of 8 KiB, what is left for rows.
const PAGE_BYTES: f64 = 8_168.0;
/// What a row takes beside its columns, in PostgreSQL's pages.
const ROW_BYTES: f64 = 28.0;

/// System relations that all databases share.
const SHARED: [&str; 11] = [
    "pg_auth_members",
    "pg_authid",
    "pg_database",
    "pg_db_role_setting",
    "pg_parameter_acl",
    "pg_replication_origin",
    "pg_shdepend",
    "pg_shdescription",
    "pg_shseclabel",
    "pg_subscription",
    "pg_tablespace",
];

/// What VACUUM or ANALYZE is to do.
struct VacuumParams<'a> {
    /// VACUUM was said.
    vacuum: bool,
    /// Statistics are to be gathered.
    analyze: bool,
    /// Tables with the columns that are named; none are all.
    relations: &'a [VacuumRelation],
}

impl VacuumParams<'_> {
    fn verb(&self) -> &'static str {
        if self.vacuum { "vacuum" } else { "analyze" }
    }

    /// What the options say (`ExecVacuum`).
    fn of(stmt: &VacuumStmt) -> Result<VacuumParams<'_>> {
        let vacuum = stmt.is_vacuumcmd;
        let mut params = VacuumParams {
            vacuum,
            analyze: !vacuum,
            relations: &stmt.rels,
        };
        let (mut full, mut toast) = (false, true);
        for option in &stmt.options {
            let is_known = match &*option.name {
                "verbose" | "skip_locked" => true,
                "analyze"
                | "full"
                | "freeze"
                | "disable_page_skipping"
                | "process_toast"
                | "truncate" => vacuum,
                // These have values of their own.
                "index_cleanup" | "parallel" if vacuum => continue,
                _ => false,
            };
            if !is_known {
                let (verb, name) = (params.verb().to_uppercase(), &option.name);
                let message = format!("unrecognized {verb} option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let on = def_elem::get_boolean(option)?;
            match &*option.name {
                "analyze" => params.analyze = on,
                "full" => full = on,
                "process_toast" => toast = on,
                _ => {}
            }
        }
        let wrong = |message| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        if full && !toast {
            return wrong("PROCESS_TOAST required with VACUUM FULL");
        }
        if !params.analyze && stmt.rels.iter().any(|of| !of.va_cols.is_empty()) {
            return wrong("ANALYZE option must be specified when a column list is provided");
        }
        Ok(params)
    }
}

/// Runs VACUUM or ANALYZE.
pub(super) async fn execute(stmt: &VacuumStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let params = VacuumParams::of(stmt)?;
    for (oid, columns) in targets(&params, cx)? {
        if params.analyze {
            table(oid, &columns, cx).await?;
        }
    }
    Ok(())
}

/// The tables that it is about, with the positions of the columns that are named.
fn targets(
    command: &VacuumParams<'_>,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<(RelationId, Vec<usize>)>> {
    let catalog = cx.catalog()?;
    let mut found = Vec::new();
    if command.relations.is_empty() {
        let mut all: Vec<_> = catalog
            .relations
            .values()
            .filter(|r| r.has_rows())
            .collect();
        all.sort_unstable_by_key(|r| r.oid);
        for relation in all {
            if may(command, relation, cx)? {
                found.push((relation.oid, Vec::new()));
            }
        }
        return Ok(found);
    }
    for VacuumRelation { relation, va_cols } in command.relations {
        let (oid, plain) = cx.named_relation(relation)?;
        let verb = command.verb();
        match catalog.relations.get(&oid) {
            Some(relation) if relation.has_rows() => {
                if may(command, relation, cx)? {
                    found.push((relation.oid, positions(relation, va_cols)?));
                }
            }
            // The system's relations have no rows of their own to be counted.
            Some(relation) if matches!(relation.kind, RelationKind::Virtual(table) if !table.is_view()) =>
            {
                may(command, relation, cx)?;
            }
            _ => warn(
                cx,
                format!(
                    "skipping \"{plain}\" --- cannot {verb} non-tables or special system tables"
                ),
            ),
        }
    }
    Ok(found)
}

fn warn(cx: &mut DdlContext<'_>, message: String) {
    cx.notices.push(super::Notice {
        severity: "WARNING",
        code: SqlState::WARNING,
        message,
        detail: None,
        hint: None,
    });
}

/// Whether the table, or the database that it is of, is the role's; others' are passed with a warning.
fn may(command: &VacuumParams<'_>, relation: &Relation, cx: &mut DdlContext<'_>) -> Result<bool> {
    let catalog = cx.catalog()?;
    let system = matches!(relation.kind, RelationKind::Virtual(_));
    let shared = system && SHARED.contains(&relation.name.as_str());
    let allowed = cx.with_acl_checker(|acl_checker, role| {
        acl_checker.owns(role, relation.oid)
            || (!shared && acl_checker.owns(role, catalog.database))
    })?;
    if allowed {
        return Ok(true);
    }
    let verb = command.verb();
    let who = match (shared, system) {
        (true, _) => "superuser",
        (false, true) => "superuser or database owner",
        (false, false) => "table or database owner",
    };
    let message = format!(
        "skipping \"{}\" --- only {who} can {verb} it",
        relation.name
    );
    warn(cx, message);
    Ok(false)
}

fn positions(relation: &Relation, names: &[Name]) -> Result<Vec<usize>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let position = relation
            .columns
            .iter()
            .position(|c| !c.dropped && *c.name == **name);
        let position = position.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    relation.name
                ),
            )
        })?;
        if found.contains(&position) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!(
                    "column \"{name}\" of relation \"{}\" appears more than once",
                    relation.name
                ),
            ));
        }
        found.push(position);
    }
    Ok(found)
}

/// Gathers a table's statistics and stores them.
async fn table(oid: RelationId, named: &[usize], cx: &mut DdlContext<'_>) -> Result<()> {
    let locked = cx.lock_table(oid, TableLock::ShareUpdateExclusive).await?;
    let Some((relation, _)) = locked else {
        // It was dropped while we waited.
        return Ok(());
    };
    let live = |position: &usize| relation.columns.get(*position).is_some_and(|c| !c.dropped);
    let wanted: Vec<usize> = match named.is_empty() {
        true => (0..relation.columns.len()).filter(live).collect(),
        false => named.iter().copied().filter(live).collect(),
    };
    let sample = sample(&relation, &wanted, cx).await?;
    let rows = sample.rows as f64 * sample.share;
    let mut columns = Vec::with_capacity(relation.columns.len());
    for (at, position) in wanted.iter().enumerate() {
        let Some(column) = relation.columns.get(*position) else {
            continue;
        };
        let cells: Vec<&SampleValue> = sample.kept.iter().filter_map(|(_, r)| r.get(at)).collect();
        columns.push(of_column(*position, column.ty.oid, &cells, rows, TARGET));
        cx.cancel.check()?;
        crate::table_rewrite::yield_once().await;
    }
    // What is known of other columns stays.
    let catalog = cx.catalog()?;
    if let Some(old) = catalog.statistics.get(&oid) {
        let others = old.columns.iter().filter(|c| !wanted.contains(&c.position));
        columns.extend(others.filter(|c| live(&c.position)).cloned());
        columns.sort_by_key(|c| c.position);
    }
    let width: f64 = columns
        .iter()
        .map(|c| f64::from(c.width) * f64::from(1.0 - c.null_frac))
        .sum();
    let pages = (rows * (width + ROW_BYTES) / PAGE_BYTES).ceil();
    let found = TableStatistics {
        rows,
        pages: pages as u32,
        storage: relation.storage,
        columns,
    };
    cx.put_statistics(&relation, found).await
}

/// A sample of a table's rows.
struct Sampler<'a> {
    random: &'a dyn RandomNumbers,
    /// Passed so far.
    rows: u64,
    /// So many rows of the table one that was passed stands for.
    share: f64,
    rows_max: usize,
    /// Each with its number.
    kept: Vec<(u64, Vec<SampleValue>)>,
    bytes: usize,
    bytes_max: usize,
}

impl Sampler<'_> {
    /// Where the next row goes, if it is one of the sample: each row passed so far is in it with the same chance.
    fn place(&mut self) -> Option<usize> {
        self.rows += 1;
        if self.kept.len() < self.rows_max {
            return Some(self.kept.len());
        }
        let at = usize::try_from(self.random.random_u64() % self.rows).ok()?;
        (at < self.rows_max).then_some(at)
    }

    fn pass(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        if let Some(at) = self.place() {
            let row = columns.iter().map(|c| c.decode(row).map(SampleValue::of));
            let row = row.collect::<Result<_>>()?;
            self.keep(at, row);
        }
        Ok(())
    }

    fn keep(&mut self, at: usize, row: Vec<SampleValue>) {
        let size = |row: &[SampleValue]| row.iter().map(SampleValue::size_bytes).sum::<usize>();
        self.bytes += size(&row);
        let row = (self.rows, row);
        match self.kept.get_mut(at) {
            Some(place) => {
                let old = std::mem::replace(place, row);
                self.bytes = self.bytes.saturating_sub(size(&old.1));
            }
            None => self.kept.push(row),
        }
        // Half of a sample, whichever half, is a sample.
        while self.bytes > self.bytes_max && self.kept.len() > 1 {
            self.rows_max = self.kept.len() / 2;
            while self.kept.len() > self.rows_max {
                let len = self.kept.len() as u64;
                let at = usize::try_from(self.random.random_u64() % len).unwrap_or(0);
                let (_, gone) = self.kept.swap_remove(at);
                self.bytes = self.bytes.saturating_sub(size(&gone));
            }
        }
    }
}

/// The chunks that are read: all of them, or one of each of [`CHUNKS_MAX`] parts of the table.
fn chosen(chunks: u64, mut random: impl FnMut() -> u64) -> Vec<u64> {
    if chunks <= CHUNKS_MAX {
        return (0..chunks).collect();
    }
    let start = |part: u64| part * chunks / CHUNKS_MAX;
    let one = |part| start(part) + random() % (start(part + 1) - start(part));
    (0..CHUNKS_MAX).map(one).collect()
}

/// Passes a table's rows, or some chunks of them, and keeps a sample, in the order of the rows.
async fn sample<'a>(
    relation: &Arc<Relation>,
    wanted: &[usize],
    cx: &mut DdlContext<'a>,
) -> Result<Sampler<'a>> {
    let columns: Vec<StoredColumn> = wanted
        .iter()
        .map(|position| StoredColumn::of(relation, *position))
        .collect::<Result<_>>()?;
    cx.catalog()?.check_types_of_own(relation)?;
    let table = cx.storage(relation)?;
    cx.txn.begin_statement();
    let chunks = table.chunks();
    let random = cx.session.random()?;
    let chosen = chosen(chunks, || random.random_u64());
    let mut sampler = Sampler {
        random,
        rows: 0,
        share: chunks as f64 / chosen.len().max(1) as f64,
        rows_max: TARGET * ROWS_PER_TARGET,
        kept: Vec::new(),
        bytes: 0,
        bytes_max: cx.work_mem_bytes.saturating_mul(exec::MEMORY_FACTOR),
    };
    for turn in chosen.chunks(CHUNKS_PER_TURN) {
        cx.cancel.check()?;
        for number in turn {
            let mut cursor = ScanCursor::of_chunk(&table, *number);
            while let Some(absent) = pass(&mut cursor, &columns, &mut sampler, cx)? {
                cx.wait(absent).await?;
            }
        }
        crate::table_rewrite::yield_once().await;
    }
    sampler.kept.sort_by_key(|(number, _)| *number);
    Ok(sampler)
}

/// Passes rows up to the cursor's end, or to one that is not in memory.
fn pass(
    cursor: &mut ScanCursor,
    columns: &[StoredColumn],
    sampler: &mut Sampler<'_>,
    cx: &mut DdlContext<'_>,
) -> Result<Option<PageFault>> {
    let guard = cx.txn.pin();
    loop {
        match cx.txn.scan_next(cursor, &guard) {
            Ok(Some(row)) => sampler.pass(row.bytes, columns)?,
            Ok(None) => return Ok(None),
            Err(absent) => return Ok(Some(absent)),
        }
    }
}

impl DdlContext<'_> {
    /// Stores what was found out of a table.
    async fn put_statistics(&mut self, relation: &Relation, found: TableStatistics) -> Result<()> {
        let table = relation.oid;
        let found = Arc::new(found);
        if !relation.is_temporary() {
            let database = self.catalog()?.database;
            let key = stored::statistics::key(database, table);
            match self.named_row(STATISTICS, &key).await? {
                Some((rid, row)) => {
                    self.store.remember(STATISTICS, database, row.oid, rid);
                    let row = stored::statistics::encode(database, table, row.oid, &found);
                    self.change_row(STATISTICS, database, row.oid, Some(&row))
                        .await?;
                }
                None => {
                    let oid = self.new_oid()?;
                    let row = stored::statistics::encode(database, table, oid, &found);
                    // The table is locked against another ANALYZE.
                    if !self.insert_row(STATISTICS, &row).await? {
                        return Err(SqlError::internal("statistics were concurrently stored"));
                    }
                }
            }
        }
        self.state.push(CatalogChange::Statistics(table, found));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_read_in_parts_of_the_same_size() {
        assert_eq!(chosen(3, || 7), [0, 1, 2]);
        assert_eq!(chosen(CHUNKS_MAX, || 7).len() as u64, CHUNKS_MAX);
        for chunks in [CHUNKS_MAX + 1, 3 * CHUNKS_MAX - 1, 1_000_003] {
            let mut seed = 1_u64;
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed >> 33
            };
            let chosen = chosen(chunks, &mut random);
            assert_eq!(chosen.len() as u64, CHUNKS_MAX);
            assert!(chosen.is_sorted_by(|a, b| a < b), "each once, in order");
            assert!(chosen.iter().all(|chunk| *chunk < chunks));
            // No end of the table is left out, and no part of it is taken twice.
            let widest = chunks.div_ceil(CHUNKS_MAX);
            let steps = chosen.windows(2).map(|w| w[1] - w[0]);
            assert!(steps.max().is_some_and(|step| step < 2 * widest));
            assert!(chosen[0] < widest && chunks - chosen[chosen.len() - 1] <= widest);
        }
    }
}
