//! Tables: CREATE TABLE, its constraints, ALTER TABLE, indexes, sequences, views.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::{
    AnyName, CollationName, DefElem, DropBehavior, Expr, IndexElem, IntoClause, Location, Name,
    OperatorName, RangeVar, RoleSpec, SelectStmt, TextRange, TypeName,
};

/// ON COMMIT (`OnCommitAction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnCommitAction {
    #[default]
    None,
    PreserveRows,
    DeleteRows,
    Drop,
}

/// CREATE TABLE, CREATE FOREIGN TABLE (`CreateStmt`, `CreateForeignTableStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateStmt {
    pub relation: RangeVar,
    /// GLOBAL was said: PostgreSQL warns that it means nothing.
    pub global: bool,
    pub if_not_exists: bool,
    /// What stands in parentheses: columns, LIKE, constraints.
    pub table_elts: Vec<TableElement>,
    /// INHERITS, or the table that it is a partition of.
    pub inh_relations: Vec<RangeVar>,
    /// FOR VALUES, DEFAULT: of a partition.
    pub partbound: Option<Box<PartitionBoundSpec>>,
    /// PARTITION BY
    pub partspec: Option<Box<PartitionSpec>>,
    /// OF a type.
    pub of_typename: Option<AnyName>,
    /// USING
    pub access_method: Option<Name>,
    pub options: Vec<DefElem>,
    pub oncommit: OnCommitAction,
    pub tablespacename: Option<Name>,
    /// SERVER and OPTIONS of a foreign table.
    pub foreign: Option<(Name, Vec<DefElem>)>,
}

/// An element of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    Column(Box<ColumnDef>),
    Like(Box<TableLikeClause>),
    Constraint(Box<Constraint>),
}

/// A column (`ColumnDef`).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub colname: Name,
    /// None of a typed table, or of a partition.
    pub type_name: Option<TypeName>,
    pub compression: Option<Name>,
    pub coll_clause: Option<CollationName>,
    pub constraints: Vec<Constraint>,
    pub fdwoptions: Vec<DefElem>,
    pub location: Location,
}

/// What LIKE takes over, as bits of `TableLikeOption`.
pub mod table_like {
    pub const COMMENTS: u32 = 1;
    pub const COMPRESSION: u32 = 1 << 1;
    pub const CONSTRAINTS: u32 = 1 << 2;
    pub const DEFAULTS: u32 = 1 << 3;
    pub const GENERATED: u32 = 1 << 4;
    pub const IDENTITY: u32 = 1 << 5;
    pub const INDEXES: u32 = 1 << 6;
    pub const STATISTICS: u32 = 1 << 7;
    pub const STORAGE: u32 = 1 << 8;
    pub const ALL: u32 = i32::MAX as u32;
}

/// LIKE (`TableLikeClause`).
#[derive(Clone, Debug, PartialEq)]
pub struct TableLikeClause {
    pub relation: RangeVar,
    pub options: u32,
}

/// What a foreign key does when what it refers to goes or changes (`FKCONSTR_ACTION_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FkAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// MATCH of a foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FkMatch {
    #[default]
    Simple,
    Full,
}

/// REFERENCES, with what follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub pktable: RangeVar,
    pub pk_attrs: Vec<Name>,
    pub matchtype: FkMatch,
    pub upd_action: FkAction,
    pub del_action: FkAction,
    /// The columns of SET NULL and SET DEFAULT.
    pub del_set_cols: Vec<Name>,
}

/// What a unique index is made of, or which one is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyColumns {
    /// The column that it is a constraint of, or those of the list.
    Columns(Vec<Name>),
    /// USING INDEX
    Index(Name),
}

/// UNIQUE, PRIMARY KEY: what both say.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyConstraint {
    pub keys: KeyColumns,
    pub nulls_not_distinct: bool,
    pub including: Vec<Name>,
    pub options: Vec<DefElem>,
    pub indexspace: Option<Name>,
}

/// EXCLUDE
#[derive(Clone, Debug, PartialEq)]
pub struct ExcludeConstraint {
    pub access_method: Option<Name>,
    pub exclusions: Vec<(IndexElem, OperatorName)>,
    pub including: Vec<Name>,
    pub options: Vec<DefElem>,
    pub indexspace: Option<Name>,
    pub where_clause: Option<Expr>,
}

