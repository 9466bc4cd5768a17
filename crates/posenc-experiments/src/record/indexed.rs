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
            if !positions.get(&row.group).is_some_and(|own| own.contains_key(&row.metric)) {
                let own = positions.entry(row.group.clone()).or_default();
                own.insert(row.metric.clone(), Vec::new());
            }
            let own = positions.get_mut(&row.group).and_then(|own| own.get_mut(&row.metric));
            own.into_iter().for_each(|own| own.push(at));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches rows that the index leaves out, repeats or reorders.
    #[test]
    fn all_rows_are_found_in_order() {
        let row = |group: &str, metric: &str, value| Row {
            group: group.to_owned(),
            ..Row::new(group, "m", metric, value)
        };
        let rows =
            vec![row("a", "p", 1.0), row("b", "p", 2.0), row("a", "q", 3.0), row("a", "p", 4.0)];
        let table = IndexedTable::new(Table { rows });
        let values = |group, metric| -> Vec<f64> {
            table.of_metric(group, metric).map(|row| row.value).collect()
        };
        assert_eq!(values("a", "p"), [1.0, 4.0]);
        assert_eq!(values("b", "q"), [0.0; 0]);
        assert_eq!(table.of_group("a").count(), 3);
    }
}
