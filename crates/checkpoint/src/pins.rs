//! Pins: checkpoints that stay until somebody says otherwise. Restore points made by hand, and those that branches
//! begin at.
//!
//! All of a home's pins are one small named thing, so that every home has them: it is changed by compare and swap, also
//! by who does not run the server. A text of lines, sorted, the last one the CRC-32C of what is before it:
//!
//! ```text
//! logstead pins 1
//! point before%20the%20upgrade object 000000020000000c crc 1234abcd csn 130 taken-at 812345678000000
//! branch trial state made database 00000000075bcd15 object 0000000200000012 crc 00c0ffee csn 150 taken-at 812345679000000
//! crc 89abcdef
//! ```
//!
//! # Pins that are lost
//!
//! A home has no pins before the first is made, and keeps the list, if only an empty one, from then on. Each record
//! says whether there was a list when it was published ([`CheckpointRecord::has_pins`]). So a list that is missing
//! later is an error ([`PinsError::Lost`]), not a list of nothing: else the next collection would remove all that was
//! pinned.
//!
//! # Why nothing is removed that is pinned (T8)
//!
//! Who pins does it in this order ([`pin_point`]): 1. choose a record that the manifest leads to; 2. add the pin; 3.
//! read the manifest again: if it does not lead to the record any more, choose another. Who removes does it in this
//! order ([`Publisher`](crate::Publisher)): 1. publish a record that does not keep the one to be dropped; 2. read the
//! pins; 3. remove what no record names that is newest, kept or pinned. If step 3 of the first still saw the record,
//! then step 1 of the second came after it, so its step 2 sees the pin.
//!
//! Does not: know what a branch is made of, or remove anything.

use crate::error::{CheckpointError, PINS_FORMAT, PinsError};
use crate::record::{CheckpointRecord, RetainedRecord};
use logstead_home::{HomeError, LogHome, NamedValues, ObjectId, Tag};
use logstead_types::{Csn, DatabaseId};
use logstead_wal::manifest::Manifest;
use std::fmt::Write as _;

/// The name of the thing that holds them.
pub const PINS: &str = "pins";
/// How often a change that others were faster with is tried again.
const TRIES: u32 = 20;
/// How often pins that do not decode are read again: an answer that something in between cut short looks the same.
const LOOKS: u32 = 4;
/// The longest name, in bytes.
pub const PIN_NAME_BYTES_MAX: usize = 63;

/// How far a branch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BranchState {
    /// Being made: what lies in its home is not whole.
    Making,
    /// It can be served.
    Made,
    /// Being dropped: what lies in its home may be gone.
    Dropping,
}

impl BranchState {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            BranchState::Making => "making",
            BranchState::Made => "made",
            BranchState::Dropping => "dropping",
        }
    }

    fn of(name: &str) -> Option<BranchState> {
        [
            BranchState::Making,
            BranchState::Made,
            BranchState::Dropping,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }
}

/// Why a record is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinKind {
    /// A restore point made by hand.
    Point,
    /// A branch begins there.
    Branch {
        /// How far it has come.
        state: BranchState,
        /// Its own number, which also names its home.
        database: DatabaseId,
    },
}

/// One pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// What for.
    pub kind: PinKind,
    /// Its name: points and branches have names of their own.
    pub name: String,
    /// The pinned record.
    pub record: RetainedRecord,
}

impl Pin {
    fn key(&self) -> (bool, &str) {
        (matches!(self.kind, PinKind::Branch { .. }), &self.name)
    }
}

/// The pins of a home, points first, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(Vec<Pin>);

fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte > b' ' && byte < 0x7f && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

