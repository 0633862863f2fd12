package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
)

// cborOf returns the CBOR of an object or an event in JSON, as apimachinery's serializer writes it, in its deterministic form.
func cborOf(t *testing.T, text string) string {
	t.Helper()
	var event struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		t.Fatal(err)
	}
	if event.Object == nil {
		body, err := cborBody(text)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	var out bytes.Buffer
	object := apiruntime.RawExtension{Raw: []byte(cborOf(t, string(event.Object)))}
	if err := cbor.NewSerializer(nil, nil).Encode(&metav1.WatchEvent{Type: event.Type, Object: object}, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// events reads n lines.
func events(count int) func(io.Reader) ([]byte, error) {
	return func(in io.Reader) (text []byte, err error) {
		lines := bufio.NewReader(in)
		for range count {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			text = append(text, line...)
		}
		return text, nil
	}
}

// TestCBORIsTheJSON checks that every form of an object is the same in CBOR as in JSON, in the bytes of kube-apiserver's
// serializer.
func TestCBORIsTheJSON(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: goldenGroups(), CBOR: true})
	installBuiltin(t, srv)
	// ask reads an answer as read does.
	ask := func(method, path, contentType, accept, body string, read func(io.Reader) ([]byte, error)) (int, http.Header, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a watch with too few events
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + srv.Token}, "Content-Type": {contentType}, "Accept": {accept}, "Accept-Encoding": {"gzip"}}
		resp, err := srv.Anonymous().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var in io.Reader = resp.Body
		if resp.Header.Get("Content-Encoding") == "gzip" {
			if in, err = gzip.NewReader(in); err != nil {
				t.Fatal(err)
			}
		}
		text, err := read(in)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(text)
	}
	const widgets, gadgets = "/apis/example.com/v1/namespaces/default/widgets", "/apis/untyped.example.com/v1/namespaces/default/gadgets"
	const maps = "/api/v1/namespaces/default/configmaps"
	const objects = 40 // large enough that lists are compressed
	for i := range objects {
		for list, body := range map[string]string{
			widgets: fmt.Sprintf(`{"metadata":{"name":"w%d","annotations":{"a":"é<%s"}},"spec":{"size":%d,"tags":["a","b"]}}`, i, strings.Repeat("x", 400*i), i*1000),
			gadgets: fmt.Sprintf(`{"apiVersion":"untyped.example.com/v1","kind":"Gadget","metadata":{"name":"g%d"},"spec":{"a":[1,-2.5,1e30,null,{}],"n":%d}}`, i, i),
			maps:    fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"b":"2","a":"%d"},"binaryData":{"x":"AAE="}}`, i, i),
		} {
			if code, _, answer := ask("POST", list, "application/json", "", body, io.ReadAll); code != http.StatusCreated {
				t.Fatal(answer)
			}
		}
	}
	const partial, partials = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, list := range []string{widgets, gadgets, maps} {
		name := map[string]string{widgets: "/w7", gadgets: "/g7", maps: "/c7"}[list]
		for _, c := range []struct{ path, params string }{
			{list + name, ""}, {list + name, partial}, {list, ""}, {list, partials}, {list + "?limit=7", ""}, {list + "?labelSelector=no", ""}, {list + "/none", ""},
			{list + "?watch=1", ""}, {list + "?watch=1", partial},
		} {
			readJSON, mediaType := io.ReadAll, "application/cbor"
			watch := strings.Contains(c.path, "watch=1")
			if watch {
				readJSON, mediaType = events(objects), "application/cbor-seq"
			}
			code, _, want := ask("GET", c.path, "", "application/json"+c.params, "", readJSON)
			wantBody, readCBOR := "", io.ReadAll
			if watch {
				for line := range strings.Lines(want) {
					wantBody += cborOf(t, line)
				}
				readCBOR = func(in io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(in, int64(len(wantBody)))) }
			} else {
				wantBody = cborOf(t, want)
			}
			got, header, body := ask("GET", c.path, "", "application/cbor"+c.params, "", readCBOR)
			if got != code || header.Get("Content-Type") != mediaType || body != wantBody || len(body) < 20 {
				t.Errorf("%s%s: %d %v, want %d %s\ngot  %.400q\nwant %.400q", c.path, c.params, got, header, code, mediaType, body, wantBody)
			}
		}
	}
	if _, header, _ := ask("GET", widgets, "", "application/cbor", "", io.ReadAll); header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a long list is not compressed: %v", header)
	}
}

// TestCBORIsAnOption checks that without the option there is no filter for CBOR, and that with it filters refuse in CBOR.
func TestCBORIsAnOption(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		srv := servertest.Start(t, server.Options{Groups: goldenGroups(), CBOR: on})
		if got := srv.Chain(); slices.Contains(got, "cbor") != on || on && got[0] != "cbor" {
			t.Errorf("CBOR %v: the chain is %v", on, got)
		}
		for path, code := range map[string]int{"/apis/example.com/v1/widgets": http.StatusUnauthorized, "/apis/example.com/v1/namespaces/a%2Fb/widgets": 0} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Authorization": {"Bearer nobody"}, "Accept": {"application/cbor"}}
			resp, err := srv.Anonymous().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			want := map[bool]string{false: "application/json", true: "application/cbor"}[on]
			if err != nil || resp.Header.Get("Content-Type") != want || code != 0 && resp.StatusCode != code || bytes.HasPrefix(body, []byte(cborMagic)) != on {
				t.Errorf("CBOR %v, %s: %d %v %q, %v", on, path, resp.StatusCode, resp.Header, body, err)
			}
		}
	}
}
