"""Commands of the command line that fill a module: each adds its parser and dispatches."""
