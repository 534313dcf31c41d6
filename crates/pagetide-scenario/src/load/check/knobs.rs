//! `[sysctl]`, `[policy]` and every write to a control file: known names, text in the form that
//! the kernel parses.
//! What a knob makes of its value, and every errno, is the core's business.

use crate::load::decode::Name;
use crate::load::raw::{self, Knobs, Write};
use crate::load::span::{clip, list_names, At, Problem, Sink, Span};
use crate::load::units::parse_size;
use crate::load::BUILT_IN;
use crate::model::ChosenPlugins;
use crate::names::{
    cache_and_file, find_knob, find_sysctl, listed, BackgroundCompactionPolicy,
    DirectReclaimPolicy, Knob, KnobForm, KswapdPolicy, Named, PerCpuListsPolicy, WatermarksPolicy,
    CACHE_CONTROLS, SYSCTLS,
};
use crate::page_size::PageSize;
use std::collections::BTreeMap;

/// The marks of policy `apart`, from the lowest.
const MARKS: [&str; 3] = ["vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes"];

/// The policies. Those that every setup names have their defaults filled in; those on groups are
/// there when the scenario names them, for most have no groups.
pub(super) fn policies(policy: Option<&raw::Policy>, sink: &mut Sink) -> BTreeMap<String, String> {
    let watermarks = policy.and_then(|policy| policy.watermarks.as_ref());
    let kswapd = policy.and_then(|policy| policy.kswapd.as_ref());
    let direct = policy.and_then(|policy| policy.direct_reclaim.as_ref());
    let lists = policy.and_then(|policy| policy.per_cpu_lists.as_ref());
    let lists = lists.map_or(PerCpuListsPolicy::Linux61, |at| at.value);
    let watermarks = watermarks.map_or(WatermarksPolicy::ScaleFactor, |at| at.value);
    let kswapd = kswapd.map_or(KswapdPolicy::Linux61, |at| at.value);
    let direct = direct.map_or(DirectReclaimPolicy::Linux61, |at| at.value);
    let mut policies = BTreeMap::from([
        ("watermarks".to_owned(), watermarks.name().to_owned()),
        ("kswapd".to_owned(), kswapd.name().to_owned()),
        ("direct_reclaim".to_owned(), direct.name().to_owned()),
        ("per_cpu_lists".to_owned(), lists.name().to_owned()),
    ]);
    let Some(policy) = policy else { return policies };
    let mut add = |name: &str, value: Option<&'static str>| {
        policies.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    };
    add("lru", policy.lru.as_ref().map(|at| at.value.name()));
    add("soft_limit", policy.soft_limit.as_ref().map(|at| at.value.name()));
    add("soft_limit_root", policy.soft_limit_root.as_ref().map(|at| at.value.name()));
    add("soft_limit_direct", policy.soft_limit_direct.as_ref().map(|at| at.value.name()));
    add("soft_limit_node", policy.soft_limit_node.as_ref().map(|at| at.value.name()));
    add("shrink_priority", policy.shrink_priority.as_ref().map(|at| at.value.name()));
    add("group_walk", policy.group_walk.as_ref().map(|at| at.value.name()));
    let background = policy.background_compaction.as_ref();
    add("background_compaction", background.map(|at| at.value.name()));
    add("compaction", policy.compaction.as_ref().map(|at| at.value.name()));
    add("compaction_capture", policy.compaction_capture.as_ref().map(|at| at.value.name()));
    add("thp", policy.thp.as_ref().map(|at| at.value.name()));
    add("thp_defrag", policy.thp_defrag.as_ref().map(|at| at.value.name()));
    add("slab_accounting", policy.slab_accounting.as_ref().map(|at| at.value.name()));
    add("slub", policy.slub.as_ref().map(|at| at.value.name()));
    add("slab_owners", policy.slab_owners.as_ref().map(|at| at.value.name()));
    add("objcg_stock", policy.objcg_stock.as_ref().map(|at| at.value.name()));
    if let Some(at) = background.filter(|at| at.value == BackgroundCompactionPolicy::Kswapd) {
        if kswapd != KswapdPolicy::Linux45 {
            let message = format!("kswapd {} does not compact", kswapd.name());
            sink.hinted(at.span, message, "add kswapd = \"linux-4.5\"");
        }
    }
    policies
}

