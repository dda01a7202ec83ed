"""Floor 4: from Functions to something callable: C compiler discovery, caches, cffi loading, the calling convention, ahead-of-time files.

Imports `codegen_c`, `lower`, `ir`, `errors`. In: `ir.function.Function`s with their arguments. Out: `CompiledPipeline`, or files.
"""
