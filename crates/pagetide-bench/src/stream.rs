//! Streams of requests, drawn as the simulator draws them, and as an oracleGeneral file.
//!
//! A record is libCacheSim's `oracleGeneral`: little-endian u32 time, u64 object, u32 size, i64
//! time of the next access (unknown here: -1), 24 bytes without padding.

use pagetide_scenario::draws::prng::sub_seed;
use pagetide_scenario::model::Setup;
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::Program;
use std::io::{self, Write};

/// Bytes of a record.
pub const RECORD: usize = 24;

/// Calls `access` for each page that the only task of `setup` accesses in a run with `seed`.
///
/// # Panics
/// If the task cannot run.
pub fn accesses(setup: &Setup, seed: u64, mut access: impl FnMut(u64)) {
    let mut program = program(setup, seed);
    while let Some(op) = program.next_op().expect("the setup is valid") {
        if let Op::Access { page, .. } = op {
            access(page);
        }
    }
}

fn program(setup: &Setup, seed: u64) -> Program {
    // Seeded like the tasks in `pagetide_sim::run::build`.
    let seed = sub_seed(seed, &format!("task {}", setup.tasks[0].name));
    Program::new(setup, 0, seed).expect("the setup is valid")
}

pub fn write_record(out: &mut impl Write, time: u32, object: u64) -> io::Result<()> {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&time.to_le_bytes());
    record[4..12].copy_from_slice(&object.to_le_bytes());
    record[12..16].copy_from_slice(&1_u32.to_le_bytes());
    record[16..].copy_from_slice(&(-1_i64).to_le_bytes());
    out.write_all(&record)
}

/// The objects of a trace in memory, one for each record.
pub fn objects(trace: &[u8]) -> impl Iterator<Item = u64> + '_ {
    trace.chunks_exact(RECORD).map(|record| {
        let mut object = [0; 8];
        object.copy_from_slice(&record[4..12]);
        u64::from_le_bytes(object)
    })
}
