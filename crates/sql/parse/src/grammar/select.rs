//! Queries (`SelectStmt`).

use super::Parser;
use super::expr::{Continuation, Rule, begins_expr};
use super::names::is_col_id;
use crate::ast::{
    ColumnRef, CommonTableExpr, CteCycleClause, CteSearchClause, Distinct, Expr, GroupingItem,
    IntoClause, LimitCount, Location, LockStrength, LockWaitPolicy, LockingClause, Names, NodeBox,
    OnCommitAction, Persistence, RangeVar, ResTarget, SelectBody, SelectCore, SelectLimit,
    SelectStmt, SetOp, SetOperation, SortBy, SortByDir, SortByNulls, TableRef, WithClause,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// A query without clauses of its own.
fn query(body: SelectBody, location: Location) -> SelectStmt {
    SelectStmt {
        with_clause: None,
        body,
        sort_clause: Vec::new(),
        limit: None,
        locking_clause: Vec::new(),
        as_of: None,
        location,
    }
}

/// UNION and EXCEPT bind less than INTERSECT.
fn strength(op: SetOperation) -> u8 {
    match op {
        SetOperation::Union | SetOperation::Except => 1,
        SetOperation::Intersect => 2,
    }
}

impl Parser<'_> {
    /// `select_with_parens`, where nothing else may stand.
    pub(super) fn select_with_parens(&mut self) -> Result<SelectStmt> {
        self.nested(|parser| {
            parser.subselect(|parser| {
                parser.expect_token(T::LParen)?;
                let select = match parser.at(T::LParen) {
                    true => {
                        let location = parser.here();
                        let inner = parser.select_with_parens()?;
                        match parser.at(T::RParen) {
                            true => inner,
                            false => parser.select_no_parens_from(inner, location)?,
                        }
                    }
                    false => parser.select_no_parens()?,
                };
                parser.expect_token(T::RParen)?;
                Ok(select)
            })
        })
    }

    /// `SelectStmt`
    pub(super) fn select_stmt(&mut self) -> Result<SelectStmt> {
        self.select_no_parens()
    }

    /// `select_no_parens`; and `select_with_parens`, where both may stand.
    pub(super) fn select_no_parens(&mut self) -> Result<SelectStmt> {
        self.nested(|parser| {
            let with_clause = parser.opt_with_clause()?;
            let start = parser.here();
            let first = parser.select_clause_operand()?;
            parser.select_rest(first, with_clause, start)
        })
    }

    /// The same behind WITH.
    pub(super) fn select_after_with(
        &mut self,
        with_clause: Option<Box<WithClause>>,
    ) -> Result<SelectStmt> {
        self.nested(|parser| {
            let start = parser.here();
            let first = parser.select_clause_operand()?;
            parser.select_rest(first, with_clause, start)
        })
    }

    /// The rest of a `select_no_parens` whose first part, in parentheses, has been read.
    pub(super) fn select_no_parens_from(
        &mut self,
        first: SelectStmt,
        start: Location,
    ) -> Result<SelectStmt> {
        self.select_rest(first, None, start)
    }

    fn select_rest(
        &mut self,
        first: SelectStmt,
        with_clause: Option<Box<WithClause>>,
        start: Location,
    ) -> Result<SelectStmt> {
        let mut select = self.set_operations(first, 0, start)?;
        let sort_clause = self.opt_sort_clause()?;
        self.opt_as_of()?;
        let mut locking = Vec::new();
        let mut limit = None;
        if self.is(K::For) {
            locking = self.for_locking_clause()?;
            limit = self.opt_select_limit()?;
        } else {
            limit = limit.or(self.opt_select_limit()?);
            if limit.is_some() && self.is(K::For) {
                locking = self.for_locking_clause()?;
            }
        }
        self.opt_as_of()?;
        self.insert_select_options(&mut select, sort_clause, locking, limit, with_clause)?;
        if let Some(as_of) = self.as_of_of_query() {
            select.as_of = Some(as_of);
        }
        Ok(select)
    }

    /// `insertSelectOptions`: what stands behind a query in parentheses may not say again what it says itself.
    fn insert_select_options(
        &self,
        select: &mut SelectStmt,
        sort_clause: Vec<SortBy>,
        locking: Vec<LockingClause>,
        limit: Option<(SelectLimit, Location)>,
        with_clause: Option<Box<WithClause>>,
    ) -> Result<()> {
        if let Some(first) = sort_clause.first() {
            if !select.sort_clause.is_empty() {
                let at = first.node.location();
                return Err(self.syntax_error("multiple ORDER BY clauses not allowed", at));
            }
            select.sort_clause = sort_clause;
        }
        select.locking_clause.extend(locking);
        if let Some((limit, _)) = limit {
            let had = select.limit.take().map(|limit| *limit).unwrap_or_default();
            if let (Some(offset), Some(_)) = (&limit.offset, &had.offset) {
                return Err(
                    self.syntax_error("multiple OFFSET clauses not allowed", offset.location())
                );
            }
            if let (Some(count), Some(_)) = (&limit.count, &had.count) {
                let at = match count {
                    LimitCount::All(at) => *at,
                    LimitCount::Count(count) => count.location(),
                };
                return Err(self.syntax_error("multiple LIMIT clauses not allowed", at));
            }
            if limit.count.is_some() {
                if had.count.is_some() {
                    return Err(
                        self.syntax_error("multiple limit options not allowed", Location::UNKNOWN)
                    );
                }
                self.check_with_ties(select, &limit)?;
            }
            select.limit = Some(Box::new(SelectLimit {
                offset: limit.offset.or(had.offset),
                with_ties: limit.with_ties || had.with_ties,
                is_fetch: limit.is_fetch || had.is_fetch,
                count: limit.count.or(had.count),
            }));
        }
        if let Some(with_clause) = with_clause {
            if select.with_clause.is_some() {
                let at = with_clause.location;
                return Err(self.syntax_error("multiple WITH clauses not allowed", at));
            }
            select.with_clause = Some(with_clause);
        }
        Ok(())
    }

    fn check_with_ties(&self, select: &SelectStmt, limit: &SelectLimit) -> Result<()> {
        if !limit.with_ties {
            return Ok(());
        }
        if select.sort_clause.is_empty() {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(self.syntax_error(message, Location::UNKNOWN));
        }
        let skips = |lock: &LockingClause| lock.wait_policy == LockWaitPolicy::SkipLocked;
        if select.locking_clause.iter().any(skips) {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            return Err(self.syntax_error(message, Location::UNKNOWN));
        }
        Ok(())
    }

    /// Queries with UNION and its like between them, of which the first has been read. A chain is read in a loop.
    fn set_operations(
        &mut self,
        first: SelectStmt,
        stronger_than: u8,
        start: Location,
    ) -> Result<SelectStmt> {
        let mut left = first;
        loop {
            let op = match self.kind() {
                T::Keyword(K::Union) => SetOperation::Union,
                T::Keyword(K::Intersect) => SetOperation::Intersect,
                T::Keyword(K::Except) => SetOperation::Except,
                _ => return Ok(left),
            };
            let strength = strength(op);
            if strength <= stronger_than {
                return Ok(left);
            }
            self.as_of_has_parts()?;
            let location = self.here();
            self.pass();
            // `set_quantifier`
            let all = self.take(K::All);
            if !all {
                self.take(K::Distinct);
            }
            let right_start = self.here();
            let right = self.select_clause_operand()?;
            let right = self.set_operations(right, strength, right_start)?;
            self.one_level_more();
            left = query(
                SelectBody::SetOp(NodeBox::new(SetOp {
                    op,
                    all,
                    larg: left,
                    rarg: right,
                    location,
                })),
                start,
            );
        }
    }

    /// `simple_select` without set operations, or `select_with_parens`.
    fn select_clause_operand(&mut self) -> Result<SelectStmt> {
        let location = self.here();
        match self.kind() {
            T::LParen => self.select_with_parens(),
            T::Keyword(K::Select) => {
                self.pass();
                let core = self.select_core(location)?;
                self.opt_as_of()?;
                Ok(query(SelectBody::Select(Box::new(core)), location))
            }
            T::Keyword(K::Values) => {
                self.pass();
                let rows = self.list(|parser| parser.parens(Self::expr_list))?;
                self.opt_as_of()?;
                Ok(query(SelectBody::Values(rows), location))
            }
            T::Keyword(K::Table) => {
                self.pass();
                let relation = self.relation_expr()?;
                self.opt_as_of()?;
                Ok(query(
                    SelectBody::Select(Box::new(select_all_of(relation))),
                    location,
                ))
            }
            _ => self.unexpected(),
        }
    }

    /// SELECT, behind its first word.
    fn select_core(&mut self, location: Location) -> Result<SelectCore> {
        let distinct = match self.take(K::Distinct) {
            true => self.distinct_on()?,
            false => {
                self.take(K::All);
                Distinct::No
            }
        };
        let mut core = SelectCore {
            distinct,
            location,
            ..SelectCore::default()
        };
        if core.distinct != Distinct::No || self.at_target() {
            core.target_list = self.target_list()?;
        }
        core.into_clause = self.into_clause()?;
        core.from_clause = self.from_clause()?;
        self.opt_as_of()?;
        core.where_clause = self.where_clause()?;
        if self.take(K::Group) {
            self.expect(K::By)?;
            // `set_quantifier`
            core.group_distinct = self.take(K::Distinct);
            if !core.group_distinct {
                self.take(K::All);
            }
            core.group_clause = self.list(Self::group_by_item)?;
        }
        if self.take(K::Having) {
            core.having_clause = Some(self.a_expr()?);
        }
        core.window_clause = self.window_clause()?;
        Ok(core)
    }

    /// `distinct_clause`, behind its first word.
    fn distinct_on(&mut self) -> Result<Distinct> {
        match self.take(K::On) {
            true => Ok(Distinct::On(self.parens(Self::expr_list)?)),
            false => Ok(Distinct::All),
        }
    }

    fn at_target(&self) -> bool {
        self.at(T::Star) || begins_expr(self.kind())
    }

    /// `target_list`
    pub(super) fn target_list(&mut self) -> Result<Vec<ResTarget>> {
        self.list(Self::target_el)
    }

    /// `target_el`
    fn target_el(&mut self) -> Result<ResTarget> {
        let location = self.here();
        if self.take_token(T::Star) {
            let column = ColumnRef {
                fields: Names::new(),
                star: true,
                location,
            };
            let val = Some(Expr::ColumnRef(Box::new(column)));
            return Ok(ResTarget {
                name: None,
                indirection: Vec::new(),
                val,
                location,
            });
        }
        let val = Some(self.a_expr_before(Continuation::Label)?);
        let name = match self.kind() {
            T::Keyword(K::As) if !self.at_as_of() => {
                self.pass();
                Some(self.col_label()?)
            }
            T::Keyword(word) if word.is_bare_label() => Some(self.col_label()?),
            T::Ident | T::QuotedIdent => Some(self.col_label()?),
            _ => None,
        };
        Ok(ResTarget {
            name,
            indirection: Vec::new(),
            val,
            location,
        })
    }

    /// `into_clause`
    fn into_clause(&mut self) -> Result<Option<Box<IntoClause>>> {
        let location = self.here();
        if !self.take(K::Into) {
            return Ok(None);
        }
        let rel = self.opt_temp_table_name()?;
        Ok(Some(Box::new(into_table(rel, location))))
    }

    /// `OptTempTableName`
    fn opt_temp_table_name(&mut self) -> Result<RangeVar> {
        // A table may have one of these names.
        let is_word = self.is_at(1, K::Table) || is_col_id(self.kind_at(1));
        let persistence = match self.kind() {
            _ if !is_word => None,
            T::Keyword(K::Temporary | K::Temp) => {
                self.pass();
                Some(Persistence::Temporary)
            }
            T::Keyword(K::Local | K::Global)
                if self.is_at(1, K::Temporary) || self.is_at(1, K::Temp) =>
            {
                self.pass_all(2);
                Some(Persistence::Temporary)
            }
            T::Keyword(K::Unlogged) => {
                self.pass();
                Some(Persistence::Unlogged)
            }
            _ => None,
        };
        self.take(K::Table);
        let rel = self.qualified_name()?;
        Ok(RangeVar {
            persistence: persistence.unwrap_or_default(),
            ..rel
        })
    }

    /// `group_by_item`
    fn group_by_item(&mut self) -> Result<GroupingItem> {
        self.nested(Self::group_by_item_nested)
    }

    fn group_by_item_nested(&mut self) -> Result<GroupingItem> {
        let location = self.here();
        let opens = self.kind_at(1) == T::LParen;
        match self.kind() {
            T::LParen if self.kind_at(1) == T::RParen => {
                self.pass_all(2);
                Ok(GroupingItem::Empty(location))
            }
            T::Keyword(K::Rollup) if opens => {
                self.pass();
                Ok(GroupingItem::Rollup(
                    self.parens(Self::expr_list)?,
                    location,
                ))
            }
            T::Keyword(K::Cube) if opens => {
                self.pass();
                Ok(GroupingItem::Cube(self.parens(Self::expr_list)?, location))
            }
            T::Keyword(K::Grouping) if self.is_at(1, K::Sets) => {
                self.pass_all(2);
                let items = self.parens(|parser| parser.list(Self::group_by_item))?;
                Ok(GroupingItem::Sets(items, location))
            }
            _ => Ok(GroupingItem::Expr(self.a_expr()?)),
        }
    }

    /// `where_clause`
    pub(super) fn where_clause(&mut self) -> Result<Option<Expr>> {
        match self.take(K::Where) {
            true => Ok(Some(self.a_expr()?)),
            false => Ok(None),
        }
    }

    /// `opt_sort_clause`
    pub(super) fn opt_sort_clause(&mut self) -> Result<Vec<SortBy>> {
        match self.is(K::Order) {
            true => self.sort_clause(),
            false => Ok(Vec::new()),
        }
    }

    /// `sort_clause`
    pub(super) fn sort_clause(&mut self) -> Result<Vec<SortBy>> {
        self.expect_all(&[K::Order, K::By])?;
        self.list(|parser| {
            let node = parser.a_expr()?;
            let mut location = Location::UNKNOWN;
            let dir = match parser.take(K::Using) {
                true => {
                    location = parser.here();
                    SortByDir::Using(parser.qual_all_op()?)
                }
                false => parser.opt_asc_desc(),
            };
            let nulls = parser.opt_nulls_order()?;
            Ok(SortBy {
                node,
                dir,
                nulls,
                location,
            })
        })
    }

    /// `opt_asc_desc`
    pub(super) fn opt_asc_desc(&mut self) -> SortByDir {
        if self.take(K::Asc) {
            SortByDir::Asc
        } else if self.take(K::Desc) {
            SortByDir::Desc
        } else {
            SortByDir::Default
        }
    }

    /// `opt_nulls_order`
    pub(super) fn opt_nulls_order(&mut self) -> Result<SortByNulls> {
        if !self.take_token(T::NullsLa) {
            return Ok(SortByNulls::Default);
        }
        match self.take(K::First) {
            true => Ok(SortByNulls::First),
            false => {
                self.expect(K::Last)?;
                Ok(SortByNulls::Last)
            }
        }
    }

    /// `opt_select_limit`, and where it begins.
    fn opt_select_limit(&mut self) -> Result<Option<(SelectLimit, Location)>> {
        let location = self.here();
        let mut limit = SelectLimit::default();
        let mut is_said = false;
        for _ in 0..2 {
            if limit.offset.is_none() && self.take(K::Offset) {
                limit.offset = Some(self.offset_value()?);
            } else if limit.count.is_none() && self.is(K::Limit) {
                limit.count = Some(self.limit_value()?);
            } else if limit.count.is_none() && self.is(K::Fetch) {
                (limit.count, limit.with_ties) = self.fetch_first()?;
                limit.is_fetch = true;
            } else {
                break;
            }
            is_said = true;
        }
        Ok(is_said.then_some((limit, location)))
    }

    /// LIMIT with its value.
    fn limit_value(&mut self) -> Result<LimitCount> {
        let location = self.here();
        self.pass();
        let at = self.here();
        let count = match self.take(K::All) {
            true => LimitCount::All(at),
            false => LimitCount::Count(self.a_expr()?),
        };
        if self.take_token(T::Comma) {
            self.a_expr()?;
            let error = self.syntax_error("LIMIT #,# syntax is not supported", location);
            return Err(error.hint("Use separate LIMIT and OFFSET clauses."));
        }
        Ok(count)
    }

    fn at_row_or_rows(&self) -> bool {
        self.is(K::Row) || self.is(K::Rows)
    }

    /// `select_fetch_first_value`
    fn select_fetch_first_value(&mut self) -> Result<Expr> {
        match self.kind() {
            T::Plus | T::Minus => {
                let location = self.here();
                let value = self.numeric_only()?;
                Ok(super::primary::constant(value, location))
            }
            _ => self.nested(|parser| parser.c_expr(Rule::B)),
        }
    }

    /// What stands behind OFFSET: any expression, or a `select_fetch_first_value` in front of ROW or ROWS.
    fn offset_value(&mut self) -> Result<Expr> {
        let is_signed = matches!(self.kind(), T::Plus | T::Minus)
            && matches!(self.kind_at(1), T::IConst | T::FConst)
            && matches!(self.kind_at(2), T::Keyword(K::Row | K::Rows));
        let is_prefix = matches!(
            self.kind(),
            T::Plus | T::Minus | T::Op | T::NotLa | T::Keyword(K::Not | K::Default | K::Unique)
        );
        if is_prefix && !is_signed {
            return self.a_expr();
        }
        let value = match is_signed {
            true => self.select_fetch_first_value()?,
            false => self.nested(|parser| parser.c_expr(Rule::A))?,
        };
        if self.at_row_or_rows() {
            self.pass();
            return Ok(value);
        }
        self.a_expr_from(value)
    }

    /// FETCH FIRST: how many, and WITH TIES.
    fn fetch_first(&mut self) -> Result<(Option<LimitCount>, bool)> {
        let location = self.here();
        self.pass();
        if !self.take(K::First) {
            self.expect(K::Next)?;
        }
        let is_bare = self.at_row_or_rows() && (self.is_at(1, K::Only) || self.is_at(1, K::With));
        let count = match is_bare {
            true => super::primary::constant(crate::ast::Value::Integer(1), location),
            false => self.select_fetch_first_value()?,
        };
        if !self.at_row_or_rows() {
            return self.unexpected();
        }
        self.pass();
        let with_ties = !self.take(K::Only);
        if with_ties {
            self.expect_all(&[K::With, K::Ties])?;
        }
        Ok((Some(LimitCount::Count(count)), with_ties))
    }

    /// `for_locking_clause`
    fn for_locking_clause(&mut self) -> Result<Vec<LockingClause>> {
        if self.is_at(1, K::Read) {
            self.pass_all(2);
            self.expect(K::Only)?;
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        while self.is(K::For) {
            all.push(self.for_locking_item()?);
        }
        Ok(all)
    }

    /// `for_locking_item`
    fn for_locking_item(&mut self) -> Result<LockingClause> {
        let location = self.here();
        self.pass();
        let strength = match self.kind() {
            T::Keyword(K::Update) => LockStrength::Update,
            T::Keyword(K::Share) => LockStrength::Share,
            T::Keyword(K::No) => {
                self.pass();
                self.expect(K::Key)?;
                match self.is(K::Update) {
                    true => LockStrength::NoKeyUpdate,
                    false => return self.unexpected(),
                }
            }
            T::Keyword(K::Key) => {
                self.pass();
                match self.is(K::Share) {
                    true => LockStrength::KeyShare,
                    false => return self.unexpected(),
                }
            }
            _ => return self.unexpected(),
        };
        self.pass();
        let locked_rels = match self.take(K::Of) {
            true => self.list(Self::qualified_name)?,
            false => Vec::new(),
        };
        let wait_policy = if self.take(K::Nowait) {
            LockWaitPolicy::NoWait
        } else if self.take(K::Skip) {
            self.expect(K::Locked)?;
            LockWaitPolicy::SkipLocked
        } else {
            LockWaitPolicy::Block
        };
        Ok(LockingClause {
            locked_rels,
            strength,
            wait_policy,
            location,
        })
    }

    /// `opt_with_clause`
    pub(super) fn opt_with_clause(&mut self) -> Result<Option<Box<WithClause>>> {
        let location = self.here();
        let is_plain = self.at(T::WithLa);
        if !self.opt_with() {
            return Ok(None);
        }
        let recursive = !is_plain && self.is(K::Recursive) && !self.names_cte();
        if recursive {
            self.pass();
        }
        let ctes = self.list(Self::common_table_expr)?;
        Ok(Some(Box::new(WithClause {
            recursive,
            ctes,
            location,
        })))
    }

    /// Is RECURSIVE the name of a query of WITH?
    fn names_cte(&self) -> bool {
        self.is_at(1, K::As) || self.kind_at(1) == T::LParen
    }

    /// `common_table_expr`
    fn common_table_expr(&mut self) -> Result<CommonTableExpr> {
        let location = self.here();
        let ctename = self.col_id()?;
        let aliascolnames = self.opt_column_list()?;
        self.expect(K::As)?;
        let materialized = if self.take(K::Materialized) {
            Some(true)
        } else if self.take(K::Not) {
            self.expect(K::Materialized)?;
            Some(false)
        } else {
            None
        };
        let ctequery =
            self.nested(|parser| parser.subselect(|parser| parser.parens(Self::preparable_stmt)))?;
        let search_clause = self.opt_search_clause()?;
        let cycle_clause = self.opt_cycle_clause()?;
        Ok(CommonTableExpr {
            ctename,
            aliascolnames,
            materialized,
            ctequery: NodeBox::new(ctequery),
            search_clause,
            cycle_clause,
            location,
        })
    }

    /// `opt_search_clause`
    fn opt_search_clause(&mut self) -> Result<Option<Box<CteSearchClause>>> {
        let location = self.here();
        if !self.take(K::Search) {
            return Ok(None);
        }
        let breadth_first = self.take(K::Breadth);
        if !breadth_first {
            self.expect(K::Depth)?;
        }
        self.expect_all(&[K::First, K::By])?;
        let col_list = self.name_list()?;
        self.expect(K::Set)?;
        let seq_column = self.col_id()?;
        Ok(Some(Box::new(CteSearchClause {
            col_list,
            breadth_first,
            seq_column,
            location,
        })))
    }

    /// `opt_cycle_clause`
    fn opt_cycle_clause(&mut self) -> Result<Option<Box<CteCycleClause>>> {
        let location = self.here();
        if !self.take(K::Cycle) {
            return Ok(None);
        }
        let col_list = self.name_list()?;
        self.expect(K::Set)?;
        let mark_column = self.col_id()?;
        let marks = match self.take(K::To) {
            true => {
                let mark = self.a_expr_const()?;
                self.expect(K::Default)?;
                Some((mark, self.a_expr_const()?))
            }
            false => None,
        };
        self.expect(K::Using)?;
        let path_column = self.col_id()?;
        Ok(Some(Box::new(CteCycleClause {
            col_list,
            mark_column,
            marks,
            path_column,
            location,
        })))
    }
}

/// A table that a query makes.
pub(super) fn into_table(rel: RangeVar, location: Location) -> IntoClause {
    IntoClause {
        rel,
        global: false,
        col_names: Vec::new(),
        access_method: None,
        options: Vec::new(),
        on_commit: OnCommitAction::None,
        table_space_name: None,
        skip_data: false,
        location,
    }
}

/// `TABLE t` is `SELECT * FROM t`.
fn select_all_of(relation: RangeVar) -> SelectCore {
    SelectCore {
        target_list: vec![ResTarget::star(Location::UNKNOWN)],
        from_clause: vec![TableRef::RangeVar(Box::new(relation))],
        ..SelectCore::default()
    }
}
