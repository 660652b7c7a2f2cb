//! Tries a bucket: the probe that a server runs before it keeps a log there, and what requests cost in time.
//!
//! `bucket URL [APPENDS [BYTES]]`, with the environment that the server would have.

use bytes::Bytes;
use logstead_env::Env;
use logstead_home::bucket::{self, Bucket, probe};
use std::error::Error;

#[expect(clippy::disallowed_methods, reason = "no file of ours")]
fn cpu_micros() -> u64 {
    // User and system time in clock ticks are the 14th and 15th field; the 2nd is a name in parentheses.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
    let ticks: u64 = fields
        .skip(12)
        .take(2)
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    ticks * 10_000
}

async fn run(bucket: &dyn Bucket, env: &Env, count: u64, len: usize) -> Result<(), Box<dyn Error>> {
    probe::probe(bucket, env.random.u64())
        .await
        .map_err(|why| why.to_string())?;
    println!("probed: {:?}", bucket.usage());
    let name = format!("probe/{:016x}/speed", env.random.u64());
    let bytes = Bytes::from(vec![b'x'; len]);
    let (started, cpu) = (env.clock.monotonic(), cpu_micros());
    if bucket.appends().is_some() {
        bucket.create(&name, bytes.clone()).await?;
        for index in 1..count {
            bucket
                .append(&name, index * len as u64, bytes.clone())
                .await?;
        }
        bucket.delete(&name).await?;
    } else {
        for index in 0..count {
            bucket
                .put_if_absent(&format!("{name}{index}"), bytes.clone())
                .await?;
        }
        for entry in bucket.list("probe/").await? {
            bucket.delete(&entry.name).await?;
        }
    }
    let (took, cpu) = (env.clock.monotonic().since(started), cpu_micros() - cpu);
    println!(
        "{count} writes of {len} bytes: {:?} and {} us of CPU each; {:?}",
        took / u32::try_from(count)?,
        cpu / count,
        bucket.usage()
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().ok_or("bucket URL [APPENDS [BYTES]]")?;
    let count = args.next().map_or(Ok(100), |text| text.parse())?;
    let len = args.next().map_or(Ok(4096), |text| text.parse())?;
    let env = Env::real();
    let bucket = bucket::open(&url, &env)?;
    println!("{} ({})", bucket.describe(), bucket.provider());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(bucket.as_ref(), &env, count, len))
}
