//! Queries: WITH, SELECT, VALUES, TABLE, set operations, LIMIT, AS OF.

use super::Lower;
use crate::ast::{
    self, CommonTableExpr, Distinct, Expr, GroupingItem, IntoClause, LimitCount, Location,
    LockStrength, LockWaitPolicy, LockingClause, Persistence, RangeVar, ResTarget, SelectBody,
    SelectCore, SelectLimit, SelectStmt, SetOp, SetOperation, SortBy, Stmt, WindowDef, WithClause,
};
use crate::conflict_target::EXPRESSION_MARK;
use crate::grouping::GroupingWord;
use crate::locking::{KEY_SHARE, NO_KEY_UPDATE, QUALIFIED, SHARE, UPDATE};
use crate::{AsOf, AsOfPoint};
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast as library;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A query that is nothing but this.
pub(super) fn plain_query(body: library::SetExpr) -> library::Query {
    library::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A name in quotes, which nobody else can write.
pub(super) fn mark(value: impl Into<String>, span: sqlparser::tokenizer::Span) -> library::Ident {
    library::Ident {
        value: value.into(),
        quote_style: Some('"'),
        span,
    }
}

/// Has a query no clauses beyond its body?
fn is_plain(query: &SelectStmt) -> bool {
    query.with_clause.is_none()
        && query.sort_clause.is_empty()
        && query.limit.is_none()
        && query.locking_clause.is_empty()
}

/// Does the query read nothing?
fn is_without_from(query: &SelectStmt) -> bool {
    matches!(&query.body, SelectBody::Select(core) if core.from_clause.is_empty())
}

/// The name of the call that stands for a word in GROUP BY.
fn grouping_name(word: GroupingWord) -> &'static str {
    match word {
        GroupingWord::Sets => "sets",
        GroupingWord::Rollup => "rollup",
        GroupingWord::Cube => "cube",
        GroupingWord::Empty => "empty",
        GroupingWord::Distinct => "distinct",
    }
}

