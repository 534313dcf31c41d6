//! Kernel objects: the caches of several object mixes.

use super::*;

fn objects(name: &str, mix: &str, keys: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nworkload = \"kernel-objects\"\nmix = \"{mix}\"\n\
        units = 3\n{keys}"
    )
}

#[test]
fn caches_are_those_of_all_mixes() {
    let more = [
        objects("a", "filp-256.toml", "interval = \"1ms\"\n"),
        objects("b", "dentry.toml", "start_unit = true\ncopies = 2\n"),
    ];
    let text = format!("{SOUND}{}", more.concat());
    let mixes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics/mixes");
    let scenario = load_str("case.toml", &text, &mixes, &Overrides::default());
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let setup = &scenario.variants[0].setup;
    let caches: Vec<(&str, bool)> =
        setup.caches.iter().map(|cache| (cache.name.as_str(), cache.reclaimable)).collect();
    assert_eq!(caches, [("filp", false), ("dentry", true)]);
    let of = |task: usize| match &setup.tasks[task].phases[0].workload {
        Workload::KernelObjects(objects) => (objects.units, objects.interval_ns, objects.start),
        other => panic!("{other:?}"),
    };
    assert_eq!((of(1), of(2), of(3)), ((3, 1_000_000, false), (3, 0, true), (3, 0, true)));
}
