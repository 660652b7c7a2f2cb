//! The machine that is modelled: cores in core complexes in sockets, and what it takes to get a line from another core.

use super::recording::Line;

/// Nanoseconds for a line, by where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// A core of the same core complex.
    pub complex_ns: f64,
    /// Another core complex of the same socket.
    pub socket_ns: f64,
    /// Another socket.
    pub remote_ns: f64,
}

impl Prices {
    /// AMD EPYC 7R13 (Milan): medians of one message by compare-and-swap between two cores.
    pub const MILAN: Prices = Prices {
        complex_ns: 23.0,
        socket_ns: 107.0,
        remote_ns: 197.0,
    };
    /// Intel Xeon Platinum 8375C (Ice Lake): one mesh, so no core complexes.
    pub const ICE_LAKE: Prices = Prices {
        complex_ns: 51.0,
        socket_ns: 51.0,
        remote_ns: 108.0,
    };

    /// All of them times so much.
    pub fn times(self, factor: f64) -> Prices {
        Prices {
            complex_ns: self.complex_ns * factor,
            socket_ns: self.socket_ns * factor,
            remote_ns: self.remote_ns * factor,
        }
    }
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cores of a core complex.
    pub cores_per_complex: u16,
    /// Cores of a socket.
    pub cores_per_socket: u16,
    /// What lines cost.
    pub prices: Prices,
    /// An instruction of the recording takes so long where nothing is shared, its own cache misses included.
    pub instruction_ns: f64,
}

impl Machine {
    /// What a line costs `to` when `from` has it.
    fn price(&self, from: u16, to: u16) -> f64 {
        if from / self.cores_per_socket != to / self.cores_per_socket {
            self.prices.remote_ns
        } else if from / self.cores_per_complex != to / self.cores_per_complex {
            self.prices.socket_ns
        } else {
            self.prices.complex_ns
        }
    }

    fn prices_of(&self, line: &Line, core: u16) -> impl Iterator<Item = f64> {
        let mut others = line.holders & !(1_u128 << core);
        std::iter::from_fn(move || {
            let next = others.trailing_zeros();
            others &= others.wrapping_sub(1);
            (next < u128::BITS).then_some(next as u16)
        })
        .map(move |from| self.price(from, core))
    }

    /// What it takes to load a line that `core` does not have: it comes from the nearest that has it.
    pub(super) fn load_ns(&self, line: &Line, core: u16) -> f64 {
        let nearest = self.prices_of(line, core).reduce(f64::min);
        // Nobody has it: it comes from memory, which is about as far as another complex.
        nearest.unwrap_or(self.prices.socket_ns)
    }

    /// What it takes to have it alone: the farthest that has it must have given it up.
    pub(super) fn own_ns(&self, line: &Line, core: u16) -> f64 {
        let farthest = self.prices_of(line, core).reduce(f64::max);
        farthest.unwrap_or(self.prices.socket_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_the_nearest_and_leave_the_farthest() {
        let machine = Machine {
            cores_per_complex: 8,
            cores_per_socket: 64,
            prices: Prices::MILAN,
            instruction_ns: 0.3,
        };
        let line = |cores: &[u16]| Line {
            holders: cores.iter().fold(0, |all, core| all | 1 << core),
            is_dirty: false,
        };
        assert_eq!(machine.load_ns(&line(&[7, 8, 127]), 0), 23.0);
        assert_eq!(machine.own_ns(&line(&[7, 8, 127]), 0), 197.0);
        assert_eq!(machine.own_ns(&line(&[0, 7, 8]), 0), 107.0);
        assert_eq!(machine.load_ns(&line(&[]), 0), 107.0);
        assert_eq!(machine.load_ns(&line(&[127]), 126), 23.0);
    }
}
