//! Duplicate names, and unknown names.

use super::*;

#[test]
fn names_given_twice() {
    let twice = "give one of them another name";
    expect(
        "[[file]]\nname = \"data\"\n",
        2,
        8,
        "\"data\"",
        "the file `data` is defined twice",
        twice,
    );
    expect(
        "[[task]]\nname = \"main\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        2,
        8,
        "\"main\"",
        "the task `main` is defined twice",
        twice,
    );
    expect(
        "[[group]]\nname = \"g\"\n[[group]]\nname = \"g\"\n",
        4,
        8,
        "\"g\"",
        "the group `g` is defined twice",
        twice,
    );
    expect(
        "[[machine.disk]]\nname = \"d\"\nmodel = \"ssd\"\n[[machine.disk]]\nname = \"d\"\n\
        model = \"nvme\"\n",
        5,
        8,
        "\"d\"",
        "the disk `d` is defined twice",
        twice,
    );
    expect(
        "[[variant]]\nname = \"v\"\n[[variant]]\nname = \"v\"\n",
        4,
        8,
        "\"v\"",
        "the variant `v` is defined twice",
        twice,
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p1\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n[[task.phase]]\nname = \"p\"\nrepeat = 2\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        8,
        8,
        "\"p\"",
        "the phase `p1` is defined twice",
        twice,
    );
    // A task and a group are different kinds: they may have the same name.
    sound(&format!("{SOUND}[[group]]\nname = \"main\"\n"));
    let also = mistakes(&format!("{SOUND}[[file]]\nname = \"data\"\n"))[0].also.clone().unwrap();
    assert_eq!((also.line, also.column, also.label.as_str()), (4, 8, "first defined here"));
}

#[test]
fn unknown_references() {
    expect("group = \"g\"\n", 1, 9, "\"g\"", "there is no group `g`", "the scenario has no group");
    expect(
        "[[file]]\nname = \"b\"\ndisk = \"dsk\"\n",
        3,
        8,
        "\"dsk\"",
        "there is no disk `dsk`",
        "did you mean `disk`?",
    );
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"file-read\"\nfile = \"dat\"\n",
        4,
        8,
        "\"dat\"",
        "there is no file `dat`",
        "did you mean `data`?",
    );
    expect("after = \"other\"\n", 1, 9, "\"other\"", "there is no task `other`", "known: `main`");
    expect(
        "after = \"main.1\"\n",
        1,
        9,
        "\"main.1\"",
        "there is no task `main.1`",
        "`main` has one copy: write after = \"main\"",
    );
    expect(
        "copies = 3\n[[task]]\nname = \"b\"\nafter = \"main\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        4,
        9,
        "\"main\"",
        "`main` has several copies",
        "say which: after = \"main.0\", for example",
    );
    expect(
        "[[group]]\nname = \"g\"\nparent = \"h\"\n",
        3,
        10,
        "\"h\"",
        "there is no group `h`",
        "known: `g`",
    );
    expect(
        "[report]\nmeasure = \"man\"\n",
        2,
        11,
        "\"man\"",
        "there is no task `man`",
        "did you mean `main`?",
    );
    expect(
        "[machine.swap]\nsize = \"1GiB\"\ndisk = \"hdd\"\n",
        3,
        8,
        "\"hdd\"",
        "there is no disk `hdd`",
        "known: `disk`",
    );
}

#[test]
fn files_and_traces_must_be_there() {
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"trace\"\npath = \"a.ptt\"\n",
        4,
        8,
        "\"a.ptt\"",
        "trace `a.ptt`: No such file or directory (os error 2)",
        "looked for no-such-directory/a.ptt: paths are relative to the scenario file",
    );
    // An existing file that is not a trace: this crate's own manifest.
    let text =
        format!("{SOUND}[[task]]\nname = \"b\"\nworkload = \"trace\"\npath = \"Cargo.toml\"\n");
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let errors = load_str("x.toml", &text, base, &Overrides::default()).unwrap_err();
    let first = errors.iter().next().unwrap();
    assert_eq!((first.line, first.column), (NEXT + 3, 8));
    assert!(first.message.starts_with("trace `Cargo.toml`: "), "{}", first.message);
    expect(
        "[[file]]\nname = \"empty\"\n[[task]]\nname = \"b\"\nworkload = \"file-read\"\n\
        file = \"empty\"\n",
        6,
        8,
        "\"empty\"",
        "the file `empty` is empty when the run starts",
        "give it a size = \"1GiB\", for example",
    );
    let error = load(Path::new("/no/such/file.toml"), &Overrides::default()).unwrap_err();
    let first = error.iter().next().unwrap();
    assert_eq!((first.line, first.column), (0, 0));
    assert!(first.message.starts_with("cannot read the scenario"), "{}", first.message);
}
