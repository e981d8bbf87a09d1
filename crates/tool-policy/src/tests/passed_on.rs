//! Commands behind another program (`sudo`, `ssh`, `docker exec`). Nobody judges what they start, and mostly no sandbox holds them.

use super::*;

/// Programs that start the command behind them.
const FRONTS: &[&str] = &[
    "sudo",
    "doas",
    "pkexec",
    "systemd-run",
    "chroot /x",
    "flock x",
    "uv run",
    "watch -n 1",
    "docker exec db",
    "docker compose exec db",
    "docker run --rm acme/x",
    "kubectl exec web-1 --",
];

/// A local `find -exec NAME` is judged when it starts `NAME`.
#[test]
fn a_command_that_is_started_starts_only_what_the_rule_spells() {
    for front in FRONTS {
        let rule = |rule: &str, granted: &[&str], refused: &[&str]| {
            let line = |call: &&str| format!("{front} {call}");
            let (granted, refused): (Vec<String>, Vec<String>) =
                (granted.iter().map(line).collect(), refused.iter().map(line).collect());
            let texts = |lines: &'static [String]| lines.iter().map(String::as_str).collect::<Vec<_>>();
            let (granted, refused) = (texts(granted.leak()), texts(refused.leak()));
            families(&[(&format!("{front} {rule}"), &granted, &refused)]);
        };
        rule(
            "find d *",
            &["find d -type f"],
            &["find d -exec id ;", "find d -name x -execdir rm {} +", "find d -ok id ;"],
        );
        rule("find d -name *", &["find d -name x"], &["find d -name x -exec sh -c id ;", "find d -name x -okdir id ;"]);
        rule("find *", &["find d -name x"], &["find d -exec id ;", "find d -delete"]);
        rule("xargs *", &["xargs"], &["xargs rm", "xargs -n 1 rm", "xargs -0 id"]);
        rule("xargs -n 1 *", &[], &["xargs -n 1 rm"]);
        rule("xargs -n 1 ls *", &["xargs -n 1 ls", "xargs -n 1 ls -l"], &["xargs -n 1 rm"]);
        rule("env *", &["env"], &["env id", "env A=b id", "env -S id"]);
        rule("nice -n 5 *", &[], &["nice -n 5 id"]);
        rule("timeout 5 *", &[], &["timeout 5 id"]);
        rule("timeout 5 ls *", &["timeout 5 ls -l"], &["timeout 5 rm"]);
        rule("sed -n *", &[], &["sed -n 1e x", "sed -n -e 1e x", "sed -n p x"]);
        rule("sed -n 1p *", &["sed -n 1p x"], &["sed -n 1p -e 1e x", "sed -n 1e x"]);
        rule("awk *", &[], &["awk 1 x", "awk -f x y"]);
        rule("awk -F : *", &[], &["awk -F : 1 x"]);
        rule("less *", &["less x"], &["less +!id x", "less x +!id"]);
    }
    families(&[
        ("sudo find /srv -exec chmod 644 {} +", &["sudo find /srv -exec chmod 644 {} +"], &[]),
        (
            "sudo find /srv -name * -exec chmod 644 {} ';'",
            &["sudo find /srv -name x -exec chmod 644 {} ;"],
            &["sudo find /srv -name x -exec rm {} ; -exec chmod 644 {} ;"],
        ),
        ("sudo find . -exec env *", &[], &["sudo find . -exec env id ;"]),
        ("sudo env LANG=C apt install *", &["sudo env LANG=C apt install x"], &["sudo env LANG=C id"]),
        ("sudo /usr/bin/find *", &["sudo /usr/bin/find d"], &["sudo /usr/bin/find d -exec id ;"]),
        // Such a word may be what is looked for.
        ("ssh web grep env *", &["ssh web grep env x"], &[]),
        ("ssh web which sed *", &["ssh web which sed awk"], &[]),
        ("sudo sed -i s/a/b/ *", &["sudo sed -i s/a/b/ f"], &["sudo sed -i 1e f"]),
        // The service judges what these start, or a sandbox holds them.
        ("find d *", &["find d -exec id ;", "find d -name x -execdir rm {} +"], &[]),
        ("sed -n *", &["sed -n 1e x"], &[]),
        ("awk *", &["awk 1 x"], &[]),
        ("less *", &["less +!id x"], &[]),
    ]);
}

