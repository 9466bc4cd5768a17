//! A table with an index of its rows.

use std::collections::HashMap;
use std::ops::Deref;

use super::{Row, Table};

/// A table that finds rows by group and metric. An item has up to a million rows, and a claim selects some of them a dozen times.
#[derive(Debug, Clone, Default)]
pub struct IndexedTable {
    table: Table,
    /// Positions of rows in order, by group and metric.
    positions: HashMap<String, HashMap<String, Vec<usize>>>,
}

impl IndexedTable {
    pub fn new(table: Table) -> Self {
        let mut positions: HashMap<String, HashMap<String, Vec<usize>>> = HashMap::new();
        for (at, row) in table.rows.iter().enumerate() {
            // No copies of names that are known.
            match positions.get_mut(&row.group).and_then(|own| own.get_mut(&row.metric)) {
                Some(own) => own.push(at),
                None => {
                    let own = positions.entry(row.group.clone()).or_default();
                    own.insert(row.metric.clone(), vec![at]);
                }
            }
        }
        IndexedTable { table, positions }
    }

    /// Rows of a group with a metric, in order.
    pub fn of_metric(&self, group: &str, metric: &str) -> impl Iterator<Item = &Row> {
        let found = self.positions.get(group).and_then(|own| own.get(metric));
        found.into_iter().flatten().filter_map(|at| self.table.rows.get(*at))
    }

    /// Rows of a group, by metric.
    pub fn of_group(&self, group: &str) -> impl Iterator<Item = &Row> {
        let found = self.positions.get(group).into_iter().flat_map(HashMap::values).flatten();
        found.filter_map(|at| self.table.rows.get(*at))
    }
}

impl Deref for IndexedTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
