//! Writing the catalog's rows inside the user's transaction, and locking tables. Which object a name means is
//! decided in `namespace` (relations), `object_address` and `routine_lookup`.

use super::DdlContext;
use crate::missing_object::no_schema;
use crate::relations::name_taken;
use logstead_engine::{Row, RowBuilder, RowLock, Table, TableLock, WriteError};
use logstead_sql_catalog::change::{CatalogChange, is_shared_class};
use logstead_sql_catalog::privileges::kind_of;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_catalog::store::comment_name;
use logstead_sql_catalog::stored::SHARED;
use logstead_sql_catalog::stored::{self, COMMENTS, ObjectKey, ObjectRow, RELATIONS, SCHEMAS};
use logstead_sql_catalog::temporary::is_number_at_replica;
use logstead_sql_catalog::write_errors::{conflict_with_recovery, write_error};
use logstead_sql_catalog::{Catalog, IndexDef, RecordShapes, Relation, RelationKind, Schema};
use logstead_sql_exec::wait::{WaitReason, wait_for};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, user};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId};
use logstead_types::{Csn, Rid, SqlState, TableId};
use std::sync::Arc;

impl DdlContext<'_> {
    /// The catalog as this transaction sees it now.
    pub(super) fn catalog(&mut self) -> Result<Arc<Catalog>> {
        let database = self.session.session_info()?.database();
        let catalog = self.state.catalog(self.store, database, self.txn)?;
        // An answer may tell of it and nothing else: that a table is gone, or a column there already.
        self.txn.depends_on(catalog.csn);
        // What DDL looks at is more than the rows that it reads.
        self.txn.depends_on_everything();
        user::enter(&catalog);
        Ok(catalog)
    }

    /// A new OID. At a replica all that is made is the session's own.
    pub(super) fn new_oid(&mut self) -> Result<Oid> {
        if self.store.is_replica() {
            let catalog = self.catalog()?;
            return Ok(self.store.temporary_oid(&catalog));
        }
        let (oid, csn) = self.store.new_oid(self.worker)?;
        self.txn.depends_on(csn);
        Ok(oid)
    }

    /// The number of a new storage for a relation that has one.
    pub(super) fn new_storage(&mut self) -> Result<TableId> {
        let oid = self.new_oid()?;
        Ok(self.store.storage_for(oid))
    }

    /// At a replica a catalog belongs to snapshots: takes the one whose catalog is looked at next, and that what is
    /// planned with it reads with.
    pub(super) fn begin_view(&mut self) {
        if self.store.is_replica() {
            self.txn.begin_statement();
            self.txn.snapshot();
        }
    }

    /// 40001 at a replica unless what is read now belongs to the catalog that it was planned with.
    pub(super) fn check_seen(&mut self, planned: &Catalog) -> Result<()> {
        if !self.store.is_replica() {
            return Ok(());
        }
        if !self.txn.has_seen() {
            self.begin_view();
        }
        match self.catalog()?.published_version() == planned.published_version() {
            true => Ok(()),
            false => Err(conflict_with_recovery()),
        }
    }

    pub(super) fn depends_on(&mut self, csn: Csn) {
        self.txn.depends_on(csn);
    }

    /// Where a part of the statement stands in its text.
    pub(super) fn at(&self, location: logstead_sql_parse::ast::Location) -> Option<usize> {
        location.character(self.text)
    }

    /// Adds a notice.
    pub(super) fn notice(&mut self, code: SqlState, message: impl Into<String>) {
        self.notices.push(super::Notice {
            severity: "NOTICE",
            code,
            message: message.into(),
            detail: None,
            hint: None,
        });
    }

    /// Says something to who asks for all that is said: `client_min_messages` is debug1 or more talkative.
    pub(super) fn debug(&mut self, message: impl FnOnce() -> String) {
        let least = self.session.setting("client_min_messages");
        if least.is_some_and(|least| least.starts_with("debug")) {
            self.notices.push(super::Notice {
                severity: "DEBUG",
                code: SqlState::SUCCESSFUL_COMPLETION,
                message: message(),
                detail: None,
                hint: None,
            });
        }
    }

    /// 55006 while deferred constraints of the table's rows are still to be checked by its present definition.
    pub(super) fn refuse_pending(&mut self, table: RelationId, what: &str) -> Result<()> {
        self.refuse_used(table, what, true)
    }

    /// 55006 while the table is in use by statements that this one is run inside of, or, if that is asked, as
    /// [`refuse_pending`](Self::refuse_pending).
    pub(super) fn refuse_used(
        &mut self,
        table: RelationId,
        what: &str,
        pending: bool,
    ) -> Result<()> {
        let catalog = self.catalog()?;
        let relation = catalog.relations.get(&table).filter(|r| r.has_rows());
        let why = if relation.is_some_and(|r| self.in_use.contains(&r.storage)) {
            "it is being used by active queries in this session"
        } else if pending && self.events.has_deferred_for(table) {
            "it has pending trigger events"
        } else {
            return Ok(());
        };
        let name = catalog.name_of(table).map_or("?", |(_, name)| name);
        Err(SqlError::new(
            SqlState::OBJECT_IN_USE,
            format!("cannot {what} \"{name}\" because {why}"),
        ))
    }

    /// Waits until what is in the way is not any more, the statement is cancelled, or it would wait for ever.
    pub(super) async fn wait(&mut self, obstacle: impl Into<WaitReason>) -> Result<()> {
        wait_for(obstacle.into(), self.txn, self.cancel).await
    }

    /// After a write that was refused: waits if that is worth it.
    pub(super) async fn wait_after(&mut self, error: WriteError) -> Result<()> {
        match WaitReason::of(error) {
            Ok(obstacle) => self.wait(obstacle).await,
            Err(error) => Err(write_error(&error)),
        }
    }

    /// The newest version of a row, as `read` takes it.
    pub(super) async fn read_newest<T>(
        &mut self,
        table: &Table,
        rid: Rid,
        read: impl Fn(Option<Row<'_>>) -> T,
    ) -> Result<T> {
        loop {
            let absent = {
                let guard = self.txn.pin();
                match self.txn.read_newest(table, rid, &guard) {
                    Ok(row) => return Ok(read(row)),
                    Err(absent) => absent,
                }
            };
            self.wait(absent).await?;
        }
    }

    /// Locks a table's storage; a storage that this transaction made needs no lock.
    pub(super) async fn lock_storage(
        &mut self,
        storage: TableId,
        lock: TableLock,
    ) -> Result<Option<Arc<Table>>> {
        let Some(table) = self.store.engine().table(storage) else {
            return Ok(None);
        };
        if self.state.is_own(storage) {
            return Ok(Some(table));
        }
        loop {
            match self.txn.lock_table(&table, lock) {
                Ok(()) => return Ok(Some(table)),
                Err(error) => self.wait_after(error).await?,
            }
        }
    }

    /// Locks the table `oid` and gives it as it is once locked; `None` if it was dropped meanwhile.
    pub(super) async fn lock_table(
        &mut self,
        oid: RelationId,
        lock: TableLock,
    ) -> Result<Option<(Arc<Relation>, Arc<Table>)>> {
        loop {
            let Some(before) = self.catalog()?.relations.get(&oid).cloned() else {
                return Ok(None);
            };
            let locked = self.lock_storage(before.storage, lock).await?;
            // What was planned before the wait may be gone: look again, and lock its new storage if it has one.
            let Some(after) = self.catalog()?.relations.get(&oid).cloned() else {
                return Ok(None);
            };
            match locked {
                Some(table) if after.storage == before.storage => {
                    self.txn.begin_statement();
                    return Ok(Some((after, table)));
                }
                Some(_) => {}
                None if after.storage == before.storage => {
                    return Err(SqlError::internal(format!(
                        "storage {} of a table is missing",
                        before.storage
                    )));
                }
                None => {}
            }
        }
    }

    /// Is the object with this number, a relation, an index, a constraint or a function, temporary? At a replica all
    /// that a session makes is.
    fn is_temporary(&mut self, object: Oid) -> Result<bool> {
        if self.store.is_replica() {
            return Ok(is_number_at_replica(object));
        }
        let catalog = self.catalog()?;
        if catalog.temp.is_none() {
            return Ok(false);
        }
        let routine = catalog.routines.get(FunctionId::new(object));
        if routine.is_some_and(|routine| routine.is_temporary()) {
            return Ok(true);
        }
        let relation = RelationId::new(object);
        let table = catalog.index_tables.get(&relation);
        let table = table.or_else(|| catalog.constraint_tables.get(&object));
        let relation = catalog.relations.get(table.unwrap_or(&relation));
        Ok(relation.is_some_and(|relation| relation.is_temporary()))
    }

    /// Fails for a name that the session's temporary schema has already: no unique index stands behind it.
    pub(super) fn temporary_name_is_free(
        &mut self,
        schema: SchemaId,
        name: &str,
        own: RelationId,
    ) -> Result<()> {
        match self.catalog()?.names.get(&(schema, name.to_owned())) {
            Some(other) if *other != own => Err(name_taken(name)),
            _ => Ok(()),
        }
    }

    /// Inserts an object's row, waiting for whoever is making or dropping one of the same name. `false` if the name is
    /// taken.
    pub(super) async fn insert_row(&mut self, table: TableId, row: &ObjectRow) -> Result<bool> {
        let handle = self.store.table(table)?;
        let bytes = row.encode(&mut RowBuilder::new());
        loop {
            self.txn.begin_statement();
            match self.txn.insert(&handle, &bytes) {
                Ok(rid) => {
                    self.store.remember(table, row.key.database, row.oid, rid);
                    return Ok(true);
                }
                Err(WriteError::Unique { .. }) => return Ok(false),
                Err(error) => self.wait_after(error).await?,
            }
        }
    }

    /// Replaces (`Some`) or deletes (`None`) an object's row. `false` if the new name is taken.
    pub(super) async fn change_row(
        &mut self,
        table: TableId,
        database: DatabaseOid,
        oid: Oid,
        row: Option<&ObjectRow>,
    ) -> Result<bool> {
        self.change_row_from(table, database, oid, row, None).await
    }

    /// The same, of a row that must still have the definition `expected`.
    pub(super) async fn change_row_from(
        &mut self,
        table: TableId,
        database: DatabaseOid,
        oid: Oid,
        row: Option<&ObjectRow>,
        expected: Option<&[u8]>,
    ) -> Result<bool> {
        let handle = self.store.table(table)?;
        let concurrent = || {
            SqlError::new(
                SqlState::INTERNAL_ERROR,
                format!("object {oid} was concurrently changed"),
            )
        };
        let rid = self
            .store
            .rid(table, database, oid)
            .ok_or_else(concurrent)?;
        let bytes = row.map(|r| r.encode(&mut RowBuilder::new()));
        loop {
            self.txn.begin_statement();
            let newest = self.read_newest(&handle, rid, |row| {
                row.map(|row| (row.version, ObjectRow::decode(row.bytes)))
            });
            let (version, now) = newest.await?.ok_or_else(concurrent)?;
            if let Some(expected) = expected
                && now?.definition != expected
            {
                return Err(SqlError::internal("tuple concurrently updated"));
            }
            let result = match &bytes {
                Some(bytes) => self.txn.update(&handle, rid, version, bytes),
                None => self.txn.delete(&handle, rid, version),
            };
            match result {
                Ok(()) => return Ok(true),
                Err(WriteError::Changed) => {}
                Err(WriteError::Gone) => return Err(concurrent()),
                Err(WriteError::Unique { .. }) => return Ok(false),
                Err(error) => self.wait_after(error).await?,
            }
        }
    }

    fn relation_row(&mut self, relation: &Relation) -> Result<ObjectRow> {
        let catalog = self.catalog()?;
        let options = catalog
            .notes
            .options
            .get(&relation.oid)
            .map_or(&[][..], Vec::as_slice);
        let key = ObjectKey {
            database: catalog.database,
            namespace: relation.schema.get(),
            name: relation.name.clone(),
        };
        Ok(ObjectRow {
            key,
            oid: relation.oid.get(),
            definition: stored::encode_relation(relation, options),
        })
    }

    pub(super) fn index_row(&mut self, schema: SchemaId, index: &IndexDef) -> Result<ObjectRow> {
        let catalog = self.catalog()?;
        let options = catalog
            .notes
            .options
            .get(&index.oid)
            .map_or(&[][..], Vec::as_slice);
        let key = ObjectKey {
            database: catalog.database,
            namespace: schema.get(),
            name: index.name.clone(),
        };
        Ok(ObjectRow {
            key,
            oid: index.oid.get(),
            definition: stored::encode_index(index, options),
        })
    }

    /// 0A000 if an expression of something that lasts names a temporary relation, which does not.
    fn refuse_temporary_constants(&mut self, relation: &Relation) -> Result<()> {
        let catalog = self.catalog()?;
        if catalog.temp.is_none() || relation.is_temporary() || relation.view().is_some() {
            return Ok(());
        }
        let temporary = |oid: RelationId| catalog.relations.get(&oid).filter(|r| r.is_temporary());
        let live = relation.columns.iter().filter(|c| !c.dropped);
        let defaults = live.filter_map(|c| c.default.as_deref());
        let checks = relation.constraints.iter().filter_map(|c| c.check());
        let mut named = defaults
            .chain(checks)
            .flat_map(logstead_sql_catalog::dependents_index::relations_named);
        match named.find_map(temporary) {
            None => Ok(()),
            Some(found) => Err(SqlError::unsupported(format!(
                "a default or constraint of a permanent table that names the temporary relation \"{}\"",
                found.name
            ))),
        }
    }

    /// Stores a new table or sequence. It belongs to who makes it.
    pub(super) async fn create_relation(&mut self, relation: Relation) -> Result<Arc<Relation>> {
        super::types::refuse_row_type(&*self.catalog()?, &relation)?;
        self.refuse_temporary_constants(&relation)?;
        self.lock_types_of(&relation, None).await?;
        self.lock_routines_of(&relation, None).await?;
        super::composites::refuse_kept_rows(&relation, None, self)?;
        if relation.is_temporary() {
            self.temporary_name_is_free(relation.schema, &relation.name, relation.oid)?;
        } else {
            self.lock_schema_of(relation.schema, &relation.schema_name)
                .await?;
            let row = self.relation_row(&relation)?;
            if !self.insert_row(RELATIONS, &row).await? {
                return Err(name_taken(&relation.name));
            }
        }
        self.keep_record_shapes(&relation, None)?;
        let relation = Arc::new(relation);
        self.state
            .push(CatalogChange::PutRelation(Arc::clone(&relation)));
        if !relation.is_temporary() {
            self.own_new(relation.oid, relation.schema, kind_of(&relation))
                .await?;
        }
        Ok(relation)
    }

    /// Stores a table or sequence that has changed.
    pub(super) async fn update_relation(&mut self, relation: Relation) -> Result<Arc<Relation>> {
        let old = self.catalog()?.relations.get(&relation.oid).cloned();
        let named = |old: &Arc<Relation>| (old.schema, old.name.clone());
        if old.as_ref().map(named) != Some((relation.schema, relation.name.clone())) {
            super::types::refuse_row_type(&*self.catalog()?, &relation)?;
        }
        self.refuse_temporary_constants(&relation)?;
        self.lock_types_of(&relation, old.as_deref()).await?;
        self.lock_routines_of(&relation, old.as_deref()).await?;
        super::composites::refuse_kept_rows(&relation, old.as_deref(), self)?;
        if relation.is_temporary() {
            self.temporary_name_is_free(relation.schema, &relation.name, relation.oid)?;
        } else {
            if old
                .as_ref()
                .is_some_and(|old| old.schema != relation.schema)
            {
                self.lock_schema_of(relation.schema, &relation.schema_name)
                    .await?;
            }
            let row = self.relation_row(&relation)?;
            if !self
                .change_row(RELATIONS, row.key.database, relation.oid.get(), Some(&row))
                .await?
            {
                return Err(name_taken(&relation.name));
            }
        }
        self.keep_record_shapes(&relation, old.as_deref())?;
        let relation = Arc::new(relation);
        self.state
            .push(CatalogChange::PutRelation(Arc::clone(&relation)));
        Ok(relation)
    }

    /// At a replica: notes what records the rows of a session's own table hold. The primary may change their types.
    fn keep_record_shapes(&mut self, relation: &Relation, old: Option<&Relation>) -> Result<()> {
        if !self.store.is_replica() || !relation.has_rows() {
            return Ok(());
        }
        let catalog = self.catalog()?;
        let known = catalog.notes.record_shapes.get(&relation.oid);
        let before = old.zip(known.map(|known| &**known));
        let shapes = RecordShapes::of(relation, &catalog, before);
        if known.is_some() || !shapes.is_empty() {
            let change = CatalogChange::RecordShapes(relation.oid, Arc::new(shapes));
            self.state.push(change);
        }
        Ok(())
    }

    /// Removes a table or sequence from the catalog; its indexes' rows go with it.
    pub(super) async fn delete_relation(&mut self, relation: &Relation) -> Result<()> {
        let database = self.catalog()?.database;
        if !relation.is_temporary() {
            for index in &relation.indexes {
                self.change_row(RELATIONS, database, index.oid.get(), None)
                    .await?;
            }
            super::triggers::delete_rows(relation.oid, self).await?;
            self.change_row(RELATIONS, database, relation.oid.get(), None)
                .await?;
            self.delete_privileges(relation.oid).await?;
        }
        self.state.push(CatalogChange::DropRelation(relation.oid));
        match relation.kind {
            RelationKind::Sequence(_) => self.state.sequence_unused(relation.storage),
            _ => self.state.unused(relation.storage),
        }
        Ok(())
    }

    /// The engine's table of a relation.
    pub(super) fn storage(&self, relation: &Relation) -> Result<Arc<Table>> {
        let table = self.store.engine().table(relation.storage);
        table.ok_or_else(|| {
            SqlError::internal(format!("storage of \"{}\" is missing", relation.name))
        })
    }

    /// Stores an index that has changed (its name).
    pub(super) async fn update_index(&mut self, schema: SchemaId, index: IndexDef) -> Result<()> {
        if self.is_temporary(index.table.get())? {
            self.temporary_name_is_free(schema, &index.name, index.oid)?;
        } else {
            let row = self.index_row(schema, &index)?;
            if !self
                .change_row(RELATIONS, row.key.database, index.oid.get(), Some(&row))
                .await?
            {
                return Err(name_taken(&index.name));
            }
        }
        self.state.push(CatalogChange::PutIndex(Arc::new(index)));
        Ok(())
    }

    /// Removes an index.
    pub(super) async fn delete_index(
        &mut self,
        relation: &Relation,
        index: &Arc<IndexDef>,
    ) -> Result<()> {
        let database = self.catalog()?.database;
        if !relation.is_temporary() {
            self.change_row(RELATIONS, database, index.oid.get(), None)
                .await?;
        }
        let table = self.storage(relation)?;
        self.state.detached(table, Arc::clone(index));
        self.state.push(CatalogChange::DropIndex(index.oid));
        super::index_expression_columns::forget(index, self).await
    }

    /// Stores a new schema. `false` if the name is taken.
    pub(super) async fn create_schema(&mut self, name: &str, owner: RoleId) -> Result<bool> {
        let catalog = self.catalog()?;
        if catalog.schema(name).is_some() {
            return Ok(false);
        }
        let oid = SchemaId::new(self.new_oid()?);
        let key = ObjectKey {
            database: catalog.database,
            namespace: 0,
            name: name.to_owned(),
        };
        if !self
            .insert_row(
                SCHEMAS,
                &ObjectRow {
                    key,
                    oid: oid.get(),
                    definition: vec![1],
                },
            )
            .await?
        {
            return Ok(false);
        }
        self.state.push(CatalogChange::PutSchema(Arc::new(Schema {
            oid,
            name: name.to_owned(),
        })));
        self.own_new_as(owner, oid, None, AclKind::Schema).await?;
        Ok(true)
    }

    /// Locks a schema: shared by who makes something in it, alone by who drops it. False if it was dropped meanwhile.
    pub(super) async fn lock_schema(&mut self, schema: SchemaId, lock: RowLock) -> Result<bool> {
        let database = self.catalog()?.database;
        let Some(rid) = self.store.rid(SCHEMAS, database, schema.get()) else {
            return Ok(self.catalog()?.schemas.contains_key(&schema));
        };
        let handle = self.store.table(SCHEMAS)?;
        loop {
            self.txn.begin_statement();
            let newest = self.read_newest(&handle, rid, |row| row.map(|row| row.version));
            let Some(version) = newest.await? else {
                return Ok(false);
            };
            match self.txn.lock_row(&handle, rid, version, lock) {
                Ok(()) => break,
                Err(WriteError::Changed) => {}
                Err(WriteError::Gone | WriteError::SerializationDelete) => return Ok(false),
                Err(error) => self.wait_after(error).await?,
            }
        }
        // It may be gone since it was found.
        Ok(self.catalog()?.schemas.contains_key(&schema))
    }

    /// Keeps the schema that a relation or type goes to from being dropped until the transaction ends.
    pub(super) async fn lock_schema_of(&mut self, schema: SchemaId, name: &str) -> Result<()> {
        match self.lock_schema(schema, RowLock::KeyShare).await? {
            true => Ok(()),
            false => Err(no_schema(name)),
        }
    }

    /// Removes a schema.
    pub(super) async fn delete_schema(&mut self, oid: SchemaId) -> Result<()> {
        let database = self.catalog()?.database;
        self.change_row(SCHEMAS, database, oid.get(), None).await?;
        self.delete_privileges(oid).await?;
        self.state.push(CatalogChange::DropSchema(oid));
        Ok(())
    }

    /// An object's row by its name.
    pub(super) async fn named_row(
        &mut self,
        table: TableId,
        key: &ObjectKey,
    ) -> Result<Option<(Rid, ObjectRow)>> {
        let handle = self.store.table(table)?;
        let index = handle
            .index(stored::name_index(table))
            .ok_or_else(|| SqlError::internal("a table of the catalog has no index"))?;
        let mut lookup = Vec::new();
        lookup.extend_from_slice(&key.database.get().to_be_bytes());
        lookup.extend_from_slice(&key.namespace.to_be_bytes());
        lookup.extend_from_slice(key.name.as_bytes());
        lookup.push(0);
        self.txn.begin_statement();
        loop {
            let absent = {
                let guard = self.txn.pin();
                match self.txn.get(&index, &lookup, &guard) {
                    Ok(None) => return Ok(None),
                    Ok(Some(row)) => return Ok(Some((row.rid, ObjectRow::decode(row.bytes)?))),
                    Err(absent) => absent,
                }
            };
            self.wait(absent).await?;
        }
    }

    /// Stores or removes a comment.
    pub(super) async fn put_comment(
        &mut self,
        class: RelationId,
        object: Oid,
        sub: i32,
        text: Option<&str>,
    ) -> Result<()> {
        let database = match is_shared_class(class) {
            true => SHARED,
            false => self.catalog()?.database,
        };
        if self.is_temporary(object)? {
            self.state.push(CatalogChange::Comment(
                (class, object, sub),
                text.map(Arc::from),
            ));
            return Ok(());
        }
        let key = ObjectKey {
            database,
            namespace: class.get(),
            name: comment_name(object, sub),
        };
        if database == SHARED {
            self.delete_older_comments(&key).await?;
        }
        let old = self.named_row(COMMENTS, &key).await?;
        let old = old.map(|(rid, row)| (rid, row.oid));
        let row = |oid| {
            text.map(|text| {
                let definition = [&[1], text.as_bytes()].concat();
                ObjectRow {
                    key: key.clone(),
                    oid,
                    definition,
                }
            })
        };
        match old {
            Some((rid, oid)) => {
                self.store.remember(COMMENTS, database, oid, rid);
                self.change_row(COMMENTS, database, oid, row(oid).as_ref())
                    .await?;
            }
            None => {
                let oid = self.new_oid()?;
                if let Some(row) = row(oid)
                    && !self.insert_row(COMMENTS, &row).await?
                {
                    return Err(SqlError::new(
                        SqlState::SERIALIZATION_FAILURE,
                        "the comment was concurrently changed",
                    ));
                }
            }
        }
        self.state.push(CatalogChange::Comment(
            (class, object, sub),
            text.map(Arc::from),
        ));
        Ok(())
    }
}
