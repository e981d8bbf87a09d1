//! Programs that connect to hosts. Only a few known options of `curl` and `wget` are harmless. A rule must spell every
//! other one.

use super::{Class, CommandOperands, Names, Options, Program, Syntax, steers};

/// A program that asks for the host in its first operand. `values`: letters whose value may be a number behind the host.
const fn asks(names: &'static [&'static str], values: &'static str) -> Program {
    Program {
        host_of: Some(""),
        commands: CommandOperands::OneHost,
        options: Options::new(&[], values),
        ..Program::new(Class::Fetches, names)
    }
}

pub(super) const TABLE: &[Program] = &[
    Program {
        syntax: Syntax::Fetch(&CURL),
        host_options: "-x --connect-to --preproxy --proxy --resolve --socks4 --socks4a --socks5 --socks5-hostname",
        writes_operands: true,
        instructed_by: "-K -T -b -E --config --upload-file --netrc-file --cookie --cert --key --cacert --proxy-cert --proxy-key \
            --proxy-cacert --crlfile --etag-compare --variable",
        ..Program::new(Class::Fetches, &["curl"])
    },
    Program {
        syntax: Syntax::Fetch(&WGET),
        host_options: "-e --execute",
        writes_operands: true,
        instructed_by: "-i --input-file --config --post-file --body-file --load-cookies --certificate --private-key",
        ..Program::new(Class::Fetches, &["wget"])
    },
    // A file of names to ask for.
    Program {
        host_options: "-q -x",
        host_of: Some(""),
        commands: CommandOperands::Names,
        ..Program::with(Class::Fetches, &["dig"], Options::new(&[steers("f", "f")], "bcfkmpqtxy"))
    },
    asks(&["host", "nslookup", "tracepath", "traceroute", "traceroute6"], ""),
    asks(&["ping", "ping6"], "ciswW"),
    Program { host_options: "-h --host", ..asks(&["whois"], "") },
    // A file of hosts.
    Program { helpers: &["mtr-packet"], options: Options::new(&[steers("F", "filename")], "F"), ..asks(&["mtr"], "") },
    Program { options: Options::new(&[steers("f", "f")], "fptT"), ..asks(&["ssh-keyscan"], "") },
];

/// Options of one program, with those that go no further than a plain request.
pub(crate) struct FetchOptions {
    /// Letters without a value.
    pub flags: &'static str,
    /// Letters with a value.
    pub values: &'static str,
    /// Multi-letter words with a meaning of their own.
    pub words: &'static [&'static str],
    pub long: Names,
    pub long_values: Names,
    /// Short names of long options, so that a rule may spell either.
    pub names: &'static [(&'static str, &'static str)],
    /// Options that write files.
    pub writing: Names,
    /// Options that the description of a rule mentions.
    pub mentioned: Names,
    /// Whether the program saves its downloads and follows redirections by default.
    pub saves_and_follows: bool,
}

/// The options of `curl`.
const CURL: FetchOptions = FetchOptions {
    flags: "sSfiIvGgN46#0V",
    values: "XHdmArYyw",
    words: &[],
    long: "silent show-error fail fail-with-body fail-early include head verbose get globoff no-buffer ipv4 ipv6 \
        compressed http1.0 http1.1 http2 progress-bar no-progress-meter version tlsv1.2 tlsv1.3 retry-all-errors \
        retry-connrefused path-as-is raw",
    long_values: "request header data data-raw data-binary data-ascii data-urlencode json max-time \
        connect-timeout user-agent range retry retry-delay retry-max-time write-out max-filesize speed-limit \
        speed-time",
    names: &[
        ("s", "silent"),
        ("S", "show-error"),
        ("f", "fail"),
        ("i", "include"),
        ("v", "verbose"),
        ("g", "globoff"),
        ("N", "no-buffer"),
        ("4", "ipv4"),
        ("6", "ipv6"),
        ("#", "progress-bar"),
        ("0", "http1.0"),
        ("V", "version"),
        ("m", "max-time"),
        ("r", "range"),
        ("Y", "speed-limit"),
        ("y", "speed-time"),
        ("X", "request"),
        ("I", "head"),
        ("G", "get"),
        ("H", "header"),
        ("d", "data"),
        ("A", "user-agent"),
        ("o", "output"),
        ("O", "remote-name"),
        ("L", "location"),
        ("K", "config"),
        ("x", "proxy"),
        ("w", "write-out"),
        ("T", "upload-file"),
        ("u", "user"),
        ("k", "insecure"),
        ("b", "cookie"),
        ("c", "cookie-jar"),
        ("D", "dump-header"),
        ("F", "form"),
        (":", "next"),
        ("e", "referer"),
        ("J", "remote-header-name"),
        ("E", "cert"),
        ("C", "continue-at"),
        ("z", "time-cond"),
        ("U", "proxy-user"),
    ],
    writing: "output remote-name remote-name-all remote-header-name cookie-jar dump-header config output-dir \
        create-dirs trace trace-ascii stderr etag-save hsts alt-svc write-out libcurl",
    mentioned: "output location config upload-file proxy",
    saves_and_follows: false,
};

/// The options of `wget`.
const WGET: FetchOptions = FetchOptions {
    flags: "qvSc46",
    values: "TtUw",
    words: &["nc", "nv"],
    long: "quiet no-verbose verbose server-response spider show-progress continue no-clobber inet4-only \
        inet6-only content-on-error version help",
    long_values: "timeout tries header user-agent post-data body-data method wait waitretry connect-timeout \
        read-timeout dns-timeout max-redirect",
    names: &[
        ("q", "quiet"),
        ("v", "verbose"),
        ("S", "server-response"),
        ("c", "continue"),
        ("4", "inet4-only"),
        ("6", "inet6-only"),
        ("nc", "no-clobber"),
        ("nv", "no-verbose"),
        ("T", "timeout"),
        ("t", "tries"),
        ("U", "user-agent"),
        ("w", "wait"),
        ("O", "output-document"),
        ("i", "input-file"),
        ("e", "execute"),
        ("r", "recursive"),
        ("m", "mirror"),
        ("P", "directory-prefix"),
        ("o", "output-file"),
        ("a", "append-output"),
    ],
    writing: "output-document directory-prefix output-file append-output recursive mirror",
    mentioned: "output-document input-file execute recursive max-redirect",
    saves_and_follows: true,
};

/// Guarded options without a value. The letters behind them in a cluster are options too.
pub(crate) const FLAGS: Names = "location remote-name insecure next remote-header-name recursive mirror";

/// Guarded options with a value that is no address.
pub(crate) const VALUED: Names = "output output-dir config proxy upload-file user cookie cookie-jar dump-header form \
    referer unix-socket abstract-unix-socket interface resolve connect-to cacert cert key trace trace-ascii stderr \
    write-out output-document input-file execute directory-prefix output-file append-output load-cookies \
    save-cookies max-redirect capath continue-at form-string limit-rate max-redirs netrc-file oauth2-bearer \
    proxy-user time-cond";
