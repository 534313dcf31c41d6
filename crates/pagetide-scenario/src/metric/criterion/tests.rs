use super::*;
use crate::record::Incomplete;

fn parse(text: &str) -> Criterion {
    Criterion::parse(text, PageSize::Kib4).unwrap()
}

fn sample(values: &[(&str, f64, Unit)]) -> RunMetrics {
    let metric =
        |&(key, value, unit): &(&str, f64, Unit)| (key.to_owned(), Metric::new(value, unit));
    values.iter().map(metric).collect()
}

#[test]
fn the_language() {
    for (text, shown) in [
        ("allocstall == 0", "allocstall == 0"),
        ("allocstall=0", "allocstall == 0"),
        ("a.walltime<=10ms and b >= 0.5", "a.walltime <= 10ms and b >= 0.5"),
        ("x < 5 %  AND y > 1GiB", "x < 5 % and y > 1G"),
        ("x <= 1.1 * before", "x <= 1.1 * before"),
        ("x <= before*1.1", "x <= 1.1 * before"),
        ("x <= 110 % of before", "x <= 1.1 * before"),
        ("x < before", "x < before"),
        ("x != 500MiB/s", "x != 500M/s"),
        ("g.memory.current within 5 % of 30M", "g.memory.current within 5 % of 30M"),
        ("a within 256K of b + 0.5 * c - d-e", "a within 256K of b + 0.5 * c - d-e"),
        ("a < 50 % * b", "a < 0.5 * b"),
        ("a - b*2 > 0", "a - b*2 > 0"),
        ("a - b * 2 > 0", "a - 2 * b > 0"),
        ("a == before.b", "a == before.b"),
        ("a == b + 4 - 1", "a == b + 4 - 1"),
        ("a - 30M <= b", "a - 30M <= b"),
        ("g.memory.high == max", "g.memory.high == max"),
    ] {
        assert_eq!(parse(text).to_string(), shown);
        assert_eq!(parse(shown).to_string(), shown);
    }
    for bad in [
        "",
        "and",
        "a",
        "a ==",
        "== 0",
        "a b == 0",
        "a == 0 and",
        "a <= 2GB",
        "a <= 10ms * before",
        "a <= before + 1",
        "a => 1",
        "a within 5 %",
        "a within of b",
        "a within x of b",
        "a within 5 % of",
        "a + == b",
        "a * b == 1",
        "a == b +",
        "2 == a",
    ] {
        assert!(Criterion::parse(bad, PageSize::Kib4).is_err(), "{bad}");
    }
}

#[test]
fn all_terms_must_hold() {
    let run = sample(&[("a", 5.0, Unit::Count), ("b.walltime", 0.010, Unit::Seconds)]);
    for (text, holds) in [
        ("a == 5", true),
        ("a != 5", false),
        ("a < 5 and b.walltime <= 10ms", false),
        ("a <= 5 and b.walltime <= 10ms", true),
        ("b.walltime < 10ms", false),
        ("absent == 0", false),
    ] {
        assert_eq!(parse(text).holds(&run, None), holds, "{text}");
    }
}

#[test]
fn before_is_of_the_same_seed() {
    let (run, before) = (sample(&[("a", 11.0, Unit::Count)]), sample(&[("a", 10.0, Unit::Count)]));
    let criterion = parse("a <= 1.1 * before");
    assert!(criterion.is_relative());
    assert!(criterion.holds(&run, Some(&before)));
    assert!(!parse("a <= before").holds(&run, Some(&before)));
    assert!(!criterion.holds(&run, None));
}

#[test]
fn a_value_that_is_none_meets_nothing() {
    let run = sample(&[("a", f64::NAN, Unit::Count)]);
    assert!(!parse("a != 1").holds(&run, None));
    let mut killed = sample(&[("t.walltime", 0.1, Unit::Seconds)]);
    let fast = parse("t.walltime < 1s");
    assert!(fast.holds(&killed, None));
    killed.get_mut("t.walltime").unwrap().ended = Some(Incomplete::OomKilled);
    assert!(!fast.holds(&killed, None));
}

#[test]
fn names_and_units_are_checked() {
    let run = sample(&[("allocstall", 5.0, Unit::Count), ("b.walltime", 1.0, Unit::Seconds)]);
    let refused = |text: &str| parse(text).check(&run).unwrap_err();
    assert_eq!(refused("alocstall == 0").hint, "did you mean `allocstall`?");
    assert!(refused("allocstall == 0ms").message.contains("mixes units"));
    assert!(refused("b.walltime < 5").hint.contains("10ms"));
    assert!(refused("b.walltime < 5 %").message.contains("is a time"));
    assert!(parse("b.walltime > 0 and allocstall <= 1.5 * before").check(&run).is_ok());
}

#[test]
fn maxima_are_warned_of() {
    assert_eq!(parse("w.latency_max < 1s and x == 0").warnings().len(), 1);
    assert_eq!(parse("w.latency_p999 < 1s").warnings().len(), 1);
    assert!(parse("w.latency_p99 < 1s").warnings().is_empty());
}

#[test]
fn metrics_are_held_against_metrics() {
    let run = sample(&[
        ("a", 100.0, Unit::Bytes),
        ("b", 60.0, Unit::Bytes),
        ("c", 45.0, Unit::Bytes),
        ("n", 3.0, Unit::Count),
    ]);
    for (text, holds) in [
        ("a within 5 of b + c", true),
        ("a within 4 of b + c", false),
        ("a within 5 % of b + c", true),
        ("a within 4 % of b + c", false),
        ("c < 0.5 * a", true),
        ("a - b < c", true),
        ("a - b - c < 0", true),
        ("a > b + absent", false),
        ("b == c + 15", true),
        ("b - 60 == 0", true),
    ] {
        assert_eq!(parse(text).holds(&run, None), holds, "{text}");
    }
    assert!(parse("a == b + n").check(&run).unwrap_err().message.contains("mixes units"));
    assert!(parse("a within 1ms of b").check(&run).unwrap_err().hint.contains("a size"));
    assert!(parse("a within 1 % of b").check(&run).is_ok());
    assert!(parse("a == b + absent").check(&run).unwrap_err().message.contains("absent"));
}
