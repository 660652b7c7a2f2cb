//! Statements by text and plans by statement, shared by the sessions of a worker.
//!
//! Invariant: a plan is given out only for the very catalog snapshot, search path and parameter types that it was made
//! with, and never if it depends on one session. All caches are bounded: two generations, the older one is dropped when
//! the younger is full, so what is in use stays. A text is kept from its second coming on: most texts that are not
//! prepared never come again, and thousands of trees and plans that nobody asks for cost more, in memory that is always
//! cold, than the parsing.

use super::cached_plan::{CachedPlan, PlannedForRole};
use crate::cached_plan::ParsedText;
use logstead_sql_catalog::Catalog;
use logstead_sql_parse as parse;
use logstead_sql_types::error::Result;
use logstead_sql_types::{DatabaseOid, TypeId};
use logstead_types::Csn;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use std::sync::Arc;

/// Texts longer than this are data, not statements that come again.
const TEXT_BYTES_MAX: usize = 4096;
/// Entries of one generation.
const GENERATION_MAX: usize = 512;
/// The same of what came once, of which there is a number each.
const SEEN_MAX: usize = 8 * GENERATION_MAX;

/// A map of two generations.
struct Generations<K, V> {
    entries_max: usize,
    young: HashMap<K, V, foldhash::fast::RandomState>,
    old: HashMap<K, V, foldhash::fast::RandomState>,
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Generations::of(GENERATION_MAX)
    }
}

impl<K, V> Generations<K, V> {
    /// Empty, with so many entries in a generation.
    fn of(entries_max: usize) -> Generations<K, V> {
        Generations {
            entries_max,
            young: HashMap::default(),
            old: HashMap::default(),
        }
    }
}

impl<K: Hash + Eq, V: Clone> Generations<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value.clone());
        Some(value)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.entries_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        self.young.retain(|_, value| keep(value));
        self.old.retain(|_, value| keep(value));
    }
}

#[derive(PartialEq, Eq, Hash)]
struct PlanKey {
    text: Rc<str>,
    start: usize,
    types: Vec<Option<TypeId>>,
    path: Rc<[String]>,
    database: DatabaseOid,
    /// The version of its catalog, if it is of the past.
    past: Option<u64>,
    /// For whom it is, if that matters.
    made_for: Option<PlannedForRole>,
}

/// What is known of a text whose integers were lifted out (see [`auto_parameterize`](super::auto_parameterize)).
#[derive(Clone)]
enum ParameterizationState {
    /// It came once: most texts never come again.
    Seen,
    /// It has been tried, with the catalog of this CSN, and is no statement by key.
    Refused(Csn),
    Parsed(Rc<ParsedText>),
}

/// Whether to run a text with parameters.
pub(super) enum AutoParameterize {
    No,
    Yes(Rc<ParsedText>),
}

/// The caches of one worker.
pub(super) struct Caches {
    kinds: Generations<Rc<str>, ParameterizationState>,
    /// Hashes of the texts that came once.
    seen: Generations<u64, ()>,
    hasher: foldhash::fast::RandomState,
    texts: Generations<Rc<str>, Rc<ParsedText>>,
    plans: Generations<PlanKey, Rc<CachedPlan>>,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            kinds: Generations::default(),
            seen: Generations::of(SEEN_MAX),
            hasher: foldhash::fast::RandomState::default(),
            texts: Generations::default(),
            plans: Generations::default(),
        }
    }
}

impl Caches {
    /// The statements of `text`.
    pub(super) fn parse(&mut self, text: &str) -> Result<Rc<ParsedText>> {
        if text.len() > TEXT_BYTES_MAX {
            return Ok(ParsedText::new(text.into(), parse::parse_deep(text)?));
        }
        if let Some(parsed) = self.texts.get(text) {
            return Ok(parsed);
        }
        let parsed = ParsedText::new(text.into(), parse::parse_deep(text)?);
        let hash = self.hasher.hash_one(text);
        match self.seen.get(&hash) {
            Some(()) => self
                .texts
                .insert(Rc::clone(&parsed.text), Rc::clone(&parsed)),
            None => self.seen.insert(hash, ()),
        }
        Ok(parsed)
    }

    /// The single statement of `text`, whose integers were lifted out, from its second coming on.
    pub(super) fn parameterization(&mut self, text: &str, catalog: Csn) -> AutoParameterize {
        match self.kinds.get(text) {
            Some(ParameterizationState::Parsed(parsed)) => AutoParameterize::Yes(parsed),
            Some(ParameterizationState::Refused(at)) if at == catalog => AutoParameterize::No,
            Some(ParameterizationState::Seen | ParameterizationState::Refused(_)) => {
                let one = parse::parse_deep(text)
                    .ok()
                    .filter(|statements| statements.len() == 1);
                let Some(statements) = one else {
                    self.refuse_parameterization(&text.into(), catalog);
                    return AutoParameterize::No;
                };
                let text: Rc<str> = text.into();
                let parsed = ParsedText::new(Rc::clone(&text), statements);
                self.kinds
                    .insert(text, ParameterizationState::Parsed(Rc::clone(&parsed)));
                AutoParameterize::Yes(parsed)
            }
            None => {
                self.kinds.insert(text.into(), ParameterizationState::Seen);
                AutoParameterize::No
            }
        }
    }

    /// The text is to be run as it stands, until the catalog changes.
    pub(super) fn refuse_parameterization(&mut self, text: &Rc<str>, catalog: Csn) {
        self.kinds
            .insert(Rc::clone(text), ParameterizationState::Refused(catalog));
    }

    /// A plan made with this catalog, if one is kept.
    pub(super) fn plan(
        &mut self,
        text: &Rc<str>,
        start: usize,
        types: &[Option<TypeId>],
        path: &Rc<[String]>,
        catalog: &Arc<Catalog>,
        asker: PlannedForRole,
    ) -> Option<Rc<CachedPlan>> {
        let mut key = PlanKey {
            text: Rc::clone(text),
            start,
            types: types.to_vec(),
            path: Rc::clone(path),
            database: catalog.database,
            past: catalog.past.is_some().then_some(catalog.version),
            made_for: None,
        };
        let current = |plan: &Rc<CachedPlan>| Arc::ptr_eq(&plan.catalog, catalog);
        if let Some(plan) = self.plans.get(&key).filter(current) {
            return Some(plan);
        }
        key.made_for = Some(asker);
        self.plans.get(&key).filter(current)
    }

    /// Drops the plans made with a catalog that `is_current` does not know.
    pub(super) fn drop_stale_plans(&mut self, is_current: impl Fn(&Arc<Catalog>) -> bool) {
        self.plans.retain(|plan| is_current(&plan.catalog));
    }

    /// Keeps a plan that any session may use, if its text came before.
    pub(super) fn keep(
        &mut self,
        text: &Rc<str>,
        start: usize,
        types: &[Option<TypeId>],
        path: &Rc<[String]>,
        plan: &Rc<CachedPlan>,
    ) {
        let comes_again = self.texts.get(&**text).is_some()
            || matches!(
                self.kinds.get(&**text),
                Some(ParameterizationState::Parsed(_))
            );
        if !comes_again {
            return;
        }
        let key = PlanKey {
            text: Rc::clone(text),
            start,
            types: types.to_vec(),
            path: Rc::clone(path),
            database: plan.catalog.database,
            past: plan.catalog.past.is_some().then_some(plan.catalog.version),
            made_for: plan.made_for,
        };
        self.plans.insert(key, Rc::clone(plan));
    }
}
