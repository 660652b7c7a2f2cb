//! A home of protection groups: a volume that is divided among several homes of homes.
//!
//! | file | what |
//! |---|---|
//! | `ownership` | who may change a group; pure |
//! | `lease` | what a start does: it takes the groups, and divides its epoch among them |
//! | `edit` | adding a group, and forgetting one that was never used |
//! | `home` | what all of this offers: the calls of a home |
//!
//! **Words.** A *group* is a [`ReplicatedHome`]: its members, their quorums, their register, repair and changes of its
//! members are its own, and no other group's. Group 0 has the named values (the manifest with its lease) and the
//! placement record beside them. An *era* is the epochs that are divided among the same groups.
//!
//! **Placement.** Of an epoch, lane `l` with its segments and side segments lies in one group, and so does each object:
//! the numbers of segments, side segments and objects begin with the epoch, and the record says what groups that was
//! divided among ([`placement`](crate::placement)). So nothing ever moves from group to group, and a reader asks one
//! group for each thing. A volume without a record, or whose record names group 0 only, is not divided: a server opens
//! it as the one [`ReplicatedHome`] that it is.
//!
//! **A group that is added** is *wanted* in the record. No running server changes where it puts what: the next start
//! divides its own epoch, and later ones, among the wanted groups. It writes that into the record when recovery has
//! completed all copies and before the mark that begins the epoch, and only while it has the lease: in the register
//! that has the lease, in the same step in which it is looked whose that is. So
//! - what an epoch is divided among is settled before its lanes are opened, and never changes afterwards: whoever takes
//!   the lease later finds that epoch begun, and says nothing of it any more ([`Placement::begin`]);
//! - a start that is overtaken between this and its mark has said something of an epoch that did not begin: who
//!   overtook it says it anew, and its own mark fails, because that is a compare and swap of the lease;
//! - a start that was opened when the volume was not divided goes on like that only as long as no other one has divided
//!   it: it looks when it has the lease, and again before its mark (`must_know_groups` in
//!   [`replicated`](crate::replicated)). A version that knows no groups does not read the registers of a divided volume
//!   at all.
//!
//! **Take-over (T3).** The lease is one, in group 0. A group's own register has to know who has it, because marks and
//! lists of members are changed there by who has the lease only: so a server that has the lease draws a *term*, a
//! number that grows, in the register with the lease and while it has it, and writes it into the register of each group
//! ([`ownership`]). The order is: lease, term, the term in every group, fences, reading, making durable, the era, the
//! mark. Who finds a later term in a group has been overtaken, and changes nothing; who was overtaken has an earlier
//! term for good. Between the lease and the term in a group the server of before may still change that group, as it may
//! in a home without groups before its lease is taken: what it does then is over when the group's members are read.
//!
//! A lane is fenced in every group that any era names, whether that group has anything of its last epoch or not: a
//! server of an earlier epoch, paused since, may have had the lane there, and a member of that group that was away
//! then.
//!
//! **Recovery** reads each lane through its group's copies. Copies are counted through: those of group 0, then those of
//! group 1, and so on. A copy has nothing of what lies in another group: it reads as empty there, is written nothing,
//! and is not asked for side segments. So the judgement of R members is each group's own: a lane's end is an end if R
//! members of *its* group say so, and a group with fewer than R makes reading its lanes fail, not those of others.
//! Which copies may lack much, each group says of its own; recovery compares a copy with the lanes that lie in its
//! group ([`Copies::keeps`](crate::Copies::keeps)). Every group has completed its copies before the mark.
//!
//! **Objects and marks.** In a home without groups, the change of the register that publishes a manifest also marks the
//! members that lack what it names. Here the manifest is in group 0's register, and the others' are not changed with
//! it: a lease must not lapse because some group has no majority. That is enough, because marks of a group are written
//! only where every member that is up has everything: by a server at work, each time for all that are down, and by a
//! start when all copies are complete. A start that takes a group marks nobody (`set_owner` in `replicated/group.rs`).
//! An object that was acknowledged is on a write quorum of its group; who lacks it is down, until it has been given
//! what it lacks. So when a holder is marked as incomplete, all that lack the object are, too. A start, which needs a
//! majority, meets a holder. Either that is complete; or no member that lacks the object is: then it is another one
//! that is complete and has it, or none is, and all of what any of them has is taken. An unmarked member that lacks
//! blocks of the last epoch is found by its end ([`Copies::copies_behind`](crate::Copies::copies_behind)); one that is
//! away when a start settles is marked there.
//!
//! **A group without a write quorum.** Appends to its lanes wait, and its objects fail to be stored; lanes of other
//! groups go on, and their transactions are acknowledged as far as they depend on nothing that waits. A start needs of
//! every group that an era names what it needs of a home: a majority, and R members that can be fenced and read.
//!
//! A group's register is read every second for the members that somebody wants, as that of group 0 is with each renewal
//! of the lease.
//!
//! **Readers** ([`OpenPurpose::Reading`]) read the placement record together with each named value, and open groups
//! that have come. After that they read the registers of the other groups: so what they read next is judged by members
//! that are as new as the named value, in every group.
//!
//! Does not: move what lies in a group to another one. A group moves to other nodes by changes of its members.

