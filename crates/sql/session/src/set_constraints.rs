//! SET CONSTRAINTS: what is checked when, for the rest of the transaction. The state is the queue's
//! (`exec::after_triggers`), the checks are `exec::constraints`'.

use super::client::Client;
use super::{Reply, Session};
use crate::open_transaction::BlockState;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_ddl::pg_catalog::calls;
use logstead_sql_parse::ast::{ConstraintsSetStmt, RangeVar};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use std::rc::Rc;

impl Session {
    /// SET CONSTRAINTS. What becomes immediate is checked at once; if it does not hold, nothing is changed but the
    /// transaction, which has failed.
    pub(super) async fn set_constraints(
        &mut self,
        set: &ConstraintsSetStmt,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        if self.block == BlockState::None {
            self.warn(
                client,
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
        }
        self.transaction()?;
        let catalog = self.catalog()?;
        let path = self.context.path_in(&catalog);
        let context = Rc::clone(&self.context);
        let lookup = context.lookup(&catalog, &path);
        let mut named = Vec::new();
        for name in &set.constraints {
            constraints_named(name, lookup, set.deferred, &mut named)?;
        }
        self.settle_suspended().await?;
        let altered = self.has_altered();
        let open = self.transaction()?;
        let before = open.events.modes.clone();
        match set.constraints.is_empty() {
            true => open.events.modes.set_all(set.deferred),
            false => named
                .iter()
                .for_each(|oid| open.events.modes.set(*oid, set.deferred)),
        }
        let judged = if set.deferred || !open.events.has_deferred() {
            Ok(())
        } else {
            self.check_deferred_constraints(&catalog, false, altered, client)
                .await
        };
        if judged.is_err()
            && let Some(open) = &mut self.open
        {
            open.events.modes = before;
        }
        judged?;
        Ok(Reply::tag("SET CONSTRAINTS"))
    }
}

/// OIDs of the deferrable constraints of a name. A schema later in the path is not looked at once one has the name.
fn constraints_named(
    name: &RangeVar,
    lookup: NameLookup<'_>,
    deferred: bool,
    found: &mut Vec<Oid>,
) -> Result<()> {
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    let (catalog, path) = (lookup.catalog, lookup.search_path);
    if let Some(schema) = &schema
        && catalog.schema(schema).is_none()
    {
        return Err(SqlError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        ));
    }
    // Temporary objects are found first, unless the path says otherwise.
    let mut searched = Vec::new();
    let schemas = match (&schema, &catalog.temp) {
        (Some(schema), _) => std::slice::from_ref(schema),
        (None, Some(temp)) => {
            let known =
                |s: &&String| **s == temp.name || **s == logstead_sql_catalog::TEMPORARY_ALIAS;
            if !path.iter().any(|s| known(&s)) {
                searched.push(temp.name.clone());
            }
            searched.extend(path.iter().map(|s| match known(&s) {
                true => temp.name.clone(),
                false => s.clone(),
            }));
            &searched
        }
        (None, None) => path,
    };
    let mut known = false;
    for schema in schemas {
        let here = |r: &Relation| r.schema_name == *schema;
        let tables = catalog.relations.values().filter(|r| here(r));
        let constraints = tables.flat_map(|r| &r.constraints);
        let constraints = constraints.map(|c| (&c.name, c.oid, c.timing));
        let triggers = catalog.triggers.all().into_iter();
        let triggers =
            triggers.filter(|t| catalog.relations.get(&t.table).is_some_and(|r| here(r)));
        let triggers = triggers.filter_map(|t| t.constraint.as_ref());
        let triggers = triggers.map(|c| (&c.name, c.oid, c.timing));
        for (name, oid, timing) in constraints.chain(triggers) {
            if *name != plain {
                continue;
            }
            known = true;
            if timing.is_deferrable() {
                found.push(oid);
            } else if deferred {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("constraint \"{plain}\" is not deferrable"),
                ));
            }
        }
        if known {
            return Ok(());
        }
    }
    Err(SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{plain}\" does not exist"),
    ))
}
