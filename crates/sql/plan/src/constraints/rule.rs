//! One foreign key or deferrable unique key, ready to be enforced: storages, key encodings, texts.

use logstead_engine::{Engine, Index, RowRef, Table};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::{
    Catalog, Constraint, ForeignKey, IndexDef, ReferentialAction, Relation, Timing,
};
use logstead_sql_func as func;
use logstead_sql_func::{Cast, CastContext};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, OutputStyle, SqlType, key, oid, stored, text_io};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The stored bytes of a column; `None` is NULL.
pub fn bytes_of<'r>(
    relation: &Relation,
    row: RowRef<'r>,
    position: usize,
) -> Option<Cow<'r, [u8]>> {
    if !row.is_missing(position) {
        return row.column(position).map(Cow::Borrowed);
    }
    match relation.columns.get(position).map(|c| &c.missing) {
        None | Some(Datum::Null) => None,
        Some(value) => {
            let mut bytes = Vec::new();
            stored::encode(value, &mut bytes);
            Some(Cow::Owned(bytes))
        }
    }
}

/// Values of columns, in the order of `positions`.
pub fn values_of(
    relation: &Relation,
    row: RowRef<'_>,
    positions: impl Iterator<Item = usize>,
) -> Result<Vec<Datum>> {
    positions
        .map(|position| {
            let ty = column_type(relation, position)?;
            match bytes_of(relation, row, position) {
                Some(bytes) => stored::decode(ty.oid, &bytes),
                None => Ok(Datum::Null),
            }
        })
        .collect()
}

fn column_type(relation: &Relation, position: usize) -> Result<SqlType> {
    let column = relation.columns.get(position);
    column
        .map(|c| c.ty)
        .ok_or_else(|| SqlError::internal("a key has a column that its table lacks"))
}

/// Families of types whose keys have one form: equal values have equal bytes.
fn family(ty: TypeId) -> TypeId {
    match ty {
        oid::INT2 | oid::INT4 | oid::INT8 => oid::INT8,
        oid::FLOAT4 | oid::FLOAT8 => oid::FLOAT8,
        oid::TEXT | oid::VARCHAR | oid::NAME => oid::TEXT,
        other => other,
    }
}

/// How values of a referencing column are compared with those of the column referenced: by bytes of one form (`None`),
/// or converted first. 42804 (without a message of its own: `None`) if they cannot be compared.
pub fn key_types(child: TypeId, parent: TypeId) -> Result<Option<Option<Cast>>> {
    if family(child) == family(parent) {
        return Ok(Some(None));
    }
    if let Some(cast) = func::find_cast(child, parent, CastContext::Implicit) {
        return Ok(Some(Some(cast)));
    }
    let moment = |ty| matches!(ty, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ);
    if moment(child) && moment(parent) {
        return Err(SqlError::unsupported(
            "a foreign key from a column of finer time to one of coarser time",
        ));
    }
    Ok(None)
}

struct KeyColumn {
    child: usize,
    child_ty: SqlType,
    parent: usize,
    parent_ty: SqlType,
    /// Conversion of a referencing value before it is compared.
    widen: Option<Cast>,
}

struct Storage {
    child: Arc<Table>,
    parent: Arc<Table>,
    parent_index: Arc<Index>,
    child_index: Option<Arc<Index>>,
}

/// What the key of a referencing row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyParts {
    /// It references a row.
    Whole,
    /// MATCH SIMPLE with a NULL, or all NULL: it references nothing.
    Nothing,
    /// MATCH FULL with NULLs and values: never allowed.
    Mixed,
}

/// One foreign key.
pub struct ForeignRule {
    /// `pg_constraint.oid`.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// When it is checked.
    pub timing: Timing,
    /// MATCH FULL.
    pub full: bool,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// The referencing table.
    pub child: Arc<Relation>,
    /// The referenced table.
    pub parent: Arc<Relation>,
    columns: Vec<KeyColumn>,
    parent_index: Arc<IndexDef>,
    /// For each column of the referenced index, which of `columns` it is.
    parent_order: Vec<usize>,
    /// An index that begins with the referencing columns, in any order, and for each of them which of `columns` it is.
    child_index: Option<(Arc<IndexDef>, Vec<usize>)>,
    /// Referencing attributes that SET NULL and SET DEFAULT change on delete.
    set_on_delete: Vec<usize>,
    storage: OnceLock<Storage>,
}

