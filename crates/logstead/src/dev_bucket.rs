//! `logstead dev-bucket`: an S3 and S3 Express bucket on this machine, for development and tests.

use crate::{EXIT_FAILURE, EXIT_USAGE, fail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use logstead_devbucket::{DevBucket, DevBucketOptions, Latency, PARTS_MAX};
use logstead_env::{Env, SimRandom};
use logstead_home::simulated::{MODELS, Model, ServiceKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The bucket that is there unless others are named: a directory bucket, as its name says.
const BUCKET: &str = "logstead--dev-az1--x-s3";
/// Known to everybody: it keeps out only who did not mean this bucket.
const ACCESS_KEY: &str = "LOGSTEADDEV";
const SECRET_KEY: &str = "logstead-dev-bucket";

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("dev-bucket")
        .about("Serves S3, with S3 Express's appends, from this machine: for development and tests")
        .after_help(
            "Buckets whose names end with --x-s3 are directory buckets (S3 Express: appends, listings in no order), as on AWS.\n\
             Stop it with Ctrl-C or SIGTERM.",
        )
        .arg(
            option("listen", "ADDRESS", "Where it listens; port 0 is any free one")
                .default_value("127.0.0.1:9000")
                .value_parser(value_parser!(SocketAddr)),
        )
        .arg(
            option("dir", "DIR", "Keeps the objects in this directory, durably [default: in memory]")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option("bucket", "NAME", "A bucket to begin with; may be repeated")
                .action(ArgAction::Append)
                .default_value(BUCKET),
        )
        .arg(option(
            "latency",
            "MODEL",
            "Lets requests take as long as this service's: s3express or s3standard",
        ))
        .arg(option("access-key", "KEY", "Who may ask").default_value(ACCESS_KEY))
        .arg(
            option("secret-key", "SECRET", "The secret of that key")
                .default_value(SECRET_KEY),
        )
        .arg(
            option(
                "parts-max",
                "NUMBER",
                "Appends that an object takes, the first one included; fewer for tests",
            )
            .value_parser(value_parser!(u32).range(1..=PARTS_MAX as i64)),
        )
        .arg(
            option(
                "quota",
                "BYTES",
                "Bytes that the objects of a bucket may have together: what would be more is refused",
            )
            .value_parser(value_parser!(u64)),
        )
}

/// A service's latencies.
struct Modelled {
    model: Model,
    random: SimRandom,
}

impl Latency for Modelled {
    fn write(&self, bytes: usize) -> Duration {
        self.model.sample(self.model.append, bytes, &self.random)
    }

    fn read(&self, bytes: usize) -> Duration {
        self.model.sample(self.model.read, bytes, &self.random)
    }
}

fn modelled(name: &str, env: &Env) -> Result<Arc<dyn Latency>, String> {
    let objects = || {
        MODELS
            .iter()
            .filter(|model| model.kind == ServiceKind::Objects)
    };
    let known = Model::named(name).filter(|model| model.kind == ServiceKind::Objects);
    let model = known.ok_or_else(|| {
        let names: Vec<&str> = objects().map(|model| model.name).collect();
        format!(
            "there is no model \"{name}\" of a bucket; there are {}",
            names.join(", ")
        )
    })?;
    let random = SimRandom::new(env.random.u64());
    Ok(Arc::new(Modelled { model, random }))
}

pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    let env = Env::real();
    let text = |name: &str| {
        let given = arguments.get_one::<String>(name);
        given.cloned().unwrap_or_default()
    };
    let (access_key, secret_key) = (text("access-key"), text("secret-key"));
    let mut options = DevBucketOptions::new(&access_key, &secret_key);
    if let Some(listen) = arguments.get_one::<SocketAddr>("listen") {
        options.listen = *listen;
    }
    options.dir = arguments.get_one::<PathBuf>("dir").cloned();
    let buckets = arguments.get_many::<String>("bucket");
    options.buckets = buckets.into_iter().flatten().cloned().collect();
    if let Some(number) = arguments.get_one::<u32>("parts-max") {
        options.parts_max = *number as usize;
    }
    options.quota_bytes = arguments.get_one::<u64>("quota").copied();
    if let Some(name) = arguments.get_one::<String>("latency") {
        match modelled(name, &env) {
            Ok(latency) => options.latency = Some(latency),
            Err(error) => return fail(EXIT_USAGE, &error),
        }
    }
    if !options.listen.ip().is_loopback() {
        return fail(
            EXIT_USAGE,
            &format!(
                "{} is not a loopback address: a development bucket is for this machine only",
                options.listen
            ),
        );
    }
    if let Err(error) = logstead_env::raise_open_files_limit() {
        return fail(
            EXIT_FAILURE,
            &format!("cannot raise the limit of open files: {error}"),
        );
    }
    crate::logging::start_logging("warn", false);
    let buckets = options.buckets.clone();
    let bucket = match DevBucket::start(options, &env) {
        Ok(bucket) => bucket,
        Err(error) => return fail(EXIT_FAILURE, &format!("cannot start the bucket: {error}")),
    };
    match crate::signals::say_and_wait(&announced(&bucket, &buckets, &access_key, &secret_key)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_FAILURE, &format!("cannot wait for signals: {error}")),
    }
}

/// Where it is, and how to use it: lines that a shell can read.
fn announced(bucket: &DevBucket, buckets: &[String], access_key: &str, secret_key: &str) -> String {
    let mut text = format!(
        "# dev-bucket listening on {}\n\
         export AWS_ENDPOINT_URL={}\n\
         export AWS_REGION=us-east-1\n\
         export AWS_ACCESS_KEY_ID={access_key}\n\
         export AWS_SECRET_ACCESS_KEY={secret_key}\n",
        bucket.address(),
        bucket.endpoint(),
    );
    for name in buckets {
        let scheme = match name.ends_with("--x-s3") {
            true => "s3express",
            false => "s3",
        };
        text += &format!("# logstead serve --home {scheme}://{name}/log\n");
    }
    text
}
