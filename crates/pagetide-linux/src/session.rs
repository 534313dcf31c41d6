//! A variant of a scenario on a real kernel: booted once, saved when ready, run from the copy.
//!
//! All files are in one temporary directory that goes with the session; QEMU's processes go with the
//! runs. All runs begin with the same memory and differ by their seed, and by what an emulated
//! machine does not repeat.

use crate::comparable::not_comparable;
use crate::console::{self, Report};
use crate::counts::{record, RunName};
use crate::error::LinuxError;
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::qemu::{self, names, Accelerator, Begin, Gone, Machine, Patience, Qemu};
use crate::reference::Origin;
use crate::start::Start;
use crate::{disks, modules};
use pagetide_scenario::model::{Setup, Variant, Workload};
use pagetide_scenario::record::RunRecord;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The guest program, beside the command.
const GUEST: &str = "pagetide-guest";
/// Smallest guest: below, Debian's kernel and its archive do not fit.
const MEMORY_MIN: u64 = 96 << 20;

/// What to boot, how, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel's image; else the newest found.
    pub kernel: Option<PathBuf>,
    /// The guest program; else the one beside the running program.
    pub guest: Option<PathBuf>,
    /// The accelerator wanted; KVM falls back to emulation where it does not work.
    pub accelerator: Accelerator,
    /// How long booting, and each run, may take.
    pub time_limit: Duration,
    /// Where to leave reports and consoles.
    pub keep: Option<PathBuf>,
    /// Set by the user's ^C.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// A scenario as the guest reads it.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its file.
    pub file: &'a Path,
    /// Its name.
    pub scenario: &'a str,
    /// The variant.
    pub variant: &'a Variant,
    /// Changes on the command line.
    pub sets: &'a [(String, String)],
}

/// A machine that is ready to run a variant.
#[derive(Debug)]
pub struct Session<'a> {
    dir: TempDir,
    job: Job<'a>,
    machine: Machine,
    options: Options,
    /// Runs begun so far, for the names of their directories.
    runs: AtomicU32,
    /// Where its runs come from.
    pub origin: Origin,
}

impl<'a> Session<'a> {
    /// Prepares everything, boots, and saves the machine when it is ready.
    ///
    /// # Errors
    /// See [`LinuxError`]. Nothing is left behind.
    pub fn boot(job: Job<'a>, options: &Options) -> Result<Session<'a>, LinuxError> {
        let setup = &job.variant.setup;
        let qemu_version = qemu::version()?;
        let kernel = match &options.kernel {
            Some(image) => Kernel::at(image)?,
            None => Kernel::find()?,
        };
        let guest = guest_program(options.guest.as_deref())?;
        let dir = tempfile::Builder::new()
            .prefix("pagetide-verify-")
            .tempdir()
            .map_err(|error| LinuxError::file(&std::env::temp_dir(), error))?;
        let mut notes = Vec::new();
        let mut accelerator = options.accelerator;
        if accelerator == Accelerator::Kvm {
            if let Err(problem) = qemu::kvm_works(dir.path()) {
                notes.push(format!("KVM does not work here ({problem}): emulation instead"));
                accelerator = Accelerator::Emulation;
            }
        }
        let machine = Machine {
            accelerator,
            cpus: setup.machine.cpus,
            nodes: memory(setup)?,
            movable: setup.machine.nodes.iter().map(|node| node.movable).sum(),
            disks: images(setup, dir.path())?,
            kernel: kernel.image.clone(),
        };
        write_archive(&job, &kernel, &guest, dir.path())?;
        let mib = machine.nodes.iter().sum::<u64>() >> 20;
        let origin = Origin {
            how: format!(
                "{qemu_version}, {}, {}, {mib} MiB",
                accelerator.describe(machine.cpus),
                if machine.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", machine.cpus) }
            ),
            not_comparable: not_comparable(setup),
            notes,
            ..Origin::default()
        };
        let options = options.clone();
        let mut session = Session { dir, job, machine, options, runs: AtomicU32::new(0), origin };
        session.boot_and_save(&kernel)?;
        Ok(session)
    }

    /// Name of the variant.
    pub fn variant(&self) -> &str {
        &self.job.variant.name
    }

    fn patience(&self) -> Patience {
        Patience::new(self.options.time_limit, self.options.cancel.clone())
    }

    fn boot_and_save(&mut self, kernel: &Kernel) -> Result<(), LinuxError> {
        let patience = self.patience();
        let dir = self.dir.path().join("boot");
        let mut qemu = self.machine.start(Begin::Boot, &dir)?;
        let waited = qemu.wait(&patience, |report| {
            console::has_said(report, "@ready") || console::has_failed(report)
        });
        self.keep(&dir, "boot");
        let report = self.understand(waited, &qemu, "")?;
        if !report.ready {
            return Err(died("ended".into(), &report.doing, &qemu));
        }
        qemu.save(&patience)?;
        let text = |path: &str| report.texts.get(path).map(String::as_str).unwrap_or_default();
        self.origin.start = Start::parse(
            text("/proc/zoneinfo"),
            text("/proc/pagetypeinfo"),
            text("/proc/sys/vm/min_free_kbytes"),
        )
        .map_err(|problem| LinuxError::Report { at: 0, problem, console: Vec::new() })?;
        self.origin.kernel = short_version(text("/proc/version"), &kernel.version);
        for lacks in &report.lacks {
            self.origin.not_comparable.push(format!("the kernel lacks {lacks}"));
        }
        self.origin.notes.extend(report.notes);
        Ok(())
    }

    /// Makes a run; several may be made at a time.
    ///
    /// # Errors
    /// See [`LinuxError`]. The session can still be used.
    pub fn run(&self, seed: u64) -> Result<RunRecord, LinuxError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.path().join(format!("run{number}"));
        let record = self.run_in(seed, &dir);
        // Its overlays may be large; what is left goes with the session.
        let _ = std::fs::remove_dir_all(&dir);
        record
    }

