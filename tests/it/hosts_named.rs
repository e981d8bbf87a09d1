//! Jobs whose `hosts` name another host than the one on which something sets them off.

use chrono::TimeDelta;

use crate::hosts::host;
use crate::on_events::wait_until_watching;
use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::postgres::Postgres;
use crate::webhooks::WebhookBot;

const NEVER: &str = "cron: '0 0 29 2 *'";

/// Writes a routine with the trigger `when` and further fields to each host.
fn on_all(bots: &[&TestBot], id: &str, when: &str) {
    let text = format!("---\n{when}\nclient: exec\ncommand: 'true'\nallowed_tools: []\n---\n");
    bots.iter().for_each(|bot| bot.write(&format!("routines/{id}.md"), &text));
}

/// Returns each run of a job with its host and its state.
fn ran(server: &Postgres, id: &str) -> String {
    server.psql(&format!(
        "SELECT string_agg(r.host || ' ' || r.state, ', ' ORDER BY r.number)
         FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE o.id = '{id}'"
    ))
}

#[test]
fn what_follows_a_job_runs_on_a_host_that_it_names() {
    let server = Postgres::start();
    let [attic, home] = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    on_all(&[&attic, &home], "first", &format!("{NEVER}\nhosts: [home]"));
    on_all(&[&attic, &home], "then", "after: first\nhosts: [attic]");
    let (service, other) = (home.start(), attic.start());
    service.fire("first");
    other.until_ended("then", 1);
    assert_eq!(ran(&server, "then"), "attic completed");
    // It waits for that host, which runs it once.
    other.stop();
    service.fire("first");
    let open = "SELECT count(*) FROM occurrence WHERE id = 'then' AND outcome IS NULL AND host IS NULL";
    service.until("it is left", || (server.psql(open) == "1").then_some(()));
    let why = home.ok(["why", "then"]);
    assert!(why.contains("waits: for a host that may run it, and none is up (its `hosts` name attic)"), "{why}");
    let other = attic.start();
    other.until_ended("then", 2);
    assert_eq!(ran(&server, "then"), "attic completed, attic completed");
    other.stop();
    service.stop();
}

#[test]
fn a_delivery_runs_on_a_host_that_the_job_names() {
    let server = Postgres::start();
    let api = MessagesApi::answering(|_| Reply::say("done"));
    let with_client = || TestBot::with_client(&client::real(), api.url());
    let [attic, home] = ["attic", "home"].map(|name| WebhookBot::of(host(with_client(), &server, name)));
    for hooked in [&attic, &home] {
        hooked.hook("push", "isolated: true\nhosts: [attic]\n", "It came.");
    }
    let (service, other) = (home.start(), attic.start());
    let answer = home.post("push", "{}");
    assert_eq!(answer.status, 202, "{answer:?}");
    other.until_ended("push", 1);
    assert_eq!(ran(&server, "push"), "attic completed");
    other.stop();
    service.stop();
}

#[test]
fn a_folder_is_watched_on_the_hosts_that_the_job_names() {
    let server = Postgres::start();
    let [attic, home] = ["attic", "home"].map(|name| host(TestBot::new(), &server, name));
    on_all(&[&attic, &home], "sort", "watch: in\nhosts: [attic]");
    for bot in [&attic, &home] {
        std::fs::create_dir_all(bot.path("work/in")).unwrap();
    }
    let (service, other) = (home.start(), attic.start());
    wait_until_watching(&attic, &other, "sort", "work/in");
    for number in 2..5 {
        home.write(&format!("work/in/{number}"), "x");
        attic.write(&format!("work/in/{number}"), "x");
        other.until_ended("sort", number);
    }
    assert_eq!(server.psql("SELECT DISTINCT host FROM occurrence"), "attic");
    other.stop();
    service.stop();
}

#[test]
fn a_job_that_no_host_may_run_is_told_of() {
    let server = Postgres::start();
    let attic = host(TestBot::new(), &server, "attic");
    on_all(&[&attic], "lost", "every: 1m\nhosts: [gamma]");
    let due = now() + TimeDelta::seconds(2);
    attic.write("reminders/once.md", &reminder(due, "client: notify\nhosts: [gamma]\n", "x"));
    let service = attic.start();
    let told = "no host that may run it is up: its `hosts` name gamma. It waits until one of them is";
    service.until("the person is told", || attic.ok(["inbox"]).contains(told).then_some(()));
    let doctor = attic.run(["doctor"]).stdout;
    let words = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no host that may run routine lost is up: its `hosts` name gamma"), "{doctor}");
    assert!(words.contains("put `hosts` in routines/lost.md right: the hosts are attic"), "{doctor}");
    service.stop();
}
