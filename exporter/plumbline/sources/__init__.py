"""READ: one module per kernel or tool interface; text or bytes in, a frozen reading out."""
