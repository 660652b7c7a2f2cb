//! Statements from text to rows: parser, planner, catalog, executor and engine together, on a log in memory. What they
//! give is compared with PostgreSQL 15's answers, recorded in `executor/expected.txt` by running
//! `executor/statements.sql`.

use logstead_engine::{Checkpointer, Engine, EngineOptions, Evictor, Isolation, Worker};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::context::ReplyDependencies;
use logstead_sql_catalog::context::partial::{ContextAdapter, PartialContext};
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::{CatalogStore, SequenceSession, VirtualContext};
use logstead_sql_ddl::pg_catalog::calls;
use logstead_sql_ddl::{self as ddl, DdlContext, DdlState};
use logstead_sql_exec::{Cancel, Execution, Progress, RowSink, StatementContext, prepare};
use logstead_sql_func::{CatalogFunction, CatalogFunctions, CatalogSet, Sequences, SessionInfo};
use logstead_sql_parse::parse;
use logstead_sql_plan::{
    OutputColumn, PermissionChecker, Permissions, PlanContext, plan_statement,
};
use logstead_sql_types::value::{Clock, needs_session};
use logstead_sql_types::value::{Datum, OutputStyle, text_io};
use logstead_sql_types::{RelationId, Result, SqlError};
use logstead_types::{Csn, WorkerId};
use std::cell::RefCell;
use std::sync::Arc;

/// Everybody may everything.
struct Everybody;

impl PermissionChecker for Everybody {
    fn check(&mut self, _: &Permissions) -> Result<()> {
        Ok(())
    }
}

/// A session with a catalog, sequences and a clock that stands still, and nothing else.
struct Session {
    store: Arc<CatalogStore>,
    worker: Worker,
    engine: Engine,
    sequences: RefCell<SequenceSession>,
    cancel: Cancel,
}

impl Session {
    fn new() -> Session {
        Session::with(EngineOptions::default())
    }

    fn with(options: EngineOptions) -> Session {
        let (env, _) = Env::simulated(1);
        let home = Arc::new(MemoryHome::new(1 << 22));
        let (engine, _) = Engine::open(options, LogHome::from(home), env).unwrap();
        let store =
            CatalogStore::open(&engine, logstead_sql_ddl::pg_catalog::system_catalog()).unwrap();
        let worker = engine.worker(WorkerId(0));
        Session {
            store,
            worker,
            engine,
            sequences: RefCell::default(),
            cancel: Cancel::default(),
        }
    }

    fn catalog(&self) -> Arc<logstead_sql_catalog::Catalog> {
        self.store.current("postgres").unwrap()
    }

    /// Runs one statement in its own transaction; its rows as text.
    async fn run(&self, text: &str) -> Result<Vec<String>> {
        let path = self.search_path();
        let mut rows = Vec::new();
        for parsed in parse(text)? {
            let mut txn = self.worker.begin(Isolation::ReadCommitted);
            txn.begin_statement();
            if parsed.statement.is_planned() {
                let catalog = self.catalog();
                let planned = plan_statement(
                    &parsed.statement,
                    text,
                    &PlanContext {
                        catalog: &catalog,
                        search_path: &path,
                        param_types: &[],
                        parameters_fixed: false,
                        session: &ContextAdapter(self),
                        variables: None,
                        rows_of: &|_| 1000.0,
                        evaluate: logstead_sql_exec::evaluate,
                    },
                )?;
                let plan = planned.plan.check(&mut Everybody)?;
                let mut sink = Sink {
                    columns: planned.columns,
                    rows: &mut rows,
                };
                let mut cx = StatementContext {
                    txn: &mut txn,
                    params: &[],
                    session: &ContextAdapter(self),
                    catalog: &catalog,
                    engine: &self.engine,
                    cancel: &self.cancel,
                    events: &mut logstead_sql_exec::EventQueue::default(),
                    work_mem_bytes: 4 << 20,
                    spill: None,
                };
                let mut execution = Execution::new(Arc::new(prepare(plan)));
                match execution.run(&mut cx, 0, &mut sink).await? {
                    Progress::Done { .. } => {}
                    other => return Err(SqlError::internal(format!("{other:?}"))),
                }
            } else {
                let mut state = DdlState::default();
                let mut cx = DdlContext {
                    txn: &mut txn,
                    worker: &self.worker,
                    store: &self.store,
                    state: &mut state,
                    session: &ContextAdapter(self),
                    search_path: &path,
                    notices: &mut Vec::new(),
                    cancel: &self.cancel,
                    events: &mut logstead_sql_exec::EventQueue::default(),
                    work_mem_bytes: 4 << 20,
                    spill: None,
                    text,
                    in_use: &[],
                    given: ddl::StatementParameters::default(),
                };
                ddl::execute(&parsed, &mut cx).await?;
            }
            self.worker.flush(logstead_engine::FlushMode::Inline);
            txn.precommit()
                .await
                .map_err(|error| SqlError::internal(error.to_string()))?;
        }
        Ok(rows)
    }
}

