//! Finds the kernel to boot, and its modules.
//!
//! A kernel has the layout of its package: `boot/vmlinuz-VERSION` next to `lib/modules/VERSION`,
//! below `/` or below the directory of an unpacked package (`make kernel`).

use crate::error::LinuxError;
use std::path::{Path, PathBuf};

/// Directory of `make kernel`, below the user's cache.
const CACHE: &str = "pagetide/kernel";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    pub image: PathBuf,
    /// The version in the file's name: `6.1.0-1-cloud-amd64`.
    pub version: String,
    pub modules: PathBuf,
}

/// Name of the kernel with the proposals.
pub const PROPOSALS: &str = "proposals";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// The newest kernel of `make kernel`, else the newest installed one.
    #[default]
    Newest,
    /// The newest kernel of `make proposals`.
    Proposals,
    /// The kernel with this image.
    At(PathBuf),
}

impl From<Option<PathBuf>> for KernelChoice {
    /// Converts the argument of the command line. Images are named `vmlinuz-VERSION`, so no
    /// argument is ambiguous.
    fn from(name: Option<PathBuf>) -> KernelChoice {
        match name {
            None => KernelChoice::Newest,
            Some(name) if name.as_os_str() == PROPOSALS => KernelChoice::Proposals,
            Some(image) => KernelChoice::At(image),
        }
    }
}

impl KernelChoice {
    /// Whether the kernel can allocate kernel memory for a program; released kernels cannot. For a
    /// missing image the answer is true, so that the missing image is reported first.
    pub fn has_test_allocation(&self) -> bool {
        self.find().map_or(*self != KernelChoice::Newest, |kernel| kernel.gives_memory())
    }

    /// Finds the kernel on this host.
    pub fn find(&self) -> Result<KernelImage, LinuxError> {
        match self {
            KernelChoice::Newest => KernelImage::find(),
            KernelChoice::Proposals => KernelImage::with_proposals(),
            KernelChoice::At(image) if is_bare(image) => {
                Err(LinuxError::NoSuchKernel { name: image.display().to_string() })
            }
            KernelChoice::At(image) => KernelImage::at(image),
        }
    }
}

/// Whether this is a bare word and not a file.
fn is_bare(image: &Path) -> bool {
    image.components().count() == 1 && !image.exists()
}

impl KernelImage {
    /// The kernel with this image.
    /// Its name must begin with `vmlinuz-`.
    pub fn at(image: &Path) -> Result<KernelImage, LinuxError> {
        std::fs::metadata(image).map_err(|error| LinuxError::file(image, error))?;
        let name = image.file_name().map(|name| name.to_string_lossy().into_owned());
        let version = name.as_deref().and_then(|name| name.strip_prefix("vmlinuz-"));
        let Some(version) = version else {
            return Err(LinuxError::Scenario(format!(
                "{} is not called vmlinuz-VERSION, so its modules cannot be found",
                image.display()
            )));
        };
        let image = std::path::absolute(image).map_err(|error| LinuxError::file(image, error))?;
        let root = image.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let below = |dir: &str| root.join(dir).join(version);
        let usr = below("usr/lib/modules");
        let modules = if usr.is_dir() { usr } else { below("lib/modules") };
        Ok(KernelImage { version: version.to_owned(), modules, image })
    }

    /// Whether the kernel can allocate kernel memory for a program (kernels/linux-6.1, patch 0005),
    /// according to `config-VERSION` next to its image. True without that file: the guest will find
    /// out.
    pub fn gives_memory(&self) -> bool {
        let config = self.image.with_file_name(format!("config-{}", self.version));
        std::fs::read_to_string(config)
            .map_or(true, |text| text.lines().any(|line| line == "CONFIG_ALLOCATION_TEST=y"))
    }

    /// The newest kernel of `make kernel`, else the newest installed one; cloud kernels first.
    pub fn find() -> Result<KernelImage, LinuxError> {
        let cache = cache_dir();
        let mut looked_for = Vec::new();
        for dir in cache.iter().map(|cache| cache.join("boot")).chain([PathBuf::from("/boot")]) {
            looked_for.push(dir.join("vmlinuz-*").display().to_string());
            if let Some(kernel) = newest_in(&dir) {
                return Ok(kernel);
            }
        }
        Err(LinuxError::NoKernel { looked_for: looked_for.join(" and ") })
    }

    /// The newest kernel of `make proposals`.
    pub fn with_proposals() -> Result<KernelImage, LinuxError> {
        KernelImage::with_proposals_in(&cache_dir().unwrap_or_default())
    }

