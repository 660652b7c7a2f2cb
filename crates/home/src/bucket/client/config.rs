//! From a URL, the environment and the cloud's files to a client: what the clouds' own tools read, in their order.
//!
//! | | S3 | Azure |
//! |---|---|---|
//! | endpoint | option; `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`; `endpoint_url` in the profile's `services` section, then in the profile | option; the connection string; `AZURE_STORAGE_ENDPOINT`; the account's own |
//! | region, account | option; `AWS_REGION`, `AWS_DEFAULT_REGION`; the profile's `region`; `us-east-1` if the endpoint is not Amazon's | option; the connection string; `AZURE_STORAGE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` |
//! | credentials | the client library's chain: `AWS_ACCESS_KEY_ID`…, the files' profile (keys, roles, single sign-on, processes), web identity, container and machine roles | the connection string; `AZURE_STORAGE_KEY`, `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_TOKEN`; then the library's chain: service principal, workload identity, managed identity |
//!
//! Does not: talk to anybody.

use crate::bucket::url::{self, BucketUrl, Service};
use crate::{HomeError, bucket};
use logstead_env::Env;
use opendal::Operator;
use opendal::services;
use std::path::{Path, PathBuf};

/// Reads a variable of the environment; empty is unset.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a client is made of.
pub(super) struct ClientConfig {
    /// The library's, without a transport yet.
    pub(super) operator: Operator,
    /// The server's URL.
    pub(super) endpoint: String,
}

const AMAZON: &str = "https://s3.amazonaws.com";

fn is_amazon(endpoint: &str) -> bool {
    let url = reqwest::Url::parse(endpoint).ok();
    url.and_then(|url| url.host_str().map(str::to_owned))
        .is_some_and(|host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

/// True if the server is this machine.
pub(super) fn is_loopback(endpoint: &str) -> bool {
    let url = reqwest::Url::parse(endpoint).ok();
    url.is_some_and(|url| match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.starts_with("127."),
        None => false,
    })
}

/// Values of an AWS configuration file: of sections, of keys in them, and of keys under a key.
struct Ini(Vec<(String, String, String)>);

impl Ini {
    /// A nested key is named `outer.inner`.
    fn parse(text: &str) -> Ini {
        let mut values = Vec::new();
        let (mut section, mut outer) = (String::new(), String::new());
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = trimmed.strip_prefix('[') {
                let name = name.split(']').next().unwrap_or_default();
                section = name.split_whitespace().collect::<Vec<_>>().join(" ");
                outer.clear();
                continue;
            }
            let Some((key, value)) = trimmed.split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            let key = if line.starts_with(char::is_whitespace) && !outer.is_empty() {
                format!("{outer}.{key}")
            } else {
                outer.clear();
                if value.is_empty() {
                    outer.clone_from(&key);
                }
                key
            };
            values.push((section.clone(), key, value.to_owned()));
        }
        Ini(values)
    }

    fn get(&self, section: &str, key: &str) -> Option<String> {
        let mut found = self.0.iter().rev();
        let found = found.find(|(in_section, name, _)| in_section == section && name == key);
        found
            .map(|(_, _, value)| value.clone())
            .filter(|value| !value.is_empty())
    }
}

/// What the AWS files say about a profile, beyond credentials.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile {
    region: Option<String>,
    endpoint: Option<String>,
}

impl Profile {
    fn read(env: &Env, variable: Variable<'_>, profile: Option<&str>) -> Profile {
        let home = || Some(Path::new(&variable("HOME")?).join(".aws"));
        let file = |name: &str, default: &str| {
            let path = match variable(name) {
                Some(path) => PathBuf::from(path),
                None => home()?.join(default),
            };
            // A file that is not there says nothing.
            let text = env.files.read(&path).ok()?;
            Some(Ini::parse(&String::from_utf8_lossy(&text)))
        };
        let name = match profile {
            Some(name) => name.to_owned(),
            None => variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned()),
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let of_config = |key: &str| {
            let config = config.as_ref()?;
            let found = config.get(&format!("profile {name}"), key);
            found.or_else(|| config.get(&name, key))
        };
        let value = |key: &str| {
            of_config(key).or_else(|| credentials.as_ref().and_then(|file| file.get(&name, key)))
        };
        let services = of_config("services").and_then(|services| {
            let section = format!("services {services}");
            config.as_ref()?.get(&section, "s3.endpoint_url")
        });
        let ignored = |text: String| text.eq_ignore_ascii_case("true");
        let ignored = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(ignored)
            || value("ignore_configured_endpoint_urls").is_some_and(ignored);
        Profile {
            region: value("region"),
            endpoint: services
                .or_else(|| value("endpoint_url"))
                .filter(|_| !ignored),
        }
    }
}

