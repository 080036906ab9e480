//! What is added to a question before Polars answers it: an order for what has none, and sums that cannot wrap.

use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query, SetExpr, Statement, Value, VisitMut, VisitorMut,
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
        if let Expr::Function(function) = expr
            && let Some(checked) = checked(function)
        {
            *function = checked;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.ordered && self.depth == 0 {
            order(query);
        }
        ControlFlow::Continue(())
    }
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
            let ordinal = |number: usize| OrderByExpr {
                expr: Expr::value(Value::Number(number.to_string(), false)),
                options,
                with_fill: None,
            };
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

fn first_select(body: &SetExpr) -> Option<&sqlparser::ast::Select> {
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
        assert_eq!(
            text("SELECT a, MAX(b) FROM t GROUP BY a"),
            "SELECT a, MAX(b) FROM t GROUP BY a ORDER BY ALL"
        );
        assert_eq!(text("SELECT a, b FROM t ORDER BY b DESC"), "SELECT a, b FROM t ORDER BY b DESC, 1, 2");
        assert_eq!(text("SELECT * FROM t ORDER BY b"), "SELECT * FROM t ORDER BY b");
        assert_eq!(text("SELECT a FROM t"), "SELECT a FROM t");
        let inner = "SELECT a FROM t WHERE a IN (SELECT b FROM u GROUP BY b)";
        assert_eq!(text(inner), inner);
    }

    #[test]
    fn sums_are_checked() {
        assert_eq!(
            text("SELECT sum(b) AS s FROM t"),
            "SELECT checked_sum(sum(b), sum(TRY_CAST(b AS DOUBLE))) AS s FROM t"
        );
        let nested = "SELECT SUM(b) OVER (PARTITION BY a) FROM t";
        assert!(
            text(nested).contains("SUM(TRY_CAST(b AS DOUBLE)) OVER (PARTITION BY a))"),
            "{}",
            text(nested)
        );
    }
}
