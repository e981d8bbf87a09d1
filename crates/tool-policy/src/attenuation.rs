//! Attenuation: whether a pattern allows no more than another, and what a job's child may have.
//!
//! The check is sound but not complete: it refuses a child unless it can tell that the child gets no more.

use crate::path::ResolvedRoots;
use crate::rule::{Matcher, Origin, Rule};
use crate::{Application, PathRoots, Rights, ToolLists, ToolPattern};

/// The error of a child that asks for more than its parent has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttenuationError {
    /// No pattern of the parent covers the pattern.
    #[error("`{pattern}` is more than {parent} may do itself; leave it out, or narrow it to one of: {granted}")]
    NotCovered {
        /// The requested pattern.
        pattern: String,
        /// The requester.
        parent: String,
        /// The parent's patterns.
        granted: String,
    },
    /// The pattern overlaps a denial of the parent.
    #[error("`{pattern}` reaches into `{denied}`, which {parent} is denied; narrow it")]
    Denied {
        /// The requested pattern.
        pattern: String,
        /// The parent's denial.
        denied: String,
        /// The requester.
        parent: String,
    },
    /// The pattern overlaps a rule under which the parent has to ask the person.
    #[error(
        "`{pattern}` reaches into `{asked}`, which {parent} has to ask the person about; put it under `ask_tools`, or narrow it"
    )]
    Asked {
        /// The requested pattern.
        pattern: String,
        /// The parent's rule of `ask_tools`.
        asked: String,
        /// The requester.
        parent: String,
    },
    /// The child has a denylist that denies only a part of an entry of the parent's allowlist.
    #[error(
        "`{denied}` takes away a part of `{pattern}` only; give the new job an allowlist (`allowed_tools`) instead"
    )]
    Partly {
        /// The parent's grant.
        pattern: String,
        /// The requested denial.
        denied: String,
    },
}

/// The maker of a child.
#[derive(Clone, Copy, Debug)]
pub struct Parent<'a> {
    /// The parent's name in errors: `routine x`.
    pub name: &'a str,
    /// The parent's lists.
    pub tools: &'a ToolLists,
    /// The patterns about which the parent asks the person.
    pub ask: &'a [ToolPattern],
    /// The patterns that the parent has without an allowlist.
    pub main_tools: &'a [ToolPattern],
    /// The folders of the parent's sandbox, or `None` without a sandbox, where rules open everything that they say.
    pub sandbox: Option<&'a PathRoots>,
}

/// Patterns that their owner may hand on.
#[derive(Clone, Copy, Debug)]
pub struct DelegablePatterns<'a> {
    /// The owner's name in errors.
    pub owner: &'a str,
    /// The owner's patterns.
    pub patterns: &'a [ToolPattern],
    /// See [`Parent::sandbox`].
    pub sandbox: Option<&'a PathRoots>,
}

impl Application {
    /// Returns whether `parent` allows everything that `child` allows. `false` if that cannot be told.
    #[must_use]
    pub fn covers(&'static self, parent: &ToolPattern, child: &ToolPattern) -> bool {
        rule_covers(&self.rule(parent), &self.rule(child))
    }

    pub(crate) fn rule(&'static self, pattern: &ToolPattern) -> Rule {
        Rule::new(pattern, Origin::MainTools, self)
    }

    /// Returns whether a job that has `parent` may hand `child` on: `child` grants no call that `parent` does not grant, and no
    /// right that the sandbox does not give to `parent`. A rule for a whole tool opens less than narrow rules can: `Read` and
    /// `Edit` open nothing of the person's home folder, `Bash` no sockets with a path, `Agent` no agents. `false` if that
    /// cannot be told.
    #[must_use]
    pub fn delegates(&'static self, parent: &ToolPattern, child: &ToolPattern, roots: &PathRoots) -> bool {
        self.delegates_in(parent, child, &ResolvedRoots::new(roots, self))
    }

