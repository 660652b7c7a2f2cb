//! The stored form of owners, privileges and default privileges.
//!
//! A row for each object that has an owner or privileges other than it was made with, by (database, class, object); one
//! for each default privilege, by (database, `pg_default_acl`, role, schema and kind). Databases themselves are told of
//! under database 0, as all share them.

use crate::classes::CatalogObject;
use crate::privileges::{DefaultAclKey, ObjectPrivileges, PG_DEFAULT_ACL};
use crate::role::acl::{Acl, AclItem, AclKind};
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, RelationId, RoleId, SchemaId};
use std::collections::{BTreeMap, HashSet};

/// Version of the definitions written by this build.
const FORMAT: u8 = 1;
/// What stands for all schemas in the place of one, in the name of a default privilege.
const ALL_SCHEMAS: u32 = 0;

/// A row of the privileges' table.
pub enum StoredPrivileges {
    /// Of an object.
    Object(CatalogObject, ObjectPrivileges),
    /// Of what is made later.
    Default(DefaultAclKey, Acl),
}

fn write_acl(w: &mut DefinitionWriter, acl: &Acl) {
    w.list(&acl.0, |w, item| {
        w.u32(item.grantee.get());
        w.u32(item.grantor.get());
        w.u16(item.privileges);
        w.u16(item.grantable);
    });
}

fn read_acl(r: &mut DefinitionReader<'_>) -> Result<Acl> {
    let mut pairs = HashSet::new();
    let items = r.list(|r| {
        let item = AclItem {
            grantee: RoleId::new(r.u32()?),
            grantor: RoleId::new(r.u32()?),
            privileges: r.u16()?,
            grantable: r.u16()?,
        };
        if !item.is_sound() || !pairs.insert((item.grantee, item.grantor)) {
            return Err(corrupt("an item of privileges makes no sense"));
        }
        Ok(item)
    })?;
    Ok(Acl(items))
}

/// The row of an object's privileges; `oid` is the row's own.
pub fn encode(
    database: DatabaseOid,
    object: CatalogObject,
    oid: Oid,
    privileges: &ObjectPrivileges,
) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    w.u32(privileges.owner.get());
    w.opt(privileges.acl.as_ref(), write_acl);
    let columns: Vec<_> = privileges.columns.iter().collect();
    w.list(&columns, |w, (position, acl)| {
        w.u16(u16::try_from(**position).unwrap_or(u16::MAX));
        write_acl(w, acl);
    });
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: object.class.get(),
            name: object.oid.to_string(),
        },
        oid,
        definition: w.0,
    }
}

/// The letter that `pg_default_acl` has for a kind of object.
pub fn default_letter(kind: AclKind) -> char {
    match kind {
        AclKind::Sequence => 'S',
        AclKind::Function => 'f',
        AclKind::Type => 'T',
        AclKind::Schema => 'n',
        _ => 'r',
    }
}

fn default_kind(letter: &str) -> Option<AclKind> {
    let kinds = [
        AclKind::Table,
        AclKind::Sequence,
        AclKind::Function,
        AclKind::Type,
        AclKind::Schema,
    ];
    kinds
        .into_iter()
        .find(|kind| default_letter(*kind).to_string() == letter)
}

/// The row of a default privilege; `oid` is the row's own.
pub fn encode_default(database: DatabaseOid, key: DefaultAclKey, oid: Oid, acl: &Acl) -> ObjectRow {
    let (role, schema, kind) = key;
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    write_acl(&mut w, acl);
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: PG_DEFAULT_ACL.get(),
            name: format!(
                "{role}/{}/{}",
                schema.map_or(ALL_SCHEMAS, SchemaId::get),
                default_letter(kind)
            ),
        },
        oid,
        definition: w.0,
    }
}

