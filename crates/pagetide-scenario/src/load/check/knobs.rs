//! `[sysctl]`, `[policy]` and `[[group]]`: known names, text in the form that the kernel parses.
//! What a knob makes of its value, and every errno, is the core's business.

use super::names::{need, Names};
use crate::load::raw::{self, Knobs, Write};
use crate::load::span::{clip, Problem, Sink, Span};
use crate::load::units::parse_size;
use crate::model::Group;
use crate::names::{
    find_knob, DirectReclaimPolicy, Knob, KnobForm, KswapdPolicy, Named, PerCpuListsPolicy,
    WatermarksPolicy, GROUP_CONTROLS, SYSCTLS,
};
use std::collections::BTreeMap;

/// The marks of policy `apart`, from the lowest.
const MARKS: [&str; 3] = ["vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes"];

/// The policies with their defaults filled in.
pub(super) fn policies(policy: Option<&raw::Policy>) -> BTreeMap<String, String> {
    let watermarks = policy.and_then(|policy| policy.watermarks.as_ref());
    let kswapd = policy.and_then(|policy| policy.kswapd.as_ref());
    let direct = policy.and_then(|policy| policy.direct_reclaim.as_ref());
    let lists = policy.and_then(|policy| policy.per_cpu_lists.as_ref());
    let lists = lists.map_or(PerCpuListsPolicy::Linux61, |at| at.value);
    let watermarks = watermarks.map_or(WatermarksPolicy::ScaleFactor, |at| at.value);
    let kswapd = kswapd.map_or(KswapdPolicy::Linux61, |at| at.value);
    let direct = direct.map_or(DirectReclaimPolicy::Linux61, |at| at.value);
    BTreeMap::from([
        ("watermarks".to_owned(), watermarks.name().to_owned()),
        ("kswapd".to_owned(), kswapd.name().to_owned()),
        ("direct_reclaim".to_owned(), direct.name().to_owned()),
        ("per_cpu_lists".to_owned(), lists.name().to_owned()),
    ])
}

/// The writes to system-wide knobs.
pub(super) fn sysctls(
    knobs: Option<&Knobs>,
    policies: &BTreeMap<String, String>,
    sink: &mut Sink,
) -> Vec<(String, String)> {
    let writes = knobs.map_or(&[][..], |knobs| knobs.writes.as_slice());
    let checked = check_writes(writes, SYSCTLS, "sysctl", sink);
    let is_apart = policies.get("watermarks").map(String::as_str) == Some("apart");
    let mut marks: Vec<(&'static str, i64, Span)> = Vec::new();
    for name in MARKS {
        let Some(write) = writes.iter().find(|write| write.name.value == name) else { continue };
        if !is_apart {
            let message = format!("{name} does not exist under this policy of watermarks");
            let hint = "write [policy] watermarks = \"apart\"";
            sink.hinted(write.name.span, message, hint);
        }
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

/// The groups, parents before children, and their names.
pub(super) fn groups<'a>(raw: &'a raw::Scenario, sink: &mut Sink) -> (Vec<Group>, Names<'a>) {
    let list = raw.group.as_deref().unwrap_or_default();
    let mut given = Names::new("group");
    given.is_incomplete = raw.bad.contains(&"group");
    for (index, group) in list.iter().enumerate() {
        let place = (group.table.at, group.table.bad.as_slice());
        match need(&group.table.name, "name", place, "the group", "\"batch\"", sink) {
            Some(name) => given.insert(&name.value.0, name.span, index, sink),
            None => given.is_incomplete = true,
        }
    }
    let parents: Vec<Option<usize>> = list
        .iter()
        .map(|group| group.table.parent.as_ref().and_then(|parent| given.find(parent, sink)))
        .collect();
    let order = parents_first(list, &parents, sink);
    let mut names = Names::new("group");
    names.is_incomplete = given.is_incomplete;
    let mut groups = Vec::with_capacity(order.len());
    let mut place_of: BTreeMap<usize, usize> = BTreeMap::new();
    for index in order {
        let group = &list[index];
        let controls = check_writes(&group.controls.writes, GROUP_CONTROLS, "control file", sink);
        let Some(name) = &group.table.name else { continue };
        if given.get(&name.value.0) != Some(index) {
            continue;
        }
        place_of.insert(index, groups.len());
        names.insert(&name.value.0, name.span, groups.len(), sink);
        let parent = parents[index].and_then(|parent| place_of.get(&parent).copied());
        groups.push(Group { name: name.value.0.clone(), parent, controls, at_start: true });
    }
    (groups, names)
}

/// An order of the groups in which each comes after its parent. Reports cycles.
fn parents_first(list: &[raw::Group], parents: &[Option<usize>], sink: &mut Sink) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; list.len()];
    let mut order = Vec::with_capacity(list.len());
    for start in 0..list.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| states[*index] == State::New) {
            states[index] = State::Open;
            path.push(index);
            next = parents[index];
        }
        if let Some(index) = next.filter(|index| states[*index] == State::Open) {
            if let Some(parent) = &list[index].table.parent {
                let name = list[index].table.name.as_ref().map_or("", |name| &name.value.0);
                let message = format!("the group `{}` is within itself", clip(name));
                sink.hinted(parent.span, message, "let one of its parents be the root");
            }
        }
        for index in path.into_iter().rev() {
            states[index] = State::Done;
            order.push(index);
        }
    }
    order
}

