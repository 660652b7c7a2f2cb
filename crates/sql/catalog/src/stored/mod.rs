//! The stored form of catalog objects: what the rows of the catalog's own tables hold.
//!
//! Owns: the row layout of those tables and the encoding of definitions. A definition begins with the format's version;
//! reading checks everything, since a log may come from another build: a definition that does not read is XX001, never
//! a panic.
//!
//! Row of an object: database, namespace, name, OID, definition. The first three are the key of the table's unique
//! index, so that two transactions that create one name meet there.

mod bytes;
pub mod databases;
pub mod privileges;
pub mod roles;
pub mod routines;
mod security;
pub mod statistics;
mod tables;
pub mod triggers;
pub mod types;

pub use tables::*;

use super::distribution::Distribution;
use super::{
    Column, Constraint, ConstraintKind, ForeignKey, IndexColumn, IndexDef, IndexKey,
    ReferentialAction, Relation, RelationKind, RowSecurity, SequenceDef, Timing, View, ViewObject,
    ViewSource,
};
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use logstead_engine::{KeyExtractor, KeyKind, RowBuilder, RowRef};
use logstead_sql_parse::CheckOption;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid, SqlType, info, stored, user};
use logstead_sql_types::{DatabaseOid, RelationId, SchemaId, TypeId};
use logstead_types::{IndexId, TableId};

/// Version of the definitions written by this build.
const FORMAT: u8 = 2;
/// Version of definitions with something that builds that know only [`FORMAT`] would misunderstand: they refuse them.
/// Generated columns.
const FORMAT_GENERATED: u8 = 3;
/// Version of definitions whose columns say of which domain they are. 4 is that of types, which are no relations.
const FORMAT_DOMAINS: u8 = 5;
/// The same with columns whose values are records. 6 is that of composite types.
const FORMAT_RECORDS: u8 = 7;
/// The same, of tables, with row security at the end; columns may be records.
const FORMAT_SECURED: u8 = 8;

/// Stands for a position where a key column is an expression; a table never has as many columns.
const EXPRESSION: u16 = u16::MAX;

/// Tables whose rows are objects.
pub const OBJECT_TABLES: [TableId; 7] = [
    DATABASES, SCHEMAS, RELATIONS, COMMENTS, ROLES, RIGHTS, STATISTICS,
];

/// The index on (database, namespace, name) of an object table.
pub fn name_index(table: TableId) -> IndexId {
    IndexId(table.get() + 10_000)
}

/// The database of what all databases share: roles, databases, and what is said of these.
pub const SHARED: DatabaseOid = DatabaseOid::new(0);

/// Identity of an object in its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    /// Its database, or [`SHARED`].
    pub database: DatabaseOid,
    /// Schema of a relation, class of a comment, else 0.
    pub namespace: Oid,
    /// Name.
    pub name: String,
}

/// A row of an object table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// What the table's unique index has.
    pub key: ObjectKey,
    /// The object's OID.
    pub oid: Oid,
    /// Everything else, in the form of its kind of object.
    pub definition: Vec<u8>,
}

impl ObjectRow {
    /// Encodes the row.
    pub fn encode(&self, builder: &mut RowBuilder) -> Vec<u8> {
        builder.start(0, 5);
        builder.push(Some(&self.key.database.get().to_le_bytes()));
        builder.push(Some(&self.key.namespace.to_le_bytes()));
        builder.push(Some(self.key.name.as_bytes()));
        builder.push(Some(&self.oid.to_le_bytes()));
        builder.push(Some(&self.definition));
        builder.finish().to_vec()
    }

    /// The database that a row is of, without the rest of it.
    pub fn database(row: RowRef<'_>) -> Option<DatabaseOid> {
        let column = (row.column_count() > 0).then(|| row.column(0))?;
        let number = u32::from_le_bytes(column?.try_into().ok()?);
        Some(DatabaseOid::new(number))
    }

