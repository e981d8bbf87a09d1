//! Hosts that lose the network to the server, in both directions or in one.

use chrono::TimeDelta;

use crate::support::bot::{CommandOutput, Service, TestBot, now, reminder};
use crate::support::network::{Network, SERVER, address};
use crate::support::postgres::{Postgres, as_server_user, program};

/// A routine that never falls due by itself and outlasts the test.
const LONG: &str = "---\ncron: '0 0 29 2 *'\nclient: exec\ncommand: sleep 600\nallowed_tools: []\n---\n";

/// Number of reminders, one due each second.
const REMINDERS: i64 = 40;

#[test]
#[expect(clippy::print_stderr, reason = "a test says what it could not show")]
fn a_host_that_loses_the_network_ends_what_it_has_and_nothing_is_lost_or_doubled() {
    let names = ["home", "attic", "cellar", "garage"];
    let Some(network) = Network::new(names.len()) else {
        eprintln!("not shown here: network namespaces need root, and `ip`");
        return;
    };
    let own = as_server_user(program("postgres"));
    let mut command = network.command(SERVER, own.get_program());
    command.args(own.get_args());
    let server = Postgres::start_by(&["listen_addresses=*", "fsync=off", "full_page_writes=off"], command);
    let url = format!("postgres://bot@{}/postgres?sslmode=disable", address(SERVER));
    let bots = names.map(|name| TestBot::new().env("OLLIM_JOURNAL", &url).env("OLLIM_HOST", name));
    let inside = |place: usize, args: &[&str]| {
        let own = bots[place - 1].command(args);
        let mut command = network.command(place, own.get_program());
        command.args(own.get_args()).current_dir(own.get_current_dir().unwrap());
        command.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    let start = |place: usize| {
        let service = bots[place - 1].spawn(inside(place, &["run"]));
        service.until("the service is ready", || service.output().contains("ready on ").then_some(()));
        service
    };
    let services = [1, 2, 3, 4].map(start);
    let (home, lost) = services.split_first().unwrap();
    // Each of them has a running job that had an effect.
    for (place, name) in (1..).zip(names).skip(1) {
        let id = format!("long-{name}");
        bots[place - 1].write(&format!("routines/{id}.md"), LONG);
        let fire = || CommandOutput::of(inside(place, &["fire", &id])).code == 0;
        services[place - 1].until("it is there", || fire().then_some(()));
    }
    let begin = now() + TimeDelta::seconds(3);
    for number in 0..REMINDERS {
        let file = reminder(begin + TimeDelta::seconds(number), "client: notify\n", &format!("word {number}"));
        bots.iter().for_each(|bot| bot.write(&format!("reminders/r{number}.md"), &file));
    }
    home.until("some are done", || (completed(&server) > 2).then_some(()));
    // One host loses all packets, one its requests, one the answers.
    let cuts = [(2, SERVER), (SERVER, 2), (3, SERVER), (SERVER, 4)];
    cuts.iter().for_each(|(from, to)| network.lose(*from, *to));
    for (bot, service) in bots.iter().skip(1).zip(lost) {
        service.until("it has ended what it had going", || (!bot.processes().iter().any(is_job)).then_some(()));
        assert!(service.output().contains("lost its lease"), "{}", service.output());
    }
    let alive = || server.psql("SELECT string_agg(name, ' ' ORDER BY name) FROM host WHERE lease_until > now()");
    home.until("it is alone", || (alive() == "home").then_some(()));
    let failed = "SELECT count(*) FROM occurrence WHERE id LIKE 'long-%' AND outcome = 'failed'";
    home.until("what they had going is closed", || (server.psql(failed) == "3").then_some(()));
    cuts.iter().for_each(|(from, to)| network.pass(*from, *to));
    home.until("all are there again", || (alive() == "attic cellar garage home").then_some(()));
    home.until("each has its outcome", || (completed(&server) == REMINDERS).then_some(()));
    assert_eq!(
        server
            .psql("SELECT count(*) FROM run JOIN occurrence ON occurrence.number = run.occurrence WHERE id LIKE 'r%'"),
        REMINDERS.to_string()
    );
    assert_eq!(server.psql("SELECT count(*) FROM message WHERE text LIKE 'word %'"), REMINDERS.to_string());
    assert_eq!(server.psql("SELECT count(*) FROM message WHERE text LIKE '%long-%'"), "3", "each is told once");
    assert_eq!(server.psql("SELECT count(*) FROM occurrence WHERE claimed < at"), "0", "none was early");
    said_once(&services);
    services.into_iter().for_each(|service| drop(service.stop()));
}

fn completed(server: &Postgres) -> i64 {
    let sql = "SELECT count(*) FROM occurrence WHERE id LIKE 'r%' AND outcome = 'completed'";
    server.psql(sql).parse().unwrap()
}

/// Asserts on the hosts' console output, independently of the journal, that each reminder was delivered exactly once.
fn said_once(services: &[Service<'_>; 4]) {
    services[0].until("all have said each, once", || {
        let said: String = services.iter().map(Service::output).collect();
        let count = |number: i64| said.lines().filter(|line| line.ends_with(&format!("word {number}"))).count();
        assert!((0..REMINDERS).all(|number| count(number) < 2), "{said}");
        (0..REMINDERS).all(|number| count(number) == 1).then_some(())
    });
}

fn is_job(process: &crate::support::processes::Process) -> bool {
    process.command.contains("sleep 600")
}
