//go:build unix

package programtest

import (
	"os"
	"syscall"
)

// terminate asks a process to end.
func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }
