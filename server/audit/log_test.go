package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/audit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disk is a Writer that has room for some bytes.
type disk struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(p []byte) (int, error) {
	if len(p) <= d.room {
		d.room -= len(p)
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room])
	d.room = 0
	return n, errFull
}

// After a write that the disk had no room for, one line is cut and all others can be read.
func TestLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	for room := range 400 {
		d := &disk{room: room}
		l, err := audit.NewLog(d, audit.JSONLines)
		if err != nil {
			t.Fatal(err)
		}
		full := 0
		for i := range 5 {
			switch err := l.Record(t.Context(), &audit.Event{AuditID: fmt.Sprint(i)}); {
			case errors.Is(err, errFull):
				full++
				d.room = 10_000
			case err != nil:
				t.Fatal(err)
			}
		}
		if full != 1 && room < 300 {
			t.Fatalf("%d bytes: %d writes failed", room, full)
		}
		read := 0
		for line := range strings.Lines(d.String()) {
			var e audit.Event
			if json.Unmarshal([]byte(line), &e) == nil {
				read++
			}
		}
		if read < 4 || read < 5-full {
			t.Fatalf("%d bytes: %d events can be read in\n%s", room, read, d.String())
		}
	}
}

func TestLogOfConcurrentRequests(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	l, err := audit.NewLog(&text, audit.JSONLines)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := l.Record(context.Background(), &audit.Event{Verb: "get"}, &audit.Event{Verb: "get"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(text.String(), "\n"); n != 100 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(text.String()) {
		if err := json.Unmarshal([]byte(line), &audit.Event{}); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// testdata/legacy.log has lines that kube-apiserver 1.37.1 has written with the flag --audit-log-format=legacy.
func TestLegacyLines(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/legacy.log")
	if err != nil {
		t.Fatal(err)
	}
	at := func(nanos int) metav1.MicroTime {
		return metav1.NewMicroTime(time.Date(2026, 11, 28, 4, 36, 41, nanos, time.UTC))
	}
	admin := audit.UserInfo{Username: "admin", UID: "admin", Groups: []string{"system:masters", "system:authenticated"}}
	code := func(n int32) *metav1.Status { return &metav1.Status{Code: n} }
	events := []*audit.Event{
		{AuditID: "errors/all-namespaces-custom#0", Stage: audit.RequestReceived, Verb: "create", User: admin, UserAgent: "wire/1", SourceIPs: []string{"127.0.0.1", "10.0.0.1"}, RequestURI: "/apis/example.com/v1/widgets", ObjectRef: &audit.ObjectReference{Resource: "widgets"}, RequestReceivedTimestamp: at(272012617)},
		{AuditID: "errors/read-options#0", Stage: audit.ResponseComplete, Verb: "get", User: admin, UserAgent: "wire/1", SourceIPs: []string{"127.0.0.1"}, RequestURI: "/api/v1/namespaces/wire-b76626e4/configmaps/a?export=true", ObjectRef: &audit.ObjectReference{Namespace: "wire-b76626e4"}, ResponseStatus: code(400), RequestReceivedTimestamp: at(272367334)},
		{AuditID: "errors/credentials#0", Stage: audit.ResponseStarted, Verb: "create", UserAgent: "wire/1", SourceIPs: []string{"127.0.0.1"}, RequestURI: "/api/v1/namespaces/wire-763f9077/configmaps", ObjectRef: &audit.ObjectReference{Namespace: "wire-763f9077"}, ResponseStatus: code(401), RequestReceivedTimestamp: at(1032606080)},
		{AuditID: "ce0419eb-95be-4b97-9cca-c42bb05c56a3", Stage: audit.ResponseComplete, Verb: "list", User: admin, ImpersonatedUser: &audit.UserInfo{Username: "bob", Groups: []string{"dev", `q"a`, "system:authenticated"}}, UserAgent: "kubectl/v1.32.4 (linux/amd64) kubernetes/4cb5f07", SourceIPs: []string{"127.0.0.1"}, RequestURI: "/api/v1/namespaces/default/pods?limit=500", ObjectRef: &audit.ObjectReference{Namespace: "default"}, ResponseStatus: code(403), RequestReceivedTimestamp: at(1686163670)},
		{AuditID: "35dc7465-14b7-4602-bc60-a1d88f86de09", Stage: audit.RequestReceived, Verb: "get", User: audit.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, SourceIPs: []string{"127.0.0.1"}, RequestURI: "/apis", RequestReceivedTimestamp: at(1702957134)},
	}
	var got bytes.Buffer
	l, err := audit.NewLog(&got, audit.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	equal(t, "lines", strings.Split(got.String(), "\n"), strings.Split(string(want), "\n"))
}

func TestLogsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	if _, err := audit.NewLog(nil, audit.JSONLines); err == nil {
		t.Error("a Log without a Writer")
	}
	if _, err := audit.NewLog(&bytes.Buffer{}, "text"); err == nil || !strings.Contains(err.Error(), `unknown format "text"`) {
		t.Error(err)
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	var calls []string
	var got []*audit.Event
	fails := errors.New("no")
	sink := audit.SinkFunc(func(_ context.Context, events ...*audit.Event) error {
		text := ""
		for _, e := range events {
			text += e.AuditID
		}
		calls, got = append(calls, text), append(got, events...)
		if strings.Contains(text, "f") {
			return fails
		}
		return nil
	})
	s, err := audit.Truncate(sink, audit.TruncateOptions{MaxEventBytes: 1000, MaxBatchBytes: 2200})
	if err != nil {
		t.Fatal(err)
	}
	object := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	large := &audit.Event{AuditID: "b", RequestObject: object(10), ResponseObject: object(1000), Annotations: map[string]string{"k": "v"}}
	err = s.Record(t.Context(),
		&audit.Event{AuditID: "a", RequestObject: object(300), ResponseObject: object(300)},
		large,
		&audit.Event{AuditID: "c", RequestURI: strings.Repeat("/x", 500)},
		&audit.Event{AuditID: "d", RequestObject: object(500)},
		&audit.Event{AuditID: "e", RequestObject: object(500)},
		&audit.Event{AuditID: "f", RequestObject: object(500)},
	)
	if !errors.Is(err, audit.ErrTooLarge) || !errors.Is(err, fails) {
		t.Error(err)
	}
	equal(t, "calls", calls, []string{"abd", "ef"})
	for _, e := range got {
		cut := e.AuditID == "b"
		if (e.RequestObject == nil) != cut || (e.Annotations[audit.TruncatedAnnotation] == "true") != cut || cut && e.Annotations["k"] != "v" {
			t.Errorf("%+v", e)
		}
	}
	if large.RequestObject == nil || len(large.Annotations) != 1 {
		t.Errorf("the event of the caller was changed: %+v", large)
	}
	for _, o := range []audit.TruncateOptions{{MaxEventBytes: -1}, {MaxBatchBytes: -1}, {MaxBatchBytes: 10}} {
		if _, err := audit.Truncate(sink, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
