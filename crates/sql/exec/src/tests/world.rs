//! An engine with tables, and plans made by hand.

use crate::index_keys::RowKeys;
use crate::{Cancel, Execution, Prepared, Progress, RowSink, StatementContext, prepare};
use logstead_engine::{Engine, EngineOptions, Isolation, Txn, Worker};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::classes::PG_PUBLIC_NAMESPACE;
use logstead_sql_catalog::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_catalog::{
    Catalog, Column, IndexColumn, IndexDef, Relation, RelationKind, SystemCatalog,
};
use logstead_sql_func::resolve_operator;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::*;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Clock;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_sql_types::{DatabaseOid, RelationId};
use logstead_types::{IndexId, TableId, WorkerId};
use std::future::Future;
use std::sync::{Arc, OnceLock};

/// A session with a clock that stands still, and nothing else.
pub(super) struct TestContext;

impl PartialContext for TestContext {
    fn clock(&self) -> Result<&dyn Clock> {
        Ok(self)
    }
}

impl Clock for TestContext {
    fn transaction_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn statement_time(&self) -> Result<i64> {
        Ok(0)
    }
    fn clock_time(&self) -> Result<i64> {
        Ok(0)
    }
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) worker: Worker,
    pub(super) catalog: Arc<Catalog>,
    pub(super) cancel: Cancel,
}

/// Collects rows.
#[derive(Default)]
pub(super) struct Sink(pub(super) Vec<Vec<Datum>>);

impl RowSink for Sink {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.0.push(row.to_vec());
        Ok(())
    }
}

/// A catalog without system relations.
fn system_catalog() -> &'static SystemCatalog {
    static SYSTEM: OnceLock<SystemCatalog> = OnceLock::new();
    SYSTEM.get_or_init(|| SystemCatalog::new([], crate::index_keys::extractor))
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

pub(super) const INT: SqlType = SqlType::of(oid::INT4);
pub(super) const BIGINT: SqlType = SqlType::of(oid::INT8);
pub(super) const TEXT: SqlType = SqlType::of(oid::TEXT);
pub(super) const BOOL: SqlType = SqlType::of(oid::BOOL);

impl World {
    pub(super) fn new() -> World {
        let home = Arc::new(MemoryHome::new(1 << 20));
        let (env, _) = Env::simulated(1);
        let (engine, _) = Engine::open(EngineOptions::default(), LogHome::from(home), env).unwrap();
        let worker = engine.worker(WorkerId(0));
        World {
            engine,
            worker,
            catalog: Arc::new(system_catalog().database(DatabaseOid::new(5), "postgres")),
            cancel: Cancel::default(),
        }
    }

    /// Table `t` (a integer primary key, b text, c bigint not null).
    pub(super) fn table(&self) -> Arc<Relation> {
        let column = |name: &str, ty, not_null| Column {
            name: name.to_owned(),
            ty,
            not_null,
            default: None,
            identity: None,
            generated: false,
            sequence: None,
            dropped: false,
            domain: None,
            missing: Datum::Null,
        };
        let index = Arc::new(IndexDef {
            oid: RelationId::new(20_001),
            name: "t_pkey".to_owned(),
            table: RelationId::new(20_000),
            storage: IndexId(20_001),
            unique: true,
            primary: true,
            nulls_not_distinct: false,
            deferrable: false,
            include: Vec::new(),
            predicate: None,
            computed: Vec::new(),
            invalid: None,
            columns: vec![IndexColumn::of(0)],
        });
        let relation = Arc::new(Relation {
            oid: RelationId::new(20_000),
            name: "t".to_owned(),
            schema: PG_PUBLIC_NAMESPACE,
            schema_name: "public".to_owned(),
            kind: RelationKind::Table,
            columns: vec![
                column("a", INT, true),
                column("b", TEXT, false),
                column("c", BIGINT, true),
            ],
            indexes: vec![Arc::clone(&index)],
            constraints: Vec::new(),
            storage: TableId(20_000),
            schema_version: 1,
            security: logstead_sql_catalog::RowSecurity::default(),
            distribution: Default::default(),
            shared_names: Default::default(),
        });
        let table = self.engine.create_table(relation.storage);
        let keys = RowKeys::new(&relation, &index, &self.catalog).unwrap();
        self.engine
            .create_index(&table, index.storage, true, Arc::new(keys));
        relation
    }

    pub(super) fn begin(&self) -> Txn {
        self.worker.begin(Isolation::ReadCommitted)
    }

    /// Runs one statement in `txn`.
    pub(super) async fn run_in(
        &self,
        txn: &mut Txn,
        plan: &Arc<Prepared>,
        params: &[Datum],
    ) -> Result<(Vec<Vec<Datum>>, u64)> {
        txn.begin_statement();
        let mut cx = StatementContext {
            txn,
            params,
            session: &ContextAdapter(&TestContext),
            catalog: &self.catalog,
            engine: &self.engine,
            cancel: &self.cancel,
            events: &mut crate::after_triggers::EventQueue::default(),
            work_mem_bytes: 4 << 20,
            spill: None,
        };
        let mut sink = Sink::default();
        match Execution::new(Arc::clone(plan))
            .run(&mut cx, 0, &mut sink)
            .await?
        {
            Progress::Done { rows } => Ok((sink.0, rows)),
            other => panic!("{other:?}"),
        }
    }

