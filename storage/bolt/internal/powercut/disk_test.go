package powercut

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// outcomes simulates many power failures at a point and counts the resulting contents of a file; "-" is no file.
func outcomes(d *Disk, name string, point int) map[string]int {
	r, found := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for range 2000 {
		content, ok := d.Cut(point, r)[name]
		if !ok {
			content = []byte("-")
		}
		found[string(content)]++
	}
	return found
}

func only(t *testing.T, found map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if found[w] == 0 {
			t.Errorf("%.20q is never left", w)
		}
		delete(found, w)
	}
	for f, n := range found {
		t.Errorf("%.20q (%d bytes) is left %d times", f, len(f), n)
	}
}

func TestOnlyWhatIsFlushedIsCertain(t *testing.T) {
	d := NewDisk(map[string][]byte{"f": []byte("aa")})
	d.Events = []*Event{
		{Kind: Write, Began: 1, Ended: 2, At: 0, Data: []byte("b")},
		{Kind: Flush, Began: 3, Ended: 6},
		{Kind: Write, Began: 4, Ended: 5, At: 1, Data: []byte("b")}, // while it is flushed
	}
	only(t, outcomes(d, "f", 1), "aa")
	only(t, outcomes(d, "f", 6), "aa", "ba", "ab", "bb")
	only(t, outcomes(d, "f", 7), "ba", "bb")
	d.Kill(6)
	only(t, outcomes(d, "f", 9), "aa", "ba", "ab", "bb")
	if got := string(d.Files()["f"]); got != "bb" {
		t.Errorf("after a kill the file is %q, want all that was written", got)
	}
}

func TestWritesAreTorn(t *testing.T) {
	d := NewDisk(map[string][]byte{"f": make([]byte, 1536)})
	d.Events = []*Event{{Kind: Write, Began: 1, Ended: 2, Data: bytes.Repeat([]byte("x"), 1536)}}
	var want []string
	for mask := range 8 {
		content := make([]byte, 1536)
		for i := range 3 {
			if mask&(1<<i) != 0 {
				copy(content[512*i:], bytes.Repeat([]byte("x"), 512))
			}
		}
		want = append(want, string(content))
	}
	only(t, outcomes(d, "f", 3), want...)
}

func TestSizesAreDurableByThemselves(t *testing.T) {
	d := NewDisk(map[string][]byte{"f": []byte("a")})
	d.Events = []*Event{{Kind: Truncate, Began: 1, Ended: 2, At: 2}, {Kind: Write, Began: 3, Ended: 4, At: 2, Data: []byte("b")}}
	only(t, outcomes(d, "f", 5), "a", "a\x00", "a\x00\x00", "a\x00b")
	d.Events = append(d.Events, &Event{Kind: Flush, Began: 5, Ended: 6})
	only(t, outcomes(d, "f", 7), "a\x00b")
}

func TestNamesAreFlushedWithTheDirectory(t *testing.T) {
	d := NewDisk(map[string][]byte{"f": []byte("old")})
	d.files = append(d.files, nil)
	d.Events = []*Event{
		{Kind: Create, Began: 1, Ended: 2, File: 1, Name: "tmp"},
		{Kind: Write, Began: 3, Ended: 4, File: 1, Data: []byte("new")},
		{Kind: Flush, Began: 5, Ended: 6, File: 1},
		{Kind: Rename, Began: 7, Ended: 8, File: 1, Name: "tmp", To: "f"},
	}
	only(t, outcomes(d, "f", 9), "old", "new")
	only(t, outcomes(d, "tmp", 9), "-", "new")
	d.Events = append(d.Events, &Event{Kind: FlushDir, Began: 9, Ended: 10})
	only(t, outcomes(d, "f", 11), "new")
	only(t, outcomes(d, "tmp", 11), "-")
}

func TestEmpty(t *testing.T) {
	d := NewDisk(map[string][]byte{"f": []byte("a")})
	d.files = append(d.files, nil, nil)
	d.Events = []*Event{
		{Kind: Truncate, File: 0, Began: 1, Ended: 2},
		{Kind: Write, File: 1, Began: 5, Ended: 6, Data: []byte("b")},
		{Kind: Truncate, File: 2, Began: 7, Ended: 8, At: 512},
	}
	for file, since := range []int{-1, 5, 7} { // when a file first has content
		for point := range 10 {
			if got, want := d.Empty(file, point), since >= point; got != want {
				t.Errorf("file %d at point %d: empty is %t, want %t", file, point, got, want)
			}
		}
	}
}
