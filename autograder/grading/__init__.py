"""One submission -> its report. The grader process holds the graders, the solutions and the warm parent;
its clients (`client`) import neither torch nor pytest."""
