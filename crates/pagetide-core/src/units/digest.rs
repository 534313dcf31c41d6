//! A running hash of the machine's state, for tests of determinism.
//!
//! Linux has nothing like it. Every value is mixed in as a `u64`, so the result depends neither on
//! the width of `usize` nor on byte order. For each word, the hash is rotated and multiplied by the
//! constant of FNV-1a. It does not resist deliberate collisions.
//!
//! Invariant: the same values in the same order give the same digest, in every version of this
//! crate unless its change log says otherwise.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
pub use pagetide_derive::State;

/// Collects values; [`Digest::finish`] returns their hash.
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

    /// An empty digest.
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

/// State: every value that can change the machine's next decisions or its reports.
///
/// `#[derive(State)]` implements this for a type whose fields are state; `#[state(skip)]` excludes
/// a field (crate `pagetide-derive`).
pub trait State {
    /// Mixes in the whole value.
    fn digest(&self, digest: &mut Digest);
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl State for $number {
            #[inline]
            fn digest(&self, digest: &mut Digest) {
                digest.write_u64(*self as u64);
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 usize i8 i16 i32 i64 bool);

impl<T: State> State for [T] {
    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.len() as u64);
        self.iter().for_each(|entry| entry.digest(digest));
    }
}

impl<T: State> State for Vec<T> {
    fn digest(&self, digest: &mut Digest) {
        self.as_slice().digest(digest);
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn digest(&self, digest: &mut Digest) {
        self.iter().for_each(|entry| entry.digest(digest));
    }
}

impl<T: State> State for Option<T> {
    fn digest(&self, digest: &mut Digest) {
        match self {
            Some(value) => {
                digest.write_u64(1);
                value.digest(digest);
            }
            None => digest.write_u64(0),
        }
    }
}

impl<T: State + ?Sized> State for Box<T> {
    fn digest(&self, digest: &mut Digest) {
        (**self).digest(digest);
    }
}

impl<T: State + ?Sized> State for Arc<T> {
    fn digest(&self, digest: &mut Digest) {
        (**self).digest(digest);
    }
}

impl<T: State> State for Range<T> {
    fn digest(&self, digest: &mut Digest) {
        self.start.digest(digest);
        self.end.digest(digest);
    }
}

impl<A: State, B: State> State for (A, B) {
    fn digest(&self, digest: &mut Digest) {
        self.0.digest(digest);
        self.1.digest(digest);
    }
}

impl<T: State> State for VecDeque<T> {
    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.len() as u64);
        self.iter().for_each(|entry| entry.digest(digest));
    }
}

impl<K: State, V: State> State for BTreeMap<K, V> {
    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.len() as u64);
        for (key, value) in self {
            key.digest(digest);
            value.digest(digest);
        }
    }
}

/// Mixes in a table that is mostly empty: its length, and the entries that differ from the default.
pub fn sparse<T: State + Default + PartialEq>(table: &[T], digest: &mut Digest) {
    digest.write_u64(table.len() as u64);
    let empty = T::default();
    for (at, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != empty) {
        digest.write_u64(at as u64);
        entry.digest(digest);
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

    fn of_state(state: &impl State) -> u64 {
        let mut digest = Digest::new();
        state.digest(&mut digest);
        digest.finish()
    }

    /// One type of each shape that the derive supports.
    #[derive(State)]
    struct Shapes {
        number: u32,
        pub(crate) flag: bool,
        nested: Option<Box<(Vec<u8>, [i8; 2])>>,
        by_key: BTreeMap<u64, Kind>,
        #[state(sparse)]
        table: Vec<u16>,
        #[state(skip)]
        #[allow(dead_code)]
        buffer: Vec<u16>,
    }

    #[derive(State)]
    enum Kind {
        Unit,
        Tuple(u64, Place),
        Fields { at: u64 },
    }

    #[derive(State)]
    struct Place(
        pub u32,
        #[state(skip)]
        #[allow(dead_code)]
        u32,
    );

    fn shapes() -> Shapes {
        Shapes {
            number: 1,
            flag: false,
            nested: None,
            by_key: BTreeMap::from([(7, Kind::Unit)]),
            table: Vec::from([0, 0, 5]),
            buffer: Vec::new(),
        }
    }

    #[test]
    fn every_field_counts_but_those_that_say_that_they_do_not() {
        let first = of_state(&shapes());
        let changed = |change: &dyn Fn(&mut Shapes)| {
            let mut shapes = shapes();
            change(&mut shapes);
            of_state(&shapes)
        };
        let digests = [
            first,
            changed(&|it| it.number = 2),
            changed(&|it| it.flag = true),
            changed(&|it| it.nested = Some(Box::new((Vec::new(), [0, 1])))),
            changed(&|it| it.nested = Some(Box::new((Vec::new(), [0, -1])))),
            changed(&|it| it.nested = Some(Box::new((Vec::from([0]), [0, -1])))),
            changed(&|it| it.by_key = BTreeMap::new()),
            changed(&|it| it.by_key = BTreeMap::from([(7, Kind::Fields { at: 0 })])),
            changed(&|it| it.by_key = BTreeMap::from([(7, Kind::Tuple(0, Place(0, 0)))])),
            changed(&|it| it.by_key = BTreeMap::from([(7, Kind::Tuple(0, Place(3, 0)))])),
            changed(&|it| it.by_key = BTreeMap::from([(7, Kind::Tuple(3, Place(0, 0)))])),
            changed(&|it| it.table[1] = 5),
            changed(&|it| it.table.push(0)),
        ];
        for (at, digest) in digests.iter().enumerate() {
            assert!(!digests[..at].contains(digest), "{at}");
        }
        assert_eq!(first, changed(&|it| it.buffer.push(1)));
        let other = Kind::Tuple(0, Place(3, 9));
        assert_eq!(of_state(&Kind::Tuple(0, Place(3, 0))), of_state(&other));
    }
}
