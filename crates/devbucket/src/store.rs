//! Buckets and their objects: what a request changes, and what it is refused for. No HTTP here.
//!
//! Invariants:
//! - Writes of one object happen one after the other, each whole or not at all.
//! - What a write answered is on the disk, if there is one, before it can be read or is acknowledged.
//! - A read finds one state of an object, whole, and misses no object that is there all the time: who replaces one
//!   removes the old file after the new state is what is found, and who reads opens the file of what it finds before
//!   that can change ([`Bucket::open`]).

use crate::disk::{BucketFiles, Disk};
use crate::object::{Object, ObjectPart, PartLocation, Tag};
use bytes::{Bytes, BytesMut};
use logstead_env::{Env, File};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Names of directory buckets end so, with the zone before it:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html>
const DIRECTORY_SUFFIX: &str = "--x-s3";
/// Locks for writes, shared by the objects of a bucket: enough that two objects seldom meet.
const STRIPES: usize = 256;

/// What kind of bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketKind {
    /// S3 Express One Zone: appends, sessions, listings in no order.
    Directory,
    /// Everything else: no appends, listings in order.
    General,
}

impl BucketKind {
    pub(crate) fn of(bucket: &str) -> BucketKind {
        if bucket.ends_with(DIRECTORY_SUFFIX) {
            BucketKind::Directory
        } else {
            BucketKind::General
        }
    }
}

/// A state of an object that is being read: it can be read to its end, whatever becomes of the object meanwhile.
pub(crate) struct OpenObject {
    pub(crate) object: Object,
    file: Option<Box<dyn File>>,
}

/// Which states of an object a write is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    /// Only if there is none (`If-None-Match: *`).
    pub(crate) absent: bool,
    /// Only if there is one in this state, or in any (`If-Match`).
    pub(crate) matches: Option<Match>,
    /// Whether there was one when the request came: a deletion since then is a conflict.
    pub(crate) existed: bool,
}

/// What `If-Match` asks for.
#[derive(Clone, Debug)]
pub(crate) enum Match {
    Any,
    Tag(String),
}

impl Match {
    pub(crate) fn accepts(&self, object: &Object) -> bool {
        match self {
            Match::Any => true,
            Match::Tag(tag) => *tag == object.tag.to_string(),
        }
    }
}

/// Why a write or read was refused. Nothing was changed, except perhaps by [`Refusal::Failed`].
#[derive(Debug)]
pub(crate) enum Refusal {
    NoSuchKey,
    Precondition,
    /// The object was deleted while the conditional request was under way.
    Conflict,
    WrongOffset,
    TooManyParts,
    /// More than the bucket's quota.
    QuotaExceeded,
    NotSatisfiable,
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Failed(error)
    }
}

/// A bucket.
pub(crate) struct Bucket {
    pub(crate) kind: BucketKind,
    parts_max: usize,
    quota_bytes: Option<u64>,
    env: Env,
    stripes: Vec<Mutex<()>>,
    objects: RwLock<BTreeMap<String, Object>>,
    files: Option<BucketFiles>,
}

impl Bucket {
    fn stripe(&self, key: &str) -> &Mutex<()> {
        &self.stripes[crc32c::crc32c(key.as_bytes()) as usize % self.stripes.len()]
    }

    pub(crate) fn find(&self, key: &str) -> Option<Object> {
        self.objects.read().get(key).cloned()
    }

    fn check(condition: &Condition, present: Option<&Object>) -> Result<(), Refusal> {
        if condition.absent {
            match present {
                Some(_) => return Err(Refusal::Precondition),
                None if condition.existed => return Err(Refusal::Conflict),
                None => {}
            }
        }
        match (&condition.matches, present) {
            (None, _) => Ok(()),
            (Some(_), None) if condition.existed => Err(Refusal::Conflict),
            (Some(_), None) => Err(Refusal::NoSuchKey),
            (Some(wanted), Some(object)) if wanted.accepts(object) => Ok(()),
            (Some(_), Some(_)) => Err(Refusal::Precondition),
        }
    }

