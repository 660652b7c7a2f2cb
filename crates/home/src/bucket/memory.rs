//! A bucket in this process's memory that goes wrong as told: for tests of what is built on buckets.
//!
//! Owns: the objects, and the network in front of them. Handles made by [`MemoryBucket::handle`] are other processes'
//! on the same objects.
//!
//! A fault may be planned for the next request that fits ([`MemoryBucket::plan`]), or drawn from a seed
//! ([`MemoryBucket::set_rates`]). A request that is late waits in the network and lands after so many other requests,
//! or when [`MemoryBucket::land`] says so, whether or not whoever sent it still exists.
//!
//! Invariants: a request acts at one moment, or never (a duplicate: at two); what it answers is what it found at that
//! moment. Nothing here reads a clock or starts a thread: with one runtime thread, one seed gives one run.

use super::{AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat};
use crate::Usage;
use bytes::{Bytes, BytesMut};
use logstead_env::SimRandom;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestKind {
    /// [`Bucket::create`].
    Create,
    /// [`Bucket::append`].
    Append,
    /// [`Bucket::put_if_absent`].
    PutIfAbsent,
    /// [`Bucket::replace`].
    Replace,
    /// [`Bucket::put`].
    Put,
    /// [`Bucket::get`].
    Get,
    /// [`Bucket::get_range`].
    GetRange,
    /// [`Bucket::stat`].
    Stat,
    /// [`Bucket::list`].
    List,
    /// [`Bucket::delete`].
    Delete,
}

/// What may go wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Throttled: nothing happens, and the provider says so.
    NotNow,
    /// Nothing happens, and nobody says so.
    Vanishes,
    /// It acts, and its answer is lost.
    LostReply,
    /// It acts and is answered, and acts once more after so many other requests.
    Duplicate(u64),
    /// Its answer is lost, and it acts after so many other requests ([`u64::MAX`]: when it is told to land).
    Delay(u64),
    /// It waits in the network until it is told to land, and whoever asked waits with it.
    Hold,
    /// Others may overtake it: it acts after the runtime has been round so often.
    Slow(u32),
    /// It acts, and its answer is cut short, which is noticed.
    Truncated,
    /// A part that is asked for is half as long as it should be, and nobody says so.
    Short,
    /// The object takes no more appends.
    Full,
    /// The provider will not.
    Refused,
    /// Nothing happens, and something in front of the store says that there is no such object.
    Absent,
}

/// How often requests go wrong, of a thousand each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// [`Fault::NotNow`].
    pub not_now: u64,
    /// [`Fault::Vanishes`].
    pub vanishes: u64,
    /// [`Fault::LostReply`].
    pub lost_reply: u64,
    /// [`Fault::Duplicate`].
    pub duplicate: u64,
    /// [`Fault::Delay`].
    pub delay: u64,
    /// [`Fault::Slow`].
    pub slow: u64,
    /// [`Fault::Truncated`], of reads.
    pub truncated: u64,
    /// [`Fault::Short`], of reads of a part.
    pub short: u64,
}

/// How a bucket in memory is made.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Objects can be appended to, so far.
    pub appends: Option<AppendLimits>,
    /// [`Bucket::create`] takes two requests, as Azure's append blobs do: an empty object, then its first bytes.
    pub creates_in_two_steps: bool,
    /// Decides the faults that are drawn.
    pub seed: u64,
}

impl MemoryOptions {
    /// Appendable, so many appends per object.
    pub fn appendable(appends_max: u64) -> MemoryOptions {
        MemoryOptions {
            appends: Some(AppendLimits {
                appends_max,
                append_bytes_max: 16 << 20,
                object_bytes_max: 1 << 30,
            }),
            ..MemoryOptions::plain()
        }
    }

