//! Types that users make: enums, domains and composite types, the types of tables' rows, and the arrays over all of
//! them.
//!
//! Owns: [`UserTypes`], a catalog's list of them, and the scope: which list, and which search path, the running
//! statement sees. Most code that handles values knows a type by its OID alone, so what it must know without asking
//! stands in the OID itself: the lowest three bits of a user's type say what kind it is ([`UserTypeClass`]), and the
//! array over a type has the next number. Labels of enums, fields of rows and bounds of ranges are asked from the scope
//! where values are read, written and computed: a session sets it whenever it looks at its catalog, and [`scoped`]
//! keeps those of sessions that share a thread apart. Whoever has a catalog, to bind, describe or print a type, asks
//! that ([`TypeLookup`]).
//!
//! An enum's value is its label's *place*: a number that orders the labels of its type and never changes, however
//! labels are renamed or come between others. So rows and index keys hold it, order by it, and need no catalog. Places
//! are given with wide gaps, and a new label takes the middle of a gap.
//!
//! A domain is the type of no value: what is declared with it holds values of its *base type* ([`base_type`]), which
//! never changes, and whoever makes such a value asks the domain's rules first (`bind::domain`). So rows, keys and
//! output know nothing of domains.
//!
//! A composite type's value is a record, an array of its fields ([`super::record`]); so is a row of a table, whose type
//! has no number of its own: it follows from the table's ([`row_type_of`]).
//!
//! Invariants: an OID never changes its kind; within a type places are different, and their order is that of
//! `pg_enum`'s sort order; a value read in a statement has a label in its scope, because a label never goes.

mod labels;
mod registry;
mod rows;
mod scope;
mod spelling;

use crate::SchemaId;
use crate::{FunctionId, RelationId, TypeId};
pub use labels::{enum_input, first_ordinal, known_label, label, ordinal_between, usable};
pub use registry::{Extension, TypeCatalog, TypeLookup, UserTypes};
pub use rows::{DOMAINS_ASKED, refuse_domains, refuse_unchecked_domains};
pub(super) use scope::tuple_desc;
use scope::{SCOPE, types};
pub use scope::{Scoped, base_type, domain_in, enter, scoped, search, searching, with};
use spelling::NUMBER_MARK;
pub use spelling::{TypeSpelling, names_type, number_text, types_named};

use super::record::TupleDesc;
use super::row_types::{self, FIRST_ROW_TYPE};
pub use super::row_types::{relation_of_row_type, row_type_of};
use super::types::{FIRST_EXTENSION_OID, FIRST_USER_OID, Oid, SqlType, oid};
use std::sync::Arc;

/// What the lowest bits of a user type's OID say.
const CLASS_BITS: u32 = 7;

/// Kinds of a user's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTypeClass {
    /// An enum; its array has the next OID.
    Enum,
    /// An array over the type with the OID before.
    Array,
    /// A domain; its array has the next OID.
    Domain,
    /// A composite type, or the type of a relation's rows; its array has the next OID.
    Composite,
    /// The type of an extension; its array has the next OID.
    Base,
    /// A range; its array has the next OID, its multirange the one [`MULTIRANGE_STEP`] behind it.
    Range,
    /// The multirange of the range with the OID [`MULTIRANGE_STEP`] before; its array has the next OID.
    Multirange,
    /// Any other user's type; it is the type of no value.
    Other,
}

/// Low bits of the OID of an enum; one more is its array.
pub const ENUM_BITS: u32 = 0;
/// Low bits of the OID of a domain; one more is its array.
pub const DOMAIN_BITS: u32 = 2;
/// Low bits of the OID of a composite type; one more is its array.
pub const COMPOSITE_BITS: u32 = 4;

/// What stands for a type that there is not, as PostgreSQL prints it.
pub(super) const UNKNOWN: &str = "???";

/// Low bits of the OID of a range; one more is its array.
pub const RANGE_BITS: u32 = 6;
/// From the OID of a range to that of its multirange: the bit is not set in the former.
pub const MULTIRANGE_STEP: u32 = 8;