/// What a constraint demands (`ConstrType`).
#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    Null,
    NotNull,
    Default(Expr),
    /// GENERATED AS IDENTITY: BY DEFAULT or ALWAYS, and the options of its sequence.
    Identity {
        by_default: bool,
        options: Vec<DefElem>,
    },
    /// GENERATED ALWAYS AS (...) STORED
    Generated(Expr),
    Check {
        expr: Expr,
        is_no_inherit: bool,
    },
    PrimaryKey(Box<KeyConstraint>),
    Unique(Box<KeyConstraint>),
    Exclusion(Box<ExcludeConstraint>),
    /// FOREIGN KEY: its columns; none of a column's own.
    Foreign {
        fk_attrs: Vec<Name>,
        references: Box<References>,
    },
    AttrDeferrable,
    AttrNotDeferrable,
    AttrDeferred,
    AttrImmediate,
}

/// A constraint (`Constraint`).
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub conname: Option<Name>,
    pub kind: ConstraintKind,
    pub deferrable: bool,
    pub initdeferred: bool,
    /// NOT VALID
    pub skip_validation: bool,
    pub location: Location,
}

/// PARTITION BY (`PartitionSpec`).
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSpec {
    pub strategy: Name,
    pub part_params: Vec<PartitionElem>,
    pub location: Location,
}

/// A key of partitions (`PartitionElem`).
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionElem {
    pub key: super::IndexKey,
    pub collation: Option<AnyName>,
    pub opclass: Option<AnyName>,
    pub location: Location,
}

/// What a partition holds (`PartitionBoundSpec`).
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionBoundSpec {
    Default(Location),
    Hash {
        modulus: i32,
        remainder: i32,
        location: Location,
    },
    List(Vec<Expr>, Location),
    Range {
        lower: Vec<Expr>,
        upper: Vec<Expr>,
        location: Location,
    },
}

/// Which kind of relation ALTER TABLE and its like name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    Table,
    Index,
    Sequence,
    View,
    MaterializedView,
    ForeignTable,
    /// A composite type.
    Type,
}

/// ALTER TABLE and its like (`AlterTableStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTableStmt {
    pub objtype: RelationKind,
    pub relation: RangeVar,
    pub missing_ok: bool,
    pub cmds: Vec<AlterTableCmd>,
}

/// ALTER TABLE ALL IN TABLESPACE (`AlterTableMoveAllStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTableMoveAllStmt {
    pub objtype: RelationKind,
    pub orig_tablespacename: Name,
    pub roles: Vec<RoleSpec>,
    pub new_tablespacename: Name,
    pub nowait: bool,
}

/// Which triggers.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerTarget {
    Named(Name),
    All,
    User,
}

/// When a trigger or a rule fires (`TRIGGER_FIRES_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiringMode {
    Origin,
    Always,
    Replica,
    Disabled,
}

/// REPLICA IDENTITY
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaIdentity {
    Nothing,
    Full,
    Default,
    Index(Name),
}

/// A change to an identity column.
#[derive(Clone, Debug, PartialEq)]
pub enum IdentityOption {
    /// RESTART, SET with an option of sequences.
    Sequence(DefElem),
    /// SET GENERATED BY DEFAULT, or ALWAYS.
    Generated {
        by_default: bool,
        location: Location,
    },
}

/// A column by its name, or of an index by its number.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnTarget {
    Name(Name),
    Number(i32),
}

/// ALTER COLUMN ... TYPE, of a table or of a composite type.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterColumnType {
    pub name: Name,
    pub type_name: TypeName,
    pub coll_clause: Option<CollationName>,
    /// USING
    pub raw_default: Option<Expr>,
    pub behavior: DropBehavior,
    pub location: Location,
}

