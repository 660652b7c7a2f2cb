//! Types of rows with columns of domains.

use super::scope::SCOPE;
use super::{TypeLookup, UserTypeClass, UserTypes, class, relation_of_row_type};
use crate::error::{Result, SqlError};
use crate::value::SqlType;
use crate::{RelationId, TypeId};

/// [`TypeLookup::refuse_domains`], as the running statement sees the type.
pub fn refuse_domains(oid: TypeId) -> Result<()> {
    match relation_of_row_type(oid) {
        Some(_) => SCOPE.with_borrow(|scope| scope.lookup().refuse_domains(oid)),
        None => Ok(()),
    }
}

/// The modifier of a row type whose domains are asked about once a value is read: who reads it so has the rules of
/// [`UserTypes::row_with_domains`] around it.
pub const DOMAINS_ASKED: i32 = 1 << 20;

/// [`TypeLookup::refuse_unchecked_domains`], as the running statement sees the type.
pub fn refuse_unchecked_domains(ty: SqlType) -> Result<()> {
    match ty.typmod {
        DOMAINS_ASKED => Ok(()),
        _ => refuse_domains(ty.oid),
    }
}

impl TypeLookup<'_> {
    /// 0A000 for the type of rows that domains have to be asked about: values of it are made by nobody but their table.
    pub fn refuse_domains(self, oid: TypeId) -> Result<()> {
        let row = relation_of_row_type(oid).and_then(|relation| self.types.rows.get(&relation));
        match row {
            Some(row) if row.declared.is_some() => Err(SqlError::unsupported(format!(
                "a value of type {}, which has columns of domains, that is not a row of its table",
                self.format_type_bare(oid)
            ))),
            _ => Ok(()),
        }
    }

    /// As [`TypeLookup::refuse_domains`], unless they are asked about.
    pub fn refuse_unchecked_domains(self, ty: SqlType) -> Result<()> {
        match ty.typmod {
            DOMAINS_ASKED => Ok(()),
            _ => self.refuse_domains(ty.oid),
        }
    }
}

impl UserTypes {
    /// The row type and the table that a type is of whose rows have columns of domains, if it is such a type or an
    /// array over one.
    pub fn row_with_domains(&self, ty: TypeId) -> Option<(TypeId, RelationId)> {
        let row = match class(ty)? {
            UserTypeClass::Array => self.element_of(ty)?,
            _ => ty,
        };
        let relation = relation_of_row_type(row)?;
        let declared = &self.rows.get(&relation)?.declared;
        declared.is_some().then_some((row, relation))
    }
}
