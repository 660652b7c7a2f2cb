//! EXPLAIN, VACUUM, ANALYZE, CLUSTER, REINDEX, TRUNCATE, LOCK, NOTIFY.

use super::Parser;
use super::create_table::{TableRules, option};
use super::names::{is_col_id, is_non_reserved_word};
use crate::ast::{
    ClusterStmt, DefElem, ExplainStmt, LockMode, LockStmt, NotifyStmt, Persistence, ReindexStmt,
    ReindexTarget, Stmt, TruncateStmt, VacuumRelation, VacuumStmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    fn at_analyze(&self) -> bool {
        self.is_any(&[K::Analyze, K::Analyse])
    }

    /// `'(' utility_option_list ')'`
    fn utility_options(&mut self) -> Result<Vec<DefElem>> {
        self.parens(|parser| parser.list(Self::utility_option_elem))
    }

    /// `utility_option_elem`
    fn utility_option_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        let name = match self.at_analyze() {
            true => {
                self.pass();
                "analyze".into()
            }
            false => self.non_reserved_word()?,
        };
        let arg = self.utility_option_arg()?;
        Ok(option(&name, arg, location))
    }

    /// An option that a word of the statement is, if that comes next.
    fn word_option(&mut self, word: K, options: &mut Vec<DefElem>) {
        let location = self.here();
        if self.take(word) {
            options.push(option(word.word(), None, location));
        }
    }

    /// `ExplainStmt`
    pub(super) fn explain_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Explain)?;
        let mut options = Vec::new();
        let location = self.here();
        if self.at(T::LParen) && self.at_utility_options() {
            options = self.utility_options()?;
        } else {
            if self.at_analyze() {
                self.pass();
                options.push(option("analyze", None, location));
            }
            self.word_option(K::Verbose, &mut options);
        }
        let (query, query_range) = self.with_range(Self::explainable_stmt)?;
        Ok(Stmt::Explain(Box::new(ExplainStmt {
            query,
            options,
            query_range,
        })))
    }

    /// Are there options in the parentheses, not a query?
    fn at_utility_options(&self) -> bool {
        let inside = self.kind_at(1);
        let is_query = inside == T::LParen
            || inside == T::WithLa
            || matches!(inside, T::Keyword(K::Select | K::With | K::Table))
            // VALUES is a word that may be an option.
            || inside == T::Keyword(K::Values) && self.kind_at(2) == T::LParen;
        !is_query
            && (is_non_reserved_word(inside)
                || matches!(inside, T::Keyword(K::Analyze | K::Analyse)))
    }

    /// `ExplainableStmt`
    fn explainable_stmt(&mut self) -> Result<Stmt> {
        if self.at_preparable() {
            return self.preparable_stmt();
        }
        match self.kind() {
            T::Keyword(K::Declare) => self.declare_cursor_stmt(),
            T::Keyword(K::Execute) => Ok(Stmt::Execute(Box::new(self.execute_stmt()?))),
            T::Keyword(K::Refresh) => self.refresh_mat_view_stmt(),
            T::Keyword(K::Create) => self.explained_create(),
            _ => self.unexpected(),
        }
    }

    /// CREATE TABLE AS, CREATE MATERIALIZED VIEW: what of CREATE can be explained.
    fn explained_create(&mut self) -> Result<Stmt> {
        self.pass();
        let persistence = match self.kind() {
            T::Keyword(K::Temporary | K::Temp) => {
                self.pass();
                Persistence::Temporary
            }
            T::Keyword(K::Local | K::Global) => {
                self.pass();
                if !self.take(K::Temporary) {
                    self.expect(K::Temp)?;
                }
                Persistence::Temporary
            }
            T::Keyword(K::Unlogged) => {
                self.pass();
                Persistence::Unlogged
            }
            _ => Persistence::Permanent,
        };
        if persistence != Persistence::Temporary && self.take(K::Materialized) {
            self.expect(K::View)?;
            return self.create_mat_view(persistence);
        }
        self.expect(K::Table)?;
        self.create_table(persistence, TableRules::OfQuery)
    }

    /// `VacuumStmt`
    pub(super) fn vacuum_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Vacuum)?;
        let mut options = Vec::new();
        if self.at(T::LParen) {
            options = self.utility_options()?;
        } else {
            self.word_option(K::Full, &mut options);
            self.word_option(K::Freeze, &mut options);
            self.word_option(K::Verbose, &mut options);
            let location = self.here();
            if self.at_analyze() {
                self.pass();
                options.push(option("analyze", None, location));
            }
        }
        let rels = self.opt_vacuum_relation_list()?;
        Ok(Stmt::Vacuum(Box::new(VacuumStmt {
            options,
            rels,
            is_vacuumcmd: true,
        })))
    }

    /// `AnalyzeStmt`
    pub(super) fn analyze_stmt(&mut self) -> Result<Stmt> {
        self.pass();
        let mut options = Vec::new();
        match self.at(T::LParen) {
            true => options = self.utility_options()?,
            false => self.word_option(K::Verbose, &mut options),
        }
        let rels = self.opt_vacuum_relation_list()?;
        Ok(Stmt::Vacuum(Box::new(VacuumStmt {
            options,
            rels,
            is_vacuumcmd: false,
        })))
    }

    /// `opt_vacuum_relation_list`
    fn opt_vacuum_relation_list(&mut self) -> Result<Vec<VacuumRelation>> {
        match is_col_id(self.kind()) {
            true => self.list(|parser| {
                let relation = parser.qualified_name()?;
                Ok(VacuumRelation {
                    relation,
                    va_cols: parser.opt_column_list()?,
                })
            }),
            false => Ok(Vec::new()),
        }
    }

    /// `ClusterStmt`
    pub(super) fn cluster_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Cluster)?;
        let mut stmt = ClusterStmt {
            relation: None,
            indexname: None,
            params: Vec::new(),
        };
        let has_options = self.at(T::LParen);
        match has_options {
            true => stmt.params = self.utility_options()?,
            false => self.word_option(K::Verbose, &mut stmt.params),
        }
        if has_options || is_col_id(self.kind()) {
            // An index may be named in front of its table.
            if !has_options && self.is_at(1, K::On) {
                stmt.indexname = Some(self.col_id()?);
                self.pass();
                stmt.relation = Some(self.qualified_name()?);
            } else {
                stmt.relation = Some(self.qualified_name()?);
                stmt.indexname = self.access_method_clause()?;
            }
        }
        Ok(Stmt::Cluster(Box::new(stmt)))
    }

    /// `ReindexStmt`
    pub(super) fn reindex_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Reindex)?;
        let mut params = match self.at(T::LParen) {
            true => self.utility_options()?,
            false => Vec::new(),
        };
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        if !matches!(
            word,
            K::Index | K::Table | K::Schema | K::System | K::Database
        ) {
            return self.unexpected();
        }
        self.pass();
        self.word_option(K::Concurrently, &mut params);
        let target = match word {
            K::Index => ReindexTarget::Index(self.qualified_name()?),
            K::Table => ReindexTarget::Table(self.qualified_name()?),
            K::Schema => ReindexTarget::Schema(self.col_id()?),
            K::System => ReindexTarget::System(self.col_id()?),
            _ => ReindexTarget::Database(self.col_id()?),
        };
        Ok(Stmt::Reindex(Box::new(ReindexStmt { target, params })))
    }

    /// `TruncateStmt`
    pub(super) fn truncate_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Truncate)?;
        self.take(K::Table);
        let relations = self.list(Self::relation_expr)?;
        let restart_seqs = self.is(K::Restart);
        if restart_seqs || self.is(K::Continue) {
            self.pass();
            self.expect(K::Identity)?;
        }
        let behavior = self.opt_drop_behavior();
        Ok(Stmt::Truncate(Box::new(TruncateStmt {
            relations,
            restart_seqs,
            behavior,
        })))
    }

    /// `LockStmt`
    pub(super) fn lock_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Lock)?;
        self.take(K::Table);
        let relations = self.list(Self::relation_expr)?;
        let mode = match self.take(K::In) {
            true => {
                let mode = self.lock_type()?;
                self.expect(K::Mode)?;
                mode
            }
            false => LockMode::AccessExclusive,
        };
        let nowait = self.take(K::Nowait);
        Ok(Stmt::Lock(Box::new(LockStmt {
            relations,
            mode,
            nowait,
        })))
    }

    /// `lock_type`
    fn lock_type(&mut self) -> Result<LockMode> {
        if self.take(K::Access) {
            return self.share_or_exclusive(LockMode::AccessShare, LockMode::AccessExclusive);
        }
        if self.take(K::Row) {
            return self.share_or_exclusive(LockMode::RowShare, LockMode::RowExclusive);
        }
        if !self.take(K::Share) {
            self.expect(K::Exclusive)?;
            return Ok(LockMode::Exclusive);
        }
        if self.take(K::Update) {
            self.expect(K::Exclusive)?;
            return Ok(LockMode::ShareUpdateExclusive);
        }
        if self.take(K::Row) {
            self.expect(K::Exclusive)?;
            return Ok(LockMode::ShareRowExclusive);
        }
        Ok(LockMode::Share)
    }

    fn share_or_exclusive(&mut self, share: LockMode, exclusive: LockMode) -> Result<LockMode> {
        if self.take(K::Share) {
            return Ok(share);
        }
        self.expect(K::Exclusive)?;
        Ok(exclusive)
    }

    /// `NotifyStmt`
    pub(super) fn notify_stmt(&mut self) -> Result<Stmt> {
        self.expect(K::Notify)?;
        let conditionname = self.col_id()?;
        let payload = match self.take_token(T::Comma) {
            true => Some(self.sconst()?),
            false => None,
        };
        Ok(Stmt::Notify(Box::new(NotifyStmt {
            conditionname,
            payload,
        })))
    }
}
