//! Tells whether a policy lets some program write.

use super::Writes;
use super::shell::grants_some;
use crate::programs::{self, Class};
use crate::rule::{Matcher, Rule};
use crate::{Policy, ToolPattern};

impl Policy {
    /// Returns the rule by which some program may write in `work/`, and where `Edit` rules let it. `None` if no program may.
    #[must_use]
    pub fn writing_rule(&self) -> Option<&ToolPattern> {
        let mut found = None;
        for list in self.all_lists() {
            if list.read_only || !grants_some(list) {
                return None;
            }
            let rule = list.grants_for("Bash").find(|rule| self.allows_writing(rule));
            found = rule.map(|rule| &rule.pattern).or(found);
            if list.allow.is_some() && rule.is_none() {
                return None;
            }
        }
        found
    }

    /// Returns the rules that grant calls of a tool.
    pub fn granting<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ToolPattern> {
        self.all_lists().iter().flat_map(move |list| list.grants_for(tool)).map(|rule| &rule.pattern)
    }

    fn allows_writing(&self, rule: &Rule) -> bool {
        let Matcher::Command(command) = &rule.matcher else { return rule.is_all() };
        let Some(program) = command.program() else { return true };
        // An extension of the application writes elsewhere. The program that a wrapper starts is judged itself.
        let is_wrapper = programs::known(program).named_class() == Class::Wrapper && !command.names_script();
        !self.application().is_command(program) && !is_wrapper && command.rights(program).writes == Writes::Work
    }
}