/// The kind of a type by its OID; `None` for built-in types.
#[inline]
pub fn class(ty: TypeId) -> Option<UserTypeClass> {
    let oid = ty.get();
    if oid < FIRST_EXTENSION_OID {
        return row_types::class(oid);
    }
    if oid < FIRST_USER_OID {
        return match ty {
            oid::CITEXT | oid::HSTORE => Some(UserTypeClass::Base),
            oid::CITEXT_ARRAY | oid::HSTORE_ARRAY => Some(UserTypeClass::Array),
            _ => None,
        };
    }
    if oid >= FIRST_ROW_TYPE {
        return Some(row_types::class(oid).unwrap_or(UserTypeClass::Other));
    }
    Some(match oid & CLASS_BITS {
        ENUM_BITS => UserTypeClass::Enum,
        DOMAIN_BITS => UserTypeClass::Domain,
        COMPOSITE_BITS => UserTypeClass::Composite,
        RANGE_BITS if oid & MULTIRANGE_STEP == 0 => UserTypeClass::Range,
        RANGE_BITS => UserTypeClass::Multirange,
        _ => UserTypeClass::Array,
    })
}

/// True for enums.
#[inline]
pub fn is_enum(oid: TypeId) -> bool {
    class(oid) == Some(UserTypeClass::Enum)
}

/// The array over a type that a user has made, or over the type of a relation's rows.
#[inline]
pub const fn array_over(element: TypeId) -> TypeId {
    TypeId::new(element.get() + 1)
}

/// What such an array is over.
#[inline]
pub const fn element_under(array: TypeId) -> TypeId {
    TypeId::new(array.get() - 1)
}

/// The multirange of a range that a user has made.
#[inline]
pub const fn multirange_over(range: TypeId) -> TypeId {
    TypeId::new(range.get() + MULTIRANGE_STEP)
}

/// The range of such a multirange.
#[inline]
pub const fn range_under(multirange: TypeId) -> TypeId {
    TypeId::new(multirange.get() - MULTIRANGE_STEP)
}

/// The type that was made, to which a type belongs: the element of an array, the range of a multirange.
#[inline]
pub fn made(ty: TypeId) -> TypeId {
    let element = match class(ty) {
        Some(UserTypeClass::Array) => element_under(ty),
        _ => ty,
    };
    match class(element) {
        Some(UserTypeClass::Multirange) => range_under(element),
        _ => element,
    }
}

/// The user's type that a type is, or is an array over.
pub fn of_users(oid: TypeId) -> Option<TypeId> {
    class(oid).map(|_| made(oid))
}

/// The type of the bounds of a user's range, as the running statement sees it.
pub(super) fn range_subtype(range: TypeId) -> Option<TypeId> {
    if class(range) != Some(UserTypeClass::Range) {
        return None;
    }
    SCOPE.with_borrow(|scope| Some(scope.types.get(range)?.range()?.subtype))
}

/// True for composite types and the types of relations' rows.
#[inline]
pub fn is_composite(oid: TypeId) -> bool {
    class(oid) == Some(UserTypeClass::Composite)
}

/// A value of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumValue {
    /// Which enum.
    pub ty: TypeId,
    /// The label's place.
    pub ordinal: u64,
}

/// A label of an enum.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// `pg_enum.oid`
    pub oid: Oid,
    /// What values hold.
    pub ordinal: u64,
    /// `enumsortorder`, as PostgreSQL would have it.
    pub sort: f32,
    /// `enumlabel`
    pub name: Arc<str>,
    /// Added to an older type by the transaction that looks at it: not to be used before it commits.
    pub fresh: bool,
}

/// A CHECK of a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainCheck {
    /// `pg_constraint.oid`
    pub oid: Oid,
    /// `conname`
    pub name: String,
    /// The condition as stored text; the value is a column called `value`.
    pub text: String,
    /// `convalidated`
    pub validated: bool,
}

/// What a domain is.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// The type it is made over, which may be another domain.
    pub over: SqlType,
    /// What its values are: `over` without domains.
    pub base: SqlType,
    /// `typcollation` if it was said, else 0. All order alike.
    pub collation: Oid,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT as stored text.
    pub default: Option<String>,
    /// CHECKs, oldest first.
    pub checks: Vec<DomainCheck>,
}

