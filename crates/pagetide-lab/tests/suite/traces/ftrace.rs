//! A script for the kernel's ftrace text reads ours: each line has the format of
//! /sys/kernel/tracing/events/vmscan/*/format, and lines and numbers agree with the JSON lines.

use super::{ran, SCENARIO};
use pagetide_core::stats::event::TraceEvent;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of each event, from the `print fmt` of its format file (Linux 6.1).
fn formats() -> BTreeMap<&'static str, Regex> {
    let gfp = r"gfp_flags=(?P<gfp_flags>none|GFP_[A-Z]+(\|__?G?FP?_?[A-Z_]+)*|[A-Z_|]+)";
    let begin = format!("^order=(?P<order>[0-9]+) {gfp}$");
    let end = "^nr_reclaimed=(?P<nr_reclaimed>[0-9]+)$";
    let flags = "flags=RECLAIM_WB_(?P<kind>FILE|ANON)\\|RECLAIM_WB_ASYNC$";
    let shrinker = r"^[a-z_]+\+0x[0-9a-f]+/0x[0-9a-f]+ [0-9a-f]{16}: nid: (?P<nid>[0-9]+)";
    let scanners = "^zone_start=0x[0-9a-f]+ migrate_pfn=0x[0-9a-f]+ free_pfn=0x[0-9a-f]+ \
                    zone_end=0x[0-9a-f]+, mode=(?:sync|async)";
    let texts: [(&str, String); 20] = [
        ("mm_vmscan_wakeup_kswapd", format!("^nid=(?P<nid>[0-9]+) order=(?P<order>[0-9]+) {gfp}$")),
        ("mm_vmscan_kswapd_wake", "^nid=(?P<nid>[0-9]+) order=(?P<order>[0-9]+)$".into()),
        ("mm_vmscan_kswapd_sleep", "^nid=(?P<nid>[0-9]+)$".into()),
        ("mm_vmscan_direct_reclaim_begin", begin.clone()),
        ("mm_vmscan_memcg_reclaim_begin", begin.clone()),
        ("mm_vmscan_memcg_softlimit_reclaim_begin", begin),
        ("mm_vmscan_direct_reclaim_end", end.into()),
        ("mm_vmscan_memcg_reclaim_end", end.into()),
        ("mm_vmscan_memcg_softlimit_reclaim_end", end.into()),
        (
            "mm_vmscan_lru_shrink_inactive",
            format!(
                "^nid=(?P<nid>[0-9]+) nr_scanned=(?P<nr_scanned>[0-9]+) nr_reclaimed=(?P<nr_reclaimed>[0-9]+) \
                 nr_dirty=(?P<nr_dirty>[0-9]+) nr_writeback=(?P<nr_writeback>[0-9]+) \
                 nr_congested=(?P<nr_congested>[0-9]+) nr_immediate=(?P<nr_immediate>[0-9]+) \
                 nr_activate_anon=[0-9]+ nr_activate_file=[0-9]+ nr_ref_keep=(?P<nr_ref_keep>[0-9]+) \
                 nr_unmap_fail=[0-9]+ priority=(?P<priority>[0-9]+) {flags}"
            ),
        ),
        (
            "mm_vmscan_lru_shrink_active",
            format!(
                "^nid=(?P<nid>[0-9]+) nr_taken=(?P<nr_taken>[0-9]+) nr_active=(?P<nr_active>[0-9]+) \
                 nr_deactivated=(?P<nr_deactivated>[0-9]+) nr_referenced=(?P<nr_referenced>[0-9]+) \
                 priority=(?P<priority>[0-9]+) {flags}"
            ),
        ),
        (
            "mm_shrink_slab_start",
            format!(
                "{shrinker} objects to shrink (?P<nr_objects_to_shrink>[0-9]+) gfp_flags [A-Za-z_|]+ cache items \
                 (?P<cache_items>[0-9]+) delta (?P<delta>[0-9]+) total_scan (?P<total_scan>[0-9]+) \
                 priority (?P<priority>[0-9]+)$"
            ),
        ),
        (
            "mm_shrink_slab_end",
            format!(
                "{shrinker} unused scan count (?P<unused_scan>[0-9]+) new scan count (?P<new_scan>[0-9]+) \
                 total_scan (?P<total_scan>[0-9]+) last shrinker return val (?P<retval>[0-9]+)$"
            ),
        ),
        (
            "mm_vmscan_throttled",
            "^nid=(?P<nid>[0-9]+) usec_timeout=(?P<usec_timeout>[0-9]+) usect_delayed=[0-9]+ \
             reason=(?P<reason>[A-Za-z_.]+)$"
                .into(),
        ),
        ("mark_victim", "^pid=1[0-9]{3}$".into()),
        (
            "mm_page_alloc_extfrag",
            "^page=\\(____ptrval____\\) pfn=0x[0-9a-f]+ alloc_order=[0-9]+ fallback_order=[0-9]+ \
             pageblock_order=9 alloc_migratetype=[0-5] fallback_migratetype=[0-5] fragmenting=[01] \
             change_ownership=[01]$"
                .into(),
        ),
        ("boost_watermark", "^nid=(?P<nid>[0-9]+) zid=[0-3] watermark_boost=[0-9]+$".into()),
        ("mm_compaction_begin", format!("{scanners}$")),
        ("mm_compaction_end", format!("{scanners} status=[a-z_]+$")),
        (
            "balance_dirty_pages",
            "^bdi 0:0: limit=[0-9]+ setpoint=[0-9]+ dirty=[0-9]+ bdi_setpoint=0 bdi_dirty=0 dirty_ratelimit=[0-9]+ \
             task_ratelimit=[0-9]+ dirtied=[0-9]+ dirtied_pause=0 paused=0 pause=-?[0-9]+ period=-?[0-9]+ think=0 \
             cgroup_ino=1$"
                .into(),
        ),
    ];
    texts.into_iter().map(|(name, text)| (name, Regex::new(&text).unwrap())).collect()
}

