//! CREATE and DROP EXTENSION. plpgsql is always there, as in a new database of PostgreSQL; those of
//! [`logstead_sql_func::extensions`] can be made, and so can citext and hstore, each of which is there where its type
//! is, whose row is that of the extension, too. No other can be had.
//!
//! An extension of functions that was made is a row of the comments' table, beside the comment on it: its class and
//! number, [`EXTENSION_ROW`] as the column, and `schema/version/name` as the text. So builds that do not know of it
//! read the database, and only miss the functions.

use super::drop_dependents;
use super::object_address::dotted_names;
use super::types::{add, array_name, delete, free, refuse_temporary};
use super::{DdlContext, def_elem};
use crate::missing_object::missing_object;
use crate::object_address::ObjectAddress;
use crate::pg_catalog::PLPGSQL as PLPGSQL_OID;
use logstead_sql_catalog::classes::PG_EXTENSION;
use logstead_sql_catalog::extensions::{EXTENSION_ROW, EXTENSIONS, extension_of};
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::{Catalog, ConstraintKind, IndexKey, Relation};
use logstead_sql_func::Function;
use logstead_sql_func::extensions::{AVAILABLE, AvailableExtension};
use logstead_sql_parse::ast::{
    AlterExtensionStmt, CreateExtensionStmt, DropBehavior, DropStmt, Name,
};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{Extension, UserKind, UserType};
use logstead_types::SqlState;

/// The extension that is always there.
const PLPGSQL: &str = "plpgsql";

/// Runs CREATE EXTENSION.
pub(super) async fn create(stmt: &CreateExtensionStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (mut schema, mut version, mut cascade) = (None, None, None);
    for option in &stmt.options {
        let place = match &*option.name {
            "schema" => &mut schema,
            "new_version" => &mut version,
            "cascade" => {
                def_elem::set_once(&mut cascade, (), option, cx.text)?;
                continue;
            }
            _ => return Err(def_elem::unexpected(option)),
        };
        def_elem::set_once(place, def_elem::get_string(option)?, option, cx.text)?;
    }
    let name = &*stmt.extname;
    let catalog = cx.catalog()?;
    let made = catalog.types.extensions().iter().any(|e| e.name == *name);
    if name == PLPGSQL || made || type_of(name).is_some_and(|ty| catalog.types.get(ty).is_some()) {
        let exists = format!("extension \"{name}\" already exists");
        if !stmt.if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, exists));
        }
        cx.notice(SqlState::DUPLICATE_OBJECT, format!("{exists}, skipping"));
        return Ok(());
    }
    if let Some(available) = AVAILABLE.iter().find(|a| a.name == name) {
        return create_available(available, schema.as_deref(), version.as_deref(), cx).await;
    }
    let ty = type_of(name).ok_or_else(|| not_available(name))?;
    create_type(name, ty, schema.as_deref(), cx).await?;
    cx.own_extension(extension_of(ty)).await
}

/// Runs ALTER EXTENSION ... UPDATE.
pub(super) fn update(stmt: &AlterExtensionStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &*stmt.extname;
    let catalog = cx.catalog()?;
    let made = catalog.types.extensions().iter().find(|e| e.name == *name);
    let version = match made {
        Some(made) => {
            cx.must_own_extension(made.oid, name)?;
            made.version.as_str()
        }
        None if type_of(name).is_some_and(|ty| catalog.types.get(ty).is_some()) => {
            let of_type = type_of(name).map_or(0, extension_of);
            cx.must_own_extension(of_type, name)?;
            let of_type = EXTENSIONS.iter().find(|e| e.name == name);
            of_type.map_or("", |e| e.version)
        }
        None if name == PLPGSQL => "1.0",
        None => {
            let code = SqlState::UNDEFINED_OBJECT;
            return missing_object(name, "extension", code, false, cx);
        }
    };
    cx.notice(
        SqlState::SUCCESSFUL_COMPLETION,
        format!("version \"{version}\" of extension \"{name}\" is already installed"),
    );
    Ok(())
}

/// Runs DROP EXTENSION.
pub(super) async fn drop(stmt: &DropStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let cascade = stmt.behavior == DropBehavior::Cascade;
    for name in &dotted_names(&stmt.objects)? {
        if !remove(name, cascade, cx).await? {
            let code = SqlState::UNDEFINED_OBJECT;
            missing_object(name, "extension", code, stmt.missing_ok, cx)?;
        }
    }
    Ok(())
}

async fn create_available(
    available: &AvailableExtension,
    schema: Option<&str>,
    version: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if let Some(version) = version.filter(|v| *v != available.version) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "extension \"{}\" has no installation script nor update path for version \"{version}\"",
                available.name
            ),
        ));
    }
    let schema = cx.target_schema(schema)?;
    cx.must_create_extension(available.name)?;
    cx.lock_schema_of(schema.oid, &schema.name).await?;
    let oid = available.oid;
    let row = format!("{}/{}/{}", schema.oid, available.version, available.name);
    cx.put_comment(PG_EXTENSION, oid, EXTENSION_ROW, Some(&row))
        .await?;
    cx.put_comment(PG_EXTENSION, oid, 0, Some(available.comment))
        .await?;
    cx.own_extension(oid).await
}

