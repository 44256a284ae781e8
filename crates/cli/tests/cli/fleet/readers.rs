//! Programs that read what is exported, in Python's virtual environment `target/readers/python`
//! (below `GLEANER_READERS`, if that is set); and the SQL of `docs/fleet.md`.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
pub(super) use testkit::python_reader as python;
use testkit::text;

/// What a program prints, given this on its standard input.
#[track_caller]
pub(super) fn with_input(program: &Path, arguments: &[&str], input: &[u8], directory: &Path) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The rows of the last of these statements.
#[track_caller]
pub(crate) fn duckdb(python: &Path, directory: &Path, statements: &[&str]) -> Vec<Value> {
    const SCRIPT: &str = r#"
import json, sys, duckdb
statements = json.load(sys.stdin)
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false; SET threads = 2")
for statement in statements:
    result = connection.execute(statement)
names = [column[0] for column in result.description]
def plain(value):
    return value.isoformat() if hasattr(value, "isoformat") else value
for row in result.fetchall():
    print(json.dumps(dict(zip(names, map(plain, row)))))
"#;
    let input = serde_json::to_vec(statements).expect("texts");
    let printed = with_input(python, &["-c", SCRIPT], &input, directory);
    printed.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// Three sums over the table `results`, as a list in the last line.
/// Spark's reader of Snappy takes a system for one of musl as soon as musl's loader is installed,
/// as it is for `make static`: it is told which library to load.
pub(super) const SPARK: &str = r#"
import glob, json, os, pyspark, zipfile
from pyspark.sql import SparkSession, functions as f
name = "libsnappyjava.so"
[jar] = glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "snappy-java-*.jar"))
with zipfile.ZipFile(jar) as packed, open(name, "wb") as library:
    library.write(packed.read(f"org/xerial/snappy/native/Linux/x86_64/{name}"))
java = f"-Dorg.xerial.snappy.lib.path={os.getcwd()} -Dorg.xerial.snappy.lib.name={name}"
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.extraJavaOptions", java).getOrCreate())
table = spark.read.parquet("tables/results")
row = table.agg(f.count("*"), f.count("value"), f.sum("value")).first()
assert str(table.schema["time"].dataType) == "TimestampType()" and "date" in table.columns, table.schema
print(json.dumps(list(row)))
"#;

pub(super) const CLICKHOUSE: &str = r#"
import json, os, chdb
files = os.getcwd() + "/tables/results/*/*.parquet"
sums = f"SELECT count(), count(value), sum(value) FROM file('{files}', Parquet)"
settings = "SETTINGS output_format_json_quote_64bit_integers = 0"
row = json.loads(str(chdb.query(f"{sums} FORMAT JSONCompactEachRow {settings}")))
print(json.dumps(row))
"#;

/// A row as text, the same for a row of `jsonl` and one that a database read.
pub(super) fn comparable(row: &Value) -> String {
    let mut row = row.as_object().expect("a row").clone();
    if let Some(Value::String(text)) = row.get("parameters") {
        let parameters: Value = serde_json::from_str(text).expect("JSON");
        row.insert("parameters".to_owned(), parameters);
    }
    if let Some(Value::String(time)) = row.get_mut("time") {
        *time = time.replace("+00:00", "Z");
    }
    Value::Object(row).to_string()
}

/// The pieces of SQL on the page about hosts, in their order: views, figures, claims, limits. What
/// is behind them is about loads.
pub(super) fn documented_sql() -> [String; 4] {
    let page = std::fs::read_to_string(testkit::root().join("docs/fleet.md")).expect("the page");
    let page = page.split("## Loads that a fleet waits for").next().expect("the first part");
    let pieces = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let pieces: Vec<String> = pieces.map(str::to_owned).collect();
    pieces.try_into().expect("four pieces of SQL in docs/fleet.md")
}
