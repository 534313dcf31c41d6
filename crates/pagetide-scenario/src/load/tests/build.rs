//! Builds: the defaults of the recorded compile, and all keys.

use super::*;
use crate::model::{Build, Link};

const TRACE: &str = "../../experiments/traces/cc1-zpipe.ptt";

/// A scenario with three files, and a build with `keys`.
fn with_keys(keys: &str) -> String {
    let file = |name: &str, keys: &str| format!("[[file]]\nname = \"{name}\"\n{keys}");
    let files = [
        file("tree", "size = \"64MiB\"\n"),
        file("include", "size = \"5MiB\"\n"),
        file("out", "private = true\n"),
        file("inodes", "size = \"1MiB\"\nmetadata = true\n"),
    ];
    format!("{SOUND}{}[[task]]\nname = \"make\"\nworkload = \"build\"\n{keys}", files.concat())
}

fn load_build(keys: &str) -> Result<Scenario, Diagnostics> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    load_str("dir/case.toml", &with_keys(keys), base, &Overrides::default())
}

#[test]
fn defaults_are_those_of_the_recorded_compile() {
    let keys = format!("path = \"{TRACE}\"\nunits = 3\n");
    let build = |keys: &str| {
        let scenario = load_build(keys).unwrap_or_else(|errors| panic!("{errors}"));
        let setup = scenario.variants.into_iter().next().unwrap().setup;
        let Workload::Build(build) = &setup.tasks[1].phases[0].workload else {
            panic!("not a build")
        };
        (build.clone(), setup.files.into_iter().map(|file| file.name).collect::<Vec<String>>())
    };
    let (bare, files) = build(&keys);
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join(TRACE);
    let expected = Build {
        trace,
        units: 3,
        sources: None,
        headers: None,
        objects: None,
        metadata: None,
        link: None,
        stack_order: 0,
        kernel_pages: 0,
        mix: None,
    };
    assert_eq!(bare, expected);
    assert_eq!(files, ["data", "tree", "include", "inodes"]);
    let named = "sources = \"tree\"\nheaders = \"include\"\nobjects = \"out\"\n";
    let (full, files) = build(&format!("{keys}{named}"));
    assert_eq!(full.sources, Some((1, 6323)));
    assert_eq!(full.headers, Some((2, 442_572)));
    assert_eq!(full.objects, Some((4, 6592)));
    assert_eq!(files[4], "out@make");
    let bytes = "source = \"8KiB\"\nheader = \"1MiB\"\nobject = 5\n";
    let (sized, _) = build(&format!("{keys}{named}{bytes}"));
    assert_eq!(sized.sources, Some((1, 8192)));
    assert_eq!(sized.headers, Some((2, 1 << 20)));
    assert_eq!(sized.objects, Some((4, 5)));
    let links = "metadata = \"inodes\"\nlink = \"1MiB\"\n";
    let (linked, _) = build(&format!("{keys}{named}{links}"));
    assert_eq!(linked.metadata, Some((3, 20 << 10)));
    assert_eq!(linked.link, Some(Link { bytes: 1 << 20, units: 3 }));
    let (linked, _) = build(&format!("{keys}{named}{links}metadata_size = 5\nlink_units = 2\n"));
    assert_eq!(linked.metadata, Some((3, 5)));
    assert_eq!(linked.link, Some(Link { bytes: 1 << 20, units: 2 }));
}

#[test]
fn a_unit_can_have_kernel_memory() {
    let keys = format!("path = \"{TRACE}\"\nunits = 1\n");
    let scenario = load_build(&format!("{keys}stack_order = 2\nkernel_pages = 30\n"));
    let Workload::Build(build) = &scenario.unwrap().variants[0].setup.tasks[1].phases[0].workload
    else {
        panic!("not a build")
    };
    assert_eq!((build.stack_order, build.kernel_pages), (2, 30));
}