/// Drops an extension; false if there is none of that name.
pub(super) async fn remove(name: &str, cascade: bool, cx: &mut DdlContext<'_>) -> Result<bool> {
    if name == PLPGSQL {
        cx.must_own_extension(PLPGSQL_OID, name)?;
        return Err(SqlError::unsupported("DROP EXTENSION plpgsql"));
    }
    let catalog = cx.catalog()?;
    let made = catalog.types.extensions();
    if let Some(extension) = made.iter().find(|e| e.name == *name) {
        cx.must_own_extension(extension.oid, name)?;
        drop_functions(extension, cascade, &catalog, cx).await?;
        return Ok(true);
    }
    let Some(ty) = type_of(name).filter(|ty| catalog.types.get(*ty).is_some()) else {
        return Ok(false);
    };
    cx.must_own_extension(extension_of(ty), name)?;
    if cx.lock_type(ty).await?.is_none() {
        return Ok(false);
    }
    cx.must_own_extension(extension_of(ty), name)?;
    remove_type(name, ty, cascade, cx).await?;
    Ok(true)
}

async fn drop_functions(
    extension: &Extension,
    cascade: bool,
    catalog: &Catalog,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let name = &extension.name;
    if let Some((dependent, function)) = dependent(extension, cx.lookup(catalog)) {
        if cascade {
            let what = format!("DROP EXTENSION {name} CASCADE while {dependent} uses it");
            return Err(SqlError::unsupported(what));
        }
        let message = format!("cannot drop extension {name} because other objects depend on it");
        return Err(
            SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .detail(format!("{dependent} depends on function {function}"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."),
        );
    }
    cx.delete_privileges((PG_EXTENSION, extension.oid)).await?;
    cx.put_comment(PG_EXTENSION, extension.oid, 0, None).await?;
    cx.put_comment(PG_EXTENSION, extension.oid, EXTENSION_ROW, None)
        .await
}

/// The type that an extension brings.
fn type_of(name: &str) -> Option<TypeId> {
    let found = EXTENSIONS.iter().find(|extension| extension.name == name);
    found.map(|extension| extension.ty)
}

/// Makes the extension, in a schema or in the first of the search path.
async fn create_type(
    name: &str,
    ty: TypeId,
    schema: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let parts = schema.into_iter().chain([name]);
    let parts: Vec<Name> = parts.map(Name::from).collect();
    let (schema, name) = cx.new_name(parts.as_slice())?;
    refuse_temporary(&schema.name)?;
    cx.must_create_extension(&name)?;
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
async fn remove_type(name: &str, ty: TypeId, cascade: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    let objects = [ObjectAddress::Type(ty)];
    let cleared = drop_dependents::report_dependents(&objects, None, cascade, cx).await;
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

/// What names a function of the extension, and the function, if anything does. Texts are searched, so a string in one
/// may be taken for a call: that refuses a drop that could have been, never the other way about.
fn dependent(extension: &Extension, lookup: NameLookup<'_>) -> Option<(String, String)> {
    let available = AVAILABLE.iter().find(|a| a.name == extension.name)?;
    let own = |f: &&Function| available.functions.contains(&f.oid);
    let mut functions = logstead_sql_func::all_functions().filter(own);
    functions.find_map(|function| {
        let call = format!("{}(", function.name);
        let relations = lookup.catalog.relations.values();
        let dependent = relations.filter_map(|r| calling(r, &call)).min()?;
        let types = function.args.iter();
        let types: Vec<_> = types
            .map(|ty| lookup.types().format_type_bare(*ty))
            .collect();
        Some((dependent, format!("{}({})", function.name, types.join(","))))
    })
}

/// What of a relation calls the function, if anything does.
fn calling(relation: &Relation, call: &str) -> Option<String> {
    let calls = |text: &str| text.contains(call);
    let column = relation.columns.iter().find(|column| {
        let default = column.default.as_deref();
        !column.dropped && default.is_some_and(calls)
    });
    if let Some(column) = column {
        return Some(match column.generated {
            true => format!("column {} of table {}", column.name, relation.name),
            false => format!(
                "default value for column {} of table {}",
                column.name, relation.name
            ),
        });
    }
    let check = relation
        .constraints
        .iter()
        .find(|constraint| matches!(&constraint.kind, ConstraintKind::Check(text) if calls(text)));
    if let Some(check) = check {
        return Some(format!(
            "constraint {} on table {}",
            check.name, relation.name
        ));
    }
    let index = relation.indexes.iter().find(|index| {
        let keys = index.columns.iter().map(|column| &column.key);
        let mut texts = keys.filter_map(|key| match key {
            IndexKey::Expression { text, .. } => Some(text),
            IndexKey::Column(_) => None,
        });
        texts.any(|text| calls(text)) || index.predicate.as_deref().is_some_and(calls)
    });
    if let Some(index) = index {
        return Some(format!("index {}", index.name));
    }
    let policies = &relation.security.policies;
    let policy = policies.iter().find(|policy| {
        let mut views = policy.using.iter().chain(&policy.check);
        views.any(|view| calls(&view.query))
    });
    if let Some(policy) = policy {
        return Some(format!("policy {} on table {}", policy.name, relation.name));
    }
    let view = relation.view()?;
    calls(&view.query).then(|| format!("view {}", relation.name))
}

fn not_available(name: &str) -> SqlError {
    let error = SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("extension \"{name}\" is not available"),
    );
    let known = AVAILABLE.iter().map(|a| a.name).collect::<Vec<_>>();
    error.detail(format!(
        "Available are citext, hstore, plpgsql, {}.",
        known.join(", ")
    ))
}
