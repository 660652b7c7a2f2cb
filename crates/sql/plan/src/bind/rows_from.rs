//! ROWS FROM (f(...), g(...)): functions side by side, NULL where one has no more rows.
//!
//! It is the subquery that gives the same: each function WITH ORDINALITY, joined FULL by that number, in its order.

use super::from_function::CalledAs;
use super::names::output_name;
use super::{Binder, Frame};
use crate::query::expr::Expr;
use crate::query::{Body, From, FromList, Select};
use crate::{JoinKind, SortKey};
use logstead_sql_parse::ast::{
    self, Alias, ColumnDefinition, Deep, FuncName, Location, ResTarget, SelectBody, TableRef,
};
use logstead_sql_types::error::{Result, SqlError};

/// A function of ROWS FROM, with its column definition list.
type RowsFunction = (ast::Expr, Vec<ColumnDefinition>);

/// `SELECT *, row_number() OVER () AS ordinality FROM function AS name`.
fn numbered_query((function, columns): RowsFunction, name: &Alias) -> ast::SelectStmt {
    let number = FuncName::of(["pg_catalog", "row_number"]);
    let number = ast::FuncCall {
        over: Some(Box::default()),
        ..ast::FuncCall::of(number, [])
    };
    let item = ast::RangeFunction {
        lateral: true,
        ordinality: false,
        is_rowsfrom: false,
        functions: vec![(function, Vec::new())],
        alias: Some(Box::new(Alias::of(name.name.clone()))),
        coldeflist: columns,
        location: Location::UNKNOWN,
    };
    let number = ast::Expr::FuncCall(Deep::new(number));
    let core = ast::SelectCore {
        target_list: vec![
            ResTarget::star(Location::UNKNOWN),
            ResTarget::of(Some("ordinality".into()), number),
        ],
        from_clause: vec![TableRef::Function(Deep::new(item))],
        ..ast::SelectCore::default()
    };
    ast::SelectStmt::of(SelectBody::Select(Box::new(core)))
}

/// What a function is called that nobody has called otherwise.
fn own_alias(function: &ast::Expr) -> Alias {
    Alias::of(output_name(function))
}

impl Binder<'_> {
    /// Functions side by side.
    pub(super) fn rows_from(
        &mut self,
        functions: &[RowsFunction],
        called_as: &CalledAs<'_>,
    ) -> Result<FromList> {
        if self.recorded.is_some() {
            return Err(SqlError::unsupported("ROWS FROM in a view"));
        }
        let &CalledAs {
            ordinality, alias, ..
        } = called_as;
        if let [(function, columns)] = functions
            && columns.is_empty()
        {
            return self.function_item(function, called_as);
        }
        self.outer_joins += 1;
        let bound = self.with_own(|b| {
            b.deeper(|b| {
                b.within_query(|b| {
                    b.frames.push(Frame::new());
                    let bound = b.side_by_side(functions, ordinality);
                    b.frames.pop();
                    bound
                })
            })
        });
        self.outer_joins -= 1;
        let (select, own) = bound?;
        let body = Body::Select(Box::new(select));
        let columns = self.range.body_columns(&body).into_iter();
        let columns = columns.map(|c| (c.name.as_str().into(), c.ty, c.origin));
        let columns = columns.collect();
        let source = self.subquery_source(body, own, false, false)?;
        let first = functions.first().map(|(function, _)| own_alias(function));
        let alias = alias.or(first.as_ref());
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
        let own = own_alias(function);
        match columns.is_empty() {
            true => {
                let called_as = CalledAs {
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

    /// The rows of a function that does not number them itself, WITH ORDINALITY: those of the query that does.
    pub(super) fn numbered(
        &mut self,
        function: &ast::FuncCall,
        alias: Option<&Alias>,
    ) -> Result<FromList> {
        let function = ast::Expr::FuncCall(Deep::new(function.clone()));
        let own = own_alias(&function);
        let alias = alias.unwrap_or(&own);
        // A function of one column calls it after its alias.
        let query = numbered_query((function, Vec::new()), alias);
        self.derived(true, &query, Some(alias))
    }
}
