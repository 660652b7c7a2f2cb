//! The figures of docs/internals/scaling.md: what was counted, what the model makes of it, and the chart.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::machine::{Machine, Prices};
use super::profile::Profile;
use super::recording::Recording;
use super::simulation::{SimulatedRun, simulate_sited};
use super::sites::{Sited, Sites, name};
use super::traced_run::RunTimes;
use crate::report::chart_of_curves;

/// Cores of the modelled machines, as far as they were traced.
const CORES_PER_COMPLEX: u16 = 8;
const CORES_PER_SOCKET: u16 = 64;
/// Structures named in the tables of what cores wait for.
const WAITS_SHOWN: usize = 6;
/// The design that others are compared with.
const UNDIVIDED: &str = "undivided";
/// Places named in the tables of the lines that cost most.
const PLACES_SHOWN: usize = 12;
/// What takes a smaller share of the cores' time is not named.
const SHARE_SHOWN: f64 = 0.01;
/// What is less is left out of the tables of counts, per transaction.
const COUNT_SHOWN: f64 = 0.02;

/// A traced run.
pub struct TracedCell {
    /// The workload's name.
    pub workload: String,
    /// What the engine was: undivided, or divided in a certain way.
    pub design: String,
    /// What came of it.
    pub recording: Recording,
}

/// Everything that was measured.
#[derive(Default)]
pub struct ScalingInputs {
    /// Traced runs.
    pub cells: Vec<TracedCell>,
    /// What their instructions belong to.
    pub sites: Sites,
    /// Free runs by workload and number of workers.
    pub times: BTreeMap<String, BTreeMap<u16, RunTimes>>,
    /// What a line costs between the two cores of the machine that measured.
    pub own_transfer_ns: f64,
}

/// What the document gets.
pub struct ScalingFigures {
    /// Tables.
    pub text: String,
    /// The chart.
    pub svg: String,
}

/// A cell with its sites, and how long its instructions take.
struct Cell<'i> {
    workload: &'i str,
    design: &'i str,
    cores: u16,
    sited: Sited,
    profile: Profile,
    instruction_ns: f64,
}

impl Cell<'_> {
    fn run(&self, prices: Prices) -> SimulatedRun {
        let machine = Machine {
            cores_per_complex: CORES_PER_COMPLEX,
            cores_per_socket: CORES_PER_SOCKET,
            prices,
            instruction_ns: self.instruction_ns,
        };
        simulate_sited(&self.sited, &machine)
    }

    /// How many cores that share nothing would do as much.
    fn worth(&self, run: &SimulatedRun) -> f64 {
        run.per_second() * self.profile.instructions * self.instruction_ns / 1e9
    }
}

/// Makes them. A workload without a traced run of one worker and its time is refused.
pub fn figures(inputs: &ScalingInputs) -> Result<ScalingFigures, String> {
    let mut cells = Vec::new();
    for cell in &inputs.cells {
        let profile = Profile::of(&cell.recording, &inputs.sites);
        cells.push(Cell {
            workload: &cell.workload,
            design: &cell.design,
            cores: cell.recording.workers,
            sited: Sited::new(&cell.recording, &inputs.sites),
            profile,
            instruction_ns: instruction_ns(inputs, cell)?,
        });
    }
    cells.sort_by_key(|cell| {
        let is_divided = cell.design != UNDIVIDED;
        (cell.workload, is_divided, cell.design, cell.cores)
    });
    let mut text = String::new();
    totals(&mut text, &cells);
    by_structure(&mut text, &cells);
    let svg = results(&mut text, &cells, inputs);
    waits(&mut text, &cells);
    hot_lines(&mut text, &cells);
    sensitivity(&mut text, &cells);
    checks(&mut text, &cells, inputs);
    Ok(ScalingFigures { text, svg })
}

