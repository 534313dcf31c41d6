//! Builds: pairs of file and bytes keys, an existing trace, the defaults of the recorded compile.

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

/// The line of the first of `keys` in the file.
const KEYS: usize = NEXT + 16;

fn load_build(keys: &str) -> Result<Scenario, Diagnostics> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    load_str("dir/case.toml", &with_keys(keys), base, &Overrides::default())
}

/// Checks the only mistake. Lines count from the first key of the build.
#[track_caller]
fn expect_key(keys: &str, line: usize, column: usize, text: &str, message: &str, hint: &str) {
    let errors = load_build(keys).expect_err("there is a mistake");
    let found: Vec<Diagnostic> = errors.iter().cloned().collect();
    let [one] = found.as_slice() else { panic!("expected one mistake, found {found:#?}") };
    assert_eq!((one.line + 1 - KEYS, one.column, one.text.as_str()), (line, column, text));
    assert_eq!((one.message.as_str(), one.hint.as_deref().unwrap_or_default()), (message, hint));
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
fn links_have_objects_and_metadata_is_the_file_systems() {
    let keys = format!("path = \"{TRACE}\"\nunits = 1000000\n");
    expect_key(
        &format!("{keys}link = \"1MiB\"\n"),
        3,
        8,
        "\"1MiB\"",
        "`link` needs `objects`",
        "add objects = \"NAME\", the file with the objects",
    );
    expect_key(
        &format!("{keys}objects = \"out\"\nlink = 0\n"),
        4,
        8,
        "0",
        "a link writes 0 bytes",
        "leave out `link`",
    );
    expect_key(
        &format!("{keys}objects = \"out\"\nlink_units = 5\n"),
        4,
        14,
        "5",
        "`link_units` needs `link`",
        "add link = \"10MiB\" (bytes that a link writes), or leave out both",
    );
    expect_key(
        &format!("{keys}object = 1\nlink_units = 1\nlink = \"9MiB\"\nobjects = \"out\"\n"),
        3,
        10,
        "1",
        "the appends make the file too large",
        "a file has at most 8TiB",
    );
    expect_key(
        &format!("{keys}metadata = \"tree\"\n"),
        3,
        12,
        "\"tree\"",
        "the file `tree` is not metadata",
        "give the file metadata = true",
    );
    expect_key(
        &format!("{keys}metadata_size = 5\n"),
        3,
        17,
        "5",
        "`metadata_size` needs `metadata`",
        "add metadata = \"NAME\" (a file), or leave out both",
    );
}

#[test]
fn builds_need_a_trace_and_units() {
    let path = format!("path = \"{TRACE}\"\n");
    let errors = load_build("").expect_err("two keys are missing");
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["workload build has no `path`", "workload build has no `units`"]);
    expect_key(
        &format!("{path}units = 0\n"),
        2,
        9,
        "0",
        "0 is out of range",
        "write an integer, from 1 to 1000000",
    );
    expect_key(
        "path = \"Cargo.tml\"\nunits = 1\n",
        1,
        8,
        "\"Cargo.tml\"",
        "trace `Cargo.tml`: No such file or directory (os error 2)",
        &format!(
            "looked for {}: paths are relative to the scenario file",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.tml").display()
        ),
    );
}

#[test]
fn files_and_bytes_come_in_pairs() {
    let keys = format!("path = \"{TRACE}\"\nunits = 1000000\n");
    for (file, bytes) in [("sources", "source"), ("headers", "header"), ("objects", "object")] {
        expect_key(
            &format!("{keys}{bytes} = 100\n"),
            3,
            bytes.len() + 4,
            "100",
            &format!("`{bytes}` needs `{file}`"),
            &format!("add {file} = \"NAME\" (a file), or leave out both"),
        );
        expect_key(
            &format!("{keys}{file} = \"tree\"\n{bytes} = 0\n"),
            4,
            bytes.len() + 4,
            "0",
            "a unit uses 0 bytes",
            &format!("leave out `{file}` and `{bytes}`"),
        );
        expect_key(
            &format!("{keys}{file} = \"tre\"\n"),
            3,
            file.len() + 4,
            "\"tre\"",
            "there is no file `tre`",
            "did you mean `tree`?",
        );
    }
    for file in ["sources", "headers"] {
        expect_key(
            &format!("{keys}{file} = \"out\"\n"),
            3,
            file.len() + 4,
            "\"out\"",
            "the file `out` is empty when the run starts",
            "give it a size = \"1GiB\", for example",
        );
    }
    expect_key(
        &format!("{keys}objects = \"out\"\nobject = \"9MiB\"\n"),
        4,
        10,
        "\"9MiB\"",
        "the appends make the file too large",
        "a file has at most 8TiB",
    );
    expect_key(
        &format!("{keys}source = \"1 parsec\"\nsources = \"tree\"\n"),
        3,
        10,
        "\"1 parsec\"",
        "`1 parsec`: unknown unit `parsec`",
        units::SIZE_FORMS,
    );
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
    expect_key(
        &format!("{keys}stack_order = 11\n"),
        3,
        15,
        "11",
        "11 is out of range",
        "write an integer, from 0 to 10",
    );
    expect_key(
        &format!("{keys}kernel_pages = -1\n"),
        3,
        16,
        "-1",
        "-1 is out of range",
        "write an integer, from 0 to 1048576",
    );
}
