//! Has the linker pack the binary's relocations, where what is built here also runs here and the C library can read them.
//!
//! Unpacked they are a tenth of the file, and every start reads all of it: a megabyte or two of memory for as long as owd
//! runs. An older loader would refuse the binary, so who builds for another machine gets them unpacked.

use std::env;
use std::process::Command;

/// Its loader is the first that reads packed relocations.
const FIRST_LIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let is_own = env::var("HOST").is_ok_and(|host| env::var("TARGET").is_ok_and(|target| target == host));
    let is_gnu = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if is_own && is_gnu && libc_version().is_some_and(|version| version >= FIRST_LIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the C library that runs here.
fn libc_version() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) = std::str::from_utf8(&said.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