struct Sink<'r> {
    columns: Vec<OutputColumn>,
    rows: &'r mut Vec<String>,
}

impl RowSink for Sink<'_> {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        let text = |(datum, column): (&Datum, &OutputColumn)| match datum {
            Datum::Null => "-".to_owned(),
            datum => text_io::message_text(datum, column.ty, &OutputStyle::UTC),
        };
        let texts: Vec<String> = row.iter().zip(&self.columns).map(text).collect();
        self.rows.push(texts.join("|"));
        Ok(())
    }
}

impl PartialContext for Session {
    fn clock(&self) -> Result<&dyn Clock> {
        Ok(self)
    }
    fn search_path(&self) -> Vec<String> {
        vec!["public".to_owned()]
    }
    fn relation_by_name(&self, name: &str) -> Result<Option<RelationId>> {
        calls::relation_by_text(
            name,
            NameLookup {
                catalog: &self.catalog(),
                search_path: &self.search_path(),
                session: &ContextAdapter(self),
            },
        )
    }
    fn relation_name(&self, relation: RelationId) -> Option<String> {
        logstead_sql_catalog::text::relation_text(&self.catalog(), relation, &self.search_path())
    }
    fn session_info(&self) -> Result<&dyn SessionInfo> {
        Ok(self)
    }
    fn sequences(&self) -> Result<&dyn Sequences> {
        Ok(self)
    }
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions> {
        Ok(self)
    }
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies> {
        Ok(self)
    }
}

impl Clock for Session {
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

impl SessionInfo for Session {
    fn database(&self) -> &str {
        "postgres"
    }
    fn session_user(&self) -> String {
        "postgres".to_owned()
    }
    fn current_user(&self) -> String {
        "postgres".to_owned()
    }
    fn backend_pid(&self) -> i32 {
        1
    }
    fn trigger_depth(&self) -> i32 {
        0
    }
    fn listening_channels(&self) -> Vec<Arc<str>> {
        Vec::new()
    }
}

impl Sequences for Session {
    fn nextval(&self, sequence: RelationId) -> Result<i64> {
        self.own_number(sequence)
    }
    fn own_number(&self, sequence: RelationId) -> Result<i64> {
        let mut sequences = self.sequences.borrow_mut();
        sequences.nextval(&self.store, &self.worker, &self.catalog(), sequence, |_| ())
    }
    fn currval(&self, sequence: RelationId) -> Result<i64> {
        self.sequences.borrow().currval(&self.catalog(), sequence)
    }
    fn lastval(&self) -> Result<i64> {
        self.sequences.borrow().lastval(&self.catalog())
    }
    fn setval(&self, _: RelationId, _: i64, _: bool) -> Result<i64> {
        needs_session("setval")
    }
}

impl CatalogFunctions for Session {
    fn catalog_call(&self, function: CatalogFunction, args: &[Datum]) -> Result<Datum> {
        let catalog = self.catalog();
        let cx = VirtualContext {
            catalog: &catalog,
            session: &ContextAdapter(self),
        };
        calls::catalog_call(function, args, &cx)
    }
    fn catalog_rows(&self, function: CatalogSet, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        let catalog = self.catalog();
        let cx = VirtualContext {
            catalog: &catalog,
            session: &ContextAdapter(self),
        };
        calls::catalog_rows(function, args, &cx)
    }
}

impl ReplyDependencies for Session {
    fn reads_sequences(&self) {}
    fn rests_on_commits_below(&self, _: Csn) {}
}

/// Lines as they are compared: in any order unless the statement orders its rows.
fn comparable(statement: &str, mut lines: Vec<String>) -> Vec<String> {
    if !statement.contains("order by") {
        lines.sort();
    }
    lines
}

#[test]
fn statements_answer_as_postgresql_does() {
    compare(&Session::new());
}

/// Every operation of the engine may find that something is not in memory, waits for it and is begun again: that shows
/// in no answer, in no sequence, and in no count.
#[test]
fn statements_answer_the_same_whatever_is_not_in_memory() {
    for absent_one_in in [2, 3, 7] {
        compare(&Session::with(EngineOptions {
            absent_one_in,
            ..EngineOptions::default()
        }));
    }
}

/// The same while all that can be evicted is, all the time: rows come back as they were.
#[test]
fn statements_answer_the_same_while_everything_is_evicted() {
    let session = Session::new();
    let interval = Some(std::time::Duration::from_millis(10));
    let checkpoints = Checkpointer::start(&session.engine, interval, Box::new(|_| ())).unwrap();
    let evictor = Evictor::start(&session.engine, true).unwrap();
    compare(&session);
    // Nothing is used any more: all of it goes, and comes again.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let statements = [
            "create table evicted (id int primary key, t text)",
            "insert into evicted select i, repeat('x', i % 100) from generate_series(1, 5000) i",
        ];
        for statement in statements {
            session.run(statement).await.unwrap();
        }
        while session.worker.collect_garbage(1 << 20) {}
        for _ in 0..3 {
            session.engine.checkpoint().unwrap();
            session.engine.evict_all();
            let sums = "select count(*), sum(length(t)), sum((select length(b.t) from evicted b where b.id = a.id)) \
                        from evicted a where id > 4000";
            let found = session.run(sums).await.unwrap();
            assert_eq!(found, ["1000|49500|49500"]);
        }
    });
    assert!(session.engine.eviction_stats().chunks_loaded > 0);
    drop((evictor, checkpoints));
}

