package bolt

import (
	"math"
	"os"
	"syscall"
)

// sizeLimit returns how large files of this process may become, if that is limited.
func sizeLimit() (size int64, ok bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &r); err != nil || r.Cur > math.MaxInt64/4 {
		return 0, false
	}
	return int64(r.Cur), true //nolint:gosec // checked
}

// diskRoom returns how many bytes the disk of a file has for this process, and in all. The file may be closed meanwhile.
func diskRoom(f *os.File) (available, capacity int64, ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var s syscall.Statfs_t
	var told error
	err = conn.Control(func(fd uintptr) { told = syscall.Fstatfs(int(fd), &s) })
	if err != nil || told != nil || s.Blocks == 0 {
		return 0, 0, false
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, true //nolint:gosec // sizes of disks
}
