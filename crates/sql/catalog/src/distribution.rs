//! By what a table's rows are divided among the virtual partitions.
//!
//! Owns: [`Distribution`], what is stored of it, the storage parameter that tells of it, and the bytes of a row that
//! its partition follows from.
//!
//! A distribution that was said, in WITH or SET, is shown as a storage parameter and so dumped. One that was decided
//! when the table was made, because there were instances, is not: a dump of it runs on any server, and the server that
//! it is restored on decides for itself. Either is stored among the relation's options under a name that no parameter
//! has, by positions of columns, so that renaming a column changes nothing.
//!
//! Invariants:
//! - A storage has one distribution for good: another one means another storage, with the rows in it.
//! - Rows of distribution columns that are equal have equal distribution keys, whatever index they are looked up by:
//!   the bytes are those that an index of these columns begins with.
//!
//! Does not: decide what a new table's distribution is, or refuse one (`ddl`).

use super::inert_options::MARK;
use super::text::quote_ident;
use super::{Column, IndexDef, Relation};
use logstead_engine::{DistributionKey, RowRef, Table};
use logstead_sql_types::TypeId;
use logstead_sql_types::value::key_length::KeyShape;
use logstead_sql_types::value::{Datum, key, stored};
use std::sync::Arc;

/// The storage parameter.
pub const PARAMETER: &str = "distribution";

/// Most columns of a distribution key, as of an index.
pub const COLUMNS_MAX: usize = 32;

/// What is kept of a replicated table. Builds that do not know it read no columns in it, and take the table for one in
/// one partition of which nothing was said.
const REPLICATED: &str = "said:replicated";

/// How the rows of a table are distributed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Positions of the columns whose hash says in which partition a row lies; none: the table is in one.
    columns: Vec<usize>,
    /// It is in one, and all instances read it alike.
    is_replicated: bool,
    /// It was said, and not decided here.
    is_said: bool,
}

impl Distribution {
    /// In one partition.
    pub fn single(is_said: bool) -> Distribution {
        Distribution {
            is_said,
            ..Distribution::default()
        }
    }

    /// In one partition, and read by all instances alike; as was said.
    pub fn replicated() -> Distribution {
        Distribution {
            columns: Vec::new(),
            is_replicated: true,
            is_said: true,
        }
    }

    /// By the hash of columns, of which there is at least one.
    pub fn hash(columns: Vec<usize>, is_said: bool) -> Distribution {
        Distribution {
            columns,
            is_replicated: false,
            is_said,
        }
    }

    /// Do all instances read it alike?
    pub fn is_replicated(&self) -> bool {
        self.is_replicated
    }

    /// Does a storage that is distributed so have its rows where this one has them, and count as it does?
    pub fn is_stored_like(&self, other: &Distribution) -> bool {
        (&self.columns, self.is_replicated) == (&other.columns, other.is_replicated)
    }

    /// Positions of the distribution columns; none if the table is in one partition.
    pub fn columns(&self) -> Option<&[usize]> {
        (!self.columns.is_empty()).then_some(&self.columns)
    }

    /// Was it said in WITH or SET?
    pub fn is_said(&self) -> bool {
        self.is_said
    }

    /// Is the column at this position one of its columns?
    pub fn mentions(&self, position: usize) -> bool {
        self.columns.contains(&position)
    }

    /// The storage parameter that says it, with the names of the columns as they are now.
    pub fn parameter(&self, columns: &[Column]) -> Option<String> {
        if !self.is_said {
            return None;
        }
        let name = |position: &usize| columns.get(*position).map_or("?", |c| c.name.as_str());
        let names = self.columns.iter().map(|at| quote_ident(name(at)));
        let names: Vec<_> = names.collect();
        Some(match names.is_empty() {
            true if self.is_replicated => format!("{PARAMETER}=replicated"),
            true => format!("{PARAMETER}=single"),
            false => format!("{PARAMETER}=hash ({})", names.join(", ")),
        })
    }

    /// What is kept of it among a relation's options; nothing of the one that a relation has of which nothing is known.
    pub(crate) fn kept(&self) -> Option<String> {
        if *self == Distribution::default() {
            return None;
        }
        if self.is_replicated {
            return Some(format!("{MARK}{PARAMETER}={REPLICATED}"));
        }
        let who = if self.is_said { "said" } else { "decided" };
        let positions: Vec<_> = self.columns.iter().map(ToString::to_string).collect();
        Some(format!("{MARK}{PARAMETER}={who}:{}", positions.join(",")))
    }

    /// Takes it out of a relation's options. What this build cannot divide by, because another one has changed the
    /// table or knows more types, is not divided.
    pub(crate) fn take(options: &mut Vec<String>, columns: &[Column]) -> Distribution {
        let mut found = Distribution::default();
        options.retain(|option| {
            let own = option.strip_prefix(MARK).and_then(|option| {
                let (name, kept) = option.split_once('=')?;
                (name == PARAMETER).then_some(kept)
            });
            let Some(kept) = own else {
                return true;
            };
            found = Distribution::read(kept, columns).unwrap_or_default();
            false
        });
        found
    }

