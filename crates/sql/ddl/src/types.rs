//! CREATE, ALTER and DROP TYPE, and what domains share with them.
//!
//! A type has no table to lock: whoever changes it, and whoever makes something that depends on it, writes its row
//! again as it is and so waits for all others that do. What is looked at afterwards is the newest.

use super::DdlContext;
use super::object_address::name_of;
use crate::missing_object::no_schema;
use crate::object_address::ObjectAddress;
use crate::pg_catalog::calls::{self, QualifiedName};
use logstead_engine::TableLock;
use logstead_sql_catalog::RelationKind;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::PG_EXTENSION;
use logstead_sql_catalog::extensions::extension_of;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::{ObjectRow, RELATIONS};
use logstead_sql_catalog::text::{NAME_LENGTH_MAX, columns_in, truncate_name};
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_parse::ast::{AlterObjectSchemaStmt, ObjectType, RenameStmt};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::Domain;
use logstead_sql_types::value::user::{self, UserKind, UserType, UserTypeClass};
use logstead_sql_types::value::{Oid, info};
use logstead_sql_types::{FunctionId, RoleId, SchemaId, TypeId};
use logstead_types::SqlState;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs ALTER TYPE and ALTER DOMAIN ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = name_of(&stmt.object)?;
    if stmt.rename_type == ObjectType::Domain {
        altered_domain(name, cx).await?;
    }
    let new = &*stmt.newname;
    let ty = altered(name, cx).await?;
    let new = new.to_string();
    let mut changed = UserType::clone(&ty);
    free(&ty.schema_name, ty.schema, &new, cx)?;
    refuse_relation_name(&ty, ty.schema, &new, cx)?;
    changed.array_name = array_name(&ty.schema_name, &new, ty.oid, cx)?;
    changed.name = new;
    put(&changed, cx).await
}

/// Runs ALTER TYPE and ALTER DOMAIN ... SET SCHEMA.
pub(super) async fn set_schema(
    stmt: &AlterObjectSchemaStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let (name, schema) = (name_of(&stmt.object)?, &*stmt.newschema);
    if stmt.object_type == ObjectType::Domain {
        altered_domain(name, cx).await?;
    }
    if find(name, cx)?.is_none() {
        return Err(no_type(name));
    }
    let catalog = cx.catalog()?;
    let target = catalog.schema(schema).ok_or_else(|| no_schema(schema))?;
    cx.must_create_in(target.oid)?;
    let ty = altered(name, cx).await?;
    if target.oid == ty.schema {
        return Ok(());
    }
    let schema = cx.target_schema(Some(&target.name))?;
    refuse_temporary(&schema.name)?;
    cx.lock_schema_of(schema.oid, &schema.name).await?;
    free(&schema.name, schema.oid, &ty.name, cx)?;
    refuse_relation_name(&ty, schema.oid, &ty.name, cx)?;
    let mut changed = UserType::clone(&ty);
    changed.schema = schema.oid;
    changed.schema_name.clone_from(&schema.name);
    changed.array_name = array_name(&schema.name, &ty.name, ty.oid, cx)?;
    if let UserKind::Range(range) = &mut changed.kind {
        let multirange = user::multirange_over(ty.oid);
        free(&schema.name, schema.oid, &range.multirange_name, cx)?;
        range.multirange_array_name =
            array_name(&schema.name, &range.multirange_name, multirange, cx)?;
    }
    put(&changed, cx).await
}

/// Fails if a composite type, which is a relation too, is to have the name of one.
fn refuse_relation_name(
    ty: &UserType,
    schema: SchemaId,
    name: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let taken = cx.catalog()?.names.contains_key(&(schema, name.to_owned()));
    match ty.composite() {
        Some(_) if taken => Err(crate::relations::name_taken(name)),
        _ => Ok(()),
    }
}

