"""What is published of one commit, in one folder with checksums and a signature."""
