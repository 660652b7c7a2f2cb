//! Tables and what belongs to them.

use super::{DataType, Expr, Ident, ObjectName, OrderByExpr, Query};
use crate::ast::{
    DefElem, FiringMode, FkAction, IdentityOption, OnCommitAction, ReplicaIdentity, RoleSpec,
    TriggerTarget,
};
use crate::generated::GeneratedChange;

/// CREATE TABLE, and CREATE TABLE AS.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// Its name.
    pub name: ObjectName,
    /// TEMPORARY.
    pub temporary: bool,
    /// UNLOGGED.
    pub unlogged: bool,
    /// GLOBAL, which says nothing.
    pub global: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its columns and what stands among them.
    pub columns: Vec<TableElement>,
    /// Its constraints that are none of a column.
    pub constraints: Vec<TableConstraint>,
    /// INHERITS.
    pub inherits: Option<Vec<ObjectName>>,
    /// PARTITION OF.
    pub partition_of: Option<ObjectName>,
    /// PARTITION BY.
    pub partition_by: bool,
    /// WITH, TABLESPACE.
    pub table_options: CreateTableOptions,
    /// ON COMMIT.
    pub on_commit: OnCommitAction,
    /// AS.
    pub query: Option<Box<Query>>,
    /// WITH NO DATA.
    pub no_data: bool,
}

impl CreateTable {
    /// A table of which nothing but the name is said.
    pub fn of(name: ObjectName) -> CreateTable {
        CreateTable {
            name,
            temporary: false,
            unlogged: false,
            global: false,
            if_not_exists: false,
            columns: Vec::new(),
            constraints: Vec::new(),
            inherits: None,
            partition_of: None,
            partition_by: false,
            table_options: CreateTableOptions::None,
            on_commit: OnCommitAction::None,
            query: None,
            no_data: false,
        }
    }
}

/// What stands among the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    /// A column.
    Column(ColumnDef),
    /// LIKE: the source, and the bits of [`table_like`](crate::ast::table_like) that are included.
    Like(ObjectName, u32),
}

/// What is said of how a table is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum CreateTableOptions {
    /// Nothing.
    None,
    /// WITH.
    With(Vec<DefElem>),
    /// TABLESPACE.
    Tablespace(String),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// COMPRESSION.
    pub compression: Option<String>,
    /// COLLATE and its constraints.
    pub options: Vec<ColumnOptionDef>,
}

/// A constraint of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOptionDef {
    /// Its name.
    pub name: Option<Ident>,
    /// What it says.
    pub option: ColumnOption,
}

/// What is said of a column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ColumnOption {
    Null,
    NotNull,
    Default(Expr),
    Collation(ObjectName),
    /// GENERATED AS IDENTITY, with the options of its sequence.
    Identity(GeneratedAs, Vec<DefElem>),
    /// GENERATED ALWAYS AS ... STORED.
    Generated(Expr),
    Check(CheckConstraint),
    PrimaryKey(PrimaryKeyConstraint),
    Unique(UniqueConstraint),
    ForeignKey(ForeignKeyConstraint),
}

/// When an identity column gives its own value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum GeneratedAs {
    Always,
    ByDefault,
}

/// When a constraint is checked, as it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintCharacteristics {
    /// DEFERRABLE, or NOT.
    pub deferrable: Option<bool>,
    /// INITIALLY.
    pub initially: Option<DeferrableInitial>,
}

/// Whether a constraint is put off when a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DeferrableInitial {
    Immediate,
    Deferred,
}

/// A constraint of a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TableConstraint {
    Check(CheckConstraint),
    PrimaryKey(PrimaryKeyConstraint),
    Unique(UniqueConstraint),
    PrimaryKeyUsingIndex(ConstraintUsingIndex),
    UniqueUsingIndex(ConstraintUsingIndex),
    ForeignKey(ForeignKeyConstraint),
    /// EXCLUDE.
    Exclude,
}

/// CHECK.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckConstraint {
    /// Its name.
    pub name: Option<Ident>,
    /// The condition.
    pub expr: Box<Expr>,
    /// NO INHERIT.
    pub no_inherit: bool,
}

/// PRIMARY KEY.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimaryKeyConstraint {
    /// Its name.
    pub name: Option<Ident>,
    /// Its columns.
    pub columns: Vec<Ident>,
    /// INCLUDE.
    pub include: Vec<Ident>,
    /// When it is checked.
    pub characteristics: Option<ConstraintCharacteristics>,
}

/// UNIQUE.
#[derive(Clone, Debug, PartialEq)]
pub struct UniqueConstraint {
    /// Its name.
    pub name: Option<Ident>,
    /// Its columns.
    pub columns: Vec<Ident>,
    /// INCLUDE.
    pub include: Vec<Ident>,
    /// When it is checked.
    pub characteristics: Option<ConstraintCharacteristics>,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
}

/// A key of an index that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintUsingIndex {
    /// Its name.
    pub name: Option<Ident>,
    /// The index.
    pub index_name: Ident,
    /// When it is checked.
    pub characteristics: Option<ConstraintCharacteristics>,
}

