//! Reading a local home's objects and names without its lock, beside a server that may be at work there: for branches,
//! which live longer than any look, and must keep nobody from starting a server on their parent.
//!
//! Objects never change and names are replaced by renames, so what is read is whole. Not on a device, whose names
//! cannot be read while they change.

use super::paths::Paths;
use crate::{HomeError, ObjectCopies, ObjectId, ObjectReader, immutable};
use logstead_env::{Access, Env, File, FileKind, OpenMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Objects kept open.
const OPEN_MAX: usize = 64;

/// See the module's documentation.
pub struct LocalObjects {
    env: Env,
    paths: Paths,
    open: Mutex<BTreeMap<ObjectId, Arc<dyn File>>>,
}

impl LocalObjects {
    /// Those of the home in `dir`.
    pub fn open(dir: impl Into<PathBuf>, env: &Env) -> Result<LocalObjects, HomeError> {
        let dir = dir.into();
        match env.files.kind(&dir) {
            Ok(Some(FileKind::Directory)) => Ok(LocalObjects {
                env: env.clone(),
                paths: Paths::new(dir),
                open: Mutex::default(),
            }),
            Ok(Some(_)) => Err(HomeError::Unsupported("branches on a device")),
            _ => Err(HomeError::Missing(format!(
                "a Logstead log in {}",
                dir.display()
            ))),
        }
    }

    fn file(&self, id: ObjectId) -> Result<Arc<dyn File>, HomeError> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&id) {
            return Ok(Arc::clone(file));
        }
        let path = self.paths.object(id);
        let mode = OpenMode::buffered(Access::Read);
        let file: Arc<dyn File> = match self.env.files.open(&path, mode) {
            Ok(file) => Arc::from(file),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(immutable::missing(id));
            }
            Err(error) => return Err(HomeError::io(format!("open {}", path.display()), error)),
        };
        if open.len() >= OPEN_MAX {
            open.pop_first();
        }
        open.insert(id, Arc::clone(&file));
        Ok(file)
    }
}

impl ObjectReader for LocalObjects {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        if offset > crate::OBJECT_BYTES_MAX as u64 {
            return Ok(0);
        }
        let read = self.file(id)?.read_full_at(offset, into);
        read.map_err(|error| HomeError::io(format!("read object {id}"), error))
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}
