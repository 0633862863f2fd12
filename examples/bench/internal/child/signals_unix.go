//go:build unix

package child

import (
	"os"
	"syscall"
)

// These are the signals that a program handles.
const (
	heapSignal    = syscall.SIGUSR1
	profileSignal = syscall.SIGUSR2
)

func ask(p *os.Process, question syscall.Signal) error { return p.Signal(question) }
