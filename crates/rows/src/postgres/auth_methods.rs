//! `Methods`: the authentication methods that the keyword `require_auth` accepts.

/// An authentication method that `require_auth` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Password,
    Md5,
    Scram,
    /// No authentication: the server accepts the user without a proof of identity.
    None,
}

impl Method {
    pub(super) const ALL: [(&'static str, Method); 4] = [
        ("password", Method::Password),
        ("md5", Method::Md5),
        ("scram-sha-256", Method::Scram),
        ("none", Method::None),
    ];

    pub(super) fn name(self) -> &'static str {
        let found = Method::ALL.iter().find(|(_, method)| *method == self);
        found.map_or("", |(name, _)| name)
    }
}

/// The accepted authentication methods: all methods, unless `require_auth` is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Methods(Vec<Method>);

impl Default for Methods {
    fn default() -> Methods {
        Methods(Method::ALL.map(|(_, method)| method).to_vec())
    }
}

impl Methods {
    pub(super) fn contains(&self, method: Method) -> bool {
        self.0.contains(&method)
    }

    /// Parses the value of `require_auth`: a comma-separated list of accepted methods, or a list of
    /// refused methods with a `!` before each name.
    ///
    /// Returns `None` for a list that contains an unknown method, a method twice, or both accepted
    /// and refused methods.
    pub(super) fn parse(value: &str) -> Option<Methods> {
        let items: Vec<&str> = value.split(',').map(str::trim).collect();
        let excludes = items[0].starts_with('!');
        let mut named = Vec::new();
        for item in items {
            let name = match (excludes, item.strip_prefix('!')) {
                (true, Some(name)) => name,
                (false, None) => item,
                _ => return None,
            };
            // GSSAPI and SSPI are not supported, so a server's request for them is never accepted.
            if matches!(name, "gss" | "sspi") {
                continue;
            }
            let (_, method) = Method::ALL.iter().find(|(known, _)| *known == name)?;
            if named.contains(method) {
                return None;
            }
            named.push(*method);
        }
        let is_accepted = |method: &Method| named.contains(method) != excludes;
        let all = Method::ALL.iter().map(|(_, method)| *method);
        Some(Methods(all.filter(is_accepted).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_that_require_auth_names() {
        let names = |value: &str| {
            let methods = Methods::parse(value)?;
            Some(methods.0.iter().map(|m| m.name()).collect::<Vec<_>>())
        };
        assert_eq!(names("scram-sha-256").unwrap(), ["scram-sha-256"]);
        assert_eq!(names("md5,password").unwrap(), ["password", "md5"]);
        assert_eq!(names("!none,!password").unwrap(), ["md5", "scram-sha-256"]);
        assert_eq!(names("gss").unwrap(), [""; 0]);
        for wrong in ["", "md5,!password", "!md5,password", "md5,md5", "kerberos"] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }
}