/// The type of ALTER TYPE ... OWNER TO, held, if it is not the new owner's already.
pub(super) async fn locked_for_new_owner(
    name: &(impl QualifiedName + ?Sized),
    domain: bool,
    owner: RoleId,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<UserType>>> {
    let catalog = cx.catalog()?;
    let lookup = cx.lookup(&catalog);
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    if let Some(oid) = lookup.user_type(schema.as_deref(), &plain)?
        && user::class(oid) == Some(UserTypeClass::Array)
    {
        let (array, element) = (
            cx.format_type_bare(oid)?,
            cx.format_type_bare(user::element_under(oid))?,
        );
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot alter array type {array}"),
        )
        .hint(format!(
            "You can alter type {element}, which will alter the array type as well."
        )));
    }
    let ty = find(name, cx)?.ok_or_else(|| no_type(name))?;
    if domain && ty.domain().is_none() {
        return not_a_domain(ty.oid, cx);
    }
    if cx.catalog()?.owner_of(ty.oid) == owner {
        return Ok(None);
    }
    cx.may_give_type(&ty, owner)?;
    let Some(ty) = cx.lock_type(ty.oid).await? else {
        return Err(no_type(name));
    };
    // Whose it is may have changed during a wait.
    cx.may_give_type(&ty, owner)?;
    Ok(Some(ty))
}

/// The type that GRANT and REVOKE are about, if it is a user's, and its name.
pub(super) fn granted(
    name: &(impl QualifiedName + ?Sized),
    domain: bool,
    cx: &mut DdlContext<'_>,
) -> Result<(Option<TypeId>, String)> {
    let catalog = cx.catalog()?;
    let lookup = cx.lookup(&catalog);
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
    let found = match info::by_name(&plain).filter(|_| system) {
        Some(oid) => Some(oid),
        None => lookup.user_type(schema.as_deref(), &plain)?,
    };
    let oid = found.ok_or_else(|| no_type(name))?;
    if catalog.types.element_of(oid).is_some()
        && catalog
            .types
            .type_info(oid)
            .is_some_and(|t| t.category == 'A')
    {
        let code = logstead_sql_catalog::role::acl::INVALID_GRANT;
        return Err(SqlError::new(code, "cannot set privileges of array types")
            .hint("Set the privileges of the element type instead."));
    }
    if user::class(oid) == Some(UserTypeClass::Multirange) {
        return Err(SqlError::unsupported("privileges of a multirange type"));
    }
    if domain && user::class(oid) != Some(UserTypeClass::Domain) {
        let message = format!("\"{plain}\" is not a domain");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    let users = user::class(oid).is_some() && user::relation_of_row_type(oid).is_none();
    Ok((users.then_some(oid), plain))
}

pub(crate) fn no_type(name: &(impl QualifiedName + ?Sized)) -> SqlError {
    let text = match calls::name_parts(name) {
        Ok((Some(schema), name)) => format!("{schema}.{name}"),
        Ok((None, name)) => name,
        Err(error) => return error,
    };
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{text}\" does not exist"),
    )
}

/// A user's type by name; `None` if there is none, an error if it is not a user's own.
pub(crate) fn find(
    name: &(impl QualifiedName + ?Sized),
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<UserType>>> {
    let catalog = cx.catalog()?;
    let lookup = cx.lookup(&catalog);
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
    if system && let Some(oid) = info::by_name(&plain) {
        return Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("must be owner of type {}", cx.format_type_bare(oid)?),
        ));
    }
    let Some(oid) = lookup.user_type(schema.as_deref(), &plain)? else {
        return Ok(None);
    };
    if let Some((word, name)) = refuse_row_type_of(&catalog, oid) {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("{name} is a {word}'s row type"),
        )
        .hint("Use ALTER TABLE instead."));
    }
    if user::class(oid) == Some(UserTypeClass::Multirange) {
        return Err(SqlError::unsupported("ALTER TYPE of a multirange type"));
    }
    // The array over a type is asked for by the type.
    let of = match user::class(oid) {
        Some(UserTypeClass::Array) => user::element_under(oid),
        _ => oid,
    };
    Ok(catalog.types.get(of).cloned())
}

/// The type that is to be altered, nobody else's to change until the transaction ends.
pub(super) async fn altered(
    name: &(impl QualifiedName + ?Sized),
    cx: &mut DdlContext<'_>,
) -> Result<Arc<UserType>> {
    altered_as(name, "type", cx).await
}