/// FOREIGN KEY.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeyConstraint {
    /// Its name.
    pub name: Option<Ident>,
    /// Its columns.
    pub columns: Vec<Ident>,
    /// The table that it refers to.
    pub foreign_table: ObjectName,
    /// That one's columns.
    pub referred_columns: Vec<Ident>,
    /// ON DELETE.
    pub on_delete: FkAction,
    /// The columns that ON DELETE sets, if they are said.
    pub set_columns: Vec<Ident>,
    /// ON UPDATE.
    pub on_update: FkAction,
    /// MATCH FULL.
    pub full: bool,
    /// When it is checked.
    pub characteristics: Option<ConstraintCharacteristics>,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Its name.
    pub name: Option<ObjectName>,
    /// The table.
    pub table_name: ObjectName,
    /// USING.
    pub using: Option<Ident>,
    /// Its keys.
    pub columns: Vec<IndexColumn>,
    /// UNIQUE.
    pub unique: bool,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// INCLUDE.
    pub include: Vec<Ident>,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// WITH.
    pub with: Vec<DefElem>,
    /// WHERE.
    pub predicate: Option<Expr>,
}

/// A key of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumn {
    /// The key and how it sorts.
    pub column: OrderByExpr,
    /// Its operator class.
    pub operator_class: Option<ObjectName>,
}

/// ALTER TABLE, and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// IF EXISTS.
    pub if_exists: bool,
    /// What is done, in the order of the text.
    pub operations: Vec<AlterTableOperation>,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterTableOperation {
    AddColumn {
        if_not_exists: bool,
        column_def: ColumnDef,
    },
    DropColumn {
        column_name: Ident,
        if_exists: bool,
        cascade: bool,
    },
    AlterColumn {
        column_name: Ident,
        op: AlterColumnOperation,
    },
    AddConstraint {
        constraint: TableConstraint,
        not_valid: bool,
    },
    ValidateConstraint {
        name: Ident,
    },
    DropConstraint {
        if_exists: bool,
        name: Ident,
        cascade: bool,
    },
    RenameColumn {
        old_column_name: Ident,
        new_column_name: Ident,
    },
    RenameConstraint {
        old_name: Ident,
        new_name: Ident,
    },
    RenameTable(ObjectName),
    SetSchema(String),
    OwnerTo(RoleSpec),
    /// SET and RESET of storage parameters.
    /// SET, or RESET if it is the second.
    SetOptions(Vec<DefElem>, bool),
    SetLogged,
    SetUnlogged,
    Trigger(TriggerTarget, FiringMode),
    Rule(Ident, FiringMode),
    ReplicaIdentity(ReplicaIdentity),
    EnableRowLevelSecurity,
    DisableRowLevelSecurity,
    ForceRowLevelSecurity,
    NoForceRowLevelSecurity,
}

impl AlterTableOperation {
    /// The words that it begins with.
    pub fn words(&self) -> &'static str {
        use AlterTableOperation as Op;
        match self {
            Op::AddColumn { .. } => "ADD COLUMN",
            Op::DropColumn { .. } => "DROP COLUMN",
            Op::AlterColumn { .. } => "ALTER COLUMN",
            Op::AddConstraint { .. } => "ADD CONSTRAINT",
            Op::ValidateConstraint { .. } => "VALIDATE CONSTRAINT",
            Op::DropConstraint { .. } => "DROP CONSTRAINT",
            Op::RenameColumn { .. } => "RENAME COLUMN",
            Op::RenameConstraint { .. } => "RENAME CONSTRAINT",
            Op::RenameTable(_) => "RENAME TO",
            Op::SetSchema(_) => "SET SCHEMA",
            Op::OwnerTo(_) => "OWNER TO",
            Op::SetOptions(..) => "SET",
            Op::SetLogged => "SET LOGGED",
            Op::SetUnlogged => "SET UNLOGGED",
            Op::Trigger(_, mode) => match mode {
                FiringMode::Origin => "ENABLE TRIGGER",
                FiringMode::Always => "ENABLE ALWAYS TRIGGER",
                FiringMode::Replica => "ENABLE REPLICA TRIGGER",
                FiringMode::Disabled => "DISABLE TRIGGER",
            },
            Op::Rule(_, mode) => match mode {
                FiringMode::Origin => "ENABLE RULE",
                FiringMode::Always => "ENABLE ALWAYS RULE",
                FiringMode::Replica => "ENABLE REPLICA RULE",
                FiringMode::Disabled => "DISABLE RULE",
            },
            Op::ReplicaIdentity(_) => "REPLICA IDENTITY",
            Op::EnableRowLevelSecurity => "ENABLE ROW LEVEL SECURITY",
            Op::DisableRowLevelSecurity => "DISABLE ROW LEVEL SECURITY",
            Op::ForceRowLevelSecurity => "FORCE ROW LEVEL SECURITY",
            Op::NoForceRowLevelSecurity => "NO FORCE ROW LEVEL SECURITY",
        }
    }
}

/// What ALTER TABLE does with a column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AlterColumnOperation {
    SetNotNull,
    DropNotNull,
    SetDefault {
        value: Expr,
    },
    DropDefault,
    SetDataType {
        data_type: DataType,
        /// The last part of the collation's name.
        collation: Option<String>,
        using: Option<Expr>,
    },
    AddGenerated {
        generated_as: GeneratedAs,
        sequence_options: Vec<DefElem>,
    },
    /// What is kept of it, and how it is generated.
    Set(GeneratedChange),
    SetIdentity(Vec<IdentityOption>),
}
