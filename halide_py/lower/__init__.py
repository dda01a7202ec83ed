"""Floor 3: from Functions and their schedules to loop IR. One pass a file; `pipeline.py` lists them in order, with the reasons.

Imports `ir` and `errors`. In: `ir.function.Function`s. Out: an `ir.module.LoweredFunction`.
"""
