//go:build !unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// Where these signals do not exist nothing can be asked.
const (
	heapSignal    = syscall.Signal(0)
	profileSignal = syscall.Signal(0)
)

func ask(*os.Process, syscall.Signal) error { return errors.ErrUnsupported }
