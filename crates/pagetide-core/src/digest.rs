//! A running hash of state, for determinism tests.
//!
//! Linux has no such thing. Every value is mixed in as a `u64`, so the result depends neither on the
//! width of `usize` nor on byte order. The mix is FNV-1a's multiply with a rotation in front, a whole
//! word at a time; it is no protection against deliberate collisions.
//!
//! Invariant: the same values in the same order give the same digest, in any version of this
//! crate that does not say otherwise in its change log.

/// Collects values; [`Digest::finish`] gives their hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    state: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    /// Nothing mixed in yet.
    pub const fn new() -> Digest {
        Digest { state: Self::OFFSET }
    }

    /// Mixes in one value.
    #[inline]
    pub const fn write_u64(&mut self, value: u64) {
        self.state = (self.state.rotate_left(23) ^ value).wrapping_mul(Self::PRIME);
    }

    /// Mixes in several values.
    pub fn write_all(&mut self, values: &[u64]) {
        for &value in values {
            self.write_u64(value);
        }
    }

    /// Mixes in a value that may be absent.
    pub const fn write_option(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.write_u64(1);
                self.write_u64(value);
            }
            None => self.write_u64(0),
        }
    }

    /// The hash of all values so far. The last step spreads the high bits over the whole word
    /// (the finaliser of MurmurHash3).
    pub const fn finish(&self) -> u64 {
        let mut x = self.state;
        x ^= x >> 33;
        x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
        x ^= x >> 33;
        x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        x ^ (x >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> u64 {
        let mut digest = Digest::new();
        for &value in values {
            digest.write_u64(value);
        }
        digest.finish()
    }

    #[test]
    fn order_count_and_value_matter() {
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        assert_ne!(of(&[1]), of(&[1 << 63]));
    }
}
