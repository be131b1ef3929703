//! Findings about this machine: the driver manager, and the drivers with their versions.

use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;
use onecopy_rows::odbc::{self, Fault, InstalledDriver, Package};
use onecopy_text::Kernel;

use super::report::{Finding, Level, Report};

const MACHINE: &str = "This machine";
const MANAGER: &str = "ODBC driver manager";
const DRIVERS: &str = "ODBC drivers";

/// Adds the findings about this machine, which do not depend on a database.
pub(super) fn look(report: &mut Report, features: &[String]) {
    for feature in features {
        report.add(Finding::new(MACHINE, Level::Ok, feature, ""));
    }
    report.add(sqlite());
    report.add(kernels());
    match odbc::survey() {
        Ok(survey) => {
            let name = survey.manager.file.as_ref().map_or_else(
                || survey.manager.name.clone(),
                |file| file.display().to_string(),
            );
            report.add(
                Finding::new(MANAGER, Level::Ok, name, "")
                    .fact("package", survey.manager.package.as_ref().map(package)),
            );
            survey.drivers.iter().for_each(|d| report.add(driver(d)));
            faults(report, &survey.drivers);
            missing(report, &survey.drivers);
        }
        Err(error) => {
            report.add(no_manager(&error.message, odbc::manager_is_chosen()));
        }
    }
}

/// Returns the finding for a missing ODBC driver manager. The level of the finding is `Broken` if
/// the user chose a manager (`is_chosen`). Otherwise it is `Absent`, because PostgreSQL and SQLite
/// need no manager.
fn no_manager(message: &str, is_chosen: bool) -> Finding {
    let level = match is_chosen {
        true => Level::Broken,
        false => Level::Absent,
    };
    let (what, rest) = message.split_once('\n').unwrap_or((message, ""));
    // In the message, the files that were tried are on indented lines; the advice is on lines
    // without indent.
    let (tried, remedy): (Vec<&str>, Vec<&str>) = rest.lines().partition(|l| l.starts_with(' '));
    let tried: Vec<&str> = tried.into_iter().map(str::trim).collect();
    Finding::new(MANAGER, level, what.trim_end_matches("; tried"), "")
        .fact("tried", Some(tried.join("\n")))
        .remedy(remedy.join("\n"))
}

fn sqlite() -> Finding {
    match Connection::open("sqlite::memory:", &ConnectOptions::default()) {
        Ok(sqlite) => Finding::new(
            MACHINE,
            Level::Ok,
            sqlite.describe(),
            "`sqlite:PATH` needs nothing else",
        ),
        Err(error) => Finding::new(MACHINE, Level::Broken, "SQLite", error.to_string()),
    }
}

fn kernels() -> Finding {
    let kernel = onecopy_text::kernel();
    let forced = std::env::var("ONECOPY_KERNEL").is_ok_and(|v| v == kernel.name());
    let (level, says) = match (kernel, forced) {
        (_, true) => (
            Level::Note,
            "forced by the environment variable ONECOPY_KERNEL",
        ),
        (Kernel::Avx512 | Kernel::Avx2, false) => (Level::Ok, "chosen for this processor"),
        _ => (
            Level::Note,
            "this processor has no AVX2: right all the same, and slower",
        ),
    };
    Finding::new(
        MACHINE,
        level,
        format!("text kernels {}", kernel.name()),
        says,
    )
}

fn package(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

/// Returns the finding for an installed driver: its path, and the result of loading it.
fn driver(driver: &InstalledDriver) -> Finding {
    let name = driver
        .known_as
        .unwrap_or("a driver that onecopy does not know");
    let url = |scheme: &&str| match scheme.starts_with("postgres") {
        // Without the prefix `odbc+`, this scheme denotes the built-in driver.
        true => format!("odbc+{scheme}://"),
        false => format!("{scheme}://"),
    };
    let urls: Vec<String> = driver.schemes.iter().map(url).collect();
    let says = match (&driver.broken, driver.known_as, urls.is_empty()) {
        (Some(_), ..) if driver.is_file => "found, and cannot be loaded".to_owned(),
        (Some(_), ..) => "registered, but its file does not exist".to_owned(),
        (None, None, _) => "used with safe defaults".to_owned(),
        (None, Some(_), true) => String::new(),
        (None, Some(_), false) => urls.join(", "),
    };
    let level = match (&driver.broken, driver.is_file) {
        (None, _) => Level::Ok,
        (Some(_), true) => Level::Broken,
        // `odbcinst.ini` still lists the driver, but its file does not exist: probably the package
        // was removed.
        (Some(_), false) => Level::Warning,
    };
    let names = driver.registered.join(", ");
    let finding = Finding::new(DRIVERS, level, name, says)
        .fact("Driver=", Some(driver.driver.clone()))
        .fact("package", driver.package.as_ref().map(package))
        .fact(
            "registered",
            Some(names).filter(|n| !n.is_empty() && *n != driver.driver),
        )
        .fact("reason", driver.broken.clone());
    match &driver.broken {
        Some(reason) => finding.remedy(to_load(reason)),
        None => finding,
    }
}

/// Returns advice for a driver that cannot be loaded. `reason` is the message of the dynamic
/// loader.
fn to_load(reason: &str) -> &'static str {
    if reason.contains("libgssapi") || reason.contains("libkrb5") {
        "install Kerberos' libraries: `apt-get install libgssapi-krb5-2`, `dnf install krb5-libs`, `apk add krb5-libs`"
    } else if reason.contains("libltdl") {
        "install libltdl: `apt-get install libltdl7`, `dnf install libtool-ltdl`"
    } else if reason.contains("libodbcinst") {
        "install unixODBC whole: `apt-get install unixodbc`, `dnf install unixODBC`, `apk add unixodbc`"
    } else if reason.contains("wrong ELF class") || reason.contains("invalid ELF header") {
        "this file is for another kind of processor: install the package for this one"
    } else {
        "install the package that has the file named, or take the driver out of odbcinst.ini"
    }
}