/// Nanoseconds of an instruction where one worker runs alone.
fn instruction_ns(inputs: &ScalingInputs, cell: &TracedCell) -> Result<f64, String> {
    let workload = &cell.workload;
    let alone = inputs.cells.iter().find(|other| {
        other.workload == *workload && other.design == UNDIVIDED && other.recording.workers == 1
    });
    let alone = alone.ok_or_else(|| format!("{workload}: no traced run of one worker"))?;
    let times = inputs.times.get(workload).and_then(|times| times.get(&1));
    let times = times.ok_or_else(|| format!("{workload}: no free run of one worker"))?;
    let recording = &alone.recording;
    let instructions = recording.total_instructions as f64 / recording.transactions.max(1) as f64;
    Ok(times.processor_ns() / instructions.max(1.0))
}

fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    text.push('|');
    for cell in cells {
        let _infallible = write!(text, " {cell} |");
    }
    text.push('\n');
}

fn head(text: &mut String, title: &str, columns: &[String]) {
    let _infallible = write!(text, "\n{title}\n\n");
    row(text, columns.iter().cloned());
    row(text, columns.iter().map(|_| "---".to_owned()));
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn short(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// Transfers and misses of all structures together.
fn totals(text: &mut String, cells: &[Cell]) {
    let columns = strings(&[
        "workload",
        "engine",
        "workers",
        "transactions traced",
        "instructions",
        "transfers",
        "misses",
        "instructions under locks",
    ]);
    head(text, "**Counted, per transaction**:", &columns);
    for cell in cells {
        let structures = &cell.profile.structures;
        let sum =
            |of: fn(&super::StructureCounts) -> f64| 0.0 + structures.iter().map(of).sum::<f64>();
        row(
            text,
            [
                cell.workload.to_owned(),
                cell.design.to_owned(),
                cell.cores.to_string(),
                cell.profile.transactions.to_string(),
                format!("{:.0}", cell.profile.instructions),
                short(sum(|s| s.transfers)),
                short(sum(|s| s.misses)),
                format!("{:.0}", sum(|s| s.sections * s.section_instructions)),
            ],
        );
    }
}

/// The largest traced runs, structure by structure.
fn by_structure(text: &mut String, cells: &[Cell]) {
    for cell in detailed(cells) {
        let title = format!(
            "**{}, {}, {} workers, by structure** (per transaction):",
            cell.workload, cell.design, cell.cores
        );
        let columns = strings(&[
            "structure",
            "transfers",
            "misses",
            "critical sections",
            "instructions of one",
            "most often at",
        ]);
        head(text, &title, &columns);
        for found in &cell.profile.structures {
            if found.transfers + found.misses + found.sections < COUNT_SHOWN {
                continue;
            }
            let places = found.places.iter().take(2);
            let places: Vec<String> = places
                .map(|(place, count)| format!("`{place}` {}", short(*count)))
                .collect();
            row(
                text,
                [
                    found.name.to_owned(),
                    short(found.transfers),
                    short(found.misses),
                    short(found.sections),
                    if found.sections < COUNT_SHOWN {
                        String::new()
                    } else {
                        format!("{:.0}", found.section_instructions)
                    },
                    places.join(", "),
                ],
            );
        }
    }
}

/// Of those the undivided ones, and of the divided ones the first, which has the fewest transactions that cross.
fn detailed<'c, 'i>(cells: &'c [Cell<'i>]) -> Vec<&'c Cell<'i>> {
    let mut found = largest(cells);
    let mut seen = Vec::new();
    found.retain(|cell| {
        let key = (cell.workload, cell.design == UNDIVIDED);
        let is_first = !seen.contains(&key);
        seen.push(key);
        is_first
    });
    found
}

/// Of each workload and design the cell with the most workers.
fn largest<'c, 'i>(cells: &'c [Cell<'i>]) -> Vec<&'c Cell<'i>> {
    let mut found: Vec<&Cell> = Vec::new();
    for cell in cells {
        match found.last_mut() {
            Some(last) if (last.workload, last.design) == (cell.workload, cell.design) => {
                *last = cell;
            }
            _ => found.push(cell),
        }
    }
    found
}

