//! What is bound, together with what whoever runs it must be allowed.
//!
//! Rule: binding asks nobody for rights, running does. What comes out of the binder is a [`Bound`], which holds the
//! query (a plan, an expression, a list of constraints) behind private fields: whoever runs it gets it by
//! [`Bound::check`] or [`Bound::check_ref`], with a [`PermissionChecker`] that sees [`Permissions`]. So a caller cannot
//! forget to check:
//! what it has not checked it does not have. Whoever only looks at a definition, and runs nothing of it, says so by the
//! name of the checker that it takes ([`NotExecuted`]). [`Bound::describe`] tells facts of the query, such as its type;
//! nothing that could be run may leave it.
//!
//! Invariants:
//! - [`Permissions`] are complete when a [`Bound`] is made. From then on they grow only ([`Bound::add_schema`]).
//! - A query that is made of another one ([`Bound::map`], [`Bound::try_map`]) takes its permissions along.
//! - Tables and parameters may be read before: tables are locked before rights are asked for, as in PostgreSQL, and a
//!   client is told of parameters without having any rights.
//!
//! Does not: know roles or what they were granted (`catalog::privileges`), or judge: `ddl::permissions::RoleChecker`.

use logstead_sql_catalog::Relation;
use logstead_sql_catalog::privileges::PermissionInfo;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::SqlType;
use logstead_sql_types::{FunctionId, RoleId, SchemaId};
use std::sync::Arc;

/// A schema in which a name was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaLookup {
    /// `pg_namespace.oid`
    pub schema: SchemaId,
    /// The name, if the schema was only found on the search path: to who may not use the schema it does not exist.
    pub unqualified: Option<String>,
}

impl SchemaLookup {
    /// Of a name that had the schema's in front, or of one that is known otherwise.
    pub fn explicit(schema: SchemaId) -> SchemaLookup {
        SchemaLookup {
            schema,
            unqualified: None,
        }
    }
}

/// A call of a function that a user has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionUse {
    /// `pg_proc.oid`
    pub function: FunctionId,
    /// Whose rights count; none is the role that runs the statement.
    pub as_role: Option<RoleId>,
}

/// What must be allowed to whoever runs something.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// What is done with relations and their columns.
    pub relations: Vec<PermissionInfo>,
    /// The same in bodies of functions that stand in the place of their calls: who may not call a function is told
    /// that.
    pub relations_of_functions: Vec<PermissionInfo>,
    /// Schemas in which names were looked up.
    pub schemas: Vec<SchemaLookup>,
    /// Users' functions that are called.
    pub functions: Vec<FunctionUse>,
}

impl Permissions {
    /// Whoever may run a statement at all may run this.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty()
            && self.relations_of_functions.is_empty()
            && self.schemas.is_empty()
            && self.functions.is_empty()
    }
}

/// Tables that are to be locked before a query runs, each once.
#[derive(Clone, Default)]
pub struct TableUses {
    /// Only read.
    pub read: Vec<Arc<Relation>>,
    /// Written.
    pub written: Vec<Arc<Relation>>,
    /// Rows of them are locked, and not written.
    pub locked: Vec<Arc<Relation>>,
}

/// The parameters of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterUses {
    /// Their types, declared or inferred.
    pub types: Vec<SqlType>,
    /// Which of them are variables that the query names.
    pub named: Vec<bool>,
}

/// Says whether something may be run.
pub trait PermissionChecker {
    /// An error (42501, or that a name does not exist) unless all of it is allowed.
    fn check(&mut self, permissions: &Permissions) -> Result<()>;
}

/// The checker of those who run nothing: they look at a definition, its types or its text.
pub struct NotExecuted;

impl PermissionChecker for NotExecuted {
    fn check(&mut self, _: &Permissions) -> Result<()> {
        Ok(())
    }
}

/// Something bound; see the module's documentation.
#[must_use = "what is bound does nothing until its permissions are checked"]
pub struct Bound<T> {
    query: T,
    permissions: Permissions,
    tables: TableUses,
    parameters: ParameterUses,
}

impl<T> Bound<T> {
    /// What the binder has made.
    pub(crate) fn new(
        query: T,
        permissions: Permissions,
        tables: TableUses,
        parameters: ParameterUses,
    ) -> Bound<T> {
        Bound {
            query,
            permissions,
            tables,
            parameters,
        }
    }

