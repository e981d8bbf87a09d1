use super::*;
use crate::tests::BOT;

fn known() -> ResolvedRoots {
    let roots =
        PathRoots { root: "/home/u/.bot".into(), work: "/home/u/.bot/work".into(), user_home: "/home/u".into() };
    ResolvedRoots::new(&roots, &BOT)
}

/// Checks a pattern. Paths are relative to `work/` unless absolute.
#[track_caller]
fn check(pattern: &str, path: &str, grants: bool, denies: bool) {
    let rule = PathRule::new(pattern);
    let full = Path::new("/home/u/.bot/work").join(path);
    assert_eq!(rule.grants(&full, &known(), false), grants, "{pattern} grants {path}");
    assert_eq!(rule.denies(&full, &known(), false), denies, "{pattern} denies {path}");
}

#[test]
fn patterns_match_gitignore_style() {
    for (pattern, path, grants, denies) in [
        ("notes/**", "notes/a", true, true),
        ("notes/**", "notes/a/b", true, true),
        ("notes/**", "notes", false, false),
        ("notes/**", "notesx/a", false, false),
        ("notes/**", "sub/notes/a", false, false),
        ("notes/*", "notes/a", true, true),
        // A grant matches one segment. A denial also covers the contents of a denied folder.
        ("notes/*", "notes/a/b", false, true),
        ("notes/", "notes/a/b", true, true),
        ("notes/", "private/notes/a", true, true),
        // No file of that name.
        ("notes/", "private/notes", false, true),
        ("a/notes/", "a/notes", false, true),
        ("notes", "notes/a", true, true),
        ("notes", "sub/notes/a", true, true),
        ("/notes", "sub/notes/a", false, false),
        ("notes/a.md", "notes/a.md", true, true),
        ("notes/a.md", "notes/b.md", false, false),
        ("*.md", "a.md", true, true),
        ("*.md", "x/y/a.md", true, true),
        ("*.md", "a.txt", false, false),
        ("**/*.md", "x/y/a.md", true, true),
        ("**/*.md", "a.md", true, true),
        ("a/**/z", "a/z", true, true),
        ("a/**/z", "a/b/c/z", true, true),
        ("a/**/z", "a/b/c/y", false, false),
        ("**", "anything/at/all", true, true),
        ("**", "/etc/passwd", false, false),
        ("a?c", "abc", true, true),
        ("a[0-9]c", "a5c", true, true),
        ("a[!0-9]c", "a5c", false, false),
        ("//etc/**", "/etc/passwd", true, true),
        ("//etc/passwd", "/etc/passwd", true, true),
        ("/etc/passwd", "/etc/passwd", false, false),
        ("~/notes/**", "/home/u/notes/x", true, true),
        ("~/notes/**", "/home/v/notes/x", false, false),
        (".env", "/etc/app/.env", false, true),
    ] {
        check(pattern, path, grants, denies);
    }
}

#[test]
fn searches_need_the_whole_folder_granted_and_nothing_in_it_denied() {
    let work = Path::new("/home/u/.bot/work");
    let below = |pattern: &str, path: &str| {
        let rule = PathRule::new(pattern);
        (rule.grants(&work.join(path), &known(), true), rule.denies(&work.join(path), &known(), true))
    };
    assert_eq!(below("notes/**", "notes"), (true, true));
    assert_eq!(below("notes/**", "notes/sub"), (true, true));
    assert_eq!(below("notes/**", ""), (false, true));
    assert_eq!(below("notes/**", "other"), (false, false));
    assert_eq!(below("notes/*.md", "notes"), (false, true));
    assert_eq!(below("*.env", "other"), (false, true));
    assert_eq!(below("**", ""), (true, true));
    assert!(PathRule::new("~/notes/**").denies(Path::new("/home"), &known(), true));
}

#[test]
fn covering_is_sound() {
    let covers = |parent: &str, child: &str| PathRule::new(parent).covers(&PathRule::new(child));
    assert!(covers("notes", "notes/") && covers("notes/", "notes/") && !covers("notes/", "notes"));
    assert!(covers("notes/**", "notes/a/**"));
    assert!(covers("notes/**", "notes/a.md"));
    assert!(covers("notes/**", "notes/**"));
    assert!(covers("**", "notes/**"));
    assert!(covers("//etc/**", "//etc/x/y"));
    assert!(!covers("notes/**", "**"));
    assert!(!covers("notes/a/**", "notes/**"));
    assert!(!covers("notes/*", "notes/**"));
    assert!(!covers("notes/**", "*.md"));
    assert!(!covers("notes/**", "notes"));
    assert!(!covers("notes/**", "~/notes/a"));
    assert!(!covers("notes/**", "//notes/a"));
}

#[test]
fn protected_places_are_found() {
    let known = known();
    let protected = |path: &str| known.protected(Path::new(path));
    assert_eq!(protected("/home/u/.bot/work/notes"), None);
    assert_eq!(protected("/home/u/.bot"), Some(Protected::DataFolder));
    assert_eq!(protected("/home/u/.bot/.env"), Some(Protected::DataFolder));
    assert_eq!(protected("/home/u/.bot/workx"), Some(Protected::DataFolder));
    assert_eq!(protected("/home/u/.bot/work/.git/config"), Some(Protected::Tooling));
    assert_eq!(protected("/home/u/.claude/settings.json"), Some(Protected::Client));
    assert_eq!(protected("/srv/.GIT/hooks/x"), Some(Protected::Tooling));
    assert_eq!(protected("/proc/self/environ"), Some(Protected::Process));
    assert_eq!(protected("/proc/12/fd/3"), Some(Protected::Process));
    assert_eq!(protected("/proc/cpuinfo"), None);
    assert_eq!(protected("/home/u/gitx"), None);
}

#[test]
fn links_and_parents_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("work/notes")).unwrap();
    std::fs::create_dir_all(root.join("state")).unwrap();
    std::os::unix::fs::symlink(root.join("state"), root.join("work/notes/link")).unwrap();
    std::os::unix::fs::symlink("loop", root.join("work/loop")).unwrap();
    let cwd = root.join("work");
    let resolve = |path: &str| resolve(path, &cwd, Path::new("/home/u"), BOT.read_link);
    let readings = |path: &str| resolve(path).unwrap().readings;
    assert_eq!(readings("notes/link/token"), [root.join("work/notes/link/token"), root.join("state/token")]);
    assert_eq!(resolve("notes/link/token").unwrap().through, [root.join("work/notes/link")]);
    assert_eq!(readings("notes/../../state/x"), [root.join("state/x")]);
    // The kernel resolves `..` from the link's target; a program that removes `..` first does not.
    assert_eq!(readings("notes/link/../secret"), [root.join("work/notes/secret"), root.join("secret")]);
    assert_eq!(readings("notes/new/file"), [root.join("work/notes/new/file")]);
    assert_eq!(readings("missing/../../state/x"), [root.join("state/x")]);
    assert_eq!(readings("missing/../notes/link/x"), [root.join("work/notes/link/x"), root.join("state/x")]);
    assert_eq!(readings("~/x"), [Path::new("/home/u/x")]);
    for path in ["", "loop", "loop/x", "~other/x", "a\0b"] {
        assert_eq!(resolve(path), None, "{path:?}");
    }
}
