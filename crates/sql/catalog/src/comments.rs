//! COMMENT ON: the texts, by object.
//!
//! Invariant: [`Comments::parts`] names exactly the keys of the texts, so that the comments of an object that goes are
//! found without the others.

use logstead_sql_types::RelationId;
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::Oid;
use std::sync::Arc;

/// Class, object, column number or 0.
type Key = (RelationId, Oid, i32);

/// The comments of a database.
#[derive(Clone, Debug, Default)]
pub struct Comments {
    texts: PersistentMap<Key, Arc<str>>,
    /// Classes and column numbers by object.
    parts: PersistentMap<Oid, Vec<(RelationId, i32)>>,
}

impl Comments {
    /// That on one thing.
    pub fn get(&self, key: &Key) -> Option<&Arc<str>> {
        self.texts.get(key)
    }

    /// Is there one?
    pub fn contains_key(&self, key: &Key) -> bool {
        self.texts.contains_key(key)
    }

    /// A class in which the object has one as a whole.
    pub fn class_of(&self, object: Oid) -> Option<RelationId> {
        let mut whole = self.parts.get(&object)?.iter().filter(|(_, sub)| *sub == 0);
        whole.next().map(|(class, _)| *class)
    }

    /// Sets one.
    pub fn insert(&mut self, key: Key, text: Arc<str>) {
        if !self.texts.contains_key(&key) {
            let (class, object, sub) = key;
            let mut parts = self.parts.get(&object).cloned().unwrap_or_default();
            parts.push((class, sub));
            self.parts.insert(object, parts);
        }
        self.texts.insert(key, text);
    }

    /// Removes one.
    pub fn remove(&mut self, key: &Key) {
        if self.texts.remove(key).is_none() {
            return;
        }
        let (class, object, sub) = *key;
        let mut parts = self.parts.remove(&object).unwrap_or_default();
        parts.retain(|part| *part != (class, sub));
        if !parts.is_empty() {
            self.parts.insert(object, parts);
        }
    }

    /// Removes all on an object and its columns.
    pub fn forget(&mut self, object: Oid) {
        for (class, sub) in self.parts.remove(&object).unwrap_or_default() {
            self.texts.remove(&(class, object, sub));
        }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<str>)> {
        self.texts.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The objects that have some.
    pub fn objects(&self) -> std::collections::BTreeSet<Oid> {
        self.parts.keys().copied().collect()
    }
}

impl Extend<(Key, Arc<str>)> for Comments {
    fn extend<I: IntoIterator<Item = (Key, Arc<str>)>>(&mut self, comments: I) {
        for (key, text) in comments {
            self.insert(key, text);
        }
    }
}

impl FromIterator<(Key, Arc<str>)> for Comments {
    fn from_iter<I: IntoIterator<Item = (Key, Arc<str>)>>(comments: I) -> Comments {
        let mut all = Comments::default();
        all.extend(comments);
        all
    }
}
