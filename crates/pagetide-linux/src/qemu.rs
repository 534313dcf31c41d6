//! QEMU: command line, control socket, termination.
//!
//! Emulation with `-icount shift=0` makes one instruction one nanosecond of guest time. This makes
//! runs repeatable and works on every host, but only with one CPU: several would alternate in time
//! slices of 100 ms, and waits between them would take as long. Several CPUs are therefore emulated
//! by a thread each, with the host's clock. KVM is faster if it works. The device node alone does
//! not show that, so it is tried with a time-out.
//!
//! Invariant: a [`Qemu`] that goes out of scope leaves no process. All files are in the caller's
//! directory.

use crate::error::LinuxError;
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const PROGRAM: &str = "qemu-system-x86_64";
/// Polling interval of waits.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Maximum time until QEMU opens its control socket, and until KVM is known to work.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum wait: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Kernel command line: no messages, no features that cost time or vary, and the machine ends on a
/// panic.
const APPEND: &str = "console=ttyS0 loglevel=4 panic=-1 nokaslr norandmaps mitigations=off \
    rootfstype=ramfs transparent_hugepage=never nowatchdog audit=0 random.trust_cpu=on \
    tsc=reliable no_timer_check";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// Translation; with one CPU, it counts instructions.
    Emulation,
    /// Virtualisation by the host's CPU.
    Kvm,
}

impl Accelerator {
    /// The clock of a machine with this number of CPUs, in words.
    pub fn describe(self, cpus: u16) -> &'static str {
        match (self, cpus) {
            (Accelerator::Emulation, 1) => "emulation, 1 instruction = 1 ns",
            (Accelerator::Emulation, _) => "emulation by the host's clock",
            (Accelerator::Kvm, _) => "KVM",
        }
    }
}

/// QEMU's version: the first line of `--version`.
pub fn version() -> Result<String, LinuxError> {
    let output = Command::new(PROGRAM)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LinuxError::NoProgram { program: PROGRAM.into(), error })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or("QEMU");
    let line = line.split('(').next().unwrap_or(line).trim();
    Ok(line.replace("QEMU emulator version", "QEMU"))
}

/// A machine to start.
#[derive(Clone, Debug)]
pub struct QemuMachine {
    pub accelerator: Accelerator,
    pub cpus: u16,
    /// Bytes of memory of each node.
    pub nodes: Vec<u64>,
    /// Bytes of zone Movable.
    pub movable: u64,
    pub kernel: PathBuf,
    /// Additional words of the kernel's command line, each with a blank before it.
    pub append: String,
    /// Disks: serial number and image.
    pub disks: Vec<(String, PathBuf)>,
}

/// The initial state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QemuStart {
    /// Power-on. The machine pauses when it is ready.
    Boot,
    /// The saved state, with this seed.
    Restore(u64),
}

/// File names. The first two are next to the directories of the runs, the others in them.
pub mod names {
    pub const INITRAMFS: &str = "initramfs";
    /// The saved machine.
    pub const STATE: &str = "state";
    /// The guest's report.
    pub const REPORT: &str = "report";
    /// The kernel's console.
    pub const CONSOLE: &str = "console";
    /// QEMU's own messages.
    pub const QEMU: &str = "qemu";
    pub const SOCKET: &str = "control";
}

#[derive(Debug)]
pub struct Qemu {
    child: Child,
    dir: PathBuf,
    begin: QemuStart,
}

