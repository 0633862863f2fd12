package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// ProfileVariable is the environment variable with the path of the CPU profile.
const ProfileVariable = "BENCH_PROFILE"

// Report describes the memory of a program, in bytes.
type Report struct {
	HeapLive uint64 `json:"heapLive"` // after the collection; all other fields are from before it
	// HeapSys is the heap memory obtained from the system.
	HeapSys    uint64 `json:"heapSys"`
	Mallocs    uint64 `json:"mallocs"`    // number of allocations since the start
	AllocBytes uint64 `json:"allocBytes"` // allocated bytes since the start
	// NumGC is the number of collections.
	NumGC uint32 `json:"numGC"`
	// Goroutines is the number of goroutines.
	Goroutines int `json:"goroutines"`
}

// report collects the garbage and returns a report.
func report() Report {
	var before, after runtime.MemStats
	goroutines := runtime.NumGoroutine()
	runtime.ReadMemStats(&before)
	runtime.GC()
	runtime.ReadMemStats(&after)
	return Report{
		HeapLive: after.HeapAlloc, HeapSys: before.HeapSys, Mallocs: before.Mallocs, AllocBytes: before.TotalAlloc,
		NumGC: before.NumGC, Goroutines: goroutines,
	}
}

// tell prints a report.
func (p *Process) tell() {
	line, err := json.Marshal(report())
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return
	}
	p.print(string(line))
}

// profile is a CPU profile in progress. The zero profile is none. It belongs to one goroutine.
type profile struct{ file *os.File }

// toggle begins a profile, or ends the current one.
func (p *profile) toggle() error {
	if p.file != nil {
		return p.end()
	}
	path := os.Getenv(ProfileVariable)
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	p.file = file
	return nil
}

// end completes the profile, if there is one.
func (p *profile) end() error {
	if p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.file.Close()
	p.file = nil
	return err
}