/// The policies that are not built in; their names must be known.
pub(super) fn plugins(policy: Option<&raw::Policy>, sink: &mut Sink) -> ChosenPlugins {
    let Some(policy) = policy else { return ChosenPlugins::default() };
    let known = sink.plugins.clone();
    let mut choose = |kind: &str, name: Option<&At<Name>>, known: &[String], any: bool| {
        let name = name?;
        let Name(text) = &name.value;
        if text == BUILT_IN {
            return None;
        }
        if !any && !known.contains(text) {
            let hint = match known {
                [] => format!(
                    "this program has only `{BUILT_IN}`; docs/add-a-policy.md says how to add one"
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
    };
    ChosenPlugins {
        groups: choose("groups", policy.groups.as_ref(), &known.groups, known.any),
        pages: choose("pages", policy.pages.as_ref(), &known.pages, known.any),
    }
}

/// The writes to system-wide knobs.
pub(super) fn sysctls(
    knobs: Option<&Knobs>,
    policies: &BTreeMap<String, String>,
    sink: &mut Sink,
) -> Vec<(String, String)> {
    let writes = knobs.map_or(&[][..], |knobs| knobs.writes.as_slice());
    let checked = check_writes(writes, SYSCTLS, "sysctl", sink);
    let mut marks: Vec<(&'static str, i64, Span)> = Vec::new();
    for name in MARKS {
        let Some(write) = writes.iter().find(|write| write.name.value == name) else { continue };
        check_mark(&write.name, policies, sink);
        if let Some(value) = parse_integer(&write.text.value) {
            if let Some((lower, lower_value, lower_span)) = marks.last() {
                if *lower_value > value {
                    sink.push(Problem {
                        span: write.text.span,
                        message: format!("marks out of order: {name} is below {lower}"),
                        hint: Some("it must be min <= low <= high".into()),
                        also: Some((*lower_span, format!("{lower_value} here"))),
                    });
                    continue;
                }
            }
            marks.push((name, value, write.text.span));
        }
    }
    checked
}

/// The text of every write, in order. `memory.reclaim` and its like are refused: nothing is there
/// yet to act on.
pub(super) fn check_writes(
    writes: &[Write],
    table: &'static [Knob],
    what: &str,
    sink: &mut Sink,
) -> Vec<(String, String)> {
    for write in writes {
        let Some(knob) = check_write(&write.name, &write.text, table, what, sink) else { continue };
        if knob.form.is_action() {
            let name = &write.name.value;
            let message = format!("{} cannot be written before anything runs", clip(name));
            let hint = "let a task write it: workload = \"write-control\"";
            sink.hinted(write.name.span, message, hint);
        }
    }
    writes.iter().map(|write| (write.name.value.clone(), write.text.value.clone())).collect()
}

/// The knob that a write is for. Reports one that there is not, and a text that it does not take.
pub(super) fn check_write(
    name: &At<String>,
    text: &At<String>,
    table: &'static [Knob],
    what: &str,
    sink: &mut Sink,
) -> Option<&'static Knob> {
    let is_machine_s = table == SYSCTLS;
    let found = if is_machine_s { find_sysctl(&name.value) } else { find_knob(table, &name.value) };
    let Some(knob) = found else {
        if let Some((_, file)) = cache_and_file(&name.value).filter(|_| is_machine_s) {
            let names: Vec<&str> = CACHE_CONTROLS.iter().map(|knob| knob.name).collect();
            let hint = format!("those that can be written are {}", names.join(", "));
            sink.hinted(name.span, format!("unknown file of a cache `{}`", clip(file)), hint);
            return None;
        }
        let known = table.iter().map(|knob| knob.name);
        let hint = match sink.suggest(&name.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "docs/scenario.md lists them".to_owned(),
        };
        sink.hinted(name.span, format!("unknown {what} `{}`", clip(&name.value)), hint);
        return None;
    };
    if let Err(hint) = check_text(knob, &text.value, sink.page_size) {
        let (shown, name) = (clip(&text.value), clip(&name.value));
        let message = format!("`{shown}` would be refused by {name} (EINVAL)");
        sink.hinted(text.span, message, hint);
    }
    Some(knob)
}

/// Reports a mark of policy `apart` under another policy.
pub(super) fn check_mark(name: &At<String>, policies: &BTreeMap<String, String>, sink: &mut Sink) {
    let is_apart = policies.get("watermarks").map(String::as_str) == Some("apart");
    if MARKS.contains(&name.value.as_str()) && !is_apart {
        let message = format!("{} does not exist under this policy of watermarks", name.value);
        let hint = "write [policy] watermarks = \"apart\"";
        sink.hinted(name.span, message, hint);
    }
}

/// Whether the kernel would take the text; else what it takes.
fn check_text(knob: &Knob, text: &str, page_size: PageSize) -> Result<(), String> {
    match knob.form_with(page_size) {
        KnobForm::Integer { min, max } => match parse_integer(text) {
            Some(value) if (min..=max).contains(&value) => Ok(()),
            Some(value) if value > max && max >= i64::from(i32::MAX) => {
                Err(format!("it takes at most {max}"))
            }
            Some(_) if max >= i64::from(i32::MAX) => Err(format!("it takes {min} or more")),
            Some(_) => Err(format!("it takes {min} to {max}")),
            None => Err(match (knob.unit, parse_size(text, page_size)) {
                ("kB", Ok(bytes)) if bytes % 1024 == 0 => {
                    format!("it counts kB: write {}", bytes / 1024)
                }
                ("bytes", Ok(bytes)) => format!("it counts bytes: write {bytes}"),
                ("", _) => "it takes an integer".to_owned(),
                (unit, _) => format!("it takes an integer ({unit})"),
            }),
        },
        KnobForm::Integers { max } => {
            let parts: Vec<&str> = text.split_ascii_whitespace().collect();
            let is_sound = parts.iter().all(|part| parse_integer(part).is_some());
            if is_sound && (1..=max).contains(&parts.len()) {
                return Ok(());
            }
            Err(format!("it takes up to {max} integers with blanks between them"))
        }
        KnobForm::BytesOrMax | KnobForm::BytesOrMinusOne => {
            let unlimited = if knob.form == KnobForm::BytesOrMax { "max" } else { "-1" };
            let text = text.trim();
            if text == unlimited || is_kernel_size(text) {
                return Ok(());
            }
            let forms = format!("it takes bytes like 300M, or {unlimited} for no limit");
            Err(match parse_size(text, page_size) {
                Ok(bytes) => format!("{forms}: write {}", kernel_size(bytes)),
                Err(_) => forms,
            })
        }
        KnobForm::Reclaim => {
            let mut words = text.split_ascii_whitespace();
            let size = words.next().unwrap_or_default();
            let swappiness = |word: &str| {
                let value = word.strip_prefix("swappiness=").and_then(parse_integer);
                value.is_some_and(|value| (0..=200).contains(&value))
            };
            if is_kernel_size(size) && words.next().is_none_or(swappiness) && words.next().is_none()
            {
                return Ok(());
            }
            let forms = "it takes bytes like 300M, and perhaps swappiness=N (0 to 200) after them";
            Err(match parse_size(text, page_size) {
                Ok(bytes) => format!("{forms}: write {}", kernel_size(bytes)),
                Err(_) => forms.to_owned(),
            })
        }
        KnobForm::Trigger { max } => match parse_integer(text) {
            Some(number) if (1..=max).contains(&number) => Ok(()),
            _ if max == 1 => Err("it takes 1".to_owned()),
            _ => Err(format!("it takes 1 to {max}")),
        },
        KnobForm::Word(words) if words.contains(&text.strip_suffix('\n').unwrap_or(text)) => Ok(()),
        KnobForm::Word(words) => Err(format!("it takes {}", listed(words))),
    }
}

/// An integer as the kernel parses it: blanks around, 0x or 0 before.
fn parse_integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        None => (10, lower.as_str()),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

/// Whether the kernel's memparse takes all of the text.
fn is_kernel_size(text: &str) -> bool {
    let digits = text.strip_suffix(|c: char| "kKmMgGtTpPeE".contains(c)).unwrap_or(text);
    // In hexadecimal, `e` is a digit.
    let number = if text.starts_with("0x") && text.ends_with(['e', 'E']) { text } else { digits };
    parse_integer(number).is_some_and(|value| value >= 0)
}

/// Bytes of a text that a control of groups takes; `max` and `-1` are no limit.
pub(super) fn control_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "max" || text == "-1" {
        return Some(u64::MAX);
    }
    if !is_kernel_size(text) {
        return None;
    }
    let is_hexadecimal = text.starts_with("0x") && text.ends_with(['e', 'E']);
    let shift = match text.chars().next_back()?.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        'p' => 50,
        'e' if !is_hexadecimal => 60,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    let value = u64::try_from(parse_integer(digits)?).ok()?;
    Some(value.saturating_mul(1 << shift))
}

fn kernel_size(bytes: u64) -> String {
    const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];
    for (unit, shift) in UNITS {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::GROUP_CONTROLS;

    #[test]
    fn integers_are_parsed_as_the_kernel_does() {
        for (text, value) in
            [("60", Some(60)), (" 60\n", Some(60)), ("0x10", Some(16)), ("010", Some(8))]
        {
            assert_eq!(parse_integer(text), value, "{text:?}");
        }
        assert_eq!(parse_integer("-5"), Some(-5));
        assert_eq!(parse_integer("0"), Some(0));
        for text in ["", " ", "-", "0x", "60%", "6 0", "08", "1e3", "+1", "--1", "60MiB", "\u{661}"]
        {
            assert_eq!(parse_integer(text), None, "{text:?}");
        }
        assert_eq!(parse_integer("99999999999999999999"), None);
    }

    #[test]
    fn sizes_are_parsed_as_the_kernel_does() {
        for text in ["0", "300M", "20m", "4096", "1G", "0x1000", "0x1e"] {
            assert!(is_kernel_size(text), "{text}");
        }
        for text in ["", "M", "300MB", "300MiB", "-1", "max", "1.5G"] {
            assert!(!is_kernel_size(text), "{text}");
        }
        for (text, bytes) in
            [("0", 0), ("300M", 300 << 20), (" 2g\n", 2 << 30), ("0x1e", 30), ("1E", 1 << 60)]
        {
            assert_eq!(control_bytes(text), Some(bytes), "{text}");
        }
        assert_eq!(control_bytes("max"), Some(u64::MAX));
        assert_eq!(control_bytes("99E"), Some(u64::MAX));
        assert_eq!(control_bytes("300MB"), None);
    }

    #[test]
    fn refusals_say_what_is_taken() {
        let check = |name, text| {
            let knob = find_knob(SYSCTLS, name).or_else(|| find_knob(GROUP_CONTROLS, name));
            check_text(knob.unwrap(), text, PageSize::Kib4)
        };
        assert_eq!(check("vm.swappiness", "60"), Ok(()));
        assert_eq!(check("vm.swappiness", "201"), Err("it takes 0 to 200".into()));
        assert_eq!(check("vm.swappiness", "lots"), Err("it takes an integer".into()));
        assert_eq!(check("vm.min_free_kbytes", "-1"), Err("it takes 0 or more".into()));
        assert_eq!(check("vm.min_free_kbytes", "16MiB"), Err("it counts kB: write 16384".into()));
        assert_eq!(check("vm.dirty_bytes", "1MiB"), Err("it counts bytes: write 1048576".into()));
        let check_64 =
            |name, text| check_text(find_knob(SYSCTLS, name).unwrap(), text, PageSize::Kib64);
        assert_eq!(check("vm.dirty_bytes", "8192"), Ok(()));
        assert_eq!(check_64("vm.dirty_bytes", "131071"), Err("it takes 131072 or more".into()));
        assert_eq!(check_64("vm.fault_around_bytes", "536936447"), Ok(()));
        assert!(check_64("vm.fault_around_bytes", "536936448").is_err());
        assert_eq!(check("vm.lowmem_reserve_ratio", "256 256 32 0"), Ok(()));
        assert!(check("vm.lowmem_reserve_ratio", "a b").is_err());
        assert!(check("vm.lowmem_reserve_ratio", "1 2 3 4 5").is_err());
        assert!(check("vm.lowmem_reserve_ratio", " ").is_err());
        assert_eq!(check("vm.compact_memory", "1\n"), Ok(()));
        assert_eq!(check("vm.compact_memory", "2"), Err("it takes 1".into()));
        let enabled = "transparent_hugepage.enabled";
        assert_eq!(check(enabled, "madvise\n"), Ok(()));
        assert_eq!(check("transparent_hugepage.defrag", "defer+madvise"), Ok(()));
        for text in ["", "1", "Always", " always", "[always]", "always\n\n"] {
            assert_eq!(check(enabled, text), Err("it takes always, madvise or never".into()));
        }
        let pages = "transparent_hugepage.khugepaged.pages_to_scan";
        assert_eq!(check(pages, "0"), Err("it takes 1 or more".into()));
        assert_eq!(check("memory.max", "max"), Ok(()));
        let hint = check("memory.max", "300MiB").unwrap_err();
        assert!(hint.ends_with("write 300M"), "{hint}");
        assert!(check("memory.max", "-1").is_err());
        assert_eq!(check("memory.limit_in_bytes", "-1"), Ok(()));
        assert_eq!(check("memory.global_shrink_priority", "-128"), Ok(()));
        let hint = check("memory.global_shrink_priority", "13").unwrap_err();
        assert_eq!(hint, "it takes -128 to 12");
        for text in ["100M", "4096", " 1G swappiness=0\n", "1G  swappiness=200"] {
            assert_eq!(check("memory.reclaim", text), Ok(()), "{text}");
        }
        for text in [
            "",
            "max",
            "1G swappiness=201",
            "1G swap",
            "swappiness=60",
            "1G 1G",
            "1G swappiness=1 swappiness=1",
        ] {
            assert!(check("memory.reclaim", text).is_err(), "{text}");
        }
        let hint = check("memory.reclaim", "100MiB").unwrap_err();
        assert!(hint.ends_with("after them: write 100M"), "{hint}");
    }
}
