//! Which object a statement names (`objectaddress.c`): the parts of an [`ObjectRef`] that its kind has.

use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::ast::{
    AnyName, Name, Names, ObjectRef, ObjectType, ObjectWithArgs, RangeVar, Stmt, TypeName, TypeRef,
    Value,
};
use logstead_sql_parse::ast::{GrantTarget, RoleSpec};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{FunctionId, RelationId, TypeId};
use logstead_types::SqlState;

/// An object in another form than its kind has. The grammar gives none.
pub(super) fn unexpected_object() -> SqlError {
    SqlError::internal("an object of another form than its kind has")
}

/// The name of an object that has nothing else.
pub(super) fn name_of(object: &ObjectRef) -> Result<&AnyName> {
    match object {
        ObjectRef::Name(name) => Ok(name),
        _ => Err(unexpected_object()),
    }
}

/// The name of an object that no schema is in front of.
pub(super) fn plain_name(object: &ObjectRef) -> Result<&Name> {
    name_of(object)?.names.last().ok_or_else(unexpected_object)
}

/// The parts of names with points between them (`NameListToString`).
pub(super) fn dotted_names(objects: &[ObjectRef]) -> Result<Vec<String>> {
    let names = objects.iter().map(name_of);
    names.map(|name| Ok(name?.names.join("."))).collect()
}

/// The relation of an object that is one.
pub(super) fn relation_of(object: &ObjectRef) -> Result<&RangeVar> {
    match object {
        ObjectRef::Relation(relation) => Ok(relation),
        _ => Err(unexpected_object()),
    }
}

/// The routine or operator of an object that is one.
pub(super) fn with_args(object: &ObjectRef) -> Result<&ObjectWithArgs> {
    match object {
        ObjectRef::WithArgs(object) => Ok(object),
        _ => Err(unexpected_object()),
    }
}

/// The name of an object that belongs to a relation or a domain, and the name of that.
pub(super) fn name_and_relation(object: &ObjectRef) -> Result<(&Name, &AnyName)> {
    match object {
        ObjectRef::OnRelation { name, relation } => Ok((name, relation)),
        _ => Err(unexpected_object()),
    }
}

/// The number of a large object (`oidparse`).
pub(super) fn large_object_of(object: &ObjectRef) -> Result<Oid> {
    let ObjectRef::LargeObject(number) = object else {
        return Err(unexpected_object());
    };
    match number {
        Value::Integer(number) => Ok(number.cast_unsigned()),
        Value::Float(written) => written.parse().map_err(|_| {
            let digits = written.strip_prefix('-').unwrap_or(written);
            match digits.bytes().all(|b| b.is_ascii_digit()) {
                true => SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("value \"{written}\" is out of range for type oid"),
                ),
                false => SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!("invalid input syntax for type oid: \"{written}\""),
                ),
            }
        }),
        _ => Err(unexpected_object()),
    }
}

/// The name of a type that stands for itself: no array, no set. `statement` is what 0A000 calls the statement.
pub(super) fn type_of(object: &ObjectRef, statement: &str) -> Result<Names> {
    let name: &TypeName = match object {
        ObjectRef::Type(name) => name,
        ObjectRef::Name(name) => return Ok(name.names.clone()),
        _ => return Err(unexpected_object()),
    };
    if name.setof || !name.array_bounds.is_empty() {
        let what = format!("{statement} of an array or a set");
        return Err(SqlError::unsupported(what));
    }
    match &name.name {
        TypeRef::Named(names) => Ok(names.clone()),
        TypeRef::Stored(_) => Err(unexpected_object()),
    }
}

/// Of which type a relation is.
pub(super) fn relation_type(relation: &Relation) -> ObjectType {
    match relation.kind {
        RelationKind::Sequence(_) => ObjectType::Sequence,
        RelationKind::View(_) => ObjectType::View,
        RelationKind::Materialized(..) => ObjectType::MatView,
        RelationKind::Table | RelationKind::Virtual(_) => ObjectType::Table,
    }
}

/// The large objects that a statement of the catalog names: the session looks whether they are there.
pub fn large_objects(stmt: &Stmt) -> Result<Vec<Oid>> {
    let kind = ObjectType::LargeObject;
    let objects = match stmt {
        Stmt::Grant(grant) => match &grant.target {
            GrantTarget::Objects(of, objects) if *of == kind => objects.as_slice(),
            _ => &[],
        },
        Stmt::Comment(comment) if comment.objtype == kind => std::slice::from_ref(&comment.object),
        Stmt::AlterOwner(alter) if alter.object_type == kind => std::slice::from_ref(&alter.object),
        _ => &[],
    };
    objects.iter().map(large_object_of).collect()
}

/// The roles of DROP OWNED; none in other statements.
pub fn drop_owned_roles(stmt: &Stmt) -> &[RoleSpec] {
    match stmt {
        Stmt::DropOwned(drop) => &drop.roles,
        _ => &[],
    }
}

