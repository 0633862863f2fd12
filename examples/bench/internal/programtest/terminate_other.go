//go:build !unix

package programtest

import "os"

// terminate ends a process: it cannot be asked to.
func terminate(p *os.Process) { _ = p.Kill() }
