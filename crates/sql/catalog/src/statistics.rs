//! What ANALYZE finds out of a table: how many rows, and of each column which values.
//!
//! Owns: [`TableStatistics`] and how a column's are made from a sample, by PostgreSQL's rules (`compute_scalar_stats`):
//! the most common values, the bounds of a histogram over the rest, how many different values there are, how far rows
//! stand in the column's order.
//!
//! Invariants:
//! - Statistics are guesses: nothing but the choice of a plan may depend on them.
//! - A column's are of the type that it had: whoever uses them asks [`TableStatistics::column`], which gives none if
//!   the type is another today.
//!
//! Does not: read rows (`ddl::analyze`), store (`stored::statistics`) or use them (`plan::planner::selectivity`).

use crate::{Catalog, Relation};
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, info, key, oid, record, stored};
use logstead_types::TableId;

/// Values longer than this are counted, not kept.
pub(crate) const WIDTH_MAX: usize = 1_024;

/// What is known of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatistics {
    /// Rows.
    pub rows: f64,
    /// Pages of 8 KiB that they would fill.
    pub pages: u32,
    /// Where they were: a table that was emptied has another storage, and its number of rows is unknown again.
    pub storage: TableId,
    /// By position.
    pub columns: Vec<ColumnStatistics>,
}

/// When a table was analyzed by itself.
#[derive(Clone, Copy, Debug)]
pub struct AutoanalyzeEntry {
    /// The last time, in microseconds since 2000.
    pub at: i64,
    /// How often.
    pub count: i64,
    /// The table's storage, and rows in it, before the last time.
    pub storage: TableId,
    /// See there.
    pub rows: u64,
}

/// Slots of a table's rows that are in use.
pub fn live_rows(catalog: &Catalog, table: &Relation) -> u64 {
    let live = catalog.notes.live.as_ref();
    live.and_then(|live| live.table_rows(table.storage))
        .unwrap_or(0)
}

/// How many rows more or less a table has than when it was analyzed. The number of rows that ANALYZE finds in a large
/// table is a guess: what the table itself counted then is as good, so that a wrong guess does not make it due again
/// and again.
pub fn rows_changed(catalog: &Catalog, table: &Relation, last: Option<AutoanalyzeEntry>) -> u64 {
    let rows = live_rows(catalog, table);
    let since_known = rows.abs_diff(known_rows(catalog, table) as u64);
    let last = last.filter(|last| last.storage == table.storage);
    last.map_or(since_known, |last| {
        since_known.min(rows.abs_diff(last.rows))
    })
}

/// Rows that a table had when it was analyzed; a table that was emptied since had none.
pub fn known_rows(catalog: &Catalog, table: &Relation) -> f64 {
    let known = catalog.statistics.get(&table.oid);
    let known = known.filter(|known| known.storage == table.storage);
    known.map_or(0.0, |known| known.rows)
}

/// What is known of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// Which.
    pub position: usize,
    /// The type that it had.
    pub ty: TypeId,
    /// Share of NULLs.
    pub null_frac: f32,
    /// Bytes of a value, on average.
    pub width: u32,
    /// Different values; negative: as a share of the rows. 0 is unknown.
    pub distinct: f32,
    /// The most common values, the commonest first, each with its share of all rows.
    pub common: Vec<(Datum, f32)>,
    /// Bounds that divide the rest into parts of as many rows.
    pub bounds: Vec<Datum>,
    /// How far rows stand in the order of the values: from -1 to 1.
    pub correlation: Option<f32>,
}

impl TableStatistics {
    /// Those of a column, if its type is still the one they are of.
    pub fn column(&self, position: usize, ty: TypeId) -> Option<&ColumnStatistics> {
        let found = self.columns.iter().find(|c| c.position == position)?;
        (found.ty == ty).then_some(found)
    }
}

impl ColumnStatistics {
    /// Different values among so many rows; absent if nothing is known.
    pub fn distinct_of(&self, rows: f64) -> Option<f64> {
        let distinct = f64::from(self.distinct);
        if distinct > 0.0 {
            Some(distinct)
        } else if distinct < 0.0 {
            Some((-distinct * rows).max(1.0))
        } else {
            None
        }
    }
}

