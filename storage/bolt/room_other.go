//go:build !linux

package bolt

import "os"

// sizeLimit is not known here.
func sizeLimit() (size int64, ok bool) { return 0, false }

// diskRoom is not known here: that a disk is full shows when something is written.
func diskRoom(*os.File) (available, capacity int64, ok bool) { return 0, 0, false }