fn check_writes(
    writes: &[Write],
    table: &'static [Knob],
    what: &str,
    sink: &mut Sink,
) -> Vec<(String, String)> {
    for write in writes {
        let name = &write.name.value;
        let Some(knob) = find_knob(table, name) else {
            let known = table.iter().map(|knob| knob.name);
            let hint = match sink.suggest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "docs/scenario.md lists them".to_owned(),
            };
            sink.hinted(write.name.span, format!("unknown {what} `{}`", clip(name)), hint);
            continue;
        };
        if let Err(hint) = check_text(knob, &write.text.value) {
            let text = clip(&write.text.value);
            let message = format!("`{text}` would be refused by {name} (EINVAL)");
            sink.hinted(write.text.span, message, hint);
        }
    }
    writes.iter().map(|write| (write.name.value.clone(), write.text.value.clone())).collect()
}

/// Whether the kernel would take the text; else what it takes.
fn check_text(knob: &Knob, text: &str) -> Result<(), String> {
    match knob.form {
        KnobForm::Integer { min, max } => match parse_integer(text) {
            Some(value) if (min..=max).contains(&value) => Ok(()),
            Some(value) if value > max && max >= i64::from(i32::MAX) => {
                Err(format!("it takes at most {max}"))
            }
            Some(_) if max >= i64::from(i32::MAX) => Err(format!("it takes {min} or more")),
            Some(_) => Err(format!("it takes {min} to {max}")),
            None => Err(match (knob.unit, parse_size(text)) {
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
            Err(match parse_size(text) {
                Ok(bytes) => format!("{forms}: write {}", kernel_size(bytes)),
                Err(_) => forms,
            })
        }
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
    }

    #[test]
    fn refusals_say_what_is_taken() {
        let check = |name, text| {
            let knob = find_knob(SYSCTLS, name).or_else(|| find_knob(GROUP_CONTROLS, name));
            check_text(knob.unwrap(), text)
        };
        assert_eq!(check("vm.swappiness", "60"), Ok(()));
        assert_eq!(check("vm.swappiness", "201"), Err("it takes 0 to 200".into()));
        assert_eq!(check("vm.swappiness", "lots"), Err("it takes an integer".into()));
        assert_eq!(check("vm.min_free_kbytes", "-1"), Err("it takes 0 or more".into()));
        assert_eq!(check("vm.min_free_kbytes", "16MiB"), Err("it counts kB: write 16384".into()));
        assert_eq!(check("vm.dirty_bytes", "1MiB"), Err("it counts bytes: write 1048576".into()));
        assert_eq!(check("vm.lowmem_reserve_ratio", "256 256 32 0"), Ok(()));
        assert!(check("vm.lowmem_reserve_ratio", "a b").is_err());
        assert!(check("vm.lowmem_reserve_ratio", "1 2 3 4 5").is_err());
        assert!(check("vm.lowmem_reserve_ratio", " ").is_err());
        assert_eq!(check("memory.max", "max"), Ok(()));
        let hint = check("memory.max", "300MiB").unwrap_err();
        assert!(hint.ends_with("write 300M"), "{hint}");
        assert!(check("memory.max", "-1").is_err());
        assert_eq!(check("memory.limit_in_bytes", "-1"), Ok(()));
    }
}