    /// Reads a row.
    pub fn decode(row: RowRef<'_>) -> Result<ObjectRow> {
        let column = |i: usize| {
            if i < row.column_count() {
                row.column(i)
            } else {
                None
            }
            .ok_or_else(|| corrupt("a column is missing"))
        };
        let number = |i: usize| -> Result<u32> {
            Ok(u32::from_le_bytes(
                column(i)?
                    .try_into()
                    .map_err(|_| corrupt("a number has the wrong length"))?,
            ))
        };
        let name = std::str::from_utf8(column(2)?)
            .map_err(|_| corrupt("a name is not UTF-8"))?
            .to_owned();
        let key = ObjectKey {
            database: DatabaseOid::new(number(0)?),
            namespace: number(1)?,
            name,
        };
        Ok(ObjectRow {
            key,
            oid: number(3)?,
            definition: column(4)?.to_vec(),
        })
    }
}

/// Key of object rows: (database, namespace, name).
pub struct NameKey;

impl KeyExtractor for NameKey {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        if row.column_count() < 3 {
            return KeyKind::Absent;
        }
        for number in [row.column(0), row.column(1)] {
            let bytes = number
                .and_then(|b| <[u8; 4]>::try_from(b).ok())
                .unwrap_or_default();
            out.extend_from_slice(&u32::from_le_bytes(bytes).to_be_bytes());
        }
        // Names hold no zero bytes: one ends the key.
        out.extend_from_slice(row.column(2).unwrap_or_default());
        out.push(0);
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

/// A row of the sequence table.
pub(crate) fn encode_sequence(
    builder: &mut RowBuilder,
    storage: TableId,
    last: i64,
    called: bool,
) -> Vec<u8> {
    builder.start(0, 3);
    builder.push(Some(&storage.get().to_le_bytes()));
    builder.push(Some(&last.to_le_bytes()));
    builder.push(Some(&[u8::from(called)]));
    builder.finish().to_vec()
}

/// Reads a row of the sequence table.
pub(crate) fn decode_sequence(row: RowRef<'_>) -> Result<(TableId, i64, bool)> {
    let column = |i: usize| {
        if i < row.column_count() {
            row.column(i).unwrap_or_default()
        } else {
            &[]
        }
    };
    let storage = column(0)
        .try_into()
        .map_err(|_| corrupt("a sequence has no storage"))?;
    let last = column(1)
        .try_into()
        .map_err(|_| corrupt("a sequence has no value"))?;
    Ok((
        TableId(u32::from_le_bytes(storage)),
        i64::from_le_bytes(last),
        column(2) == [1],
    ))
}

/// The counter's row.
pub(crate) fn encode_counter(builder: &mut RowBuilder, next: Oid) -> Vec<u8> {
    builder.start(0, 1);
    builder.push(Some(&next.to_le_bytes()));
    builder.finish().to_vec()
}

/// Reads the counter's row.
pub(crate) fn decode_counter(row: RowRef<'_>) -> Result<Oid> {
    let bytes = if row.column_count() > 0 {
        row.column(0).unwrap_or_default()
    } else {
        &[]
    };
    Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| {
        corrupt("the OID counter has the wrong length")
    })?))
}

/// A stored relation, sequence or index.
#[derive(Clone, Debug)]
pub enum StoredRelation {
    /// Table or sequence, without its indexes; options as `name=value`.
    Relation(Box<Relation>, Vec<String>),
    /// Index.
    Index(IndexDef, Vec<String>),
}

impl std::fmt::Debug for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relation")
            .field("oid", &self.oid)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn write_column(w: &mut DefinitionWriter, c: &Column, format: u8) {
    w.bytes(c.name.as_bytes());
    w.u32(c.ty.oid.get());
    w.u32(c.ty.typmod.cast_unsigned());
    w.u8(u8::from(c.not_null) | u8::from(c.dropped) << 1 | u8::from(c.generated) << 2);
    w.opt(c.default.as_ref(), |w, d| w.bytes(d.as_bytes()));
    w.opt(c.identity, |w, always| w.u8(u8::from(always)));
    w.opt(c.sequence.map(RelationId::get), DefinitionWriter::u32);
    let missing = match &c.missing {
        Datum::Null => None,
        value => {
            let mut bytes = Vec::new();
            stored::encode(value, &mut bytes);
            Some(bytes)
        }
    };
    w.opt(missing, |w, bytes| w.bytes(&bytes));
    if format >= FORMAT_DOMAINS {
        w.opt(c.domain.map(TypeId::get), DefinitionWriter::u32);
    }
}

