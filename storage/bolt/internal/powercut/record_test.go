package powercut

import (
	"os"
	"path/filepath"
	"testing"
)

// A thread that ends with its process may be in a call whose number cannot be read any more.
func TestCallsOfAnEndingProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	const trace = `7 close(5) = 0
7 ???( <unfinished ...>
8 ???() = 0
8 write(5, "\x61",  <unfinished ...>
7 <... ??? resumed>) = ?
8 <... write resumed>1) = ?
8 +++ exited with 0 +++
`
	if err := os.WriteFile(path, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	made, err := NewDisk(nil).parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 2 || made[0].name != "close" || made[1].name != "write" || made[1].ended != Never {
		t.Errorf("%d calls: %v", len(made), made)
	}
}
