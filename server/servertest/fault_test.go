package servertest_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFaultsOfTheAnswer(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.want(201, h.create("sloop"))

	t.Run("Error", func(t *testing.T) {
		h := harbour{h.Server, t}
		remove := h.Inject(servertest.Fault{Match: on("get"), Error: apierrors.NewTooManyRequests("all hands are busy", 7)})
		a := h.want(429, h.get("sloop"))
		if s := a.status(t); s.Reason != metav1.StatusReasonTooManyRequests || s.Message != "all hands are busy" || a.header.Get("Retry-After") != "7" {
			t.Errorf("answered %s with Retry-After %q", a.body, a.header.Get("Retry-After"))
		}
		h.want(200, h.do("GET", boats, "")) // list is another verb
		remove()
		remove()
		h.want(200, h.get("sloop"))
	})
	t.Run("Error without a Status", func(t *testing.T) {
		h := harbour{h.Server, t}
		defer h.Inject(servertest.Fault{Match: on("get"), Error: errors.New("leaking")})()
		if s := h.want(500, h.get("sloop")).status(t); s.Message != "leaking" || s.Reason != "" {
			t.Errorf("answered %+v", s)
		}
	})
	t.Run("Drop", func(t *testing.T) {
		h := harbour{h.Server, t}
		remove := h.Inject(servertest.Fault{Match: on("create"), Drop: true})
		h.wantDropped(h.create("dropped"))
		remove()
		h.want(404, h.get("dropped"))
	})
	t.Run("Lost by Drop", func(t *testing.T) {
		h := harbour{h.Server, t}
		defer h.Inject(servertest.Fault{Match: on("create"), Drop: true, Lost: true, Times: 1})()
		h.wantDropped(h.create("lost"))
		h.want(200, h.get("lost"))
		h.want(409, h.create("lost"))
	})
	t.Run("Lost by Error", func(t *testing.T) {
		h := harbour{h.Server, t}
		defer h.Inject(servertest.Fault{Match: on("delete"), Error: apierrors.NewServerTimeout(boatResource(), "delete", 2), Lost: true, Times: 1})()
		a := h.want(500, h.do("DELETE", boats+"/lost", ""))
		if s := a.status(t); s.Reason != metav1.StatusReasonServerTimeout || a.header.Get("Retry-After") != "2" || len(a.header["Content-Length"]) > 0 && a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
			t.Errorf("answered %s with %v", a.body, a.header)
		}
		h.want(404, h.get("lost"))
	})
	t.Run("StorageError", func(t *testing.T) {
		h := harbour{h.Server, t}
		defer h.Inject(servertest.Fault{Match: on("create"), StorageError: errors.New("etcdserver: mvcc: database space exceeded"), Times: 1})()
		defer h.Inject(servertest.Fault{Match: on("patch"), StorageError: storage.ErrUnavailable, Lost: true, Times: 1})()
		if s := h.want(500, h.create("unstored")).status(t); !strings.Contains(s.Message, "database space exceeded") {
			t.Errorf("answered %+v", s)
		}
		h.want(404, h.get("unstored"))
		h.want(503, h.merge("sloop", `{"spec":{"length":9}}`))
		if a := h.want(200, h.get("sloop")); !strings.Contains(a.body, `"length":9`) {
			t.Errorf("the commit was not made: %s", a.body)
		}
	})
}