/// A value of the sample.
#[derive(Clone, Debug)]
pub enum SampleValue {
    /// NULL.
    Null,
    /// Too long to be kept: its bytes.
    Wide(usize),
    /// Any other.
    Value(Datum),
}

impl SampleValue {
    /// What is kept of a value.
    pub fn of(datum: Datum) -> SampleValue {
        let width = match &datum {
            Datum::Null => return SampleValue::Null,
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => bytes.len(),
            Datum::Bits(bits) => bits.bytes().len(),
            Datum::Jsonb(_) | Datum::Array(_) | Datum::Geometry(_) => stored_len(&datum),
            _ => 0,
        };
        match width > WIDTH_MAX {
            true => SampleValue::Wide(width),
            false => SampleValue::Value(datum),
        }
    }

    /// Bytes that it takes in memory, roughly.
    pub fn size_bytes(&self) -> usize {
        let held = match self {
            SampleValue::Value(Datum::Text(text)) => text.len() + 16,
            SampleValue::Value(
                Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes),
            ) => bytes.len() + 16,
            SampleValue::Value(Datum::Bits(bits)) => bits.bytes().len() + 16,
            SampleValue::Value(
                datum @ (Datum::Jsonb(_) | Datum::Array(_) | Datum::Geometry(_)),
            ) => 2 * stored_len(datum) + 64,
            SampleValue::Null | SampleValue::Wide(_) | SampleValue::Value(_) => 0,
        };
        size_of::<SampleValue>() + held
    }
}

fn stored_len(datum: &Datum) -> usize {
    let mut bytes = Vec::new();
    stored::encode(datum, &mut bytes);
    bytes.len()
}

/// Bytes of a value as PostgreSQL counts them: those without a fixed length have a header of one byte or four.
fn width_of(datum: &Datum) -> usize {
    let len = stored_len(datum);
    if len < 127 { len + 1 } else { len + 4 }
}

/// Whether values of a type have an order.
fn has_order(ty: TypeId) -> bool {
    let element = info::element_of(ty).unwrap_or(ty);
    !matches!(element, oid::JSON | oid::XML | oid::VOID) && !record::is_record(element)
}

/// The statistics of one column: `cells` are its values in the sample's rows, in their order in the table, which has
/// `rows` rows; `target` is how many values are kept.
pub fn of_column(
    position: usize,
    ty: TypeId,
    cells: &[&SampleValue],
    rows: f64,
    target: usize,
) -> ColumnStatistics {
    let sampled = cells.len() as f64;
    let fixed =
        logstead_sql_types::value::info::by_oid(ty).and_then(|info| usize::try_from(info.len).ok());
    let mut found = ColumnStatistics {
        position,
        ty,
        null_frac: 0.0,
        width: fixed.unwrap_or(0) as u32,
        distinct: 0.0,
        common: Vec::new(),
        bounds: Vec::new(),
        correlation: None,
    };
    if cells.is_empty() {
        return found;
    }
    let (mut nulls, mut wide, mut width) = (0_usize, 0_usize, 0_usize);
    let mut values: Vec<ScalarItem<'_>> = Vec::with_capacity(cells.len());
    for cell in cells {
        match cell {
            SampleValue::Null => nulls += 1,
            SampleValue::Wide(bytes) => {
                wide += 1;
                width += bytes + 4;
            }
            SampleValue::Value(datum) => {
                if fixed.is_none() {
                    width += width_of(datum);
                }
                let mut sort_key = Vec::new();
                if has_order(ty) {
                    key::encode_key(ty, datum, false, false, &mut sort_key);
                }
                values.push(ScalarItem {
                    key: sort_key,
                    place: values.len(),
                    datum,
                });
            }
        }
    }
    let present = cells.len() - nulls;
    found.null_frac = (nulls as f64 / sampled) as f32;
    if fixed.is_none() && present > 0 {
        found.width = (width as f64 / present as f64).round() as u32;
    }
    if !has_order(ty) || present == 0 {
        return found;
    }
    let null_frac = nulls as f64 / sampled;
    if values.is_empty() {
        found.distinct = -(1.0 - null_frac) as f32;
        return found;
    }
    // Ties stand in the order of the rows.
    values.sort_by(|a, b| (&a.key, a.place).cmp(&(&b.key, b.place)));
    let groups = groups(&values);
    let repeated: Vec<&ScalarMcvItem> = groups.iter().filter(|g| g.count > 1).collect();
    let distinct = distinct(
        groups.len(),
        repeated.len(),
        wide,
        sampled,
        nulls as f64,
        rows,
    );
    found.distinct = distinct as f32;
    // The commonest first, those that come first in order first among equals.
    let mut tracked = repeated;
    tracked.sort_by_key(|g| std::cmp::Reverse(g.count));
    tracked.truncate(target);
    let whole = tracked.len() == groups.len() && wide == 0 && distinct > 0.0;
    let kept = if whole {
        tracked.len()
    } else {
        worth_keeping(&tracked, distinct, null_frac, sampled, rows)
    };
    tracked.truncate(kept);
    found.common = tracked
        .iter()
        .map(|g| {
            let share = g.count as f64 / sampled;
            (values[g.first].datum.clone(), share as f32)
        })
        .collect();
    found.bounds = bounds(&values, &groups, &tracked, target);
    found.correlation = correlation(&values);
    found
}