impl Domain {
    /// All that is kept of it as text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let checks = self.checks.iter().map(|c| c.text.as_str());
        checks.chain(self.default.as_deref())
    }
}

/// A field of a composite type.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// `attname`
    pub name: Arc<str>,
    /// `atttypid` and `atttypmod`
    pub ty: SqlType,
    /// `attnum`; numbers of fields that were dropped are not given again.
    pub number: i16,
    /// `attcollation` if it was said, else 0. All order alike.
    pub collation: Oid,
}

/// What a composite type is.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// Its OID in `pg_class`, where it is a relation of kind `c`.
    pub relation: RelationId,
    /// `relnatts`: the highest number that a field has or had.
    pub numbers: i16,
    /// The fields there are.
    pub attributes: Vec<Attribute>,
    shape: TupleDesc,
}

impl Composite {
    /// A composite type of these fields.
    pub fn new(relation: RelationId, numbers: i16, attributes: Vec<Attribute>) -> Composite {
        let fields = attributes.iter().map(|a| (Arc::clone(&a.name), a.ty));
        let shape = fields.collect();
        Composite {
            relation,
            numbers,
            attributes,
            shape,
        }
    }
}

/// What the type of a relation's rows is.
#[derive(Clone, Debug, PartialEq)]
struct RowType {
    schema_name: String,
    name: String,
    shape: TupleDesc,
    /// The same with the domains that columns are declared as, if any is: who makes a row asks these.
    declared: Option<TupleDesc>,
}

/// What a range is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeType {
    /// The type of its bounds.
    pub subtype: TypeId,
    /// `rngcollation`
    pub collation: Oid,
    /// `rngsubopc`
    pub class: Oid,
    /// `rngsubdiff`.
    pub difference: Option<FunctionId>,
    /// `typname` of its multirange.
    pub multirange_name: String,
    /// `typname` of the array over that.
    pub multirange_array_name: String,
}

/// What a user's type is.
#[derive(Clone, Debug, PartialEq)]
pub enum UserKind {
    /// A range, with its multirange.
    Range(Box<RangeType>),
    /// An enum, its labels in order.
    Enum(Vec<Label>),
    /// A domain.
    Domain(Box<Domain>),
    /// A composite type.
    Composite(Box<Composite>),
    /// The type of an extension: where it is, the extension is.
    Base,
}

/// A type that a user has made.
#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    /// `pg_type.oid`
    pub oid: TypeId,
    /// `typname`
    pub name: String,
    /// `typname` of the array over it, whose OID is the next.
    pub array_name: String,
    /// Schema OID.
    pub schema: SchemaId,
    /// Schema name.
    pub schema_name: String,
    /// What it is.
    pub kind: UserKind,
}

impl UserType {
    /// The labels of an enum, in order; of another type none.
    pub fn labels(&self) -> &[Label] {
        match &self.kind {
            UserKind::Enum(labels) => labels,
            _ => &[],
        }
    }

    /// The domain, if it is one.
    pub fn domain(&self) -> Option<&Domain> {
        match &self.kind {
            UserKind::Domain(domain) => Some(domain),
            _ => None,
        }
    }

    /// The composite type, if it is one.
    pub fn composite(&self) -> Option<&Composite> {
        match &self.kind {
            UserKind::Composite(composite) => Some(composite),
            _ => None,
        }
    }

    /// The range, if it is one.
    pub fn range(&self) -> Option<&RangeType> {
        match &self.kind {
            UserKind::Range(range) => Some(range),
            _ => None,
        }
    }

    /// The names of all types that go with it, arrays too, each with its OID.
    fn named(&self) -> impl Iterator<Item = (&String, TypeId)> {
        let multirange = self.range().map(|range| {
            let multirange = multirange_over(self.oid);
            [
                (&range.multirange_name, multirange),
                (&range.multirange_array_name, array_over(multirange)),
            ]
        });
        [
            (&self.name, self.oid),
            (&self.array_name, array_over(self.oid)),
        ]
        .into_iter()
        .chain(multirange.into_iter().flatten())
    }

    /// The type as it is for others when the transaction that changed it has committed.
    pub fn settled(&self) -> UserType {
        let mut settled = self.clone();
        if let UserKind::Enum(labels) = &mut settled.kind {
            labels.iter_mut().for_each(|label| label.fresh = false);
        }
        settled
    }

