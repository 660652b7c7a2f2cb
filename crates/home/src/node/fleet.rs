//! The nodes of a volume as one home, and who they are to be: its groups, and the nodes of each.
//!
//! Which nodes a volume has, the register in them says. A change is written down there, and the server that has the
//! lease makes it so while it runs ([`ReplicatedHome::edit_members`]).

use super::address::{NODES_MAX, fleet_node, fleet_nodes, open_node};
use super::home::NodeHome;
use crate::replicated::repair_of;
use crate::{
    DamageCheck, GroupOpener, GroupedHome, HomeError, LogHome, MemberList, OpenPurpose, Opener,
    ReplicatedHome, ReplicatedOptions, Source, VolumeGroup, WriteConcern, add_group, forget_group,
    groups, volume_groups,
};
use logstead_env::Env;
use std::sync::Arc;

/// A group has at least so many nodes.
const NODES_MIN: usize = 2;

/// Opens the volume on a node, by its URL, to write or not.
pub(super) type NodeOpener = Arc<dyn Fn(&str, bool) -> Result<NodeHome, HomeError> + Send + Sync>;

/// With the secret of the process's environment.
fn of_environment(env: &Env) -> NodeOpener {
    let env = env.clone();
    Arc::new(move |url, write| open_node(url, &env, write))
}

/// The group of a fleet's volume that these nodes are of: a majority of its members makes an append durable (Aurora,
/// section 2.1). Which nodes these are, the register in them says.
fn open_nodes(
    fleet: &str,
    nodes: Vec<String>,
    open: &NodeOpener,
    env: &Env,
    purpose: OpenPurpose,
    damage: Option<DamageCheck>,
) -> Result<ReplicatedHome, HomeError> {
    let write = purpose != OpenPurpose::Reading;
    let (fleet, open) = (fleet.to_owned(), Arc::clone(open));
    let open_member = move |url: &str| -> Opener {
        let (url, open) = (fleet_node(&fleet, url), Arc::clone(&open));
        Arc::new(move || Ok(open(&url.clone()?, write)?.into()))
    };
    let seed = |url: String| Source {
        open: open_member(&url),
        url,
    };
    let seeds = nodes.into_iter().map(seed).collect();
    let options = ReplicatedOptions {
        ack: WriteConcern::Majority,
        purpose,
        damage,
        ..ReplicatedOptions::default()
    };
    ReplicatedHome::open_members(seeds, Arc::new(open_member), env, options)
}

/// Group 0 of a volume: the URL names some of its nodes, or, for a new volume, all.
fn open_first(
    url: &str,
    env: &Env,
    purpose: OpenPurpose,
    damage: Option<DamageCheck>,
) -> Result<ReplicatedHome, HomeError> {
    let open = of_environment(env);
    open_nodes(url, fleet_nodes(url)?, &open, env, purpose, damage)
}

/// What opens the other groups of a volume.
fn group_opener(fleet: &str, env: &Env, damage: Option<DamageCheck>) -> GroupOpener {
    group_opener_with(fleet, of_environment(env), env, damage)
}

fn group_opener_with(
    fleet: &str,
    open: NodeOpener,
    env: &Env,
    damage: Option<DamageCheck>,
) -> GroupOpener {
    let (fleet, env) = (fleet.to_owned(), env.clone());
    Arc::new(move |_, nodes, purpose| {
        let nodes = nodes.iter().map(|node| fleet_node(&fleet, node));
        let nodes: Vec<String> = nodes.collect::<Result<_, _>>()?;
        if purpose != OpenPurpose::Reading {
            // A group that is not there is not made by asking for it.
            drop(open_nodes(
                &fleet,
                nodes.clone(),
                &open,
                &env,
                OpenPurpose::Reading,
                None,
            )?);
        }
        open_nodes(&fleet, nodes, &open, &env, purpose, damage)
    })
}

/// The nodes of a fleet's volume as one home. A server of a volume with one group has that one, and nothing between;
/// who reads follows the volume when it gets a second.
pub(crate) fn open_fleet(
    url: &str,
    env: &Env,
    purpose: OpenPurpose,
    damage: Option<DamageCheck>,
) -> Result<LogHome, HomeError> {
    let first = open_first(url, env, purpose, damage)?;
    if purpose != OpenPurpose::Reading && !groups::has_several(&first)? {
        return Ok(first.into());
    }
    let opener = group_opener(url, env, damage);
    Ok(GroupedHome::open(first, purpose, opener)?.into())
}

/// The same, to be read by who has the secret, and who the members of group 0 are now.
pub(super) fn open_to_read(
    url: &str,
    env: &Env,
    open: NodeOpener,
) -> Result<(LogHome, MemberList), HomeError> {
    let purpose = OpenPurpose::Reading;
    let first = open_nodes(url, fleet_nodes(url)?, &open, env, purpose, None)?;
    let members = first.members()?;
    let opener = group_opener_with(url, open, env, None);
    Ok((GroupedHome::open(first, purpose, opener)?.into(), members))
}