/// The same; `word` is what PostgreSQL calls it to those whose it is not.
pub(super) async fn altered_as(
    name: &(impl QualifiedName + ?Sized),
    word: &str,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<UserType>> {
    let found = find(name, cx)?.ok_or_else(|| no_type(name))?;
    cx.must_own_type(found.oid, word)?;
    if user::class(found.oid) == Some(UserTypeClass::Base) {
        return Err(SqlError::unsupported("ALTER TYPE of an extension's type"));
    }
    let ty = cx.lock_type(found.oid).await?;
    let ty = ty.ok_or_else(|| no_type(name))?;
    // Whose it is may have changed during a wait.
    cx.must_own_type(ty.oid, word)?;
    Ok(ty)
}

/// Fails if a type, array or table of the schema has the name.
pub(super) fn free(
    schema: &str,
    schema_oid: SchemaId,
    name: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    if catalog.types.by_name(schema, name).is_none() && !is_row_type(&catalog, schema_oid, name) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("type \"{name}\" already exists"),
    ))
}

/// True if a relation of the schema, which is no index, has the name: its rows have a type of that name.
fn is_row_type(catalog: &Catalog, schema: SchemaId, name: &str) -> bool {
    let found = catalog.names.get(&(schema, name.to_owned()));
    found.is_some_and(|oid| catalog.relations.contains_key(oid))
}

/// Fails if a type has the name that a new relation is to have.
pub(super) fn refuse_row_type(catalog: &Catalog, relation: &Relation) -> Result<()> {
    let taken = catalog.types.by_name(&relation.schema_name, &relation.name);
    let Some(taken) = taken else {
        return Ok(());
    };
    if user::is_composite(taken) {
        return Err(crate::relations::name_taken(&relation.name));
    }
    Err(SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("type \"{}\" already exists", relation.name),
    )
    .hint("A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type."))
}

/// The name of the array over a type: underscores in front until it is free.
pub(super) fn array_name(
    schema: &str,
    name: &str,
    own: TypeId,
    cx: &mut DdlContext<'_>,
) -> Result<String> {
    let catalog = cx.catalog()?;
    let found = catalog.schema(schema).map(|found| found.oid);
    let mut lead = String::from("_");
    loop {
        let candidate = truncate_name(&format!("{lead}{name}")).to_owned();
        let by = catalog.types.by_name(schema, &candidate);
        let taken = by.is_some_and(|oid| oid != own && oid != user::array_over(own))
            || found.is_some_and(|found| is_row_type(&catalog, found, &candidate));
        if !taken || lead.len() >= NAME_LENGTH_MAX {
            return Ok(candidate);
        }
        lead.push('_');
    }
}

/// A type is stored, a session's own schema is not.
pub(super) fn refuse_temporary(schema: &str) -> Result<()> {
    match logstead_sql_catalog::temporary::is_temporary_schema(schema) {
        true => Err(SqlError::unsupported("a type in a temporary schema")),
        false => Ok(()),
    }
}

/// Stores a new type, behind what it depends on; 42710 if there is one of its name. What an extension brings is not
/// whose it is that makes it.
pub(super) async fn add(ty: UserType, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.lock_schema_of(ty.schema, &ty.schema_name).await?;
    cx.lock_types_of_type(&ty).await?;
    let row = cx.type_row(&ty)?;
    if !cx.insert_row(RELATIONS, &row).await? {
        return Err(already_exists(&ty));
    }
    cx.state.lock_type(ty.oid);
    let (oid, schema, own) = (ty.oid, ty.schema, !matches!(ty.kind, UserKind::Base));
    cx.state.push(CatalogChange::PutType(Arc::new(ty)));
    match own {
        true => cx.own_new(oid, schema, AclKind::Type).await,
        false => Ok(()),
    }
}

fn already_exists(ty: &UserType) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("type \"{}\" already exists", ty.name),
    )
}

pub(super) async fn put(ty: &UserType, cx: &mut DdlContext<'_>) -> Result<()> {
    let row = cx.type_row(ty)?;
    let database = row.key.database;
    if !cx
        .change_row(RELATIONS, database, ty.oid.get(), Some(&row))
        .await?
    {
        return Err(already_exists(ty));
    }
    cx.state.push(CatalogChange::PutType(Arc::new(ty.clone())));
    Ok(())
}

