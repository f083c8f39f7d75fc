/// The one of `known` that `text` was most likely meant to be; none where nothing is near.
#[must_use]
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = text.to_ascii_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|candidate| (distance(&folded, &candidate.replace('_', "-")), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().max(3)) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().take(64).collect();
    let to: Vec<char> = to.chars().take(64).collect();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    let mut two_above: Vec<usize> = vec![];
    for (i, left) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in to.iter().enumerate() {
            let mut cost = (above[j] + usize::from(left != right)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *left == to[j - 1] && from[i - 1] == *right {
                cost = cost.min(two_above[j - 1] + 1);
            }
            row.push(cost);
        }
        two_above = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_key_and_nonsense_finds_none() {
        let known = ["catch-up", "timeout", "title", "timezone", "roots"];
        for (text, expected) in [
            ("catchup", Some("catch-up")),
            ("catch_up", Some("catch-up")),
            ("Timezone", Some("timezone")),
            ("tiemout", Some("timeout")),
            ("root", Some("roots")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, known), expected, "{text}");
        }
    }
}