    pub(crate) fn delegates_in(
        &'static self,
        parent: &ToolPattern,
        child: &ToolPattern,
        roots: &ResolvedRoots,
    ) -> bool {
        if parent == child {
            return true;
        }
        let (outer, inner) = (self.rule(parent), self.rule(child));
        if !rule_covers(&outer, &inner) {
            return false;
        }
        match (&outer.matcher, &inner.matcher) {
            (_, Matcher::All) | (_, Matcher::Unsupported) => true,
            (Matcher::Path(outer), Matcher::Path(inner)) => inner.is_in_work() || !outer.is_closed(roots),
            (_, Matcher::Path(inner)) => inner.is_in_work(),
            (Matcher::Command(outer), Matcher::Command(inner)) => outer.spells_program_of(inner),
            (_, Matcher::Command(inner)) => {
                inner.program().is_some_and(|program| Rights::wide().covers(&inner.rights(program)))
            }
            (_, Matcher::Text(_)) => !outer.is_all() || child.canonical_tool() != "Agent",
            (_, Matcher::Host(_)) => true,
        }
    }

    /// Returns whether some call could match both. `true` if that cannot be told.
    #[must_use]
    pub fn overlaps(&'static self, grant: &ToolPattern, denial: &ToolPattern) -> bool {
        let (grant, denial) = (self.rule(grant), self.rule(denial));
        if grant.is_for_everything() || denial.is_for_everything() {
            return true;
        }
        if let (Some(a), Some(b)) = (grant.name(), denial.name()) {
            return a.overlaps(b);
        }
        if grant.name().is_some() || denial.name().is_some() {
            return false;
        }
        let (granted, denied) = (grant.pattern.canonical_tool(), denial.pattern.canonical_tool());
        let paths = ["Read", "Edit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS"];
        let related = granted == denied || (paths.contains(&granted) && paths.contains(&denied));
        if !related {
            return false;
        }
        match (&grant.matcher, &denial.matcher) {
            (Matcher::Command(grant), Matcher::Command(denial)) => grant.reaches(denial),
            (Matcher::Path(a), Matcher::Path(b)) => a.overlaps(b),
            (Matcher::Host(a), Matcher::Host(b)) => a.overlaps(b),
            (Matcher::Text(a), Matcher::Text(b)) => a.iter().any(|a| b.iter().any(|b| a.overlaps(b))),
            _ => true,
        }
    }

    /// Returns the lists of a child that a job creates: the requested ones, limited to the job's. Neither the job nor the child
    /// has both lists.
    ///
    /// The job's allowlist must cover each pattern of the child's. The job's denials are appended to a denylist.
    ///
    /// # Errors
    /// [`AttenuationError`] with the offending pattern.
    pub fn attenuate(&'static self, parent: &Parent<'_>, asked: &ToolLists) -> Result<ToolLists, AttenuationError> {
        let Parent { name, tools: parent, ask, main_tools, sandbox } = *parent;
        let denied = parent.deny.as_deref().unwrap_or_default();
        let more = asked.deny.as_deref().unwrap_or_default();
        if let Some(patterns) = &asked.allow {
            let always = self.always_allowed();
            let granted = parent.allow.as_ref().map(|own| {
                let always = always.iter().filter(|pattern| !own.contains(pattern));
                own.iter().chain(always).cloned().collect::<Vec<_>>()
            });
            let granted =
                DelegablePatterns { owner: name, patterns: granted.as_deref().unwrap_or(main_tools), sandbox };
            self.demand(&granted, denied, patterns)?;
            if parent.allow.is_none() {
                self.demand_unasked(name, ask, patterns)?;
            }
            return Ok(ToolLists { allow: Some(patterns.clone()), deny: None });
        }
        if let Some(own) = &parent.allow {
            return Ok(ToolLists { allow: Some(self.without_whole(own, more)?), deny: None });
        }
        let none = parent.deny.is_none() && asked.deny.is_none();
        let mut all = denied.to_vec();
        all.extend(more.iter().filter(|pattern| !denied.contains(pattern)).cloned());
        Ok(ToolLists { allow: None, deny: (!none).then_some(all) })
    }