/// Adds a finding for each known defect of the installed driver versions. When a connection uses
/// such a driver, its notices report the same defects.
fn faults(report: &mut Report, drivers: &[InstalledDriver]) {
    let mut found: Vec<(Fault, Vec<&str>)> = Vec::new();
    for driver in drivers {
        let name = driver.known_as.unwrap_or(&driver.driver);
        for fault in driver.faults.iter().filter(|f| is_bad_version(f)) {
            match found.iter_mut().find(|(f, _)| f == fault) {
                Some((_, names)) => names.push(name),
                None => found.push((*fault, vec![name])),
            }
        }
    }
    for (fault, names) in found {
        report.add(
            Finding::new(
                DRIVERS,
                Level::Warning,
                format!("{} {}", names.join(" and "), fault.versions),
                fault.what,
            )
            .remedy(fault.remedy),
        );
    }
    let mut notices: Vec<&str> = Vec::new();
    for notice in drivers.iter().flat_map(|d| d.notices) {
        if notices.contains(notice) {
            continue;
        }
        notices.push(notice);
        let (what, remedy) = notice.split_once('\n').unwrap_or((notice, ""));
        report.add(Finding::new(DRIVERS, Level::Note, what, "").remedy(remedy));
    }
}

/// Returns `true` if the user should install another version of the driver: the defect is limited
/// to certain versions, and onecopy does not work around it.
pub(super) fn is_bad_version(fault: &Fault) -> bool {
    !fault.versions.is_empty() && !fault.is_handled
}

/// Adds a finding for each kind of database URL (such as `mysql://`) for which no ODBC driver is
/// installed.
fn missing(report: &mut Report, drivers: &[InstalledDriver]) {
    for scheme in odbc::url_schemes() {
        let served = |d: &InstalledDriver| d.broken.is_none() && d.schemes.contains(&scheme.scheme);
        if !drivers.iter().any(served) {
            report.add(
                Finding::new(
                    DRIVERS,
                    Level::Absent,
                    format!("{}://", scheme.scheme),
                    "no driver for it",
                )
                .remedy(scheme.to_install),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_that_is_not_there_is_broken_only_where_it_was_named() {
        let message = "no ODBC driver manager (unixODBC) can be loaded; tried\n  `libodbc.so.2`: no such file\n\
                       Install it: `apt-get install unixodbc`.\n`sqlite:` databases need none.";
        for (is_chosen, level) in [(true, "broken"), (false, "absent")] {
            let mut report = Report::default();
            report.add(no_manager(message, is_chosen));
            let json = report.json();
            assert!(json.contains(&format!("\"worst\":\"{level}\"")), "{json}");
            assert!(
                json.contains("\"tried\":\"`libodbc.so.2`: no such file\""),
                "{json}"
            );
            assert!(json.contains("\"remedy\":\"Install it: `apt-get"), "{json}");
        }
    }

    #[test]
    fn what_the_loader_says_leads_to_a_remedy() {
        for (reason, remedy) in [
            (
                "libgssapi_krb5.so.2: cannot open shared object file",
                "Kerberos",
            ),
            ("libodbcinst.so.2: cannot open", "unixODBC whole"),
            ("x.so: wrong ELF class: ELFCLASS32", "another kind"),
            ("/opt/x.so: cannot open", "odbcinst.ini"),
        ] {
            assert!(to_load(reason).contains(remedy), "{reason}");
        }
    }
}