/// Opens a fleet's volume beside its server, which has given numbers for objects that are to be stored there.
pub(crate) fn open_fleet_to_store_objects(url: &str, env: &Env) -> Result<LogHome, HomeError> {
    let open = of_environment(env);
    let open = move |url: &str, _| open(url, true);
    let (home, _members) = open_to_read(url, env, Arc::new(open))?;
    Ok(home)
}

/// A group of a fleet's volume.
#[derive(Debug)]
pub struct FleetGroup {
    /// As the volume's record lists it.
    pub listed: VolumeGroup,
    /// Its members, if it answers.
    pub members: Result<MemberList, HomeError>,
}

/// The groups of a fleet's volume and which nodes are the members of each, also beside a server.
///
/// # Errors
///
/// [`HomeError::Missing`] if there is no such volume, [`HomeError::Io`] if too few nodes of group 0 answer.
pub fn fleet_groups(url: &str, env: &Env) -> Result<Vec<FleetGroup>, HomeError> {
    let first = open_first(url, env, OpenPurpose::Reading, None)?;
    let open = group_opener(url, env, None);
    let group = |listed: VolumeGroup| {
        let members = match listed.number {
            0 => first.members(),
            number => {
                open(number, &listed.nodes, OpenPurpose::Reading).and_then(|group| group.members())
            }
        };
        FleetGroup { listed, members }
    };
    Ok(volume_groups(&first)?.into_iter().map(group).collect())
}

/// Is this node, HOST:PORT or a URL, a member of the group, or to be one?
fn has_node(fleet: &str, group: &FleetGroup, node: &str) -> Result<bool, HomeError> {
    let node = fleet_node(fleet, node)?;
    let Ok(list) = &group.members else {
        return Ok(false);
    };
    let wanted = list.wanted.iter().flatten();
    let wanted = wanted.map(|line| line.split(' ').next().unwrap_or(line));
    let mut urls = list
        .members
        .iter()
        .map(|(url, _)| url.as_str())
        .chain(wanted);
    Ok(urls.any(|url| fleet_node(fleet, url).is_ok_and(|url| url == node)))
}

/// Has these nodes be a further group of a fleet's volume, from the next start of its server on. Nodes are HOST:PORT.
/// Back comes the group's number.
///
/// # Errors
///
/// Those of [`fleet_groups`], and [`HomeError::Url`] for nodes that have something of the volume, or of another one.
pub fn add_fleet_group(url: &str, env: &Env, nodes: &[String]) -> Result<u32, HomeError> {
    let refused = |node: &str, what: String| HomeError::Url {
        url: node.to_owned(),
        what,
    };
    // A volume that is not there is not made by asking for it.
    let groups = fleet_groups(url, env)?;
    let mut urls: Vec<String> = Vec::new();
    for node in nodes {
        let node_url = fleet_node(url, node)?;
        if urls.contains(&node_url) {
            return Err(refused(node, "it is named twice".to_owned()));
        }
        for group in &groups {
            if has_node(url, group, node)? {
                let number = group.listed.number;
                return Err(refused(
                    node,
                    format!("it is one of group {number} already"),
                ));
            }
        }
        urls.push(node_url);
    }
    if !(NODES_MIN..=NODES_MAX).contains(&urls.len()) {
        let what = format!("a group has from {NODES_MIN} to {NODES_MAX} nodes");
        return Err(refused(url, what));
    }
    let first = open_first(url, env, OpenPurpose::Log, None)?;
    let (open, purpose) = (of_environment(env), OpenPurpose::Log);
    let added = open_nodes(url, urls.clone(), &open, env, purpose, None)?;
    let members = added.members()?.members;
    if members.len() != urls.len() || !members.iter().all(|(url, _)| urls.contains(url)) {
        let members: Vec<String> = members.into_iter().map(|(url, _)| url).collect();
        let what = "these have something of the volume together already".to_owned();
        return Err(refused(&members.join(","), what));
    }
    add_group(&first, &added)
}

/// Takes back that a group is to be used, if no server has begun to.
///
/// # Errors
///
/// Those of [`fleet_groups`], and [`HomeError::Url`] for a group that there is not, or in which something may lie.
pub fn forget_fleet_group(url: &str, env: &Env, group: u32) -> Result<(), HomeError> {
    drop(fleet_groups(url, env)?);
    forget_group(&open_first(url, env, OpenPurpose::Log, None)?, group)
}

/// A change of the members of a fleet's volume. Nodes are HOST:PORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetChange {
    /// A node becomes one, in the place of another or beside them.
    Add {
        /// The new one.
        node: String,
        /// Who goes for it.
        instead_of: Option<String>,
    },
    /// A node is one no more.
    Remove(String),
    /// What a node has is compared with what the others have.
    Repair(String),
}

