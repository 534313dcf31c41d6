//! Two knobs: a grid, and its Pareto front.
//!
//! A point is on the front if it meets the criterion and no other point that does is nearer to the
//! wanted end of both knobs.
//!
//! Places count row by row: the second knob changes fastest.

use super::search::{SearchPlace, ValueSearch, WantedEnd};

/// Values of each of two knobs unless the range says how many.
pub const VALUES: usize = 6;
/// Points of a grid at most.
pub const POINTS_MAX: usize = 400;

/// The front, ascending in the first knob.
/// The error lists missing runs: first those of all points on the shared seeds, then those of the
/// front on fresh ones.
pub fn front(search: &ValueSearch, columns: usize) -> Result<Vec<usize>, Vec<(SearchPlace, u64)>> {
    let points = search.task().values;
    let mut places: Vec<SearchPlace> = vec![SearchPlace::Before];
    places.extend((0..points).map(SearchPlace::At));
    search.need(&places, search.shared())?;
    let is_met = |at: &usize| search.is_met(search.count(SearchPlace::At(*at), search.shared()));
    let met: Vec<usize> = (0..points).filter(is_met).collect();
    let wanted = search.task().wanted;
    let is_nearer = |a: usize, b: usize| match wanted {
        WantedEnd::Smallest => a <= b,
        WantedEnd::Largest => a >= b,
    };
    let is_beaten = |at: usize| {
        met.iter().any(|&other| {
            other != at
                && is_nearer(other / columns, at / columns)
                && is_nearer(other % columns, at % columns)
        })
    };
    let front: Vec<usize> = met.iter().copied().filter(|&at| !is_beaten(at)).collect();
    let mut fresh: Vec<SearchPlace> = front.iter().copied().map(SearchPlace::At).collect();
    if search.task().is_relative && !fresh.is_empty() {
        fresh.push(SearchPlace::Before);
    }
    search.need(&fresh, search.fresh())?;
    Ok(front)
}

#[cfg(test)]
mod tests {
    use super::super::search::SearchTask;
    use super::*;

    fn run(wanted: WantedEnd, world: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
        let task =
            SearchTask { values: 30, wanted, share: 0.9, seed: 1, seeds: 4, is_relative: false };
        let mut search = ValueSearch::new(task);
        for _ in 0..3 {
            match front(&search, 6) {
                Ok(front) => return front.into_iter().map(|at| (at / 6, at % 6)).collect(),
                Err(runs) => {
                    for (place, seed) in runs {
                        let held = match place {
                            SearchPlace::Before => false,
                            SearchPlace::At(at) => world(at / 6, at % 6),
                        };
                        search.add_result(place, seed, held);
                    }
                }
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn the_front_is_where_neither_knob_can_go_further() {
        assert_eq!(
            run(WantedEnd::Smallest, |a, b| a + b >= 4),
            [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]
        );
        assert_eq!(run(WantedEnd::Smallest, |a, b| a >= 2 && b >= 3), [(2, 3)]);
        assert_eq!(run(WantedEnd::Largest, |a, b| a + b <= 4 && b < 2), [(3, 1), (4, 0)]);
        assert_eq!(run(WantedEnd::Smallest, |_, _| false), []);
        assert_eq!(run(WantedEnd::Largest, |_, _| true), [(4, 5)]);
    }
}
