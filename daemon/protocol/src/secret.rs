use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A secret, without its value.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SecretView {
    pub name: String,
    /// `environment: VARIABLE`, `credential: PATH` or `file: PATH`.
    pub origin: String,
}
