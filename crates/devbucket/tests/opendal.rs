//! The development bucket through the client library that the server uses for real clouds.

use logstead_devbucket::{DevBucket, DevBucketOptions};
use logstead_env::Env;
use opendal::services::S3;
use opendal::{ErrorKind, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

const DIRECTORY: &str = "b--z1--x-s3";

fn start() -> DevBucket {
    let mut options = DevBucketOptions::new("AKEXAMPLE", "a secret");
    options.buckets = vec![DIRECTORY.to_owned(), "general".to_owned()];
    options.parts_max = 3;
    DevBucket::start(options, &Env::real()).expect("starts")
}

fn client(of: &DevBucket, bucket: &str) -> Operator {
    // Another test may have installed it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder = S3::default()
        .endpoint(&of.endpoint())
        .bucket(bucket)
        .root("/prefix/")
        .region("us-east-1")
        .access_key_id("AKEXAMPLE")
        .secret_access_key("a secret")
        .disable_config_load()
        .disable_ec2_metadata();
    let http = reqwest::Client::builder().build().expect("an HTTP client");
    let transport = HttpTransporter::new(ReqwestTransport::new(http));
    let context = OperationContext::new().with_http_transport(transport);
    let client = Operator::new(builder).expect("a client");
    client.with_context(context)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(test);
}

#[test]
fn appends_through_a_client_are_appends() {
    let server = start();
    run(async {
        let client = client(&server, DIRECTORY);
        for piece in ["one,", "two,", "three"] {
            let written = client.write_with("lane/0", piece).append(true).await;
            written.expect("appends");
        }
        let read = client.read("lane/0").await.expect("reads").to_vec();
        assert_eq!(read, b"one,two,three");
        let full = client.write_with("lane/0", "four").append(true).await;
        let full = full.expect_err("three parts at most");
        assert!(full.to_string().contains("TooManyParts"), "{full}");
        let part = client.read_with("lane/0").range(4..7).await;
        assert_eq!(part.expect("reads").to_vec(), b"two");
    });
}

#[test]
fn conditions_and_listings_through_a_client() {
    let server = start();
    run(async {
        for name in [DIRECTORY, "general"] {
            let client = client(&server, name);
            let put = client.write_with("m", "one").if_not_exists(true).await;
            let tag = put.expect("puts").etag().expect("a tag").to_owned();
            let again = client.write_with("m", "two").if_not_exists(true).await;
            let kind = again.expect_err("is there").kind();
            assert_eq!(kind, ErrorKind::ConditionNotMatch);
            let swapped = client.write_with("m", "two").if_match(&tag).await;
            swapped.expect("swaps");
            let stale = client.write_with("m", "three").if_match(&tag).await;
            let kind = stale.expect_err("stale").kind();
            assert_eq!(kind, ErrorKind::ConditionNotMatch);
            for number in 0..5 {
                let name = format!("lane/{number}");
                client.write(&name, "x").await.expect("writes");
            }
            let listed = client.list_with("lane/").recursive(true).await;
            let listed = listed.expect("lists");
            let mut names: Vec<&str> = listed.iter().map(|entry| entry.path()).collect();
            names.sort_unstable();
            assert_eq!(names, ["lane/0", "lane/1", "lane/2", "lane/3", "lane/4"]);
            client.delete("lane/0").await.expect("deletes");
            client
                .delete("lane/0")
                .await
                .expect("a missing one is fine");
            let kind = client.stat("lane/0").await.expect_err("gone").kind();
            assert_eq!(kind, ErrorKind::NotFound);
        }
    });
}
