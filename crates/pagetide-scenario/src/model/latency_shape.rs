//! The distribution of a disk's latencies: a piecewise linear function from shares to times.
//!
//! It is made of pieces of the distribution: a share of the requests, and the range of their times.
//! Within a piece the logarithm of the time is linear in the share. To need no logarithm, which
//! other machines may round otherwise, such a piece is halved several times, at the square root of
//! the product of its ends; the last halves are linear.
//!
//! Invariant: the shares of the pieces add up to [`WHOLE`]. All arithmetic is in integers, so a seed
//! gives the same times on any machine.

use crate::draws::prng::SplitMix64;

/// Sum of all shares.
const WHOLE: u64 = 1 << 48;
/// How often a piece is halved.
const HALVINGS: u32 = 6;
/// Longest time: a day.
pub const LATENCY_NS_MAX: u64 = 24 * 3600 * 1_000_000_000;

/// A number of requests, and the range of their times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyPiece {
    pub count: u64,
    pub low_ns: u64,
    pub high_ns: u64,
}

/// Times of requests, from which a disk draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyShape {
    segments: Vec<Segment>,
}

/// Times from `low_ns` to `high_ns`, of the shares below `until` and not below that of the segment
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    until: u64,
    low_ns: u64,
    high_ns: u64,
}

impl LatencyShape {
    /// The distribution of these pieces, in any order. `None` without any request.
    pub fn new(mut pieces: Vec<LatencyPiece>) -> Option<LatencyShape> {
        pieces.retain(|piece| piece.count > 0);
        for piece in &mut pieces {
            piece.high_ns = piece.high_ns.min(LATENCY_NS_MAX);
            piece.low_ns = piece.low_ns.min(piece.high_ns);
        }
        pieces.sort_by_key(|piece| (piece.low_ns, piece.high_ns));
        let total: u128 = pieces.iter().map(|piece| u128::from(piece.count)).sum();
        let mut segments = Vec::new();
        let (mut seen, mut from) = (0, 0);
        for piece in pieces {
            seen += u128::from(piece.count);
            let until = (seen * u128::from(WHOLE) / total) as u64;
            halve(&mut segments, from, Segment { until, ..Segment::of(&piece) }, HALVINGS);
            from = until;
        }
        (!segments.is_empty()).then_some(LatencyShape { segments })
    }

    /// The time of a request.
    pub fn draw(&self, prng: &mut SplitMix64) -> u64 {
        self.at(prng.below(WHOLE))
    }

    /// The time that a share of the requests does not exceed, in millionths.
    pub fn quantile(&self, ppm: u32) -> u64 {
        let share = u128::from(WHOLE) * u128::from(ppm.min(1_000_000)) / 1_000_000;
        self.at((share as u64).min(WHOLE - 1))
    }

    fn at(&self, share: u64) -> u64 {
        let index = self.segments.partition_point(|segment| segment.until <= share);
        let Segment { until, low_ns, high_ns } = self.segments[index];
        let from = self.from(index);
        let climb = u128::from(high_ns - low_ns) * u128::from(share - from);
        low_ns + (climb / u128::from(until - from)) as u64
    }

    /// Where the segment begins.
    fn from(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.segments[before].until)
    }

    pub fn mean_ns(&self) -> u64 {
        let twice: u128 = (0..self.segments.len())
            .map(|index| {
                let Segment { until, low_ns, high_ns } = self.segments[index];
                u128::from(until - self.from(index)) * (u128::from(low_ns) + u128::from(high_ns))
            })
            .sum();
        let whole = 2 * u128::from(WHOLE);
        ((twice + whole / 2) / whole) as u64
    }

    /// The same shape with another mean.
    pub fn with_mean(&self, mean_ns: u64) -> LatencyShape {
        let own = self.mean_ns();
        if own == mean_ns {
            return self.clone();
        }
        let scale = |ns: u64| {
            let scaled = u128::from(ns) * u128::from(mean_ns) / u128::from(own.max(1));
            scaled.min(u128::from(LATENCY_NS_MAX)) as u64
        };
        let scaled = |segment: &Segment| Segment {
            until: segment.until,
            low_ns: scale(segment.low_ns),
            high_ns: scale(segment.high_ns),
        };
        LatencyShape { segments: self.segments.iter().map(scaled).collect() }
    }
}

impl Segment {
    fn of(piece: &LatencyPiece) -> Segment {
        Segment { until: 0, low_ns: piece.low_ns, high_ns: piece.high_ns }
    }
}