/// What messages call a kind of objects.
pub(super) fn noun(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::AccessMethod => "access method",
        ObjectType::Aggregate => "aggregate",
        ObjectType::Cast => "cast",
        ObjectType::Collation => "collation",
        ObjectType::Conversion => "conversion",
        ObjectType::Database => "database",
        ObjectType::Domain => "domain",
        ObjectType::EventTrigger => "event trigger",
        ObjectType::Extension => "extension",
        ObjectType::Fdw => "foreign-data wrapper",
        ObjectType::ForeignServer => "server",
        ObjectType::ForeignTable => "foreign table",
        ObjectType::Function => "function",
        ObjectType::Index => "index",
        ObjectType::Language => "language",
        ObjectType::LargeObject => "large object",
        ObjectType::MatView => "materialized view",
        ObjectType::OpClass => "operator class",
        ObjectType::Operator => "operator",
        ObjectType::OpFamily => "operator family",
        ObjectType::ParameterAcl => "parameter",
        ObjectType::Policy => "policy",
        ObjectType::Procedure => "procedure",
        ObjectType::Publication => "publication",
        ObjectType::Role => "role",
        ObjectType::Routine => "routine",
        ObjectType::Rule => "rule",
        ObjectType::Schema => "schema",
        ObjectType::Sequence => "sequence",
        ObjectType::Subscription => "subscription",
        ObjectType::StatisticExt => "statistics object",
        ObjectType::TabConstraint | ObjectType::DomConstraint => "constraint",
        ObjectType::Table => "table",
        ObjectType::Tablespace => "tablespace",
        ObjectType::Transform => "transform",
        ObjectType::Trigger => "trigger",
        ObjectType::TsConfiguration => "text search configuration",
        ObjectType::TsDictionary => "text search dictionary",
        ObjectType::TsParser => "text search parser",
        ObjectType::TsTemplate => "text search template",
        ObjectType::Type => "type",
        ObjectType::View => "view",
        ObjectType::Column | ObjectType::Attribute => "column",
    }
}

/// Something that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ObjectAddress {
    /// Table, view or sequence.
    Relation(RelationId),
    /// A column by position.
    Column(RelationId, usize),
    /// A foreign key: its table and its OID.
    Foreign(RelationId, Oid),
    /// A user's type.
    Type(TypeId),
    /// The default of a column by position.
    Default(RelationId, usize),
    /// A CHECK constraint or primary key: its table and its OID.
    Constraint(RelationId, Oid),
    /// An index: its table and its OID.
    Index(RelationId, RelationId),
    /// A CHECK of a domain: the domain and its OID.
    DomainCheck(TypeId, Oid),
    /// An attribute of a composite type: the type and the attribute's number.
    Attribute(TypeId, i16),
    /// A policy: its table and its OID.
    Policy(RelationId, Oid),
    /// A trigger: its table and its OID.
    Trigger(RelationId, Oid),
    /// A function or procedure.
    Routine(FunctionId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::{DropBehavior, DropStmt};

    fn named(text: &str) -> Result<Vec<Oid>> {
        large_objects(&logstead_sql_parse::parse(text)?.remove(0).statement)
    }

    fn dropped(text: &str) -> Result<DropStmt> {
        match &**logstead_sql_parse::parse(text)?.remove(0).statement {
            Stmt::Drop(stmt) => Ok((**stmt).clone()),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn arrays_are_not_dropped_by_their_elements_name() -> Result<()> {
        let error = type_of(&dropped("DROP TYPE a[]")?.objects[0], "DROP TYPE").unwrap_err();
        assert_eq!(error.code().as_str(), "0A000");
        let message = "DROP TYPE of an array or a set is not supported";
        assert_eq!(error.fields().message, message);
        let stmt = dropped("DROP INDEX CONCURRENTLY a.b CASCADE")?;
        assert_eq!(dotted_names(&stmt.objects)?, ["a.b"]);
        assert!(stmt.concurrent && stmt.behavior == DropBehavior::Cascade);
        Ok(())
    }

    #[test]
    fn numbers_of_large_objects() -> Result<()> {
        for (written, wanted) in [("7", 7), ("4294967295", u32::MAX), ("-1", u32::MAX)] {
            let text = format!("COMMENT ON LARGE OBJECT {written} IS 'x'");
            assert_eq!(named(&text)?, [wanted], "{text}");
        }
        for (text, code, message) in [
            (
                "COMMENT ON LARGE OBJECT 4294967296 IS 'x'",
                "22003",
                "value \"4294967296\" is out of range for type oid",
            ),
            (
                "ALTER LARGE OBJECT 1.5 OWNER TO r",
                "22P02",
                "invalid input syntax for type oid: \"1.5\"",
            ),
        ] {
            match named(text) {
                Err(error) => {
                    assert_eq!(error.code().as_str(), code);
                    assert_eq!(error.fields().message, message);
                }
                Ok(found) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(named("GRANT SELECT ON LARGE OBJECT 1, 2 TO r")?, [1, 2]);
        Ok(())
    }
}
