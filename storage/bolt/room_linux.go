package bolt

import (
	"math"
	"os"
	"syscall"
)

// sizeLimit returns the maximum size of a file of this process; ok is false if there is none.
func sizeLimit() (size int64, ok bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &r); err != nil || r.Cur > math.MaxInt64/4 {
		return 0, false
	}
	return int64(r.Cur), true //nolint:gosec // checked
}

// diskRoom returns the number of bytes that are free for this process on the disk of a file, and the size of the disk. The
// file may be closed meanwhile.
func diskRoom(f *os.File) (available, capacity int64, ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var s syscall.Statfs_t
	var statErr error
	err = conn.Control(func(fd uintptr) { statErr = syscall.Fstatfs(int(fd), &s) })
	if err != nil || statErr != nil || s.Blocks == 0 {
		return 0, 0, false
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, true //nolint:gosec // sizes of disks
}

// holes returns how many of the first size bytes of a file have no room on the disk yet. On a filesystem that compresses it is
// more. The file may be closed meanwhile.
func holes(f *os.File, size int64) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return max(size-s.Blocks*512, 0) // stat(2) counts in 512 bytes everywhere
}
