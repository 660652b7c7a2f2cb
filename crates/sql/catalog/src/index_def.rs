//! What an index is: its keys, its predicate, how it is spelled.
//!
//! Expressions are kept as text, as CHECK conditions are: normal form, types explicit, so that they mean the same
//! whenever they are read. `index_keys` binds them.

use super::Relation;
use super::inert_options::{self, Attribute};
use super::text::{columns_in, quote_ident, quote_literal};
use crate::deparse;
use logstead_sql_func::extensions::stored_text_shown;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::user::{TypeLookup, TypeSpelling};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::IndexId;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// An index.
#[derive(Clone, Debug)]
pub struct IndexDef {
    /// `pg_class.oid` of the index.
    pub oid: RelationId,
    /// Name.
    pub name: String,
    /// Table OID.
    pub table: RelationId,
    /// Storage.
    pub storage: IndexId,
    /// UNIQUE.
    pub unique: bool,
    /// PRIMARY KEY.
    pub primary: bool,
    /// NULLS NOT DISTINCT: two rows with NULL in a key column conflict.
    pub nulls_not_distinct: bool,
    /// Of a deferrable constraint: writes do not check its keys, which may stand twice until the constraint is due.
    pub deferrable: bool,
    /// Key columns.
    pub columns: Vec<IndexColumn>,
    /// INCLUDE: positions of columns that are no part of the key. Rows are in memory: nothing is stored for them.
    pub include: Vec<usize>,
    /// WHERE: rows for which it is not true are not in the index.
    pub predicate: Option<String>,
    /// Where rows hold what is computed of them for this index: a position of the table for each key column, then one
    /// for the predicate. Empty if no expression of it calls a function that users have made
    /// (`catalog::index_expressions`).
    pub computed: Vec<Option<usize>>,
    /// Why it is not kept: at the start its text could not be read. Not stored, but found at each start. Nothing is
    /// planned with such an index; rows are
    /// written without it, unless it is UNIQUE: then they are not written.
    pub invalid: Option<Arc<str>>,
}

/// A key column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// What is indexed.
    pub key: IndexKey,
    /// DESC.
    pub desc: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// What a key column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexKey {
    /// The attribute at this position of the table, from 0.
    Column(usize),
    /// An immutable expression over the row.
    Expression {
        /// In normal form.
        text: String,
        /// Type of its values.
        ty: SqlType,
        /// Name of the index's column: the function's, or "expr".
        name: String,
    },
}

impl IndexColumn {
    /// An ascending key of a plain column.
    pub fn of(position: usize) -> IndexColumn {
        IndexColumn {
            key: IndexKey::Column(position),
            desc: false,
            nulls_first: false,
        }
    }

    /// The attribute's position, unless it is an expression.
    pub fn position(&self) -> Option<usize> {
        match self.key {
            IndexKey::Column(position) => Some(position),
            IndexKey::Expression { .. } => None,
        }
    }

    /// Type of the values.
    pub fn ty(&self, table: &Relation) -> SqlType {
        match &self.key {
            IndexKey::Column(position) => table
                .columns
                .get(*position)
                .map_or(SqlType::of(oid::TEXT), |c| c.ty),
            IndexKey::Expression { ty, .. } => *ty,
        }
    }

    /// Name of the index's column.
    pub fn name<'a>(&'a self, table: &'a Relation) -> &'a str {
        match &self.key {
            IndexKey::Column(position) => table
                .columns
                .get(*position)
                .map_or("?", |c| c.name.as_str()),
            IndexKey::Expression { name, .. } => name,
        }
    }

    /// As definitions spell it: an expression that is not a mere function call in parentheses.
    pub fn spelled(&self, table: &Relation, pretty: bool, types: TypeLookup<'_>) -> String {
        match &self.key {
            IndexKey::Column(_) => quote_ident(self.name(table)),
            IndexKey::Expression { text, .. } => {
                let shown = if pretty {
                    deparse::pretty(text, types)
                } else {
                    stored_text_shown(text, TypeSpelling::named(types))
                };
                if is_call(text) {
                    shown
                } else {
                    format!("({shown})")
                }
            }
        }
    }
}

/// A function call written as one.
fn is_call(text: &str) -> bool {
    use logstead_sql_parse::ast::Expr;
    use logstead_sql_parse::ast::{AExprKind, XmlExprOp};
    match logstead_sql_parse::parse_expr(text) {
        Ok(Expr::AExpr(node)) => node.kind == AExprKind::NullIf,
        Ok(Expr::XmlExpr(node)) => node.op != XmlExprOp::IsDocument,
        Ok(expr) => matches!(
            expr,
            Expr::FuncCall(_) | Expr::XmlSerialize(_) | Expr::CoalesceExpr(_) | Expr::MinMaxExpr(_)
        ),
        Err(_) => false,
    }
}