fn unescaped(word: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

impl Pins {
    /// Every one.
    pub fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.0.iter()
    }

    /// The restore point of that name.
    pub fn point(&self, name: &str) -> Option<&Pin> {
        self.find((false, name))
    }

    /// The branch of that name.
    pub fn branch(&self, name: &str) -> Option<&Pin> {
        self.find((true, name))
    }

    fn find(&self, key: (bool, &str)) -> Option<&Pin> {
        let found = self.0.binary_search_by(|pin| pin.key().cmp(&key));
        found.ok().map(|at| &self.0[at])
    }

    /// Adds a pin, in the place of one of its kind and name.
    pub fn put(&mut self, pin: Pin) {
        match self.0.binary_search_by(|there| there.key().cmp(&pin.key())) {
            Ok(at) => self.0[at] = pin,
            Err(at) => self.0.insert(at, pin),
        }
    }

    /// Takes the restore point of that name away. False: there is none.
    pub fn remove_point(&mut self, name: &str) -> bool {
        self.remove((false, name))
    }

    /// The same for a branch.
    pub fn remove_branch(&mut self, name: &str) -> bool {
        self.remove((true, name))
    }

    fn remove(&mut self, key: (bool, &str)) -> bool {
        let found = self.0.binary_search_by(|pin| pin.key().cmp(&key));
        found.is_ok_and(|at| {
            self.0.remove(at);
            true
        })
    }

    /// Names points, adds those that are pinned by hand only, and sorts all of them by CSN.
    pub(crate) fn name(&self, points: &mut Vec<RecoveryPoint>) {
        for pin in self.iter().filter(|pin| pin.kind == PinKind::Point) {
            let found = points
                .iter_mut()
                .find(|point| point.record.object == pin.record.object);
            match found {
                Some(point) => point.names.push(pin.name.clone()),
                None => points.push(RecoveryPoint {
                    names: vec![pin.name.clone()],
                    ..RecoveryPoint::unnamed(pin.record)
                }),
            }
        }
        points.sort_by_key(|point| (point.record.csn, point.record.object));
    }

    /// The pins' text.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = format!("logstead pins {PINS_FORMAT}\n");
        for Pin { kind, name, record } in &self.0 {
            let name = escaped(name);
            // Writing to a String does not fail.
            let _ = match kind {
                PinKind::Point => write!(out, "point {name}"),
                PinKind::Branch { state, database } => write!(
                    out,
                    "branch {name} state {} database {:016x}",
                    state.name(),
                    database.get()
                ),
            };
            let _ = writeln!(
                out,
                " object {} crc {:08x} csn {} taken-at {}",
                record.object, record.crc, record.csn, record.taken_at_micros
            );
        }
        let crc = crc32c::crc32c(out.as_bytes());
        let _ = writeln!(out, "crc {crc:08x}");
        out.into_bytes()
    }

    /// Reads the pins' text, checking its checksum.
    pub fn decode(bytes: &[u8]) -> Result<Pins, PinsError> {
        let text = std::str::from_utf8(bytes).map_err(|_| PinsError::Damaged("no text"))?;
        let (first, rest) = text
            .split_once('\n')
            .ok_or(PinsError::Damaged("no line in it"))?;
        let version = first.strip_prefix("logstead pins ");
        let version = version.and_then(|version| version.parse::<u64>().ok());
        match version.ok_or(PinsError::Damaged("they do not begin as pins do"))? {
            PINS_FORMAT => {}
            newer if newer > PINS_FORMAT => return Err(PinsError::Newer(newer)),
            _ => return Err(PinsError::Damaged("unknown format version")),
        }
        let end = text.rfind("crc ").unwrap_or(0);
        if text[end..] != format!("crc {:08x}\n", crc32c::crc32c(&bytes[..end])) {
            return Err(PinsError::Damaged("wrong checksum"));
        }
        let lines = rest.lines().take_while(|line| !line.starts_with("crc "));
        let pins =
            lines.map(|line| parse(line).ok_or(PinsError::Damaged("a line is not as expected")));
        let pins = Pins(pins.collect::<Result<_, _>>()?);
        if pins.encode() != bytes {
            return Err(PinsError::Damaged("they are not in their one form"));
        }
        if pins.0.windows(2).any(|pair| pair[0].key() >= pair[1].key()) {
            return Err(PinsError::Damaged("they are out of their order"));
        }
        Ok(pins)
    }

    /// The pins of a home, and the tag of their state, if it ever had any.
    pub fn read(names: &dyn NamedValues) -> Result<(Pins, Option<Tag>), PinsError> {
        let mut looks = 0;
        loop {
            let Some((bytes, tag)) = names.get(PINS)? else {
                return Ok((Pins::default(), None));
            };
            match Pins::decode(&bytes) {
                Ok(pins) => return Ok((pins, Some(tag))),
                Err(error @ PinsError::Newer(_)) => return Err(error),
                Err(_) if looks < LOOKS => looks += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The same of a home of which it is known whether it `had` pins.
    pub fn read_of(names: &dyn NamedValues, had: bool) -> Result<(Pins, Option<Tag>), PinsError> {
        match Pins::read(names)? {
            (_, None) if had => Err(PinsError::Lost),
            pins => Ok(pins),
        }
    }

    /// Sees to it that a home that never had pins has a list of them. `had`: it is known that there was one.
    pub fn begin(names: &dyn NamedValues, had: bool) -> Result<(), PinsError> {
        if Pins::read_of(names, had)?.1.is_some() {
            return Ok(());
        }
        match names.put_if_absent(PINS, &Pins::default().encode()) {
            // Somebody else was faster.
            Ok(_) | Err(HomeError::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes the pins of a home, durably: gives what `change` gave, or its error, which changes nothing. It is called
    /// again if somebody else was faster. After an error of the home the change may have been made or not; repeating it
    /// does no harm.
    pub fn change<T, E: From<PinsError>>(
        names: &dyn NamedValues,
        mut change: impl FnMut(&mut Pins) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut attempts = 0;
        loop {
            let (before, tag) = Pins::read(names)?;
            let mut pins = before.clone();
            let value = change(&mut pins)?;
            if pins == before {
                return Ok(value);
            }
            let bytes = pins.encode();
            let stored = match tag {
                None => names.put_if_absent(PINS, &bytes),
                Some(tag) => names.compare_and_swap(PINS, tag, &bytes),
            };
            match stored {
                Ok(_) => return Ok(value),
                Err(HomeError::Conflict(_)) if attempts < TRIES => attempts += 1,
                Err(error) => return Err(PinsError::Home(error).into()),
            }
        }
    }
}

fn parse(line: &str) -> Option<Pin> {
    let mut words = line.split(' ');
    let mut next = |expected: &str| (words.next()? == expected).then(|| words.next())?;
    let (kind, name) = match next("point") {
        Some(name) => (PinKind::Point, name),
        None => {
            let mut words = line.split(' ');
            let mut next = |expected: &str| (words.next()? == expected).then(|| words.next())?;
            let name = next("branch")?;
            let state = BranchState::of(next("state")?)?;
            let database = DatabaseId(u64::from_str_radix(next("database")?, 16).ok()?);
            (PinKind::Branch { state, database }, name)
        }
    };
    let (_, record) = line.split_once(" object ")?;
    let mut words = record.split(' ');
    let object = ObjectId::parse(words.next()?)?;
    let mut next = |expected: &str| (words.next()? == expected).then(|| words.next())?;
    let record = RetainedRecord {
        object,
        crc: u32::from_str_radix(next("crc")?, 16).ok()?,
        csn: Csn(next("csn")?.parse().ok()?),
        taken_at_micros: next("taken-at")?.parse().ok()?,
    };
    Some(Pin {
        kind,
        name: unescaped(name)?,
        record,
    })
}

/// A checkpoint that can be gone back to, with the reference of its record: what a branch or a past is made from. What
/// people are told of one is the engine's `RestorePoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryPoint {
    /// Its names: of restore points made by hand.
    pub names: Vec<String>,
    /// Where its record is, and what is told of it.
    pub record: RetainedRecord,
    /// It is the newest checkpoint.
    pub is_newest: bool,
}

impl RecoveryPoint {
    /// One that has no name.
    pub fn unnamed(record: RetainedRecord) -> RecoveryPoint {
        RecoveryPoint {
            names: Vec::new(),
            record,
            is_newest: false,
        }
    }
}

/// Everything that can be gone back to, by CSN: what the manifest's checkpoint keeps, it itself, and what was pinned by
/// hand.
pub fn points(home: &LogHome, manifest: &Manifest) -> Result<Vec<RecoveryPoint>, CheckpointError> {
    // In this order: a record says of what was there before it.
    let (mut points, had_pins) = led_to(home, manifest)?;
    let (pins, _) = Pins::read_of(home.names.as_ref(), had_pins)?;
    pins.name(&mut points);
    Ok(points)
}

/// The same of the newest manifest, which `manifest` reads. What is missing because there is a newer one by now is
/// looked for there.
pub fn points_of_now<E: From<CheckpointError>>(
    home: &LogHome,
    manifest: impl Fn() -> Result<Manifest, E>,
) -> Result<Vec<RecoveryPoint>, E> {
    as_of_now(manifest, |manifest| points(home, manifest))
}

/// The records that a manifest leads to: the newest, and what that keeps. And whether the home had pins when the newest
/// was published.
fn led_to(
    home: &LogHome,
    manifest: &Manifest,
) -> Result<(Vec<RecoveryPoint>, bool), CheckpointError> {
    let Some(checkpoint) = &manifest.checkpoint else {
        return Ok((Vec::new(), false));
    };
    let record = CheckpointRecord::read(
        home.objects.as_ref(),
        manifest.database,
        checkpoint.object,
        checkpoint.crc,
    )?;
    let newest = RetainedRecord {
        object: checkpoint.object,
        crc: checkpoint.crc,
        csn: record.csn,
        taken_at_micros: record.taken_at_micros,
    };
    let point = |record: RetainedRecord| RecoveryPoint {
        is_newest: record == newest,
        ..RecoveryPoint::unnamed(record)
    };
    let kept = record.kept.iter().copied();
    Ok((kept.chain([newest]).map(point).collect(), record.has_pins))
}

/// Which point somebody means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryTarget {
    /// The newest.
    Newest,
    /// The newest that was taken at this time or before, in microseconds since 2000-01-01 00:00 UTC.
    At(i64),
    /// The restore point of this name.
    Named(String),
}

/// Chooses among points that are sorted by CSN. Where clocks went back, a later CSN counts for more than a later time:
/// it is the state that the database had last while the clock showed no more than the time that was asked for.
pub fn choose<'p>(
    points: &'p [RecoveryPoint],
    which: &RecoveryTarget,
) -> Option<&'p RecoveryPoint> {
    let newest_first = || points.iter().rev();
    match which {
        RecoveryTarget::Newest => newest_first().find(|point| point.is_newest),
        RecoveryTarget::At(time) => {
            newest_first().find(|point| point.record.taken_at_micros <= *time)
        }
        RecoveryTarget::Named(name) => newest_first().find(|point| point.names.contains(name)),
    }
}

/// Pins a point, by the order that keeps it from being removed meanwhile; see the module's documentation. `manifest`
/// reads the manifest; `pin` makes the pin, or refuses it for what is pinned already. `None`: there is no such point,
/// and nothing was changed.
pub fn pin_point<E>(
    home: &LogHome,
    which: &RecoveryTarget,
    pin: impl Fn(&Pins, RetainedRecord) -> Result<Pin, E>,
    manifest: impl Fn() -> Result<Manifest, E>,
) -> Result<Option<Pin>, E>
where
    E: From<CheckpointError> + From<PinsError>,
{
    for _ in 0..TRIES {
        let points = points_of_now(home, &manifest)?;
        let Some(chosen) = choose(&points, which) else {
            return Ok(None);
        };
        let ours = Pins::change(home.names.as_ref(), |pins| {
            let ours = pin(pins, chosen.record)?;
            pins.put(ours.clone());
            Ok::<_, E>(ours)
        })?;
        let (pins, _) = Pins::read(home.names.as_ref())?;
        // One that was pinned by hand is held by that pin, if it still is.
        let by_hand = |name: &String| {
            let point = pins.point(name).filter(|point| **point != ours);
            point.is_some_and(|point| point.record == ours.record)
        };
        if chosen.names.iter().any(by_hand)
            || as_of_now(&manifest, |manifest| led_to(home, manifest))?
                .0
                .iter()
                .any(|point| point.record == ours.record)
        {
            return Ok(Some(ours));
        }
        // It may be gone already.
        Pins::change(home.names.as_ref(), |pins| {
            pins.0.retain(|pin| *pin != ours);
            Ok::<_, E>(())
        })?;
    }
    Err(PinsError::Home(HomeError::Conflict("the list of checkpoints".to_owned())).into())
}

/// Reads what a manifest leads to. What is missing because there is a newer one by now is looked for there.
pub(crate) fn as_of_now<T, E: From<CheckpointError>>(
    manifest: impl Fn() -> Result<Manifest, E>,
    read: impl Fn(&Manifest) -> Result<T, CheckpointError>,
) -> Result<T, E> {
    let mut seen = manifest()?;
    loop {
        let error = match read(&seen) {
            Err(error @ CheckpointError::Damaged(_)) => error,
            done => return Ok(done?),
        };
        let now = manifest()?;
        if now.checkpoint == seen.checkpoint {
            return Err(error.into());
        }
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_home::MemoryHome;
    use logstead_types::Epoch;
    use proptest::prelude::*;

    fn record(number: u32, taken_at_micros: i64) -> RetainedRecord {
        RetainedRecord {
            object: ObjectId::new(Epoch(3), number),
            crc: number * 7,
            csn: Csn(u64::from(number)),
            taken_at_micros,
        }
    }

    fn point(name: &str, number: u32) -> Pin {
        Pin {
            kind: PinKind::Point,
            name: name.to_owned(),
            record: record(number, -5),
        }
    }

    fn branch(name: &str, state: BranchState) -> Pin {
        Pin {
            kind: PinKind::Branch {
                state,
                database: DatabaseId(0xabc),
            },
            ..point(name, 9)
        }
    }

    #[test]
    fn what_is_missing_is_lost_if_it_was_there() {
        let home = MemoryHome::new(1 << 16);
        assert_eq!(
            Pins::read_of(&home, false).unwrap(),
            (Pins::default(), None)
        );
        for result in [
            Pins::read_of(&home, true).map(drop),
            Pins::begin(&home, true),
        ] {
            assert!(matches!(result, Err(PinsError::Lost)), "{result:?}");
        }
        assert!(home.get(PINS).unwrap().is_none(), "none are made up");
        Pins::begin(&home, false).unwrap();
        let (pins, tag) = Pins::read_of(&home, true).unwrap();
        assert_eq!((pins, tag.is_some()), (Pins::default(), true));
        Pins::change(&home, |pins| {
            pins.put(point("a", 1));
            Ok::<_, PinsError>(())
        })
        .unwrap();
        Pins::begin(&home, false).unwrap();
        assert!(Pins::read(&home).unwrap().0.point("a").is_some());
    }

    /// The format on storage: a change here is a change of docs/format.md and of its version.
    #[test]
    fn pins_are_the_text_that_the_format_says() {
        let mut pins = Pins::default();
        pins.put(branch("trial", BranchState::Made));
        pins.put(point("before the upgrade", 2));
        pins.put(point("100%", 1));
        let text = String::from_utf8(pins.encode()).unwrap();
        let (lines, crc) = text.rsplit_once("crc ").unwrap();
        assert_eq!(
            lines,
            "logstead pins 1\n\
             point 100%25 object 0000000300000001 crc 00000007 csn 1 taken-at -5\n\
             point before%20the%20upgrade object 0000000300000002 crc 0000000e csn 2 taken-at -5\n\
             branch trial state made database 0000000000000abc object 0000000300000009 crc 0000003f csn 9 taken-at -5\n"
        );
        assert_eq!(crc, format!("{:08x}\n", crc32c::crc32c(lines.as_bytes())));
        assert_eq!(Pins::decode(text.as_bytes()).unwrap(), pins);
        let newer = text.replace("pins 1", "pins 2");
        assert!(matches!(
            Pins::decode(newer.as_bytes()),
            Err(PinsError::Newer(2))
        ));
    }

    #[test]
    fn any_flipped_bit_or_cut_is_found() {
        let mut pins = Pins::default();
        pins.put(branch("trial", BranchState::Making));
        pins.put(point("a", 2));
        let text = pins.encode();
        for at in 0..text.len() {
            assert!(Pins::decode(&text[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut bad = text.clone();
                bad[at] ^= 1 << bit;
                assert!(Pins::decode(&bad).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_name_is_read_as_it_was_written(names in proptest::collection::vec(".{0,20}", 0..6)) {
            let mut pins = Pins::default();
            for name in &names {
                pins.put(point(name, 1));
                pins.put(branch(name, BranchState::Dropping));
            }
            prop_assert_eq!(Pins::decode(&pins.encode()).unwrap(), pins);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _any_outcome = Pins::decode(&[b"logstead pins 1\n", &bytes[..]].concat());
        }
    }

    #[test]
    fn points_and_branches_have_names_of_their_own() {
        let mut pins = Pins::default();
        pins.put(point("a", 1));
        pins.put(branch("a", BranchState::Making));
        pins.put(branch("a", BranchState::Made));
        assert_eq!(pins.iter().count(), 2);
        assert_eq!(pins.branch("a"), Some(&branch("a", BranchState::Made)));
        assert!(pins.remove_point("a") && !pins.remove_point("a"));
        assert!(pins.branch("a").is_some() && pins.remove_branch("a"));
    }

    #[test]
    fn a_change_that_somebody_else_was_faster_with_is_made_again() {
        let home = MemoryHome::new(1 << 20);
        let mut calls = 0;
        Pins::change(&home, |pins| {
            calls += 1;
            if calls == 1 {
                // In between.
                Pins::change(&home, |pins| {
                    pins.put(point("theirs", 1));
                    Ok::<_, PinsError>(())
                })?;
            }
            pins.put(point("ours", 2));
            Ok::<_, PinsError>(())
        })
        .unwrap();
        let (pins, _) = Pins::read(&home).unwrap();
        assert_eq!(calls, 2);
        assert!(pins.point("ours").is_some() && pins.point("theirs").is_some());
    }

    #[test]
    fn the_last_state_up_to_a_time_is_chosen_also_where_the_clock_went_back() {
        let at = |number, taken_at| RecoveryPoint {
            names: Vec::new(),
            record: record(number, taken_at),
            is_newest: number == 4,
        };
        let points = [at(1, 100), at(2, 200), at(3, 150), at(4, 300)];
        let csn = |which| choose(&points, &which).map(|point| point.record.csn.0);
        assert_eq!(csn(RecoveryTarget::At(99)), None);
        assert_eq!(csn(RecoveryTarget::At(100)), Some(1));
        assert_eq!(csn(RecoveryTarget::At(149)), Some(1));
        // Two was taken when the clock was ahead, and three came after it.
        assert_eq!(csn(RecoveryTarget::At(150)), Some(3));
        assert_eq!(csn(RecoveryTarget::At(299)), Some(3));
        assert_eq!(csn(RecoveryTarget::At(i64::MAX)), Some(4));
        assert_eq!(csn(RecoveryTarget::Newest), Some(4));
        assert_eq!(csn(RecoveryTarget::Named("x".into())), None);
    }
}
