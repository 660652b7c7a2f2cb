//! Scrub: a node reads all objects of its volumes again and again, and tells what its disk has damaged.
//!
//! It changes nothing: a node that gave up an object by itself would still count as one that has everything, and what
//! it does not list others are taken to have for nothing. Its log and `fleet status` tell of damage, and `fleet repair`
//! has the node compared with the others (crate `home`, `replicated::catch_up`): that marks it as incomplete first.
//!
//! Invariant: it reads no faster than [`BYTES_PER_SECOND`], and only volumes that somebody has opened.
//!
//! Does not: look at the log. That is short, and compared byte by byte where a member comes back.

use crate::context::NodeContext;
use logstead_home::{DamageCheck, HomeError, LocalVolume, OBJECT_BYTES_MAX, ObjectInfo};
use std::time::Duration;
use tracing::{error, info, warn};

/// How fast it reads.
const BYTES_PER_SECOND: u64 = 32 << 20;
/// After a start it begins at the latest then: a node that is started often is read, too.
const FIRST_MAX: Duration = Duration::from_secs(600);
/// Of so many of a volume the log tells one by one.
const TOLD_MAX: usize = 16;

/// How a node looks after its disk.
#[derive(Clone, Copy)]
pub struct ScrubOptions {
    /// Between the end of one reading of everything and the next; `None`: never.
    pub interval: Option<Duration>,
    /// What is wrong with an object's bytes, if anything is.
    pub damage: DamageCheck,
}

/// Reads everything again and again until the node stops.
pub(crate) fn run(context: &NodeContext, options: ScrubOptions) {
    let Some(interval) = options.interval else {
        return;
    };
    // Nodes that were started together shall not read at the same time.
    let part = context.env().random.u64() as u8;
    let mut pause = interval.min(FIRST_MAX) / 2;
    pause += pause * u32::from(part) / 256;
    while context.sleep(pause) {
        pause = interval;
        for name in context.volumes().open_names() {
            if context.is_stopping() {
                return;
            }
            if let Err(error) = scrub(context, options, &name) {
                warn!("scrub: volume {name}: {error}");
            }
        }
    }
}

/// Reads the objects of a volume.
fn scrub(context: &NodeContext, options: ScrubOptions, name: &str) -> Result<(), HomeError> {
    let volume = context.volumes().volume(name, false)?;
    let (mut damaged, mut bytes) = (0, 0);
    let objects = volume.list_objects()?;
    for object in &objects {
        let size_bytes = object.size_bytes.min(OBJECT_BYTES_MAX as u64);
        if !context.sleep(Duration::from_secs_f64(
            size_bytes as f64 / BYTES_PER_SECOND as f64,
        )) {
            return Ok(());
        }
        bytes += size_bytes;
        let Some(what) = damage_of(&volume, options, object) else {
            context.note_damage(name, |damage| damage.forget(object.id));
            continue;
        };
        damaged += 1;
        let is_new = context.note_damage(name, |damage| damage.note(object.id));
        if is_new && damaged <= TOLD_MAX {
            error!(
                "scrub: object {} of volume {name} is damaged: {what}",
                object.id
            );
        }
        // Who has removed it meanwhile may have done so before it was noted.
        let there = volume.read_object(object.id, 0, &mut [0]);
        if matches!(there, Err(HomeError::Missing(_))) {
            context.note_damage(name, |damage| damage.forget(object.id));
        }
    }
    info!(
        "scrub: {} objects of volume {name} read ({bytes} bytes), {damaged} of them damaged",
        objects.len()
    );
    Ok(())
}

/// What is wrong with an object, when it is looked at twice.
fn damage_of(volume: &LocalVolume, options: ScrubOptions, object: &ObjectInfo) -> Option<String> {
    let look = || match volume.read_object_from_disk(object.id) {
        Ok(bytes) if bytes.len() as u64 != object.size_bytes => None,
        Ok(bytes) => (options.damage)(&bytes),
        // It has been removed meanwhile.
        Err(HomeError::Missing(_)) => None,
        Err(error) => Some(error.to_string()),
    };
    look().and_then(|_| look())
}