    /// Objects that are written once.
    pub fn plain() -> MemoryOptions {
        MemoryOptions {
            appends: None,
            creates_in_two_steps: false,
            seed: 1,
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Create(Bytes),
    Append(u64, Bytes),
    PutIfAbsent(Bytes),
    Replace(ETag, Bytes),
    Put(Bytes),
    Get,
    GetRange(u64, u64),
    Stat,
    List,
    Delete,
}

impl Action {
    fn kind(&self) -> RequestKind {
        match self {
            Action::Create(_) => RequestKind::Create,
            Action::Append(..) => RequestKind::Append,
            Action::PutIfAbsent(_) => RequestKind::PutIfAbsent,
            Action::Replace(..) => RequestKind::Replace,
            Action::Put(_) => RequestKind::Put,
            Action::Get => RequestKind::Get,
            Action::GetRange(..) => RequestKind::GetRange,
            Action::Stat => RequestKind::Stat,
            Action::List => RequestKind::List,
            Action::Delete => RequestKind::Delete,
        }
    }

    fn writes(&self) -> bool {
        !matches!(
            self.kind(),
            RequestKind::Get | RequestKind::GetRange | RequestKind::Stat | RequestKind::List
        )
    }
}

#[derive(Clone, Debug)]
struct Request {
    name: String,
    action: Action,
}

/// What a request found.
enum Response {
    Done,
    State(ETag),
    Whole(Bytes, ETag),
    Part(Bytes),
    Stat(Option<Stat>),
    List(Vec<ListEntry>),
}

#[derive(Debug)]
struct Object {
    bytes: BytesMut,
    etag: u64,
    /// How many appends it has taken; `None`: it takes none.
    appends: Option<u64>,
}

/// A request in the network.
struct Late {
    id: u64,
    due: u64,
    request: Request,
    /// Who waits for the answer, if it is held.
    waits: Option<oneshot::Sender<Result<Response, Outcome>>>,
}

struct Plan {
    process: u32,
    kind: RequestKind,
    name: String,
    fault: Fault,
}

struct Store {
    objects: BTreeMap<String, Object>,
    etags: u64,
    requests: u64,
    by_kind: BTreeMap<RequestKind, u64>,
    late: Vec<Late>,
    plans: VecDeque<Plan>,
    rates: Rates,
    /// Bytes that the objects may have together.
    quota: Option<u64>,
    log: Option<Vec<String>>,
}

struct Shared {
    options: MemoryOptions,
    random: SimRandom,
    store: Mutex<Store>,
}

/// A bucket in memory; see the module's documentation.
#[derive(Clone)]
pub struct MemoryBucket {
    shared: Arc<Shared>,
    process: u32,
    usage: Arc<Mutex<Usage>>,
}

impl MemoryBucket {
    /// An empty bucket, as process 0 sees it.
    pub fn new(options: MemoryOptions) -> MemoryBucket {
        let store = Store {
            objects: BTreeMap::new(),
            etags: 0,
            requests: 0,
            by_kind: BTreeMap::new(),
            late: Vec::new(),
            plans: VecDeque::new(),
            rates: Rates::default(),
            quota: None,
            log: None,
        };
        let random = SimRandom::new(options.seed);
        MemoryBucket {
            shared: Arc::new(Shared {
                options,
                random,
                store: Mutex::new(store),
            }),
            process: 0,
            usage: Arc::default(),
        }
    }

    /// The same bucket as another process sees it.
    pub fn handle(&self, process: u32) -> MemoryBucket {
        MemoryBucket {
            shared: Arc::clone(&self.shared),
            process,
            usage: Arc::default(),
        }
    }

    /// The next request of this process that is of that kind and whose name contains `name` goes wrong in this way.
    pub fn plan(&self, kind: RequestKind, name: &str, fault: Fault) {
        self.shared.store.lock().plans.push_back(Plan {
            process: self.process,
            kind,
            name: name.to_owned(),
            fault,
        });
    }

    /// How often requests go wrong from now on, of all processes.
    pub fn set_rates(&self, rates: Rates) {
        self.shared.store.lock().rates = rates;
    }

    /// How many bytes the objects may have together from now on; what would be more is refused.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.shared.store.lock().quota = bytes;
    }

    /// Plans that no request has fitted yet.
    pub fn plans(&self) -> usize {
        self.shared.store.lock().plans.len()
    }

    /// Requests in the network, oldest first: number, kind and name.
    pub fn in_network(&self) -> Vec<(u64, RequestKind, String)> {
        let store = self.shared.store.lock();
        let late = store.late.iter();
        late.map(|late| {
            (
                late.id,
                late.request.action.kind(),
                late.request.name.clone(),
            )
        })
        .collect()
    }

    /// Lets a request in the network act now; false if it is not there.
    pub fn land(&self, id: u64) -> bool {
        let mut store = self.shared.store.lock();
        let Some(index) = store.late.iter().position(|late| late.id == id) else {
            return false;
        };
        let late = store.late.remove(index);
        self.shared.land(&mut store, late);
        true
    }

    /// Lets everything in the network act now, in order.
    pub fn land_all(&self) {
        let mut store = self.shared.store.lock();
        for late in std::mem::take(&mut store.late) {
            self.shared.land(&mut store, late);
        }
    }

    /// Requests so far, of all processes.
    pub fn requests(&self) -> u64 {
        self.shared.store.lock().requests
    }

    /// Requests of one kind so far, of all processes.
    pub fn requests_of(&self, kind: RequestKind) -> u64 {
        let store = self.shared.store.lock();
        store.by_kind.get(&kind).copied().unwrap_or(0)
    }

    /// Writes down from now on what is asked, by whom, and what came of it; gives what was written down so far.
    pub fn log(&self) -> Vec<String> {
        let mut store = self.shared.store.lock();
        store.log.replace(Vec::new()).unwrap_or_default()
    }

    /// Names and lengths of all objects.
    pub fn objects(&self) -> Vec<(String, u64)> {
        let store = self.shared.store.lock();
        let objects = store.objects.iter();
        objects
            .map(|(name, object)| (name.clone(), object.bytes.len() as u64))
            .collect()
    }

    /// Removes all objects whose names begin so, without a request.
    pub fn remove(&self, prefix: &str) {
        let mut store = self.shared.store.lock();
        store.objects.retain(|name, _| !name.starts_with(prefix));
    }

    /// An object's bytes, looked at without a request.
    pub fn peek(&self, name: &str) -> Option<Vec<u8>> {
        let store = self.shared.store.lock();
        store.objects.get(name).map(|object| object.bytes.to_vec())
    }

    async fn ask(&self, name: &str, action: Action) -> Result<Response, BucketError> {
        let what = format!("{:?} {name}", action.kind());
        let request = Request {
            name: name.to_owned(),
            action,
        };
        let answer = self.send(request).await;
        if let Some(log) = &mut self.shared.store.lock().log {
            let came = match &answer {
                Ok(_) => "ok".to_owned(),
                Err(outcome) => format!("{outcome:?}"),
            };
            log.push(format!("{} {what}: {came}", self.process));
        }
        answer.map_err(|outcome| BucketError::new(outcome, what, "as the test wants it"))
    }

    fn count(&self, action: &Action) {
        let usage = &mut *self.usage.lock();
        let (requests, bytes, len) = match action {
            Action::Append(_, bytes) => (&mut usage.appends, &mut usage.append_bytes, bytes.len()),
            Action::Create(bytes)
            | Action::PutIfAbsent(bytes)
            | Action::Replace(_, bytes)
            | Action::Put(bytes) => (&mut usage.writes, &mut usage.write_bytes, bytes.len()),
            Action::Get | Action::GetRange(..) => (&mut usage.reads, &mut usage.read_bytes, 0),
            Action::Stat => (&mut usage.heads, &mut usage.read_bytes, 0),
            Action::List => (&mut usage.lists, &mut usage.read_bytes, 0),
            Action::Delete => (&mut usage.deletes, &mut usage.write_bytes, 0),
        };
        *requests += 1;
        *bytes += len as u64;
    }

    async fn send(&self, request: Request) -> Result<Response, Outcome> {
        // A place for others to come in between, as a network is.
        tokio::task::yield_now().await;
        let shared = &self.shared;
        self.count(&request.action);
        let (fault, number) = {
            let mut store = shared.store.lock();
            store.requests += 1;
            *store.by_kind.entry(request.action.kind()).or_default() += 1;
            let number = store.requests;
            shared.land_due(&mut store);
            (shared.fault(&mut store, self.process, &request), number)
        };
        let late = |due, waits| Late {
            id: number,
            due,
            request: request.clone(),
            waits,
        };
        let due = |after: u64| number.saturating_add(after);
        match fault {
            None => {}
            Some(Fault::Slow(rounds)) => {
                for _ in 0..rounds {
                    tokio::task::yield_now().await;
                }
            }
            Some(Fault::NotNow) => return Err(Outcome::NotNow),
            Some(Fault::Vanishes) => return Err(Outcome::Unknown),
            Some(Fault::Full) => return Err(Outcome::Full),
            Some(Fault::Refused) => return Err(Outcome::Refused),
            Some(Fault::Absent) if request.action.kind() == RequestKind::Stat => {
                return Ok(Response::Stat(None));
            }
            Some(Fault::Absent) => return Err(Outcome::Absent),
            Some(Fault::LostReply | Fault::Truncated) => {
                let mut store = shared.store.lock();
                let _lost = shared.act(&mut store, &request);
                return Err(Outcome::Unknown);
            }
            Some(Fault::Short) => {
                let mut store = shared.store.lock();
                return shared
                    .act(&mut store, &request)
                    .map(|response| match response {
                        Response::Part(bytes) => Response::Part(bytes.slice(..bytes.len() / 2)),
                        other => other,
                    });
            }
            Some(Fault::Delay(after)) => {
                shared.store.lock().late.push(late(due(after), None));
                return Err(Outcome::Unknown);
            }
            Some(Fault::Duplicate(after)) => {
                let mut store = shared.store.lock();
                store.late.push(late(due(after), None));
            }
            Some(Fault::Hold) => {
                let (tell, told) = oneshot::channel();
                let held = late(u64::MAX, Some(tell));
                shared.store.lock().late.push(held);
                return told.await.unwrap_or(Err(Outcome::Unknown));
            }
        }
        let mut store = shared.store.lock();
        shared.act(&mut store, &request)
    }
}

impl Store {
    /// Only what makes the bucket larger is refused.
    fn check_quota(&self, request: &Request) -> Result<(), Outcome> {
        let Some(quota) = self.quota else {
            return Ok(());
        };
        let there = self.objects.get(&request.name);
        let (more, less) = match &request.action {
            Action::Append(_, bytes) => (bytes.len(), 0),
            // It is refused because it is there.
            Action::Create(_) | Action::PutIfAbsent(_) if there.is_some() => return Ok(()),
            Action::Create(bytes)
            | Action::PutIfAbsent(bytes)
            | Action::Replace(_, bytes)
            | Action::Put(bytes) => (bytes.len(), there.map_or(0, |there| there.bytes.len())),
            _ => return Ok(()),
        };
        let used: usize = self.objects.values().map(|object| object.bytes.len()).sum();
        match more > less && (used + more - less) as u64 > quota {
            true => Err(Outcome::NoSpace),
            false => Ok(()),
        }
    }
}

impl Shared {
    fn fault(&self, store: &mut Store, process: u32, request: &Request) -> Option<Fault> {
        let kind = request.action.kind();
        let fits = |plan: &Plan| {
            plan.process == process && plan.kind == kind && request.name.contains(&plan.name)
        };
        if let Some(index) = store.plans.iter().position(fits) {
            return store.plans.remove(index).map(|plan| plan.fault);
        }
        let rates = store.rates;
        let mut draw = self.random.below(1000);
        let mut hit = |rate: u64| {
            let hit = draw < rate;
            draw = if hit { u64::MAX } else { draw - rate };
            hit
        };
        let after = || 1 + self.random.below(12);
        if hit(rates.not_now) {
            Some(Fault::NotNow)
        } else if hit(rates.vanishes) {
            Some(Fault::Vanishes)
        } else if hit(rates.lost_reply) {
            Some(Fault::LostReply)
        } else if hit(rates.slow) {
            Some(Fault::Slow(1 + self.random.below(8) as u32))
        } else if request.action.writes() && hit(rates.duplicate) {
            Some(Fault::Duplicate(after()))
        } else if request.action.writes() && hit(rates.delay) {
            Some(Fault::Delay(after()))
        } else if !request.action.writes() && hit(rates.truncated) {
            Some(Fault::Truncated)
        } else if kind == RequestKind::GetRange && hit(rates.short) {
            Some(Fault::Short)
        } else {
            None
        }
    }

