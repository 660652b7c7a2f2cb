//! May the role that runs a DDL statement do so? Asked before any lock is taken.
//!
//! Invariants:
//! - A statement of a kind that is not named here needs a superuser.
//! - Names that mean nothing are let through: the statement itself says so.

use super::DdlContext;
use crate::pg_catalog::calls;
use logstead_sql_catalog::classes::{PG_CLASS, PG_DATABASE, PG_NAMESPACE, PG_PROC};
use logstead_sql_catalog::rights::{Access, AclChecker, denied, denied_relation, word_of};
use logstead_sql_catalog::role::Roles;
use logstead_sql_catalog::role::acl::{AclKind, privilege as p};
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_parse::lowered::{self as ast, ObjectName, ObjectType, Statement as S};
use logstead_sql_parse::{IndexCommand, Parsed, StatementKind, ViewCommand};
use logstead_sql_plan::permissions::{FunctionUse, SchemaLookup};
use logstead_sql_plan::{Bound, PermissionChecker, Permissions};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use std::sync::Arc;

/// The checker of a role that runs something, by the catalog that it was bound with. In PostgreSQL's order: schemas,
/// which are looked into when names are; relations; functions; what these do.
pub struct RoleChecker<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The roles.
    pub roles: &'a Roles,
    /// Who runs it.
    pub role: Oid,
}

impl PermissionChecker for RoleChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let (catalog, role) = (self.catalog, self.role);
        let judge = catalog.judge(self.roles);
        refuse_schemas(&permissions.schemas, catalog, judge, role)?;
        refuse_relations(&permissions.relations, |access| judge.allows(role, access))?;
        refuse_routines(&permissions.functions, catalog, self.roles, role)?;
        refuse_relations(&permissions.relations_of_functions, |access| {
            judge.allows(role, access)
        })
    }
}

/// The checker of a role that keeps a definition and runs nothing of it: names in it are looked up, that is all.
struct DefinitionChecker<'a>(RoleChecker<'a>);

impl PermissionChecker for DefinitionChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let RoleChecker {
            catalog,
            roles,
            role,
        } = self.0;
        refuse_schemas(&permissions.schemas, catalog, catalog.judge(roles), role)
    }
}

/// 42501 for the first of the relations with which what is wanted is not allowed.
pub fn refuse_relations(
    relations: &[Access],
    mut is_allowed: impl FnMut(&Access) -> bool,
) -> Result<()> {
    let refused = relations.iter().find(|access| !is_allowed(access));
    refused.map_or(Ok(()), |access| Err(denied_relation(&access.relation)))
}

/// 42501 for a schema that may not be used; a name that was only looked for on the path does not exist then.
pub fn refuse_schemas(
    schemas: &[SchemaLookup],
    catalog: &Catalog,
    judge: AclChecker<'_>,
    role: Oid,
) -> Result<()> {
    for SchemaLookup {
        schema,
        unqualified,
    } in schemas
    {
        if judge.may_use_schema(role, *schema) {
            continue;
        }
        return Err(match unqualified {
            Some(name) => SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
            ),
            None => denied_schema(*schema, catalog),
        });
    }
    Ok(())
}

/// 42501 for a function that may not be called.
pub fn refuse_routines(
    functions: &[FunctionUse],
    catalog: &Catalog,
    roles: &Roles,
    role: Oid,
) -> Result<()> {
    let judge = catalog.judge(roles);
    for FunctionUse { function, as_role } in functions {
        let object = (PG_PROC, *function, AclKind::Function);
        if judge
            .on_object(as_role.unwrap_or(role), object, p::EXECUTE, 0)
            .0
            == 0
        {
            let found = catalog.routines.get(*function);
            let (kind, name) = match found {
                Some(routine) => (routine.word(), routine.name.as_str()),
                None => ("function", "?"),
            };
            return Err(denied(format!("permission denied for {kind} {name}")));
        }
    }
    Ok(())
}

pub(super) fn denied_schema(schema: Oid, catalog: &Catalog) -> SqlError {
    let name = catalog
        .schemas
        .get(&schema)
        .map_or("?", |s| s.name.as_str());
    denied(format!("permission denied for schema {name}"))
}

