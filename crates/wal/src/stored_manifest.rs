//! Reads the manifest that a home holds.
//!
//! Does not: change it; [`ManifestWriter`](crate::ManifestWriter) and recovery do.

use crate::error::RecoveryError;
use crate::manifest::{self, Manifest, ManifestError};
use logstead_home::{LogHome, Tag};

/// The manifest and its tag, if there is one.
pub(crate) fn read_manifest(home: &LogHome) -> Result<Option<(Manifest, Tag)>, RecoveryError> {
    let mut looks = 0;
    loop {
        let Some((bytes, tag)) = home.names.get(manifest::NAME)? else {
            return Ok(None);
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) => return Ok(Some((manifest, tag))),
            // It may have been cut short on its way.
            Err(_) if looks < manifest::LOOKS => looks += 1,
            Err(ManifestError::Unfinished) => {
                return Err(RecoveryError::UnfinishedCopy(home.describe()));
            }
            Err(error @ ManifestError::Newer(_)) => {
                return Err(RecoveryError::NewerFormat {
                    home: home.describe(),
                    what: error.to_string(),
                });
            }
            Err(error) => {
                return Err(RecoveryError::BadManifest {
                    home: home.describe(),
                    what: error.to_string(),
                });
            }
        }
    }
}
