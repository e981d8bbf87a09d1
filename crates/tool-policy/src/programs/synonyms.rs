//! Names of the same choice: a letter and the long option that it stands for, or two long options. A later one takes the place of an
//! earlier one, or adds to it.
//!
//! Options with a value are here, and switches that a rule may turn off (`--no-prune`). To give any other switch twice changes nothing. Those
//! are in a table of their own, since only a denial reads them: it must hold for each of their names.

use super::Names;

/// The names of a program, or of a subcommand of git, and pairs `NAME=CHOICE`.
const TABLE: &[(Names, Names)] = &[
    // Archives.
    (
        "tar bsdtar gtar",
        "C=directory cd=directory F=info-script H=format I=use-compress-program K=starting-file L=tape-length N=newer \
         T=files-from V=label X=exclude-from after-date=newer b=blocking-factor f=file g=listed-incremental \
         p=same-permissions preserve-permissions=same-permissions",
    ),
    ("cpio", "D=directory E=pattern-file F=file H=format M=message R=owner"),
    ("zip", "O=output-file P=password b=temp-path i=include n=suffixes s=split-size t=from-date"),
    ("gzip xz lzma", "C=check F=format M=memlimit S=suffix T=threads"),
    ("zstd", "T=threads"),
    // Files.
    ("cp install ln mv", "S=suffix T=no-target-directory g=group m=mode o=owner t=target-directory"),
    ("cp", "H=dereference L=dereference P=dereference a=preserve archive=preserve p=preserve"),
    ("mkdir mkfifo mknod", "m=mode"),
    ("truncate", "r=reference s=size"),
    ("touch", "d=date r=reference t=date"),
    ("date", "I=iso-8601 d=date f=file r=reference s=set"),
    ("shred", "n=iterations s=size"),
    ("split", "C=line-bytes a=suffix-length b=bytes l=lines n=number t=separator"),
    ("csplit", "b=suffix-format f=prefix n=digits"),
    ("df", "B=block-size t=type x=exclude-type"),
    ("du", "B=block-size X=exclude-from d=max-depth t=threshold"),
    ("ls", "I=ignore T=tabsize w=width"),
    ("stat", "c=format"),
    ("rsync", "B=block-size M=remote-option T=temp-dir e=rsh f=filter"),
    (
        "patch",
        "B=prefix D=ifdef F=fuzz V=version-control Y=basename-prefix d=directory i=input o=output p=strip r=reject-file z=suffix",
    ),
    // Filters.
    ("sort", "S=buffer-size T=temporary-directory k=key o=output t=field-separator"),
    ("head tail", "c=bytes n=lines s=sleep-interval"),
    ("cut", "b=bytes c=characters d=delimiter f=fields"),
    ("uniq", "f=skip-fields s=skip-chars w=check-chars"),
    ("fold", "w=width"),
    ("paste", "d=delimiters"),
    ("seq", "f=format s=separator"),
    ("shuf", "i=input-range n=head-count o=output"),
    ("gsed", "e=expression f=file l=line-length"),
    ("sed", "e=expression f=file l=line-length"),
    ("awk gawk mawk", "F=field-separator e=source f=file i=include l=load v=assign"),
    ("jq", "L=library-path f=from-file"),
    (
        "grep egrep fgrep",
        "A=after-context B=before-context C=context D=devices d=directories e=regexp f=file m=max-count",
    ),
    (
        "rg",
        "A=after-context B=before-context C=context E=encoding M=max-columns T=type-not d=max-depth e=regexp f=file g=glob \
         j=threads m=max-count maxdepth=max-depth r=replace t=type",
    ),
    ("fd fdfind", "E=exclude X=exec-batch d=max-depth e=extension t=type x=exec"),
    (
        "diff",
        "C=context F=show-function-line I=ignore-matching-lines L=label S=starting-file U=unified W=width X=exclude-from",
    ),
    // Wrappers.
    ("env", "C=chdir S=split-string u=unset"),
    ("nice", "n=adjustment"),
    ("timeout", "k=kill-after s=signal"),
    ("xargs", "E=eof I=replace L=max-lines P=max-procs a=arg-file d=delimiter n=max-args s=max-chars"),
    ("script", "B=log-io E=echo I=log-in O=log-out T=log-timing c=command m=logging-format"),
    (
        "doas sudo",
        "A=askpass C=close-from D=chdir E=preserve-env H=set-home K=remove-timestamp R=chroot S=stdin T=command-timeout U=other-user b=background \
         g=group h=host i=login k=reset-timestamp l=list n=non-interactive p=prompt r=role s=shell t=type u=user",
    ),
    // Git.
    ("git add", "A=all N=intent-to-add"),
    ("git am", "3=3way"),
    ("git clone", "b=branch c=config j=jobs o=origin recursive=recurse-submodules u=upload-pack"),
    (
        "git commit",
        "C=reuse-message F=file S=gpg-sign c=reedit-message m=message n=verify s=signoff t=template u=untracked-files",
    ),
    (
        "git merge git pull git rebase",
        "F=file S=gpg-sign X=strategy-option j=jobs m=message o=server-option r=rebase s=strategy x=exec",
    ),
    ("git cherry-pick git revert", "S=gpg-sign X=strategy-option m=mainline"),
    (
        "git log git show git diff git whatchanged git shortlog git rev-list",
        "U=unified after=since before=until n=max-count",
    ),
    ("git grep", "A=after-context B=before-context C=context O=open-files-in-pager m=max-count"),
    ("git push", "o=push-option"),
    (
        "git fetch git ls-remote",
        "deepen=depth j=jobs n=tags o=server-option p=prune recurse-submodules-default=recurse-submodules shallow-exclude=depth shallow-since=depth t=tags unshallow=depth",
    ),
    ("git branch", "t=track u=set-upstream-to"),
    ("git switch git checkout", "C=force-create c=create t=track"),
    ("git restore", "s=source"),
    ("git stash", "a=all k=keep-index m=message u=include-untracked"),
    ("git tag git notes", "C=reuse-message F=file c=reedit-message m=message u=local-user"),
    ("git archive", "o=output"),
    ("git format-patch", "o=output-directory v=reroll-count"),
    ("git init", "b=initial-branch"),
    ("git submodule", "b=branch j=jobs"),
    ("git remote", "m=master p=prune t=track"),
    ("git ls-files", "X=exclude-from x=exclude"),
    ("git clean", "e=exclude"),
    ("git config", "blob=file f=file global=file local=file system=file worktree=file"),
    ("git difftool git mergetool", "t=tool x=extcmd"),
    // What builds and tests.
    ("make gmake", "C=directory I=include-dir W=what-if f=file j=jobs l=load-average makefile=file o=old-file"),
    ("cargo", "F=features all=package j=jobs p=package workspace=package"),
    ("npm npx", "C=prefix include-workspace-root=workspace w=workspace workspaces=workspace"),
    ("pnpm", "C=dir F=filter"),
    ("poetry", "C=directory P=project"),
    ("composer", "d=working-dir"),
    // Each is a further place from which packages come, or one that is trusted.
    (
        "pip pip3",
        "c=constraint e=editable extra-index-url=index-url f=index-url find-links=index-url i=index-url r=requirement t=target \
         trusted-host=index-url",
    ),
    ("pytest", "c=config-file n=numprocesses"),
    ("gcc g++ cc c++ clang clang++", "o=output"),
    ("tsc", "p=project"),
    ("eslint", "c=config f=format o=output-file"),
    // The engine reads `-pl` as two letters.
    ("mvn", "P=activate-profiles f=file projects=p"),
    ("gradle", "P=project-prop b=build-file p=project-dir"),
    ("dotnet", "c=configuration f=framework o=output r=runtime"),
    // Services, clusters and databases.
    (
        "docker podman",
        "H=context a=attach c=context cap-add=cap-drop config=context connection=context d=driver detach=driver e=env f=file h=hostname host=context l=label m=memory n=tail \
         net=network p=publish privileged=cap-drop project-name=publish t=tag time=tag timeout=tag tty=tag u=user url=context v=volume w=workdir",
    ),
    ("docker-compose", "f=file p=project-name"),
    (
        "kubectl oc",
        "A=namespace L=label-columns all-namespaces=namespace c=container f=filename k=filename kustomize=filename l=selector \
         n=namespace o=output p=patch patch-file=patch previous=patch s=server w=watch watch-only=watch",
    ),
    ("helm", "f=values n=namespace o=output"),
    ("heroku", "a=app r=remote"),
    (
        "ansible ansible-playbook",
        "M=module-path a=args c=connection e=extra-vars f=forks i=inventory l=limit m=module-name t=tags u=user",
    ),
    ("lftp mosh nmap ssh-copy-id", "p=port"),
    ("nc ncat netcat", "i=idle-timeout w=wait x=proxy"),
    (
        "gh glab",
        "A=author B=base F=body-file H=head L=limit R=repo S=search T=template a=assignee add-assignee=assignee add-label=label add-reviewer=reviewer \
         b=body branch=body c=commit e=event env=event l=label m=milestone p=project q=jq r=reviewer s=state status=state t=title u=user \
         w=workflow",
    ),
    (
        "psql pg_dump pg_dumpall pg_restore createdb dropdb vacuumdb reindexdb clusterdb pg_isready",
        "E=encoding F=format I=index L=log-file N=exclude-schema P=pset R=record-separator T=table-attr U=username Z=compress c=command \
         d=dbname f=file e=extension h=host i=index j=jobs l=list n=schema o=output p=port t=table use-list=log-file v=set variable=set",
    ),
    (
        "mysql mysqldump mysqladmin mariadb mariadb-admin mariadb-dump",
        "D=database P=port S=socket e=execute h=host p=password u=user",
    ),
    ("systemd-run", "E=setenv H=host M=machine d=working-directory p=property u=unit"),
    ("systemctl", "H=host M=machine n=lines o=output p=property s=signal t=type user=system"),
    (
        "journalctl",
        "D=directory M=machine S=since U=until b=boot c=cursor g=grep n=lines o=output p=priority t=identifier u=unit \
         user=system user-unit=unit",
    ),
    ("busctl loginctl", "H=host M=machine user=system"),
    ("dbus-send", "address=system bus=system peer=system session=system"),
    ("gdbus", "a=system address=system d=dest e=system o=object-path session=system y=system"),
    ("notify-send", "a=app-name c=category h=hint i=icon r=replace-id t=expire-time u=urgency"),
    ("gpg gpg2", "o=output r=recipient u=local-user"),
];

