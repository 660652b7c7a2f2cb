//! A map whose copies share what has not changed.
//!
//! Owns: [`PersistentMap`], a hash array mapped trie with the interface of the standard library's map as far as the
//! catalog needs it. A clone costs one reference count; an insertion or removal copies the nodes on one path.
//!
//! Invariant: nothing here costs in proportion to the size of a map but what says so: [`PersistentMap::iter`],
//! [`PersistentMap::keys`] and [`PersistentMap::values`]. They count the entries that they give (`visited`), so that a
//! test can tell what a statement has looked at.

use foldhash::fast::RandomState;
use rpds::HashTrieMapSync;
use std::borrow::Borrow;
use std::hash::Hash;

type Trie<K, V> = HashTrieMapSync<K, V, RandomState>;

/// A map that is cheap to copy and to change.
pub struct PersistentMap<K: Eq + Hash, V>(Trie<K, V>);

thread_local! {
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Something was looked at, or copied, that was not asked for by its key.
#[inline]
pub fn visit() {
    VISITED.set(VISITED.get() + 1);
}

/// How much this thread has looked at or copied so far.
pub fn visited() -> u64 {
    VISITED.get()
}

/// All entries of a map, in no order.
pub struct Iter<'a, K: Eq + Hash, V>(<&'a Trie<K, V> as IntoIterator>::IntoIter);

impl<'a, K: Eq + Hash, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let next = self.0.next()?;
        visit();
        Some(next)
    }
}

impl<K: Eq + Hash, V> PersistentMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// Is there a value of the key?
    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Adds a value, or replaces that of the key.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert_mut(key, value);
    }

    /// Takes the value of a key out, and gives a copy of it.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        let old = self.0.get(key).cloned()?;
        self.0.remove_mut(key);
        Some(old)
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.0.iter())
    }

    /// All keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Eq + Hash, V> Clone for PersistentMap<K, V> {
    fn clone(&self) -> Self {
        PersistentMap(self.0.clone())
    }
}

impl<K: Eq + Hash, V> Default for PersistentMap<K, V> {
    fn default() -> Self {
        PersistentMap(Trie::default())
    }
}

impl<K: Eq + Hash + std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for PersistentMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter()).finish()
    }
}

impl<K: Eq + Hash, V> FromIterator<(K, V)> for PersistentMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = PersistentMap::default();
        map.extend(entries);
        map
    }
}

impl<K: Eq + Hash, V> Extend<(K, V)> for PersistentMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<'a, K: Eq + Hash, V> IntoIterator for &'a PersistentMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K: Eq + Hash + Borrow<Q>, Q: Eq + Hash + ?Sized, V> std::ops::Index<&Q>
    for PersistentMap<K, V>
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        &self.0[key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_what_it_had() {
        let mut map: PersistentMap<u32, String> = (0..1_000).map(|n| (n, n.to_string())).collect();
        let before = map.clone();
        map.insert(7, "new".to_owned());
        assert_eq!(map.remove(&8).as_deref(), Some("8"));
        assert_eq!(map.remove(&8), None);
        assert_eq!((map.len(), before.len()), (999, 1_000));
        assert_eq!((map[&7].as_str(), before[&7].as_str()), ("new", "7"));
        assert!(before.contains_key(&8) && !map.contains_key(&8));
    }

    #[test]
    fn only_walks_are_counted() {
        let map: PersistentMap<u32, u32> = (0..10).map(|n| (n, n)).collect();
        let before = visited();
        let mut copy = map.clone();
        copy.insert(11, 0);
        assert!(copy.get(&3).is_some());
        assert_eq!(visited(), before);
        assert_eq!(map.values().count(), 10);
        assert_eq!(map.iter().take(3).count(), 3);
        assert_eq!(visited(), before + 13);
    }
}