/// All that the catalog keeps of a relation as text.
pub(super) fn texts(relation: &Relation) -> Vec<&str> {
    let mut texts = expressions(relation);
    texts.extend(relation.view().map(|view| &*view.query));
    texts
}

/// The expressions among them.
pub(super) fn expressions(relation: &Relation) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    let live = relation.columns.iter().filter(|c| !c.dropped);
    texts.extend(live.filter_map(|c| c.default.as_deref()));
    texts.extend(relation.constraints.iter().filter_map(|c| c.check()));
    for index in &relation.indexes {
        texts.extend(index.texts());
    }
    texts
}

/// The users' types that a relation depends on.
fn used(relation: &Relation) -> BTreeSet<TypeId> {
    let mut used = BTreeSet::new();
    for column in relation.columns.iter().filter(|c| !c.dropped) {
        used.extend(user::of_users(column.declared().oid));
    }
    for text in texts(relation) {
        used.extend(user::types_named(text));
    }
    used
}

impl DdlContext<'_> {
    pub(super) fn type_row(&mut self, ty: &UserType) -> Result<ObjectRow> {
        Ok(stored::types::encode(self.catalog()?.database, ty))
    }

    /// Keeps others from changing or dropping a type until the transaction ends, and gives it as it is then; `None` if
    /// it is gone.
    pub(super) async fn lock_type(&mut self, oid: TypeId) -> Result<Option<Arc<UserType>>> {
        loop {
            let Some(before) = self.catalog()?.types.get(oid).cloned() else {
                return Ok(None);
            };
            // A replica's primary waits for nobody.
            if self.state.has_locked_type(oid) || self.store.is_replica() {
                return Ok(Some(before));
            }
            let row = self.type_row(&before)?;
            let held = self
                .change_row(RELATIONS, row.key.database, oid.get(), Some(&row))
                .await;
            // What was waited for may have dropped it, or changed it: then the row is to be written as it is now.
            let after = self.catalog()?.types.get(oid).cloned();
            match (held, after) {
                (_, None) => return Ok(None),
                (Err(error), _) => return Err(error),
                (Ok(_), Some(after)) if after == before => {
                    self.state.lock_type(oid);
                    return Ok(Some(after));
                }
                (Ok(_), Some(_)) => {}
            }
        }
    }

    /// Holds a domain, and those that it is over: the rules that are read from here on stay what they are.
    pub(super) async fn lock_domain(&mut self, domain: TypeId) -> Result<()> {
        let mut next = user::domain_in(domain);
        while let Some(oid) = next {
            let Some(held) = self.lock_type(oid).await? else {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    "a domain has been dropped",
                ));
            };
            next = held.domain().and_then(|d| user::domain_in(d.over.oid));
        }
        Ok(())
    }

    /// Holds the types that a domain depends on.
    pub(super) async fn lock_types_of_type(&mut self, ty: &UserType) -> Result<()> {
        let mut used = BTreeSet::new();
        let attributes = ty.composite().map_or(&[][..], |c| &c.attributes);
        used.extend(attributes.iter().filter_map(|a| user::of_users(a.ty.oid)));
        if let Some(range) = ty.range() {
            used.extend(user::of_users(range.subtype));
            let catalog = self.catalog()?;
            let users = |function: &FunctionId| catalog.routines.get(*function).is_some();
            self.lock_routines(range.difference.filter(users)).await?;
        }
        if let Some(domain) = ty.domain() {
            used.extend(user::of_users(domain.over.oid));
            let mut called = BTreeSet::new();
            for text in domain.texts() {
                used.extend(user::types_named(text));
                called.extend(logstead_sql_catalog::routine::named_in(text));
            }
            self.lock_routines(called).await?;
        }
        self.lock_types(used).await
    }

    /// Holds the types that a relation has come to depend on.
    pub(super) async fn lock_types_of(
        &mut self,
        relation: &Relation,
        old: Option<&Relation>,
    ) -> Result<()> {
        let columns = |relation: &Relation| {
            let live = relation.columns.iter().filter(|c| !c.dropped);
            let types = live.filter_map(|c| user::of_users(c.declared().oid));
            types.collect::<BTreeSet<TypeId>>()
        };
        let known = old.map(columns).unwrap_or_default();
        self.must_use_types(columns(relation).difference(&known).copied())?;
        let mut new = used(relation);
        if let Some(old) = old {
            let known = used(old);
            new.retain(|oid| !known.contains(oid));
        }
        self.lock_types(new).await
    }

    pub(super) async fn lock_types(&mut self, types: BTreeSet<TypeId>) -> Result<()> {
        for oid in types {
            let held = match user::relation_of_row_type(oid) {
                // It is its table's: nobody changes that meanwhile.
                Some(table) => {
                    let lock = TableLock::ShareUpdateExclusive;
                    self.lock_table(table, lock).await?.is_some()
                }
                None => self.lock_type(oid).await?.is_some(),
            };
            if !held {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("type with OID {oid} does not exist"),
                ));
            }
        }
        Ok(())
    }
}

