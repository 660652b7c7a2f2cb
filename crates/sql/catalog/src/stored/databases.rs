//! The stored form of databases: a row each, by (0, 0, name).
//!
//! One that is as it was made without options has the definition that all had when there was nothing to say of them.
//! Builds of that time read no more of a row than its name and OID: to them a database is open to everybody.

use crate::database::Database;
use crate::stored::SHARED;
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use logstead_sql_types::error::Result;
use logstead_sql_types::{DatabaseOid, RoleId};
use std::collections::BTreeMap;

/// Version of the definition that says nothing.
const PLAIN: u8 = 1;
/// Version of the definitions that say what is not so by itself.
const FORMAT: u8 = 2;
/// What stands for all roles in the place of one: settings that hold for each of them.
const ALL_ROLES: u32 = 0;

/// The row of a database.
pub fn encode(database: &Database) -> ObjectRow {
    let key = ObjectKey {
        database: SHARED,
        namespace: 0,
        name: database.name.clone(),
    };
    let mut w = DefinitionWriter::default();
    if *database == Database::new(database.oid, database.name.as_str()) {
        w.u8(PLAIN);
    } else {
        w.u8(FORMAT);
        w.u8(u8::from(database.is_template) | u8::from(database.allow_connections) << 1);
        w.u32(database.connection_limit.cast_unsigned());
        w.bytes(database.collate.as_bytes());
        w.bytes(database.ctype.as_bytes());
        let settings: Vec<_> = database.settings.iter().collect();
        w.list(&settings, |w, (role, settings)| {
            w.u32(role.map_or(ALL_ROLES, RoleId::get));
            w.list(settings, |w, (name, value)| {
                w.bytes(name.as_bytes());
                w.bytes(value.as_bytes());
            });
        });
    }
    ObjectRow {
        key,
        oid: database.oid.get(),
        definition: w.0,
    }
}

/// Reads a row.
pub(crate) fn decode(row: &ObjectRow) -> Result<Database> {
    let mut database = Database::new(DatabaseOid::new(row.oid), row.key.name.as_str());
    let mut r = DefinitionReader(&row.definition);
    match r.u8()? {
        PLAIN => {}
        FORMAT => {
            let flags = r.u8()?;
            if flags > 3 {
                return Err(corrupt("a database has a flag that is not known"));
            }
            database.is_template = flags & 1 != 0;
            database.allow_connections = flags & 2 != 0;
            database.connection_limit = r.u32()?.cast_signed();
            database.collate = r.str()?;
            database.ctype = r.str()?;
            let settings = r.list(|r| {
                let role = match r.u32()? {
                    ALL_ROLES => None,
                    role => Some(RoleId::new(role)),
                };
                Ok((role, r.list(|r| Ok((r.str()?, r.str()?)))?))
            })?;
            database.settings = BTreeMap::from_iter(settings);
        }
        format => {
            return Err(corrupt(&format!(
                "database \"{}\" has format {format}, this build reads {FORMAT}",
                row.key.name
            )));
        }
    }
    if !r.0.is_empty() {
        return Err(corrupt("a database's definition has more than is known"));
    }
    Ok(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_read_back_and_damage_is_an_error() {
        let plain = Database::new(DatabaseOid::new(16_384), "plain");
        let row = encode(&plain);
        // As they were stored when nothing could be said of them.
        assert_eq!(row.definition, [1]);
        assert_eq!(decode(&row).unwrap(), plain);
        let mut other = plain;
        other.allow_connections = false;
        other.connection_limit = 7;
        other.ctype = "C.UTF-8".to_owned();
        other.settings = BTreeMap::from([
            (None, vec![("work_mem".to_owned(), "1024".to_owned())]),
            (Some(RoleId::new(16_390)), Vec::new()),
        ]);
        let row = encode(&other);
        assert_eq!(decode(&row).unwrap(), other);
        for length in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(length);
            assert!(decode(&cut).is_err(), "{length}");
        }
        let mut longer = row.clone();
        longer.definition.push(0);
        assert!(decode(&longer).is_err());
        let mut newer = row;
        newer.definition[0] = FORMAT + 1;
        assert!(decode(&newer).is_err());
    }
}