/// What a row makes happen happens once, however often a part of it is begun again.
#[test]
fn what_is_begun_again_happens_once() {
    let statements = [
        "create sequence s",
        "create table t (id int primary key, n bigint unique, m bigint)",
        "create index on t (m)",
        "insert into t select i, nextval('s'), 0 from generate_series(1, 100) i",
        "update t set n = nextval('s') where id <= 50",
        "update t set m = nextval('s') where id = 7",
        "insert into t select i, i, i from generate_series(1, 100) i \
         on conflict (id) do update set n = nextval('s'), m = t.m + 1 where t.id > 50",
        "insert into t values (200, nextval('s'), 0) on conflict do nothing",
        "delete from t where id = 3 and nextval('s') > 0",
        "select nextval('s')",
    ];
    let queries = [
        "select count(*), min(n), max(n), sum(m) from t",
        "select sum((select count(*) from t b where b.m < a.n)), \
                sum((select max(b.n) from t b where b.n < a.n)) from t a",
        "select id, (select count(*) from t b where b.n < a.n) from t a \
         where (select count(*) from t b where b.m > a.m) > 3 order by id",
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut all = Vec::new();
    for absent_one_in in [0, 2, 5] {
        let session = Session::with(EngineOptions {
            absent_one_in,
            ..EngineOptions::default()
        });
        let found = runtime.block_on(async {
            let mut last = Vec::new();
            for statement in statements {
                last = session.run(statement).await.unwrap();
            }
            let mut found = vec![last.join(" ")];
            for statement in queries {
                found.push(session.run(statement).await.unwrap().join(" "));
            }
            found
        });
        all.push(found);
    }
    // 100, 50, 1, 50, 1 and 1 before it.
    assert_eq!(all[0][0], "204");
    assert_eq!(all[1], all[0]);
    assert_eq!(all[2], all[0]);
}

fn compare(session: &Session) {
    let mut expected: Vec<(&str, Vec<String>)> = Vec::new();
    for line in include_str!("executor/expected.txt").lines() {
        match (line.strip_prefix("> "), expected.last_mut()) {
            (Some(statement), _) => expected.push((statement, Vec::new())),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut differences = String::new();
    runtime.block_on(async {
        for (statement, lines) in expected {
            let answer = match session.run(statement).await {
                Ok(rows) => rows,
                // What a statement gave before it failed is not shown.
                Err(error) => vec![format!("ERROR:  {}", error.fields().message)],
            };
            let (wanted, got) = (comparable(statement, lines), comparable(statement, answer));
            if wanted != got {
                differences += &format!("> {statement}\n  wanted {wanted:?}\n  got    {got:?}\n");
            }
        }
    });
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn subqueries_let_others_run_and_keep_deadlines() {
    let session = Session::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let correlated = "select count(*) from generate_series(1, 100) a \
                      where (select count(*) from generate_series(1, 2000) b where b > a) > 0";
    let alone =
        "select (select count(*) from generate_series(1, 300) a, generate_series(1, 300) b)";
    for statement in [correlated, alone] {
        let done = std::cell::Cell::new(false);
        let turns = runtime.block_on(async {
            let run = async {
                session.run(statement).await.unwrap();
                done.set(true);
            };
            let others = async {
                let mut turns = 0;
                while !done.get() {
                    turns += 1;
                    tokio::task::yield_now().await;
                }
                turns
            };
            tokio::join!(run, others).1
        });
        assert!(turns > 50, "{turns} turns for others during {statement}");
    }
    session.cancel.set_deadline(Some(0));
    for statement in [correlated, alone] {
        let failed = runtime.block_on(session.run(statement)).unwrap_err();
        assert_eq!(failed.code().as_str(), "57014", "{statement}");
        session.cancel.clear();
        session.cancel.set_deadline(Some(0));
    }
}