    /// Refuses what would make the bucket larger than its quota. Writes of other objects are not waited for: they may
    /// be beyond it together.
    fn check_quota(&self, more: usize, less: u64) -> Result<(), Refusal> {
        let (Some(quota), more) = (self.quota_bytes, more as u64) else {
            return Ok(());
        };
        if more <= less {
            return Ok(());
        }
        let used: u64 = self.objects.read().values().map(Object::len).sum();
        match used + more - less > quota {
            true => Err(Refusal::QuotaExceeded),
            false => Ok(()),
        }
    }

    fn fresh_tag(&self) -> Tag {
        let mut tag = Tag([0; 16]);
        self.env.random.fill(&mut tag.0);
        tag
    }

    /// Writes an object whole, whatever was there before.
    pub(crate) fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Object, Refusal> {
        let _one_at_a_time = self.stripe(key).lock();
        let present = self.find(key);
        Bucket::check(condition, present.as_ref())?;
        self.replace(key, bytes, present)
    }

    /// Adds a part to an object whose length is `offset`; at offset 0 of a missing one, makes it.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-append.html>
    pub(crate) fn append(
        &self,
        key: &str,
        offset: u64,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Object, Refusal> {
        let _one_at_a_time = self.stripe(key).lock();
        let present = self.find(key);
        Bucket::check(condition, present.as_ref())?;
        let Some(mut object) = present else {
            // AWS does not say which error it is; a missing object has no length that would match.
            return match offset {
                0 => self.replace(key, bytes, None),
                _ => Err(Refusal::WrongOffset),
            };
        };
        if object.broken {
            return Err(broken());
        }
        if object.len() != offset {
            return Err(Refusal::WrongOffset);
        }
        if object.parts.len() >= self.parts_max {
            return Err(Refusal::TooManyParts);
        }
        self.check_quota(bytes.len(), 0)?;
        let range = offset..offset + bytes.len() as u64;
        object.tag = self.fresh_tag();
        object.modified = self.env.clock.now_micros_since_2000();
        let place = match (&self.files, object.file) {
            (Some(files), Some((file, end))) => {
                match files.append(file, end, object.tag, object.modified, &bytes) {
                    Ok(appended) => {
                        object.file = Some((file, appended.end));
                        PartLocation::File(appended.payload)
                    }
                    Err(failed) => {
                        if !failed.undone
                            && let Some(present) = self.objects.write().get_mut(key)
                        {
                            present.broken = true;
                        }
                        return Err(failed.error.into());
                    }
                }
            }
            _ => PartLocation::Memory(bytes),
        };
        Arc::make_mut(&mut object.parts).push(ObjectPart { range, place });
        self.objects.write().insert(key.to_owned(), object.clone());
        Ok(object)
    }

    fn replace(&self, key: &str, bytes: Bytes, old: Option<Object>) -> Result<Object, Refusal> {
        self.check_quota(bytes.len(), old.as_ref().map_or(0, Object::len))?;
        let tag = self.fresh_tag();
        let modified = self.env.clock.now_micros_since_2000();
        let range = 0..bytes.len() as u64;
        let (place, file) = match &self.files {
            Some(files) => {
                let (file, written) = files.create(key, tag, modified, &bytes)?;
                (
                    PartLocation::File(written.payload),
                    Some((file, written.end)),
                )
            }
            None => (PartLocation::Memory(bytes), None),
        };
        let object = Object {
            tag,
            modified,
            parts: Arc::new(vec![ObjectPart { range, place }]),
            file,
            broken: false,
        };
        self.objects.write().insert(key.to_owned(), object.clone());
        if let (Some(files), Some((old, _))) = (&self.files, old.and_then(|old| old.file)) {
            files.remove(old)?;
        }
        Ok(object)
    }

    /// Removes an object; a missing one is fine.
    pub(crate) fn delete(&self, key: &str) -> Result<(), Refusal> {
        let _one_at_a_time = self.stripe(key).lock();
        if let Some(object) = self.find(key)
            && let (Some(files), Some((file, _))) = (&self.files, object.file)
        {
            files.remove(file)?;
        }
        self.objects.write().remove(key);
        Ok(())
    }

    /// Finds an object to be read.
    pub(crate) fn open(&self, key: &str) -> Result<Option<OpenObject>, Refusal> {
        // Held until the file is open: see the invariants.
        let objects = self.objects.read();
        let Some(object) = objects.get(key).cloned() else {
            return Ok(None);
        };
        if object.broken {
            return Err(broken());
        }
        let file = match (&self.files, object.file) {
            (Some(files), Some((file, _))) => match files.open(file) {
                // It is being deleted, which takes the file away first.
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(None),
                file => Some(file?),
            },
            _ => None,
        };
        Ok(Some(OpenObject { object, file }))
    }

    /// Bytes of an object.
    pub(crate) fn read(&self, opened: &OpenObject, range: Range<u64>) -> Result<Bytes, Refusal> {
        let OpenObject { object, file } = opened;
        if range.start > range.end || range.end > object.len() {
            return Err(Refusal::NotSatisfiable);
        }
        let first = object
            .parts
            .partition_point(|part| part.range.end <= range.start);
        let mut bytes = BytesMut::new();
        for part in &object.parts[first..] {
            let from = range.start.max(part.range.start);
            let to = range.end.min(part.range.end);
            if from >= to {
                break;
            }
            let (skip, len) = (from - part.range.start, index(to - from)?);
            match (&part.place, file) {
                (PartLocation::Memory(all), _) => {
                    let skip = index(skip)?;
                    let piece = all.slice(skip..skip + len);
                    if from == range.start && to == range.end {
                        return Ok(piece);
                    }
                    bytes.extend_from_slice(&piece);
                }
                (PartLocation::File(offset), Some(file)) => {
                    let before = bytes.len();
                    bytes.resize(before + len, 0);
                    if file.read_full_at(offset + skip, &mut bytes[before..])? < len {
                        return Err(io::Error::other("a file became shorter").into());
                    }
                }
                (PartLocation::File(_), None) => return Err(broken()),
            }
        }
        Ok(bytes.freeze())
    }

    /// Name and state of every object whose name begins with `prefix`, in order.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<(String, Object)> {
        let objects = self.objects.read();
        objects
            .range(prefix.to_owned()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }
}

fn broken() -> Refusal {
    Refusal::Failed(io::Error::other(
        "an earlier write failed half way; start the bucket again",
    ))
}

fn index(number: u64) -> Result<usize, Refusal> {
    usize::try_from(number).map_err(|_| Refusal::Failed(io::Error::other("too large")))
}

/// All buckets.
pub(crate) struct Store {
    env: Env,
    parts_max: usize,
    quota_bytes: Option<u64>,
    disk: Option<Disk>,
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
}

impl Store {
    /// In memory, or in a directory with what is there already.
    pub(crate) fn open(
        env: &Env,
        disk: Option<Disk>,
        parts_max: usize,
        quota_bytes: Option<u64>,
    ) -> io::Result<Store> {
        let store = Store {
            env: env.clone(),
            parts_max,
            quota_bytes,
            disk,
            buckets: RwLock::default(),
        };
        if let Some(disk) = &store.disk {
            for (name, files, objects) in disk.load()? {
                let bucket = store.bucket(&name, Some(files), objects);
                store.buckets.write().insert(name, Arc::new(bucket));
            }
        }
        Ok(store)
    }