    /// The query, if the checker allows all that it takes.
    pub fn check(self, checker: &mut dyn PermissionChecker) -> Result<T> {
        checker.check(&self.permissions)?;
        Ok(self.query)
    }

    /// The same of a query that is kept, and checked again by whoever runs it next.
    pub fn check_ref(&self, checker: &mut dyn PermissionChecker) -> Result<&T> {
        checker.check(&self.permissions)?;
        Ok(&self.query)
    }

    /// What can be said of the query to whoever may not run it: its columns, whether it writes, of which type it is.
    pub fn describe<R>(&self, describe: impl FnOnce(&T) -> R) -> R {
        describe(&self.query)
    }

    /// What is made of the query, under the same permissions.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Bound<U> {
        Bound {
            query: make(self.query),
            permissions: self.permissions,
            tables: self.tables,
            parameters: self.parameters,
        }
    }

    /// The same, if it can be made.
    pub fn try_map<U>(self, make: impl FnOnce(T) -> Result<U>) -> Result<Bound<U>> {
        Ok(Bound {
            query: make(self.query)?,
            permissions: self.permissions,
            tables: self.tables,
            parameters: self.parameters,
        })
    }

    /// What whoever runs it must be allowed.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// The tables to lock before it runs.
    pub fn tables(&self) -> &TableUses {
        &self.tables
    }

    /// Its parameters.
    pub fn parameters(&self) -> &ParameterUses {
        &self.parameters
    }

    /// A schema that was looked into meanwhile: whoever runs the query must be allowed to use it, too.
    pub fn add_schema(&mut self, schema: SchemaId) {
        let known = &mut self.permissions.schemas;
        if !known.iter().any(|lookup| lookup.schema == schema) {
            known.push(SchemaLookup::explicit(schema));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::error::SqlError;
    use logstead_types::SqlState;

    /// Allows functions with even numbers only, and counts how often it is asked.
    #[derive(Default)]
    struct EvenFunctions {
        asked: usize,
    }

    impl PermissionChecker for EvenFunctions {
        fn check(&mut self, permissions: &Permissions) -> Result<()> {
            self.asked += 1;
            let mut functions = permissions.functions.iter();
            match functions.any(|used| used.function.get() % 2 == 1) {
                true => Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, "odd")),
                false => Ok(()),
            }
        }
    }

    fn calling(function: u32) -> Bound<Vec<u32>> {
        let permissions = Permissions {
            functions: vec![FunctionUse {
                function: FunctionId::new(function),
                as_role: None,
            }],
            ..Permissions::default()
        };
        let (tables, parameters) = (TableUses::default(), ParameterUses::default());
        Bound::new(vec![function], permissions, tables, parameters)
    }

    #[test]
    fn a_query_is_had_only_if_the_checker_allows_it() {
        let mut checker = EvenFunctions::default();
        assert_eq!(calling(2).check(&mut checker).unwrap(), [2]);
        assert!(calling(3).check(&mut checker).is_err());
        let kept = calling(5);
        assert!(kept.check_ref(&mut checker).is_err());
        assert!(kept.check_ref(&mut checker).is_err());
        assert_eq!(calling(4).check_ref(&mut checker).unwrap(), &[4]);
        assert_eq!(checker.asked, 5);
    }

    #[test]
    fn what_is_made_of_a_query_is_under_its_permissions() {
        let mut checker = EvenFunctions::default();
        let made = calling(3).map(|query| query.len());
        assert!(made.check(&mut checker).is_err());
        let made = calling(3).try_map(|query| Ok(query.len())).unwrap();
        assert!(made.check(&mut checker).is_err());
        assert_eq!(calling(3).check(&mut NotExecuted).unwrap(), [3]);
    }

    #[test]
    fn permissions_grow_only() {
        let mut bound = calling(2);
        bound.add_schema(SchemaId::new(7));
        bound.add_schema(SchemaId::new(7));
        bound.add_schema(SchemaId::new(8));
        let schemas = bound.map(drop).permissions().schemas.clone();
        assert_eq!(
            schemas,
            [
                SchemaLookup::explicit(SchemaId::new(7)),
                SchemaLookup::explicit(SchemaId::new(8))
            ]
        );
    }
}
