"""One submission -> its report. The grader process holds the pytest session, the solutions and the warm parent;
its clients (`client`) import neither torch nor pytest."""
