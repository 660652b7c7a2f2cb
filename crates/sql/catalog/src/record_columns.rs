//! The columns of functions that give records.

use super::{Catalog, RelationKind};
use logstead_sql_func as func;
use logstead_sql_types::value::SqlType;
use std::sync::Arc;

impl Catalog {
    /// The columns of a call of a function with arguments of these types; empty for functions of one result column.
    pub fn record_columns(
        &self,
        function: &func::Function,
        args: &[SqlType],
    ) -> Vec<(Arc<str>, SqlType)> {
        let own = func::record_columns(function, args, &self.types);
        let func::FunctionImpl::CatalogSet(func::CatalogSet::Relation(rows)) = function.body else {
            return own;
        };
        let columns = match self
            .relation(Some("pg_catalog"), rows.relation, &[])
            .map(|r| &r.kind)
        {
            Some(RelationKind::Virtual(table)) => table.columns,
            _ => &[],
        };
        let kept = columns
            .iter()
            .filter(|(name, _)| !rows.without.contains(name));
        kept.map(|(name, ty)| (Arc::from(*name), SqlType::of(*ty)))
            .collect()
    }
}
