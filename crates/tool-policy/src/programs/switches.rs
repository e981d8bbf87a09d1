//! Options without a value, by subcommand. A star alone behind any other option, at the end of a rule, is that option's value.

use super::Names;

/// Subcommands, each with such options.
type Switches = &'static [(Names, Names)];

/// Of `git`. `--no-…` has no value, wherever it stands.
pub(super) const GIT: Switches = &[
    (
        "branch",
        "-D -M -C -a -c -d -f -i -l -m -q -r -t -v --all --copy --delete --force --list --move --quiet --remotes --set-upstream \
         --show-current --track --verbose",
    ),
    ("tag", "-a -d -f -l -s --annotate --create-reflog --delete --force --list --sign"),
    (
        "push send-pack",
        "-4 -6 -d -f -n -q -u -v --all --atomic --branches --delete --dry-run --follow-tags --force --force-if-includes \
         --force-with-lease --ipv4 --ipv6 --mirror --porcelain --progress --prune --quiet --set-upstream --tags --thin --verbose \
         --verify",
    ),
    (
        "merge pull",
        "-4 -6 -a -e -f -k -n -p -q -r -t -v --all --allow-unrelated-histories --append --autostash --commit --dry-run --edit --ff \
         --ff-only --force --ipv4 --ipv6 --keep --progress --prune --quiet --rebase --signoff --squash --stat --tags --unshallow \
         --update-shallow --verbose --verify --verify-signatures",
    ),
    (
        "rebase",
        "-f -i -k -m -n -q -r -v --abort --apply --autosquash --autostash --continue --ff --force-rebase --fork-point --interactive \
         --keep-base --keep-empty --merge --quiet --quit --rebase-merges --root --signoff --skip --stat --update-refs --verbose",
    ),
    (
        "cherry-pick revert",
        "-e -n -s -x --abort --allow-empty --allow-empty-message --continue --edit --ff --keep-redundant-commits --quit \
         --rerere-autoupdate --signoff --skip",
    ),
    (
        "checkout",
        "-d -f -l -m -p -q -t --detach --force --guess --merge --ours --overlay --patch --progress --quiet --theirs --track",
    ),
    ("remote", "-f -n -v --dry-run --prune --tags --verbose"),
    ("worktree", "-d -f -q --checkout --detach --force --guess-remote --lock --quiet --relative-paths --track"),
    ("submodule", "-f -q --all --cached --checkout --force --init --merge --quiet --rebase --recursive --remote"),
    ("stash", "-a -k -p -q -u --all --include-untracked --index --keep-index --patch --quiet --staged"),
    ("replace", "-d -f -l --convert-graft-file --delete --force --graft --list --raw"),
    ("reflog", "-n --all --dry-run --rewrite --single-worktree --stale-fix --updateref --verbose"),
    ("lfs", "-a -f -l --all --dry-run --force --local --object-id --recent --stdin"),
];

/// Of `docker` and `podman`.
pub(super) const CONTAINERS: Switches = &[
    ("rm rmi remove", "-a -f -i -l -s -v --all --depend --force --ignore --latest --link --no-prune --stop --volumes"),
    ("config image network node plugin pod secret service stack volume", "-f --force"),
    (
        "build down kill pause pull push restart start stop unpause up",
        "-V -a -l --all --latest --remove-orphans --volumes",
    ),
    ("inspect", "-s --size"),
    ("pull push", "--all-tags --ignore-buildable --include-deps"),
];

/// Of `tmux`.
pub(super) const TMUX: Switches = &[
    ("display-popup popup", "-B -C -E -k -N"),
    ("if if-shell", "-b -F"),
    ("new new-session", "-A -d -D -E -P -X"),
    ("new-window neww", "-a -b -d -k -P -S"),
    ("pipe-pane pipep", "-I -o -O"),
    ("respawn-pane respawn-window respawnp respawnw", "-k"),
    ("run run-shell", "-b -C"),
    ("split-window splitw", "-b -d -f -h -I -P -v -Z"),
];
