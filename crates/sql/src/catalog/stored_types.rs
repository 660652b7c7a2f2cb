//! The stored form of users' types. They are rows of the relations' table, beside their schema's relations but under names of
//! their own, and their definitions have a format that builds without such types do not read: those refuse the database.

use super::stored::{ObjectKey, ObjectRow, Reader, Writer, corrupt};
use crate::error::Result;
use crate::value::Oid;
use crate::value::user::{self, Class, Label, UserKind, UserType};
use std::sync::Arc;

/// Set in the namespace of a type's row. OIDs never come near it.
const TYPE_NAMESPACE: Oid = 1 << 31;
/// Version of the definitions of types.
const FORMAT: u8 = 4;

/// True for the row of a type.
pub(crate) fn is_type(row: &ObjectRow) -> bool {
    row.key.namespace & TYPE_NAMESPACE != 0
}

/// The row of a type.
pub(crate) fn encode(database: Oid, ty: &UserType) -> ObjectRow {
    let mut w = Writer::default();
    w.u8(FORMAT);
    match &ty.kind {
        UserKind::Enum(labels) => {
            w.u8(b'e');
            w.bytes(ty.array_name.as_bytes());
            w.list(labels, |w, label| {
                w.u32(label.oid);
                w.i64(label.place.cast_signed());
                w.u32(label.sort.to_bits());
                w.bytes(label.name.as_bytes());
            });
        }
    }
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: ty.schema | TYPE_NAMESPACE,
            name: ty.name.clone(),
        },
        oid: ty.oid,
        definition: w.0,
    }
}

/// Reads the row of a type. `schema_name` is filled in by the caller.
pub(crate) fn decode(row: &ObjectRow) -> Result<UserType> {
    let mut r = Reader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "definition of type \"{}\" has format {format}, this build reads {FORMAT}",
            row.key.name
        )));
    }
    let (class, kind, array_name) = match r.u8()? {
        b'e' => {
            let array_name = r.str()?;
            let labels = r.list(|r| {
                Ok(Label {
                    oid: r.u32()?,
                    place: r.i64()?.cast_unsigned(),
                    sort: f32::from_bits(r.u32()?),
                    name: Arc::from(r.str()?),
                    fresh: false,
                })
            })?;
            if !labels.is_sorted_by(|a, b| a.place < b.place && a.sort < b.sort) {
                return Err(corrupt("labels of an enum are out of order"));
            }
            (Class::Enum, UserKind::Enum(labels), array_name)
        }
        _ => return Err(corrupt("unknown kind of type")),
    };
    if user::class(row.oid) != Some(class) {
        return Err(corrupt("a type has the number of another kind"));
    }
    if !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    Ok(UserType {
        oid: row.oid,
        name: row.key.name.clone(),
        array_name,
        schema: row.key.namespace & !TYPE_NAMESPACE,
        schema_name: String::new(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::stored::decode_relation;

    fn mood() -> UserType {
        let label = |index: usize, name: &str| Label {
            oid: 20_000 + index as Oid,
            place: user::first_place(index),
            sort: index as f32 + 1.0,
            name: Arc::from(name),
            fresh: false,
        };
        UserType {
            oid: 16_392,
            name: "mood".to_owned(),
            array_name: "_mood".to_owned(),
            schema: 2_200,
            schema_name: String::new(),
            kind: UserKind::Enum(vec![label(0, "sad"), label(1, "ok")]),
        }
    }

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let row = encode(5, &mood());
        assert!(is_type(&row));
        assert_eq!(decode(&row).unwrap(), mood());
        // Its number says that it is an enum; an array's is another.
        let wrong = ObjectRow {
            oid: 16_393,
            ..row.clone()
        };
        assert!(decode(&wrong).is_err());
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
        let mut turned = mood();
        let UserKind::Enum(labels) = &mut turned.kind;
        labels.reverse();
        assert!(decode(&encode(5, &turned)).is_err());
    }

    #[test]
    fn a_build_without_types_refuses_them() {
        // Such a build takes every row of that table for a relation.
        let error = decode_relation(&encode(5, &mood())).unwrap_err();
        assert!(error.fields().message.contains("has format 4"));
    }
}
