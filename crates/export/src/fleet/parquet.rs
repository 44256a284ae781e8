//! One table as a Parquet file, compressed by Snappy. Its footer names the records that its rows
//! are from, so that the same record is not added twice.

use super::source::digest;
use super::{Cell, Kind, Row, Table};
use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// The key in the footer.
const RECORDS: &str = "gleaner.records";

/// Rows of a group: what a reader has to hold at once.
const GROUP: usize = 1 << 17;

/// The file that holds these rows, which are of these records.
pub fn file(table: &Table, rows: &[Row], records: &[String]) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gleaner {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(RECORDS.to_owned(), records.join(","))]))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema(table)?, Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        for (nth, column) in table.columns().enumerate() {
            let cells = || rows.iter().map(move |row| &row[nth]);
            match column.kind {
                Kind::Text => write::<ByteArrayType, _>(&mut group, cells().map(as_text))?,
                Kind::Int | Kind::Time => write::<Int64Type, _>(&mut group, cells().map(as_int))?,
                Kind::Float => write::<DoubleType, _>(&mut group, cells().map(as_float))?,
                Kind::Bool => write::<BoolType, _>(&mut group, cells().map(as_bool))?,
            }
        }
        group.close()?;
    }
    writer.close()?;
    Ok(bytes)
}

/// What the file of these records is called: the same for the same records.
pub fn file_name(records: &[String]) -> String {
    format!("{}.parquet", digest(records))
}

/// The records whose rows a file of ours holds.
pub fn records_in(bytes: Vec<u8>) -> Result<Vec<String>, ParquetError> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let names = pairs.into_iter().flatten().filter(|pair| pair.key == RECORDS);
    Ok(names.filter_map(|pair| pair.value.as_ref()).flat_map(|v| v.split(',')).map(str::to_owned).collect())
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let fields = table.columns().map(|column| field(column.name, column.kind));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// The field of a column.
pub(crate) fn field(name: &str, kind: Kind) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Int => (Physical::INT64, None),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
    };
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    field.build().map(Arc::new)
}

/// A column: its values, and for each row whether there is one.
pub(crate) fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    let (mut values, mut there) = (Vec::new(), Vec::new());
    for cell in cells {
        there.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    column.close()
}

fn as_text(cell: &Cell) -> Option<ByteArray> {
    if let Cell::Text(text) = cell { Some(text.as_str().into()) } else { None }
}

fn as_int(cell: &Cell) -> Option<i64> {
    if let Cell::Int(number) | Cell::Time(number) = cell { Some(*number) } else { None }
}

fn as_float(cell: &Cell) -> Option<f64> {
    if let Cell::Float(number) = cell { Some(*number) } else { None }
}

fn as_bool(cell: &Cell) -> Option<bool> {
    if let Cell::Bool(truth) = cell { Some(*truth) } else { None }
}
