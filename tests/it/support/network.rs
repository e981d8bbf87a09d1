//! A network of hosts and a server, each in its own network namespace. The router between them can drop packets.

use std::ffi::OsStr;
use std::process::Command;

/// The server's place in a network. The hosts have the other places.
pub const SERVER: usize = 0;

/// A network that is removed when the value is dropped.
pub struct Network {
    /// The prefix of its namespaces' names.
    name: String,
    places: usize,
}

impl Network {
    /// Creates a network for a server and some hosts. Returns `None` without the privilege for it, or without `ip`.
    pub fn new(hosts: usize) -> Option<Self> {
        let network = Self { name: format!("ollim{}", std::process::id()), places: hosts + 1 };
        let router = network.namespace("router");
        if !Command::new("ip").args(["netns", "add", &router]).output().is_ok_and(|done| done.status.success()) {
            return None;
        }
        let mut forwards = Self::command_in(&router, "sh");
        assert!(forwards.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status().unwrap().success());
        for place in 0..network.places {
            let own = network.namespace(&place.to_string());
            ip(&["netns", "add", &own]);
            let beside = format!("p{place}");
            ip(&["link", "add", "out", "netns", &own, "type", "veth", "peer", "name", &beside, "netns", &router]);
            ip(&["-n", &own, "addr", "add", &format!("{}/24", address(place)), "dev", "out"]);
            ip(&["-n", &router, "addr", "add", &format!("{}/24", gateway(place)), "dev", &beside]);
            ip(&["-n", &own, "link", "set", "lo", "up"]);
            ip(&["-n", &own, "link", "set", "out", "up"]);
            ip(&["-n", &router, "link", "set", &beside, "up"]);
            ip(&["-n", &own, "route", "add", "default", "via", &gateway(place)]);
        }
        Some(network)
    }

    /// Returns a command that runs at a place of the network.
    pub fn command(&self, place: usize, program: impl AsRef<OsStr>) -> Command {
        Self::command_in(&self.namespace(&place.to_string()), program)
    }

    /// Drops all packets from one place to another from now on, without an error at either.
    pub fn lose(&self, from: usize, to: usize) {
        self.rule("add", from, to);
    }

    /// Delivers these packets again.
    pub fn pass(&self, from: usize, to: usize) {
        self.rule("del", from, to);
    }

    fn rule(&self, what: &str, from: usize, to: usize) {
        let router = self.namespace("router");
        ip(&["-n", &router, "rule", what, "from", &address(from), "to", &address(to), "blackhole"]);
    }

    fn command_in(namespace: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
        command
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for place in (0..self.places).map(|place| place.to_string()).chain(["router".to_owned()]) {
            // A process in the namespace keeps it until it ends.
            let _gone = Command::new("ip").args(["netns", "del", &self.namespace(&place)]).output();
        }
    }
}

/// Returns the address of a place.
pub fn address(place: usize) -> String {
    format!("10.99.{place}.2")
}

fn gateway(place: usize) -> String {
    format!("10.99.{place}.1")
}

fn ip(args: &[&str]) {
    let done = Command::new("ip").args(args).output().unwrap();
    assert!(done.status.success(), "ip {}: {}", args.join(" "), String::from_utf8_lossy(&done.stderr));
}
