"""HTTP: the server, its connections, TLS, passwords, and what each URL answers."""