impl ForeignRule {
    /// The rule of a foreign key of `child` in a catalog.
    pub fn new(
        catalog: &Catalog,
        child: &Arc<Relation>,
        constraint: &Constraint,
        key: &ForeignKey,
    ) -> Result<ForeignRule> {
        let lost = |what: &str| {
            SqlError::internal(format!(
                "foreign key {} has lost its {what}",
                constraint.name
            ))
        };
        let parent = if key.table == child.oid {
            child
        } else {
            catalog
                .relations
                .get(&key.table)
                .ok_or_else(|| lost("table"))?
        };
        let parent_index = parent
            .indexes
            .iter()
            .find(|i| i.oid == key.index)
            .ok_or_else(|| lost("index"))?;
        let mut columns = Vec::with_capacity(key.columns.len());
        for (own, other) in key.columns.iter().zip(&key.referenced) {
            let (child_ty, parent_ty) = (column_type(child, *own)?, column_type(parent, *other)?);
            columns.push(KeyColumn {
                child: *own,
                child_ty,
                parent: *other,
                parent_ty,
                widen: key_types(child_ty.oid, parent_ty.oid)?.ok_or_else(|| lost("types"))?,
            });
        }
        let parent_order = parent_index
            .columns
            .iter()
            .map(|c| {
                let position = c.position()?;
                columns.iter().position(|k| k.parent == position)
            })
            .collect::<Option<Vec<_>>>()
            .filter(|order| order.len() == columns.len())
            .ok_or_else(|| lost("index columns"))?;
        // Partial indexes lack rows.
        let whole = child.indexes.iter().filter(|i| i.predicate.is_none());
        let child_index = whole.into_iter().find_map(|index| {
            let first = index.columns.get(..columns.len())?;
            let order = first
                .iter()
                .map(|c| {
                    let position = c.position()?;
                    columns.iter().position(|k| k.child == position)
                })
                .collect::<Option<Vec<_>>>()?;
            // A column twice in the key or in the index leaves another one out.
            let whole = (0..columns.len()).all(|k| order.contains(&k));
            whole.then(|| (Arc::clone(index), order))
        });
        Ok(ForeignRule {
            oid: constraint.oid,
            name: constraint.name.clone(),
            timing: constraint.timing,
            full: key.full,
            on_update: key.on_update,
            on_delete: key.on_delete,
            child: Arc::clone(child),
            parent: Arc::clone(parent),
            columns,
            parent_index: Arc::clone(parent_index),
            parent_order,
            child_index,
            set_on_delete: if key.set_columns.is_empty() {
                key.columns.clone()
            } else {
                key.set_columns.clone()
            },
            storage: OnceLock::new(),
        })
    }

    fn storage(&self, engine: &Engine) -> Result<&Storage> {
        if let Some(storage) = self.storage.get() {
            return Ok(storage);
        }
        let missing = || SqlError::internal(format!("no storage for foreign key {}", self.name));
        let child = engine.table(self.child.storage).ok_or_else(missing)?;
        let parent = engine.table(self.parent.storage).ok_or_else(missing)?;
        let parent_index = parent
            .index(self.parent_index.storage)
            .ok_or_else(missing)?;
        let child_index = match &self.child_index {
            Some((index, _)) => Some(child.index(index.storage).ok_or_else(missing)?),
            None => None,
        };
        Ok(self.storage.get_or_init(|| Storage {
            child,
            parent,
            parent_index,
            child_index,
        }))
    }

    /// The referencing table's rows.
    pub fn child_table(&self, engine: &Engine) -> Result<&Arc<Table>> {
        Ok(&self.storage(engine)?.child)
    }

    /// The referenced table's rows and the index that finds them.
    pub fn parent_table(&self, engine: &Engine) -> Result<(&Arc<Table>, &Arc<Index>)> {
        let storage = self.storage(engine)?;
        Ok((&storage.parent, &storage.parent_index))
    }

    /// The index that finds referencing rows, if there is one.
    pub fn child_index(&self, engine: &Engine) -> Result<Option<&Arc<Index>>> {
        Ok(self.storage(engine)?.child_index.as_ref())
    }

