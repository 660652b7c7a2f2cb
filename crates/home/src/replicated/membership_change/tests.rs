use super::super::catch_up::tests::{Acknowledged, LANE, LANES, Life, Rig, finish};
use super::super::state::{Member, StoredAcceptor};
mod disks;
mod repair;

use super::list::repair_of;
use super::*;
use crate::ImmutableObjects;
use crate::replicated::OpenPurpose;
use crate::{Availability, Buffer, Copies, HomeStatus, MemoryHome, NamedValues, ObjectId};
use logstead_types::Epoch;

#[test]
fn one_home_comes_or_goes_at_a_time() {
    let member = |id: u64, url: &str| Member {
        id,
        complete: true,
        url: url.to_owned(),
    };
    let (a, b, c) = (member(1, "a"), member(2, "b"), member(3, "c"));
    let members = [(&a, true), (&b, true), (&c, false)];
    let swap = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|url| (*url).to_owned()).collect();
        next_swap(&members, &[], Some(&wanted))
    };
    let one = |add: Option<&str>, remove: Option<u64>| {
        let add = add.map(str::to_owned);
        Some(MemberSwap { add, remove })
    };
    assert_eq!(next_swap(&members, &[], None), None);
    assert_eq!(swap(&["a", "b", "c"]), None);
    assert_eq!(swap(&["a", "b", "c", "d", "e"]), one(Some("d"), None));
    assert_eq!(
        swap(&["a", "d", "e"]),
        one(Some("d"), Some(3)),
        "who is down first"
    );
    assert_eq!(swap(&["a", "b"]), one(None, Some(3)));
    assert_eq!(swap(&["a", "c"]), one(None, Some(2)));
    assert_eq!(next_swap(&members[..2], &[], Some(&["a".to_owned()])), None);
    assert_eq!(next_swap(&members, &[3], None), one(Some("c"), Some(3)));
    let without = ["a", "b"].map(str::to_owned);
    assert_eq!(
        next_swap(&members, &[3], Some(&without)),
        one(None, Some(3))
    );
}

impl Life {
    fn wants(&self, numbers: &[usize]) {
        let list: Vec<String> = numbers
            .iter()
            .map(|number| format!("place {number}"))
            .collect();
        let wanted = self.home.edit_members(&|_| Ok(list.clone()));
        wanted.expect("is written down");
    }

    /// The members by their places, and which of them the register has for complete.
    fn members(&self) -> Vec<(String, bool)> {
        let mut members = self.home.members().expect("reads").members;
        members.sort();
        members
    }

    /// Steps until these are the members, and no others are asked; appends go on meanwhile.
    fn comes_to(&self, acknowledged: &mut Acknowledged, numbers: &[usize]) {
        let wanted: Vec<(String, bool)> = numbers
            .iter()
            .map(|number| (format!("place {number}"), true))
            .collect();
        for _ in 0..100 {
            self.home.bring_children_back();
            self.append(acknowledged, 1);
            let report = self.home.report();
            let asked = report.iter().filter(|(what, _)| what.ends_with(" home"));
            if self.members() == wanted && asked.count() == wanted.len() {
                return;
            }
        }
        panic!(
            "the members are {:?}: {:?}",
            self.members(),
            self.home.report()
        );
    }
}

#[test]
fn a_home_takes_the_place_of_one_that_is_away() {
    let mut rig = Rig::with_more(5);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 20);
    finish(life.side(7));
    let put = life.put(1);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 3);
    life.wants(&[0, 1, 3]);
    life.comes_to(&mut acknowledged, &[0, 1, 3]);
    // It is one of the two that there are, from now on.
    rig.leave(&life, 0);
    life.append(&mut acknowledged, 20);
    finish(life.side(8));
    let child = rig.look(3);
    acknowledged.is_in(&child, "the new one");
    let objects = child.objects.list_objects().expect("lists");
    assert_eq!(
        objects.iter().map(|info| info.id).collect::<Vec<_>>(),
        [put]
    );
    let sides = child.sides.list_side_segments(LANE).expect("lists");
    assert_eq!(sides, [1 << 32 | 7, 1 << 32 | 8]);
    rig.is_there_again(0);
    rig.is_there_again(2);
    life.is_back(0);
    rig.crash(life);

    // The seeds that are there are two of the list of before: the register tells the rest.
    rig.seeds = Some(vec![0, 2]);
    let life = rig.start(2);
    assert_eq!(life.members().len(), 3);
    let everything = crate::LogHome::from(Arc::clone(&life.home));
    acknowledged.is_in(&everything, "the members");
    rig.leave(&life, 1);
    life.append(&mut acknowledged, 1);
    life.wants(&[0, 3, 4]);
    life.comes_to(&mut acknowledged, &[0, 3, 4]);
    acknowledged.is_in(&rig.look(4), "the newest");
}

