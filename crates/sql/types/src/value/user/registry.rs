//! A catalog's list of the types that users make.
//!
//! Owns: [`UserTypes`]: types by their number and by their name, rows of tables, and [`Extension`]s. Invariant: what
//! is found by a name and by a number is one and the same.

use super::super::info;
use super::super::names::{quote_identifier, truncate_name};
use super::super::range;
use super::super::record::{self, TupleDesc};
use super::super::row_types::{relation_of_row_type, row_type_of};
use super::super::types::{Oid, SqlType};
use super::{
    NUMBER_MARK, RowType, UNKNOWN, UserType, UserTypeClass, array_over, class, domain_in,
    element_under, is_composite, range_under,
};
use crate::persistent::PersistentMap;
use crate::{RelationId, SchemaId, TypeId};
use std::borrow::Cow;
use std::sync::Arc;

/// A catalog, as far as types' names are looked up in it.
pub trait TypeCatalog {
    /// The types that users have made.
    fn user_types(&self) -> &Arc<UserTypes>;
}

/// All users' types of a database.
#[derive(Clone, Debug, Default)]
pub struct UserTypes {
    pub(super) types: PersistentMap<TypeId, Arc<UserType>>,
    /// Types and arrays by schema and name.
    names: PersistentMap<(String, String), TypeId>,
    /// The types of relations' rows, by relation.
    pub(super) rows: PersistentMap<RelationId, Arc<RowType>>,
    /// The same by schema and name of the relation.
    row_names: PersistentMap<(String, String), RelationId>,
    /// Composite types by their number in `pg_class`.
    composites: PersistentMap<RelationId, TypeId>,
    /// Extensions that were made. They are here because statements find their functions as they find types: by schema
    /// and path.
    pub(super) extensions: Vec<Arc<Extension>>,
}

/// What types are looked up and printed by: a catalog's, and the schemas that are searched for names.
#[derive(Clone, Copy)]
pub struct TypeLookup<'a> {
    /// The types.
    pub types: &'a UserTypes,
    /// The schemas.
    pub search_path: &'a [String],
}

impl<'a> TypeLookup<'a> {
    /// True if the type's bare name means it.
    pub fn is_visible(self, oid: TypeId) -> bool {
        match self.types.name_of(oid) {
            Some((_, name)) => {
                let found = self.types.find(None, &name, self.search_path);
                info::by_name(&name).is_none() && found == Some(oid)
            }
            None => false,
        }
    }

    /// Prints a type as `format_type(oid, typmod)` does: SQL spelling, modifier in parentheses, `[]` for arrays.
    pub fn format_type(self, ty: SqlType) -> String {
        info::format_with(ty, true, &|oid| self.format_user_type(oid))
    }

    /// As [`TypeLookup::format_type`] with a NULL modifier: error messages, `regtype` and `pg_typeof` print so.
    pub fn format_type_bare(self, oid: TypeId) -> String {
        info::format_with(SqlType::of(oid), false, &|oid| self.format_user_type(oid))
    }

    /// `format_type` of a user's type that is no array.
    pub(super) fn format_user_type(self, oid: TypeId) -> String {
        match self.types.name_of(oid) {
            Some((_, name)) if self.is_visible(oid) => quote_identifier(&name),
            Some((schema, name)) => {
                format!("{}.{}", quote_identifier(schema), quote_identifier(&name))
            }
            None => UNKNOWN.to_owned(),
        }
    }

    /// The extension of this name, and whether its functions are found without their schema.
    pub fn extension(self, name: &str) -> Option<(&'a Arc<Extension>, bool)> {
        let found = self.types.extensions.iter().find(|e| e.name == name)?;
        let searched = self.search_path.contains(&found.schema_name);
        Some((found, searched))
    }
}

/// An extension that was made, beside those that are always there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// `pg_extension.oid`
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// Schema of its functions.
    pub schema: SchemaId,
    /// The schema's name.
    pub schema_name: String,
    /// Version.
    pub version: String,
}

impl UserTypes {
    /// What types are looked up and printed by where these schemas are searched.
    pub fn lookup<'a>(&'a self, search_path: &'a [String]) -> TypeLookup<'a> {
        TypeLookup {
            types: self,
            search_path,
        }
    }

    /// Extensions that were made, oldest first.
    pub fn extensions(&self) -> &[Arc<Extension>] {
        &self.extensions
    }

    /// An extension was made.
    pub fn put_extension(&mut self, extension: Extension) {
        self.remove_extension(extension.oid);
        self.extensions.push(Arc::new(extension));
        self.extensions.sort_unstable_by_key(|e| e.oid);
    }

    /// An extension was dropped.
    pub fn remove_extension(&mut self, oid: Oid) {
        self.extensions.retain(|e| e.oid != oid);
    }

    /// The type with this OID, arrays aside.
    pub fn get(&self, oid: TypeId) -> Option<&Arc<UserType>> {
        self.types.get(&oid)
    }