/// Programs, their subcommands, or none for all, and further pairs `NAME=OTHER` of names of the same option.
const SWITCHES: &[(Names, Names, Names)] = &[
    ("docker podman", "create run", "net=network"),
    // Both run code, and `-pe` is `-p`.
    ("node nodejs", "", "e=eval p=eval print=eval"),
    ("find", "", "execdir=exec ok=exec okdir=exec"),
    ("docker podman", "build", "t=tag"),
    ("docker podman", "build cp create images load ps pull push run service stack", "q=quiet"),
    ("docker podman", "build create run update", "c=cpu-shares"),
    ("docker podman", "builder container image network rm rmi swarm system volume", "f=force"),
    ("docker podman", "builder image images ps system volume", "a=all"),
    ("docker podman", "buildx", "D=debug l=log-level v=version"),
    ("docker podman", "commit", "a=author c=change m=message p=pause"),
    ("docker podman", "container rm", "l=link v=volumes"),
    ("docker podman", "cp", "L=follow-link a=archive"),
    ("docker podman", "create run", "P=publish-all"),
    ("docker podman", "images ps", "f=filter"),
    ("docker podman", "inspect", "f=format"),
    ("docker podman", "inspect ps", "s=size"),
    ("docker podman", "kill restart stop", "s=signal"),
    ("docker podman", "load", "i=input"),
    ("docker podman", "login", "p=password u=username"),
    ("docker podman", "logs", "f=follow t=timestamps"),
    ("docker podman", "network", "o=opt"),
    ("docker podman", "network secret", "d=driver"),
    ("docker podman", "ps", "l=latest n=last"),
    ("docker podman", "pull push", "a=all-tags"),
    ("docker podman", "restart stop", "t=timeout"),
    ("docker podman", "save", "o=output"),
    ("docker podman", "stack", "c=compose-file"),
    ("git", "add", "u=update"),
    ("git", "add am clean rebase", "i=interactive"),
    ("git", "add apply archive branch clone commit fetch fsck merge mv pull push rebase remote status", "v=verbose"),
    ("git", "add checkout commit range-diff reset restore stash", "p=patch"),
    ("git", "add cherry-pick commit merge revert tag", "e=edit"),
    ("git", "add clean mv push reflog rm", "n=dry-run"),
    ("git", "am", "S=gpg-sign c=scissors n=no-verify r=resolved u=utf8"),
    (
        "git",
        "am apply branch bundle checkout clean clone commit fetch format-patch gc grep init log ls-remote merge pull \
         push rebase repack reset restore rm show stash switch worktree",
        "q=quiet",
    ),
    ("git", "am cherry-pick format-patch revert", "s=signoff"),
    ("git", "am fetch pull", "k=keep"),
    ("git", "apply", "3=3way R=reverse"),
    ("git", "apply reset", "N=intent-to-add"),
    ("git", "archive branch replace tag", "l=list"),
    ("git", "blame", "f=show-name n=show-number p=porcelain"),
    ("git", "branch commit show-branch", "a=all"),
    ("git", "branch grep tag", "i=ignore-case"),
    ("git", "branch show-branch", "r=remotes"),
    ("git", "checkout rebase restore switch", "m=merge"),
    ("git", "checkout restore", "2=ours 3=theirs"),
    ("git", "checkout switch worktree", "d=detach"),
    ("git", "cherry-pick revert", "n=no-commit"),
    ("git", "clone", "n=no-checkout s=shared"),
    ("git", "clone fetch pull push", "4=ipv4 6=ipv6"),
    ("git", "clone repack", "l=local"),
    ("git", "commit", "i=include o=only"),
    ("git", "commit grep status", "z=null"),
    ("git", "difftool", "d=dir-diff g=gui y=no-prompt"),
    ("git", "fetch", "m=multiple u=update-head-ok"),
    ("git", "fetch pull", "a=append f=force"),
    ("git", "format-patch", "N=no-numbered k=keep-subject p=no-stat"),
    ("git", "format-patch shortlog", "n=numbered"),
    (
        "git",
        "grep",
        "E=extended-regexp F=fixed-strings G=basic-regexp L=files-without-match P=perl-regexp c=count \
         l=files-with-matches n=line-number o=only-matching p=show-function r=recursive v=invert-match w=word-regexp",
    ),
    ("git", "grep range-diff", "W=function-context a=text"),
    ("git", "ls-files", "c=cached d=deleted i=ignored k=killed m=modified o=others s=stage u=unmerged"),
    ("git", "ls-remote", "b=branches"),
    ("git", "ls-tree", "l=long"),
    ("git", "pull", "p=prune t=tags"),
    ("git", "push", "u=set-upstream"),
    (
        "git",
        "range-diff",
        "B=break-rewrites C=find-copies D=irreversible-delete I=ignore-matching-lines U=unified X=dirstat \
         b=ignore-space-change s=no-patch w=ignore-all-space",
    ),
    ("git", "range-diff status", "M=find-renames"),
    ("git", "rebase", "f=force-rebase n=no-stat r=rebase-merges"),
    ("git", "remote", "f=fetch"),
    ("git", "repack", "b=write-bitmap-index g=geometric i=delta-islands k=keep-unreachable"),
    ("git", "replace", "g=graft"),
    ("git", "restore", "W=worktree"),
    ("git", "restore stash", "S=staged"),
    ("git", "shortlog", "c=committer e=email s=summary"),
    ("git", "show-branch", "g=reflog"),
    ("git", "status", "b=branch s=short u=untracked-files"),
    ("git", "tag", "a=annotate s=sign v=verify"),
    ("git", "update-index", "g=again"),
    (
        "kubectl oc",
        "annotate apply autoscale create delete describe diff edit expose get label patch replace rollout run scale set \
         wait",
        "R=recursive",
    ),
    ("kubectl oc", "attach debug exec run", "q=quiet"),
    ("kubectl oc", "delete", "i=interactive"),
    ("kubectl oc", "expose run", "l=labels"),
    ("kubectl oc", "logs", "f=follow"),
    ("kubectl oc", "proxy", "P=www-prefix p=port u=unix-socket w=www"),
    ("kubectl oc", "set", "c=containers e=env"),
    (
        "docker podman",
        "compose container",
        "a=all d=detach f=follow f=force n=tail q=quiet s=stop t=timestamps u=user v=volumes w=workdir",
    ),
    ("git", "branch push tag", "d=delete f=force"),
    ("chgrp chmod chown", "", "R=recursive c=changes f=quiet silent=quiet v=verbose"),
    ("cp install ln mv", "", "f=force i=interactive l=link n=no-clobber s=symbolic u=update v=verbose"),
    ("cp rm", "", "R=recursive f=force i=interactive r=recursive v=verbose"),
    ("mkdir rmdir", "", "p=parents v=verbose"),
    ("shred", "", "f=force u=remove z=zero"),
    ("rsync", "", "a=archive n=dry-run r=recursive u=update v=verbose z=compress"),
    (
        "tar",
        "",
        "A=catenate J=xz O=to-stdout P=absolute-names c=create compare=diff concatenate=catenate d=diff get=extract \
         gunzip=gzip h=dereference j=bzip2 k=keep-old-files r=append t=list u=update ungzip=gzip v=verbose x=extract \
         z=gzip",
    ),
    ("gzip xz zstd", "", "d=decompress f=force k=keep uncompress=decompress"),
    ("gsed sed", "", "E=regexp-extended i=in-place n=quiet r=regexp-extended silent=quiet"),
    ("sort", "", "c=check f=ignore-case m=merge n=numeric-sort r=reverse u=unique"),
    ("env", "", "i=ignore-environment"),
    (
        "apt apt-get aptitude",
        "",
        "assume-yes=yes d=download-only dry-run=simulate f=fix-broken q=quiet s=simulate y=yes",
    ),
    ("dnf yum", "", "q=quiet y=assumeyes"),
    ("npm pnpm", "", "D=save-dev E=save-exact f=force g=global"),
    ("pip pip3", "", "U=upgrade q=quiet y=yes"),
    ("cargo", "", "q=quiet r=release v=verbose"),
    ("gh", "api", "F=field H=header X=method f=raw-field i=include"),
    ("helm", "", "A=all-namespaces a=all i=install q=quiet"),
    ("systemctl", "", "a=all f=force q=quiet"),
    ("journalctl", "", "f=follow r=reverse"),
    ("gpg gpg2", "", "a=armor c=symmetric d=decrypt e=encrypt s=sign"),
];

