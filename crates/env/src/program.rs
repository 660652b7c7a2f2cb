//! The program that this process runs, to be started once more.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// A program and what it is started with.
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// This process's own. To be called at its start: later another file may have its name, and that is the one that
    /// would be started.
    pub fn own() -> io::Result<Program> {
        let mut arguments = std::env::args_os();
        let name = arguments.next().map(PathBuf::from);
        let path = match name {
            // As it was named: a link there may lead to another file later.
            Some(name) if name.components().count() > 1 => std::path::absolute(name)?,
            _ => std::env::current_exe()?,
        };
        Ok(Program {
            path,
            arguments: arguments.collect(),
        })
    }

    /// The program's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same with one argument more, unless it has it.
    pub fn with_argument(&self, argument: &str) -> Program {
        let mut arguments = self.arguments.clone();
        if !arguments.iter().any(|given| given == argument) {
            arguments.push(argument.into());
        }
        Program {
            path: self.path.clone(),
            arguments,
        }
    }

    /// Starts it, with this process's environment and output, and waits for its end.
    pub fn run(&self) -> io::Result<ExitStatus> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).stdin(Stdio::null());
        command.status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_given_once() {
        let own = Program::own().unwrap();
        assert!(own.path().is_file());
        let more = own.with_argument("--replace").with_argument("--replace");
        let given = more.arguments.iter().filter(|given| *given == "--replace");
        assert_eq!(given.count(), 1);
    }

    #[test]
    fn its_end_is_told() {
        let shell = Program {
            path: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), "exit 7".into()],
        };
        assert_eq!(shell.run().unwrap().code(), Some(7));
    }
}
