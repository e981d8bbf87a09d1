//! `wake`: the kernel is asked to wake the machine, or the person is notified that it is not.

use std::fs;

use chrono::TimeDelta;

use crate::support::bot::{TestBot, now, reminder};

#[test]
fn the_kernel_is_asked_to_wake_the_machine_or_the_person_is_told() {
    let bot = TestBot::new();
    bot.write("reminders/sleepless.md", &reminder(now() + TimeDelta::days(300), "client: notify\n", "Tea."));
    let service = bot.start();
    // Such a timer uses CLOCK_REALTIME_ALARM. The service sets a new timer a moment after creating it.
    let timers = || -> Vec<String> {
        let folder = format!("/proc/{}/fdinfo", service.pid());
        let all = fs::read_dir(folder).unwrap().flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
        all.filter(|timer| timer.contains("clockid: 8\n") && !timer.contains("it_value: (0, 0)")).collect()
    };
    assert_eq!(timers(), [""; 0], "none has asked");
    bot.write("reminders/early.md", &reminder(now() + TimeDelta::days(200), "client: notify\nwake: true\n", "Bread."));
    let warns = || bot.run(["check"]).stdout.contains("reminder `early`: it does not wake the machine: ");
    service.until("it is set, or said", || (!timers().is_empty() || warns()).then_some(()));
    match &timers()[..] {
        [_] => {}
        [] => {
            let status = bot.run(["status"]).stdout;
            assert!(status.contains("the service lacks the privilege CAP_WAKE_ALARM"), "{status}");
        }
        more => panic!("{more:?}"),
    }
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    assert!(status.contains("CapAmb:\t0000000000000000"), "what it starts has none of it: {status}");
    service.stop();
}

#[test]
fn what_has_no_times_wakes_nothing() {
    let bot = TestBot::new();
    bot.write("routines/a.md", "---\nwatch: .\nwake: true\nclient: notify\n---\nNews.\n");
    let checked = bot.run(["check"]);
    assert!(checked.stdout.contains("`wake` has no effect on a routine that fires"), "{checked:?}");
}