    fn bucket(
        &self,
        name: &str,
        files: Option<BucketFiles>,
        objects: BTreeMap<String, Object>,
    ) -> Bucket {
        Bucket {
            kind: BucketKind::of(name),
            parts_max: self.parts_max,
            quota_bytes: self.quota_bytes,
            env: self.env.clone(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            objects: RwLock::new(objects),
            files,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Bucket>> {
        self.buckets.read().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.buckets.read().keys().cloned().collect()
    }

    /// Makes a bucket; false: there is one of that name.
    pub(crate) fn create(&self, name: &str) -> io::Result<bool> {
        let mut buckets = self.buckets.write();
        if buckets.contains_key(name) {
            return Ok(false);
        }
        let files = match &self.disk {
            Some(disk) => Some(disk.create(name)?),
            None => None,
        };
        let bucket = self.bucket(name, files, BTreeMap::new());
        buckets.insert(name.to_owned(), Arc::new(bucket));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_env::{CrashLoss, Fault, SimFiles};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    const PARTS_MAX: usize = 5;
    const BUCKET: &str = "b--z--x-s3";

    fn memory() -> Store {
        let (env, _) = Env::simulated(1);
        let store = Store::open(&env, None, PARTS_MAX, None).expect("opens");
        assert!(store.create(BUCKET).expect("makes"));
        store
    }

    fn on(files: &Arc<SimFiles>, seed: u64) -> Store {
        let (mut env, _) = Env::simulated(seed);
        env.files = Arc::clone(files) as Arc<dyn logstead_env::Files>;
        let disk = Disk::open(&env, Path::new("/bucket")).expect("opens");
        Store::open(&env, Some(disk), PARTS_MAX, None).expect("loads")
    }

    fn free() -> Condition {
        Condition::default()
    }

    fn whole(bucket: &Bucket, key: &str) -> Option<Vec<u8>> {
        let opened = bucket.open(key).expect("opens")?;
        let bytes = bucket.read(&opened, 0..opened.object.len());
        Some(bytes.expect("reads").to_vec())
    }

    fn both(test: impl Fn(&Bucket)) {
        test(&memory().find(BUCKET).expect("is there"));
        let files = Arc::new(SimFiles::new(1));
        let store = on(&files, 1);
        store.create(BUCKET).expect("makes");
        test(&store.find(BUCKET).expect("is there"));
    }

    #[test]
    fn an_append_is_for_one_length_and_changes_the_state() {
        both(|bucket| {
            let refused = bucket.append("k", 3, Bytes::from_static(b"x"), &free());
            assert!(matches!(refused, Err(Refusal::WrongOffset)));
            let first = bucket.append("k", 0, Bytes::from_static(b"abc"), &free());
            let first = first.expect("makes");
            for wrong in [0, 2, 4] {
                let refused = bucket.append("k", wrong, Bytes::from_static(b"abc"), &free());
                assert!(matches!(refused, Err(Refusal::WrongOffset)), "{wrong}");
            }
            let second = bucket.append("k", 3, Bytes::from_static(b"de"), &free());
            let second = second.expect("appends");
            assert_ne!(first.tag, second.tag);
            assert_eq!(whole(bucket, "k").as_deref(), Some(b"abcde".as_slice()));
            let opened = bucket.open("k").expect("opens").expect("is there");
            assert_eq!(bucket.read(&opened, 1..4).expect("reads"), "bcd");
            assert_eq!(bucket.read(&opened, 5..5).expect("reads"), "");
            assert!(bucket.read(&opened, 3..6).is_err());
        });
    }

    #[test]
    fn who_found_a_state_reads_it_whatever_comes_after() {
        both(|bucket| {
            let made = bucket.append("k", 0, Bytes::from_static(b"abc"), &free());
            made.expect("makes");
            let open = || bucket.open("k").expect("opens").expect("is there");
            let read = |opened: &OpenObject| bucket.read(opened, 0..opened.object.len());
            let first = open();
            let appended = bucket.append("k", 3, Bytes::from_static(b"de"), &free());
            appended.expect("appends");
            let second = open();
            let put = bucket.put("k", Bytes::from_static(b"replaced"), &free());
            put.expect("replaces");
            let third = open();
            bucket.delete("k").expect("deletes");
            assert!(bucket.open("k").expect("opens").is_none());
            let found = [first, second, third].map(|opened| read(&opened).expect("reads"));
            assert_eq!(found, ["abc", "abcde", "replaced"]);
        });
    }

    /// An object that is replaced all the time is there all the time.
    #[test]
    fn who_reads_while_others_replace_misses_nothing() {
        let files = Arc::new(SimFiles::new(1));
        let store = on(&files, 1);
        store.create(BUCKET).expect("makes");
        let bucket = store.find(BUCKET).expect("is there");
        let put = |n: u32| {
            let bytes = Bytes::copy_from_slice(&[n.to_le_bytes(); 5].concat());
            bucket.put("k", bytes, &free()).expect("puts")
        };
        put(0);
        let writing = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..3_000).for_each(|n| drop(put(n)));
                writing.store(false, Ordering::SeqCst);
            });
            let mut last = 0;
            while writing.load(Ordering::SeqCst) {
                let found = whole(&bucket, "k").expect("is there");
                let number = u32::from_le_bytes(found[..4].try_into().expect("four bytes"));
                assert_eq!(found, [number.to_le_bytes(); 5].concat());
                assert!(number >= last, "{number} after {last}");
                last = number;
            }
        });
    }

