//! The stored form reads back as written, and damaged bytes are an error.

use super::system_relations::sample;
use logstead_engine::{KeyExtractor, RowBuilder, RowRef};
use logstead_sql_catalog::stored::*;
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_types::DatabaseOid;

fn row(definition: Vec<u8>) -> ObjectRow {
    let key = ObjectKey {
        database: DatabaseOid::new(5),
        namespace: 2200,
        name: "n".to_owned(),
    };
    ObjectRow {
        key,
        oid: 20_000,
        definition,
    }
}

#[test]
fn definitions_read_back() {
    let catalog = sample();
    for relation in catalog
        .relations
        .values()
        .filter(|r| !matches!(r.kind, RelationKind::Virtual(_)))
    {
        let options = vec!["fillfactor=90".to_owned()];
        let encoded = encode_relation(relation, &options);
        let StoredRelation::Relation(back, read) = decode_relation(&row(encoded.clone())).unwrap()
        else {
            panic!("a relation reads as an index");
        };
        assert_eq!(encode_relation(&back, &read), encoded);
        for index in &relation.indexes {
            let encoded = encode_index(index, &[]);
            let StoredRelation::Index(back, read) = decode_relation(&row(encoded.clone())).unwrap()
            else {
                panic!("an index reads as a relation");
            };
            assert_eq!(encode_index(&back, &read), encoded);
        }
        // Every shorter definition, and every changed byte, is refused or read: never a panic.
        for length in 0..encoded.len() {
            assert!(decode_relation(&row(encoded[..length].to_vec())).is_err());
            let mut damaged = encoded.clone();
            damaged[length] ^= 0x55;
            let _ = decode_relation(&row(damaged));
        }
    }
}

#[test]
fn builds_that_know_no_generated_columns_refuse_them() {
    let catalog = sample();
    let table = catalog
        .relations
        .values()
        .find(|r| matches!(r.kind, RelationKind::Table))
        .unwrap();
    let plain = encode_relation(table, &[]);
    let mut generated = Relation::clone(table);
    let column = generated.columns.last_mut().unwrap();
    column.generated = true;
    column.default = Some("(1 + 1)".to_owned());
    let encoded = encode_relation(&generated, &[]);
    // They read definitions that begin with 2, and only those.
    assert_eq!((plain[0], encoded[0]), (2, 3));
    let StoredRelation::Relation(back, _) = decode_relation(&row(encoded)).unwrap() else {
        panic!("a relation reads as an index");
    };
    assert!(back.columns.last().unwrap().generated);
    assert!(back.columns.iter().rev().skip(1).all(|c| !c.generated));
    let mut newer = plain;
    newer[0] = 4;
    assert!(decode_relation(&row(newer)).is_err());
}

#[test]
fn object_rows_read_back_and_keys_keep_names_apart() {
    let mut builder = RowBuilder::new();
    let object = row(vec![1, 2, 3]);
    let bytes = object.encode(&mut builder);
    assert_eq!(
        ObjectRow::decode(RowRef::parse(&bytes).unwrap()).unwrap(),
        object
    );
    let key = |name: &str| {
        let mut other = object.clone();
        other.key.name = name.to_owned();
        let bytes = other.encode(&mut RowBuilder::new());
        let mut out = Vec::new();
        NameKey.key(RowRef::new(&bytes), &mut out);
        out
    };
    assert!(key("a") < key("ab") && !key("ab").starts_with(&key("a")));
}
