"""Slow and obviously right interpreters, the oracle of the tests.

`scalar` defines what each operation means on one value; `arrays` does the same on whole NumPy arrays; `algorithm`
evaluates Funcs from their definitions alone; `loop_ir` runs lowered statements and checks every access. This floor
imports `ir` and `errors` only; in flow IR and arrays, out flow arrays.
"""
