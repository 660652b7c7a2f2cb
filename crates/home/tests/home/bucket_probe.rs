//! The probe against stores that lie: each lie here is one that a real server tells, or could tell, and each costs
//! data.

use bytes::Bytes;
use logstead_home::Usage;
use logstead_home::bucket::probe::{ProbeError, probe};
use logstead_home::bucket::{
    AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat,
};
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Appends overwrite the object.
    AppendsOverwrite,
    /// Appends are taken at any offset, and go to the end.
    AppendsGoToTheEnd,
    /// Appends are turned away, but stored.
    WrongOffsetStored,
    /// There are no appends.
    NoAppends,
    /// Conditions "only if absent" are ignored.
    IgnoresAbsence,
    /// The same, but the answer says that nothing was written.
    AbsenceStored,
    /// Conditions on the state are ignored.
    IgnoresState,
    /// A state that nobody has is refused, any that anybody had is fine.
    KnowsOldStates,
    /// No state is ever the right one.
    NoReplacing,
    /// Refuses to replace, but does.
    ReplacesAnyway,
    /// Has no states.
    NoStates,
    /// Cannot be reached from the third request on.
    Away,
}

#[derive(Default)]
struct Store {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    states: u64,
    requests: u64,
}

struct Liar {
    lie: Option<Lie>,
    appendable: bool,
    store: Mutex<Store>,
}

impl Liar {
    fn new(lie: Option<Lie>, appendable: bool) -> Liar {
        Liar {
            lie,
            appendable,
            store: Mutex::default(),
        }
    }

    fn tells(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    fn tag(&self, state: u64) -> Option<ETag> {
        (!self.tells(Lie::NoStates)).then(|| ETag(state.to_string()))
    }

    /// Does something to the store, and answers.
    fn answer<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<T, Outcome>,
    ) -> BucketFuture<'a, T> {
        let mut store = self.store.lock().expect("not poisoned");
        store.requests += 1;
        let answer = if self.tells(Lie::Away) && store.requests > 2 {
            Err(Outcome::NotNow)
        } else {
            act(&mut store)
        };
        let answer = answer.map_err(|outcome| BucketError::new(outcome, "it", "said so"));
        Box::pin(async move { answer })
    }
}

impl Store {
    fn put(&mut self, name: &str, bytes: &[u8]) -> u64 {
        self.states += 1;
        self.objects
            .insert(name.into(), (bytes.to_vec(), self.states));
        self.states
    }

    fn get(&self, name: &str) -> Result<(Vec<u8>, u64), Outcome> {
        self.objects.get(name).cloned().ok_or(Outcome::Absent)
    }
}

impl Bucket for Liar {
    fn describe(&self) -> String {
        "liar://".into()
    }

    fn provider(&self) -> &str {
        "liar"
    }

