//! A network of hosts and a server: each in a network namespace of its own, with a router between them that can lose what passes.

use std::ffi::OsStr;
use std::process::Command;

/// Where the server is among the places of a network; the hosts are at the others.
pub const SERVER: usize = 0;

/// A network that ends with the value.
pub struct Network {
    /// What the names of its namespaces begin with.
    name: String,
    places: usize,
}

impl Network {
    /// One for a server and so many hosts. `None`: this user may not make it, or the machine has no `ip`.
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

    /// A program that is at a place of it.
    pub fn command(&self, place: usize, program: impl AsRef<OsStr>) -> Command {
        Self::command_in(&self.namespace(&place.to_string()), program)
    }

    /// From now on, what goes from one place to another is lost on its way, and neither learns of it.
    pub fn lose(&self, from: usize, to: usize) {
        self.rule("add", from, to);
    }

    /// From now on it arrives again.
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
            // What runs in it keeps it until it ends.
            let _gone = Command::new("ip").args(["netns", "del", &self.namespace(&place)]).output();
        }
    }
}

/// The address of a place.
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
