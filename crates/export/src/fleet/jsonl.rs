//! Rows as JSON, one a line: `{"table":"results","record":…}`.

use super::{Source, TABLES};
use serde_json::{Map, Value};

/// All rows of a record, those of one table after the other.
pub fn lines(source: &Source) -> String {
    let mut text = String::new();
    for table in TABLES {
        for row in table.rows(source) {
            let mut object = Map::from_iter([("table".to_owned(), Value::from(table.name))]);
            object.extend(table.columns().map(|c| c.name.to_owned()).zip(row.iter().map(super::Cell::json)));
            // The parameters are JSON themselves, and here need not hide in a text.
            if let Some(Value::String(parameters)) = object.get("parameters") {
                let parameters: Value = serde_json::from_str(parameters).unwrap_or_default();
                object.insert("parameters".to_owned(), parameters);
            }
            text.push_str(&Value::Object(object).to_string());
            text.push('\n');
        }
    }
    text
}
