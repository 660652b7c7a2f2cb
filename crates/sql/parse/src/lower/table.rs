//! Statements about tables and what belongs to them; CREATE TABLE.

use super::{Lower, Lowered};
use crate::StatementKind;
use crate::ast::{
    CollationName, ColumnDef, Constraint, ConstraintKind, CreateStmt, DefElem, Location, Name,
    Persistence, RangeVar, Stmt, TableElement,
};
use crate::lowered as library;
use logstead_sql_types::error::{Result, SqlError};

/// The one way to store the rows of a table.
const HEAP: &str = "heap";

/// A statement that the catalog runs.
pub(super) fn ddl(statement: library::Statement, tag: &'static str) -> Lowered {
    Lowered {
        statement,
        kind: StatementKind::Ddl(tag),
        as_of: None,
    }
}

/// A statement that is not supported, by name.
pub(super) fn refused(what: &'static str) -> Lowered {
    Lowered::command(StatementKind::Unsupported(what))
}

impl Lower<'_> {
    /// Lowers a statement that makes a table, an index, a view or a schema.
    pub(super) fn of_table(&self, stmt: &Stmt) -> Result<Lowered> {
        match stmt {
            Stmt::Create(create) => self.create_table(create),
            Stmt::CreateTableAs(create) => self.create_table_as(create),
            Stmt::RefreshMatView(refresh) => Ok(self.refresh_mat_view(refresh)),
            Stmt::View(view) => self.create_view(view),
            Stmt::Index(index) => self.create_index(index),
            Stmt::AlterTableMoveAll(_) => Ok(refused("ALTER ... ALL IN TABLESPACE")),
            Stmt::CreateStats(_) | Stmt::AlterStats(_) => {
                Ok(refused("statistics of several columns"))
            }
            Stmt::CreateSchema(create) => self.create_schema(create),
            _ => Err(SqlError::internal("no statement about a table")),
        }
    }

    /// Names of columns that stand at no place of their own.
    pub(super) fn names_of(&self, names: &[Name]) -> Vec<library::Ident> {
        let ident = |name: &Name| self.ident(name, Location::UNKNOWN);
        names.iter().map(ident).collect()
    }

    /// Where the token behind another one begins.
    pub(super) fn location_behind(&self, location: Location) -> Location {
        let token = self.token(location);
        let behind = token.and_then(|token| self.token_behind(token));
        behind.map_or(Location::UNKNOWN, |token| Location::at(token.start))
    }

    /// The name behind COLLATE.
    fn collation_name(&self, clause: &CollationName) -> library::ObjectName {
        self.object_name(&clause.name, self.location_behind(clause.location))
    }

    fn create_table(&self, create: &CreateStmt) -> Result<Lowered> {
        if create.foreign.is_some() {
            return Ok(refused("a foreign table or server"));
        }
        if create.of_typename.is_some() {
            return Ok(refused("CREATE TABLE OF a type"));
        }
        if create.access_method.as_deref().is_some_and(|m| m != HEAP) {
            return Ok(refused("an access method"));
        }
        let is_partition = create.partbound.is_some();
        let (mut columns, mut constraints) = (Vec::new(), Vec::new());
        for element in &create.table_elts {
            match element {
                // A partition is refused whatever its columns are, and those have no types.
                TableElement::Column(_) if is_partition => {}
                TableElement::Column(def) => {
                    let column = self.column_def(def)?;
                    columns.push(library::TableElement::Column(column));
                }
                TableElement::Like(like) => {
                    let source = self.relation_name(&like.relation);
                    columns.push(library::TableElement::Like(source, like.options));
                }
                TableElement::Constraint(constraint) => {
                    constraints.push(self.table_constraint(constraint)?);
                }
            }
        }
        let parents: Vec<_> = create.inh_relations.iter().collect();
        let parents: Vec<_> = parents.into_iter().map(|r| self.relation_name(r)).collect();
        let (partition_of, inherits) = match (is_partition, parents) {
            (true, parents) => (parents.into_iter().next(), None),
            (false, parents) => (None, (!parents.is_empty()).then_some(parents)),
        };
        let options = match &create.tablespacename {
            Some(name) => tablespace(name),
            None => self.with_options(&create.options),
        };
        let table = library::CreateTable {
            if_not_exists: create.if_not_exists,
            columns,
            constraints,
            inherits,
            partition_of,
            // Which keys it is divided by is told nobody: it is refused.
            partition_by: create.partspec.is_some(),
            table_options: options,
            on_commit: create.oncommit,
            ..self.new_table(&create.relation, create.global)
        };
        let statement = library::Statement::CreateTable(table);
        Ok(ddl(statement, "CREATE TABLE"))
    }

    /// A new table with its name and persistence.
    pub(super) fn new_table(&self, relation: &RangeVar, global: bool) -> library::CreateTable {
        library::CreateTable {
            temporary: relation.persistence == Persistence::Temporary,
            unlogged: relation.persistence == Persistence::Unlogged,
            global,
            ..library::CreateTable::of(self.relation_name(relation))
        }
    }

    /// WITH (...)
    pub(super) fn with_options(&self, options: &[DefElem]) -> library::CreateTableOptions {
        match options {
            [] => library::CreateTableOptions::None,
            options => library::CreateTableOptions::With(options.to_vec()),
        }
    }

    /// A column of CREATE TABLE or ADD COLUMN.
    pub(super) fn column_def(&self, def: &ColumnDef) -> Result<library::ColumnDef> {
        let Some(type_name) = &def.type_name else {
            return Err(SqlError::internal("a column without a type"));
        };
        if !def.fdwoptions.is_empty() {
            return Err(SqlError::unsupported("a foreign table or server"));
        }
        let mut options = Vec::new();
        let mut collate = def.coll_clause.as_ref();
        // The one that DEFERRABLE and its like speak of.
        let mut last: Option<usize> = None;
        for constraint in &def.constraints {
            if let Some(clause) = collate.take_if(|clause| clause.location < constraint.location) {
                options.push(collation(self.collation_name(clause)));
            }
            match &constraint.kind {
                ConstraintKind::AttrDeferrable
                | ConstraintKind::AttrNotDeferrable
                | ConstraintKind::AttrDeferred
                | ConstraintKind::AttrImmediate => {
                    let of = last.and_then(|last| options.get_mut(last));
                    self.constraint_attribute(constraint, of)?;
                }
                _ => {
                    last = Some(options.len());
                    options.push(self.column_option(constraint)?);
                }
            }
        }
        if let Some(clause) = collate {
            options.push(collation(self.collation_name(clause)));
        }
        Ok(library::ColumnDef {
            name: self.ident(&def.colname, def.location),
            data_type: self.data_type(type_name)?,
            compression: def.compression.as_ref().map(|method| method.to_string()),
            options,
        })
    }

    /// An attribute of a column's constraint, which stands behind it (`transformConstraintAttrs`).
    fn constraint_attribute(
        &self,
        attribute: &Constraint,
        of: Option<&mut library::ColumnOptionDef>,
    ) -> Result<()> {
        let wrong = |message: String| {
            let position = attribute.location.character(self.text());
            Err(SqlError::new(logstead_types::SqlState::SYNTAX_ERROR, message).at(position))
        };
        let (words, deferrable, initially) = match &attribute.kind {
            ConstraintKind::AttrDeferrable => ("DEFERRABLE", Some(true), None),
            ConstraintKind::AttrNotDeferrable => ("NOT DEFERRABLE", Some(false), None),
            ConstraintKind::AttrDeferred => (
                "INITIALLY DEFERRED",
                None,
                Some(library::DeferrableInitial::Deferred),
            ),
            _ => (
                "INITIALLY IMMEDIATE",
                None,
                Some(library::DeferrableInitial::Immediate),
            ),
        };
        let place = match of.map(|of| &mut of.option) {
            Some(library::ColumnOption::PrimaryKey(key)) => &mut key.characteristics,
            Some(library::ColumnOption::Unique(key)) => &mut key.characteristics,
            Some(library::ColumnOption::ForeignKey(key)) => &mut key.characteristics,
            _ => return wrong(format!("misplaced {words} clause")),
        };
        let all = place.get_or_insert_default();
        if deferrable.is_some() && all.deferrable.is_some() {
            return wrong("multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed".to_owned());
        }
        if initially.is_some() && all.initially.is_some() {
            return wrong("multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed".to_owned());
        }
        all.deferrable = all.deferrable.or(deferrable);
        all.initially = all.initially.or(initially);
        let is_deferred = all.initially == Some(library::DeferrableInitial::Deferred);
        match is_deferred && all.deferrable == Some(false) {
            true => {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                wrong(message.to_owned())
            }
            false => Ok(()),
        }
    }
}

/// COLLATE of a column.
fn collation(name: library::ObjectName) -> library::ColumnOptionDef {
    library::ColumnOptionDef {
        name: None,
        option: library::ColumnOption::Collation(name),
    }
}

/// TABLESPACE, which is refused by its name.
pub(super) fn tablespace(name: &Name) -> library::CreateTableOptions {
    library::CreateTableOptions::Tablespace(name.to_string())
}

#[cfg(test)]
mod tests;
