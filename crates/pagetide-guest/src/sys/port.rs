//! Ports of the emulated machine: a console for output, a store for input, and a power switch.
//!
//! QEMU's `isa-debugcon` (port 0xe9) appends every byte to a file of the host, `fw_cfg` (ports
//! 0x510 and 0x511) provides named values, `isa-debug-exit` (port 0xf4) ends QEMU. None of them
//! needs a driver or guest memory, so using them does not change the measurement.
//!
//! A live machine has no such ports: reports go to standard output, and the switch ends the
//! process.

use rustix::system::RebootCommand;
use std::arch::asm;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

const CONSOLE: u16 = 0xe9;
const STORE_SELECT: u16 = 0x510;
const STORE_DATA: u16 = 0x511;
const STORE_DIRECTORY: u16 = 0x19;
const EXIT: u16 = 0xf4;

/// Length of a name in the directory of `fw_cfg`.
const STORE_NAME_LEN: usize = 56;

/// Whether this process may use ports.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Allows this process and its future children to use ports.
pub fn allow() -> io::Result<()> {
    // SAFETY: iopl has no memory arguments.
    super::check(unsafe { libc::iopl(3) }.into())?;
    ALLOWED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Sends `bytes` to the console, or to standard output if [`allow`] was not called.
pub fn write(bytes: &[u8]) {
    if !ALLOWED.load(Ordering::Relaxed) {
        // If standard output is closed, the report is lost.
        let _ = io::stdout().write_all(bytes);
        return;
    }
    // SAFETY: reads exactly `bytes.len()` bytes from `bytes`; the direction flag is clear by the
    // calling convention. Without permission the process is killed, which is harmless.
    unsafe {
        asm!(
            "rep outsb",
            inout("rsi") bytes.as_ptr() => _,
            inout("rcx") bytes.len() => _,
            in("dx") CONSOLE,
            options(nostack, readonly, preserves_flags),
        );
    }
}

fn out_u16(port: u16, value: u16) {
    // SAFETY: touches no memory.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, nomem)) }
}

fn in_u8(port: u16) -> u8 {
    let value: u8;
    // SAFETY: touches no memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, nomem)) }
    value
}

fn store_read(buffer: &mut [u8]) {
    for byte in buffer {
        *byte = in_u8(STORE_DATA);
    }
}

/// Reads the entry `name` of the store into `buffer` and returns the data; `None` if there is no
/// such entry.
pub fn store<'a>(name: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    out_u16(STORE_SELECT, STORE_DIRECTORY);
    let mut count = [0; 4];
    store_read(&mut count);
    // A machine has some dozen entries; a larger count means that the device is missing.
    for _ in 0..u32::from_be_bytes(count).min(1024) {
        let mut entry = [0; 8 + STORE_NAME_LEN];
        store_read(&mut entry);
        let (head, found) = entry.split_at(8);
        let len = found.iter().position(|&byte| byte == 0).unwrap_or(found.len());
        if &found[..len] != name.as_bytes() {
            continue;
        }
        let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        out_u16(STORE_SELECT, u16::from_be_bytes([head[4], head[5]]));
        let size = size.min(buffer.len());
        store_read(&mut buffer[..size]);
        return Some(&buffer[..size]);
    }
    None
}

/// Ends the machine; on a live machine, this process.
pub fn power_off() -> ! {
    if !ALLOWED.load(Ordering::Relaxed) {
        std::process::exit(1);
    }
    // SAFETY: touches no memory.
    unsafe { asm!("out dx, eax", in("dx") EXIT, in("eax") 0u32, options(nostack, nomem)) }
    // The device is missing: ask the kernel.
    loop {
        rustix::fs::sync();
        let _ = rustix::system::reboot(RebootCommand::PowerOff);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}
