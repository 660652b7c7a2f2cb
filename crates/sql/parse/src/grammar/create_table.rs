//! CREATE TABLE, CREATE TABLE AS, indexes, sequences, views, statistics.

use super::Parser;
use super::names::is_col_id;
use crate::ast::{
    AlterSeqStmt, ColumnDef, CreateAsQuery, CreateSeqStmt, CreateStatsStmt, CreateStmt,
    CreateTableAsStmt, DefArg, DefElem, DefElemAction, IndexElem, IndexStmt, IntoClause, Location,
    Name, OnCommitAction, PartitionBoundSpec, PartitionElem, PartitionSpec, Persistence, RangeVar,
    RefreshMatViewStmt, Stmt, TableElement, TableLikeClause, Value, ViewCheckOption, ViewStmt,
    table_like,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;

/// An option.
pub(super) fn option(name: &str, arg: Option<DefArg>, location: Location) -> DefElem {
    DefElem {
        namespace: None,
        name: name.into(),
        arg,
        action: DefElemAction::Unspecified,
        location,
    }
}

/// A number as an option's value.
pub(super) fn number(value: Value) -> DefArg {
    match value {
        Value::Integer(number) => DefArg::Integer(number),
        Value::Float(number) => DefArg::Float(number),
        _ => DefArg::None,
    }
}

/// By which rules CREATE TABLE may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableRules {
    /// All of them.
    All,
    /// `CreateStmt`: among the elements of CREATE SCHEMA.
    Definition,
    /// `CreateAsStmt` and its like: behind EXPLAIN.
    OfQuery,
}