    fn with_proposals_in(cache: &Path) -> Result<KernelImage, LinuxError> {
        let dir = cache.join(PROPOSALS).join("boot");
        newest_in(&dir).ok_or_else(|| LinuxError::NoProposals {
            looked_for: dir.join("vmlinuz-*").display().to_string(),
        })
    }
}

/// The newest kernel with an image in `dir` and with modules; cloud kernels first.
fn newest_in(dir: &Path) -> Option<KernelImage> {
    let kernels = std::fs::read_dir(dir).ok()?.flatten();
    let kernels = kernels
        .filter_map(|entry| KernelImage::at(&entry.path()).ok())
        .filter(|kernel| kernel.modules.is_dir());
    kernels.max_by_key(|kernel| (kernel.version.contains("cloud"), version_key(&kernel.version)))
}

/// Directory of `make kernel`: `$XDG_CACHE_HOME/pagetide/kernel`, or below `~/.cache`.
pub fn cache_dir() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join(CACHE))
}

/// Sort key of a version: 6.1.0-56 is newer than 6.1.0-9.
fn version_key(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_beside_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path().join("boot");
        std::fs::create_dir(&boot).unwrap();
        let image = boot.join("vmlinuz-6.1.0-9-cloud-amd64");
        std::fs::write(&image, "").unwrap();
        let kernel = KernelImage::at(&image).unwrap();
        assert_eq!(kernel.version, "6.1.0-9-cloud-amd64");
        assert_eq!(kernel.modules, dir.path().join("lib/modules/6.1.0-9-cloud-amd64"));
        assert!(KernelImage::at(&boot.join("vmlinuz-7")).is_err());
        std::fs::write(boot.join("bzImage"), "").unwrap();
        let error = KernelImage::at(&boot.join("bzImage")).unwrap_err().to_string();
        assert!(error.contains("vmlinuz-VERSION"), "{error}");
    }

    #[test]
    fn the_kernel_with_the_proposals_has_a_name() {
        assert_eq!(KernelChoice::from(None), KernelChoice::Newest);
        assert_eq!(KernelChoice::from(Some("proposals".into())), KernelChoice::Proposals);
        let image = PathBuf::from("./proposals/vmlinuz-1");
        assert_eq!(KernelChoice::from(Some(image.clone())), KernelChoice::At(image));

        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path();
        let error = KernelImage::with_proposals_in(cache).unwrap_err();
        assert!(error.to_string().contains("proposals/boot/vmlinuz-*"), "{error}");
        assert!(error.hint().unwrap().contains("make proposals") && error.is_bad_input());
        let boot = cache.join("proposals/boot");
        std::fs::create_dir_all(&boot).unwrap();
        for version in ["6.1.99-proposals", "6.1.192-proposals", "6.1.193-proposals"] {
            std::fs::write(boot.join(format!("vmlinuz-{version}")), "").unwrap();
            // The newest one has no modules, because its installation is incomplete.
            if version != "6.1.193-proposals" {
                let modules = cache.join("proposals/lib/modules").join(version);
                std::fs::create_dir_all(modules).unwrap();
            }
        }
        assert_eq!(KernelImage::with_proposals_in(cache).unwrap().version, "6.1.192-proposals");
    }

    #[test]
    fn a_word_that_is_no_kernel_is_answered_with_those_that_are() {
        let error = KernelChoice::At("proposal".into()).find().unwrap_err();
        assert_eq!(error.to_string(), "there is no kernel `proposal`");
        assert!(error.hint().unwrap().contains("`proposals`") && error.is_bad_input());
    }

    #[test]
    fn the_config_beside_a_kernel_says_whether_it_gives_memory() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("vmlinuz-1");
        std::fs::write(&image, "").unwrap();
        let kernel = KernelImage::at(&image).unwrap();
        assert!(kernel.gives_memory(), "unknown");
        for (config, gives) in [
            ("CONFIG_DEBUG_FS=y\n# CONFIG_ALLOCATION_TEST is not set\n", false),
            ("CONFIG_DEBUG_FS=y\nCONFIG_ALLOCATION_TEST=y\n", true),
        ] {
            std::fs::write(dir.path().join("config-1"), config).unwrap();
            assert_eq!(kernel.gives_memory(), gives);
        }
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(version_key("6.1.0-56-cloud") > version_key("6.1.0-9-cloud"));
        assert!(version_key("6.12.1") > version_key("6.1.192"));
    }
}
