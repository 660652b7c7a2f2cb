//! The stored form of users' types. They are rows of the relations' table, beside their schema's relations but under
//! names of their own, and their definitions have a format that builds without such types do not read: those refuse the
//! database.

use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::{
    Attribute, Composite, Domain, DomainCheck, Label, RangeType, UserKind, UserType, UserTypeClass,
};
use logstead_sql_types::value::{Oid, SqlType, user};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, SchemaId, TypeId};
use std::sync::Arc;

/// Set in the namespace of a type's row. OIDs never come near it.
const TYPE_NAMESPACE: Oid = 1 << 31;
/// Version of the definitions of types.
const FORMAT: u8 = 4;
/// Version of those of composite types, which builds that know only [`FORMAT`] refuse.
const FORMAT_COMPOSITE: u8 = 6;
/// Version of those of extensions' types, which older builds refuse.
const FORMAT_BASE: u8 = 9;

/// Version of those of ranges, which older builds refuse.
const FORMAT_RANGE: u8 = 12;

/// True for the row of a type.
pub fn is_type(row: &ObjectRow) -> bool {
    row.key.namespace & TYPE_NAMESPACE != 0
}

/// The row of a type.
pub fn encode(database: DatabaseOid, ty: &UserType) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(match &ty.kind {
        UserKind::Composite(_) => FORMAT_COMPOSITE,
        UserKind::Base => FORMAT_BASE,
        UserKind::Range(_) => FORMAT_RANGE,
        _ => FORMAT,
    });
    match &ty.kind {
        UserKind::Base => {
            w.u8(b'b');
            w.bytes(ty.array_name.as_bytes());
        }
        UserKind::Range(range) => {
            w.u8(b'r');
            w.bytes(ty.array_name.as_bytes());
            for number in [
                range.subtype.get(),
                range.collation,
                range.class,
                range.difference.map_or(0, FunctionId::get),
            ] {
                w.u32(number);
            }
            w.bytes(range.multirange_name.as_bytes());
            w.bytes(range.multirange_array_name.as_bytes());
        }
        UserKind::Enum(labels) => {
            w.u8(b'e');
            w.bytes(ty.array_name.as_bytes());
            w.list(labels, |w, label| {
                w.u32(label.oid);
                w.i64(label.ordinal.cast_signed());
                w.u32(label.sort.to_bits());
                w.bytes(label.name.as_bytes());
            });
        }
        UserKind::Domain(domain) => {
            w.u8(b'd');
            w.bytes(ty.array_name.as_bytes());
            for of in [domain.over, domain.base] {
                w.u32(of.oid.get());
                w.u32(of.typmod.cast_unsigned());
            }
            w.u32(domain.collation);
            w.u8(u8::from(domain.not_null));
            w.opt(domain.default.as_ref(), |w, text| w.bytes(text.as_bytes()));
            w.list(&domain.checks, |w, check| {
                w.u32(check.oid);
                w.bytes(check.name.as_bytes());
                w.bytes(check.text.as_bytes());
                w.u8(u8::from(check.validated));
            });
        }
        UserKind::Composite(composite) => {
            w.u8(b'c');
            w.bytes(ty.array_name.as_bytes());
            w.u32(composite.relation.get());
            w.u16(composite.numbers.cast_unsigned());
            w.list(&composite.attributes, |w, attribute| {
                w.bytes(attribute.name.as_bytes());
                w.u32(attribute.ty.oid.get());
                w.u32(attribute.ty.typmod.cast_unsigned());
                w.u16(attribute.number.cast_unsigned());
                w.u32(attribute.collation);
            });
        }
    }
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: ty.schema.get() | TYPE_NAMESPACE,
            name: ty.name.clone(),
        },
        oid: ty.oid.get(),
        definition: w.0,
    }
}