impl Parser<'_> {
    /// `CreateStmt`, `CreateAsStmt`, CREATE TABLE AS EXECUTE, behind TABLE.
    pub(super) fn create_table(
        &mut self,
        persistence: Persistence,
        allowed: TableRules,
    ) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let mut relation = self.qualified_name()?;
        relation.persistence = persistence;
        let lists_columns =
            is_col_id(self.kind_at(1)) && matches!(self.kind_at(2), T::Comma | T::RParen);
        let is_definition = match self.kind() {
            _ if allowed == TableRules::OfQuery => false,
            T::LParen => !lists_columns,
            T::Keyword(K::Of | K::Partition) => true,
            _ => false,
        };
        if !is_definition {
            if allowed == TableRules::Definition {
                if self.at(T::LParen) {
                    self.pass_all(2);
                }
                return self.unexpected();
            }
            return self.create_table_as(relation, if_not_exists);
        }
        let mut stmt = empty_table(relation, if_not_exists);
        if self.take(K::Of) {
            stmt.of_typename = Some(self.any_name()?);
            stmt.table_elts = self.opt_typed_table_element_list()?;
        } else if self.take(K::Partition) {
            self.partition_of(&mut stmt)?;
        } else {
            stmt.table_elts = self.opt_table_element_list()?;
            stmt.inh_relations = self.opt_inherit()?;
        }
        stmt.partspec = self.opt_partition_spec()?;
        stmt.access_method = self.access_method_clause()?;
        stmt.options = self.opt_with_options()?;
        stmt.oncommit = self.on_commit_option()?;
        stmt.tablespacename = self.opt_table_space()?;
        Ok(Stmt::Create(Box::new(stmt)))
    }

    /// `OF qualified_name OptTypedTableElementList PartitionBoundSpec`, behind PARTITION.
    pub(super) fn partition_of(&mut self, stmt: &mut CreateStmt) -> Result<()> {
        self.expect(K::Of)?;
        stmt.inh_relations = vec![self.qualified_name()?];
        stmt.table_elts = self.opt_typed_table_element_list()?;
        stmt.partbound = Some(Box::new(self.partition_bound_spec()?));
        Ok(())
    }

    /// `create_as_target AS ...`, behind the table's name.
    fn create_table_as(&mut self, relation: RangeVar, if_not_exists: bool) -> Result<Stmt> {
        let location = relation.location;
        let mut into = IntoClause {
            col_names: self.opt_column_list()?,
            access_method: self.access_method_clause()?,
            options: self.opt_with_options()?,
            on_commit: self.on_commit_option()?,
            table_space_name: self.opt_table_space()?,
            ..super::select::into_table(relation, location)
        };
        self.expect(K::As)?;
        let start = self.here();
        let query = match self.is(K::Execute) {
            true => CreateAsQuery::Execute(Box::new(self.execute_stmt()?)),
            false => CreateAsQuery::Select(Box::new(self.select_stmt()?)),
        };
        let query_range = self.range_from(start);
        into.skip_data = !self.opt_with_data()?;
        Ok(Stmt::CreateTableAs(Box::new(CreateTableAsStmt {
            query,
            query_range,
            into: Box::new(into),
            is_materialized_view: false,
            is_select_into: false,
            if_not_exists,
        })))
    }

    /// `opt_with_data`
    fn opt_with_data(&mut self) -> Result<bool> {
        if !self.take(K::With) {
            return Ok(true);
        }
        let no = self.take(K::No);
        self.expect(K::Data)?;
        Ok(!no)
    }

    /// `CreateMatViewStmt`, behind MATERIALIZED VIEW.
    pub(super) fn create_mat_view(&mut self, persistence: Persistence) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let mut relation = self.qualified_name()?;
        relation.persistence = persistence;
        let location = relation.location;
        let mut into = IntoClause {
            col_names: self.opt_column_list()?,
            access_method: self.access_method_clause()?,
            options: self.opt_reloptions()?,
            table_space_name: self.opt_table_space()?,
            ..super::select::into_table(relation, location)
        };
        self.expect(K::As)?;
        let start = self.here();
        let query = CreateAsQuery::Select(Box::new(self.select_stmt()?));
        let query_range = self.range_from(start);
        into.skip_data = !self.opt_with_data()?;
        Ok(Stmt::CreateTableAs(Box::new(CreateTableAsStmt {
            query,
            query_range,
            into: Box::new(into),
            is_materialized_view: true,
            is_select_into: false,
            if_not_exists,
        })))
    }

    /// `RefreshMatViewStmt`
    pub(super) fn refresh_mat_view_stmt(&mut self) -> Result<Stmt> {
        self.expect_all(&[K::Refresh, K::Materialized, K::View])?;
        let concurrent = self.take(K::Concurrently);
        let relation = self.qualified_name()?;
        let skip_data = !self.opt_with_data()?;
        Ok(Stmt::RefreshMatView(Box::new(RefreshMatViewStmt {
            concurrent,
            skip_data,
            relation,
        })))
    }

    /// `'(' OptTableElementList ')'`
    pub(super) fn opt_table_element_list(&mut self) -> Result<Vec<TableElement>> {
        self.parens(|parser| match parser.at(T::RParen) {
            true => Ok(Vec::new()),
            false => parser.list(Self::table_element),
        })
    }

    /// `TableElement`
    fn table_element(&mut self) -> Result<TableElement> {
        if self.is(K::Like) {
            return Ok(TableElement::Like(Box::new(self.table_like_clause()?)));
        }
        match self.at_table_constraint() {
            true => Ok(TableElement::Constraint(Box::new(self.table_constraint()?))),
            false => Ok(TableElement::Column(Box::new(self.column_def()?))),
        }
    }

    /// `OptTypedTableElementList`
    fn opt_typed_table_element_list(&mut self) -> Result<Vec<TableElement>> {
        if !self.at(T::LParen) {
            return Ok(Vec::new());
        }
        self.parens(|parser| {
            parser.list(|parser| match parser.at_table_constraint() {
                true => Ok(TableElement::Constraint(Box::new(
                    parser.table_constraint()?,
                ))),
                false => Ok(TableElement::Column(Box::new(parser.column_options()?))),
            })
        })
    }

    /// `columnDef`
    pub(super) fn column_def(&mut self) -> Result<ColumnDef> {
        let location = self.here();
        let colname = self.col_id()?;
        let type_name = Some(self.type_name()?);
        // `opt_column_compression`
        let compression = match self.is(K::Compression) {
            true => Some(self.column_compression()?),
            false => None,
        };
        let fdwoptions = self.create_generic_options()?;
        let mut column = ColumnDef {
            colname,
            type_name,
            compression,
            coll_clause: None,
            constraints: Vec::new(),
            fdwoptions,
            location,
        };
        (column.constraints, column.coll_clause) = self.col_qual_list()?;
        Ok(column)
    }

    /// `column_compression`
    pub(super) fn column_compression(&mut self) -> Result<Name> {
        self.expect(K::Compression)?;
        match self.take(K::Default) {
            true => Ok("default".into()),
            false => self.col_id(),
        }
    }

    /// `columnOptions`
    fn column_options(&mut self) -> Result<ColumnDef> {
        let location = self.here();
        let colname = self.col_id()?;
        if self.take(K::With) {
            self.expect(K::Options)?;
        }
        let (constraints, coll_clause) = self.col_qual_list()?;
        Ok(ColumnDef {
            colname,
            type_name: None,
            compression: None,
            coll_clause,
            constraints,
            fdwoptions: Vec::new(),
            location,
        })
    }

    /// `ColQualList` (`SplitColQualList`)
    pub(super) fn col_qual_list(
        &mut self,
    ) -> Result<(
        Vec<crate::ast::Constraint>,
        Option<crate::ast::CollationName>,
    )> {
        let mut constraints = Vec::new();
        let mut collation = None;
        let mut second = None;
        while self.at_col_constraint() {
            match self.is(K::Collate) {
                true if collation.is_none() => collation = self.opt_collate_clause()?,
                // Told when all have been read.
                true => second = second.or(self.opt_collate_clause()?),
                false => constraints.push(self.col_constraint()?),
            }
        }
        match second {
            Some(second) => {
                let at = second.location;
                // What is wrong behind the list is told first.
                match self.at(T::Error) {
                    true => self.unexpected(),
                    false => Err(self.syntax_error("multiple COLLATE clauses not allowed", at)),
                }
            }
            None => Ok((constraints, collation)),
        }
    }

    /// `TableLikeClause`
    fn table_like_clause(&mut self) -> Result<TableLikeClause> {
        self.expect(K::Like)?;
        let relation = self.qualified_name()?;
        let mut options = 0;
        while self.is_any(&[K::Including, K::Excluding]) {
            let includes = self.pass().kind == T::Keyword(K::Including);
            let bit = match self.kind() {
                T::Keyword(K::Comments) => table_like::COMMENTS,
                T::Keyword(K::Compression) => table_like::COMPRESSION,
                T::Keyword(K::Constraints) => table_like::CONSTRAINTS,
                T::Keyword(K::Defaults) => table_like::DEFAULTS,
                T::Keyword(K::Identity) => table_like::IDENTITY,
                T::Keyword(K::Generated) => table_like::GENERATED,
                T::Keyword(K::Indexes) => table_like::INDEXES,
                T::Keyword(K::Statistics) => table_like::STATISTICS,
                T::Keyword(K::Storage) => table_like::STORAGE,
                T::Keyword(K::All) => table_like::ALL,
                _ => return self.unexpected(),
            };
            self.pass();
            match includes {
                true => options |= bit,
                false => options &= !bit,
            }
        }
        Ok(TableLikeClause { relation, options })
    }

    /// `OptInherit`
    pub(super) fn opt_inherit(&mut self) -> Result<Vec<RangeVar>> {
        match self.take(K::Inherits) {
            true => self.parens(|parser| parser.list(Self::qualified_name)),
            false => Ok(Vec::new()),
        }
    }

    /// `OptPartitionSpec`
    fn opt_partition_spec(&mut self) -> Result<Option<Box<PartitionSpec>>> {
        let location = self.here();
        if !self.take(K::Partition) {
            return Ok(None);
        }
        self.expect(K::By)?;
        let strategy = self.col_id()?;
        let part_params = self.parens(|parser| parser.list(Self::part_elem))?;
        Ok(Some(Box::new(PartitionSpec {
            strategy,
            part_params,
            location,
        })))
    }

    /// `part_elem`
    fn part_elem(&mut self) -> Result<PartitionElem> {
        let location = self.here();
        let key = self.index_key()?;
        let collation = self.opt_collate()?;
        let opclass = match is_col_id(self.kind()) {
            true => Some(self.any_name()?),
            false => None,
        };
        Ok(PartitionElem {
            key,
            collation,
            opclass,
            location,
        })
    }

    /// `PartitionBoundSpec`
    pub(super) fn partition_bound_spec(&mut self) -> Result<PartitionBoundSpec> {
        let location = self.here();
        if self.take(K::Default) {
            return Ok(PartitionBoundSpec::Default(location));
        }
        self.expect_all(&[K::For, K::Values])?;
        let at = self.here();
        match self.kind() {
            T::Keyword(K::With) => {
                self.pass();
                self.hash_partbound(at)
            }
            T::Keyword(K::In) => {
                self.pass();
                Ok(PartitionBoundSpec::List(self.parens(Self::expr_list)?, at))
            }
            T::Keyword(K::From) => {
                self.pass();
                let lower = self.parens(Self::expr_list)?;
                self.expect(K::To)?;
                let upper = self.parens(Self::expr_list)?;
                Ok(PartitionBoundSpec::Range {
                    lower,
                    upper,
                    location: at,
                })
            }
            _ => self.unexpected(),
        }
    }

    /// `'(' hash_partbound ')'`
    fn hash_partbound(&mut self, location: Location) -> Result<PartitionBoundSpec> {
        let elems = self.parens(|parser| {
            parser.list(|parser| {
                let at = parser.here();
                let name = parser.non_reserved_word()?;
                Ok((name, parser.iconst()?, at))
            })
        })?;
        let (mut modulus, mut remainder) = (None, None);
        for (name, value, at) in elems {
            let place = match &*name {
                "modulus" => &mut modulus,
                "remainder" => &mut remainder,
                _ => {
                    let message =
                        format!("unrecognized hash partition bound specification \"{name}\"");
                    return Err(self.syntax_error(message, at));
                }
            };
            if place.replace(value).is_some() {
                let message = format!("{name} for hash partition provided more than once");
                return Err(self.error(SqlState::DUPLICATE_OBJECT, message, at));
            }
        }
        let needed = |value: Option<i32>, name: &str| {
            let message = format!("{name} for hash partition must be specified");
            value.ok_or_else(|| self.syntax_error(message, Location::UNKNOWN))
        };
        let modulus = needed(modulus, "modulus")?;
        let remainder = needed(remainder, "remainder")?;
        Ok(PartitionBoundSpec::Hash {
            modulus,
            remainder,
            location,
        })
    }

    /// `table_access_method_clause`, `access_method_clause`
    pub(super) fn access_method_clause(&mut self) -> Result<Option<Name>> {
        match self.take(K::Using) {
            true => Ok(Some(self.col_id()?)),
            false => Ok(None),
        }
    }

    /// `OptWith`
    fn opt_with_options(&mut self) -> Result<Vec<DefElem>> {
        if self.take(K::Without) {
            self.expect(K::Oids)?;
            return Ok(Vec::new());
        }
        self.opt_reloptions()
    }

    /// `opt_reloptions`
    pub(super) fn opt_reloptions(&mut self) -> Result<Vec<DefElem>> {
        match self.take(K::With) {
            true => self.reloptions(),
            false => Ok(Vec::new()),
        }
    }

    /// `OnCommitOption`
    fn on_commit_option(&mut self) -> Result<OnCommitAction> {
        if !self.take(K::On) {
            return Ok(OnCommitAction::None);
        }
        self.expect(K::Commit)?;
        if self.take(K::Drop) {
            return Ok(OnCommitAction::Drop);
        }
        let action = match self.take(K::Delete) {
            true => OnCommitAction::DeleteRows,
            false => {
                self.expect(K::Preserve)?;
                OnCommitAction::PreserveRows
            }
        };
        self.expect(K::Rows)?;
        Ok(action)
    }

    /// `OptTableSpace`
    pub(super) fn opt_table_space(&mut self) -> Result<Option<Name>> {
        match self.take(K::Tablespace) {
            true => Ok(Some(self.col_id()?)),
            false => Ok(None),
        }
    }

    /// `IndexStmt`, behind UNIQUE and INDEX.
    pub(super) fn index_stmt(&mut self, unique: bool) -> Result<Stmt> {
        let concurrent = self.take(K::Concurrently);
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let idxname = match self.is(K::On) && !if_not_exists {
            true => None,
            false => Some(self.col_id()?),
        };
        self.expect(K::On)?;
        let relation = self.relation_expr()?;
        let access_method = self.access_method_clause()?;
        let index_params = self.parens(Self::index_params)?;
        let index_including_params = match self.take(K::Include) {
            true => self.parens(Self::index_params)?,
            false => Vec::new(),
        };
        let nulls_not_distinct = self.opt_unique_null_treatment()?;
        let options = self.opt_reloptions()?;
        let table_space = self.opt_table_space()?;
        let where_clause = self.where_clause()?;
        Ok(Stmt::Index(Box::new(IndexStmt {
            idxname,
            relation,
            access_method,
            table_space,
            index_params,
            index_including_params,
            options,
            where_clause,
            unique,
            nulls_not_distinct,
            concurrent,
            if_not_exists,
        })))
    }

    /// `index_params`
    pub(super) fn index_params(&mut self) -> Result<Vec<IndexElem>> {
        self.list(Self::index_elem)
    }

    /// `index_elem`
    pub(super) fn index_elem(&mut self) -> Result<IndexElem> {
        let location = self.here();
        let key = self.index_key()?;
        let collation = self.opt_collate()?;
        let (mut opclass, mut opclassopts) = (None, Vec::new());
        if is_col_id(self.kind()) {
            opclass = Some(self.any_name()?);
            if self.at(T::LParen) {
                opclassopts = self.reloptions()?;
            }
        }
        let ordering = self.opt_asc_desc();
        let nulls_ordering = self.opt_nulls_order()?;
        Ok(IndexElem {
            key,
            collation,
            opclass,
            opclassopts,
            ordering,
            nulls_ordering,
            location,
        })
    }

    /// `opt_collate`
    fn opt_collate(&mut self) -> Result<Option<crate::ast::AnyName>> {
        match self.take(K::Collate) {
            true => Ok(Some(self.any_name()?)),
            false => Ok(None),
        }
    }

    /// `ViewStmt`, behind VIEW.
    pub(super) fn view_stmt(
        &mut self,
        persistence: Persistence,
        replace: bool,
        recursive: bool,
    ) -> Result<Stmt> {
        let mut view = self.qualified_name()?;
        view.persistence = persistence;
        let aliases = match recursive {
            true => self.parens(Self::name_list)?,
            false => self.opt_column_list()?,
        };
        let options = self.opt_reloptions()?;
        self.expect(K::As)?;
        let start = self.here();
        let query = Box::new(self.select_stmt()?);
        let query_range = self.range_from(start);
        let at = self.here();
        let with_check_option = self.opt_check_option()?;
        if recursive && with_check_option != ViewCheckOption::None {
            return Err(self.unsupported("WITH CHECK OPTION not supported on recursive views", at));
        }
        Ok(Stmt::View(Box::new(ViewStmt {
            view,
            aliases,
            query,
            query_range,
            replace,
            recursive,
            options,
            with_check_option,
        })))
    }

    /// `opt_check_option`
    fn opt_check_option(&mut self) -> Result<ViewCheckOption> {
        if !self.take(K::With) {
            return Ok(ViewCheckOption::None);
        }
        let option = match self.take(K::Local) {
            true => ViewCheckOption::Local,
            false => {
                self.take(K::Cascaded);
                ViewCheckOption::Cascaded
            }
        };
        self.expect_all(&[K::Check, K::Option])?;
        Ok(option)
    }

    /// `CreateSeqStmt`, behind SEQUENCE.
    pub(super) fn create_seq_stmt(&mut self, persistence: Persistence) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let mut sequence = self.qualified_name()?;
        sequence.persistence = persistence;
        let options = self.opt_seq_opt_list()?;
        Ok(Stmt::CreateSeq(Box::new(CreateSeqStmt {
            sequence,
            options,
            if_not_exists,
        })))
    }

    /// `AlterSeqStmt`, behind the sequence's name.
    pub(super) fn alter_seq(&mut self, sequence: RangeVar, missing_ok: bool) -> Result<Stmt> {
        let options = self.opt_seq_opt_list()?;
        match options.is_empty() {
            true => self.unexpected(),
            false => Ok(Stmt::AlterSeq(Box::new(AlterSeqStmt {
                sequence,
                options,
                missing_ok,
            }))),
        }
    }

    /// `OptSeqOptList`
    fn opt_seq_opt_list(&mut self) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        while self.at_seq_opt_elem() {
            options.push(self.seq_opt_elem()?);
        }
        Ok(options)
    }

    /// `OptParenthesizedSeqOptList`
    pub(super) fn opt_parenthesized_seq_opt_list(&mut self) -> Result<Vec<DefElem>> {
        if !self.at(T::LParen) {
            return Ok(Vec::new());
        }
        self.parens(|parser| {
            let options = parser.opt_seq_opt_list()?;
            match options.is_empty() {
                true => parser.unexpected(),
                false => Ok(options),
            }
        })
    }

    /// Does a `SeqOptElem` begin here?
    pub(super) fn at_seq_opt_elem(&self) -> bool {
        self.is_any(&[
            K::As,
            K::Cache,
            K::Cycle,
            K::No,
            K::Increment,
            K::Logged,
            K::Maxvalue,
            K::Minvalue,
            K::Owned,
            K::Sequence,
            K::Start,
            K::Restart,
            K::Unlogged,
        ])
    }

    /// `SeqOptElem`
    pub(super) fn seq_opt_elem(&mut self) -> Result<DefElem> {
        let location = self.here();
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        let (name, arg) = match word {
            K::As => ("as", Some(DefArg::Type(Box::new(self.simple_type_name()?)))),
            K::Cache => ("cache", Some(number(self.numeric_only()?))),
            K::Cycle => ("cycle", Some(DefArg::Boolean(true))),
            K::Increment => {
                self.take(K::By);
                ("increment", Some(number(self.numeric_only()?)))
            }
            K::Maxvalue => ("maxvalue", Some(number(self.numeric_only()?))),
            K::Minvalue => ("minvalue", Some(number(self.numeric_only()?))),
            K::Logged => ("logged", None),
            K::Unlogged => ("unlogged", None),
            K::No if self.take(K::Cycle) => ("cycle", Some(DefArg::Boolean(false))),
            K::No if self.take(K::Maxvalue) => ("maxvalue", None),
            K::No if self.take(K::Minvalue) => ("minvalue", None),
            K::Owned => {
                self.expect(K::By)?;
                ("owned_by", Some(DefArg::Name(self.any_name()?)))
            }
            K::Sequence => {
                self.expect(K::Name)?;
                ("sequence_name", Some(DefArg::Name(self.any_name()?)))
            }
            K::Start => {
                self.opt_with();
                ("start", Some(number(self.numeric_only()?)))
            }
            K::Restart => ("restart", self.restart_value()?),
            _ => return self.unexpected(),
        };
        Ok(option(name, arg, location))
    }

    /// `opt_with NumericOnly` behind RESTART, or nothing.
    pub(super) fn restart_value(&mut self) -> Result<Option<DefArg>> {
        match self.opt_with() || self.at_number() {
            true => Ok(Some(number(self.numeric_only()?))),
            false => Ok(None),
        }
    }

    /// `CreateStatsStmt`, behind STATISTICS.
    pub(super) fn create_stats_stmt(&mut self) -> Result<Stmt> {
        let if_not_exists = self.opt_if_not_exists_before_name()?;
        let defnames = self.any_name()?;
        let stat_types = self.opt_column_list()?;
        self.expect(K::On)?;
        let exprs = self.list(Self::index_key)?;
        self.expect(K::From)?;
        let relations = self.from_list()?;
        Ok(Stmt::CreateStats(Box::new(CreateStatsStmt {
            defnames,
            stat_types,
            exprs,
            relations,
            if_not_exists,
        })))
    }
}

/// A table without elements.
pub(super) fn empty_table(relation: RangeVar, if_not_exists: bool) -> CreateStmt {
    CreateStmt {
        relation,
        global: false,
        if_not_exists,
        table_elts: Vec::new(),
        inh_relations: Vec::new(),
        partbound: None,
        partspec: None,
        of_typename: None,
        access_method: None,
        options: Vec::new(),
        oncommit: OnCommitAction::None,
        tablespacename: None,
        foreign: None,
    }
}