#[derive(Clone, Debug)]
pub struct WaitLimit {
    /// The end of the wait.
    pub deadline: Instant,
    /// How long that was, for messages.
    pub limit: Duration,
    /// Set by the user's ^C.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl WaitLimit {
    /// A limit from now.
    pub fn new(limit: Duration, cancel: Option<Arc<AtomicBool>>) -> WaitLimit {
        // Clip the limit to what the clock can represent.
        let limit = limit.min(FOREVER);
        WaitLimit { deadline: Instant::now() + limit, limit, cancel }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// Why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// QEMU ended.
    Ended,
    TimedOut(Duration),
    /// The user interrupted.
    Cancelled,
}

impl QemuMachine {
    fn arguments(&self, begin: QemuStart) -> Vec<String> {
        let mib = self.nodes.iter().sum::<u64>() >> 20;
        let mut append = APPEND.to_owned();
        if self.movable > 0 {
            append += &format!(" movablecore={}M", self.movable >> 20);
        }
        append += &self.append;
        let seed = match begin {
            QemuStart::Boot => 0,
            QemuStart::Restore(seed) => seed,
        };
        // Both sides of a restore must have the same devices, so the seed's text has a fixed
        // length.
        let seed = match begin {
            QemuStart::Boot => format!("wait {seed:020}"),
            QemuStart::Restore(_) => format!("seed {seed:020}"),
        };
        let mut arguments: Vec<String> =
            ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "pc"]
                .map(str::to_owned)
                .to_vec();
        let mut add = |key: &str, value: String| {
            arguments.push(key.to_owned());
            arguments.push(value);
        };
        match self.accelerator {
            Accelerator::Emulation => {
                if self.cpus == 1 {
                    add("-accel", "tcg,thread=single".into());
                    add("-icount", "shift=0".into());
                } else {
                    add("-accel", "tcg,thread=multi".into());
                }
                // Disable erms and fsrm, with which the kernel copies and clears pages byte by
                // byte: fast on a CPU, but 4096 instructions and thus 4096 ns here. Disable
                // cmpxchg16b: an interrupt after it saves wrong flags (QEMU 7.2), and kernels since
                // about 6.2, which use it without `lock` in slabs, panic.
                add("-cpu", "max,la57=off,erms=off,fsrm=off,cx16=off".into());
            }
            Accelerator::Kvm => {
                add("-accel", "kvm".into());
                add("-cpu", "host".into());
            }
        }
        add("-smp", self.cpus.to_string());
        add("-m", format!("{mib}M"));
        if self.nodes.len() > 1 {
            for (node, bytes) in self.nodes.iter().enumerate() {
                let nodes = self.nodes.len();
                add("-object", format!("memory-backend-ram,id=mem{node},size={bytes}"));
                let cpus: String = (0..self.cpus)
                    .filter(|cpu| usize::from(*cpu) % nodes == node)
                    .map(|cpu| format!(",cpus={cpu}"))
                    .collect();
                add("-numa", format!("node,nodeid={node},memdev=mem{node}{cpus}"));
            }
        }
        add("-kernel", self.kernel.display().to_string());
        add("-initrd", format!("../{}", names::INITRAMFS));
        add("-append", append);
        add("-serial", format!("file:{}", names::CONSOLE));
        add("-chardev", format!("file,id=report,path={}", names::REPORT));
        add("-device", "isa-debugcon,iobase=0xe9,chardev=report".into());
        add("-device", "isa-debug-exit,iobase=0xf4,iosize=0x04".into());
        add("-fw_cfg", format!("name=opt/pagetide/seed,string={seed}"));
        add("-qmp", format!("unix:{},server=on,wait=off", names::SOCKET));
        for (serial, image) in &self.disks {
            // Double a comma: a single one starts QEMU's next option.
            let image = image.display().to_string().replace(',', ",,");
            add(
                "-drive",
                format!("if=none,id={serial},file={image},format=raw,snapshot=on,cache=unsafe"),
            );
            add("-device", format!("virtio-blk-pci,drive={serial},serial={serial}"));
        }
        if let QemuStart::Restore(_) = begin {
            add("-incoming", format!("exec:cat ../{}", names::STATE));
        }
        arguments
    }

    /// Starts the machine in the new directory `dir`. The parent directory has the initramfs, and
    /// the saved state if it is restored.
    pub fn start(&self, begin: QemuStart, dir: &Path) -> Result<Qemu, LinuxError> {
        std::fs::create_dir(dir).map_err(|error| LinuxError::file(dir, error))?;
        let path = dir.join(names::QEMU);
        let messages = File::create(&path).map_err(|error| LinuxError::file(&path, error))?;
        let child = Command::new(PROGRAM)
            .args(self.arguments(begin))
            .current_dir(dir)
            // QEMU creates overlays of the disks as temporary files.
            .env("TMPDIR", dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages)
            .spawn()
            .map_err(|error| LinuxError::NoProgram { program: PROGRAM.into(), error })?;
        Ok(Qemu { child, dir: dir.to_owned(), begin })
    }
}

/// Whether KVM works: starts an empty machine and waits for an answer.
pub fn kvm_works(dir: &Path) -> Result<(), String> {
    let device = Path::new("/dev/kvm");
    if !device.exists() {
        return Err("there is no /dev/kvm".to_owned());
    }
    File::options()
        .read(true)
        .write(true)
        .open(device)
        .map_err(|error| format!("/dev/kvm: {error}"))?;
    let path = dir.join(names::QEMU);
    let messages = File::create(&path).map_err(|error| error.to_string())?;
    // The machine has a virtual CPU, which a broken KVM cannot create or run.
    let child = Command::new(PROGRAM)
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc"])
        .args(["-accel", "kvm", "-cpu", "host", "-m", "16M", "-qmp"])
        .arg(format!("unix:{},server=on,wait=off", names::SOCKET))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(messages)
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut qemu = Qemu { child, dir: dir.to_owned(), begin: QemuStart::Boot };
    let started = Instant::now();
    let result = qemu.control().and_then(|mut control| {
        // By then the CPU has executed some firmware, or KVM has reported an error.
        std::thread::sleep(Duration::from_millis(300));
        let status = control.ask("query-status", json!({}))?;
        match status["status"].as_str() {
            Some("running") => Ok(()),
            other => Err(LinuxError::Qemu(format!("status {}", other.unwrap_or("unknown")))),
        }
    });
    result.map_err(|error| match qemu.messages() {
        text if !text.is_empty() => text,
        _ => format!("{error} after {:.1} s", started.elapsed().as_secs_f64()),
    })
}

