package bolt

import (
	"os"
	"syscall"
)

// flushData makes the data written to a file durable. The file's times may be older after a power failure.
func flushData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
