//go:build !unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// These signals do not exist here.
const (
	heapSignal    = syscall.Signal(0)
	profileSignal = syscall.Signal(0)
)

func ask(*os.Process, syscall.Signal) error { return errors.ErrUnsupported }
