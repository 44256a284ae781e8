//! Processes of a harvest that tests want to know.

/// A harvest's process that does nothing but watch, once it is there.
pub fn supervisor_of(launcher: u32) -> String {
    for _ in 0..1000 {
        let children =
            std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
        let name = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if let Some(pid) = children.split_whitespace().find(|pid| name(pid) == "gleaner-butler\n") {
            return pid.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no supervisor");
}
