"""The answers, one module a unit: signature, docstring and body. Stubs are derived from them; nothing repeats them."""