/// Appends `segment`, which begins at share `from`, in halves of equal shares.
fn halve(segments: &mut Vec<Segment>, from: u64, segment: Segment, halvings: u32) {
    let Segment { until, low_ns, high_ns } = segment;
    if until == from {
        return;
    }
    let middle = from + (until - from) / 2;
    if halvings == 0 || high_ns - low_ns <= 1 || middle == from {
        segments.push(segment);
        return;
    }
    // A time of 0 has no logarithm; it stands for less than a nanosecond.
    let root = (u128::from(low_ns.max(1)) * u128::from(high_ns)).isqrt() as u64;
    halve(segments, from, Segment { until: middle, low_ns, high_ns: root }, halvings - 1);
    halve(segments, middle, Segment { until, low_ns: root, high_ns }, halvings - 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(count: u64, low_ns: u64, high_ns: u64) -> LatencyPiece {
        LatencyPiece { count, low_ns, high_ns }
    }

    fn near(value: u64, wanted: u64, permille: u64) -> bool {
        value.abs_diff(wanted) * 1000 <= wanted * permille
    }

    #[test]
    fn percentiles_of_many_draws_are_those_of_the_distribution() {
        let pieces = vec![
            piece(5000, 90_000, 90_000),
            piece(4900, 90_000, 800_000),
            piece(90, 800_000, 4_000_000),
            piece(10, 4_000_000, 4_000_000),
        ];
        let shape = LatencyShape::new(pieces).unwrap();
        let mut prng = SplitMix64::new(7);
        let mut draws: Vec<u64> = (0..400_000).map(|_| shape.draw(&mut prng)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        draws.sort_unstable();
        let drawn = |ppm: usize| draws[(draws.len() * ppm / 1_000_000).min(draws.len() - 1)];
        for (ppm, wanted) in [(500_000, 90_000), (990_000, 800_000), (999_000, 4_000_000)] {
            assert!(near(drawn(ppm), wanted, 50), "{ppm}: {}", drawn(ppm));
            assert!(near(shape.quantile(ppm as u32), wanted, 2), "{ppm}");
        }
        // Half way between two percentiles the logarithm is half way.
        assert!(near(shape.quantile(745_000), 268_328, 3), "{}", shape.quantile(745_000));
        // A piece from a to b has the mean (b - a) / ln(b / a).
        let wanted = (50 * 90_000 + 49 * 324_982) / 100 + 9 * 1_988_269 / 1000 + 4_000;
        assert!(near(shape.mean_ns(), wanted, 2), "{} {wanted}", shape.mean_ns());
        assert!(near(mean, wanted, 10), "{mean} {wanted}");
    }

    #[test]
    fn equal_seeds_draw_equal_times() {
        let shape = LatencyShape::new(vec![piece(3, 10, 90), piece(1, 1000, 9000)]).unwrap();
        let draws = |seed| {
            let mut prng = SplitMix64::new(seed);
            (0..100).map(|_| shape.draw(&mut prng)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!(draws(3).iter().all(|ns| (10..=90).contains(ns) || (1000..=9000).contains(ns)));
    }

    #[test]
    fn the_mean_can_be_another() {
        let shape =
            LatencyShape::new(vec![piece(9, 100_000, 100_000), piece(1, 1_100_000, 1_100_000)]);
        let shape = shape.unwrap();
        assert_eq!(shape.mean_ns(), 200_000);
        let slower = shape.with_mean(600_000);
        assert_eq!((slower.quantile(500_000), slower.quantile(990_000)), (300_000, 3_300_000));
        assert_eq!(shape.with_mean(200_000), shape);
        assert_eq!(shape.with_mean(0).quantile(1_000_000), 0);
    }

    #[test]
    fn extreme_pieces_are_possible() {
        assert_eq!(LatencyShape::new(vec![piece(0, 1, 2)]), None);
        let pieces = vec![piece(u64::MAX, 0, u64::MAX), piece(u64::MAX, 0, 0)];
        let shape = LatencyShape::new(pieces).unwrap();
        assert_eq!((shape.quantile(0), shape.quantile(1_000_000) / 1_000_000_000), (0, 86_399));
        assert_eq!(shape.with_mean(u64::MAX).quantile(1_000_000), LATENCY_NS_MAX);
        let swapped = LatencyShape::new(vec![piece(1, 5, 3)]).unwrap();
        assert_eq!(swapped.quantile(500_000), 3, "the ends of a piece in the wrong order");
    }
}
