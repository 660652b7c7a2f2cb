//! MD5 and SHA-224, for the functions of these names only: nothing here protects anything.

use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::check_for_interrupts;

/// Blocks between two looks for interrupts.
const INTERRUPT_BLOCKS: usize = 1024;

/// MD5 (RFC 1321).
pub(super) fn md5(input: &[u8]) -> Result<[u8; 16]> {
    const SHIFTS: [[u32; 4]; 4] = [
        [7, 12, 17, 22],
        [5, 9, 14, 20],
        [4, 11, 16, 23],
        [6, 10, 15, 21],
    ];
    let table: Vec<u32> = (0..64)
        .map(|i| (f64::from(i + 1).sin().abs() * 4_294_967_296.0) as u32)
        .collect();
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let end = end_of(input, false);
    for (i, block) in blocks(input, &end).enumerate() {
        if i % INTERRUPT_BLOCKS == INTERRUPT_BLOCKS - 1 {
            check_for_interrupts()?;
        }
        let word = |i: usize| {
            u32::from_le_bytes([
                block[i * 4],
                block[i * 4 + 1],
                block[i * 4 + 2],
                block[i * 4 + 3],
            ])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (f, g) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), (7 * i) % 16),
            };
            let sum = a
                .wrapping_add(f)
                .wrapping_add(table[i])
                .wrapping_add(word(g));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 16];
    for (o, s) in out.chunks_exact_mut(4).zip(state) {
        o.copy_from_slice(&s.to_le_bytes());
    }
    Ok(out)
}

/// Whole blocks of the input, then those of its end.
fn blocks<'a>(input: &'a [u8], end: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    input.chunks_exact(64).chain(end.chunks_exact(64))
}

/// What is left behind the whole blocks of the input, padded.
fn end_of(input: &[u8], big_endian: bool) -> Vec<u8> {
    let mut v = input.chunks_exact(64).remainder().to_vec();
    v.push(0x80);
    while v.len() % 64 != 56 {
        v.push(0);
    }
    let bits = (input.len() as u64).wrapping_mul(8);
    v.extend_from_slice(&if big_endian {
        bits.to_be_bytes()
    } else {
        bits.to_le_bytes()
    });
    v
}

/// SHA-224 (FIPS 180-4): SHA-256 with another beginning, cut. The library of the other digests does not have it.
pub(super) fn sha224(input: &[u8]) -> Result<[u8; 28]> {
    // Fractions of the cube roots of the first primes, as the standard defines its constants.
    let primes: Vec<u32> = (2u32..)
        .filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .take(64)
        .collect();
    let fraction = |p: u32| -> u32 {
        // The integer root of p * 2^(32 k) holds 32 fraction bits.
        let target = u128::from(p) << 96;
        let (mut lo, mut hi) = (0u128, 1u128 << 40);
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            let power = mid.checked_mul(mid).and_then(|s| s.checked_mul(mid));
            if power.is_some_and(|p| p <= target) {
                lo = mid
            } else {
                hi = mid
            }
        }
        lo as u32
    };
    let k: Vec<u32> = primes.iter().map(|p| fraction(*p)).collect();
    // As the standard lists them: bits 33 to 64 of the fractions of the square roots of the 9th to 16th primes.
    let mut state = [
        0xc105_9ed8_u32,
        0x367c_d507,
        0x3070_dd17,
        0xf70e_5939,
        0xffc0_0b31,
        0x6858_1511,
        0x64f9_8fa7,
        0xbefa_4fa4,
    ];
    let end = end_of(input, true);
    for (i, block) in blocks(input, &end).enumerate() {
        if i % INTERRUPT_BLOCKS == INTERRUPT_BLOCKS - 1 {
            check_for_interrupts()?;
        }
        let mut w = [0u32; 64];
        for (i, c) in block.chunks_exact(4).enumerate() {
            w[i] = u32::from_be_bytes([c[0], c[1], c[2], c[3]]);
        }
        for i in 16..64 {
            let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w[i] = w[i - 16]
                .wrapping_add(s0)
                .wrapping_add(w[i - 7])
                .wrapping_add(s1);
        }
        let mut h = state;
        for i in 0..64 {
            let s1 = h[4].rotate_right(6) ^ h[4].rotate_right(11) ^ h[4].rotate_right(25);
            let choice = (h[4] & h[5]) ^ (!h[4] & h[6]);
            let t1 = h[7]
                .wrapping_add(s1)
                .wrapping_add(choice)
                .wrapping_add(k[i])
                .wrapping_add(w[i]);
            let s0 = h[0].rotate_right(2) ^ h[0].rotate_right(13) ^ h[0].rotate_right(22);
            let majority = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
            h = [
                t1.wrapping_add(s0.wrapping_add(majority)),
                h[0],
                h[1],
                h[2],
                h[3].wrapping_add(t1),
                h[4],
                h[5],
                h[6],
            ];
        }
        for (s, v) in state.iter_mut().zip(h) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 28];
    for (o, s) in out.chunks_exact_mut(4).zip(state) {
        o.copy_from_slice(&s.to_be_bytes());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    fn hex(b: &[u8]) -> String {
        b.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        assert_eq!(
            hex(&super::md5(b"").unwrap()),
            "d41d8cd98f00b204e9800998ecf8427e"
        );
        assert_eq!(
            hex(&super::md5(b"abc").unwrap()),
            "900150983cd24fb0d6963f7d28e17f72"
        );
        assert_eq!(
            hex(&super::sha224(b"abc").unwrap()),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
    }
}