#[test]
fn lists_grow_and_shrink() {
    let rig = Rig::with_more(5);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    life.wants(&[0, 1, 2, 3, 4]);
    life.comes_to(&mut acknowledged, &[0, 1, 2, 3, 4]);
    // Two of five may be away.
    rig.leave(&life, 0);
    rig.leave(&life, 1);
    life.append(&mut acknowledged, 3);
    rig.is_there_again(0);
    life.wants(&[2, 3, 4]);
    life.comes_to(&mut acknowledged, &[2, 3, 4]);
    acknowledged.is_in(&rig.look(4), "the newest");
    life.wants(&[2]);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.members().len(), 2, "several are two at least");
}

/// A disk is new: what its place had is copied there again, without anybody asking for it.
#[test]
fn a_member_whose_place_is_empty_is_filled_again() {
    let rig = Rig::with_more(3);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 20);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 1);
    *rig.places[2].instead.lock() = Some(MemoryHome::new(64 << 10));
    rig.is_there_again(2);
    life.comes_to(&mut acknowledged, &[0, 1, 2]);
    for _ in 0..3 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    rig.leave(&life, 1);
    life.append(&mut acknowledged, 3);
    acknowledged.is_in(&rig.look(2), "the new disk");
    assert_eq!(life.members().len(), 3);
}

/// The one that goes is still needed as long as the register may have the list of before.
#[test]
fn t2_the_list_of_before_counts_until_the_register_has_the_next() {
    let rig = Rig::with_more(4);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    // It is not over while this is open.
    let side = life.side(7);
    life.wants(&[0, 1, 3]);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    let side_of_both = life.side(8);
    finish(side);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.home.members().expect("reads").members[2].0, "place 2");
    // Of the list of before 0 and 2 have it, of the next one 0 alone.
    rig.places[1].memory.set_paused(true);
    rig.places[3].memory.set_paused(true);
    let (at, told) = life.begin(LANES[0], 99);
    assert!(
        told.try_recv().is_err(),
        "a start by the next list would not find it"
    );
    while rig.places[3].memory.complete() {}
    assert!(told.try_recv().expect("told").is_ok());
    acknowledged.0.insert((LANES[0], at), 99);
    for paused in [1, 3] {
        let memory = &rig.places[paused].memory;
        memory.set_paused(false);
        while memory.complete() {}
    }
    finish(side_of_both);
    life.comes_to(&mut acknowledged, &[0, 1, 3]);
}

/// The new one goes down while both lists count: it is as before, and goes on when that is there again.
#[test]
fn it_is_taken_back_if_the_new_one_goes_down() {
    let rig = Rig::with_more(4);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    let side = life.side(7);
    life.wants(&[0, 1, 3]);
    let side_of_both = {
        for _ in 0..20 {
            life.home.bring_children_back();
            life.append(&mut acknowledged, 1);
        }
        life.side(8)
    };
    finish(side);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    rig.leave(&life, 3);
    rig.leave(&life, 1);
    // 0 and 2 are two of three of before, and 0 alone is there of the next one.
    let (at, told) = life.begin(LANE, 99);
    life.home.bring_children_back();
    assert!(told.try_recv().expect("told").is_ok());
    acknowledged.0.insert((LANE, at), 99);
    life.append(&mut acknowledged, 3);
    finish(side_of_both);
    rig.is_there_again(1);
    rig.is_there_again(3);
    life.comes_to(&mut acknowledged, &[0, 1, 3]);
    acknowledged.is_in(&rig.look(3), "the new one");
}

/// Another log's home, and the same place under another name, are no new members.
#[test]
fn what_cannot_be_a_member_is_refused() {
    let rig = Rig::with_more(4);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    let other = Rig::with_more(3);
    drop(other.start(1));
    for (instead, why) in [
        (&other.places[0].memory, "another log"),
        (&rig.places[1].memory, "the same place as another"),
    ] {
        *rig.places[3].instead.lock() = Some(instead.clone());
        life.wants(&[0, 1, 3]);
        for _ in 0..20 {
            life.home.bring_children_back();
            life.append(&mut acknowledged, 1);
        }
        let report = life.home.report();
        assert!(
            report.iter().any(|(_, value)| value.contains(why)),
            "{report:?}"
        );
        life.wants(&[0, 1, 2]);
        life.comes_to(&mut acknowledged, &[0, 1, 2]);
    }
}

