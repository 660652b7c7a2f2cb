//! COMMENT, and how statements name objects of any kind.

use super::routine_ref::{routine_word, unplaced_name};
use super::unsupported::unsupported_kind;
use super::{Lower, Lowered};
use crate::ast::{
    AnyName, CommentStmt, Name, Names, ObjectRef, ObjectType, ObjectWithArgs, RangeVar,
    RelationName, Stmt, TypeName, TypeRef, Value,
};
use crate::lowered as library;
use crate::{
    CommentOn, Commented, LargeObjectCommand, PolicyAction, PolicyStatement, RoutineCommand,
    StatementKind, TriggerAction, TriggerStatement,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;

/// The parts of a relation's name.
pub(super) fn relation_parts(relation: &RangeVar) -> Names {
    let mut names = Names::new();
    match &relation.name {
        RelationName::Named {
            catalog,
            schema,
            name,
        } => {
            names.extend(catalog.clone());
            names.extend(schema.clone());
            names.push(name.clone());
        }
        RelationName::Source(number) => names.push(format!("\u{1}{number}").into()),
    }
    names
}

/// A name of an object whose kind the grammar checks to have one.
pub(super) fn name_of(object: &ObjectRef) -> Result<&AnyName> {
    match object {
        ObjectRef::Name(name) => Ok(name),
        _ => Err(unexpected_object()),
    }
}

/// The relation of an object that is one.
pub(super) fn relation_of(object: &ObjectRef) -> Result<&RangeVar> {
    match object {
        ObjectRef::Relation(relation) => Ok(relation),
        _ => Err(unexpected_object()),
    }
}

/// The routine of an object that is one.
pub(super) fn routine_of(object: &ObjectRef) -> Result<&ObjectWithArgs> {
    match object {
        ObjectRef::WithArgs(object) => Ok(object),
        _ => Err(unexpected_object()),
    }
}

/// The name of an object that belongs to a relation or a domain, and that one's.
pub(super) fn name_and_relation(object: &ObjectRef) -> Result<(&Name, &AnyName)> {
    match object {
        ObjectRef::OnRelation { name, relation } => Ok((name, relation)),
        _ => Err(unexpected_object()),
    }
}

/// The number of a large object.
pub(super) fn large_object_of(object: &ObjectRef) -> Result<Oid> {
    match object {
        ObjectRef::LargeObject(number) => oid_of(number),
        _ => Err(unexpected_object()),
    }
}

/// An object whose grammar has another form. The grammar gives none.
pub(super) fn unexpected_object() -> SqlError {
    SqlError::internal("an object of another form than its kind has")
}

/// `oidparse`
fn oid_of(number: &Value) -> Result<Oid> {
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

/// The name of a type that stands for itself: no array, no set.
pub(super) fn type_parts(name: &TypeName, statement: &str) -> Result<Names> {
    if name.setof || !name.array_bounds.is_empty() {
        let what = format!("{statement} of an array or a set");
        return Err(SqlError::unsupported(what));
    }
    Ok(match &name.name {
        TypeRef::Named(names) => names.clone(),
        TypeRef::Stored(oid) => Names::from_iter([Name::from(format!("\u{2}{oid}"))]),
    })
}

impl Lower<'_> {
    /// Lowers what is said of objects of any kind.
    pub(super) fn of_object(&self, stmt: &Stmt) -> Result<Lowered> {
        match stmt {
            Stmt::Drop(drop) => self.drop(drop),
            Stmt::Comment(comment) => self.comment(comment),
            Stmt::SecLabel(_) => Ok(Lowered::unsupported("SECURITY LABEL")),
            Stmt::Rename(rename) => self.rename(rename),
            Stmt::AlterObjectSchema(alter) => self.set_schema(alter),
            Stmt::AlterObjectDepends(alter) => self.depends_on_extension(alter),
            Stmt::AlterOwner(alter) => self.owner_to(alter),
            _ => Err(unexpected_object()),
        }
    }

    /// A qualified name, with the place of its beginning.
    pub(super) fn placed_name(&self, name: &AnyName) -> library::ObjectName {
        self.object_name(&name.names, name.location)
    }

    /// COMMENT
    fn comment(&self, stmt: &CommentStmt) -> Result<Lowered> {
        use library::CommentObject as C;
        let CommentStmt {
            objtype, object, ..
        } = stmt;
        let text = stmt.comment.as_deref().map(str::to_owned);
        if let Some(word) = routine_word(*objtype) {
            let target = self.routine_ref(routine_of(object)?)?;
            let command = RoutineCommand::Comment { word, target, text };
            return Ok(Lowered::command(StatementKind::Routine(Box::new(command))));
        }
        let on_named = |kind| {
            let name = self.placed_name(name_of(object)?);
            Ok(comment_on(Commented::Named { kind, name }, text.clone()))
        };
        let known = match objtype {
            ObjectType::Table => C::Table,
            ObjectType::Index => C::Index,
            ObjectType::Sequence => C::Sequence,
            ObjectType::View => C::View,
            ObjectType::MatView => C::MaterializedView,
            ObjectType::Column => C::Column,
            ObjectType::Schema => C::Schema,
            ObjectType::Database => C::Database,
            ObjectType::Role => C::Role,
            ObjectType::Extension => C::Extension,
            ObjectType::Type => C::Type,
            ObjectType::Domain => C::Domain,
            ObjectType::Policy => {
                let (name, table) = name_and_relation(object)?;
                return Ok(of_policy(name, table, PolicyAction::Comment(text)));
            }
            ObjectType::Trigger => {
                let (name, table) = name_and_relation(object)?;
                return Ok(of_trigger(name, table, TriggerAction::Comment(text)));
            }
            ObjectType::LargeObject => {
                let object = large_object_of(object)?;
                let command = LargeObjectCommand::Comment { object, text };
                return Ok(Lowered::command(StatementKind::LargeObject(Box::new(
                    command,
                ))));
            }
            ObjectType::TabConstraint | ObjectType::DomConstraint => {
                let (constraint, owner) = name_and_relation(object)?;
                let on = CommentOn {
                    other: None,
                    constraint: constraint.to_string(),
                    owner: self.placed_name(owner),
                    domain: *objtype == ObjectType::DomConstraint,
                    comment: text,
                };
                return Ok(Lowered::command(StatementKind::CommentOn(Box::new(on))));
            }
            ObjectType::Language => return on_named("language"),
            ObjectType::AccessMethod => return on_named("access method"),
            ObjectType::Collation => return on_named("collation"),
            ObjectType::TsConfiguration => return on_named("text search configuration"),
            ObjectType::TsDictionary => return on_named("text search dictionary"),
            ObjectType::TsParser => return on_named("text search parser"),
            ObjectType::TsTemplate => return on_named("text search template"),
            ObjectType::Conversion => return on_named("conversion"),
            ObjectType::EventTrigger => return on_named("event trigger"),
            ObjectType::Fdw => return on_named("foreign data wrapper"),
            ObjectType::ForeignServer => return on_named("server"),
            ObjectType::Publication => return on_named("publication"),
            ObjectType::Subscription => return on_named("subscription"),
            ObjectType::StatisticExt => return on_named("statistics"),
            ObjectType::OpClass | ObjectType::OpFamily => {
                let ObjectRef::OfMethod { name, method } = object else {
                    return Err(unexpected_object());
                };
                let kind = match objtype {
                    ObjectType::OpClass => "operator class",
                    _ => "operator family",
                };
                let other = Commented::OfMethod {
                    kind,
                    name: self.placed_name(name),
                    method: method.to_string(),
                };
                return Ok(comment_on(other, text));
            }
            ObjectType::Operator => {
                let operator = self.regoperator(routine_of(object)?)?;
                return Ok(comment_on(Commented::Operator(operator), text));
            }
            ObjectType::Cast => {
                let ObjectRef::Cast { source, target } = object else {
                    return Err(unexpected_object());
                };
                let cast = Commented::Cast(self.data_type(source)?, self.data_type(target)?);
                return Ok(comment_on(cast, text));
            }
            ObjectType::Rule => {
                let (name, table) = name_and_relation(object)?;
                let rule = Commented::Rule {
                    name: name.to_string(),
                    table: self.placed_name(table),
                };
                return Ok(comment_on(rule, text));
            }
            ObjectType::Tablespace => return Err(SqlError::unsupported("COMMENT ON TABLESPACE")),
            ObjectType::ForeignTable => {
                return Err(SqlError::unsupported("COMMENT ON FOREIGN TABLE"));
            }
            ObjectType::Transform => return Err(SqlError::unsupported("COMMENT ON TRANSFORM")),
            other => return Ok(Lowered::unsupported(unsupported_kind(*other))),
        };
        let object_name = match object {
            ObjectRef::Type(name) => {
                self.object_name(&type_parts(name, "COMMENT ON TYPE")?, name.location)
            }
            _ => self.placed_name(name_of(object)?),
        };
        Ok(Lowered::ddl(
            library::Statement::Comment {
                object_type: known,
                object_name,
                comment: text,
            },
            "COMMENT",
        ))
    }

    /// An operator as `regoperator` reads it.
    fn regoperator(&self, object: &ObjectWithArgs) -> Result<String> {
        let Some(operator) = &object.operator else {
            return Err(unexpected_object());
        };
        let mut text = String::new();
        for schema in &operator.schema {
            text.push_str(&self.ident(schema, Default::default()).to_string());
            text.push('.');
        }
        text.push_str(&operator.name);
        let types = object.objargs.iter().flatten().map(|arg| match arg {
            Some(name) => self.data_type(name).map(|ty| type_text(&ty)),
            None => Ok("none".to_owned()),
        });
        let types = types.collect::<Result<Vec<String>>>()?;
        Ok(format!("{text}({})", types.join(", ")))
    }
}

/// A type as text, in small letters where its name is SQL's own.
fn type_text(ty: &library::DataType) -> String {
    let text = ty.to_string();
    match text.contains('"') {
        true => text,
        false => text.to_lowercase(),
    }
}

fn comment_on(other: Commented, comment: Option<String>) -> Lowered {
    Lowered::command(StatementKind::CommentOn(Box::new(CommentOn {
        other: Some(other),
        constraint: String::new(),
        owner: library::ObjectName(Vec::new()),
        domain: false,
        comment,
    })))
}

/// A statement about a policy.
pub(super) fn of_policy(name: &Name, table: &AnyName, action: PolicyAction) -> Lowered {
    Lowered::command(StatementKind::Policy(Box::new(PolicyStatement {
        name: name.to_string(),
        table: unplaced_name(&table.names),
        action,
    })))
}

/// A statement about a trigger.
pub(super) fn of_trigger(name: &Name, table: &AnyName, action: TriggerAction) -> Lowered {
    Lowered::command(StatementKind::Trigger(Box::new(TriggerStatement {
        name: name.to_string(),
        table: unplaced_name(&table.names),
        action,
    })))
}

#[cfg(test)]
mod tests;
