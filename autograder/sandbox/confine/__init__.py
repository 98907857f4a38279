"""A process confines itself: namespaces, system calls, privileges, memory, files and processor time."""
