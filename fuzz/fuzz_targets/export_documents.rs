//! The JSON of exports: manifests, settings, plans and parts of plans. A text that is read is written and read
//! again with the same result; any other text is an error. The shape of an SQL text is found, or is
//! an error, in each dialect.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_export::{Manifest, Settings};
use onecopy_export::plan::{PartSpec, Plan};
use onecopy_rows::Dialect;
use onecopy_rows::sql::query_shape::QueryShape;

const DIALECTS: [Dialect; 5] = [
    Dialect::Generic,
    Dialect::Sqlite,
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::SqlServer,
];

fuzz_target!(|text: &str| {
    if let Ok(manifest) = Manifest::from_json(text.as_bytes()) {
        let again = Manifest::from_json(manifest.to_json().as_bytes());
        assert_eq!(again.as_ref(), Ok(&manifest), "{text:?}");
    }
    if let Ok(settings) = Settings::from_json(text) {
        let again = Settings::from_json(&settings.to_json());
        assert_eq!(again.expect("written by this program"), settings, "{text:?}");
    }
    if let Ok(plan) = Plan::from_json(text) {
        // Compared as text: a value may be NaN.
        let written = plan.to_json();
        let again = Plan::from_json(&written).expect("written by this program");
        assert_eq!(again.to_json(), written, "{text:?}");
    }
    if let Ok(part) = PartSpec::from_json(text) {
        let written = part.to_json();
        let again = PartSpec::from_json(&written).expect("written by this program");
        assert_eq!(again.to_json(), written, "{text:?}");
    }
    for dialect in DIALECTS {
        let Ok(shape) = QueryShape::of(text, dialect) else { continue };
        let mut places = vec![shape.text];
        places.extend(shape.placeholder);
        if let Some(table) = shape.table {
            places.extend([table.name, table.alias, table.from..table.end]);
            places.extend(table.condition.map(|at| at..at));
        }
        for place in places {
            assert!(text.get(place.clone()).is_some(), "{place:?} of {text:?}");
        }
    }
});
