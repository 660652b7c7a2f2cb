//! Which groups a volume is to have: written down beside a running server, and made so by the next start.

use super::ownership::Ownership;
use super::{decoded, must_be_first};
use crate::placement::{ListedGroup, Placement, RECORD};
use crate::replicated::OWNERSHIP;
use crate::{HomeError, NamedValues, ReplicatedHome};
use std::cell::Cell;

/// A group of a volume, as its record lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeGroup {
    /// Its number.
    pub number: u32,
    /// URLs of some of its members; none of group 0, which the volume's URL names.
    pub nodes: Vec<String>,
    /// Something may lie in it: some epoch was divided among it and others.
    pub in_force: bool,
    /// The epoch that begins next is to be divided among it and others.
    pub wanted: bool,
}

fn refused(home: &ReplicatedHome, what: &str) -> HomeError {
    HomeError::Url {
        url: home.member_urls().join(","),
        what: what.to_owned(),
    }
}

/// The groups of the volume that has this group 0.
///
/// # Errors
///
/// [`HomeError::Io`] if too few of its members answer, [`HomeError::Url`] if it is not group 0.
pub fn volume_groups(first: &ReplicatedHome) -> Result<Vec<VolumeGroup>, HomeError> {
    let names = first.all_names()?;
    must_be_first(names.get(OWNERSHIP).map(|(bytes, _)| bytes.as_slice()))?;
    let placement = match names.get(RECORD) {
        Some((record, _)) => decoded(record)?,
        None => Placement::undivided(first.number()),
    };
    let in_force = placement.in_force();
    let group = |(&number, listed): (&u32, &ListedGroup)| VolumeGroup {
        number,
        nodes: listed.nodes.clone(),
        in_force: in_force.contains(&number),
        wanted: placement.wanted.contains(&number),
    };
    Ok(placement.groups.iter().map(group).collect())
}

/// Adds a group to the volume that has this group 0, for the epochs to come: the next start uses it. It is one in which
/// nothing lies yet. May be repeated after an error.
///
/// # Errors
///
/// [`HomeError::Url`] if it is another log, or one of the volume's groups already; [`HomeError::Io`] if too few members
/// answer.
pub fn add_group(first: &ReplicatedHome, added: &ReplicatedHome) -> Result<u32, HomeError> {
    use crate::LaneAppends;
    let (volume, home) = (first.number(), added.number());
    if home == volume {
        return Err(refused(added, "these are nodes of the volume's group 0"));
    }
    let alignment = added.capabilities().block_alignment;
    if !first
        .capabilities()
        .block_alignment
        .is_multiple_of(alignment)
    {
        return Err(refused(
            added,
            "their alignment does not go with the others'",
        ));
    }
    let names = added.all_names()?;
    match names.get(OWNERSHIP) {
        None => {}
        Some((bytes, _)) => match Ownership::decode(bytes) {
            Some(there) if there.volume == volume => {}
            Some(_) => return Err(refused(added, "they are a group of another volume")),
            None => return Err(refused(added, "they hold a log of their own")),
        },
    }
    let nodes = added.member_urls();
    let number = Cell::new(0);
    let with_it = |present: Option<&[u8]>| {
        let mut placement = match present {
            Some(record) => decoded(record)?,
            None => Placement::undivided(volume),
        };
        let mut listed = placement.groups.iter();
        if let Some((group, _)) = listed.find(|(_, listed)| listed.home == home) {
            let what = format!("they are group {group} of the volume already");
            return Err(refused(added, &what));
        }
        let group = placement.add(home, nodes.clone());
        number.set(group.map_err(|why| refused(added, why))?);
        Ok(Some(placement.encode()))
    };
    // Before the record names it, so that nobody takes it for a log by itself; which number it gets is known then.
    if !names.contains_key(OWNERSHIP) {
        let mut expected = decoded_or_undivided(first)?;
        let group = expected.add(home, Vec::new());
        let ownership = Ownership {
            group: group.map_err(|why| refused(added, why))?,
            volume,
            term: 0,
            nodes: first.member_urls(),
        };
        added.put_if_absent(OWNERSHIP, &ownership.encode())?;
    }
    first.edit_named(RECORD, false, &with_it)?;
    Ok(number.get())
}

fn decoded_or_undivided(first: &ReplicatedHome) -> Result<Placement, HomeError> {
    match first.all_names()?.get(RECORD) {
        Some((record, _)) => decoded(record),
        None => Ok(Placement::undivided(first.number())),
    }
}

/// Takes back that a group is to be used, which no epoch was ever divided among.
///
/// # Errors
///
/// [`HomeError::Url`] if there is none, or if something may lie in it; [`HomeError::Io`] if too few members answer.
pub fn forget_group(first: &ReplicatedHome, group: u32) -> Result<(), HomeError> {
    let without = |present: Option<&[u8]>| {
        let mut placement = match present {
            Some(record) => decoded(record)?,
            None => Placement::undivided(first.number()),
        };
        placement.forget(group).map_err(|why| refused(first, why))?;
        Ok(Some(placement.encode()))
    };
    first.edit_named(RECORD, false, &without)?;
    Ok(())
}

/// Notes where else a group is to be looked for: before one of these nodes becomes a member, so that the next start
/// finds it when all members that were are gone.
///
/// # Errors
///
/// [`HomeError::Io`] if too few of the members of group 0 answer.
pub(crate) fn note_nodes(
    first: &ReplicatedHome,
    group: u32,
    nodes: &[String],
) -> Result<(), HomeError> {
    let with_them = |present: Option<&[u8]>| {
        let mut placement = decoded(present.unwrap_or_default())?;
        placement.note_nodes(group, nodes);
        Ok(Some(placement.encode()))
    };
    first.edit_named(RECORD, false, &with_them)?;
    Ok(())
}
