//! Broken files, the number of errors that are listed, the keys of errors.

use super::variants::with_sets;
use super::*;

#[test]
fn broken_files() {
    let message = |errors: Diagnostics| errors.iter().next().unwrap().message.clone();
    let error = load_text("a = 1\n\u{0}\n", &Overrides::default()).unwrap_err();
    assert!(message(error).starts_with("not TOML"));
    let error = load(Path::new("/no/such/file.toml"), &Overrides::default()).unwrap_err();
    let first = error.iter().next().unwrap();
    assert_eq!((first.line, first.column), (0, 0));
    assert!(message(error).starts_with("cannot read the scenario"));
}

#[test]
fn the_number_of_reported_mistakes_is_bounded() {
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
    let errors = load_text(&text, &Overrides::default()).unwrap_err();
    let keys: Vec<Option<&str>> = errors.iter().map(|error| error.key.as_deref()).collect();
    let wanted =
        ["task.main.nice", "task.main.sice", "file.log.size", "sysctl.vm.swappiness", "group.0"];
    assert_eq!(keys, wanted.map(Some));
    let errors = load_text(SOUND, &with_sets(&[("machine.cpus", "0")])).unwrap_err();
    let key = errors.iter().next().unwrap().key.as_deref();
    assert_eq!(key, Some("machine.cpus"), "the key of the option");
}