    fn appends(&self) -> Option<AppendLimits> {
        self.appendable.then_some(AppendLimits {
            appends_max: 100,
            append_bytes_max: 1000,
            object_bytes_max: 10_000,
        })
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    fn create<'a>(&'a self, name: &'a str, first: Bytes) -> BucketFuture<'a, ()> {
        let put = self.put_if_absent(name, first);
        Box::pin(async move { put.await.map(drop) })
    }

    fn append<'a>(&'a self, name: &'a str, offset: u64, bytes: Bytes) -> BucketFuture<'a, ()> {
        self.answer(|store| {
            if self.tells(Lie::NoAppends) {
                return Err(Outcome::Refused);
            }
            if self.tells(Lie::AppendsOverwrite) {
                store.put(name, &bytes);
                return Ok(());
            }
            let (mut all, _) = store.get(name)?;
            let right = all.len() as u64 == offset;
            if right || self.tells(Lie::AppendsGoToTheEnd) || self.tells(Lie::WrongOffsetStored) {
                all.extend_from_slice(&bytes);
                store.put(name, &all);
            }
            if right || self.tells(Lie::AppendsGoToTheEnd) {
                return Ok(());
            }
            Err(Outcome::WrongOffset)
        })
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        self.answer(|store| {
            let absent = !store.objects.contains_key(name);
            if absent || self.tells(Lie::IgnoresAbsence) {
                return Ok(self.tag(store.put(name, &bytes)));
            }
            if self.tells(Lie::AbsenceStored) {
                store.put(name, &bytes);
            }
            Err(Outcome::Precondition)
        })
    }

    fn replace<'a>(
        &'a self,
        name: &'a str,
        expected: &'a ETag,
        bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>> {
        self.answer(|store| {
            let (_, state) = store.get(name)?;
            let right = expected.0 == state.to_string() && !self.tells(Lie::NoReplacing);
            let was = expected.0.parse().is_ok_and(|was: u64| was <= state);
            let taken =
                right || self.tells(Lie::IgnoresState) || self.tells(Lie::KnowsOldStates) && was;
            if taken || self.tells(Lie::ReplacesAnyway) {
                let state = store.put(name, &bytes);
                if taken {
                    return Ok(self.tag(state));
                }
            }
            Err(Outcome::Precondition)
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, ()> {
        self.answer(|store| {
            store.put(name, &bytes);
            Ok(())
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)> {
        self.answer(|store| {
            let (bytes, state) = store.get(name)?;
            Ok((bytes.into(), self.tag(state)))
        })
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        self.answer(|store| {
            let (bytes, _) = store.get(name)?;
            let skip = usize::try_from(offset).expect("small");
            let take = usize::try_from(len).expect("small");
            Ok(bytes.into_iter().skip(skip).take(take).collect())
        })
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        self.answer(|store| {
            Ok(store.get(name).ok().map(|(bytes, state)| Stat {
                len: bytes.len() as u64,
                etag: self.tag(state),
            }))
        })
    }

    fn list<'a>(&'a self, _: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        self.answer(|_| Ok(Vec::new()))
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        self.answer(|store| {
            store.objects.remove(name);
            Ok(())
        })
    }
}

fn probed(bucket: &Liar) -> Result<(), ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(probe(bucket, 7))
}

#[test]
fn an_honest_store_passes_and_is_left_empty() {
    for appendable in [true, false] {
        let bucket = Liar::new(None, appendable);
        probed(&bucket).expect("fit");
        assert!(
            bucket
                .store
                .lock()
                .expect("not poisoned")
                .objects
                .is_empty()
        );
    }
}

#[test]
fn every_lie_about_conditions_is_found_out() {
    for (lie, why) in [
        (Lie::IgnoresAbsence, "ignores If-None-Match"),
        (Lie::AbsenceStored, "refused to"),
        (Lie::IgnoresState, "ignores If-Match"),
        (Lie::KnowsOldStates, "ignores If-Match"),
        (Lie::NoReplacing, "does not replace"),
        (Lie::ReplacesAnyway, "refused to replace"),
        (Lie::NoStates, "ETag"),
    ] {
        for appendable in [true, false] {
            let bucket = Liar::new(Some(lie), appendable);
            let Err(ProbeError::Unfit(said)) = probed(&bucket) else {
                panic!("{lie:?} was not found out");
            };
            assert!(said.contains(why), "{lie:?}: {said}");
            assert!(said.contains("another object store"), "{lie:?}: {said}");
            let left = bucket.store.lock().expect("not poisoned").objects.len();
            assert_eq!(left, 0, "{lie:?}");
        }
    }
}

#[test]
fn every_lie_about_appends_is_found_out_and_plain_objects_do_not_care() {
    for (lie, why) in [
        (Lie::AppendsOverwrite, "overwrites the object with it"),
        (Lie::AppendsGoToTheEnd, "not the object's length"),
        (Lie::WrongOffsetStored, "but changed the object"),
        (Lie::NoAppends, "does not append"),
    ] {
        let bucket = Liar::new(Some(lie), true);
        let Err(ProbeError::Unfit(said)) = probed(&bucket) else {
            panic!("{lie:?} was not found out");
        };
        assert!(said.contains(why), "{lie:?}: {said}");
        assert!(said.contains("use s3://"), "{lie:?}: {said}");
        probed(&Liar::new(Some(lie), false)).expect("fit");
    }
}

#[test]
fn a_store_that_is_away_is_not_called_a_liar() {
    let bucket = Liar::new(Some(Lie::Away), true);
    assert!(
        matches!(probed(&bucket), Err(ProbeError::Failed(error)) if error.outcome == Outcome::NotNow)
    );
}
