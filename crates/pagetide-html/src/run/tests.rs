//! Properties of all run pages: all figures of the table, same bytes, no markup but ours, not too
//! large.

use super::*;
use pagetide_lab::report::RunTimeline;
use pagetide_lab::testing::{report_of, series_mut, TestMetrics};
use pagetide_scenario::model::Reference;
use pagetide_scenario::record::timeline::{
    GroupRow, ServiceRow, TaskRow, Timeline, TimelineDeed, TimelineSample, ZoneName, ZoneRow,
};
use pagetide_scenario::record::{Incomplete, Latencies};
use proptest::prelude::*;

const A: TestMetrics = &[("web.walltime", 0.503), ("pgmajfault", 16384.0), ("allocstall", 5.0)];
const B: TestMetrics = &[("web.walltime", 0.511), ("pgmajfault", 16390.0), ("allocstall", 9.0)];
const C: TestMetrics = &[("web.walltime", 0.364), ("pgmajfault", 16384.0), ("allocstall", 0.0)];

fn small(names: [&str; 2]) -> Report {
    let mut report = report_of(&[(names[0], vec![A, B]), (names[1], vec![C, C])]);
    let values = [(names[0].to_owned(), [("allocstall".to_owned(), 7.0)].into())].into();
    report.plan.scenario.reference = Some(Reference { source: "a mail".to_owned(), values });
    report
}

/// A timeline of random numbers, as long and wide as that of a machine with groups.
fn timeline(nr_samples: u64, groups: usize, tasks: usize) -> Timeline {
    let mut state = 1u64;
    let mut any = |most: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let names = |what: &str, nr: usize| (0..nr).map(|it| format!("{what}{it}")).collect();
    let mut sample = |at: u64| TimelineSample {
        end_ns: (at + 1) * 123_456_789,
        rows: (0..=groups)
            .map(|_| {
                let usage_pages = any(1 << 20);
                Some(GroupRow {
                    usage_pages,
                    usage_min_pages: usage_pages / 2,
                    usage_max_pages: usage_pages + any(100),
                    anon_pages: any(1 << 20),
                    file_pages: any(1 << 20),
                    swap_pages: any(1 << 20),
                    some_ns: any(123_456_789),
                    full_ns: any(123_456_789),
                    ..GroupRow::default()
                })
            })
            .collect(),
        zones: (0..3)
            .map(|_| ZoneRow {
                free_pages: any(1 << 20),
                free_min_pages: any(1 << 20),
                free_max_pages: any(1 << 20),
                min_pages: 4000,
                low_pages: 5000,
                high_pages: 6000 + any(2),
            })
            .collect(),
        tasks: (0..tasks)
            .map(|_| TaskRow {
                stalled_ns: [any(1 << 30); 7],
                pgmajfault: any(1000),
                allocated_pages: 0,
            })
            .collect(),
        services: vec![ServiceRow::served(1 + any(1 << 30), false)],
        vmstat: vec![at * 1000],
        ..TimelineSample::default()
    };
    let samples = (0..nr_samples).map(&mut sample).collect();
    Timeline {
        groups: std::iter::once(String::new())
            .chain((0..groups).map(|it| format!("/g{it}")))
            .collect(),
        machine_pages: 1 << 21,
        nr_nodes: 1,
        services: vec!["web".to_owned()],
        zones: ["DMA", "DMA32", "Normal"]
            .map(|zone| ZoneName { node: 0, zone: zone.to_owned() })
            .into(),
        tasks: names("task", tasks),
        vmstat: vec!["pgmajfault".to_owned()],
        samples,
        ..Timeline::default()
    }
}

fn with_timelines(report: &mut Report, groups: usize, tasks: usize) {
    for column in &mut report.columns {
        let timeline = timeline(512, groups, tasks);
        column.timeline = Some(RunTimeline { seed: 1, page_size: 4096, timeline });
        let buckets = (0..1500).map(|at| (1000 + at * at, 1 + at % 7)).collect();
        column.latencies = vec![Latencies { of: "web.latency".to_owned(), buckets }];
    }
}

