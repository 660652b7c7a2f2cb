//! Which part of this module lowers a statement, and which statements are read as the grammar gives them.

use super::{Lower, Lowered};
use crate::AsOf;
use crate::ast::{
    AlterTableCmd, AlterTableStmt, CopySource, ObjectType, RelationKind, RenameStmt, Stmt,
};
use logstead_sql_types::error::Result;

/// Does the statement name a relation anew that is altered in the lowered tree?
fn renames_relation(stmt: &RenameStmt) -> bool {
    let is_relation = |kind| {
        matches!(
            kind,
            ObjectType::Table | ObjectType::View | ObjectType::MatView
        )
    };
    match stmt.rename_type {
        ObjectType::Column => stmt.relation_type.is_none_or(is_relation),
        ObjectType::TabConstraint => true,
        kind => is_relation(kind),
    }
}

/// Is ALTER of a relation read as the grammar gives it?
fn is_owner_index_or_attributes(stmt: &AlterTableStmt) -> bool {
    match stmt.cmds.as_slice() {
        _ if matches!(stmt.objtype, RelationKind::Type | RelationKind::Index) => true,
        [AlterTableCmd::ChangeOwner(_)] => stmt.objtype != RelationKind::ForeignTable,
        _ => false,
    }
}

impl Lower<'_> {
    /// Lowers a statement.
    pub(crate) fn statement(&self, stmt: &Stmt) -> Result<Lowered> {
        match stmt {
            Stmt::Select(_)
            | Stmt::Insert(_)
            | Stmt::Update(_)
            | Stmt::Delete(_)
            | Stmt::Merge(_)
            | Stmt::Return(_) => self.query_statement(stmt),
            Stmt::Execute(_) | Stmt::Explain(_) => self.utility(stmt),
            Stmt::AlterTable(alter) if !is_owner_index_or_attributes(alter) => {
                self.alter_table_stmt(alter)
            }
            Stmt::Rename(rename) if renames_relation(rename) => self.rename(rename),
            Stmt::AlterObjectSchema(alter)
                if matches!(
                    alter.object_type,
                    ObjectType::Table | ObjectType::View | ObjectType::MatView
                ) =>
            {
                self.set_schema(alter)
            }
            Stmt::Create(_)
            | Stmt::CreateTableAs(_)
            | Stmt::RefreshMatView(_)
            | Stmt::View(_)
            | Stmt::Index(_)
            | Stmt::AlterTableMoveAll(_)
            | Stmt::CreateStats(_)
            | Stmt::AlterStats(_)
            | Stmt::CreateSchema(_) => self.of_table(stmt),
            // Who runs it reads the grammar's own tree.
            _ => Ok(Lowered {
                as_of: self.as_of_utility(stmt),
                ..Lowered::utility(stmt)
            }),
        }
    }

    /// What a statement is as of that has a query.
    fn as_of_utility(&self, stmt: &Stmt) -> Option<AsOf> {
        match stmt {
            Stmt::Prepare(prepare) => self.as_of_stmt(&prepare.query),
            Stmt::Copy(copy) => match &copy.source {
                CopySource::Query(query) => self.as_of_stmt(query),
                CopySource::Relation { .. } => None,
            },
            _ => None,
        }
    }
}
