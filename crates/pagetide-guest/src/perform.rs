//! A task: performs its operations one by one, as in the simulator.
//!
//! Invariant: every operation of the program is performed or reported in a note.

use crate::contents::PageContents;
use crate::groups::GuestGroups;
use crate::kernel_memory::TestAllocations;
use crate::objects::TaskObjects;
use crate::prepare::write_knob;
use crate::report::{line, line_between, Reporter, SnapshotPoint};
use crate::residency::{report_residency, report_resident};
use crate::service::{self, split_io, GuestLatencies};
use crate::shared::SharedWords;
use crate::sys::memory::{MemoryMapping, PAGE_SIZE};
use crate::sys::process::{self, ProcessUsage};
use pagetide_core::config::{ControlValue, PolicyVariant, Sysctl, Thp};
use pagetide_core::control::{ControlWrite, GroupControlWrite};
use pagetide_scenario::model::{Advice, Setup, TargetWrite, Task};
use pagetide_scenario::names::MadviseKind;
use pagetide_scenario::op::{Op, RegionBacking};
use pagetide_scenario::workload::Program;
use pagetide_scenario::workload::{
    AdviseWorkload, CreateGroup, JoinGroup, Lock, RemoveGroup, Workload, WriteControl,
};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pages of the buffer for read() and write(). Longer calls are split.
const BUFFER_PAGES: u64 = 256;

/// Path of file number `file` of the setup.
pub fn file_path(setup: &Setup, file: usize) -> PathBuf {
    let file = &setup.files[file];
    disk_path(file.disk).join(&file.name)
}

/// Mount point of disk number `disk`, relative to the working directory, which is the root in a
/// guest.
pub fn disk_path(disk: usize) -> PathBuf {
    Path::new("disks").join(disk.to_string())
}

/// A task and its resources.
pub struct Performer<'a> {
    setup: &'a Setup,
    id: usize,
    task: &'a Task,
    shared: SharedWords,
    reporter: Reporter<'a>,
    groups: &'a GuestGroups<'a>,
    files: Vec<Option<File>>,
    /// Buffers for read() and write(), one for each thread.
    buffers: Vec<MemoryMapping>,
    /// Use huge pages for all anonymous memory from the start.
    is_always_huge: bool,
    /// The task will give advice about huge pages on memory that is mapped by then.
    advises_huge: bool,
    regions: Vec<Option<MemoryMapping>>,
    /// The bytes of its pages; `None`: they do not matter.
    contents: Option<PageContents>,
    objects: TaskObjects,
    kernel_memory: TestAllocations,
    bytes: u64,
    errors: u64,
    /// Time of the phase's first [`Op::Until`].
    until_base: Option<u64>,
    /// Time at which the phase's last [`Op::Pace`] ended.
    paced: Option<u64>,
    served: Option<GuestLatencies>,
    /// Result of the phase's last madvise().
    errno: i32,
}

