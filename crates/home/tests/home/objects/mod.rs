//! The home in a bucket, over a bucket in memory that goes wrong as told.

mod doubts;
mod fences;
mod immutable;
mod quota;
mod reading;
mod rig;
mod room;
mod storm;
mod things;

use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{LogHome, conformance};

fn conforms(options: MemoryOptions) {
    let bucket = MemoryBucket::new(options);
    let home = LogHome::from(rig::open(&bucket));
    conformance::check(&home);
}

#[test]
fn appendable_buckets_conform() {
    conforms(MemoryOptions::appendable(5));
}

#[test]
fn buckets_that_create_in_two_steps_conform() {
    conforms(MemoryOptions {
        creates_in_two_steps: true,
        ..MemoryOptions::appendable(5)
    });
}

#[test]
fn plain_buckets_conform() {
    conforms(MemoryOptions::plain());
}
