//! Which CPU is being measured on: so that two measurements at once choose different ones.
//!
//! A claim is a socket bound to an abstract name (`@gleaner/measure/cpu/3`). The kernel gives a
//! name to one process at a time, of whichever user, and takes it back when that process ends,
//! however it ends: nothing is left over. A network namespace has names of its own, so measurements
//! in two containers do not see each other.
//!
//! A claim is a courtesy, not a right: a measurement whose CPU is claimed goes on, and says so.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The CPU is ours to measure on while this lives.
#[derive(Debug)]
pub struct Claim {
    cpu: usize,
    /// None where this place allows no such socket: then no claim can be made or seen.
    socket: Option<UnixListener>,
}

impl Claim {
    /// Claims a CPU; nothing if another measurement has it.
    pub fn on(cpu: usize) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("gleaner/measure/cpu/{cpu}"));
        match name.and_then(|name| UnixListener::bind_addr(&name)) {
            Ok(socket) => Some(Self { cpu, socket: Some(socket) }),
            Err(e) if e.kind() == ErrorKind::AddrInUse => None,
            Err(_) => Some(Self { cpu, socket: None }),
        }
    }

    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Whether other measurements can see this claim.
    pub fn is_seen(&self) -> bool {
        self.socket.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_claimed_once_at_a_time() {
        // No machine has this CPU, so no measurement competes.
        let cpu = 1_000_000 + std::process::id() as usize;
        let first = Claim::on(cpu).unwrap();
        if !first.is_seen() {
            return;
        }
        assert!(Claim::on(cpu).is_none());
        assert!(Claim::on(cpu + 1).is_some());
        drop(first);
        assert!(Claim::on(cpu).is_some());
    }
}
