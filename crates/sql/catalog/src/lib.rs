//! The catalog: what exists.
//!
//! Owns: the stored catalog tables (rows in the engine like any other: DDL is transactional, logged and recovered with
//! no code of its own), the immutable in-memory [`Catalog`] snapshot that statements are planned with, roles and their
//! privileges ([`role`], [`privileges`]), settings ([`settings`]), what a statement is given of its session
//! ([`context`]), and how stored expressions and queries are printed ([`deparse`]).
//!
//! Invariants:
//! - A `Catalog` never changes once shared; a new one carries a higher `version`. Whoever uses one adds `Catalog::csn`
//!   to its transaction's dependencies until that CSN is Committed (T10).
//! - A change costs nothing for the objects that it does not touch: the next `Catalog` shares them with the last,
//!   since its maps are persistent, and what refers to an object is found by its number ([`Dependents`]), not by
//!   looking at all.
//!
//! Does not: run statements. Those that change the catalog, the rows of system relations and keys of indexes are made
//! by crates above, which the catalog knows by a [`SystemCatalog`].

#![forbid(unsafe_code)]

pub mod aggregate;
mod autonomous_txn;
pub mod body_context;
pub mod change;
pub mod classes;
mod comments;
mod commit_token;
mod constraint;
pub mod context;
pub mod database;
pub mod database_usage;
pub mod deparse;
pub mod dependents_index;
pub mod distribution;
pub mod extensions;
mod index_def;
pub mod index_expressions;
pub mod inert_options;
pub mod io_functions;
pub mod large_objects;
pub mod name_lookup;
pub mod options;
pub mod privileges;
pub mod publish;
pub mod read;
mod record_columns;
mod record_shapes;
mod replica;
mod replica_catalogs;
mod replica_status;
pub mod role;
pub mod routine;
mod row_security;
mod runtime_statistics;
pub mod sequence;
pub mod sequence_def;
mod sequence_session;
pub mod settings;
pub mod start;
pub mod statistics;
pub mod storages;
pub mod store;
pub mod stored;
mod stored_indexes;
mod system;
mod tariff;
pub mod temp_objects;
pub mod temporary;
pub mod text;
pub mod trigger;
pub mod type_name;
pub mod types_in_use;
mod view;
pub mod write_errors;

pub use comments::Comments;
pub use commit_token::CommitToken;
pub use constraint::{Constraint, ConstraintKind, ForeignKey, ReferentialAction, Timing};
pub use database::{Database, Databases};
pub use database_usage::DatabaseConnection;
pub use dependents_index::Dependents;
pub use distribution::Distribution;
pub use index_def::{IndexColumn, IndexDef, IndexKey};
pub use record_shapes::RecordShapes;
pub use replica::{ReplicaCatalog, ReplicaStart};
pub use replica_status::{ReplicaPhase, ReplicaReport, ReplicaStatus, StreamReport};
pub use row_security::{Policy, RowSecurity};
pub use runtime_statistics::RuntimeStatistics;
pub use sequence::{OWN_NUMBER, SEQUENCE_ROW};
pub use sequence_session::{SequenceSession, SerializedSequences};
pub use statistics::{
    AutoanalyzeEntry, ColumnStatistics, TableStatistics, known_rows, live_rows, rows_changed,
};
pub use storages::StartupIndexes;
pub use store::CatalogStore;
pub use stored_indexes::stored_indexes;
pub use system::{KeyExtractorFactory, SystemCatalog};
pub use tariff::Tariff;
pub use temp_objects::TempObjects;
pub use temporary::{ALIAS as TEMPORARY_ALIAS, OnCommit};
pub use view::{View, ViewObject, ViewSource, source_name};
pub use write_errors::{commit_error, dependency_failure, too_many_commands};

use crate::classes::{INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE};
use crate::context::Context;
use crate::role::Roles;
use logstead_engine::{AsOfDatabase, Engine, Table};
use logstead_sql_types::error::Result;
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::record::TupleDesc;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, Oid, SqlType};
use logstead_sql_types::{DatabaseOid, RelationId, SchemaId, TypeId};
use logstead_types::{Csn, TableId};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, Weak};