mod edit;
mod home;
mod lease;
mod ownership;
#[cfg(test)]
mod tests;

pub(crate) use edit::note_nodes;
pub use edit::{VolumeGroup, add_group, forget_group, volume_groups};

use crate::placement::{FIRST, ListedGroup, Placement, RECORD};
use crate::replicated::{OWNERSHIP, named_in_record};
use crate::{HomeCapabilities, HomeError, LaneId, OpenPurpose, ReplicatedHome, Rollover};
use logstead_env::Env;
use logstead_types::Epoch;
use ownership::Ownership;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Opens a group, by URLs of some of its members: what a [`GroupedHome`] is told of where its groups are.
pub type GroupOpener =
    Arc<dyn Fn(u32, &[String], OpenPurpose) -> Result<ReplicatedHome, HomeError> + Send + Sync>;

/// How often a group's register is read while nothing is changed there.
const REGISTER_INTERVAL: Duration = Duration::from_secs(1);

/// A home of groups; see the module's documentation.
pub struct GroupedHome {
    purpose: OpenPurpose,
    open_group: GroupOpener,
    /// What all groups can that were open at first: a group that comes later can no less, or is left to the next start.
    capabilities: HomeCapabilities,
    /// Those are known.
    is_open: bool,
    rollover: Option<Rollover>,
    groups: Arc<RwLock<Arc<Groups>>>,
    /// Held by who reads the record and goes by it: an older one is not put in the place of a newer one.
    following: Mutex<()>,
    /// The groups have this life's term. Held while it is drawn and written.
    taken: Mutex<bool>,
    /// Lanes of this life, and the group of each.
    lanes: RwLock<BTreeMap<LaneId, Group>>,
    name_requests_limit: Mutex<Option<Duration>>,
    /// A thread reads the registers.
    watches: Mutex<bool>,
}

/// A group that is open.
#[derive(Clone)]
struct Group {
    number: u32,
    home: Arc<ReplicatedHome>,
    /// It is not the only one: then it is told of by its number.
    is_one_of_several: bool,
}

/// The groups that are open, and what lies where.
struct Groups {
    placement: Placement,
    /// By number.
    open: Vec<Group>,
}

/// What a group says, with its number where that is not clear from it.
fn of_group(group: u32, error: HomeError) -> HomeError {
    match error {
        HomeError::Io { what, source } => HomeError::Io {
            what: format!("group {group}: {what}"),
            source,
        },
        HomeError::Url { url, what } => HomeError::Url {
            url,
            what: format!("group {group}: {what}"),
        },
        error => error,
    }
}

fn decoded(record: &[u8]) -> Result<Placement, HomeError> {
    let unreadable = |why: &str| {
        let kind = std::io::ErrorKind::InvalidData;
        let what = "read the record of the volume's groups";
        HomeError::io(what, std::io::Error::new(kind, why.to_owned()))
    };
    Placement::decode(record).map_err(unreadable)
}

impl Group {
    fn named<T>(&self, result: Result<T, HomeError>) -> Result<T, HomeError> {
        result.map_err(|error| self.told(error))
    }

    fn told(&self, error: HomeError) -> HomeError {
        match self.is_one_of_several {
            true => of_group(self.number, error),
            false => error,
        }
    }
}

impl Groups {
    fn first(&self) -> &Group {
        // There from the beginning, and the one with the lowest number.
        &self.open[0]
    }

    fn group(&self, number: u32) -> Result<&Group, HomeError> {
        let index = self
            .open
            .binary_search_by_key(&number, |group| group.number);
        // Never what is missing: it may have what was asked for.
        let is_not_open = || {
            let kind = std::io::ErrorKind::NotConnected;
            HomeError::io(format!("ask group {number} of the volume"), kind.into())
        };
        index
            .map(|index| &self.open[index])
            .map_err(|_| is_not_open())
    }

    /// The group of what a lane has under a number that begins with the epoch: a segment, a side segment.
    fn of_lane(&self, lane: LaneId, number: u64) -> Result<&Group, HomeError> {
        let epoch = Epoch(u32::try_from(number >> 32).unwrap_or(u32::MAX));
        self.group(self.placement.group_of(epoch, u32::from(lane.0)))
    }

