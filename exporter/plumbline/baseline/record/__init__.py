"""Recording a baseline: the walk over the layers, statistics, the files."""
