//! Repairs: which copies are mended, when, and beside what else.

use super::*;

/// Has an object of these bytes at a place, whatever was there.
fn rots(rig: &Rig, place: usize, id: ObjectId, bytes: &[u8]) {
    let objects = &rig.look(place).objects;
    objects.remove_object(id).expect("removes");
    objects.put_object(id, bytes).expect("stores");
}

fn object_at(rig: &Rig, place: usize, id: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    let count = rig.look(place).objects.read_object(id, 0, &mut bytes);
    bytes.truncate(count.expect("reads"));
    bytes
}

/// Asks for these places to be compared with the others.
fn wants_repaired(life: &Life, places: &[usize]) {
    let is_one = |line: &String| {
        let named = |place| *line == format!("place {place}");
        places.iter().any(|place| named(*place))
    };
    let line = |line: &String| match is_one(line) {
        true => repair_of(line),
        false => line.clone(),
    };
    let repair = |lines: &[String]| Ok(lines.iter().map(line).collect());
    life.home.edit_members(&repair).expect("is written down");
}

/// All bytes of what is right are 7.
fn damage(bytes: &[u8]) -> Option<String> {
    let is_damaged = bytes.iter().any(|byte| *byte < 7);
    is_damaged.then(|| "a byte below seven".to_owned())
}

/// A copy that says itself that it is damaged has no say, whoever has the same one; and one that is right is enough.
#[test]
fn a_damaged_copy_outvotes_nobody() {
    let mut rig = Rig::with_more(3);
    rig.options.damage = Some(damage);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    let right = [7; 10];
    let [two_alike, one_is_right, cut, all, elsewhere] =
        [1, 2, 3, 4, 5].map(|number| ObjectId::new(Epoch(1), number));
    for id in [two_alike, one_is_right, cut, all, elsewhere] {
        life.home.put_object(id, &right).expect("stores");
    }
    for (id, place, bytes) in [
        (two_alike, 0, &[6; 10][..]),
        (two_alike, 1, &[6; 10]),
        (one_is_right, 0, &[6; 10]),
        (one_is_right, 2, &[6; 10]),
        (cut, 0, &[6; 12]),
        (cut, 2, &[7; 9]),
        (all, 0, &[6; 10]),
        (all, 1, &[6; 10]),
        (all, 2, &[5; 10]),
        (elsewhere, 1, &[6; 10]),
    ] {
        rots(&rig, place, id, bytes);
    }
    wants_repaired(&life, &[2]);
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.state(2), "member");
    for id in [two_alike, one_is_right, cut, elsewhere] {
        assert_eq!(object_at(&rig, 2, id), right, "{id}");
    }
    assert_eq!(object_at(&rig, 2, all), [5; 10]);
    assert_eq!(
        object_at(&rig, 1, elsewhere),
        [6; 10],
        "nobody asked for it"
    );
    wants_repaired(&life, &[0, 1]);
    for _ in 0..40 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    for id in [two_alike, one_is_right, cut, elsewhere] {
        for place in 0..3 {
            assert_eq!(object_at(&rig, place, id), right, "{id} at {place}");
        }
    }
    acknowledged.is_in(&rig.look(0), "the first");
}

/// What somebody comes back to is copied from one who has it right, and not from the first one.
#[test]
fn damage_is_not_copied_to_who_comes_back() {
    let mut rig = Rig::with_more(3);
    rig.options.damage = Some(damage);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 3);
    let [damaged, cut, all] = [1, 2, 3].map(|number| ObjectId::new(Epoch(1), number));
    for id in [damaged, cut, all] {
        life.home.put_object(id, &[7; 10]).expect("stores");
    }
    for (id, place, bytes) in [
        (damaged, 0, &[6; 10][..]),
        (cut, 0, &[7; 9]),
        (all, 0, &[6; 10]),
        (all, 1, &[5; 10]),
    ] {
        rots(&rig, place, id, bytes);
    }
    rig.is_there_again(2);
    life.is_back(2);
    for id in [damaged, cut] {
        assert_eq!(object_at(&rig, 2, id), [7; 10], "{id}");
    }
    assert_eq!(object_at(&rig, 2, all), [6; 10], "it is there to be told");
}

/// Who is away keeps nobody else from being compared; and nobody is left out whom the others need.
#[test]
fn whoever_is_there_is_compared_and_only_if_the_others_are_enough() {
    let mut rig = Rig::with_more(5);
    rig.options.damage = Some(damage);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.wants(&[0, 1, 2, 3]);
    life.comes_to(&mut acknowledged, &[0, 1, 2, 3]);
    let id = ObjectId::new(Epoch(1), 1);
    life.home.put_object(id, &[7; 10]).expect("stores");
    for place in [0, 2] {
        rots(&rig, place, id, &[6; 10]);
    }
    rig.leave(&life, 0);
    life.append(&mut acknowledged, 1);
    // Three are left of four, and three are needed.
    wants_repaired(&life, &[0, 2]);
    let steps = |life: &Life, acknowledged: &mut Acknowledged| {
        for _ in 0..20 {
            life.home.bring_children_back();
            life.append(acknowledged, 1);
        }
    };
    steps(&life, &mut acknowledged);
    assert_eq!(life.state(2), "member", "it is needed");
    assert_eq!(object_at(&rig, 2, id), [6; 10]);
    let report = life.home.report();
    let is_told = |(_, value): &(String, String)| value.contains("too few of the others");
    assert!(report.iter().any(is_told), "{report:?}");
    let wanted = |life: &Life| {
        let members = life.home.members().expect("reads");
        let wanted = members.wanted.expect("is there");
        wanted
            .iter()
            .filter(|line| line.ends_with(" repair"))
            .count()
    };
    assert_eq!(wanted(&life), 2);
    rig.is_there_again(0);
    steps(&life, &mut acknowledged);
    steps(&life, &mut acknowledged);
    assert_eq!(wanted(&life), 0);
    for place in 0..4 {
        assert_eq!(object_at(&rig, place, id), [7; 10], "at {place}");
        assert_eq!(life.state(place), "member");
    }
    acknowledged.is_in(&rig.look(2), "the repaired one");
}

