//! What a server does before a log is opened: it looks at everything that can be wrong without one, and takes its
//! sockets. What fails here does not cost a recovery.

use crate::config::{self, Config};
use crate::logging::start_logging;
use crate::open::Failure;
use crate::sockets::{self, Sockets};
use crate::spawner::Spawner;
use crate::{EXIT_FAILURE, EXIT_USAGE, descriptors, fail};
use logstead_env::{Env, LocalSocketDescriptors};
use logstead_wire::hba::{ClientAuthConfig, ConnType, HbaLine};
use logstead_wire::tls::Tls;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tracing::{info, warn};

/// Where clients come in.
pub(crate) struct Listeners {
    pub(crate) listener: std::net::TcpListener,
    pub(crate) local: Sockets,
    pub(crate) metrics: Option<std::net::TcpListener>,
}

/// What is there before a log is opened.
pub(crate) struct Preparation {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) listening: Listeners,
    pub(crate) access: Arc<ClientAuthConfig>,
    /// Clients beyond the most that there may be, to be told so.
    pub(crate) spare: usize,
    /// How this process was started.
    pub(crate) spawner: Spawner,
}

/// Sockets that another process has listened on until now.
#[derive(Default)]
pub(crate) struct InheritedListeners {
    pub(crate) clients: Option<std::net::TcpListener>,
    pub(crate) metrics: Option<std::net::TcpListener>,
    pub(crate) local: Vec<LocalSocketDescriptors>,
}

/// What was looked at before a socket is taken.
pub(crate) struct StartupChecks {
    pub(crate) env: Env,
    access: Arc<ClientAuthConfig>,
    /// Clients beyond the most that there may be, to be told so.
    spare: usize,
    /// Files that may be open, if that is known.
    open_files: Option<u64>,
    spawner: Spawner,
}

/// Looks at everything that can be wrong before a log is opened, but for sockets.
pub(crate) fn checked(config: &mut Config) -> Result<StartupChecks, Failure> {
    start_logging(&config.log_level, config.log_json);
    if !config.not_settings.is_empty() {
        warn!(
            "not settings, and not used: {} (\"logstead serve --help\" lists the settings)",
            config.not_settings.join(", ")
        );
    }
    let spawner = Spawner::new();
    let env = Env::real();
    let open_files = logstead_env::raise_open_files_limit();
    let open_files_max = open_files.as_ref().ok().copied();
    let spare =
        descriptors::share_out(config, open_files).map_err(|error| (EXIT_FAILURE, error))?;
    // Read before the log is opened: what is wrong with them should not cost a recovery.
    let access = access(config).map_err(|error| (EXIT_USAGE, error))?;
    Ok(StartupChecks {
        env,
        access: Arc::new(access),
        spare,
        open_files: open_files_max,
        spawner,
    })
}

/// Looks at everything that can be wrong before a log is opened, and takes the sockets.
pub(crate) fn prepare(mut config: Config) -> Result<Preparation, ExitCode> {
    let prepared = checked(&mut config).and_then(|checked| {
        // Bound before the log is opened: a port in use should not cost a recovery.
        Preparation::new(config, checked, InheritedListeners::default())
    });
    prepared.map_err(|(code, message)| fail(code, &message))
}

impl Preparation {
    /// Takes the sockets that are not inherited.
    pub(crate) fn new(
        mut config: Config,
        checks: StartupChecks,
        inherited: InheritedListeners,
    ) -> Result<Preparation, Failure> {
        let StartupChecks {
            env,
            access,
            spare,
            open_files,
            spawner,
        } = checks;
        let cannot_listen = |error: io::Error| (EXIT_FAILURE, format!("cannot listen: {error}"));
        let listener = match inherited.clients {
            Some(listener) => listener,
            None => logstead_env::listen(config.listen).map_err(|error| {
                let what = format!("cannot listen on {}: {error}", config.listen);
                (EXIT_FAILURE, what)
            })?,
        };
        let address = listener.local_addr().map_err(cannot_listen)?;
        sockets::report_settings(&mut config, address, open_files);
        let metrics = match (config.metrics_listen, inherited.metrics) {
            (None, _) => None,
            (Some(_), Some(metrics)) => Some(metrics),
            (Some(address), None) => {
                let metrics = logstead_env::listen(address).map_err(|error| {
                    let what = format!("cannot listen for metrics_listen: {error}");
                    (EXIT_FAILURE, what)
                });
                Some(metrics?)
            }
        };
        let now_us = env.clock.now_micros_since_2000();
        let local = Sockets::open(&mut config, address.port(), now_us, inherited.local);
        let local = local.map_err(|error| (EXIT_FAILURE, error))?;
        Ok(Preparation {
            config,
            env,
            listening: Listeners {
                listener,
                local,
                metrics,
            },
            access,
            spare,
            spawner,
        })
    }

    /// The process that listened on the inherited sockets of the file system is gone.
    pub(crate) fn own_local_sockets(&mut self) {
        let now_us = self.env.clock.now_micros_since_2000();
        self.listening.local.own(&self.config, now_us);
    }
}

/// How clients are let in, as it was configured.
fn access(config: &Config) -> Result<ClientAuthConfig, String> {
    let tls = match &config.ssl {
        None => None,
        Some((certificate, key)) => {
            let (certificate, key) = certificate_and_key(certificate, key)?;
            Some(Tls::new(certificate.as_bytes(), key.as_bytes())?)
        }
    };
    let channel = |rule: &HbaLine| rule.channel == ConnType::HostSsl;
    if tls.is_none() && config.hba.iter().flatten().any(channel) {
        warn!("a rule is for encrypted connections, and ssl is off: it fits none");
    }
    Ok(ClientAuthConfig {
        rules: config.hba.clone(),
        identities: config.identities.clone(),
        timeout: config.authentication_timeout,
        tls,
    })
}

/// The text of both files; the key's must be nobody else's to read.
fn certificate_and_key(certificate: &Path, key: &Path) -> Result<(String, String), String> {
    let told = |what: &str, error: String| format!("{what}: {error}");
    let (owner, mode) = logstead_env::owner_and_mode(key)
        .map_err(|error| told("ssl_key_file", format!("{}: {error}", key.display())))?;
    // As PostgreSQL has it: the group may read a key that is root's.
    let others = if owner == 0 { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(format!(
            "ssl_key_file: {} may be read by others than its owner: chmod 0600 it",
            key.display()
        ));
    }
    let read = |what: &str, file: &Path| config::read_file(file).map_err(|e| told(what, e));
    Ok((
        read("ssl_cert_file", certificate)?,
        read("ssl_key_file", key)?,
    ))
}

/// Certificate and key are read again; connections that begin from now on are shown the new ones.
pub(crate) fn certificate_again(config: &Config, access: &ClientAuthConfig) {
    let (Some((certificate, key)), Some(tls)) = (&config.ssl, &access.tls) else {
        info!("there is no certificate to be read again");
        return;
    };
    let replaced = certificate_and_key(certificate, key)
        .and_then(|(certificate, key)| tls.replace(certificate.as_bytes(), key.as_bytes()));
    match replaced {
        Ok(()) => info!("certificate and key were read again"),
        Err(error) => warn!("certificate and key stay what they were: {error}"),
    }
}
