//! Functions that read the catalog: definitions as text, visibility, privileges, comments, sizes.
//!
//! The function registry declares them as `FunctionImpl::Catalog` and `FunctionImpl::CatalogSet`; their code comes here
//! through the trait `CatalogFunctions`.

use super::definitions::{constraint_text, find_index, index_text};
use super::{describe, partitions, privileges};
use crate::pg_catalog::{operator_class, routines, standard_comments, triggers, view_texts};
use logstead_sql_catalog::classes::PG_CLASS;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::role::READ_ALL_STATS;
use logstead_sql_catalog::role::acl::privilege::CONNECT;
use logstead_sql_catalog::text::{quote_ident, split_qualified, truncate_name};
use logstead_sql_catalog::{Catalog, Relation, RelationKind, ReplicaReport, VirtualContext};
use logstead_sql_func::extensions::stored_text_shown;
use logstead_sql_func::{CatalogFunction, CatalogSet};
use logstead_sql_parse::ast::{AnyName, Name, RangeVar};
use logstead_sql_types::error::{Result, SqlError, recovery_in_progress};
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{Datum, Oid, user};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

pub(super) fn text(value: impl Into<String>) -> Datum {
    Datum::Text(Arc::from(value.into()))
}

/// What the server tells of itself if it is a replica.
fn replica(cx: &VirtualContext<'_>) -> Option<ReplicaReport> {
    cx.catalog.notes.live.as_ref()?.replica()
}

pub(super) fn oid_arg(args: &[Datum], at: usize) -> Option<Oid> {
    match args.get(at)? {
        Datum::Oid(oid) => Some(*oid),
        Datum::Int4(n) => Some(n.cast_unsigned()),
        Datum::Int8(n) => Oid::try_from(*n).ok(),
        Datum::Int2(n) => Oid::try_from(*n).ok(),
        _ => None,
    }
}

pub(super) fn relation_arg(args: &[Datum], at: usize) -> Option<RelationId> {
    oid_arg(args, at).map(RelationId::new)
}

pub(super) fn int_arg(args: &[Datum], at: usize) -> Option<i64> {
    match args.get(at)? {
        Datum::Int2(n) => Some(i64::from(*n)),
        Datum::Int4(n) => Some(i64::from(*n)),
        Datum::Int8(n) => Some(*n),
        _ => None,
    }
}

pub(super) fn text_arg(args: &[Datum], at: usize) -> Option<&str> {
    match args.get(at)? {
        Datum::Text(text) => Some(text),
        _ => None,
    }
}

