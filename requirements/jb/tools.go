//go:build tools

// Package tools pins jsonnet-bundler, which fetches Grafonnet (requirements/grafonnet.py).
package tools

import _ "github.com/jsonnet-bundler/jsonnet-bundler/cmd/jb"
