//! The reported changes, and the paths that a watch does not follow.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Folder {
    dir: tempfile::TempDir,
    base: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(base.join("in")).unwrap();
        Self { dir, base }
    }

    fn place(&self) -> FolderLocation {
        FolderLocation { base: self.base.clone(), below: "in".into(), links: Vec::new(), skipped: None }
    }

    fn watch(&self) -> FolderWatch {
        FolderWatch::open(&self.place(), Duration::from_millis(100), false).unwrap()
    }

    fn write(&self, file: &str) {
        let path = self.base.join("in").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
}

async fn files(watch: &mut FolderWatch) -> Vec<String> {
    match watch.next_burst().await.unwrap().into_burst().occasion {
        Occasion::Changed { files, lost: false, .. } => files,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_changes_together_is_one_burst() {
    let folder = Folder::new();
    folder.write("old");
    folder.write("sub/older");
    let mut watch = folder.watch();
    folder.write("a");
    folder.write("sub/b");
    folder.write("new/deep/c");
    fs::remove_file(folder.base.join("in/old")).unwrap();
    assert_eq!(files(&mut watch).await, ["a", "new/deep/c", "old", "sub/b"]);
    // New folders are watched, too, and removed ones are not any more.
    folder.write("new/deep/d");
    assert_eq!(files(&mut watch).await, ["new/deep/d"]);
    fs::rename(folder.base.join("in/new"), folder.base.join("elsewhere")).unwrap();
    assert_eq!(files(&mut watch).await, ["new"]);
    fs::write(folder.base.join("elsewhere/deep/e"), "x").unwrap();
    folder.write("f");
    assert_eq!(files(&mut watch).await, ["f"]);
}

/// Makes folders within each other, deeper than any path may be long.
fn make_deep(folder: &Path) {
    let open = |parent: &OwnedFd, name: &str| {
        rustix::fs::openat(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let name = "d".repeat(250);
    let mut deepest = OwnedFd::from(fs::File::open(folder).unwrap());
    for _ in 0..20 {
        rustix::fs::mkdirat(&deepest, &*name, Mode::RWXU).unwrap();
        deepest = open(&deepest, &name);
    }
}

#[tokio::test]
async fn a_folder_that_is_too_deep_hides_no_other() {
    let folder = Folder::new();
    folder.write("sub/old");
    make_deep(&folder.base.join("in"));
    let mut watch = folder.watch();
    assert!(watch.has_too_many);
    folder.write("sub/a");
    assert_eq!(files(&mut watch).await, ["sub/a"]);
    // It may also come later.
    let folder = Folder::new();
    let mut watch = folder.watch();
    folder.write("a");
    assert_eq!(files(&mut watch).await, ["a"]);
    assert!(!watch.has_too_many);
    make_deep(&folder.base);
    fs::rename(folder.base.join("d".repeat(250)), folder.base.join("in/deep")).unwrap();
    folder.write("sub/b");
    assert_eq!(files(&mut watch).await, ["sub/b"]);
    assert!(watch.has_too_many);
}

#[tokio::test]
async fn no_link_leads_it_out() {
    let folder = Folder::new();
    let outside = folder.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, folder.base.join("in/link")).unwrap();
    let mut watch = folder.watch();
    symlink(&outside, folder.base.join("in/later")).unwrap();
    fs::write(outside.join("secret"), "x").unwrap();
    folder.write("a");
    assert_eq!(files(&mut watch).await, ["a", "later"]);
    // A symlink replaces a folder that was watched.
    folder.write("sub/b");
    files(&mut watch).await;
    fs::rename(folder.base.join("in/sub"), folder.base.join("in/moved")).unwrap();
    symlink(&outside, folder.base.join("in/sub")).unwrap();
    files(&mut watch).await;
    fs::write(outside.join("secret"), "y").unwrap();
    folder.write("c");
    assert_eq!(files(&mut watch).await, ["c"]);
    // A symlink replaces the watched folder itself, or one above it.
    fs::rename(folder.base.join("in"), folder.base.join("away")).unwrap();
    symlink(&outside, folder.base.join("in")).unwrap();
    assert_eq!(watch.next_burst().await, Err(WatchEnd::Gone));
    assert_eq!(folder.place().open().unwrap_err(), Errno::LOOP);
    let above = FolderLocation { base: folder.base.clone(), below: "in/sub".into(), links: Vec::new(), skipped: None };
    assert_eq!(above.open().unwrap_err(), Errno::LOOP);
}

#[tokio::test]
async fn a_folder_that_goes_ends_it() {
    let folder = Folder::new();
    let mut watch = folder.watch();
    folder.write("a");
    fs::remove_dir_all(folder.base.join("in")).unwrap();
    assert_eq!(files(&mut watch).await, ["a"]);
    assert_eq!(watch.next_burst().await, Err(WatchEnd::Gone));
    assert_eq!(FolderWatch::open(&folder.place(), QUIET, false).unwrap_err().kind(), io::ErrorKind::NotFound);
    // When the folder exists again, all its files are new.
    folder.write("b/c");
    let mut watch = FolderWatch::open(&folder.place(), Duration::from_millis(100), true).unwrap();
    assert_eq!(files(&mut watch).await, ["b/c"]);
    // A folder above is moved.
    fs::create_dir_all(folder.base.join("x/y")).unwrap();
    let below = FolderLocation { base: folder.base.clone(), below: "x/y".into(), links: Vec::new(), skipped: None };
    let mut watch = FolderWatch::open(&below, QUIET, false).unwrap();
    fs::rename(folder.base.join("x"), folder.base.join("z")).unwrap();
    assert_eq!(watch.next_burst().await, Err(WatchEnd::Gone));
}

#[tokio::test]
async fn what_is_told_is_bounded() {
    let folder = Folder::new();
    let mut watch = folder.watch();
    (0..1100).for_each(|n| folder.write(&format!("{n:04}{}", "n".repeat(240))));
    let Occasion::Changed { files, more, lost } = watch.next_burst().await.unwrap().into_burst().occasion else {
        panic!("no files")
    };
    assert_eq!((files.len(), files.len() + more, lost), (50, 1100, false));
    assert!(files.iter().all(|name| name.chars().count() == 201 && name.ends_with('…')), "{files:?}");
}

#[tokio::test]
async fn what_is_lost_is_said() {
    let folder = Folder::new();
    let mut watch = folder.watch();
    watch.take(FolderEvent { watch: -1, what: ReadFlags::QUEUE_OVERFLOW, name: None });
    let occasion = watch.next_burst().await.unwrap().into_burst().occasion;
    assert_eq!(occasion, Occasion::Changed { files: vec![], more: 0, lost: true });
    assert_eq!(watch.next_burst().await, Err(WatchEnd::Lost));
}

#[test]
fn what_the_kernel_allows_no_more_of_is_named() {
    let check = |error, full, what, expected: &str| {
        let said = limited(error, full, what).to_string();
        assert!(said.starts_with(expected), "{said}");
    };
    check(
        Errno::MFILE,
        Errno::MFILE,
        "instances",
        "the kernel allows this user no more inotify instances (fs.inotify.max_user_instances is ",
    );
    check(
        Errno::NOSPC,
        Errno::NOSPC,
        "watches",
        "the kernel allows this user no more inotify watches (fs.inotify.max_user_watches is ",
    );
    check(Errno::ACCESS, Errno::NOSPC, "watches", "Permission denied");
}

#[tokio::test]
async fn a_link_on_the_way_that_is_turned_ends_it() {
    let folder = Folder::new();
    let dir = folder.dir.path().canonicalize().unwrap();
    fs::create_dir_all(dir.join("old/in")).unwrap();
    fs::create_dir_all(dir.join("new/in")).unwrap();
    fs::create_dir_all(dir.join("links")).unwrap();
    symlink("../old", dir.join("links/current")).unwrap();
    symlink(dir.join("links"), dir.join("way")).unwrap();
    let links = links_on(&dir.join("way/./current/in"));
    assert_eq!(links, [dir.join("way"), dir.join("links/current")]);
    let below = dir.join("old/in").strip_prefix("/").unwrap().to_owned();
    let place = FolderLocation { base: "/".into(), below, links, skipped: None };
    for turn in 0..2 {
        let mut watch = FolderWatch::open(&place, Duration::from_millis(100), false).unwrap();
        fs::write(dir.join("old/in/a"), "x").unwrap();
        assert_eq!(files(&mut watch).await, ["a"]);
        // Another entry beside the symlink may change.
        fs::write(dir.join("links/other"), "x").unwrap();
        if turn == 0 {
            symlink("../new", dir.join("links/next")).unwrap();
            fs::rename(dir.join("links/next"), dir.join("links/current")).unwrap();
        } else {
            fs::remove_file(dir.join("way")).unwrap();
        }
        assert_eq!(watch.next_burst().await, Err(WatchEnd::Gone), "{turn}");
    }
    // A loop of symlinks leads nowhere and is not an error.
    symlink("b", dir.join("a")).unwrap();
    symlink("a", dir.join("b")).unwrap();
    assert_eq!(links_on(&dir.join("a/in")).len(), MAX_LINKS);
}
