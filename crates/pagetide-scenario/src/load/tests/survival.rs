//! No text panics the loader, and every accepted scenario can run.

use super::variants::with_sets;
use super::*;
use crate::workload::Program;
use proptest::prelude::*;

/// Loads `text`; renders its mistakes, or runs it if it has none. Frames of a build without
/// optimisation are several times as large as those of a release, so the stack is larger, too.
fn survive(text: &str) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn_scoped(scope, || load_and_run(text)).unwrap().join().unwrap();
    });
}

fn load_and_run(text: &str) {
    const TASKS: usize = 20;
    const OPS: usize = 100;
    // Its `everything.toml` is the base of some texts.
    match load_str("dir/case.toml", text, Path::new("src/load"), &Overrides::default()) {
        Err(errors) => {
            let rendered = errors.render(crate::diagnostic::Style::Coloured);
            assert!(rendered.len() < 4 << 20);
        }
        Ok(scenario) => {
            for setup in scenario.variants.iter().map(|variant| &variant.setup) {
                for task in 0..setup.tasks.len().min(TASKS) {
                    let mut program = Program::new(setup, task, 1).unwrap();
                    for _ in 0..OPS {
                        program.next_op().unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn nasty_files_are_survived() {
    let deep_inline = "a = ".to_owned() + &format!("{{{} = ", ["b"; 79].join(".")).repeat(79);
    for text in [
        "",
        "\u{feff}",
        "\u{feff}[machine]",
        "\0",
        "\r\r\n",
        "=",
        "[[]]",
        "[[task]]\n[task]",
        "task = 1\n[[task]]",
        "task = [1, {name = \"a\"}, []]",
        "machine = []",
        "machine.node = [{}, {memory = {}}]\ntask = [{}]",
        "[machine]\nmemory = 99999999999999999999999999999999999999999999\n",
        "[machine]\nmemory = -99999999999999999999999999999999999999999999\n",
        "[machine]\nmemory = 1e999\n[reference]\nsource=\"\"\ndefault.x = 1e999",
        "[machine]\nmemory = 9223372036854775807\ncpus = 1979-05-27",
        "[[machine.zone]]\nname=\"DMA\"\npresent=\"18446744073709551615\"\nfree=\"18446744073709551615\"",
        "[[machine.zone]]\nname=\"DMA\"\npresent=\"18446744073709547520\"\n\
         [[machine.zone]]\nname=\"DMA32\"\npresent=\"18446744073709547520\"",
        "[[machine.node]]\nmemory=\"18446744073709547520\"\n[[machine.node]]\nmemory=\"18446744073709547520\"",
        "variant = {}",
        "[[variant]]\nname = 1\nset = []\nsysctl = 3\npolicy = 1",
        "[sysctl]\n\"\" = \"\"\n\"vm.swappiness\" = [1, \"a\"]\n\"vm.page-cluster\" = []",
        "[sysctl]\n\"vm.swappiness\" = \"-9223372036854775808\"\n\"vm.dirty_bytes\" = \"0x\"",
        "[[group]]\nname = \"\u{202e}\"\n\"memory.max\" = \"\u{0661}M\"",
        "[[task]]\nname = \"a\"\nstart = \"584y\"\nafter = \".\"\nafter = \"..\"",
        "[[task]]\nname = \"a\"\nafter = \"a.99999999999999999999\"",
        "[[task]]\nname = \"a\"\ncopies = 4096\n[[task.phase]]\nname = \"p\"\nrepeat = 4096\n\
         workload = \"sleep\"\nduration = \"1s\"",
        "time_limit = \"18446744073709551615ns\"",
        "time_limit = \"99999999999999h\"",
        "[report]\nrows = [\"\", \".\", \"...\", 1]",
        &deep_inline,
        &format!("{} = 1", ["a"; 5000].join(".")),
        &"[".repeat(50_000),
        &"a = {".repeat(20_000),
        &"[[variant]]\n".repeat(20_000),
        &"[[task]]\nafter=\"b\"\n".repeat(10_000),
        &"\u{1f600}".repeat(60_000),
        &"x".repeat(300_000),
        &format!("{SOUND}{}", "[[task]]\nname=\"b\"\n[[task.phase]]\nname=\"p\"\nrepeat=4096\n\
            workload=\"sleep\"\nduration=\"1s\"\n".repeat(3000)),
        &format!("{SOUND}copies=4000\n[[task.phase]]\n{}", (0..64).map(|i| {
            format!("[[variant]]\nname=\"v{i}\"\n")
        }).collect::<String>()),
        &format!("[sysctl]\n{}", (0..20_000).map(|i| format!("k{i}=1\n")).collect::<String>()),
        &format!("name = \"{}\"", "x".repeat(200_000)),
        &format!("[sysctl]\n\"{}\" = 1", "x".repeat(200_000)),
    ] {
        survive(text);
    }
}

#[test]
fn every_cut_of_a_scenario_is_survived() {
    let text = include_str!("../everything.toml");
    for (end, _) in text.char_indices() {
        survive(&text[..end]);
    }
}

/// Pieces of scenarios, most of them invalid.
fn piece() -> impl Strategy<Value = String> {
    let words = include_str!("../everything.toml");
    let lines: Vec<String> = words.lines().map(|line| format!("{line}\n")).collect();
    let values =
        vec!["0", "-1", "\"\"", "[]", "{}", "\"1s\"", "\"2GiB\"", "true", "1e9", "\"a.b\""];
    prop_oneof![
        4 => prop::sample::select(lines.clone()),
        2 => (prop::sample::select(lines), prop::sample::select(values)).prop_map(|(line, value)| {
            let key = line.split('=').next().unwrap_or_default().trim().to_owned();
            format!("{key} = {value}\n")
        }),
        1 => any::<String>(),
        1 => "[a-z.=\\[\\]{}\", 0-9\n]{0,20}",
    ]
}

/// Paths of parts.
fn path() -> impl Strategy<Value = String> {
    let known =
        ["variant", "machine", "task", "sysctl", "group.inner", "file.data", "name", "report.rows"];
    prop_oneof![
        3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-z.\"]{0,12}",
    ]
}

/// Values of keys.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..9_999_999_999_u64).prop_map(|value| value.to_string()),
        (1..3000_u64).prop_map(|value| format!("\"{value} pages\"")),
        (0..9000_u64).prop_map(|value| format!("\"{value}GiB\"")),
        (0..9000_u64).prop_map(|value| format!("\"{value}ms\"")),
        Just("true".to_owned()),
        Just("\"zipf\"".to_owned()),
        Just("\"data\"".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text: String) {
        survive(&text);
    }

    #[test]
    fn any_mixture_of_lines_is_survived(pieces in prop::collection::vec(piece(), 0..60)) {
        survive(&pieces.concat());
    }

    #[test]
    fn any_extension_of_a_scenario_is_survived(
        parts in prop::collection::vec(path(), 0..4),
        pieces in prop::collection::vec(piece(), 0..20),
    ) {
        survive(&format!("base = \"everything.toml\"\nwithout = {parts:?}\n{}", pieces.concat()));
    }

    #[test]
    fn any_values_in_the_full_scenario_are_survived(
        changes in prop::collection::vec((0..200_usize, value()), 1..4)
    ) {
        let mut lines: Vec<String> =
            include_str!("../everything.toml").lines().map(str::to_owned).collect();
        let count = lines.len();
        for (line, value) in changes {
            let line = &mut lines[line % count];
            if let Some((key, _)) = line.clone().split_once('=') {
                *line = format!("{key}= {value}");
            }
        }
        survive(&lines.join("\n"));
    }

    #[test]
    fn any_change_on_the_command_line_is_survived(key: String, value: String, piece in piece()) {
        let text = include_str!("../everything.toml");
        let (path, _) = piece.split_once('=').unwrap_or((&piece, ""));
        let overrides = with_sets(&[(&key, &value), (path.trim(), &value), (path.trim(), "1")]);
        if let Err(errors) = load_text(text, &overrides) {
            errors.to_string();
        }
    }
}