    #[test]
    fn parts_are_limited() {
        both(|bucket| {
            for offset in 0..PARTS_MAX as u64 {
                let appended = bucket.append("k", offset, Bytes::from_static(b"x"), &free());
                appended.expect("appends");
            }
            let full = bucket.append("k", PARTS_MAX as u64, Bytes::from_static(b"x"), &free());
            assert!(matches!(full, Err(Refusal::TooManyParts)));
            let wrong = bucket.append("k", 1, Bytes::from_static(b"x"), &free());
            assert!(matches!(wrong, Err(Refusal::WrongOffset)));
            assert_eq!(whole(bucket, "k").as_deref(), Some(b"xxxxx".as_slice()));
        });
    }

    #[test]
    fn conditions_are_kept() {
        both(|bucket| {
            let absent = Condition {
                absent: true,
                ..free()
            };
            let tag = |tag: &Tag| Condition {
                matches: Some(Match::Tag(tag.to_string())),
                existed: true,
                ..free()
            };
            let one = bucket.put("k", Bytes::from_static(b"1"), &absent);
            let one = one.expect("puts");
            let again = bucket.put("k", Bytes::from_static(b"1"), &absent);
            assert!(matches!(again, Err(Refusal::Precondition)));
            let two = bucket.put("k", Bytes::from_static(b"2"), &tag(&one.tag));
            let two = two.expect("replaces");
            let stale = bucket.put("k", Bytes::from_static(b"3"), &tag(&one.tag));
            assert!(matches!(stale, Err(Refusal::Precondition)));
            assert_eq!(whole(bucket, "k").as_deref(), Some(b"2".as_slice()));
            bucket.delete("k").expect("deletes");
            bucket.delete("k").expect("a missing one is fine");
            let gone = bucket.put("k", Bytes::from_static(b"3"), &tag(&two.tag));
            assert!(
                matches!(gone, Err(Refusal::Conflict)),
                "deleted under the request"
            );
            let gone = Condition {
                matches: Some(Match::Any),
                ..free()
            };
            let gone = bucket.put("k", Bytes::from_static(b"3"), &gone);
            assert!(matches!(gone, Err(Refusal::NoSuchKey)));
            assert!(whole(bucket, "k").is_none());
        });
    }

