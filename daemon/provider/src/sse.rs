//! The framing of server-sent events, for network chunks of any size.
//!
//! Source: WHATWG HTML, "Server-sent events", interpretation of an event stream.

/// A line of more bytes is no event of a model.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    /// The bytes of a line whose end has not come.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed right after it ends nothing.
    after_return: bool,
    is_begun: bool,
    name: Option<String>,
    data: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

/// A line without an end.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct TooLong;

impl Sse {
    /// Takes the next chunk; gives each event that it completes.
    pub(crate) fn push<E: From<TooLong>>(
        &mut self,
        chunk: &[u8],
        event: &mut dyn FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                if self.line.len() + rest.len() > LONGEST_LINE {
                    return Err(TooLong.into());
                }
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.after_return = rest[end] == b'\r';
            if self.line.is_empty() {
                let line = String::from_utf8_lossy(&rest[..end]);
                rest = &rest[end + 1..];
                if let Some(whole) = self.line(&line) {
                    event(whole)?;
                }
            } else {
                self.line.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                let line = std::mem::take(&mut self.line);
                if let Some(whole) = self.line(&String::from_utf8_lossy(&line)) {
                    event(whole)?;
                }
            }
        }
        Ok(())
    }

    /// What an event without its last empty line holds, at the end of the stream. Some servers leave the line out.
    pub(crate) fn finish(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&String::from_utf8_lossy(&line));
        }
        self.line("")
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        let line = if std::mem::replace(&mut self.is_begun, true) { line } else { line.trim_start_matches('\u{feff}') };
        if line.is_empty() {
            let name = self.name.take();
            return self.data.take().map(|data| Event { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests;