/// True for the array over a type, for the multirange of a range and for the type of a table's rows: they are made and
/// go with what they are of.
pub(super) fn is_implied(oid: TypeId) -> bool {
    matches!(
        user::class(oid),
        Some(UserTypeClass::Array | UserTypeClass::Multirange)
    ) || user::relation_of_row_type(oid).is_some()
}

/// What depends on a type, or on the array over one, directly; newest first, and the array, which is older than all
/// that uses it, last.
pub(super) fn dependents_of(catalog: &Catalog, ty: TypeId) -> Vec<ObjectAddress> {
    let mut found: Vec<((Oid, usize), ObjectAddress)> = Vec::new();
    let element = user::of_users(ty).unwrap_or(ty);
    for other in catalog.dependent_types(element) {
        if let Some(composite) = other.composite() {
            for attribute in composite.attributes.iter().filter(|a| a.ty.oid == ty) {
                let number = attribute.number;
                let key = (composite.relation.get(), usize::from(number.unsigned_abs()));
                found.push((key, ObjectAddress::Attribute(other.oid, number)));
            }
        }
        if other.range().is_some_and(|range| range.subtype == ty) {
            found.push(((other.oid.get(), 0), ObjectAddress::Type(other.oid)));
        }
        let Some(domain) = other.domain() else {
            continue;
        };
        let default = domain.default.as_deref();
        if domain.over.oid == ty || default.is_some_and(|text| user::names_type(text, ty)) {
            found.push(((other.oid.get(), 0), ObjectAddress::Type(other.oid)));
            continue;
        }
        for check in &domain.checks {
            if user::names_type(&check.text, ty) {
                found.push((
                    (check.oid, 0),
                    ObjectAddress::DomainCheck(other.oid, check.oid),
                ));
            }
        }
    }
    for routine in catalog.dependent_routines(element) {
        let mut defaults = routine.args.iter().filter_map(|a| a.default.as_deref());
        if routine.types().any(|of| of == ty) || defaults.any(|text| user::names_type(text, ty)) {
            found.push(((routine.oid.get(), 0), ObjectAddress::Routine(routine.oid)));
        }
    }
    for relation in catalog.dependent_relations(element) {
        let named = |text: &str| user::names_type(text, ty);
        if let Some(view) = relation.view() {
            let shows = relation.columns.iter().any(|c| c.declared().oid == ty);
            if shows || named(&view.query) {
                found.push(((view.rule, 0), ObjectAddress::Relation(relation.oid)));
            }
            continue;
        }
        for (position, column) in relation.columns.iter().enumerate() {
            let key = (relation.oid.get(), position);
            let named = column.default.as_deref().is_some_and(named);
            let own = ObjectAddress::Column(relation.oid, position);
            match (column.dropped, column.declared().oid == ty, named) {
                (true, ..) | (_, false, false) => {}
                (_, false, true) if !column.generated => {
                    // In PostgreSQL it has a number of its own, right after its table's.
                    let key = (relation.oid.get() + 1, position);
                    found.push((key, ObjectAddress::Default(relation.oid, position)));
                }
                _ => found.push((key, own)),
            }
        }
        // What reads a column that goes is the column's.
        let goes = |position: &usize| {
            let column = relation.columns.get(*position);
            column.is_some_and(|c| user::of_users(c.declared().oid) == Some(element))
        };
        for constraint in &relation.constraints {
            let reads = |text: &str| columns_in(text, relation).iter().any(goes);
            if constraint
                .check()
                .is_some_and(|text| named(text) && !reads(text))
            {
                let object = ObjectAddress::Constraint(relation.oid, constraint.oid);
                found.push(((constraint.oid, 0), object));
            }
        }
        for policy in &relation.security.policies {
            let mut conditions = policy.conditions();
            if conditions.any(|view| named(&view.query)) {
                let object = ObjectAddress::Policy(relation.oid, policy.oid);
                found.push(((policy.oid, 0), object));
            }
        }
        for index in &relation.indexes {
            let reads = index.mentions(relation).iter().any(goes);
            if !reads && index.texts().into_iter().any(named) {
                found.push((
                    (index.oid.get(), 0),
                    ObjectAddress::Index(relation.oid, index.oid),
                ));
            }
        }
    }
    found.sort_unstable_by_key(|((oid, at), _)| (std::cmp::Reverse(*oid), *at));
    let mut found: Vec<ObjectAddress> = found.into_iter().map(|(_, object)| object).collect();
    if user::class(ty) == Some(UserTypeClass::Range) {
        found.push(ObjectAddress::Type(user::multirange_over(ty)));
    }
    if user::class(ty) != Some(UserTypeClass::Array) {
        found.push(ObjectAddress::Type(user::array_over(ty)));
    }
    found
}

