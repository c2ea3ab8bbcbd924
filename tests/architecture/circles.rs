//! No circle among the modules of a folder: of two siblings at most one needs the other, however far below.
//!
//! A folder's own file and what lies in the folder may name each other. A name that the folder's file only passes on
//! (`pub use child::Name`) counts as the child's.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, sources};

/// Siblings, and the siblings that each of them names; by folder.
type Folders = BTreeMap<Vec<String>, BTreeMap<String, BTreeMap<String, String>>>;

fn folders(sources: &[Source]) -> Folders {
    let modules: BTreeSet<&[String]> = sources.iter().map(|source| &source.module[..]).collect();
    let passed_on: BTreeMap<(&[String], String), Vec<String>> = sources
        .iter()
        .flat_map(|source| {
            let uses = source.uses_of_children().into_iter();
            let uses = uses.filter(|path| path.len() > source.module.len() + 1);
            uses.map(|path| ((&source.module[..], path.last().cloned().unwrap_or_default()), path))
        })
        .collect();
    let home = |path: &[String]| -> Option<Vec<String>> {
        let module = (0..=path.len()).rev().map(|end| &path[..end]).find(|module| modules.contains(module))?;
        let name = path.get(module.len()).cloned().unwrap_or_default();
        let origin = passed_on.get(&(module, name)).cloned();
        let origin = origin.and_then(|path| {
            (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|module| modules.contains(&module[..]))
        });
        Some(origin.unwrap_or_else(|| module.to_vec()))
    };
    let mut folders = Folders::new();
    for source in sources {
        for path in source.paths() {
            let Some(target) = home(&path) else { continue };
            let shared = source.module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (source.module.get(shared), target.get(shared)) {
                let what = format!("{} names {}", source.file.display(), path.join("::"));
                let siblings = folders.entry(source.module[..shared].to_vec()).or_default();
                siblings.entry(from.clone()).or_default().entry(to.clone()).or_insert(what);
            }
        }
    }
    folders
}

/// The siblings that can be reached from one, itself only if there is a circle.
fn reached<'a>(arrows: &'a BTreeMap<String, BTreeMap<String, String>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut ahead) = (BTreeSet::new(), vec![from]);
    while let Some(next) = ahead.pop() {
        for to in arrows.get(next).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(to.as_str()) {
                ahead.push(to);
            }
        }
    }
    found
}

#[test]
fn no_circle() {
    let mut circles = BTreeSet::new();
    let mut seen = 0;
    for (src, sources) in ["src", "shim/src", "shim/preload/src"].map(|src| (src, sources(src))) {
        for (folder, arrows) in &folders(&sources) {
            let reach: BTreeMap<&str, BTreeSet<&str>> =
                arrows.keys().map(|from| (from.as_str(), reached(arrows, from))).collect();
            for (from, to) in arrows.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
                seen += 1;
                if reach.get(to.0.as_str()).is_some_and(|back| back.contains(from.as_str())) {
                    circles.insert(format!("{src}/{}: {}", folder.join("/"), to.1));
                }
            }
        }
    }
    assert!(seen > 100, "the search finds what it looks for: {seen}");
    let circles: Vec<String> = circles.into_iter().collect();
    assert!(circles.is_empty(), "these names are part of a circle:\n{}", circles.join("\n"));
}
