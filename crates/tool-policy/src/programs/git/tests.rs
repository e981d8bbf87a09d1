use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

#[test]
fn options_before_the_subcommand_do_not_hide_it() {
    for (text, denied, granted) in [
        ("git push", "git push", None),
        ("git -C . push", "git push", Some("git push")),
        ("git --no-pager -P push x", "git push x", Some("git push x")),
        ("git -c a.b=c push", "git push", None),
        ("git --git-dir x --work-tree=y push", "git push", None),
        ("/usr/lib/git-core/git-push x", "git push x", None),
        ("git-push", "git push", None),
        ("git -C", "git", None),
    ] {
        assert_eq!(without_globals(&words(text)).map(|words| words.join(" ")).as_deref(), Some(denied), "{text}");
        assert_eq!(without_harmless(&words(text)).map(|(words, _)| words.join(" ")).as_deref(), granted, "{text}");
    }
    assert_eq!(without_globals(&words("gitk push")), None);
    assert_eq!(without_harmless(&words("git -C a -C b log")).unwrap().1, ["a", "b"]);
    assert_eq!(folders(&words("-c x=y -C a log -C b")), ["a"]);
}

#[test]
fn a_call_by_an_alias_of_its_own_is_the_call() {
    for (text, call) in [
        ("git -c alias.x=push x main", Some("git push main")),
        ("git -calias.x=push x main", Some("git push main")),
        ("git -c alias.x=log -c alias.x=push x main", Some("git push main")),
        ("git -c alias.x=log -c alias.y=push y x", Some("git push x")),
        ("git -c alias.x=!git x", Some("git")),
        ("git x -c alias.x=push", None),
        ("git -c alias.x=push y", None),
        ("ls -c alias.x=push x", None),
    ] {
        assert_eq!(aliased(&words(text)).map(|words| words.join(" ")).as_deref(), call, "{text}");
    }
}

#[test]
fn what_a_rule_must_spell() {
    for (text, expected) in [
        ("log --oneline -5", ""),
        ("--no-pager log --text --stat", ""),
        ("log --output=x", "output"),
        ("log --outp x", "output"),
        ("diff --ext-diff", "ext-diff"),
        ("-c core.pager=x log", "-c"),
        ("-c core.pager=cat -c Core.Editor=true -c commit.gpgSign=false log", ""),
        ("-c core.pager=cat\u{1} log", "-c"),
        ("-c core.pager log", "-c"),
        ("-c commit.gpgsign=true commit", "-c"),
        ("--exec-path=. log", "--exec-path"),
        ("--git-dir=x log", "--git-dir"),
        ("--config-env=a=b log", "--config-env"),
        ("rebase -x x HEAD", "exec"),
        ("rebase -ix x HEAD", "exec"),
        ("rebase --exe x HEAD", "exec"),
        ("grep -Ox y", "open-files-in-pager"),
        ("clone -u x y", "upload-pack"),
        ("clone ext::x y", "ext::"),
        ("push -u origin main", ""),
        ("config alias.x !y", "config"),
        ("config --get a.b", ""),
        ("config --global --list", ""),
        ("config list --show-origin", ""),
        ("config user.name", ""),
        ("config --global --bool core.bare", ""),
        ("config user.\u{1}", "config"),
        ("config user.name \u{1}", "config"),
        ("config edit", "config"),
        ("config --unset a.b", "config"),
        ("config a.b c get", "config"),
        ("config a.b --get", "config"),
        ("config a.b list", "config"),
        ("config -f --get a.b c", "config"),
        ("checkout-index -a --pref=.git/", "prefix"),
        ("bisect run x", "bisect run"),
        ("bisect visualize git -c alias.x=!y x", "bisect visualize"),
        ("bisect view rebase -x y", "bisect view"),
        ("bisect --quiet visualise", "bisect visualise"),
        ("bisect start --term-old=fast", ""),
        ("bisect good HEAD~3", ""),
        ("bisect", ""),
        ("submodule --quiet foreach x", "submodule foreach"),
        ("submodule --quiet update --init", ""),
        ("submodule", ""),
        ("submodule foreach x", "submodule foreach"),
        ("submodule -q absorbgitdirs notes", "submodule absorbgitdirs"),
        ("difftool -x y", "difftool"),
        ("init", ""),
        ("init -q --bare notes/x", ""),
        ("init --separate-git-dir=notes/x", "separate-git-dir"),
        ("init --separate-git-dir notes/x .", "separate-git-dir"),
        ("init --sep=notes/x", "separate-git-dir"),
        ("init --s notes/x", "separate-git-dir"),
        ("clone --separate-g=notes/x ./a", "separate-git-dir"),
        ("commit -am x", ""),
        ("log -- --output", "output"),
    ] {
        let found: Vec<String> = guarded(&words(text)).into_iter().map(|option| option.id).collect();
        assert_eq!(found.join(","), expected, "{text}");
    }
}

#[test]
fn subcommands_need_what_they_are_for() {
    assert_eq!(needs(Some("log")), SubcommandNeeds { class: Class::Reads, network: false, any: false });
    assert_eq!(needs(Some("commit")), SubcommandNeeds { class: Class::Changes, network: false, any: false });
    assert_eq!(needs(Some("push")), SubcommandNeeds { class: Class::Changes, network: true, any: false });
    assert!(needs(None).network && needs(Some("my-alias")).any);
    assert_eq!(subcommand(&words("-C x log -1")), Some("log"));
    assert_eq!(subcommand(&words("lo\u{1}")), None);
}