/// Reads the row of a type. `schema_name` is filled in by the caller.
pub fn decode(row: &ObjectRow) -> Result<UserType> {
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if ![FORMAT, FORMAT_COMPOSITE, FORMAT_BASE, FORMAT_RANGE].contains(&format) {
        return Err(corrupt(&format!(
            "definition of type \"{}\" has format {format}, this build reads {FORMAT}, {FORMAT_COMPOSITE}, {FORMAT_BASE} and {FORMAT_RANGE}",
            row.key.name
        )));
    }
    let (class, kind, array_name) = match r.u8()? {
        b'e' => {
            let array_name = r.str()?;
            let labels = r.list(|r| {
                Ok(Label {
                    oid: r.u32()?,
                    ordinal: r.i64()?.cast_unsigned(),
                    sort: f32::from_bits(r.u32()?),
                    name: Arc::from(r.str()?),
                    fresh: false,
                })
            })?;
            if !labels.is_sorted_by(|a, b| a.ordinal < b.ordinal && a.sort < b.sort) {
                return Err(corrupt("labels of an enum are out of order"));
            }
            (UserTypeClass::Enum, UserKind::Enum(labels), array_name)
        }
        b'd' => {
            let array_name = r.str()?;
            let of = |r: &mut DefinitionReader<'_>| {
                Ok(SqlType {
                    oid: TypeId::new(r.u32()?),
                    typmod: r.u32()?.cast_signed(),
                })
            };
            let (over, base) = (of(&mut r)?, of(&mut r)?);
            if user::domain_in(base.oid).is_some() {
                return Err(corrupt("the base type of a domain is a domain"));
            }
            let domain = Domain {
                over,
                base,
                collation: r.u32()?,
                not_null: r.bool()?,
                default: r.opt(DefinitionReader::str)?,
                checks: r.list(|r| {
                    Ok(DomainCheck {
                        oid: r.u32()?,
                        name: r.str()?,
                        text: r.str()?,
                        validated: r.bool()?,
                    })
                })?,
            };
            let kind = UserKind::Domain(Box::new(domain));
            (UserTypeClass::Domain, kind, array_name)
        }
        b'c' if format == FORMAT_COMPOSITE => {
            let array_name = r.str()?;
            let relation = RelationId::new(r.u32()?);
            let numbers = r.u16()?.cast_signed();
            let attributes = r.list(|r| {
                Ok(Attribute {
                    name: Arc::from(r.str()?),
                    ty: SqlType {
                        oid: TypeId::new(r.u32()?),
                        typmod: r.u32()?.cast_signed(),
                    },
                    number: r.u16()?.cast_signed(),
                    collation: r.u32()?,
                })
            })?;
            if !attributes.is_sorted_by(|a, b| a.number < b.number) {
                return Err(corrupt("attributes of a composite type are out of order"));
            }
            let composite = Composite::new(relation, numbers, attributes);
            let kind = UserKind::Composite(Box::new(composite));
            (UserTypeClass::Composite, kind, array_name)
        }
        b'r' if format == FORMAT_RANGE => {
            let array_name = r.str()?;
            let range = RangeType {
                subtype: TypeId::new(r.u32()?),
                collation: r.u32()?,
                class: r.u32()?,
                difference: match r.u32()? {
                    0 => None,
                    function => Some(FunctionId::new(function)),
                },
                multirange_name: r.str()?,
                multirange_array_name: r.str()?,
            };
            (
                UserTypeClass::Range,
                UserKind::Range(Box::new(range)),
                array_name,
            )
        }
        b'b' if format == FORMAT_BASE => (UserTypeClass::Base, UserKind::Base, r.str()?),
        _ => return Err(corrupt("unknown kind of type")),
    };
    if user::class(TypeId::new(row.oid)) != Some(class) {
        return Err(corrupt("a type has the number of another kind"));
    }
    if !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    Ok(UserType {
        oid: TypeId::new(row.oid),
        name: row.key.name.clone(),
        array_name,
        schema: SchemaId::new(row.key.namespace & !TYPE_NAMESPACE),
        schema_name: String::new(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::PG_PUBLIC_NAMESPACE;
    use crate::stored::decode_relation;

    fn mood() -> UserType {
        let label = |index: usize, name: &str| Label {
            oid: 20_000 + index as Oid,
            ordinal: user::first_ordinal(index),
            sort: index as f32 + 1.0,
            name: Arc::from(name),
            fresh: false,
        };
        UserType {
            oid: TypeId::new(16_392),
            name: "mood".to_owned(),
            array_name: "_mood".to_owned(),
            schema: PG_PUBLIC_NAMESPACE,
            schema_name: String::new(),
            kind: UserKind::Enum(vec![label(0, "sad"), label(1, "ok")]),
        }
    }

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let row = encode(DatabaseOid::new(5), &mood());
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
        let UserKind::Enum(labels) = &mut turned.kind else {
            panic!("no enum");
        };
        labels.reverse();
        assert!(decode(&encode(DatabaseOid::new(5), &turned)).is_err());
    }

    #[test]
    fn a_domain_is_read_as_it_was_stored() {
        let ty = UserType {
            oid: TypeId::new(16_402),
            kind: UserKind::Domain(Box::new(Domain {
                over: SqlType::of(TypeId::new(16_394)),
                base: SqlType {
                    oid: logstead_sql_types::value::oid::VARCHAR,
                    typmod: 14,
                },
                collation: 950,
                not_null: true,
                default: Some("'x'::character varying".to_owned()),
                checks: vec![DomainCheck {
                    oid: 16_403,
                    name: "c".to_owned(),
                    text: "(VALUE > 'a'::text)".to_owned(),
                    validated: false,
                }],
            })),
            ..mood()
        };
        let row = encode(DatabaseOid::new(5), &ty);
        assert_eq!(decode(&row).unwrap(), ty);
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
        // Nor is it an enum.
        let wrong = ObjectRow { oid: 16_400, ..row };
        assert!(decode(&wrong).is_err());
    }

    #[test]
    fn a_composite_type_is_read_as_it_was_stored() {
        let attribute = |name: &str, number: i16| Attribute {
            name: Arc::from(name),
            ty: SqlType {
                oid: logstead_sql_types::value::oid::VARCHAR,
                typmod: 7,
            },
            number,
            collation: 950,
        };
        let composite = Composite::new(
            RelationId::new(16_405),
            3,
            vec![attribute("a", 1), attribute("b", 3)],
        );
        let ty = UserType {
            oid: TypeId::new(16_404),
            kind: UserKind::Composite(Box::new(composite)),
            ..mood()
        };
        let row = encode(DatabaseOid::new(5), &ty);
        assert_eq!(decode(&row).unwrap(), ty);
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
        let wrong = ObjectRow { oid: 16_402, ..row };
        assert!(decode(&wrong).is_err());
    }

    #[test]
    fn a_build_without_types_refuses_them() {
        // Such a build takes every row of that table for a relation.
        let error = decode_relation(&encode(DatabaseOid::new(5), &mood())).unwrap_err();
        assert!(error.fields().message.contains("has format 4"));
    }
}
