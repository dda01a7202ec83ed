"""Floor 1: types, the node grammar, the table of operations, Functions and schedules as data, traversal, printing, simplification.

Imports only `errors`. Everything above speaks in these terms; nothing here knows how users write programs or how C looks.
"""
