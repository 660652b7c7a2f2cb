//! The stored form of roles, and of the secret behind mock authentication.

use crate::role::{Membership, Role};
use crate::stored::SHARED;
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;

/// Version of the definitions written by this build.
const FORMAT: u8 = 1;
/// Namespace of a role's row.
const NAMED: u32 = 0;
/// Namespace of the secret's row.
const SECRET: u32 = 1;
/// Namespace of the row that says that there are owners and privileges.
const RIGHTS: u32 = 2;
/// Bytes of the secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// A row of the roles' table.
pub(crate) enum StoredRole {
    Role(Box<Role>),
    /// There are owners and privileges: a build that does not know them would forget them, and cannot read this row
    /// either.
    HasPrivileges,
    /// What roles that are not there are asked is made from it.
    Secret([u8; SECRET_BYTES]),
}

/// The row of a role.
pub fn encode(role: &Role) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    let flags = [
        role.superuser,
        role.inherit,
        role.create_role,
        role.create_db,
        role.login,
        role.replication,
        role.bypass_rls,
    ];
    w.u16(
        flags
            .iter()
            .enumerate()
            .fold(0, |bits, (i, on)| bits | u16::from(*on) << i),
    );
    w.u32(role.connection_limit.cast_unsigned());
    w.opt(role.password.as_ref(), |w, p| w.bytes(p.as_bytes()));
    w.opt(role.valid_until, DefinitionWriter::i64);
    w.list(&role.settings, |w, (name, value)| {
        w.bytes(name.as_bytes());
        w.bytes(value.as_bytes());
    });
    w.list(&role.member_of, |w, m| {
        w.u32(m.role.get());
        w.u32(m.grantor.get());
        w.u8(u8::from(m.admin));
    });
    ObjectRow {
        key: ObjectKey {
            database: SHARED,
            namespace: NAMED,
            name: role.name.clone(),
        },
        oid: role.oid.get(),
        definition: w.0,
    }
}

/// The row of the secret.
pub(crate) fn encode_secret(secret: [u8; SECRET_BYTES]) -> ObjectRow {
    ObjectRow {
        key: ObjectKey {
            database: SHARED,
            namespace: SECRET,
            name: String::new(),
        },
        oid: 0,
        definition: secret.to_vec(),
    }
}

/// The row that says that there are owners and privileges. A build without them takes it for a role of a format that it
/// does not know.
pub fn encode_has_rights() -> ObjectRow {
    ObjectRow {
        key: ObjectKey {
            database: SHARED,
            namespace: RIGHTS,
            name: "owners and privileges".to_owned(),
        },
        oid: 0,
        definition: vec![FORMAT + 1],
    }
}

/// Reads a row.
pub(crate) fn decode(row: &ObjectRow) -> Result<StoredRole> {
    if row.key.namespace == SECRET {
        let secret = row.definition.as_slice().try_into();
        return Ok(StoredRole::Secret(secret.map_err(|_| {
            corrupt("the secret of mock authentication has the wrong length")
        })?));
    }
    if row.key.namespace == RIGHTS && row.definition == [FORMAT + 1] {
        return Ok(StoredRole::HasPrivileges);
    }
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "role \"{}\" has format {format}, this build reads {FORMAT}",
            row.key.name
        )));
    }
    let flags = r.u16()?;
    let flag = |i: usize| flags & (1 << i) != 0;
    let role = Role {
        oid: RoleId::new(row.oid),
        name: row.key.name.clone(),
        superuser: flag(0),
        inherit: flag(1),
        create_role: flag(2),
        create_db: flag(3),
        login: flag(4),
        replication: flag(5),
        bypass_rls: flag(6),
        connection_limit: r.u32()?.cast_signed(),
        password: r.opt(DefinitionReader::str)?,
        valid_until: r.opt(DefinitionReader::i64)?,
        settings: r.list(|r| Ok((r.str()?, r.str()?)))?,
        member_of: r.list(|r| {
            Ok(Membership {
                role: RoleId::new(r.u32()?),
                grantor: RoleId::new(r.u32()?),
                admin: r.bool()?,
            })
        })?,
    };
    if !r.0.is_empty() || flags >> 7 != 0 {
        return Err(corrupt("a role's definition has more than is known"));
    }
    Ok(StoredRole::Role(Box::new(role)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::{BOOTSTRAP, CHECKPOINT};

    #[test]
    fn roles_read_back_and_damage_is_an_error() {
        let mut role = Role::bootstrap();
        role.inherit = false;
        role.connection_limit = -1;
        role.password = Some("SCRAM-SHA-256$...".to_owned());
        role.valid_until = Some(-5);
        role.settings = vec![("work_mem".to_owned(), "1024".to_owned())];
        role.member_of = vec![Membership {
            role: CHECKPOINT,
            grantor: BOOTSTRAP,
            admin: true,
        }];
        let row = encode(&role);
        let Ok(StoredRole::Role(read)) = decode(&row) else {
            panic!("not read");
        };
        assert_eq!(*read, role);
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
    fn a_build_without_rights_cannot_read_that_there_are_some() {
        let mut row = encode_has_rights();
        assert!(matches!(decode(&row), Ok(StoredRole::HasPrivileges)));
        // As such a build reads it: any row but the secret's is a role.
        row.key.namespace = NAMED;
        assert!(decode(&row).is_err());
    }

    #[test]
    fn the_secret_reads_back() {
        let row = encode_secret([9; SECRET_BYTES]);
        assert!(matches!(decode(&row), Ok(StoredRole::Secret(s)) if s == [9; SECRET_BYTES]));
        let mut short = row;
        short.definition.pop();
        assert!(decode(&short).is_err());
    }
}