/// Reads a row.
pub fn decode(row: &ObjectRow) -> Result<StoredPrivileges> {
    let damaged = || corrupt("rights of what has no number");
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "rights of \"{}\" have format {format}, this build reads {FORMAT}",
            row.key.name
        )));
    }
    let found = if row.key.namespace == PG_DEFAULT_ACL.get() {
        let mut parts = row.key.name.split('/');
        let mut number = || parts.next()?.parse::<Oid>().ok();
        let (role, schema) = (number(), number());
        let kind = parts.next().and_then(default_kind);
        let (Some(role), Some(schema), Some(kind)) = (role, schema, kind) else {
            return Err(damaged());
        };
        let schema = (schema != ALL_SCHEMAS).then(|| SchemaId::new(schema));
        StoredPrivileges::Default((RoleId::new(role), schema, kind), read_acl(&mut r)?)
    } else {
        let object = CatalogObject {
            class: RelationId::new(row.key.namespace),
            oid: row.key.name.parse().map_err(|_| damaged())?,
        };
        let owner = RoleId::new(r.u32()?);
        let acl = r.opt(read_acl)?;
        let columns = r.list(|r| Ok((usize::from(r.u16()?), read_acl(r)?)))?;
        let privileges = ObjectPrivileges {
            owner,
            acl,
            columns: columns.into_iter().collect::<BTreeMap<_, _>>(),
        };
        StoredPrivileges::Object(object, privileges)
    };
    if !r.0.is_empty() {
        return Err(corrupt("rights have more than is known"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::{PG_CLASS, PG_PUBLIC_NAMESPACE};
    use crate::role::BOOTSTRAP;
    use crate::role::acl::{ACL_ID_PUBLIC, privilege as p};

    const OBJECT: CatalogObject = CatalogObject {
        class: PG_CLASS,
        oid: 16_400,
    };
    const OWNER: RoleId = RoleId::new(16_500);
    const GRANTEE: RoleId = RoleId::new(16_501);

    fn item(grantee: RoleId) -> AclItem {
        AclItem {
            grantee,
            grantor: BOOTSTRAP,
            privileges: p::SELECT | p::USAGE,
            grantable: p::SELECT,
        }
    }

    fn rights() -> ObjectPrivileges {
        ObjectPrivileges {
            owner: OWNER,
            acl: Some(Acl(vec![item(ACL_ID_PUBLIC), item(GRANTEE)])),
            columns: [
                (0, Acl(vec![item(GRANTEE)])),
                (7, Acl(vec![item(ACL_ID_PUBLIC)])),
            ]
            .into(),
        }
    }

    #[test]
    fn rights_read_back_and_damage_is_an_error() {
        let row = encode(DatabaseOid::new(5), OBJECT, 16_600, &rights());
        let Ok(StoredPrivileges::Object(object, read)) = decode(&row) else {
            panic!("not read");
        };
        assert_eq!((object, read), (OBJECT, rights()));
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

    #[test]
    fn an_item_twice_or_of_nothing_is_damage() {
        let mut twice = rights();
        twice.acl = Some(Acl(vec![item(ACL_ID_PUBLIC), item(ACL_ID_PUBLIC)]));
        let mut nothing = rights();
        nothing.acl = Some(Acl(vec![AclItem {
            privileges: 0,
            grantable: 0,
            ..item(ACL_ID_PUBLIC)
        }]));
        for bad in [twice, nothing] {
            assert!(decode(&encode(DatabaseOid::new(5), OBJECT, 16_600, &bad)).is_err());
        }
    }

    #[test]
    fn default_privileges_read_back() {
        for kind in [
            AclKind::Table,
            AclKind::Sequence,
            AclKind::Type,
            AclKind::Schema,
        ] {
            let key = (OWNER, Some(PG_PUBLIC_NAMESPACE), kind);
            let row = encode_default(
                DatabaseOid::new(5),
                key,
                16_601,
                &Acl(vec![item(ACL_ID_PUBLIC)]),
            );
            let Ok(StoredPrivileges::Default(read, acl)) = decode(&row) else {
                panic!("not read");
            };
            assert_eq!((read, acl), (key, Acl(vec![item(ACL_ID_PUBLIC)])));
        }
    }
}
