//! Databases: their shells, and the tools that copy them.

use super::{
    Class, CommandOperands, HarmlessOptions, Options, OptionsEnd, Program, ScriptOperands, alters, closed, scripts,
};

pub(super) const TABLE: &[Program] = &[
    // Commands such as `.trace` write a file whatever the options are.
    Program {
        looks: "-readonly --readonly",
        held_by_both: Some(("readonly", "safe")),
        options: DATABASE_FILE_OPTIONS,
        ..closed(Class::Runs, &["sqlite3"], &DATABASE_FILE)
    },
    Program { options: DATABASE_FILE_OPTIONS, ..closed(Class::Runs, &["duckdb"], &DATABASE_FILE) },
    Program {
        local_sockets: true,
        host_options: "-h --host",
        commands: CommandOperands::Connections,
        texts: "-c -F -P -R -T -v --command --field-separator --pset --record-separator --set --variable",
        options: PSQL_OPTIONS,
        ..closed(Class::Unknown, &["psql"], &PSQL)
    },
    postgres(&["pg_dump", "pg_dumpall", "pg_restore"], "dfFhnNpSTU", &PG_DUMP),
    postgres(&["clusterdb", "createdb", "dropdb", "reindexdb", "vacuumdb"], "hpU", &PG_TOOL),
    postgres(&["pg_isready"], "hpU", &PG_TOOL),
    postgres(&["pg_basebackup", "pgbench"], "hpU", &HarmlessOptions::ONLY_OPERANDS),
    Program {
        local_sockets: true,
        host_options: "-h --host",
        options: MYSQL_OPTIONS,
        ..closed(Class::Unknown, &["mariadb", "mysql"], &MYSQL)
    },
    Program {
        host_options: "-h --host",
        options: Options { attached: "p", loose_names: true, ..Options::new(&[], "PShu") },
        ..closed(Class::Unknown, &["mariadb-dump", "mysqldump"], &MYSQL_DUMP)
    },
    Program {
        host_options: "-h --host",
        options: Options {
            attached: "p",
            loose_names: true,
            valued: "host port socket user",
            ..Options::new(&[], "PShu")
        },
        ..closed(Class::Unknown, &["mariadb-admin", "mysqladmin"], &MYSQL_ADMIN)
    },
    Program {
        local_sockets: true,
        host_options: "-h",
        options: Options::new(&[], "adhinprsu"),
        ..closed(Class::Unknown, &["redis-cli", "valkey-cli"], &REDIS)
    },
];

/// A tool of PostgreSQL. `values`: see [`Options::values`].
const fn postgres(names: &'static [&'static str], values: &'static str, harmless: &'static HarmlessOptions) -> Program {
    Program {
        host_options: "-h --host",
        commands: CommandOperands::Connections,
        options: Options::new(&[], values),
        ..closed(Class::Unknown, names, harmless)
    }
}

/// Commands of its own run programs and write files, so each option that gives one, or a file of them, is a script.
const DATABASE_FILE_OPTIONS: Options = Options {
    guarded: &[
        scripts("", "cmd"),
        scripts("c", "c"),
        scripts("", "f"),
        scripts("", "init"),
        scripts("A", "A"),
        scripts("s", "s"),
    ],
    harmless: &["column", "csv", "safe", "separator", "stats"],
    one_dash: true,
    scripts: ScriptOperands::BehindFirst(
        "cmd init separator nullvalue newline maxsize mmap vfs heap escape c f file storage-version",
    ),
    ..Options::NONE
};

const DATABASE_FILE: HarmlessOptions = HarmlessOptions {
    long: "ascii bail batch box c cmd column csv echo f header help html init json line list markdown maxsize mmap newline nofollow noheader \
        nullvalue quote readonly s safe separator stats table tabs version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const PSQL_OPTIONS: Options = Options {
    valued: "dbname host port username",
    scripts: ScriptOperands::None,
    ..Options::new(
        &[
            scripts("c", "command"),
            scripts("f", "file"),
            // Behind a `|` is a command.
            scripts("o", "output"),
            scripts("L", "log-file"),
            alters("v", "set"),
            alters("", "variable"),
            alters("P", "pset"),
        ],
        "cdfFhLopPRTUv",
    )
};

