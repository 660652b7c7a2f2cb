//! INSERT, UPDATE, DELETE, MERGE.

use super::Parser;
use super::names::is_col_id;
use crate::ast::{
    Alias, CurrentOfExpr, DeleteStmt, Expr, InferClause, InsertSource, InsertStmt, MergeAction,
    MergeStmt, MergeWhenClause, OnConflictClause, Overriding, ResTarget, SetClause, Stmt,
    UpdateStmt, WithClause,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

type With = Option<Box<WithClause>>;

impl Parser<'_> {
    /// `PreparableStmt`
    pub(super) fn preparable_stmt(&mut self) -> Result<Stmt> {
        let start = self.here();
        let with_clause = self.opt_with_clause()?;
        match self.kind() {
            T::Keyword(K::Insert) => self.insert_stmt(with_clause),
            T::Keyword(K::Update) => self.update_stmt(with_clause),
            T::Keyword(K::Delete) => self.delete_stmt(with_clause),
            T::Keyword(K::Merge) => self.merge_stmt(with_clause),
            _ => {
                let mut select = self.select_after_with(with_clause)?;
                select.location = start;
                Ok(Stmt::Select(Box::new(select)))
            }
        }
    }

    /// Does a `PreparableStmt` begin here?
    pub(super) fn at_preparable(&self) -> bool {
        self.at_select()
            || self.at(T::LParen)
            || self.is_any(&[K::Insert, K::Update, K::Delete, K::Merge])
    }

    /// `InsertStmt`
    fn insert_stmt(&mut self, with_clause: With) -> Result<Stmt> {
        self.expect_all(&[K::Insert, K::Into])?;
        let mut relation = self.qualified_name()?;
        let location = self.here();
        if self.take(K::As) {
            let name = self.col_id()?;
            relation.alias = Some(Box::new(Alias {
                name,
                colnames: Vec::new(),
                location,
            }));
        }
        let mut cols = Vec::new();
        // A query may stand in parentheses as well.
        if self.at(T::LParen) && is_col_id(self.kind_at(1)) && !self.at_query_behind_parenthesis() {
            cols = self.parens(Self::insert_column_list)?;
        }
        let overriding = self.opt_overriding()?;
        let source = match cols.is_empty() && overriding.is_none() && self.take(K::Default) {
            true => {
                self.expect(K::Values)?;
                InsertSource::DefaultValues
            }
            false => InsertSource::Select(Box::new(self.select_stmt()?)),
        };
        let on_conflict_clause = self.opt_on_conflict()?;
        let returning_list = self.returning_clause()?;
        Ok(Stmt::Insert(Box::new(InsertStmt {
            with_clause,
            relation,
            cols,
            overriding,
            source,
            on_conflict_clause,
            returning_list,
        })))
    }

    /// VALUES is a name of columns as well.
    fn at_query_behind_parenthesis(&self) -> bool {
        self.is_at(1, K::Values) && self.kind_at(2) == T::LParen
    }

    /// `insert_column_list`
    fn insert_column_list(&mut self) -> Result<Vec<ResTarget>> {
        self.list(Self::set_target)
    }

    /// `OVERRIDING override_kind VALUE_P`
    fn opt_overriding(&mut self) -> Result<Option<Overriding>> {
        if !self.take(K::Overriding) {
            return Ok(None);
        }
        let kind = match self.take(K::User) {
            true => Overriding::User,
            false => {
                self.expect(K::System)?;
                Overriding::System
            }
        };
        self.expect(K::Value)?;
        Ok(Some(kind))
    }

    /// `set_target`, `insert_column_item`
    fn set_target(&mut self) -> Result<ResTarget> {
        let location = self.here();
        let name = Some(self.col_id()?);
        let indirection = self.indirection()?;
        self.check_indirection(&indirection)?;
        Ok(ResTarget {
            name,
            indirection,
            val: None,
            location,
        })
    }

    /// `opt_on_conflict`
    fn opt_on_conflict(&mut self) -> Result<Option<Box<OnConflictClause>>> {
        let location = self.here();
        if !self.take(K::On) {
            return Ok(None);
        }
        self.expect(K::Conflict)?;
        let at = self.here();
        let infer = if self.at(T::LParen) {
            let elems = self.parens(|parser| parser.list(Self::index_elem))?;
            let predicate = self.where_clause()?;
            Some(InferClause::Index(elems, predicate, at))
        } else if self.take(K::On) {
            self.expect(K::Constraint)?;
            Some(InferClause::Constraint(self.col_id()?, at))
        } else {
            None
        };
        self.expect(K::Do)?;
        let update = match self.take(K::Nothing) {
            true => None,
            false => {
                self.expect_all(&[K::Update, K::Set])?;
                let targets = self.set_clause_list()?;
                Some((targets, self.where_clause()?))
            }
        };
        Ok(Some(Box::new(OnConflictClause {
            infer,
            update,
            location,
        })))
    }

    /// `returning_clause`
    fn returning_clause(&mut self) -> Result<Vec<ResTarget>> {
        match self.take(K::Returning) {
            true => self.target_list(),
            false => Ok(Vec::new()),
        }
    }

    /// `set_clause_list`
    fn set_clause_list(&mut self) -> Result<Vec<SetClause>> {
        self.list(|parser| {
            if parser.at(T::LParen) {
                let targets = parser.parens(|parser| parser.list(Self::set_target))?;
                parser.expect_token(T::Equals)?;
                return Ok(SetClause::Multiple(targets, parser.a_expr()?));
            }
            let mut target = parser.set_target()?;
            parser.expect_token(T::Equals)?;
            target.val = Some(parser.a_expr()?);
            Ok(SetClause::Single(target))
        })
    }

    /// `where_or_current_clause`
    fn where_or_current_clause(&mut self) -> Result<Option<Expr>> {
        if self.are(&[K::Where, K::Current, K::Of]) {
            self.pass_all(1);
            let location = self.here();
            self.pass_all(2);
            let cursor_name = self.col_id()?;
            return Ok(Some(Expr::CurrentOf(Box::new(CurrentOfExpr {
                cursor_name,
                location,
            }))));
        }
        self.where_clause()
    }

    /// `UpdateStmt`
    fn update_stmt(&mut self, with_clause: With) -> Result<Stmt> {
        self.expect(K::Update)?;
        let relation = self.relation_expr_opt_alias()?;
        self.expect(K::Set)?;
        let target_list = self.set_clause_list()?;
        let from_clause = self.from_clause()?;
        let where_clause = self.where_or_current_clause()?;
        let returning_list = self.returning_clause()?;
        Ok(Stmt::Update(Box::new(UpdateStmt {
            with_clause,
            relation,
            target_list,
            from_clause,
            where_clause,
            returning_list,
        })))
    }

    /// `DeleteStmt`
    fn delete_stmt(&mut self, with_clause: With) -> Result<Stmt> {
        self.expect_all(&[K::Delete, K::From])?;
        let relation = self.relation_expr_opt_alias()?;
        let using_clause = match self.take(K::Using) {
            true => self.from_list()?,
            false => Vec::new(),
        };
        let where_clause = self.where_or_current_clause()?;
        let returning_list = self.returning_clause()?;
        Ok(Stmt::Delete(Box::new(DeleteStmt {
            with_clause,
            relation,
            using_clause,
            where_clause,
            returning_list,
        })))
    }

    /// `MergeStmt`
    fn merge_stmt(&mut self, with_clause: With) -> Result<Stmt> {
        self.expect_all(&[K::Merge, K::Into])?;
        let relation = self.relation_expr_opt_alias()?;
        self.expect(K::Using)?;
        let source_relation = self.table_ref()?;
        self.expect(K::On)?;
        let join_condition = self.a_expr()?;
        let mut merge_when_clauses = vec![self.merge_when_clause()?];
        while self.is(K::When) {
            merge_when_clauses.push(self.merge_when_clause()?);
        }
        Ok(Stmt::Merge(Box::new(MergeStmt {
            with_clause,
            relation,
            source_relation,
            join_condition,
            merge_when_clauses,
        })))
    }

    /// `merge_when_clause`
    fn merge_when_clause(&mut self) -> Result<MergeWhenClause> {
        self.expect(K::When)?;
        let matched = !self.take(K::Not);
        self.expect(K::Matched)?;
        let condition = match self.take(K::And) {
            true => Some(self.a_expr()?),
            false => None,
        };
        self.expect(K::Then)?;
        let action = match self.kind() {
            T::Keyword(K::Do) => {
                self.pass();
                self.expect(K::Nothing)?;
                MergeAction::Nothing
            }
            T::Keyword(K::Update) if matched => {
                self.pass();
                self.expect(K::Set)?;
                MergeAction::Update(self.set_clause_list()?)
            }
            T::Keyword(K::Delete) if matched => {
                self.pass();
                MergeAction::Delete
            }
            T::Keyword(K::Insert) if !matched => {
                self.pass();
                self.merge_insert()?
            }
            _ => return self.unexpected(),
        };
        Ok(MergeWhenClause {
            matched,
            condition,
            action,
        })
    }

    /// `merge_insert`, behind INSERT.
    fn merge_insert(&mut self) -> Result<MergeAction> {
        let mut cols = Vec::new();
        if self.take(K::Default) {
            self.expect(K::Values)?;
            return Ok(MergeAction::Insert {
                cols,
                overriding: None,
                values: None,
            });
        }
        if self.at(T::LParen) {
            cols = self.parens(Self::insert_column_list)?;
        }
        let overriding = self.opt_overriding()?;
        self.expect(K::Values)?;
        let values = Some(self.parens(Self::expr_list)?);
        Ok(MergeAction::Insert {
            cols,
            overriding,
            values,
        })
    }
}
