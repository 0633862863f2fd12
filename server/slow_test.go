package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// The line about a slow request has each part in which the time went.
func TestSlowRequestsHaveALine(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.InfoLevel)
	pause := func(context.Context, *admission.Request) error { time.Sleep(time.Millisecond); return nil }
	srv := servertest.Start(t, server.Options{
		Groups:  []server.Group{widgets()},
		Observe: server.Observe{Logger: zap.New(core), SlowRequest: time.Nanosecond},
		Policy:  server.Policy{Admission: admission.Chain{{Name: "slow", Mutator: admission.MutatorFunc(pause), Validator: admission.ValidatorFunc(pause)}}},
	})
	code, body := call(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
	wantCode(t, 200, code, body)
	for method, want := range map[string][]string{
		"POST": {"authentication", "authorization", "body", "decode", "mutating-admission", "validating-admission", "storage", "encode"},
		"GET":  {"encode"},
	} {
		text := ""
		eventually(t, "the line is written", func() bool {
			for _, line := range log.FilterMessage("a request was slow").All() {
				if fields := line.ContextMap(); fields["method"] == method && fields["uri"] == widgetsPath {
					text = fmt.Sprint(fields["spent"])
				}
			}
			return text != ""
		})
		for _, part := range want {
			if !strings.Contains(text, part+":") {
				t.Errorf("%s: the time went to %s, and not to %s", method, text, part)
			}
		}
	}
}

// What a client does wrong is no error of the server, and not logged as one.
func TestFaultsOfClientsAreNoErrorsInTheLog(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.InfoLevel)
	srv := servertest.Start(t, server.Options{
		Groups: []server.Group{widgets()}, Observe: server.Observe{Logger: zap.New(core)},
		Limits: server.Limits{MaxBodyBytes: 1000, CacheWait: 10 * time.Millisecond},
	})
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	long := `{"metadata":{"name":"b"},"x":"` + strings.Repeat("x", 2000) + `"}`
	var all sync.WaitGroup
	for _, ask := range []struct {
		method, path, body string
		want               int
		header             []string
	}{
		{"GET", widgetsPath + "/a?resourceVersion=999999", "", 504, nil},
		{"GET", widgetsPath + "?resourceVersion=999999", "", 504, nil},
		{"GET", widgetsPath + "?resourceVersion=999999&resourceVersionMatch=Exact", "", 504, nil},
		{"POST", widgetsPath, long, 413, nil},
		{"POST", widgetsPath, "{", 400, nil},
		{"POST", widgetsPath, `{"metadata":{"name":"a"}}`, 409, nil},
		{"GET", "/apis/none.example.com/v1/xs", "", 404, nil},
		{"GET", widgetsPath + "/none", "", 404, nil},
		{"GET", widgetsPath + "?timeout=x", "", 400, nil},
		{"GET", widgetsPath, "", 401, []string{"Authorization", "Bearer none"}},
		{"GET", widgetsPath, "", 406, []string{"Accept", "image/png"}},
		{"PATCH", widgetsPath + "/a", "{}", 415, []string{"Content-Type", "image/png"}},
		{"TRACE", widgetsPath + "/a", "", 405, nil},
	} {
		all.Go(func() { // some wait for seconds
			code, body := call(t, c, ask.method, srv.URL+ask.path, ask.body, ask.header...)
			if code != ask.want {
				t.Errorf("%s %s: answered %d %s, want %d", ask.method, ask.path, code, body, ask.want)
			}
		})
	}
	all.Wait()
	for _, line := range log.All() {
		if line.Level >= zapcore.WarnLevel && line.Message != "not ready yet" {
			t.Errorf("%s %s %v", line.Level, line.Message, line.ContextMap())
		}
	}
}