/// Runs a function that reads the catalog.
pub fn catalog_call(
    function: CatalogFunction,
    args: &[Datum],
    cx: &VirtualContext<'_>,
) -> Result<Datum> {
    let catalog = cx.catalog;
    Ok(match function {
        CatalogFunction::GetIndexdef => index_text(catalog, args, &cx.session.search_path()),
        CatalogFunction::GetConstraintdef => {
            constraint_text(catalog, args, &cx.session.search_path())
        }
        CatalogFunction::GetExpr => match text_arg(args, 0) {
            Some(stored) => {
                let path = cx.session.search_path();
                let shown = default_shown(catalog, stored, &path);
                let pretty = matches!(args.get(2), Some(Datum::Bool(true)));
                text(if pretty {
                    logstead_sql_catalog::deparse::pretty(&shown, cx.lookup(&path).types())
                } else {
                    shown
                })
            }
            None => Datum::Null,
        },
        CatalogFunction::GetUserbyid => match oid_arg(args, 0) {
            Some(role) => {
                let found = catalog.roles.get(RoleId::new(role));
                found.map_or_else(
                    || text(format!("unknown (OID={role})")),
                    |role| text(&role.name),
                )
            }
            None => Datum::Null,
        },
        CatalogFunction::GetSerialSequence => serial_sequence(args, cx)?,
        CatalogFunction::TableIsVisible => {
            visible(catalog, relation_arg(args, 0), &cx.session.search_path())
        }
        CatalogFunction::TypeIsVisible => oid_arg(args, 0)
            .map(TypeId::new)
            .filter(|ty| catalog.types.exists(*ty))
            .map_or(Datum::Null, |ty| {
                let path = cx.session.search_path();
                let is_visible = || cx.lookup(&path).types().is_visible(ty);
                Datum::Bool(user::class(ty).is_none() || is_visible())
            }),
        CatalogFunction::FunctionIsVisible => match oid_arg(args, 0) {
            Some(function) => Datum::Bool(routines::is_visible(FunctionId::new(function), cx)),
            None => Datum::Null,
        },
        CatalogFunction::HasTablePrivilege
        | CatalogFunction::HasAnyColumnPrivilege
        | CatalogFunction::HasSequencePrivilege
        | CatalogFunction::HasColumnPrivilege => privileges::relation(function, args, cx)?,
        CatalogFunction::HasSchemaPrivilege => privileges::schema(args, cx)?,
        CatalogFunction::HasDatabasePrivilege
        | CatalogFunction::HasForeignDataWrapperPrivilege
        | CatalogFunction::HasFunctionPrivilege
        | CatalogFunction::HasLanguagePrivilege
        | CatalogFunction::HasServerPrivilege
        | CatalogFunction::HasTablespacePrivilege
        | CatalogFunction::HasTypePrivilege => privileges::other(function, args, cx)?,
        CatalogFunction::AclDefault => privileges::default(args, cx)?,
        CatalogFunction::MakeAclItem => privileges::make(args, cx)?,
        CatalogFunction::HasRole => privileges::has_role(args, cx)?,
        CatalogFunction::RowSecurityActive => {
            let relation = match args.first() {
                Some(Datum::Text(name)) => {
                    let path = cx.session.search_path();
                    let found = relation_by_text(name, cx.lookup(&path))?;
                    found.ok_or_else(|| {
                        SqlError::new(
                            SqlState::UNDEFINED_TABLE,
                            format!("relation \"{name}\" does not exist"),
                        )
                    })?
                }
                _ => relation_arg(args, 0).unwrap_or_default(),
            };
            let acl_checker = catalog.acl_checker(&catalog.roles);
            let role = cx.session.current_role();
            let active = |relation| acl_checker.is_secured_for(role, relation).is_some();
            Datum::Bool(catalog.relations.get(&relation).is_some_and(|r| active(r)))
        }
        CatalogFunction::ObjDescription => comment(
            catalog,
            oid_arg(args, 0),
            class_of(text_arg(args, 1), catalog, oid_arg(args, 0)),
            0,
        ),
        CatalogFunction::ShobjDescription => comment(
            catalog,
            oid_arg(args, 0),
            class_of(text_arg(args, 1), catalog, None),
            0,
        ),
        CatalogFunction::ColDescription => {
            let sub = int_arg(args, 1)
                .and_then(|n| i32::try_from(n).ok())
                .unwrap_or(0);
            comment(catalog, oid_arg(args, 0), Some(PG_CLASS), sub)
        }
        CatalogFunction::RelationSize => size(catalog, relation_arg(args, 0), bytes_of),
        CatalogFunction::IndexesSize => size(catalog, relation_arg(args, 0), |_, _| 0),
        CatalogFunction::DatabaseSize => database_size(args, cx)?,
        CatalogFunction::RelationIsPublishable => Datum::Bool(
            relation_arg(args, 0)
                .and_then(|oid| catalog.relations.get(&oid))
                .is_some_and(|r| matches!(r.kind, RelationKind::Table)),
        ),
        CatalogFunction::RelationFilenode => relation_arg(args, 0)
            .and_then(|oid| catalog.relations.get(&oid))
            .filter(|r| !matches!(r.kind, RelationKind::Virtual(_)))
            .map_or(Datum::Null, |r| Datum::Oid(r.storage.get())),
        CatalogFunction::CurrentWalLsn
        | CatalogFunction::CurrentWalInsertLsn
        | CatalogFunction::CurrentWalFlushLsn => {
            if replica(cx).is_some() {
                return Err(recovery_in_progress());
            }
            let path = cx.catalog.notes.live.as_ref();
            let path = path.and_then(|live| live.commit_path());
            path.map_or(Datum::Null, |path| {
                let csn = match function {
                    CatalogFunction::CurrentWalFlushLsn => path.csns().get(),
                    _ => path.csns().counter(),
                };
                Datum::Lsn(csn.0)
            })
        }
        CatalogFunction::LogsteadInstanceOfPartition => partitions::instance(args, cx),
        CatalogFunction::LogsteadPartitionOf => partitions::of_key(args, cx)?,
        CatalogFunction::LogsteadCommitToken => {
            let live = cx.catalog.notes.live.as_ref();
            let token = live.and_then(|live| live.commit_token());
            if let Some(token) = token {
                // A crash after the answer takes none of them back.
                cx.session
                    .reply_dependencies()?
                    .rests_on_commits_below(token.next);
            }
            token.map_or(Datum::Null, |token| Datum::text(token.to_string()))
        }
        CatalogFunction::IsInRecovery => Datum::Bool(replica(cx).is_some()),
        // What is read is applied, and visible at once.
        CatalogFunction::LastWalReplayLsn => {
            replica(cx).map_or(Datum::Null, |report| Datum::Lsn(report.visible.get()))
        }
        CatalogFunction::ColumnIsUpdatable => Datum::Bool(match view_columns(args, cx) {
            Some(columns) => {
                let at = int_arg(args, 1).and_then(|n| usize::try_from(n - 1).ok());
                at.and_then(|at| columns.get(at).copied()).unwrap_or(false)
            }
            None => true,
        }),
        CatalogFunction::RelationIsUpdatable => Datum::Int4(match view_columns(args, cx) {
            Some(columns) if !columns.contains(&true) => 0,
            _ => UPDATABLE,
        }),
        CatalogFunction::StatGetLiveTuples => relation_arg(args, 0)
            .and_then(|oid| catalog.relations.get(&oid))
            .and_then(|r| catalog.notes.live.as_ref()?.table_rows(r.storage))
            .map_or(Datum::Int8(0), |rows| {
                Datum::Int8(i64::try_from(rows).unwrap_or(i64::MAX))
            }),
        CatalogFunction::IndexHasProperty => access_property(args),
        // What is logged goes to the error output.
        CatalogFunction::CurrentLogfile => {
            let role = cx.session.current_role();
            if !catalog.roles.is_superuser(role) {
                return Err(denied("permission denied for function pg_current_logfile"));
            }
            Datum::Null
        }
        CatalogFunction::MyTempSchema => {
            Datum::Oid(catalog.temp.as_ref().map_or(0, |s| s.oid.get()))
        }
        CatalogFunction::SequenceLastValue => {
            let sequence = relation_arg(args, 0).and_then(|oid| catalog.relations.get(&oid));
            if let Some(sequence) = sequence
                && !may_read_sequence(sequence, cx)
            {
                return Err(logstead_sql_catalog::privileges::denied_relation(sequence));
            }
            let state = sequence.and_then(|r| catalog.notes.live.as_ref()?.sequence(r.storage));
            cx.session.reply_dependencies()?.reads_sequences();
            state
                .filter(|(_, called)| *called)
                .map_or(Datum::Null, |(last, _)| Datum::Int8(last))
        }
        CatalogFunction::IndexColumnHasProperty => index_property(catalog, args),
        CatalogFunction::GetViewdef => view_texts::view_text(args, cx)?,
        CatalogFunction::GetRuledef => view_texts::rule_text(args, cx)?,
        CatalogFunction::GetTriggerdef => {
            let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
            let trigger = oid_arg(args, 0);
            let shown = trigger.and_then(|oid| triggers::definition(oid, pretty, cx));
            shown.map_or(Datum::Null, text)
        }
        CatalogFunction::GetFunctiondef if routines::is_aggregate(args, cx).is_some() => {
            let name = routines::is_aggregate(args, cx).unwrap_or_default();
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is an aggregate function"),
            ));
        }
        CatalogFunction::GetFunctiondef
        | CatalogFunction::GetFunctionArgDefault
        | CatalogFunction::GetFunctionIdentityArguments
        | CatalogFunction::GetFunctionArguments
        | CatalogFunction::GetFunctionResult => match routines::describe(function, args, cx) {
            Some(told) => told,
            None => functions(function, args, cx),
        },
        CatalogFunction::DescribeObject => describe::describe_object(args, cx),
        CatalogFunction::IndexPosition => describe::index_position(args, cx),
    })
}