    fn run_in(&self, seed: u64, dir: &Path) -> Result<RunRecord, LinuxError> {
        let mut qemu = self.machine.start(Begin::Restore(seed), dir)?;
        let waited = qemu.wait(&self.patience(), |report| {
            console::has_said(report, "@done") || console::has_failed(report)
        });
        self.keep(dir, &format!("seed{seed}"));
        let doing = format!("running with seed {seed}");
        let report = self.understand(waited, &qemu, &doing)?;
        if !report.done {
            return Err(died("ended".into(), &doing, &qemu));
        }
        let name = RunName { scenario: self.job.scenario, variant: &self.job.variant.name, seed };
        let mut record = record(name, &self.job.variant.setup, &report)
            .map_err(|problem| LinuxError::Report { at: 0, problem, console: qemu.console() })?;
        record.files = report.texts.into_iter().collect();
        Ok(record)
    }

    /// What the guest said, or what it means that it did not.
    fn understand(
        &self,
        waited: Result<Vec<u8>, (Gone, Vec<u8>)>,
        qemu: &Qemu,
        doing: &str,
    ) -> Result<Report, LinuxError> {
        let (bytes, gone) = match waited {
            Ok(bytes) => (bytes, None),
            Err((Gone::Cancelled, _)) => return Err(LinuxError::Cancelled),
            Err((gone, bytes)) => (bytes, Some(gone)),
        };
        let report = console::parse(&bytes).map_err(|garbage| LinuxError::Report {
            at: garbage.at,
            problem: garbage.problem,
            console: qemu.console(),
        })?;
        let doing = match doing {
            "" if report.doing.is_empty() => "booting",
            "" => &report.doing,
            doing => doing,
        };
        if let Some(problem) = report.failed {
            let console = qemu.console();
            return Err(LinuxError::GaveUp { doing: doing.to_owned(), problem, console });
        }
        match gone {
            None => Ok(report),
            Some(Gone::TimedOut(limit)) => {
                let how = format!("did not finish within {} s", limit.as_secs());
                Err(died(how, doing, qemu))
            }
            Some(_) => {
                let messages = qemu.messages();
                if bytes.is_empty() && qemu.console().is_empty() && !messages.is_empty() {
                    return Err(LinuxError::Qemu(messages));
                }
                let panicked = qemu.console().iter().any(|line| line.contains("Kernel panic"));
                let how = if panicked { "panicked" } else { "ended" };
                Err(died(how.into(), doing, qemu))
            }
        }
    }

    /// Copies what the machine said to where the user wants it. Best effort: a full disk there must
    /// not lose a run.
    fn keep(&self, from: &Path, what: &str) {
        let Some(dir) = &self.options.keep else { return };
        let variant = self.job.variant.name.replace('/', "_");
        let _ = std::fs::create_dir_all(dir);
        for name in [names::REPORT, names::CONSOLE, names::QEMU] {
            let to = dir.join(format!("{}.{variant}.{what}.{name}", self.job.scenario));
            let _ = std::fs::copy(from.join(name), to);
        }
    }
}

fn died(how: String, doing: &str, qemu: &Qemu) -> LinuxError {
    LinuxError::Died { how, doing: doing.to_owned(), console: qemu.console() }
}

/// `Linux version 6.1.0-1-cloud-amd64 (builder) (compiler) #1 SMP Debian 6.1.192-2 (date)` as
/// `Linux 6.1.0-1-cloud-amd64 (Debian 6.1.192-2)`.
fn short_version(text: &str, release: &str) -> String {
    let package = text.split_once(" Debian ").and_then(|(_, rest)| rest.split(' ').next());
    match package {
        Some(package) => format!("Linux {release} (Debian {package})"),
        None => format!("Linux {release}"),
    }
}

