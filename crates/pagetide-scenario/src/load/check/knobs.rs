//! Checks `[sysctl]`, `[policy]` and every write to a control file: names must be known, and the
//! kernel must accept the texts. The core parses the texts; this module adds a position and a hint
//! to each refusal. A size may be written as elsewhere in a scenario (`8GiB`), even if the kernel's
//! file takes only a number of bytes or kB.

use crate::load::decode::NameKey;
use crate::load::raw::{Knobs, PolicyTable, RawWrite};
use crate::load::span::{clip, list_names, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::load::units::{ambiguous_size, parse_size};
use crate::load::BUILT_IN;
use crate::model::policies::PolicyChoices;
use crate::model::PluginChoices;
use pagetide_core::config::{
    BackgroundCompaction, ControlFile, ControlForm, ControlValue, KswapdPolicy, LruPolicy,
    MglruRules, Policy, PolicyChoice, PolicySet, Sysctl, WatermarkPolicy,
};
use pagetide_core::control::{
    cache_and_file, kernel_number, CacheControl, ControlWrite, GroupControl, GroupControlWrite,
};
use pagetide_core::units::page_size::PageSize;

/// The watermark files of policy `apart`, from the lowest.
const MARKS: [Sysctl; 3] =
    [Sysctl::WmarkMinKbytes, Sysctl::WmarkLowKbytes, Sysctl::WmarkHighKbytes];

/// Policies that every setup has; unset ones get their default. The others are present only if the
/// scenario names them, because most have no groups.
const ALWAYS: [Policy; 4] =
    [Policy::Watermarks, Policy::Kswapd, Policy::DirectReclaim, Policy::PerCpuLists];

/// Policies that turn off a mechanism of the multi-generational LRU.
const MECHANISMS: [Policy; 6] = [
    Policy::MglruRules,
    Policy::MglruLookAround,
    Policy::MglruPageTableWalks,
    Policy::MglruBloomFilter,
    Policy::MglruTiers,
    Policy::MglruMemcgLru,
];

/// `is_bad`: the table itself could not be read.
pub(super) fn policies(
    raw: Option<&PolicyTable>,
    is_bad: bool,
    sink: &mut ProblemSink,
) -> PolicyChoices {
    let given = raw.map_or(&[][..], |policies| policies.choices.as_slice());
    let defaults = ALWAYS.into_iter().map(Policy::default_variant);
    let mut policies: PolicyChoices = defaults.collect();
    if let Some(kernel) = raw.and_then(|policies| policies.kernel.as_ref()) {
        policies.follow(kernel.value);
    }
    // A choice in the file wins over the kernel's choice, even if it names the default.
    given.iter().for_each(|at| policies.choose(at.value));
    if is_bad || raw.is_some_and(|policies| policies.is_incomplete) {
        // The unknown choice may be the one that has the watermark files.
        policies.choose(WatermarkPolicy::Apart);
    }
    let is_kswapd = |at: &&Spanned<PolicyChoice>| at.value == BackgroundCompaction::Kswapd.into();
    if let Some(at) = given.iter().find(is_kswapd) {
        let kswapd: KswapdPolicy = policies.of().unwrap_or_default();
        if kswapd == KswapdPolicy::Linux2637 {
            let message = format!("kswapd = \"{}\" does not compact memory", kswapd.name());
            sink.hinted(at.span, message, "add kswapd = \"linux-4.5\"");
        }
    }
    generations(given, &policies, sink);
    policies
}

/// The policies of the multi-generational LRU: it needs one set of lists for each node, and its
/// mechanisms need it.
fn generations(given: &[Spanned<PolicyChoice>], policies: &PolicyChoices, sink: &mut ProblemSink) {
    let kswapd: KswapdPolicy = policies.of().unwrap_or_default();
    for at in given {
        if at.value == LruPolicy::Mglru.into() && kswapd != KswapdPolicy::Linux61 {
            let message = format!(
                "the multi-generational LRU needs kswapd = \"linux-6.1\", not \"{}\"",
                kswapd.name()
            );
            sink.hinted(at.span, message, "choose kernel = \"linux-6.1\" or a later one");
        }
        if MECHANISMS.contains(&at.value.policy()) && !has_generations(policies) {
            let message = format!(
                "{} is a mechanism of the multi-generational LRU",
                at.value.policy().name()
            );
            let is_lru = |at: &&Spanned<PolicyChoice>| at.value.policy() == Policy::Lru;
            let lists = given.iter().find(is_lru);
            let hint = match lists {
                Some(_) => format!("leave out {}, or lru", at.value.policy().name()),
                None => "add lru = \"mglru\" to [policy]".to_owned(),
            };
            let also = lists.map(|lists| (lists.span, "this chooses the two lists".into()));
            sink.push(SpannedProblem { span: at.span, message, hint: Some(hint), also });
        } else if at.value.policy() == Policy::MglruMemcgLru
            && policies.of() != Some(MglruRules::Linux612)
        {
            let message = "Linux 6.1 has no memcg LRU: it walks over the tree of groups".to_owned();
            sink.hinted(
                at.span,
                message,
                "choose kernel = \"linux-6.12\" or mglru = \"linux-6.12\"",
            );
        }
    }
}

pub(super) fn has_generations(policies: &PolicyChoices) -> bool {
    policies.of() == Some(LruPolicy::Mglru)
}

/// The registered policies that the scenario chooses.
pub(super) fn plugins(
    policy: Option<&PolicyTable>,
    policies: &PolicyChoices,
    sink: &mut ProblemSink,
) -> PluginChoices {
    let Some(policy) = policy else { return PluginChoices::default() };
    let known = sink.plugins.clone();
    if let Some(pages) = policy.pages.as_ref().filter(|pages| pages.value.0 != BUILT_IN) {
        let kswapd: KswapdPolicy = policies.of().unwrap_or_default();
        if has_generations(policies) {
            let message = "a page policy takes the place of generations";
            let hint = "leave out lru = \"mglru\", or set lru = \"linux-6.1\" beside `pages`";
            sink.hinted(pages.span, message, hint);
        } else if kswapd != KswapdPolicy::Linux61 {
            let message = "a page policy needs one set of lists for each node";
            let hint = "kernels have it since 4.8: choose kernel = \"linux-4.8\" or a later one";
            sink.hinted(pages.span, message, hint);
        }
    }
    PluginChoices {
        groups: registered(policy.groups.as_ref(), ("groups", &known.groups), known.any, sink),
        pages: registered(policy.pages.as_ref(), ("pages", &known.pages), known.any, sink),
    }
}

/// A registered policy; its name must be known.
fn registered(
    name: Option<&Spanned<NameKey>>,
    (kind, known): (&str, &[String]),
    any: bool,
    sink: &mut ProblemSink,
) -> Option<String> {
    let name = name?;
    let NameKey(text) = &name.value;
    if text == BUILT_IN {
        return None;
    }
    if !any && !known.contains(text) {
        let hint = match known {
            [] => format!(
                "this program has only `{BUILT_IN}`; see docs/add-a-policy.md for how to add one"
            ),
            known => {
                let names = [BUILT_IN].into_iter().chain(known.iter().map(String::as_str));
                format!("there are {}", list_names(names))
            }
        };
        let message = format!("there is no policy of {kind} called `{}`", clip(text));
        sink.hinted(name.span, message, hint);
    }
    Some(text.clone())
}

pub(super) fn sysctls(
    knobs: Option<&Knobs>,
    policies: &PolicyChoices,
    sink: &mut ProblemSink,
) -> Vec<ControlWrite> {
    let writes = knobs.map_or(&[][..], |knobs| knobs.writes.as_slice());
    let mut checked = Vec::new();
    for write in writes {
        check_lasting(write, find_machine_file(&write.name.value), sink);
        let read = machine_write(&write.name, &write.text, sink);
        checked.extend(read.map(|checked| (checked, write.text.span)));
    }
    for sysctl in [Sysctl::LruGenEnabled, Sysctl::LruGenMinTtlMs] {
        let write = writes.iter().find(|write| write.name.value == sysctl.name());
        if let Some(write) = write.filter(|_| !has_generations(policies)) {
            let message =
                format!("there is no {} without the multi-generational LRU", sysctl.name());
            sink.hinted(write.name.span, message, "add lru = \"mglru\" to [policy]");
        }
    }
    let mut last: Option<(Sysctl, i128, SourceSpan)> = None;
    for mark in MARKS {
        let Some(write) = writes.iter().find(|write| write.name.value == mark.name()) else {
            continue;
        };
        check_mark(&write.name, policies, sink);
        let value = checked.iter().find_map(|(write, span)| match write {
            ControlWrite::Sysctl(sysctl, ControlValue::Number(value)) if *sysctl == mark => {
                Some((*value, *span))
            }
            _ => None,
        });
        let Some((value, span)) = value else { continue };
        match last {
            Some((lower, lower_value, lower_span)) if lower_value > value => {
                sink.push(SpannedProblem {
                    span,
                    message: format!(
                        "watermarks out of order: {} is below {}",
                        mark.name(),
                        lower.name()
                    ),
                    hint: Some("write min <= low <= high".into()),
                    also: Some((lower_span, format!("{lower_value} here"))),
                })
            }
            _ => last = Some((mark, value, span)),
        }
    }
    let switched_off = policies.kernel().map_or(&[][..], PolicySet::switched_off).iter();
    let switched_off = switched_off
        .filter(|(sysctl, _)| !writes.iter().any(|write| write.name.value == sysctl.name()));
    let switched_off = switched_off
        .map(|&(sysctl, value)| ControlWrite::Sysctl(sysctl, ControlValue::Number(value.into())));
    switched_off.chain(checked.into_iter().map(|(write, _)| write)).collect()
}

/// The writes to the files of a group when it is created.
pub(super) fn group_writes(writes: &[RawWrite], sink: &mut ProblemSink) -> Vec<GroupControlWrite> {
    let mut checked = Vec::new();
    for write in writes {
        let control = GroupControl::find(&write.name.value);
        check_lasting(write, control.map(GroupControl::file), sink);
        checked.extend(group_write(&write.name, &write.text, sink));
    }
    // Version 1 has another name for the same limit.
    let limits = [GroupControl::Max, GroupControl::LimitInBytes].map(GroupControl::name);
    let limits = limits.map(|name| writes.iter().find(|write| write.name.value == name));
    if let [Some(one), Some(other)] = limits {
        sink.push(SpannedProblem {
            span: other.name.span,
            message: format!("{} and {} set the same limit", one.name.value, other.name.value),
            hint: Some("keep one of them".into()),
            also: Some((one.name.span, "the other".into())),
        });
    }
    checked
}

/// Reports a file that triggers an action: before the run there is nothing to act on.
fn check_lasting(write: &RawWrite, file: Option<&ControlFile>, sink: &mut ProblemSink) {
    if file.is_some_and(|file| file.form.is_action()) {
        let name = &write.name.value;
        let message = format!("{} cannot be written before anything runs", clip(name));
        let hint = "let a task write it, with workload = \"write-control\"";
        sink.hinted(write.name.span, message, hint);
    }
}

/// The writable file of the machine, or of one of its caches, with this name.
pub(super) fn find_machine_file(name: &str) -> Option<&'static ControlFile> {
    match cache_and_file(name) {
        Some((_, file)) => find_cache_file(file).map(CacheControl::file),
        None => Sysctl::find(name).map(Sysctl::file),
    }
}

