//! ALTER TABLE and its like.

use super::table::refused;
use super::table_constraint::{characteristics, generated_as};
use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    AlterColumnType, AlterTableCmd as Cmd, AlterTableStmt, ColumnTarget, DefArg, DefElem,
    DefElemAction, DropBehavior, Location, Name, RelationKind,
};
use crate::constraints::AlterConstraint;
use crate::generated::GeneratedChange;
use crate::lowered as library;
use crate::lowered::{AlterColumnOperation as ColumnOp, AlterTableOperation as Op};
use crate::views::{AlterView, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What an action becomes.
enum Action {
    Operation(Box<Op>),
    /// It is not supported, and the statement with it.
    Unsupported(&'static str),
}

/// The code of SET STORAGE (`ATExecSetStorage`).
fn storage_code(name: &str) -> Result<char> {
    match name.to_ascii_lowercase().as_str() {
        "plain" => Ok('p'),
        "external" => Ok('e'),
        "extended" => Ok('x'),
        "main" => Ok('m'),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid storage type \"{name}\""),
        )),
    }
}

/// The code of SET COMPRESSION (`GetAttributeCompression`).
fn compression_code(name: &str) -> Result<Option<char>> {
    match name {
        "pglz" => Ok(Some('p')),
        "lz4" => Ok(Some('l')),
        "default" => Ok(None),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid compression method \"{name}\""),
        )),
    }
}

/// Whose form of ALTER is not known.
fn this_form(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Index => "this form of ALTER INDEX",
        RelationKind::Sequence => "this form of ALTER SEQUENCE",
        RelationKind::MaterializedView => "this form of ALTER MATERIALIZED VIEW",
        RelationKind::View => "this form of ALTER VIEW",
        RelationKind::Type => "this form of ALTER TYPE",
        RelationKind::Table | RelationKind::ForeignTable => "this form of ALTER TABLE",
    }
}

