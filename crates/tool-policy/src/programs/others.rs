//! Other programs: those that can run any other program, and those that work over a local socket. Builtins of the
//! shell that run other programs are here, too.

use super::{
    Anywhere, Class, CommandOperands, HarmlessOptions, Options, OptionsEnd, Program, closed, executes, steers,
    switches, writes,
};

const fn runs(names: &'static [&'static str]) -> Program {
    Program::new(Class::Runs, names)
}

/// A program that works over a local socket, and of which a star stands for the `harmless` options only.
const fn over_socket(names: &'static [&'static str], harmless: &'static HarmlessOptions) -> Program {
    Program { local_sockets: true, ..closed(Class::Unknown, names, harmless) }
}

pub(super) const TABLE: &[Program] = &[
    runs(&["eval", "source"]),
    closed(Class::Runs, &["at", "batch", "crontab", "ed", "gdb", "socat", "su"], &NOTHING),
    closed(Class::Runs, &["script"], &HarmlessOptions::ONLY_OPERANDS),
    Program { commands: CommandOperands::Code, ..closed(Class::Runs, &["rename"], &RENAME) },
    starts(&["builtin", "busybox", "bwrap", "exec", "nsenter", "setpriv", "strace"]),
    Program {
        starts_elsewhere: true,
        unasked: "-n --non-interactive",
        bare: "-A -B -E -H -K -P -S -b -i -k -n -s --askpass --background --bell --login --non-interactive --preserve-env \
            --preserve-groups --remove-timestamp --reset-timestamp --set-home --shell --stdin",
        options: Options::new(&[], "CDghpRTuU"),
        ..starts(&["doas", "sudo"])
    },
    Program {
        starts_elsewhere: true,
        options: Options {
            valued: "background chdir description group machine nice property setenv slice unit user",
            ..Options::new(&[], "Dgu")
        },
        harmless: Some(&AS_ANOTHER),
        closed: true,
        ..starts(&["pkexec", "run0"])
    },
    starts(&["toybox", "unshare"]),
    Program {
        commanded: "*",
        starts_elsewhere: true,
        bare: "-G -P -S -d -q -r -t --collect --no-ask-password --no-block --pipe --pty --quiet --remain-after-exit --same-dir --scope --shell \
            --system --user --wait",
        options: Options { valued: "description property service-type slice unit", ..Options::new(&[], "EHMpu") },
        ..starts(&["systemd-run"])
    },
    Program { own_operand: true, ..starts(&["chroot", "flock", "setarch", "taskset"]) },
    Program {
        joins_from: Some(0),
        options: Options { valued: "interval jobs", ..Options::new(&[], "jn") },
        ..starts(&["parallel", "watch"])
    },
    Program { commands: CommandOperands::Added, ..closed(Class::Runs, &["emacs"], &EMACS) },
    Program { commands: CommandOperands::Added, ..closed(Class::Runs, EDITORS, &EDITOR) },
    Program {
        subcommands: true,
        alike: "auto autopurge autoremove build-dep download hold install manual markauto purge reinstall remove satisfy source unhold \
            unmarkauto upgrade",
        unlike: "changelog depends list policy rdepends search show showauto showhold showmanual showsrc update",
        anywhere_by: &[(
            "autoremove build-dep dist-upgrade download full-upgrade install purge reinstall remove satisfy upgrade",
            Anywhere {
                flags: "qsVy",
                switches: "assume-yes dry-run fix-missing no-install-recommends no-upgrade only-upgrade quiet simulate verbose-versions yes",
                ..Anywhere::NONE
            },
        )],
        leading: true,
        commands: CommandOperands::Packages,
        ..closed(Class::Runs, &["apt", "apt-get", "apt-mark"], &APT)
    },
    // Behind `--` are options of `git clone`.
    Program {
        subcommands: true,
        groups: "alias attestation auth cache codespace config environment extension gist gpg-key issue label mr org pr project release repo \
            repo-autolink repo-deploy-key repo-gitignore repo-license ruleset run search secret ssh-key variable workflow",
        alike: "create edit new upload",
        unlike: "api archive browse cancel checkout checks clone close comment commits delete develop diff disable download enable fork get \
            issues list lock login logout ls merge prs ready refresh rename reopen repos rerun review run set set-default status sync \
            token transfer unarchive unlock update-branch verify view watch",
        anywhere_by: &[
            ("issue-view pr-view", Anywhere { flags: "c", switches: "comments", ..Anywhere::NONE }),
            ("pr-diff", Anywhere { switches: "name-only patch", ..Anywhere::NONE }),
            ("run-view", Anywhere { switches: "exit-status log log-failed verbose", ..Anywhere::NONE }),
            ("run-watch", Anywhere { switches: "exit-status", ..Anywhere::NONE }),
        ],
        doing_more: &[("gist", "--"), ("repo", "-- :")],
        host_options: "--hostname",
        valued_by: &[("issue pr", "-B -H -m -p -r")],
        texts: "-a -b -f -l -n -q -S -t --body --jq --label --message --notes --raw-field --search --template --title",
        commands: CommandOperands::Repositories,
        options: Options {
            valued: "assignee base head hostname limit milestone notes-file repo reviewer target",
            ..Options::new(&[], "R")
        },
        ..closed(Class::Runs, &["gh", "glab"], &GH)
    },
    Program {
        subcommands: true,
        groups: "bundle services",
        alike: "cleanup fetch install kill link ln pin reinstall remove restart rm services-run start stop tap uninstall unlink unpin untap \
            upgrade",
        unlike: "cat config deps desc doctor home info leaves list log ls outdated search update uses",
        anywhere_by: &[(
            "cleanup fetch info install link list pin reinstall uninstall unlink unpin upgrade",
            Anywhere { flags: "qv", switches: "cask casks dry-run formula formulae quiet verbose", ..Anywhere::NONE },
        )],
        leading: true,
        commands: CommandOperands::Paths,
        ..closed(Class::Unknown, &["brew"], &BREW)
    },
    Program {
        subcommands: true,
        groups: "config derivation flake key nar profile realisation registry store",
        commands: CommandOperands::Located,
        ..closed(Class::Runs, &["nix"], &NIX)
    },
    Program { commands: CommandOperands::Located, ..closed(Class::Runs, &["nix-shell"], &NIX) },
    Program {
        local_sockets: true,
        commanded: "*",
        bare: "-Q -X",
        starts: Some(""),
        options: Options::new(&[], "cehpSstT"),
        ..closed(Class::Runs, &["screen"], &SCREEN)
    },
    Program {
        local_sockets: true,
        commanded: "display-popup if if-shell new new-session neww new-window pipe-pane pipep popup respawn-pane respawn-window respawnp respawnw \
            run run-shell split-window splitw",
        unlike: "a at attach attach-session break-pane breakp capture-pane capturep clear-history clearhist delete-buffer deleteb detach \
            detach-client display display-message has has-session join-pane joinp kill-pane kill-server kill-session \
            kill-window killp killw last last-pane last-window lastp link-window linkw list-buffers list-clients list-commands list-keys \
            list-panes list-sessions list-windows ls lsb lsc lscm lsk lsp lsw move-pane move-window movep movew next next-layout \
            next-window nextl prev previous-layout previous-window prevl refresh refresh-client rename rename-session rename-window renamew \
            resize-pane resize-window resizep resizew rotate-window rotatew select-layout select-pane select-window selectl selectp \
            selectw send send-keys send-prefix show show-buffer show-environment show-messages show-options showb showenv showmsgs \
            start start-server swap-pane swap-window swapp swapw switch-client switchc unlink-window unlinkw",
        bare_by: switches::TMUX,
        anywhere_by: &[("capture-pane capturep", Anywhere { flags: "eJNpq", ..Anywhere::NONE })],
        texts: "-n -s -x -y",
        commands: CommandOperands::Separated,
        options: Options::new(
            &[executes("c", "c"), executes("f", "f"), executes("F", "F"), steers("L", "L"), steers("S", "S")],
            "LSt",
        ),
        ..closed(Class::Runs, &["tmux"], &TMUX)
    },
    Program { host_options: "--keyserver", ..over_socket(&["gpg", "gpg2"], &GPG) },
    Program {
        subcommands: true,
        commands: CommandOperands::Located,
        host_options: "--connect --host --proxy --server -connect -host -proxy -server",
        host_of: Some("s_client"),
        options: OPENSSL_OPTIONS,
        ..closed(Class::Unknown, &["openssl"], &OPENSSL)
    },
    Program {
        looks: "-B -F -L -l",
        options: Options::new(&[executes("D", "D"), executes("w", "w")], "abCDEeFfGIiJjKMmNnOPRrSsTtVWwYZz"),
        ..closed(Class::Unknown, &["ssh-keygen"], &SSH_KEYGEN)
    },
    Program {
        subcommands: true,
        alike: "activate attach disable-linger enable-linger kill-session kill-user lock-session terminate-seat terminate-session \
            terminate-user unlock-session",
        unlike: "call capture emit get-property help introspect list list-seats list-sessions list-users monitor seat-status session-status \
            set-property show-seat show-session show-user status tree user-status wait",
        ..over_socket(&["busctl", "gdbus", "loginctl"], &BUS)
    },
    over_socket(&["dbus-send"], &BUS),
    Program { subcommands: true, ..over_socket(&["pactl", "playerctl"], &DESKTOP) },
    over_socket(&["xdg-open"], &DESKTOP),
    over_socket(&["notify-send"], &NOTIFY),
    over_socket(&["ssh-add"], &SSH_ADD),
];