fn read_column(r: &mut DefinitionReader<'_>, format: u8) -> Result<Column> {
    let name = r.str()?;
    let ty = SqlType {
        oid: TypeId::new(r.u32()?),
        typmod: r.u32()?.cast_signed(),
    };
    let flags = r.u8()?;
    let default = r.opt(DefinitionReader::str)?;
    let identity = r.opt(DefinitionReader::bool)?;
    let sequence = r.opt(DefinitionReader::u32)?.map(RelationId::new);
    let missing = r
        .opt(|r| stored::decode(ty.oid, r.bytes()?))?
        .unwrap_or(Datum::Null);
    let domain = match format {
        FORMAT_DOMAINS | FORMAT_RECORDS | FORMAT_SECURED => {
            r.opt(DefinitionReader::u32)?.map(TypeId::new)
        }
        _ => None,
    };
    let (not_null, dropped, generated) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    Ok(Column {
        name,
        ty,
        domain,
        not_null,
        default,
        identity,
        generated,
        sequence,
        dropped,
        missing,
    })
}

fn write_positions(w: &mut DefinitionWriter, positions: &[usize]) {
    w.list(positions, |w, p| {
        w.u16(u16::try_from(*p).unwrap_or(u16::MAX))
    });
}

/// Kinds in capitals carry what the others have by default: a timing, or that rows may break a CHECK.
fn write_constraint(w: &mut DefinitionWriter, c: &Constraint) {
    let plain = c.timing == Timing::Immediate;
    w.u32(c.oid);
    w.bytes(c.name.as_bytes());
    match &c.kind {
        ConstraintKind::Check(text) => {
            w.u8(if c.validated { b'c' } else { b'C' });
            w.bytes(text.as_bytes());
        }
        ConstraintKind::PrimaryKey(index) => {
            w.u8(if plain { b'p' } else { b'P' });
            w.u32(index.get());
        }
        ConstraintKind::Unique(index) => {
            w.u8(if plain { b'u' } else { b'U' });
            w.u32(index.get());
        }
        ConstraintKind::Foreign(key) => {
            w.u8(b'F');
            w.u8(u8::from(key.full) | u8::from(c.validated) << 1);
            w.u32(key.table.get());
            w.u32(key.index.get());
            for action in [key.on_update, key.on_delete] {
                w.u8(action.code() as u8);
            }
            for positions in [&key.columns, &key.referenced, &key.set_columns] {
                write_positions(w, positions);
            }
        }
    }
    let timed = matches!(c.kind, ConstraintKind::Foreign(_))
        || (!plain && !matches!(c.kind, ConstraintKind::Check(_)));
    if timed {
        w.u8(match c.timing {
            Timing::Immediate => 0,
            Timing::Deferrable => 1,
            Timing::Deferred => 2,
        });
    }
}

fn read_foreign(r: &mut DefinitionReader<'_>) -> Result<(ForeignKey, bool)> {
    let flags = r.u8()?;
    let (table, index) = (RelationId::new(r.u32()?), RelationId::new(r.u32()?));
    let action = |r: &mut DefinitionReader<'_>| {
        ReferentialAction::of_code(r.u8()?)
            .ok_or_else(|| corrupt("unknown action of a foreign key"))
    };
    let (on_update, on_delete) = (action(r)?, action(r)?);
    let positions = |r: &mut DefinitionReader<'_>| r.list(|r| Ok(usize::from(r.u16()?)));
    let (columns, referenced) = (positions(r)?, positions(r)?);
    let set_columns = positions(r)?;
    if columns.is_empty() || columns.len() != referenced.len() {
        return Err(corrupt(
            "a foreign key of no columns, or of different numbers",
        ));
    }
    let key = ForeignKey {
        columns,
        table,
        referenced,
        index,
        on_update,
        on_delete,
        set_columns,
        full: flags & 1 != 0,
    };
    Ok((key, flags & 2 != 0))
}

