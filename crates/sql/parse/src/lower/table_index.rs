//! Indexes, and storage parameters of all that has them.

use super::table::{ddl, mark, refused};
use super::{Lower, Lowered};
use crate::ast::{
    DefArg, DefElem, IndexElem, IndexKey, IndexStmt, Location, SortByDir, SortByNulls, TypeName,
    TypeRef,
};
use crate::lexer::TokenKind;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast as library;

/// A number as an expression: a negative one has its sign apart.
pub(super) fn number(text: &str) -> library::Expr {
    let digits =
        |digits: &str| library::Expr::value(library::Value::Number(digits.to_owned(), false));
    match text.strip_prefix('-') {
        Some(rest) => library::Expr::UnaryOp {
            op: library::UnaryOperator::Minus,
            expr: Box::new(digits(rest)),
        },
        None => digits(text),
    }
}

fn index_type(name: library::Ident) -> library::IndexType {
    match name.value.as_str() {
        "btree" => library::IndexType::BTree,
        "hash" => library::IndexType::Hash,
        "gin" => library::IndexType::GIN,
        "gist" => library::IndexType::GiST,
        "spgist" => library::IndexType::SPGiST,
        "brin" => library::IndexType::BRIN,
        "bloom" => library::IndexType::Bloom,
        _ => library::IndexType::Custom(name),
    }
}

/// A type's name where it stands for a word.
fn word_of(name: &TypeName) -> String {
    match &name.name {
        // The grammar knows those of PostgreSQL's own.
        TypeRef::Named(names) => match names.as_slice() {
            [schema, name] if &**schema == "pg_catalog" => name.to_string(),
            names => names.join("."),
        },
        TypeRef::Stored(oid) => oid.to_string(),
    }
}

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
        let mut with = Vec::new();
        for option in &index.options {
            let (key, value) = self.storage_option(option)?;
            with.push(library::Expr::BinaryOp {
                left: Box::new(library::Expr::Identifier(key)),
                op: library::BinaryOperator::Eq,
                right: Box::new(value),
            });
        }
        let predicate = match &index.where_clause {
            Some(expr) => Some(self.expr(expr)?),
            None => None,
        };
        let name = index.idxname.as_ref();
        let name = name.map(|name| self.ident(name, Location::UNKNOWN));
        let using = index.access_method.as_ref();
        let using = using.map(|name| index_type(self.ident(name, Location::UNKNOWN)));
        let create = library::CreateIndex {
            name: name.map(|name| library::ObjectName::from(vec![name])),
            table_name: self.relation_name(&index.relation),
            using,
            columns,
            unique: index.unique,
            concurrently: index.concurrent,
            r#async: false,
            if_not_exists: index.if_not_exists,
            include,
            nulls_distinct: index.nulls_not_distinct.then_some(false),
            with,
            predicate,
            index_options: Vec::new(),
            alter_options: Vec::new(),
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
                with_fill: None,
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

    /// Storage parameters of WITH or SET.
    pub(super) fn storage_options(&self, options: &[DefElem]) -> Result<Vec<library::SqlOption>> {
        let mut all = Vec::with_capacity(options.len());
        for option in options {
            let (key, value) = self.storage_option(option)?;
            all.push(library::SqlOption::KeyValue { key, value });
        }
        Ok(all)
    }

    /// Options of a view: one that is said alone is the text of what is true.
    pub(super) fn view_options(&self, options: &[DefElem]) -> Result<Vec<library::SqlOption>> {
        let mut all = self.storage_options(options)?;
        for (option, said) in all.iter_mut().zip(options) {
            if let (library::SqlOption::KeyValue { value, .. }, None) = (option, &said.arg) {
                let text = library::Value::SingleQuotedString("true".to_owned());
                *value = library::Expr::value(text);
            }
        }
        Ok(all)
    }

    /// The name of a storage parameter, with that of what it is of in front.
    pub(super) fn option_key(&self, option: &DefElem) -> library::Ident {
        match &option.namespace {
            Some(namespace) => mark(format!("{namespace}.{}", option.name)),
            None => self.ident(&option.name, option.location),
        }
    }

    /// Is the value of an option a literal, and no word?
    fn is_literal(&self, option: &DefElem) -> bool {
        let mut token = self.token(option.location);
        // The name, with what it is of in front.
        for _ in 0..4 {
            let behind = token.and_then(|token| self.token_behind(token));
            if token.is_some_and(|token| token.kind == TokenKind::Equals) {
                return behind.is_some_and(|value| value.kind == TokenKind::SConst);
            }
            token = behind;
        }
        false
    }

    fn storage_option(&self, option: &DefElem) -> Result<(library::Ident, library::Expr)> {
        let word = |word: &str| library::Expr::Identifier(library::Ident::new(word));
        let boolean = |value| library::Expr::value(library::Value::Boolean(value));
        let value = match &option.arg {
            // Said alone it is true.
            None => boolean(true),
            Some(DefArg::Boolean(value)) => boolean(*value),
            Some(DefArg::String(text)) => match &**text {
                text if !self.is_literal(option) => match text {
                    "true" => boolean(true),
                    "false" => boolean(false),
                    text => word(text),
                },
                text => library::Expr::value(library::Value::SingleQuotedString(text.to_owned())),
            },
            Some(DefArg::Integer(value)) => number(&value.to_string()),
            Some(DefArg::Float(text)) => number(text),
            Some(DefArg::Type(name)) => word(&word_of(name)),
            Some(DefArg::None) => word("none"),
            Some(_) => {
                return Err(SqlError::unsupported(format!(
                    "this value of storage parameter \"{}\"",
                    option.name
                )));
            }
        };
        Ok((self.option_key(option), value))
    }
}
