//! A catalog over an engine in memory, and sessions that run DDL on it.

use super::system_relations::TestContext;
use crate as ddl;
use crate::{DdlContext, DdlState, Notice};
use logstead_engine::{Engine, EngineOptions, FlushMode, Isolation, Txn, Worker};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_sql_catalog::classes::{INFORMATION_SCHEMA_NAMESPACE, PG_CATALOG_NAMESPACE};
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::{Catalog, CatalogStore};
use logstead_sql_exec::Cancel;
use logstead_sql_parse as parse;
use logstead_sql_types::error::Result;
use logstead_types::WorkerId;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Completes a future that never waits for another thread.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
    panic!("the future waits for ever");
}

pub(super) struct World {
    pub(super) home: MemoryHome,
    pub(super) store: Arc<CatalogStore>,
    pub(super) worker: Worker,
    pub(super) cancel: Cancel,
    pub(super) session: TestContext,
    pub(super) path: Vec<String>,
}

/// A transaction with DDL.
pub(super) struct Open {
    pub(super) txn: Txn,
    pub(super) state: DdlState,
}

impl World {
    pub(super) fn open(home: MemoryHome) -> World {
        let (env, _) = Env::simulated(1);
        let (engine, _) =
            Engine::open(EngineOptions::default(), LogHome::from(home.clone()), env).unwrap();
        let store = CatalogStore::open(&engine, crate::pg_catalog::system_catalog()).unwrap();
        let worker = engine.worker(WorkerId(0));
        let path = vec!["public".to_owned()];
        World {
            home,
            store,
            worker,
            cancel: Cancel::default(),
            session: TestContext::new(),
            path,
        }
    }

    pub(super) fn new() -> World {
        World::open(MemoryHome::new(16 << 20))
    }

    /// What was flushed, opened again.
    pub(super) fn reopen(self) -> World {
        self.worker.flush(FlushMode::Inline);
        let home = self.home.clone();
        home.crash();
        drop(self);
        World::open(home)
    }

    pub(super) fn begin(&self) -> Open {
        Open {
            txn: self.worker.begin(Isolation::ReadCommitted),
            state: DdlState::default(),
        }
    }

    pub(super) async fn execute(
        &self,
        open: &mut Open,
        sql: &str,
    ) -> Result<(String, Vec<Notice>)> {
        let mut notices = Vec::new();
        let mut tag = String::new();
        for parsed in parse::parse(sql)? {
            open.txn.begin_statement();
            let catalog =
                open.state
                    .catalog(&self.store, self.session.database.get(), &mut open.txn)?;
            self.session.catalog.replace(Some(catalog));
            let mut cx = DdlContext {
                txn: &mut open.txn,
                worker: &self.worker,
                store: &self.store,
                state: &mut open.state,
                session: &ContextAdapter(&self.session),
                search_path: &self.path,
                notices: &mut notices,
                cancel: &self.cancel,
                events: &mut logstead_sql_exec::after_triggers::EventQueue::default(),
                work_mem_bytes: 1 << 20,
                spill: None,
                in_use: &[],
                text: sql,
                given: crate::StatementParameters::default(),
            };
            tag = ddl::execute(&parsed, &mut cx).await?;
        }
        Ok((tag, notices))
    }

    pub(super) fn run_in(&self, open: &mut Open, sql: &str) -> Result<(String, Vec<Notice>)> {
        block_on(self.execute(open, sql))
    }

    /// Runs statements in one transaction and commits it; an error rolls it back.
    pub(super) fn run(&self, sql: &str) -> Result<(String, Vec<Notice>)> {
        let mut open = self.begin();
        let done = self.run_in(&mut open, sql)?;
        block_on(open.txn.precommit()).unwrap();
        Ok(done)
    }

    /// The same in another database.
    pub(super) fn run_on(
        &self,
        database: &'static str,
        sql: &str,
    ) -> Result<(String, Vec<Notice>)> {
        let before = self.session.database.replace(database);
        let done = self.run(sql);
        self.session.database.set(before);
        done
    }

    /// The error of a statement, as code and message.
    pub(super) fn error(&self, sql: &str) -> String {
        self.run(sql).expect_err(sql).to_string()
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.store.current("postgres").unwrap()
    }

    /// Names of user relations and indexes, sorted.
    pub(super) fn names(&self) -> String {
        names(&self.catalog())
    }
}

pub(super) fn names(catalog: &Catalog) -> String {
    let mut names: Vec<&str> = catalog
        .names
        .iter()
        .filter(|((schema, _), _)| {
            *schema != PG_CATALOG_NAMESPACE && *schema != INFORMATION_SCHEMA_NAMESPACE
        })
        .map(|((_, name), _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.join(" ")
}
