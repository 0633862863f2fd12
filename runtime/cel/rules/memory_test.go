package rules_test

import (
	"runtime"
	"testing"

	"github.com/keelson-dev/keelson/runtime/structural"
)

// TestRulesTakeLittle bounds the memory of compiled rules: they must not keep data that only the compiler needs. It does not run
// in parallel with other tests.
func TestRulesTakeLittle(t *testing.T) {
	c := compilerOf(t)
	s, err := structural.Compile(fiveHundredRules())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile(s); err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	r, err := c.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	kept := (heap() - before) >> 10
	runtime.KeepAlive(r)
	if t.Logf("500 rules keep %d KB", kept); kept > 11_500 {
		t.Error("which is more than 23 KB each")
	}
}