    /// The composite type with this number in `pg_class`.
    pub fn composite_of(&self, relation: RelationId) -> Option<&Arc<UserType>> {
        self.types.get(self.composites.get(&relation)?)
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<&Arc<UserType>> {
        let mut all: Vec<_> = self.types.values().collect();
        all.sort_unstable_by_key(|t| t.oid);
        all
    }

    /// OID of a type or array by schema and name.
    pub fn by_name(&self, schema: &str, name: &str) -> Option<TypeId> {
        self.names
            .get(&(schema.to_owned(), name.to_owned()))
            .copied()
    }

    /// OID of a relation's row type, or of the array over one, by schema and name. Types that were made come first.
    pub fn row_type_by_name(&self, schema: &str, name: &str) -> Option<TypeId> {
        let row = |name: &str| self.row_names.get(&(schema.to_owned(), name.to_owned()));
        match (row(name), name.strip_prefix('_')) {
            (Some(relation), _) => row_type_of(*relation),
            (None, Some(element)) => row_type_of(*row(element)?).map(array_over),
            (None, None) => None,
        }
    }

    /// A type or array by the name that somebody wrote, or a kept text; without a schema these are searched.
    pub fn find(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<TypeId> {
        if let Some(number) = name.strip_prefix(NUMBER_MARK) {
            let oid = TypeId::new(number.parse().ok()?);
            return self.name_of(oid).map(|_| oid);
        }
        if self.types.is_empty() && self.rows.is_empty() {
            return None;
        }
        match schema {
            Some(schema) => self.any_by_name(schema, name),
            None => {
                let found = search_path.iter().find_map(|s| self.any_by_name(s, name));
                // The types of system relations' rows are found wherever one looks.
                found.or_else(|| self.row_type_by_name("pg_catalog", name))
            }
        }
    }

    fn any_by_name(&self, schema: &str, name: &str) -> Option<TypeId> {
        self.by_name(schema, name)
            .or_else(|| self.row_type_by_name(schema, name))
    }

    /// The fields of a record type; `None` if nothing is known of them.
    pub fn tuple_desc_of(&self, ty: SqlType) -> Option<TupleDesc> {
        match is_composite(ty.oid) {
            true => self.shape(ty.oid),
            false => record::anonymous_desc(ty),
        }
    }

    /// Fields of a composite type or of a relation's row.
    pub fn shape(&self, oid: TypeId) -> Option<TupleDesc> {
        match relation_of_row_type(oid) {
            Some(relation) => self.rows.get(&relation).map(|row| Arc::clone(&row.shape)),
            None => Some(Arc::clone(&self.get(oid)?.composite()?.shape)),
        }
    }

    /// The fields as they are declared: those of domains as such.
    pub fn declared_shape(&self, oid: TypeId) -> Option<TupleDesc> {
        if !is_composite(oid) {
            return None;
        }
        let row = relation_of_row_type(oid).and_then(|relation| self.rows.get(&relation));
        let declared = row.and_then(|row| row.declared.clone());
        declared.or_else(|| self.shape(oid))
    }

    /// True if the relation's row type is known as this.
    pub fn has_row(
        &self,
        relation: RelationId,
        (schema, name): (&str, &str),
        (shape, declared): (&TupleDesc, Option<&TupleDesc>),
    ) -> bool {
        let known = self.rows.get(&relation);
        known.is_some_and(|row| {
            let named = row.schema_name == schema && row.name == name;
            named && row.shape == *shape && row.declared.as_ref() == declared
        })
    }

    /// Adds or replaces the type of a relation's rows.
    pub fn put_row(
        &mut self,
        relation: RelationId,
        (schema, name): (&str, &str),
        (shape, declared): (TupleDesc, Option<TupleDesc>),
    ) {
        self.remove_row(relation);
        let row = RowType {
            schema_name: schema.to_owned(),
            name: name.to_owned(),
            shape,
            declared,
        };
        let key = (schema.to_owned(), name.to_owned());
        self.row_names.insert(key, relation);
        self.rows.insert(relation, Arc::new(row));
    }

    /// Takes the type of a relation's rows out.
    pub fn remove_row(&mut self, relation: RelationId) {
        if let Some(old) = self.rows.remove(&relation) {
            let key = (old.schema_name.clone(), old.name.clone());
            if self.row_names.get(&key) == Some(&relation) {
                self.row_names.remove(&key);
            }
        }
    }

    /// True if the type of the relation's rows is known.
    pub fn knows_row(&self, relation: RelationId) -> bool {
        self.rows.contains_key(&relation)
    }

    /// The type of the rows of a relation that has rows.
    pub fn row_type(&self, relation: RelationId) -> Option<SqlType> {
        let row = row_type_of(relation).filter(|_| self.knows_row(relation));
        row.map(SqlType::of)
    }

    /// Adds or replaces a type.
    pub fn put(&mut self, ty: Arc<UserType>) {
        self.remove(ty.oid);
        for (name, oid) in ty.named() {
            self.names
                .insert((ty.schema_name.clone(), name.clone()), oid);
        }
        if let Some(composite) = ty.composite() {
            self.composites.insert(composite.relation, ty.oid);
        }
        self.types.insert(ty.oid, ty);
    }

    /// Takes a type out.
    pub fn remove(&mut self, oid: TypeId) {
        if let Some(old) = self.types.remove(&oid) {
            if let Some(composite) = old.composite() {
                self.composites.remove(&composite.relation);
            }
            for (name, oid) in old.named() {
                let key = (old.schema_name.clone(), name.clone());
                if self.names.get(&key) == Some(&oid) {
                    self.names.remove(&key);
                }
            }
        }
    }

    /// The type of the values of what is declared so: a domain's base type, an array over it for an array over the
    /// domain; any other type is itself.
    #[inline]
    pub fn base_type(&self, ty: SqlType) -> SqlType {
        match domain_in(ty.oid) {
            None => ty,
            Some(domain) => self.domain_base(domain, domain != ty.oid).unwrap_or(ty),
        }
    }

    /// The base type of a domain, or of the array over it.
    fn domain_base(&self, domain: TypeId, array: bool) -> Option<SqlType> {
        let base = self.get(domain)?.domain()?.base;
        match array {
            false => Some(base),
            // A domain over an array has no array that could have values.
            true => info::array_of(base.oid).map(|oid| SqlType { oid, ..base }),
        }
    }

    /// Element type of an array type (vectors included), or of a domain over one; `None` for other types.
    pub fn element_of(&self, array: TypeId) -> Option<TypeId> {
        match class(array) {
            None => info::built_in_element(array),
            Some(_) if domain_in(array).is_some() => {
                let base = self.base_type(SqlType::of(array)).oid;
                (base != array).then(|| self.element_of(base)).flatten()
            }
            Some(class) => (class == UserTypeClass::Array).then(|| element_under(array)),
        }
    }

    /// The element type of an array type, without a modifier but for records, which have the fields that the array's
    /// says.
    pub fn element_type(&self, array: SqlType) -> Option<SqlType> {
        let typmod = array.typmod;
        { self.element_of(array.oid) }.map(|oid| SqlType { oid, typmod }.plain())
    }

    /// The type of a range's bounds; none of what is no range.
    pub fn range_subtype(&self, range: TypeId) -> Option<TypeId> {
        match class(range) {
            Some(UserTypeClass::Range) => Some(self.get(range)?.range()?.subtype),
            Some(_) => None,
            None => range::built_in_subtype(range),
        }
    }

    /// `pg_type.typname` of a type, or "???" as PostgreSQL prints for an unknown one.
    pub fn type_name(&self, oid: TypeId) -> Cow<'_, str> {
        match class(oid) {
            None => Cow::Borrowed(info::built_in_name(oid)),
            Some(_) => self
                .name_of(oid)
                .map_or(Cow::Borrowed(UNKNOWN), |(_, name)| name),
        }
    }

    /// True if there is a type, built in or not, with this OID.
    pub fn exists(&self, oid: TypeId) -> bool {
        match class(oid) {
            None => info::by_oid(oid).is_some(),
            Some(_) => self.name_of(oid).is_some(),
        }
    }

    /// What `pg_type` says of a type, as [`info::by_oid`]; of a domain, what it says of its base type.
    pub fn type_info(&self, oid: TypeId) -> Option<&'static info::TypeInfo> {
        info::by_oid(self.base_type(SqlType::of(oid)).oid)
    }