    /// Runs one statement in its own transaction.
    pub(super) fn run(&self, plan: Plan, params: &[Datum]) -> Result<(Vec<Vec<Datum>>, u64)> {
        block_on(async {
            let mut txn = self.begin();
            let result = self
                .run_in(&mut txn, &Arc::new(prepare(plan)), params)
                .await;
            match &result {
                Ok(_) => drop(txn.precommit().await.unwrap()),
                Err(_) => txn.abort(),
            }
            result
        })
    }

    /// The text of the rows of a statement.
    pub(super) fn rows(&self, plan: Plan, params: &[Datum]) -> Vec<String> {
        self.run(plan, params)
            .unwrap()
            .0
            .iter()
            .map(|row| show(row))
            .collect()
    }
}

pub(super) fn show(row: &[Datum]) -> String {
    let show = |datum: &Datum| match datum {
        Datum::Null => "-".to_owned(),
        Datum::Int4(value) => value.to_string(),
        Datum::Int8(value) => value.to_string(),
        Datum::Text(value) => value.to_string(),
        Datum::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    };
    row.iter().map(show).collect::<Vec<_>>().join(" ")
}

pub(super) fn plan(node: Node, types: &[SqlType]) -> Plan {
    let columns = types
        .iter()
        .map(|ty| OutputColumn {
            domain: None,
            name: "c".to_owned(),
            ty: *ty,
            origin: None,
        })
        .collect();
    Plan {
        node,
        columns,
        rows: 1.0,
        cost: 1.0,
    }
}

pub(super) fn int(value: i32) -> Expr {
    Expr::Const(Datum::Int4(value), INT)
}

pub(super) fn big(value: i64) -> Expr {
    Expr::Const(Datum::Int8(value), BIGINT)
}

pub(super) fn text(value: &str) -> Expr {
    Expr::Const(Datum::text(value), TEXT)
}

pub(super) fn column(at: usize, ty: SqlType) -> Expr {
    Expr::Column(at, ty)
}

pub(super) fn binary(op: &str, left: Expr, right: Expr) -> Expr {
    let resolved = resolve_operator(
        op,
        Some(left.ty()),
        right.ty(),
        UserTypes::default().lookup(&[]),
    )
    .unwrap();
    Expr::Call {
        function: resolved.function,
        args: vec![left, right],
        ty: resolved.result,
    }
}

pub(super) fn values(rows: Vec<Vec<Expr>>) -> Plan {
    let types: Vec<SqlType> = rows[0].iter().map(Expr::ty).collect();
    plan(Node::Values(rows), &types)
}

/// Rows of two integers.
pub(super) fn ints(rows: &[(i32, i32)]) -> Plan {
    values(rows.iter().map(|(a, b)| vec![int(*a), int(*b)]).collect())
}

pub(super) fn scan(table: &Arc<Relation>, row_id: bool) -> Scan {
    Scan {
        table: Arc::clone(table),
        columns: vec![0, 1, 2],
        filter: SecurityQuals::default(),
        row_id,
        unread: Vec::new(),
        alias: "t".into(),
    }
}

pub(super) const T: [SqlType; 3] = [INT, TEXT, BIGINT];

/// All rows of `t`.
pub(super) fn all(table: &Arc<Relation>) -> Plan {
    plan(Node::SeqScan(scan(table, false)), &T)
}

/// The rows of `t` by key.
pub(super) fn by_range(
    table: &Arc<Relation>,
    range: KeyRange,
    reverse: bool,
    row_id: bool,
) -> Plan {
    let index = Arc::clone(&table.indexes[0]);
    plan(
        Node::IndexScan {
            scan: scan(table, row_id),
            index,
            range,
            reverse,
        },
        &T,
    )
}

/// The row of `t` whose key is parameter 1.
pub(super) fn by_key(table: &Arc<Relation>, row_id: bool) -> Plan {
    by_range(
        table,
        KeyRange {
            equal: vec![ScanKey::Value(Expr::Param(0, INT))],
            ..KeyRange::default()
        },
        false,
        row_id,
    )
}

/// INSERT INTO t VALUES ...
pub(super) fn insert(table: &Arc<Relation>, source: Plan) -> Insert {
    Insert {
        generated: Vec::new(),
        rules: None,
        table: Arc::clone(table),
        source,
        values: vec![column(0, INT), column(1, TEXT), column(2, BIGINT)],
        policies: Vec::new(),
        checks: Vec::new(),
        conflict: None,
        given: Vec::new(),
        returning: None,
        hidden: false,
    }
}