/// Bytes of each node's memory, whole MiB: QEMU's smallest unit.
fn memory(setup: &Setup) -> Result<Vec<u64>, LinuxError> {
    let nodes: Vec<u64> = setup
        .machine
        .nodes
        .iter()
        .map(|node| {
            let zones: u64 = node.zones.iter().map(|zone| zone.present * 4096).sum();
            let bytes = if node.zones.is_empty() { node.memory } else { zones };
            bytes.next_multiple_of(1 << 20)
        })
        .collect();
    let total: u64 = nodes.iter().sum();
    if total < MEMORY_MIN {
        return Err(LinuxError::Scenario(format!(
            "a machine of {} MiB is too small for a whole kernel; {} MiB are enough",
            total >> 20,
            MEMORY_MIN >> 20
        )));
    }
    Ok(nodes)
}

fn images(setup: &Setup, dir: &Path) -> Result<Vec<(String, PathBuf)>, LinuxError> {
    let mut images = Vec::new();
    for disk in 0..setup.machine.disks.len() {
        // The first disk is also that of a trace's files.
        if disk == 0 || setup.files.iter().any(|file| file.disk == disk) {
            images.push((format!("disk{disk}"), disks::file_system(setup, disk, dir)?));
        }
    }
    if let Some(swap) = &setup.machine.swap {
        images.push(("swap".to_owned(), disks::swap(swap.size, dir)?));
    }
    Ok(images)
}

/// The guest program's bytes, checked to be one that runs without libraries.
fn guest_program(named: Option<&Path>) -> Result<Vec<u8>, LinuxError> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let own = std::env::current_exe().unwrap_or_default();
            // A test's program is one level below.
            let mut dirs = own.ancestors().skip(1).take(2);
            let found = dirs.find_map(|dir| Some(dir.join(GUEST)).filter(|path| path.is_file()));
            found.unwrap_or_else(|| own.with_file_name(GUEST))
        }
    };
    let bytes = std::fs::read(&path).map_err(|error| LinuxError::Guest {
        path: path.clone(),
        problem: format!("cannot be read: {error}"),
    })?;
    match wants_interpreter(&bytes) {
        Some(false) => Ok(bytes),
        Some(true) => Err(LinuxError::Guest {
            path,
            problem: "is not statically linked: it would find no library there".to_owned(),
        }),
        None => Err(LinuxError::Guest { path, problem: "is not a program for x86-64".to_owned() }),
    }
}

/// Whether an ELF program names a dynamic linker (a program header of type PT_INTERP); `None` when
/// it is no 64-bit little-endian ELF.
fn wants_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let offset = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?) as usize;
    let size = usize::from(u16::from_le_bytes(elf.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(elf.get(56..58)?.try_into().ok()?));
    for index in 0..count {
        let at = offset.checked_add(index * size)?;
        let kind = u32::from_le_bytes(elf.get(at..at.checked_add(4)?)?.try_into().ok()?);
        if kind == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

fn write_archive(
    job: &Job<'_>,
    kernel: &Kernel,
    guest: &[u8],
    dir: &Path,
) -> Result<(), LinuxError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| LinuxError::file(path, error));
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| LinuxError::file(path, error));
    let mut archive = Initramfs::default();
    archive.program(Path::new("/init"), guest);
    let file = absolute(job.file)?;
    let mut config = format!("scenario {}\nvariant {}\n", file.display(), job.variant.name);
    for (key, value) in job.sets {
        config += &format!("set {key}={value}\n");
    }
    archive.file(&file, &read(job.file)?);
    let mut traces: Vec<&PathBuf> = Vec::new();
    for phase in job.variant.setup.tasks.iter().flat_map(|task| &task.phases) {
        if let Workload::Trace { path, .. } = &phase.workload {
            if !traces.contains(&path) {
                traces.push(path);
            }
        }
    }
    for path in traces {
        archive.file(&absolute(path)?, &read(path)?);
    }
    for path in modules::to_load(kernel)? {
        let name = path.file_name().unwrap_or_default();
        let inside = Path::new("/modules").join(name);
        config += &format!("module {}\n", inside.display());
        archive.file(&inside, &read(&path)?);
    }
    archive.file(Path::new("/pagetide.conf"), config.as_bytes());
    let path = dir.join(names::INITRAMFS);
    std::fs::write(&path, archive.finish()).map_err(|error| LinuxError::file(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_program_is_told_from_a_dynamic_one() {
        // This test's own program is linked dynamically, and so is every other test's.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(wants_interpreter(&own), Some(!cfg!(target_feature = "crt-static")));
        assert_eq!(wants_interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(wants_interpreter(&own[..60]), None);
    }

    #[test]
    fn the_kernel_is_named_briefly() {
        let text =
            "Linux version 6.1.0-9-cloud-amd64 (a@b) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU \
            ld) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-01-01)\n";
        let short = short_version(text, "6.1.0-9-cloud-amd64");
        assert_eq!(short, "Linux 6.1.0-9-cloud-amd64 (Debian 6.1.192-2)");
        assert_eq!(short_version("Linux version 6.9", "6.9"), "Linux 6.9");
    }
}