    /// Returns the patterns about which a child asks the person: the requested ones, limited to what the job may do or ask. `child`: its
    /// limited lists. `asked`: `None` for the job's own. `silent`: no answer counts as a yes for the child but not for the
    /// job; then the child asks about patterns that the job may do unasked, and about nothing else.
    ///
    /// A child without an allowlist asks about all patterns about which the job asks.
    ///
    /// # Errors
    /// [`AttenuationError`] with the offending pattern.
    pub fn attenuate_asks(
        &'static self,
        parent: &Parent<'_>,
        child: &ToolLists,
        asked: Option<&[ToolPattern]>,
        silent: bool,
    ) -> Result<Vec<ToolPattern>, AttenuationError> {
        let Parent { name, tools, ask, main_tools, sandbox } = *parent;
        let denied = tools.deny.as_deref().unwrap_or_default();
        // A child with an allowlist has no denials that could restrict inherited patterns.
        let keeps = |pattern: &&ToolPattern| {
            child.allow.is_none() || !denied.iter().any(|denial| self.overlaps(pattern, denial))
        };
        let inherited = ask.iter().filter(keeps).cloned();
        let mut asks = asked.map_or_else(|| inherited.collect(), <[ToolPattern]>::to_vec);
        if child.allow.is_none() {
            let more: Vec<ToolPattern> = ask.iter().filter(|pattern| !asks.contains(pattern)).cloned().collect();
            asks.extend(more);
        }
        let mut granted = tools.allow.as_deref().unwrap_or(main_tools).to_vec();
        if !silent {
            granted.extend(ask.iter().cloned());
        } else if tools.allow.is_none() {
            self.demand_unasked(name, ask, &asks)?;
        }
        let new =
            |pattern: &&ToolPattern| silent || asked.is_some() && (child.allow.is_some() || !ask.contains(pattern));
        let new: Vec<ToolPattern> = asks.iter().filter(new).cloned().collect();
        self.demand(&DelegablePatterns { owner: name, patterns: &granted, sandbox }, denied, &new)?;
        Ok(asks)
    }

    /// Checks that none of `patterns` overlaps one that has to be asked about.
    fn demand_unasked(
        &'static self,
        owner: &str,
        ask: &[ToolPattern],
        patterns: &[ToolPattern],
    ) -> Result<(), AttenuationError> {
        let always = self.always_allowed();
        let mut patterns = patterns.iter().filter(|pattern| always.as_ref() != Some(pattern));
        let reaching =
            patterns.find_map(|pattern| Some((pattern, ask.iter().find(|asked| self.overlaps(pattern, asked))?)));
        match reaching {
            Some((pattern, asked)) => Err(AttenuationError::Asked {
                pattern: pattern.to_string(),
                asked: asked.to_string(),
                parent: owner.into(),
            }),
            None => Ok(()),
        }
    }

    /// Checks that the owner of `granted` may hand on each of `patterns`, and that none overlaps one of its denials.
    ///
    /// # Errors
    /// [`AttenuationError`] with the first offending pattern.
    pub fn demand(
        &'static self,
        granted: &DelegablePatterns<'_>,
        denied: &[ToolPattern],
        patterns: &[ToolPattern],
    ) -> Result<(), AttenuationError> {
        let roots = granted.sandbox.map(|roots| ResolvedRoots::new(roots, self));
        patterns.iter().try_for_each(|pattern| self.check(granted, roots.as_ref(), denied, pattern))
    }