#[test]
fn a_star_of_a_file_that_no_sandbox_holds_stands_for_no_other_file() {
    for front in [
        "sudo",
        "sudo -u bot",
        "doas",
        "pkexec",
        "ssh web",
        "ssh -p 22 web sudo",
        "docker exec web",
        "sudo docker exec web",
        "docker compose exec web",
        "docker run --rm acme/x",
        "kubectl exec web-1 --",
        "k3s kubectl exec web-1 --",
        "watch ssh web",
    ] {
        for (rule, granted, refused) in [
            (
                "rm -rf /srv/cache/*",
                &["rm -rf /srv/cache/a", "rm -rf /srv/cache/a /srv/cache/b/c"][..],
                &["rm -rf /srv/cache/a /etc", "rm -rf /srv/cache/a etc", "rm -rf /srv/cache/a -v"][..],
            ),
            ("cat /var/log/*", &["cat /var/log/a"], &["cat /var/log/a /etc/shadow"]),
            (
                "chown bob /srv/*",
                &["chown bob /srv/a /srv/b"],
                &["chown bob /srv/a /etc/shadow", "chown bob /srv/a bob"],
            ),
            ("tee /srv/*", &["tee /srv/a"], &["tee /srv/a /etc/passwd", "tee /srv/a -a"]),
            ("tee -a /srv/*", &["tee -a /srv/a"], &["tee -a /srv/a /etc/passwd"]),
            ("rm bot-*", &["rm bot-1 bot-2"], &["rm bot-1 /etc/x", "rm bot-1 x", "rm bot-1 -rf"]),
            ("sed -i s/a/b/ /srv/*", &["sed -i s/a/b/ /srv/x"], &["sed -i s/a/b/ /srv/x /etc/passwd"]),
            (
                "grep -r error /var/log/*",
                &["grep -r error /var/log/a"],
                &["grep -r error /var/log/a /etc/shadow", "grep -r error /var/log/a -e root"],
            ),
            ("tail -n 5 /var/log/*", &["tail -n 5 /var/log/a"], &["tail -n 5 /var/log/a -f /etc/shadow"]),
            ("cp /srv/x /bak/*", &["cp /srv/x /bak/a"], &["cp /srv/x /bak/a /etc", "cp /srv/x /bak/a -t /etc"]),
            ("rsync -a /srv/ /bak/*", &["rsync -a /srv/ /bak/x"], &["rsync -a /srv/ /bak/x /etc"]),
            ("tar czf /bak/x.tgz /srv/*", &["tar czf /bak/x.tgz /srv/a"], &["tar czf /bak/x.tgz /srv/a /etc"]),
            ("find /srv/* -name x", &["find /srv/a -name x"], &["find /srv/a /etc -name x", "find /etc -name x"]),
            ("cut -f 1-*", &["cut -f 1-3"], &["cut -f 1-3 /etc/shadow"]),
            ("cat /srv/*/log", &["cat /srv/a/log"], &["cat /srv/a /etc/log"]),
            ("cat /srv/a *", &["cat /srv/a", "cat /srv/a /etc/x"], &[]),
        ] {
            let policy = allowing(&[&format!("Bash({front} {rule})")]);
            // What only reads on this machine is as free as without the front.
            let is_free = ["sudo", "sudo -u bot", "doas", "pkexec"].contains(&front)
                && ["cat /var", "grep", "tail", "find", "cut"].iter().any(|name| rule.starts_with(name));
            let refused = if is_free { &[] } else { refused };
            for call in granted {
                grants(&policy, &[&format!("{front} {call}")]);
            }
            for call in refused {
                denies(&policy, &[&format!("{front} {call}")]);
            }
        }
    }
    // A sandbox holds these, or they only read on this machine.
    families(&[
        ("sudo cat /srv/*", &["sudo cat /srv/x /etc/x"], &[]),
        ("cat notes/*", &["cat notes/a other"], &[]),
        ("rm -v out/*", &["rm -v out/a src/b"], &[]),
        ("watch cat notes/*", &["watch cat notes/a other"], &[]),
        ("flock x cat notes/*", &["flock x cat notes/a other"], &[]),
    ]);
}