/// A value with its place in the sample.
struct ScalarItem<'a> {
    key: Vec<u8>,
    place: usize,
    datum: &'a Datum,
}

/// Equal values, which follow each other.
struct ScalarMcvItem {
    first: usize,
    count: usize,
}

fn groups(values: &[ScalarItem<'_>]) -> Vec<ScalarMcvItem> {
    let mut groups: Vec<ScalarMcvItem> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if values[group.first].key == value.key => group.count += 1,
            _ => groups.push(ScalarMcvItem {
                first: at,
                count: 1,
            }),
        }
    }
    groups
}

/// Different values of the whole column: Haas and Stokes' estimator, as PostgreSQL uses it.
fn distinct(
    groups: usize,
    repeated: usize,
    wide: usize,
    sampled: f64,
    nulls: f64,
    rows: f64,
) -> f64 {
    let null_frac = nulls / sampled;
    let distinct = if repeated == 0 {
        return -(1.0 - null_frac);
    } else if wide == 0 && repeated == groups {
        groups as f64
    } else {
        let once = (groups - repeated + wide) as f64;
        let seen = once + repeated as f64;
        let present = sampled - nulls;
        let all = rows * (1.0 - null_frac);
        let guess = if all > 0.0 {
            (present * seen) / ((present - once) + once * present / all)
        } else {
            0.0
        };
        (guess.max(seen).min(all.max(seen)) + 0.5).floor()
    };
    if distinct > 0.1 * rows {
        -(distinct / rows.max(1.0))
    } else {
        distinct
    }
}

/// How many of the commonest values are so much commoner than the rest that the sample is to be trusted (PostgreSQL's
/// `analyze_mcv_list`).
fn worth_keeping(
    tracked: &[&ScalarMcvItem],
    distinct: f64,
    null_frac: f64,
    sampled: f64,
    rows: f64,
) -> usize {
    if sampled >= rows || rows <= 1.0 {
        return tracked.len();
    }
    let distinct = if distinct < 0.0 {
        -distinct * rows
    } else {
        distinct
    };
    let mut kept = tracked.len();
    let mut before: f64 = tracked
        .iter()
        .take(kept.saturating_sub(1))
        .map(|g| g.count as f64)
        .sum();
    while kept > 0 {
        let mut share = (1.0 - before / sampled - null_frac).clamp(0.0, 1.0);
        let others = distinct - (kept - 1) as f64;
        if others > 1.0 {
            share /= others;
        }
        let count = tracked[kept - 1].count as f64;
        let expected = rows * count / sampled;
        let variance = sampled * expected * (rows - expected) * (rows - sampled)
            / (rows * rows * (rows - 1.0));
        if count > share * sampled + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        kept -= 1;
        if kept > 0 {
            before -= tracked[kept - 1].count as f64;
        }
    }
    kept
}

