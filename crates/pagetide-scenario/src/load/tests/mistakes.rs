//! Broken files, the number of errors that are listed, the keys of errors.

use super::variants::with_sets;
use super::*;
use crate::load::removed::REMOVED;

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
fn an_eviction_threshold_is_compared_with_managed_memory() {
    let text = |reserved: &str| {
        format!(
            "[machine]\nmemory = \"512MiB\"\nreserved = \"{reserved}\"\n[[group]]\nname = \"p\"\n\
             [[task]]\nname = \"t\"\n\
             workload = \"sleep\"\nduration = \"1s\"\n[[watcher]]\nkind = \"kubelet\"\n\
             memory_available = \"450Mi\"\n[[watcher.pod]]\ngroup = \"p\"\n"
        )
    };
    load_text(&text("32MiB"), &Overrides::default()).unwrap();
    let errors = load_text(&text("100MiB"), &Overrides::default()).unwrap_err();
    assert!(errors.to_string().contains("412MiB: every look would evict"), "{errors}");
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
fn what_was_removed_is_said_with_its_date() {
    for removed in REMOVED {
        let (key, variant) = (removed.key, removed.variant.unwrap_or("any"));
        let in_file = format!("{SOUND}[policy]\n{key} = \"{variant}\"\n");
        let set = [(format!("policy.{key}"), format!("\"{variant}\""))];
        let set = with_sets(&set.each_ref().map(|(key, value)| (key.as_str(), value.as_str())));
        let message = match removed.variant {
            Some(variant) => format!("policy `{key}` has no variant `{variant}`"),
            None => format!("there is no policy `{key}`"),
        };
        let hint = format!("it was removed on {}; {}", removed.date, removed.instead);
        for errors in [load_text(&in_file, &Overrides::default()), load_text(SOUND, &set)] {
            let errors = errors.unwrap_err();
            assert_eq!(errors.count(), 1, "{errors}");
            let error = errors.iter().next().unwrap();
            assert_eq!((&error.message, error.hint.as_ref()), (&message, Some(&hint)));
            assert_eq!(error.key, Some(format!("policy.{key}")));
            assert!(error.line > 0 && error.column > 0, "{errors}");
        }
    }
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
