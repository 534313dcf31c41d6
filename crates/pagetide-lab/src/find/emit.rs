//! The value found, as a configuration file to deploy. The text is printed or written to a file of
//! the user; nothing here changes a system.
//!
//! Each form holds some knobs and refuses the others by name. Sources: sysctl.d(5),
//! systemd.resource-control(5), KubeletConfiguration v1beta1 (kubelet.config.k8s.io).
//!
//! Invariant: every line of provenance is a comment, whatever the scenario's name is.

use crate::knob::{group_and_file, Knob, KnobValue};
use pagetide_core::config::{ControlOrigin, Sysctl};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::{PageSize, Setup};

/// Kind of file ([`DeployFormat::about`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeployFormat {
    SysctlD,
    Systemd,
    Kubelet,
    /// Written by `json.rs`.
    Json,
}

impl DeployFormat {
    pub const ALL: [DeployFormat; 4] =
        [DeployFormat::SysctlD, DeployFormat::Systemd, DeployFormat::Kubelet, DeployFormat::Json];

    /// The form with this name.
    pub fn find(name: &str) -> Option<DeployFormat> {
        DeployFormat::ALL.into_iter().find(|form| form.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            DeployFormat::SysctlD => "sysctl.d",
            DeployFormat::Systemd => "systemd",
            DeployFormat::Kubelet => "kubelet",
            DeployFormat::Json => "json",
        }
    }

    /// Its description in the help and on pages.
    pub const fn about(self) -> &'static str {
        match self {
            DeployFormat::SysctlD => "A file of /etc/sysctl.d, to load with sysctl --system",
            DeployFormat::Systemd => "A drop-in of a systemd unit",
            DeployFormat::Kubelet => "A fragment of a KubeletConfiguration",
            DeployFormat::Json => "The whole answer, for programs",
        }
    }
}

/// The text of a file that sets the knob. `comments`: lines of provenance.
/// Fails if the form cannot hold the knob.
pub fn render(
    form: DeployFormat,
    path: &str,
    value: &str,
    setup: &Setup,
    comments: &[String],
) -> Result<String, Mistake> {
    let comments: String = comments
        .iter()
        .flat_map(|comment| comment.lines())
        .map(|line| format!("# {}\n", line.chars().filter(|c| !c.is_control()).collect::<String>()))
        .collect();
    Ok(comments + &line(form, path, value, setup)?)
}

/// Fails if the form cannot hold the knob, or one of its values.
pub fn check(form: DeployFormat, knob: &Knob, setup: &Setup) -> Result<(), Mistake> {
    if form == DeployFormat::Json {
        return Ok(());
    }
    line(form, &knob.path, "1", setup)?;
    for KnobValue { text, .. } in &knob.values {
        line(form, &knob.path, text, setup).map_err(|mistake| {
            let Mistake { message, hint } = mistake;
            Mistake::new(format!("{message} = {text}"), format!("{hint}; leave that value out"))
        })?;
    }
    Ok(())
}

/// The lines of a file that set the knob.
fn line(form: DeployFormat, path: &str, value: &str, setup: &Setup) -> Result<String, Mistake> {
    match form {
        DeployFormat::SysctlD if is_kernel_sysctl(path) => Ok(format!("{path} = {value}\n")),
        DeployFormat::Systemd => match systemd(path) {
            Some((group, key)) => {
                let unit = if group.ends_with("slice") { "Slice" } else { "Service" };
                let value = if value == "max" { "infinity" } else { value };
                Ok(format!(
                    "# for group {group}: save as UNIT.d/50-pagetide.conf of its unit\n[{unit}]\n{key}={value}\n"
                ))
            }
            None => refuse(form, path),
        },
        DeployFormat::Kubelet => kubelet(path, value, setup),
        DeployFormat::SysctlD | DeployFormat::Json => refuse(form, path),
    }
}

/// Whether /proc/sys of a kernel has this sysctl.
fn is_kernel_sysctl(path: &str) -> bool {
    let has = |sysctl: Sysctl| match sysctl.file().since {
        // `in Linux a debugfs file`, `a file of each disk`: not in /proc/sys.
        ControlOrigin::Linux(since) => !since.contains("in Linux"),
        ControlOrigin::Patch(_) => false,
    };
    path.starts_with("vm.") && Sysctl::find(path).is_some_and(has)
}

/// Group and directive.
fn systemd(path: &str) -> Option<(String, &'static str)> {
    let (group, file) = group_and_file(path)?;
    let key = match file.as_str() {
        "memory.min" => "MemoryMin",
        "memory.low" => "MemoryLow",
        "memory.high" => "MemoryHigh",
        "memory.max" => "MemoryMax",
        "memory.swap.max" => "MemorySwapMax",
        _ => return None,
    };
    Some((group, key))
}