    fn land_due(&self, store: &mut Store) {
        let now = store.requests;
        while let Some(index) = store.late.iter().position(|late| late.due <= now) {
            let late = store.late.remove(index);
            self.land(store, late);
        }
    }

    fn land(&self, store: &mut Store, late: Late) {
        let answer = self.act(store, &late.request);
        if let Some(log) = &mut store.log {
            let came = answer.as_ref().err();
            let kind = late.request.action.kind();
            log.push(format!("late {kind:?} {}: {came:?}", late.request.name));
        }
        if let Some(waits) = late.waits {
            // Whoever asked may have stopped.
            let _heard = waits.send(answer);
        }
    }

    fn act(&self, store: &mut Store, request: &Request) -> Result<Response, Outcome> {
        let name = &request.name;
        store.check_quota(request)?;
        store.etags += 1;
        let etag = store.etags;
        let tag = |etag: u64| ETag(format!("\"{etag}\""));
        let object = |bytes: &Bytes, appends| Object {
            bytes: BytesMut::from(bytes.as_ref()),
            etag,
            appends,
        };
        match &request.action {
            Action::Create(_) | Action::PutIfAbsent(_) if store.objects.contains_key(name) => {
                Err(Outcome::Precondition)
            }
            Action::Create(bytes) => {
                // An empty one has taken no append yet.
                let appends = u64::from(!bytes.is_empty());
                store
                    .objects
                    .insert(name.clone(), object(bytes, Some(appends)));
                Ok(Response::Done)
            }
            Action::PutIfAbsent(bytes) => {
                store.objects.insert(name.clone(), object(bytes, None));
                Ok(Response::State(tag(etag)))
            }
            Action::Put(bytes) => {
                store.objects.insert(name.clone(), object(bytes, None));
                Ok(Response::Done)
            }
            Action::Append(offset, bytes) => {
                let limits = self.options.appends.ok_or(Outcome::Refused)?;
                let object = store.objects.get_mut(name).ok_or(Outcome::Absent)?;
                let len = object.bytes.len() as u64;
                if *offset != len {
                    return Err(Outcome::WrongOffset);
                }
                let appends = object.appends.as_mut().ok_or(Outcome::Refused)?;
                let end = len + bytes.len() as u64;
                if *appends >= limits.appends_max || end > limits.object_bytes_max {
                    return Err(Outcome::Full);
                }
                *appends += 1;
                object.bytes.extend_from_slice(bytes);
                object.etag = etag;
                Ok(Response::Done)
            }
            Action::Replace(expected, bytes) => match store.objects.get_mut(name) {
                None => Err(Outcome::Absent),
                Some(there) if tag(there.etag) != *expected => Err(Outcome::Precondition),
                Some(there) => {
                    *there = object(bytes, None);
                    Ok(Response::State(tag(etag)))
                }
            },
            Action::Get => {
                let there = store.objects.get(name).ok_or(Outcome::Absent)?;
                let bytes = Bytes::copy_from_slice(&there.bytes);
                Ok(Response::Whole(bytes, tag(there.etag)))
            }
            Action::GetRange(offset, len) => {
                let there = store.objects.get(name).ok_or(Outcome::Absent)?;
                let start = usize::try_from(*offset).unwrap_or(usize::MAX);
                let rest = there.bytes.get(start..).unwrap_or(&[]);
                let len = usize::try_from(*len).unwrap_or(usize::MAX).min(rest.len());
                Ok(Response::Part(Bytes::copy_from_slice(&rest[..len])))
            }
            Action::Stat => Ok(Response::Stat(store.objects.get(name).map(|there| Stat {
                len: there.bytes.len() as u64,
                etag: Some(tag(there.etag)),
            }))),
            Action::List => {
                let objects = store.objects.range(name.clone()..);
                let entries = objects
                    .take_while(|(other, _)| other.starts_with(name.as_str()))
                    .map(|(name, object)| ListEntry {
                        name: name.clone(),
                        len: object.bytes.len() as u64,
                    });
                Ok(Response::List(entries.collect()))
            }
            Action::Delete => {
                store.objects.remove(name);
                Ok(Response::Done)
            }
        }
    }
}

impl Bucket for MemoryBucket {
    fn describe(&self) -> String {
        "a bucket in memory".to_owned()
    }

