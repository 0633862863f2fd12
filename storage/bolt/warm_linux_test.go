package bolt_test

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// warmed loads the file at path into the system's memory, as far as there is room, or removes it from there.
func warmed(path string, cold bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if !cold {
		_, err = io.Copy(struct{ io.Writer }{io.Discard}, f)
		return errors.Join(err, f.Close())
	}
	err = f.Sync()
	const dontNeed = 4
	if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); err == nil && e != 0 {
		err = e
	}
	return errors.Join(err, f.Close())
}
