// SPDX-License-Identifier: Apache-2.0
//! What all commands that reach sites share: the sites file, how sites are reached, where things are kept.

use crate::kept::sites_file;
use isthmus_job::address::is_ipv6;
use isthmus_job::catalogue::{self, Catalogue, Entry};
use isthmus_job::{Contact, JobError, JobErrors, Subjob};
use isthmus_reach::Access;
use std::net::ToSocketAddrs;
use std::os::unix::fs::MetadataExt;
use std::sync::Once;
use std::time::Duration;

/// How long a site may take to be reached, where nobody waits at a terminal.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The sites file and its name for messages; an empty text when there is none.
pub(crate) fn read_sites_file() -> Result<(String, String), JobError> {
    let Some(file) = sites_file() else {
        return Ok((String::new(), String::new()));
    };
    let name = file.display().to_string();
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((String::new(), name)),
        _ => {}
    }
    let text = crate::given::read(&file)
        .map_err(|error| JobError::new(format!("cannot read sites file '{name}': {error}")))?;
    Ok((text, name))
}

/// What the sites file says.
///
/// One that cannot be read, or that another user may write, is told of once; what nobody has said is then as usual.
pub(crate) fn catalogue() -> Result<Catalogue, JobErrors> {
    static TOLD: Once = Once::new();
    let found = foreign().map_or_else(read_sites_file, Err);
    let (text, name) = found.unwrap_or_else(|error| {
        TOLD.call_once(|| crate::diagnostic::note(&error.hint("sites are used as ssh knows them")));
        Default::default()
    });
    catalogue::parse(&text, &name)
}

/// Hints for when a site was not reached: names of described sites that are nearly those that the user wrote.
pub(crate) fn near_names(subjobs: &[Subjob]) -> Vec<String> {
    let catalogue = catalogue().unwrap_or_default();
    let known: Vec<&str> = catalogue.sites().map(|(name, _)| name).chain(["home"]).collect();
    let near = subjobs.iter().filter_map(|subjob| {
        let Contact::Ssh(name) = &subjob.contact else {
            return None;
        };
        let meant = isthmus_settings::nearest(name, &known).filter(|_| catalogue.get(name).is_none())?;
        Some(format!(
            "  hint: there is no site '{name}' in the sites file; did you mean '{meant}'?"
        ))
    });
    near.collect()
}

/// The same for whoever may say nothing: what cannot be read is not known.
pub(crate) fn catalogue_in_silence() -> Catalogue {
    let text = if foreign().is_none() {
        read_sites_file()
    } else {
        return Catalogue::default();
    };
    let parsed = text.map(|(text, name)| catalogue::parse(&text, &name));
    parsed.ok().and_then(Result::ok).unwrap_or_default()
}

/// What a sites file says is run at sites: one of another user is not believed.
fn foreign() -> Option<JobError> {
    let file = sites_file()?;
    let owner = std::fs::metadata(&file).ok()?.uid();
    let own = [0, rustix::process::geteuid().as_raw()].contains(&owner);
    (!own).then(|| {
        JobError::new(format!(
            "sites file '{}' belongs to another user and is not used",
            file.display()
        ))
    })
}

/// A site by the name that the user gives it: of the sites file, `home`, or an ssh destination.
pub(crate) fn site(catalogue: &Catalogue, name: &str) -> Result<Entry, JobError> {
    match catalogue.get(name) {
        Some(entry) => Ok(entry.clone()),
        None if name == "home" => Ok(Entry {
            contact: Contact::Home,
            ..Entry::bare("h")?
        }),
        None => Entry::bare(name),
    }
}

/// How sites are reached: with `--ssh`, ISTHMUS_SSH or ssh.
pub(crate) fn access(ssh: Option<&str>) -> Result<Access, JobError> {
    let binary =
        std::env::current_exe().map_err(|e| JobError::new(format!("cannot find the isthmus binary itself: {e}")))?;
    Ok(Access::new(
        &binary,
        &ssh_command(ssh),
        std::fs::File::open("/dev/tty").is_ok(),
    ))
}

/// The sites that are meant: those that were named, or else home and all of the sites file.
pub(crate) fn sites_or_all(catalogue: &Catalogue, named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let all = catalogue.sites().map(|(name, _)| name.to_owned());
    std::iter::once("home".to_owned()).chain(all).collect()
}

/// The same by name alone: a word that cannot be the name of a site is told before any site is asked.
pub(crate) fn named_sites(catalogue: &Catalogue, named: &[String]) -> Result<Vec<String>, JobErrors> {
    let names = sites_or_all(catalogue, named);
    let mut wrong = JobErrors::default();
    for error in names.iter().filter_map(|name| check_name(catalogue, name).err()) {
        wrong.push(error);
    }
    wrong.or(Some(names))
}

fn check_name(catalogue: &Catalogue, name: &str) -> Result<(), JobError> {
    catalogue.contact(name)?;
    if name.contains(',') {
        let error = JobError::new(format!("'{name}' cannot be the name of a site"));
        return Err(error.hint("write sites one by one, by their names alone: what follows a comma is for isthmus run"));
    }
    Ok(())
}

/// The command of the ssh client.
pub(crate) fn ssh_command(ssh: Option<&str>) -> String {
    let named = ssh.filter(|s| !s.trim().is_empty()).map(str::to_owned);
    let command = named.unwrap_or_else(|| isthmus_settings::SSH.read(std::env::var_os));
    // What `isthmus login` has got, where there is no agent that has it.
    let pair = crate::login::identity().map(|p| p.display().to_string());
    match pair.filter(|p| !p.contains(char::is_whitespace)) {
        Some(key) => format!("{command} -o IdentityFile={key} -o CertificateFile={key}-cert.pub"),
        None => command,
    }
}

/// Whether a host that the user names is this machine. A site that the user has described is what the description says.
pub(crate) fn is_home(host: &str) -> bool {
    is_this_machine(host) && catalogue().is_ok_and(|c| c.get(host).is_none())
}

/// Whether a name or address is that of this machine: its own name, `localhost`, loopback, or an address of one of its
/// interfaces. Other names are not looked up: that may take long, and the user's ssh configuration may give them
/// another meaning.
pub(crate) fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        let own = || std::net::UdpSocket::bind((address, 0)).is_ok();
        return address.is_loopback() || (!address.is_unspecified() && own());
    }
    if is_ipv6(host) {
        // With an interface: its number is looked up here, nobody is asked.
        let own = |all: std::vec::IntoIter<std::net::SocketAddr>| std::net::UdpSocket::bind(&*all.collect::<Vec<_>>());
        return (host, 0).to_socket_addrs().is_ok_and(|all| own(all).is_ok());
    }
    let uname = rustix::system::uname();
    let own = uname.nodename().to_string_lossy().to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    let short = own.split('.').next().unwrap_or(&own);
    matches!(&*host, "localhost" | "ip6-localhost") || (!own.is_empty() && (host == own || host == short))
}

#[cfg(test)]
mod own_names {
    use super::is_this_machine;

    #[test]
    fn this_machine_has_names_and_addresses() {
        for host in ["localhost", "127.0.0.1", "127.0.0.2", "::1"] {
            assert!(is_this_machine(host), "{host}");
        }
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        assert!(is_this_machine(&own), "{own}");
        // Addresses and names for documentation (RFC 5737, RFC 3849, RFC 2606).
        // No machine has an interface of this name: one has at most 15 characters.
        assert!(!is_this_machine("fe80::1%sixteen-letters-"));
        for host in ["192.0.2.1", "2001:db8::1", "0.0.0.0", "::", "host.example.org"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
