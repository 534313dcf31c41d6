//! Selects the modules that the guest loads, and their order.
//!
//! `depmod`'s index exists only where a kernel is installed, not where its package is merely
//! unpacked. So dependencies are read from the modules: each has `depends=a,b` in its section
//! `.modinfo`, written by scripts/mod/modpost.c. Programs of the host decompress modules, because
//! the guest's kernel may not be able to.

use crate::error::LinuxError;
use crate::kernel::KernelImage;
use pagetide_core::swap::compressor::Compressor;
use pagetide_scenario::model::{Setup, Swap};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Drivers that the guest needs and that a distribution's kernel may have as modules: disks, their
/// bus, and the file system.
const WANTED: [&str; 3] = ["virtio_pci", "virtio_blk", "ext4"];
/// Drivers of compressed swap.
const OF_ZRAM: [&str; 2] = ["zsmalloc", "zram"];
const OF_ZSWAP: [&str; 1] = ["zsmalloc"];
/// Undeclared dependencies: ext4 requests this checksum by name.
const ASKED_FOR_BY_NAME: [(&str, &str); 1] = [("ext4", "crc32c_generic")];

/// Program that decompresses a module, by file extension.
const UNPACKERS: [(&str, &str); 3] = [("xz", "xz"), ("zst", "zstd"), ("gz", "gzip")];

/// Modules of a kernel by name, with `_` in place of `-`.
type ModulePaths = BTreeMap<String, PathBuf>;

/// Names and contents of the modules to load for a setup, dependencies first. Skips built-in
/// modules. Fails if a module is neither present nor built in, or cannot be decompressed.
pub fn to_load(kernel: &KernelImage, setup: &Setup) -> Result<Vec<(String, Vec<u8>)>, LinuxError> {
    let mut found = ModulePaths::new();
    collect(&kernel.modules.join("kernel"), 0, &mut found);
    let builtin = builtin(kernel);
    let mut order = Vec::new();
    for wanted in WANTED {
        add(kernel, wanted, &found, &builtin, &mut order)?;
    }
    let machine = &setup.machine;
    let mut compressors: Vec<Compressor> = Vec::new();
    compressors.extend(machine.zswap.map(|zswap| zswap.compressor));
    let has_zram = |area: &Swap| area.zram.as_ref().map(|zram| zram.algorithm);
    compressors.extend(machine.swap.iter().filter_map(has_zram));
    for compressor in compressors {
        // Since 6.12 zram has its own algorithms. If this one is missing, the guest says so.
        let name = compressor.name().replace('-', "_");
        if found.contains_key(&name) {
            add(kernel, &name, &found, &builtin, &mut order)?;
        }
    }
    let of_zram = machine.swap.iter().any(|area| area.zram.is_some()).then_some(OF_ZRAM);
    let of_zswap = machine.zswap.is_some().then_some(OF_ZSWAP);
    for wanted in of_zram.iter().flatten().chain(of_zswap.iter().flatten()) {
        add(kernel, wanted, &found, &builtin, &mut order)?;
    }
    Ok(order)
}

/// The uncompressed module.
fn read(path: &Path) -> Result<Vec<u8>, LinuxError> {
    let bytes = std::fs::read(path).map_err(|error| LinuxError::file(path, error))?;
    let extension = path.extension().unwrap_or_default();
    let Some((_, program)) = UNPACKERS.iter().find(|(packed, _)| extension == *packed) else {
        return Ok(bytes);
    };
    let output = Command::new(program)
        .arg("-dc")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LinuxError::NoProgram { program: (*program).to_owned(), error })?;
    if !output.status.success() {
        return Err(LinuxError::Program {
            program: format!("{program} -dc {}", path.display()),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(output.stdout)
}

fn module_name(file: &str) -> Option<String> {
    let stem = file.split_once(".ko")?.0;
    Some(stem.replace('-', "_"))
}

/// Collects modules below `dir`. The kernel's own tree has about ten levels.
fn collect(dir: &Path, depth: u32, found: &mut ModulePaths) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && depth < 16 {
            collect(&path, depth + 1, found);
        } else if let Some(name) = entry.file_name().to_str().and_then(module_name) {
            found.insert(name, path);
        }
    }
}

fn builtin(kernel: &KernelImage) -> Vec<String> {
    let text = std::fs::read_to_string(kernel.modules.join("modules.builtin")).unwrap_or_default();
    text.lines().filter_map(|line| module_name(line.rsplit('/').next()?)).collect()
}

fn add(
    kernel: &KernelImage,
    name: &str,
    found: &ModulePaths,
    builtin: &[String],
    order: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), LinuxError> {
    if builtin.iter().any(|known| known == name) || order.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let Some(path) = found.get(name) else {
        return Err(LinuxError::NoModule {
            kernel: kernel.image.clone(),
            below: kernel.modules.clone(),
            module: name.to_owned(),
        });
    };
    let bytes = read(path)?;
    for needed in depends(&bytes) {
        add(kernel, &needed, found, builtin, order)?;
    }
    for (of, needed) in ASKED_FOR_BY_NAME {
        if of == name && found.contains_key(needed) {
            add(kernel, needed, found, builtin, order)?;
        }
    }
    order.push((name.to_owned(), bytes));
    Ok(())
}

/// The modules in the field `depends=` of a module.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let rest = &module[at + KEY.len()..];
    let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    #[test]
    fn dependencies_come_first_and_what_is_built_in_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = KernelImage {
            image: dir.path().join("boot/vmlinuz-1"),
            version: "1".into(),
            modules: dir.path().join("lib/modules/1"),
        };
        let plain =
            setup("machine.memory = '1GiB'\n[[task]]\nname='t'\nworkload='touch'\nsize='1MiB'");
        let drivers = kernel.modules.join("kernel/drivers");
        std::fs::create_dir_all(&drivers).unwrap();
        std::fs::write(kernel.modules.join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
        let module = |name: &str, depends: &str| {
            let bytes = format!("ELF\0license=GPL\0depends={depends}\0retpoline=Y\0");
            std::fs::write(drivers.join(name), bytes).unwrap();
        };
        module("virtio_blk.ko", "virtio,virtio-ring");
        module("virtio_pci.ko", "virtio");
        module("virtio-ring.ko", "virtio");
        let error = to_load(&kernel, &plain).unwrap_err().to_string();
        assert!(error.contains("no module `virtio`"), "{error}");
        module("virtio.ko", "");
        let names: Vec<String> =
            to_load(&kernel, &plain).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["virtio", "virtio_pci", "virtio_ring", "virtio_blk"]);
        std::fs::rename(drivers.join("virtio.ko"), drivers.join("virtio.ko.gz")).unwrap();
        let error = to_load(&kernel, &plain).unwrap_err().to_string();
        assert!(error.contains("gzip"), "no gzip data, if there is a gzip: {error}");
    }
}