func TestWhichRequestsAFaultBefalls(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	codes := func(h harbour, n int) (out []int) {
		for range n {
			out = append(out, h.get("sloop").code)
		}
		return out
	}
	for name, tc := range map[string]struct {
		fault servertest.Fault
		want  []int
	}{
		"all":                    {servertest.Fault{Error: oops}, []int{500, 500, 500, 500}},
		"Skip":                   {servertest.Fault{Error: oops, Skip: 2}, []int{200, 200, 500, 500}},
		"Times":                  {servertest.Fault{Error: oops, Times: 1}, []int{500, 200, 200, 200}},
		"Skip and Times":         {servertest.Fault{Error: oops, Skip: 1, Times: 2}, []int{200, 500, 500, 200}},
		"Rate 1":                 {servertest.Fault{Error: oops, Rate: 1}, []int{500, 500, 500, 500}},
		"a rate that never hits": {servertest.Fault{Error: oops, Rate: math.SmallestNonzeroFloat64}, []int{200, 200, 200, 200}},
		"another verb":           {servertest.Fault{Match: on("list"), Error: oops}, []int{200, 200, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t, server.Options{})
			h.want(201, h.create("sloop"))
			h.Inject(tc.fault)
			if got := codes(h, 4); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("answered %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("Rate is the same again from the same Seed", func(t *testing.T) {
		t.Parallel()
		h := newHarbour(t, server.Options{})
		h.want(201, h.create("sloop"))
		seen := map[string]int{}
		for _, seed := range []uint64{1, 1, 2} {
			remove := h.Inject(servertest.Fault{Error: oops, Rate: 0.5, Seed: seed})
			seen[fmt.Sprint(codes(h, 40))]++
			remove()
		}
		if len(seen) != 2 {
			t.Errorf("three runs with two seeds went %d ways", len(seen))
		}
		for run, n := range seen {
			if failed := strings.Count(run, "500"); failed < 8 || failed > 32 {
				t.Errorf("%d of 40 failed, %d times; the rate is a half", failed, n)
			}
		}
	})
}

// A fault without verbs ignores, and does not count, requests that it cannot affect.
func TestRequestsThatAFaultPassesOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault servertest.Fault
		over  [][2]string // requests that are not affected and answered with 200
		hit   func(h harbour) bool
	}{
		"Conflicts": {
			servertest.Fault{Conflicts: 1},
			[][2]string{{"GET", boats}, {"GET", boats + "/sloop"}, {"DELETE", boats + "/sloop?dryRun=All"}},
			func(h harbour) bool { return h.create("ketch").code == 409 },
		},
		"Events": {
			servertest.Fault{Events: 1, Drop: true},
			[][2]string{{"GET", boats}, {"GET", boats + "/sloop"}},
			func(h harbour) bool { return h.do("GET", boats+"?watch=1", "").err != nil },
		},
		"Expired": {
			servertest.Fault{Expired: true},
			[][2]string{{"GET", boats + "/sloop?resourceVersion=1"}, {"GET", boats + "?resourceVersion=0"}, {"GET", boats}},
			func(h harbour) bool { return h.do("GET", boats+"?resourceVersion=1", "").code == 410 },
		},
		"Lost": {
			servertest.Fault{Drop: true, Lost: true},
			[][2]string{{"GET", boats + "?watch=1&timeoutSeconds=1"}},
			func(h harbour) bool { return h.get("sloop").err != nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarbour(t, server.Options{})
				h.want(201, h.create("sloop"))
				tc.fault.Times = 1
				h.Inject(tc.fault)
				for _, r := range tc.over {
					h.want(200, h.do(r[0], r[1], ""))
				}
				if !tc.hit(h) {
					t.Error("the fault did not befall the request that it is about")
				}
				h.want(200, h.get("sloop"))
			})
		})
	}
}

