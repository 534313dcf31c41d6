//! A session runs a variant of a scenario on a real kernel: it boots once, saves the machine when
//! it is ready, and starts each run from the saved copy.
//!
//! All files are in one temporary directory that is removed with the session; QEMU processes end
//! with their runs. All runs start with the same memory. They differ by their seed, and by
//! nondeterminism of the emulation.

use crate::comparable::{impossible, missing_switch, not_comparable};
use crate::console::{self, GuestReport};
use crate::counts::{record, RunName};
use crate::error::{LinuxError, PANIC};
use crate::initramfs::Initramfs;
use crate::kernel::{KernelChoice, KernelImage};
use crate::qemu::{self, names, Accelerator, Qemu, QemuMachine, QemuStart, WaitError, WaitLimit};
use crate::reference::{
    is_possible_memory, scenario_hash, scenario_text, ReferenceOrigin, REJECTS,
};
use crate::start::StartMemory;
use crate::{disk_times, disks, modules};
use pagetide_scenario::load::AddedVariant;
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::{swap_serial, Setup, Variant};
use pagetide_scenario::record::RunRecord;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Name of the guest program, next to the command.
const GUEST: &str = "pagetide-guest";
/// Minimum memory: Debian's kernel and its initramfs do not fit into less.
const MEMORY_MIN: u64 = 96 << 20;
/// Amount of memory below 4 GiB in QEMU's layout. It is in zones DMA and DMA32, which the simulator
/// has on the first node only.
const MEMORY_BELOW_4G: u64 = 3 << 30;
/// Minimum memory for QEMU to place some above 4 GiB.
const MEMORY_SPLIT: u64 = 3584 << 20;
/// Directories that the guest mounts over: files of the archive in them are hidden.
const MOUNTED_OVER: [&str; 4] = ["/dev", "/proc", "/sys", "/disks"];

#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub kernel: KernelChoice,
    /// The guest program; default is the one next to the running program.
    pub guest: Option<PathBuf>,
    /// The wanted accelerator; KVM falls back to emulation if it does not work.
    pub accelerator: Accelerator,
    /// Time limit for booting, and for each run.
    pub time_limit: Duration,
    /// Where to keep reports and consoles.
    pub keep: Option<PathBuf>,
    /// Set by the user's ^C.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// A scenario as the guest reads it.
#[derive(Clone, Copy, Debug)]
pub struct SessionJob<'a> {
    pub file: &'a Path,
    /// The files that it extends.
    pub bases: &'a [PathBuf],
    pub scenario: &'a str,
    pub variant: &'a Variant,
    /// Changes on the command line.
    pub sets: &'a [(String, String)],
    /// The variant, if it is not in the file.
    pub added: Option<&'a AddedVariant>,
}

/// A machine that is ready to run a variant.
#[derive(Debug)]
pub struct KernelSession<'a> {
    dir: TempDir,
    job: SessionJob<'a>,
    machine: QemuMachine,
    options: SessionOptions,
    /// /proc/diskstats when it was saved.
    diskstats: String,
    /// Number of runs started, for the names of their directories.
    runs: AtomicU32,
    /// Origin of its runs.
    pub origin: ReferenceOrigin,
}

