//! Common table expressions: `WITH cells AS (SELECT … FROM cells) SELECT … FROM cells`.
//!
//! Polars takes a name for that of a table wherever there is one, also where an expression hides it, and knows only the
//! expressions of the outermost query. So all of them go there, under names that no table has.

use std::convert::Infallible;
use std::mem::{replace, take};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Ident, ObjectName, Query, Statement, TableAlias, TableFactor, VisitMut, VisitorMut, With,
};

/// Gives every common table expression a name of its own, and puts it before the outermost query.
pub(crate) fn name_expressions(statement: &mut Statement) {
    let _ = statement.visit(&mut Names(0));
    let mut all = All(None);
    let _ = statement.visit(&mut all);
    if let Statement::Query(query) = statement {
        query.with = all.0;
    }
}

/// How many were named.
struct Names(usize);

impl VisitorMut for Names {
    type Break = Infallible;

    /// Inner queries first: what they still call by the name is what it is around them.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(mut with) = query.with.take() else { return ControlFlow::Continue(()) };
        for place in 0..with.cte_tables.len() {
            self.0 += 1;
            let name = &mut with.cte_tables[place].alias.name;
            let ident =
                Ident::with_quote_and_span('"', name.span, format!("{} (with {})", name.value, self.0));
            let before = replace(name, ident.clone());
            let mut rename = Rename { name: &before.value, ident };
            // An expression knows those before it.
            for later in &mut with.cte_tables[place + 1..] {
                later.query.visit(&mut rename)?;
            }
            query.visit(&mut rename)?;
        }
        query.with = Some(with);
        ControlFlow::Continue(())
    }
}

/// Renames what is read under a name.
struct Rename<'a> {
    name: &'a str,
    ident: Ident,
}

impl VisitorMut for Rename<'_> {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let [part] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(known) = part.as_ident().filter(|known| known.value == self.name).cloned() else {
            return ControlFlow::Continue(());
        };
        let ident = Ident { span: known.span, ..self.ident.clone() };
        *name = ObjectName::from(ident);
        // Columns may be called `cells.F`.
        alias.get_or_insert(TableAlias { explicit: true, name: known, columns: Vec::new(), at: None });
        ControlFlow::Continue(())
    }
}

/// The expressions of all queries, each after those that it may read.
struct All(Option<With>);

impl VisitorMut for All {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(mut with) = query.with.take() else { return ControlFlow::Continue(()) };
        for mut expression in take(&mut with.cte_tables) {
            expression.query.visit(self)?;
            let all = self.0.get_or_insert_with(|| with.clone());
            all.recursive |= with.recursive;
            all.cte_tables.push(expression);
        }
        ControlFlow::Continue(())
    }
}