impl Lower<'_> {
    pub(super) fn alter_table_stmt(&self, alter: &AlterTableStmt) -> Result<Lowered> {
        match alter.objtype {
            RelationKind::Table => self.alter_table(alter),
            RelationKind::Sequence => Ok(refused(match alter.cmds.as_slice() {
                [Cmd::SetLogged | Cmd::SetUnlogged] => "ALTER SEQUENCE SET LOGGED",
                _ => this_form(RelationKind::Sequence),
            })),
            RelationKind::View => self.alter_view(alter, false),
            RelationKind::MaterializedView => self.alter_view(alter, true),
            RelationKind::ForeignTable => Ok(refused("a foreign table or server")),
            kind @ (RelationKind::Index | RelationKind::Type) => Ok(refused(this_form(kind))),
        }
    }

    fn alter_table(&self, alter: &AlterTableStmt) -> Result<Lowered> {
        if let Some(Cmd::AlterConstraint {
            name,
            deferrable,
            initdeferred,
            location,
        }) = alter.cmds.first()
        {
            if alter.cmds.len() > 1 {
                return Err(SqlError::unsupported(
                    "ALTER CONSTRAINT together with other changes of a table",
                ));
            }
            let said = characteristics(*deferrable, *initdeferred);
            let alter = AlterConstraint {
                if_exists: alter.missing_ok,
                table: self.relation_name(&alter.relation),
                constraint: self.ident(name, *location),
                characteristics: said.unwrap_or_default(),
            };
            let kind = StatementKind::AlterConstraint(Box::new(alter));
            return Ok(Lowered::command(kind));
        }
        Ok(match self.operations(alter)? {
            Ok(table) => super::table::ddl(library::Statement::AlterTable(table), "ALTER TABLE"),
            Err(what) => refused(what),
        })
    }

    /// The statement with all its actions, or by which name it is refused.
    fn operations(
        &self,
        alter: &AlterTableStmt,
    ) -> Result<std::result::Result<library::AlterTable, &'static str>> {
        let mut operations = Vec::with_capacity(alter.cmds.len());
        // One that is refused goes before what is wrong with another one.
        let refusal = alter.cmds.iter().find_map(refusal);
        if let Some(what) = refusal {
            return Ok(Err(what));
        }
        for cmd in &alter.cmds {
            match self.action(cmd)? {
                Action::Operation(operation) => operations.push(*operation),
                Action::Unsupported(what) => return Ok(Err(what)),
            }
        }
        Ok(Ok(library::AlterTable {
            name: self.relation_name(&alter.relation),
            if_exists: alter.missing_ok,
            operations,
        }))
    }

    fn action(&self, cmd: &Cmd) -> Result<Action> {
        let ident = |name: &Name| self.ident(name, Location::UNKNOWN);
        if let Some((name, op)) = self.column_action(cmd)? {
            let column_name = ident(name);
            let operation = Op::AlterColumn { column_name, op };
            return Ok(Action::Operation(Box::new(operation)));
        }
        Ok(Action::Operation(Box::new(match cmd {
            Cmd::AddColumn { def, missing_ok } => Op::AddColumn {
                if_not_exists: *missing_ok,
                column_def: self.column_def(def)?,
            },
            Cmd::DropColumn {
                name,
                missing_ok,
                behavior,
            } => Op::DropColumn {
                column_name: ident(name),
                if_exists: *missing_ok,
                cascade: *behavior == DropBehavior::Cascade,
            },
            Cmd::AddConstraint(constraint) => Op::AddConstraint {
                constraint: self.table_constraint(constraint)?,
                not_valid: constraint.skip_validation,
            },
            Cmd::ValidateConstraint(name) => Op::ValidateConstraint { name: ident(name) },
            Cmd::DropConstraint {
                name,
                missing_ok,
                behavior,
            } => Op::DropConstraint {
                if_exists: *missing_ok,
                name: ident(name),
                cascade: *behavior == DropBehavior::Cascade,
            },
            // No table has OIDs: it says what is.
            Cmd::DropOids => Op::SetOptions(vec![without_oids()], false),
            Cmd::SetLogged => Op::SetLogged,
            Cmd::SetUnlogged => Op::SetUnlogged,
            Cmd::Trigger { target, mode } => Op::Trigger(target.clone(), *mode),
            Cmd::Rule { name, mode } => Op::Rule(ident(name), *mode),
            Cmd::ChangeOwner(role) => Op::OwnerTo(role.clone()),
            Cmd::SetRelOptions(options) => Op::SetOptions(options.clone(), false),
            Cmd::ResetRelOptions(options) => Op::SetOptions(options.clone(), true),
            Cmd::ReplicaIdentity(identity) => Op::ReplicaIdentity(identity.clone()),
            Cmd::EnableRowSecurity => Op::EnableRowLevelSecurity,
            Cmd::DisableRowSecurity => Op::DisableRowLevelSecurity,
            Cmd::ForceRowSecurity => Op::ForceRowLevelSecurity,
            Cmd::NoForceRowSecurity => Op::NoForceRowLevelSecurity,
            Cmd::AlterConstraint { .. } => {
                let what = "ALTER CONSTRAINT together with other changes of a table";
                return Ok(Action::Unsupported(what));
            }
            _ => return Ok(Action::Unsupported(this_form(RelationKind::Table))),
        })))
    }

    /// What is done to a column that is there.
    fn column_action<'c>(&self, cmd: &'c Cmd) -> Result<Option<(&'c Name, ColumnOp)>> {
        Ok(Some(match cmd {
            Cmd::ColumnDefault { name, default } => {
                let op = match default {
                    Some(expr) => ColumnOp::SetDefault {
                        value: self.expr(expr)?,
                    },
                    None => ColumnOp::DropDefault,
                };
                (name, op)
            }
            Cmd::DropNotNull(name) => (name, ColumnOp::DropNotNull),
            Cmd::SetNotNull(name) => (name, ColumnOp::SetNotNull),
            Cmd::DropExpression { name, missing_ok } => {
                let change = GeneratedChange::DropExpression(*missing_ok);
                (name, ColumnOp::Set(change))
            }
            Cmd::DropIdentity { name, missing_ok } => {
                let change = GeneratedChange::DropIdentity(*missing_ok);
                (name, ColumnOp::Set(change))
            }
            Cmd::SetStatistics { column, target } => match column {
                ColumnTarget::Name(name) => {
                    (name, ColumnOp::Set(GeneratedChange::Statistics(*target)))
                }
                ColumnTarget::Number(_) => {
                    return Err(SqlError::unsupported_text(
                        "cannot refer to non-index column by number",
                    ));
                }
            },
            Cmd::SetStorage { name, storage } => {
                let change = GeneratedChange::Storage(storage_code(storage)?);
                (name, ColumnOp::Set(change))
            }
            Cmd::SetCompression { name, method } => {
                let change = GeneratedChange::Compression(compression_code(method)?);
                (name, ColumnOp::Set(change))
            }
            Cmd::AddIdentity {
                name,
                by_default,
                options,
                ..
            } => {
                let op = ColumnOp::AddGenerated {
                    generated_as: generated_as(*by_default),
                    sequence_options: options.clone(),
                };
                (name, op)
            }
            Cmd::SetIdentity { name, options } => (name, ColumnOp::SetIdentity(options.clone())),
            Cmd::AlterColumnType(alter) => (&alter.name, self.set_data_type(alter)?),
            _ => return Ok(None),
        }))
    }

    /// ALTER COLUMN ... TYPE
    fn set_data_type(&self, alter: &AlterColumnType) -> Result<ColumnOp> {
        let collation = alter.coll_clause.as_ref();
        Ok(ColumnOp::SetDataType {
            data_type: self.data_type(&alter.type_name)?,
            collation: collation.and_then(|clause| Some(clause.name.last()?.to_string())),
            using: self.opt_expr(alter.raw_default.as_ref())?,
        })
    }

    fn alter_view(&self, alter: &AlterTableStmt, materialized: bool) -> Result<Lowered> {
        let Ok(table) = self.operations(alter)? else {
            return Err(SqlError::unsupported(this_form(alter.objtype)));
        };
        let command = ViewCommand::Alter(AlterView {
            materialized,
            alter: table,
        });
        Ok(Lowered::command(StatementKind::View(Box::new(command))))
    }
}

