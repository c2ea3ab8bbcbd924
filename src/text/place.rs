//! A directory as a person would say it: from the top of its project, or from the home directory.

/// The name of a directory on the console. Of a project whose top is `depth` directories above `dir`, the top's name comes first;
/// elsewhere the home directory is `~`.
#[must_use]
pub fn place(dir: &str, depth: Option<usize>, home: &str) -> String {
    let top = depth.and_then(|depth| {
        // The name of the top follows the slash before it.
        let slashes: Vec<usize> = dir.match_indices('/').map(|(at, _)| at).collect();
        let slash = *slashes.get(slashes.len().checked_sub(depth + 1)?)?;
        dir.get(slash + 1..).filter(|name| !name.is_empty())
    });
    if let Some(top) = top {
        return top.to_owned();
    }
    let home = home.trim_end_matches('/');
    match dir.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => format!("~{rest}"),
        _ => dir.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_place_is_named_from_its_project_or_from_home() {
        for (dir, depth, home, expected) in [
            ("/srv/ann/shop/api", Some(0), "/srv/ann", "api"),
            ("/srv/ann/shop/api", Some(1), "/srv/ann", "shop/api"),
            ("/srv/ann/notes", None, "/srv/ann/", "~/notes"),
            ("/srv/ann", None, "/srv/ann", "~"),
            ("/srv/annette", None, "/srv/ann", "/srv/annette"),
            ("/etc", None, "/", "/etc"),
            ("/", Some(0), "/srv/bob", "/"),
            ("/a", Some(7), "/srv/bob", "/a"),
            ("", None, "", ""),
        ] {
            assert_eq!(place(dir, depth, home), expected, "{dir}");
        }
    }
}