/// May the current role see the value of a sequence?
pub(super) fn may_read_sequence(sequence: &Relation, cx: &VirtualContext<'_>) -> bool {
    use logstead_sql_catalog::role::acl::privilege as p;
    // Privileges are those of the present, whatever is read.
    let now = cx.session.present_of(cx.catalog);
    let present = now.as_deref().unwrap_or(cx.catalog);
    let role = cx.session.current_role();
    let Some(known) = present.relations.get(&sequence.oid) else {
        return present.roles.is_superuser(role);
    };
    let wanted = p::USAGE | p::SELECT;
    present
        .acl_checker(&present.roles)
        .on_relation(role, known, wanted, 0)
        .0
        != 0
}

/// Which columns of a view can be changed; none for what is no view.
fn view_columns(args: &[Datum], cx: &VirtualContext<'_>) -> Option<Vec<bool>> {
    let relation = cx.catalog.relations.get(&relation_arg(args, 0)?)?;
    if !matches!(relation.kind, RelationKind::View(_)) {
        return None;
    }
    let catalog = Arc::new(cx.catalog.clone());
    Some(super::viewdef::updatable(&catalog, relation, cx.session).unwrap_or_default())
}

/// INSERT, UPDATE and DELETE, as `pg_relation_is_updatable` counts them.
const UPDATABLE: i32 = 28;

