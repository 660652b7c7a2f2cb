//! All statements, and those about transactions, settings, prepared statements, cursors, COPY and maintenance.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::*;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Select(Box<SelectStmt>),
    Insert(Box<InsertStmt>),
    Update(Box<UpdateStmt>),
    Delete(Box<DeleteStmt>),
    Merge(Box<MergeStmt>),
    Return(Box<ReturnStmt>),

    Create(Box<CreateStmt>),
    CreateTableAs(Box<CreateTableAsStmt>),
    RefreshMatView(Box<RefreshMatViewStmt>),
    View(Box<ViewStmt>),
    Index(Box<IndexStmt>),
    CreateSeq(Box<CreateSeqStmt>),
    AlterSeq(Box<AlterSeqStmt>),
    AlterTable(Box<AlterTableStmt>),
    AlterTableMoveAll(Box<AlterTableMoveAllStmt>),
    Truncate(Box<TruncateStmt>),
    CreateStats(Box<CreateStatsStmt>),
    AlterStats(Box<AlterStatsStmt>),
    CreateSchema(Box<CreateSchemaStmt>),

    Drop(Box<DropStmt>),
    Comment(Box<CommentStmt>),
    SecLabel(Box<SecLabelStmt>),
    Rename(Box<RenameStmt>),
    AlterObjectSchema(Box<AlterObjectSchemaStmt>),
    AlterObjectDepends(Box<AlterObjectDependsStmt>),
    AlterOwner(Box<AlterOwnerStmt>),
    CreateExtension(Box<CreateExtensionStmt>),
    AlterExtension(Box<AlterExtensionStmt>),
    AlterExtensionContents(Box<AlterExtensionContentsStmt>),

    CreateFunction(Box<CreateFunctionStmt>),
    AlterFunction(Box<AlterFunctionStmt>),
    Do(Box<DoStmt>),
    Call(Box<CallStmt>),
    CreateTrig(Box<CreateTrigStmt>),
    CreateEventTrig(Box<CreateEventTrigStmt>),
    AlterEventTrig(Box<AlterEventTrigStmt>),
    Rule(Box<RuleStmt>),
    CreateDomain(Box<CreateDomainStmt>),
    AlterDomain(Box<AlterDomainStmt>),

    Define(Box<DefineStmt>),
    CompositeType(Box<CompositeTypeStmt>),
    CreateEnum(Box<CreateEnumStmt>),
    CreateRange(Box<CreateRangeStmt>),
    AlterEnum(Box<AlterEnumStmt>),
    AlterType(Box<AlterTypeStmt>),
    AlterOperator(Box<AlterOperatorStmt>),
    AlterCollation(Box<AlterCollationStmt>),
    CreateOpClass(Box<CreateOpClassStmt>),
    CreateOpFamily(Box<CreateOpFamilyStmt>),
    AlterOpFamily(Box<AlterOpFamilyStmt>),
    CreateCast(Box<CreateCastStmt>),
    CreateTransform(Box<CreateTransformStmt>),
    CreateConversion(Box<CreateConversionStmt>),
    CreatePLang(Box<CreatePLangStmt>),
    CreateAm(Box<CreateAmStmt>),
    CreateTableSpace(Box<CreateTableSpaceStmt>),
    AlterTableSpaceOptions(Box<AlterTableSpaceOptionsStmt>),
    Fdw(Box<FdwStmt>),
    CreateForeignServer(Box<CreateForeignServerStmt>),
    AlterForeignServer(Box<AlterForeignServerStmt>),
    ImportForeignSchema(Box<ImportForeignSchemaStmt>),
    UserMapping(Box<UserMappingStmt>),
    CreatePublication(Box<CreatePublicationStmt>),
    AlterPublication(Box<AlterPublicationStmt>),
    CreateSubscription(Box<CreateSubscriptionStmt>),
    AlterSubscription(Box<AlterSubscriptionStmt>),
    AlterTsDictionary(Box<AlterTsDictionaryStmt>),
    AlterTsConfiguration(Box<AlterTsConfigurationStmt>),
    CreatePolicy(Box<CreatePolicyStmt>),
    AlterPolicy(Box<AlterPolicyStmt>),

    CreateRole(Box<CreateRoleStmt>),
    AlterRole(Box<AlterRoleStmt>),
    AlterRoleSet(Box<AlterRoleSetStmt>),
    DropRole(Box<DropRoleStmt>),
    DropOwned(Box<DropOwnedStmt>),
    ReassignOwned(Box<ReassignOwnedStmt>),
    Grant(Box<GrantStmt>),
    GrantRole(Box<GrantRoleStmt>),
    AlterDefaultPrivileges(Box<AlterDefaultPrivilegesStmt>),
    Createdb(Box<CreatedbStmt>),
    AlterDatabase(Box<AlterDatabaseStmt>),
    AlterDatabaseRefreshColl(Box<AlterDatabaseRefreshCollStmt>),
    AlterDatabaseSet(Box<AlterDatabaseSetStmt>),
    Dropdb(Box<DropdbStmt>),

    Transaction(Box<TransactionStmt>),
    ConstraintsSet(Box<ConstraintsSetStmt>),
    VariableSet(Box<VariableSetStmt>),
    VariableShow(Box<VariableShowStmt>),
    AlterSystem(Box<AlterSystemStmt>),
    Discard(DiscardMode),
    Prepare(Box<PrepareStmt>),
    Execute(Box<ExecuteStmt>),
    /// None for ALL.
    Deallocate(Option<Name>),
    DeclareCursor(Box<DeclareCursorStmt>),
    Fetch(Box<FetchStmt>),
    /// None for ALL.
    ClosePortal(Option<Name>),
    Explain(Box<ExplainStmt>),
    Copy(Box<CopyStmt>),
    Lock(Box<LockStmt>),
    Notify(Box<NotifyStmt>),
    Listen(Name),
    /// None for `*`.
    Unlisten(Option<Name>),
    Vacuum(Box<VacuumStmt>),
    Cluster(Box<ClusterStmt>),
    Reindex(Box<ReindexStmt>),
    CheckPoint,
    Load(Name),
}