impl<'a> KernelSession<'a> {
    /// Prepares all files, boots, and saves the machine when it is ready.
    /// After an error no files are left.
    pub fn boot(
        job: SessionJob<'a>,
        options: &SessionOptions,
    ) -> Result<KernelSession<'a>, LinuxError> {
        let setup = &job.variant.setup;
        if let Some(why) = impossible(setup, options.kernel.has_test_allocation()) {
            return Err(LinuxError::Scenario(why));
        }
        let qemu_version = qemu::version()?;
        let kernel = options.kernel.find()?;
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
        let machine = QemuMachine {
            accelerator,
            cpus: setup.machine.cpus,
            nodes: memory(setup)?,
            movable: setup.machine.nodes.iter().map(|node| node.movable).sum(),
            disks: images(setup, dir.path())?,
            append: boot_options(setup),
            kernel: kernel.image.clone(),
        };
        write_archive(&job, &kernel, &guest, dir.path())?;
        let mib = machine.nodes.iter().sum::<u64>() >> 20;
        let text = scenario_text(job.file, job.bases)?;
        let origin = ReferenceOrigin {
            scenario_hash: scenario_hash(&text, job.sets, job.added),
            how: format!(
                "{qemu_version}, {}, {}, {mib} MiB",
                accelerator.describe(machine.cpus),
                if machine.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", machine.cpus) }
            ),
            notes,
            ..ReferenceOrigin::default()
        };
        let options = options.clone();
        let mut session = KernelSession {
            dir,
            job,
            machine,
            options,
            diskstats: String::new(),
            runs: AtomicU32::new(0),
            origin,
        };
        session.boot_and_save(&kernel)?;
        Ok(session)
    }

    /// Name of the variant.
    pub fn variant(&self) -> &str {
        &self.job.variant.name
    }

    fn patience(&self) -> WaitLimit {
        WaitLimit::new(self.options.time_limit, self.options.cancel.clone())
    }

    fn boot_and_save(&mut self, kernel: &KernelImage) -> Result<(), LinuxError> {
        let patience = self.patience();
        let dir = self.dir.path().join("boot");
        let mut qemu = self.machine.start(QemuStart::Boot, &dir)?;
        let waited = qemu.wait(&patience, |report| {
            console::contains_line(report, "@ready") || console::has_failed(report)
        });
        self.keep(&dir, "boot");
        let report = self.interpret_report(waited, &qemu, "")?;
        if !report.ready {
            return Err(died("ended".into(), &report.last_step, &qemu));
        }
        qemu.save(&patience)?;
        let text = |path: &str| report.texts.get(path).map(String::as_str).unwrap_or_default();
        self.origin.start = StartMemory::parse(
            text("/proc/zoneinfo"),
            text("/proc/pagetypeinfo"),
            text("/proc/slabinfo"),
            text("/proc/sys/vm/min_free_kbytes"),
            text("auto-init"),
        )
        .and_then(|start| match is_possible_memory(&start) {
            true => Ok(start),
            false => Err("/proc/zoneinfo describes an impossible machine".to_owned()),
        })
        .map_err(|problem| LinuxError::Report { at: 0, problem, console: Vec::new() })?;
        text("/proc/diskstats").clone_into(&mut self.diskstats);
        self.origin.kernel = short_version(text("/proc/version"), &kernel.version);
        let setup = &self.job.variant.setup;
        if self.options.kernel == KernelChoice::Proposals {
            if let Some((choice, file)) = missing_switch(setup, &report.switches) {
                let kernel = self.origin.kernel.clone();
                return Err(LinuxError::NoSwitch { kernel, choice, file });
            }
        }
        self.origin.not_comparable = not_comparable(setup, &report.switches);
        self.origin.switches = report.switches;
        for lacks in &report.missing {
            self.origin.not_comparable.push(format!("the kernel lacks {lacks}"));
        }
        for refused in &report.rejected {
            let text = format!("{REJECTS} {refused} and uses its default");
            self.origin.not_comparable.push(text);
        }
        self.origin.notes.extend(report.notes);
        Ok(())
    }

    /// Performs a run; several may run in parallel.
    /// After an error the session remains usable.
    pub fn run(&self, seed: u64) -> Result<RunRecord, LinuxError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.path().join(format!("run{number}"));
        let record = self.run_in(seed, &dir);
        // Overlays may be large. If removal fails, the session removes them.
        let _ = std::fs::remove_dir_all(&dir);
        record
    }

    fn run_in(&self, seed: u64, dir: &Path) -> Result<RunRecord, LinuxError> {
        let mut qemu = self.machine.start(QemuStart::Restore(seed), dir)?;
        let waited = qemu.wait(&self.patience(), |report| {
            console::contains_line(report, "@done") || console::has_failed(report)
        });
        self.keep(dir, &format!("seed{seed}"));
        let doing = format!("running with seed {seed}");
        let report = self.interpret_report(waited, &qemu, &doing)?;
        if !report.done {
            return Err(died("ended".into(), &doing, &qemu));
        }
        let name = RunName { scenario: self.job.scenario, variant: &self.job.variant.name, seed };
        let mut record = record(name, &self.job.variant.setup, &report)
            .map_err(|problem| LinuxError::Report { at: 0, problem, console: qemu.console() })?;
        let serials: Vec<&str> =
            self.machine.disks.iter().map(|(serial, _)| serial.as_str()).collect();
        let after = report.texts.get("/proc/diskstats").map_or("", String::as_str);
        let names = KeyNames::of(&self.job.variant.setup);
        disk_times::add_to(&mut record.metrics, &names, &serials, (&self.diskstats, after));
        record.files = report.texts.into_iter().collect();
        Ok(record)
    }

    /// Converts the guest's report, or explains why it is incomplete.
    fn interpret_report(
        &self,
        waited: Result<Vec<u8>, (WaitError, Vec<u8>)>,
        qemu: &Qemu,
        doing: &str,
    ) -> Result<GuestReport, LinuxError> {
        let (bytes, gone) = match waited {
            Ok(bytes) => (bytes, None),
            Err((WaitError::Cancelled, _)) => return Err(LinuxError::Cancelled),
            Err((gone, bytes)) => (bytes, Some(gone)),
        };
        let report = console::parse(&bytes).map_err(|garbage| LinuxError::Report {
            at: garbage.at,
            problem: garbage.problem,
            console: qemu.console(),
        })?;
        let doing = match doing {
            "" if report.last_step.is_empty() => "booting",
            "" => &report.last_step,
            doing => doing,
        };
        if let Some(problem) = report.failed {
            let console = qemu.console();
            return Err(LinuxError::GaveUp { doing: doing.to_owned(), problem, console });
        }
        match gone {
            None => Ok(report),
            Some(WaitError::TimedOut(limit)) => {
                let how = format!("did not finish within {} s", limit.as_secs());
                Err(died(how, doing, qemu))
            }
            Some(_) => {
                let messages = qemu.messages();
                if bytes.is_empty() && qemu.console().is_empty() && !messages.is_empty() {
                    return Err(LinuxError::Qemu(messages));
                }
                let panicked = qemu.console().iter().any(|line| line.contains(PANIC));
                let how = if panicked { "panicked" } else { "ended" };
                Err(died(how.into(), doing, qemu))
            }
        }
    }

    /// Copies the machine's output to the user's directory. Errors are ignored: a full disk must
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

