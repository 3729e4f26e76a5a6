"""Recording a baseline: the walk over the layers, the statistics and the files."""
