//! Tables of an item: the number of runs behind a row, columns that are the same in all rows, kinds of rows, and published values of
//! another group.

use posenc_experiments::record::Row;

use crate::common;
use crate::panels::{FIGURE, report_of, rows, rows_of};

/// The table of an item with its notes, from the item's page.
fn page(rows: Vec<Row>, table: &str, published: &str) -> String {
    page_of(FIGURE, rows, table, published)
}

fn page_of(figure: &str, rows: Vec<Row>, table: &str, published: &str) -> String {
    let head = figure.split("plots:").next().expect("a head");
    let figure =
        format!("{head}tables:\n  - id: t\n    title: A table\n    groups: [run]\n{table}");
    let page = common::page(&report_of(rows, &figure, published), "demo/fig1.md");
    let table = page.split("**A table**").nth(1).expect("a table");
    table.split("<details>").next().expect("a table").to_owned()
}

/// The cells of the lines that begin with a method, and of the heading.
fn grid(page: &str) -> Vec<Vec<&str>> {
    fn cells(line: &str) -> Vec<&str> {
        line.trim_matches(['|', ' ']).split(" | ").collect()
    }
    let is_own =
        |line: &&str| ["| Method |", "| Gau |", "| RFF |"].iter().any(|s| line.starts_with(s));
    page.lines().filter(is_own).map(cells).collect()
}

/// Catches rows whose numbers of runs differ and are not shown, and a column that repeats one number.
#[test]
fn rows_show_the_number_of_their_runs() {
    let table = "    columns: [{ metric: train_psnr, label: PSNR, x: 1 }]\n";
    let page_of = |rows| page(rows, table, "");
    let equal = page_of(rows());
    assert_eq!(grid(&equal)[0], ["Method", "PSNR<br>measured"], "{equal}");
    assert!(equal.contains("n = 2"), "{equal}");

    let fewer = rows().into_iter().filter(|r| r.method == "Gau" || r.signal == "row 1");
    let different = page_of(fewer.collect());
    let expected =
        [["Method", "n", "PSNR<br>measured"], ["Gau", "2", "30.00 ± 2.00"], ["RFF", "1", "18.00"]];
    assert_eq!(grid(&different), expected, "{different}");
    assert!(different.contains("n: signals × seeds"), "{different}");

    let single = page_of(rows_of(&[("row 1", 0.0)]));
    assert!(!single.contains("n = 1"), "{single}");
}

/// Catches times of a GPU beside those of a CPU without a label.
#[test]
fn times_of_another_device_are_labeled() {
    let table = "    columns: [{ metric: time, label: time, x: 1 }]\n";
    let protocol = FIGURE.lines().find(|line| line.contains("protocol:")).expect("a protocol");
    let timed = "    protocol: { kind: complexity, scheme: simple, sizes: [2] }";
    let page_of = |gpu: fn(&Row) -> bool| {
        let mut rows = rows();
        for row in rows.iter_mut().filter(|row| row.metric == "train_psnr") {
            row.metric = "time".into();
            if gpu(row) {
                row.device = "NVIDIA H200 (vulkan, driver 580)".into();
            }
        }
        page_of(&FIGURE.replace(protocol, timed), rows, table, "")
    };
    let mixed = page_of(|row| row.method == "RFF");
    let cells: Vec<_> = grid(&mixed).into_iter().filter_map(|line| line.last().copied()).collect();
    let is_labeled: Vec<_> = cells.iter().map(|c| c.ends_with("<sub>NVIDIA H200</sub>")).collect();
    assert_eq!(is_labeled, [false, false, true], "{mixed}");
    let equal = page_of(|_| true);
    assert!(!equal.contains("<sub>NVIDIA"), "{equal}");
}

/// Catches a column that repeats one number in all rows, a column that becomes a note although a row differs, and a
/// note without the paper's number.
#[test]
fn columns_that_are_the_same_in_all_rows_become_a_note() {
    let with = |target: &str, published: &str, rows: Vec<Row>| {
        let table = format!(
            "    rows: x\n    columns:\n      - {{ metric: train_psnr, label: PSNR, aggregate: mean }}\n      \
             - {{ metric: target, label: the target, digits: 1, aggregate: mean{target} }}\n"
        );
        page(rows, &table, published)
    };
    let constant = with("", "", rows());
    assert_eq!(grid(&constant)[0], ["Method", "x", "PSNR<br>measured"], "{constant}");
    assert!(constant.contains("in all rows: the target: 3.0"), "{constant}");

    let printed: String = ["Gau", "RFF"]
        .iter()
        .flat_map(|m| [1, 10, 100].map(|x| format!("fig1,run,{m},,target,{x},4.5,,,paper,\n")))
        .collect();
    let compared = with(", difference: false", &printed, rows());
    assert!(
        compared.contains("in all rows: the target: 4.5 (paper), 3.0 (measured)"),
        "{compared}"
    );

    let mut one_differs = rows();
    let last = one_differs.iter_mut().rfind(|r| r.metric == "target").expect("a target");
    last.value = 5.0;
    for kept in [with("", "", one_differs), with(", best: highest", "", rows())] {
        assert_eq!(grid(&kept)[0].last(), Some(&"the target<br>measured"), "{kept}");
        assert!(!kept.contains("in all rows"), "{kept}");
    }
}

/// Catches rows of several signals that are averaged, and abscissas that are lost.
#[test]
fn a_row_can_be_a_signal_at_an_abscissa() {
    let table = "    rows: signal-x\n    row_label: N\n    methods: [Gau]\n    columns: [{ metric: train_psnr, label: PSNR }]\n";
    let published = "fig1,run,Gau,row 2,train_psnr,10,33.5,,dB,paper,\n";
    let page = page(rows(), table, published);
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| row ")).collect();
    let expected = [
        "| row 1 | 1 | – | 28.00 |",
        "| row 1 | 10 | – | 29.00 |",
        "| row 1 | 100 | – | 30.00 |",
        "| row 2 | 1 | – | 32.00 |",
        "| row 2 | 10 | 33.5 | 33.00<br><sub>-0.50</sub> |",
        "| row 2 | 100 | – | 34.00 |",
    ];
    assert_eq!(lines, expected, "{page}");
    assert!(page.contains("| Signal | N | PSNR<br>paper | PSNR<br>measured |"), "{page}");
}

/// Catches published values of the row's own group where the column names another one.
#[test]
fn published_values_can_be_those_of_another_group() {
    let of = |group: &str, other: &str| {
        let published = format!("fig1,run,Gau,,train_psnr,1,99,,dB,paper,\n{other}");
        let table = format!(
            "    columns: [{{ metric: train_psnr, label: PSNR, x: 1, aggregate: mean{group} }}]\n"
        );
        let page = page(rows(), &table, &published);
        grid(&page)[1][1].to_owned()
    };
    let other = "fig1,other,Gau,,train_psnr,1,31.5,,dB,paper,\n";
    assert_eq!(of("", ""), "99");
    assert_eq!(of(", published_group: other", other), "31.5");
    // A group without published values has none.
    assert_eq!(
        of(", published_group: third", ""),
        "30.00 ± 2.00".split(' ').next().expect("a mean")
    );
}
