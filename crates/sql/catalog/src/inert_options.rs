//! What is said of relations, their columns and their indexes that nothing here follows, but that is told and dumped as
//! it was said: REPLICA IDENTITY, SET STATISTICS, SET STORAGE, SET COMPRESSION, collations and operator classes by
//! name.
//!
//! Owns: how these are kept. They stand among a relation's storage parameters (`name=value`) under names that no
//! storage parameter has: a mark, the attribute's name, and the number of the column that it is of. So whatever keeps,
//! copies and forgets storage parameters does it with these too, and the stored form of relations is what it was.
//!
//! Invariant: what is not said is not kept; the value that holds by default is what is not said.

use super::{Catalog, Column, Relation};
use logstead_sql_types::RelationId;
use logstead_sql_types::value::collations::collation_by_name;
use logstead_sql_types::value::{Oid, info};

/// Begins the names of these attributes.
pub(crate) const MARK: char = '\u{1}';

/// Attributes of a relation, or of one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// `relreplident`: f, n, or the OID of an index.
    ReplicaIdentity,
    /// `relpersistence` of a table that was said to be unlogged.
    Unlogged,
    /// `attstattarget` of a column.
    Statistics(usize),
    /// `attstorage` of a column.
    Storage(usize),
    /// `attcompression` of a column.
    Compression(usize),
    /// `attcollation` of a column, `indcollation` of an index's key.
    Collation(usize),
    /// `indclass` of an index's key, by name.
    OperatorClass(usize),
}

impl Attribute {
    fn key(self) -> String {
        match self {
            Attribute::ReplicaIdentity => format!("{MARK}replica_identity"),
            Attribute::Unlogged => format!("{MARK}unlogged"),
            Attribute::Statistics(at) => format!("{MARK}statistics.{at}"),
            Attribute::Storage(at) => format!("{MARK}storage.{at}"),
            Attribute::Compression(at) => format!("{MARK}compression.{at}"),
            Attribute::Collation(at) => format!("{MARK}collation.{at}"),
            Attribute::OperatorClass(at) => format!("{MARK}opclass.{at}"),
        }
    }
}

/// Storage parameters without these attributes.
pub fn parameters(options: &[String]) -> impl Iterator<Item = &String> {
    options.iter().filter(|option| !option.starts_with(MARK))
}

/// The value of an attribute that was said.
pub fn get(options: &[String], attribute: Attribute) -> Option<&str> {
    // Most relations have none: no name is made for those.
    if !options.iter().any(|option| option.starts_with(MARK)) {
        return None;
    }
    let key = attribute.key();
    options.iter().find_map(|option| {
        let (name, value) = option.split_once('=')?;
        (name == key).then_some(value)
    })
}

/// Says an attribute; without a value it is unsaid.
pub fn set(options: &mut Vec<String>, attribute: Attribute, value: Option<&str>) {
    let key = attribute.key();
    options.retain(|option| option.split_once('=').is_none_or(|(name, _)| name != key));
    if let Some(value) = value {
        options.push(format!("{key}={value}"));
    }
}

/// Forgets all that was said of a column.
pub fn forget_column(options: &mut Vec<String>, position: usize) {
    for attribute in [
        Attribute::Statistics(position),
        Attribute::Storage(position),
        Attribute::Compression(position),
        Attribute::Collation(position),
    ] {
        set(options, attribute, None);
    }
}

impl Catalog {
    /// Storage parameters and attributes of a relation or index.
    pub fn options_of(&self, relation: RelationId) -> &[String] {
        let options = self.notes.options.get(&relation);
        options.map_or(&[], Vec::as_slice)
    }

    /// `attcollation` of a table's column: as was said, else its type's.
    pub fn collation_of(&self, table: RelationId, position: usize, column: &Column) -> Oid {
        let said = get(self.options_of(table), Attribute::Collation(position));
        let said = said.and_then(collation_by_name);
        said.unwrap_or_else(|| info::by_oid(column.ty.oid).map_or(0, info::TypeInfo::collation))
    }

    /// `relpersistence` of a relation; its indexes have the same.
    pub fn persistence_of(&self, relation: &Relation) -> char {
        match get(self.options_of(relation.oid), Attribute::Unlogged) {
            _ if relation.is_temporary() => 't',
            Some(_) => 'u',
            None => 'p',
        }
    }

    /// `relreplident` of a table, and the index that USING INDEX named, as long as there is one.
    pub fn replica_identity(&self, relation: &Relation) -> (char, Option<RelationId>) {
        match get(self.options_of(relation.oid), Attribute::ReplicaIdentity) {
            None => ('d', None),
            Some("f") => ('f', None),
            Some("n") => ('n', None),
            Some(index) => {
                let index: Option<RelationId> = index.parse().ok().map(RelationId::new);
                // Of an index that was dropped PostgreSQL knows as much: rows are told of by nothing.
                let there = |oid: &RelationId| relation.indexes.iter().any(|i| i.oid == *oid);
                ('i', index.filter(there))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_no_parameters() {
        let mut options = vec!["fillfactor=70".to_owned()];
        set(&mut options, Attribute::Statistics(11), Some("500"));
        set(&mut options, Attribute::Statistics(1), Some("7"));
        set(&mut options, Attribute::Statistics(1), Some("8"));
        set(&mut options, Attribute::ReplicaIdentity, Some("f"));
        assert_eq!(parameters(&options).collect::<Vec<_>>(), ["fillfactor=70"]);
        assert_eq!(get(&options, Attribute::Statistics(1)), Some("8"));
        assert_eq!(get(&options, Attribute::Statistics(11)), Some("500"));
        forget_column(&mut options, 1);
        assert_eq!(get(&options, Attribute::Statistics(1)), None);
        assert_eq!(get(&options, Attribute::Statistics(11)), Some("500"));
        assert_eq!(get(&options, Attribute::ReplicaIdentity), Some("f"));
    }
}
