use thiserror::Error;

/// One event may be at most this long; owd's own limit for a frame.
const FRAME_LIMIT: usize = 16 * 1024 * 1024;

/// One dispatched server-sent event.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Frame {
    /// The last id seen so far, as the standard has it: kept over events that carry none.
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

#[derive(Debug, Error)]
pub(crate) enum SseError {
    #[error("an event is longer than {FRAME_LIMIT} bytes")]
    Long,
    #[error("the stream is not UTF-8")]
    NotText,
}

/// Reads server-sent events from bytes as they come, in any pieces.
///
/// Source: WHATWG HTML, "Parsing an event stream".
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    unread: Vec<u8>,
    open: Frame,
    has_data: bool,
    /// The id of the last event that came whole: of a half one it must be asked for again.
    last_id: Option<String>,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.unread.len() + self.open.data.len() + bytes.len() > FRAME_LIMIT {
            return Err(SseError::Long);
        }
        self.unread.extend_from_slice(bytes);
        Ok(())
    }

    /// The last id seen, also of an event that carried nothing else.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The next whole event, if it has come.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, SseError> {
        while let Some((line, length)) = self.line()? {
            drop(self.unread.drain(..length));
            if let Some(frame) = self.field(&line) {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The first whole line without its end, and its length with it.
    fn line(&self) -> Result<Option<(String, usize)>, SseError> {
        let Some(end) = self.unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else { return Ok(None) };
        let length = match (self.unread[end], self.unread.get(end + 1)) {
            (b'\r', Some(b'\n')) => end + 2,
            // Whether a line feed follows is not known yet.
            (b'\r', None) => return Ok(None),
            _ => end + 1,
        };
        let line = std::str::from_utf8(&self.unread[..end]).map_err(|_| SseError::NotText)?;
        Ok(Some((line.to_owned(), length)))
    }

    fn field(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.has_data {
                    self.open.data.push('\n');
                }
                self.open.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.open.event = value.into(),
            "id" if !value.contains('\0') => self.open.id = Some(value.into()),
            // Comments keep the connection warm; other fields are not ours.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Frame> {
        self.last_id.clone_from(&self.open.id);
        let kept = Frame { id: self.open.id.clone(), ..Frame::default() };
        let frame = std::mem::replace(&mut self.open, kept);
        std::mem::take(&mut self.has_data).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut frames = vec![];
        for piece in pieces {
            decoder.push(piece).expect("short");
            while let Some(frame) = decoder.next().expect("text") {
                frames.push(frame);
            }
        }
        frames
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let text = ": hello\nid: 7\nevent: run.ended\ndata: {\"a\":1,\ndata: \"b\":2}\n\nid:8\r\ndata:x\r\n\r\ndata: unfinished\n";
        let want = vec![
            Frame { id: Some("7".into()), event: "run.ended".into(), data: "{\"a\":1,\n\"b\":2}".into() },
            Frame { id: Some("8".into()), event: String::new(), data: "x".into() },
        ];
        for size in 1..=text.len() {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(frames(&pieces), want, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_data_only_moves_the_id() {
        assert_eq!(
            frames(&[b"id: 4\n\ndata: x\n\n"]),
            vec![Frame { id: Some("4".into()), event: String::new(), data: "x".into() }]
        );
    }
}
