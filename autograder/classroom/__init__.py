"""Many submissions: who handed something in, marking them side by side, one writer for the gradebook."""