    /// Cuts the power, or fails one operation of the disk, at every place in a run of writes: afterwards each object is
    /// in the state acknowledged last, or in the one that was on its way then.
    #[test]
    fn what_was_acknowledged_survives_a_power_cut_anywhere() {
        let steps: &[(&str, Option<u64>, &[u8])] = &[
            ("a", Some(0), b"first"),
            ("b", None, b"whole"),
            ("a", Some(5), b"second"),
            ("b", None, b"replaced"),
            ("a", Some(11), b""),
            ("b", Some(8), b"+more"),
        ];
        // `None`: the run goes through without meeting the fault.
        let run = |fault: Fault, at: u64| -> bool {
            let files = Arc::new(SimFiles::new(at));
            files.set_loss(CrashLoss::Random);
            let store = on(&files, at);
            store.create(BUCKET).expect("makes");
            let bucket = store.find(BUCKET).expect("is there");
            files.fail_at(files.operations() + at, fault);
            let mut sure: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
            let mut maybe: Option<(&str, Option<Vec<u8>>)> = None;
            let mut met = false;
            for &(key, offset, bytes) in steps.iter().chain([&("b", None, b"".as_slice())]) {
                let mut next = match offset {
                    Some(_) => sure.get(key).cloned().unwrap_or_default(),
                    None => Vec::new(),
                };
                next.extend_from_slice(bytes);
                // The last step deletes.
                let last = key == "b" && bytes.is_empty();
                let payload = Bytes::from_static(bytes);
                let done = match offset {
                    Some(offset) => bucket.append(key, offset, payload, &free()).map(drop),
                    None if last => bucket.delete(key),
                    None => bucket.put(key, payload, &free()).map(drop),
                };
                let next = (!last).then_some(next);
                match done {
                    Ok(()) => match next {
                        Some(next) => drop(sure.insert(key, next)),
                        None => drop(sure.remove(key)),
                    },
                    Err(_) => {
                        met = true;
                        maybe = Some((key, next));
                        break;
                    }
                }
            }
            drop((bucket, store));
            files.clear_faults();
            files.reboot();
            let store = on(&files, at + 1000);
            let bucket = store.find(BUCKET).expect("is there");
            for key in ["a", "b"] {
                let found = whole(&bucket, key);
                let expected = sure.get(key).cloned();
                let on_its_way = maybe.as_ref().filter(|(of, _)| *of == key);
                assert!(
                    found == expected || on_its_way.is_some_and(|(_, state)| *state == found),
                    "{fault:?} at {at}: {key} is {found:?}, not {expected:?} or {maybe:?}"
                );
            }
            met
        };
        for fault in [Fault::Crash, Fault::Error, Fault::Short] {
            let places = (0..200).take_while(|&at| run(fault, at) || fault != Fault::Crash);
            assert!(places.count() > 20, "{fault:?}");
        }
    }