    /// Referencing attribute positions.
    pub fn child_columns(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|k| k.child)
    }

    /// Referenced attribute positions.
    pub fn parent_columns(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|k| k.parent)
    }

    /// What kind of key a referencing row has.
    pub fn parts(&self, row: RowRef<'_>) -> KeyParts {
        let nulls = self
            .columns
            .iter()
            .filter(|k| bytes_of(&self.child, row, k.child).is_none())
            .count();
        match nulls {
            0 => KeyParts::Whole,
            n if self.full && n < self.columns.len() => KeyParts::Mixed,
            _ => KeyParts::Nothing,
        }
    }

    /// Is the key of two versions of a referencing row the same?
    pub fn same_child_key(&self, old: RowRef<'_>, new: RowRef<'_>) -> bool {
        self.columns.iter().all(|k| {
            let (old, new) = (
                bytes_of(&self.child, old, k.child),
                bytes_of(&self.child, new, k.child),
            );
            if old == new {
                return true;
            }
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let ty = k.child_ty.oid;
            let encoded = key::encode_key_stored(ty, old.as_deref(), false, false, &mut a).is_ok()
                && key::encode_key_stored(ty, new.as_deref(), false, false, &mut b).is_ok();
            encoded && a == b
        })
    }

    /// Appends a referencing value as the referenced column's index has it.
    fn widened(
        &self,
        column: &KeyColumn,
        bytes: Option<&[u8]>,
        desc: bool,
        nulls_first: bool,
        session: &dyn Context,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match (column.widen, bytes) {
            (None, _) => key::encode_key_stored(column.child_ty.oid, bytes, desc, nulls_first, out),
            (Some(cast), bytes) => {
                let value = match bytes {
                    Some(bytes) => stored::decode(column.child_ty.oid, bytes)?,
                    None => Datum::Null,
                };
                let target = SqlType::of(column.parent_ty.oid);
                let value =
                    func::apply_cast(cast, &value, column.child_ty, target, false, Some(session))?;
                key::encode_key(column.parent_ty.oid, &value, desc, nulls_first, out);
                Ok(())
            }
        }
    }

    /// The key that the row referenced has in its index.
    pub fn parent_key(
        &self,
        child: RowRef<'_>,
        session: &dyn Context,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for (column, at) in self.parent_index.columns.iter().zip(&self.parent_order) {
            let Some(own) = self.columns.get(*at) else {
                continue;
            };
            let bytes = bytes_of(&self.child, child, own.child);
            self.widened(
                own,
                bytes.as_deref(),
                column.desc,
                column.nulls_first,
                session,
                out,
            )?;
        }
        Ok(())
    }

    /// The key of referenced values in the referenced index.
    pub fn parent_key_of(&self, values: &[Datum], out: &mut Vec<u8>) {
        for (column, at) in self.parent_index.columns.iter().zip(&self.parent_order) {
            if let (Some(own), Some(value)) = (self.columns.get(*at), values.get(*at)) {
                key::encode_key(
                    own.parent_ty.oid,
                    value,
                    column.desc,
                    column.nulls_first,
                    out,
                );
            }
        }
    }

    /// Referenced values in a form that [`ForeignRule::references`] compares with.
    pub fn wanted(&self, values: &[Datum]) -> Vec<u8> {
        let mut out = Vec::new();
        for (column, value) in self.columns.iter().zip(values) {
            key::encode_key(column.parent_ty.oid, value, false, false, &mut out);
        }
        out
    }

    /// Does a row reference the values that made `wanted`?
    pub fn references(
        &self,
        row: RowRef<'_>,
        wanted: &[u8],
        session: &dyn Context,
        scratch: &mut Vec<u8>,
    ) -> Result<bool> {
        scratch.clear();
        for column in &self.columns {
            let Some(bytes) = bytes_of(&self.child, row, column.child) else {
                return Ok(false);
            };
            self.widened(column, Some(&bytes), false, false, session, scratch)?;
        }
        Ok(scratch.as_slice() == wanted)
    }

    /// Where the referencing index has rows that may reference the values; `None` if no value of its types equals them.
    /// `references` decides about what is found there.
    pub fn child_prefix(&self, values: &[Datum], session: &dyn Context) -> Result<Option<Vec<u8>>> {
        let mut out = Vec::new();
        let Some((index, order)) = &self.child_index else {
            return Err(SqlError::internal("a foreign key without an index"));
        };
        for (column, at) in index.columns.iter().zip(order) {
            let (Some(own), Some(value)) = (self.columns.get(*at), values.get(*at)) else {
                continue;
            };
            let (desc, first) = (column.desc, column.nulls_first);
            if own.widen.is_none() {
                key::encode_key(own.parent_ty.oid, value, desc, first, &mut out);
                continue;
            }
            let (from, to) = (own.parent_ty.oid, SqlType::of(own.child_ty.oid));
            let narrowed = func::find_cast(from, to.oid, CastContext::Assignment).map(|cast| {
                func::apply_cast(cast, value, SqlType::of(from), to, false, Some(session))
            });
            match narrowed {
                Some(Ok(value)) => key::encode_key(to.oid, &value, desc, first, &mut out),
                // What a referencing value becomes by its implicit cast goes back: this one is none.
                _ => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    /// The values that CASCADE gives a referencing row: (attribute position, value).
    pub fn cascaded(&self, new: &[Datum], session: &dyn Context) -> Result<Vec<(usize, Datum)>> {
        self.columns
            .iter()
            .zip(new)
            .map(|(column, value)| {
                let (from, to) = (column.parent_ty, column.child_ty);
                let cast = func::find_cast(from.oid, to.oid, CastContext::Assignment)
                    .ok_or_else(|| SqlError::internal("a foreign key whose types do not fit"))?;
                let value = func::apply_cast(cast, value, from, to, false, Some(session))?;
                Ok((column.child, value))
            })
            .collect()
    }

    /// Attribute positions that SET NULL or SET DEFAULT changes.
    pub fn set_columns(&self, on_delete: bool) -> Vec<usize> {
        if on_delete {
            self.set_on_delete.clone()
        } else {
            self.child_columns().collect()
        }
    }

    /// Attribute positions whose defaults SET DEFAULT needs.
    pub(crate) fn default_columns(&self) -> Vec<usize> {
        let mut positions = Vec::new();
        if self.on_delete == ReferentialAction::SetDefault {
            positions.extend(self.set_columns(true));
        }
        if self.on_update == ReferentialAction::SetDefault {
            positions.extend(self.set_columns(false));
        }
        positions
    }

    /// 23503 for a referencing row.
    pub fn not_present(&self, child: RowRef<'_>, session: &dyn Context) -> SqlError {
        let values = match values_of(&self.child, child, self.child_columns()) {
            Ok(values) => values,
            Err(error) => return error,
        };
        let types = self.columns.iter().map(|k| k.child_ty);
        let told = session.detail_visibility(&self.child);
        let key = match self.child_columns().all(|column| told.has(column)) {
            true => format!(
                " ({})=({})",
                names(&self.child, self.child_columns()),
                texts(&values, types, session)
            ),
            false => String::new(),
        };
        let parent = &self.parent.name;
        let detail = format!("Key{key} is not present in table \"{parent}\".");
        self.child_violation().detail(detail)
    }

    /// 23503 for MATCH FULL with NULLs and values.
    pub fn mixed(&self) -> SqlError {
        self.child_violation()
            .detail("MATCH FULL does not allow mixing of null and nonnull key values.")
    }

    fn child_violation(&self) -> SqlError {
        SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                self.child.name, self.name
            ),
        )
        .table(&self.child.schema_name, &self.child.name)
        .constraint(&self.name)
    }

    /// 23503 for a referenced row.
    pub fn still_referenced(&self, values: &[Datum], session: &dyn Context) -> SqlError {
        let types = self.columns.iter().map(|k| k.parent_ty);
        let told = session.detail_visibility(&self.parent);
        let key = match self.parent_columns().all(|column| told.has(column)) {
            true => format!(
                " ({})=({})",
                names(&self.parent, self.parent_columns()),
                texts(values, types, session)
            ),
            false => String::new(),
        };
        SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
                self.parent.name, self.name, self.child.name
            ),
        )
        .detail(format!(
            "Key{key} is still referenced from table \"{}\".",
            self.child.name
        ))
        .table(&self.child.schema_name, &self.child.name)
        .constraint(&self.name)
    }

    /// The statement PostgreSQL would run for a check or an action: what an error inside it names as its place.
    pub fn statement(&self, action: Option<(ReferentialAction, bool)>) -> String {
        use std::fmt::Write;
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let full = |r: &Relation| format!("{}.{}", quote(&r.schema_name), quote(&r.name));
        let column =
            |r: &Relation, at: usize| quote(r.columns.get(at).map_or("?", |c| c.name.as_str()));
        let list = |positions: &[usize], value: &mut dyn FnMut() -> String| {
            let set = |p: &usize| format!("{} = {}", column(&self.child, *p), value());
            positions.iter().map(set).collect::<Vec<_>>().join(", ")
        };
        let mut parameter = 0;
        let mut text = match action {
            None => format!("SELECT 1 FROM ONLY {} x", full(&self.parent)),
            Some((ReferentialAction::NoAction | ReferentialAction::Restrict, _)) => {
                format!("SELECT 1 FROM ONLY {} x", full(&self.child))
            }
            Some((ReferentialAction::Cascade, true)) => {
                format!("DELETE FROM ONLY {}", full(&self.child))
            }
            Some((kind, on_delete)) => {
                let set = list(&self.set_columns(on_delete), &mut || match kind {
                    ReferentialAction::SetNull => "NULL".to_owned(),
                    ReferentialAction::SetDefault => "DEFAULT".to_owned(),
                    _ => {
                        parameter += 1;
                        format!("${parameter}")
                    }
                });
                format!("UPDATE ONLY {} SET {set}", full(&self.child))
            }
        };
        for (at, k) in self.columns.iter().enumerate() {
            parameter += 1;
            let word = if at == 0 { "WHERE" } else { "AND" };
            let _written = match action {
                None => write!(
                    text,
                    " {word} {} OPERATOR(pg_catalog.=) ${parameter}",
                    column(&self.parent, k.parent)
                ),
                Some(_) => write!(
                    text,
                    " {word} ${parameter} OPERATOR(pg_catalog.=) {}",
                    column(&self.child, k.child)
                ),
            };
        }
        if matches!(
            action,
            None | Some((ReferentialAction::NoAction | ReferentialAction::Restrict, _))
        ) {
            text.push_str(" FOR KEY SHARE OF x");
        }
        format!("SQL statement \"{text}\"")
    }
}

