//go:build !linux

package bolt

import "os"

// sizeLimit is not available here.
func sizeLimit() (size int64, ok bool) { return 0, false }

// diskRoom is not available here: a full disk is only noticed when a write fails.
func diskRoom(*os.File) (available, capacity int64, ok bool) { return 0, 0, false }

// holes is not available here.
func holes(*os.File, int64) int64 { return 0 }
