package gzipparts_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// member returns a member with all kinds of contents, and its text.
func member(t *testing.T) (b, want []byte) {
	t.Helper()
	var c gzipparts.Compressor
	var out bytes.Buffer
	z := gzipparts.NewWriter(&out)
	r := rand.New(rand.NewPCG(5, 5))
	add := func(b []byte, err error) {
		if want = append(want, b...); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range []int{1, 500, 40_000, 0, 3, 200_000, 17} {
		b := text(r, n)
		_, err := z.Write(b)
		add(b, err)
		if i%2 == 0 {
			add(nil, z.Flush())
		}
		b = text(r, 30_000+n)
		part := c.Compress(b)
		add(b, z.WritePart(part))
		add(b, z.WritePart(part))
	}
	add(nil, z.Close())
	return out.Bytes(), want
}

// Other programs can read what is written. Programs that are not installed are skipped.
func TestOtherReaders(t *testing.T) {
	t.Parallel()
	zipped, want := member(t)
	if got := unzip(t, zipped); !bytes.Equal(got, want) {
		t.Fatal("compress/gzip has read something else")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped)
	}))
	defer server.Close()
	for name, args := range map[string][]string{
		"curl":    {"--silent", "--show-error", "--fail", "--noproxy", "*", "--compressed", server.URL},
		"python3": {"-c", "import gzip, sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))"},
		"node":    {"-e", "process.stdout.write(require('zlib').gunzipSync(require('fs').readFileSync(0)))"},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			cmd := exec.CommandContext(t.Context(), program, args...)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stderr = bytes.NewReader(zipped), &stderr
			got, err := cmd.Output()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes instead of %d: %v %s", len(got), len(want), err, stderr.String())
			}
		})
	}
}