impl DdlContext<'_> {
    /// What is bound, to be run; 42501 unless the current role may run it.
    pub(super) fn may_run<T>(&mut self, bound: Bound<T>) -> Result<T> {
        let catalog = self.catalog()?;
        bound.check(&mut RoleChecker {
            catalog: &catalog,
            roles: &catalog.roles,
            role: self.session.current_role(),
        })
    }

    /// What is bound, to be kept as a definition; 42501 unless the current role may use the schemas that it names.
    pub(super) fn may_define<T>(&mut self, bound: Bound<T>) -> Result<T> {
        let catalog = self.catalog()?;
        bound.check(&mut DefinitionChecker(RoleChecker {
            catalog: &catalog,
            roles: &catalog.roles,
            role: self.session.current_role(),
        }))
    }

    /// 42501 unless the current role may call a function.
    pub(super) fn must_call(&mut self, function: Oid) -> Result<()> {
        let catalog = self.catalog()?;
        let used = FunctionUse {
            function,
            as_role: None,
        };
        let role = self.session.current_role();
        refuse_routines(&[used], &catalog, &catalog.roles, role)
    }

    /// 42501 unless the relation is the role's. Asked of what a statement has found and locked: its name may have meant
    /// something else when the statement was let in.
    pub(super) fn must_own(&mut self, relation: &Relation) -> Result<()> {
        self.judged(|judge, role| judge.must_own(role, relation))?
    }

    /// The same, or its schema is the role's.
    pub(super) fn must_own_or_schema(&mut self, relation: &Relation) -> Result<()> {
        let schema = (PG_NAMESPACE, relation.schema);
        match self.judged(|judge, role| judge.owns(role, schema.0, schema.1))? {
            true => Ok(()),
            false => self.must_own(relation),
        }
    }

    /// The same of the table of an index.
    pub(super) fn must_own_index(&mut self, table: &Relation, index: &str) -> Result<()> {
        match self.judged(|judge, role| judge.owns(role, PG_CLASS, table.oid))? {
            true => Ok(()),
            false => Err(denied(format!("must be owner of index {index}"))),
        }
    }

    /// 42501 unless a foreign key may reference the columns of a table that is locked.
    pub(super) fn must_reference(&mut self, parent: &Relation, columns: &[usize]) -> Result<()> {
        match self.judged(|judge, role| judge.may_reference(role, parent, columns))? {
            true => Ok(()),
            false => Err(denied_relation(parent)),
        }
    }

    /// 42501 unless temporary objects may be made.
    pub(super) fn must_create_temporary(&mut self) -> Result<()> {
        let catalog = self.catalog()?;
        let role = self.session.current_role();
        may_create_temporary(&catalog, role)
    }

    /// 42501 unless the role may make something in the schema.
    pub(super) fn must_create_in(&mut self, schema: Oid) -> Result<()> {
        match self.judged(|judge, role| judge.may_create_in(role, schema))? {
            true => Ok(()),
            false => {
                let catalog = self.catalog()?;
                Err(denied_schema(schema, &catalog))
            }
        }
    }
}

/// Everything that is asked about.
struct Asker<'a> {
    catalog: Arc<Catalog>,
    path: &'a [String],
    role: Oid,
}