    fn label_at(&self, ordinal: u64) -> Option<&Label> {
        let labels = self.labels();
        let at = labels.binary_search_by_key(&ordinal, |l| l.ordinal).ok()?;
        labels.get(at)
    }
}

/// `format_type` of a user's type that is no array, as the running statement sees it.
pub(super) fn format(oid: TypeId) -> String {
    SCOPE.with_borrow(|scope| scope.lookup().format_user_type(oid))
}

/// `typname` of a user's type or array.
pub(super) fn name(oid: TypeId) -> String {
    types()
        .name_of(oid)
        .map_or_else(|| UNKNOWN.to_owned(), |(_, name)| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Datum;
    use logstead_types::SqlState;

    fn mood() -> Arc<UserTypes> {
        let label = |index: usize, name: &str| Label {
            oid: 20_000 + index as Oid,
            ordinal: first_ordinal(index),
            sort: index as f32 + 1.0,
            name: Arc::from(name),
            fresh: index == 2,
        };
        let mut types = UserTypes::default();
        types.put(Arc::new(UserType {
            oid: TypeId::new(16_392),
            name: "mood".to_owned(),
            array_name: "_mood".to_owned(),
            schema: SchemaId::new(2200),
            schema_name: "public".to_owned(),
            kind: UserKind::Enum(vec![label(0, "sad"), label(1, "ok"), label(2, "new")]),
        }));
        Arc::new(types)
    }

    #[test]
    fn places_between_keep_their_order() {
        let mut places: Vec<u64> = (0..3).map(first_ordinal).collect();
        // Before the second label, forty times in the narrowest gap.
        for _ in 0..40 {
            let new = ordinal_between(Some(places[0]), Some(places[1])).unwrap();
            places.insert(1, new);
        }
        assert!(places.is_sorted_by(|a, b| a < b));
        assert_eq!(ordinal_between(Some(places[0]), Some(places[1])), None);
        assert!(ordinal_between(None, Some(places[0])).unwrap() < places[0]);
        assert!(ordinal_between(places.last().copied(), None).unwrap() > *places.last().unwrap());
    }

    #[test]
    fn types_are_printed_by_a_path_or_by_number() {
        let types = mood();
        let nowhere = types.lookup(&[]);
        assert_eq!(
            types.find(Some("public"), "_mood", &[]),
            Some(TypeId::new(16_393))
        );
        assert_eq!(types.find(None, "mood", &[]), None);
        assert_eq!(
            nowhere.format_type_bare(TypeId::new(16_393)),
            "public.mood[]"
        );
        let path = ["public".to_owned()];
        let public = types.lookup(&path);
        assert_eq!(types.find(None, "_mood", &path), Some(TypeId::new(16_393)));
        assert_eq!(public.format_type_bare(TypeId::new(16_392)), "mood");
        let numbered = TypeSpelling::numbered(public);
        let stored = format!("'ok'::{}", numbered.format_type_bare(TypeId::new(16_393)));
        assert!(
            names_type(&stored, TypeId::new(16_392)) && !names_type(&stored, TypeId::new(16_400))
        );
        assert_eq!(TypeSpelling::named(public).shown(&stored), "'ok'::mood[]");
        assert_eq!(
            TypeSpelling::named(nowhere).shown(&stored),
            "'ok'::public.mood[]"
        );
        assert_eq!(numbered.shown(&stored), stored);
    }

    #[test]
    fn labels_are_those_of_the_scope() {
        with(&mood(), || {
            let Datum::Enum(ok) = enum_input(TypeId::new(16_392), "ok").unwrap() else {
                panic!("no enum");
            };
            assert_eq!(&*label(ok).unwrap(), "ok");
            let code = |text| {
                enum_input(TypeId::new(16_392), text)
                    .unwrap_err()
                    .fields()
                    .code
            };
            assert_eq!(code("new"), SqlState::new(b"55P04"));
            assert_eq!(code("none"), SqlState::INVALID_TEXT_REPRESENTATION);
        });
        assert!(enum_input(TypeId::new(16_392), "ok").is_err());
    }
}
