//! What members say of damage on their disks: they are compared with the others then, as if somebody had asked for it
//! ([`membership_change`](super::membership_change)).
//!
//! Invariant: a member is compared once for what it says, however that ends. It says something else when it finds more.
//!
//! Does not: find damage (a storage node's scrub does), or judge what is right (`catch_up::copying`).

use super::membership_change::with_repair;
use super::{Inner, Standing};
use crate::DAMAGED_OBJECTS;
use logstead_env::Instant;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// What has been heard of damage.
#[derive(Default)]
pub(super) struct ReportedDamage(Mutex<HeardDamage>);

#[derive(Default)]
struct HeardDamage {
    next_look: Option<Instant>,
    /// By a member's URL, what it said when it was asked to be compared last.
    heard: BTreeMap<String, String>,
}

impl Inner {
    /// Asks members whether their disks have damaged something, and has those compared that say so. Back comes after
    /// which time it is looked again.
    pub(super) fn look_for_damage(&self) -> Option<Duration> {
        // Homes whose list is as it was given are compared by nobody; without threads somebody else says what is due.
        if self.open_member.is_none() || !self.options.threads {
            return None;
        }
        let now = self.env.clock.monotonic();
        {
            let mut damage = self.damage.0.lock();
            let due = *damage.next_look.get_or_insert(now + LOOK_INTERVAL);
            if now < due {
                return Some(due.since(now));
            }
            damage.next_look = Some(now + LOOK_INTERVAL);
        }
        for child in 0..self.children.len() {
            if self.children[child].standing() != Standing::Up {
                continue;
            }
            let Ok(report) = self.ask_bulk(child, 0, |home| Ok(home.status.report())) else {
                continue;
            };
            let mut report = report.into_iter();
            let told = report.find_map(|(name, value)| (name == DAMAGED_OBJECTS).then_some(value));
            let id = self.membership.lock().id(child);
            if let (Some(told), Some(url)) = (told, self.recorded_url(Some(id))) {
                self.hear_of_damage(url, told);
            }
        }
        Some(LOOK_INTERVAL)
    }

    fn hear_of_damage(&self, url: String, told: String) {
        if self.damage.0.lock().heard.get(&url) == Some(&told) {
            return;
        }
        tracing::warn!("log: {url} has damaged objects, {told}: it is compared with the others");
        match self.edit_members(&|present| Ok(with_repair(present, &url))) {
            Ok(_) => drop(self.damage.0.lock().heard.insert(url, told)),
            Err(error) => tracing::warn!("log: the list of the log's homes: {error}"),
        }
    }
}
