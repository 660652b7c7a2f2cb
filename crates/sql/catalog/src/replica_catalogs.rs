//! The catalogs that a replica has published, each for the snapshots that it belongs to.
//!
//! Invariants: they are published in the order of CSNs, and the one for a snapshot in use is never forgotten.

use super::Catalog;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::Csn;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// The catalogs of all databases, for snapshots from one on.
pub(super) struct CatalogVersion {
    pub(super) from: Csn,
    pub(super) catalogs: Result<Vec<Arc<Catalog>>>,
}

/// What a replica has published, oldest first; empty at a primary.
#[derive(Default)]
pub(super) struct CatalogVersions(RwLock<VecDeque<CatalogVersion>>);

impl CatalogVersions {
    pub(super) fn put(&self, version: CatalogVersion) {
        let mut versions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        versions.push_back(version);
    }

    /// Forgets those that no snapshot at or above `oldest` needs.
    pub(super) fn forget_before(&self, oldest: Csn) {
        let needed = {
            let versions = self.0.read().unwrap_or_else(PoisonError::into_inner);
            versions.partition_point(|version| version.from <= oldest)
        };
        // The last one at or below it is the oldest snapshot's own.
        let forgotten: Vec<CatalogVersion> = {
            let mut versions = self.0.write().unwrap_or_else(PoisonError::into_inner);
            versions.drain(..needed.saturating_sub(1)).collect()
        };
        // Behind the lock: they may be large.
        drop(forgotten);
    }

    pub(super) fn seen(
        &self,
        database: DatabaseOid,
        snapshot: Csn,
    ) -> Result<Option<Arc<Catalog>>> {
        let versions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let above = versions.partition_point(|version| version.from <= snapshot);
        let Some(version) = versions.get(above.saturating_sub(1)) else {
            return Ok(None);
        };
        let catalogs = version.catalogs.as_ref().map_err(SqlError::clone)?;
        let at = catalogs.binary_search_by_key(&database, |catalog| catalog.database);
        Ok(at.ok().and_then(|at| catalogs.get(at)).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogs(csn: u64) -> Vec<Arc<Catalog>> {
        let mut catalog = Catalog::bare(DatabaseOid::new(5), "postgres");
        catalog.csn = Csn(csn);
        vec![Arc::new(catalog)]
    }

    /// Each snapshot finds the newest catalog that it sees, and none in the place of one that could not be made.
    #[test]
    fn a_snapshot_has_its_own_catalog() {
        let published = CatalogVersions::default();
        for from in [10, 20, 30] {
            published.put(CatalogVersion {
                from: Csn(from),
                catalogs: Ok(catalogs(from - 1)),
            });
        }
        published.put(CatalogVersion {
            from: Csn(40),
            catalogs: Err(SqlError::internal("damaged")),
        });
        let seen = |snapshot: u64| {
            let seen = published.seen(DatabaseOid::new(5), Csn(snapshot));
            seen.map(|catalog| catalog.map(|catalog| catalog.csn.get()))
        };
        for (snapshot, csn) in [(10, 9), (19, 9), (20, 19), (29, 19), (30, 29), (39, 29)] {
            assert_eq!(seen(snapshot), Ok(Some(csn)), "at {snapshot}");
        }
        assert!(seen(40).is_err() && seen(99).is_err());
        assert!(
            published
                .seen(DatabaseOid::new(6), Csn(10))
                .is_ok_and(|none| none.is_none())
        );
        // What the oldest snapshot needs stays.
        published.forget_before(Csn(29));
        assert_eq!(seen(29), Ok(Some(19)));
        assert_eq!(published.0.read().unwrap().len(), 3);
        published.forget_before(Csn(30));
        assert_eq!(seen(30), Ok(Some(29)));
        assert_eq!(published.0.read().unwrap().len(), 2);
        published.forget_before(Csn(1000));
        assert!(seen(1000).is_err());
    }
}