/// Names of one kind of what `kubectl` names.
const KINDS: &[Names] = &[
    "configmap configmaps cm",
    "cronjob cronjobs cj",
    "daemonset daemonsets ds daemonset.apps daemonsets.apps",
    "deployment deployments deploy deployment.apps deployments.apps",
    "endpoints endpoint ep",
    "event events ev",
    "horizontalpodautoscaler horizontalpodautoscalers hpa",
    "ingress ingresses ing",
    "job jobs job.batch jobs.batch",
    "namespace namespaces ns",
    "node nodes no",
    "persistentvolume persistentvolumes pv",
    "persistentvolumeclaim persistentvolumeclaims pvc",
    "pod pods po",
    "replicaset replicasets rs replicaset.apps replicasets.apps",
    "role roles",
    "rolebinding rolebindings",
    "secret secrets",
    "service services svc",
    "serviceaccount serviceaccounts sa",
    "statefulset statefulsets sts statefulset.apps statefulsets.apps",
];

/// Returns a kind without its version and its group (`deployments.v1.apps`). The name of a file is none.
pub(crate) fn kind(word: &str) -> &str {
    match word.split_once('.') {
        Some((kind, rest)) if !["json", "yaml", "yml"].iter().any(|end| rest.ends_with(end)) => kind,
        _ => word,
    }
}

