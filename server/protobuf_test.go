package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// LockSpec has the protobuf tags of the spec of Leases, which has generated code, and no generated code itself. So the code for
// leases can be used by a client of locks.
type LockSpec struct {
	HolderIdentity       *string           `json:"holderIdentity,omitempty" protobuf:"bytes,1,opt,name=holderIdentity"`
	LeaseDurationSeconds *int32            `json:"leaseDurationSeconds,omitempty" protobuf:"varint,2,opt,name=leaseDurationSeconds" default:"15"`
	AcquireTime          *metav1.MicroTime `json:"acquireTime,omitempty" protobuf:"bytes,3,opt,name=acquireTime"`
}

type LockStatus struct {
	Held bool `json:"held,omitempty" protobuf:"varint,1,opt,name=held"`
}

// In v1beta1 a Lock cannot be converted if it has no holder. Bolts are a kind without tags.
type (
	Lock         = runtime.Resource[LockSpec, LockStatus]
	LockV1Beta1  = runtime.Resource[LockV1Beta1S, LockStatus]
	LockV1Beta1S struct {
		HolderIdentity string `json:"holderIdentity" protobuf:"bytes,1,opt,name=holderIdentity"`
	}
	Bolt = runtime.Resource[struct {
		Length int32 `json:"length,omitempty"`
	}, struct{}]
)

func locks() server.Group {
	nobody := errors.New("nobody holds it")
	return server.Group{
		Name: "locks.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Lock", server.KindOptions[*Lock]{Hub: true}), server.Kind("Bolt", server.KindOptions[*Bolt]{})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Lock", server.KindOptions[*LockV1Beta1]{})}},
		},
		Conversions: []server.Conversion{server.Convert(func(in *LockV1Beta1, out *Lock) error {
			if out.Spec.HolderIdentity = &in.Spec.HolderIdentity; in.Spec.HolderIdentity == "" {
				return nobody
			}
			return nil
		}, func(in *Lock, out *LockV1Beta1) error {
			if in.Spec.HolderIdentity == nil {
				return nobody
			}
			out.Spec.HolderIdentity = *in.Spec.HolderIdentity
			return nil
		})},
	}
}

const (
	inProtobuf = "application/vnd.kubernetes.protobuf"
	locksPath  = "/apis/locks.example.com/v1/namespaces/default/locks"
	betaPath   = "/apis/locks.example.com/v1beta1/namespaces/default/locks"
)

// generated has the methods that generated code adds to a type.
type generated interface {
	Marshal() ([]byte, error)
	Unmarshal(message []byte) error
}

// wrapped returns a message as a body, wrapped as generated clients do it.
func wrapped(t *testing.T, kind string, message generated) string {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "locks.example.com/v1", Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(envelope)
}

// unwrap reads the message of a body, and returns its kind.
func unwrap(t *testing.T, body string, message generated) string {
	t.Helper()
	var envelope apiruntime.Unknown
	text, is := strings.CutPrefix(body, "k8s\x00")
	if err := envelope.Unmarshal([]byte(text)); err != nil || !is {
		t.Fatalf("%v: %q", err, body)
	}
	reflect.ValueOf(message).Elem().SetZero() // Unmarshal would merge with the old value
	if err := message.Unmarshal(envelope.Raw); err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	return envelope.APIVersion + " " + envelope.Kind
}