fn find_cache_file(name: &str) -> Option<CacheControl> {
    CacheControl::written().find(|control| control.file().name == name)
}

/// A write to a file of the machine. Reports an unknown file, and a text that the file refuses.
pub(super) fn machine_write(
    name: &Spanned<String>,
    text: &Spanned<String>,
    sink: &mut ProblemSink,
) -> Option<ControlWrite> {
    let Some((cache, file)) = cache_and_file(&name.value) else {
        let Some(sysctl) = Sysctl::find(&name.value) else {
            let known = Sysctl::ALL.iter().map(|sysctl| sysctl.name());
            unknown("sysctl", name, known, sink);
            return None;
        };
        let value = read(sysctl.file(), name, text, sink)?;
        return Some(ControlWrite::Sysctl(sysctl, value));
    };
    let Some(control) = find_cache_file(file) else {
        let names: Vec<&str> = CacheControl::written().map(|control| control.file().name).collect();
        let hint = format!("the files that can be written are {}", names.join(", "));
        sink.hinted(name.span, format!("unknown file of a cache `{}`", clip(file)), hint);
        return None;
    };
    match read(control.file(), name, text, sink)? {
        ControlValue::Number(value) => {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            Some(ControlWrite::Cache { cache: cache.to_owned(), control, value })
        }
        _ => None,
    }
}

