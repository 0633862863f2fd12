package bolt

import (
	"os"
	"syscall"
)

// flushData makes what was written to a file durable; its times may be older after a power failure.
func flushData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