/// Returns all names of a kind, or none if the tables do not have it.
pub(crate) fn kinds(name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let name = kind(name).to_ascii_lowercase();
    let found = KINDS.iter().find(|names| super::contains(names, &name));
    found.into_iter().flat_map(|names| names.split_whitespace())
}

/// Programs, and pairs of subcommands that are the same: a name, or `FIRST-SECOND`, and the usual one.
const SUBCOMMANDS: &[(Names, Names)] = &[
    (
        "docker podman",
        "container-attach=attach container-commit=commit container-cp=cp container-create=create container-diff=diff \
         container-exec=exec container-export=export container-inspect=inspect container-kill=kill container-list=ps \
         container-logs=logs container-ls=ps container-pause=pause container-port=port container-ps=ps container-rename=rename \
         container-restart=restart container-rm=rm container-run=run container-start=start container-stats=stats container-stop=stop \
         container-top=top container-unpause=unpause container-update=update container-wait=wait image-build=build \
         image-history=history image-import=import image-list=images image-load=load image-ls=images image-pull=pull image-push=push \
         image-remove=rmi image-rm=rmi image-save=save image-tag=tag container-remove=rm builder-build=build buildx-b=build \
         buildx-build=build",
    ),
    (
        "docker podman",
        "network-remove=network~rm service-remove=service~rm stack-down=stack~rm stack-remove=stack~rm volume-remove=volume~rm",
    ),
    ("git", "stage=add init-db=init remote-rm=remote~remove stash-save=stash~push"),
    (
        "gh",
        "cs=codespace issue-new=issue~create issue-ls=issue~list pr-co=pr~checkout pr-ls=pr~list pr-new=pr~create release-new=release~create \
         release-ls=release~list repo-new=repo~create repo-ls=repo~list run-ls=run~list",
    ),
    ("brew", "remove=uninstall rm=uninstall"),
    (
        "kubectl oc",
        "create-dep=create~deployment create-deploy=create~deployment create-cj=create~cronjob create-ns=create~namespace",
    ),
    (
        "npm",
        "add=install add-user=adduser author=owner c=config cit=ci clean-install=ci create=init ddp=dedupe dist-tags=dist-tag find=search home=docs \
         i=install ic=ci in=install info=view innit=init ins=install inst=install insta=install instal=install install-clean=ci \
         install-test=install isnt=install isnta=install isntal=install isntall=install issues=bugs it=install list=ls ln=link pub=publish \
         r=uninstall rb=rebuild remove=uninstall rm=uninstall rum=run run-script=run s=search se=search show=view sit=ci t=test \
         tst=test udpate=update un=uninstall unlink=uninstall up=update upgrade=update urn=run v=view verison=version why=explain \
         x=exec",
    ),
    ("pnpm", "i=install un=remove uninstall=remove rm=remove run-script=run up=update upgrade=update"),
    (
        "helm",
        "del=uninstall delete=uninstall dep=dependency fetch=pull hist=history inspect=show ls=list plugin-add=plugin~install \
         plugin-ls=plugin~list repo-ls=repo~list repo-rm=repo~remove un=uninstall",
    ),
    ("cargo", "b=build c=check d=doc r=run rm=remove t=test"),
];

