"""The built C runtime: `libhalide_py_runtime.so` for pipelines compiled in this process, `.a` for libraries made ahead of time, and the
headers generated code includes in `include/`. `setup.py` puts them here from `runtime/`; nothing is imported from here."""