/// Kinds of statements about transactions (`TransactionStmtKind`).
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionStmtKind {
    Begin,
    Start,
    Commit { chain: bool },
    Rollback { chain: bool },
    Savepoint(Name),
    Release(Name),
    RollbackTo(Name),
    Prepare(Name),
    CommitPrepared(Name),
    RollbackPrepared(Name),
}

/// BEGIN and its like (`TransactionStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionStmt {
    pub kind: TransactionStmtKind,
    pub options: Vec<TransactionMode>,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A mode of a transaction (`transaction_mode_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    Isolation(IsolationLevel, Location),
    ReadOnly(bool, Location),
    Deferrable(bool, Location),
}

/// SET CONSTRAINTS (`ConstraintsSetStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintsSetStmt {
    /// None for ALL.
    pub constraints: Vec<RangeVar>,
    pub deferred: bool,
}

/// A value of SET (`var_value`).
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    /// A constant.
    Const(Const),
    /// The interval of TIME ZONE.
    Interval(Box<TypeCast>),
}

/// What SET does (`VariableSetKind`).
#[derive(Clone, Debug, PartialEq)]
pub enum VariableSetKind {
    /// To these values.
    Value(Vec<SetValue>),
    /// TO DEFAULT
    Default,
    /// FROM CURRENT
    Current,
    /// SET TRANSACTION (`TRANSACTION`), SET SESSION CHARACTERISTICS (`SESSION CHARACTERISTICS`).
    Transaction {
        session: bool,
        modes: Vec<TransactionMode>,
    },
    /// SET TRANSACTION SNAPSHOT
    Snapshot(Name),
    /// RESET
    Reset,
    /// RESET ALL
    ResetAll,
}

