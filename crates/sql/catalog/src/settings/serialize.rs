//! A session's settings as another process of the server takes them over.
//!
//! Invariant: outside a transaction only. Then what holds now is what holds after COMMIT and what ROLLBACK goes back
//! to.

use super::SessionSettings;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What a session has set, without what its server was configured with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SerializedSettings {
    user: String,
    /// What RESET goes back to.
    initial: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
    /// Applications' own names.
    places: BTreeSet<String>,
    /// What the client was told.
    reported: BTreeMap<String, String>,
}

impl SessionSettings {
    /// What the session has set.
    pub fn serialized(&self) -> SerializedSettings {
        SerializedSettings {
            user: self.user.clone(),
            initial: BTreeMap::clone(&self.initial),
            now: BTreeMap::clone(&self.now),
            places: self.places.clone(),
            reported: self
                .reported()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }

    /// How much text that is, about.
    pub fn size_bytes(&self) -> usize {
        let maps = [&self.initial, &self.now];
        let values = maps.into_iter().flat_map(|values| values.iter());
        let values = values.map(|(name, value)| name.len() + value.len());
        values.chain(self.places.iter().map(String::len)).sum()
    }

    /// Takes over what a session has set in another process. What its client was told otherwise counts as changed.
    pub fn restore(&mut self, from: SerializedSettings) {
        self.user = from.user;
        self.initial = Rc::new(from.initial);
        self.now = Rc::new(from.now);
        self.before = Rc::clone(&self.now);
        self.after_commit = Rc::clone(&self.now);
        self.savepoints.clear();
        self.places = from.places;
        self.refresh();
        let told = from.reported;
        let changed: Vec<&str> = self
            .reported()
            .filter(|(name, value)| told.get(*name) != Some(value))
            .map(|(name, _)| name)
            .collect();
        self.changed.clear();
        for name in changed {
            self.note_change(&name.to_ascii_lowercase());
        }
    }
}
