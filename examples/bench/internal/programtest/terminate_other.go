//go:build !unix

package programtest

import "os"

// terminate kills a process, because it cannot be asked to end.
func terminate(p *os.Process) { _ = p.Kill() }