const EDITORS: &[&str] =
    &["ex", "gvim", "nvim", "rview", "rvim", "vi", "view", "vim", "vim.basic", "vim.nox", "vim.tiny", "vimdiff"];

/// Each of their operands may be a command.
const NOTHING: HarmlessOptions = HarmlessOptions { operands: &[("", 0)], ..HarmlessOptions::ONLY_OPERANDS };

/// A program that starts the command in its arguments.
const fn starts(names: &'static [&'static str]) -> Program {
    Program { starts: Some(""), ..runs(names) }
}

/// Each option in front of the command says as whom, where or with what it runs.
const AS_ANOTHER: HarmlessOptions = HarmlessOptions { end: OptionsEnd::Operand(1), ..HarmlessOptions::NONE };

const DESKTOP: HarmlessOptions = HarmlessOptions { long: "help version", ..HarmlessOptions::ONLY_OPERANDS };

const NOTIFY: HarmlessOptions = HarmlessOptions {
    flags: "epw",
    values: "achirtu",
    clusters: true,
    long: "app-name category expire-time hint icon print-id replace-id transient urgency wait",
    ..DESKTOP
};

const SSH_ADD: HarmlessOptions = HarmlessOptions { flags: "lLqv", clusters: true, ..DESKTOP };

/// A setting names programs that it runs, folders, and whether it only simulates.
const APT: HarmlessOptions = HarmlessOptions {
    flags: "dfhmqsVy",
    clusters: true,
    long: "all-versions assume-yes download-only dry-run fix-broken fix-missing full help installed names-only no-install-recommends \
        no-upgrade only-upgrade quiet simulate upgradable upgradeable verbose-versions version with-new-pkgs yes",
    bare: "all-versions assume-yes auto-remove autoremove download-only dry-run fix-broken fix-missing full help install-recommends \
        install-suggests installed names-only no-install-recommends no-install-suggests no-upgrade only-upgrade purge quiet reinstall \
        simulate upgradable upgradeable verbose-versions with-new-pkgs yes",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Every other option may send something, write a file, delete a branch, or give a command options of `git`.
const GH: HarmlessOptions = HarmlessOptions {
    flags: "Lq0123456789",
    clusters: true,
    long: "add-assignee add-label add-reviewer app assignee author base body branch color commit created draft event \
        exclude-drafts exit-status fail-fast fill head help interval jq label language limit log log-failed match merge merged \
        milestone name-only order page paginate patch per-page rebase remove-assignee remove-label required reviewer \
        search sort squash state status title topic updated user verbose version watch workflow",
    within: &[
        ("issue-create", "abBdHlmprt", ""),
        ("pr-create", "abBdfHlmprt", ""),
        ("issue-comment pr-comment pr-review", "b", ""),
        ("issue-list pr-list", "aABdHlmRsSt", "json repo template"),
        ("issue-view pr-view", "cR", "comments json repo template"),
        ("issue-status pr-checks pr-diff pr-status release-list release-view", "R", "json repo template"),
        ("label-list", "", "json"),
        ("repo-list", "", "json template visibility"),
        ("repo-view search", "", "json template"),
        ("workflow-list", "a", "all json template"),
        ("run-list", "abceRsuw", "json repo template"),
        ("run-view", "Rj", "job json repo template"),
    ],
    bare: "clobber draft fail-on-no-commits fill generate-notes latest prerelease private public verify-tag",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const RENAME: HarmlessOptions = HarmlessOptions {
    flags: "0dfnov",
    clusters: true,
    long: "filename force help no-act no-overwrite nofullpath nono null verbose version",
    switches: "filename force help no-act no-overwrite nofullpath nono null verbose version",
    ..HarmlessOptions::NONE
};

const BREW: HarmlessOptions = HarmlessOptions {
    flags: "hqv1",
    clusters: true,
    long: "cask casks dry-run formula formulae full-name help json installed quiet verbose version versions",
    bare: "cask casks dry-run f force formula formulae full-name greedy help installed quiet verbose versions zap",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Each operand is a package, from wherever its address says.
const NIX: HarmlessOptions = HarmlessOptions {
    flags: "Lv",
    clusters: true,
    long: "dry-run help json offline print-build-logs quiet verbose version",
    switches: "dry-run help json offline print-build-logs quiet verbose version",
    targets: true,
    ..HarmlessOptions::NONE
};

/// Another option gives commands, a file of them, or the shell that it starts, or writes a file. Behind an operand the words are a command's.
const SCREEN: HarmlessOptions = HarmlessOptions {
    flags: "AaDdilmqrRUvx",
    values: "ehpSTt",
    clusters: true,
    end: OptionsEnd::Operand(1),
    ..HarmlessOptions::NONE
};

/// The first operand is its subcommand. Behind the next one are keys, or a command.
const TMUX: HarmlessOptions = HarmlessOptions {
    perhaps_valued: "lnsSxy0123456789",
    clusters: true,
    within: &[
        // Behind `-t` is a pane.
        ("capture-pane capturep", "CeJNpPqt", ""),
        ("display display-message", "pv", ""),
        ("list-keys list-panes list-sessions list-windows ls lsk lsp lsw", "ast", ""),
        ("new new-session", "dP", ""),
        ("new-window neww", "abdkP", ""),
        ("send send-keys", "HlMR", ""),
        ("split-window splitw", "bdfhPvZ", ""),
    ],
    end: OptionsEnd::Operand(2),
    ..HarmlessOptions::NONE
};

const BUS: HarmlessOptions = HarmlessOptions {
    flags: "el",
    clusters: true,
    long: "help json list no-legend no-pager print-reply quiet session system user verbose version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Any other option may give commands, or a file of them.
const EDITOR: HarmlessOptions = HarmlessOptions {
    flags: "nRybZ",
    clusters: true,
    long: "clean headless noplugin",
    switches: "clean headless noplugin",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const EMACS: HarmlessOptions = HarmlessOptions {
    flags: "qQ",
    clusters: true,
    long: "batch no-init-file no-site-file quick",
    switches: "batch no-init-file no-site-file quick",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const GPG: HarmlessOptions = HarmlessOptions {
    flags: "aqv",
    clusters: true,
    long: "armor batch no-tty quiet verbose with-colons with-fingerprint",
    switches: "armor batch no-tty quiet verbose with-colons",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Files that a call writes. A rule must spell them even if it names no subcommand.
const OPENSSL_OPTIONS: Options = Options {
    valued: "config connect engine host keyout out path port provider proxy server unix url",
    guarded: &[
        writes("", "out"),
        writes("", "keyout"),
        writes("", "writerand"),
        writes("", "CAcreateserial"),
        writes("", "CAserial"),
        writes("", "cacertsout"),
        writes("", "certout"),
        writes("", "chainout"),
        writes("", "crlout"),
        writes("", "extracertsout"),
        writes("", "newkeyout"),
        writes("", "rspout"),
        writes("", "certsout"),
        writes("", "keylogfile"),
        writes("", "msgfile"),
        writes("", "reqout"),
        writes("", "respout"),
        writes("", "sess_out"),
    ],
    harmless: &["outform"],
    one_dash: true,
    ..Options::NONE
};

/// Every other option may load a library, write a file, or connect to a host.
const OPENSSL: HarmlessOptions = HarmlessOptions {
    long: "1 2 4 6 a A addext aes-128-cbc aes-192-cbc aes-256-cbc aes-256-ctr aes128 aes192 aes256 algorithm alias alpn attime \
        base64 batch binary brief C c CA CAfile CAkey CApath CRLfile cacerts cert certfile certopt certs checkend checkemail checkhost \
        checkip ciphersuites cipher clcerts crl crlf crl_check crl_check_all crlnumber curves d dates days debug dhparam digest dsaparam e \
        email enddate evp ex ext export extensions extfile fingerprint genkey groups hash help hex hmac i ign_eof in index \
        info inform inkey issuer issuer_hash issuerhash iter iv k K key keyform kfile length lastupdate legacy list mac macopt \
        maxprot md md5 minprot modulus msg name name_hash nameopt newkey new newcert newreq nextupdate no_nonce no_tls1 no_tls1_1 \
        no_tls1_2 no_tls1_3 no-CAfile no-CApath nocerts nocommonname nodes noenc nointern nokeys noiter nomaciter nonce noout noprompt \
        nosalt noverify ocsp_uri ocspid offset options outform P param_enc partial_chain pass passin passout passwd pbkdf2 pk7out \
        pkeyopt policy prexit prverify pubin pubkey pubout purpose quiet r reqexts req_text resp_text respin rev rsigopt rsa-sm2 S s salt \
        seconds security_debug serial serverinfo serverpref servername set_serial sha1 sha224 sha256 sha384 sha512 sha3-256 showcerts \
        show_chain sigalgs signature sigopt sign signed_certs startdate starttls state status strict strparse subject subject_hash subj \
        text tls1 tls1_1 tls1_2 tls1_3 tlsextdebug trusted untrusted utf8 v V VAfile verify verify_depth verify_email verify_hostname \
        verify_ip verify_return_error verify_other verify_quiet version x509 x509_strict",
    switches: "1 2 4 6 a A aes-128-cbc aes-192-cbc aes-256-cbc aes-256-ctr aes128 aes192 aes256 base64 batch binary brief C c cacerts check \
        clcerts crlf crl_check crl_check_all d dates debug e email enddate ex export fingerprint hash help hex i ign_eof info issuer \
        issuer_hash issuerhash lastupdate legacy list md5 modulus msg new newcert newreq nextupdate no_nonce no_tls1 no_tls1_1 no_tls1_2 \
        no_tls1_3 no-CAfile no-CApath nocerts nocommonname nodes noenc nointern nokeys noiter nomaciter nonce noout noprompt nosalt \
        noverify ocsp_uri ocspid partial_chain pbkdf2 prexit pubin pubkey pubout purpose quiet r req_text resp_text rev salt security_debug serial serverpref \
        sha1 sha224 sha256 sha384 sha512 sha3-256 showcerts show_chain startdate state status strict subject subject_hash text tls1 tls1_1 \
        tls1_2 tls1_3 tlsextdebug utf8 v V verify_return_error verify_quiet version x509 x509_strict",
    // An address, and a library.
    operands: &[("engine s_client", 1)],
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const SSH_KEYGEN: HarmlessOptions = HarmlessOptions {
    flags: "BeilLqvy",
    values: "abCEfFmNPt",
    clusters: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};
