//! The thread on each CPU, as Perfetto's compact switches.
//!
//! Linux: the tracepoint sched_switch. A thread that leaves and one that comes at the same time are
//! one switch; an idle CPU runs its idle thread with pid 0.
//!
//! Invariant: the switches of a CPU ascend in time; each is from the thread of the previous switch.

use super::packets::{CpuSwitches, PacketWriter};
use pagetide_sim::observe::SwitchReason;
use std::io::{self, Write};

/// Switches of a CPU in one packet.
const BATCH: usize = 2048;

/// States of a thread that is off a CPU, as sched_switch has them (`TASK_REPORT`).
const RUNNABLE: u64 = 0;
const SLEEPS: u64 = 1;
const WAITS: u64 = 2;
const DEAD: u64 = 16;

/// Name of the idle thread.
const IDLE: &str = "swapper";

#[derive(Debug)]
pub struct CpuTrack {
    switches: CpuSwitches,
    /// Pids with a name in `switches`.
    named: Vec<u32>,
    last: u64,
    /// A thread has left and no thread has come yet: time and state.
    left: Option<(u64, u64)>,
    is_busy: bool,
    /// From when on nothing is written because the file is large.
    left_out: Option<u64>,
}

impl CpuTrack {
    /// The CPU is idle. Starts with a switch, because readers do not know the thread before the
    /// first.
    pub fn new() -> CpuTrack {
        let switches = CpuSwitches::default();
        let mut cpu = CpuTrack {
            switches,
            named: Vec::new(),
            last: 0,
            left: None,
            is_busy: false,
            left_out: None,
        };
        cpu.switch(0, RUNNABLE, 0, IDLE);
        cpu
    }

    /// A thread leaves the CPU.
    pub fn switch_out(&mut self, at: u64, why: SwitchReason) {
        let state = match why {
            SwitchReason::Preempted => RUNNABLE,
            SwitchReason::Sleeps => SLEEPS,
            SwitchReason::Page | SwitchReason::Throttled | SwitchReason::Disk => WAITS,
            SwitchReason::Exited => DEAD,
        };
        self.left = Some((at, state));
        self.is_busy = false;
    }

    /// A thread comes to the CPU, number `cpu`.
    pub fn switch_in<W: Write>(
        &mut self,
        at: u64,
        cpu: u16,
        (pid, comm): (u32, &str),
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        let state = match self.left {
            Some((then, state)) if then == at => state,
            _ => {
                self.goes_idle();
                RUNNABLE
            }
        };
        self.left = None;
        self.is_busy = true;
        self.switch(at, state, pid, comm);
        if self.switches.times.len() >= BATCH {
            self.write(cpu, packets)?;
        }
        Ok(())
    }

    fn goes_idle(&mut self) {
        if let Some((then, state)) = self.left.take() {
            self.switch(then, state, 0, IDLE);
        }
    }

    fn switch(&mut self, at: u64, prev_state: u64, pid: u32, comm: &str) {
        let since = if self.switches.times.is_empty() { 0 } else { self.last };
        let switches = &mut self.switches;
        let place = self.named.iter().position(|named| *named == pid).unwrap_or_else(|| {
            self.named.push(pid);
            switches.comms.push(comm.to_owned());
            switches.comms.len() - 1
        });
        switches.times.push(at - since);
        switches.prev_states.push(prev_state);
        switches.next_pids.push(pid.into());
        switches.next_comms.push(place as u64);
        self.last = at;
    }

    fn write<W: Write>(&mut self, cpu: u16, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let switches = std::mem::take(&mut self.switches);
        self.named.clear();
        let Some(&first) = switches.times.first() else { return Ok(()) };
        if self.left_out.is_some() || !packets.detail().has_switches {
            if self.left_out.replace(self.left_out.unwrap_or(first)).is_some() {
                return Ok(());
            }
            // Otherwise the last thread would seem to run to the end.
            let mut idle = CpuTrack::new().switches;
            idle.times = vec![first];
            return packets.switches(cpu, &idle);
        }
        packets.switches(cpu, &switches)
    }

    /// The run ends: the CPU goes idle, so that the last slice ends. Returns from when on switches
    /// were left out, if any.
    pub fn end<W: Write>(
        &mut self,
        at: u64,
        cpu: u16,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<Option<u64>> {
        if self.is_busy {
            self.left = Some((at, RUNNABLE));
        }
        self.goes_idle();
        self.write(cpu, packets)?;
        Ok(self.left_out)
    }
}
