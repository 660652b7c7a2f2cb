//! Which relation a name means, and in which schema something is made (`namespace.c`).

use super::DdlContext;
use crate::missing_object::no_schema;
use crate::object_address::{noun, relation_type};
use crate::pg_catalog::calls::{self, QualifiedName};
use crate::relations::{no_relation, system_relation, wrong_kind};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::is_required_schema;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::temporary::ALIAS;
use logstead_sql_catalog::type_name::sql_type;
use logstead_sql_catalog::{Catalog, Relation, RelationKind, Schema};
use logstead_sql_parse::ast::{ObjectType, Persistence, RangeVar, TypeName};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::{RelationId, SchemaId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

fn named_relation(
    name: &(impl QualifiedName + ?Sized),
    lookup: NameLookup<'_>,
) -> Result<(RelationId, String)> {
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    let catalog = lookup.catalog;
    if let Some(schema) = schema.as_deref().filter(|s| catalog.schema(s).is_none()) {
        return Err(no_schema(schema));
    }
    let found = catalog.object_by_name(schema.as_deref(), &plain, lookup.search_path);
    Ok((found.ok_or_else(|| no_relation(name))?, plain))
}

/// The relation that a name means, which is no index (`table_openrv`).
pub fn named_table(
    name: &(impl QualifiedName + ?Sized),
    lookup: NameLookup<'_>,
) -> Result<Arc<Relation>> {
    let (oid, plain) = named_relation(name, lookup)?;
    let found = lookup.catalog.relations.get(&oid).cloned();
    found.ok_or_else(|| {
        let message = format!("\"{plain}\" is an index");
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
    })
}

impl<'a> DdlContext<'a> {
    /// What names are looked up with in a catalog.
    pub(super) fn lookup<'c>(&self, catalog: &'c Catalog) -> NameLookup<'c>
    where
        'a: 'c,
    {
        NameLookup {
            catalog,
            search_path: self.search_path,
            session: self.session,
        }
    }

    /// The parts of the name of something that is looked up: 42501 for a schema that is closed to the role.
    pub(super) fn lookup_parts(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<(Option<String>, String)> {
        let catalog = self.catalog()?;
        calls::lookup_parts(name, self.lookup(&catalog))
    }

    /// Prints a type as `format_type` does, as this transaction sees it now.
    pub(super) fn format_type(&mut self, ty: SqlType) -> Result<String> {
        let catalog = self.catalog()?;
        Ok(self.lookup(&catalog).types().format_type(ty))
    }

    /// The same without a modifier.
    pub(super) fn format_type_bare(&mut self, ty: TypeId) -> Result<String> {
        let catalog = self.catalog()?;
        Ok(self.lookup(&catalog).types().format_type_bare(ty))
    }

    /// The type that a type name means.
    pub(super) fn sql_type(&mut self, name: &TypeName) -> Result<SqlType> {
        let catalog = self.catalog()?;
        sql_type(name, self.lookup(&catalog))
    }

    /// The relation or index that a name means, and its plain name (`RangeVarGetRelid`).
    pub(super) fn named_relation(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<(RelationId, String)> {
        let catalog = self.catalog()?;
        named_relation(name, self.lookup(&catalog))
    }

    /// The same; none, with a notice, if it is not there and need not be.
    pub(super) fn find_relation(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
        missing_ok: bool,
    ) -> Result<Option<(RelationId, String)>> {
        let absent = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
        match self.named_relation(name) {
            Err(error) if missing_ok && absent.contains(&error.code()) => {
                let (_, plain) = self.lookup_parts(name)?;
                let message = format!("relation \"{plain}\" does not exist, skipping");
                self.notice(SqlState::SUCCESSFUL_COMPLETION, message);
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// The relation that a name means, which is no index.
    pub(super) fn named_table(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<Arc<Relation>> {
        let catalog = self.catalog()?;
        named_table(name, self.lookup(&catalog))
    }

    /// Is the schema of a name absent? A notice, or 3F000 unless it may be (`schema_does_not_exist_skipping`).
    pub(super) fn skips_schema(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
        missing_ok: bool,
    ) -> Result<bool> {
        let catalog = self.catalog()?;
        let (schema, _) = calls::lookup_parts(name, self.lookup(&catalog))?;
        let Some(schema) = schema.filter(|schema| catalog.schema(schema).is_none()) else {
            return Ok(false);
        };
        if !missing_ok {
            return Err(no_schema(&schema));
        }
        let message = format!("schema \"{schema}\" does not exist, skipping");
        self.notice(SqlState::SUCCESSFUL_COMPLETION, message);
        Ok(true)
    }

    /// The schema that a new object goes to.
    pub(super) fn target_schema(&mut self, schema: Option<&str>) -> Result<Arc<Schema>> {
        let catalog = self.catalog()?;
        match schema {
            Some(ALIAS) => self.temporary_schema(),
            Some(name) => {
                let found = catalog
                    .schema(name)
                    .cloned()
                    .ok_or_else(|| no_schema(name))?;
                if is_required_schema(found.oid) {
                    return Err(SqlError::new(
                        SqlState::INSUFFICIENT_PRIVILEGE,
                        format!("permission denied to create in schema \"{name}\""),
                    )
                    .detail("System catalog modifications are currently disallowed."));
                }
                Ok(found)
            }
            None => {
                let user = |s: &&String| *s != "pg_catalog" && *s != "information_schema";
                let named = |s: &&String| *s == ALIAS || catalog.schema(s).is_some();
                if self
                    .search_path
                    .iter()
                    .filter(user)
                    .find(named)
                    .is_some_and(|s| s == ALIAS)
                {
                    return self.temporary_schema();
                }
                let found = self
                    .search_path
                    .iter()
                    .filter(user)
                    .find_map(|s| catalog.schema(s).cloned());
                found.ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        "no schema has been selected to create in",
                    )
                })
            }
        }
    }

    /// Schema and name of an object that is to be made.
    pub(super) fn new_name(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<(Arc<Schema>, String)> {
        self.new_name_at(name, false, None)
    }

    /// The same of a type, in a schema where the role may make one.
    pub(super) fn new_type_name(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<(Arc<Schema>, String)> {
        let (schema, name) = self.new_name(name)?;
        super::types::refuse_temporary(&schema.name)?;
        self.must_create_in(schema.oid)?;
        Ok((schema, name))
    }

    /// The same of a relation, which may be said to be temporary.
    pub(super) fn new_name_of(&mut self, relation: &RangeVar) -> Result<(Arc<Schema>, String)> {
        let is_temporary = relation.persistence == Persistence::Temporary;
        self.new_name_at(
            relation,
            is_temporary,
            relation.location.character(self.text),
        )
    }

    /// The same of a name that stands at this position.
    pub(super) fn new_name_at(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
        temporary: bool,
        at: Option<usize>,
    ) -> Result<(Arc<Schema>, String)> {
        let (schema, name) = calls::name_parts(name)?;
        let name = name.to_string();
        let target = match temporary {
            true => self.temporary_target(schema.as_deref()),
            false => self.target_schema(schema.as_deref()),
        };
        let target = target.map_err(|e| match (e.code(), &schema) {
            (SqlState::INSUFFICIENT_PRIVILEGE, Some(schema)) => SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to create \"{schema}.{name}\""),
            )
            .detail("System catalog modifications are currently disallowed."),
            _ => e.at(at),
        })?;
        Ok((target, name))
    }

    fn temporary_target(&mut self, schema: Option<&str>) -> Result<Arc<Schema>> {
        match schema {
            Some(name) if name != ALIAS => {
                let catalog = self.catalog()?;
                let found = catalog.schema(name).ok_or_else(|| no_schema(name))?;
                match &catalog.temp {
                    Some(own) if own.oid == found.oid => Ok(Arc::clone(own)),
                    _ => Err(SqlError::new(
                        SqlState::INVALID_TABLE_DEFINITION,
                        "cannot create temporary relation in non-temporary schema",
                    )),
                }
            }
            _ => self.temporary_schema(),
        }
    }

    /// The session's temporary schema, made if it has none yet. It is in no stored catalog.
    pub(super) fn temporary_schema(&mut self) -> Result<Arc<Schema>> {
        if let Some(schema) = &self.catalog()?.temp {
            return Ok(Arc::clone(schema));
        }
        let name = match self.state.temporary() {
            Some(temporary) => temporary.schema_name().to_owned(),
            None => return Err(SqlError::unsupported("temporary objects here")),
        };
        let schema = Arc::new(Schema {
            oid: SchemaId::new(self.new_oid()?),
            name,
        });
        self.state
            .push(CatalogChange::PutSchema(Arc::clone(&schema)));
        Ok(schema)
    }
}

/// The relation, or the index, that ALTER names; none, with a notice, if it is not there and need not be. ALTER TABLE
/// names all kinds of them.
pub(super) fn altered(
    name: &RangeVar,
    wanted: ObjectType,
    missing_ok: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<RelationId>> {
    let Some((oid, plain)) = cx.find_relation(name, missing_ok)? else {
        return Ok(None);
    };
    let catalog = cx.catalog()?;
    let found = catalog.relations.get(&oid);
    match found.map(|relation| &relation.kind) {
        Some(RelationKind::Virtual(_)) => Err(system_relation(&plain)),
        _ if wanted == ObjectType::Table || found.is_some_and(|r| relation_type(r) == wanted) => {
            Ok(Some(oid))
        }
        _ => Err(wrong_kind(&plain, &format!("a {}", noun(wanted)))),
    }
}
