"""Differentiation: adjoint and tangent Funcs from Funcs, before anything is lowered.

What lives here: the table of gradient rules (`rule_table`, filled by `node_rules` and `math_rules`, searched by `rules`), the reverse sweep
over one expression (`sweep`), contributions of one Func to the adjoint of another and their inversion from scatter to gather
(`contributions`), the Funcs made of them (`adjoints`), the regions everything is summed over (`stages`), how each kind of update is
reversed (`updates`, `tape`), the pass over all Funcs (`derivative`), and rules users attach to functions of Exprs (`custom`) and of Funcs
(`custom`, `opaque`); forward mode (`tangents`), and checks for users (`checks`, `widen`). In: Functions with definitions. Out: Funcs,
ordinary ones, schedulable and differentiable again. Imports `lang` and below.
"""
