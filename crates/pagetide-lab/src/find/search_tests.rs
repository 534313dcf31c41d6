use super::*;

fn task(values: usize) -> SearchTask {
    SearchTask {
        values,
        wanted: WantedEnd::Smallest,
        share: 0.95,
        seed: 1,
        seeds: 20,
        is_relative: false,
    }
}

/// Runs a search in a world that is a function, and counts the values tried.
fn run(task: SearchTask, world: impl Fn(usize, u64) -> bool) -> (SearchOutcome, ValueSearch) {
    let mut search = ValueSearch::new(task);
    for _ in 0..100 {
        match search.next_step() {
            SearchStep::Done(outcome) => {
                let places = search.tried().len() + 1;
                assert!(places <= PLACES_MAX, "{places} values");
                return (outcome, search);
            }
            SearchStep::Run(runs) => {
                assert!(!runs.is_empty());
                // In reverse order, as threads might.
                for (place, seed) in runs.into_iter().rev() {
                    let held = match place {
                        SearchPlace::Before => false,
                        SearchPlace::At(at) => world(at, seed),
                    };
                    search.add_result(place, seed, held);
                }
            }
        }
    }
    panic!("the search does not end");
}

fn found(outcome: &SearchOutcome) -> SearchResult {
    match outcome {
        SearchOutcome::Found(found) => *found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_threshold_is_found_to_the_step() {
    for values in [2, 3, 7, 8, 50, 201, 700] {
        for threshold in (0..values).step_by((values / 40).max(1)) {
            let (outcome, _) = run(task(values), |at, _| at >= threshold);
            let found = found(&outcome);
            assert_eq!(found.place, threshold, "of {values}");
            assert_eq!(found.failing, threshold.checked_sub(1));
            assert_eq!((found.fresh.held, found.fresh.of), (20, 20));
            assert!(found.is_confirmed);
            assert_eq!(found.all, threshold == 0);
        }
    }
}

#[test]
fn the_largest_of_a_falling_criterion() {
    for threshold in 0..60 {
        let down = SearchTask { wanted: WantedEnd::Largest, ..task(60) };
        let (outcome, _) = run(down, |at, _| at <= threshold);
        let found = found(&outcome);
        assert_eq!(found.place, threshold);
        assert_eq!(found.failing, Some(threshold + 1).filter(|at| *at < 60));
        // The smallest is always the end of the range.
        let (outcome, _) = run(task(60), |at, _| at <= threshold);
        assert_eq!(self::found(&outcome).place, 0);
    }
}

#[test]
fn each_seed_has_a_threshold_of_its_own() {
    // Seed s passes from 100 + s on: 19 of 20 shared seeds (1 to 20) at 119, fresh ones from 139
    // on.
    let (outcome, search) = run(task(201), |at, seed| at as u64 >= 100 + seed % 20);
    let found = found(&outcome);
    assert_eq!(found.place, 118);
    assert_eq!(found.shared, SeedCount { held: 19, of: 20 });
    assert_eq!(found.fresh, SeedCount { held: 19, of: 20 });
    assert_eq!(search.count(SearchPlace::At(117), search.shared()).held, 18);
}

#[test]
fn fresh_seeds_may_refuse_a_value() {
    let (outcome, _) = run(task(50), |at, seed| at >= if seed > 20 { 22 } else { 20 });
    let moved = found(&outcome);
    assert_eq!((moved.place, moved.is_confirmed, moved.failing), (22, true, Some(21)));
    let (outcome, _) = run(task(50), |at, seed| seed <= 20 && at >= 20);
    let never = found(&outcome);
    assert!(!never.is_confirmed);
    assert_eq!(never.fresh.held, 0);
}

#[test]
fn a_value_of_the_grid_fails_only_after_all_seeds() {
    // Seed 3 is one of the first few: 33 has 5 of 6, and 19 of 20.
    let world = |at: usize, seed: u64| at >= 100 || (at >= 33 && seed != 3);
    let (outcome, search) = run(task(201), world);
    let lowest = found(&outcome);
    assert_eq!((lowest.place, lowest.failing, lowest.is_confirmed), (33, Some(32), true));
    assert_eq!(lowest.shared, SeedCount { held: 19, of: 20 });
    assert_eq!(search.count(SearchPlace::At(0), search.shared()).of, 6, "it cannot be met");
    // All values of the grid except the first have 5 of 6; the first fails on the other seeds.
    let (outcome, _) = run(task(201), |at, seed| seed != 3 && (at >= 20 || seed < 7));
    assert_eq!((found(&outcome).place, found(&outcome).failing), (20, Some(19)));
}

#[test]
fn not_all_values_meet_it_if_fresh_seeds_move_the_answer() {
    let (outcome, _) = run(task(100), |at, seed| at >= 2 || seed <= 20);
    let moved = found(&outcome);
    assert_eq!((moved.place, moved.failing, moved.all), (2, Some(1), false));
    let (outcome, _) = run(task(1), |_, seed| seed <= 20);
    assert!(!found(&outcome).all && !found(&outcome).is_confirmed);
}

#[test]
fn each_move_has_fresh_seeds_of_its_own() {
    let (outcome, search) = run(task(50), |at, seed| at >= if seed > 20 { 22 } else { 20 });
    assert_eq!(found(&outcome).place, 22);
    for (at, first) in [(20, 21), (21, 41), (22, 61)] {
        let place = SearchPlace::At(at);
        assert_eq!(search.count(place, first..=first + 19).of, 20, "{at}");
        let shared = search.count(place, search.shared()).of;
        assert_eq!(search.count_all(place).of - shared, 20, "no seed confirms two values");
    }
    let relative = SearchTask { is_relative: true, ..task(50) };
    let (_, search) = run(relative, |at, seed| at >= if seed > 20 { 22 } else { 20 });
    assert_eq!(search.count(SearchPlace::Before, 61..=80).of, 20);
}

#[test]
fn nothing_and_everything() {
    let (outcome, search) = run(task(100), |at, seed| at >= 66 && seed % 5 == 0);
    assert_eq!(outcome, SearchOutcome::Nothing { best: 66 });
    assert_eq!(search.count(SearchPlace::At(66), search.shared()), SeedCount { held: 4, of: 20 });
    let (outcome, _) = run(task(100), |_, _| true);
    let found = found(&outcome);
    assert_eq!((found.place, found.all, found.failing), (0, true, None));
    let (outcome, _) = run(task(1), |_, _| false);
    assert_eq!(outcome, SearchOutcome::Nothing { best: 0 });
}

#[test]
fn what_comes_and_goes_is_not_bisected() {
    let (outcome, search) = run(task(100), |at, _| (30..60).contains(&at));
    let SearchOutcome::NotMonotone { found: Some(found) } = outcome else { panic!("{outcome:?}") };
    assert_eq!((found.place, found.is_confirmed), (33, true));
    assert_eq!(search.tried().len(), 7, "the grid alone");
    let (outcome, _) = run(task(100), |at, seed| (30..60).contains(&at) && seed % 2 == 0);
    assert_eq!(outcome, SearchOutcome::NotMonotone { found: None });
}

#[test]
fn one_seed_that_differs_does_not_make_it_not_monotone() {
    let (outcome, _) = run(task(100), |at, seed| at >= 40 && !(seed == 3 && at == 67));
    assert_eq!(found(&outcome).place, 40);
}

#[test]
fn a_relative_criterion_needs_what_was_before_on_fresh_seeds() {
    let relative = SearchTask { is_relative: true, ..task(20) };
    let (_, search) = run(relative, |at, _| at >= 10);
    assert_eq!(search.count(SearchPlace::Before, search.fresh()).of, 20);
    let (_, search) = run(task(20), |at, _| at >= 10);
    assert_eq!(search.count(SearchPlace::Before, search.fresh()).of, 0);
}

#[test]
fn the_share_decides_how_many_seeds_are_enough() {
    let search = ValueSearch::new(task(3));
    let met = |held, of| search.is_met(SeedCount { held, of });
    assert!(met(19, 20) && !met(18, 20) && met(6, 6) && !met(5, 6) && !met(0, 0));
    let half = ValueSearch::new(SearchTask { share: 0.5, ..task(3) });
    assert!(
        half.is_met(SeedCount { held: 1, of: 2 }) && !half.is_met(SeedCount { held: 1, of: 3 })
    );
}
