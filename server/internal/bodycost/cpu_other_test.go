//go:build !unix

package bodycost_test

import "time"

// cpuTime returns 0: the time is not available on this system.
func cpuTime() time.Duration { return 0 }
