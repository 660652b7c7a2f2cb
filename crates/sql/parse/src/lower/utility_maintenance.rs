//! VACUUM, ANALYZE, CLUSTER, REINDEX.

use super::{Lower, Lowered};
use crate::ast::{ClusterStmt, DefArg, DefElem, Location, ReindexStmt, ReindexTarget, VacuumStmt};
use crate::{IndexCommand, Maintain, StatementKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::names::parse_bool;
use logstead_types::SqlState;

/// The truth value of an option; 42601 if it has another one.
fn truth(option: &DefElem) -> Result<bool> {
    let value = match &option.arg {
        None => return Ok(true),
        Some(DefArg::Integer(number)) => parse_bool(&number.to_string()),
        Some(DefArg::Float(word) | DefArg::String(word)) => parse_bool(&word.to_lowercase()),
        Some(_) => None,
    };
    value.ok_or_else(|| {
        let message = format!("{} requires a Boolean value", option.name);
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    })
}

impl Lower<'_> {
    /// Lowers VACUUM and ANALYZE.
    pub(super) fn vacuum(&self, stmt: &VacuumStmt) -> Result<Lowered> {
        let vacuum = stmt.is_vacuumcmd;
        let targets = stmt.rels.iter().map(|target| {
            let columns = target.va_cols.iter().map(ToString::to_string).collect();
            (self.relation_name(&target.relation), columns)
        });
        let mut maintain = Maintain {
            vacuum,
            analyze: !vacuum,
            targets: targets.collect(),
        };
        let (mut full, mut toast) = (false, true);
        for option in &stmt.options {
            let is_known = match &*option.name {
                "verbose" | "skip_locked" => true,
                "analyze"
                | "full"
                | "freeze"
                | "disable_page_skipping"
                | "process_toast"
                | "truncate" => vacuum,
                // These have values of their own.
                "index_cleanup" | "parallel" if vacuum => continue,
                _ => false,
            };
            if !is_known {
                let (tag, name) = (maintain.tag(), &option.name);
                let message = format!("unrecognized {tag} option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let on = truth(option)?;
            match &*option.name {
                "analyze" => maintain.analyze = on,
                "full" => full = on,
                "process_toast" => toast = on,
                _ => {}
            }
        }
        let wrong = |message| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        if full && !toast {
            return wrong("PROCESS_TOAST required with VACUUM FULL");
        }
        if !maintain.analyze && maintain.targets.iter().any(|(_, names)| !names.is_empty()) {
            return wrong("ANALYZE option must be specified when a column list is provided");
        }
        let kind = StatementKind::Maintain(Box::new(maintain));
        Ok(Lowered::command(kind))
    }

    /// Lowers CLUSTER.
    pub(super) fn cluster(&self, stmt: &ClusterStmt) -> Lowered {
        let Some(relation) = &stmt.relation else {
            return Lowered::command(StatementKind::Maintenance("CLUSTER"));
        };
        let index = stmt.indexname.as_ref();
        let command = IndexCommand::Cluster {
            table: self.relation_name(relation),
            index: index.map(|name| self.ident(name, Location::UNKNOWN)),
        };
        Lowered::command(StatementKind::Index(Box::new(command)))
    }

    /// Lowers REINDEX.
    pub(super) fn reindex(&self, stmt: &ReindexStmt) -> Result<Lowered> {
        let mut concurrently = false;
        for option in stmt.params.iter().filter(|p| &*p.name == "concurrently") {
            concurrently = truth(option)?;
        }
        let all = |schema, name: &crate::ast::Name| IndexCommand::ReindexAll {
            schema,
            name: name.to_string(),
        };
        let command = match &stmt.target {
            ReindexTarget::Index(name) | ReindexTarget::Table(name) => IndexCommand::Reindex {
                table: matches!(stmt.target, ReindexTarget::Table(_)),
                name: self.relation_name(name),
                concurrently,
            },
            ReindexTarget::System(_) if concurrently => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot reindex system catalogs concurrently",
                ));
            }
            ReindexTarget::Schema(name) => all(true, name),
            ReindexTarget::System(name) | ReindexTarget::Database(name) => all(false, name),
        };
        Ok(Lowered::command(StatementKind::Index(Box::new(command))))
    }
}
