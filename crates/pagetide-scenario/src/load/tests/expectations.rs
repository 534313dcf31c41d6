//! Expectations of a scenario: criteria with existing metrics and variants.

use super::*;

#[test]
fn expectations_are_read() {
    let scenario = sound(&format!(
        "{SOUND}[[group]]\nname = \"main\"\n[[expect]]\ntext = \"it is small\"\n\
         that = \"group:main:memory.current within 5 % of 30M and main.pgfault > 0\"\n"
    ));
    let [expectation] = scenario.expectations.as_slice() else { panic!("one is expected") };
    assert_eq!(expectation.text, "it is small");
    // Full keys become the form in records.
    assert_eq!(
        expectation.criterion.to_string(),
        "main.memory.current within 5 % of 30M and main.pgfault > 0"
    );
    assert!(expectation.applies_to("default"));
}

/// A metric that needs another file to be read is recorded only on request.
#[test]
fn what_is_reported_on_request_is_asked_for_by_rows_and_expectations() {
    let group = "[[group]]\nname = \"g\"\n";
    let asked = |text: &str| {
        sound(&format!("{SOUND}{group}{text}")).variants.remove(0).setup.requested_group_metrics
    };
    let that = |that: &str| format!("[[expect]]\ntext = \"t\"\nthat = \"{that}\"\n");
    assert_eq!(asked(""), [""; 0]);
    assert_eq!(asked(&that("g.memory.current > 0")), [""; 0]);
    assert_eq!(asked(&that("g.memory.max == max")), ["memory.max"]);
    assert_eq!(asked(&that("g.memory.swap.max == max and g.anon == 0")), ["memory.swap.max"]);
    assert_eq!(asked(&that("group:g:memory.low < g.memory.current")), ["memory.low"]);
    assert_eq!(asked("[report]\nrows = [\"*.memory.high\"]\n"), ["memory.high"]);
    assert_eq!(asked("[report]\nrows = [\"g.memory.*\"]\n"), [""; 0]);
    let mut setup = sound(&format!("{SOUND}{group}")).variants.remove(0).setup;
    ["g.memory.max", "g.anon", "*.nr_dying*"]
        .iter()
        .for_each(|metric| setup.request_metric(metric));
    assert_eq!(setup.requested_group_metrics, ["cgroup.stat.nr_dying_descendants", "memory.max"]);
}

#[test]
fn an_expectation_may_be_of_some_variants() {
    let variants = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    let of = |names: &str| {
        format!(
            "{variants}[[expect]]\ntext = \"t\"\nthat = \"pgfault > 0\"\nvariants = [{names}]\n"
        )
    };
    let scenario = sound(&format!("{SOUND}{}", of("\"b\"")));
    let expectation = &scenario.expectations[0];
    assert!(expectation.applies_to("b") && !expectation.applies_to("a"));
}

#[test]
fn metrics_are_looked_for_in_a_variant_that_it_is_of() {
    let of = |variants: &str| {
        format!(
            "{SOUND}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
             set = {{ \"task.main.name\" = \"only\" }}\n\
             [[expect]]\ntext = \"t\"\nthat = \"only.pgfault > 0\"\n{variants}"
        )
    };
    let scenario = sound(&of("variants = [\"b\"]\n"));
    assert_eq!(scenario.expectations[0].criterion.to_string(), "only.pgfault > 0");
}
