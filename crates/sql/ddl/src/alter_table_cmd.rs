//! What messages call the actions of ALTER TABLE, and that a kind of relation does not have one.
//!
//! Does not: run them (`alter_table`, `alter_column`, `alter_view`).

use logstead_sql_parse::ast::{AlterTableCmd as Cmd, FiringMode, TriggerTarget};
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

/// What messages call an action (`alter_table_type_to_string`).
pub(super) fn action_text(cmd: &Cmd) -> &'static str {
    let of_mode = |mode: FiringMode, words: [&'static str; 4]| match mode {
        FiringMode::Origin => words[0],
        FiringMode::Always => words[1],
        FiringMode::Replica => words[2],
        FiringMode::Disabled => words[3],
    };
    match cmd {
        Cmd::AddColumn { .. } | Cmd::AddAttribute { .. } => "ADD COLUMN",
        Cmd::ColumnDefault { .. } => "ALTER COLUMN ... SET DEFAULT",
        Cmd::DropNotNull(_) => "ALTER COLUMN ... DROP NOT NULL",
        Cmd::SetNotNull(_) => "ALTER COLUMN ... SET NOT NULL",
        Cmd::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        Cmd::SetStatistics { .. } => "ALTER COLUMN ... SET STATISTICS",
        Cmd::SetOptions { .. } | Cmd::SetIdentity { .. } => "ALTER COLUMN ... SET",
        Cmd::ResetOptions { .. } => "ALTER COLUMN ... RESET",
        Cmd::SetStorage { .. } => "ALTER COLUMN ... SET STORAGE",
        Cmd::SetCompression { .. } => "ALTER COLUMN ... SET COMPRESSION",
        Cmd::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        Cmd::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        Cmd::DropColumn { .. } => "DROP COLUMN",
        Cmd::AlterColumnType(_) => "ALTER COLUMN ... SET DATA TYPE",
        Cmd::AlterColumnGenericOptions { .. } => "ALTER COLUMN ... OPTIONS",
        Cmd::AddConstraint(_) => "ADD CONSTRAINT",
        Cmd::AlterConstraint { .. } => "ALTER CONSTRAINT",
        Cmd::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        Cmd::DropConstraint { .. } => "DROP CONSTRAINT",
        Cmd::DropOids => "SET WITHOUT OIDS",
        Cmd::ClusterOn(_) => "CLUSTER ON",
        Cmd::DropCluster => "SET WITHOUT CLUSTER",
        Cmd::SetLogged => "SET LOGGED",
        Cmd::SetUnlogged => "SET UNLOGGED",
        Cmd::Trigger { target, mode } => match target {
            TriggerTarget::Named(_) => of_mode(
                *mode,
                [
                    "ENABLE TRIGGER",
                    "ENABLE ALWAYS TRIGGER",
                    "ENABLE REPLICA TRIGGER",
                    "DISABLE TRIGGER",
                ],
            ),
            TriggerTarget::All if *mode == FiringMode::Disabled => "DISABLE TRIGGER ALL",
            TriggerTarget::All => "ENABLE TRIGGER ALL",
            TriggerTarget::User if *mode == FiringMode::Disabled => "DISABLE TRIGGER USER",
            TriggerTarget::User => "ENABLE TRIGGER USER",
        },
        Cmd::Rule { mode, .. } => of_mode(
            *mode,
            [
                "ENABLE RULE",
                "ENABLE ALWAYS RULE",
                "ENABLE REPLICA RULE",
                "DISABLE RULE",
            ],
        ),
        Cmd::AddInherit(_) => "INHERIT",
        Cmd::DropInherit(_) => "NO INHERIT",
        Cmd::AddOf(_) => "OF",
        Cmd::DropOf => "NOT OF",
        Cmd::ChangeOwner(_) => "OWNER TO",
        Cmd::SetAccessMethod(_) => "SET ACCESS METHOD",
        Cmd::SetTableSpace(_) => "SET TABLESPACE",
        Cmd::SetRelOptions(_) => "SET",
        Cmd::ResetRelOptions(_) => "RESET",
        Cmd::ReplicaIdentity(_) => "REPLICA IDENTITY",
        Cmd::EnableRowSecurity => "ENABLE ROW SECURITY",
        Cmd::DisableRowSecurity => "DISABLE ROW SECURITY",
        Cmd::ForceRowSecurity => "FORCE ROW SECURITY",
        Cmd::NoForceRowSecurity => "NO FORCE ROW SECURITY",
        Cmd::GenericOptions(_) => "OPTIONS",
        Cmd::AttachPartition { .. } => "ATTACH PARTITION",
        Cmd::DetachPartition { .. } => "DETACH PARTITION",
        Cmd::DetachPartitionFinalize(_) => "DETACH PARTITION ... FINALIZE",
    }
}

/// 42809 for what only other kinds of relations do (`ATSimplePermissions`).
pub(super) fn not_for(name: &str, plural: &str, cmd: &Cmd) -> SqlError {
    let message = format!(
        "ALTER action {} cannot be performed on relation \"{name}\"",
        action_text(cmd)
    );
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail(format!("This operation is not supported for {plural}."))
}
