//! How many virtual partitions a scan of a divided table reads.
//!
//! Shown where there are several instances only: with one nobody needs to know, and the output stays PostgreSQL's.

use super::{Reader, Shown};
use crate::{KeyRange, ScanKey};
use logstead_engine::VIRTUAL_PARTITIONS;
use logstead_sql_catalog::{IndexDef, Relation};

/// What a scan reads, each time it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionsRead {
    /// The one that its keys lie in.
    One,
    /// One for each element of its arrays.
    OnePerElement,
    All,
}

/// Of a scan of a whole table; nothing if it is not divided.
pub(super) fn of_scan(table: &Relation) -> Option<PartitionsRead> {
    table.distribution.columns().map(|_| PartitionsRead::All)
}

/// Of a scan of an index; nothing if it is not divided. Then where it leads follows from no key.
pub(super) fn of_index(
    table: &Relation,
    index: &IndexDef,
    range: &KeyRange,
) -> Option<PartitionsRead> {
    let columns = table.distribution.leads(index)?;
    let Some(keys) = range.equal.get(..columns) else {
        return Some(PartitionsRead::All);
    };
    let is_array = |key: &ScanKey| matches!(key, ScanKey::Any(_));
    Some(match keys.iter().any(is_array) {
        true => PartitionsRead::OnePerElement,
        false => PartitionsRead::One,
    })
}

impl Reader<'_> {
    /// Says it of a node.
    pub(super) fn partitions(&self, read: Option<PartitionsRead>, shown: &mut Shown) {
        let Some(read) = read.filter(|_| self.options.partitions) else {
            return;
        };
        let text = match read {
            PartitionsRead::One => format!("1 of {VIRTUAL_PARTITIONS}"),
            PartitionsRead::OnePerElement => {
                format!("1 of {VIRTUAL_PARTITIONS} for each element")
            }
            PartitionsRead::All => format!("{VIRTUAL_PARTITIONS} of {VIRTUAL_PARTITIONS}"),
        };
        shown.detail("Partitions", text);
    }
}
