//! The collations there are.

use super::Oid;

/// Collations by name, with their OIDs: all order alike.
const COLLATIONS: [(&str, Oid); 3] = [("default", 100), ("C", 950), ("POSIX", 951)];

/// `pg_collation.oid` of a collation that is there.
pub fn collation_by_name(name: &str) -> Option<Oid> {
    let known = COLLATIONS.iter().find(|(known, _)| *known == name);
    known.map(|(_, oid)| *oid)
}

/// The name of a collation as definitions spell it.
pub fn collation_name(collation: Oid) -> Option<&'static str> {
    let known = COLLATIONS.iter().find(|(_, oid)| *oid == collation);
    known.map(|(name, _)| *name)
}
