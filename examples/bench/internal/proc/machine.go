package proc

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Machine describes the machine of a measurement. Unknown fields are empty.
type Machine struct {
	// CPU is the model of the processor.
	CPU string
	// Cores is the number of processors.
	Cores  int
	Memory int64 // bytes
	// Kernel is the version of the kernel.
	Kernel string
	// Go is the version of Go.
	Go string
	// Fsync is the median time of appending 4 KiB to a file in the data directory of the servers and syncing it.
	Fsync time.Duration
}

// Describe describes this machine; dir is the data directory of the servers.
func Describe(dir string) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU, _ = line(text, "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.Memory, _ = kilobytes(text, "MemTotal")
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	var err error
	m.Fsync, err = fsync(dir)
	return m, err
}

// fsync measures Machine.Fsync.
func fsync(dir string) (median time.Duration, err error) {
	const times = 101
	name := filepath.Join(dir, "fsync")
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	block := make([]byte, 4<<10)
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[times/2], nil
}