    /// The schema of a type or array.
    pub fn schema_of(&self, oid: TypeId) -> Option<&str> {
        self.name_of(oid).map(|(schema, _)| schema)
    }

    /// Schema and name of a type or array.
    pub fn name_of(&self, oid: TypeId) -> Option<(&str, Cow<'_, str>)> {
        if let Some(relation) = relation_of_row_type(oid) {
            let row = self.rows.get(&relation)?;
            let name = match class(oid) {
                Some(UserTypeClass::Array) => {
                    let name = format!("_{}", row.name);
                    Cow::Owned(truncate_name(&name).to_owned())
                }
                _ => Cow::Borrowed(&*row.name),
            };
            return Some((&row.schema_name, name));
        }
        let of_multirange = |oid: TypeId, array: bool| {
            let of = self.get(range_under(oid))?;
            let range = of.range()?;
            let name = match array {
                true => &range.multirange_array_name,
                false => &range.multirange_name,
            };
            Some((of.schema_name.as_str(), Cow::Borrowed(name.as_str())))
        };
        match class(oid)? {
            UserTypeClass::Multirange => of_multirange(oid, false),
            UserTypeClass::Array
                if class(element_under(oid)) == Some(UserTypeClass::Multirange) =>
            {
                of_multirange(element_under(oid), true)
            }
            UserTypeClass::Array => {
                let element = self.get(element_under(oid))?;
                Some((&element.schema_name, Cow::Borrowed(&*element.array_name)))
            }
            _ => {
                let found = self.get(oid)?;
                Some((&found.schema_name, Cow::Borrowed(&*found.name)))
            }
        }
    }
}