impl Qemu {
    /// Waits until the guest's report satisfies `found`, and returns the report.
    /// The error says why the wait ended early, with the report so far.
    pub fn wait(
        &mut self,
        patience: &WaitLimit,
        found: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, (WaitError, Vec<u8>)> {
        let mut seen = 0;
        loop {
            let ended = matches!(self.child.try_wait(), Ok(Some(_)) | Err(_));
            let report = self.dir.join(names::REPORT);
            let len = std::fs::metadata(&report).map_or(0, |metadata| metadata.len());
            if len != seen || ended {
                seen = len;
                let bytes = std::fs::read(&report).unwrap_or_default();
                if found(&bytes) {
                    return Ok(bytes);
                }
                if ended {
                    let cancelled = patience.is_cancelled() || self.was_interrupted();
                    return Err((
                        if cancelled { WaitError::Cancelled } else { WaitError::Ended },
                        bytes,
                    ));
                }
            }
            let gone = if patience.is_cancelled() {
                Some(WaitError::Cancelled)
            } else if Instant::now() > patience.deadline {
                Some(WaitError::TimedOut(patience.limit))
            } else {
                None
            };
            if let Some(gone) = gone {
                return Err((gone, std::fs::read(&report).unwrap_or_default()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Saves the running machine and ends it.
    pub fn save(mut self, patience: &WaitLimit) -> Result<(), LinuxError> {
        let saved = self.save_and_quit(patience);
        if saved.is_err() && (patience.is_cancelled() || self.was_interrupted()) {
            return Err(LinuxError::Cancelled);
        }
        saved
    }

    fn save_and_quit(&mut self, patience: &WaitLimit) -> Result<(), LinuxError> {
        debug_assert_eq!(self.begin, QemuStart::Boot);
        let mut control = self.control()?;
        // By default QEMU limits the rate to network speed.
        control.ask("migrate-set-parameters", json!({"max-bandwidth": 1u64 << 40}))?;
        control.ask("migrate", json!({"uri": format!("exec:cat > ../{}", names::STATE)}))?;
        loop {
            let status = control.ask("query-migrate", json!({}))?;
            match status["status"].as_str() {
                Some("completed") => break,
                Some("failed" | "cancelled") => {
                    let problem = status["error-desc"].as_str().unwrap_or("no reason given");
                    return Err(LinuxError::Qemu(format!("saving the machine: {problem}")));
                }
                _ => {}
            }
            if patience.is_cancelled() {
                return Err(LinuxError::Cancelled);
            }
            if Instant::now() > patience.deadline {
                return Err(LinuxError::Qemu("saving the machine takes too long".into()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        // QEMU may exit before it answers.
        let _ = control.ask("quit", json!({}));
        let _ = self.child.wait();
        Ok(())
    }

    fn control(&mut self) -> Result<QmpSocket, LinuxError> {
        // A socket's address has at most 108 bytes. A path through /proc/self/fd is always short
        // enough.
        let dir = File::open(&self.dir).map_err(|error| LinuxError::file(&self.dir, error))?;
        let socket = format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), names::SOCKET);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(stream) = UnixStream::connect(&socket) {
                return QmpSocket::new(stream);
            }
            let ended = matches!(self.child.try_wait(), Ok(Some(_)) | Err(_));
            if ended || Instant::now() > deadline {
                let messages = self.messages();
                let problem = if messages.is_empty() {
                    "it does not answer on its control socket".to_owned()
                } else {
                    messages
                };
                return Err(LinuxError::Qemu(problem));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub fn messages(&self) -> String {
        let bytes = std::fs::read(self.dir.join(names::QEMU)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Whether QEMU ended by ^C. A terminal sends it to QEMU too, possibly before this process.
    fn was_interrupted(&self) -> bool {
        self.messages().contains("terminating on signal 2")
    }

    /// The lines of the kernel's console.
    pub fn console(&self) -> Vec<String> {
        let bytes = std::fs::read(self.dir.join(names::CONSOLE)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>())
            .filter(|line| !line.trim().is_empty())
            .collect()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// QEMU's control socket: one line of JSON for each command and each answer, with events in
/// between.
struct QmpSocket {
    stream: BufReader<UnixStream>,
}

impl QmpSocket {
    fn new(stream: UnixStream) -> Result<QmpSocket, LinuxError> {
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| LinuxError::Qemu(error.to_string()))?;
        let mut control = QmpSocket { stream: BufReader::new(stream) };
        control.line()?; // the greeting
        control.ask("qmp_capabilities", json!({}))?;
        Ok(control)
    }

    fn line(&mut self) -> Result<Value, LinuxError> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err(LinuxError::Qemu("the control socket was closed".into())),
            Ok(_) => serde_json::from_str(&line).map_err(|_| {
                LinuxError::Qemu(format!("the control socket says `{}`", line.trim_end()))
            }),
            Err(error) => Err(LinuxError::Qemu(format!("control socket: {error}"))),
        }
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, LinuxError> {
        let text = json!({"execute": command, "arguments": arguments});
        writeln!(self.stream.get_mut(), "{text}")
            .map_err(|error| LinuxError::Qemu(format!("control socket: {error}")))?;
        loop {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                let problem = error["desc"].as_str().unwrap_or("no reason given");
                return Err(LinuxError::Qemu(format!("{command}: {problem}")));
            }
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
        }
    }
}
