//! Machine-readable results: claims as JSON.

pub mod claims;

use anyhow::{Context as _, Result};
use serde_json::Value;

fn bytes(value: &Value) -> Result<Vec<u8>> {
    let mut text = serde_json::to_string_pretty(value).context("JSON")?;
    text.push('\n');
    Ok(text.into_bytes())
}
