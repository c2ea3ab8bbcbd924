//! The file requests of Codex: it edits files and reads its instructions through its server, and not by commands.
//!
//! The server does this itself, as the same user in the same place as Codex. Invariants: a request that names a sandbox
//! is refused, because nothing here would enforce it; no request waits for a pipe or a device; reads and lists are
//! bounded.

mod tree;
mod walk;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde_json::{Value, json};

use super::message::{BAD_PARAMS, FAILED, INVALID_REQUEST, NO_FILE, Refusal, params};
use super::place::{path_of, uri_of};
use crate::limits;
use crate::text::encode::{base64, from_base64};

pub(super) type FileAnswer = Result<Value, Refusal>;

/// A file, and the options of some methods.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileParams {
    path: String,
    #[serde(default)]
    recursive: Option<bool>,
    #[serde(default)]
    force: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WriteFileParams {
    path: String,
    data_base64: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CopyParams {
    source_path: String,
    destination_path: String,
    recursive: bool,
}

/// Answers a request about files; `None` if it is about something else.
pub(super) fn answer(method: &str, given: &Value) -> Option<FileAnswer> {
    let method = method.strip_prefix("fs/")?;
    let known = [
        "getMetadata",
        "readFile",
        "writeFile",
        "createDirectory",
        "readDirectory",
        "remove",
        "copy",
        "canonicalize",
        "walk",
    ];
    if !known.contains(&method) {
        return None;
    }
    if given.get("sandbox").is_some_and(|sandbox| !sandbox.is_null()) {
        return Some(Err(no_sandbox()));
    }
    Some(serve(method, given.clone()))
}

/// The refusal of requests that name a sandbox.
pub(super) fn no_sandbox() -> Refusal {
    let message = "rexec exec-server does not enforce Codex's sandbox, so it refuses what asks for one; start Codex \
                   with --sandbox danger-full-access, or without rexec";
    Refusal::new(FAILED, message)
}

fn serve(method: &str, given: Value) -> FileAnswer {
    match method {
        "writeFile" => {
            let WriteFileParams { path, data_base64 } = params(given)?;
            let bytes =
                from_base64(&data_base64).ok_or_else(|| Refusal::new(BAD_PARAMS, "dataBase64 is not base64"))?;
            write(&path_of(&path)?, &bytes)
        }
        "copy" => {
            let CopyParams { source_path, destination_path, recursive } = params(given)?;
            let (from, to) = (path_of(&source_path)?, path_of(&destination_path)?);
            if !recursive && fs::metadata(&from).map_err(failed)?.is_dir() {
                let message = "fs/copy requires recursive: true when sourcePath is a directory";
                return Err(Refusal::new(INVALID_REQUEST, message));
            }
            tree::copy(&from, &to).map_err(failed)?;
            Ok(json!({}))
        }
        "walk" => walk::answer(given),
        method => {
            let FileParams { path, recursive, force } = params(given)?;
            of_one(method, &path_of(&path)?, recursive, force)
        }
    }
}

fn of_one(method: &str, path: &Path, recursive: Option<bool>, force: Option<bool>) -> FileAnswer {
    match method {
        "getMetadata" => metadata(path),
        "readFile" => read(path),
        "createDirectory" => {
            let made = if recursive.unwrap_or(true) { fs::create_dir_all(path) } else { fs::create_dir(path) };
            made.map_err(failed).map(|()| json!({}))
        }
        "readDirectory" => list(path),
        "remove" => match tree::remove(path, recursive.unwrap_or(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && force.unwrap_or(true) => Ok(json!({})),
            removed => removed.map_err(failed).map(|()| json!({})),
        },
        _ => {
            let path: PathBuf = fs::canonicalize(path).map_err(failed)?;
            Ok(json!({"path": uri_of(&path)}))
        }
    }
}

fn failed(error: io::Error) -> Refusal {
    let code = if error.kind() == io::ErrorKind::NotFound { NO_FILE } else { FAILED };
    Refusal::new(code, error.to_string())
}

fn metadata(path: &Path) -> FileAnswer {
    let itself = fs::symlink_metadata(path).map_err(failed)?;
    let found = fs::metadata(path).map_err(failed)?;
    let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(json!({
        "isDirectory": found.is_dir(), "isFile": found.is_file(), "isSymlink": itself.is_symlink(),
        "size": found.len(), "createdAtMs": 0,
        "modifiedAtMs": u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Opens a regular file. Anything else may keep its opener waiting.
fn open(path: &Path, options: &mut OpenOptions) -> Result<(File, Metadata), Refusal> {
    const NONBLOCK: i32 = 0o4000;
    let file = options.custom_flags(NONBLOCK).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() {
        return Ok((file, found));
    }
    Err(Refusal::new(INVALID_REQUEST, format!("path `{}` is not a file", path.display())))
}

fn read(path: &Path) -> FileAnswer {
    let (file, found) = open(path, OpenOptions::new().read(true))?;
    let most = limits::EXEC_SERVER_FILE_BYTES_MAX;
    let mut bytes = Vec::new();
    if found.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if found.len() > most || bytes.len() as u64 > most {
        return Err(Refusal::new(FAILED, format!("the file has more than {most} bytes")));
    }
    Ok(json!({"dataBase64": base64(&bytes)}))
}

fn write(path: &Path, bytes: &[u8]) -> FileAnswer {
    use std::io::Write;
    let (mut file, _) = open(path, OpenOptions::new().write(true).create(true))?;
    file.set_len(0).and_then(|()| file.write_all(bytes)).map_err(failed)?;
    Ok(json!({}))
}

fn list(path: &Path) -> FileAnswer {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)?.take(limits::EXEC_SERVER_ENTRIES_MAX) {
        let entry = entry.map_err(failed)?;
        let found = fs::metadata(entry.path()).or_else(|_| entry.metadata()).map_err(failed)?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), found.is_dir(), found.is_file()));
    }
    entries.sort();
    let entries: Vec<Value> = entries
        .into_iter()
        .map(|(name, is_dir, is_file)| json!({"fileName": name, "isDirectory": is_dir, "isFile": is_file}))
        .collect();
    Ok(json!({"entries": entries}))
}
