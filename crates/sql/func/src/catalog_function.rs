//! Functions whose code is above this crate, by number instead of by name.
//!
//! Owns: [`CatalogFunction`] and [`CatalogSet`], which the catalog's crates run, and [`ServerFunction`] and
//! [`RoutineFunction`], which the session runs. Each match over them is whole, so that a function that the tables have
//! and nobody runs does not compile.

/// A function that reads the catalog. Named as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is the function of PostgreSQL that has its name"
)]
pub enum CatalogFunction {
    AclDefault,
    ColDescription,
    ColumnIsUpdatable,
    CurrentLogfile,
    CurrentWalFlushLsn,
    CurrentWalInsertLsn,
    CurrentWalLsn,
    DatabaseSize,
    DescribeObject,
    FunctionIsVisible,
    GetConstraintdef,
    GetExpr,
    GetFunctionArgDefault,
    GetFunctionArguments,
    GetFunctionIdentityArguments,
    GetFunctionResult,
    GetFunctiondef,
    GetIndexdef,
    GetRuledef,
    GetSerialSequence,
    GetTriggerdef,
    GetUserbyid,
    GetViewdef,
    HasAnyColumnPrivilege,
    HasColumnPrivilege,
    HasDatabasePrivilege,
    HasForeignDataWrapperPrivilege,
    HasFunctionPrivilege,
    HasLanguagePrivilege,
    HasRole,
    HasSchemaPrivilege,
    HasSequencePrivilege,
    HasServerPrivilege,
    HasTablePrivilege,
    HasTablespacePrivilege,
    HasTypePrivilege,
    IndexColumnHasProperty,
    /// `pg_index_has_property` and `pg_indexam_has_property`
    IndexHasProperty,
    /// `_pg_index_position` of `information_schema`
    IndexPosition,
    IndexesSize,
    IsInRecovery,
    /// `pg_last_wal_receive_lsn` and `pg_last_wal_replay_lsn`: what is read is applied at once.
    LastWalReplayLsn,
    /// `logstead_commit_token`
    LogsteadCommitToken,
    /// `logstead_instance_of_partition`
    LogsteadInstanceOfPartition,
    /// `logstead_partition_of`
    LogsteadPartitionOf,
    MakeAclItem,
    MyTempSchema,
    ObjDescription,
    RelationFilenode,
    RelationIsPublishable,
    RelationIsUpdatable,
    /// `pg_relation_size`, `pg_table_size` and `pg_total_relation_size`
    RelationSize,
    RowSecurityActive,
    SequenceLastValue,
    ShobjDescription,
    StatGetLiveTuples,
    TableIsVisible,
    TypeIsVisible,
}

/// A function that reads the catalog and yields rows.
#[derive(Clone, Copy, Debug)]
pub enum CatalogSet {
    /// `aclexplode`
    AclExplode,
    /// `pg_get_object_address`
    GetObjectAddress,
    /// `pg_identify_object`
    IdentifyObject,
    /// The one row of a sequence, as a table has it.
    SequenceRow,
    /// The rows of a system relation.
    Relation(SystemRelationRows),
}

/// Which rows of a system relation of `pg_catalog` a function gives.
#[derive(Clone, Copy, Debug)]
pub struct SystemRelationRows {
    /// Name of the relation.
    pub relation: &'static str,
    /// Those of the relation's columns that the function has not.
    pub without: &'static [&'static str],
}

/// A function that the session runs by what it knows of itself, of transactions and of the server. Named as in
/// PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is the function of PostgreSQL that has its name"
)]
pub enum ServerFunction {
    Advisory(AdvisoryLockFunction),
    BlockingPids,
    CancelBackend,
    ConfLoadTime,
    CurrentXactId,
    CurrentXactIdIfAssigned,
    InetClientAddr,
    InetClientPort,
    InetServerAddr,
    InetServerPort,
    IsolationTestSessionIsBlocked,
    Notify,
    PostmasterStartTime,
    ReloadConf,
    StatStatementsReset,
    TerminateBackend,
    /// Which command of the running transaction has written a version of a row, by its token; 0 of others.
    VersionCmin,
    /// Which transaction has written over it, of a version that the statement has.
    VersionXmax,
    /// Which transaction has written a version of a row, by its token.
    VersionXmin,
    /// `pg_xact_status` and `txid_status`
    XactStatus,
    /// `age` of a transaction's number, and `mxid_age`
    XidAge,
}

/// A function that the session runs as it runs users' functions: it reads and writes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineFunction {
    /// Of large objects.
    LargeObject(LargeObjectFunction),
    /// Rows as XML.
    XmlMap(XmlMapFunction),
}

/// A function of large objects. Named as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is the function of PostgreSQL that has its name"
)]
pub enum LargeObjectFunction {
    Close,
    Creat,
    Create,
    Export,
    FromBytea,
    Get,
    Import,
    Lseek,
    Lseek64,
    Open,
    Put,
    /// `loread`
    Read,
    Tell,
    Tell64,
    /// `lo_truncate` and `lo_truncate64`
    Truncate,
    Unlink,
    /// `lowrite`
    Write,
}

/// A function that gives rows as XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlMapFunction {
    /// `database_to_xml`
    Database,
    /// `query_to_xml`
    Query,
    /// `schema_to_xml`
    Schema,
    /// `table_to_xml`
    Table,
}

/// What `pg_advisory_lock` and its kin do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisoryLockFunction {
    /// Takes the lock, and waits for it.
    Lock(AdvisoryLockScope),
    /// Takes the lock if it is free.
    TryLock(AdvisoryLockScope),
    /// Gives one of the session back.
    Unlock {
        /// A shared one.
        shared: bool,
    },
    /// Gives all of the session back.
    UnlockAll,
}

/// Which lock a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryLockScope {
    /// It goes with other shared ones.
    pub shared: bool,
    /// It is the transaction's, and else the session's.
    pub of_transaction: bool,
}

impl AdvisoryLockScope {
    /// The session's, which nothing goes with.
    pub const SESSION: AdvisoryLockScope = AdvisoryLockScope {
        shared: false,
        of_transaction: false,
    };
    /// The session's, which goes with other shared ones.
    pub const SESSION_SHARED: AdvisoryLockScope = AdvisoryLockScope {
        shared: true,
        of_transaction: false,
    };
    /// The transaction's, which nothing goes with.
    pub const TRANSACTION: AdvisoryLockScope = AdvisoryLockScope {
        shared: false,
        of_transaction: true,
    };
    /// The transaction's, which goes with other shared ones.
    pub const TRANSACTION_SHARED: AdvisoryLockScope = AdvisoryLockScope {
        shared: true,
        of_transaction: true,
    };
}