    fn provider(&self) -> &str {
        "memory"
    }

    fn appends(&self) -> Option<AppendLimits> {
        self.shared.options.appends
    }

    fn usage(&self) -> Usage {
        *self.usage.lock()
    }

    fn create<'a>(&'a self, name: &'a str, first: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            if self.shared.options.creates_in_two_steps {
                self.ask(name, Action::Create(Bytes::new())).await?;
                self.ask(name, Action::Append(0, first)).await?;
            } else {
                self.ask(name, Action::Create(first)).await?;
            }
            Ok(())
        })
    }

    fn append<'a>(&'a self, name: &'a str, offset: u64, bytes: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            self.ask(name, Action::Append(offset, bytes)).await?;
            Ok(())
        })
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        Box::pin(async move {
            match self.ask(name, Action::PutIfAbsent(bytes)).await? {
                Response::State(etag) => Ok(Some(etag)),
                _ => Ok(None),
            }
        })
    }

    fn replace<'a>(
        &'a self,
        name: &'a str,
        expected: &'a ETag,
        bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>> {
        Box::pin(async move {
            match self
                .ask(name, Action::Replace(expected.clone(), bytes))
                .await?
            {
                Response::State(etag) => Ok(Some(etag)),
                _ => Ok(None),
            }
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            self.ask(name, Action::Put(bytes)).await?;
            Ok(())
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)> {
        Box::pin(async move {
            match self.ask(name, Action::Get).await? {
                Response::Whole(bytes, etag) => Ok((bytes, Some(etag))),
                _ => Ok((Bytes::new(), None)),
            }
        })
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        Box::pin(async move {
            match self.ask(name, Action::GetRange(offset, len)).await? {
                Response::Part(bytes) => Ok(bytes),
                _ => Ok(Bytes::new()),
            }
        })
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        Box::pin(async move {
            match self.ask(name, Action::Stat).await? {
                Response::Stat(stat) => Ok(stat),
                _ => Ok(None),
            }
        })
    }

    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        Box::pin(async move {
            match self.ask(directory, Action::List).await? {
                Response::List(entries) => Ok(entries),
                _ => Ok(Vec::new()),
            }
        })
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            self.ask(name, Action::Delete).await?;
            Ok(())
        })
    }
}
