//! Restore points: made and dropped by hand, and listed.
//!
//! One is made in the turn of checkpoints: no other is published, and nothing is removed, between the checkpoint and
//! its pin. A server that was overtaken meanwhile finds out when it reads the manifest again.
//!
//! A point is one moment, whoever reads it beside this server (a branch, `restore --point`, AS OF): it is a
//! checkpoint's record, which holds what is below its CSN and nothing else, and was published when the horizon had
//! reached that. No reader of a point reads the log.
//!
//! What its caller knows is there: every transaction that was acknowledged before the call.

use crate::page_store::checkpoints::RestorePoint;
use logstead_checkpoint::{
    PIN_NAME_BYTES_MAX, Pin, PinKind, Pins, PinsError, RecoveryTarget, pin_point,
};
use logstead_wal::inspect::manifest_of;
use logstead_wal::recovery::RecoveryError;

use crate::engine::Engine;
use crate::page_store::{CheckpointError, CheckpointReport};

/// Why a restore point was not made or dropped, or cannot be listed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RestorePointError {
    /// There is one already.
    #[error("restore point \"{0}\" already exists")]
    Exists(String),
    /// There is none.
    #[error("restore point \"{0}\" does not exist")]
    Missing(String),
    /// It cannot be one's name.
    #[error("a restore point's name has 1 to {PIN_NAME_BYTES_MAX} bytes")]
    Name,
    /// The checkpoint failed, or what the home says of checkpoints cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl From<PinsError> for RestorePointError {
    fn from(error: PinsError) -> RestorePointError {
        logstead_checkpoint::CheckpointError::from(error).into()
    }
}

impl From<logstead_checkpoint::CheckpointError> for RestorePointError {
    fn from(error: logstead_checkpoint::CheckpointError) -> RestorePointError {
        RestorePointError::Checkpoint(error.into())
    }
}

impl Engine {
    fn manifest(&self) -> Result<logstead_wal::manifest::Manifest, RestorePointError> {
        let pages =
            |error| RestorePointError::from(logstead_checkpoint::CheckpointError::Home(error));
        manifest_of(self.home()).map_err(|error| match error {
            RecoveryError::Home(error) => pages(error),
            error => pages(logstead_home::HomeError::io(
                "reading the manifest",
                std::io::Error::other(error.to_string()),
            )),
        })
    }

    /// Takes a checkpoint and keeps it under a name, until [`Engine::drop_restore_point`]. Blocks like
    /// [`Engine::checkpoint`].
    pub fn create_restore_point(&self, name: &str) -> Result<(), RestorePointError> {
        loop {
            let created = self.create_restore_point_once(name);
            // Begun anew once the instance is restarted for which its checkpoint was given up.
            match created {
                Err(RestorePointError::Checkpoint(CheckpointError::Interrupted)) => {}
                created => return created,
            }
        }
    }

    fn create_restore_point_once(&self, name: &str) -> Result<(), RestorePointError> {
        if name.is_empty() || name.len() > PIN_NAME_BYTES_MAX {
            return Err(RestorePointError::Name);
        }
        let checkpoints = &self.inner().checkpoints;
        let _turn = checkpoints.turn();
        let home = self.home();
        let (pins, _) = Pins::read(home.names.as_ref())?;
        if pins.point(name).is_some() {
            return Err(RestorePointError::Exists(name.to_owned()));
        }
        // Before the checkpoint that is to be pinned, so that its record knows of pins.
        if let Some(base) = &mut *checkpoints.base.lock() {
            base.begin_pins()?;
        }
        let taken = self.take_checkpoint(|_| {});
        if !matches!(taken, Err(CheckpointError::Interrupted)) {
            checkpoints.stats.lock().note(&taken);
        }
        taken?;
        let pin = |pins: &Pins, record| match pins.point(name) {
            Some(_) => Err(RestorePointError::Exists(name.to_owned())),
            None => Ok(Pin {
                kind: PinKind::Point,
                name: name.to_owned(),
                record,
            }),
        };
        pin_point(home, &RecoveryTarget::Newest, pin, || self.manifest())?;
        if let Some(base) = &mut *checkpoints.base.lock() {
            base.reload_pins()?;
            checkpoints.note_points(base);
        }
        Ok(())
    }

    /// Lets go of a restore point that was made by hand. What only it needed is removed, now or after the next
    /// checkpoint.
    pub fn drop_restore_point(&self, name: &str) -> Result<(), RestorePointError> {
        let checkpoints = &self.inner().checkpoints;
        let _turn = checkpoints.turn();
        Pins::change(self.home().names.as_ref(), |pins| {
            match pins.remove_point(name) {
                true => Ok(()),
                false => Err(RestorePointError::Missing(name.to_owned())),
            }
        })?;
        // A checkpoint that is taken step by step collects when it is through.
        if let Some(base) = &mut *checkpoints.base.lock() {
            base.reload_pins()?;
            let now = self.inner().env.clock.monotonic();
            base.collect(now, &mut CheckpointReport::default());
            checkpoints.note_points(base);
        }
        Ok(())
    }

    /// Everything that can be gone back to, by CSN: restore points made by hand or kept by time, and the newest
    /// checkpoint. Asks nobody: what others pin shows after the next checkpoint.
    pub fn restore_points(&self) -> Vec<RestorePoint> {
        self.inner().checkpoints.points.lock().0.clone()
    }
}
