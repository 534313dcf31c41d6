//! Broken TOML, unknown keys, wrong types and units: all reported at once, at their positions.

use super::*;

#[test]
fn many_mistakes_are_told_at_once() {
    let text = "\
repeats = 0
[machine]
memory = \"2 gb\"
cpu = 2
[[task]]
name = \"a\"
workload = \"touhc\"
[[task]]
name = \"b\"
after = \"c\"
workload = \"sleep\"
";
    let found: Vec<(usize, String)> =
        mistakes(text).into_iter().map(|d| (d.line, d.message)).collect();
    let expected = [
        (1, "0 is out of range"),
        (3, "`2 gb`: unit `gb` is not used here"),
        (4, "unknown key `cpu`"),
        (7, "unknown workload `touhc`"),
        (10, "there is no task `c`"),
        (11, "workload sleep has no `duration`"),
    ];
    let expected: Vec<(usize, String)> =
        expected.into_iter().map(|(line, message)| (line, message.to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn broken_toml_stops_at_the_first_break() {
    expect_in("[machine\nmemory = 1\n", 1, 9, "", "not TOML: unclosed table, expected `]`", "");
    let found = told("a = [1, 2\n[machine]\nb = 3\n");
    assert_eq!(found.len(), 1, "{found:?}");
    let found = told("a = 1\n\u{0}\n");
    assert!(found[0].3.starts_with("not TOML"), "{found:?}");
}

#[test]
fn forgotten_quotes_do_not_stop_the_checks() {
    let text = SOUND.replace("\"1GiB\"", "1GiB") + "[sysctl]\nvm.swapiness = 1\n";
    let found = told(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!((found[0].0, found[0].1, found[0].4.as_str()), (2, 10, "write \"1GiB\""));
    assert_eq!(found[1].3, "unknown sysctl `vm.swapiness`");
    expect(
        "name = \"x\"\n",
        1,
        1,
        "name",
        "not TOML: duplicate key",
        "`name` is already set in this table: keep one of them",
    );
}

#[test]
fn unknown_keys() {
    expect("nise = 3\n", 1, 1, "nise", "unknown key `nise`", "did you mean `nice`?");
    expect("[polcy]\n", 1, 2, "polcy", "unknown key `polcy`", "did you mean `policy`?");
    expect(
        "[report]\nmetrics = []\n",
        2,
        1,
        "metrics",
        "unknown key `metrics`",
        "the keys here are rows, measure",
    );
    expect(
        "populate = true\n",
        1,
        1,
        "populate",
        "workload touch has no key `populate`",
        "its keys are size, write, order, exponent, stride, passes, region, advice, compute, rate, load",
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\nsize = \"1GiB\"\n",
        7,
        1,
        "size",
        "workload sleep has no key `size`",
        "its keys are duration",
    );
}

#[test]
fn wrong_types_and_units() {
    let hint = "did you mean `64MiB`?";
    expect(
        "[[file]]\nname = \"b\"\nsize = \"64MB\"\n",
        3,
        8,
        "\"64MB\"",
        "`64MB`: unit `MB` is not used here",
        hint,
    );
    expect(
        "[[file]]\nname = \"b\"\nsize = 1.5\n",
        3,
        8,
        "1.5",
        "expected a size, found a float",
        units::SIZE_FORMS,
    );
    expect(
        "[[file]]\nname = \"b\"\nsize = -1\n",
        3,
        8,
        "-1",
        "a size cannot be negative",
        units::SIZE_FORMS,
    );
    expect("delay = 5\n", 1, 9, "5", "a time needs a unit", units::TIME_FORMS);
    expect(
        "delay = \"5 parsecs\"\n",
        1,
        9,
        "\"5 parsecs\"",
        "`5 parsecs`: unknown unit `parsecs`",
        units::TIME_FORMS,
    );
    expect(
        "nice = \"3\"\n",
        1,
        8,
        "\"3\"",
        "expected an integer, found a string",
        "remove the quotes",
    );
    expect("nice = 20\n", 1, 8, "20", "20 is out of range", "write an integer, from -20 to 19");
    expect("background = 1\n", 1, 14, "1", "expected true or false, found an integer", "");
    expect(
        "order = \"randomly\"\n",
        1,
        9,
        "\"randomly\"",
        "unknown order `randomly`",
        "did you mean \"random\"?",
    );
    expect(
        "order = \"sorted\"\n",
        1,
        9,
        "\"sorted\"",
        "unknown order `sorted`",
        "it is one of `sequential`, `scattered`, `random` and `zipf`",
    );
    expect(
        "exponent = 1.0\n",
        1,
        12,
        "1.0",
        "this order has no `exponent`",
        "leave it out: only order = \"zipf\" has an exponent",
    );
    expect(
        "order = \"zipf\"\nexponent = 0.999\n",
        2,
        12,
        "0.999",
        "not a valid exponent",
        "write a number from 0.01 to 10 with at most two decimals, for example 1.0",
    );
    expect(
        "[variant]\nname = \"x\"\n",
        1,
        1,
        "[variant]",
        "expected an array, found a table",
        "write it as an array of tables, with double brackets: [[...]]",
    );
    expect(
        "[[file]]\nname = \"two words\"\n",
        2,
        8,
        "\"two words\"",
        "`two words` is not a valid name",
        "use 1 to 64 letters, digits, `-` and `_`",
    );
}

#[test]
fn the_number_of_mistakes_told_is_bounded() {
    let mut text = SOUND.to_owned();
    for i in 0..500 {
        text.push_str(&format!("key{i} = {i}\n"));
    }
    let errors = load_text(&text, &Overrides::default()).unwrap_err();
    assert_eq!(errors.iter().count(), 100);
    assert_eq!(errors.count(), 500);
    assert!(errors.to_string().ends_with("500 errors in dir/case.toml (400 not shown)\n"));
}

#[test]
fn mistakes_say_their_keys() {
    let between = "[[file]]\nname = \"log\"\nsize = 1.5\n";
    let text =
        format!("{SOUND}nice = 99\nsice = 1\n{between}[sysctl]\nvm.swappiness = 999\n[[group]]\n");
    let keys: Vec<Option<String>> =
        mistakes(&text).into_iter().map(|mistake| mistake.key).collect();
    let wanted =
        ["task.main.nice", "task.main.sice", "file.log.size", "sysctl.vm.swappiness", "group.0"];
    assert_eq!(keys, wanted.map(|key| Some(key.to_owned())));
    let overrides =
        Overrides { sets: vec![("machine.cpus".into(), "0".into())], ..Default::default() };
    let errors = load_text(SOUND, &overrides).unwrap_err();
    let key = errors.iter().next().unwrap().key.as_deref();
    assert_eq!(key, Some("machine.cpus"), "that of the option");
}
