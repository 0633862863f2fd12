package audit_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/keelson-dev/keelson/server/audit"
)

// A Writer is a Sink that writes a line for each event.
type Writer struct {
	mu sync.Mutex // Record is called concurrently
	w  io.Writer
}

// Record implements audit.Sink.
func (s *Writer) Record(_ context.Context, events ...*audit.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		_, err := fmt.Fprintf(s.w, "%s %s: %s %s %s\n", e.AuditID, e.Stage, e.User.Username, e.Verb, e.RequestURI)
		if err != nil {
			return err
		}
	}
	return nil
}

// A Sink writes events to standard output. No server calls a Sink yet, so the example calls it.
func ExampleSink() {
	var sink audit.Sink = &Writer{w: os.Stdout}
	err := sink.Record(context.Background(), &audit.Event{
		AuditID: "1", Level: audit.Metadata, Stage: audit.ResponseComplete, RequestURI: "/api/v1/namespaces",
		User: audit.UserInfo{Username: "anna"}, Verb: "list",
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 ResponseComplete: anna list /api/v1/namespaces
}