/// A consistent picture of one database's catalog.
#[derive(Clone)]
pub struct Catalog {
    /// Rises with every change that is committed (or made by the transaction that owns a private copy).
    pub version: u64,
    /// The version of the published one that a session has laid its own objects, or its changes, over.
    pub base: Option<u64>,
    /// CSN of the newest DDL it contains.
    pub csn: Csn,
    /// Database OID.
    pub database: DatabaseOid,
    /// Database name.
    pub database_name: String,
    /// Schemas by OID.
    pub schemas: PersistentMap<SchemaId, Arc<Schema>>,
    /// Their OIDs by name.
    schema_names: PersistentMap<String, SchemaId>,
    /// Tables, sequences and virtual relations by OID. Indexes hang on their table.
    pub relations: PersistentMap<RelationId, Arc<Relation>>,
    /// (schema OID, name) of relations *and indexes* to the relation's or index's OID.
    pub names: PersistentMap<(SchemaId, String), RelationId>,
    /// Index OID to the OID of its table.
    pub index_tables: PersistentMap<RelationId, RelationId>,
    /// Constraint OID to the OID of its table.
    pub constraint_tables: PersistentMap<Oid, RelationId>,
    /// How many constraints of tables have a name, by schema OID and name.
    pub constraint_names: PersistentMap<(SchemaId, String), usize>,
    /// OID of a referenced table to the OIDs of the tables whose foreign keys reference it.
    pub referencing: PersistentMap<RelationId, PersistentMap<RelationId, ()>>,
    /// Objects by what they refer to.
    pub dependents: Dependents,
    /// Types that users have made.
    pub types: Arc<UserTypes>,
    /// Functions and procedures that users have made.
    pub routines: Arc<routine::Routines>,
    /// Triggers by their tables.
    pub triggers: Arc<trigger::Triggers>,
    /// All roles of the server.
    pub roles: Arc<Roles>,
    /// Owners and privileges.
    pub privileges: privileges::PrivilegeCatalog,
    /// The past that it is of; none is the present.
    pub past: Option<Weak<AsOfDatabase>>,
    /// The temporary schema of the session whose view this is, once it has one.
    pub temp: Option<Arc<Schema>>,
    /// What ANALYZE has found out, by table.
    pub statistics: PersistentMap<RelationId, Arc<TableStatistics>>,
    /// What planning does not need.
    pub notes: SystemViewData,
}

/// Parts of the catalog that only system relations and functions show.
#[derive(Clone, Default)]
pub struct SystemViewData {
    /// All databases of the server.
    pub databases: Arc<Databases>,
    /// COMMENT ON: (class, object, column number or 0).
    pub comments: Comments,
    /// WITH (...) of tables and indexes, as `name=value`.
    pub options: PersistentMap<RelationId, Vec<String>>,
    /// What COMMIT does with temporary tables.
    pub on_commit: PersistentMap<RelationId, OnCommit>,
    /// Of temporary tables of a replica: what records they keep.
    pub record_shapes: PersistentMap<RelationId, Arc<RecordShapes>>,
    /// What changes without DDL; absent in tests without an engine.
    pub live: Option<Arc<dyn RuntimeStatistics>>,
}

/// A schema (namespace).
#[derive(Clone, Debug)]
pub struct Schema {
    /// `pg_namespace.oid`; [`classes`] has those that every database begins with.
    pub oid: SchemaId,
    /// Name.
    pub name: String,
}

/// A table, sequence or virtual relation.
#[derive(Clone)]
pub struct Relation {
    /// `pg_class.oid`.
    pub oid: RelationId,
    /// Name.
    pub name: String,
    /// Schema OID.
    pub schema: SchemaId,
    /// Schema name.
    pub schema_name: String,
    /// What it is.
    pub kind: RelationKind,
    /// All attributes ever added, by position; dropped ones stay.
    pub columns: Vec<Column>,
    /// Indexes, oldest first.
    pub indexes: Vec<Arc<IndexDef>>,
    /// Constraints, oldest first.
    pub constraints: Vec<Arc<Constraint>>,
    /// Storage: changes on TRUNCATE.
    pub storage: TableId,
    /// Stamped into rows; rises with every change of columns.
    pub schema_version: u16,
    /// Which of its rows who sees; tables only.
    pub security: RowSecurity,
    /// By what its rows are divided; of what has rows only.
    pub distribution: Distribution,
    /// The names of its columns as statements share them.
    pub shared_names: SharedNames,
}

/// Names of columns that many hold, made when they are first asked for. Nothing depends on them: who clones a relation
/// is about to change it, so the clone makes its own.
#[derive(Debug, Default)]
pub struct SharedNames(OnceLock<Box<[Arc<str>]>>);