/// Bounds of a histogram over what is not among the common values.
fn bounds(
    values: &[ScalarItem<'_>],
    groups: &[ScalarMcvItem],
    common: &[&ScalarMcvItem],
    target: usize,
) -> Vec<Datum> {
    let count = (groups.len() - common.len()).min(target + 1);
    if count < 2 {
        return Vec::new();
    }
    let is_common = |group: &ScalarMcvItem| common.iter().any(|c| c.first == group.first);
    let rest: Vec<usize> = groups
        .iter()
        .filter(|group| !is_common(group))
        .flat_map(|group| group.first..group.first + group.count)
        .collect();
    // Evenly spaced, in whole numbers, from the first to the last.
    let last = rest.len() - 1;
    (0..count)
        .map(|i| values[rest[i * last / (count - 1)]].datum.clone())
        .collect()
}

/// Correlation between a value's place in the table and its place in order.
fn correlation(values: &[ScalarItem<'_>]) -> Option<f32> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let products: f64 = values
        .iter()
        .enumerate()
        .map(|(at, value)| at as f64 * value.place as f64)
        .sum();
    let sum = n * (n - 1.0) / 2.0;
    let squares = n * (n - 1.0) * (2.0 * n - 1.0) / 6.0;
    Some(((n * products - sum * sum) / (n * squares - sum * sum)) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Option<i32>], rows: f64, target: usize) -> ColumnStatistics {
        let cells: Vec<SampleValue> = values
            .iter()
            .map(|v| v.map_or(SampleValue::Null, |v| SampleValue::of(Datum::Int4(v))))
            .collect();
        let cells: Vec<&SampleValue> = cells.iter().collect();
        of_column(0, oid::INT4, &cells, rows, target)
    }

    #[test]
    fn a_key_is_known_by_its_bounds_alone() {
        let values: Vec<_> = (1..=1_000).map(Some).collect();
        let found = of(&values, 1_000.0, 100);
        assert_eq!((found.distinct, found.null_frac), (-1.0, 0.0));
        assert!(found.common.is_empty());
        assert_eq!(found.bounds.len(), 101);
        assert_eq!(found.bounds[0], Datum::Int4(1));
        assert_eq!(found.bounds[100], Datum::Int4(1_000));
        assert_eq!((found.width, found.correlation), (4, Some(1.0)));
    }

    #[test]
    fn few_values_are_all_common() {
        // As PostgreSQL 15 has it of 1,000 rows: i % 4, NULL where i % 10 = 0.
        let values: Vec<_> = (0..1_000).map(|i| (i % 10 != 0).then_some(i % 4)).collect();
        let found = of(&values, 1_000.0, 100);
        assert_eq!(found.distinct, 4.0);
        assert_eq!(found.null_frac, 0.1);
        let common: Vec<_> = found
            .common
            .iter()
            .map(|(v, f)| (v.clone(), (f * 1_000.0).round() as i32))
            .collect();
        assert_eq!(
            common,
            [(1, 250), (3, 250), (0, 200), (2, 200)].map(|(v, n)| (Datum::Int4(v), n))
        );
        assert!(found.bounds.is_empty());
    }

    #[test]
    fn a_sample_tells_common_values_from_chance() {
        // A tenth of a table: one value has half of it, the rest are as good as different.
        let values: Vec<_> = (0..1_000)
            .map(|i| Some(if i % 2 == 0 { 7 } else { 1_000 + i / 4 }))
            .collect();
        let found = of(&values, 10_000.0, 100);
        assert_eq!(found.common.len(), 1);
        assert_eq!(found.common[0], (Datum::Int4(7), 0.5));
        assert!(!found.bounds.contains(&Datum::Int4(7)));
        assert!(found.bounds.len() > 2);
    }

    #[test]
    fn nothing_but_nulls_and_nothing_at_all() {
        let found = of(&[None, None], 2.0, 100);
        assert_eq!((found.null_frac, found.distinct), (1.0, 0.0));
        assert_eq!(of(&[], 0.0, 100).null_frac, 0.0);
        // json has no order: only what can be counted is.
        let cell = SampleValue::of(Datum::Text("{}".into()));
        let found = of_column(0, oid::JSON, &[&cell, &cell], 2.0, 100);
        assert_eq!((found.distinct, found.width), (0.0, 3));
        assert!(found.common.is_empty() && found.correlation.is_none());
    }

    #[test]
    fn long_values_are_counted_only() {
        let long = SampleValue::of(Datum::Text("x".repeat(WIDTH_MAX + 1).into()));
        assert!(matches!(long, SampleValue::Wide(_)));
        let found = of_column(0, oid::TEXT, &[&long, &long], 2.0, 100);
        assert_eq!(found.distinct, -1.0);
        assert_eq!(found.width as usize, WIDTH_MAX + 5);
    }
}