impl Lower<'_> {
    /// Lowers a query.
    pub(crate) fn query(&self, query: &SelectStmt) -> Result<library::Query> {
        let with = match &query.with_clause {
            Some(with) => Some(self.with(with)?),
            None => None,
        };
        let body = self.set_expr(query)?;
        let (limit_clause, fetch) = match &query.limit {
            Some(limit) => self.limits(limit)?,
            None => (None, None),
        };
        Ok(library::Query {
            with,
            order_by: self.order_by(&query.sort_clause)?,
            limit_clause,
            fetch,
            locks: self.locks(query),
            ..plain_query(body)
        })
    }

    /// Lowers a query, INSERT, UPDATE, DELETE or MERGE to a query.
    pub(super) fn query_of(&self, stmt: &Stmt) -> Result<library::Query> {
        use library::SetExpr as S;
        if let Stmt::Select(query) = stmt {
            return self.query(query);
        }
        let (with, change) = self.change(stmt)?;
        let body = match stmt {
            Stmt::Insert(_) => S::Insert(change),
            Stmt::Update(_) => S::Update(change),
            Stmt::Delete(_) => S::Delete(change),
            _ => S::Merge(change),
        };
        Ok(library::Query {
            with,
            ..plain_query(body)
        })
    }

    /// What a query, or a statement in it, is as of.
    pub(super) fn as_of(&self, query: &SelectStmt) -> Option<AsOf> {
        let clause = query.as_of.as_deref()?;
        let point = match (clause.text(), clause.parameter()) {
            (Some(text), _) => AsOfPoint::Text(text.to_owned()),
            (None, number) => AsOfPoint::Parameter((number? as usize).checked_sub(1)?),
        };
        Some(AsOf {
            point,
            is_time: clause.is_time,
            position: self.error_position(clause.location)?,
        })
    }

    /// A place as errors tell it.
    pub(super) fn error_position(&self, location: Location) -> Option<usize> {
        let byte = location.byte()?;
        usize::try_from(self.place(byte).column).ok()
    }

    /// A token that stands there.
    pub(super) fn attached_token(&self, location: Location) -> AttachedToken {
        AttachedToken(TokenWithSpan {
            token: Token::EOF,
            span: self.span(location),
        })
    }

    /// Lowers WITH.
    pub(super) fn with(&self, with: &WithClause) -> Result<library::With> {
        let mut cte_tables = Vec::with_capacity(with.ctes.len());
        for cte in &with.ctes {
            cte_tables.push(self.cte(cte)?);
        }
        Ok(library::With {
            with_token: self.attached_token(with.location),
            recursive: with.recursive,
            cte_tables,
        })
    }

    fn cte(&self, cte: &CommonTableExpr) -> Result<library::Cte> {
        let search = cte.search_clause.as_ref().map(|s| ("SEARCH", s.location));
        let cycle = cte.cycle_clause.as_ref().map(|c| ("CYCLE", c.location));
        if let Some((word, location)) = search.or(cycle) {
            let error = SqlError::unsupported(format!("{word} of a recursive query"));
            return Err(error.at(self.error_position(location)));
        }
        let column = |name: &ast::Name| library::TableAliasColumnDef {
            name: self.ident(name, Location::UNKNOWN),
            data_type: None,
        };
        Ok(library::Cte {
            alias: library::TableAlias {
                explicit: false,
                name: self.ident(&cte.ctename, cte.location),
                columns: cte.aliascolnames.iter().map(column).collect(),
                at: None,
            },
            query: Box::new(self.query_of(&cte.ctequery)?),
            from: None,
            materialized: cte.materialized.map(|is_said| match is_said {
                true => library::CteAsMaterialized::Materialized,
                false => library::CteAsMaterialized::NotMaterialized,
            }),
            closing_paren_token: AttachedToken::empty(),
        })
    }

    /// Lowers what a query consists of.
    fn set_expr(&self, query: &SelectStmt) -> Result<library::SetExpr> {
        Ok(match &query.body {
            SelectBody::Select(core) => library::SetExpr::Select(Box::new(self.select(core)?)),
            SelectBody::Values(rows) => {
                library::SetExpr::Values(self.values(rows, query.location)?)
            }
            SelectBody::Table(relation) => {
                library::SetExpr::Select(Box::new(self.select_all(relation, query.location)?))
            }
            SelectBody::SetOp(operation) => self.set_operation(operation)?,
        })
    }

    /// A side of a set operation: a query with clauses of its own stands in parentheses.
    fn side(&self, query: &SelectStmt) -> Result<library::SetExpr> {
        match is_plain(query) {
            true => self.set_expr(query),
            false => Ok(library::SetExpr::Query(Box::new(self.query(query)?))),
        }
    }

    /// UNION and its like. A chain of them leans to the left and is walked in a loop.
    fn set_operation(&self, operation: &SetOp) -> Result<library::SetExpr> {
        let mut chain = vec![operation];
        let mut first = &operation.larg;
        while let SelectBody::SetOp(inner) = &first.body
            && is_plain(first)
        {
            chain.push(inner);
            first = &inner.larg;
        }
        let mut left = self.side(first)?;
        for operation in chain.into_iter().rev() {
            left = library::SetExpr::SetOperation {
                left: Box::new(left),
                op: match operation.op {
                    SetOperation::Union => library::SetOperator::Union,
                    SetOperation::Intersect => library::SetOperator::Intersect,
                    SetOperation::Except => library::SetOperator::Except,
                },
                set_quantifier: match operation.all {
                    true => library::SetQuantifier::All,
                    false => library::SetQuantifier::None,
                },
                right: Box::new(self.side(&operation.rarg)?),
            };
        }
        Ok(left)
    }

    /// Rows of VALUES.
    pub(super) fn values(&self, rows: &[Vec<Expr>], location: Location) -> Result<library::Values> {
        let row = |row: &Vec<Expr>| {
            Ok(library::Parens {
                opening_token: self.attached_token(location),
                content: self.row_items(row)?,
                closing_token: self.attached_token(location),
            })
        };
        Ok(library::Values {
            explicit_row: false,
            value_keyword: false,
            rows: rows.iter().map(row).collect::<Result<_>>()?,
        })
    }

    /// A SELECT that says nothing.
    fn empty_select(&self, location: Location) -> library::Select {
        library::Select {
            select_token: self.attached_token(location),
            optimizer_hints: Vec::new(),
            distinct: None,
            select_modifiers: None,
            top: None,
            top_before_distinct: false,
            projection: Vec::new(),
            exclude: None,
            into: None,
            from: Vec::new(),
            lateral_views: Vec::new(),
            prewhere: None,
            selection: None,
            connect_by: Vec::new(),
            group_by: library::GroupByExpr::Expressions(Vec::new(), Vec::new()),
            cluster_by: Vec::new(),
            distribute_by: Vec::new(),
            sort_by: Vec::new(),
            having: None,
            named_window: Vec::new(),
            qualify: None,
            window_before_qualify: false,
            value_table_mode: None,
            flavor: library::SelectFlavor::Standard,
        }
    }

    /// SELECT of an expression.
    pub(super) fn select_of(&self, expr: &Expr) -> Result<library::Query> {
        let select = library::Select {
            projection: vec![library::SelectItem::UnnamedExpr(self.expr(expr)?)],
            ..self.empty_select(Location::UNKNOWN)
        };
        Ok(plain_query(library::SetExpr::Select(Box::new(select))))
    }

    /// `TABLE t` is `SELECT * FROM t`.
    fn select_all(&self, relation: &RangeVar, location: Location) -> Result<library::Select> {
        let item = ast::TableRef::RangeVar(Box::new(relation.clone()));
        Ok(library::Select {
            projection: vec![self.wildcard(location)],
            from: vec![self.table_ref(&item)?],
            ..self.empty_select(location)
        })
    }

    fn select(&self, core: &SelectCore) -> Result<library::Select> {
        let distinct = match &core.distinct {
            Distinct::No => None,
            Distinct::All => Some(library::Distinct::Distinct),
            Distinct::On(exprs) => Some(library::Distinct::On(self.exprs(exprs)?)),
        };
        let named_window = core.window_clause.iter();
        let named_window = named_window.map(|window| self.named_window(window));
        Ok(library::Select {
            distinct,
            projection: self.select_items(&core.target_list)?,
            into: core.into_clause.as_deref().map(|into| self.into(into)),
            from: self.table_refs(&core.from_clause)?,
            selection: self.opt_expr(core.where_clause.as_ref())?,
            group_by: self.group_by(core)?,
            having: self.opt_expr(core.having_clause.as_ref())?,
            window_before_qualify: !core.window_clause.is_empty(),
            named_window: named_window.collect::<Result<_>>()?,
            ..self.empty_select(core.location)
        })
    }

    /// A window of WINDOW's list.
    fn named_window(&self, window: &WindowDef) -> Result<library::NamedWindowDefinition> {
        let name = window.name.as_deref().unwrap_or_default();
        let name = mark(name, self.span(window.location));
        Ok(library::NamedWindowDefinition(
            name,
            library::NamedWindowExpr::WindowSpec(self.window_spec(window)?),
        ))
    }

    /// An expression, if there is one.
    pub(super) fn opt_expr(&self, expr: Option<&Expr>) -> Result<Option<library::Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// Items of FROM.
    pub(super) fn table_refs(
        &self,
        items: &[ast::TableRef],
    ) -> Result<Vec<library::TableWithJoins>> {
        items.iter().map(|item| self.table_ref(item)).collect()
    }

    fn into(&self, into: &IntoClause) -> library::SelectInto {
        let library::ObjectName(parts) = self.relation_name(&into.rel);
        let mut idents = parts.into_iter().filter_map(|part| match part {
            library::ObjectNamePart::Identifier(ident) => Some(ident),
            library::ObjectNamePart::Function(_) => None,
        });
        let target = match (idents.next(), idents.next()) {
            (Some(name), None) => library::Expr::Identifier(name),
            (first, second) => {
                let named = first.into_iter().chain(second).chain(idents);
                library::Expr::CompoundIdentifier(named.collect())
            }
        };
        library::SelectInto {
            temporary: into.rel.persistence == Persistence::Temporary,
            unlogged: into.rel.persistence == Persistence::Unlogged,
            table: false,
            targets: vec![target],
        }
    }

    /// Lowers a list of results.
    pub(super) fn select_items(&self, items: &[ResTarget]) -> Result<Vec<library::SelectItem>> {
        items.iter().map(|item| self.select_item(item)).collect()
    }

    fn wildcard(&self, location: Location) -> library::SelectItem {
        library::SelectItem::Wildcard(self.wildcard_options(location))
    }

    fn wildcard_options(&self, location: Location) -> library::WildcardAdditionalOptions {
        library::WildcardAdditionalOptions {
            wildcard_token: self.attached_token(location),
            ..library::WildcardAdditionalOptions::default()
        }
    }

    fn select_item(&self, item: &ResTarget) -> Result<library::SelectItem> {
        let Some(value) = &item.val else {
            return Err(SqlError::internal("a result without a value"));
        };
        // A name of all columns says nothing.
        if let Expr::ColumnRef(column) = value
            && column.star
        {
            if column.fields.is_empty() {
                return Ok(self.wildcard(column.location));
            }
            let name = self.object_name(&column.fields, column.location);
            return Ok(library::SelectItem::QualifiedWildcard(
                library::SelectItemQualifiedWildcardKind::ObjectName(name),
                self.wildcard_options(column.location),
            ));
        }
        let expr = self.expr(value)?;
        Ok(match &item.name {
            None => library::SelectItem::UnnamedExpr(expr),
            Some(name) => library::SelectItem::ExprWithAlias {
                expr,
                alias: self.ident(name, Location::UNKNOWN),
            },
        })
    }

    fn group_by(&self, core: &SelectCore) -> Result<library::GroupByExpr> {
        let mut items = Vec::with_capacity(core.group_clause.len());
        if core.group_distinct {
            items.push(self.grouping_call(GroupingWord::Distinct, Vec::new(), Location::UNKNOWN));
        }
        for item in &core.group_clause {
            items.push(self.grouping_item(item)?);
        }
        Ok(library::GroupByExpr::Expressions(items, Vec::new()))
    }

    fn grouping_item(&self, item: &GroupingItem) -> Result<library::Expr> {
        let (word, args, location) = match item {
            GroupingItem::Expr(expr) => return self.expr(expr),
            GroupingItem::Empty(location) => (GroupingWord::Empty, Vec::new(), location),
            GroupingItem::Rollup(exprs, location) => {
                (GroupingWord::Rollup, self.exprs(exprs)?, location)
            }
            GroupingItem::Cube(exprs, location) => {
                (GroupingWord::Cube, self.exprs(exprs)?, location)
            }
            GroupingItem::Sets(items, location) => {
                let args = items.iter().map(|item| self.grouping_item(item));
                (GroupingWord::Sets, args.collect::<Result<_>>()?, location)
            }
        };
        Ok(self.grouping_call(word, args, *location))
    }

    /// A call that stands for a word in GROUP BY.
    fn grouping_call(
        &self,
        word: GroupingWord,
        args: Vec<library::Expr>,
        location: Location,
    ) -> library::Expr {
        let name = format!("{EXPRESSION_MARK}{}", grouping_name(word));
        let args = args
            .into_iter()
            .map(|arg| library::FunctionArg::Unnamed(library::FunctionArgExpr::Expr(arg)));
        library::Expr::Function(library::Function {
            name: library::ObjectName::from(vec![mark(name, self.span(location))]),
            uses_odbc_syntax: false,
            parameters: library::FunctionArguments::None,
            args: library::FunctionArguments::List(library::FunctionArgumentList {
                duplicate_treatment: None,
                args: args.collect(),
                clauses: Vec::new(),
            }),
            within_group: Vec::new(),
            filter: None,
            null_treatment: None,
            over: None,
        })
    }

    /// Lowers ORDER BY.
    fn order_by(&self, items: &[SortBy]) -> Result<Option<library::OrderBy>> {
        Ok((!items.is_empty()).then_some(library::OrderBy {
            kind: library::OrderByKind::Expressions(self.sort_keys(items)?),
            interpolate: None,
        }))
    }

    /// LIMIT, OFFSET and FETCH FIRST. The library's FETCH has a value; any other expression stands in LIMIT, beside a
    /// FETCH that says WITH TIES.
    fn limits(
        &self,
        limit: &SelectLimit,
    ) -> Result<(Option<library::LimitClause>, Option<library::Fetch>)> {
        let offset = self.opt_expr(limit.offset.as_ref())?;
        let offset = offset.map(|value| library::Offset {
            value,
            rows: library::OffsetRows::None,
        });
        let (mut count, mut fetch) = (None, None);
        let fetch_of = |quantity| library::Fetch {
            with_ties: limit.with_ties,
            percent: false,
            quantity,
        };
        if let Some(LimitCount::Count(expr)) = &limit.count {
            let value = self.expr(expr)?;
            if !limit.is_fetch {
                count = Some(value);
            } else if self.is_fetch_word(expr) {
                fetch = Some(fetch_of(None));
            } else if matches!(value, library::Expr::Value(_)) {
                fetch = Some(fetch_of(Some(value)));
            } else {
                count = Some(value);
                let one = library::Value::Number("1".to_owned(), false).with_empty_span();
                fetch = limit
                    .with_ties
                    .then(|| fetch_of(Some(library::Expr::Value(one))));
            }
        }
        let clause =
            (count.is_some() || offset.is_some()).then_some(library::LimitClause::LimitOffset {
                limit: count,
                offset,
                limit_by: Vec::new(),
            });
        Ok((clause, fetch))
    }

    /// FETCH FIRST ROW: the one row is not written.
    fn is_fetch_word(&self, count: &Expr) -> bool {
        matches!(count, Expr::Const(constant) if self.is_written(constant.location, "fetch"))
    }

    /// Locking clauses. The library knows two strengths and one name: the others travel in that name.
    fn locks(&self, query: &SelectStmt) -> Vec<library::LockClause> {
        let without_from = is_without_from(query);
        let clauses = query.locking_clause.iter();
        // Nothing is locked where nothing is read.
        let clauses = clauses.filter(|clause| !without_from || !clause.locked_rels.is_empty());
        clauses.map(|clause| self.lock(clause)).collect()
    }

    fn lock(&self, clause: &LockingClause) -> library::LockClause {
        let (lock_type, part, is_known) = match clause.strength {
            LockStrength::Update => (library::LockType::Update, UPDATE, true),
            LockStrength::NoKeyUpdate => (library::LockType::Update, NO_KEY_UPDATE, false),
            LockStrength::Share => (library::LockType::Share, SHARE, true),
            LockStrength::KeyShare => (library::LockType::Share, KEY_SHARE, false),
        };
        let of = (!is_known || !clause.locked_rels.is_empty()).then(|| {
            let mut parts = vec![mark(part, self.span(clause.location))];
            for relation in &clause.locked_rels {
                let library::ObjectName(names) = self.relation_name(relation);
                let mut idents = names.iter().filter_map(library::ObjectNamePart::as_ident);
                let span = self.span(relation.location);
                let qualifiers = names.len().saturating_sub(1);
                parts.extend((0..qualifiers).map(|_| mark(QUALIFIED, span)));
                parts.extend(
                    idents
                        .next_back()
                        .map(|name| mark(name.value.clone(), span)),
                );
            }
            library::ObjectName::from(parts)
        });
        library::LockClause {
            lock_type,
            of,
            nonblock: match clause.wait_policy {
                LockWaitPolicy::Block => None,
                LockWaitPolicy::SkipLocked => Some(library::NonBlock::SkipLocked),
                LockWaitPolicy::NoWait => Some(library::NonBlock::Nowait),
            },
        }
    }
}
