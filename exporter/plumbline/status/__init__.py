"""The status page: gathered, judged by layer, drawn."""