/// Reads ftrace text: events with their fields, in order.
pub fn read(text: &str) -> Vec<(String, String, BTreeMap<String, String>)> {
    let line_of = Regex::new(concat!(
        r"^ *(?P<comm>\S+)-(?P<pid>[0-9]+) +\[(?P<cpu>[0-9]{3})\] [.dnNpHhsZz0-9bBDX-]{5} +",
        r"(?P<s>[0-9]+)\.(?P<us>[0-9]{6}): (?P<event>[a-z_]+): (?P<fields>.*)$",
    ))
    .unwrap();
    let formats = formats();
    let mut events = Vec::new();
    let mut last = (0u64, 0u64);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let found = line_of.captures(line).unwrap_or_else(|| panic!("{line}"));
        let now = (found["s"].parse().unwrap(), found["us"].parse().unwrap());
        assert!(now >= last, "{line}");
        last = now;
        assert!(found["comm"].len() <= 15, "{line}");
        let format = &formats[&found["event"]];
        let fields =
            format.captures(&found["fields"]).unwrap_or_else(|| panic!("{line}\n{format}"));
        let named = format.capture_names().flatten();
        let fields = named
            .filter_map(|name| Some((name.to_owned(), fields.name(name)?.as_str().to_owned())));
        events.push((found["comm"].to_owned(), found["event"].to_owned(), fields.collect()));
    }
    events
}

fn check(text: &str) -> BTreeMap<String, usize> {
    let ran = ran(text);
    let head: Vec<&str> = ran.ftrace.lines().take(3).collect();
    assert_eq!(head[0], "# tracer: nop");
    assert!(head[2].ends_with("#P:2"), "{head:?}");
    let lines = read(&ran.ftrace);
    let mut counts = BTreeMap::new();
    let mut ours: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for (comm, event, fields) in lines {
        assert!(!comm.is_empty());
        *counts.entry(event.clone()).or_insert(0) += 1;
        ours.entry(event).or_default().push(fields);
    }
    let mut json: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in ran.json.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        json.entry(line["event"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    assert_eq!(json.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
    for (event, lines) in &json {
        assert_eq!(lines.len(), ours[event].len(), "{event}");
        // Throttle events are in the order of their ends.
        if event == "mm_vmscan_throttled" {
            continue;
        }
        for (line, fields) in lines.iter().zip(&ours[event]) {
            for (name, text) in fields {
                let Some(value) = line.get(name) else { continue };
                let wanted = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(*text, wanted, "{name} of {line}");
            }
        }
    }
    counts
}

#[test]
fn lines_are_those_of_a_kernel() {
    let mut seen = check(SCENARIO);
    let soft =
        SCENARIO.replace("memory.limit_in_bytes = \"24M\"", "memory.soft_limit_in_bytes = \"16M\"");
    seen.extend(check(&soft));
    let text = SCENARIO
        .replace("swap = \"256MiB\"", "")
        .replace("memory = \"64MiB\"", "memory = \"48MiB\"");
    seen.extend(check(&text));
    // These need other loads; `names` makes one of each.
    let elsewhere = [
        "mm_shrink_slab_start",
        "mm_shrink_slab_end",
        "mm_vmscan_lru_shrink_active",
        "mm_vmscan_kswapd_sleep",
        "mm_vmscan_throttled",
        "balance_dirty_pages",
    ];
    for name in TraceEvent::NAMES.iter().filter(|name| !elsewhere.contains(name)) {
        assert!(seen.contains_key(*name), "no {name}: {seen:?}");
    }
}
