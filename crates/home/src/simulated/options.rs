//! What a simulated home is told, and how a URL says it.

use super::faults::{FAULTS, FaultRates};
use super::model::{MODELS, Model};
use super::store::ByteStorage;
use crate::HomeError;
use std::path::PathBuf;

/// How a simulated home is made.
#[derive(Clone, Debug)]
pub struct SimulatedOptions {
    /// The service.
    pub model: Model,
    /// Decides latencies, faults, and what crashes leave.
    pub seed: u64,
    /// All latencies are multiplied by this.
    pub scale: f64,
    /// How often requests go wrong.
    pub faults: FaultRates,
    /// Where the bytes are kept.
    pub keep: ByteStorage,
}

impl SimulatedOptions {
    /// A service without faults.
    pub fn new(model: Model, seed: u64) -> SimulatedOptions {
        SimulatedOptions {
            model,
            seed,
            scale: 1.0,
            faults: FaultRates::default(),
            keep: ByteStorage::default(),
        }
    }

    /// What stands behind the question mark of `sim://?model=s3express&seed=1`:
    ///
    /// | option | meaning |
    /// |---|---|
    /// | `model` | `s3standard`, `s3express`, `gp3`, `io2` or `nvme`; required |
    /// | `seed` | a number; 1 |
    /// | `scale` | multiplies all latencies; 1 |
    /// | `dir` | keep the bytes in this directory, so that a server can be started again |
    /// | `keep` | `memory` (default) or `nothing`: count the bytes of lanes and drop them |
    /// | `lost_reply`, `delay`, `duplicate`, `transient`, `stall`, `bit_flip`, `outage` | probability per request; 0 |
    pub fn parse(query: &str) -> Result<SimulatedOptions, HomeError> {
        let wrong = |what: String| HomeError::Url {
            url: format!("sim://?{query}"),
            what,
        };
        let names = || MODELS.map(|model| model.name).join(", ");
        let mut model = None;
        let mut options = SimulatedOptions::new(MODELS[0].clone(), 1);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(format!("option \"{pair}\" has no value")))?;
            let number = |low: f64, high: f64| {
                let number = value.parse::<f64>().ok();
                let inside = number.filter(|number| (low..=high).contains(number));
                inside.ok_or_else(|| {
                    wrong(format!(
                        "{name} must be a number from {low} to {high}, not \"{value}\""
                    ))
                })
            };
            match name {
                "model" => {
                    let known = Model::named(value);
                    let why = || format!("there is no model \"{value}\"; there are {}", names());
                    model = Some(known.ok_or_else(|| wrong(why()))?);
                }
                "seed" => {
                    let why = |_| wrong(format!("seed must be a whole number, not \"{value}\""));
                    options.seed = value.parse().map_err(why)?;
                }
                "scale" => options.scale = number(0.0, 1e6)?,
                "dir" => options.keep = ByteStorage::Directory(PathBuf::from(value)),
                "keep" => match value {
                    "memory" => options.keep = ByteStorage::Memory,
                    "nothing" => options.keep = ByteStorage::Nothing,
                    _ => {
                        return Err(wrong(format!(
                            "keep must be memory or nothing, not \"{value}\""
                        )));
                    }
                },
                _ => {
                    let fault = FAULTS.iter().find(|(_, known)| *known == name);
                    let Some(&(fault, _)) = fault else {
                        return Err(wrong(format!("there is no option \"{name}\"")));
                    };
                    options.faults = options.faults.with(fault, number(0.0, 1.0)?);
                }
            }
        }
        let why = || format!("model is missing; there are {}", names());
        options.model = model.ok_or_else(|| wrong(why()))?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Fault;

    #[test]
    fn urls_say_what_is_simulated() {
        let query = "model=gp3&seed=9&scale=0.25&dir=/x/y&lost_reply=0.5&stall=0.1";
        let options = SimulatedOptions::parse(query).expect("valid");
        assert_eq!(options.model.name, "gp3");
        assert_eq!((options.seed, options.scale), (9, 0.25));
        assert_eq!(options.keep, ByteStorage::Directory("/x/y".into()));
        let faults = FaultRates::default()
            .with(Fault::LostReply, 0.5)
            .with(Fault::Stall, 0.1);
        assert_eq!(options.faults, faults);
        for (query, part) in [
            ("", "model is missing; there are s3standard"),
            ("model=tape", "no model \"tape\""),
            ("model=gp3&sped=1", "no option \"sped\""),
            ("model=gp3&seed=x", "seed must be a whole number"),
            ("model=gp3&seed", "\"seed\" has no value"),
            ("model=gp3&transient=1.5", "from 0 to 1"),
            ("model=gp3&keep=all", "keep must be"),
        ] {
            let error = SimulatedOptions::parse(query).expect_err(query).to_string();
            assert!(error.contains(part), "{query}: {error}");
        }
    }
}