fn read_constraint(r: &mut DefinitionReader<'_>) -> Result<Constraint> {
    let oid = r.u32()?;
    let name = r.str()?;
    let code = r.u8()?;
    let mut validated = true;
    let kind = match code {
        b'c' => ConstraintKind::Check(r.str()?),
        b'C' => {
            validated = false;
            ConstraintKind::Check(r.str()?)
        }
        b'p' | b'P' => ConstraintKind::PrimaryKey(RelationId::new(r.u32()?)),
        b'u' | b'U' => ConstraintKind::Unique(RelationId::new(r.u32()?)),
        b'F' => {
            let (key, valid) = read_foreign(r)?;
            validated = valid;
            ConstraintKind::Foreign(Box::new(key))
        }
        _ => return Err(corrupt("unknown kind of constraint")),
    };
    let timing = if matches!(code, b'P' | b'U' | b'F') {
        match r.u8()? {
            0 => Timing::Immediate,
            1 => Timing::Deferrable,
            2 => Timing::Deferred,
            _ => return Err(corrupt("unknown timing of a constraint")),
        }
    } else {
        Timing::Immediate
    };
    Ok(Constraint {
        oid,
        name,
        kind,
        timing,
        validated,
    })
}

pub(super) fn write_view(w: &mut DefinitionWriter, view: &View) {
    w.u32(view.rule);
    w.bytes(view.query.as_bytes());
    w.u8(match view.check {
        None => 0,
        Some(CheckOption::Local) => 1,
        Some(CheckOption::Cascaded) => 2,
    });
    w.list(&view.sources, |w, source| {
        w.u32(source.object.number());
        w.bytes(source.schema.as_bytes());
        w.bytes(source.name.as_bytes());
        w.list(&source.columns, |w, (position, name)| {
            w.u16(u16::try_from(*position).unwrap_or(u16::MAX));
            w.bytes(name.as_bytes());
        });
        write_positions(w, &source.used);
    });
}

pub(super) fn read_view(r: &mut DefinitionReader<'_>) -> Result<View> {
    let rule = r.u32()?;
    let query = r.str()?;
    let check = match r.u8()? {
        0 => None,
        1 => Some(CheckOption::Local),
        2 => Some(CheckOption::Cascaded),
        _ => return Err(corrupt("unknown check option of a view")),
    };
    let positions = |r: &mut DefinitionReader<'_>| r.list(|r| Ok(usize::from(r.u16()?)));
    let sources = r.list(|r| {
        let (number, schema, name) = (r.u32()?, r.str()?, r.str()?);
        // Only a key has no name.
        let object = match name.is_empty() {
            true => ViewObject::Key(number),
            false => ViewObject::Relation(RelationId::new(number)),
        };
        Ok(ViewSource {
            object,
            schema,
            name,
            columns: r.list(|r| Ok((usize::from(r.u16()?), r.str()?)))?,
            used: positions(r)?,
        })
    })?;
    Ok(View::new(rule, query, sources, check))
}

