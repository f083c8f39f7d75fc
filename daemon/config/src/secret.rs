/// How each known kind of credential begins, and how many characters must follow.
const PREFIXES: [(&str, usize); 22] = [
    ("sk-", 16),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("ghu_", 16),
    ("github_pat_", 16),
    ("glpat-", 12),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 20),
    ("ya29.", 16),
    ("hf_", 16),
    ("npm_", 20),
    ("SG.", 20),
];

/// Names under which a plain value can only be a secret. Compared in lower case with `_` as `-`. Not `secret`
/// itself: its value is a secret's name.
const TELLING_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "client-secret",
    "api-key",
    "apikey",
    "x-api-key",
    "access-token",
    "auth-token",
    "authorization",
    "private-key",
];

/// Whether a text holds what looks like a key, token or password, wherever it stands in it.
///
/// Knows the prefixes that vendors give their keys, private keys, signed tokens, and passwords in URLs.
#[must_use]
pub fn looks_like_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
        || words(text).any(|word| has_known_prefix(word) || is_signed_token(word))
        || has_bearer(text)
        || url_password(text)
}

/// Whether the value of a field with this name is a secret because of the name: `password = "…"`.
///
/// A template, an empty value and a path (`token-file`-like uses) are none.
pub(crate) fn is_secret_by_name(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let telling = TELLING_NAMES.iter().any(|known| name == *known || name.ends_with(&format!("-{known}")))
        || name.ends_with("-token")
        || name.ends_with("-secret");
    telling && !value.is_empty() && !value.contains("{{") && !value.starts_with(['/', '~', '.'])
}

fn is_key_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_key_character(letter)).filter(|word| word.len() >= 12)
}

fn has_known_prefix(word: &str) -> bool {
    // A sentence may hold `sk-` in the middle of a word (`task-…`), so only the word's start counts.
    PREFIXES.iter().any(|(prefix, least)| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= *least
                && (rest.chars().any(|letter| letter.is_ascii_digit())
                    || rest.chars().any(|letter| letter.is_ascii_uppercase()))
        })
    })
}

/// Three base64url parts, the first a JSON object: a JWT.
fn is_signed_token(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    parts.len() == 3 && parts[0].starts_with("eyJ") && parts.iter().all(|part| part.len() >= 8)
}

/// `Bearer` or `Basic` followed by a literal credential.
fn has_bearer(text: &str) -> bool {
    ["Bearer ", "bearer ", "Basic ", "basic "].iter().any(|scheme| {
        text.split(scheme).skip(1).any(|rest| {
            let word: &str =
                rest.split(|letter: char| !(is_key_character(letter) || "+/=".contains(letter))).next().unwrap_or("");
            word.len() >= 16 && word.chars().any(|letter| letter.is_ascii_digit())
        })
    })
}

/// `scheme://user:password@host`.
fn url_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or("");
        authority.rsplit_once('@').is_some_and(|(user, _)| {
            user.split_once(':').is_some_and(|(_, password)| !password.is_empty() && !password.contains("{{"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_form() {
        for secret in [
            "sk-FAKE-0123456789-FAKE-0123456789",
            "Authorization: Bearer abcdef0123456789abcdef",
            "xoxb-123456789012-abcdefghijkl",
            "token ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "AKIAIOSFODNN7EXAMPLE",
            "https://x.example/?key=AIzaFAKEFAKEFAKEFAKEFAKE1234",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
            "postgres://app:hunter2@db.example/x",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
        ] {
            assert!(looks_like_secret(secret), "{secret}");
        }
    }

    #[test]
    fn ordinary_text_is_no_secret() {
        for text in [
            "",
            "task-runner-for-everyone",
            "sk-learn is a library",
            "sk-learn-contrib-packages",
            "https://example.org/a@b",
            "ssh://git@example.org/repo.git",
            "https://user@example.org:8080/",
            "~/reports/{{ slot.date }}.md",
            "Bearer of good news and more",
            "df -h",
            "/home/ada/.config/owd/secrets.toml",
            "a3f5c2d1e4b6978812345678",
        ] {
            assert!(!looks_like_secret(text), "{text}");
        }
    }

    #[test]
    fn a_field_named_for_a_secret_holds_one() {
        assert!(is_secret_by_name("PASSWORD", "hunter2"));
        assert!(is_secret_by_name("X-Api-Key", "abc"));
        assert!(is_secret_by_name("GITHUB_TOKEN", "abc"));
        assert!(!is_secret_by_name("password-file", "/run/x"));
        assert!(!is_secret_by_name("API_KEY", "/run/credentials/key"));
        assert!(!is_secret_by_name("token", ""));
        assert!(!is_secret_by_name("max-tokens", "100"));
    }
}
