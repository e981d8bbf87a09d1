//! The tools of spawned agents: the lists of the settings and of one spawn, and how to merge them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Application, PatternError, ToolPattern};

/// `tools: { allow?, deny? }`. An absent list differs from an empty one: an empty allowlist grants
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolLists {
    /// All tools of the agent, or `None` for all tools of its caller.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "texts")]
    pub allow: Option<Vec<ToolPattern>>,
    /// Denied tools. They take precedence over allowed ones.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "texts")]
    pub deny: Option<Vec<ToolPattern>>,
}

impl ToolLists {
    /// Parses both lists from texts.
    ///
    /// # Errors
    /// The error of the first text that is no pattern.
    pub fn parse(
        allow: Option<&[String]>,
        deny: Option<&[String]>,
        application: &Application,
    ) -> Result<Self, PatternError> {
        let list = |texts: Option<&[String]>| {
            texts
                .map(|texts| texts.iter().map(|text| ToolPattern::parse_for_job(text, application)).collect())
                .transpose()
        };
        Ok(Self { allow: list(allow)?, deny: list(deny)? })
    }

    /// Returns whether both lists are absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_none()
    }

    /// Merges the lists for one spawn: its own allowlist replaces the global one, and its own denials follow the global
    /// ones. `own`: `None` if the spawn has no lists.
    #[must_use]
    pub fn merged(global: &Self, own: Option<&Self>) -> Self {
        let Some(own) = own else { return global.clone() };
        let mut deny = global.deny.clone();
        if let Some(more) = &own.deny {
            let all = deny.get_or_insert_default();
            let new: Vec<ToolPattern> = more.iter().filter(|pattern| !all.contains(pattern)).cloned().collect();
            all.extend(new);
        }
        Self { allow: own.allow.clone().or_else(|| global.allow.clone()), deny }
    }
}

/// Serializes lists of patterns as lists of texts.
mod texts {
    use super::{Deserialize, Deserializer, Serialize, Serializer, ToolPattern};

    #[allow(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(list: &Option<Vec<ToolPattern>>, serializer: S) -> Result<S::Ok, S::Error> {
        let texts: Option<Vec<String>> = list.as_ref().map(|list| list.iter().map(ToString::to_string).collect());
        texts.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<ToolPattern>>, D::Error> {
        let texts: Option<Vec<String>> = Option::deserialize(deserializer)?;
        let patterns = texts.map(|texts| texts.iter().map(|text| ToolPattern::parse(text)).collect()).transpose();
        patterns.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a list from the table's word: absent, empty, set.
    fn list(word: &str, set: &str) -> Option<Vec<ToolPattern>> {
        match word {
            "absent" => None,
            "empty" => Some(Vec::new()),
            "set" => Some(vec![ToolPattern::parse(set).unwrap()]),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_combination_is_merged() {
        let words = ["absent", "empty", "set"];
        let mut seen = 0;
        for (global_allow, global_deny) in words.iter().flat_map(|a| words.iter().map(move |d| (*a, *d))) {
            let global = ToolLists { allow: list(global_allow, "Read"), deny: list(global_deny, "WebFetch") };
            // A spawn without lists has the global ones.
            assert_eq!(ToolLists::merged(&global, None), global);
            for (allow, deny) in words.iter().flat_map(|a| words.iter().map(move |d| (*a, *d))) {
                let own = ToolLists { allow: list(allow, "Grep"), deny: list(deny, "WebSearch") };
                let merged = ToolLists::merged(&global, Some(&own));
                // The spawn's allowlist replaces the global one, even if it is empty.
                let expect_allow = if allow == "absent" { global.allow.clone() } else { own.allow.clone() };
                assert_eq!(merged.allow, expect_allow, "{global_allow} {allow}");
                // Denials add up. They are absent only if both are.
                let names: Option<Vec<String>> = merged.deny.map(|deny| deny.iter().map(ToString::to_string).collect());
                let expect: Option<Vec<&str>> = match (global_deny, deny) {
                    ("absent", "absent") => None,
                    ("set", "set") => Some(vec!["WebFetch", "WebSearch"]),
                    ("set", _) => Some(vec!["WebFetch"]),
                    (_, "set") => Some(vec!["WebSearch"]),
                    _ => Some(vec![]),
                };
                assert_eq!(names, expect.map(|names| names.into_iter().map(str::to_owned).collect()));
                seen += 1;
            }
        }
        assert_eq!(seen, 81);
    }

    #[test]
    fn it_is_kept_as_texts_and_what_is_absent_stays_absent() {
        for text in ["{}", r#"{"allow":[]}"#, r#"{"allow":["Read"],"deny":["Bash(git push *)"]}"#] {
            let read: ToolLists = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
        for text in [r#"{"alow":[]}"#, r#"{"allow":["Raed"]}"#, r#"{"allow":"Read"}"#] {
            assert!(serde_json::from_str::<ToolLists>(text).is_err(), "{text}");
        }
    }
}