fn results(text: &mut String, cells: &[Cell], inputs: &ScalingInputs) -> String {
    let columns = strings(&[
        "workload",
        "engine",
        "cores",
        "transactions/s",
        "worth so many cores",
        "of ideal",
    ]);
    head(text, "**The model, prices of Milan**:", &columns);
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut most: f64 = 1.0;
    for cell in cells {
        let times = cell.worth(&cell.run(Prices::MILAN));
        let one = inputs
            .times
            .get(cell.workload)
            .and_then(|times| times.get(&1));
        let one_ns = one.map_or(1.0, RunTimes::processor_ns);
        row(
            text,
            [
                cell.workload.to_owned(),
                cell.design.to_owned(),
                cell.cores.to_string(),
                thousands(times * 1e9 / one_ns),
                short(times),
                format!("{:.0} %", 100.0 * times / f64::from(cell.cores)),
            ],
        );
        let name = format!("{}, {}", cell.workload, cell.design);
        if curves.last().is_none_or(|(last, _)| *last != name) {
            curves.push((name, Vec::new()));
        }
        if let Some((_, points)) = curves.last_mut() {
            points.push((f64::from(cell.cores), times));
        }
        most = most.max(f64::from(cell.cores));
    }
    curves.insert(0, ("ideal".to_owned(), vec![(1.0, 1.0), (most, most)]));
    let marks = [1.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0];
    chart_of_curves(
        "A modelled machine does as much as so many cores that share nothing",
        "cores",
        &marks.map(|cores| (cores, cores.to_string())),
        curves,
    )
}

fn thousands(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v => format!("{:.0} k", v / 1e3),
    }
}

/// Where the cores' time goes on the largest machine.
fn waits(text: &mut String, cells: &[Cell]) {
    let columns = strings(&["workload", "engine", "cores", "instructions", "waits for"]);
    head(text, "**Where a core's time goes**:", &columns);
    for cell in largest(cells) {
        let run = cell.run(Prices::MILAN);
        let all = run.ns * f64::from(cell.cores);
        let mut named: Vec<(f64, String)> = Vec::new();
        for (of, what) in [(&run.line_ns, "lines"), (&run.lock_ns, "locks")] {
            for (structure, ns) in of.iter().enumerate() {
                named.push((*ns, format!("{what} of {}", name(structure))));
            }
        }
        named.sort_by(|a, b| b.0.total_cmp(&a.0));
        let named: Vec<String> = named
            .iter()
            .take(WAITS_SHOWN)
            .filter(|(ns, _)| *ns / all >= SHARE_SHOWN)
            .map(|(ns, name)| format!("{name} {:.0} %", 100.0 * ns / all))
            .collect();
        row(
            text,
            [
                cell.workload.to_owned(),
                cell.design.to_owned(),
                cell.cores.to_string(),
                format!("{:.0} %", 100.0 * run.busy_ns / all),
                named.join(", "),
            ],
        );
    }
}