/// Removes a CHECK of a domain, if the domain is still there.
pub(super) async fn remove_check(
    domain: TypeId,
    check: Oid,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(ty) = cx.catalog()?.types.get(domain).cloned() else {
        return Ok(());
    };
    let mut changed = UserType::clone(&ty);
    if let UserKind::Domain(domain) = &mut changed.kind {
        domain.checks.retain(|c| c.oid != check);
    }
    put(&changed, cx).await
}

/// Removes a type that nothing depends on.
pub(super) async fn delete(oid: TypeId, cx: &mut DdlContext<'_>) -> Result<()> {
    // A temporary object that uses it and is not committed yet has been waited for: both hold the type.
    let own = cx.state.temporary().map(|own| own.schema_name().to_owned());
    let catalog = cx.catalog()?;
    let types = cx.lookup(&catalog).types();
    let users = cx.store.temporary_types.of(oid, own.as_deref(), types);
    if !users.is_empty() {
        let shown = cx.format_type_bare(oid)?;
        let lines = users
            .iter()
            .map(|user| format!("{user} depends on type {shown}"));
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop type {shown} because other objects depend on it"),
        )
        .detail(lines.collect::<Vec<_>>().join("\n"))
        .hint("They are temporary objects of other sessions, which only those can drop."));
    }
    let database = cx.catalog()?.database;
    cx.change_row(RELATIONS, database, oid.get(), None).await?;
    cx.delete_privileges(oid).await?;
    if user::class(oid) == Some(UserTypeClass::Base) {
        cx.delete_privileges((PG_EXTENSION, extension_of(oid)))
            .await?;
    }
    cx.state.push(CatalogChange::DropType(oid));
    Ok(())
}

/// A domain that is to be altered, nobody else's to change until the transaction ends.
pub(crate) async fn altered_domain(
    name: &(impl QualifiedName + ?Sized),
    cx: &mut DdlContext<'_>,
) -> Result<(Arc<UserType>, Domain)> {
    let ty = altered(name, cx).await?;
    match ty.domain().cloned() {
        Some(domain) => Ok((ty, domain)),
        None => not_a_domain(ty.oid, cx),
    }
}

/// 42809.
pub(crate) fn not_a_domain<T>(oid: TypeId, cx: &mut DdlContext<'_>) -> Result<T> {
    Err(SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{} is not a domain", cx.format_type_bare(oid)?),
    ))
}

/// The relation whose rows a type is of, as a refusal to touch the type names it.
pub(crate) fn refuse_row_type_of(catalog: &Catalog, oid: TypeId) -> Option<(&'static str, String)> {
    let relation = catalog.relations.get(&user::relation_of_row_type(oid)?)?;
    let word = match relation.kind {
        RelationKind::View(_) => "view",
        RelationKind::Materialized(..) => "materialized view",
        _ => "table",
    };
    (user::class(oid) == Some(UserTypeClass::Composite)).then(|| (word, relation.name.clone()))
}