/// A write to a file of a group. Reports an unknown file, and a text that the file refuses.
pub(super) fn group_write(
    name: &Spanned<String>,
    text: &Spanned<String>,
    sink: &mut ProblemSink,
) -> Option<GroupControlWrite> {
    let Some(control) = GroupControl::find(&name.value) else {
        let copy = name.value.split_once('.');
        if let Some((copy, control)) = copy.filter(|(copy, _)| copy.parse::<u32>().is_ok()) {
            let message = format!("one copy of a group cannot have its own {} here", clip(control));
            let hint = format!("all copies have the same setting: leave out `.{copy}`");
            sink.hinted(name.span, message, hint);
            return None;
        }
        let known = GroupControl::ALL.iter().map(|control| control.name());
        unknown("control file", name, known, sink);
        return None;
    };
    let value = read(control.file(), name, text, sink)?;
    Some(GroupControlWrite { control, value })
}

fn unknown(
    what: &str,
    name: &Spanned<String>,
    known: impl Iterator<Item = &'static str>,
    sink: &mut ProblemSink,
) {
    let hint = match sink.suggest(&name.value, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "docs/scenario.md lists them".to_owned(),
    };
    let message = format!("unknown {what} `{}`", clip(&name.value));
    sink.unknown(name.span, message, &name.value, hint);
}

