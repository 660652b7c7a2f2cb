//! Items of privileges as text: `grantee=privileges/grantor`.
//!
//! Owns: writing and reading of `aclitem`, with names quoted as PostgreSQL quotes them.

use super::super::Roles;
use super::{ACL_ID_PUBLIC, AclItem, PRIVILEGES};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

impl AclItem {
    /// As PostgreSQL shows it.
    pub fn text(&self, roles: &Roles) -> String {
        let mut text = String::new();
        if self.grantee != ACL_ID_PUBLIC {
            put_name(self.grantee, roles, &mut text);
        }
        text.push('=');
        for privilege in PRIVILEGES {
            if self.privileges & privilege.mask != 0 {
                text.push(privilege.letter);
            }
            if self.grantable & privilege.mask != 0 {
                text.push('*');
            }
        }
        text.push('/');
        put_name(self.grantor, roles, &mut text);
        text
    }

    /// Reads the text form.
    pub fn parse(text: &str, roles: &Roles) -> Result<AclItem> {
        let invalid =
            |what: &str| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what.to_owned());
        let mut rest = text.trim();
        for word in ["group ", "user "] {
            if rest
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
            {
                rest = rest[word.len()..].trim_start();
            }
        }
        let (grantee, after) = take_name(rest);
        let after = after
            .strip_prefix('=')
            .ok_or_else(|| invalid("missing \"=\" sign"))?;
        let grantee = match grantee.as_str() {
            "" => ACL_ID_PUBLIC,
            name => role_named(name, roles)?,
        };
        let mut item = AclItem {
            grantee,
            grantor: crate::role::BOOTSTRAP,
            privileges: 0,
            grantable: 0,
        };
        let mut last = 0;
        let mut rest = after;
        while let Some(letter) = rest.chars().next() {
            if letter == '/' || letter.is_whitespace() {
                break;
            }
            rest = &rest[letter.len_utf8()..];
            if letter == '*' {
                item.grantable |= last;
                continue;
            }
            last = PRIVILEGES
                .iter()
                .find(|privilege| privilege.letter == letter)
                .map(|privilege| privilege.mask)
                .ok_or_else(|| {
                    invalid("invalid mode character: must be one of \"arwdDxtXUCTcsA\"")
                })?;
            item.privileges |= last;
        }
        if let Some(named) = rest.strip_prefix('/') {
            let (grantor, after) = take_name(named);
            if grantor.is_empty() {
                return Err(invalid("a name must follow the \"/\" sign"));
            }
            item.grantor = role_named(&grantor, roles)?;
            rest = after;
        }
        match rest.trim() {
            "" => Ok(item),
            _ => Err(invalid("extra garbage at the end of the ACL specification")),
        }
    }
}

fn role_named(name: &str, roles: &Roles) -> Result<RoleId> {
    let found = roles.by_name(name).map(|role| role.oid);
    found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("role \"{name}\" does not exist"),
        )
    })
}

fn put_name(role: RoleId, roles: &Roles, out: &mut String) {
    let Some(role) = roles.get(role) else {
        out.push_str(&role.to_string());
        return;
    };
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if role.name.chars().all(safe) {
        out.push_str(&role.name);
        return;
    }
    out.push('"');
    out.push_str(&role.name.replace('"', "\"\""));
    out.push('"');
}

/// A name as items write it, and what follows.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '"' {
            if quoted && chars.peek().is_some_and(|(_, next)| *next == '"') {
                chars.next();
                name.push('"');
                continue;
            }
            quoted = !quoted;
            continue;
        }
        if quoted || c.is_alphanumeric() || c == '_' {
            name.push(c);
            continue;
        }
        return (name, &text[at..]);
    }
    (name, "")
}
