//! Side segments that nobody needs any more (T8).

use super::bench::{Bench, bench};
use logstead_home::SideSegments;
use logstead_types::{Csn, LaneId};
use logstead_wal::{EntryDependencies, SideRef};

fn finished(bench: &Bench) -> SideRef {
    let (done, told) = std::sync::mpsc::channel();
    let mut side = bench.lane.begin_side_segment().unwrap();
    side.append(vec![7; 100]);
    side.finish(Box::new(move |result| done.send(result).unwrap()));
    told.recv().unwrap().unwrap()
}

#[test]
fn t8_a_side_segment_that_is_given_up_is_gone() {
    let bench = bench();
    let (first, second) = (finished(&bench), finished(&bench));
    let room = bench.lane.room(0).unwrap();
    bench
        .lane
        .push_side(room, Csn(1), 0, &EntryDependencies::default(), &second);
    assert_eq!(
        bench.home.list_side_segments(LaneId(0)).unwrap(),
        [first.id, second.id]
    );
    bench.lane.give_up_side_segment(&first);
    assert_eq!(
        bench.home.list_side_segments(LaneId(0)).unwrap(),
        [second.id]
    );
    bench.lane.give_up_side_segment(&first);
}

/// One of an earlier epoch may belong to an entry.
#[test]
#[should_panic(expected = "a side segment of another epoch")]
fn t8_a_side_segment_of_an_earlier_epoch_is_not_given_up() {
    let bench = bench();
    let side = finished(&bench);
    let earlier = SideRef {
        id: side.id & 0xffff_ffff,
        ..side
    };
    bench.lane.give_up_side_segment(&earlier);
}