/// A change that could not begin goes first as soon as it can, and what is to be compared afterwards.
#[test]
fn a_change_that_could_not_begin_does_not_wait_for_a_repair() {
    let mut rig = Rig::with_more(5);
    rig.options.damage = Some(damage);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.wants(&[0, 1, 2, 3]);
    life.comes_to(&mut acknowledged, &[0, 1, 2, 3]);
    let id = ObjectId::new(Epoch(1), 1);
    life.home.put_object(id, &[7; 10]).expect("stores");
    rots(&rig, 0, id, &[6; 10]);
    // One is gone for good, and one is away: three are needed of four, and two of three would be.
    rig.leave(&life, 3);
    life.append(&mut acknowledged, 1);
    life.wants(&[0, 1, 2]);
    wants_repaired(&life, &[0]);
    rig.leave(&life, 2);
    let generation = life.home.inner.children[2]
        .home()
        .expect("it was there")
        .generation;
    life.home
        .inner
        .leave_out(2, generation, "it is away".to_owned());
    for _ in 0..20 {
        life.home.bring_children_back();
    }
    assert_eq!(object_at(&rig, 0, id), [6; 10], "it is needed");
    rig.is_there_again(2);
    for _ in 0..40 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    let members = life.home.members().expect("reads");
    let urls = members.members.iter().map(|(url, _)| url.as_str());
    assert_eq!(urls.collect::<Vec<_>>(), ["place 0", "place 1", "place 2"]);
    assert_eq!(object_at(&rig, 0, id), [7; 10]);
    assert_eq!(
        members.wanted.expect("is there"),
        ["place 0", "place 1", "place 2"],
        "nothing is left to be done"
    );
}

/// The copy that is looked at, those of three others, and what it is to have instead.
type Case<'c> = (&'c [u8], [&'c [u8]; 3], Option<&'c [u8]>);

/// Copies of one object: what the one that is looked at is to have instead.
#[test]
fn which_copy_is_better() {
    let mut rig = Rig::with_more(5);
    rig.options.damage = Some(damage);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.wants(&[0, 1, 2, 3]);
    life.comes_to(&mut acknowledged, &[0, 1, 2, 3]);
    let right = [7; 10].as_slice();
    let cut = [7; 9].as_slice();
    let empty = [].as_slice();
    let bad = [6; 10].as_slice();
    let long = [6; 12].as_slice();
    let other = [8; 10].as_slice();
    let cases: [Case<'_>; 15] = [
        (right, [right, right, right], None),
        (right, [cut, cut, right], None),
        (right, [cut, cut, cut], None),
        (right, [bad, bad, bad], None),
        (right, [empty, empty, cut], None),
        (cut, [cut, cut, right], Some(right)),
        (cut, [cut, bad, cut], None),
        (bad, [bad, bad, right], Some(right)),
        (bad, [cut, bad, bad], None),
        (bad, [cut, right, empty], Some(right)),
        (bad, [bad, bad, bad], None),
        (long, [right, cut, right], Some(right)),
        (other, [right, bad, right], Some(right)),
        (other, [right, right, other], None),
        (other, [right, bad, bad], None),
    ];
    for (number, (own, others, better)) in cases.into_iter().enumerate() {
        let id = ObjectId::new(Epoch(1), number as u32);
        life.home.put_object(id, own).expect("stores");
        for (place, bytes) in [1, 2, 3].into_iter().zip(others) {
            rots(&rig, place, id, bytes);
        }
        let longest = others.iter().map(|copy| copy.len()).max();
        let longest = longest.max(Some(own.len())).expect("some") as u64;
        let inner = &life.home.inner;
        let found = inner.better_copy(Some(own), &[1, 2, 3], (id, longest));
        assert_eq!(found.expect("all answer").as_deref(), better, "{number}");
    }
    // Of what cannot be read it is known how long it was; and who does not answer may have it right.
    let id = ObjectId::new(Epoch(1), 100);
    life.home.put_object(id, cut).expect("stores");
    let inner = &life.home.inner;
    let found = |own, longest| inner.better_copy(own, &[1], (id, longest));
    assert_eq!(found(None, 10).expect("it answers"), None);
    assert_eq!(found(None, 9).expect("it answers").as_deref(), Some(cut));
    rig.leave(&life, 1);
    assert!(found(Some(bad), 10).is_err());
    assert_eq!(found(Some(right), 10).expect("it is right"), None);
    // Two others agree on another good one: who does not answer may have the same as this one.
    let id = ObjectId::new(Epoch(1), 101);
    life.home.put_object(id, right).expect("stores");
    let found = |own| inner.better_copy(Some(own), &[1, 2, 3], (id, 10));
    assert!(found(other).is_err());
    assert_eq!(found(bad).expect("two agree").as_deref(), Some(right));
}
