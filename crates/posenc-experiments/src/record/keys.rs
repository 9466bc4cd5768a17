//! Grouping by several columns with polars.
//!
//! polars only finds the groups. Sums over them are computed elsewhere, since polars adds in a different order.

use polars::prelude::*;

/// A type by which items can be grouped.
pub trait Field: Sized {
    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column
    where
        Self: 'a;
}

impl Field for String {
    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.map(String::as_str).collect::<Vec<_>>())
    }
}

impl Field for Option<f64> {
    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.copied().collect::<Vec<_>>())
    }
}

impl Field for u64 {
    fn column<'a>(name: PlSmallStr, values: impl Iterator<Item = &'a Self>) -> Column {
        Column::new(name, values.copied().collect::<Vec<_>>())
    }
}

/// Columns by which items are grouped.
pub struct Keys<'a, T> {
    items: &'a [T],
    columns: Vec<Column>,
}

impl<'a, T> Keys<'a, T> {
    /// Keys of `items`, initially without columns.
    pub fn of(items: &'a [T]) -> Self {
        Keys { items, columns: Vec::new() }
    }

    /// Adds a column. 0 and -0 are equal, and so are all NaN.
    pub fn by<F: Field + 'a>(mut self, key: impl Fn(&'a T) -> &'a F) -> Self {
        let name = self.columns.len().to_string().into();
        self.columns.push(F::column(name, self.items.iter().map(key)));
        self
    }

    /// Items with equal keys: groups in the order of their first items, each in the order of the items.
    pub fn groups(self) -> PolarsResult<Vec<Vec<&'a T>>> {
        if self.items.is_empty() {
            return Ok(Vec::new());
        }
        let frame = DataFrame::new(self.items.len(), self.columns.clone())?;
        let groups = frame.group_by_with_series(self.columns, false, true)?.into_groups();
        let item = |place: IdxSize| self.items.get(place as usize);
        let all = groups.iter().map(|group| match group {
            GroupsIndicator::Idx((_, places)) => places.iter().filter_map(|p| item(*p)).collect(),
            GroupsIndicator::Slice([first, length]) => {
                (first..first + length).filter_map(item).collect()
            }
        });
        Ok(all.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches groups out of order, items out of order within a group, and zeros, NaN or missing numbers that are grouped wrongly, with
    /// one column and with several.
    #[test]
    fn groups_are_in_the_order_of_their_first_items() {
        let nan = f64::NAN;
        let x = [Some(0.0), None, Some(nan), Some(1.0), Some(-0.0), Some(-nan), None, Some(1.0)];
        let items: Vec<(usize, Option<f64>)> = (0..).zip(x).collect();
        let places = |groups: Vec<Vec<&(usize, Option<f64>)>>| -> Vec<Vec<usize>> {
            groups.iter().map(|group| group.iter().map(|(place, _)| *place).collect()).collect()
        };
        let one = Keys::of(&items).by(|i| &i.1).groups().unwrap();
        assert_eq!(places(one), [vec![0, 4], vec![1, 6], vec![2, 5], vec![3, 7]]);
        let texts = ["a".to_owned(), "b".to_owned()];
        let two = Keys::of(&items).by(|i| &i.1).by(|i| &texts[i.0 / 7]).groups().unwrap();
        assert_eq!(places(two), [vec![0, 4], vec![1, 6], vec![2, 5], vec![3], vec![7]]);
        let none: [u64; 0] = [];
        assert!(Keys::of(&none).by(|i| i).groups().unwrap().is_empty());
    }
}
