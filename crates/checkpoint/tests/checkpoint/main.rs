//! Checkpoints, branches, copies and backups, from outside: one program, since each would be linked anew.

mod backup_sessions;
mod backups;
mod branches;
mod contents;
mod copies;
mod copying;
mod crashes;
mod directory;
mod directory_cost;
mod forks;
mod frames;
mod fsck;
mod pages;
mod rig;
mod tiles;
mod upgrade;
