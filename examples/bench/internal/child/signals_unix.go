//go:build unix

package child

import (
	"os"
	"syscall"
)

// What a program is asked by signals.
const (
	heapSignal    = syscall.SIGUSR1
	profileSignal = syscall.SIGUSR2
)

func ask(p *os.Process, question syscall.Signal) error { return p.Signal(question) }
