"""Functions with which a process confines itself: namespaces, system calls, privileges, memory, files and CPU time."""
