//! Scrub: a node reads all objects that it has, again and again, and gives up what its disk has damaged.
//!
//! What is damaged is set aside, and the connections to its volume are cut. The volume's server sees a member that was
//! away, and brings it back as any other: it is copied what it lacks from the nodes that have it (crate `home`,
//! `replicated::catch_up`). A server that starts copies what a member lacks, too. So nothing is told to anybody, and no
//! way of repair is the scrub's own.
//!
//! Invariants:
//! - What is set aside is kept, and at most [`ASIDE_MAX`] objects of a volume are: with more of them the disk or the
//!   judge is not to be trusted, and all stays where it is until somebody has looked.
//! - It reads no faster than [`BYTES_PER_SECOND`], so requests do not notice it.
//!
//! Does not: look at the log. That is short, and compared byte by byte where a member comes back.

use crate::context::NodeContext;
use logstead_home::{HomeError, LocalVolume, ObjectInfo};
use std::time::Duration;
use tracing::{error, info, warn};

/// Objects of a volume that are set aside, at most.
pub(crate) const ASIDE_MAX: usize = 16;
/// How fast it reads.
const BYTES_PER_SECOND: u64 = 32 << 20;
/// After a start it begins at the latest then: a node that is started often is read, too.
const FIRST_MAX: Duration = Duration::from_secs(600);

/// How a node looks after its disk.
#[derive(Clone, Copy)]
pub struct ScrubOptions {
    /// Between the end of one reading of everything and the next; `None`: never.
    pub interval: Option<Duration>,
    /// What is wrong with an object's bytes, if anything is.
    pub damage: fn(&[u8]) -> Option<String>,
}

/// Reads everything again and again until the node stops.
pub(crate) fn run(context: &NodeContext, options: ScrubOptions) {
    let Some(interval) = options.interval else {
        return;
    };
    let mut pause = interval.min(FIRST_MAX);
    while context.sleep(pause) {
        pause = interval;
        let volumes = match context.volumes().names() {
            Ok(names) => names,
            Err(error) => {
                warn!("scrub: {error}");
                continue;
            }
        };
        for name in volumes {
            // Its connections are cut once, whatever is found.
            match scrub(context, options, &name) {
                Ok(0) => {}
                Ok(_) => context.cut_volume(&name),
                Err(error) => warn!("scrub: volume {name}: {error}"),
            }
        }
    }
}

/// Reads the objects of a volume. Back comes how many were set aside.
fn scrub(context: &NodeContext, options: ScrubOptions, name: &str) -> Result<usize, HomeError> {
    let volume = context.volumes().volume(name, false)?;
    let (mut aside, mut bytes) = (0, 0);
    let objects = volume.list_objects()?;
    for object in &objects {
        let pause = Duration::from_secs_f64(object.size_bytes as f64 / BYTES_PER_SECOND as f64);
        if !context.sleep(pause) {
            return Ok(aside);
        }
        bytes += object.size_bytes;
        aside += usize::from(give_up_damaged(&volume, options, name, object)?);
    }
    info!(
        "scrub: {} objects of volume {name} read ({bytes} bytes), {aside} of them damaged",
        objects.len()
    );
    Ok(aside)
}

/// Sets an object aside if it is damaged.
fn give_up_damaged(
    volume: &LocalVolume,
    options: ScrubOptions,
    name: &str,
    object: &ObjectInfo,
) -> Result<bool, HomeError> {
    let id = object.id;
    let damage = match volume.read_object_from_disk(id) {
        Ok(bytes) => (options.damage)(&bytes),
        // It has been removed meanwhile.
        Err(HomeError::Missing(_)) => None,
        Err(error) => Some(error.to_string()),
    };
    let Some(damage) = damage else {
        return Ok(false);
    };
    match volume.set_object_aside(id, ASIDE_MAX) {
        Ok(true) => {
            error!("scrub: object {id} of volume {name} is damaged ({damage}) and set aside");
            Ok(true)
        }
        Ok(false) => {
            error!(
                "scrub: object {id} of volume {name} is damaged ({damage}); {ASIDE_MAX} are set aside already: look at the disk, and remove the files *.damaged"
            );
            Ok(false)
        }
        // It has been removed meanwhile.
        Err(_) if !volume.list_objects()?.contains(object) => Ok(false),
        Err(error) => Err(error),
    }
}