/// Definition of a table, sequence or view, without its indexes.
pub fn encode_relation(relation: &Relation, options: &[String]) -> Vec<u8> {
    let kept = relation.distribution.kept();
    let options: Vec<&String> = options.iter().chain(&kept).collect();
    let mut w = DefinitionWriter::default();
    let any = |is: fn(&Column) -> bool| relation.columns.iter().any(is);
    let records = |c: &Column| {
        let element = info::element_of(c.ty.oid);
        user::is_composite(element.unwrap_or(c.ty.oid))
    };
    let format = if !relation.security.is_none() {
        FORMAT_SECURED
    } else if any(records) {
        FORMAT_RECORDS
    } else if any(|c| c.domain.is_some()) {
        FORMAT_DOMAINS
    } else if any(|c| c.generated) {
        FORMAT_GENERATED
    } else {
        FORMAT
    };
    let write_column = |w: &mut DefinitionWriter, c: &Column| write_column(w, c, format);
    w.u8(format);
    match &relation.kind {
        RelationKind::Sequence(s) => {
            w.u8(b'S');
            w.u32(relation.storage.get());
            w.u32(s.ty.get());
            for v in [
                s.start,
                s.increment,
                s.min,
                s.max,
                s.cache,
                i64::from(s.cycle),
            ] {
                w.i64(v);
            }
        }
        RelationKind::View(view) => {
            w.u8(b'v');
            w.u32(relation.storage.get());
            write_view(&mut w, view);
            w.list(&relation.columns, write_column);
            w.list(&options, |w, o| w.bytes(o.as_bytes()));
        }
        RelationKind::Materialized(view, populated) => {
            w.u8(b'm');
            w.u32(relation.storage.get());
            w.u16(relation.schema_version);
            w.u8(u8::from(*populated));
            write_view(&mut w, view);
            w.list(&relation.columns, write_column);
            w.list(&options, |w, o| w.bytes(o.as_bytes()));
        }
        RelationKind::Table | RelationKind::Virtual(_) => {
            w.u8(b'r');
            w.u32(relation.storage.get());
            w.u16(relation.schema_version);
            w.list(&relation.columns, write_column);
            w.list(&relation.constraints, |w, c| write_constraint(w, c));
            w.list(&options, |w, o| w.bytes(o.as_bytes()));
            if format == FORMAT_SECURED {
                security::write(&mut w, &relation.security);
            }
        }
    }
    w.0
}

/// Definition of an index.
pub fn encode_index(index: &IndexDef, options: &[String]) -> Vec<u8> {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    w.u8(b'i');
    w.u32(index.storage.get());
    w.u32(index.table.get());
    w.u8(u8::from(index.unique)
        | u8::from(index.primary) << 1
        | u8::from(index.nulls_not_distinct) << 2
        | u8::from(index.deferrable) << 3
        | u8::from(!index.computed.is_empty()) << 4);
    let position = |p: usize| u16::try_from(p).unwrap_or(EXPRESSION);
    w.list(&index.columns, |w, c| {
        w.u16(c.position().map_or(EXPRESSION, position));
        w.u8(u8::from(c.desc) | u8::from(c.nulls_first) << 1);
        if let IndexKey::Expression { text, ty, name } = &c.key {
            w.bytes(text.as_bytes());
            w.u32(ty.oid.get());
            w.u32(ty.typmod.cast_unsigned());
            w.bytes(name.as_bytes());
        }
    });
    w.list(&index.include, |w, p| w.u16(position(*p)));
    w.opt(index.predicate.as_ref(), |w, p| w.bytes(p.as_bytes()));
    w.list(options, |w, o| w.bytes(o.as_bytes()));
    if !index.computed.is_empty() {
        w.list(&index.computed, |w, p| w.opt(*p, |w, p| w.u16(position(p))));
    }
    w.0
}