/// The value of the text; reports a text that the kernel would refuse.
fn read(
    file: &ControlFile,
    name: &Spanned<String>,
    text: &Spanned<String>,
    sink: &mut ProblemSink,
) -> Option<ControlValue> {
    let read = value_of(file, &text.value, sink.page_size);
    if read.is_none() {
        let (shown, name) = (clip(&text.value), clip(&name.value));
        let message = format!("{name} refuses `{shown}` (EINVAL)");
        sink.hinted(text.span, message, takes(file, &text.value, sink.page_size));
    }
    read
}

/// The value of a text for a file: as the kernel parses it, or else as a size of a scenario.
pub(super) fn value_of(
    file: &ControlFile,
    text: &str,
    page_size: PageSize,
) -> Option<ControlValue> {
    let as_kernel = file.form.read(text, page_size).ok();
    as_kernel.or_else(|| file.form.read(&to_kernel_unit(file, text, page_size)?, page_size).ok())
}

/// Converts a size with a unit into the number that the kernel's file takes, in bytes or kB.
fn to_kernel_unit(file: &ControlFile, text: &str, page_size: PageSize) -> Option<String> {
    // In `memory.reclaim` a key may follow the size.
    let (size, rest) = match text.trim().split_once(" swappiness=") {
        Some((size, value)) => (size, format!(" swappiness={value}")),
        None => (text.trim(), String::new()),
    };
    // The kernel's parser decides about a number without a unit.
    if size.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    let bytes = parse_size(size, page_size).ok()?;
    match file.unit {
        "bytes" => Some(format!("{bytes}{rest}")),
        "kB" if bytes % 1024 == 0 => Some((bytes / 1024).to_string()),
        _ => None,
    }
}

