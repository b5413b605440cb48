//! The program, on the results of a sweep and on time series. Files are read back and compared with the text.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const SERIES: &str = "time_ns,kind,name,quantity,value\n0,link,n0->n1,bytes,66000\n1000,link,n0->n1,bytes,0\n\
                      0,link,\"a, b\",dropped:queue-full,2\n1000,node,n0,latency_p99_ns,1250\n";

/// Folder of one test. It is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rackloom-parquet-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).expect("temporary files can be written");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn convert(argument: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_rackloom-sweep-parquet");
    Command::new(program).arg(argument).output().expect("it starts")
}

/// Returns the rows of a file, with the name and value of each cell.
fn rows(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(path).expect("it was written")).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").into_columns()).collect()
}

fn row(cells: &[(&str, Field)]) -> Vec<(String, Field)> {
    cells.iter().cloned().map(|(title, value)| (title.to_owned(), value)).collect()
}

#[test]
fn series_are_read_back_with_their_types() {
    let folder = Folder::new("series");
    let output = convert(&folder.write("run.csv", SERIES));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = |text: &str| Field::Str(text.to_owned());
    let expected = |time_ns, kind, name, quantity, value| {
        row(&[
            ("time_ns", Field::Long(time_ns)),
            ("kind", text(kind)),
            ("name", text(name)),
            ("quantity", text(quantity)),
            ("value", Field::Long(value)),
        ])
    };
    assert_eq!(
        rows(&folder.0.join("run.parquet")),
        [
            expected(0, "link", "n0->n1", "bytes", 66_000),
            expected(1000, "link", "n0->n1", "bytes", 0),
            expected(0, "link", "a, b", "dropped:queue-full", 2),
            expected(1000, "node", "n0", "latency_p99_ns", 1250),
        ]
    );
}

#[test]
fn a_directory_is_that_of_a_sweep() {
    let folder = Folder::new("sweep");
    folder.write("results.csv", "point,time_ns\n3,2.5\n");
    assert!(convert(&folder.0).status.success());
    let expected = row(&[("point", Field::Long(3)), ("time_ns", Field::Double(2.5))]);
    assert_eq!(rows(&folder.0.join("results.parquet")), [expected]);
}

#[test]
fn bad_arguments_are_refused_and_no_file_is_replaced() {
    let folder = Folder::new("bad");
    let taken = folder.write("taken.parquet", SERIES);
    let damaged = folder.write("damaged.csv", "time_ns,kind,name,quantity,value\n1,link\n");
    for (path, part) in [
        (&folder.0, "results.csv: No such file"),
        (&folder.0.join("none.csv"), "none.csv: No such file"),
        (&taken, "would be replaced"),
        (&damaged, "record 2 has 2 cells"),
    ] {
        let output = convert(path);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(part) && errors.contains("hint:"), "{errors}");
    }
    assert_eq!(std::fs::read_to_string(taken).expect("it is still there"), SERIES);
}