/// Bits have rotted in one of three copies: the two others say what is right.
#[test]
fn what_is_damaged_is_repaired_when_somebody_asks() {
    let rig = Rig::with_more(3);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 40);
    let objects = [1, 2, 3].map(|number| ObjectId::new(Epoch(1), number));
    for (id, len) in objects.into_iter().zip([10, 5 << 20, 10]) {
        life.home.put_object(id, &vec![7; len]).expect("stores");
    }
    let damaged = rig.look(2);
    // One is another one in its second piece, and one is cut short.
    let mut other = vec![7; 5 << 20];
    other[(4 << 20) + 5] = 8;
    for (id, bytes) in [(objects[1], &other[..]), (objects[2], &[7; 9])] {
        damaged.objects.remove_object(id).expect("removes");
        damaged.objects.put_object(id, bytes).expect("stores");
    }
    // Of this one the first of the others is damaged.
    let first = rig.look(0);
    first.objects.remove_object(objects[0]).expect("removes");
    first
        .objects
        .put_object(objects[0], &[6; 10])
        .expect("stores");
    let mut garbage = Buffer::zeroed(4096);
    garbage.as_mut_slice().fill(255);
    for &(lane, at) in acknowledged.0.keys().step_by(3) {
        let rewritten = damaged.segments.rewrite(lane, at, &garbage, 4096);
        rewritten.expect("rewrites");
    }
    let repair = |lines: &[String]| {
        let line = |line: &String| match line == "place 2" {
            true => repair_of(line),
            false => line.clone(),
        };
        Ok(lines.iter().map(line).collect())
    };
    life.home.edit_members(&repair).expect("is written down");
    let wanted = |life: &Life| {
        life.home
            .members()
            .expect("reads")
            .wanted
            .expect("is there")
    };
    assert_eq!(wanted(&life), ["place 0", "place 1", "place 2 repair"]);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.state(2), "member");
    acknowledged.is_in(&rig.look(2), "the repaired one");
    let repaired = rig.look(2);
    for (id, len) in objects.into_iter().zip([10, 5 << 20, 10]) {
        let mut bytes = vec![0; len + 1];
        let count = repaired
            .objects
            .read_object(id, 0, &mut bytes)
            .expect("reads");
        assert_eq!(count, len, "{id}");
        assert!(bytes[..len].iter().all(|byte| *byte == 7), "{id}");
    }
    assert_eq!(
        wanted(&life),
        ["place 0", "place 1", "place 2"],
        "it is done once"
    );
}

/// An object is damaged at the one that is repaired, in another way at the first of the others, and two have it right.
/// Of another one no two have the same: all stay.
#[test]
fn what_is_copied_for_a_repair_two_have() {
    let rig = Rig::with_more(4);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.wants(&[0, 1, 2, 3]);
    life.comes_to(&mut acknowledged, &[0, 1, 2, 3]);
    let [object, disputed] = [1, 2].map(|number| ObjectId::new(Epoch(1), number));
    life.home.put_object(object, &[7; 10]).expect("stores");
    life.home.put_object(disputed, &[7; 10]).expect("stores");
    for (object, place, bytes) in [
        (object, 0, &[6; 12][..]),
        (object, 2, &[8; 9]),
        (disputed, 0, &[6; 12]),
        (disputed, 1, &[5; 10]),
        (disputed, 2, &[8; 9]),
    ] {
        let objects = &rig.look(place).objects;
        objects.remove_object(object).expect("removes");
        objects.put_object(object, bytes).expect("stores");
    }
    let of_place_2 = |line: &String| match line == "place 2" {
        true => repair_of(line),
        false => line.clone(),
    };
    let repair = |lines: &[String]| Ok(lines.iter().map(of_place_2).collect());
    life.home.edit_members(&repair).expect("is written down");
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.state(2), "member");
    let mut bytes = [0; 20];
    let repaired = rig.look(2);
    let count = repaired.objects.read_object(object, 0, &mut bytes);
    assert_eq!(&bytes[..count.expect("reads")], &[7; 10]);
    let count = repaired.objects.read_object(disputed, 0, &mut bytes);
    assert_eq!(&bytes[..count.expect("reads")], &[8; 9]);
}

/// Who only reads goes by the list that holds when it reads.
#[test]
fn readers_read_from_those_that_are_members_now() {
    let mut rig = Rig::with_more(6);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    rig.options.purpose = OpenPurpose::Reading;
    let reader = rig.open();
    for (gone, list) in [(2, [0, 1, 3]), (1, [0, 3, 4]), (0, [3, 4, 5])] {
        rig.leave(&life, gone);
        life.append(&mut acknowledged, 1);
        life.wants(&list);
        life.comes_to(&mut acknowledged, &list);
        reader.get("manifest").expect("reads").expect("is there");
        let home = crate::LogHome::from(Arc::clone(&reader));
        acknowledged.is_in(&home, "what a reader sees");
        let report = reader.report();
        let homes = report.iter().filter(|(what, _)| what.ends_with(" home"));
        let homes: BTreeSet<String> = homes.map(|(_, url)| url.clone()).collect();
        assert_eq!(
            homes,
            list.iter()
                .map(|number| format!("place {number}"))
                .collect()
        );
    }
}