impl Clone for SharedNames {
    fn clone(&self) -> SharedNames {
        logstead_sql_types::persistent::visit();
        SharedNames::default()
    }
}

/// What names are found by in [`Catalog::names`], without owning it.
trait NameKey {
    fn parts(&self) -> (SchemaId, &str);
}

impl NameKey for (SchemaId, String) {
    fn parts(&self) -> (SchemaId, &str) {
        (self.0, &self.1)
    }
}

impl NameKey for (SchemaId, &str) {
    fn parts(&self) -> (SchemaId, &str) {
        *self
    }
}

impl<'k> Borrow<dyn NameKey + 'k> for (SchemaId, String) {
    fn borrow(&self) -> &(dyn NameKey + 'k) {
        self
    }
}

// As the tuple hashes.
impl Hash for dyn NameKey + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for dyn NameKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn NameKey + '_ {}

/// Kinds of relation.
#[derive(Clone)]
pub enum RelationKind {
    /// Ordinary table.
    Table,
    /// Sequence with its definition.
    Sequence(SequenceDef),
    /// View. Its storage is empty for ever: it is what is locked when the view is read, replaced or dropped.
    View(Arc<View>),
    /// Materialized view: a view that keeps its rows, and whether it has been filled.
    Materialized(Arc<View>, bool),
    /// System relation computed from the catalog.
    Virtual(&'static VirtualTable),
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name; "........pg.dropped.N........" when dropped.
    pub name: String,
    /// Type of its values.
    pub ty: SqlType,
    /// The domain, or array over one, that it is declared as; `ty` is its base type.
    pub domain: Option<TypeId>,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT, or what the column is generated from, as SQL text.
    pub default: Option<String>,
    /// GENERATED ... AS IDENTITY: `Some(true)` ALWAYS, `Some(false)` BY DEFAULT.
    pub identity: Option<bool>,
    /// GENERATED ALWAYS AS (...) STORED: `default` is computed from every row that is written, and nobody else writes
    /// it.
    pub generated: bool,
    /// The sequence owned by this column (serial, identity).
    pub sequence: Option<RelationId>,
    /// Dropped.
    pub dropped: bool,
    /// Value of rows stored before the column was added (rows with fewer columns).
    pub missing: Datum,
}

/// Where a column of a result comes from: a relation, and an attribute number there.
pub type ColumnOrigin = (RelationId, i16);

/// Definition of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of CREATE SEQUENCE")]
pub struct SequenceDef {
    pub ty: TypeId,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
}

/// OIDs of system relations from here on are views in PostgreSQL's own catalog.
const FIRST_VIEW: RelationId = RelationId::new(10_000);

/// A system relation whose rows follow from a catalog snapshot and the session.
pub struct VirtualTable {
    /// OID, PostgreSQL's where it has one.
    pub oid: RelationId,
    /// Schema name: pg_catalog or information_schema.
    pub schema: &'static str,
    /// Name.
    pub name: &'static str,
    /// Columns.
    pub columns: &'static [(&'static str, TypeId)],
    /// All rows.
    pub rows: fn(&VirtualContext<'_>) -> Result<Vec<Vec<Datum>>>,
}

/// What a virtual table reads.
pub struct VirtualContext<'a> {
    /// Snapshot.
    pub catalog: &'a Catalog,
    /// Session.
    pub session: &'a dyn Context,
}

impl logstead_sql_types::value::user::TypeCatalog for Catalog {
    fn user_types(&self) -> &Arc<UserTypes> {
        &self.types
    }
}

impl Catalog {
    /// Finds a relation by name. `schema` None searches `path` (pg_catalog first unless the path names it).
    pub fn relation(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &[String],
    ) -> Option<&Arc<Relation>> {
        self.find_in(schema, path, |schema| {
            let key: &dyn NameKey = &(schema.oid, name);
            let oid = self.names.get(key)?;
            self.relations.get(oid)
        })
    }

    /// What `find` finds in a schema, or in the first that has it of those searched: the session's temporary one and
    /// pg_catalog, each unless the path names it, then those of the path.
    fn find_in<T>(
        &self,
        schema: Option<&str>,
        path: &[String],
        mut find: impl FnMut(&Schema) -> Option<T>,
    ) -> Option<T> {
        if let Some(schema) = schema {
            return find(self.schema(schema)?);
        }
        if let Some(temp) = &self.temp
            && !path
                .iter()
                .any(|s| *s == temp.name || s == temporary::ALIAS)
            && let Some(found) = find(temp)
        {
            return Some(found);
        }
        let first = (!path.iter().any(|s| s == "pg_catalog")).then_some("pg_catalog");
        first
            .into_iter()
            .chain(path.iter().map(String::as_str))
            .find_map(|schema| find(self.schema(schema)?))
    }

