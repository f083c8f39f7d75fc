use crate::cron::{Cron, MonthDays, WeekDays};
use crate::cron_error::{CronError, CronField};

/// Longer than any sensible list of all values of all fields.
const LENGTH_LIMIT: usize = 1024;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

pub(crate) const NICKNAME_LIST: &str =
    "`@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly`";

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub(crate) fn parse(text: &str) -> Result<Cron, CronError> {
    if text.len() > LENGTH_LIMIT {
        return Err(CronError::Long { length: text.len(), limit: LENGTH_LIMIT });
    }
    let lower = text.trim().to_lowercase();
    if lower.is_empty() {
        return Err(CronError::Empty);
    }
    if lower.starts_with('@') {
        if lower == "@reboot" {
            return Err(CronError::Reboot);
        }
        let known = NICKNAMES.iter().find(|(name, _)| *name == lower);
        let (_, meaning) = known.ok_or_else(|| CronError::Nickname { name: shown(text.trim()) })?;
        return parse(meaning);
    }

    let mut fields: Vec<&str> = lower.split_whitespace().collect();
    match fields.len() {
        5 => fields.insert(0, "0"),
        6 => {}
        found => return Err(CronError::FieldCount { expr: shown(text.trim()), found }),
    }
    let [second, minute, hour, month_day, month, week_day] = fields[..] else {
        unreachable!("six fields were counted just above")
    };
    let cron = Cron {
        seconds: values(CronField::Second, second)?,
        minutes: values(CronField::Minute, minute)?,
        hours: values(CronField::Hour, hour)?,
        months: values(CronField::Month, month)?,
        month_days: month_days(month_day)?,
        week_days: week_days(week_day)?,
        follows_real_time: has_star(minute) || has_star(hour),
    };
    if can_fire(&cron) { Ok(cron) } else { Err(CronError::Never { expr: shown(text.trim()) }) }
}

/// Says whether some date matches. Every weekday comes in every month, and the fifth of one too in some year, so
/// only a day of month beyond the months' ends can rule all dates out.
fn can_fire(cron: &Cron) -> bool {
    let days = cron.month_days;
    if days.any || days.last || days.last_weekday || !cron.week_days.any {
        return true;
    }
    let earliest = (days.days | days.nearest).trailing_zeros();
    (1..=12).filter(|month| cron.months & (1 << month) != 0).any(|month| {
        earliest
            <= match month {
                2 => 29,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            }
    })
}

fn has_star(field: &str) -> bool {
    field.split(',').any(|item| item.starts_with('*'))
}

fn values(field: CronField, text: &str) -> Result<u64, CronError> {
    text.split(',').try_fold(0, |set, item| Ok(set | item_values(field, item)?))
}

fn month_days(text: &str) -> Result<MonthDays, CronError> {
    let field = CronField::DayOfMonth;
    let mut days = MonthDays { any: is_any(text), ..MonthDays::default() };
    if days.any {
        return Ok(days);
    }
    for item in text.split(',') {
        match item.strip_suffix('w') {
            _ if item == "l" => days.last = true,
            Some("l") => days.last_weekday = true,
            Some(day) => days.nearest |= 1 << number(field, day, item)?,
            None => days.days |= item_values(field, item)?,
        }
    }
    Ok(days)
}

fn week_days(text: &str) -> Result<WeekDays, CronError> {
    let field = CronField::DayOfWeek;
    let mut days = WeekDays { any: is_any(text), ..WeekDays::default() };
    if days.any {
        return Ok(days);
    }
    for item in text.split(',') {
        if let Some((day, nth)) = item.split_once('#') {
            let day = 1 << (number(field, day, item)? % 7);
            match nth {
                "1" | "2" | "3" | "4" | "5" => days.nth[usize::from(nth.as_bytes()[0] - b'1')] |= day,
                "l" => days.last |= day,
                _ => return Err(bad(field, item, "must have 1 to 5 after `#`: `1#2` is the second Monday")),
            }
        } else if let Some(day) = item.strip_suffix('l') {
            if day.is_empty() {
                return Err(bad(field, item, "needs a day: `5L` is the last Friday of the month"));
            }
            days.last |= 1 << (number(field, day, item)? % 7);
        } else {
            days.days |= item_values(field, item)?;
        }
    }
    Ok(days)
}

