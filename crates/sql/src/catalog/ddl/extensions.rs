//! CREATE and DROP EXTENSION. One extension is always there, as in a new database of PostgreSQL: plpgsql, which migrations ask for
//! without using it. citext and hstore can be had: an extension is there where its type is, whose row is that of the extension, too.

use super::DdlContext;
use super::dependents::{self, Object};
use super::types::{add, array_name, delete, free, refuse_temporary};
use crate::catalog::pg_catalog::{EXTENSIONS, PG_EXTENSION, extension_of};
use crate::error::{Result, SqlError};
use crate::parse::ExtensionCommand;
use crate::value::Oid;
use crate::value::user::{UserKind, UserType};
use logstead_types::SqlState;
use sqlparser::ast;

/// The extension that is always there.
const PLPGSQL: &str = "plpgsql";

/// Runs a statement about extensions.
pub(super) async fn execute(command: &ExtensionCommand, cx: &mut DdlContext<'_>) -> Result<()> {
    match command {
        ExtensionCommand::Create {
            if_not_exists,
            name,
            schema,
        } => {
            if name != PLPGSQL {
                let ty = type_of(name).ok_or_else(|| not_available(name))?;
                if cx.catalog()?.types.get(ty).is_none() {
                    return create(name, ty, schema.as_deref(), cx).await;
                }
            }
            let exists = format!("extension \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, exists));
            }
            cx.notice(SqlState::DUPLICATE_OBJECT, format!("{exists}, skipping"));
            Ok(())
        }
        ExtensionCommand::Drop {
            if_exists,
            names,
            cascade,
        } => {
            for name in names {
                if name == PLPGSQL {
                    return Err(SqlError::unsupported("DROP EXTENSION plpgsql"));
                }
                if let Some(ty) = type_of(name)
                    && cx.hold_type(ty).await?.is_some()
                {
                    remove(name, ty, *cascade, cx).await?;
                    continue;
                }
                let absent = format!("extension \"{name}\" does not exist");
                if !if_exists {
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, absent));
                }
                cx.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("{absent}, skipping"),
                );
            }
            Ok(())
        }
    }
}

/// The type that an extension brings.
fn type_of(name: &str) -> Option<Oid> {
    let found = EXTENSIONS.iter().find(|extension| extension.name == name);
    found.map(|extension| extension.ty)
}

/// Makes the extension, in a schema or in the first of the search path.
async fn create(name: &str, ty: Oid, schema: Option<&str>, cx: &mut DdlContext<'_>) -> Result<()> {
    let parts = schema.into_iter().chain([name]);
    let quoted = parts.map(|part| ast::Ident::with_quote('"', part));
    let (schema, name) = cx.new_name(&ast::ObjectName::from(quoted.collect::<Vec<_>>()))?;
    refuse_temporary(&schema.name)?;
    free(&schema.name, schema.oid, &name, cx)?;
    let array_name = array_name(&schema.name, &name, ty, cx)?;
    let ty = UserType {
        oid: ty,
        name,
        array_name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: UserKind::Base,
    };
    add(ty, cx).await
}

/// Drops the extension, which is held.
async fn remove(name: &str, ty: Oid, cascade: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    let objects = [Object::Type(ty)];
    let cleared = dependents::clear(&objects, None, cascade, cx).await;
    cleared.map_err(|mut error| {
        if error.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST {
            error.fields_mut().message =
                format!("cannot drop extension {name} because other objects depend on it");
        }
        error
    })?;
    cx.put_comment(PG_EXTENSION, extension_of(ty), 0, None)
        .await?;
    delete(ty, cx).await
}

fn not_available(name: &str) -> SqlError {
    let error = SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("extension \"{name}\" is not available"),
    );
    match name {
        "uuid-ossp" | "pgcrypto" => {
            error.hint("gen_random_uuid() makes random UUIDs without an extension.")
        }
        _ => error,
    }
}
