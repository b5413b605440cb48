//! Columns with their types, and the file. Every column is optional: an empty cell is no value.
//!
//! Of a sweep, counts are 64-bit integers, times and bandwidths are doubles, and all others are texts, the values of the axes as they were
//! written. Of time series, times and values are 64-bit integers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::csv::Table;

/// Kind of table, with the columns that have numbers. All others have texts.
struct Kind {
    name: &'static str,
    /// Columns of whole numbers.
    counts: &'static [&'static str],
    /// Columns of other numbers.
    measures: &'static [&'static str],
}

const SWEEP: Kind = Kind {
    name: "sweep",
    counts: &[
        "point",
        "exit",
        "run_seed",
        "size_bytes",
        "wrong",
        "elapsed_ns",
        "retransmitted",
        "dropped",
        "bytes_on_wire",
    ],
    measures: &[
        "time_ns",
        "time_min_ns",
        "time_p50_ns",
        "time_p99_ns",
        "algbw_GBps",
        "busbw_GBps",
        "of_link",
    ],
};
const SERIES: Kind = Kind { name: "series", counts: &["time_ns", "value"], measures: &[] };
/// Columns of time series, by which they are recognised.
const SERIES_TITLES: [&str; 5] = ["time_ns", "kind", "name", "quantity", "value"];

impl Kind {
    fn of(table: &Table) -> &'static Self {
        if table.titles == SERIES_TITLES { &SERIES } else { &SWEEP }
    }

    fn physical(&self, title: &str) -> Physical {
        if self.counts.contains(&title) {
            Physical::INT64
        } else if self.measures.contains(&title) {
            Physical::DOUBLE
        } else {
            Physical::BYTE_ARRAY
        }
    }
}

/// Writes the table to a file.
///
/// # Errors
/// The file cannot be written, or a cell of a column of numbers is none.
pub(crate) fn write(table: &Table, path: &Path) -> Result<()> {
    let kind = Kind::of(table);
    let fields: Result<Vec<_>> =
        table.titles.iter().map(|title| field(title, kind.physical(title)).map(Arc::new)).collect();
    let schema = Type::group_type_builder(kind.name).with_fields(fields?).build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path)?, Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for (index, title) in table.titles.iter().enumerate() {
        let cells = table.rows.iter().map(|row| row[index].as_str());
        match kind.physical(title) {
            Physical::INT64 => column::<Int64Type>(&mut group, cells, number)?,
            Physical::DOUBLE => column::<DoubleType>(&mut group, cells, number)?,
            _ => column::<ByteArrayType>(&mut group, cells, |text| Ok(ByteArray::from(text)))?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn field(title: &str, physical: Physical) -> Result<Type> {
    let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
    Type::primitive_type_builder(title, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(text)
        .build()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| ParquetError::General(format!("`{text}` is no number")))
}

/// Writes one column. Cells without text have no value.
fn column<'a, D: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    cells: impl Iterator<Item = &'a str>,
    read: impl Fn(&str) -> Result<D::T>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(!cell.is_empty()));
        if !cell.is_empty() {
            values.push(read(cell)?);
        }
    }
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("the file has fewer columns than the table".to_owned()));
    };
    writer.typed::<D>().write_batch(&values, Some(&levels), None)?;
    writer.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::csv;

    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("rackloom-{}-{name}.parquet", std::process::id()))
    }

    #[test]
    fn another_reader_finds_the_values_with_their_types() {
        let path = file("types");
        let table = csv::read("point,link.loss,time_ns,reason\n0,1e-6,2.5,\n1,0,,\"died, twice\"\n").unwrap();
        write(&table, &path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        std::fs::remove_file(path).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].get_long(0).unwrap(), rows[0].get_double(2).unwrap()), (1, 2.5));
        assert_eq!(rows[0].get_string(1).unwrap(), "1e-6");
        assert_eq!(rows[1].get_string(3).unwrap(), "died, twice");
        assert!(
            rows[1].get_double(2).is_err() && rows[0].get_string(3).is_err(),
            "empty cells have no value"
        );
    }

    #[test]
    fn times_of_series_are_whole_numbers() {
        let path = file("series");
        let table =
            csv::read("time_ns,kind,name,quantity,value\n9007199254740993,link,n0->n1,bytes,7\n").unwrap();
        write(&table, &path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(reader.metadata().file_metadata().schema().name(), "series");
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        // A double cannot hold this time.
        assert_eq!((row.get_long(0).unwrap(), row.get_long(4).unwrap()), (9_007_199_254_740_993, 7));
        assert_eq!(row.get_string(2).unwrap(), "n0->n1");
    }

    #[test]
    fn a_number_that_is_none_is_an_error() {
        let path = file("errors");
        let table = csv::read("time_ns\nsoon\n").unwrap();
        assert!(write(&table, &path).unwrap_err().to_string().contains("`soon` is no number"));
        let _ = std::fs::remove_file(path);
    }
}
