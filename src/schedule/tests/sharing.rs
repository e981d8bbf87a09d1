//! Due occurrences on a host that shares the journal: which host is first, and whose clock counts.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::watch;

use super::super::sharing::GRACE;
use super::support::*;
use crate::definition::{Definition, DefinitionId, JobClient};
use crate::journal::{Hosts, Member};

/// Returns the state of `home` beside `attic`, with its clock this far ahead of the server's.
fn home(ahead: TimeDelta) -> Hosts {
    let member = |name: &str| Member {
        name: name.to_owned(),
        labels: Default::default(),
        versions: ("1".to_owned(), "2026b".to_owned()),
        timezone: None,
        is_main: false,
    };
    let alive = ["attic", "home"].map(member).to_vec();
    Hosts {
        me: member("home"),
        alive,
        ahead,
        is_main: false,
        left_open: Default::default(),
        is_some_unassigned: false,
        failing: Default::default(),
        pushed: 0,
        paused: Default::default(),
    }
}

/// Returns a reminder that any host may run. `first`: whether `home` is first for it.
fn tea(first: bool) -> Definition {
    let hosts = home(TimeDelta::zero());
    let id = (0..).map(|number| format!("tea-{number}"));
    let mut id = id.filter(|id| hosts.is_first_for(&DefinitionId::new(id.as_str()), |_| true) == first);
    Definition { client: Some(JobClient::Notify), ..reminder(&id.next().unwrap()) }
}

#[tokio::test(start_paused = true)]
async fn what_another_host_comes_first_for_is_left_to_it_for_a_moment() {
    let mut world = World::new();
    let (_tell, hosts) = watch::channel(home(TimeDelta::zero()));
    world.hosts = Some(hosts);
    let (ours, others) = (tea(true), tea(false));
    let process = world.begin(&[ours.clone(), others.clone()]);
    minutes(61).await;
    let late = |definition: &Definition| {
        let start = world.starts().into_iter().find(|start| start.id == definition.id.as_str()).unwrap();
        (start.at - start.due).to_std().unwrap()
    };
    assert_eq!(late(&ours), Duration::ZERO);
    assert_eq!(late(&others), GRACE);
    assert!(!GRACE.is_zero());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_clock_is_ahead_waits_for_the_servers() {
    for (ahead, late) in [(3000, 3000), (-3000, 0)] {
        let mut world = World::new();
        let (_tell, hosts) = watch::channel(home(TimeDelta::milliseconds(ahead)));
        world.hosts = Some(hosts);
        let process = world.begin(&[tea(true)]);
        minutes(61).await;
        let lateness: Vec<_> = world.starts().iter().map(|start| start.at - start.due).collect();
        assert_eq!(lateness, [TimeDelta::milliseconds(late)]);
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_clock_is_wrong_fires_nothing_until_it_is_right() {
    for ahead in [6, -6] {
        let mut world = World::new();
        let (tell, hosts) = watch::channel(home(TimeDelta::seconds(ahead)));
        world.hosts = Some(hosts);
        let process = world.begin(&[tea(true)]);
        minutes(90).await;
        assert_eq!(world.starts().len(), 0);
        tell.send_replace(home(TimeDelta::zero()));
        minutes(1).await;
        assert_eq!(world.starts().len(), 1);
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_person_is_told_of_a_wrong_clock_once() {
    let mut world = World::new();
    let (tell, hosts) = watch::channel(home(TimeDelta::seconds(7)));
    world.hosts = Some(hosts);
    let told = "The clock of the host home is 7 s ahead of the server's, so nothing fires there. Set it: `timedatectl set-ntp true`.";
    let process = world.begin(&[]);
    minutes(1).await;
    assert_eq!(world.notifications(), [told]);
    // A correction that does not suffice, and a new process.
    tell.send_replace(home(TimeDelta::seconds(6)));
    minutes(1).await;
    process.stop(Duration::ZERO).await;
    let process = world.begin(&[]);
    minutes(1).await;
    assert_eq!(world.notifications().len(), 1);
    tell.send_replace(home(TimeDelta::zero()));
    minutes(1).await;
    tell.send_replace(home(TimeDelta::seconds(-9)));
    minutes(1).await;
    assert_eq!(world.notifications().len(), 2);
    assert!(world.notifications()[1].contains("home is 9 s behind the server's"), "{:?}", world.notifications());
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_left_to_another_host_fires_here_once_its_file_says_so() {
    let mut world = World::new();
    let (_tell, hosts) = watch::channel(home(TimeDelta::zero()));
    world.hosts = Some(hosts);
    let elsewhere = Definition { hosts: vec!["attic".into()], ..tea(true) };
    let process = world.begin(std::slice::from_ref(&elsewhere));
    minutes(61).await;
    assert_eq!(world.starts().len(), 0);
    process.schedule.upsert(loaded(&Definition { hosts: Vec::new(), ..elsewhere }));
    minutes(1).await;
    assert_eq!(world.starts().len(), 1);
    process.stop(Duration::ZERO).await;
}

/// Returns the state of `home` in UTC beside the main host `attic` in Vienna.
fn home_in_another_zone() -> Hosts {
    let mut hosts = home(TimeDelta::zero());
    let in_zone = |member: Member, zone: &str, is_main| Member { timezone: Some(zone.into()), is_main, ..member };
    hosts.alive = hosts
        .alive
        .into_iter()
        .map(|member| match member.name.as_str() {
            "attic" => in_zone(member, "Europe/Vienna", true),
            _ => in_zone(member, "UTC", false),
        })
        .collect();
    Hosts { me: hosts.alive[1].clone(), ..hosts }
}

/// A job without a zone of its own falls due at another moment on a host with another time zone. It fires in that of the main host.
#[tokio::test(start_paused = true)]
async fn a_host_in_another_zone_leaves_what_has_none_to_the_others() {
    let mut world = World::new();
    let (tell, hosts) = watch::channel(home_in_another_zone());
    world.hosts = Some(hosts);
    let notifies = |definition| Definition { client: Some(JobClient::Notify), ..definition };
    let own = Definition { own_zone: Some(chrono_tz::UTC), ..notifies(reminder("own")) };
    let only_here = Definition { hosts: vec!["home".into()], ..notifies(reminder("only-here")) };
    let routine = notifies(routine("without"));
    let process = world.begin(&[routine, own, only_here]);
    minutes(61).await;
    let mut started = world.started();
    started.sort();
    assert_eq!(started, ["only-here 01T13:00:00", "own 01T13:00:00"]);
    assert_eq!(
        world.notifications(),
        [
            "The time zone of the host home is UTC, that of the main host attic is Europe/Vienna. A job without `timezone` fires in the main host's \
          zone, so home leaves such jobs to hosts with that zone. To have it run them, set `timezone: Europe/Vienna` in its config.yaml and \
          restart it."
        ]
    );
    // The main host goes away, and this one takes its part.
    let alone = home_in_another_zone();
    let me = Member { is_main: true, ..alone.me };
    tell.send_replace(Hosts { alive: vec![me.clone()], me, is_main: true, ..alone });
    minutes(60).await;
    assert!(world.started().contains(&"without 01T14:00:00".to_owned()), "{:?}", world.started());
    process.stop(Duration::ZERO).await;
}
