//! A home at which one server stands still, or falls silent, at some request, while others go on at the same one.

use logstead_home::{
    HomeError, ImmutableObjects, LogHome, NamedValues, ObjectCopies, ObjectId, ObjectInfo,
    ObjectReader, Tag,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Meanwhile = Box<dyn FnOnce() + Send>;

/// See the module's documentation.
pub(crate) struct Paused {
    inner: LogHome,
    requests: AtomicU64,
    /// At this request.
    at: u64,
    /// What happens then, before the request is made; without, no request from there on is answered.
    meanwhile: Mutex<Option<Meanwhile>>,
    is_dead: bool,
}

impl Paused {
    pub(crate) fn at(inner: &LogHome, at: u64, meanwhile: Meanwhile) -> Arc<Paused> {
        Paused::new(inner, at, Some(meanwhile))
    }

    pub(crate) fn dead_after(inner: &LogHome, requests: u64) -> Arc<Paused> {
        Paused::new(inner, requests, None)
    }

    fn new(inner: &LogHome, at: u64, meanwhile: Option<Meanwhile>) -> Arc<Paused> {
        Arc::new(Paused {
            inner: inner.clone(),
            requests: AtomicU64::new(0),
            at,
            is_dead: meanwhile.is_none(),
            meanwhile: Mutex::new(meanwhile),
        })
    }

    /// The home whose requests for named values and objects these are.
    pub(crate) fn home(self: &Arc<Self>) -> LogHome {
        LogHome {
            names: Arc::clone(self) as _,
            objects: Arc::clone(self) as _,
            ..self.inner.clone()
        }
    }

    /// How many there were.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    fn request(&self) -> Result<&LogHome, HomeError> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.is_dead && number >= self.at {
            let why = std::io::Error::other("no answer");
            return Err(HomeError::io("a request", why));
        }
        if number == self.at
            && let Some(meanwhile) = self.meanwhile.lock().take()
        {
            meanwhile();
        }
        Ok(&self.inner)
    }
}

impl NamedValues for Paused {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.request()?.names.get(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?.names.put_if_absent(name, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?
            .names
            .compare_and_swap(name, expected, bytes)
    }

    fn limit_name_requests(&self, first: Duration) {
        self.inner.names.limit_name_requests(first);
    }
}

impl ObjectReader for Paused {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.request()?.objects.read_object(id, offset, into)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        self.inner.objects.object_copies()
    }
}

impl ImmutableObjects for Paused {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.request()?.objects.put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.request()?.objects.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.request()?.objects.remove_object(id)
    }
}
