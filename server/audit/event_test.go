package audit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/keelson-dev/keelson/server/audit"
)

// TestEventsOfKubeAPIServer reads events that kube-apiserver 1.37.1 has written to its audit log, and writes them again.
func TestEventsOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewReader(file); ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var e audit.Event
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e.Kind, e.APIVersion = "", ""
		got, err := json.Marshal(e.WithKind())
		if want := bytes.TrimSpace(line); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	if n < 10 {
		t.Errorf("only %d events", n)
	}
}
