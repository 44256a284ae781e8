//! Control groups: those that processes are in, and what their names tell of containers and units.
//!
//! ```text
//! /system.slice/ssh.service                                        a unit of systemd
//! /system.slice/docker-0123…cdef.scope, /docker/0123…cdef          docker
//! /machine.slice/libpod-0123…cdef.scope                            podman
//! /kubepods.slice/kubepods-pod1b2c….slice/cri-containerd-0123….scope   Kubernetes
//! /lxc.payload.web/init.scope                                      LXC
//! ```
//!
//! To add a manager of containers: its prefix in [`MANAGERS`].

use records::profile::Cgroup;
use std::path::{Path, PathBuf};

/// How names of containers begin, where their id follows, and what runs them.
const MANAGERS: [(&str, &str); 7] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
    ("nerdctl-", "nerdctl"),
    ("lxc.payload.", "lxc"),
    ("machine-", "machine"),
];
/// Groups whose children are containers by their ids, or by their names.
const PARENTS: [(&str, &str); 4] =
    [("docker", "docker"), ("libpod_parent", "podman"), ("lxc", "lxc"), ("lxc.payload", "lxc")];
/// An id of a container is 64 digits; it is shown as its tools show it.
const ID_DIGITS: usize = 64;
const SHOWN_DIGITS: usize = 12;

/// Where control groups are mounted.
const MOUNTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event"];

/// The control group of a process, by `/proc/PID/cgroup`: that of the one hierarchy, or of
/// systemd's own, or of the deepest one.
pub(super) fn of_process(process: u32) -> Option<String> {
    path_in(&std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?)
}

/// The path in the text of such a file: lines of `number:controllers:path`.
fn path_in(text: &str) -> Option<String> {
    let lines = || {
        text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        })
    };
    let with = |controllers: &str| lines().find(|(these, _)| *these == controllers).map(|(_, path)| path);
    // A machine that mounts both has an empty unified one.
    let unified = with("").filter(|path| *path != "/");
    let deepest = || lines().map(|(_, path)| path).max_by_key(|path| path.matches('/').count() + path.len());
    let found = unified.or_else(|| with("name=systemd")).or_else(deepest)?;
    Some(found.strip_suffix(" (deleted)").unwrap_or(found).to_owned())
}

/// What the path of a control group tells.
pub(super) fn names(path: &str) -> Cgroup {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let container = parts.iter().enumerate().rev().find_map(|(at, part)| container(&parts[..at], part));
    let unit = parts.iter().rev().find(|part| is_unit(part)).map(|part| unescaped(part));
    Cgroup { cgroup: Some(path.to_owned()), container, unit }
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn container(above: &[&str], part: &str) -> Option<String> {
    let name = part.strip_suffix(".scope").or_else(|| part.strip_suffix(".service")).unwrap_or(part);
    let shown = |manager: &str, id: &str| {
        let id = if is_id(id) { &id[..SHOWN_DIGITS] } else { id };
        Some(format!("{manager} {}", unescaped(id)))
    };
    for (prefix, manager) in MANAGERS {
        let Some(id) = name.strip_prefix(prefix) else { continue };
        // Of the last two, ids are names; beside a container there may be groups of its monitor.
        let has_names = matches!(manager, "lxc" | "machine");
        if is_id(id)
            || has_names && !id.is_empty() && (manager == "lxc" || name.len() + ".scope".len() == part.len())
        {
            return shown(manager, id);
        }
    }
    let parent = *above.last()?;
    if let Some((_, manager)) = PARENTS.into_iter().find(|(name, _)| *name == parent)
        && (is_id(part) || manager == "lxc")
    {
        return shown(manager, part);
    }
    // Kubernetes without systemd: /kubepods/burstable/pod1b2c…/0123…cdef
    let is_pod = |part: &&str| part.starts_with("kubepods");
    (is_id(part) && above.iter().any(is_pod)).then(|| format!("kubernetes {}", &part[..SHOWN_DIGITS]))
}

fn is_unit(part: &str) -> bool {
    const KINDS: [&str; 4] = [".service", ".scope", ".socket", ".mount"];
    KINDS.iter().any(|kind| part.len() > kind.len() && part.ends_with(kind))
}

/// systemd writes bytes that a name may not have as `\xHH`.
fn unescaped(name: &str) -> String {
    let mut rest = name;
    let mut text = Vec::new();
    while let Some(at) = rest.find("\\x") {
        let (before, behind) = rest.split_at(at);
        text.extend_from_slice(before.as_bytes());
        let byte = behind.get(2..4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            text.extend_from_slice(b"\\x");
            rest = &behind[2..];
            continue;
        };
        text.push(byte);
        rest = &behind[4..];
    }
    text.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&text).into_owned()
}

