//! FROM: tables, queries, joins. Functions are in `from_function`.

use super::Lower;
use crate::ast::{
    Alias, AnyName, Expr, JoinExpr, JoinQual, JoinType, Location, Names, RangeSubselect,
    RangeTableSample, RangeVar, RelationName, TableRef, Value,
};
use crate::lowered::{self as library, JoinConstraint, JoinOperator, TableFactor};
use logstead_sql_types::error::{Result, SqlError};

/// What the name of a relation begins with that is the source of a view.
const SOURCE: char = '\u{1}';

impl Lower<'_> {
    /// Lowers an item of FROM. A chain of joins becomes a list from its first table.
    pub(crate) fn table_ref(&self, item: &TableRef) -> Result<library::TableWithJoins> {
        match item {
            TableRef::Join(join) if join.alias.is_none() => self.joins(join),
            item => Ok(library::TableWithJoins {
                relation: self.table_factor(item)?,
                joins: Vec::new(),
            }),
        }
    }

    /// Joins, whatever they are called.
    fn joins(&self, last: &JoinExpr) -> Result<library::TableWithJoins> {
        let mut chain = vec![last];
        let mut first = &last.larg;
        while let TableRef::Join(join) = first
            && join.alias.is_none()
        {
            chain.push(join);
            first = &join.larg;
        }
        let relation = self.table_factor(first)?;
        let mut joins = Vec::with_capacity(chain.len());
        for join in chain.into_iter().rev() {
            joins.push(library::Join {
                relation: self.table_factor(&join.rarg)?,
                join_operator: self.join_operator(join)?,
            });
        }
        Ok(library::TableWithJoins { relation, joins })
    }

    /// An item of FROM that is no join, or one in parentheses.
    fn table_factor(&self, item: &TableRef) -> Result<TableFactor> {
        match item {
            TableRef::RangeVar(node) => Ok(self.table_item(node, None)),
            TableRef::Subselect(node) => self.subselect(node),
            TableRef::Function(node) => self.range_function(node),
            TableRef::TableFunc(node) => self.range_table_func(node),
            TableRef::TableSample(node) => self.table_sample(node),
            TableRef::Join(node) => self.join_in_parentheses(node),
        }
    }

    fn join_in_parentheses(&self, node: &JoinExpr) -> Result<TableFactor> {
        Ok(TableFactor::NestedJoin {
            table_with_joins: Box::new(self.joins(node)?),
            alias: self.table_alias(node.alias.as_deref()),
        })
    }

    /// The relation's name.
    pub(crate) fn relation_name(&self, node: &RangeVar) -> AnyName {
        match &node.name {
            RelationName::Named {
                catalog,
                schema,
                name,
            } => {
                let parts = [catalog.as_ref(), schema.as_ref(), Some(name)];
                let names: Names = parts.into_iter().flatten().cloned().collect();
                self.object_name(&names, node.location)
            }
            RelationName::Source(number) => {
                let mark = format!("{SOURCE}{number}");
                self.object_name(&[mark.into()], node.location)
            }
        }
    }

    /// A table. No table has others below it, so ONLY says nothing.
    pub(crate) fn table_item(
        &self,
        node: &RangeVar,
        sample: Option<Box<library::TableSample>>,
    ) -> TableFactor {
        TableFactor::Table {
            name: self.relation_name(node),
            alias: self.table_alias(node.alias.as_deref()),
            sample,
        }
    }

    /// What an item is called.
    pub(crate) fn table_alias(&self, alias: Option<&Alias>) -> Option<library::TableAlias> {
        let alias = alias?;
        let columns = alias.colnames.iter();
        let columns = columns.map(|column| library::TableAliasColumnDef {
            name: self.ident(column, Location::UNKNOWN),
            data_type: None,
        });
        Some(library::TableAlias {
            name: self.ident(&alias.name, alias.location),
            columns: columns.collect(),
        })
    }

    fn subselect(&self, node: &RangeSubselect) -> Result<TableFactor> {
        Ok(TableFactor::Derived {
            lateral: node.lateral,
            subquery: Box::new(self.query(&node.subquery)?),
            alias: self.table_alias(node.alias.as_deref()),
        })
    }

    fn table_sample(&self, node: &RangeTableSample) -> Result<TableFactor> {
        let method = node.method.called().map(|name| &**name);
        let quantity = match node.args.first() {
            Some(value) => Some(self.expr(value)?),
            None => None,
        };
        let seed = match &node.repeatable {
            None => None,
            Some(Expr::Const(seed))
                if matches!(seed.value, Value::Integer(_) | Value::Float(_)) =>
            {
                Some(seed.clone())
            }
            Some(_) => return Err(SqlError::unsupported("TABLESAMPLE")),
        };
        let sample = library::TableSample {
            name: match method {
                Some("bernoulli") => Some(library::TableSampleMethod::Bernoulli),
                Some("system") => Some(library::TableSampleMethod::System),
                _ => None,
            },
            quantity,
            seed,
        };
        Ok(self.table_item(&node.relation, Some(Box::new(sample))))
    }

    fn join_operator(&self, node: &JoinExpr) -> Result<JoinOperator> {
        let constraint = match &node.quals {
            JoinQual::None if node.is_natural => JoinConstraint::Natural,
            JoinQual::None => JoinConstraint::None,
            JoinQual::On(condition) => JoinConstraint::On(self.expr(condition)?),
            JoinQual::Using(columns, alias) => {
                let names = columns
                    .iter()
                    .map(|column| self.ident(column, Location::UNKNOWN));
                let alias = alias.as_ref();
                let alias = alias.map(|alias| self.ident(&alias.name, alias.location));
                JoinConstraint::Using(names.collect(), alias)
            }
        };
        Ok(match node.jointype {
            JoinType::Inner => JoinOperator::Join(constraint),
            JoinType::Left => JoinOperator::Left(constraint),
            JoinType::Right => JoinOperator::Right(constraint),
            JoinType::Full => JoinOperator::FullOuter(constraint),
            JoinType::Cross => JoinOperator::CrossJoin(constraint),
        })
    }
}
