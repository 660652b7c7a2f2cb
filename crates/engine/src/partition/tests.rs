//! Tests of virtual partitions and instances.

use std::collections::BTreeSet;

use super::*;

/// They are in stored indexes.
#[test]
fn the_partition_of_a_key_never_changes() {
    let golden: [(&[u8], u16); 7] = [
        (b"", 0),
        (b"a", 0),
        (b"b", 3),
        (b"logstead", 63),
        (b"logstead ", 47),
        (&[0x80, 0, 0, 0, 0, 0, 0, 1], 42),
        (&[0; 100], 48),
    ];
    let found = golden.map(|(key, _)| (key, partition_of(key).0));
    assert_eq!(found, golden);
}

/// Whole numbers that follow upon each other, as SQL encodes them, are spread evenly.
#[test]
fn keys_that_follow_upon_each_other_are_spread() {
    let mut counts = [0_u32; VIRTUAL_PARTITIONS as usize];
    for key in 0..64_000_u64 {
        counts[usize::from(partition_of(&(key | 1 << 63).to_be_bytes()).0)] += 1;
    }
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(least > Some(&850) && most < Some(&1_150), "{counts:?}");
    let few: BTreeSet<u16> = (0..16_u32)
        .map(|key| partition_of(&(key | 1 << 31).to_be_bytes()).0)
        .collect();
    assert!(few.len() >= 11, "{few:?}");
}

#[test]
fn workers_and_partitions_are_divided_in_blocks() {
    for (count, workers) in [(1, 1), (1, 7), (2, 2), (3, 7), (3, 8), (64, 100)] {
        let instances = Instances::new(count, workers);
        assert_eq!(instances.count(), count);
        let mut all = Vec::new();
        for instance in (0..count as u16).map(InstanceId) {
            let own: Vec<WorkerId> = instances.workers_of(instance).collect();
            assert!(!own.is_empty(), "{instance} of {count} has no worker");
            let is_own = |worker: &WorkerId| instances.of_worker(*worker) == instance;
            assert!(own.iter().all(is_own));
            all.extend(own);
            let partitions = (0..VIRTUAL_PARTITIONS).map(PartitionId);
            let owned = partitions.filter(|p| instances.of_partition(*p) == instance);
            let share = usize::from(VIRTUAL_PARTITIONS) / count;
            assert!([share, share + 1].contains(&owned.count()));
        }
        let expected: Vec<WorkerId> = (0..workers as u16).map(WorkerId).collect();
        assert_eq!(all, expected);
    }
}

#[test]
fn there_are_no_more_instances_than_workers_or_partitions() {
    assert_eq!(Instances::new(0, 4).count(), 1);
    assert_eq!(Instances::new(9, 4).count(), 4);
    assert_eq!(Instances::new(900, 1_000).count(), 64);
}

#[test]
fn a_partition_is_given_away_and_counted() {
    let instances = Instances::new(3, 3);
    let partition = PartitionId(5);
    assert_eq!(instances.of_partition(partition), InstanceId(0));
    instances.assign(partition, InstanceId(2));
    assert_eq!(instances.of_partition(partition), InstanceId(2));
    assert_eq!(instances.of_partition(PartitionId(4)), InstanceId(0));
    instances.count_access(WorkerId(0), partition);
    instances.count_access(WorkerId(2), partition);
    instances.count_access(WorkerId(2), partition);
    assert_eq!(instances.load_of(partition), 3);
    assert_eq!(instances.load_of(PartitionId(4)), 0);
}

#[test]
fn the_instance_with_most_foreign_accesses_is_found() {
    let mut touched = InstancesTouched::default();
    for owner in [0, 2, 1, 1, 0, 2, 1, 1] {
        touched.count(InstanceId(0), InstanceId(owner));
    }
    assert_eq!((touched.local, touched.foreign), (2, 6));
    assert_eq!(touched.foreign_most, Some(InstanceId(1)));
}
