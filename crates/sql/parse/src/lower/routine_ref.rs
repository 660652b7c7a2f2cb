//! Functions, procedures and aggregates by name and arguments, and the parts of signatures.

use super::Lower;
use crate::ast::{
    FunctionParameter, FunctionParameterMode as Mode, Name, ObjectType, ObjectWithArgs, TypeName,
    TypeRef,
};
use crate::lowered as library;
use crate::{ArgClause, ArgMode, RoutineRef, RoutineWord, TypeClause};
use logstead_sql_types::error::{Result, SqlError};

/// The word of a kind of routines; none for other kinds.
pub(super) fn routine_word(kind: ObjectType) -> Option<RoutineWord> {
    Some(match kind {
        ObjectType::Function => RoutineWord::Function,
        ObjectType::Procedure => RoutineWord::Procedure,
        ObjectType::Routine => RoutineWord::Routine,
        ObjectType::Aggregate => RoutineWord::Aggregate,
        _ => return None,
    })
}

/// A name of commands that know no places: each part is in quotes.
pub(super) fn unplaced_name(names: &[Name]) -> library::ObjectName {
    let part = |name: &Name| library::Ident::with_quote('"', &**name);
    library::ObjectName(names.iter().map(part).collect())
}

impl Lower<'_> {
    /// A routine as a statement names it.
    pub(super) fn routine_ref(&self, object: &ObjectWithArgs) -> Result<RoutineRef> {
        let args = match object.objargs {
            Some(_) => Some(self.arg_clauses(object)?),
            None => None,
        };
        Ok(RoutineRef {
            name: unplaced_name(&object.objname.names),
            args,
        })
    }

    /// The arguments of a routine; those of an aggregate with the aggregated ones behind the direct ones.
    pub(super) fn arg_clauses(&self, object: &ObjectWithArgs) -> Result<Vec<ArgClause>> {
        let parameters = &object.objfuncargs;
        // One VARIADIC parameter stands for the direct arguments and for the aggregated ones.
        let last = parameters.last().map(|parameter| parameter.mode);
        if object.direct_args == Some(parameters.len()) && last == Some(Mode::Variadic) {
            return Err(SqlError::unsupported(
                "an ordered-set aggregate with a VARIADIC direct argument",
            ));
        }
        parameters
            .iter()
            .map(|parameter| self.arg_clause(parameter))
            .collect()
    }

    /// A parameter.
    pub(super) fn arg_clause(&self, parameter: &FunctionParameter) -> Result<ArgClause> {
        let default = match &parameter.defexpr {
            Some(expr) => Some(self.expr(expr)?),
            None => None,
        };
        Ok(ArgClause {
            mode: match parameter.mode {
                Mode::In | Mode::Default => ArgMode::In,
                Mode::Out => ArgMode::Out,
                Mode::InOut => ArgMode::InOut,
                Mode::Variadic => ArgMode::Variadic,
                Mode::Table => ArgMode::Table,
            },
            name: parameter.name.as_deref().map(str::to_owned),
            ty: self.type_clause(&parameter.arg_type)?,
            default,
            span: self.span(parameter.location),
        })
    }

    /// A type of a signature.
    pub(super) fn type_clause(&self, name: &TypeName) -> Result<TypeClause> {
        let data_type = match &name.name {
            TypeRef::Named(names) if name.pct_type => {
                library::DataType::Custom(self.object_name(names, name.location), Vec::new())
            }
            _ if name.setof => self.data_type(&TypeName {
                setof: false,
                ..name.clone()
            })?,
            _ => self.data_type(name)?,
        };
        Ok(TypeClause {
            set: name.setof,
            data_type,
            of_column: name.pct_type,
            span: self.span(name.location),
        })
    }
}
