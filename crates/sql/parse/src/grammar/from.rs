//! FROM: tables, queries, functions, joins.

use super::Parser;
use super::names::is_col_id;
use crate::ast::{
    Alias, CollationName, ColumnDefinition, Expr, JoinExpr, JoinQual, JoinType, Location, Name,
    NodeBox, RangeFunction, RangeSubselect, RangeTableSample, RangeVar, SelectBody, SelectStmt,
    TableRef,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// What was in parentheses in FROM.
enum ParenContents {
    /// `select_with_parens`
    Select(Box<SelectStmt>),
    /// `'(' joined_table ')'`
    Joined(TableRef),
}

/// `func_alias_clause`
type FuncAlias = (Option<Box<Alias>>, Vec<ColumnDefinition>);

impl Parser<'_> {
    /// `from_clause`
    pub(super) fn from_clause(&mut self) -> Result<Vec<TableRef>> {
        match self.take(K::From) {
            true => self.from_list(),
            false => Ok(Vec::new()),
        }
    }

    /// `from_list`
    pub(super) fn from_list(&mut self) -> Result<Vec<TableRef>> {
        self.list(Self::table_ref)
    }

    /// `table_ref`
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        self.nested(|parser| {
            let first = parser.table_ref_operand()?;
            parser.joins(first)
        })
    }

    /// `table_ref` that is no join without parentheses.
    fn table_ref_operand(&mut self) -> Result<TableRef> {
        let location = self.here();
        match self.kind() {
            T::LParen => match self.in_parentheses_of_from()? {
                ParenContents::Select(select) => self.range_subselect(false, *select, location),
                ParenContents::Joined(joined) => self.joined_with_alias(joined),
            },
            T::Keyword(K::Lateral) => {
                self.pass();
                match self.kind() {
                    T::LParen => {
                        let at = self.here();
                        let select = self.select_with_parens()?;
                        self.range_subselect(true, select, at)
                    }
                    T::Keyword(K::Xmltable) if self.kind_at(1) == T::LParen => {
                        self.range_table_func(true)
                    }
                    _ => self.range_function(true),
                }
            }
            T::Keyword(K::Xmltable) if self.kind_at(1) == T::LParen => self.range_table_func(false),
            T::Keyword(K::Only) => self.range_var_with_alias(),
            _ if self.at_rows_from() || self.at_func_expr_windowless() => {
                self.range_function(false)
            }
            _ => self.range_var_with_alias(),
        }
    }

    fn at_rows_from(&self) -> bool {
        self.is(K::Rows) && self.is_at(1, K::From)
    }

    /// `relation_expr opt_alias_clause`, with `tablesample_clause`.
    fn range_var_with_alias(&mut self) -> Result<TableRef> {
        let mut relation = self.relation_expr()?;
        relation.alias = self.opt_alias_clause()?;
        if !self.take(K::Tablesample) {
            return Ok(TableRef::RangeVar(Box::new(relation)));
        }
        let method = self.func_name()?;
        let args = self.parens(Self::expr_list)?;
        let repeatable = match self.take(K::Repeatable) {
            true => Some(self.parens(Self::a_expr)?),
            false => None,
        };
        Ok(TableRef::TableSample(NodeBox::new(RangeTableSample {
            relation,
            method: self.func_name_of(method.names),
            args,
            repeatable,
            location: method.location,
        })))
    }

    /// `select_with_parens opt_alias_clause`, behind the query.
    fn range_subselect(
        &mut self,
        lateral: bool,
        subquery: SelectStmt,
        location: Location,
    ) -> Result<TableRef> {
        let alias = self.opt_alias_clause()?;
        if alias.is_none() {
            let is_values = matches!(subquery.body, SelectBody::Values(_));
            let (message, hint) = match is_values {
                true => (
                    "VALUES in FROM must have an alias",
                    "For example, FROM (VALUES ...) [AS] foo.",
                ),
                false => (
                    "subquery in FROM must have an alias",
                    "For example, FROM (SELECT ...) [AS] foo.",
                ),
            };
            return match self.at(T::Error) {
                true => self.unexpected(),
                false => Err(self.syntax_error(message, location).hint(hint)),
            };
        }
        Ok(TableRef::Subselect(NodeBox::new(RangeSubselect {
            lateral,
            subquery,
            alias,
            location,
        })))
    }

    /// `'(' joined_table ')'` with the alias that makes it a `table_ref` of its own.
    fn joined_with_alias(&mut self, joined: TableRef) -> Result<TableRef> {
        match (joined, self.opt_alias_clause()?) {
            (TableRef::Join(mut join), alias @ Some(_)) => {
                join.alias = alias;
                Ok(TableRef::Join(join))
            }
            (joined, _) => Ok(joined),
        }
    }

    /// `select_with_parens` or `'(' joined_table ')'`, decided as [`Parser::in_parentheses`] does.
    fn in_parentheses_of_from(&mut self) -> Result<ParenContents> {
        self.nested(Self::in_parentheses_of_from_nested)
    }

    fn in_parentheses_of_from_nested(&mut self) -> Result<ParenContents> {
        self.expect_token(T::LParen)?;
        if self.at_select_or_name() {
            let select = self.subselect(Self::select_no_parens)?;
            self.expect_token(T::RParen)?;
            return Ok(ParenContents::Select(Box::new(select)));
        }
        let location = self.here();
        let joined = match self.at(T::LParen) {
            false => self.table_ref()?,
            true => match self.in_parentheses_of_from()? {
                ParenContents::Select(select) if self.at(T::RParen) => {
                    self.pass();
                    return Ok(ParenContents::Select(select));
                }
                ParenContents::Select(select) if self.at_select_continuation() => {
                    let select =
                        self.subselect(|parser| parser.select_no_parens_from(*select, location))?;
                    self.expect_token(T::RParen)?;
                    return Ok(ParenContents::Select(Box::new(select)));
                }
                // Without a name it may still be a query's part: only what joins it tells that the name is missing.
                ParenContents::Select(_)
                    if !is_col_id(self.kind()) && !self.is(K::As) && !self.at_join() =>
                {
                    return self.unexpected();
                }
                ParenContents::Select(select) => {
                    let operand = self.range_subselect(false, *select, location)?;
                    self.joins(operand)?
                }
                ParenContents::Joined(joined) if self.at(T::RParen) => {
                    self.pass();
                    return Ok(ParenContents::Joined(joined));
                }
                ParenContents::Joined(joined) => {
                    let operand = self.joined_with_alias(joined)?;
                    let is_named = self.at(T::RParen);
                    let joined = self.joins(operand)?;
                    // With an alias alone it is no join any more.
                    if is_named {
                        return self.unexpected();
                    }
                    joined
                }
            },
        };
        if !matches!(joined, TableRef::Join(_)) {
            return self.unexpected();
        }
        self.expect_token(T::RParen)?;
        Ok(ParenContents::Joined(joined))
    }

    fn at_join(&self) -> bool {
        self.is_any(&[
            K::Cross,
            K::Natural,
            K::Join,
            K::Inner,
            K::Left,
            K::Right,
            K::Full,
        ])
    }

    /// Joins, of which the left side has been read. A chain is read in a loop.
    fn joins(&mut self, first: TableRef) -> Result<TableRef> {
        let mut left = first;
        while self.at_join() {
            left = self.join(left)?;
            self.one_level_more();
        }
        Ok(left)
    }

    /// A join, behind its left side.
    fn join(&mut self, larg: TableRef) -> Result<TableRef> {
        let location = self.here();
        if self.take(K::Cross) {
            self.expect(K::Join)?;
            let rarg = self.nested(Self::table_ref_operand)?;
            return Ok(joined(
                JoinType::Cross,
                false,
                larg,
                rarg,
                JoinQual::None,
                location,
            ));
        }
        let is_natural = self.take(K::Natural);
        let jointype = self.join_type();
        self.expect(K::Join)?;
        let mut rarg = self.nested(Self::table_ref_operand)?;
        if is_natural {
            return Ok(joined(jointype, true, larg, rarg, JoinQual::None, location));
        }
        // What comes before the condition belongs to the right side.
        if self.at_join() {
            rarg = self.nested(|parser| {
                let mut rarg = rarg;
                while parser.at_join() {
                    rarg = parser.join(rarg)?;
                    parser.one_level_more();
                }
                Ok(rarg)
            })?;
        }
        let quals = self.join_qual()?;
        Ok(joined(jointype, false, larg, rarg, quals, location))
    }

    /// `join_type`, or nothing.
    fn join_type(&mut self) -> JoinType {
        let jointype = match self.kind() {
            T::Keyword(K::Left) => JoinType::Left,
            T::Keyword(K::Right) => JoinType::Right,
            T::Keyword(K::Full) => JoinType::Full,
            T::Keyword(K::Inner) => {
                self.pass();
                return JoinType::Inner;
            }
            _ => return JoinType::Inner,
        };
        self.pass();
        self.take(K::Outer);
        jointype
    }

    /// `join_qual`
    fn join_qual(&mut self) -> Result<JoinQual> {
        if self.take(K::On) {
            return Ok(JoinQual::On(self.a_expr()?));
        }
        self.expect(K::Using)?;
        let columns = self.parens(Self::name_list)?;
        let location = self.here();
        let alias = match self.is(K::As) && !self.at_as_of() {
            true => {
                self.pass();
                let name = self.col_id()?;
                Some(Box::new(Alias {
                    name,
                    colnames: Vec::new(),
                    location,
                }))
            }
            false => None,
        };
        Ok(JoinQual::Using(columns, alias))
    }

    /// `relation_expr`
    pub(super) fn relation_expr(&mut self) -> Result<RangeVar> {
        if self.take(K::Only) {
            let relation = match self.at(T::LParen) {
                true => self.parens(Self::qualified_name)?,
                false => self.qualified_name()?,
            };
            return Ok(RangeVar {
                inh: false,
                ..relation
            });
        }
        let relation = self.qualified_name()?;
        self.take_token(T::Star);
        Ok(relation)
    }

    /// `opt_alias_clause`
    fn opt_alias_clause(&mut self) -> Result<Option<Box<Alias>>> {
        let location = self.here();
        let is_said = self.is(K::As) && !self.at_as_of();
        if !is_said && !is_col_id(self.kind()) {
            return Ok(None);
        }
        self.take(K::As);
        let name = self.col_id()?;
        let colnames = self.opt_column_list()?;
        Ok(Some(Box::new(Alias {
            name,
            colnames,
            location,
        })))
    }

    /// `func_alias_clause`
    fn func_alias_clause(&mut self) -> Result<FuncAlias> {
        let location = self.here();
        let is_said = self.is(K::As) && !self.at_as_of();
        if !is_said && !is_col_id(self.kind()) {
            return Ok((None, Vec::new()));
        }
        self.take(K::As);
        if is_said && self.at(T::LParen) {
            return Ok((None, self.parens(Self::table_func_element_list)?));
        }
        let name = self.col_id()?;
        let alias = |colnames| {
            Some(Box::new(Alias {
                name,
                colnames,
                location,
            }))
        };
        if !self.at(T::LParen) {
            return Ok((alias(Vec::new()), Vec::new()));
        }
        let are_names = matches!(self.kind_at(2), T::Comma | T::RParen);
        match are_names {
            true => Ok((alias(self.parens(Self::name_list)?), Vec::new())),
            false => Ok((
                alias(Vec::new()),
                self.parens(Self::table_func_element_list)?,
            )),
        }
    }

    /// `TableFuncElementList`
    pub(super) fn table_func_element_list(&mut self) -> Result<Vec<ColumnDefinition>> {
        self.list(Self::table_func_element)
    }

    /// `TableFuncElement`
    pub(super) fn table_func_element(&mut self) -> Result<ColumnDefinition> {
        let location = self.here();
        let colname = self.col_id()?;
        let type_name = self.type_name()?;
        let coll_clause = self.opt_collate_clause()?;
        Ok(ColumnDefinition {
            colname,
            type_name,
            coll_clause,
            location,
        })
    }

    /// `opt_collate_clause`
    pub(super) fn opt_collate_clause(&mut self) -> Result<Option<CollationName>> {
        let location = self.here();
        match self.take(K::Collate) {
            true => Ok(Some(CollationName {
                name: self.any_name()?.names,
                location,
            })),
            false => Ok(None),
        }
    }

    /// `func_table func_alias_clause`
    fn range_function(&mut self, lateral: bool) -> Result<TableRef> {
        let location = self.here();
        let is_rowsfrom = self.at_rows_from();
        let functions = match is_rowsfrom {
            true => {
                self.pass_all(2);
                self.parens(|parser| parser.list(Self::rowsfrom_item))?
            }
            false => vec![(self.func_expr_windowless()?, Vec::new())],
        };
        // `opt_ordinality`
        let ordinality = self.take_token(T::WithLa);
        if ordinality {
            self.expect(K::Ordinality)?;
        }
        let (alias, coldeflist) = self.func_alias_clause()?;
        Ok(TableRef::Function(NodeBox::new(RangeFunction {
            lateral,
            ordinality,
            is_rowsfrom,
            functions,
            alias,
            coldeflist,
            location,
        })))
    }

    /// `rowsfrom_item`
    fn rowsfrom_item(&mut self) -> Result<(Expr, Vec<ColumnDefinition>)> {
        let function = self.func_expr_windowless()?;
        let columns = match self.take(K::As) {
            true => self.parens(Self::table_func_element_list)?,
            false => Vec::new(),
        };
        Ok((function, columns))
    }

    /// `xmltable opt_alias_clause`
    fn range_table_func(&mut self, lateral: bool) -> Result<TableRef> {
        let mut table = self.nested(|parser| parser.xmltable(lateral))?;
        table.alias = self.opt_alias_clause()?;
        Ok(TableRef::TableFunc(NodeBox::new(table)))
    }

    /// `relation_expr_opt_alias`
    pub(super) fn relation_expr_opt_alias(&mut self) -> Result<RangeVar> {
        let mut relation = self.relation_expr()?;
        let location = self.here();
        let is_said = self.take(K::As);
        // Without AS this is the word of UPDATE.
        if is_said || (is_col_id(self.kind()) && !self.is(K::Set)) {
            let name: Name = self.col_id()?;
            relation.alias = Some(Box::new(Alias {
                name,
                colnames: Vec::new(),
                location,
            }));
        }
        Ok(relation)
    }
}

fn joined(
    jointype: JoinType,
    is_natural: bool,
    larg: TableRef,
    rarg: TableRef,
    quals: JoinQual,
    location: Location,
) -> TableRef {
    TableRef::Join(NodeBox::new(JoinExpr {
        jointype,
        is_natural,
        larg,
        rarg,
        quals,
        alias: None,
        location,
    }))
}
