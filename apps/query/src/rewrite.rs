//! What is added to a question before Polars answers it: an order for what has none, names for columns, and sums that
//! cannot wrap.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Statement, Value, VisitMut,
    VisitorMut,
};

use crate::statement::columns_of;
use crate::sum::CHECKED_SUM;

/// The text for Polars.
///
/// Groups and set operations come in an order that depends on threads and hashes, and rows that are equal in what they
/// are ordered by do as well. `ordered` puts them into the order of their columns, so that the same question always has
/// the same answer, byte for byte.
pub(crate) fn rewritten(statement: &Statement, ordered: bool) -> String {
    let mut statement = statement.clone();
    let _ = statement.visit(&mut Rewriter { ordered, depth: 0 });
    statement.to_string()
}

struct Rewriter {
    ordered: bool,
    /// Expressions with a query inside that we are in: the order of their rows does not matter.
    depth: usize,
}

fn has_query(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. })
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(has_query(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth -= usize::from(has_query(expr));
        among(expr);
        if let Expr::Function(function) = expr
            && let Some(checked) = checked(function)
        {
            *function = checked;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        order_by_columns(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(name);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.ordered && self.depth == 0 {
            order(query);
        }
        ControlFlow::Continue(())
    }
}

/// A computed column has the name that it is written with. Polars would call it after the column that it is computed
/// from, and `MIN(F)` and `MAX(F)` could not be columns of one answer.
fn name(item: &mut SelectItem) {
    let SelectItem::UnnamedExpr(expr) = item else { return };
    if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        let alias = Ident::with_quote('"', expr.to_string().replace('"', ""));
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// What rows are ordered by may be in SELECT, where Polars has it already: `ORDER BY COUNT(*)`.
fn order_by_columns(query: &mut Query) {
    let Some(select) = first_select(&query.body) else { return };
    if columns_of(select).is_none() {
        return;
    }
    let columns: Vec<Expr> = select.projection.iter().filter_map(expr_of).cloned().collect();
    let Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) = &mut query.order_by else { return };
    for order in exprs.iter_mut().filter(|order| !matches!(order.expr, Expr::Identifier(_) | Expr::Value(_)))
    {
        if let Some(place) = columns.iter().position(|column| *column == order.expr) {
            order.expr = number(place + 1);
        }
    }
}

fn expr_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn number(number: usize) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// `x = (SELECT MAX(y) …)`, which Polars knows as `x IN (SELECT MAX(y) …)`.
fn among(expr: &mut Expr) {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return };
    if let Expr::Subquery(subquery) = right.as_ref()
        && is_one_row(subquery)
    {
        *expr = Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated: false };
    }
}

/// Whether a query answers with one row whatever its tables hold. With more rows, `=` would not be `IN`.
fn is_one_row(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let [SelectItem::ExprWithAlias { expr: Expr::Function(function), .. }] = &select.projection[..] else {
        return false;
    };
    let name = function.name.to_string().to_lowercase();
    let gathers = ["avg", "checked_sum", "count", "max", "median", "min"].contains(&name.as_str());
    gathers
        && function.over.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
}

/// `SUM(x)` as `checked_sum(SUM(x), SUM(CAST(x AS DOUBLE)))`.
fn checked(function: &Function) -> Option<Function> {
    if !function.name.to_string().eq_ignore_ascii_case("sum") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(summand))] = list.args.as_slice() else { return None };
    let real = Expr::Cast {
        kind: CastKind::TryCast,
        expr: Box::new(summand.clone()),
        data_type: DataType::Double(ExactNumberInfo::None),
        array: false,
        format: None,
    };
    let with = |expr: Expr, list: &FunctionArgumentList| {
        FunctionArguments::List(FunctionArgumentList { args: vec![argument(expr)], ..list.clone() })
    };
    let reals = Function { args: with(real, list), ..function.clone() };
    let arguments = [function.clone(), reals].map(|function| argument(Expr::Function(function)));
    Some(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(CHECKED_SUM))]),
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
        ..function.clone()
    })
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn order(query: &mut Query) {
    let options = OrderByOptions { asc: None, nulls_first: None };
    match &mut query.order_by {
        None if has_no_order(&query.body) => {
            query.order_by = Some(OrderBy { kind: OrderByKind::All(options), interpolate: None });
        }
        Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) => {
            let columns = first_select(&query.body).and_then(columns_of).unwrap_or(0);
            let ordinal = |place: usize| OrderByExpr { expr: number(place), options, with_fill: None };
            let is_all = matches!(&exprs[..], [OrderByExpr { expr: Expr::Identifier(name), .. }] if name.value.eq_ignore_ascii_case("all"));
            if !is_all {
                exprs.extend((1..=columns).map(ordinal));
            }
        }
        _ => {}
    }
}

/// Whether rows come in no order of their own: those of tables do.
fn has_no_order(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => match &select.group_by {
            GroupByExpr::All(_) => true,
            GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        },
        SetExpr::SetOperation { .. } => true,
        _ => false,
    }
}

fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Question;

    fn text(sql: &str) -> String {
        rewritten(&Question::parse(sql).unwrap().statement.unwrap(), true)
    }

    #[test]
    fn groups_get_an_order_and_tables_keep_theirs() {
        assert_eq!(text("SELECT a FROM t GROUP BY a"), "SELECT a FROM t GROUP BY a ORDER BY ALL");
        assert_eq!(text("SELECT a, b FROM t ORDER BY b DESC"), "SELECT a, b FROM t ORDER BY b DESC, 1, 2");
        assert_eq!(text("SELECT * FROM t ORDER BY b"), "SELECT * FROM t ORDER BY b");
        assert_eq!(text("SELECT a FROM t"), "SELECT a FROM t");
        let inner = "SELECT a FROM t WHERE a IN (SELECT b FROM u GROUP BY b)";
        assert_eq!(text(inner), inner);
    }

    #[test]
    fn computed_columns_are_called_as_they_are_written() {
        assert_eq!(
            text("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY COUNT(*) DESC"),
            "SELECT a, COUNT(*) AS \"COUNT(*)\" FROM t GROUP BY a ORDER BY 2 DESC, 1, 2"
        );
        assert_eq!(text("SELECT MAX(\"a.b\") FROM t"), "SELECT MAX(\"a.b\") AS \"MAX(a.b)\" FROM t");
    }

    #[test]
    fn a_value_is_looked_for_among_those_of_a_query() {
        assert_eq!(
            text("SELECT a FROM t WHERE a = (SELECT MAX(b) FROM u)"),
            "SELECT a FROM t WHERE a IN (SELECT MAX(b) AS \"MAX(b)\" FROM u)"
        );
        for sql in [
            "SELECT a FROM t WHERE a = (SELECT b FROM u)",
            "SELECT a FROM t WHERE a = (SELECT MAX(b) AS b FROM u GROUP BY c)",
        ] {
            assert_eq!(text(sql), sql);
        }
    }

    #[test]
    fn sums_are_checked() {
        let sum = "SELECT checked_sum(sum(b), sum(TRY_CAST(b AS DOUBLE))) AS";
        assert_eq!(text("SELECT sum(b) FROM t"), format!("{sum} \"sum(b)\" FROM t"));
        let nested = "SELECT SUM(b) OVER (PARTITION BY a) FROM t";
        assert!(
            text(nested).contains("SUM(TRY_CAST(b AS DOUBLE)) OVER (PARTITION BY a))"),
            "{}",
            text(nested)
        );
    }
}
