//! Indexes.

use super::table::{ddl, refused};
use super::{Lower, Lowered};
use crate::ast::{IndexElem, IndexKey, IndexStmt, Location, SortByDir, SortByNulls};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl Lower<'_> {
    pub(super) fn create_index(&self, index: &IndexStmt) -> Result<Lowered> {
        if index.table_space.is_some() {
            return Ok(refused("TABLESPACE of an index"));
        }
        let mut columns = Vec::new();
        for elem in &index.index_params {
            columns.push(self.index_elem(elem)?);
        }
        let mut include = Vec::new();
        for elem in &index.index_including_params {
            include.push(self.included_column(elem)?);
        }
        let predicate = match &index.where_clause {
            Some(expr) => Some(self.expr(expr)?),
            None => None,
        };
        let name = index.idxname.as_ref();
        let name = name.map(|name| self.ident(name, Location::UNKNOWN));
        let using = index.access_method.as_ref();
        let using = using.map(|name| self.ident(name, Location::UNKNOWN));
        let create = library::CreateIndex {
            name: name.map(|name| library::ObjectName::from(vec![name])),
            table_name: self.relation_name(&index.relation),
            using,
            columns,
            unique: index.unique,
            concurrently: index.concurrent,
            if_not_exists: index.if_not_exists,
            include,
            nulls_not_distinct: index.nulls_not_distinct,
            with: index.options.clone(),
            predicate,
        };
        Ok(ddl(library::Statement::CreateIndex(create), "CREATE INDEX"))
    }

    /// A key of an index or of EXCLUDE.
    pub(super) fn index_elem(&self, elem: &IndexElem) -> Result<library::IndexColumn> {
        if !elem.opclassopts.is_empty() {
            return Err(SqlError::unsupported("an operator class with parameters"));
        }
        let mut expr = match &elem.key {
            IndexKey::Column(name) => library::Expr::Identifier(self.ident(name, elem.location)),
            IndexKey::Expr(expr, true) => library::Expr::Nested(Box::new(self.expr(expr)?)),
            IndexKey::Expr(expr, false) => self.expr(expr)?,
        };
        if let Some(name) = &elem.collation {
            expr = library::Expr::Collate {
                expr: Box::new(expr),
                collation: self.object_name(&name.names, name.location),
            };
        }
        let class = elem.opclass.as_ref();
        Ok(library::IndexColumn {
            column: library::OrderByExpr {
                expr,
                options: library::OrderByOptions {
                    sort: match &elem.ordering {
                        SortByDir::Asc => Some(library::OrderBySort::Asc),
                        SortByDir::Desc => Some(library::OrderBySort::Desc),
                        SortByDir::Default | SortByDir::Using(_) => None,
                    },
                    nulls_first: match elem.nulls_ordering {
                        SortByNulls::Default => None,
                        SortByNulls::First => Some(true),
                        SortByNulls::Last => Some(false),
                    },
                },
            },
            operator_class: class.map(|name| self.object_name(&name.names, name.location)),
        })
    }

    /// A column of INCLUDE, which is nothing but that (`ComputeIndexAttrs`).
    fn included_column(&self, elem: &IndexElem) -> Result<library::Ident> {
        let IndexKey::Column(name) = &elem.key else {
            return Err(SqlError::unsupported_text(
                "expressions are not supported in included columns",
            ));
        };
        let what = if elem.collation.is_some() {
            "a collation"
        } else if elem.opclass.is_some() {
            "an operator class"
        } else if elem.ordering != SortByDir::Default {
            "ASC/DESC options"
        } else if elem.nulls_ordering != SortByNulls::Default {
            "NULLS FIRST/LAST options"
        } else {
            return Ok(self.ident(name, elem.location));
        };
        let message = format!("including column does not support {what}");
        Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
    }
}