/// Another option of a database's programs leads to another server or database, which then gets the password, or acts as another user.
const PSQL: HarmlessOptions = HarmlessOptions {
    flags: "1?AabEeHlnqSstVwWxXz0",
    values: "cFfLoPRTv",
    clusters: true,
    long: "command csv echo-all echo-errors echo-hidden echo-queries expanded field-separator field-separator-zero file help html list \
        log-file no-align no-password no-psqlrc no-readline output password pset quiet record-separator record-separator-zero \
        set single-line single-step single-transaction table-attr tuples-only variable version",
    switches: "csv echo-all echo-errors echo-hidden echo-queries expanded field-separator-zero help html list no-align no-password \
        no-psqlrc no-readline password quiet record-separator-zero single-line single-step single-transaction tuples-only version",
    // The second one is a user.
    operands: &[("", 1)],
    gives_operand: "-d --dbname",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const PG_DUMP: HarmlessOptions = HarmlessOptions {
    flags: "1?abBOsvVwWx",
    perhaps_valued: "elt",
    // Letters with a value, whichever of these programs takes them.
    values: "EfFIjLnNPTZ",
    clusters: true,
    long: "blobs column-inserts compress data-only encoding exclude-schema exclude-table exclude-table-data \
        exit-on-error extension file format globals-only help index inserts jobs large-objects list no-acl no-blobs \
        no-comments no-data-for-failed-tables no-owner no-password no-privileges no-publications no-subscriptions \
        no-tablespaces on-conflict-do-nothing password quote-all-identifiers roles-only rows-per-insert schema schema-only \
        section serializable-deferrable single-transaction strict-names table tablespaces-only trigger use-list verbose version",
    switches: "blobs column-inserts data-only exit-on-error globals-only help inserts large-objects list no-acl no-blobs no-comments \
        no-data-for-failed-tables no-owner no-password no-privileges no-publications no-subscriptions no-tablespaces \
        on-conflict-do-nothing password quote-all-identifiers roles-only schema-only serializable-deferrable single-transaction \
        strict-names tablespaces-only verbose version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const PG_TOOL: HarmlessOptions = HarmlessOptions {
    flags: "?eiqVwWzZ",
    values: "jt",
    clusters: true,
    long: "analyze analyze-in-stages analyze-only echo help if-exists interactive jobs no-password password progress quiet \
        skip-locked table time timeout verbose version",
    switches: "analyze analyze-in-stages analyze-only echo help if-exists interactive no-password password progress quiet skip-locked \
        verbose version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const MYSQL_OPTIONS: Options = Options {
    attached: "p",
    loose_names: true,
    scripts: ScriptOperands::None,
    ..Options::new(
        &[
            scripts("e", "execute"),
            scripts("", "init-command"),
            scripts("", "init-command-add"),
            scripts("", "tee"),
            scripts("", "pager"),
            alters("", "delimiter"),
        ],
        "DPSehu",
    )
};

const MYSQL: HarmlessOptions = HarmlessOptions {
    operands: &[("", 1)],
    gives_operand: "-D --database",
    flags: "?ABbCEfGHIiNnqrstVvwWX",
    values: "ep",
    clusters: true,
    long: "auto-rehash batch column-names column-type-info comments compress connect-timeout default-character-set delimiter execute \
        force help html line-numbers no-auto-rehash no-beep password quick raw reconnect safe-updates show-warnings sigint-ignore \
        silent skip-auto-rehash skip-column-names skip-line-numbers table unbuffered verbose version vertical wait xml",
    bare: "auto-rehash batch column-names column-type-info comments compress force help html line-numbers no-auto-rehash no-beep password \
        quick raw reconnect safe-updates show-warnings sigint-ignore silent skip-auto-rehash skip-column-names skip-line-numbers table \
        unbuffered verbose version vertical wait xml",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const MYSQL_DUMP: HarmlessOptions = HarmlessOptions {
    flags: "?aCcdEeiKlnqQrRsVvwX",
    values: "p",
    clusters: true,
    long: "add-drop-table add-locks column-statistics compact complete-insert compress create-options default-character-set \
        disable-keys dump-date events extended-insert help hex-blob ignore-table insert-ignore lock-tables no-create-info \
        no-data no-tablespaces opt order-by-primary password quick quote-names relative result-file routines set-charset \
        set-gtid-purged silent single-transaction skip-add-drop-table skip-comments skip-dump-date skip-extended-insert \
        skip-lock-tables skip-opt skip-triggers sleep triggers tz-utc verbose version xml",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Each operand is a further command.
const MYSQL_ADMIN: HarmlessOptions = HarmlessOptions {
    flags: "?bCEnrsvV0123456789",
    values: "p",
    clusters: true,
    long: "compress connect-timeout help no-beep password relative silent verbose version vertical",
    switches: "compress help no-beep password relative silent verbose version vertical",
    targets: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// The words behind its command are the command's.
const REDIS: HarmlessOptions = HarmlessOptions {
    flags: "3",
    clusters: true,
    long: "csv help json no-auth-warning no-raw quoted-json raw version",
    end: OptionsEnd::Operand(1),
    ..HarmlessOptions::NONE
};
