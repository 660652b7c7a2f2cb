//! What work in the background, wired elsewhere, is given of a node: its volumes, and a place to say how it goes.
//!
//! Invariant: it does not keep the node from stopping. It holds nothing of it but while it sleeps or asks something.

use crate::context::NodeContext;
use crate::note::VolumeNote;
use logstead_home::{HomeError, LocalVolume};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// See the module's documentation.
#[derive(Clone)]
pub struct NodeBackground(Weak<NodeContext>);

fn stopped() -> HomeError {
    HomeError::io(
        "ask this node",
        std::io::ErrorKind::ConnectionAborted.into(),
    )
}

impl NodeBackground {
    pub(crate) fn of(context: &Arc<NodeContext>) -> NodeBackground {
        NodeBackground(Arc::downgrade(context))
    }

    fn context(&self) -> Result<Arc<NodeContext>, HomeError> {
        let context = self.0.upgrade().filter(|context| !context.is_stopping());
        context.ok_or_else(stopped)
    }

    /// The names of all volumes that the node has a part of. Notes of others are forgotten.
    pub fn volumes(&self) -> Result<Vec<String>, HomeError> {
        let context = self.context()?;
        let names = context.volumes().names()?;
        context.keep_notes(&names);
        Ok(names)
    }

    /// The node's part of a volume. Whoever keeps it keeps the node's directory.
    pub fn volume(&self, name: &str) -> Result<Weak<LocalVolume>, HomeError> {
        Ok(Arc::downgrade(
            &self.context()?.volumes().volume(name, false)?,
        ))
    }

    /// A named value of the node's part of a volume.
    pub fn named(&self, volume: &str, name: &str) -> Result<Option<Vec<u8>>, HomeError> {
        let volume = self.context()?.volumes().volume(volume, false)?;
        Ok(volume.get(name)?.map(|(bytes, _)| bytes))
    }

    /// What is told of a volume from now on.
    pub fn note(&self, volume: &str, note: VolumeNote) {
        if let Ok(context) = self.context() {
            context.set_note(volume, note);
        }
    }

    /// Waits so long. False: the node stops.
    pub fn sleep(&self, time: Duration) -> bool {
        self.context().is_ok_and(|context| context.sleep(time))
    }
}
