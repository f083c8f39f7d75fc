//! Colours as mails name them, as far as needed to see that text has the colour of what it stands on.

/// Red, green and blue.
pub(crate) type Colour = [u8; 3];

pub(crate) const WHITE: Colour = [255; 3];

/// What a mail says text or its ground is painted with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Paint {
    Clear,
    Solid(Colour),
}

/// What text stands on; none: a picture or a colour that is not known here, on which no text is taken for unseen.
pub(crate) type Ground = Option<Colour>;

/// Reads a background; none if it says nothing of the ground.
pub(crate) fn ground(text: &str) -> Option<Ground> {
    let text = text.trim();
    if text.contains("url(") || text.contains("gradient(") {
        return Some(None);
    }
    let known = colour(text).or_else(|| text.split_whitespace().find_map(colour));
    match known {
        Some(Paint::Solid(seen)) => Some(Some(seen)),
        Some(Paint::Clear) => None,
        None if matches!(text, "" | "none" | "inherit" | "initial" | "unset" | "revert") => None,
        None => Some(None),
    }
}

/// How far two colours may be apart and still not be told apart, in each part.
const ALIKE: u8 = 12;

/// Reads a colour; none if it is not one that is known here.
pub(crate) fn colour(text: &str) -> Option<Paint> {
    let text = text.trim().trim_end_matches("!important").trim().to_ascii_lowercase();
    let named = match text.as_str() {
        "transparent" => return Some(Paint::Clear),
        "white" | "window" | "canvas" => WHITE,
        "snow" => [255, 250, 250],
        "ivory" => [255, 255, 240],
        "ghostwhite" => [248, 248, 255],
        "whitesmoke" => [245; 3],
        "floralwhite" => [255, 250, 240],
        "mintcream" => [245, 255, 250],
        "azure" => [240, 255, 255],
        "black" | "windowtext" | "canvastext" => [0; 3],
        "red" => [255, 0, 0],
        "green" => [0, 128, 0],
        "lime" => [0, 255, 0],
        "blue" => [0, 0, 255],
        "yellow" => [255, 255, 0],
        "gray" | "grey" => [128; 3],
        "silver" => [192; 3],
        "navy" => [0, 0, 128],
        _ => return hex(&text).or_else(|| function(&text)),
    };
    Some(Paint::Solid(named))
}

pub(crate) fn alike(one: Colour, other: Colour) -> bool {
    one.iter().zip(other).all(|(one, other)| one.abs_diff(other) <= ALIKE)
}

fn hex(text: &str) -> Option<Paint> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    let wide: String = match digits.len() {
        3 | 4 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        6 | 8 => digits.to_owned(),
        _ => return None,
    };
    let part = |at: usize| u8::from_str_radix(wide.get(at..at + 2)?, 16).ok();
    let seen = [part(0)?, part(2)?, part(4)?];
    Some(if wide.len() == 6 || part(6)? > 0 { Paint::Solid(seen) } else { Paint::Clear })
}

fn function(text: &str) -> Option<Paint> {
    let inner = text.strip_prefix("rgba(").or_else(|| text.strip_prefix("rgb("))?.strip_suffix(')')?;
    let parts: Vec<f32> = inner
        .split([',', ' ', '/'])
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.strip_suffix('%').map_or_else(|| part.parse(), |part| part.parse::<f32>().map(|part| part * 2.55))
        })
        .collect::<Result<_, _>>()
        .ok()?;
    if parts.len() > 3 && parts[3] <= 0.05 {
        return Some(Paint::Clear);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a byte holds")]
    let part = |at: usize| parts.get(at).map(|part| part.clamp(0.0, 255.0) as u8);
    Some(Paint::Solid([part(0)?, part(1)?, part(2)?]))
}
