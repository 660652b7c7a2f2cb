//! The end of binding: what was noted on the way becomes a [`Bound`], and what was bound apart becomes part of a
//! statement.
//!
//! Rule: a part that is bound by a binder of its own (a domain's CHECK) is checked with the statement that it is part
//! of. So a binder is a [`PermissionChecker`], which allows everything and asks for it itself in the end.

use super::Binder;
use crate::permissions::{
    Bound, FunctionUse, ParameterUses, PermissionChecker, Permissions, TableUses,
};
use logstead_sql_types::error::Result;

impl Binder<'_> {
    /// What is bound, with all that it takes.
    pub(crate) fn into_bound<T>(mut self, query: T) -> Result<Bound<T>> {
        let parameters = ParameterUses {
            types: self.finish_params()?,
            named: std::mem::take(&mut self.params_used),
        };
        Ok(self.into_bound_without_parameters(query, parameters))
    }

    /// The same of what has no parameters of its own: those of the statement around it are not asked for.
    pub(crate) fn into_bound_expression<T>(self, query: T) -> Bound<T> {
        self.into_bound_without_parameters(query, ParameterUses::default())
    }

    fn into_bound_without_parameters<T>(mut self, query: T, parameters: ParameterUses) -> Bound<T> {
        let (relations, relations_of_functions) = self.finish_access();
        let permissions = Permissions {
            relations,
            relations_of_functions,
            schemas: std::mem::take(&mut self.uses.schemas),
            functions: std::mem::take(&mut self.routines_used),
        };
        for table in std::mem::take(&mut self.constraint_writes) {
            self.writes(&table);
        }
        for table in std::mem::take(&mut self.constraint_reads) {
            self.reads(&table);
        }
        let written = std::mem::take(&mut self.tables_written);
        let mut read = std::mem::take(&mut self.tables_read);
        read.retain(|r| !written.iter().any(|w| w.oid == r.oid));
        let tables = TableUses {
            read,
            written,
            locked: std::mem::take(&mut self.tables_locked),
        };
        Bound::new(query, permissions, tables, parameters)
    }

    /// Takes in what another binder has bound: its tables are locked and its permissions asked for with the
    /// statement's.
    pub(super) fn absorb<'b, T>(&mut self, bound: &'b Bound<T>) -> Result<&'b T> {
        let tables = bound.tables();
        tables.read.iter().for_each(|table| self.reads(table));
        tables.written.iter().for_each(|table| self.writes(table));
        tables
            .locked
            .iter()
            .for_each(|table| self.locks_rows(table));
        bound.check_ref(self)
    }
}

impl PermissionChecker for Binder<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let definer = self.definer;
        let functions = permissions.functions.iter().map(|used| FunctionUse {
            function: used.function,
            as_role: used.as_role.or(definer),
        });
        self.routines_used.extend(functions);
        self.uses.add(&permissions.relations, definer);
        self.uses.add(&permissions.relations_of_functions, definer);
        let schemas = permissions.schemas.iter().cloned();
        self.uses.schemas.extend(schemas);
        Ok(())
    }
}
