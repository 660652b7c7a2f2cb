//! ALTER TABLE and its like.

use super::role::role_name;
use super::table::{mark, refused};
use super::table_constraint::{characteristics, generated_as};
use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    AlterColumnType, AlterTableCmd as Cmd, AlterTableStmt, CollationName, ColumnTarget, DefElem,
    DropBehavior, Expr, FiringMode, Location, Name, RelationKind, ReplicaIdentity, RoleSpec,
    RoleSpecKind, TriggerTarget,
};
use crate::conflict_target::EXPRESSION_MARK;
use crate::constraints::AlterConstraint;
use crate::generated::{FORMS, GeneratedChange, STATISTICS};
use crate::grants::{OwnedKind, RightsCommand};
use crate::kind::{IndexAction, IndexCommand};
use crate::views::{AlterView, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast as library;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{AlterColumnOperation as ColumnOp, AlterTableOperation as Op};

/// What an action becomes.
enum Action {
    Operation(Box<Op>),
    /// It is not supported, and the statement with it.
    Unsupported(&'static str),
}

fn drop_behavior(behavior: DropBehavior) -> Option<library::DropBehavior> {
    match behavior {
        DropBehavior::Restrict => None,
        DropBehavior::Cascade => Some(library::DropBehavior::Cascade),
    }
}

/// What travels as a default that nobody can write.
fn as_default(said: &str) -> ColumnOp {
    ColumnOp::SetDefault {
        value: library::Expr::Identifier(mark(format!("{EXPRESSION_MARK}{said}"))),
    }
}

fn generated_change(change: GeneratedChange) -> Result<ColumnOp> {
    let form = FORMS.iter().find(|(.., known)| *known == change);
    match form {
        Some((_, said, _)) => Ok(as_default(said)),
        None => Err(SqlError::internal("a change of a column without a mark")),
    }
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
        if let [Cmd::ChangeOwner(role)] = alter.cmds.as_slice()
            && let Some(owner) = self.owner(alter, role)
        {
            return Ok(owner);
        }
        match alter.objtype {
            RelationKind::Table => self.alter_table(alter),
            RelationKind::Index => self.alter_index(alter),
            RelationKind::Sequence => Ok(refused(match alter.cmds.as_slice() {
                [Cmd::SetLogged | Cmd::SetUnlogged] => "ALTER SEQUENCE SET LOGGED",
                _ => this_form(RelationKind::Sequence),
            })),
            RelationKind::View => self.alter_view(alter, false),
            RelationKind::MaterializedView => self.alter_view(alter, true),
            RelationKind::ForeignTable => Ok(refused("a foreign table or server")),
            RelationKind::Type => Ok(Lowered::command(self.alter_attributes(alter)?)),
        }
    }

    /// OWNER TO alone.
    fn owner(&self, alter: &AlterTableStmt, role: &RoleSpec) -> Option<Lowered> {
        let kind = match alter.objtype {
            RelationKind::Table => OwnedKind::Table,
            RelationKind::Index => OwnedKind::Index,
            RelationKind::Sequence => OwnedKind::Sequence,
            RelationKind::View => OwnedKind::View,
            RelationKind::MaterializedView => OwnedKind::MaterializedView,
            RelationKind::Type => OwnedKind::Type,
            RelationKind::ForeignTable => return None,
        };
        let command = RightsCommand::Owner {
            kind,
            if_exists: alter.missing_ok,
            name: self.relation_name(&alter.relation),
            owner: role_name(role),
        };
        let kind = StatementKind::Rights(Box::new(command));
        Some(Lowered::command(kind))
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
            only: !alter.relation.inh,
            operations,
            location: None,
            on_cluster: None,
            table_type: None,
            end_token: AttachedToken::empty(),
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
                column_keyword: false,
                if_not_exists: *missing_ok,
                column_def: self.column_def(def)?,
                column_position: None,
            },
            Cmd::DropColumn {
                name,
                missing_ok,
                behavior,
            } => Op::DropColumn {
                has_column_keyword: false,
                column_names: vec![ident(name)],
                if_exists: *missing_ok,
                drop_behavior: drop_behavior(*behavior),
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
                drop_behavior: drop_behavior(*behavior),
            },
            // No table has OIDs: it says what is.
            Cmd::DropOids => Op::SetOptionsParens {
                options: vec![library::SqlOption::KeyValue {
                    key: library::Ident::new("oids"),
                    value: library::Expr::value(library::Value::Boolean(false)),
                }],
            },
            Cmd::SetLogged => Op::SetLogged,
            Cmd::SetUnlogged => Op::SetUnlogged,
            Cmd::Trigger { target, mode } => self.trigger_action(target, *mode),
            Cmd::Rule { name, mode } => {
                let name = ident(name);
                match mode {
                    FiringMode::Origin => Op::EnableRule { name },
                    FiringMode::Always => Op::EnableAlwaysRule { name },
                    FiringMode::Replica => Op::EnableReplicaRule { name },
                    FiringMode::Disabled => Op::DisableRule { name },
                }
            }
            Cmd::ChangeOwner(role) => Op::OwnerTo {
                new_owner: self.new_owner(role),
            },
            Cmd::SetRelOptions(options) => Op::SetOptionsParens {
                options: self.storage_options(options)?,
            },
            Cmd::ResetRelOptions(options) => Op::SetOptionsParens {
                options: self.reset_options(options)?,
            },
            Cmd::ReplicaIdentity(identity) => Op::ReplicaIdentity {
                identity: match identity {
                    ReplicaIdentity::Nothing => library::ReplicaIdentity::Nothing,
                    ReplicaIdentity::Full => library::ReplicaIdentity::Full,
                    ReplicaIdentity::Default => library::ReplicaIdentity::Default,
                    ReplicaIdentity::Index(name) => library::ReplicaIdentity::Index(ident(name)),
                },
            },
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
                (name, generated_change(change)?)
            }
            Cmd::DropIdentity { name, missing_ok } => {
                let change = GeneratedChange::DropIdentity(*missing_ok);
                (name, generated_change(change)?)
            }
            Cmd::SetStatistics { column, target } => match column {
                ColumnTarget::Name(name) => (name, as_default(&format!("{STATISTICS}{target}"))),
                ColumnTarget::Number(_) => {
                    return Err(SqlError::unsupported_text(
                        "cannot refer to non-index column by number",
                    ));
                }
            },
            Cmd::SetStorage { name, storage } => {
                let change = GeneratedChange::Storage(storage_code(storage)?);
                (name, generated_change(change)?)
            }
            Cmd::SetCompression { name, method } => {
                let change = GeneratedChange::Compression(compression_code(method)?);
                (name, generated_change(change)?)
            }
            Cmd::AddIdentity {
                name,
                by_default,
                options,
                ..
            } => {
                let options = match options.as_slice() {
                    [] => None,
                    options => Some(self.identity_options(options)?),
                };
                let op = ColumnOp::AddGenerated {
                    generated_as: Some(generated_as(*by_default)),
                    sequence_options: options,
                };
                (name, op)
            }
            Cmd::SetIdentity { name, options } => {
                let value = self.identity_change(options)?;
                (name, ColumnOp::SetDefault { value })
            }
            Cmd::AlterColumnType(alter) => (&alter.name, self.set_data_type(alter)?),
            _ => return Ok(None),
        }))
    }

    /// ALTER COLUMN ... TYPE: a collation travels as that of USING.
    fn set_data_type(&self, alter: &AlterColumnType) -> Result<ColumnOp> {
        let using = |expr: &Expr| self.expr(expr);
        let using = match (&alter.coll_clause, &alter.raw_default) {
            (None, None) => None,
            (None, Some(expr)) => Some(using(expr)?),
            (Some(collation), said) => {
                let expr = match said {
                    Some(expr) => library::Expr::Nested(Box::new(using(expr)?)),
                    None => library::Expr::Identifier(mark(EXPRESSION_MARK)),
                };
                Some(library::Expr::Collate {
                    expr: Box::new(expr),
                    collation: collation_mark(collation),
                })
            }
        };
        Ok(ColumnOp::SetDataType {
            data_type: self.data_type(&alter.type_name)?,
            using,
            had_set: false,
        })
    }

    fn trigger_action(&self, target: &TriggerTarget, mode: FiringMode) -> Op {
        let name = match target {
            TriggerTarget::Named(name) => self.ident(name, Location::UNKNOWN),
            // Words, where a name is written so in quotes alone.
            TriggerTarget::All => library::Ident::new("all"),
            TriggerTarget::User => library::Ident::new("user"),
        };
        match mode {
            FiringMode::Origin => Op::EnableTrigger { name },
            FiringMode::Always => Op::EnableAlwaysTrigger { name },
            FiringMode::Replica => Op::EnableReplicaTrigger { name },
            FiringMode::Disabled => Op::DisableTrigger { name },
        }
    }

    fn new_owner(&self, role: &RoleSpec) -> library::Owner {
        match &role.kind {
            RoleSpecKind::Named(name) => library::Owner::Ident(self.ident(name, role.location)),
            RoleSpecKind::CurrentRole => library::Owner::CurrentRole,
            RoleSpecKind::CurrentUser => library::Owner::CurrentUser,
            RoleSpecKind::SessionUser => library::Owner::SessionUser,
            RoleSpecKind::Public => library::Owner::Ident(library::Ident::new("public")),
        }
    }

    /// RESET travels as a SET to a value that nobody can write.
    fn reset_options(&self, options: &[DefElem]) -> Result<Vec<library::SqlOption>> {
        refuse_values(options)?;
        let reset = |option| library::SqlOption::KeyValue {
            key: self.option_key(option),
            value: library::Expr::Identifier(mark(EXPRESSION_MARK)),
        };
        Ok(options.iter().map(reset).collect())
    }

    fn alter_index(&self, alter: &AlterTableStmt) -> Result<Lowered> {
        let if_exists = alter.missing_ok;
        let name = self.relation_name(&alter.relation);
        let act = |action| IndexCommand::Alter {
            if_exists,
            name: name.clone(),
            action,
        };
        let command = match alter.cmds.as_slice() {
            [
                Cmd::SetStatistics {
                    column: ColumnTarget::Number(column),
                    target,
                },
            ] => act(IndexAction::Statistics {
                column: usize::try_from(*column).unwrap_or(usize::MAX),
                target: *target,
            }),
            [Cmd::SetTableSpace(name)] => act(IndexAction::Tablespace(name.to_string())),
            [Cmd::AttachPartition { .. }] => act(IndexAction::AttachPartition),
            [Cmd::SetRelOptions(options)] => IndexCommand::Set {
                if_exists,
                options: self.storage_options(options)?,
                name,
            },
            [Cmd::ResetRelOptions(options)] => {
                refuse_values(options)?;
                let key = |option| self.option_key(option).value;
                IndexCommand::Reset {
                    if_exists,
                    options: options.iter().map(key).collect(),
                    name,
                }
            }
            _ => return Ok(refused(this_form(RelationKind::Index))),
        };
        Ok(Lowered::command(StatementKind::Index(Box::new(command))))
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

/// A collation by the last part of its name, as [`type_collation`](crate::type_collation) finds it.
fn collation_mark(collation: &CollationName) -> library::ObjectName {
    let name = collation
        .name
        .last()
        .map(|name| &**name)
        .unwrap_or_default();
    library::ObjectName::from(vec![mark(format!("{EXPRESSION_MARK}{name}"))])
}

/// 42601 for a value in RESET (`transformRelOptions`).
fn refuse_values(options: &[DefElem]) -> Result<()> {
    match options.iter().any(|option| option.arg.is_some()) {
        true => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "RESET must not include values for parameters",
        )),
        false => Ok(()),
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