/// A change to a relation (`AlterTableType`).
#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableCmd {
    AddColumn {
        def: Box<ColumnDef>,
        missing_ok: bool,
    },
    AddAttribute {
        def: Box<super::ColumnDefinition>,
        behavior: DropBehavior,
    },
    ColumnDefault {
        name: Name,
        default: Option<Expr>,
    },
    DropNotNull(Name),
    SetNotNull(Name),
    DropExpression {
        name: Name,
        missing_ok: bool,
    },
    SetStatistics {
        column: ColumnTarget,
        target: i32,
    },
    SetOptions {
        name: Name,
        options: Vec<DefElem>,
    },
    ResetOptions {
        name: Name,
        options: Vec<DefElem>,
    },
    SetStorage {
        name: Name,
        storage: Name,
    },
    SetCompression {
        name: Name,
        method: Name,
    },
    AddIdentity {
        name: Name,
        by_default: bool,
        options: Vec<DefElem>,
        location: Location,
    },
    SetIdentity {
        name: Name,
        options: Vec<IdentityOption>,
    },
    DropIdentity {
        name: Name,
        missing_ok: bool,
    },
    DropColumn {
        name: Name,
        missing_ok: bool,
        behavior: DropBehavior,
    },
    AlterColumnType(Box<AlterColumnType>),
    AlterColumnGenericOptions {
        name: Name,
        options: Vec<DefElem>,
    },
    AddConstraint(Box<Constraint>),
    AlterConstraint {
        name: Name,
        deferrable: bool,
        initdeferred: bool,
        location: Location,
    },
    ValidateConstraint(Name),
    DropConstraint {
        name: Name,
        missing_ok: bool,
        behavior: DropBehavior,
    },
    DropOids,
    ClusterOn(Name),
    DropCluster,
    SetLogged,
    SetUnlogged,
    Trigger {
        target: TriggerTarget,
        mode: FiringMode,
    },
    Rule {
        name: Name,
        mode: FiringMode,
    },
    AddInherit(RangeVar),
    DropInherit(RangeVar),
    AddOf(AnyName),
    DropOf,
    ChangeOwner(RoleSpec),
    SetAccessMethod(Name),
    SetTableSpace(Name),
    SetRelOptions(Vec<DefElem>),
    ResetRelOptions(Vec<DefElem>),
    ReplicaIdentity(ReplicaIdentity),
    EnableRowSecurity,
    DisableRowSecurity,
    ForceRowSecurity,
    NoForceRowSecurity,
    GenericOptions(Vec<DefElem>),
    AttachPartition {
        name: RangeVar,
        bound: Option<Box<PartitionBoundSpec>>,
    },
    DetachPartition {
        name: RangeVar,
        concurrent: bool,
    },
    DetachPartitionFinalize(RangeVar),
}

/// CREATE INDEX (`IndexStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct IndexStmt {
    pub idxname: Option<Name>,
    pub relation: RangeVar,
    pub access_method: Option<Name>,
    pub table_space: Option<Name>,
    pub index_params: Vec<IndexElem>,
    pub index_including_params: Vec<IndexElem>,
    pub options: Vec<DefElem>,
    pub where_clause: Option<Expr>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub concurrent: bool,
    pub if_not_exists: bool,
}

/// CREATE SEQUENCE (`CreateSeqStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSeqStmt {
    pub sequence: RangeVar,
    pub options: Vec<DefElem>,
    pub if_not_exists: bool,
}

/// ALTER SEQUENCE (`AlterSeqStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSeqStmt {
    pub sequence: RangeVar,
    pub options: Vec<DefElem>,
    pub missing_ok: bool,
}

/// WITH CHECK OPTION (`ViewCheckOption`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ViewCheckOption {
    #[default]
    None,
    Local,
    Cascaded,
}

/// CREATE VIEW (`ViewStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ViewStmt {
    pub view: RangeVar,
    pub aliases: Vec<Name>,
    pub query: Box<SelectStmt>,
    /// Where the query is.
    pub query_range: TextRange,
    pub replace: bool,
    /// RECURSIVE: the query is that of the view with that name in WITH RECURSIVE.
    pub recursive: bool,
    pub options: Vec<DefElem>,
    pub with_check_option: ViewCheckOption,
}

/// What a table is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum CreateAsQuery {
    Select(Box<SelectStmt>),
    Execute(Box<super::ExecuteStmt>),
}

/// CREATE TABLE AS, CREATE MATERIALIZED VIEW (`CreateTableAsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAsStmt {
    pub query: CreateAsQuery,
    /// Where the query is.
    pub query_range: TextRange,
    pub into: Box<IntoClause>,
    pub is_materialized_view: bool,
    /// It was written as SELECT INTO.
    pub is_select_into: bool,
    pub if_not_exists: bool,
}

/// REFRESH MATERIALIZED VIEW (`RefreshMatViewStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshMatViewStmt {
    pub concurrent: bool,
    pub skip_data: bool,
    pub relation: RangeVar,
}

/// TRUNCATE (`TruncateStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct TruncateStmt {
    pub relations: Vec<RangeVar>,
    pub restart_seqs: bool,
    pub behavior: DropBehavior,
}

/// CREATE STATISTICS (`CreateStatsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateStatsStmt {
    pub defnames: AnyName,
    pub stat_types: Vec<Name>,
    pub exprs: Vec<super::IndexKey>,
    pub relations: Vec<super::TableRef>,
    pub if_not_exists: bool,
}

/// ALTER STATISTICS ... SET STATISTICS (`AlterStatsStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterStatsStmt {
    pub defnames: AnyName,
    pub stxstattarget: i32,
    pub missing_ok: bool,
}