impl<'a> Performer<'a> {
    /// Opens the files of task number `id` and locks its memory.
    pub fn new(
        setup: &'a Setup,
        id: usize,
        shared: SharedWords,
        reporter: Reporter<'a>,
        groups: &'a GuestGroups<'a>,
    ) -> Result<Performer<'a>, String> {
        let task = &setup.tasks[id];
        // Build the program once in advance, so that the heap has its final size.
        drop(Program::new(setup, id, 1).map_err(|error| error.to_string())?);
        let mut files: Vec<Option<File>> = Vec::new();
        files.resize_with(setup.files.len(), || None);
        for phase in &task.phases {
            for (file, write) in phase.workload.files() {
                let path = file_path(setup, file);
                let opened = OpenOptions::new().read(true).write(write).open(&path);
                let opened = opened.map_err(|error| format!("{}: {error}", path.display()))?;
                if files[file].is_none() || write {
                    files[file] = Some(opened);
                }
            }
        }
        let threads = task.phases.iter().map(|phase| phase.workload.threads()).max().unwrap_or(1);
        let buffers: io::Result<Vec<MemoryMapping>> =
            (0..threads).map(|_| MemoryMapping::locked(BUFFER_PAGES)).collect();
        let buffers = buffers.map_err(|error| format!("buffer of a task: {error}"))?;
        let nice = task.settings.nice;
        process::set_nice(nice).map_err(|error| format!("nice {nice}: {error}"))?;
        let regions = Vec::with_capacity(64);
        Ok(Performer {
            setup,
            id,
            task,
            shared,
            reporter,
            groups,
            files,
            buffers,
            is_always_huge: is_always_huge(setup),
            advises_huge: advises_huge(task),
            regions,
            contents: None,
            objects: TaskObjects::new(setup, id)?,
            kernel_memory: TestAllocations::new(setup, id)?,
            bytes: 0,
            errors: 0,
            until_base: None,
            paced: None,
            served: None,
            errno: 0,
        })
    }

    /// Waits for the start, performs all operations, and reports.
    pub fn run(&mut self, seed: u64) {
        if let Some(after) = self.task.start.after {
            self.shared.wait_for_task(after);
        }
        if self.task.start.delay_ns > 0 {
            std::thread::sleep(Duration::from_nanos(self.task.start.delay_ns));
        }
        let id = self.id;
        self.contents = PageContents::new(self.setup, id, seed);
        let mut program = match Program::new(self.setup, id, seed) {
            Ok(program) => program,
            Err(error) => return self.note(format_args!("{error}")),
        };
        self.snapshot("task-begin", 0);
        loop {
            match program.next_op() {
                Ok(Some(Op::Serve { .. })) => self.serve(&mut program),
                Ok(Some(op)) => self.perform(op, &program),
                Ok(None) => break,
                Err(error) => {
                    self.note(format_args!("{error}"));
                    break;
                }
            }
        }
        self.snapshot("task-end", 0);
        if self.errors > 0 {
            self.note(format_args!("{} operations failed", self.errors));
        }
    }

    fn note(&self, what: std::fmt::Arguments<'_>) {
        line_between(self.shared, format_args!("@note task `{}`: {what}", self.task.name));
    }

    #[inline]
    fn perform(&mut self, op: Op, program: &Program) {
        if let Op::Access { region, page, write } = op {
            let found = self.regions.get(region as usize).and_then(Option::as_ref);
            if let (Some(contents), true) = (&self.contents, write) {
                if let Some(words) = found.and_then(|mapping| mapping.words(page)) {
                    contents.write(words, region, page);
                    self.bytes += PAGE_SIZE;
                    return;
                }
            }
            if found.is_some_and(|mapping| mapping.access(page, write)) {
                self.bytes += PAGE_SIZE;
                return;
            }
            // A trace may write to a mapped file, which is read-only here.
            self.errors += 1;
            return;
        }
        self.perform_other(op, program);
    }

    #[inline(never)]
    fn perform_other(&mut self, op: Op, program: &Program) {
        match op {
            Op::Access { .. } => {}
            Op::Map { region, backing, pages, advice, executable } => {
                let mapping = self.map(backing, pages, advice, executable);
                if let Some(mapping) = &mapping {
                    if let Err(error) = mapping.advise(advice) {
                        self.note(format_args!("advice refused: {error}"));
                    }
                }
                while self.regions.len() <= region as usize {
                    self.regions.push(None);
                }
                self.regions[region as usize] = mapping;
            }
            Op::Unmap { region } => {
                if let Some(mapping) = self.regions.get_mut(region as usize) {
                    *mapping = None;
                }
            }
            Op::Discard { region, page, pages } => {
                let mapping = self.regions.get(region as usize).and_then(Option::as_ref);
                if mapping.is_none_or(|mapping| mapping.discard(page, pages).is_err()) {
                    self.errors += 1;
                }
            }
            Op::Lock { region, page, pages, how } => {
                let mapping = self.regions.get(region as usize).and_then(Option::as_ref);
                if mapping.is_none_or(|mapping| mapping.lock(page, pages, how).is_err()) {
                    self.errors += 1;
                }
            }
            Op::Advise { region, page, pages, advice } => {
                let mapping = self.regions.get(region as usize).and_then(Option::as_ref);
                let done = mapping.map(|mapping| mapping.advise_part(page, pages, advice));
                let refused = done.and_then(Result::err).and_then(|error| error.raw_os_error());
                self.errno = refused.unwrap_or(0);
            }
            Op::AllocBlock { .. }
            | Op::FreeBlock { .. }
            | Op::AllocObject { .. }
            | Op::FreeObject { .. }
            | Op::CacheObject { .. } => self.on_kernel_memory(op),
            Op::Pace { ns } => {
                let now = process::now_ns();
                let due = self.paced.map_or(now, |last| last.saturating_add(ns));
                self.paced = Some(due.max(now));
                std::thread::sleep(Duration::from_nanos(due.saturating_sub(now)));
            }
            Op::MakeName { .. }
            | Op::RemoveName { .. }
            | Op::OpenPipe { .. }
            | Op::ClosePipe { .. } => self.on_object(op),
            Op::Read { file, offset, len } => {
                self.split_call(file, offset, len, |file, buffer, at| file.read_at(buffer, at));
            }
            Op::Write { file, offset, len } => {
                self.split_call(file, offset, len, |file, buffer, at| file.write_at(buffer, at));
            }
            Op::Compute { ns } => process::spin(ns),
            Op::Until { ns } => {
                let now = process::now_ns();
                let due = self.until_base.get_or_insert(now).saturating_add(ns);
                std::thread::sleep(Duration::from_nanos(due.saturating_sub(now)));
            }
            // The caller handles it, because it may change the program.
            Op::Serve { .. } => self.errors += 1,
            Op::Sleep { ns } => std::thread::sleep(Duration::from_nanos(ns)),
            // A setup with watchers is refused before it is run on a kernel.
            Op::Watch { .. } | Op::WatchRest => self.errors += 1,
            Op::Group { phase } => self.on_group(phase),
            Op::PhaseBegin { phase } => {
                self.until_base = None;
                self.paced = None;
                self.served = None;
                self.snapshot("phase-begin", phase);
            }
            Op::PhaseEnd { phase } => self.phase_end(phase, program),
        }
    }

    /// An operation on a name or a pipe.
    fn on_object(&mut self, op: Op) {
        let done = match op {
            Op::MakeName { name, missing } => self.objects.create_file(name, missing),
            Op::RemoveName { name } => self.objects.remove_name(name),
            Op::OpenPipe { slot } => self.objects.open_pipe(slot),
            Op::ClosePipe { slot } => self.objects.close_pipe(slot),
            _ => return,
        };
        self.errors += u64::from(done.is_err());
    }

    /// Allocates or frees kernel memory.
    fn on_kernel_memory(&mut self, op: Op) {
        let memory = &mut self.kernel_memory;
        let done = match op {
            Op::AllocBlock { slot, order, request } => memory.alloc_block(slot, order, request),
            Op::FreeBlock { slot } => memory.free_block(slot),
            Op::AllocObject { slot, cache, account } => memory.alloc_object(slot, cache, account),
            Op::FreeObject { slot } => memory.free_object(slot),
            Op::CacheObject { slot } => memory.pass_to_shrinker(slot),
            _ => return,
        };
        self.errors += u64::from(done.is_err());
    }

    /// A phase's operation on a group or a control file. An error is noted with its number, as a
    /// program would see it, and the task continues.
    fn on_group(&self, phase: u32) {
        let name = |group: usize| self.setup.groups[group].name.as_str();
        let groups = self.groups;
        let (done, what) = match self.task.phases.get(phase as usize).map(|phase| &phase.workload) {
            Some(Workload::WriteControl(WriteControl { write: TargetWrite::Machine(write) })) => {
                let control = write.name();
                (write_knob(&control, &write.to_string()), format!("{write} to {control}"))
            }
            // The guest has no zram device.
            Some(Workload::WriteControl(WriteControl { write: TargetWrite::Zram(write) })) => {
                let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
                (Err(missing), format!("a write to {}", write.name()))
            }
            Some(Workload::WriteControl(WriteControl { write: TargetWrite::LruGen(write) })) => {
                let text = write.to_string();
                (std::fs::write("/sys/kernel/debug/lru_gen", &text), format!("{text} to lru_gen"))
            }
            Some(Workload::WriteControl(WriteControl {
                write: TargetWrite::Group(group, write),
            })) => {
                let control = write.control.name();
                let what = format!("{write} to {control} of group `{}`", name(*group));
                (groups.write(*group, *write), what)
            }
            Some(Workload::CreateGroup(CreateGroup { group })) => {
                let refused = |write: GroupControlWrite, error: std::io::Error| {
                    let (control, of) = (write.control.name(), name(*group));
                    self.note(format_args!("{write} to {control} of group `{of}`: {error}"));
                };
                (groups.create(*group, refused), format!("making group `{}`", name(*group)))
            }
            Some(Workload::RemoveGroup(RemoveGroup { group })) => {
                (groups.remove(*group), format!("removing group `{}`", name(*group)))
            }
            Some(Workload::JoinGroup(JoinGroup { group })) => {
                let to = group.map_or("the root".to_owned(), |group| format!("`{}`", name(group)));
                (groups.join(*group), format!("moving into group {to}"))
            }
            _ => return,
        };
        if let Err(error) = done {
            self.note(format_args!("{what}: {error}"));
        }
    }

    fn map(
        &mut self,
        backing: RegionBacking,
        pages: u64,
        advice: Advice,
        executable: bool,
    ) -> Option<MemoryMapping> {
        let may_be_huge = self.is_always_huge
            || self.advises_huge
            || matches!(advice, Advice::Huge | Advice::NoHuge);
        let made = match backing {
            RegionBacking::Anon if may_be_huge => MemoryMapping::anonymous_aligned(pages),
            RegionBacking::Anon | RegionBacking::Heap => MemoryMapping::anonymous(pages),
            RegionBacking::File(file) => match &self.files[file] {
                Some(file) => MemoryMapping::file(file, pages, executable),
                None => return None,
            },
            // Only the trace describes the file. It has holes of that size: the kernel's work on
            // pages is compared, but disk reads are not.
            RegionBacking::TraceFile { key } => {
                let path = disk_path(0).join(format!("trace-{key:016x}"));
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path)
                    .and_then(|file| {
                        if file.metadata()?.len() < pages * PAGE_SIZE {
                            file.set_len(pages * PAGE_SIZE)?;
                        }
                        MemoryMapping::file(&file, pages, executable)
                    })
            }
        };
        made.map_err(|error| {
            self.errors += 1;
            self.note(format_args!("a mapping failed: {error}"));
        })
        .ok()
    }

    /// Makes a call of `len` bytes, split if it exceeds the buffer.
    fn split_call(
        &mut self,
        file: usize,
        offset: u64,
        len: u64,
        call: impl Fn(&File, &mut [u8], u64) -> std::io::Result<usize>,
    ) {
        let Some(file) = &self.files[file] else { return };
        let (done, failed) = split_io(file, self.buffers[0].bytes(), offset, len, call);
        self.bytes += done;
        self.errors += u64::from(failed);
    }

    fn serve(&mut self, program: &mut Program) {
        if let Some(arrivals) = program.arrivals() {
            let Performer { regions, contents, files, buffers, .. } = self;
            let done = service::serve(program, arrivals, (regions, *contents), files, buffers);
            self.bytes += done.bytes;
            self.errors += done.errors;
            self.served = Some(done.served);
        }
        program.end_load();
    }

    fn snapshot(&mut self, kind: &str, phase: u32) {
        let usage = process::usage();
        let (bytes, memory) = (self.bytes, &self.kernel_memory);
        let moment = SnapshotPoint { kind, task: self.id, phase };
        self.reporter.snapshot(moment, |_| {
            report_usage(usage, bytes);
            memory.report();
        });
    }

    fn phase_end(&mut self, phase: u32, program: &Program) {
        let usage = process::usage();
        let (bytes, regions, served) = (self.bytes, &self.regions, &self.served);
        let (errno, memory) = (self.errno, &self.kernel_memory);
        let workload = &self.task.phases[phase as usize].workload;
        let moment = SnapshotPoint { kind: "phase-end", task: self.id, phase };
        self.reporter.snapshot(moment, |buffer| {
            report_usage(usage, bytes);
            memory.report();
            served.iter().for_each(GuestLatencies::report);
            match workload {
                Workload::WorkingSet(set) => report_residency(set, program, regions, buffer),
                Workload::Lock(Lock { part, .. }) => {
                    report_resident(&part.region, program, regions, buffer);
                }
                Workload::Advise(AdviseWorkload { part, .. }) => {
                    report_resident(&part.region, program, regions, buffer);
                    line(format_args!("@errno {errno}"));
                }
                _ => {}
            }
        });
    }
}

/// Whether a phase of the task gives advice about huge pages on a mapped region.
fn advises_huge(task: &Task) -> bool {
    task.phases.iter().any(|phase| match &phase.workload {
        Workload::Advise(of) => {
            matches!(of.advice, MadviseKind::Huge | MadviseKind::NoHuge | MadviseKind::Collapse)
        }
        _ => false,
    })
}

fn is_always_huge(setup: &Setup) -> bool {
    let by_knob = setup.sysctls.iter().rev().find_map(|write| match write {
        ControlWrite::Sysctl(Sysctl::ThpEnabled, ControlValue::Choice(choice)) => Thp::of(*choice),
        _ => None,
    });
    by_knob.or(setup.policies.of()) == Some(Thp::Always)
}

fn report_usage(usage: ProcessUsage, bytes: u64) {
    let ProcessUsage { user_us, system_us, minor_faults, major_faults } = usage;
    line(format_args!("@usage {user_us} {system_us} {minor_faults} {major_faults} {bytes}"));
}