/// SET, RESET (`VariableSetStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct VariableSetStmt {
    pub kind: VariableSetKind,
    /// Which setting; PostgreSQL's name of it where words are said. None for ALL and for transactions.
    pub name: Option<Name>,
    pub is_local: bool,
    pub location: Location,
}

/// SHOW (`VariableShowStmt`); `all` for ALL.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableShowStmt {
    pub name: Name,
    pub location: Location,
}

/// ALTER SYSTEM (`AlterSystemStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSystemStmt {
    pub setstmt: VariableSetStmt,
}

/// DISCARD (`DiscardMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardMode {
    All,
    Plans,
    Sequences,
    Temp,
}

/// PREPARE (`PrepareStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareStmt {
    pub name: Name,
    pub argtypes: Vec<TypeName>,
    pub query: Stmt,
    /// Where the query begins and ends.
    pub query_range: (usize, usize),
}

/// EXECUTE (`ExecuteStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteStmt {
    pub name: Name,
    pub params: Vec<Expr>,
}

/// DECLARE (`DeclareCursorStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursorStmt {
    pub portalname: Name,
    pub binary: bool,
    pub insensitive: bool,
    pub asensitive: bool,
    /// SCROLL, NO SCROLL.
    pub scroll: bool,
    pub no_scroll: bool,
    pub hold: bool,
    pub query: Box<SelectStmt>,
    /// Where the query begins and ends.
    pub query_range: (usize, usize),
}

/// Where FETCH goes, how many rows (`FetchDirection`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    Forward(i64),
    Backward(i64),
    Absolute(i64),
    Relative(i64),
}

/// How many rows ALL are.
pub const FETCH_ALL: i64 = i64::MAX;

/// FETCH, MOVE (`FetchStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct FetchStmt {
    pub direction: FetchDirection,
    pub portalname: Name,
    pub ismove: bool,
}

/// EXPLAIN (`ExplainStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainStmt {
    pub query: Stmt,
    pub options: Vec<DefElem>,
    /// Where the statement begins and ends.
    pub query_range: (usize, usize),
}

/// What COPY copies.
#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    Relation {
        relation: RangeVar,
        attlist: Vec<Name>,
    },
    Query(Box<Stmt>),
}

/// Where COPY copies from or to.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyTarget {
    /// STDIN, STDOUT.
    Client,
    File(Name),
    Program(Name),
}

/// COPY (`CopyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CopyStmt {
    pub source: CopySource,
    pub is_from: bool,
    pub target: CopyTarget,
    pub options: Vec<DefElem>,
    pub where_clause: Option<Expr>,
}

/// Modes of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// LOCK (`LockStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct LockStmt {
    pub relations: Vec<RangeVar>,
    pub mode: LockMode,
    pub nowait: bool,
}

/// NOTIFY (`NotifyStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct NotifyStmt {
    pub conditionname: Name,
    pub payload: Option<Name>,
}

/// A table of VACUUM and ANALYZE (`VacuumRelation`).
#[derive(Clone, Debug, PartialEq)]
pub struct VacuumRelation {
    pub relation: RangeVar,
    pub va_cols: Vec<Name>,
}

/// VACUUM, ANALYZE (`VacuumStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct VacuumStmt {
    pub options: Vec<DefElem>,
    pub rels: Vec<VacuumRelation>,
    pub is_vacuumcmd: bool,
}

/// CLUSTER (`ClusterStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterStmt {
    pub relation: Option<RangeVar>,
    pub indexname: Option<Name>,
    pub params: Vec<DefElem>,
}

/// What REINDEX builds again (`ReindexObjectType`).
#[derive(Clone, Debug, PartialEq)]
pub enum ReindexTarget {
    Index(RangeVar),
    Table(RangeVar),
    Schema(Name),
    System(Name),
    Database(Name),
}

/// REINDEX (`ReindexStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ReindexStmt {
    pub target: ReindexTarget,
    pub params: Vec<DefElem>,
}