/// The directory of a control group: by its path, or the only one whose name, unit or id of a
/// container is this.
pub(super) fn directory(asked: &str) -> Result<PathBuf, String> {
    let below = |mount: &str| -> PathBuf { Path::new(mount).join(asked.trim_start_matches('/')) };
    let is_group = |path: &PathBuf| path.join("cgroup.procs").is_file();
    if asked.starts_with("/sys/fs/cgroup") {
        let path = PathBuf::from(asked);
        return if is_group(&path) { Ok(path) } else { Err("there is no such control group".to_owned()) };
    }
    if let Some(path) = MOUNTS.iter().copied().map(below).find(is_group) {
        return Ok(path);
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for mount in MOUNTS {
        look_below(Path::new(mount), asked, &mut found, 0);
        if !found.is_empty() {
            break;
        }
    }
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err("there is no such control group, unit or container".to_owned()),
        several => {
            let named = several.iter().take(3).map(|path| path.display().to_string());
            Err(format!("there are several: {}", named.collect::<Vec<_>>().join(", ")))
        }
    }
}

fn look_below(directory: &Path, asked: &str, found: &mut Vec<PathBuf>, depth: usize) {
    const DEEPEST: usize = 12;
    /// A shorter id may be anybody's.
    const LEAST_DIGITS: usize = 6;
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let told = names(&name);
        let has_id = || {
            let id = name.rsplit(['-', '.']).find(|part| is_id(part)).unwrap_or(&name);
            is_id(id) && asked.len() >= LEAST_DIGITS && id.starts_with(asked)
        };
        let is_it = name == asked
            || told
                .unit
                .as_deref()
                .is_some_and(|unit| unit == asked || unit.strip_suffix(".service") == Some(asked))
            || has_id();
        if is_it {
            found.push(entry.path());
        } else if depth < DEEPEST {
            look_below(&entry.path(), asked, found, depth + 1);
        }
    }
}

/// The path of a control group's directory, as processes' files have it.
pub(super) fn path_of(directory: &Path) -> String {
    let mounts = MOUNTS.iter();
    let below = mounts.rev().find_map(|mount| directory.strip_prefix(mount).ok());
    below.map_or_else(|| records::text_of(directory), |path| format!("/{}", records::text_of(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn told(path: &str) -> (Option<String>, Option<String>) {
        let found = names(&path.replace("ID", ID));
        (found.container, found.unit)
    }

    #[test]
    fn containers_and_units_are_recognised() {
        let some = |text: &str| Some(text.to_owned());
        let short = |manager: &str| Some(format!("{manager} 0123456789ab"));
        assert_eq!(told("/"), (None, None));
        assert_eq!(told("/system.slice/ssh.service"), (None, some("ssh.service")));
        assert_eq!(told("/user.slice/user-0.slice/session-2.scope"), (None, some("session-2.scope")));
        let escaped = "/system.slice/system-getty.slice/getty\\x40tty1.service";
        assert_eq!(told(escaped), (None, some("getty@tty1.service")));
        assert_eq!(told("/system.slice/docker-ID.scope").0, short("docker"));
        assert_eq!(told("/docker/ID"), (short("docker"), None));
        assert_eq!(told("/docker/ID/below"), (short("docker"), None));
        assert_eq!(told("/machine.slice/libpod-ID.scope/container").0, short("podman"));
        assert_eq!(told("/machine.slice/libpod-conmon-ID.scope").0, None, "its monitor");
        assert_eq!(
            told("/kubepods.slice/kubepods-burstable.slice/cri-containerd-ID.scope").0,
            short("containerd")
        );
        assert_eq!(told("/kubepods.slice/kubepods-pod1.slice/crio-ID.scope").0, short("cri-o"));
        assert_eq!(told("/kubepods/burstable/pod1b2c/ID").0, short("kubernetes"));
        assert_eq!(told("/lxc/web").0, some("lxc web"));
        assert_eq!(told("/lxc.payload.web/init.scope").0, some("lxc web"));
        assert_eq!(told("/machine.slice/machine-deb.scope").0, some("machine deb"));
        assert_eq!(told("/some/ID").0, None, "anything may have such a name");
    }

    #[test]
    fn the_file_of_a_process_is_read() {
        assert_eq!(path_in("0::/a.service\n").as_deref(), Some("/a.service"));
        let both = "12:cpu,cpuacct:/a\n1:name=systemd:/system.slice/b.service\n0::/\n";
        assert_eq!(path_in(both).as_deref(), Some("/system.slice/b.service"));
        assert_eq!(path_in("4:perf_event:/docker/x\n3:cpu:/\n").as_deref(), Some("/docker/x"));
        assert_eq!(path_in("0::/gone.scope (deleted)\n").as_deref(), Some("/gone.scope"));
        assert_eq!(path_in(""), None);
    }

    #[test]
    fn names_are_unescaped_as_far_as_they_are_escaped() {
        assert_eq!(unescaped("a\\x2db"), "a-b");
        assert_eq!(unescaped("a\\xzz\\x"), "a\\xzz\\x");
    }
}
