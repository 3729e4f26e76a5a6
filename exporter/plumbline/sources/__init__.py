"""READ: one kernel or tool interface a module; text or bytes in, a frozen reading out."""
