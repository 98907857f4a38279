"""How well the line of a mistake is found, measured on mistakes that a machine makes in code that is right."""