// A kind whose types have tags is served in protobuf like one with generated code, with each verb and each client.
func TestProtobufByTags(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, locks())
	const lockKind = "locks.example.com/v1 Lock"
	ask := func(method, path, contentType, body string, code int, kind string, message generated) {
		t.Helper()
		a := roundTrip(t, srv.Client(), method, srv.URL+path, body, "Content-Type", contentType, "Accept", inProtobuf)
		if a.code != code || a.header.Get("Content-Type") != inProtobuf {
			t.Fatalf("%s %s: %d %v %q", method, path, a.code, a.header, a.body)
		}
		if got := unwrap(t, a.body, message); got != kind {
			t.Errorf("%s %s: a %s, want a %s", method, path, got, kind)
		}
	}
	now := metav1.NewMicroTime(time.UnixMicro(1700000000123456))
	me := "me"
	in := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &me, AcquireTime: &now}}
	var made, got coordinationv1.Lease
	ask("POST", locksPath, inProtobuf, wrapped(t, "Lock", in), 201, lockKind, &made)
	if s := made.Spec; made.UID == "" || made.Labels["x"] != "y" || s.HolderIdentity == nil || *s.HolderIdentity != "me" || !s.AcquireTime.Equal(&now) || *s.LeaseDurationSeconds != 15 {
		t.Errorf("made %+v", &made)
	}
	ask("GET", locksPath+"/a", "", "", 200, lockKind, &got)
	if !reflect.DeepEqual(got, made) {
		t.Errorf("got %+v, made was %+v", &got, &made)
	}
	var object struct{ coordinationv1.Lease } // locks and leases have the same JSON
	if err := json.Unmarshal([]byte(roundTrip(t, srv.Client(), "GET", srv.URL+locksPath+"/a", "").body), &object); err != nil || !reflect.DeepEqual(object.Spec.HolderIdentity, made.Spec.HolderIdentity) {
		t.Errorf("%+v, %v", &object, err)
	}
	var status metav1.Status
	ask("POST", locksPath, inProtobuf, wrapped(t, "Lock", in), 409, "v1 Status", &status)

	got.Spec.LeaseDurationSeconds = new(int32(20))
	ask("PUT", locksPath+"/a", inProtobuf, wrapped(t, "Lock", &got), 200, lockKind, &got)
	ask("PUT", locksPath+"/a", inProtobuf, wrapped(t, "Lock", &made), 409, "v1 Status", &status)
	var patched, applied coordinationv1.Lease
	ask("PATCH", locksPath+"/a", mergePatchType, `{"spec":{"leaseDurationSeconds":30}}`, 200, lockKind, &patched)
	ask("PATCH", locksPath+"/b?fieldManager=me", "application/apply-patch+yaml", "{apiVersion: locks.example.com/v1, kind: Lock, metadata: {name: b}, spec: {leaseDurationSeconds: 40}}", 201, lockKind, &applied)
	if *got.Spec.LeaseDurationSeconds != 20 || *patched.Spec.LeaseDurationSeconds != 30 || *applied.Spec.LeaseDurationSeconds != 40 || len(applied.ManagedFields) != 1 {
		t.Errorf("updated %+v, patched %+v, applied %+v", &got, &patched, &applied)
	}
	ask("PATCH", locksPath+"/a/status", mergePatchType, `{"status":{"held":true}}`, 200, lockKind, &patched)

	var list coordinationv1.LeaseList
	var metadata metav1.PartialObjectMetadataList
	ask("GET", locksPath, "", "", 200, "locks.example.com/v1 LockList", &list)
	if len(list.Items) != 2 || list.ResourceVersion == "" || !reflect.DeepEqual(list.Items[0], patched) || !reflect.DeepEqual(list.Items[1], applied) {
		t.Errorf("listed %+v", &list)
	}
	for _, path := range []string{locksPath, "/apis/locks.example.com/v1/namespaces/default/bolts"} {
		a := roundTrip(t, srv.Client(), "GET", srv.URL+path, "", "Accept", inProtobuf+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		if kind := unwrap(t, a.body, &metadata); a.code != 200 || kind != "meta.k8s.io/v1 PartialObjectMetadataList" || metadata.ResourceVersion == "" {
			t.Errorf("%s: %d %s %+v", path, a.code, kind, &metadata)
		}
	}
	stale := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &made.ResourceVersion}}
	ask("DELETE", locksPath+"/a", inProtobuf, wrapped(t, "DeleteOptions", stale), 409, "v1 Status", &status)
	ask("DELETE", locksPath+"/a", inProtobuf, wrapped(t, "DeleteOptions", &metav1.DeleteOptions{}), 200, "v1 Status", &status)
	ask("GET", locksPath+"/a", "", "", 404, "v1 Status", &status)
	ask("DELETE", locksPath, "", "", 200, "locks.example.com/v1 LockList", &list)
	if len(list.Items) != 1 || list.Items[0].Name != "b" {
		t.Errorf("deleted %+v", &list)
	}
}

// frames reads the events of a watch in protobuf: "TYPE kind name".
func frames(t *testing.T, srv *servertest.Server, target string) func() string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", srv.URL+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", inProtobuf)
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != inProtobuf+";stream=watch" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return func() string {
		t.Helper()
		var head [4]byte
		var frame bytes.Buffer
		if _, err := io.ReadFull(resp.Body, head[:]); err != nil {
			return err.Error()
		}
		if _, err := io.CopyN(&frame, resp.Body, int64(binary.BigEndian.Uint32(head[:]))); err != nil {
			t.Fatal(err)
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame.Bytes()); err != nil {
			t.Fatalf("%v: %q", err, frame.Bytes())
		}
		if event.Type == "ERROR" {
			var status metav1.Status
			return event.Type + " " + unwrap(t, string(event.Object.Raw), &status) + " " + fmt.Sprint(status.Code)
		}
		var lock coordinationv1.Lease
		kind := unwrap(t, string(event.Object.Raw), &lock)
		if event.Type == "BOOKMARK" {
			lock.Name = fmt.Sprint(lock.Annotations)
		}
		if lock.ResourceVersion == "" || (event.Type == "BOOKMARK") != (lock.Spec.LeaseDurationSeconds == nil && lock.UID == "") {
			t.Errorf("%s of %+v", event.Type, &lock)
		}
		return event.Type + " " + kind + " " + lock.Name
	}
}

// A watch sends events in frames that generated clients read. A bookmark has no defaults, and is not converted.
func TestProtobufWatchByTags(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, locks())
	ask := func(method, path, body string, code int) {
		t.Helper()
		if a := roundTrip(t, srv.Client(), method, srv.URL+path, body, "Content-Type", mergePatchType); a.code != code {
			t.Fatalf("%s %s: %d %s", method, path, a.code, a.body)
		}
	}
	a := roundTrip(t, srv.Client(), "POST", srv.URL+locksPath, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"me"}}`)
	if a.code != 201 {
		t.Fatal(a.code, a.body)
	}
	const all = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	watches := map[string]func() string{
		"locks.example.com/v1 Lock": frames(t, srv, locksPath+all), "locks.example.com/v1beta1 Lock": frames(t, srv, betaPath+all),
	}
	want := func(events ...string) {
		t.Helper()
		for kind, next := range watches {
			for _, want := range events {
				if got := next(); got != strings.Replace(want, " ", " "+kind+" ", 1) {
					t.Fatalf("%s, want %s of %s", got, want, kind)
				}
			}
		}
	}
	want("ADDED a", "BOOKMARK map[k8s.io/initial-events-end:true]")
	ask("PATCH", locksPath+"/a", `{"metadata":{"labels":{"x":"y"}}}`, 200)
	ask("DELETE", locksPath+"/a", "", 200)
	want("MODIFIED a", "DELETED a")
	if got := frames(t, srv, locksPath+all+"&resourceVersion=1000000")(); got != "ERROR v1 Status 504" {
		t.Errorf("a revision that is yet to come: %s", got)
	}
}
