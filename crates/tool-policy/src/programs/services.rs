//! Containers, clusters, and the services of this machine.

use super::{
    Anywhere, Class, CommandOperands, ContainerOptions, HarmlessOptions, Names, Options, OptionsEnd, Program, closed,
    switches,
};

/// The subcommands of `docker` that do the same with each operand. What shows a container, a secret or what they print shows it of each.
macro_rules! alike {
    () => {
        "checkpoint cleanup compose-build compose-create compose-logs compose-ps compose-top connect demote disable disconnect down enable \
            imagetools-create init inspect kill manifest-create mount node-ps pause promote pull push remove restart restore rm rmi rollback save scale \
            service-logs service-ps start stats stop umount unmount unpause untag up update upgrade wait"
    };
}

/// A program that makes containers.
const fn containers(names: &'static [&'static str]) -> Program {
    Program {
        local_sockets: true,
        subcommands: true,
        alike: alike!(),
        unlike: "attach build commit config cp create diff events export history images import info load login logout logs ls port ps \
            rename search tag top version",
        valued_by: &[
            ("down restart stop up", "-t --time --timeout"),
            ("inspect", "-f --format --type"),
            ("logs service", "-n --since --tail --until"),
        ],
        bare_by: switches::CONTAINERS,
        anywhere_by: ANYWHERE,
        starts: Some("exec run"),
        terminal: Some(("exec run", "itT", "interactive tty")),
        own_operand: true,
        host_options: "-H --host",
        host_of: Some("login logout"),
        texts: "-e -l -m --author --env --filter --format --label --message",
        container: Some(&CONTAINER),
        commands: CommandOperands::Contexts,
        ..closed(Class::Runs, names, &CONTAINERS)
    }
}

/// Options of their subcommands that mean the same in every position.
const ANYWHERE: &[(Names, Anywhere)] = &[
    (
        "compose-logs logs service-logs",
        Anywhere {
            flags: "ft",
            values: "n",
            switches: "details follow no-log-prefix timestamps",
            valued: "since tail until",
            pairs: "since tail until",
            ..Anywhere::NONE
        },
    ),
    (
        "compose-up",
        Anywhere {
            flags: "d",
            values: "t",
            switches: "build detach force-recreate no-build no-deps no-recreate no-start quiet-pull timestamps wait",
            ..Anywhere::NONE
        },
    ),
    (
        "compose-restart compose-stop restart stop",
        Anywhere { values: "t", switches: "no-deps", valued: "time timeout", pairs: "time timeout", ..Anywhere::NONE },
    ),
    ("compose-build", Anywhere { flags: "q", switches: "no-cache quiet", ..Anywhere::NONE }),
    ("compose-pull pull push", Anywhere { flags: "q", switches: "ignore-pull-failures quiet", ..Anywhere::NONE }),
    (
        "container-inspect inspect",
        Anywhere { flags: "s", values: "f", switches: "size", valued: "format", pairs: "format", ..Anywhere::NONE },
    ),
    ("stats", Anywhere { switches: "no-stream no-trunc", ..Anywhere::NONE }),
];

/// The same for `podman`, where `-n` is a switch behind `logs`.
const ANYWHERE_OF_PODMAN: &[(Names, Anywhere)] = &[
    (
        "logs",
        Anywhere {
            flags: "fnt",
            switches: "follow names timestamps",
            valued: "since tail until",
            pairs: "since tail until",
            ..Anywhere::NONE
        },
    ),
    ANYWHERE[0],
    ANYWHERE[1],
    ANYWHERE[2],
    ANYWHERE[3],
    ANYWHERE[4],
    ANYWHERE[5],
    ANYWHERE[6],
];

const GROUPS: Names = "builder buildx buildx-imagetools compose config container context generate image kube machine manifest network node plugin pod \
            quadlet secret service stack swarm system system-connection trust trust-key trust-signer volume";