    fn read(kept: &str, columns: &[Column]) -> Option<Distribution> {
        if kept == REPLICATED {
            return Some(Distribution::replicated());
        }
        let (who, positions) = kept.split_once(':')?;
        let positions = positions.split(',').filter(|position| !position.is_empty());
        let positions: Vec<usize> = positions.map(str::parse).collect::<Result<_, _>>().ok()?;
        let divides = |position: &usize| {
            let column = columns.get(*position).filter(|column| !column.dropped);
            column.is_some_and(|column| is_known(column.ty.oid))
        };
        let known = positions.len() <= COLUMNS_MAX && positions.iter().all(divides);
        known.then(|| Distribution::hash(positions, who == "said"))
    }

    /// How many of an index's key columns are the distribution columns, if it begins with just these and is divided by
    /// them. A column in another order has other bytes, so such an index is not divided.
    pub fn leads(&self, index: &IndexDef) -> Option<usize> {
        let columns = self.columns()?;
        let leading = index.columns.get(..columns.len())?;
        let same = leading.iter().zip(columns).all(|(column, position)| {
            column.position() == Some(*position) && !column.desc && !column.nulls_first
        });
        (same && index.invalid.is_none()).then_some(columns.len())
    }
}

/// Can a table be divided by columns of this type?
pub fn is_known(ty: TypeId) -> bool {
    KeyShape::of(ty).is_some()
}

/// What makes the distribution keys of a relation's rows; none if it is in one partition.
pub fn key_of(relation: &Relation) -> Option<Arc<dyn DistributionKey>> {
    let columns = relation.distribution.columns()?;
    Some(Arc::new(RowDistribution::new(relation, columns)))
}

/// Makes the engine's table of a relation one that is distributed as the relation says. To be called when the table is
/// made or opened, before it has indexes.
pub fn divide(table: &Table, relation: &Relation) {
    if let Some(key) = key_of(relation) {
        table.divide(key);
    }
    if relation.distribution.is_replicated() {
        table.replicate();
    }
}

/// The distribution keys of a table's rows.
struct RowDistribution {
    columns: Vec<DistributionColumn>,
}

struct DistributionColumn {
    position: usize,
    ty: TypeId,
    /// The stored form of what rows without the column have there; none is NULL.
    missing: Option<Vec<u8>>,
}

impl RowDistribution {
    fn new(relation: &Relation, positions: &[usize]) -> RowDistribution {
        let column = |position: &usize| {
            let column = relation.columns.get(*position)?;
            let missing = (column.missing != Datum::Null).then(|| {
                let mut bytes = Vec::new();
                stored::encode(&column.missing, &mut bytes);
                bytes
            });
            Some(DistributionColumn {
                position: *position,
                ty: column.ty.oid,
                missing,
            })
        };
        RowDistribution {
            columns: positions.iter().filter_map(column).collect(),
        }
    }
}

impl DistributionKey for RowDistribution {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        for column in &self.columns {
            let value = match row.is_missing(column.position) {
                true => column.missing.as_deref(),
                false => row.column(column.position),
            };
            // A value that does not decode was damaged before it came here; reading the row reports it.
            if key::encode_key_stored(column.ty, value, false, false, out).is_err() {
                out.truncate(before);
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::value::{SqlType, oid};

    fn column(name: &str, ty: TypeId) -> Column {
        Column {
            name: name.to_owned(),
            ty: SqlType::of(ty),
            domain: None,
            not_null: false,
            default: None,
            identity: None,
            generated: false,
            sequence: None,
            dropped: false,
            missing: Datum::Null,
        }
    }

    #[test]
    fn a_distribution_reads_back_and_leaves_other_options_alone() {
        let mut columns = vec![column("id", oid::INT4), column("Region", oid::TEXT)];
        for (distribution, shown) in [
            (Distribution::default(), None),
            (Distribution::single(true), Some("distribution=single")),
            (Distribution::hash(vec![0], false), None),
            (Distribution::replicated(), Some("distribution=replicated")),
            (
                Distribution::hash(vec![1, 0], true),
                Some("distribution=hash (\"Region\", id)"),
            ),
        ] {
            assert_eq!(distribution.parameter(&columns).as_deref(), shown);
            let mut options = vec!["fillfactor=70".to_owned()];
            options.extend(distribution.kept());
            assert_eq!(Distribution::take(&mut options, &columns), distribution);
            assert_eq!(options, ["fillfactor=70"]);
        }
        let hash = Distribution::hash(vec![1], true);
        columns[1].name = "zone".to_owned();
        let shown = hash.parameter(&columns);
        assert_eq!(shown.as_deref(), Some("distribution=hash (zone)"));
    }

    #[test]
    fn what_cannot_be_divided_by_is_single() {
        let mut columns = vec![column("id", oid::INT4), column("doc", oid::JSONB)];
        columns.push(Column {
            dropped: true,
            ..column("gone", oid::INT4)
        });
        for kept in [
            "said:1",
            "said:2",
            "decided:3",
            "said:x",
            "said",
            "said:0,0,-1",
        ] {
            let mut options = vec![format!("{MARK}{PARAMETER}={kept}")];
            let found = Distribution::take(&mut options, &columns);
            assert_eq!(found, Distribution::default(), "{kept}");
            assert!(options.is_empty(), "{kept}");
        }
    }
}