fn is_any(text: &str) -> bool {
    text == "*" || text == "?"
}

/// Reads `*`, `5`, `1-5` and each of them with a step.
fn item_values(field: CronField, item: &str) -> Result<u64, CronError> {
    let (lowest, highest) = bounds(field);
    if item.is_empty() {
        return Err(bad(field, item, "is empty: there is a comma too many"));
    }
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let stride = match step {
        None => 1,
        Some(step) => step_of(field, step, item)?,
    };
    let (first, last) = if range == "*" {
        (lowest, highest)
    } else if let Some((first, last)) = range.split_once('-') {
        let first = number(field, first, item)?;
        let mut last = number(field, last, item)?;
        if field == CronField::DayOfWeek && last == 0 && first > 0 {
            // Sunday ends the week that begins on Monday.
            last = 7;
        }
        if first > last {
            return Err(bad(
                field,
                item,
                &format!("runs backwards; write it as two ranges: `{first}-{},{lowest}-{last}`", highest.max(first)),
            ));
        }
        (first, last)
    } else {
        let first = number(field, range, item)?;
        (first, if step.is_some() { highest.max(first) } else { first })
    };
    let mut set = 0_u64;
    for value in (first..=last).step_by(stride) {
        set |= 1 << value;
    }
    if field == CronField::DayOfWeek && set & (1 << 7) != 0 {
        set = (set & !(1 << 7)) | 1;
    }
    Ok(set)
}

fn step_of(field: CronField, step: &str, item: &str) -> Result<usize, CronError> {
    let (lowest, highest) = bounds(field);
    let largest = highest - lowest + 1;
    match digits(step) {
        Some(stride @ 1..) if stride <= largest => Ok(stride as usize),
        Some(1..) => Err(bad(
            field,
            item,
            &format!("steps by more than the field has; use at most {largest}, or an `every` trigger"),
        )),
        _ => Err(bad(field, item, &format!("needs a step of 1 to {largest} after `/`"))),
    }
}

/// Reads a number or a name of the field; `item` is what an error shows.
fn number(field: CronField, text: &str, item: &str) -> Result<u32, CronError> {
    let (lowest, highest) = bounds(field);
    let highest = if field == CronField::DayOfWeek { 7 } else { highest };
    let names: &[&str] = match field {
        CronField::Month => &MONTHS,
        CronField::DayOfWeek => &WEEKDAYS,
        _ => &[],
    };
    if let Some(index) = names.iter().position(|name| *name == text) {
        return Ok(lowest + u32::try_from(index).expect("there are at most 12 names"));
    }
    match digits(text) {
        Some(value) if (lowest..=highest).contains(&value) => Ok(value),
        Some(_) => Err(bad(field, item, &format!("is out of range; use {lowest}-{highest}"))),
        None => Err(bad(field, item, &format!("is not understood; use {}", usage(field)))),
    }
}

/// Reads ASCII digits alone: no sign, no blank.
fn digits(text: &str) -> Option<u32> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// What `*` stands for.
fn bounds(field: CronField) -> (u32, u32) {
    match field {
        CronField::Second | CronField::Minute => (0, 59),
        CronField::Hour => (0, 23),
        CronField::DayOfMonth => (1, 31),
        CronField::Month => (1, 12),
        CronField::DayOfWeek => (0, 6),
    }
}

fn usage(field: CronField) -> &'static str {
    match field {
        CronField::Second | CronField::Minute => "`*`, 0-59, a list `0,30`, a range `0-29` or a step `*/15`",
        CronField::Hour => "`*`, 0-23, a list `9,17`, a range `9-17` or a step `*/2`",
        CronField::DayOfMonth => "`*`, `?`, 1-31, a list, a range, a step, `L`, `LW` or `15W`",
        CronField::Month => "`*`, 1-12 or jan-dec, a list, a range or a step `*/3`",
        CronField::DayOfWeek => "`*`, `?`, 0-7 or sun-sat in three letters, a list, a range, a step, `5L` or `1#2`",
    }
}

fn bad(field: CronField, value: &str, why: &str) -> CronError {
    CronError::Field { field, value: shown(value), why: why.into() }
}

/// Makes a text from outside fit for a terminal.
fn shown(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}