fn names(relation: &Relation, positions: impl Iterator<Item = usize>) -> String {
    let names: Vec<&str> = positions
        .filter_map(|p| relation.columns.get(p))
        .map(|c| c.name.as_str())
        .collect();
    names.join(", ")
}

fn texts(values: &[Datum], types: impl Iterator<Item = SqlType>, session: &dyn Context) -> String {
    let style = OutputStyle::of(session);
    let texts: Vec<String> = values
        .iter()
        .zip(types)
        .map(|(value, ty)| match value {
            Datum::Null => "null".to_owned(),
            value => text_io::message_text(value, ty, &style),
        })
        .collect();
    texts.join(", ")
}

/// One deferrable unique key.
pub struct UniqueRule {
    /// `pg_constraint.oid`.
    pub oid: Oid,
    /// When it is checked.
    pub timing: Timing,
    /// The table.
    pub table: Arc<Relation>,
    /// The index behind it.
    pub index: Arc<IndexDef>,
    storage: OnceLock<(Arc<Table>, Arc<Index>)>,
}

impl UniqueRule {
    /// That of a constraint of `table`.
    pub fn new(
        table: &Arc<Relation>,
        constraint: &Constraint,
        index: &Arc<IndexDef>,
    ) -> UniqueRule {
        UniqueRule {
            oid: constraint.oid,
            timing: constraint.timing,
            table: Arc::clone(table),
            index: Arc::clone(index),
            storage: OnceLock::new(),
        }
    }

    /// Rows and index.
    pub fn storage(&self, engine: &Engine) -> Result<&(Arc<Table>, Arc<Index>)> {
        if let Some(storage) = self.storage.get() {
            return Ok(storage);
        }
        let missing =
            || SqlError::internal(format!("no storage for constraint {}", self.index.name));
        let table = engine.table(self.table.storage).ok_or_else(missing)?;
        let index = table.index(self.index.storage).ok_or_else(missing)?;
        Ok(self.storage.get_or_init(|| (table, index)))
    }
}
