//go:build unix

package bolt

import (
	"os"
	"syscall"
)

// sameOwner gives a file the owner and group of another one.
func sameOwner(f *os.File, like os.FileInfo) error {
	theirs, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if ours, ok := info.Sys().(*syscall.Stat_t); ok && ours.Uid == theirs.Uid && ours.Gid == theirs.Gid {
		return nil
	}
	return f.Chown(int(theirs.Uid), int(theirs.Gid))
}