/// Properties of B-trees as a whole; the name is the last argument.
fn access_property(args: &[Datum]) -> Datum {
    match args.last() {
        Some(Datum::Text(name)) => match name.to_ascii_lowercase().as_str() {
            "can_order" | "can_unique" | "can_multi_col" | "can_exclude" | "can_include"
            | "clusterable" | "index_scan" | "backward_scan" => Datum::Bool(true),
            _ => Datum::Null,
        },
        _ => Datum::Null,
    }
}

/// Argument and result lists of built-in functions.
fn functions(function: CatalogFunction, args: &[Datum], cx: &VirtualContext<'_>) -> Datum {
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let signature = || crate::pg_catalog::signature(FunctionId::new(oid_arg(args, 0)?), types);
    match function {
        CatalogFunction::GetFunctionArguments | CatalogFunction::GetFunctionIdentityArguments => {
            signature().map_or(Datum::Null, |(arguments, _)| text(arguments))
        }
        CatalogFunction::GetFunctionResult => {
            signature().map_or(Datum::Null, |(_, result)| text(result))
        }
        CatalogFunction::GetFunctiondef => oid_arg(args, 0)
            .and_then(|function| {
                crate::pg_catalog::built_in_definition(FunctionId::new(function), types)
            })
            .map_or(Datum::Null, text),
        _ => Datum::Null,
    }
}

/// Runs a function that reads the catalog and yields rows.
pub fn catalog_rows(
    function: CatalogSet,
    args: &[Datum],
    cx: &VirtualContext<'_>,
) -> Result<Vec<Vec<Datum>>> {
    match function {
        CatalogSet::AclExplode => privileges::explode(args, cx),
        CatalogSet::GetObjectAddress => super::address::object_address(args, cx),
        CatalogSet::IdentifyObject => Ok(describe::identify_object(args, cx)),
        CatalogSet::SequenceRow => {
            let row = sequence_row(cx.catalog, relation_arg(args, 0));
            cx.session.reply_dependencies()?.reads_sequences();
            Ok(row.into_iter().collect())
        }
        CatalogSet::Relation(rows) => describe::relation_rows(rows, cx),
    }
}

/// Last value, values logged ahead (not told), called: what reading a sequence as a table gives.
fn sequence_row(catalog: &Catalog, sequence: Option<RelationId>) -> Option<Vec<Datum>> {
    let relation = catalog.relations.get(&sequence?)?;
    let (last, called) = catalog.notes.live.as_ref()?.sequence(relation.storage)?;
    Some(vec![Datum::Int8(last), Datum::Int8(0), Datum::Bool(called)])
}

/// A stored expression as it is shown: relations and types are stored by number and shown by name.
pub(crate) fn default_shown(catalog: &Catalog, stored: &str, path: &[String]) -> String {
    stored_text_shown(
        &names_shown(catalog, stored, path),
        TypeSpelling::named(catalog.types.lookup(path)),
    )
}

/// The same of relations and functions.
pub(crate) fn names_shown(catalog: &Catalog, stored: &str, path: &[String]) -> String {
    let text = relations_shown(catalog, stored, path);
    match catalog.routines.is_empty() {
        true => text,
        false => catalog.routines_shown(&text, path),
    }
}