func TestFaultsComeInOrder(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.want(201, h.create("sloop"))
	h.Inject(servertest.Fault{Match: on("get"), Error: apierrors.NewServiceUnavailable("first"), Times: 1})
	h.Inject(servertest.Fault{Match: on("get"), Delay: time.Nanosecond})
	h.Inject(servertest.Fault{Match: on("get"), Error: apierrors.NewBadRequest("second"), Times: 1})
	for _, want := range []int{503, 400, 200} {
		h.want(want, h.get("sloop"))
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	for want, f := range map[string]servertest.Fault{
		`no verb "gett"`:             {Match: on("gett"), Error: oops},
		`no verb "GET"`:              {Match: on("GET"), Error: oops},
		`"Boats"`:                    {Match: servertest.Match{Resources: []string{"Boats"}}, Error: oops},
		`the subresources of boats`:  {Match: servertest.Match{Resources: []string{"boats/statu"}}, Error: oops},
		`kind Boat is called boats`:  {Match: servertest.Match{Resources: []string{"boat"}}, Error: oops},
		`"boats/"`:                   {Match: servertest.Match{Resources: []string{"boats/"}}, Error: oops},
		`"boats.Sea"`:                {Match: servertest.Match{Resources: []string{"boats.Sea"}}, Error: oops},
		`""`:                         {Match: servertest.Match{Resources: []string{""}}, Error: oops},
		`path of a create`:           {Match: servertest.Match{Verbs: []string{"create"}, Resources: []string{"boats"}, Name: "sloop"}, Error: oops},
		`does nothing`:               {Match: on("get"), Times: 1},
		`Error, Drop`:                {Error: oops, Drop: true},
		`Error, StorageError`:        {Error: oops, StorageError: oops},
		`Drop, Expired`:              {Drop: true, Expired: true},
		`with Lost one of`:           {Lost: true, Delay: 1},
		`with Lost one of Error`:     {Lost: true, Expired: true},
		`a watch, which Events`:      {Lost: true, Events: 1, Drop: true},
		`a watch, which Events and`:  {Conflicts: 1, Lasts: 1},
		`with Error no commit`:       {Conflicts: 1, Error: oops},
		`with StorageError no`:       {Conflicts: 1, StorageError: oops},
		`with StorageError no comm`:  {Conflicts: 1, StorageError: oops, Lost: true},
		`with Expired no commit`:     {Conflicts: 1, Expired: true},
		`about watch, and Match`:     {Match: on("list"), Events: 1},
		`about list, watch, and`:     {Match: on("get"), Expired: true},
		`patch, delete, deletecolle`: {Match: on("get", "list"), Conflicts: 1},
		`it would never happen`:      {Match: on("watch"), Drop: true, Lost: true},
		`none of Skip`:               {Error: oops, Times: -1},
		`none of Delay`:              {Delay: -1},
		`the Rate 1.5`:               {Error: oops, Rate: 1.5},
		`the Rate NaN`:               {Error: oops, Rate: math.NaN()},
		`a Seed is for`:              {Error: oops, Seed: 1},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			srv, err := servertest.Run(server.Options{}, boatGroup())
			if err != nil {
				t.Fatal(err)
			}
			h := harbour{srv, t}
			srv.Inject(f)()
			// A mistake is reported at once, and by Close.
			if s := h.want(500, h.get("sloop")).status(t); !strings.Contains(s.Message, want) || !strings.Contains(s.Message, "Inject at fault_test.go:") {
				t.Errorf("answered %q, want %q", s.Message, want)
			}
			if err := srv.Close(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Close said %v, want %q", err, want)
			}
		})
	}
}

func TestFaultsThatMakeSense(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	h := newHarbour(t, server.Options{})
	for name, f := range map[string]servertest.Fault{
		"apply is a patch":        {Match: on("apply"), Conflicts: 1},
		"any verb":                {Match: on("*"), Expired: true},
		"one of several":          {Match: on("get", "watch"), Lasts: 1},
		"a delay before anything": {Delay: 1, Jitter: 1, Seed: 1, Conflicts: 1, Lost: true, Error: oops},
		"a delay alone":           {Jitter: 1},
		"a kind to come":          {Match: servertest.Match{Resources: []string{"ports"}}, Error: oops},
		"wildcards":               {Match: servertest.Match{Resources: []string{"*", "*/status", "boats/*", "boats.sea.example.com/status"}}, Error: oops},
		"a create by name":        {Match: servertest.Match{Verbs: []string{"create"}, Resources: []string{"pods/binding"}, Name: "p"}, Error: oops},
	} {
		remove := h.Inject(f)
		h.do("PUT", boats, "")
		remove()
		if a := h.get("none"); a.code != 404 {
			t.Errorf("%s: answered %d %s", name, a.code, a.body)
		}
	}
}

// Faults are added and removed during requests.
func TestFaultsConcurrently(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.want(201, h.create("sloop"))
	rec := h.Record(servertest.Match{})
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for range 25 {
				remove := h.Inject(servertest.Fault{Match: on("get", "patch"), Error: apierrors.NewConflict(boatResource(), "sloop", errors.New("oops")), Rate: 0.5, Seed: uint64(i) + 1})
				other := h.Inject(servertest.Fault{Match: on("patch"), Conflicts: 2, Times: 1})
				h.Record(servertest.Match{}).Stop()
				remove()
				other()
			}
		})
		work.Go(func() {
			for range 25 {
				if a := h.get("sloop"); a.code != 200 && a.code != 409 {
					t.Errorf("answered %d %s %v", a.code, a.body, a.err)
				}
				if a := h.merge("sloop", `{"metadata":{"labels":{"n":"`+fmt.Sprint(i)+`"}}}`); a.code != 200 && a.code != 409 {
					t.Errorf("answered %d %s %v", a.code, a.body, a.err)
				}
				rec.Requests()
			}
		})
	}
	work.Wait()
	h.want(200, h.get("sloop"))
	if n := len(rec.Requests()); n != 4*25*2+1 {
		t.Errorf("%d requests are recorded, want %d", n, 4*25*2+1)
	}
}