/// The storage parameter that WITHOUT OIDS stands for.
fn without_oids() -> DefElem {
    DefElem {
        namespace: None,
        name: "oids".into(),
        arg: Some(DefArg::Boolean(false)),
        action: DefElemAction::Unspecified,
        location: Location::UNKNOWN,
    }
}

/// The name by which an action is refused, and its statement with it.
fn refusal(cmd: &Cmd) -> Option<&'static str> {
    Some(match cmd {
        Cmd::ClusterOn(_) | Cmd::DropCluster => "ALTER TABLE CLUSTER ON",
        Cmd::AddInherit(_) | Cmd::DropInherit(_) => "INHERITS",
        Cmd::AddOf(_) | Cmd::DropOf => "CREATE TABLE OF a type",
        Cmd::AttachPartition { .. } => "ATTACH PARTITION",
        Cmd::DetachPartition { .. } | Cmd::DetachPartitionFinalize(_) => "DETACH PARTITION",
        Cmd::SetAccessMethod(_) => "an access method",
        Cmd::SetOptions { .. } | Cmd::ResetOptions { .. } => "ALTER COLUMN ... SET (options)",
        Cmd::SetTableSpace(_) => "ALTER TABLE SET TABLESPACE",
        Cmd::AlterColumnGenericOptions { .. } | Cmd::GenericOptions(_) => {
            "a foreign table or server"
        }
        _ => return None,
    })
}