#[test]
fn a_page_has_every_number_of_the_table() {
    let report = small(["default", "case1"]);
    let text = page(&report, &PageSource::default()).render();
    for row in tabulate(&report).rows {
        for cell in row.ours.iter().chain(row.published.iter().flatten()) {
            for part in [&cell.value, &cell.spread, &cell.change] {
                assert!(text.contains(part.trim()), "{part} of {}", row.label);
            }
        }
        assert!(text.contains(&format!("id=\"{}\"", anchor_of_row(&row.label))));
        assert!(text.contains(&format!("id=\"{}\"", anchor_of_dots(&row.label))));
    }
    for verdict in facts::verdicts(&report) {
        let told = verdict.gains.iter().chain(&verdict.costs).chain(&verdict.work);
        for difference in told {
            let figures = facts::words::figures(difference, true).replace('<', "&lt;");
            assert!(text.contains(&figures), "{figures}");
        }
    }
    for sentence in facts::sentences(&report) {
        assert!(text.contains(&sentence), "{sentence}");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut report = small(["default", "case1"]);
    with_timelines(&mut report, 2, 2);
    let text = page(&report, &PageSource::default()).render();
    let targets = text.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
    let mut number = 0;
    for target in targets {
        assert!(text.contains(&format!("id=\"{target}\"")), "{target}");
        number += 1;
    }
    assert!(number > 12, "{number}");
    assert!(text.contains("href=\"#time-stalls\""));
}

#[test]
fn the_same_result_is_the_same_page() {
    let page_of = || {
        let mut report = small(["default", "case1"]);
        with_timelines(&mut report, 3, 2);
        page(
            &report,
            &PageSource { scenario: "a = 1".to_owned(), command: "pagetide run".to_owned() },
        )
        .render()
    };
    assert!(page_of() == page_of());
}

#[test]
fn five_variants_of_eight_seeds_are_at_most_two_megabytes() {
    const METRICS: TestMetrics =
        &[("web.walltime", 1.5), ("pgmajfault", 3.0), ("pgscan_kswapd", 9.0)];
    for (groups, tasks) in [(0, 2), (4, 4), (60, 200)] {
        let names = ["a", "b", "c", "d", "e"];
        let mut report = report_of(&names.map(|name| (name, vec![METRICS; 8])));
        with_timelines(&mut report, groups, tasks);
        let text = page(&report, &PageSource::default()).render();
        assert!(text.len() <= 2_000_000, "{groups} groups, {tasks} tasks: {}", text.len());
    }
}

#[test]
fn reports_without_data_make_pages() {
    let mut report = report_of(&[("only", vec![&[("pswpin", 0.0)]])]);
    let text = page(&report, &PageSource::default()).render();
    assert!(text.contains("No metric to show") && !text.contains("id=\"time\""), "{text}");
    let empty = Timeline { groups: vec![String::new()], ..Timeline::default() };
    report.columns[0].timeline = Some(RunTimeline { seed: 1, page_size: 4096, timeline: empty });
    assert!(!page(&report, &PageSource::default()).render().contains("id=\"time\""));
    // One empty sample.
    let one = Timeline {
        groups: vec![String::new()],
        samples: vec![TimelineSample { rows: vec![None], ..TimelineSample::default() }],
        ..Timeline::default()
    };
    report.columns[0].timeline = Some(RunTimeline { seed: 1, page_size: 4096, timeline: one });
    assert!(page(&report, &PageSource::default()).render().contains("id=\"time-machine\""));
}

#[test]
fn signals_of_watchers_are_marks_in_charts_over_time() {
    let mut report = small(["default", "case1"]);
    with_timelines(&mut report, 1, 1);
    let deed = |ns, act: &str| TimelineDeed {
        ns,
        watcher: "earlyoom".to_owned(),
        act: act.to_owned(),
        target: "build.1".to_owned(),
    };
    if let Some(of) = &mut report.columns[1].timeline {
        of.timeline.deeds = vec![deed(5, "SIGTERM"), deed(8_000_000, "memory.high 4096")];
    }
    let text = page(&report, &PageSource::default()).render();
    let marks = r#"[{"x":5.0,"text":"SIGTERM build.1"}]"#;
    assert!(text.matches(marks).count() >= 4, "a mark in each chart of the variant");
    assert!(!text.contains("memory.high 4096"), "writes are in the text's rows only");
}

#[test]
fn incomplete_runs_are_marked() {
    let mut report = small(["default", "case1"]);
    let series = series_mut(&mut report, 1, "web.walltime");
    series.samples[0].ended = Some(Incomplete::OomKilled);
    let buckets = vec![(10, 90), (20, 10)];
    report.columns[1].latencies = vec![Latencies { of: "web.latency".to_owned(), buckets }];
    report.notes = vec!["case1, seed 1: task `web` was killed".to_owned()];
    let text = page(&report, &PageSource::default()).render();
    assert!(text.contains("class=\"ended\""), "a hollow dot");
    assert!(text.contains("<td class=\"change\">\u{2020}</td>"), "a dagger in the table");
    assert!(text.contains("\"case1\u{2020}\""), "a dagger in the chart of latencies");
    assert!(text.contains("case1: 1 of 2 runs are incomplete (oom-killed)"), "a warning");
    assert!(text.contains("task `web` was killed"), "the note");
}

#[test]
fn a_long_scenario_is_cut_and_says_so() {
    let source = PageSource { scenario: "# \u{e4}\n".repeat(100_000), command: String::new() };
    let text = page(&small(["a", "b"]), &source).render();
    assert!(text.len() < 600_000 && text.contains("The rest of the scenario is cut off."));
}

/// The elements of a page, in their order.
fn elements(text: &str) -> Vec<&str> {
    let markup = &text[..text.find("id=\"data\"").unwrap_or(text.len())];
    let tags = markup.split('<').skip(1);
    tags.map(|tag| tag.split([' ', '>']).next().unwrap_or_default()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_name_is_markup(name in any::<String>(), evil in "[<>&\"'/a-z! -]{0,64}") {
        for name in [name, evil] {
            let page_of = |name: &str| {
                let mut report = small([name, "other"]);
                with_timelines(&mut report, 1, 1);
                report.plan.scenario.title = format!("t{name}");
                report.plan.scenario.description = format!("d{}", name.replace('\n', ""));
                report.notes = vec![name.to_owned()];
                if let Some(of) = &mut report.columns[0].timeline {
                    of.timeline.groups[1] = name.to_owned();
                    of.timeline.tasks[0] = name.to_owned();
                }
                let source = PageSource { scenario: format!("s{name}"), command: format!("c{name}") };
                page(&report, &source).render()
            };
            let (plain, odd) = (page_of("plain"), page_of(&name));
            prop_assert_eq!(elements(&plain), elements(&odd));
            let data = odd.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next());
            let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
            prop_assert_eq!(&data["figures"][0]["choices"][0]["panels"][0]["name"], &name);
        }
    }
}