/// Reads a row of the relations' table. `schema_name` is filled in by the caller.
pub fn decode_relation(row: &ObjectRow) -> Result<StoredRelation> {
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    let known = [
        FORMAT,
        FORMAT_GENERATED,
        FORMAT_DOMAINS,
        FORMAT_RECORDS,
        FORMAT_SECURED,
    ];
    if !known.contains(&format) {
        return Err(corrupt(&format!(
            "definition of \"{}\" has format {format}, this build reads {known:?}",
            row.key.name
        )));
    }
    let read_column = |r: &mut DefinitionReader<'_>| read_column(r, format);
    let relation = |kind, storage, columns, constraints, schema_version| {
        Box::new(Relation {
            oid: RelationId::new(row.oid),
            name: row.key.name.clone(),
            schema: SchemaId::new(row.key.namespace),
            schema_name: String::new(),
            kind,
            columns,
            indexes: Vec::new(),
            constraints,
            storage,
            schema_version,
            security: RowSecurity::default(),
            distribution: Default::default(),
            shared_names: Default::default(),
        })
    };
    let found = match r.u8()? {
        b'S' => {
            let storage = TableId(r.u32()?);
            let ty = TypeId::new(r.u32()?);
            let (start, increment, min, max) = (r.i64()?, r.i64()?, r.i64()?, r.i64()?);
            let (cache, cycle) = (r.i64()?, r.i64()? != 0);
            if increment == 0 || min > max {
                return Err(corrupt("a sequence has impossible limits"));
            }
            let kind = RelationKind::Sequence(SequenceDef {
                ty,
                start,
                increment,
                min,
                max,
                cache,
                cycle,
            });
            StoredRelation::Relation(
                relation(kind, storage, crate::sequence_def::columns(), Vec::new(), 0),
                Vec::new(),
            )
        }
        b'r' => {
            let storage = TableId(r.u32()?);
            let version = r.u16()?;
            let columns = r.list(read_column)?;
            let constraints = r.list(|r| Ok(std::sync::Arc::new(read_constraint(r)?)))?;
            let mut options = r.list(DefinitionReader::str)?;
            let mut table = relation(RelationKind::Table, storage, columns, constraints, version);
            table.distribution = Distribution::take(&mut options, &table.columns);
            if format == FORMAT_SECURED {
                table.security = security::read(&mut r)?;
            }
            StoredRelation::Relation(table, options)
        }
        b'v' => {
            let storage = TableId(r.u32()?);
            let view = read_view(&mut r)?;
            let columns = r.list(read_column)?;
            let options = r.list(DefinitionReader::str)?;
            let kind = RelationKind::View(std::sync::Arc::new(view));
            StoredRelation::Relation(relation(kind, storage, columns, Vec::new(), 0), options)
        }
        b'm' => {
            let storage = TableId(r.u32()?);
            let version = r.u16()?;
            let populated = r.bool()?;
            let view = std::sync::Arc::new(read_view(&mut r)?);
            let columns = r.list(read_column)?;
            let mut options = r.list(DefinitionReader::str)?;
            let kind = RelationKind::Materialized(view, populated);
            let mut relation = relation(kind, storage, columns, Vec::new(), version);
            relation.distribution = Distribution::take(&mut options, &relation.columns);
            StoredRelation::Relation(relation, options)
        }
        b'i' => {
            let storage = IndexId(r.u32()?);
            let table = RelationId::new(r.u32()?);
            let flags = r.u8()?;
            let columns = r.list(|r| {
                let position = r.u16()?;
                let order = r.u8()?;
                let key = if position == EXPRESSION {
                    let text = r.str()?;
                    let ty = SqlType {
                        oid: TypeId::new(r.u32()?),
                        typmod: r.u32()?.cast_signed(),
                    };
                    let name = r.str()?;
                    IndexKey::Expression { text, ty, name }
                } else {
                    IndexKey::Column(usize::from(position))
                };
                Ok(IndexColumn {
                    key,
                    desc: order & 1 != 0,
                    nulls_first: order & 2 != 0,
                })
            })?;
            let include = r.list(|r| Ok(usize::from(r.u16()?)))?;
            let predicate = r.opt(DefinitionReader::str)?;
            let options = r.list(DefinitionReader::str)?;
            let computed = match flags & 16 != 0 {
                true => r.list(|r| r.opt(|r| Ok(usize::from(r.u16()?))))?,
                false => Vec::new(),
            };
            let (unique, primary) = (flags & 1 != 0, flags & 2 != 0);
            let deferrable = flags & 8 != 0;
            let name = row.key.name.clone();
            StoredRelation::Index(
                IndexDef {
                    oid: RelationId::new(row.oid),
                    name,
                    table,
                    storage,
                    unique,
                    primary,
                    nulls_not_distinct: flags & 4 != 0,
                    deferrable,
                    columns,
                    include,
                    predicate,
                    computed,
                    invalid: None,
                },
                options,
            )
        }
        _ => return Err(corrupt("unknown kind of relation")),
    };
    if !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    Ok(found)
}