/// What is in the way, one after the other: the lines that cores wait for most, by the place in the code that touches
/// them most often; then those that they wait for most without these; and so on.
fn hot_lines(text: &mut String, cells: &[Cell]) {
    for cell in detailed(cells) {
        let sited = &cell.sited;
        let place = |line: usize| {
            sited.sites[sited.instructions[line] as usize]
                .place
                .as_str()
        };
        let mut run = cell.run(Prices::MILAN);
        let mut gone: Vec<&str> = Vec::new();
        while gone.len() < PLACES_SHOWN {
            // Time, how many lines, and the one of them that costs most.
            let mut places: BTreeMap<&str, (f64, u32, usize)> = BTreeMap::new();
            for (line, ns) in run.by_line_ns.iter().enumerate() {
                let found = places.entry(place(line)).or_insert((0.0, 0, line));
                let is_more = *ns > run.by_line_ns[found.2];
                *found = (
                    found.0 + ns,
                    found.1 + 1,
                    if is_more { line } else { found.2 },
                );
            }
            let most = places.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
            let share = |ns: f64| ns / (run.ns * f64::from(cell.cores)).max(1e-9);
            let Some((at, (ns, lines, line))) =
                most.filter(|(_, (ns, ..))| share(*ns) >= SHARE_SHOWN)
            else {
                break;
            };
            if gone.is_empty() {
                let title = format!(
                    "**{}, {}, {} cores: what is in the way**, one after the other (worth {} cores with all of it):",
                    cell.workload,
                    cell.design,
                    cell.cores,
                    short(cell.worth(&run))
                );
                let columns = strings(&[
                    "structure",
                    "touched most at",
                    "lines",
                    "share of the cores' time then",
                    "worth so many cores without it and those above",
                ]);
                head(text, &title, &columns);
            }
            gone.push(at);
            let rest = Cell {
                sited: sited.without(|line| gone.contains(&place(line))),
                profile: cell.profile.clone(),
                ..*cell
            };
            let share = share(ns);
            run = rest.run(Prices::MILAN);
            row(
                text,
                [
                    name(sited.structures[line]).to_owned(),
                    format!("`{at}`"),
                    lines.to_string(),
                    format!("{:.1} %", 100.0 * share),
                    short(rest.worth(&run)),
                ],
            );
        }
    }
}

fn sensitivity(text: &mut String, cells: &[Cell]) {
    let variants = [
        ("Milan", Prices::MILAN),
        ("halved", Prices::MILAN.times(0.5)),
        ("doubled", Prices::MILAN.times(2.0)),
        ("Ice Lake", Prices::ICE_LAKE),
    ];
    let mut columns = strings(&["workload", "engine", "cores"]);
    columns.extend(variants.iter().map(|(name, _)| (*name).to_owned()));
    head(
        text,
        "**The same with other prices**, worth so many cores:",
        &columns,
    );
    for cell in largest(cells) {
        let runs = variants.map(|(_, prices)| short(cell.worth(&cell.run(prices))));
        let names = [
            cell.workload.to_owned(),
            cell.design.to_owned(),
            cell.cores.to_string(),
        ];
        row(text, names.into_iter().chain(runs));
    }
}

/// The model of two cores beside what two cores did.
fn checks(text: &mut String, cells: &[Cell], inputs: &ScalingInputs) {
    let columns = strings(&[
        "workload",
        "one worker measured, us",
        "two workers measured, us each",
        "modelled, us each",
        "the model is off by",
    ]);
    let title = format!(
        "**Checked with two cores here**, where a line takes {:.0} ns from one core to the other (processor time of a transaction):",
        inputs.own_transfer_ns
    );
    head(text, &title, &columns);
    let own = Prices {
        complex_ns: inputs.own_transfer_ns,
        socket_ns: inputs.own_transfer_ns,
        remote_ns: inputs.own_transfer_ns,
    };
    for cell in cells {
        let times = inputs.times.get(cell.workload);
        let (Some(one), Some(two)) = (
            times.and_then(|times| times.get(&1)),
            times.and_then(|times| times.get(&2)),
        ) else {
            continue;
        };
        if cell.cores != 2 || cell.design != UNDIVIDED {
            continue;
        }
        let modelled = one.processor_ns() * 2.0 / cell.worth(&cell.run(own));
        let measured = two.processor_ns();
        row(
            text,
            [
                cell.workload.to_owned(),
                short(one.processor_ns() / 1e3),
                short(measured / 1e3),
                short(modelled / 1e3),
                format!("{:+.0} %", 100.0 * (modelled / measured - 1.0)),
            ],
        );
    }
}
