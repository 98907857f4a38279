"""A whole class: who handed something in, marking submissions in parallel, one writer for the gradebook."""
