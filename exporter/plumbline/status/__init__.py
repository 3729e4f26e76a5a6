"""The status page: gathering its data, judging by layer, and rendering."""
