//! Arbitrary names survive compression and expansion.

use hopmap_formats::host_list::{compress, expand};
use proptest::prelude::*;

fn names() -> impl Strategy<Value = Vec<String>> {
    // Few letters and digits, so that names are often consecutive, and occasional long numbers.
    prop::collection::vec("[ab]{0,1}[0-1]{0,2}[-.]{0,1}[0-2]{0,3}(9{15,19}){0,1}[x0-9]", 0..40)
}

proptest! {
    #[test]
    fn what_is_compressed_expands_to_what_it_was(names in names()) {
        prop_assert_eq!(expand(&compress(&names)).unwrap(), names);
    }

    #[test]
    fn numbers_in_a_row_become_one_range(prefix in "[a-z]{1,5}", low in 0u64..2000, count in 2u64..300, width in 0usize..6) {
        let names: Vec<String> = (low..low + count).map(|number| format!("{prefix}{number:0width$}")).collect();
        let list = compress(&names);
        prop_assert_eq!(&list, &format!("{prefix}[{low:0width$}-{:0width$}]", low + count - 1));
        prop_assert_eq!(expand(&list).unwrap(), names);
    }

    #[test]
    fn brackets_multiply(counts in prop::collection::vec(1usize..4, 1..5), tail in "[a-z]{0,2}") {
        let brackets: Vec<_> = counts.iter().map(|count| format!("r[1-{count}]")).collect();
        let text = brackets.concat() + &tail;
        let names = expand(&text).unwrap();
        prop_assert_eq!(names.len(), counts.iter().product::<usize>());
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(distinct.len(), names.len());
        prop_assert_eq!(expand(&compress(&names)).unwrap(), names);
    }
}