pub(super) const TABLE: &[Program] = &[
    Program { groups: GROUPS, ..containers(&["docker"]) },
    // Its `logs` has no letter for a number of lines, and shows several containers.
    Program {
        groups: GROUPS,
        alike: concat!("logs ", alike!()),
        valued_by: &[
            ("down restart stop up", "-t --time --timeout"),
            ("inspect", "-f --format --type"),
            ("service", "-n --since --tail --until"),
            ("logs", "--since --tail --until"),
        ],
        anywhere_by: ANYWHERE_OF_PODMAN,
        ..containers(&["podman"])
    },
    Program {
        alike: "build create down kill logs pause pull push restart rm scale start stats stop top unpause up wait",
        ..containers(&["docker-compose"])
    },
    Program {
        subcommands: true,
        // A further name may be that of a secret, which is shown.
        alike: "approve autoscale cordon delete deny describe drain edit expose get patch pause restart resume rollback scale \
            uncordon undo add-cluster-role-to-group add-cluster-role-to-user add-role-to-group add-role-to-user add-scc-to-group add-scc-to-user",
        unlike: "api-resources api-versions apply attach can-i completion cp current-context diff dump events explain get-clusters \
            get-contexts get-users help history kustomize list logs node nodes options po pod pods port-forward proxy reconcile rename-context \
            replace set-cluster set-context set-credentials status use-context version view wait whoami",
        anywhere_by: &[
            (
                "logs",
                Anywhere {
                    flags: "fp",
                    values: "cn",
                    switches: "all-containers follow prefix previous timestamps",
                    valued: "container namespace since tail",
                    pairs: "container namespace since tail",
                    ..Anywhere::NONE
                },
            ),
            (
                "delete",
                Anywhere {
                    values: "n",
                    switches: "ignore-not-found wait",
                    valued: "namespace",
                    pairs: "namespace",
                    ..Anywhere::NONE
                },
            ),
            (
                "get",
                Anywhere {
                    values: "no",
                    switches: "no-headers show-kind show-labels",
                    valued: "namespace output",
                    pairs: "namespace output",
                    ..Anywhere::NONE
                },
            ),
        ],
        assigning: "annotate label set-env set-image set-resources set-selector set-serviceaccount set-subject taint",
        groups: "adm alpha auth certificate cluster-info config create create-secret create-service plugin policy rollout \
            set top",
        commanded: "create-cj create-cronjob create-deploy create-deployment create-job debug run",
        starts: Some("exec run"),
        terminal: Some(("exec", "it", "stdin tty")),
        own_operand: true,
        host_options: "-s --server",
        texts: "-l -o -p --field-selector --output --patch --selector --template",
        // Behind `--` is a command.
        doing_more: &[("delete", "-A --all --all-namespaces"), ("adm", "--")],
        commands: CommandOperands::Fetched,
        options: KUBECTL_OPTIONS,
        ..closed(Class::Runs, &["kubectl", "oc"], &KUBECTL)
    },
    // Their own programs of that name.
    Program { starts: Some(""), embeds: true, ..closed(Class::Runs, &["k3s", "microk8s"], &STARTER) },
    Program {
        subcommands: true,
        groups: "dependency get plugin registry repo search show",
        alike: "del delete fetch pull rollback template test un uninstall",
        unlike: "create dependency env get history install lint list ls package push status upgrade verify version",
        commands: CommandOperands::Charts,
        options: Options {
            valued: "history-max kube-context kubeconfig max namespace output repo revision set set-file set-string timeout values",
            ..Options::new(&[], "fno")
        },
        ..closed(Class::Runs, &["helm"], &HELM)
    },
    Program {
        subcommands: true,
        groups: "metadata plugins providers state workspace",
        alike: "state-rm",
        unlike: "apply build console destroy fix fmt force-unlock get graph help import init inspect list login logout lock mirror modules mv \
            output plan providers pull push refresh replace-provider schema show test validate version",
        host_of: Some("login logout"),
        options: Options::ONE_DASH,
        ..closed(Class::Unknown, &["packer", "terraform", "tofu"], &TERRAFORM)
    },
    Program {
        local_sockets: true,
        subcommands: true,
        alike: "add-requires add-wants clean condreload condrestart condstop disable edit enable force-reload freeze import-environment isolate \
            kill link mask preset reenable reload reload-or-restart reset-failed restart revert start stop thaw try-reload-or-restart \
            try-restart unmask unset-environment",
        unlike: "cat get-default help is-active is-enabled is-failed list-automounts list-dependencies list-jobs list-paths list-sockets \
            list-timers list-unit-files list-units show show-environment status",
        assigning: "set-environment set-property",
        host_options: "-H --host",
        commands: CommandOperands::Paths,
        ..closed(Class::Unknown, &["systemctl"], &SYSTEMCTL)
    },
    Program {
        local_sockets: true,
        commands: CommandOperands::Alternatives,
        ..closed(Class::Unknown, &["journalctl"], &JOURNALCTL)
    },
];