/// Commands of `npm` with no other name. It takes the beginning of a name for it.
const OF_NPM: Names = "access audit completion deprecate diff doctor edit exec explore find-dupes fund hook install login logout ls org \
    outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart root run sbom shrinkwrap star start stop team \
    test token uninstall unpublish unstar update version view whoami";

/// Returns the name of a command of `npm` of which a word is the beginning, or another spelling (`runScript`).
fn begun(word: &str) -> Option<&'static str> {
    let mut name = String::new();
    for letter in word.chars() {
        name.extend(letter.is_ascii_uppercase().then_some('-'));
        name.push(letter.to_ascii_lowercase());
    }
    let pairs =
        SUBCOMMANDS.iter().filter(|(programs, _)| *programs == "npm").flat_map(|(_, pairs)| pairs.split_whitespace());
    let aliases = pairs.filter_map(|pair| pair.split_once('='));
    let mut found: Vec<&str> = aliases
        .chain(OF_NPM.split_whitespace().map(|name| (name, name)))
        .filter(|(known, _)| name.len() > 1 && known.starts_with(&name))
        .map(|(_, usual)| usual)
        .collect();
    found.sort_unstable();
    found.dedup();
    if let [usual] = found[..] { Some(usual) } else { None }
}

/// Programs with another name for the same one.
const PROGRAMS: Names = "apt-get=apt docker-compose=docker gmake=make gpg2=gpg gsed=sed gtar=tar microk8s.kubectl=kubectl nodejs=node oc=kubectl \
    pip3=pip python3=python";

