//! Scripts of `sed` and `awk`: small languages in which a command can run programs and write files.
//!
//! Only what is certainly text editing is let through; anything else hides what the command does.

use super::word::Word;

/// Why a `sed` call cannot be judged.
pub(super) fn sed(arguments: &[Word]) -> Option<String> {
    let refuse = |what: &str| Some(format!("{what} of `sed` can run programs or write files"));
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut at = 0;
    let mut options = true;
    while let Some(word) = arguments.get(at) {
        at += 1;
        if options && word.is_unknown() && word.may_be_option() {
            return Some(format!("`{}` could be an option; write `--` before it", word.shown()));
        }
        let text = word.known_start();
        if !options || !text.starts_with('-') || text == "-" {
            operands.push(word);
            continue;
        }
        if text == "--" {
            options = false;
            continue;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            match (name, value) {
                (
                    "quiet" | "silent" | "regexp-extended" | "null-data" | "unbuffered" | "posix" | "separate"
                    | "sandbox",
                    None,
                ) => {}
                ("expression", Some(value)) if !word.is_unknown() => scripts.push(value.to_owned()),
                ("in-place", _) => {}
                _ => return refuse(&format!("the option `{text}`")),
            }
            continue;
        }
        for (index, letter) in text.char_indices().skip(1) {
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                // The rest is a suffix for the copy.
                'i' => break,
                'e' => {
                    let attached = &text[index + 1..];
                    let value = if attached.is_empty() {
                        at += 1;
                        arguments.get(at - 1).and_then(Word::literal)
                    } else {
                        word.literal().map(|_| attached)
                    };
                    match value {
                        Some(value) => scripts.push(value.to_owned()),
                        None => return refuse("an unknown script"),
                    }
                    break;
                }
                _ => return refuse(&format!("the option `{text}`")),
            }
        }
    }
    if scripts.is_empty() {
        match operands.first().and_then(|word| word.literal()) {
            Some(script) => scripts.push(script.to_owned()),
            None => return refuse("an unknown script"),
        }
    }
    // Several `-e` are lines of one script.
    if only_edits(&scripts.join("\n")) { None } else { refuse("the script") }
}

/// Whether a `sed` script holds only commands that edit text: no `e`, `w`, `W`, `r`, `R`, `F`, nor those flags of `s`.
fn only_edits(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace() || *c == ';' || *c == '}').is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        if !skip_address(&mut rest) {
            return false;
        }
        while rest.next_if(|c| c.is_whitespace() || *c == '!').is_some() {}
        match rest.next() {
            Some('{' | 'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'l') => {}
            Some('q' | 'Q') => while rest.next_if(char::is_ascii_digit).is_some() {},
            Some('#') => while rest.next_if(|c| *c != '\n').is_some() {},
            Some('b' | 't' | 'T' | ':') => {
                while rest.next_if_eq(&' ').is_some() {}
                // What follows a label's name is read as the next command, as some versions do.
                while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
            }
            Some('a' | 'i' | 'c') => {
                // Text to the end of the line; a backslash carries it on, which is refused.
                let mut text = String::new();
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    text.push(c);
                }
                if text.trim_start_matches('\\').contains('\\') || text.trim() == "\\" {
                    return false;
                }
            }
            Some('s') => {
                if !delimited(&mut rest, 2) {
                    return false;
                }
                while let Some(flag) = rest.next_if(|c| c.is_ascii_alphanumeric()) {
                    if !(flag.is_ascii_digit() || "gpiIM".contains(flag)) {
                        return false;
                    }
                }
            }
            Some('y') => {
                if !delimited(&mut rest, 2) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// `12`, `$`, `/re/`, `2,5`, `0~3`, `/a/,+2`.
fn skip_address(rest: &mut Chars<'_>) -> bool {
    loop {
        match rest.peek() {
            Some('0'..='9' | '$' | ',' | '~' | '+' | ' ') => {
                rest.next();
            }
            Some('/') => {
                if !delimited(rest, 1) {
                    return false;
                }
                while rest.next_if(|c| *c == 'I' || *c == 'M').is_some() {}
            }
            Some('\\') => return false,
            _ => return true,
        }
    }
}

/// Skips `count` texts between delimiters, the first of which comes next.
fn delimited(rest: &mut Chars<'_>, count: usize) -> bool {
    let Some(delimiter) = rest.next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace() && *c != '\\') else {
        return false;
    };
    for _ in 0..count {
        loop {
            match rest.next() {
                None | Some('\n') => return false,
                Some('\\') => {
                    rest.next();
                }
                // A bracket may hold the delimiter in some versions and not in others.
                Some('[') if delimiter != '[' => loop {
                    match rest.next() {
                        None | Some('\n' | '\\') => return false,
                        Some(']') => break,
                        Some(c) if c == delimiter => return false,
                        Some(_) => {}
                    }
                },
                Some(c) if c == delimiter => break,
                Some(_) => {}
            }
        }
    }
    true
}

/// Why an `awk` call cannot be judged.
pub(super) fn awk(arguments: &[Word]) -> Option<String> {
    let refuse = |what: &str| Some(format!("{what} of `awk` can run programs or write files"));
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else { return refuse("an unknown program") };
        match text {
            "--" => {
                at += 1;
                break;
            }
            "-F" | "-v" => {
                if arguments.get(at + 1).is_none_or(|value| value.splits()) {
                    return refuse("an unknown option");
                }
                at += 2;
            }
            _ if text.starts_with("-F") || text.starts_with("-v") => at += 1,
            _ if text.starts_with('-') && text.len() > 1 => return refuse(&format!("the option `{text}`")),
            _ => break,
        }
    }
    let Some(program) = arguments.get(at).and_then(Word::literal) else { return refuse("an unknown program") };
    let harmless = !program.contains(['|', '@', '`'])
        && (!program.contains('>') || only_compares(program))
        && !["system", "getline", "close", "fflush", "extension", "print >"].iter().any(|word| program.contains(word));
    // A function may be called by a name in a variable, but not one that is never written.
    if !harmless {
        return refuse("the program");
    }
    // What follows the program are files, or `name=value`.
    None
}