impl Asker<'_> {
    fn judge(&self) -> AclChecker<'_> {
        self.catalog.judge(&self.catalog.roles)
    }

    /// The relation that a name means, or the table that an index of that name is on. The schema must be usable.
    fn named(&self, name: &ObjectName) -> Result<Option<(&Arc<Relation>, Option<Oid>)>> {
        let (schema, plain) = calls::lookup_parts(name)?;
        let found = self
            .catalog
            .object_by_name(schema.as_deref(), &plain, self.path);
        let Some(oid) = found else {
            return Ok(None);
        };
        let (relation, index) = match self.catalog.index_tables.get(&oid) {
            Some(table) => (self.catalog.relations.get(table), Some(oid)),
            None => (self.catalog.relations.get(&oid), None),
        };
        let Some(relation) = relation else {
            return Ok(None);
        };
        if schema.is_none() && !self.judge().may_use_schema(self.role, relation.schema) {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{plain}\" does not exist"),
            ));
        }
        Ok(Some((relation, index)))
    }

    fn owns(&self, relation: &Relation) -> bool {
        self.judge().owns(self.role, PG_CLASS, relation.oid)
    }

    fn not_owner(&self, relation: &Relation, index: Option<Oid>) -> SqlError {
        let name = index.and_then(|oid| self.catalog.name_of(oid));
        match name {
            Some((_, name)) => denied(format!("must be owner of index {name}")),
            None => denied(format!(
                "must be owner of {} {}",
                word_of(relation),
                relation.name
            )),
        }
    }

    /// 42501 unless the relation, or the table of the index, is the role's.
    fn must_own(&self, name: &ObjectName) -> Result<()> {
        match self.named(name)? {
            Some((relation, index)) if !self.owns(relation) => Err(self.not_owner(relation, index)),
            _ => Ok(()),
        }
    }

    /// The same, or the schema is.
    fn must_own_or_schema(&self, name: &ObjectName) -> Result<()> {
        match self.named(name)? {
            Some((relation, index))
                if !self.owns(relation)
                    && !self.judge().owns(self.role, PG_NAMESPACE, relation.schema) =>
            {
                Err(self.not_owner(relation, index))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless something may be made under the name.
    fn must_create(&self, name: &ObjectName) -> Result<()> {
        let (schema, _) = calls::name_parts(name)?;
        let target = match &schema {
            Some(schema) => self.catalog.schema(schema),
            None => {
                let user = |s: &&String| *s != "pg_catalog" && *s != "information_schema";
                let mut path = self.path.iter().filter(user);
                path.find_map(|s| self.catalog.schema(s))
            }
        };
        match target {
            Some(schema) if !self.judge().may_create_in(self.role, schema.oid) => {
                Err(denied_schema(schema.oid, &self.catalog))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless something may be made in the schema of the relation.
    fn must_create_beside(&self, name: &ObjectName) -> Result<()> {
        match self.named(name)? {
            Some((relation, _)) if !self.judge().may_create_in(self.role, relation.schema) => {
                Err(denied_schema(relation.schema, &self.catalog))
            }
            _ => Ok(()),
        }
    }

    fn must_own_schema(&self, name: &str) -> Result<()> {
        match self.catalog.schema(name) {
            Some(schema) if !self.judge().owns(self.role, PG_NAMESPACE, schema.oid) => {
                Err(denied(format!("must be owner of schema {name}")))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless a foreign key may reference the columns.
    fn must_reference(&self, key: &ast::ForeignKeyConstraint) -> Result<()> {
        let Some((parent, None)) = self.named(&key.foreign_table)? else {
            return Ok(());
        };
        let mut columns: Vec<usize> = Vec::new();
        if key.referred_columns.is_empty() {
            let primary = parent.indexes.iter().find(|index| index.primary);
            let keys = primary.iter().flat_map(|index| &index.columns);
            columns.extend(keys.filter_map(|c| c.position()));
        }
        for column in &key.referred_columns {
            let name = logstead_sql_catalog::text::fold(column);
            let found = parent
                .columns
                .iter()
                .position(|c| !c.dropped && c.name == name);
            columns.extend(found);
        }
        match self.judge().may_reference(self.role, parent, &columns) {
            true => Ok(()),
            false => Err(denied_relation(parent)),
        }
    }

    fn constraint(&self, constraint: &ast::TableConstraint) -> Result<()> {
        match constraint {
            ast::TableConstraint::ForeignKey(key) => self.must_reference(key),
            _ => Ok(()),
        }
    }

    fn column(&self, column: &ast::ColumnDef) -> Result<()> {
        for option in &column.options {
            if let ast::ColumnOption::ForeignKey(key) = &option.option {
                self.must_reference(key)?;
            }
        }
        Ok(())
    }

    /// 42501 unless temporary objects may be made.
    fn must_create_temporary(&self) -> Result<()> {
        may_create_temporary(&self.catalog, self.role)
    }

    fn create_table(&self, table: &ast::CreateTable) -> Result<()> {
        match table.temporary {
            true => self.must_create_temporary()?,
            false => self.must_create(&table.name)?,
        }
        for element in &table.columns {
            if let ast::TableElement::Column(column) = element {
                self.column(column)?;
            }
        }
        let mut all = table.constraints.iter();
        all.try_for_each(|constraint| self.constraint(constraint))
    }

    fn alter_table(&self, alter: &ast::AlterTable) -> Result<()> {
        use ast::AlterTableOperation as Op;
        self.must_own(&alter.name)?;
        for operation in &alter.operations {
            match operation {
                // It asks for the schema that the relation goes to.
                _ if super::set_schema::target(operation).is_some() => {}
                Op::RenameTable { .. } => self.must_create_beside(&alter.name)?,
                Op::AddConstraint { constraint, .. } => self.constraint(constraint)?,
                Op::AddColumn { column_def, .. } => self.column(column_def)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn truncate(&self, truncate: &ast::Truncate) -> Result<()> {
        for target in &truncate.table_names {
            if let Some((relation, None)) = self.named(target)? {
                may_truncate(relation, self.judge(), self.role)?;
            }
        }
        Ok(())
    }

    fn comment(&self, kind: &ast::CommentObject, name: &ObjectName) -> Result<()> {
        use ast::CommentObject as On;
        match kind {
            On::Table | On::View | On::MaterializedView | On::Sequence | On::Index => {
                // Who names what is of another kind is told so, whosever it is.
                let found = self.named(name)?;
                let other = found.is_some_and(|(relation, index)| match index {
                    Some(_) => *kind != ast::CommentObject::Index,
                    None => super::comment::kind_of(relation) != *kind,
                });
                match other {
                    true => Ok(()),
                    false => self.must_own(name),
                }
            }
            On::Column => {
                let mut table = name.0.clone();
                table.pop();
                self.must_own(&ObjectName(table))
            }
            On::Schema => self.must_own_schema(&calls::name_parts(name)?.1),
            On::Database => {
                let name = calls::name_parts(name)?.1;
                let Some(found) = self.catalog.notes.databases.by_name(&name) else {
                    return Ok(());
                };
                match self.judge().owns(self.role, PG_DATABASE, found.oid) {
                    true => Ok(()),
                    false => Err(denied(format!("must be owner of database {name}"))),
                }
            }
            On::Role => {
                let roles = &self.catalog.roles;
                let Some(found) = roles.by_name(&calls::name_parts(name)?.1) else {
                    return Ok(());
                };
                // A role is CREATEROLE's, a superuser only a superuser's.
                if found.superuser {
                    return Err(denied("must be superuser"));
                }
                match roles.get(self.role).is_some_and(|role| role.create_role) {
                    true => Ok(()),
                    false => Err(denied("must have CREATEROLE privilege")),
                }
            }
            // They ask themselves.
            On::Type | On::Domain | On::Extension => Ok(()),
        }
    }
}

fn may_create_temporary(catalog: &Catalog, role: Oid) -> Result<()> {
    let judge = catalog.judge(&catalog.roles);
    match judge.on_database(role, catalog.database, p::TEMPORARY) {
        0 => Err(denied(format!(
            "permission denied to create temporary tables in database \"{}\"",
            catalog.database_name
        ))),
        _ => Ok(()),
    }
}

/// 42501 unless the role may truncate a table.
pub(super) fn may_truncate(relation: &Relation, judge: AclChecker<'_>, role: Oid) -> Result<()> {
    match judge.on_relation(role, relation, p::TRUNCATE, 0).0 {
        0 => Err(denied_relation(relation)),
        _ => Ok(()),
    }
}

fn only_superusers() -> SqlError {
    denied("permission denied: only superusers may do this")
}

/// 42501 unless the current role may run the statement.
pub(super) fn ask(parsed: &Parsed, cx: &mut DdlContext<'_>) -> Result<()> {
    use StatementKind as K;
    let catalog = cx.catalog()?;
    let role = cx.session.current_role();
    if catalog.roles.is_superuser(role) {
        return Ok(());
    }
    let asker = Asker {
        catalog,
        path: cx.search_path,
        role,
    };
    match &parsed.kind {
        // They ask themselves.
        K::Role(_)
        | K::Database(_)
        | K::Rights(_)
        | K::LargeObject(_)
        | K::Maintain(_)
        | K::Routine(_)
        | K::Trigger(_)
        | K::Type(_)
        | K::Extension(_) => return Ok(()),
        K::AlterSequence(alter) => {
            asker.must_own(&alter.name)?;
            if alter.rename.is_some() {
                asker.must_create_beside(&alter.name)?;
            }
            return Ok(());
        }
        K::AlterConstraint(alter) => return asker.must_own(&alter.table),
        K::Policy(statement) => {
            return match asker.named(&statement.table)? {
                // There is nothing to own of what is not there.
                Some((table, None)) if super::policies::finds_nothing(statement, table) => Ok(()),
                Some((table, None)) if !asker.owns(table) => {
                    Err(super::policies::not_owner(table, &statement.action))
                }
                _ => Ok(()),
            };
        }
        K::CommentOn(on) if !on.domain && on.other.is_none() => return asker.must_own(&on.owner),
        K::CommentOn(_) => return Ok(()),
        K::Index(command) => {
            return match &**command {
                IndexCommand::Reindex { name, .. }
                | IndexCommand::Set { name, .. }
                | IndexCommand::Alter { name, .. }
                | IndexCommand::Reset { name, .. } => asker.must_own(name),
                // It asks itself.
                IndexCommand::ReindexAll { .. } => Ok(()),
                IndexCommand::Cluster { table, .. } => asker.must_own(table),
                IndexCommand::Rename { name, .. } => {
                    asker.must_own(name)?;
                    asker.must_create_beside(name)
                }
            };
        }
        K::View(command) => {
            return match &**command {
                ViewCommand::Create(create) => {
                    match create.temporary {
                        true => asker.must_create_temporary()?,
                        false => asker.must_create(&create.name)?,
                    }
                    match create.or_replace {
                        true => asker.must_own(&create.name),
                        false => Ok(()),
                    }
                }
                ViewCommand::Alter(alter) => asker.alter_table(&alter.alter),
                ViewCommand::Refresh { name, .. } => asker.must_own(name),
            };
        }
        K::Ddl(_) => {}
        _ => return Err(only_superusers()),
    }
    match &**parsed.statement {
        S::CreateTable(table) => asker.create_table(table),
        // OWNED BY asks itself.
        S::CreateSequence {
            temporary, name, ..
        } => match temporary {
            true => asker.must_create_temporary(),
            false => asker.must_create(name),
        },
        S::CreateIndex(index) => {
            asker.must_own(&index.table_name)?;
            asker.must_create_beside(&index.table_name)
        }
        S::AlterTable(alter) => asker.alter_table(alter),
        S::Drop {
            object_type:
                ObjectType::Table
                | ObjectType::Index
                | ObjectType::Sequence
                | ObjectType::View
                | ObjectType::MaterializedView,
            names,
            ..
        } => names
            .iter()
            .try_for_each(|name| asker.must_own_or_schema(name)),
        S::Drop {
            object_type: ObjectType::Schema,
            names,
            ..
        } => {
            for name in names {
                asker.must_own_schema(&calls::name_parts(name)?.1)?;
            }
            Ok(())
        }
        S::Truncate(truncate) => asker.truncate(truncate),
        S::CreateSchema { .. } => {
            let database = asker.catalog.database;
            match asker.judge().on_database(role, database, p::CREATE) {
                0 => Err(denied(format!(
                    "permission denied for database {}",
                    asker.catalog.database_name
                ))),
                _ => Ok(()),
            }
        }
        S::Comment {
            object_type,
            object_name,
            ..
        } => asker.comment(object_type, object_name),
        _ => Err(only_superusers()),
    }
}

/// Is a sequence that a table's column owns, or a relation that only belongs to another, left where it is?
pub(super) fn owning_table(catalog: &Catalog, sequence: Oid) -> Option<(&Arc<Relation>, bool)> {
    let tables = catalog.dependent_relations(sequence).into_iter();
    let mut owners = tables.filter_map(|table| {
        let column = table
            .columns
            .iter()
            .find(|c| c.sequence == Some(sequence))?;
        (!column.dropped && matches!(table.kind, RelationKind::Table))
            .then_some((table, column.identity.is_some()))
    });
    owners.next()
}