/// Returns the usual name of a program, without its version (`python3.11`).
pub(crate) fn program(name: &str) -> &str {
    let name = if super::named(name).versioned { super::table_name(name) } else { name };
    let pairs = PROGRAMS.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(other, _)| *other == name).map_or(name, |(_, usual)| usual)
}

/// Returns the usual name of a subcommand, with `~` between two words, and how many words it takes the place of. A toolchain has no name
/// (`cargo +nightly`).
pub(crate) fn subcommand(program: &str, first: &str, second: Option<&str>) -> Option<(&'static str, usize)> {
    if program == "cargo" && first.starts_with('+') {
        return Some(("", 1));
    }
    let of_program = SUBCOMMANDS.iter().filter(|(programs, _)| super::contains(programs, program));
    let pairs = of_program.flat_map(|(_, pairs)| pairs.split_whitespace()).filter_map(|pair| pair.split_once('='));
    let words = |name: &str| match name.split_once('-') {
        Some((group, own)) if group == first && Some(own) == second => Some(2),
        _ => (name == first).then_some(1),
    };
    let found = pairs.filter_map(|(name, usual)| Some((usual, words(name)?))).next();
    found.or_else(|| begun(first).filter(|usual| program == "npm" && *usual != first).map(|usual| (usual, 1)))
}

