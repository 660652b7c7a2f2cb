//! The steps of the scaling model, for `bench/scaling.py`, which puts them together.
//!
//! - `run WORKLOAD WORKERS INSTANCES CROSS WARMUP MEASURED`: what is traced; CROSS is the share of YCSB's transactions
//!   that lead to other instances, in percent;
//! - `time WORKLOAD WORKERS INSTANCES CROSS WARMUP MEASURED`: the same with larger tables and all threads at once, and
//!   how long it took;
//! - `transfer`: nanoseconds that a line takes from one core of this machine to another;
//! - `read RECORDING MARKS < TRACE`: keeps of a trace what the model needs; MARKS is the address of the marks in the
//!   program's file;
//! - `instructions RECORDING...`: the addresses that sites are wanted for;
//! - `document DIRECTORY TEXT CHART`: the figures of all that is in the directory. Recordings are called
//!   `WORKLOAD.DESIGN.WORKERS.json` (`divided_10`: 10 % of the transactions lead to other instances), free runs
//!   `WORKLOAD.WORKERS.time`, the transfer `transfer`, sites `sites`.

use std::io::{BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use logstead_bench::scaling::{
    Recording, ScalingInputs, Sites, TracedCell, TracedOptions, TracedWorkload, announcement,
    figures, own_transfer_ns, read_trace, run,
};
use logstead_env::{Access, Env, OpenMode};

// As in the server: which memory is whose depends on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = match arguments.as_slice() {
        ["run", workload, numbers @ ..] => traced(workload, numbers),
        ["time", workload, numbers @ ..] => timed(workload, numbers),
        ["transfer"] => transfer(),
        ["read", file, marks] => read(file, marks),
        ["instructions", files @ ..] => instructions(files),
        ["document", directory, text, chart] => document(directory, text, chart),
        _ => Err("run, time, transfer, read, instructions or document is expected".to_owned()),
    };
    match said {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _pipe_may_be_closed = writeln!(std::io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) {
    let mut out = std::io::stdout();
    let _pipe_may_be_closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn number(text: Option<&&str>) -> Result<u64, String> {
    let text = text.ok_or("a number is missing")?;
    text.parse().map_err(|_| format!("{text}: a number"))
}

fn options(name: &str, numbers: &[&str], is_free: bool) -> Result<TracedOptions, String> {
    // What is traced is loaded under the tracer. What is timed should not fit into a core's cache.
    let ycsb = |read_ratio| TracedWorkload::Ycsb {
        read_ratio,
        rows_per_worker: if is_free { 200_000 } else { 64 },
    };
    let workload = match name {
        "ycsb-a" => ycsb(0.5),
        "ycsb-c" => ycsb(1.0),
        "tpcc" => TracedWorkload::Tpcc {
            items: if is_free { 10_000 } else { 50 },
            customers: if is_free { 300 } else { 2 },
        },
        _ => return Err(format!("{name}: ycsb-a, ycsb-c or tpcc is expected")),
    };
    Ok(TracedOptions {
        workload,
        workers: number(numbers.first())? as usize,
        instances: number(numbers.get(1))? as usize,
        cross_instance: number(numbers.get(2))? as f64 / 100.0,
        sessions: 8,
        warmup: number(numbers.get(3))?,
        measured: number(numbers.get(4))?,
        is_free,
        seed: 1,
    })
}

fn traced(name: &str, numbers: &[&str]) -> Result<String, String> {
    let options = options(name, numbers, false)?;
    print(&announcement());
    run(&options).map_err(|error| error.to_string())?;
    Ok(String::new())
}

fn timed(name: &str, numbers: &[&str]) -> Result<String, String> {
    let options = options(name, numbers, true)?;
    let times = run(&options).map_err(|error| error.to_string())?;
    serde_json::to_string(&times).map_err(|error| error.to_string())
}

fn transfer() -> Result<String, String> {
    let ns = own_transfer_ns(&Env::real()).map_err(|error| error.to_string())?;
    Ok(format!("{ns:.1}\n"))
}

fn file_text(path: &str) -> Result<String, String> {
    let bytes = Env::real().files.read(Path::new(path));
    let bytes = bytes.map_err(|error| format!("{path}: {error}"))?;
    String::from_utf8(bytes).map_err(|error| format!("{path}: {error}"))
}

fn recording(path: &str) -> Result<Recording, String> {
    serde_json::from_str(&file_text(path)?).map_err(|error| format!("{path}: {error}"))
}

fn read(file: &str, marks: &str) -> Result<String, String> {
    let in_file = u64::from_str_radix(marks, 16).map_err(|_| format!("{marks}: an address"))?;
    let trace = BufReader::with_capacity(1 << 20, std::io::stdin());
    let recording = read_trace(trace, |marks| marks.address.wrapping_sub(in_file))
        .map_err(|error| error.to_string())?;
    let json = serde_json::to_vec(&recording).map_err(|error| error.to_string())?;
    write(file, &json)?;
    Ok(format!(
        "{} transactions, {} accesses to {} lines\n",
        recording.transactions,
        recording.accesses.len(),
        recording.lines.len()
    ))
}

fn instructions(files: &[&str]) -> Result<String, String> {
    let mut all = std::collections::BTreeSet::new();
    for file in files {
        all.extend(recording(file)?.instructions);
    }
    Ok(all
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect())
}

fn write(path: &str, bytes: &[u8]) -> Result<(), String> {
    Env::real()
        .files
        .open(Path::new(path), OpenMode::buffered(Access::Replace))
        .and_then(|out| out.write_all_at(0, bytes))
        .map_err(|error| format!("{path}: {error}"))
}

fn document(directory: &str, text: &str, chart: &str) -> Result<String, String> {
    let files = Env::real().files.list(Path::new(directory));
    let mut files = files.map_err(|error| format!("{directory}: {error}"))?;
    files.sort();
    let mut inputs = ScalingInputs::default();
    for file in &files {
        let path = format!("{directory}/{file}");
        let parts: Vec<&str> = file.split('.').collect();
        match parts.as_slice() {
            [workload, design, _, "json"] => inputs.cells.push(TracedCell {
                workload: (*workload).to_owned(),
                design: match design.split_once('_') {
                    Some((design, cross)) => format!("{design}, {cross} % across"),
                    None => (*design).to_owned(),
                },
                recording: recording(&path)?,
            }),
            [workload, workers, "time"] => {
                let times = serde_json::from_str(&file_text(&path)?);
                let times = times.map_err(|error| format!("{path}: {error}"))?;
                let workers = workers.parse().map_err(|_| format!("{path}: workers"))?;
                let known = inputs.times.entry((*workload).to_owned()).or_default();
                known.insert(workers, times);
            }
            ["transfer"] => {
                let ns = file_text(&path)?;
                inputs.own_transfer_ns = ns.trim().parse().map_err(|_| format!("{path}: {ns}"))?;
            }
            ["sites"] => inputs.sites = Sites::read(&file_text(&path)?),
            _ => {}
        }
    }
    let made = figures(&inputs)?;
    write(text, made.text.as_bytes())?;
    write(chart, made.svg.as_bytes())?;
    Ok(made.text)
}
