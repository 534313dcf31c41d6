//! Names that formats must escape, and events that these scenarios do not cause.

use super::schema::Trace;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::stats::event::TraceEvent;
use pagetide_core::units::{Cpu, MemcgId, NodeId};
use pagetide_export::{JsonLines, Perfetto};
use pagetide_sim::observe::{
    ActivitySlice, NamedEvent, Observation, ObservationKind, Observer, RunCast, SwitchReason,
    ThreadInfo, ThreadRole, WaitReason,
};
use pagetide_testing::runs::Collected;
use prost::Message;
use serde_json::Value;

const NAMES: [&str; 6] = [
    "a \"b\" \\ c",
    "</script>",
    "line\n\ttab\u{1}\u{7f}",
    "\u{fc}\u{1f41a}\u{fc}\u{1f41a}\u{fc}\u{1f41a}\u{fc}\u{1f41a}",
    "sixty-four-characters-of-which-the-kernel-keeps-no-more-than-fifteen",
    "",
];

fn cast() -> RunCast {
    let task = |(at, name): (usize, &&str)| ThreadInfo {
        comm: (*name).to_owned(),
        pid: 1001 + at as u32,
        role: ThreadRole::Task { group: Some(0), nr: 0 },
    };
    let kswapd = ThreadInfo {
        comm: "kswapd0".into(),
        pid: 30,
        role: ThreadRole::Kernel(Daemon::Kswapd(NodeId(0))),
    };
    RunCast {
        cpus: 2,
        page_size: 4096,
        groups: vec!["/a \"b\" \u{fc}".into()],
        threads: NAMES.iter().enumerate().map(task).chain([kswapd]).collect(),
    }
}

/// One event of each kind, reported to an observer.
fn tell(mut observer: impl Observer) {
    let nid = NodeId(0);
    let memcg = MemcgId(1);
    let path = || vec![Some("/a \"b\" \u{fc}".to_owned())];
    observer.begin(&cast()).unwrap();
    let mut at = 0;
    let mut observe = |thread, what| {
        at += 1000;
        observer.observe(&Observation { at, thread, what }).unwrap();
    };
    let event = |event, names| ObservationKind::Event(Cpu(1), NamedEvent::new(event, names));
    let throttled =
        TraceEvent::MmVmscanThrottled { nid, usec_timeout: 100_000, reason: Throttle::Writeback };
    for thread in 0..NAMES.len() {
        observe(thread, ObservationKind::SwitchIn(Cpu(1)));
        let start = TraceEvent::MmShrinkSlabStart {
            shrink: "scan_shadow_nodes",
            nid,
            memcg,
            nr_objects_to_shrink: 1,
            cache_items: 2,
            delta: 3,
            total_scan: 4,
            priority: 12,
        };
        observe(thread, event(start, path()));
        let end = TraceEvent::MmShrinkSlabEnd {
            shrink: "scan_shadow_nodes",
            nid,
            memcg,
            unused_scan: 1,
            new_scan: 2,
            retval: 3,
            total_scan: 4,
        };
        observe(thread, event(end, vec![None]));
        observe(thread, event(throttled, Vec::new()));
        let slice = ActivitySlice::Wait(WaitReason::Throttled(Throttle::Writeback));
        observe(thread, ObservationKind::Began { slice, since: 0 });
        observe(thread, ObservationKind::SwitchOut(Cpu(1), SwitchReason::Throttled));
        observe(thread, ObservationKind::Ended(slice));
    }
    let active = TraceEvent::MmVmscanLruShrinkActive {
        nid,
        memcg,
        nr_taken: 32,
        nr_active: 1,
        nr_deactivated: 31,
        nr_referenced: 1,
        priority: 12,
        file: true,
    };
    observe(NAMES.len(), event(active, path()));
    observe(NAMES.len(), event(TraceEvent::MmVmscanKswapdSleep { nid }, Vec::new()));
    observer.end(1_000_000, true).unwrap();
    observer.close(None).unwrap();
}

#[test]
fn json_takes_any_name() {
    let out = Collected::default();
    tell(JsonLines::new(out.clone()));
    let text = out.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let comms: Vec<&str> =
        lines.iter().step_by(3).map(|line| line["comm"].as_str().unwrap()).collect();
    assert_eq!(comms[..NAMES.len()], NAMES);
    assert_eq!(lines[0]["memcg"], "/a \"b\" \u{fc}");
    assert_eq!(lines[1]["memcg"], Value::Null);
    assert_eq!(
        text.lines().next().unwrap(),
        r#"{"ns":2000,"cpu":1,"comm":"a \"b\" \\ c","event":"mm_shrink_slab_start","#.to_owned()
            + r#""shrink":"scan_shadow_nodes","nid":0,"#
            + "\"memcg\":\"/a \\\"b\\\" \u{fc}\",\"nr_objects_to_shrink\":1,\"cache_items\":2,"
            + r#""delta":3,"total_scan":4,"priority":12}"#
    );
}

#[test]
fn perfetto_takes_any_name_and_closes_what_is_open() {
    let out = Collected::default();
    tell(Perfetto::new(out.clone()));
    let trace = Trace::decode(&out.bytes()[..]).unwrap();
    let tracks = trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref());
    let threads = tracks.clone().filter_map(|track| track.thread.as_ref()?.thread_name.clone());
    let threads: Vec<String> = threads.collect();
    assert_eq!(threads[..NAMES.len()], NAMES);
    let mut processes = tracks.filter_map(|track| track.process.as_ref()?.process_name.clone());
    assert!(processes.any(|name| name == "/a \"b\" \u{fc}"));
    let of = |kind: i32| {
        let events = trace.packet.iter().filter_map(|packet| packet.track_event.as_ref());
        events.filter(|event| event.r#type == Some(kind)).count()
    };
    // Each is throttled once, after a shrinker ran.
    assert_eq!((of(1), of(2)), (2 * NAMES.len(), 2 * NAMES.len()));
}
