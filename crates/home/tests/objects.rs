//! The home in a bucket, over a bucket in memory.

use logstead_env::Env;
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::{LogHome, ObjectHome, ObjectOptions, conformance};
use std::sync::Arc;
use std::time::Duration;

fn options() -> ObjectOptions {
    ObjectOptions {
        appends_per_segment_max: 8,
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        ..ObjectOptions::default()
    }
}

fn open(bucket: &MemoryBucket) -> Arc<dyn LogHome> {
    let home = ObjectHome::open(Arc::new(bucket.clone()), &Env::real(), options());
    Arc::new(home.expect("opens"))
}

#[test]
fn appendable_buckets_conform() {
    for creates_in_two_steps in [false, true] {
        let options = MemoryOptions {
            creates_in_two_steps,
            ..MemoryOptions::appendable(5)
        };
        conformance::check(&open(&MemoryBucket::new(options)));
    }
}

#[test]
fn plain_buckets_conform() {
    conformance::check(&open(&MemoryBucket::new(MemoryOptions::plain())));
}