    /// Has anything been made in it, or said of what every database begins with?
    pub fn is_untouched(&self) -> bool {
        let shared = |class: RelationId| change::is_shared_class(class);
        self.schemas.len() == 4
            && self
                .schemas
                .get(&classes::PG_PUBLIC_NAMESPACE)
                .is_some_and(|public| public.name == "public")
            && self
                .relations
                .values()
                .all(|r| matches!(r.kind, RelationKind::Virtual(_)))
            && self.types.all().is_empty()
            && self.routines.is_empty()
            && self.privileges.defaults.is_empty()
            && self
                .privileges
                .objects
                .keys()
                .all(|object| shared(object.class))
            && self
                .notes
                .comments
                .iter()
                .all(|((class, ..), _)| shared(*class))
    }

    /// A catalog of nothing at all.
    fn bare(database: DatabaseOid, database_name: impl Into<String>) -> Catalog {
        Catalog {
            version: 1,
            base: None,
            csn: Csn::ZERO,
            database,
            database_name: database_name.into(),
            schemas: PersistentMap::default(),
            schema_names: PersistentMap::default(),
            relations: PersistentMap::default(),
            names: PersistentMap::default(),
            index_tables: PersistentMap::default(),
            constraint_tables: PersistentMap::default(),
            constraint_names: PersistentMap::default(),
            referencing: PersistentMap::default(),
            dependents: Dependents::default(),
            types: Arc::default(),
            routines: Arc::default(),
            triggers: Arc::default(),
            roles: Arc::default(),
            privileges: privileges::PrivilegeCatalog::default(),
            past: None,
            temp: None,
            statistics: PersistentMap::default(),
            notes: SystemViewData::default(),
        }
    }

    /// The domain, or array over one, that a column is declared as: by table and attribute number.
    pub fn column_domain(&self, (table, number): ColumnOrigin) -> Option<TypeId> {
        let position = usize::try_from(number).ok()?.checked_sub(1)?;
        self.relations.get(&table)?.columns.get(position)?.domain
    }

    /// Where a relation's rows are: in the present, or in the past that this is the catalog of. Whoever uses that has
    /// it open.
    pub fn table(&self, storage: TableId, engine: &Engine) -> Option<Arc<Table>> {
        match &self.past {
            None => engine.table(storage),
            Some(past) => past.upgrade()?.table(storage),
        }
    }

    /// Adds or replaces a relation: its name and its indexes' names follow.
    pub fn put_relation(&mut self, relation: Arc<Relation>) {
        let refers = dependents_index::of_relation(&relation);
        self.take_relation(relation.oid, &refers);
        self.names
            .insert((relation.schema, relation.name.clone()), relation.oid);
        for index in &relation.indexes {
            self.names
                .insert((relation.schema, index.name.clone()), index.oid);
            self.index_tables.insert(index.oid, relation.oid);
        }
        for key in relation.constraints.iter().filter_map(|c| c.foreign()) {
            let mut tables = self
                .referencing
                .get(&key.table)
                .cloned()
                .unwrap_or_default();
            tables.insert(relation.oid, ());
            self.referencing.insert(key.table, tables);
        }
        for constraint in &relation.constraints {
            self.constraint_tables.insert(constraint.oid, relation.oid);
            let name = (relation.schema, constraint.name.clone());
            let count = self.constraint_names.get(&name).copied().unwrap_or(0);
            self.constraint_names.insert(name, count + 1);
        }
        if let Some(shape) = relation.row_shape() {
            let name = (&*relation.schema_name, &*relation.name);
            let declared = relation.declared_shape();
            if !self
                .types
                .has_row(relation.oid, name, (&shape, declared.as_ref()))
            {
                Arc::make_mut(&mut self.types).put_row(relation.oid, name, (shape, declared));
            }
        }
        self.relations.insert(relation.oid, relation);
    }

    /// Takes a relation and its indexes out.
    pub fn remove_relation(&mut self, oid: RelationId) {
        self.take_relation(oid, &BTreeSet::new());
        if self.types.knows_row(oid) {
            Arc::make_mut(&mut self.types).remove_row(oid);
        }
    }

