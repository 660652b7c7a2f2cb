//! From what a transaction has changed to the snapshots that others see: one for each database.
//!
//! Invariant: what all databases share (roles, the databases themselves, what is said of these) is the same in all of
//! them.

use super::change::{CatalogChange, is_shared_class};
use super::database::{Database, Databases};
use super::store::{CatalogStore, locked};
use super::stored::{DATABASES, ObjectKey, ObjectRow, SCHEMAS};
use super::{Catalog, SystemCatalog};
use crate::autonomous_txn::autonomous;
use crate::classes::PG_PUBLIC_NAMESPACE;
use crate::storages;
use crate::stored;
use crate::stored::SHARED;
use logstead_engine::{RowBuilder, Worker};
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::Result;
use logstead_types::Csn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The schema that every database begins with.
pub fn public_row(database: DatabaseOid) -> ObjectRow {
    ObjectRow {
        key: ObjectKey {
            database,
            namespace: 0,
            name: "public".to_owned(),
        },
        oid: PG_PUBLIC_NAMESPACE.get(),
        definition: vec![1],
    }
}

/// The catalog of a new database, with what it shares with the others.
fn beside(system: &SystemCatalog, other: Option<&Catalog>, database: &Database) -> Catalog {
    let mut catalog = system.database(database.oid, database.name.as_str());
    let Some(other) = other else {
        return catalog;
    };
    catalog.csn = other.csn;
    catalog.roles = Arc::clone(&other.roles);
    catalog.notes.databases = Arc::clone(&other.notes.databases);
    catalog.notes.live.clone_from(&other.notes.live);
    let privileges = other.privileges.objects.iter();
    catalog.privileges.objects = privileges
        .filter(|(object, _)| is_shared_class(object.class))
        .map(|(object, privileges)| (*object, Arc::clone(privileges)))
        .collect();
    let comments = other.notes.comments.iter();
    catalog.notes.comments = comments
        .filter(|((class, ..), _)| is_shared_class(*class))
        .map(|(object, text)| (*object, Arc::clone(text)))
        .collect();
    catalog
}

/// The catalog of a new database with what its template had.
fn filled(new: &Catalog, contents: &Catalog) -> Catalog {
    let mut catalog = contents.clone();
    catalog.csn = new.csn;
    catalog.version = new.version;
    catalog.roles = Arc::clone(&new.roles);
    catalog.notes.databases = Arc::clone(&new.notes.databases);
    catalog.notes.live.clone_from(&new.notes.live);
    let theirs = contents.privileges.objects.keys();
    for object in theirs.filter(|object| is_shared_class(object.class)) {
        catalog.privileges.objects.remove(object);
    }
    for (object, privileges) in new.privileges.objects.iter() {
        catalog
            .privileges
            .objects
            .insert(*object, Arc::clone(privileges));
    }
    let theirs = contents.notes.comments.iter();
    for (object, _) in theirs.filter(|((class, ..), _)| is_shared_class(*class)) {
        catalog.notes.comments.remove(object);
    }
    for (object, text) in new.notes.comments.iter() {
        catalog.notes.comments.insert(*object, Arc::clone(text));
    }
    catalog
}

impl CatalogStore {
    /// Makes a transaction's changes visible.
    ///
    /// # Panics
    /// At a replica, whose catalog is its primary's: no session has changed it.
    pub fn publish(&self, database: DatabaseOid, changes: &[CatalogChange], csn: Csn) {
        assert!(
            !self.is_replica(),
            "a session of a replica has changed the catalog"
        );
        let mut all = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let shared: Vec<_> = changes.iter().filter(|c| c.is_shared()).cloned().collect();
        for slot in all.iter_mut() {
            let changes = match slot.database == database {
                true => changes,
                false => &shared,
            };
            if changes.is_empty() {
                continue;
            }
            let mut catalog = self.derive(slot, changes);
            catalog.csn = catalog.csn.max(csn);
            *slot = Arc::new(catalog);
        }
        for change in &shared {
            match change {
                CatalogChange::PutDatabase(made) => {
                    if let Err(at) = all.binary_search_by_key(&made.oid, |c| c.database) {
                        let mut catalog = beside(self.system, all.first().map(|c| &**c), made);
                        catalog.csn = catalog.csn.max(csn);
                        catalog.version = self.versions.fetch_add(1, Ordering::Relaxed);
                        all.insert(at, Arc::new(catalog));
                    }
                }
                CatalogChange::FillDatabase(contents) => {
                    if let Ok(at) = all.binary_search_by_key(&contents.database, |c| c.database) {
                        all[at] = Arc::new(filled(&all[at], contents));
                    }
                }
                CatalogChange::DropDatabase(gone) => {
                    all.retain(|c| c.database != *gone);
                    locked(&self.rids).retain(|(_, database, _), _| database != gone);
                }
                _ => {}
            }
        }
    }

    /// All databases as they are now.
    pub fn databases(&self) -> Arc<Databases> {
        let all = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let first = all.first().map(|c| Arc::clone(&c.notes.databases));
        first.unwrap_or_default()
    }

    /// Stores what a new log, or one of a build without templates, lacks: the databases that are always there.
    pub(super) fn make_databases(&self, worker: &Worker) -> Result<()> {
        let table = self.table(DATABASES)?;
        let schemas = self.table(SCHEMAS)?;
        let known = self.databases();
        let missing: Vec<_> = Database::templates()
            .into_iter()
            .filter(|template| known.get(template.oid).is_none())
            .filter(|template| known.by_name(&template.name).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut rids = Vec::new();
        let csn = autonomous(worker, |txn| {
            rids.clear();
            let mut builder = RowBuilder::new();
            for template in &missing {
                let row = stored::databases::encode(template).encode(&mut builder);
                let public = public_row(template.oid).encode(&mut builder);
                rids.push((txn.insert(&table, &row)?, txn.insert(&schemas, &public)?));
            }
            Ok(())
        })?;
        let mut changes = Vec::new();
        for (template, (rid, public)) in missing.into_iter().zip(rids) {
            self.remember(DATABASES, SHARED, template.oid.get(), rid);
            self.remember(SCHEMAS, template.oid, PG_PUBLIC_NAMESPACE.get(), public);
            storages::make_large_object_storages(self.system, self.engine(), worker, template.oid)?;
            changes.push(CatalogChange::PutDatabase(Arc::new(template)));
        }
        self.publish(SHARED, &changes, csn);
        Ok(())
    }
}