    /// The groups that a lane may have something in.
    fn of_any_epoch(&self, lane: LaneId) -> Result<Vec<&Group>, HomeError> {
        let numbers = self.placement.groups_of_lane(u32::from(lane.0));
        numbers
            .into_iter()
            .map(|number| self.group(number))
            .collect()
    }

    /// The groups in which something may lie.
    fn in_force(&self) -> Result<Vec<&Group>, HomeError> {
        let numbers = self.placement.in_force();
        numbers
            .into_iter()
            .map(|number| self.group(number))
            .collect()
    }
}

impl GroupedHome {
    /// The home that begins with this group 0, which was opened for `purpose`. The other groups that the placement
    /// record names are opened by `open_group`.
    ///
    /// # Errors
    ///
    /// What opening a group says in which something may lie, and [`HomeError::Url`] if the first one is another group.
    /// A group that is only wanted is done without.
    pub fn open(
        first: ReplicatedHome,
        purpose: OpenPurpose,
        open_group: GroupOpener,
    ) -> Result<GroupedHome, HomeError> {
        let names = first.all_names()?;
        must_be_first(names.get(OWNERSHIP).map(|(bytes, _)| bytes.as_slice()))?;
        let placement = match names.get(RECORD) {
            Some((record, _)) => decoded(record)?,
            None => Placement::undivided(first.number()),
        };
        first.be_group(FIRST);
        let first = Group {
            number: FIRST,
            home: Arc::new(first),
            is_one_of_several: false,
        };
        let groups = Groups {
            placement: Placement::undivided(first.home.number()),
            open: vec![first.clone()],
        };
        let mut home = GroupedHome {
            purpose,
            open_group,
            capabilities: crate::LaneAppends::capabilities(first.home.as_ref()),
            is_open: false,
            rollover: None,
            groups: Arc::new(RwLock::new(Arc::new(groups))),
            following: Mutex::default(),
            taken: Mutex::default(),
            lanes: RwLock::default(),
            name_requests_limit: Mutex::default(),
            watches: Mutex::default(),
        };
        home.follow(&placement)?;
        let groups = home.groups();
        for group in &groups.open[1..] {
            let of_group = crate::LaneAppends::capabilities(group.home.as_ref());
            home.capabilities = common(home.capabilities, of_group);
        }
        let rollover = |group: &Group| crate::SegmentRollover::rollover(group.home.as_ref());
        let rule = rollover(groups.first());
        let is_common = groups.open.iter().all(|group| rollover(group) == rule);
        home.rollover = is_common.then_some(rule);
        home.is_open = true;
        Ok(home)
    }

    fn groups(&self) -> Arc<Groups> {
        Arc::clone(&self.groups.read())
    }

    fn first(&self) -> Group {
        self.groups().first().clone()
    }

    /// Goes by this record, if it says anything new: opens groups that are not open yet. Called by one at a time.
    fn follow(&self, placement: &Placement) -> Result<(), HomeError> {
        let present = self.groups();
        if present.placement == *placement {
            return Ok(());
        }
        let in_force = placement.in_force();
        let mut open = present.open.clone();
        for (&number, listed) in &placement.groups {
            let is_needed = in_force.contains(&number);
            let is_wanted = placement.wanted.contains(&number);
            // Who only reads needs no group that nothing lies in yet.
            let is_asked = is_needed || is_wanted && self.purpose != OpenPurpose::Reading;
            if let Ok(group) = present.group(number) {
                must_be_listed(group, listed)?;
                continue;
            }
            if !is_asked {
                continue;
            }
            match self.opened(number, listed) {
                Ok(group) => open.push(group),
                Err(error) if is_needed => return Err(of_group(number, error)),
                Err(error) => tracing::warn!(
                    "log: group {number} of the volume is not used before the next start: {error}"
                ),
            }
        }
        open.sort_by_key(|group| group.number);
        let is_one_of_several = open.len() > 1;
        for group in &mut open {
            group.is_one_of_several = is_one_of_several;
        }
        let placement = placement.clone();
        *self.groups.write() = Arc::new(Groups { placement, open });
        Ok(())
    }

    fn opened(&self, number: u32, listed: &ListedGroup) -> Result<Group, HomeError> {
        let home = (self.open_group)(number, &listed.nodes, self.purpose)?;
        let refused = |what: &str| HomeError::Url {
            url: listed.nodes.join(","),
            what: format!("{what} group {number} of the volume"),
        };
        if home.number() != listed.home {
            return Err(refused("another log is there than"));
        }
        let capabilities = crate::LaneAppends::capabilities(&home);
        let (ours, alignment) = (self.capabilities, capabilities.block_alignment);
        if !ours.block_alignment.is_multiple_of(alignment) {
            return Err(refused(
                "its alignment does not go with the others', that of",
            ));
        }
        let both = common(ours, capabilities);
        let takes_less = both.room_size_bytes_max < ours.room_size_bytes_max
            || both.appends_in_flight_max < ours.appends_in_flight_max;
        if self.is_open && self.purpose != OpenPurpose::Reading && takes_less {
            return Err(refused("smaller appends than those of this start are for"));
        }
        if let Some(first) = *self.name_requests_limit.lock() {
            crate::NamedValues::limit_name_requests(&home, first);
        }
        home.be_group(number);
        let home = Arc::new(home);
        Ok(Group {
            number,
            home,
            is_one_of_several: true,
        })
    }