    #[test]
    fn a_disk_that_fails_once_serves_on() {
        let files = Arc::new(SimFiles::new(7));
        let store = on(&files, 7);
        store.create(BUCKET).expect("makes");
        let bucket = store.find(BUCKET).expect("is there");
        let first = bucket.append("k", 0, Bytes::from_static(b"abc"), &free());
        first.expect("makes");
        files.set_capacity(Some(files.used()));
        let full = bucket.append("k", 3, Bytes::from(vec![1; 100_000]), &free());
        assert!(matches!(full, Err(Refusal::Failed(_))), "{full:?}");
        assert_eq!(whole(&bucket, "k").as_deref(), Some(b"abc".as_slice()));
        files.set_capacity(None);
        let more = bucket.append("k", 3, Bytes::from_static(b"de"), &free());
        more.expect("appends");
        drop((bucket, store));
        let bucket = on(&files, 8).find(BUCKET).expect("is there");
        assert_eq!(whole(&bucket, "k").as_deref(), Some(b"abcde".as_slice()));
    }

    #[test]
    fn two_processes_do_not_share_a_directory() {
        let files = Arc::new(SimFiles::new(1));
        let first = on(&files, 1);
        let (mut env, _) = Env::simulated(2);
        env.files = Arc::clone(&files) as Arc<dyn logstead_env::Files>;
        let Err(error) = Disk::open(&env, Path::new("/bucket")) else {
            panic!("opened twice");
        };
        assert!(error.to_string().contains("in use"), "{error}");
        drop(first);
        on(&files, 3);
    }
}
