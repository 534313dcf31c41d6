//! `pagetide run A B C`: one table over several scenarios.

use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::SMALL;

#[test]
fn several_scenarios_share_a_table_with_a_geometric_mean() {
    let place = TestDir::with("small.toml", SMALL);
    let other = SMALL.replace("\"small\"", "\"large\"").replace("\"96MiB\"", "\"120MiB\"");
    place.write("large.toml", other);
    let run = place.starting("run small.toml large.toml");
    let table = run("--against early --repeats 2").quietly().stdout;
    let starts = |start: &str| table.lines().find(|line| line.starts_with(start));
    let head = table.lines().find(|line| line.trim_start().starts_with("early")).unwrap();
    assert!(head.ends_with("default"), "{table}");
    for line in ["small: reader.walltime", "large: reader.walltime"] {
        assert!(starts(line).is_some_and(|line| line.contains('%')), "{line}: {table}");
    }
    assert!(starts("geometric mean").is_some_and(|line| line.contains('%')), "{table}");
    let metrics = run("--against early --repeats 2 --metrics pgmajfault").quietly();
    metrics.prints(&["large: pgmajfault"]);

    let csv = run("--repeats 1 --format csv").quietly().stdout;
    assert_eq!(csv.matches("scenario,version,").count(), 1);
    assert!(csv.contains("\nsmall,") && csv.contains("\nlarge,"));
    let json = run("--repeats 1 --format json").quietly().json();
    assert_eq!(json[1]["scenario"], "large");

    run("--against erly").fails(2, &["no variant `erly`", "hint: did you mean `early`?"]);
    run("--html out.html").fails(2, &["--html"]);
    run("--metrics pgmajfalt").fails(2, &["did you mean `pgmajfault`"]);
    let one = place.run("run small.toml --against early --repeats 1").quietly();
    one.prints(&["change against early"]);
}
