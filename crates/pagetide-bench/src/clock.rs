//! Resources used by a run: CPU time of this thread, resident memory of this process.
//!
//! Benches count CPU time, not wall time, because their machine may be busy with other work.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use rustix::time::{clock_gettime, ClockId};
use std::time::Duration;

/// CPU time of the calling thread so far, user and system.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of `work`.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = cpu_time();
    let result = work();
    (result, cpu_time() - begin)
}

/// Criterion's clock, in CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime;

static WALL_TIME: WallTime = WallTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        cpu_time()
    }

    fn end(&self, begin: Duration) -> Duration {
        cpu_time() - begin
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WALL_TIME.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WALL_TIME.formatter()
    }
}
