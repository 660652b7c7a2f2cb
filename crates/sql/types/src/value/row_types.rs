//! Numbers of the types of relations' rows. They follow from the relation's, so no row type has a number of its own in
//! the catalog.
//!
//! A user's relation has its row type above 2^30, where no counter of OIDs comes. System relations have theirs below
//! 16384: clients take what is above for users' objects (`FirstNormalObjectId` of PostgreSQL). Columns, views and
//! functions may be declared with these types, so the log holds the numbers: they never change.

use super::types::Oid;
use super::user::UserTypeClass;
use crate::{RelationId, TypeId};

/// Row types of users' relations begin here: twice the relation's OID behind it.
pub(super) const FIRST_ROW_TYPE: Oid = 1 << 30;
/// They end here.
const ROW_TYPES_END: Oid = 1 << 31;
/// System views have OIDs from here to [`VIEWS_END`].
const VIEWS: Oid = 12_000;
const VIEWS_END: Oid = 13_600;
/// Row types of system views begin here: two numbers for each.
const OF_VIEWS: Oid = 10_000;
/// Row types of system catalogs begin here: two numbers for each, in the order of [`CATALOGS`].
const OF_CATALOGS: Oid = OF_VIEWS + 2 * (VIEWS_END - VIEWS);
const OF_CATALOGS_END: Oid = OF_CATALOGS + 2 * CATALOGS.len() as Oid;

/// The system catalogs. What comes later stands at the end, so that the others keep their row types.
#[rustfmt::skip]
const CATALOGS: [Oid; 66] = [
    826, 1213, 1214, 1247, 1249, 1255, 1259, 1260, 1261, 1262, 1417, 1418,
    2224, 2328, 2396, 2600, 2601, 2602, 2603, 2604, 2605, 2606, 2607, 2608,
    2609, 2610, 2611, 2612, 2613, 2615, 2616, 2617, 2618, 2619, 2620, 2753,
    2964, 2995, 3079, 3118, 3256, 3350, 3381, 3394, 3429, 3456, 3466, 3501,
    3541, 3576, 3592, 3596, 3600, 3601, 3602, 3603, 3764, 6000, 6100, 6102,
    6104, 6106, 6237, 6243, 8613, 8614,
];

/// The type of a relation's rows; one more is the array over it. None for a system relation that is not in the list.
pub const fn row_type_of(relation: RelationId) -> Option<TypeId> {
    let relation = relation.get();
    if relation >= VIEWS && relation < VIEWS_END {
        return Some(TypeId::new(OF_VIEWS + 2 * (relation - VIEWS)));
    }
    if relation >= VIEWS {
        let row = FIRST_ROW_TYPE | (relation << 1 & (FIRST_ROW_TYPE - 1));
        return Some(TypeId::new(row));
    }
    let mut place = 0;
    while place < CATALOGS.len() {
        if CATALOGS[place] == relation {
            return Some(TypeId::new(OF_CATALOGS + 2 * place as Oid));
        }
        place += 1;
    }
    None
}

/// The relation whose rows are of this type, or are what the array is over.
#[inline]
pub fn relation_of_row_type(ty: TypeId) -> Option<RelationId> {
    let oid = ty.get();
    let relation = match oid {
        FIRST_ROW_TYPE..ROW_TYPES_END => (oid & (FIRST_ROW_TYPE - 1)) >> 1,
        OF_VIEWS..OF_CATALOGS => VIEWS + (oid - OF_VIEWS) / 2,
        OF_CATALOGS..OF_CATALOGS_END => {
            let place = (oid - OF_CATALOGS) / 2;
            *CATALOGS.get(place as usize)?
        }
        _ => return None,
    };
    Some(RelationId::new(relation))
}

/// The kind of a row type by its OID; `None` if it is none.
#[inline]
pub(super) fn class(oid: u32) -> Option<UserTypeClass> {
    match oid {
        OF_VIEWS..OF_CATALOGS_END | FIRST_ROW_TYPE..ROW_TYPES_END => Some(match oid & 1 {
            0 => UserTypeClass::Composite,
            _ => UserTypeClass::Array,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::user::array_over;

    #[test]
    fn a_users_relation_keeps_its_row_type() {
        for relation in [16_384, 16_391, (1 << 29) - 1] {
            let row = row_type_of(RelationId::new(relation));
            assert_eq!(row, Some(TypeId::new((1 << 30) + 2 * relation)));
            assert_eq!(
                relation_of_row_type(array_over(row.unwrap())),
                Some(RelationId::new(relation))
            );
        }
    }
}