/// Reports a watermark file of policy `apart` under another policy.
pub(super) fn check_mark(name: &Spanned<String>, policies: &PolicyChoices, sink: &mut ProblemSink) {
    let is_apart = policies.of() == Some(WatermarkPolicy::Apart);
    if MARKS.iter().any(|mark| mark.name() == name.value) && !is_apart {
        let message = format!("{} does not exist under this watermarks policy", name.value);
        let hint = "write [policy] watermarks = \"apart\"";
        sink.hinted(name.span, message, hint);
    }
}

/// Says what a file accepts, for a text that it refuses.
fn takes(file: &ControlFile, text: &str, page_size: PageSize) -> String {
    let with_size = |forms: String| match parse_size(text, page_size) {
        Ok(bytes) => format!("{forms}: write {}", ControlValue::Size(bytes)),
        Err(_) => with_number(forms, "bytes", text),
    };
    match (file.form, file.form.bounds(page_size)) {
        (ControlForm::Action { max: 1 }, _) => "it takes 1".to_owned(),
        (ControlForm::Action { max }, _) => format!("it takes 1 to {max}"),
        (_, Some((min, max))) => {
            let is_wide = max >= i32::MAX.into();
            match (kernel_number(text), parse_size(text, page_size)) {
                (Some(value), _) if value > max && is_wide => format!("it takes at most {max}"),
                (Some(value), _) if value < min && is_wide => format!("it takes {min} or more"),
                (Some(value), _) if !(min..=max).contains(&value) => {
                    format!("it takes {min} to {max}")
                }
                // The value is right, only the spelling is not.
                (Some(value), _) => format!("write {value}"),
                (None, Ok(bytes)) if file.unit == "kB" && bytes % 1024 == 0 => {
                    format!("it counts kB: write {}", bytes / 1024)
                }
                (None, Ok(bytes)) if file.unit == "bytes" => {
                    format!("it counts bytes: write {bytes}")
                }
                (None, _) if file.unit.is_empty() => "it takes an integer".to_owned(),
                (None, _) => {
                    with_number(format!("it takes an integer ({})", file.unit), file.unit, text)
                }
            }
        }
        (ControlForm::Zones, _) => "it takes up to 4 integers, separated by blanks".to_owned(),
        (ControlForm::Size { unlimited }, _) => {
            with_size(format!("it takes bytes like 300M, or {unlimited} for no limit"))
        }
        (ControlForm::Reclaim, _) => with_size(
            "it takes bytes like 300M, optionally followed by swappiness=N (0 to 200)".to_owned(),
        ),
        (ControlForm::Policy(policy), _) => format!("it takes {}", policy.variant_list()),
        (ControlForm::Bandwidth, _) => {
            "it takes microseconds or max, optionally a period: \"50000 100000\"".to_owned()
        }
        _ => "it takes any text".to_owned(),
    }
}