const CONTAINER: ContainerOptions = ContainerOptions {
    subcommands: "create exec run",
    groups: "compose container",
    valued: "-c -f -H -l -p --ansi --cgroup-manager --config --connection --conmon --context --env-file --events-backend --file --hooks-dir \
        --host --identity --imagestore --log-level --module --network-config-dir --out --parallel --profile --progress \
        --project-directory --project-name --root --runroot --runtime --ssh --storage-driver --storage-opt --tlscacert --tlscert \
        --tlskey --tmpdir --url --volumepath",
    switches: "-D -h -r -v --all-resources --compatibility --debug --dry-run --help --no-ansi --noout --remote --syslog --tls --tlsverify \
        --transient-store --verbose --version",
    flags: "dPiqtT",
    // `-l` has none behind `podman exec`.
    values: "acehmpuvw",
    own_switches: "build detach disable-content-trust env-host help http-proxy init interactive no-TTY no-deps no-healthcheck no-hostname \
        no-hosts oom-kill-disable passwd privileged publish-all quiet quiet-build quiet-pull read-only read-only-tmpfs remove-orphans \
        replace rm rmi rootfs service-ports sig-proxy tls-verify tty unsetenv-all use-aliases use-api-socket",
    own_valued: "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-shares \
        cpus cpuset-cpus cpuset-mems detach-keys device device-cgroup-rule dns dns-option dns-search entrypoint env env-file expose gpus group-add \
        health-cmd health-interval health-retries health-timeout hostname ip ip6 ipc label label-file link log-driver log-opt \
        mac-address memory memory-reservation memory-swap mount name network network-alias oom-score-adj pid pids-limit platform \
        publish restart runtime security-opt shm-size stop-signal stop-timeout sysctl tmpfs ulimit user userns uts volume \
        volumes-from workdir",
    harmless: "-d -e -i -q -t -T -w --detach --env --help --init --interactive --name --no-deps --quiet --read-only --rm --tty --workdir",
};

