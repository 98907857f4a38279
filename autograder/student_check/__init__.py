"""The student check and the other functions that notebooks import.

The modules are released in a zip, with those of `core` and `tracing` that they use. Others import `examples`,
`fault_location`, `notebook_functions`, `run_examples` and `unit_data`.
"""