/// The S3 settings that a URL ends up with.
#[derive(Debug, PartialEq, Eq)]
struct S3 {
    /// `None`: Amazon's own, of the region.
    endpoint: Option<String>,
    region: String,
    virtual_host: bool,
    checksum: bool,
    /// Key, secret and perhaps a session's token, if the environment has them; all else is the library's to find.
    keys: Option<(String, String, Option<String>)>,
}

impl S3 {
    fn of(url: &BucketUrl, env: &Env, variable: Variable<'_>) -> Result<S3, String> {
        let profile = Profile::read(env, variable, url.profile.as_deref());
        let ignored = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        let ignored = ignored.is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let named = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
        let from_environment = named.iter().find_map(|name| variable(name));
        let from_environment = from_environment.filter(|_| !ignored);
        let endpoint = match &url.endpoint {
            Some(endpoint) => Some(endpoint.clone()),
            None => from_environment
                .or(profile.endpoint)
                .map(|endpoint| url::endpoint(&endpoint))
                .transpose()?,
        };
        let amazon = endpoint.as_deref().is_none_or(is_amazon);
        let directory_bucket = url.bucket.ends_with("--x-s3");
        if amazon && url.service == Service::S3Express && !directory_bucket {
            return Err(format!(
                "\"{}\" is no directory bucket (their names end with --x-s3), and Amazon's other buckets have no appends: use s3://",
                url.bucket
            ));
        }
        let region = url
            .region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or(profile.region)
            .or_else(|| (!amazon).then(|| "us-east-1".to_owned()))
            .ok_or("the region is missing: set AWS_REGION, or give ?region=NAME")?;
        let plain_http = endpoint
            .as_deref()
            .is_some_and(|it| it.starts_with("http://"));
        Ok(S3 {
            virtual_host: url
                .virtual_host
                .unwrap_or(amazon && !url.bucket.contains('.')),
            // TLS checks every byte on its way already.
            checksum: url.checksum.unwrap_or(plain_http),
            // A profile that was asked for comes before the environment's keys.
            keys: match (
                variable("AWS_ACCESS_KEY_ID"),
                variable("AWS_SECRET_ACCESS_KEY"),
            ) {
                (Some(key), Some(secret)) if url.profile.is_none() => {
                    Some((key, secret, variable("AWS_SESSION_TOKEN")))
                }
                _ => None,
            },
            region,
            endpoint,
        })
    }

    fn parts(self, url: &BucketUrl) -> opendal::Result<ClientConfig> {
        let endpoint = self.endpoint.unwrap_or_else(|| AMAZON.to_owned());
        let mut builder = services::S3::default()
            .bucket(&url.bucket)
            .root(&format!("/{}", url.prefix))
            .endpoint(&endpoint)
            .region(&self.region);
        if let Some(profile) = &url.profile {
            builder = builder.profile(profile);
        }
        if let Some((key, secret, token)) = &self.keys {
            builder = builder.access_key_id(key).secret_access_key(secret);
            if let Some(token) = token {
                builder = builder.session_token(token);
            }
        }
        if self.virtual_host {
            builder = builder.enable_virtual_host_style();
        }
        if self.checksum {
            builder = builder.checksum_algorithm("crc32c");
        }
        let endpoint = if endpoint == AMAZON {
            format!("https://s3.{}.amazonaws.com", self.region)
        } else {
            endpoint
        };
        Ok(ClientConfig {
            operator: Operator::new(builder)?,
            endpoint,
        })
    }
}

/// The Azure settings that a URL ends up with.
struct Azure {
    endpoint: String,
    account: Option<String>,
    key: Option<String>,
    sas: Option<String>,
}

