//! Costs, and what is assumed where nothing is known. Costs are in PostgreSQL's unit (one sequential page read) scaled
//! to rows in memory; only their order matters.

use super::Plan;
use logstead_sql_catalog::Relation;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::info;

/// Share of rows that equal a value.
pub(crate) const EQUAL: f64 = 0.005;
/// Share of rows on one side of a value.
pub(crate) const RANGE: f64 = 1.0 / 3.0;
/// Share of rows between two values.
pub(crate) const BETWEEN: f64 = 0.005;
/// Share of rows that are NULL in a column.
pub(crate) const NULL: f64 = 0.005;
/// Share of rows that a pattern fits.
pub(crate) const MATCH: f64 = 0.005;
/// Share of rows that a function of which nothing is known calls true.
pub(crate) const FUNCTION: f64 = 1.0 / 3.0;
/// Different values in a column.
pub(crate) const DISTINCT: f64 = 200.0;
/// Bytes of a value without a fixed length.
const WIDTH: usize = 32;

/// Taking a row through a window.
pub(crate) const WINDOW: f64 = 0.02;
/// Taking a row from one node to the next.
pub(crate) const ROW: f64 = 0.01;
/// Judging a condition.
pub(crate) const CONDITION: f64 = 0.0025;
/// Putting a row into a hash table, beside taking it.
pub(crate) const HASHED: f64 = 0.015;
/// Writing a row to a temporary file and reading it again.
const SPILLED: f64 = 0.01;
/// Starting the inner side of a loop over.
pub(crate) const REWIND: f64 = 0.02;

/// Rows of a stored table of which nothing is known but `rows`, what is in it today: a small one will not stay so, and
/// plans are kept while tables grow. As in PostgreSQL it is taken to have ten pages.
pub(crate) fn rows_unknown(table: &Relation, rows: f64) -> f64 {
    const PAGES: usize = 10;
    const PAGE_BYTES: usize = 8_168;
    const ROW_BYTES: usize = 28;
    let width: usize = table
        .columns
        .iter()
        .filter(|c| !c.dropped)
        .map(|c| width_of(c.ty.oid))
        .sum();
    rows.max((PAGES * (PAGE_BYTES / (width + ROW_BYTES))) as f64)
}

/// Bytes of a value of a type, roughly.
pub(crate) fn width_of(ty: TypeId) -> usize {
    match info::by_oid(ty) {
        Some(info) if info.len > 0 => usize::try_from(info.len).unwrap_or(WIDTH),
        _ => WIDTH,
    }
}

/// Reading a whole table.
pub(crate) fn seq_scan(rows: f64) -> f64 {
    1.0 + rows * 0.02
}

/// Reading `rows` rows through an index, in whose order they stand so far in the table (from 0 to 1).
pub(crate) fn index_scan(rows: f64, in_order: f64) -> f64 {
    0.3 + rows * (0.04 + 0.04 * (1.0 - in_order.clamp(0.0, 1.0)))
}

/// Sorting.
pub(crate) fn sort(rows: f64) -> f64 {
    let rows = rows.max(2.0);
    rows * rows.log2() * 0.01
}

/// A hash join beside what its sides cost.
pub(crate) fn hash_join(probe: f64, build: f64) -> f64 {
    probe * ROW + build * HASHED
}

/// A merge join beside what its sides cost.
pub(crate) fn merge_join(left: f64, right: f64) -> f64 {
    (left + right) * ROW
}

/// Writing rows to temporary files, and reading them again: those that are more than there is room for.
pub(crate) fn spilled(plan: &Plan, rows: f64, memory_bytes: f64) -> f64 {
    /// What a value takes in memory beside its bytes.
    const VALUE_BYTES: usize = 24;
    let columns = plan.columns.iter();
    let width: usize = columns.map(|c| width_of(c.ty.oid) + VALUE_BYTES).sum();
    let bytes = rows * width as f64;
    if bytes <= memory_bytes {
        return 0.0;
    }
    rows * (1.0 - memory_bytes / bytes) * SPILLED
}

/// A loop over kept rows beside what its sides cost.
pub(crate) fn kept_loop(outer: f64, inner: f64) -> f64 {
    outer * inner * 0.005
}

/// Rows of a system relation: they are made when it is read, and nobody counts them before.
pub(crate) fn virtual_rows(rows: f64) -> f64 {
    rows.max(300.0)
}
