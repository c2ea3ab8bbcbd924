//! A walk through a directory tree, level by level. Codex looks for skills this way.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{FileAnswer, failed, params, path_of, uri_of};
use crate::limits;

#[derive(Debug, Deserialize)]
struct WalkParams {
    path: String,
    options: WalkOptions,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WalkOptions {
    max_depth: usize,
    max_directories: usize,
    max_entries: usize,
    #[serde(default)]
    follow_directory_symlinks: bool,
    #[serde(default)]
    prune_hidden_directories: bool,
}

pub(super) fn answer(given: Value) -> FileAnswer {
    let WalkParams { path, options } = params(given)?;
    let top = path_of(&path)?;
    let found = fs::metadata(&top).map_err(failed)?;
    let most = options.max_entries.min(limits::EXEC_SERVER_ENTRIES_MAX);
    // A link to a directory above would be walked forever.
    let mut seen = BTreeSet::from([(found.dev(), found.ino())]);
    let mut ahead = VecDeque::from([(top, 1)]);
    let (mut entries, mut errors, mut truncated, mut directories) = (Vec::new(), Vec::new(), false, 0);
    while let Some((folder, depth)) = ahead.pop_front() {
        directories += 1;
        if directories > options.max_directories {
            truncated = true;
            break;
        }
        let mut paths: Vec<PathBuf> = match fs::read_dir(&folder) {
            Ok(listed) => listed.filter_map(|entry| Some(entry.ok()?.path())).take(most + 1).collect(),
            Err(error) => {
                errors.push(json!({"path": uri_of(&folder), "message": error.to_string()}));
                continue;
            }
        };
        paths.sort();
        for path in paths {
            if entries.len() == most {
                truncated = true;
                break;
            }
            let Ok(itself) = fs::symlink_metadata(&path) else { continue };
            let target = if itself.is_symlink() { fs::metadata(&path).ok() } else { None };
            let is_followed = options.follow_directory_symlinks && target.as_ref().is_some_and(|found| found.is_dir());
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let is_directory = itself.is_dir() || is_followed;
            if is_directory && is_hidden && options.prune_hidden_directories {
                continue;
            }
            let is_file = itself.is_file() || target.as_ref().is_some_and(|found| found.is_file());
            let kind = if is_directory { "directory" } else { "file" };
            if !is_directory && !is_file {
                continue;
            }
            entries.push(json!({"path": uri_of(&path), "kind": kind}));
            let real = target.as_ref().filter(|_| is_followed).unwrap_or(&itself);
            if is_directory && depth < options.max_depth && seen.insert((real.dev(), real.ino())) {
                ahead.push_back((path, depth + 1));
            }
        }
    }
    Ok(json!({"entries": entries, "errors": errors, "truncated": truncated}))
}
