package proc

import (
	"os"
	"testing"
	"time"
)

func TestCPUOfALine(t *testing.T) {
	for _, tt := range []struct {
		name, stat string
		want       time.Duration
		ok         bool
	}{
		{"plain", "123 (keelson) S 1 123 123 0 -1 4194560 9 8 7 6 150 25 3 4 20 0 9 0 1 2 3", 1750 * time.Millisecond, true},
		{"a name like fields", "123 (a) S 1 (b) 9) R 1 123 123 0 -1 4194560 9 8 7 6 1 2 3 4 20 0", 30 * time.Millisecond, true},
		{"too short", "123 (keelson) S 1 123 123", 0, false},
		{"no name", "123 S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", 0, false},
		{"no number", "123 (k) S 1 123 123 0 -1 4194560 9 8 7 6 x 25 3 4 20", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCPU([]byte(tt.stat))
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("parseCPU = %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestKilobytes(t *testing.T) {
	const status = "Name:\tkeelson\nVmPeak:\t  200 kB\nVmRSS:\t   123 kB\nThreads:\t9\n"
	if got, err := kilobytes([]byte(status), "VmRSS"); got != 123<<10 || err != nil {
		t.Errorf("VmRSS is %d, %v; want %d", got, err, 123<<10)
	}
	for _, name := range []string{"VmSwap", "Name", "Rss"} {
		if got, err := kilobytes([]byte(status), name); err == nil {
			t.Errorf("%s is %d; want an error", name, got)
		}
	}
}

func TestThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc: ", err)
	}
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ { // until the processor time of this process has increased by a tick
		after, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after > before {
			break
		}
		if n == 1_000_000 {
			t.Fatal("reading a file a million times took no time")
		}
	}
	if m, err := MemoryOf(os.Getpid()); err != nil || m.Anonymous < 1<<20 || m.Anonymous >= m.Resident {
		t.Errorf("a Go program has %+v, %v", m, err)
	}
	if m, err := Describe(t.TempDir()); err != nil || m.Cores < 1 || m.Memory < 1<<20 || m.Kernel == "" || m.Fsync <= 0 {
		t.Errorf("the machine is %+v, %v", m, err)
	}
}
