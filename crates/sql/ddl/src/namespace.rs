//! In which schema something is made (`namespace.c`).

use super::DdlContext;
use crate::absent::no_schema;
use crate::pg_catalog::calls::{self, QualifiedName};
use logstead_sql_catalog::Schema;
use logstead_sql_catalog::change::Change;
use logstead_sql_catalog::temporary::ALIAS;
use logstead_sql_parse::lowered::ObjectName;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

impl DdlContext<'_> {
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
                if matches!(found.oid, 11 | 99 | 13_000) {
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

    /// The same of an object that is said to be temporary.
    pub(super) fn new_name_of(
        &mut self,
        name: &ObjectName,
        temporary: bool,
    ) -> Result<(Arc<Schema>, String)> {
        let at = self.at(logstead_sql_parse::lowered::Spanned::span(name));
        self.new_name_at(name, temporary, at)
    }

    /// The same of a name that stands at this position.
    pub(super) fn new_name_at(
        &mut self,
        name: &(impl QualifiedName + ?Sized),
        temporary: bool,
        at: Option<usize>,
    ) -> Result<(Arc<Schema>, String)> {
        let (schema, name) = calls::name_parts(name)?;
        let name = self.name(&name);
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
            oid: self.new_oid()?,
            name,
        });
        self.state.push(Change::PutSchema(Arc::clone(&schema)));
        Ok(schema)
    }
}