impl Azure {
    fn of(url: &BucketUrl, variable: Variable<'_>) -> Result<Azure, String> {
        let connection = variable("AZURE_STORAGE_CONNECTION_STRING").unwrap_or_default();
        // The string's parts, without its credentials in any message.
        let part = |name: &str| {
            let mut parts = connection.split(';').filter_map(|it| it.split_once('='));
            let found = parts.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
        let development =
            part("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if development {
            return Err("UseDevelopmentStorage is not supported: give the emulator's BlobEndpoint, AccountName and AccountKey".into());
        }
        let account = url
            .account
            .clone()
            .or_else(|| part("AccountName"))
            .or_else(|| first(&["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"]));
        let configured = url
            .endpoint
            .clone()
            .or_else(|| part("BlobEndpoint"))
            .or_else(|| {
                let scheme = part("DefaultEndpointsProtocol").unwrap_or_else(|| "https".into());
                let suffix = part("EndpointSuffix")?;
                Some(format!("{scheme}://{}.blob.{suffix}", account.as_ref()?))
            })
            .or_else(|| {
                first(&[
                    "AZURE_STORAGE_ENDPOINT",
                    "AZURE_STORAGE_BLOB_ENDPOINT",
                    "AZURE_STORAGE_SERVICE_ENDPOINT",
                ])
            });
        let endpoint = match (configured, &account) {
            (Some(endpoint), _) => url::endpoint(&endpoint)?,
            (None, Some(account)) => {
                url::endpoint(&format!("https://{account}.blob.core.windows.net"))?
            }
            (None, None) => {
                return Err("the storage account is missing: set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT, or give ?account=NAME".into());
            }
        };
        Ok(Azure {
            endpoint,
            account,
            key: part("AccountKey").or_else(|| {
                first(&[
                    "AZURE_STORAGE_KEY",
                    "AZURE_STORAGE_ACCOUNT_KEY",
                    "AZURE_STORAGE_ACCESS_KEY",
                ])
            }),
            sas: part("SharedAccessSignature")
                .or_else(|| first(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"])),
        })
    }

    fn parts(self, url: &BucketUrl) -> opendal::Result<ClientConfig> {
        let mut builder = services::Azblob::default()
            .container(&url.bucket)
            .root(&format!("/{}", url.prefix))
            .endpoint(&self.endpoint);
        if let Some(account) = &self.account {
            builder = builder.account_name(account);
        }
        if let Some(key) = &self.key {
            builder = builder.account_key(key);
        }
        if let Some(sas) = &self.sas {
            builder = builder.sas_token(sas.trim_start_matches('?'));
        }
        Ok(ClientConfig {
            operator: Operator::new(builder)?,
            endpoint: self.endpoint,
        })
    }
}

/// Puts together what a bucket's URL means here.
pub(super) fn parts(
    whole: &str,
    url: &BucketUrl,
    env: &Env,
    variable: Variable<'_>,
) -> Result<ClientConfig, HomeError> {
    let wrong = |why: String| bucket::url::wrong(whole, why);
    let parts = match url.service {
        Service::S3 | Service::S3Express => S3::of(url, env, variable).map_err(wrong)?.parts(url),
        Service::Azure => Azure::of(url, variable).map_err(wrong)?.parts(url),
    };
    // The library names what is wrong; it is not told the credentials that it finds by itself.
    parts.map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn env_with(files: &[(&str, &str)]) -> Env {
        let (env, _) = Env::simulated(1);
        for (path, text) in files {
            let path = Path::new(path);
            let dir = path.parent().expect("a directory");
            env.files.create_dir(dir).ok();
            let mode = logstead_env::OpenMode::buffered(logstead_env::Access::CreateNew);
            let file = env.files.open(path, mode).expect("a file");
            file.write_all_at(0, text.as_bytes()).expect("written");
        }
        env
    }

    fn s3(url: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> Result<S3, String> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
        let url = BucketUrl::parse(url).expect("a URL");
        S3::of(&url, &env_with(files), &variable)
    }

    #[test]
    fn endpoints_and_regions_come_from_where_they_usually_are() {
        let file = "[default]\nregion = eu-central-1\n[profile minio]\nservices = here\nendpoint_url = http://wrong:1\n\
            [services here]\nec2 =\n  endpoint_url = http://wrong:2\ns3 =\n  endpoint_url = http://minio:9000/\n";
        let files = [("/home/me/.aws/config", file)];
        let home = ("HOME", "/home/me");

        let aws = s3("s3://logs", &[home], &files).expect("settings");
        assert_eq!((aws.endpoint, aws.region.as_str()), (None, "eu-central-1"));
        assert!(aws.virtual_host && !aws.checksum);

        let minio = s3("s3://logs", &[home, ("AWS_PROFILE", "minio")], &files).expect("settings");
        assert_eq!(minio.endpoint.as_deref(), Some("http://minio:9000"));
        assert_eq!(minio.region, "us-east-1");
        assert!(!minio.virtual_host && minio.checksum);

        let by_option = s3("s3://logs?profile=minio", &[home], &files).expect("settings");
        assert_eq!(by_option, minio);

        let variables = [
            home,
            ("AWS_PROFILE", "minio"),
            ("AWS_ENDPOINT_URL", "http://all"),
            ("AWS_ENDPOINT_URL_S3", "https://s3only"),
            ("AWS_DEFAULT_REGION", "r2"),
            ("AWS_REGION", "r1"),
        ];
        let named = s3("s3://logs", &variables, &files).expect("settings");
        assert_eq!(named.endpoint.as_deref(), Some("https://s3only"));
        assert_eq!(named.region, "r1");
        let options = "s3://logs?endpoint=http://own:1&region=r0&virtual_host=true&checksum=none";
        let own = s3(options, &variables, &files).expect("settings");
        assert_eq!(own.endpoint.as_deref(), Some("http://own:1"));
        assert_eq!(own.region, "r0");
        assert!(own.virtual_host && !own.checksum);

        let ignoring = [
            home,
            ("AWS_PROFILE", "minio"),
            ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"),
            ("AWS_REGION", "r"),
        ];
        assert_eq!(
            s3("s3://logs", &ignoring, &files)
                .expect("settings")
                .endpoint,
            None
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = s3("s3://logs", &[], &[]).expect_err("no region");
        assert!(error.contains("AWS_REGION"), "{error}");
        let error = s3("s3express://logs", &[("AWS_REGION", "r")], &[]).expect_err("no appends");
        assert!(error.contains("--x-s3"), "{error}");
        let amazon = [
            ("AWS_REGION", "r"),
            ("AWS_ENDPOINT_URL", "https://s3.r.amazonaws.com"),
        ];
        s3("s3express://logs", &amazon, &[]).expect_err("no appends");
        s3("s3express://logs?endpoint=http://127.0.0.1:9", &[], &[])
            .expect("a server of one's own");
    }

    fn azure(url: &str, variables: &[(&str, &str)]) -> Result<Azure, String> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
        Azure::of(&BucketUrl::parse(url).expect("a URL"), &variable)
    }

    #[test]
    fn azure_accounts_come_from_where_they_usually_are() {
        let account = [
            ("AZURE_STORAGE_ACCOUNT", "acc"),
            ("AZURE_STORAGE_KEY", "a2V5"),
        ];
        let plain = azure("azure://logs", &account).expect("settings");
        assert_eq!(plain.endpoint, "https://acc.blob.core.windows.net");
        assert_eq!(plain.key.as_deref(), Some("a2V5"));

        let connection = "DefaultEndpointsProtocol=http;AccountName=dev;AccountKey=a2V5PT0=;BlobEndpoint=http://127.0.0.1:1/dev;";
        let connection = [("AZURE_STORAGE_CONNECTION_STRING", connection), account[0]];
        let emulator = azure("azure://logs", &connection).expect("settings");
        assert_eq!(emulator.endpoint, "http://127.0.0.1:1/dev");
        assert_eq!(emulator.account.as_deref(), Some("dev"));
        assert_eq!(emulator.key.as_deref(), Some("a2V5PT0="));

        let china = "AccountName=x;AccountKey=a2V5;EndpointSuffix=core.chinacloudapi.cn";
        let china = azure(
            "azure://logs",
            &[("AZURE_STORAGE_CONNECTION_STRING", china)],
        );
        assert_eq!(
            china.expect("settings").endpoint,
            "https://x.blob.core.chinacloudapi.cn"
        );

        let sas = [("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x")];
        let sas = azure("azure://logs?account=acc", &sas).expect("settings");
        assert_eq!(sas.sas.as_deref(), Some("?sv=1&sig=x"));
        let error = azure("azure://logs", &[]).err().expect("no account");
        assert!(error.contains("AZURE_STORAGE_ACCOUNT"), "{error}");
    }
}