    /// Takes a relation and its indexes out, the type of its rows excepted. One of this number that comes in its place
    /// refers to `refers`.
    fn take_relation(&mut self, oid: RelationId, refers: &BTreeSet<Oid>) {
        let dependent = dependents_index::Dependent::Relation(oid);
        let Some(old) = self.relations.remove(&oid) else {
            self.dependents.replace(dependent, &BTreeSet::new(), refers);
            return;
        };
        let referred = dependents_index::of_relation(&old);
        self.dependents.replace(dependent, &referred, refers);
        self.forget_name(old.schema, &old.name, oid);
        for index in &old.indexes {
            self.forget_name(old.schema, &index.name, index.oid);
            self.index_tables.remove(&index.oid);
        }
        for key in old.constraints.iter().filter_map(|c| c.foreign()) {
            let Some(mut tables) = self.referencing.get(&key.table).cloned() else {
                continue;
            };
            tables.remove(&oid);
            match tables.is_empty() {
                true => drop(self.referencing.remove(&key.table)),
                false => self.referencing.insert(key.table, tables),
            }
        }
        for constraint in &old.constraints {
            self.constraint_tables.remove(&constraint.oid);
            let name = (old.schema, constraint.name.clone());
            match self.constraint_names.remove(&name) {
                Some(count) if count > 1 => self.constraint_names.insert(name, count - 1),
                _ => {}
            }
        }
    }

    /// The foreign keys that reference a table, with the tables they belong to, oldest first.
    pub fn references_to(&self, table: RelationId) -> Vec<(&Arc<Relation>, &Arc<Constraint>)> {
        let Some(tables) = self.referencing.get(&table) else {
            return Vec::new();
        };
        let mut found: Vec<_> = tables
            .keys()
            .filter_map(|child| self.relations.get(child))
            .flat_map(|child| child.constraints.iter().map(move |c| (child, c)))
            .filter(|(_, c)| c.foreign().is_some_and(|key| key.table == table))
            .collect();
        found.sort_unstable_by_key(|(_, c)| c.oid);
        found
    }

    /// A name goes only if it still means this object: two changes may be applied in either order.
    fn forget_name(&mut self, schema: SchemaId, name: &str, oid: RelationId) {
        let key = (schema, name.to_owned());
        if self.names.get(&key) == Some(&oid) {
            self.names.remove(&key);
        }
    }

    /// OID of a relation, a composite type as one, or an index by name; `schema` None searches `path` as
    /// [`Catalog::relation`] does.
    pub fn object_by_name(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &[String],
    ) -> Option<RelationId> {
        self.find_in(schema, path, |schema| {
            let known = self.names.get(&(schema.oid, name.to_owned())).copied();
            known.or_else(|| {
                let ty = self.types.get(self.types.by_name(&schema.name, name)?)?;
                Some(ty.composite()?.relation)
            })
        })
    }

    /// Schema and name of a relation, a composite type as one, or an index.
    pub fn name_of(&self, oid: RelationId) -> Option<(&str, &str)> {
        if let Some(relation) = self.relations.get(&oid) {
            return Some((&relation.schema_name, &relation.name));
        }
        let Some(table) = self.index_tables.get(&oid) else {
            let ty = self.types.composite_of(oid)?;
            return Some((&ty.schema_name, &ty.name));
        };
        let table = self.relations.get(table)?;
        let index = table.indexes.iter().find(|i| i.oid == oid)?;
        Some((&table.schema_name, &index.name))
    }

    /// A schema by name; `pg_temp` is the session's own.
    pub fn schema(&self, name: &str) -> Option<&Arc<Schema>> {
        if name == temporary::ALIAS {
            return self.temp.as_ref();
        }
        // Most searches are for one of these, which have the same numbers in every database.
        let usual = match name {
            "pg_catalog" => self.schemas.get(&PG_CATALOG_NAMESPACE),
            "public" => self.schemas.get(&classes::PG_PUBLIC_NAMESPACE),
            _ => None,
        };
        let usual = usual.filter(|schema| schema.name == name);
        usual.or_else(|| self.schemas.get(self.schema_names.get(name)?))
    }

    /// Adds or replaces a schema.
    fn put_schema(&mut self, schema: Arc<Schema>) {
        self.remove_schema(schema.oid);
        self.schema_names.insert(schema.name.clone(), schema.oid);
        self.schemas.insert(schema.oid, schema);
    }

