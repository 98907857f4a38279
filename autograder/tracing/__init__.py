"""Where an answer goes wrong: the step and the line, found by watching one run of it beside runs that are right."""
