//! DROP.

use super::object::{
    name_and_relation, name_of, of_policy, of_trigger, routine_of, type_parts, unexpected_object,
};
use super::routine_ref::{routine_word, unplaced_name};
use super::unsupported::unsupported_kind;
use super::{Lower, Lowered};
use crate::ast::{DropBehavior, DropStmt, ObjectRef, ObjectType};
use crate::lowered as library;
use crate::{
    ExtensionCommand, PolicyAction, RoutineCommand, StatementKind, TriggerAction, TypeCommand,
};
use logstead_sql_types::error::Result;

/// Languages that are there.
const LANGUAGES: [&str; 4] = ["c", "internal", "plpgsql", "sql"];

impl Lower<'_> {
    /// DROP
    pub(super) fn drop(&self, stmt: &DropStmt) -> Result<Lowered> {
        use library::ObjectType as L;
        let if_exists = stmt.missing_ok;
        let cascade = stmt.behavior == DropBehavior::Cascade;
        if let Some(word) = routine_word(stmt.remove_type) {
            let targets = stmt.objects.iter().map(routine_of);
            let targets = targets
                .map(|object| self.routine_ref(object?))
                .collect::<Result<_>>()?;
            let command = RoutineCommand::Drop {
                word,
                if_exists,
                targets,
                cascade,
            };
            return Ok(Lowered::command(StatementKind::Routine(Box::new(command))));
        }
        let (object_type, tag) = match stmt.remove_type {
            ObjectType::Table => (L::Table, "DROP TABLE"),
            ObjectType::Index => (L::Index, "DROP INDEX"),
            ObjectType::Schema => (L::Schema, "DROP SCHEMA"),
            ObjectType::Sequence => (L::Sequence, "DROP SEQUENCE"),
            ObjectType::View => (L::View, "DROP VIEW"),
            ObjectType::MatView => (L::MaterializedView, "DROP MATERIALIZED VIEW"),
            ObjectType::Type | ObjectType::Domain => return self.drop_types(stmt),
            ObjectType::Policy => {
                let (name, table) = the_one(stmt)?;
                return Ok(of_policy(name, table, PolicyAction::Drop { if_exists }));
            }
            ObjectType::Trigger => {
                let (name, table) = the_one(stmt)?;
                return Ok(of_trigger(name, table, TriggerAction::Drop { if_exists }));
            }
            ObjectType::Extension => {
                let names = dotted(&stmt.objects)?;
                return Ok(extension(ExtensionCommand::Drop {
                    if_exists,
                    names,
                    cascade,
                }));
            }
            ObjectType::Collation => {
                return Ok(Lowered::unsupported("DROP of this kind of object"));
            }
            ObjectType::Transform => return Ok(Lowered::unsupported("DROP TRANSFORM")),
            other => return drop_absent(other, stmt),
        };
        let names = stmt.objects.iter().map(name_of);
        let names = names
            .map(|name| Ok(self.placed_name(name?)))
            .collect::<Result<_>>()?;
        Ok(Lowered::ddl(
            library::Statement::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                concurrently: stmt.concurrent,
            },
            tag,
        ))
    }

    fn drop_types(&self, stmt: &DropStmt) -> Result<Lowered> {
        let names = stmt.objects.iter().map(|object| match object {
            ObjectRef::Type(name) => Ok(unplaced_name(&type_parts(name, "DROP TYPE")?)),
            _ => Err(unexpected_object()),
        });
        let command = TypeCommand::Drop {
            domain: stmt.remove_type == ObjectType::Domain,
            if_exists: stmt.missing_ok,
            names: names.collect::<Result<_>>()?,
            cascade: stmt.behavior == DropBehavior::Cascade,
        };
        Ok(Lowered::command(StatementKind::Type(Box::new(command))))
    }
}

fn extension(command: ExtensionCommand) -> Lowered {
    Lowered::command(StatementKind::Extension(Box::new(command)))
}

/// What a statement drops that may name one object of a relation.
fn the_one(stmt: &DropStmt) -> Result<(&crate::ast::Name, &crate::ast::AnyName)> {
    match stmt.objects.as_slice() {
        [object] => name_and_relation(object),
        _ => Err(unexpected_object()),
    }
}

/// Names, their parts with points between them.
fn dotted(objects: &[ObjectRef]) -> Result<Vec<String>> {
    let names = objects.iter().map(name_of);
    names.map(|name| Ok(name?.names.join("."))).collect()
}

/// What nobody can make: that it is not there is said as of other objects.
fn drop_absent(kind: ObjectType, stmt: &DropStmt) -> Result<Lowered> {
    let word = match kind {
        ObjectType::AccessMethod => "access method",
        ObjectType::Conversion => "conversion",
        ObjectType::EventTrigger => "event trigger",
        ObjectType::Fdw => "foreign-data wrapper",
        ObjectType::ForeignTable => "foreign table",
        ObjectType::Language => "language",
        ObjectType::Publication => "publication",
        ObjectType::ForeignServer => "server",
        ObjectType::StatisticExt => "statistics object",
        ObjectType::Subscription => "subscription",
        ObjectType::Tablespace => "tablespace",
        ObjectType::TsConfiguration => "text search configuration",
        ObjectType::TsDictionary => "text search dictionary",
        ObjectType::TsParser => "text search parser",
        ObjectType::TsTemplate => "text search template",
        other => return Ok(Lowered::unsupported(unsupported_kind(other))),
    };
    let names = dotted(&stmt.objects)?;
    if kind == ObjectType::Language && names.iter().any(|name| LANGUAGES.contains(&name.as_str())) {
        return Ok(Lowered::unsupported("DROP LANGUAGE"));
    }
    Ok(extension(ExtensionCommand::DropAbsent {
        kind: word,
        if_exists: stmt.missing_ok,
        names,
    }))
}
