//! Stars in the name of a host. They stand for a part of that name, and for nothing that ends it.

use crate::programs::{CommandOperands, Program};
use crate::wildcard::{BREAK, StarInWord};

/// Returns whether a star within a word of a rule stands for a part of a host's name, if it is in one.
pub(super) fn stays_within(program: &Program, star: &StarInWord<'_>) -> bool {
    let StarInWord { previous, before, stands_for, behind } = *star;
    let is_free_of = |marks: &str| !stands_for.contains(|letter| letter == BREAK || marks.contains(letter));
    let first = behind.split(['/', ':', ',']).next().unwrap_or_default();
    // The text would lead elsewhere, wherever it stands.
    if stands_for.contains("://") {
        return false;
    }
    // The first of a list is asked, and a path leads to a socket.
    let of_option = |option: &str| match option.starts_with("--") {
        true => before.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
        false => before.starts_with(option),
    };
    let mut options = program.host_options.split_whitespace();
    if options.any(|option| previous == option || of_option(option)) && !is_free_of("/:@,?#") {
        return false;
    }
    // `https://*.acme.com/x`, `https://*@acme.com/x`
    if let Some((_, host)) = before.split_once("://").filter(|(_, host)| !host.contains('/') && !behind.is_empty()) {
        return is_free_of(if behind.starts_with('@') && !host.contains(':') { "/@?#\\," } else { "/:@?#\\," });
    }
    // `git@*.acme.com:x`, `deploy@web*`. The last `@` counts.
    let host = before.rsplit_once('@').filter(|(user, _)| !user.is_empty()).map(|(_, host)| host);
    if host.is_some_and(|host| !host.contains(['/', ':'])) && !is_free_of(if behind.is_empty() { "@," } else { "/:@," })
    {
        return false;
    }
    let is_place = behind[first.len()..].starts_with(':');
    match program.commands {
        // `*.acme.com:backup/`
        CommandOperands::Remote => !is_place || is_free_of("/:@"),
        // `*.acme.com/app`, and for `docker login` the host alone
        CommandOperands::Contexts => {
            let is_file =
                ["-f", "--file", "--env-file"].contains(&previous) || before.starts_with('-') || before.contains('/');
            is_file || !first.contains('.') || is_free_of("/@")
        }
        // `acme-x@npm:evil`
        CommandOperands::Specifiers => {
            let word = format!("{before}{stands_for}{behind}");
            let source = word.get(1..).and_then(|rest| rest.split_once('@')).map(|(_, source)| source.to_owned());
            source.is_none_or(|source| !source.contains([':', '/']))
        }
        // What follows would be a part of the query.
        CommandOperands::Repositories => behind.is_empty() || is_free_of("?#&"),
        _ if program.is_git() && is_place => is_free_of(if first.contains('.') { "/:@" } else { "@" }),
        // `ssh web-* uptime`
        _ if program.joins_from == Some(1) => is_free_of("@"),
        _ => true,
    }
}