/// A member that was away when the lanes were opened votes in them when it has come back.
#[test]
fn who_was_away_at_the_start_counts_when_it_is_back() {
    let rig = Rig::with_more(3);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    rig.crash(life);
    rig.is_away(2);
    let life = rig.start(2);
    life.append(&mut acknowledged, 3);
    rig.is_there_again(2);
    life.is_back(2);
    rig.leave(&life, 1);
    life.append(&mut acknowledged, 3);
    acknowledged.is_in(&rig.look(2), "the one that was away");
}

/// With none left that has everything there is nobody to copy from: the lanes fail, and the next start compares.
#[test]
fn when_all_go_at_once_the_lanes_fail() {
    let rig = Rig::with_more(3);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    for child in 0..3 {
        rig.places[child]
            .memory
            .set_presence(Availability::Refusing);
    }
    let (_, told) = life.begin(LANE, 9);
    assert!(told.try_recv().expect("told").is_err());
    for child in 0..3 {
        rig.is_there_again(child);
        life.home.bring_children_back();
    }
    rig.crash(life);
    let life = rig.start(2);
    life.append(&mut acknowledged, 3);
    let home = crate::LogHome::from(Arc::clone(&life.home));
    acknowledged.is_in(&home, "the members");
}

/// A crash between the two steps of the register while an empty place is filled: the next start ends the change.
#[test]
fn a_crash_in_the_midst_of_filling_an_empty_place() {
    let rig = Rig::with_more(3);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 20);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 1);
    let disk = MemoryHome::new(64 << 10);
    *rig.places[2].instead.lock() = Some(disk.clone());
    rig.is_there_again(2);
    let side = life.side(7);
    for _ in 0..10 {
        life.home.bring_children_back();
    }
    drop(side);
    // Its record is there, and no list has it.
    assert!(disk.get("manifest").expect("reads").is_some());
    let members = life.home.inner.membership.lock().members.clone();
    rig.crash(life);
    let life = rig.start(2);
    life.comes_to(&mut acknowledged, &[0, 1, 2]);
    let id = |members: &[Member]| members.iter().map(|member| member.id).max_by_key(|_| 0);
    let now = life.home.inner.membership.lock().members.clone();
    assert_ne!(id(&members), id(&now), "it is another member");
    acknowledged.is_in(&rig.look(2), "the new disk");
    // And now both steps: the first one is made by hand, as who has crashed in between leaves it.
    rig.leave(&life, 1);
    life.append(&mut acknowledged, 1);
    *rig.places[1].instead.lock() = Some(MemoryHome::new(64 << 10));
    rig.is_there_again(1);
    let side = life.side(8);
    for _ in 0..10 {
        life.home.bring_children_back();
    }
    let kept = {
        let (bytes, _) = rig
            .look(1)
            .names
            .get("manifest")
            .expect("reads")
            .expect("is there");
        StoredAcceptor::decode(&bytes).expect("a record").member
    };
    let chosen = life.home.inner.register.lock().propose_leased(&|state| {
        let mut state = state?.clone();
        state.leaving.clone_from(&state.members);
        for member in &mut state.members {
            if member.url == "place 1" {
                member.id = kept;
                member.complete = false;
            }
        }
        Some(state)
    });
    chosen.expect("is chosen");
    drop(side);
    rig.crash(life);
    let home = rig.open();
    let list = home.members().expect("reads").members;
    assert_eq!(list.len(), 3, "{list:?}");
    let behind = home.copies_behind();
    let urls = behind.iter().map(|&child| home.inner.children[child].url());
    assert_eq!(
        urls.collect::<Vec<String>>(),
        ["place 1"],
        "recovery completes it"
    );
}

/// Whoever has the highest ballot: two logs are not mixed.
#[test]
fn seeds_of_two_logs_are_refused() {
    let mut rig = Rig::with_more(6);
    drop(rig.start(1));
    let other = Rig::with_more(3);
    drop(other.start(1));
    drop(other.start(2));
    for place in 3..6 {
        *rig.places[place].instead.lock() = Some(other.places[place - 3].memory.clone());
    }
    rig.seeds = Some((0..6).collect());
    let error = rig.try_open().err().expect("refused").to_string();
    assert!(error.contains("another log"), "{error}");
}

/// A first start without one of them makes nothing, and the next one with all of them does.
#[test]
fn a_first_start_without_a_node_is_made_good_by_the_next() {
    let rig = Rig::with_more(3);
    rig.is_away(2);
    assert!(rig.try_open().is_err());
    rig.is_there_again(2);
    let mut acknowledged = Acknowledged::default();
    rig.start(1).append(&mut acknowledged, 1);
}