    /// Takes a schema out. Its name goes only if it still means this one.
    fn remove_schema(&mut self, oid: SchemaId) {
        if let Some(old) = self.schemas.remove(&oid)
            && self.schema_names.get(old.name.as_str()) == Some(&oid)
        {
            self.schema_names.remove(old.name.as_str());
        }
    }
}

impl Relation {
    /// The name of a column, for somebody who keeps it.
    pub fn shared_name(&self, position: usize) -> Arc<str> {
        let name = self.columns.get(position).map_or("", |c| c.name.as_str());
        let make = || {
            self.columns
                .iter()
                .map(|c| c.name.as_str().into())
                .collect()
        };
        match self.shared_names.0.get_or_init(make).get(position) {
            // It may have been changed in its place meanwhile.
            Some(shared) if **shared == *name => Arc::clone(shared),
            _ => name.into(),
        }
    }
}

impl Column {
    /// The type it is declared as.
    pub fn declared(&self) -> SqlType {
        self.domain.map_or(self.ty, SqlType::of)
    }

    /// Does a row hold a value of it? Of a dropped column it does if an index has the value computed
    /// (`catalog::index_expressions`).
    #[inline]
    pub fn is_stored(&self) -> bool {
        !self.dropped || self.generated
    }

    /// Is it a generated column whose value may change with one of the columns at `changed`?
    pub fn follows(&self, table: &Relation, changed: &[usize]) -> bool {
        let from = self.generated_from(table);
        from.iter().any(|from| changed.contains(from))
            || (!changed.is_empty() && self.takes_row(table))
    }

    /// Is it computed from the whole row?
    pub fn takes_row(&self, table: &Relation) -> bool {
        match &self.default {
            Some(text) if self.generated => text::takes_row(text, table),
            _ => false,
        }
    }

    /// Positions of the columns of its table that a generated column is computed from by name; of any other, none.
    pub fn generated_from(&self, table: &Relation) -> Vec<usize> {
        match &self.default {
            Some(text) if self.generated => text::columns_in(text, table),
            _ => Vec::new(),
        }
    }
}

impl VirtualTable {
    /// Is it a view in PostgreSQL?
    pub fn is_view(&self) -> bool {
        self.oid >= FIRST_VIEW
    }
}

impl Relation {
    /// The query behind it, if it is a view of either kind.
    pub fn view(&self) -> Option<&Arc<View>> {
        match &self.kind {
            RelationKind::View(view) | RelationKind::Materialized(view, _) => Some(view),
            _ => None,
        }
    }

    /// Names and types of the columns that a row of it has as a value; none of what has no type of rows: sequences, and
    /// the system's own relations.
    pub fn row_shape(&self) -> Option<TupleDesc> {
        if matches!(self.kind, RelationKind::Sequence(_)) {
            return None;
        }
        let live = self.columns.iter().filter(|c| !c.dropped);
        Some(live.map(|c| (c.name.as_str().into(), c.ty)).collect())
    }

    /// The same with domains as such; none if no column is declared as one.
    fn declared_shape(&self) -> Option<TupleDesc> {
        let live = self.columns.iter().filter(|c| !c.dropped);
        live.clone().find(|c| c.domain.is_some())?;
        Some(
            live.map(|c| (c.name.as_str().into(), c.declared()))
                .collect(),
        )
    }

    /// Has it rows of its own?
    pub fn has_rows(&self) -> bool {
        matches!(
            self.kind,
            RelationKind::Table | RelationKind::Materialized(..)
        )
    }

    /// The relation of a system table.
    pub fn of_virtual(table: &'static VirtualTable) -> Relation {
        let column = |(name, ty): &(&str, TypeId)| Column {
            name: (*name).to_owned(),
            ty: SqlType::of(*ty),
            domain: None,
            not_null: false,
            default: None,
            identity: None,
            generated: false,
            sequence: None,
            dropped: false,
            missing: Datum::Null,
        };
        Relation {
            oid: table.oid,
            name: table.name.to_owned(),
            schema: if table.schema == "pg_catalog" {
                PG_CATALOG_NAMESPACE
            } else {
                INFORMATION_SCHEMA_NAMESPACE
            },
            schema_name: table.schema.to_owned(),
            kind: RelationKind::Virtual(table),
            columns: table.columns.iter().map(column).collect(),
            indexes: Vec::new(),
            constraints: Vec::new(),
            storage: TableId(table.oid.get()),
            schema_version: 0,
            security: RowSecurity::default(),
            distribution: Default::default(),
            shared_names: Default::default(),
        }
    }
}

pub mod without_session;
