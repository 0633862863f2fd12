//go:build !linux

package bolt

import "os"

// flushData makes the data written to a file durable.
func flushData(f *os.File) error { return f.Sync() }
