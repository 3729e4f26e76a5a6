"""Commands that have a module of their own: each adds its parser and dispatches."""