/// Whether every `>` of an `awk` program compares: none stands behind `print` in one statement. Only what cannot be
/// misread is looked at: a program with a `/` (a pattern can hold a quote), a comment or a backslash is not.
fn only_compares(program: &str) -> bool {
    let mut statement = String::new();
    let mut rest = program.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => loop {
                match rest.next() {
                    None | Some('\n') => return false,
                    Some('\\') => _ = rest.next(),
                    Some('"') => break,
                    Some(_) => {}
                }
            },
            '/' | '#' | '\\' => return false,
            // Not a line break: a statement goes on after a comma.
            '{' | '}' | ';' => statement.clear(),
            '>' if rest.peek() == Some(&'>') || statement.contains("print") => return false,
            c => statement.push(c),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Vec<Word> {
        texts.iter().map(|text| Word::text(*text)).collect()
    }

    #[test]
    fn editing_scripts_are_seen_to_be_harmless() {
        for arguments in [
            &["-n", "1,5p"][..],
            &["s/a/b/g"],
            &["-n", "/x/p", "file"],
            &["-E", "s|a(b)|\\1|;s/[a-z]//"],
            &["-e", "s/a/b/", "-e", "2d"],
            &["-n", "$p"],
            &["-n", "/start/,/end/p"],
            &["/^#/d"],
            &["-i", "s/a/b/", "f"],
            &["y/abc/def/"],
            &["1i header"],
            &["-n", "2{p;q}"],
            &["--expression=s/a/b/"],
            &[":a;N;$!ba;s/x/y/g"],
        ] {
            assert_eq!(sed(&words(arguments)), None, "{arguments:?}");
        }
    }

    #[test]
    fn scripts_that_run_or_write_are_not() {
        for arguments in [
            &["1e touch evil"][..],
            &["s/x/y/e"],
            &["s/x/y/w evil"],
            &["s/x/touch evil/ge"],
            &["w evil"],
            &["1W evil"],
            &["-f", "script"],
            &["--file=script"],
            &["-n", "r /etc/passwd"],
            &["-e", "a\\", "-e", "x", "-e", "1e touch evil"],
            &["s/a/b/\ne touch evil"],
            &["a x\\\ne touch"],
            &["--expr=1e x"],
            &["s\ne\ntouch evil\ne"],
            &[":a e touch evil"],
            &["b a;1e touch evil"],
            &["pe touch"],
        ] {
            assert!(sed(&words(arguments)).is_some(), "{arguments:?}");
        }
        assert!(sed(&[Word::anything("$x")]).is_some());
    }

    #[test]
    fn awk_programs_that_run_or_write_are_refused() {
        for arguments in [
            &["{print $1}"][..],
            &["-F:", "{print $2}", "f"],
            &["-F", ",", "NR==1"],
            &["-v", "x=1", "END{print NR}"],
            &["-F,", "$2 > 10 { print $1 }"],
            &["$2 >= 10 { print \"big {\", $1; n += $1 > 3 }"],
        ] {
            assert_eq!(awk(&words(arguments)), None, "{arguments:?}");
        }
        for arguments in [
            &["BEGIN{system(\"touch evil\")}"][..],
            &["{print > \"f\"}"],
            &["{print | \"sh\"}"],
            &["BEGIN{\"cmd\" | getline}"],
            &["-f", "prog.awk"],
            &["-i", "inplace", "{print}"],
            &["-e", "{print}"],
            &["--source={print}"],
            &["BEGIN{f=\"sys\" \"tem\"; @f(\"x\")}"],
            &["{ print \"{\" > \"f\" }"],
            &["{ print \"\\\"{\" > \"f\" }"],
            &["{ print $1,\n $2 > \"f\" }"],
            &["{ print $1, # ;\n $2 > \"f\" }"],
            &["/\"/ { print \"{\" > \"f\" }"],
            &["$1 > 2 { print >> \"f\" }"],
            &["{ printf(\"%s\", $1) > \"f\" }"],
        ] {
            assert!(awk(&words(arguments)).is_some(), "{arguments:?}");
        }
    }
}