impl IndexDef {
    /// All that is kept as text: expressions and the predicate.
    pub fn texts(&self) -> Vec<&str> {
        let keys = self.columns.iter().filter_map(|c| match &c.key {
            IndexKey::Expression { text, .. } => Some(&**text),
            IndexKey::Column(_) => None,
        });
        keys.chain(self.predicate.as_deref()).collect()
    }

    /// The same, not kept because of an error.
    pub(crate) fn as_invalid(&self, why: &SqlError) -> Arc<IndexDef> {
        Arc::new(IndexDef {
            invalid: Some(why.fields().message.as_str().into()),
            ..self.clone()
        })
    }

    /// Where rows hold the value of a key column's expression.
    pub fn computed_key(&self, at: usize) -> Option<usize> {
        self.computed.get(at).copied().flatten()
    }

    /// Where rows hold whether they are in the index.
    pub fn computed_predicate(&self) -> Option<usize> {
        self.computed_key(self.columns.len())
    }

    /// Does every statement find at most one row with a key?
    pub fn holds_keys_once(&self) -> bool {
        self.unique && !self.deferrable
    }

    /// Positions of the key, if it consists of columns alone.
    pub fn positions(&self) -> Option<Vec<usize>> {
        self.columns.iter().map(IndexColumn::position).collect()
    }

    /// Whether every row of the table has its key in the index and the key consists of columns alone.
    pub fn is_plain(&self) -> bool {
        self.predicate.is_none() && self.columns.iter().all(|c| c.position().is_some())
    }

    /// Positions of all columns that the definition speaks of.
    pub fn mentions(&self, table: &Relation) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = self.include.iter().copied().collect();
        for column in &self.columns {
            match &column.key {
                IndexKey::Column(position) => {
                    all.insert(*position);
                }
                IndexKey::Expression { text, .. } => all.extend(columns_in(text, table)),
            }
        }
        if let Some(predicate) = &self.predicate {
            all.extend(columns_in(predicate, table));
        }
        all
    }

    /// Replaces every expression's text.
    pub fn each_text(
        &mut self,
        mut change: impl FnMut(&str) -> logstead_sql_types::error::Result<String>,
    ) -> logstead_sql_types::error::Result<()> {
        for column in &mut self.columns {
            if let IndexKey::Expression { text, .. } = &mut column.key {
                *text = change(text)?;
            }
        }
        if let Some(predicate) = &mut self.predicate {
            *predicate = change(predicate)?;
        }
        Ok(())
    }

    /// `CREATE INDEX` that would make this index, with its storage parameters (`name=value`).
    pub fn definition(
        &self,
        table: &Relation,
        options: &[String],
        pretty: bool,
        types: TypeLookup<'_>,
    ) -> String {
        let mut out = format!(
            "CREATE {}INDEX {} ON {}.{} USING btree (",
            if self.unique { "UNIQUE " } else { "" },
            quote_ident(&self.name),
            quote_ident(&table.schema_name),
            quote_ident(&table.name),
        );
        for (at, key) in self.columns.iter().enumerate() {
            let order = match (key.desc, key.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            let comma = if at > 0 { ", " } else { "" };
            let _ = write!(out, "{comma}{}", key.spelled(table, pretty, types));
            if let Some(collation) = inert_options::get(options, Attribute::Collation(at)) {
                let _ = write!(out, " COLLATE {}", quote_ident(collation));
            }
            if let Some(class) = inert_options::get(options, Attribute::OperatorClass(at)) {
                let _ = write!(out, " {}", quote_ident(class));
            }
            out.push_str(order);
        }
        out.push(')');
        if !self.include.is_empty() {
            let _ = write!(out, " INCLUDE ({})", self.included(table));
        }
        if self.nulls_not_distinct {
            out.push_str(" NULLS NOT DISTINCT");
        }
        if inert_options::parameters(options).next().is_some() {
            let all =
                inert_options::parameters(options).map(|option| match option.split_once('=') {
                    Some((name, value)) => format!("{name}={}", quote_literal(value)),
                    None => option.clone(),
                });
            let _ = write!(out, " WITH ({})", all.collect::<Vec<_>>().join(", "));
        }
        if let Some(predicate) = &self.predicate {
            let shown = if pretty {
                deparse::pretty(predicate, types)
            } else {
                stored_text_shown(predicate, TypeSpelling::named(types))
            };
            let _ = write!(out, " WHERE {shown}");
        }
        out
    }

    /// The INCLUDE columns' names.
    pub fn included(&self, table: &Relation) -> String {
        let names = self.include.iter().filter_map(|p| table.columns.get(*p));
        names
            .map(|c| quote_ident(&c.name))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