/// The options of the subcommands that make no container. They change what is shown, or how much is done at once.
const CONTAINERS: HarmlessOptions = HarmlessOptions {
    flags: "hq0123456789",
    clusters: true,
    long: "ansi debug format help no-color progress quiet version",
    within: &[
        ("ls ps", "adflns", "all filter last latest network no-trunc services size status"),
        ("images", "af", "all digests filter no-trunc tree"),
        ("logs service-logs", "fnt", "details follow no-log-prefix since tail timestamps until"),
        ("inspect", "fs", "size type"),
        ("stats", "a", "all no-stream no-trunc"),
        ("port", "", ""),
        ("image-ls network-ls volume-ls", "afls", "all digests filter last latest no-trunc size"),
        ("system-df", "v", "verbose"),
        ("history image-history", "", "no-trunc"),
        ("search", "", "limit no-trunc"),
        ("events system-events", "", "since until"),
        ("network-create volume-create", "d", "attachable driver label name"),
        ("build", "t", "build-arg label no-cache pull rm tag target"),
        ("pull", "", "ignore-pull-failures include-deps"),
        (
            "up",
            "dt",
            "abort-on-container-exit always-recreate-deps build detach force-recreate no-build no-deps no-recreate no-start pull \
             quiet-pull scale timeout timestamps wait wait-timeout",
        ),
        ("down restart start stop", "t", "no-deps time timeout wait"),
        ("config", "", "environment hash images profiles services volumes"),
        ("exec run", "T", ""),
    ],
    bare: "abort-on-container-exit always-recreate-deps build d detach force-recreate help no-build no-color no-deps no-recreate no-start \
        no-trunc quiet quiet-pull timestamps version wait",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const KUBECTL_OPTIONS: Options = Options {
    values: "cLlno",
    loose_names: true,
    valued: "as as-group as-uid cache-dir certificate-authority client-certificate client-key cluster context grace-period kubeconfig namespace \
        request-timeout server timeout tls-server-name token user",
    anywhere: Anywhere { values: "n", valued: "namespace", pairs: "namespace", ..Anywhere::NONE },
    ..Options::NONE
};

/// Every other option may lead to another cluster, to another user of it, or to a file that names programs.
const KUBECTL: HarmlessOptions = HarmlessOptions {
    flags: "ARhiqt0123456789",
    perhaps_valued: "fpw",
    values: "cLlnov",
    clusters: true,
    long: "all all-containers all-namespaces allow-missing-template-keys cascade chunk-size container current-replicas dry-run \
        field-manager field-selector filename follow grace-period help ignore-not-found label-columns limit-bytes local \
        max-log-requests namespace no-headers output output-watch-events overwrite patch pod-running-timeout prefix previous \
        quiet record recursive replicas request-timeout resource-version revision save-config selector server-print server-side \
        show-kind show-labels show-managed-fields since since-time sort-by stdin tail template timeout timestamps to-revision \
        tty type v validate wait warnings-as-errors watch watch-only",
    within: &[
        ("top-po top-pod top-pods", "", "containers sum"),
        ("status", "", "suggest"),
        ("whoami", "", "show-console show-context show-server"),
        ("api-resources", "", "api-group namespaced"),
        ("events", "", "for types"),
    ],
    bare: "all all-containers all-namespaces cascade delete-emptydir-data disable-eviction dry-run follow force help ignore-daemonsets \
        ignore-not-found local no-headers now overwrite previous quiet record recursive server-side show-kind show-labels \
        show-managed-fields timestamps validate wait warnings-as-errors watch watch-only",
    adding: "-n --namespace",
    adding_but_to: Some(
        "api-resources api-versions auth cluster-info config describe diff events explain get kustomize logs options \
         rollout-history rollout-status top version wait",
    ),
    end: OptionsEnd::Dashes,
    ..HarmlessOptions::NONE
};

const STARTER: HarmlessOptions = HarmlessOptions { end: OptionsEnd::Operand(1), ..HarmlessOptions::NONE };

/// Every other option may lead to another cluster or to charts from elsewhere, or run a program.
const HELM: HarmlessOptions = HarmlessOptions {
    flags: "aAhiq",
    values: "fno",
    clusters: true,
    long: "all all-namespaces atomic cleanup-on-fail debug description dry-run help history-max max namespace no-headers output short \
        timeout wait wait-for-jobs",
    bare: "all all-namespaces atomic cleanup-on-fail create-namespace debug devel dry-run force help install keep-history no-headers no-hooks \
        reset-values reuse-values short wait wait-for-jobs",
    within: &[
        (
            "install template upgrade",
            "",
            "create-namespace dependency-update devel force generate-name install no-hooks reset-values reuse-values set set-file set-string \
             values version",
        ),
        ("list ls", "", "filter deployed failed pending superseded uninstalled"),
        ("status get-all get-hooks get-manifest get-notes get-values", "", "revision show-resources show-desc"),
        ("lint", "", "quiet strict with-subcharts"),
        ("search-hub search-repo", "l", "devel regexp version versions"),
        ("show-all show-chart show-crds show-readme show-values", "", "devel version"),
    ],
    // Other values are another release.
    adding: "-A -f -n --all-namespaces --namespace --set --set-file --set-string --values",
    adding_but_to: Some("env get history lint list ls search show status template version"),
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Files of variables, plans and states decide what is changed.
const TERRAFORM: HarmlessOptions = HarmlessOptions {
    within: &[("init", "", "backend upgrade"), ("plan", "", "target")],
    long: "compact-warnings detailed-exitcode diff check help input json list lock-timeout no-color parallelism raw recursive refresh \
        version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const SYSTEMCTL: HarmlessOptions = HarmlessOptions {
    flags: "alqr0123456789",
    values: "nopt",
    clusters: true,
    long: "all failed full help lines no-ask-password no-block no-legend no-pager no-wall output plain property quiet show-types state system type user \
        value version",
    switches: "all failed full no-ask-password no-block no-legend no-pager no-wall plain quiet show-types system user value",
    bare: "dry-run f force global no-reload now runtime wait",
    ..HarmlessOptions::NONE
};

const JOURNALCTL: HarmlessOptions = HarmlessOptions {
    flags: "abefkmqrx0123456789",
    values: "gnopStuU",
    clusters: true,
    long: "all boot catalog dmesg facility follow full grep help identifier lines list-boots no-full no-hostname no-pager \
        no-tail output output-fields pager-end priority quiet reverse since system unit until user user-unit utc version",
    switches: "all catalog dmesg follow full no-full no-hostname no-pager no-tail pager-end quiet reverse system user utc",
    ..HarmlessOptions::NONE
};
