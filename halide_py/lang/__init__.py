"""Floor 5: what users write. Expr handles and their operators, Var, RDom, Func, Stage, Buffer, Param, reductions, boundary
conditions, Pipeline. Everything here fills the plain data of `ir.function` and hands it to `driver`.
"""