/// The kubelet reserves memory from pods: it sets `memory.max` of kubepods to the rest of the node.
fn kubelet(path: &str, value: &str, setup: &Setup) -> Result<String, Mistake> {
    const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration";
    let mebibytes = |bytes: u64| format!("{}Mi", bytes.div_ceil(1 << 20));
    let bytes = match Quantity::read(value, PageSize::Kib4) {
        Ok(Quantity::Bytes(bytes)) => Some(bytes),
        Ok(Quantity::Integer(bytes)) => u64::try_from(bytes).ok(),
        _ => None,
    };
    let reserve = |bytes: u64| {
        let memory = mebibytes(bytes);
        Ok(format!("{HEAD}\nsystemReserved:\n  memory: {memory}\nenforceNodeAllocatable: [pods]\n"))
    };
    match (path, bytes) {
        ("machine.reserved", Some(bytes)) => reserve(bytes),
        ("group.kubepods.memory.max", Some(bytes)) => {
            let memory: u64 = setup.machine.nodes.iter().map(|node| node.memory).sum();
            reserve(memory.saturating_sub(bytes))
        }
        ("machine.swap" | "machine.swap.size", Some(bytes)) => {
            let behavior = if bytes == 0 { "NoSwap" } else { "LimitedSwap" };
            Ok(format!("{HEAD}\nfailSwapOn: false\nmemorySwap:\n  swapBehavior: {behavior}\n"))
        }
        _ => refuse(DeployFormat::Kubelet, path),
    }
}

fn refuse(form: DeployFormat, path: &str) -> Result<String, Mistake> {
    let fits = if is_kernel_sysctl(path) {
        "sysctl.d and json can"
    } else if systemd(path).is_some() {
        "systemd and json can"
    } else {
        "json holds every knob"
    };
    Err(Mistake::new(
        format!("{} cannot hold {path}", form.name()),
        format!("{fits}; nothing was run or written"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;

    fn knob(path: &str, values: &[&str]) -> Knob {
        let value = |text: &&str| KnobValue { text: (*text).to_owned(), number: 0.0 };
        let values = values.iter().map(value).collect();
        Knob { path: path.to_owned(), values, how: String::new(), is_list: true }
    }

    fn emit(form: DeployFormat, path: &str, value: &str) -> Result<String, Mistake> {
        let setup = scenario(&["a"]).variants.remove(0).setup;
        render(form, path, value, &setup, &["from a test\nof two lines".to_owned()])
    }

    #[test]
    fn each_form_holds_its_knobs() {
        let text = |form, path, value| {
            let text = emit(form, path, value).unwrap();
            text.strip_prefix("# from a test\n# of two lines\n").unwrap().to_owned()
        };
        let scale = "vm.watermark_scale_factor";
        assert_eq!(text(DeployFormat::SysctlD, scale, "120"), "vm.watermark_scale_factor = 120\n");
        let high = text(DeployFormat::Systemd, "group.web.memory.high", "620M");
        assert!(high.ends_with("[Service]\nMemoryHigh=620M\n"), "{high}");
        assert!(
            text(DeployFormat::Systemd, "group.a.memory.max", "max").contains("MemoryMax=infinity")
        );
        let kubelet = text(DeployFormat::Kubelet, "group.kubepods.memory.max", "1536M");
        assert!(kubelet.contains("systemReserved:\n  memory: 512Mi"), "{kubelet}");
        assert!(text(DeployFormat::Kubelet, "machine.swap", "0").contains("swapBehavior: NoSwap"));
    }

    #[test]
    fn a_knob_that_a_form_cannot_hold_is_named() {
        for (form, path, hint) in [
            (DeployFormat::SysctlD, "group.web.memory.high", "systemd and json"),
            (DeployFormat::SysctlD, "vm.wmark_low_kbytes", "json holds"),
            (DeployFormat::SysctlD, "vm.fault_around_bytes", "json holds"),
            (DeployFormat::SysctlD, "transparent_hugepage.enabled", "json holds"),
            (DeployFormat::Systemd, "vm.swappiness", "sysctl.d and json"),
            (DeployFormat::Systemd, "group.web.memory.reclaim", "json holds"),
            (DeployFormat::Kubelet, "vm.swappiness", "sysctl.d and json"),
            (DeployFormat::Kubelet, "machine.memory", "json holds"),
        ] {
            let setup = scenario(&["a"]).variants.remove(0).setup;
            let knob = knob(path, &["1"]);
            let mistake = check(form, &knob, &setup).unwrap_err();
            assert!(mistake.message.contains(path), "{mistake:?}");
            assert!(mistake.hint.contains(hint), "{path}: {mistake:?}");
            assert!(check(DeployFormat::Json, &knob, &setup).is_ok());
        }
    }

    #[test]
    fn a_value_that_a_form_cannot_hold_is_named_before_the_search() {
        let setup = scenario(&["a"]).variants.remove(0).setup;
        let knob = knob("group.kubepods.memory.max", &["30M", "max"]);
        let mistake = check(DeployFormat::Kubelet, &knob, &setup).unwrap_err();
        assert_eq!(mistake.message, "kubelet cannot hold group.kubepods.memory.max = max");
        assert!(mistake.hint.contains("systemd and json"), "{mistake:?}");
        assert!(check(DeployFormat::Systemd, &knob, &setup).is_ok());
    }
}
