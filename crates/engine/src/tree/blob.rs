//! Entries too long for a page, kept outside of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory::{Memory, footprint};

/// What a tree's blobs take, and whose memory they and its pages are.
pub(super) struct Usage {
    blob_bytes: AtomicUsize,
    memory: &'static Memory,
}

impl Usage {
    pub(super) fn new(memory: &'static Memory) -> Arc<Usage> {
        Arc::new(Usage {
            blob_bytes: AtomicUsize::new(0),
            memory,
        })
    }

    pub(super) fn memory(&self) -> &'static Memory {
        self.memory
    }

    pub(super) fn blob_bytes(&self) -> usize {
        self.blob_bytes.load(Ordering::Relaxed)
    }
}

/// A long entry. It never changes; pages share it.
pub(super) struct Blob {
    bytes: Box<[u8]>,
    usage: Arc<Usage>,
}

impl Blob {
    pub(super) fn new(bytes: &[u8], usage: &Arc<Usage>) -> Arc<Blob> {
        let blob = Blob {
            bytes: bytes.into(),
            usage: usage.clone(),
        };
        usage
            .blob_bytes
            .fetch_add(blob.memory_bytes(), Ordering::Relaxed);
        usage.memory.add(blob.memory_bytes() as i64);
        Arc::new(blob)
    }

    fn memory_bytes(&self) -> usize {
        /// The counts of an `Arc`.
        const COUNTS: usize = 16;
        footprint(self.bytes.len()) + footprint(size_of::<Blob>() + COUNTS)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        self.usage
            .blob_bytes
            .fetch_sub(self.memory_bytes(), Ordering::Relaxed);
        self.usage.memory.add(-(self.memory_bytes() as i64));
    }
}

/// A page's blobs by number. Replaced as a whole, so that readers always find one state of it.
#[derive(Clone, Default)]
pub(super) struct Blobs(Vec<Option<Arc<Blob>>>);

impl Blobs {
    pub(super) fn get(&self, number: usize) -> Option<&Arc<Blob>> {
        self.0.get(number)?.as_ref()
    }

    /// Adds a blob and gives its number.
    pub(super) fn add(&mut self, blob: Arc<Blob>) -> u16 {
        let number = match self.0.iter().position(Option::is_none) {
            Some(free) => {
                self.0[free] = Some(blob);
                free
            }
            None => {
                self.0.push(Some(blob));
                self.0.len() - 1
            }
        };
        // A page has fewer slots than this.
        number as u16
    }

    pub(super) fn remove(&mut self, number: usize) {
        if let Some(blob) = self.0.get_mut(number) {
            *blob = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Which they are, and what each takes.
    #[cfg(test)]
    pub(super) fn each(&self) -> impl Iterator<Item = (*const Blob, usize)> {
        let blobs = self.0.iter().flatten();
        blobs.map(|blob| (Arc::as_ptr(blob), blob.memory_bytes()))
    }

    /// What they take, as if nobody else had them.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0
            .iter()
            .flatten()
            .map(|blob| blob.memory_bytes())
            .sum()
    }
}