    fn check(
        &'static self,
        granted: &DelegablePatterns<'_>,
        roots: Option<&ResolvedRoots>,
        denied: &[ToolPattern],
        pattern: &ToolPattern,
    ) -> Result<(), AttenuationError> {
        let parent = granted.owner;
        // Every job has this entry anyway.
        if self.always_allowed().as_ref() == Some(pattern) {
            return Ok(());
        }
        let has = |grant: &ToolPattern| match roots {
            Some(roots) => self.delegates_in(grant, pattern, roots),
            None => self.covers(grant, pattern),
        };
        if !granted.patterns.iter().any(has) {
            let shown: Vec<String> = granted.patterns.iter().map(ToString::to_string).collect();
            return Err(AttenuationError::NotCovered {
                pattern: pattern.to_string(),
                parent: parent.into(),
                granted: shown.join(", "),
            });
        }
        match denied.iter().find(|denial| self.overlaps(pattern, denial)) {
            Some(denial) => Err(AttenuationError::Denied {
                pattern: pattern.to_string(),
                denied: denial.to_string(),
                parent: parent.into(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the grants without the denied ones. Each must be denied entirely or not at all.
    fn without_whole(
        &'static self,
        granted: &[ToolPattern],
        denied: &[ToolPattern],
    ) -> Result<Vec<ToolPattern>, AttenuationError> {
        let mut kept = Vec::new();
        for pattern in granted {
            if denied.iter().any(|denial| self.covers(denial, pattern)) {
                continue;
            }
            if let Some(denial) = denied.iter().find(|denial| self.overlaps(pattern, denial)) {
                return Err(AttenuationError::Partly { pattern: pattern.to_string(), denied: denial.to_string() });
            }
            kept.push(pattern.clone());
        }
        Ok(kept)
    }
}

/// Returns whether `parent` allows everything that `child` allows, by the rules' words.
pub(crate) fn rule_covers(parent: &Rule, child: &Rule) -> bool {
    if parent.is_for_everything() {
        return true;
    }
    if let (Some(outer), Some(inner)) = (parent.name(), child.name()) {
        return outer.covers(inner) && (parent.is_all() || parent.pattern == child.pattern);
    }
    let (outer, inner) = (parent.pattern.canonical_tool(), child.pattern.canonical_tool());
    // Edit rules grant reading, and every tool that writes.
    let related = outer == inner || (outer == "Edit" && matches!(inner, "Read" | "NotebookEdit" | "NotebookRead"));
    if !related || parent.name().is_some() || child.name().is_some() {
        return false;
    }
    match (&parent.matcher, &child.matcher) {
        (Matcher::All, _) => true,
        (Matcher::Command(outer), Matcher::Command(inner)) => outer.covers(inner),
        (Matcher::Path(outer), Matcher::Path(inner)) => outer.covers(inner),
        (Matcher::Host(outer), Matcher::Host(inner)) => outer.covers(inner),
        (Matcher::Text(outer), Matcher::Text(inner)) => {
            inner.iter().all(|inner| outer.iter().any(|outer| outer.covers(inner)))
        }
        _ => parent.pattern == child.pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    fn pattern(text: &str) -> ToolPattern {
        ToolPattern::parse(text).unwrap()
    }

    #[test]
    fn covering_is_sound_for_every_kind() {
        for (parent, child, expected) in [
            ("Bash", "Bash(ls *)", true),
            ("Bash(*)", "Bash", true),
            ("Bash(ls *)", "Bash", false),
            ("Bash(bot *)", "Bash(bot gmail *)", true),
            ("Bash(bot gmail *)", "Bash(bot *)", false),
            ("Bash(bot gmail *)", "Bash(bot gmail unread)", true),
            ("Bash(bot gmail:*)", "Bash(bot gmail *)", true),
            ("Edit(notes/**)", "Read(notes/a)", true),
            ("Read(notes/**)", "Edit(notes/a)", false),
            ("Edit", "Write(x)", true),
            ("Write", "Edit", true),
            ("Edit", "NotebookEdit", true),
            ("NotebookEdit", "Edit", false),
            ("WebFetch", "WebFetch(domain:docs.rs)", true),
            ("WebFetch(domain:*.rs)", "WebFetch(domain:docs.rs)", true),
            ("WebFetch(domain:docs.rs)", "WebFetch", false),
            ("mcp__chat", "mcp__chat__ping_user", true),
            ("mcp__chat__*", "mcp__chat", true),
            ("mcp__chat__ping_user", "mcp__chat", false),
            ("mcp__chat", "mcp__chatx", false),
            ("Agent(Explore)", "Task(Explore)", true),
            ("Agent(Explore)", "Agent", false),
            ("Agent(Explore, Plan)", "Agent(Plan)", true),
            ("Agent(Explore,Plan)", "Agent(Plan, Explore)", true),
            ("Agent(Plan)", "Agent(Explore, Plan)", false),
            ("Skill(deploy *)", "Skill(deploy staging)", true),
            ("*", "Bash", true),
            ("*", "mcp__x", true),
            ("Read", "Grep", false),
            ("WebSearch", "WebSearch", true),
        ] {
            assert_eq!(BOT.covers(&pattern(parent), &pattern(child)), expected, "{parent} covers {child}");
        }
    }

    /// A whole tool, and a tree around protected places, open less in the sandbox than narrow rules can.
    #[test]
    fn nothing_is_handed_on_that_the_sandbox_does_not_give() {
        let roots = PathRoots {
            root: "/home/ann/bot".into(),
            work: "/home/ann/bot/work".into(),
            user_home: "/home/ann".into(),
        };
        for (parent, child, expected) in [
            ("Read", "Read", true),
            ("Read", "Read(notes/**)", true),
            ("Read", "Read(*.md)", true),
            ("Read", "Read(~/.ssh/**)", false),
            ("Read", "Read(//home/ann/.ssh/**)", false),
            ("Read", "Read(//etc/**)", false),
            ("Edit", "Edit(~/.ssh/**)", false),
            ("Edit", "Read(~/.ssh/**)", false),
            ("Edit", "Write(notes/a)", true),
            ("NotebookEdit", "NotebookEdit(~/.ssh/**)", false),
            ("Grep", "Grep(~/.ssh/**)", false),
            ("*", "Edit(~/.ssh/**)", false),
            ("*", "Edit(notes/**)", true),
            ("*", "Edit", true),
            ("Read(~/**)", "Read(~/**)", true),
            ("Read(~/**)", "Read(~/.ssh/**)", false),
            ("Read(//**)", "Read(//etc/**)", false),
            ("Read(//home/**)", "Read(//home/ann/.ssh/**)", false),
            ("Read(~/docs/**)", "Read(~/docs/a/**)", true),
            ("Read(//etc/**)", "Read(//etc/apt/**)", true),
            ("Bash", "Bash(ls *)", true),
            ("Bash", "Bash(python3 x.py)", true),
            ("Bash", "Bash(bash notes/x.sh)", true),
            ("Bash", "Bash(bot gmail *)", true),
            ("Bash", "Bash(docker *)", false),
            ("Bash", "Bash(ssh *)", false),
            ("Bash", "Bash(* ps)", false),
            ("*", "Bash(docker *)", false),
            ("Bash(docker *)", "Bash(docker ps)", true),
            ("Bash(bash *)", "Bash(bash notes/x.sh)", false),
            ("Bash(sh *)", "Bash(sh notes/x.sh)", false),
            ("Bash(bash notes/*)", "Bash(bash notes/x.sh)", true),
            ("Bash(bash *)", "Bash(bash -c *)", true),
            ("Bash(* --version)", "Bash(notes/evil.sh --version)", false),
            ("Bash(* --version)", "Bash(git --version)", false),
            ("Bash(/opt/tools/* *)", "Bash(/opt/tools/x *)", false),
            ("Agent", "Agent(clerk)", false),
            ("*", "Agent(clerk)", false),
            ("Agent(clerk)", "Agent(clerk)", true),
            ("Agent(c*)", "Agent(clerk)", true),
            ("Skill", "Skill(deploy)", true),
            ("WebFetch", "WebFetch(domain:docs.rs)", true),
            ("mcp__chat", "mcp__chat__ping_user", true),
        ] {
            let found = BOT.delegates(&pattern(parent), &pattern(child), &roots);
            assert_eq!(found, expected, "{parent} hands on {child}");
        }
    }

    #[test]
    fn a_child_gets_no_rule_that_reaches_what_its_parent_is_denied() {
        let push = pattern("Bash(git push *)");
        for text in [
            "Bash(git *)",
            "Bash(git push)",
            "Bash(git push origin *)",
            "Bash(/usr/local/bin/git *)",
            "Bash(/usr/bin/git push *)",
            "Bash(git -C . push *)",
            "Bash(git --no-pager *)",
            "Bash(git -c alias.x=push x)",
            "Bash(git my-alias *)",
            "Bash(git-push *)",
            "Bash(/usr/lib/git-core/git-push)",
            "Bash(git \"push x\")",
            "Bash(* push *)",
            "Bash(g*)",
            "Bash(env *)",
            "Bash(bash *)",
            "Bash(sh -c *)",
            "Bash(make *)",
            "Bash(make)",
            "Bash(xargs *)",
            "Bash(npm test)",
            "Bash(python3 x.py)",
            "Bash(mytool *)",
            "Bash(./git log)",
            "Bash(/opt/bin/ls *)",
            "Bash(tar --to-command=x *)",
        ] {
            assert!(BOT.overlaps(&pattern(text), &push), "{text}");
        }
        for text in [
            "Bash(git log *)",
            "Bash(/usr/bin/git log *)",
            "Bash(git commit *)",
            "Bash(git fetch)",
            "Bash(ls *)",
            "Bash(find . -name *)",
            "Bash(cat *)",
            "Bash(cp *)",
            "Bash(curl https://a.b/*)",
            "Bash(bot gmail *)",
            "Read",
        ] {
            assert!(!BOT.overlaps(&pattern(text), &push), "{text}");
        }
        for (grant, denial, expected) in [
            ("Bash(bot-cal *)", "Bash(bot cal *)", true),
            ("Bash(bot cal *)", "Bash(bot-cal *)", true),
            ("Bash(/x/bin/bot --json cal *)", "Bash(bot cal *)", true),
            ("Bash(bot follow_up *)", "Bash(bot follow-up *)", true),
            ("Bash(bot gmail *)", "Bash(bot cal *)", false),
            ("Bash(bot gmail read *)", "Bash(bot gmail send *)", false),
            ("Bash(bot gmail --x *)", "Bash(bot gmail send *)", true),
            ("Bash(npm test)", "Bash(npm publish)", false),
            ("Bash(ls)", "Bash(* --force)", false),
            ("Bash(ls *)", "Bash(* --force)", true),
            // A denial counts in doubt: a star between quotes is one.
            ("Bash(git push mainline)", "Bash(git push 'main*')", true),
            ("Bash(git push dev)", "Bash(git push 'main*')", true),
            ("Bash(bot gmail read)", "Bash(bot gmail 're*')", true),
            ("Bash(bot gmail send)", "Bash(bot cal 're*')", false),
        ] {
            assert_eq!(BOT.overlaps(&pattern(grant), &pattern(denial)), expected, "{grant} under {denial}");
        }
    }

    #[test]
    fn a_child_spells_no_option_and_names_no_address_that_its_parent_does_not() {
        for (parent, child, expected) in [
            ("Bash(find *)", "Bash(find . -name *)", true),
            ("Bash(find *)", "Bash(find . -delete)", false),
            ("Bash(find * -delete)", "Bash(find . -delete)", true),
            ("Bash(sed *)", "Bash(sed -i *)", false),
            ("Bash(sort *)", "Bash(sort -u *)", true),
            ("Bash(git *)", "Bash(git push *)", true),
            ("Bash(git *)", "Bash(git -c a.b=c *)", false),
            ("Bash(git *)", "Bash(git config *)", false),
            ("Bash(npm test *)", "Bash(npm test --silent --color=always)", true),
            ("Bash(npm test *)", "Bash(npm test --dry-run=--prefix=x)", false),
            ("Bash(npm test *)", "Bash(npm test --color=-C x *)", false),
            ("Bash(sed -i s/a/b/ *)", "Bash(sed -i s/a/b/ todo.txt)", true),
            ("Bash(sed -i s/a/b/ *)", "Bash(sed -i s/a/b/ -e * todo.txt)", false),
            ("Bash(sed -i s/a/b/ *)", "Bash(sed -i s/a/b/ --file=x)", false),
            ("Bash(sed -i *)", "Bash(sed -i -e * todo.txt)", true),
            ("Bash(curl -e * https://a.b/*)", "Bash(curl -e x https://a.b/*)", true),
            ("Bash(curl -e * https://a.b/*)", "Bash(curl -e 'x\nHost:c' https://a.b/*)", false),
            ("Bash(tar -czf b.tgz *)", "Bash(tar -czf b.tgz --remove-files *)", false),
            ("Bash(curl *)", "Bash(curl https://a.b/*)", true),
            ("Bash(curl *)", "Bash(curl -o f *)", false),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/c*)", true),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/* https://evil/*)", false),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/* *)", true),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/../c)", false),
            ("Bash(curl https://*.a.b/*)", "Bash(curl https://c/x.a.b/*)", false),
            ("Bash(curl *)", "Bash(curl file:///x)", false),
            ("Bash(curl *)", "Bash(curl -H * https://a.b/*)", false),
            ("Bash(wget https://a.b/*)", "Bash(wget --max-redirect=3 https://a.b/*)", false),
            ("Bash(python3 *)", "Bash(python3 report.py)", true),
            ("Bash(tool *)", "Bash(tool x)", true),
            ("Bash(make deploy ENV=*)", "Bash(make deploy ENV=*)", true),
            ("Bash(make deploy ENV=*)", "Bash(make deploy ENV=prod)", true),
            ("Bash(make deploy ENV=*)", "Bash(make deploy ENV=prod*)", true),
            ("Bash(make deploy ENV=*)", "Bash(make deploy 'ENV=x; id')", false),
            ("Bash(sqlite3 a.db select*)", "Bash(sqlite3 a.db 'select edit(1)')", false),
            ("Bash(sqlite3 a.db 'select * from t')", "Bash(sqlite3 a.db 'select * from t')", true),
            ("Bash(sqlite3 a.db 'select * from t')", "Bash(sqlite3 a.db 'select 1 from t')", false),
            ("Bash(node -e print(2*3))", "Bash(node -e 'print(2);evil();(3)')", false),
            ("Bash(perl -ne print *)", "Bash(perl -ne print 'id|')", false),
            ("Bash(ssh host uptime *)", "Bash(ssh host uptime ';id')", false),
            ("Bash(ssh host uptime *)", "Bash(ssh host uptime -p)", true),
            ("Bash(sqlite3 -readonly a.db *)", "Bash(sqlite3 -readonly a.db .shell)", false),
            ("Bash(gpg --verify *)", "Bash(gpg --verify --homedir x a)", false),
            ("Bash(sed -i -f p.sed *)", "Bash(sed -i -f p.sed a.txt)", true),
        ] {
            assert_eq!(BOT.covers(&pattern(parent), &pattern(child)), expected, "{parent} covers {child}");
        }
    }

    fn config(allow: Option<&[&str]>, deny: Option<&[&str]>) -> ToolLists {
        let list = |texts: &[&str]| texts.iter().map(|text| pattern(text)).collect::<Vec<_>>();
        ToolLists { allow: allow.map(list), deny: deny.map(list) }
    }

    #[track_caller]
    fn check(parent: &ToolLists, asked: &ToolLists, expected: Result<&ToolLists, &str>) {
        let main = [pattern("Bash"), pattern("Read"), pattern("mcp__chat")];
        let parent = Parent { name: "routine x", tools: parent, ask: &[], main_tools: &main, sandbox: None };
        match (BOT.attenuate(&parent, asked), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(&found, expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_child_gets_no_more_than_its_parent() {
        let gmail = config(Some(&["Bash(bot gmail *)", "Read"]), None);
        let no_cal = config(None, Some(&["Bash(bot cal *)"]));
        let free = config(None, None);
        let none = config(Some(&[]), None);
        // Without a request the child gets the parent's restrictions.
        check(&gmail, &free, Ok(&gmail));
        check(&no_cal, &free, Ok(&no_cal));
        check(&free, &free, Ok(&free));
        check(&none, &free, Ok(&none));
        // An allowlist within the parent's.
        let narrower = config(Some(&["Bash(bot gmail unread)"]), None);
        check(&gmail, &narrower, Ok(&narrower));
        check(&gmail, &none, Ok(&none));
        check(&gmail, &config(Some(&["Bash(bot help)"]), None), Ok(&config(Some(&["Bash(bot help)"]), None)));
        check(&gmail, &config(Some(&["Bash(bot cal *)"]), None), Err("`Bash(bot cal *)` is more than routine x"));
        check(&none, &narrower, Err("more than routine x"));
        check(&free, &config(Some(&["WebFetch"]), None), Err("more than routine x"));
        // Denials add up.
        check(&no_cal, &config(None, Some(&["Read"])), Ok(&config(None, Some(&["Bash(bot cal *)", "Read"]))));
        check(&no_cal, &narrower, Ok(&narrower));
        check(&no_cal, &config(Some(&["Bash(bot *)"]), None), Err("reaches into `Bash(bot cal *)`"));
        check(&no_cal, &config(Some(&["Bash"]), None), Err("reaches into"));
        // A denial removes whole entries of an allowlist.
        check(&gmail, &config(None, Some(&["Read"])), Ok(&config(Some(&["Bash(bot gmail *)"]), None)));
        check(&gmail, &config(None, Some(&["Bash(bot gmail send *)"])), Err("a part of"));
    }
}