/// Programs that take the beginning of a long option for it, as `getopt_long` does.
const ABBREVIATING: Names = "awk chgrp chmod chown cp curl date df diff du env fgrep egrep gawk gpg gpg2 grep gsed gtar gzip head install \
    journalctl ln ls make mkdir mv nice patch pg_dump pg_dumpall pg_restore psql rm rmdir sed shred sort split stat sudo systemctl tail \
    tar tee timeout touch truncate wget xargs xz";

/// Their long options that are the beginning of another one, and that no other table has.
const WHOLE: &[(Names, Names)] = &[
    ("curl wget", "cert data form key location proxy retry trace url user"),
    ("egrep fgrep grep", "exclude include null"),
    ("gpg gpg2", "encrypt export gen-key import list-keys sign verify"),
    ("journalctl", "boot output unit user"),
    ("tar gtar", "checkpoint exclude group newer owner"),
];

/// Returns whether a program takes the beginning of a long option for it.
pub(crate) fn abbreviates(program: &str) -> bool {
    super::contains(ABBREVIATING, program)
}

/// Returns pairs of names of the same option, for denials.
pub(crate) fn same(program: &str, subcommand: &str) -> Vec<(&'static str, &'static str)> {
    let is_it = |(programs, subcommands, _): &&(Names, Names, Names)| {
        super::contains(programs, program) && (subcommands.is_empty() || super::contains(subcommands, subcommand))
    };
    let pairs = SWITCHES.iter().filter(is_it).flat_map(|(.., pairs)| pairs.split_whitespace());
    pairs.filter_map(|pair| pair.split_once('=')).collect()
}

/// Returns whether a table has a name of an option of a program.
pub(crate) fn has(program: &str, name: &str) -> bool {
    let whole = WHOLE.iter().filter(|(programs, _)| super::contains(programs, program));
    let is_whole = whole.into_iter().any(|(_, names)| super::contains(names, name));
    let of_program = SWITCHES.iter().filter(|(programs, ..)| super::contains(programs, program));
    let switches = of_program.flat_map(|(.., pairs)| pairs.split_whitespace()).filter_map(|pair| pair.split_once('='));
    is_whole || switches.chain(pairs(program)).any(|(one, other)| one == name || other == name)
}

/// Returns the names that a program has for the same choice, each with the choice. A program is `git clone`, for git.
pub(crate) fn of(program: &str) -> Vec<(&'static str, &'static str)> {
    pairs(program).collect()
}

fn pairs(program: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let subcommand = program.strip_prefix("git ");
    let is_it = move |programs: Names| match subcommand {
        Some(subcommand) => {
            programs.starts_with("git ") && programs.split("git ").any(|known| known.trim_end() == subcommand)
        }
        None => !programs.starts_with("git ") && super::contains(programs, program),
    };
    let pairs =
        TABLE.iter().filter(move |(programs, _)| is_it(programs)).flat_map(|(_, pairs)| pairs.split_whitespace());
    pairs.filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_a_program_has_one_choice() {
        for (programs, pairs) in TABLE {
            let names: Vec<&str> = pairs.split_whitespace().map(|pair| pair.split_once('=').unwrap().0).collect();
            let mut once = names.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(names.len(), once.len(), "{programs}");
            // A choice is no other name of a further one: both would differ from the third.
            let is_final = |pair: &str| !names.contains(&pair.split_once('=').unwrap().1);
            assert!(pairs.split_whitespace().all(is_final), "{programs}");
        }
    }

    #[test]
    fn the_subcommands_of_git_have_their_own() {
        let choice =
            |program: &str, name: &str| of(program).iter().find(|(known, _)| *known == name).map(|pair| pair.1);
        assert_eq!(choice("git clone", "b"), Some("branch"));
        assert_eq!(choice("git rebase", "X"), Some("strategy-option"));
        assert_eq!(choice("git init", "b"), Some("initial-branch"));
        assert_eq!(choice("git", "b"), None);
        assert_eq!(choice("clone", "b"), None);
        assert_eq!(choice("tar", "cd"), Some("directory"));
    }
}