    /// Does what is due for members that are to come back, in all groups: what threads of the groups do, if they have
    /// threads. True if there are some that are not back.
    pub fn bring_children_back(&self) -> bool {
        let groups = self.groups();
        look_at_registers(&groups);
        let steps = groups
            .open
            .iter()
            .map(|group| group.home.bring_children_back());
        // Each of them, whatever another one says.
        steps.fold(false, |any, more| any | more)
    }

    /// The groups that are open, by number.
    pub fn group_homes(&self) -> Vec<(u32, Arc<ReplicatedHome>)> {
        let groups = self.groups();
        let of = |group: &Group| (group.number, Arc::clone(&group.home));
        groups.open.iter().map(of).collect()
    }
}

/// Reads the registers of the groups but the first one, which the lease's renewals read: somebody may have written
/// there which members are wanted.
fn look_at_registers(groups: &Groups) {
    for group in &groups.open[1..] {
        if let Err(error) = group.named(group.home.look_at_register()) {
            // Its majority is away, and comes back: the log tells of that.
            tracing::debug!("log: {error}");
        }
    }
}

/// Does that again and again, until the home is closed.
fn watch_registers(groups: &Arc<RwLock<Arc<Groups>>>, env: &Env) -> Result<(), HomeError> {
    let groups = Arc::downgrade(groups);
    let body = move || {
        loop {
            logstead_env::sleep(REGISTER_INTERVAL);
            let Some(present) = groups.upgrade().map(|groups| Arc::clone(&groups.read())) else {
                return;
            };
            look_at_registers(&present);
        }
    };
    let spawned = env.spawn("groups", None, body);
    spawned.map_err(|error| HomeError::io("starting a thread for groups", error))?;
    Ok(())
}

/// Refuses a group that was forgotten since it was opened, and whose number another one has.
fn must_be_listed(group: &Group, listed: &ListedGroup) -> Result<(), HomeError> {
    match group.home.number() == listed.home {
        true => Ok(()),
        false => Err(HomeError::Conflict(format!(
            "group {} of the volume, which is another one now",
            group.number
        ))),
    }
}

/// Refuses nodes of another group, named as if they were those of the first one. `manifest`: what their register has
/// there.
pub(crate) fn must_be_first(manifest: Option<&[u8]>) -> Result<(), HomeError> {
    let Some(Ownership { group, nodes, .. }) = manifest.and_then(Ownership::decode) else {
        return Ok(());
    };
    Err(HomeError::Url {
        url: nodes.join(","),
        what: format!(
            "the nodes that were named are those of group {group} of the volume: name nodes of group 0, which were these"
        ),
    })
}

/// Is this the record of a node in another group than the first? That one has the volume's named values.
pub fn is_of_further_group(record: &[u8]) -> bool {
    let named = named_in_record(record, OWNERSHIP).flatten();
    named.is_some_and(|bytes| Ownership::decode(&bytes).is_some())
}

/// Does the volume that has this group 0 have, or is it to have, more than one group?
///
/// # Errors
/// [`HomeError::Url`] if it is no group 0, and what reading its register says.
pub(crate) fn has_several(first: &ReplicatedHome) -> Result<bool, HomeError> {
    let names = first.all_names()?;
    must_be_first(names.get(OWNERSHIP).map(|(bytes, _)| bytes.as_slice()))?;
    let record = names.get(RECORD).map(|(record, _)| decoded(record));
    Ok(record
        .transpose()?
        .is_some_and(|placement| placement.groups.len() > 1))
}

/// What two groups can together. The alignment is the first one's, with which the others' goes.
fn common(first: HomeCapabilities, other: HomeCapabilities) -> HomeCapabilities {
    HomeCapabilities {
        block_alignment: first.block_alignment,
        block_size_preferred: first.block_size_preferred.max(other.block_size_preferred),
        room_size_bytes_max: first.room_size_bytes_max.min(other.room_size_bytes_max),
        appends_in_flight_max: first.appends_in_flight_max.min(other.appends_in_flight_max),
        append_latency_expected_us: first
            .append_latency_expected_us
            .max(other.append_latency_expected_us),
        leased: true,
    }
}