/// Bytes of each node's memory, in whole MiB, QEMU's smallest unit.
fn memory(setup: &Setup) -> Result<Vec<u64>, LinuxError> {
    let nodes: Vec<u64> = setup
        .machine
        .nodes
        .iter()
        .map(|node| {
            let zones: u64 =
                node.zones.iter().map(|zone| zone.present * crate::disks::PAGE_SIZE).sum();
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
    if nodes.len() > 1 && (nodes[0] < MEMORY_BELOW_4G || total < MEMORY_SPLIT) {
        return Err(LinuxError::Scenario(format!(
            "its second node would be in zone DMA32; with a first node of {} MiB or more and {} MiB in \
             all it is not",
            MEMORY_BELOW_4G >> 20,
            MEMORY_SPLIT >> 20
        )));
    }
    Ok(nodes)
}

/// Boot options that the setup needs. A setup without names and pipes has none for them.
fn boot_options(setup: &Setup) -> String {
    // Debian builds pressure stall information but disables it by default.
    let mut options = String::from(" psi=1");
    if !setup.machine.kmem_accounting {
        options += " cgroup.memory=nokmem";
    }
    if let Some(on) = setup.machine.init_on_alloc {
        options += &format!(" init_on_alloc={}", u8::from(on));
    }
    if setup.has_objects() {
        // Otherwise SLUB merges caches with objects of similar size under the name of the first.
        options += " slab_nomerge";
    }
    options
}

fn images(setup: &Setup, dir: &Path) -> Result<Vec<(String, PathBuf)>, LinuxError> {
    let mut images = Vec::new();
    for disk in 0..setup.machine.disks.len() {
        // The first disk also has the files of traces.
        if disk == 0 || setup.files.iter().any(|file| file.disk == disk) {
            images.push((format!("disk{disk}"), disks::file_system(setup, disk, dir)?));
        }
    }
    for (at, swap) in setup.machine.swap.iter().enumerate() {
        if swap.zram.is_some() {
            continue; // the guest makes it
        }
        let serial = swap_serial(at);
        let image = disks::swap(&serial, swap.size, dir)?;
        images.push((serial, image));
    }
    Ok(images)
}

/// The guest program's contents, checked to be static.
fn guest_program(named: Option<&Path>) -> Result<Vec<u8>, LinuxError> {
    match named {
        Some(path) => static_program(path),
        None => guest_near(&std::env::current_exe().unwrap_or_default()),
    }
}

/// The first static guest program near the command `own`. The program of `make guest` has precedence
/// over one next to the command, where a plain `cargo build` puts a dynamic one.
fn guest_near(own: &Path) -> Result<Vec<u8>, LinuxError> {
    let mut first_problem = None;
    for path in guests_near(own) {
        match static_program(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(problem) => first_problem = first_problem.or(Some(problem)),
        }
    }
    Err(first_problem.unwrap_or_else(|| not_built(own)))
}

/// Guest programs near the command `own`.
fn guests_near(own: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    // A test binary is one level below the command.
    let dirs = own.ancestors().skip(1).take(2);
    let near = |dir: &Path| [dir.with_file_name("guest").join(GUEST), dir.join(GUEST)];
    dirs.flat_map(near).filter(|path| path.is_file())
}

fn not_built(own: &Path) -> LinuxError {
    LinuxError::Guest { path: own.with_file_name(GUEST), problem: "was not built".to_owned() }
}

/// The guest program for execution on this computer, where a dynamic one can find its libraries.
pub(crate) fn runnable_guest(named: Option<&Path>) -> Result<PathBuf, LinuxError> {
    let own = std::env::current_exe().unwrap_or_default();
    let path = match named {
        Some(path) => path.to_owned(),
        None => guests_near(&own).next().ok_or_else(|| not_built(&own))?,
    };
    // The program is started in another directory.
    path.canonicalize().map_err(|error| LinuxError::Guest {
        path: path.clone(),
        problem: format!("cannot be read: {error}"),
    })
}

fn static_program(path: &Path) -> Result<Vec<u8>, LinuxError> {
    let wrong = |problem: String| LinuxError::Guest { path: path.to_owned(), problem };
    let bytes = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match wants_interpreter(&bytes) {
        Some(false) => Ok(bytes),
        Some(true) => {
            Err(wrong("is not statically linked, but the guest has no libraries".to_owned()))
        }
        None => Err(wrong("is not a program for x86-64".to_owned())),
    }
}

/// Whether an ELF program needs a dynamic linker (a program header of type PT_INTERP); `None` if it
/// is not an ELF file for x86-64.
fn wants_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    const EM_X86_64: [u8; 2] = 62u16.to_le_bytes();
    if elf.get(..6)? != b"\x7fELF\x02\x01" || *elf.get(18..20)? != EM_X86_64 {
        return None;
    }
    let offset = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?) as usize;
    let size = usize::from(u16::from_le_bytes(elf.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(elf.get(56..58)?.try_into().ok()?));
    for index in 0..count {
        let at = offset.checked_add(index.checked_mul(size)?)?;
        let kind = u32::from_le_bytes(elf.get(at..at.checked_add(4)?)?.try_into().ok()?);
        if kind == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

fn write_archive(
    job: &SessionJob<'_>,
    kernel: &KernelImage,
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
    if let Some(added) = job.added {
        config += &format!("add {added}\n");
    }
    if config.lines().count() != 2 + job.sets.len() + usize::from(job.added.is_some()) {
        return Err(LinuxError::Scenario("a name or a value of --set has a line end".to_owned()));
    }
    let hidden = |path: &Path| MOUNTED_OVER.iter().any(|dir| path.starts_with(dir));
    let check = |path: &Path| match hidden(path) {
        true => Err(LinuxError::Scenario(format!(
            "{} is where the guest mounts something else; move it",
            path.display()
        ))),
        false => Ok(()),
    };
    check(&file)?;
    archive.file(&file, &read(job.file)?);
    let latencies = &job.variant.setup.machine.latency_files;
    let mut named: Vec<&PathBuf> = job.bases.iter().chain(latencies).collect();
    for phase in job.variant.setup.tasks.iter().flat_map(|task| &task.phases) {
        let Some(path) = phase.workload.named_file() else { continue };
        if !named.contains(&path) {
            named.push(path);
        }
    }
    for path in named {
        let inside = absolute(path)?;
        check(&inside)?;
        archive.file(&inside, &read(path)?);
    }
    for (name, module) in modules::to_load(kernel, &job.variant.setup)? {
        let inside = format!("/modules/{name}.ko");
        config += &format!("module {inside}\n");
        archive.file(Path::new(&inside), &module);
    }
    archive.file(Path::new("/pagetide.conf"), config.as_bytes());
    let path = dir.join(names::INITRAMFS);
    std::fs::write(&path, archive.finish()).map_err(|error| LinuxError::file(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    #[test]
    fn static_and_dynamic_programs_are_distinguished() {
        // Test binaries are linked dynamically.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(wants_interpreter(&own), Some(!cfg!(target_feature = "crt-static")));
        assert_eq!(wants_interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(wants_interpreter(&own[..60]), None);
        let mut other = own;
        other[18] = 183; // aarch64
        assert_eq!(wants_interpreter(&other), None);
    }

    #[test]
    fn the_static_guest_is_found_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let command = target.join("release/pagetide");
        let problem = |own: &Path| guest_near(own).unwrap_err().to_string();
        for made in ["release/deps", "guest"] {
            std::fs::create_dir_all(target.join(made)).unwrap();
        }
        assert!(problem(&command).ends_with("release/pagetide-guest was not built"));
        // A header without program headers is static; one of type PT_INTERP makes it dynamic.
        let mut elf = [0u8; 120];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[18], elf[32], elf[54]) = (62, 64, 56);
        let beside = target.join("release/pagetide-guest");
        let (mut dynamic, mut built) = (elf, elf);
        (dynamic[56], dynamic[64], built[100]) = (1, 3, 1);
        std::fs::write(&beside, dynamic).unwrap();
        assert!(problem(&command).contains("release/pagetide-guest is not statically linked"));
        std::fs::write(target.join("guest/pagetide-guest"), built).unwrap();
        for own in ["release/pagetide", "release/deps/session-1"] {
            assert_eq!(guest_near(&target.join(own)).unwrap(), built, "{own}");
        }
        std::fs::write(target.join("guest/pagetide-guest"), "text").unwrap();
        assert!(problem(&command).contains("guest/pagetide-guest is not a program for x86-64"));
        std::fs::write(&beside, elf).unwrap();
        assert_eq!(guest_near(&command).unwrap(), elf);
    }

    #[test]
    fn what_qemu_cannot_be_given_is_refused() {
        let of = |machine: &str| {
            let text = format!("{machine}\n[[task]]\nname='t'\nworkload='touch'\nsize='1MiB'\n");
            memory(&setup(&text)).map_err(|error| error.to_string())
        };
        let nodes = |first: &str| {
            let nodes =
                format!("[[machine.node]]\nmemory='{first}'\n[[machine.node]]\nmemory='256MiB'");
            of(&format!("[machine]\ncpus=2\n{nodes}"))
        };
        assert_eq!(of("[machine]\nmemory='100.5MiB'"), Ok(vec![101 << 20]));
        assert!(of("[machine]\nmemory='95MiB'").unwrap_err().contains("95 MiB is too small"));
        assert_eq!(nodes("3328MiB"), Ok(vec![3328 << 20, 256 << 20]));
        // QEMU splits memory at 3 GiB only from 3.5 GiB on.
        assert!(nodes("3GiB").unwrap_err().contains("in zone DMA32"));
        assert!(nodes("2GiB").unwrap_err().contains("in zone DMA32"));
    }

    #[test]
    fn only_setups_that_need_them_boot_with_other_options() {
        let of = |machine: &str, keys: &str| {
            let text = format!("[machine]\nmemory='1GiB'\n{machine}\n[[task]]\nname='t'\n{keys}\n");
            boot_options(&setup(&text))
        };
        let (touch, pipes) = ("workload='touch'\nsize='1MiB'", "workload='pipes'\nmake=1");
        assert_eq!(of("", touch), " psi=1");
        assert_eq!(of("", pipes), " psi=1 slab_nomerge");
        let off = "kmem_accounting=false";
        assert_eq!(of(off, touch), " psi=1 cgroup.memory=nokmem");
        assert_eq!(of(off, pipes), " psi=1 cgroup.memory=nokmem slab_nomerge");
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