/// Writes down how the members of a group of a fleet's volume are to change. The server makes it so, now or when it
/// starts. Back comes the list that is wanted. Without `group` it is the one that the node is in which goes or is
/// compared, or the only one.
///
/// # Errors
///
/// Those of [`fleet_groups`], and [`HomeError::Url`] for a node that is none of them, is one already, or cannot be
/// one.
pub fn change_fleet(
    url: &str,
    env: &Env,
    group: Option<u32>,
    change: &FleetChange,
) -> Result<Vec<String>, HomeError> {
    // A volume that is not there is not made by asking for it.
    let groups = fleet_groups(url, env)?;
    let FleetGroup { listed, members } = group_to_change(url, &groups, group, change)?;
    let list = members.as_ref().map_err(Clone::clone)?;
    let first = open_first(url, env, OpenPurpose::Log, None)?;
    let other = match listed.number {
        0 => None,
        number => Some(group_opener(url, env, None)(
            number,
            &listed.nodes,
            OpenPurpose::Log,
        )?),
    };
    let home = other.as_ref().unwrap_or(&first);
    if let FleetChange::Add { node, .. } = change {
        let node = fleet_node(url, node)?;
        if !list.members.iter().any(|(member, _)| *member == node) {
            match open_node(&node, env, false) {
                Ok(there) => home.must_be_able_to_join(&there.into(), &node)?,
                // It has nothing of the volume yet.
                Err(HomeError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if other.is_some() {
            groups::note_nodes(&first, listed.number, &[node])?;
        }
    }
    home.edit_members(&|present| edited(url, present, change))
}

fn group_to_change<'g>(
    fleet: &str,
    groups: &'g [FleetGroup],
    group: Option<u32>,
    change: &FleetChange,
) -> Result<&'g FleetGroup, HomeError> {
    let refused = |what: &str| HomeError::Url {
        url: fleet.to_owned(),
        what: what.to_owned(),
    };
    if let Some(number) = group {
        let found = groups.iter().find(|group| group.listed.number == number);
        return found.ok_or_else(|| refused("the volume has no such group"));
    }
    if let [only] = groups {
        return Ok(only);
    }
    let present = match change {
        FleetChange::Add { instead_of, .. } => instead_of.as_deref(),
        FleetChange::Remove(node) | FleetChange::Repair(node) => Some(node.as_str()),
    };
    let present = present.ok_or_else(|| {
        refused("the volume has several groups: say which one the node is for (--group)")
    })?;
    for group in groups {
        if has_node(fleet, group, present)? {
            return Ok(group);
        }
    }
    Err(HomeError::Url {
        url: present.to_owned(),
        what: "it is none of the volume's nodes in the groups that answer".to_owned(),
    })
}

fn edited(fleet: &str, present: &[String], change: &FleetChange) -> Result<Vec<String>, HomeError> {
    let refused = |node: &str, what: &str| HomeError::Url {
        url: node.to_owned(),
        what: what.to_owned(),
    };
    let mut list = present.to_vec();
    // Recorded with other options, perhaps.
    let index_of = |node: &str| -> Result<Option<usize>, HomeError> {
        let wanted = fleet_node(fleet, node)?;
        let is_it = |url: &String| fleet_node(fleet, url).is_ok_and(|url| url == wanted);
        Ok(present.iter().position(is_it))
    };
    let member = |node: &str| {
        index_of(node)?.ok_or_else(|| refused(node, "it is none of the volume's nodes"))
    };
    match change {
        FleetChange::Add { node, instead_of } => {
            if index_of(node)?.is_some() {
                return Err(refused(node, "it is one of the volume's nodes already"));
            }
            let url = fleet_node(fleet, node)?;
            match instead_of {
                Some(old) => list[member(old)?] = url,
                None => list.push(url),
            }
        }
        FleetChange::Remove(node) => {
            list.remove(member(node)?);
            if list.len() < NODES_MIN {
                return Err(refused(node, "a group has two nodes at least"));
            }
        }
        FleetChange::Repair(node) => {
            let url = &mut list[member(node)?];
            *url = repair_of(url);
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_edited() {
        let fleet = "fleet://a:1,b:2/v?tls=on";
        let present = ["node://a:1/v", "node://b:2/v", "node://c:3/v"].map(str::to_owned);
        let add = |node: &str, instead_of: Option<&str>| FleetChange::Add {
            node: node.to_owned(),
            instead_of: instead_of.map(str::to_owned),
        };
        let remove = |node: &str| FleetChange::Remove(node.to_owned());
        let repair = |node: &str| FleetChange::Repair(node.to_owned());
        for (change, list) in [
            (
                add("d:4", None),
                "node://a:1/v node://b:2/v node://c:3/v node://d:4/v?tls=on",
            ),
            (
                add("d:4", Some("b:2")),
                "node://a:1/v node://d:4/v?tls=on node://c:3/v",
            ),
            (remove("a:1"), "node://b:2/v node://c:3/v"),
            (
                repair("c:3"),
                "node://a:1/v node://b:2/v node://c:3/v repair",
            ),
        ] {
            let edited = edited(fleet, &present, &change).expect("can be done");
            assert_eq!(edited.join(" "), list);
        }
        for (change, why) in [
            (add("a:1", None), "already"),
            (add("d:4", Some("e:5")), "none of"),
            (remove("d:4"), "none of"),
            (repair("d"), "HOST:PORT"),
        ] {
            let error = edited(fleet, &present, &change).expect_err("cannot be done");
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(edited(fleet, &present[..2], &remove("a:1")).is_err());
    }
}
