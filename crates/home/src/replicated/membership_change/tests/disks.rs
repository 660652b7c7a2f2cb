//! Repairs of members that can replace an object in one step, and tell their disks from what they have in memory.

use super::super::super::catch_up::tests::{Acknowledged, Rig};
use super::super::list::repair_of;
use crate::{
    HomeError, ImmutableObjects, MemoryHome, ObjectId, ObjectReader, ObjectRepair, SeenCopy,
};
use logstead_types::Epoch;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A disk under a home: what it has damaged nobody sees who reads from memory.
struct Disk {
    memory: MemoryHome,
    damaged: Mutex<BTreeMap<ObjectId, Option<Vec<u8>>>>,
    /// It is of a version that can.
    replaces: AtomicBool,
    replaced: AtomicUsize,
    /// Another server has mended it before this one does.
    overtaken: AtomicBool,
}

impl Disk {
    fn under(memory: &MemoryHome) -> Arc<Disk> {
        Arc::new(Disk {
            memory: memory.clone(),
            damaged: Mutex::default(),
            replaces: AtomicBool::new(true),
            replaced: AtomicUsize::new(0),
            overtaken: AtomicBool::new(false),
        })
    }
}

impl ObjectRepair for Disk {
    fn read_object_from_disk(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        match self.damaged.lock().get(&id) {
            None => self.memory.read_object(id, offset, into),
            Some(None) => {
                let why = std::io::Error::other("a sector cannot be read");
                Err(HomeError::io("read an object", why))
            }
            Some(Some(bytes)) => Ok(crate::immutable::copy_from(bytes, offset, into)),
        }
    }

    fn can_replace_objects(&self) -> Result<bool, HomeError> {
        Ok(self.replaces.load(Ordering::SeqCst))
    }

    fn replace_object(
        &self,
        epoch: Epoch,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
    ) -> Result<(), HomeError> {
        assert_eq!(epoch, Epoch(1));
        if self.overtaken.swap(false, Ordering::SeqCst) {
            self.damaged.lock().remove(&id);
        }
        let mut damaged = self.damaged.lock();
        let there = damaged.get(&id).cloned();
        let Some(there) = there else {
            return Err(HomeError::Conflict(format!("object {id}")));
        };
        assert_eq!(seen, SeenCopy::of(there.as_deref()));
        self.replaced.fetch_add(1, Ordering::SeqCst);
        damaged.remove(&id);
        self.memory.remove_object(id)?;
        self.memory.put_object(id, bytes)
    }
}

#[test]
fn a_repair_looks_at_disks_and_replaces_in_one_step() {
    for overtaken in [false, true] {
        let mut rig = Rig::with_more(3);
        let disks: Vec<Arc<Disk>> = rig
            .places
            .iter()
            .map(|of| Disk::under(&of.memory))
            .collect();
        for (place, disk) in rig.places.iter_mut().zip(&disks) {
            place.disk = Some(Arc::clone(disk) as _);
        }
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        life.append(&mut acknowledged, 3);
        let objects = [1, 2, 3].map(|number| ObjectId::new(Epoch(1), number));
        for id in objects {
            life.home.put_object(id, &[7; 10]).expect("stores");
        }
        // Also where the first of the others has damaged it, and another one not.
        disks[2]
            .damaged
            .lock()
            .insert(objects[0], Some(vec![8; 10]));
        disks[2].damaged.lock().insert(objects[1], None);
        disks[0]
            .damaged
            .lock()
            .insert(objects[2], Some(vec![9; 10]));
        disks[2].overtaken.store(overtaken, Ordering::SeqCst);
        let repair = |lines: &[String]| {
            let line = |line: &String| match line == "place 2" {
                true => repair_of(line),
                false => line.clone(),
            };
            Ok(lines.iter().map(line).collect())
        };
        life.home.edit_members(&repair).expect("is written down");
        for _ in 0..40 {
            life.home.bring_children_back();
            life.append(&mut acknowledged, 1);
        }
        assert_eq!(life.state(2), "member");
        assert!(disks[2].damaged.lock().is_empty());
        let replaced = disks[2].replaced.load(Ordering::SeqCst);
        assert_eq!(replaced, 2 - usize::from(overtaken));
        assert_eq!(disks[0].damaged.lock().len(), 1, "nobody asked for that");
        acknowledged.is_in(&rig.look(2), "the repaired one");
        let list = life.home.members().expect("reads");
        let wanted = list.wanted.expect("is there");
        assert_eq!(wanted, ["place 0", "place 1", "place 2"]);
    }
}

/// One of an earlier version is given another copy as ever.
#[test]
fn who_cannot_replace_an_object_stores_it_anew() {
    let mut rig = Rig::with_more(3);
    let disk = Disk::under(&rig.places[2].memory);
    disk.replaces.store(false, Ordering::SeqCst);
    rig.places[2].disk = Some(Arc::clone(&disk) as _);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    let object = ObjectId::new(Epoch(1), 1);
    life.home.put_object(object, &[7; 10]).expect("stores");
    let damaged = rig.look(2);
    damaged.objects.remove_object(object).expect("removes");
    damaged.objects.put_object(object, &[8; 9]).expect("stores");
    let repair = |lines: &[String]| {
        let line = |line: &String| match line == "place 2" {
            true => repair_of(line),
            false => line.clone(),
        };
        Ok(lines.iter().map(line).collect())
    };
    life.home.edit_members(&repair).expect("is written down");
    for _ in 0..20 {
        life.home.bring_children_back();
        life.append(&mut acknowledged, 1);
    }
    assert_eq!(life.state(2), "member");
    assert_eq!(disk.replaced.load(Ordering::SeqCst), 0);
    let mut bytes = [0; 20];
    let count = rig.look(2).objects.read_object(object, 0, &mut bytes);
    assert_eq!(&bytes[..count.expect("reads")], &[7; 10]);
}