/// The same of relations alone.
pub(crate) fn relations_shown(catalog: &Catalog, stored: &str, path: &[String]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for place in logstead_sql_catalog::dependents_index::regclass_constants(stored) {
        let number = &stored[place.clone()];
        out.push_str(&stored[at..place.start]);
        let name = number
            .parse()
            .ok()
            .map(RelationId::new)
            .and_then(|oid| logstead_sql_catalog::text::relation_text(catalog, oid, path));
        out.push_str(&name.map_or_else(|| number.to_owned(), |n| n.replace('\'', "''")));
        at = place.end;
    }
    out.push_str(&stored[at..]);
    out
}

/// Bytes of a database's tables, roughly.
fn database_size(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let known = &cx.catalog.notes.databases;
    let found = match text_arg(args, 0) {
        Some(name) => {
            let found = known.by_name(name);
            Some(found.ok_or_else(|| crate::no_database(name))?)
        }
        None => oid_arg(args, 0).and_then(|oid| known.get(DatabaseOid::new(oid))),
    };
    let Some(found) = found else {
        return Ok(Datum::Null);
    };
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    if acl_checker.on_database(role, found.oid, CONNECT) == 0
        && !acl_checker.members.has_privileges_of(role, READ_ALL_STATS)
    {
        return Err(denied(format!(
            "permission denied for database {}",
            found.name
        )));
    }
    let size = |catalog: &Catalog| {
        let tables = catalog.relations.keys().map(|oid| bytes_of(catalog, *oid));
        Datum::Int8(tables.fold(0, i64::saturating_add))
    };
    if found.oid == cx.catalog.database {
        return Ok(size(cx.catalog));
    }
    let other = cx.session.catalog_of(found.oid);
    Ok(other.map_or(Datum::Null, |other| size(&other)))
}

/// Finds a relation or index by the text of a name (`t`, `s."T"`), as regclass input does. A number is taken as an OID.
pub fn relation_by_text(name: &str, lookup: NameLookup<'_>) -> Result<Option<RelationId>> {
    if let Ok(number) = name.trim().parse() {
        return Ok(Some(RelationId::new(number)));
    }
    let parts = split_qualified(name)?;
    let (catalog, path) = (lookup.catalog, lookup.search_path);
    Ok(match parts.as_slice() {
        [name] => catalog.object_by_name(None, name, path),
        [schema, name] => {
            lookup.existing(schema)?;
            catalog.object_by_name(Some(schema), name, path)
        }
        [database, schema, name] if *database == catalog.database_name => {
            lookup.existing(schema)?;
            catalog.object_by_name(Some(schema), name, path)
        }
        [_, _, _] => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cross-database references are not implemented: \"{name}\""),
            ));
        }
        _ => {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("improper relation name (too many dotted names): {name}"),
            ));
        }
    })
}

fn visible(catalog: &Catalog, relation: Option<RelationId>, path: &[String]) -> Datum {
    let Some(relation) = relation else {
        return Datum::Null;
    };
    match catalog.name_of(relation) {
        Some((_, name)) => Datum::Bool(catalog.object_by_name(None, name, path) == Some(relation)),
        None => Datum::Null,
    }
}

pub(super) fn undefined_relation(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}

fn serial_sequence(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let (Some(table), Some(column)) = (text_arg(args, 0), text_arg(args, 1)) else {
        return Ok(Datum::Null);
    };
    let oid = relation_by_text(table, cx.lookup(&cx.session.search_path()))?;
    let relation = oid
        .and_then(|oid| cx.catalog.relations.get(&oid))
        .ok_or_else(|| undefined_relation(table))?;
    let found = relation
        .columns
        .iter()
        .find(|c| !c.dropped && c.name == column)
        .ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{column}\" of relation \"{}\" does not exist",
                    relation.name
                ),
            )
        })?;
    let sequence = found
        .sequence
        .and_then(|oid| cx.catalog.relations.get(&oid));
    Ok(sequence.map_or(Datum::Null, |s| {
        text(format!(
            "{}.{}",
            quote_ident(&s.schema_name),
            quote_ident(&s.name)
        ))
    }))
}