/// Adds the numbers that a size like `64MB` may stand for, in bytes or kB.
fn with_number(forms: String, unit: &str, text: &str) -> String {
    let divisor = match unit {
        "bytes" => 1,
        "kB" => 1024,
        _ => return forms,
    };
    match ambiguous_size(text) {
        Some((ten, two, binary)) if ten % divisor == 0 => {
            format!("{forms}: write {}, or {} for {binary}", ten / divisor, two / divisor)
        }
        Some((_, two, binary)) => format!("{forms}: write {} for {binary}", two / divisor),
        None => forms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_is_taken() {
        let check_at = |name: &str, text: &str, page_size| {
            let file = find_machine_file(name);
            let file = file.or_else(|| GroupControl::find(name).map(GroupControl::file)).unwrap();
            let value = value_of(file, text, page_size);
            value.map_or_else(|| takes(file, text, page_size), |_| String::new())
        };
        let check = |name, text| check_at(name, text, PageSize::Kib4);
        for (name, text, hint) in [
            ("vm.swappiness", "60", ""),
            ("vm.swappiness", "201", "it takes 0 to 200"),
            ("vm.swappiness", "lots", "it takes an integer"),
            ("vm.min_free_kbytes", "-1", "it takes 0 or more"),
            ("vm.min_free_kbytes", "16MiB", ""),
            ("vm.min_free_kbytes", "16 parsecs", "it takes an integer (kB)"),
            ("vm.swappiness", "1MiB", "it takes an integer"),
            ("vm.dirty_bytes", "1MiB", ""),
            ("vm.dirty_bytes", "4KiB", "it counts bytes: write 4096"),
            ("vm.dirty_bytes", "8192", ""),
            ("vm.lowmem_reserve_ratio", "256 256 32 0", ""),
            ("vm.compact_memory", "1\n", ""),
            ("vm.compact_memory", "2", "it takes 1"),
            ("vm.drop_caches", "5", "it takes 1 to 4"),
            ("block.read_ahead_kb", "0x80", "write 128"),
            ("block.read_ahead_kb", "-1", "it takes 0 or more"),
            ("transparent_hugepage.enabled", "madvise\n", ""),
            ("transparent_hugepage.enabled", "[always]", "it takes always, madvise or never"),
            ("transparent_hugepage.khugepaged.pages_to_scan", "0", "it takes 1 or more"),
            ("slab.dentry.min_partial", "x", "it takes an integer (slabs)"),
            ("memory.max", "max", ""),
            ("memory.max", "-1", "it takes bytes like 300M, or max for no limit"),
            ("memory.limit_in_bytes", "-1", ""),
            ("memory.global_shrink_priority", "-128", ""),
            ("memory.global_shrink_priority", "13", "it takes -128 to 12"),
            ("memory.reclaim", "1G  swappiness=200", ""),
        ] {
            assert_eq!(check(name, text), hint, "{name} {text:?}");
        }
        for text in ["a b", "1 2 3 4 5", " "] {
            let hint = "it takes up to 4 integers, separated by blanks";
            assert_eq!(check("vm.lowmem_reserve_ratio", text), hint);
        }
        // A size has the same meaning in every place.
        for (name, text, number) in [
            ("memory.low", "8GiB", (8u64 << 30).to_string()),
            ("memory.max", "1.5MiB", (3u64 << 19).to_string()),
            ("memory.high", "16 pages", (16u64 << 12).to_string()),
            ("memory.limit_in_bytes", "300MiB", (300u64 << 20).to_string()),
            ("memory.reclaim", "100MiB swappiness=10", format!("{} swappiness=10", 100 << 20)),
            ("vm.min_free_kbytes", "16MiB", "16384".to_owned()),
            ("vm.dirty_bytes", "1MiB", "1048576".to_owned()),
            ("vm.dirty_background_bytes", "64 KiB", "65536".to_owned()),
            ("vm.fault_around_bytes", "64KiB", "65536".to_owned()),
            ("block.read_ahead_kb", "512KiB", "512".to_owned()),
        ] {
            let file = find_machine_file(name);
            let file = file.or_else(|| GroupControl::find(name).map(GroupControl::file)).unwrap();
            let expected = file.form.read(&number, PageSize::Kib4).unwrap();
            assert_eq!(value_of(file, text, PageSize::Kib4), Some(expected), "{name} {text}");
        }
        // A unit that may mean powers of ten.
        for (name, text, hint) in [
            (
                "vm.dirty_bytes",
                "64MB",
                "it takes an integer (bytes): write 64000000, or 67108864 for 64MiB",
            ),
            (
                "vm.min_free_kbytes",
                "64 MB",
                "it takes an integer (kB): write 62500, or 65536 for 64MiB",
            ),
            ("vm.min_free_kbytes", "1MB", "it takes an integer (kB): write 1024 for 1MiB"),
            ("vm.swappiness", "1MB", "it takes an integer"),
            (
                "memory.max",
                "1.5gb",
                "it takes bytes like 300M, or max for no limit: write 1500000000, or 1610612736 for \
                 1.5GiB",
            ),
        ] {
            assert_eq!(check(name, text), hint, "{name} {text}");
        }
        let check_64 = |name, text| check_at(name, text, PageSize::Kib64);
        assert_eq!(check_64("vm.dirty_bytes", "131071"), "it takes 131072 or more");
        assert_eq!(check_64("vm.fault_around_bytes", "536936447"), "");
        assert_ne!(check_64("vm.fault_around_bytes", "536936448"), "");
    }
}
