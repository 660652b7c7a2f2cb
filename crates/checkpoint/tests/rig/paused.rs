//! A home at which one server stands still, or falls silent, at some request, while others go on at the same one.

use logstead_home::{HomeError, LogHome, ObjectId, ObjectInfo, Tag};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// See the module's documentation.
pub(crate) struct Paused {
    inner: Arc<dyn LogHome>,
    requests: AtomicU64,
    /// At this request.
    at: u64,
    /// What happens then, before the request is made; without, no request from there on is answered.
    meanwhile: Mutex<Option<Meanwhile>>,
    is_dead: bool,
}

impl Paused {
    pub(crate) fn at(inner: &Arc<dyn LogHome>, at: u64, meanwhile: Meanwhile) -> Arc<Paused> {
        Paused::new(inner, at, Some(meanwhile))
    }

    pub(crate) fn dead_after(inner: &Arc<dyn LogHome>, requests: u64) -> Arc<Paused> {
        Paused::new(inner, requests, None)
    }

    fn new(inner: &Arc<dyn LogHome>, at: u64, meanwhile: Option<Meanwhile>) -> Arc<Paused> {
        Arc::new(Paused {
            inner: Arc::clone(inner),
            requests: AtomicU64::new(0),
            at,
            is_dead: meanwhile.is_none(),
            meanwhile: Mutex::new(meanwhile),
        })
    }

    /// How many there were.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    fn request(&self) -> Result<&dyn LogHome, HomeError> {
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
        Ok(&*self.inner)
    }
}

impl LogHome for Paused {
    logstead_home::lanes_through!(inner);
    logstead_home::appends_through!(inner);
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.request()?.get(name)
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?.put_if_absent(name, bytes)
    }
    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?.compare_and_swap(name, expected, bytes)
    }
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.request()?.put_object(id, bytes)
    }
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.request()?.read_object(id, offset, into)
    }
    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.request()?.objects()
    }
    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.request()?.remove_object(id)
    }
}
