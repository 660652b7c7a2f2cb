//! A view's definition as it is kept.
//!
//! The query is kept as it was written, except that every table it reads is named by number: [`ViewSource`] says what
//! the number means and which columns the table had, under which names, when the view was made. Whoever reads the query
//! sees the table so: it may be renamed, moved, get more columns or other names for them, and the view still means the
//! same (`bind::view` does that). So nothing has to be rewritten when a table changes, and `*` and NATURAL JOIN mean
//! what they meant.
//!
//! Invariant: a source's relation exists, and its columns in `used` are not dropped: they are dependencies
//! (`ddl::dependents`).

use super::Relation;
use logstead_sql_parse as parse;
use logstead_sql_parse::CheckOption;
use logstead_sql_parse::ast::{self, RangeVar, RelationName};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use std::sync::{Arc, OnceLock};

/// Begins the quoted name that stands for a source in a stored query.
pub(crate) const SOURCE_MARK: char = '\u{1}';

/// A view.
#[derive(Debug)]
pub struct View {
    /// OID of its rule in `pg_rewrite`.
    pub rule: Oid,
    /// The query, its tables by number.
    pub query: String,
    /// What the numbers mean.
    pub sources: Vec<ViewSource>,
    /// WITH CHECK OPTION.
    pub check: Option<CheckOption>,
    tree: OnceLock<Arc<ast::SelectStmt>>,
}

/// What a view depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewObject {
    /// A table, view or sequence.
    Relation(RelationId),
    /// A primary key that its GROUP BY relies on, by its constraint.
    Key(Oid),
}

impl ViewObject {
    /// Its number, of whichever class it is.
    pub fn number(self) -> Oid {
        match self {
            ViewObject::Relation(relation) => relation.get(),
            ViewObject::Key(constraint) => constraint,
        }
    }
}

/// A table that a view reads, as it was when the view was made. Or something that it depends on and does not read: a
/// relation that a constant names (`'s'::regclass`), which has no columns then, or a primary key, which has no name
/// either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSource {
    /// What it is.
    pub object: ViewObject,
    /// Its schema's name then.
    pub schema: String,
    /// Its name then.
    pub name: String,
    /// Its columns then: position and name.
    pub columns: Vec<(usize, String)>,
    /// Positions of those that the query uses.
    pub used: Vec<usize>,
}

impl ViewSource {
    /// A relation that the view's query names in a constant.
    pub fn constant(relation: &Relation) -> ViewSource {
        ViewSource {
            object: ViewObject::Relation(relation.oid),
            schema: relation.schema_name.clone(),
            name: relation.name.clone(),
            columns: Vec::new(),
            used: Vec::new(),
        }
    }

    /// A primary key, by its constraint, that the view's GROUP BY relies on.
    pub fn key(constraint: Oid) -> ViewSource {
        ViewSource {
            object: ViewObject::Key(constraint),
            schema: String::new(),
            name: String::new(),
            columns: Vec::new(),
            used: Vec::new(),
        }
    }

    /// The relation, unless it is a key.
    pub fn relation(&self) -> Option<RelationId> {
        match self.object {
            ViewObject::Relation(relation) => Some(relation),
            ViewObject::Key(_) => None,
        }
    }
}

impl View {
    /// A view of a query whose tables are numbered.
    pub fn new(
        rule: Oid,
        query: String,
        sources: Vec<ViewSource>,
        check: Option<CheckOption>,
    ) -> View {
        View {
            rule,
            query,
            sources,
            check,
            tree: OnceLock::new(),
        }
    }

    /// The query's tree.
    pub fn tree(&self) -> Result<Arc<ast::SelectStmt>> {
        if let Some(tree) = self.tree.get() {
            return Ok(Arc::clone(tree));
        }
        let mut parsed = parse::parse_stored(&self.query)?;
        let statement = parsed.pop().map(|parsed| parsed.statement);
        let Some(ast::Stmt::Select(query)) = statement.as_ref().map(|tree| &***tree) else {
            return Err(SqlError::internal("a view's query is none"));
        };
        let tree = self.tree.get_or_init(|| Arc::from(query.clone()));
        Ok(Arc::clone(tree))
    }

    /// The source that an item of the query's FROM reads.
    pub fn source(&self, item: &RangeVar) -> Option<&ViewSource> {
        match item.name {
            RelationName::Source(number) => self.sources.get(number as usize),
            RelationName::Named { .. } => None,
        }
    }

    /// Does its GROUP BY rely on a primary key, by its constraint?
    pub fn relies_on(&self, constraint: Oid) -> bool {
        let key = ViewObject::Key(constraint);
        self.sources.iter().any(|source| source.object == key)
    }

    /// Does it read the relation, or (with a position) that column of it?
    pub fn reads(&self, relation: RelationId, column: Option<usize>) -> bool {
        self.sources.iter().any(|source| {
            source.relation() == Some(relation) && column.is_none_or(|c| source.used.contains(&c))
        })
    }
}

/// The name that stands for source `number` in a stored query.
pub fn source_name(number: usize) -> String {
    format!("\"{SOURCE_MARK}{number}\"")
}
