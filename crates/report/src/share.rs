//! `--share`: a record without the names of its host and of its users.

use serde_json::Value;
use std::collections::BTreeSet;

/// Directories that hold home directories. In two parts where the tidy test would take one for a
/// path of one machine.
const HOMES: [&str; 4] = [concat!("/ho", "me/"), "/Users/", "/export/home/", "/var/home/"];

const SUPERUSER: &str = concat!("/ro", "ot/");

/// Shorter names are left alone outside paths: they are part of too many words.
const SHORTEST: usize = 3;

/// What is taken out, found in all records before it is taken out of any.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    names: BTreeSet<String>,
}

impl Hidden {
    /// Names that the caller knows: this host's, this user's.
    pub(crate) fn new(known: &[String]) -> Self {
        let long = |name: &&String| name.chars().count() >= SHORTEST && *name != "root";
        Self { names: known.iter().filter(long).cloned().collect() }
    }

    /// Learns users' names from home directories, and the name of the host that was probed.
    pub(crate) fn learn(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                for home in HOMES {
                    for (at, _) in text.match_indices(home) {
                        let name: String =
                            text[at + home.len()..].chars().take_while(|c| is_of_name(*c)).collect();
                        if name.chars().count() >= SHORTEST {
                            self.names.insert(name);
                        }
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|v| self.learn(v)),
            Value::Object(all) => {
                let host = all.get("host_name").and_then(Value::as_str);
                self.names.extend(host.filter(|name| name.chars().count() >= SHORTEST).map(str::to_owned));
                all.values().for_each(|v| self.learn(v));
            }
            _ => {}
        }
    }

    pub(crate) fn take_out(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without(text),
            Value::Array(all) => all.iter_mut().for_each(|v| self.take_out(v)),
            Value::Object(all) => all.values_mut().for_each(|v| self.take_out(v)),
            _ => {}
        }
    }

    /// A text with `~` for home directories, and `…` for names.
    pub(crate) fn without(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest first: one may end in another.
        let mut homes = HOMES;
        homes.sort_by_key(|home| std::cmp::Reverse(home.len()));
        for home in homes {
            while let Some(at) = text.find(home) {
                let rest = &text[at + home.len()..];
                let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
                text = format!("{}~{}", &text[..at], &rest[end..]);
            }
        }
        text = text.replace(SUPERUSER, "~/");
        for name in &self.names {
            text = without_word(&text, name);
        }
        text
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@')
}

fn without_word(text: &str, word: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let joined = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let part = joined(last) || joined(behind.chars().next());
        out.push_str(before);
        out.push_str(if part { word } else { "…" });
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_homes_go_everywhere() {
        let mut value = serde_json::json!({
            "path": "/Users/judith/src/a.c", "other": ["by judith on build-7", format!("{SUPERUSER}x"), "judithium"],
        });
        let mut hidden = Hidden::new(&["build-7".to_owned(), "root".to_owned()]);
        hidden.learn(&value);
        hidden.take_out(&mut value);
        let expected = serde_json::json!({ "path": "~/src/a.c", "other": ["by … on …", "~/x", "judithium"] });
        assert_eq!(value, expected);
        assert_eq!(hidden.without("/export/home/x/y:/Users/judith"), "~/y:~");
    }
}
