"""C functions as Exprs, for `hl.extern(..., gradient="auto")`: what a function of the user's computes, in the language the derivative
understands.

What lives here: reading C text (`source`), C's types and operators (`arithmetic`), the C library's functions (`library`), ways through a
function and where they meet (`paths`), expressions (`expressions`) and statements (`statements`), which give the Expr, and what users see
of it (`translation`). In: C text. Out: `Translation`. Loaded when the first such function is declared.
"""

from .translation import as_expr as as_expr
from .translation import translation as translation
