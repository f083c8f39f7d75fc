use ::url::{Host, Url};

/// Endings by which a name in running text is taken for a host. `.md`, `.rs` or `.sh` are endings of files
/// there, and `.is` or `.name` stand in source code: a host with such an ending is named by its URL.
const ENDINGS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "int", "info", "dev", "eu", "de", "fr", "uk", "nl", "ch", "at", "it",
    "es", "pt", "se", "dk", "fi", "cz", "sk", "hu", "ro", "gr", "ie", "lu", "jp", "cn", "kr", "tw", "au", "nz", "ca",
    "br", "mx", "ar", "cl", "za", "ua", "ru", "tr", "il",
];

/// The hosts that texts of a person or a task name, each as `host` or, where a port is written, `host:port`.
///
/// A URL names its host, and nothing that stands in its path or query; a bare name counts where it can hardly
/// be anything else. What is doubtful is left out: then a fetch asks. Only texts of the person and of the task
/// belong here, never what a tool returned or a trigger brought.
#[must_use]
pub fn named_hosts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hosts: Vec<String> = vec![];
    for text in texts {
        for word in text.split(ends_word) {
            let Some(host) = host_in(word) else { continue };
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    hosts
}

/// A host's name as requests have it: in ASCII and lower case, without a final dot. What is no name stays as it is.
#[must_use]
pub fn ascii_name(name: &str) -> String {
    let name = name.trim_end_matches('.');
    Host::parse(name).map_or_else(|_| name.to_lowercase(), |host| host.to_string())
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || "\"'<>(){}|,;`\\^“”„‘’«»…、。，".contains(letter)
}

/// The host that a word names; what follows the host in the word names none.
fn host_in(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let scheme = ["https://", "http://"].into_iter().filter_map(|scheme| Some((lower.find(scheme)?, scheme))).min();
    if let Some((at, scheme)) = scheme {
        // `[text](https://…)` and `see:https://…` name a host, `/go?to=https://…` does not.
        if word[..at].contains(['/', '?', '=']) || word[..at].ends_with(char::is_alphanumeric) {
            return None;
        }
        return authority(&word[at + scheme.len()..], scheme);
    }
    let bare = word.trim_start_matches(['*', '_', '[', '#']);
    let end = bare.find(['/', '?', '#', ']']).unwrap_or(bare.len());
    let name = bare[..end].trim_end_matches(['.', ':', '!', '*', '_']);
    let host = name.split_once(':').map_or(name, |(host, _)| host);
    let ending = host.rsplit_once('.')?.1.to_ascii_lowercase();
    let looks_like_one = ENDINGS.contains(&ending.as_str()) || lower.starts_with("www.");
    // An address of mail names nobody's pages, and a path begins with a dot or a slash.
    (looks_like_one && host.starts_with(char::is_alphanumeric)).then(|| authority(&bare[..end], "https://"))?
}

fn authority(rest: &str, scheme: &str) -> Option<String> {
    let length = if rest.starts_with('[') {
        let closed = rest.find(']')? + 1;
        closed
            + rest[closed..]
                .find(|letter: char| letter != ':' && !letter.is_ascii_digit())
                .unwrap_or(rest[closed..].len())
    } else {
        rest.find(|letter: char| !(letter.is_alphanumeric() || "-._:@%".contains(letter))).unwrap_or(rest.len())
    };
    let written = rest[..length].trim_end_matches(['.', ':', '-', '_']);
    if written.contains(['@', '%']) {
        return None;
    }
    let url = Url::parse(&format!("{scheme}{written}/")).ok()?;
    let host = match url.host()? {
        Host::Domain(name) => name.trim_end_matches('.').to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => format!("[{address}]"),
    };
    let own_port = written.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let in_brackets = written.ends_with(']');
    Some(own_port.filter(|_| !in_brackets).map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, hosts: &[&str]) {
        assert_eq!(named_hosts([text]), hosts, "{text}");
    }

    #[test]
    fn a_url_names_its_host_and_nothing_in_its_path_or_query() {
        check("Read https://Docs.Example.com/a?b#c please", &["docs.example.com"]);
        check("see (http://example.com:8080/x).", &["example.com:8080"]);
        check(
            "[the page](https://example.org), <https://a.example>, 'https://b.example/'",
            &["example.org", "a.example", "b.example"],
        );
        check("https://good.example/?to=https://evil.example/", &["good.example"]);
        check("https://good.example/https://evil.example/", &["good.example"]);
        check("/login?next=https://evil.example/", &[]);
        check("https://docs.rs/regex and https://docs.rs/url", &["docs.rs"]);
        check("HTTPS://EXAMPLE.COM", &["example.com"]);
        check("https://[2001:db8::1]:444/ and https://[2001:db8::2]/", &["[2001:db8::1]:444", "[2001:db8::2]"]);
        check("http://192.0.2.7/x", &["192.0.2.7"]);
        check("https://bücher.example/", &["xn--bcher-kva.example"]);
        check("ftp://files.example/ and file:///etc/passwd", &[]);
        check("https://", &[]);
    }

    #[test]
    fn a_password_in_a_url_hides_no_other_host() {
        check("https://good.example@evil.example/", &[]);
        check("https://good.example%2f@evil.example/", &[]);
        check("https://good.example\\@evil.example/", &["good.example"]);
    }

    #[test]
    fn a_bare_name_counts_where_it_can_hardly_be_anything_else() {
        check("Compare example.com and news.example.org/today.", &["example.com", "news.example.org"]);
        check("**example.com**: down?", &["example.com"]);
        check("www.museum.example", &["www.museum.example"]);
        check("is example.com:8443 up?", &["example.com:8443"]);
        for text in [
            "read README.md and src/main.rs, then run build.sh",
            "self.id is set, os.path too, event.name, 1.2.3.4, e.g. this, v2.0",
            "write to ann@example.com",
            "look into ./example.com and /srv/www.example.com/ and ~/example.com",
            "sites/example.com/index.html",
            "... .com",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn what_is_named_is_never_a_pattern() {
        check("https://*.example.com/ and *.example.com", &[]);
    }

    #[test]
    fn all_texts_count_once() {
        assert_eq!(
            named_hosts(["https://a.example/ https://b.example/", "https://a.example/"]),
            ["a.example", "b.example"]
        );
    }
}
