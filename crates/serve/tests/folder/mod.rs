//! A folder with files of several kinds, and a server for it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test file uses its part, as a module of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use onecopy_serve::Files;
use onecopy_serve::static_files::FilesOptions;

use crate::common::{Answer, TestServer};

/// A folder with files of several kinds, and the server that serves it.
pub struct Folder {
    top: tempfile::TempDir,
    pub server: TestServer,
}

impl Folder {
    pub fn serving(set: impl FnOnce(&mut FilesOptions)) -> Folder {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("bare")).unwrap();
        fs::write(top.path().join("secret"), "secret").unwrap();
        for (name, text) in [
            ("a.txt", "0123456789"),
            ("empty", ""),
            ("sub/index.html", "<p>index"),
            ("sub/deep/b c\u{e9}.css", "p{}"),
            ("bare/x&<y>\".txt", "x"),
            ("bare/scheme:a", "y"),
            (".git/config", "hidden"),
            (".env", "hidden"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        symlink("../secret", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("/", root.join("whole")).unwrap();
        symlink("a.txt", root.join("inside")).unwrap();
        let mut options = FilesOptions::default();
        set(&mut options);
        let server = TestServer::start(Files::new(&root, options).unwrap());
        Folder { top, server }
    }

    pub fn root(&self, name: &str) -> PathBuf {
        self.top.path().join("root").join(name)
    }

    pub fn ask(&self, target: &str, fields: &str) -> Answer {
        let mut client = self.server.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        client.answer()
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask(target, "")
    }
}
