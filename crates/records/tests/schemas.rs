//! Schemas: the committed one of each kind of record is current. They are a feature of this room:
//! `cargo test -p gleaner-records --features schema --test schemas`.

use gleaner_records::KINDS;

#[test]
fn committed_schemas_are_current() {
    for kind in KINDS {
        let mut text = serde_json::to_string_pretty(&kind.schema()).expect("a schema");
        text.push('\n');
        testkit::golden(&format!("docs/schema/{}", kind.schema_file()), &text);
    }
}

#[test]
fn a_schema_names_its_kind() {
    for kind in KINDS {
        let schema = kind.schema();
        let value = schema.as_value();
        assert_eq!(value["properties"]["kind"]["const"], kind.name);
        assert_eq!(value["properties"]["version"]["const"], kind.version);
        let required = value["required"].as_array().expect("a list").iter();
        let first: Vec<_> = required.filter_map(serde_json::Value::as_str).take(4).collect();
        assert_eq!(first, ["kind", "version", "gleaner", "created"], "{}", kind.name);
    }
}
