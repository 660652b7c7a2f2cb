//! What a start does with the groups: it takes them when it has the lease, and divides its epoch among them before its
//! mark. Why that is right: [`groups`](super).

use super::ownership::Ownership;
use super::{Group, GroupedHome, Groups, decoded, must_be_listed, watch_registers};
use crate::placement::{Placement, RECORD};
use crate::replicated::OWNERSHIP;
use crate::{Copies, HomeError, NamedValues};
use logstead_types::Epoch;
use std::sync::Arc;

/// Attempts to write a term while others write theirs. Each that fails, somebody else has written one.
const ATTEMPTS_MAX: usize = 64;

fn taken_over() -> HomeError {
    HomeError::Fenced("the volume's groups".to_owned())
}

impl GroupedHome {
    /// Who has the lease takes all groups, once: draws a term, goes by the record of that moment, and writes the term
    /// into every other group. Nothing is fenced or read there before.
    pub(super) fn take(&self) -> Result<(), HomeError> {
        let mut taken = self.taken.lock();
        if *taken {
            return Ok(());
        }
        let first = self.first();
        let drawn = |present: Option<&[u8]>| {
            let mut placement = match present {
                Some(record) => decoded(record)?,
                None => Placement::undivided(first.home.number()),
            };
            placement.term = placement.term.checked_add(1).ok_or_else(taken_over)?;
            Ok(Some(placement.encode()))
        };
        let record = first.home.edit_named(RECORD, true, &drawn)?;
        let record = record.ok_or_else(|| HomeError::Missing("the record of groups".to_owned()))?;
        let placement = decoded(&record)?;
        self.follow(&placement)?;
        first.named(first.home.must_be_as_opened())?;
        let groups = self.groups();
        for group in &groups.open[1..] {
            group.named(take_group(group, &groups, placement.term))?;
        }
        *taken = true;
        Ok(())
    }

    /// All copies of all groups are complete. `epoch` had begun when this start took over: the one after it is divided.
    pub(super) fn settle(&self, epoch: Epoch) -> Result<(), HomeError> {
        self.take()?;
        let groups = self.groups();
        for group in &groups.open {
            group.named(group.home.copies_completed(epoch))?;
        }
        let next = epoch.get().checked_add(1).map(Epoch);
        self.divide(next.ok_or(HomeError::Unsupported("further epochs"))?)?;
        if let Some(env) = groups.first().home.env_of_threads()
            && !std::mem::replace(&mut *self.watches.lock(), true)
        {
            watch_registers(&self.groups, env)?;
        }
        Ok(())
    }

    /// An epoch that has not begun, and those that follow it, are divided among the groups that are wanted and open; if
    /// nobody has taken the lease since.
    pub(super) fn divide(&self, next: Epoch) -> Result<(), HomeError> {
        let groups = self.groups();
        let divided = |present: Option<&[u8]>| {
            let mut placement = decoded(present.unwrap_or_default())?;
            for group in &groups.open[1..] {
                if let Some(listed) = placement.groups.get(&group.number) {
                    must_be_listed(group, listed)?;
                }
            }
            let wanted = placement.wanted.iter().copied();
            let wanted: Vec<u32> = wanted
                .filter(|group| groups.group(*group).is_ok())
                .collect();
            placement.begin(next, &wanted);
            for group in &groups.open[1..] {
                placement.replace_nodes(group.number, group.home.member_urls());
            }
            Ok(Some(placement.encode()))
        };
        let record = groups.first().home.edit_named(RECORD, true, &divided)?;
        let placement = decoded(&record.unwrap_or_default())?;
        let among = placement.groups_of(next);
        tracing::info!(
            "log: the volume is divided among groups {}",
            among
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        );
        let open = groups.open.clone();
        *self.groups.write() = Arc::new(Groups { placement, open });
        Ok(())
    }
}

/// Writes a term into a group's register, in the place where a log by itself has its lease: from then on who had an
/// earlier one changes nothing there. Then its members are read.
pub(super) fn take_group(group: &Group, groups: &Groups, term: u64) -> Result<(), HomeError> {
    let first = groups.first();
    let ours = Ownership {
        group: group.number,
        volume: first.home.number(),
        term,
        nodes: first.home.member_urls(),
    };
    for _ in 0..ATTEMPTS_MAX {
        let present = group.home.get(OWNERSHIP)?;
        let stored = match present {
            None => group.home.set_owner(None, &ours.encode()),
            Some((bytes, tag)) => {
                let there = Ownership::decode(&bytes);
                let is_it = |there: &Ownership| there.volume == ours.volume;
                let Some(there) = there.filter(is_it) else {
                    return Err(HomeError::Url {
                        url: group.home.member_urls().join(","),
                        what: format!("this is not group {} of the volume", group.number),
                    });
                };
                if there.term > term {
                    return Err(taken_over());
                }
                group.home.set_owner(Some(tag), &ours.encode())
            }
        };
        match stored {
            Ok(_) => return group.home.must_be_as_opened(),
            Err(HomeError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(taken_over())
}
