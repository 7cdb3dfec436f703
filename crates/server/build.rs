//! Embeds web/: every file below it, by its path on the page's host.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    let mut table = String::from("static EMBEDDED: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&folder).map_err(io::Error::other)?.display().to_string();
        let file = file.display().to_string();
        let _ = writeln!(table, "    ({:?}, include_bytes!({file:?})),", format!("/{path}"));
    }
    table.push_str("];\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(PathBuf::from(out).join("web.rs"), table)
}

/// Files below a folder, but for hidden ones, which editors leave behind.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match path.is_dir() {
            _ if hidden => {}
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
