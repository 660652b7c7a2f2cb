//! The types of system relations' rows.

use crate::pg_catalog;
use logstead_sql_types::value::FIRST_EXTENSION_OID;
use logstead_sql_types::value::user::{
    UserTypeClass, array_over, class, relation_of_row_type, row_type_of,
};

#[test]
fn every_system_relation_has_a_row_type_of_its_own_below_users_objects() {
    let mut seen = std::collections::BTreeSet::new();
    for table in pg_catalog::tables() {
        let row = row_type_of(table.oid).unwrap();
        let array = array_over(row);
        assert!(array.get() < FIRST_EXTENSION_OID, "{}", table.name);
        assert!(seen.insert(row), "{}", table.name);
        for (oid, kind) in [
            (row, UserTypeClass::Composite),
            (array, UserTypeClass::Array),
        ] {
            assert_eq!(relation_of_row_type(oid), Some(table.oid));
            assert_eq!(class(oid), Some(kind));
        }
    }
}
