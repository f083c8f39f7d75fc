//! Reads `Authentication-Results` (RFC 8601).

/// What the header says of DMARC for one domain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Dmarc {
    Pass,
    /// The relay could not tell now.
    Later,
    /// It says something else, or nothing.
    Not(String),
}

/// Reads what the relay of that name says of DMARC for `domain`; `header` is the topmost one, unfolded or not.
pub(crate) fn dmarc(header: &str, authserv: &str, domain: &str) -> Dmarc {
    let Some(statements) = statements(header) else { return Dmarc::Not("the results cannot be read".into()) };
    let mut statements = statements.into_iter();
    let mut id = statements.next().unwrap_or_default().into_iter();
    let named = id.next().unwrap_or_default();
    if !named.eq_ignore_ascii_case(authserv) || id.next().is_some_and(|version| version != "1") {
        return Dmarc::Not(format!("the topmost results are from `{named}`, not from `{authserv}`"));
    }
    let mut verdict = None;
    for statement in statements {
        let Some(first) = statement.first().filter(|first| method(first) == "dmarc") else { continue };
        if verdict.is_some() {
            return Dmarc::Not("the relay says more than one thing of DMARC".into());
        }
        let result = first.split_once('=').map(|(_, result)| result.to_ascii_lowercase()).unwrap_or_default();
        let from = statement.iter().find_map(|word| {
            let (name, value) = word.split_once('=')?;
            name.eq_ignore_ascii_case("header.from")
                .then(|| value.rsplit('@').next().unwrap_or(value).trim_end_matches('.'))
        });
        verdict = Some(match (result.as_str(), from) {
            ("pass", Some(from)) if from.eq_ignore_ascii_case(domain) => Dmarc::Pass,
            ("pass", Some(from)) => Dmarc::Not(format!("DMARC passed for `{from}`, not for `{domain}`")),
            ("pass", None) => Dmarc::Not("DMARC passed, for a domain that is not named".into()),
            ("temperror", _) => Dmarc::Later,
            (result, _) => Dmarc::Not(format!("DMARC says `{result}`")),
        });
    }
    verdict.unwrap_or_else(|| Dmarc::Not("the relay says nothing of DMARC".into()))
}

fn method(word: &str) -> String {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Statements apart by `;`, each as words; comments are gone, quoted text is one word with what it belongs to. None if a
/// quote or a comment does not end.
fn statements(header: &str) -> Option<Vec<Vec<String>>> {
    let mut statements = vec![vec![]];
    let mut word = String::new();
    let mut comment = 0_usize;
    let mut letters = header.chars();
    let flush = |word: &mut String, statements: &mut Vec<Vec<String>>| {
        if !word.is_empty()
            && let Some(statement) = statements.last_mut()
        {
            statement.push(std::mem::take(word));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if comment > 0 => {
                letters.next()?;
            }
            '(' => comment += 1,
            ')' if comment > 0 => comment -= 1,
            _ if comment > 0 => {}
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => word.push(letters.next()?),
                    letter => word.push(letter),
                }
            },
            ';' => {
                flush(&mut word, &mut statements);
                statements.push(vec![]);
            }
            _ if letter.is_whitespace() => flush(&mut word, &mut statements),
            _ => word.push(letter),
        }
    }
    flush(&mut word, &mut statements);
    for statement in &mut statements {
        join_around_equals(statement);
    }
    (comment == 0).then_some(statements)
}

/// `dmarc = pass` is one word.
fn join_around_equals(words: &mut Vec<String>) {
    let mut joined: Vec<String> = vec![];
    for word in words.drain(..) {
        match joined.last_mut() {
            Some(last) if last.ends_with('=') || word.starts_with('=') => last.push_str(&word),
            _ => joined.push(word),
        }
    }
    *words = joined;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pass_of_the_named_relay_for_the_domain_counts() {
        let says = |header: &str| dmarc(header, "mx.example.net", "example.org");
        for passes in [
            "mx.example.net; dmarc=pass header.from=example.org; spf=pass",
            "MX.example.net 1;\r\n dmarc=pass (p=NONE sp=NONE) header.from=Example.org",
            "mx.example.net; spf=fail (dmarc=fail); dmarc = pass action=none header.from=example.org;",
        ] {
            assert_eq!(says(passes), Dmarc::Pass, "{passes}");
        }
        for fails in [
            "mx.example.net; dmarc=fail (p=reject) header.from=example.org",
            "mx.example.net; dmarc=fail (dmarc=pass header.from=example.org)",
            "mx.example.net; spf=pass smtp.mailfrom=\"x; dmarc=pass header.from=example.org\"",
            "mx.example.net.bad.example; dmarc=pass header.from=example.org",
            "other.example; dmarc=pass header.from=example.org",
            "dmarc=pass header.from=example.org",
            "mx.example.net; dmarc=pass header.from=bad.example",
            "mx.example.net; dmarc=pass",
            "mx.example.net; dmarc=bestguesspass header.from=example.org",
            "mx.example.net; dmarc=pass header.from=example.org; dmarc=fail header.from=example.org",
            "mx.example.net; none",
            "mx.example.net (; dmarc=pass header.from=example.org",
            "mx.example.net; x-dmarc=pass header.from=example.org",
            "",
        ] {
            assert!(matches!(says(fails), Dmarc::Not(_)), "{fails}");
        }
        assert_eq!(says("mx.example.net; dmarc=temperror header.from=example.org"), Dmarc::Later);
    }
}
