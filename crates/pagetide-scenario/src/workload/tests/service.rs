//! Services and rates: arrival times, the work of a request, and due times of accesses.

use super::*;
use crate::draws::prng::{mix64, sub_seed, SplitMix64};

/// A service with every kind of work.
fn service() -> ServiceWorkload {
    ServiceWorkload {
        poisson: false,
        rate: 2_000_000,
        load: LoadCurve::default(),
        duration_ns: Some(1_000_000_000),
        requests: None,
        threads: 2,
        queue: 10,
        deadline_ns: None,
        cpu_ns: 1000,
        cpu_exponential: false,
        heap: Some(("heap".into(), 100)),
        populate: false,
        touches: 2,
        order: PageOrder::Random,
        write_percent: 50,
        file: Some(0),
        read: 8192,
        write: 4096,
        allocate: 2,
        grow: 4096 * 2000,
    }
}

/// A program at its first [`Op::Serve`], and its operations before.
fn serving(service: ServiceWorkload) -> (Program, Vec<Op>) {
    let files = vec![file("data", 1 << 20)];
    let mut program =
        Program::new(&setup(files, vec![task(vec![Workload::Service(service)])]), 0, 1).unwrap();
    let mut before = Vec::new();
    loop {
        match program.next_op().unwrap().unwrap() {
            Op::Serve { phase: 0 } => return (program, before),
            op => before.push(op),
        }
    }
}

/// The operations of the program for a request.
fn served(program: &mut Program, request: &ServiceRequest) -> Vec<Op> {
    program.serve(request);
    let ops = std::iter::from_fn(|| program.next_op().unwrap());
    ops.take_while(|op| !matches!(op, Op::Serve { .. })).collect()
}

#[test]
fn a_request_is_a_function_of_its_number() {
    let (mut program, before) = serving(service());
    let map = |region, pages| Op::Map {
        region,
        backing: RegionBacking::Anon,
        pages,
        advice: Advice::Normal,
        executable: false,
    };
    // The heap, the allocations of two threads, the growth in one second.
    assert_eq!(before, [Op::PhaseBegin { phase: 0 }, map(0, 100), map(1, 4), map(2, 2000)]);
    let mut arrivals = program.arrivals().unwrap();
    let mut requests = Vec::new();
    for at in [0, 500_000, 1_000_000, 1_500_000] {
        assert_eq!(arrivals.next_at(), Some(at));
        requests.push(arrivals.admit(at));
    }
    // The second of the task's draws for requests is the start of their generators.
    let mut prng = SplitMix64::new(sub_seed(1, "t#requests"));
    prng.next_u64();
    let base = prng.next_u64();
    let golden = 0x9e37_79b9_7f4a_7c15u64;
    let mut draws = SplitMix64::new(mix64(base.wrapping_add(golden.wrapping_mul(4))));
    let write = |region, page| Op::Access { region, page, write: true };
    let ops = served(&mut program, &requests[3]);
    let expected = [
        write(1, 0),
        write(1, 1),
        Op::Read { file: 0, offset: draws.below(128) * 8192, len: 8192 },
        Op::Access { region: 0, page: draws.below(100), write: draws.below(100) < 50 },
        Op::Access { region: 0, page: draws.below(100), write: draws.below(100) < 50 },
        write(2, 2),
        Op::Compute { ns: 1000 },
        Op::Write { file: 0, offset: draws.below(256) * 4096, len: 4096 },
        Op::Discard { region: 1, page: 0, pages: 2 },
    ];
    assert_eq!(ops, expected);
    assert_eq!(ops[3], Op::Access { region: 0, page: PINNED.0, write: PINNED.1 });
    // Another thread does the same in its own memory.
    let mut thread = program.thread(1);
    assert_eq!(thread.next_op().unwrap(), Some(Op::Serve { phase: 0 }));
    let others = served(&mut thread, &requests[3]);
    assert_eq!(others[..2], [write(1, 2), write(1, 3)]);
    assert_eq!(others[2..8], ops[2..8]);
    program.end_load();
    assert_eq!(program.next_op().unwrap(), Some(Op::PhaseEnd { phase: 0 }));
    assert_eq!(program.next_op().unwrap(), None);
}

const PINNED: (u64, bool) = (27, true);

#[test]
fn arrivals_end_with_their_number_or_their_time() {
    let count = |service| {
        let mut arrivals = serving(service).0.arrivals().unwrap();
        let times: Vec<u64> = std::iter::from_fn(|| arrivals.next_at()).collect();
        assert!(times.is_sorted());
        (times.len(), times.last().copied())
    };
    assert_eq!(count(service()), (2000, Some(999_500_000)));
    let requests = Some(3);
    assert_eq!(count(ServiceWorkload { requests, ..service() }), (3, Some(1_000_000)));
    // 2000 on average, with a standard deviation of 45.
    let (nr, _) = count(ServiceWorkload { poisson: true, ..service() });
    assert!((1850..2150).contains(&nr), "{nr}");
    let (nr, _) =
        count(ServiceWorkload { poisson: true, load: LoadCurve::new(&[(0, 50)]), ..service() });
    assert!((900..1100).contains(&nr), "{nr}");
}

#[test]
fn accesses_at_a_rate_are_due_at_whole_milliseconds() {
    let pace = Some(Pace { bytes: 1500 * 4096, load: LoadCurve::default() });
    let touch = TouchWorkload { pace, ..touched("a", 5, PageOrder::Sequential) };
    let ops = run(Vec::new(), vec![Workload::Touch(touch)]);
    let (until, access) = (
        |ms: u64| Op::Until { ns: ms * 1_000_000 },
        |page| Op::Access { region: 0, page, write: true },
    );
    let expected = [
        until(0),
        access(0),
        // Due after 2/3 ms, 4/3 ms, 2 ms, 8/3 ms; a sixth would be due after 10/3 ms.
        until(1),
        access(1),
        until(2),
        access(2),
        access(3),
        until(3),
        access(4),
        until(4),
    ];
    assert_eq!(ops[2..ops.len() - 1], expected);
    // The phase ends at the last access, or when the next one would be due.
    let ends = |pages| {
        let pace = Some(Pace { bytes: 1024 * 4096, load: LoadCurve::default() });
        let touch = TouchWorkload { pace, ..touched("a", pages, PageOrder::Sequential) };
        let ops = run(Vec::new(), vec![Workload::Touch(touch)]);
        assert_eq!(pages_of(&ops).len() as u64, pages);
        ops.iter().filter_map(|op| if let Op::Until { ns } = op { Some(*ns) } else { None }).max()
    };
    assert_eq!(ends(4096), Some(4_000_000_000));
    assert_eq!(ends(100 * 1024), Some(100_000_000_000));
}
