//! ROWS FROM (f(...), g(...)): functions side by side, NULL where one has no more rows.
//!
//! It is the subquery that gives the same: each function WITH ORDINALITY, joined FULL by that number, in its order.

use super::from_function::RangeFunctionClauses;
use super::names::output_name;
use super::{Binder, Frame};
use crate::query::expr::Expr;
use crate::query::{ColIdRanges, From, FromList, QueryTree, Select};
use crate::{JoinKind, SortKey};
use logstead_sql_parse::ast::{
    self, Alias, ColumnDefinition, FuncName, Location, NodeBox, ResTarget, SelectBody, TableRef,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;

/// A function of ROWS FROM, with its column definition list.
type RowsFunction = (ast::Expr, Vec<ColumnDefinition>);

/// `*, row_number() OVER () AS ordinality`
fn numbered_targets() -> Vec<ResTarget> {
    let number = FuncName::of(["pg_catalog", "row_number"]);
    let number = ast::FuncCall {
        over: Some(Box::default()),
        ..ast::FuncCall::of(number, [])
    };
    let number = ast::Expr::FuncCall(NodeBox::new(number));
    vec![
        ResTarget::star(Location::UNKNOWN),
        ResTarget::of(Some("ordinality".into()), number),
    ]
}

/// `SELECT *, row_number() OVER () AS ordinality FROM function AS name`.
fn numbered_query((function, columns): RowsFunction, name: &Alias) -> ast::SelectStmt {
    let item = ast::RangeFunction {
        lateral: true,
        ordinality: false,
        is_rowsfrom: false,
        functions: vec![(function, Vec::new())],
        alias: Some(Box::new(Alias::of(name.name.clone()))),
        coldeflist: columns,
        location: Location::UNKNOWN,
    };
    let core = ast::SelectCore {
        target_list: numbered_targets(),
        from_clause: vec![TableRef::Function(NodeBox::new(item))],
        ..ast::SelectCore::default()
    };
    ast::SelectStmt::of(SelectBody::Select(Box::new(core)))
}

/// What a function is called that nobody has called otherwise.
fn own_alias(function: &ast::Expr, types: &UserTypes) -> Alias {
    Alias::of(output_name(function, types))
}

impl Binder<'_> {
    /// Functions side by side.
    pub(super) fn rows_from(
        &mut self,
        functions: &[RowsFunction],
        called_as: &RangeFunctionClauses<'_>,
    ) -> Result<FromList> {
        if self.recorded.is_some() {
            return Err(SqlError::unsupported("ROWS FROM in a view"));
        }
        let &RangeFunctionClauses {
            ordinality, alias, ..
        } = called_as;
        if let [(function, columns)] = functions
            && columns.is_empty()
        {
            return self.function_item(function, called_as);
        }
        self.outer_joins += 1;
        let bound = self.in_block(|b| b.in_frame(|b| b.side_by_side(functions, ordinality)));
        self.outer_joins -= 1;
        let (select, own) = bound?;
        let first = functions
            .first()
            .map(|(function, _)| own_alias(function, self.user_types()));
        self.block_item(select, own, alias.or(first.as_ref()))
    }

    /// Binds what stands in a query block that is made here, and gives the identities made meanwhile.
    pub(super) fn in_block<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, ColIdRanges)> {
        self.with_own(|b| b.deeper(|b| b.within_query(bind)))
    }

    /// Binds the rest of such a block once its FROM has begun: what stands in front of that sees what the function
    /// itself would see.
    pub(super) fn in_frame<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.frames.push(Frame::new());
        let bound = bind(self);
        self.frames.pop();
        bound
    }

    /// A query block that is made here as an item of FROM.
    pub(super) fn block_item(
        &mut self,
        select: Select,
        own: ColIdRanges,
        alias: Option<&Alias>,
    ) -> Result<FromList> {
        let body = QueryTree::Select(Box::new(select));
        let columns = self.range.body_columns(&body).into_iter();
        let columns = columns.map(|c| (c.name.as_str().into(), c.ty, c.origin));
        let columns = columns.collect();
        let source = self.subquery_source(body, own, false, false)?;
        let rel = self.add_item(source, columns, "", alias)?;
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }

    /// The columns of functions, whose rows of the same number are one.
    fn side_by_side(&mut self, functions: &[RowsFunction], ordinality: bool) -> Result<Select> {
        let mut outputs = Vec::new();
        let mut joined: Option<(FromList, Expr)> = None;
        for function in functions {
            let rows = self.numbered_rows(function)?;
            // None of the functions sees another one.
            let columns = self.frame()?.ns.pop().map(|item| item.columns);
            let mut columns = columns.unwrap_or_default();
            let Some(number) = columns.pop() else {
                return Err(SqlError::internal("rows without a number"));
            };
            for column in columns {
                let value = self.ns_expr(&column.what)?;
                self.output(column.name.to_string(), value, &mut outputs);
            }
            let number = self.ns_expr(&number.what)?;
            joined = Some(match joined {
                None => (rows, number),
                Some((left, before)) => {
                    let ty = number.ty();
                    let join = From::Join {
                        kind: JoinKind::Full,
                        left: Box::new(left),
                        right: Box::new(rows),
                        on: vec![self.operator("=", before.clone(), number.clone(), None)?],
                    };
                    let list = FromList {
                        items: vec![join],
                        conditions: Vec::new(),
                    };
                    (list, Expr::Coalesce(vec![before, number], ty))
                }
            });
        }
        let Some((from, number)) = joined else {
            return Err(SqlError::internal("ROWS FROM of nothing"));
        };
        if ordinality {
            self.output("ordinality".to_owned(), number.clone(), &mut outputs);
        }
        Ok(Select {
            from,
            outputs,
            order: vec![SortKey {
                expr: number,
                desc: false,
                nulls_first: false,
            }],
            ..Select::default()
        })
    }

    /// The rows of a function, with the number of each behind them.
    fn numbered_rows(&mut self, rows: &RowsFunction) -> Result<FromList> {
        let (function, columns) = rows;
        let own = own_alias(function, self.user_types());
        match columns.is_empty() {
            true => {
                let called_as = RangeFunctionClauses {
                    ordinality: true,
                    alias: None,
                    coldeflist: &[],
                };
                self.function_item(function, &called_as)
            }
            false => {
                let query = numbered_query(rows.clone(), &own);
                self.derived(true, &query, Some(&own))
            }
        }
    }

    /// The block whose only item of FROM has been bound: its columns, and the number of each row behind them.
    pub(super) fn numbered(&mut self, from: FromList) -> Result<Select> {
        let mut select = Select {
            from,
            ..Select::default()
        };
        self.select_list(&numbered_targets(), &mut select.outputs)?;
        select.windows = self.windows(&[])?;
        Ok(select)
    }
}
