use std::io::{Read, Seek, SeekFrom};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_model::{Call, CallError, CallErrorKind, CallResult};
use ow_policy::{Facts, PathOp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Missing, Spot};
use super::lines::{self, LINES, Range};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::{Finished, capture};
use crate::helper::work::Work;
use crate::limits::FILE_LIMIT;
use crate::world;
use crate::{Place, Tool, ToolSpec};

const ARGS: &[Arg] = &[
    Arg { name: "path", kind: Kind::Name, need: Need::Required, about: "the file" },
    Arg {
        name: "line",
        kind: Kind::Count(1, u64::MAX),
        need: Need::Optional,
        about: "read text by lines, from this one on, counted from 1; the result says where to go on",
    },
    Arg {
        name: "lines",
        kind: Kind::Count(1, LINES),
        need: Need::Optional,
        about: "how many lines at most; 2000 if left out",
    },
    Arg {
        name: "numbered",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "read by lines, each with its number before it, which is no part of the file; false if left out",
    },
    Arg {
        name: "offset",
        kind: Kind::Count(0, u64::MAX),
        need: Need::Optional,
        about: "read bytes instead of lines, from this one on, counted from 0",
    },
    Arg {
        name: "limit",
        kind: Kind::Count(1, FILE_LIMIT),
        need: Need::Optional,
        about: "how many bytes at most, where bytes are read",
    },
];

#[derive(Debug, Deserialize)]
struct ReadArgs {
    path: String,
    line: Option<u64>,
    lines: Option<u64>,
    numbered: Option<bool>,
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
}

pub(crate) struct ReadFile {
    spec: ToolSpec,
}

impl ReadFile {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("read_file", ARGS) }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("read_file", ARGS, value)?;
        let given = |names: [&'static str; 3]| names.into_iter().find(|name| value.get(name).is_some());
        match (given(["line", "lines", "numbered"]), given(["offset", "limit", "limit"])) {
            (Some(lines), Some(bytes)) => Err(format!(
                "`read_file` takes `{lines}`, which reads lines, or `{bytes}`, which reads bytes, not both"
            )),
            _ => Ok(()),
        }
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: ReadArgs = args::read(&call.args)?;
        Ok(super::reads(PathOp::Read, world::resolved(&args.path, place)?))
    }
}

pub(crate) fn read(work: &Work) -> Result<Finished, CallError> {
    let args: ReadArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let failed = |error| world::io_failed("read", path, &error);
    let mut file =
        Spot::open(path, &world::roots(&work.place), Missing::Refuse).and_then(|spot| spot.file()).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if args.line.is_some() || args.lines.is_some() || args.numbered.is_some() {
        let range = Range {
            first: args.line.unwrap_or(1),
            most: args.lines.unwrap_or(LINES),
            numbered: args.numbered.unwrap_or(false),
        };
        return lines::read(work, path, &file, &metadata, range);
    }
    let wanted = args.limit.unwrap_or(metadata.len().saturating_sub(args.offset));
    if wanted > FILE_LIMIT {
        return Err(CallError {
            kind: CallErrorKind::Limit,
            message: format!(
                "`{}` is {} bytes long and at most {FILE_LIMIT} are read at once; give offset and limit",
                path.display(),
                metadata.len()
            ),
        });
    }
    let outside = world::is_outside(&file, &metadata);
    file.seek(SeekFrom::Start(args.offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    // Files of the kernel say that they are empty and are not.
    let most = if metadata.len() == 0 { args.limit.unwrap_or(FILE_LIMIT) } else { wanted };
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    let mut output = json!({ "path": path, "bytes": metadata.len(), "hash": blake3::hash(&bytes).to_hex().as_str() });
    let redactor = work.secrets.redactor();
    let captured = if is_text(&bytes) {
        capture(&bytes, &work.limits, &redactor)
    } else {
        output["encoding"] = "base64".into();
        if args.offset == 0 {
            output["kind"] = lines::kind_of(&bytes).into();
        }
        capture(STANDARD.encode(redactor.redact_bytes(&bytes)).as_bytes(), &work.limits, &redactor)
    };
    output["text"] = captured.text.into();
    let kept: Vec<(String, Vec<u8>)> = captured.whole.map(|whole| ("text".to_owned(), whole)).into_iter().collect();
    if !kept.is_empty() {
        output["cut"] = json!({ "text": captured.total });
    }
    let result = CallResult { output, kept: vec![], artifacts: vec![], outside, error: None };
    Ok(Finished { result, kept })
}

fn is_text(bytes: &[u8]) -> bool {
    // An offset or a limit may fall inside a character.
    let begin = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    !bytes.contains(&0)
        && match std::str::from_utf8(&bytes[begin..]) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
        }
}