/// OID of a system catalog by name; without a name, the class that has a comment on `object`.
fn class_of(name: Option<&str>, catalog: &Catalog, object: Option<Oid>) -> Option<RelationId> {
    match name {
        Some(name) => crate::pg_catalog::tables()
            .find(|t| t.name == name && t.schema == "pg_catalog")
            .map(|t| t.oid),
        None => {
            let object = object?;
            catalog.notes.comments.class_of(object).or_else(|| {
                let mut standard = standard_comments(catalog).into_iter();
                standard.find_map(|(of, class, _)| (of == object).then_some(class))
            })
        }
    }
}

fn comment(catalog: &Catalog, object: Option<Oid>, class: Option<RelationId>, sub: i32) -> Datum {
    let (Some(object), Some(class)) = (object, class) else {
        return Datum::Null;
    };
    match catalog.notes.comments.get(&(class, object, sub)) {
        Some(comment) => Datum::Text(Arc::clone(comment)),
        None if sub == 0 => {
            let mut standard = standard_comments(catalog).into_iter();
            let found = standard.find(|(of, in_class, _)| (*of, *in_class) == (object, class));
            found.map_or(Datum::Null, |(_, _, comment)| text(comment))
        }
        None => Datum::Null,
    }
}

/// Bytes of a table's rows.
fn bytes_of(catalog: &Catalog, relation: RelationId) -> i64 {
    let storage = catalog.relations.get(&relation).map(|r| r.storage);
    let bytes = storage.and_then(|s| catalog.notes.live.as_ref()?.table_bytes(s));
    bytes.map_or(0, |b| i64::try_from(b).unwrap_or(i64::MAX))
}

fn size(
    catalog: &Catalog,
    relation: Option<RelationId>,
    bytes: fn(&Catalog, RelationId) -> i64,
) -> Datum {
    let known = relation.filter(|oid| catalog.name_of(*oid).is_some());
    known.map_or(Datum::Null, |oid| Datum::Int8(bytes(catalog, oid)))
}

fn index_property(catalog: &Catalog, args: &[Datum]) -> Datum {
    let found = relation_arg(args, 0).and_then(|oid| find_index(catalog, oid));
    let key = found.and_then(|(table, index)| {
        let at = usize::try_from(int_arg(args, 1)? - 1).ok()?;
        let key = index.columns.get(at)?;
        (operator_class(key.ty(table).oid) != 0).then_some(key)
    });
    let (Some(key), Some(property)) = (key, text_arg(args, 2)) else {
        return Datum::Null;
    };
    match property.to_ascii_lowercase().as_str() {
        "asc" => Datum::Bool(!key.desc),
        "desc" => Datum::Bool(key.desc),
        "nulls_first" => Datum::Bool(key.nulls_first),
        "nulls_last" => Datum::Bool(!key.nulls_first),
        "orderable" | "search_array" | "search_nulls" | "returnable" => Datum::Bool(true),
        "distance_orderable" => Datum::Bool(false),
        _ => Datum::Null,
    }
}

/// A name that may be qualified, as a statement has it.
pub trait QualifiedName {
    /// Its parts, folded.
    fn parts(&self) -> Vec<String>;
}

impl QualifiedName for [Name] {
    fn parts(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

impl QualifiedName for AnyName {
    fn parts(&self) -> Vec<String> {
        self.names.parts()
    }
}

impl QualifiedName for RangeVar {
    fn parts(&self) -> Vec<String> {
        self.names().parts()
    }
}

/// The parts of the name of something that is looked up: 42501 for a schema that is closed to the role.
pub fn lookup_parts(
    name: &(impl QualifiedName + ?Sized),
    lookup: NameLookup<'_>,
) -> Result<(Option<String>, String)> {
    let cut = |name: String| match truncate_name(&name) {
        short if short.len() < name.len() => short.to_owned(),
        _ => name,
    };
    let (schema, name) = name_parts(name)?;
    let schema = schema.map(cut);
    if let Some(schema) = &schema {
        lookup.explicit(schema)?;
    }
    Ok((schema, cut(name)))
}

/// An object's name parts, folded, with at most a database, a schema and a name (`DeconstructQualifiedName`).
pub fn name_parts(name: &(impl QualifiedName + ?Sized)) -> Result<(Option<String>, String)> {
    let mut parts = name.parts();
    let last = parts.pop().unwrap_or_default();
    match parts.len() {
        0..=2 => Ok((parts.pop(), last)),
        _ => {
            parts.push(last);
            Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "improper qualified name (too many dotted names): {}",
                    parts.join(".")
                ),
            ))
        }
    }
}
