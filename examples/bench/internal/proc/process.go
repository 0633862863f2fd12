package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: 1/USER_HZ seconds. USER_HZ is 100 on every architecture that Go supports.
const tick = time.Second / 100

// CPU returns the user and system time that a process has used, in ticks of 10 ms. Linux derives it from the exact run time of
// the threads, so the only error is rounding.
func CPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(text)
}

// parseCPU reads fields 14 and 15, utime and stime, of a line of proc_pid_stat(5). Field 2 is the program's name in
// parentheses, which may have spaces and parentheses itself.
func parseCPU(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("%q is no line of /proc/PID/stat", stat)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("times in /proc/PID/stat: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// Memory is the resident memory of a process, in bytes.
type Memory struct {
	// Resident is all resident memory.
	Resident  int64
	Anonymous int64 // the part that belongs to no file; a mapped database belongs to one
}

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	if m.Resident, err = kilobytes(text, "VmRSS"); err != nil {
		return Memory{}, err
	}
	m.Anonymous, err = kilobytes(text, "RssAnon")
	return m, err
}

// kilobytes reads "name:  123 kB" from a file of such lines and returns bytes.
func kilobytes(text []byte, name string) (int64, error) {
	value, ok := line(text, name)
	if !ok {
		return 0, fmt.Errorf("no %s among %d bytes", name, len(text))
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n << 10, nil
}

// line returns the value of the first line "name : value".
func line(text []byte, name string) (string, bool) {
	for l := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(l, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
