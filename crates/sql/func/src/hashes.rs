//! `hashtext` and the like: PostgreSQL's own hash, with which programs make numbers of names (for advisory locks) and
//! divide rows. It is Bob Jenkins' lookup3, on bytes in little-endian order, with PostgreSQL's beginning.

use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

struct HashState(u32, u32, u32);

impl HashState {
    fn of_length(bytes: usize) -> HashState {
        let start = 0x9e37_79b9_u32
            .wrapping_add(bytes as u32)
            .wrapping_add(3_923_095);
        HashState(start, start, start)
    }

    fn mix(&mut self) {
        let HashState(a, b, c) = self;
        let step = |x: &mut u32, y: &mut u32, z: &mut u32, by: u32| {
            *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
            *z = z.wrapping_add(*y);
        };
        step(a, b, c, 4);
        step(b, c, a, 6);
        step(c, a, b, 8);
        step(a, b, c, 16);
        step(b, c, a, 19);
        step(c, a, b, 4);
    }

    fn end(&mut self) {
        let HashState(a, b, c) = self;
        let step = |x: &mut u32, y: &u32, by: u32| {
            *x = (*x ^ *y).wrapping_sub(y.rotate_left(by));
        };
        step(c, b, 14);
        step(a, c, 11);
        step(b, a, 25);
        step(c, b, 16);
        step(a, c, 4);
        step(b, a, 14);
        step(c, b, 24);
    }

    fn add(&mut self, part: &[u8; 12]) {
        let word =
            |at: usize| u32::from_le_bytes([part[at], part[at + 1], part[at + 2], part[at + 3]]);
        self.0 = self.0.wrapping_add(word(0));
        self.1 = self.1.wrapping_add(word(4));
        self.2 = self.2.wrapping_add(word(8));
    }
}

/// The state when all bytes have gone through.
fn of_bytes(bytes: &[u8], seed: u64) -> HashState {
    let mut state = HashState::of_length(bytes.len());
    if seed != 0 {
        state.0 = state.0.wrapping_add((seed >> 32) as u32);
        state.1 = state.1.wrapping_add(seed as u32);
        state.mix();
    }
    let mut parts = bytes.chunks_exact(12);
    for part in &mut parts {
        let mut whole = [0; 12];
        whole.copy_from_slice(part);
        state.add(&whole);
        state.mix();
    }
    // What is left. The lowest byte of the third word is the length's, so that word begins with its second.
    let left = parts.remainder();
    let mut last = [0; 12];
    for (at, byte) in left.iter().enumerate() {
        let at = if at < 8 { at } else { at + 1 };
        if let Some(to) = last.get_mut(at) {
            *to = *byte;
        }
    }
    state.add(&last);
    state.end();
    state
}

fn of_word(word: u32) -> Datum {
    let mut state = HashState::of_length(4);
    state.0 = state.0.wrapping_add(word);
    state.end();
    Datum::Int4(state.2.cast_signed())
}

/// `hashtext`
pub(super) fn text(a: &[Datum]) -> Result<Datum> {
    let state = of_bytes(a[0].as_str()?.as_bytes(), 0);
    Ok(Datum::Int4(state.2.cast_signed()))
}

/// `hashtextextended`
pub(super) fn text_extended(a: &[Datum]) -> Result<Datum> {
    let seed = a[1].as_integer()?.cast_unsigned();
    let state = of_bytes(a[0].as_str()?.as_bytes(), seed);
    let hash = (u64::from(state.1) << 32) | u64::from(state.2);
    Ok(Datum::Int8(hash.cast_signed()))
}

/// `hashint2`, `hashint4`
pub(super) fn integer(a: &[Datum]) -> Result<Datum> {
    Ok(of_word(a[0].as_integer()? as u32))
}

/// `hashint8`: a number that fits in four bytes hashes as it does there.
pub(super) fn bigint(a: &[Datum]) -> Result<Datum> {
    let value = a[0].as_integer()?;
    let (low, high) = (value as u32, (value >> 32) as u32);
    Ok(of_word(low ^ if value >= 0 { high } else { !high }))
}
