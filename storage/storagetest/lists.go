package storagetest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

var listTests = []objectTest{
	{name: "nothing", run: func(t *testing.T, s *objects) {
		p := s.list(storage.ListOptions{})
		if p.Count != 0 || p.Revision <= 0 || p.Continue != "" || p.Remaining != nil {
			t.Errorf("the page is %+v", p)
		}
	}},
	{name: "in key order, at one revision", run: func(t *testing.T, s *objects) {
		for _, key := range []string{"b/b", "a/b", "a-b/a", "a/c", "b/a", "a0/a", "a/a"} {
			s.create(key)
		}
		last := s.remove("b/b").Revision
		p := s.list(storage.ListOptions{})
		if got, want := names(p), "a-b/a a/a a/b a/c a0/a b/a"; got != want || p.Revision != last {
			t.Errorf("the page is %q at %d, want %q at %d", got, p.Revision, want, last)
		}
		if first, again := names(p), names(p); first != again {
			t.Errorf("walked again, the page is %q", again)
		}
		for r := range p.Records {
			if r.Key == "a/a" {
				break
			}
		}
	}},
	{name: "selections", run: func(t *testing.T, s *objects) {
		s.create("a/x", "app=web", "tier=1", "color:red")
		s.create("a/y", "app=web", "tier=2", "color:blue")
		s.create("a/z", "app=db")
		s.create("b/x", "app=web", "color:red")
		s.create("ab/x")
		for _, test := range []struct {
			name string
			sel  storage.Selection
			want string
		}{
			{"everything", storage.Selection{}, "a/x a/y a/z ab/x b/x"},
			{"a namespace", storage.Selection{Namespace: "a"}, "a/x a/y a/z"},
			{"another namespace", storage.Selection{Namespace: "c"}, ""},
			{"a name in a namespace", storage.Selection{Namespace: "a", Name: "x"}, "a/x"},
			{"a missing name", storage.Selection{Namespace: "a", Name: "w"}, ""},
			{"the start of a name", storage.Selection{Namespace: "a", Name: ""}, "a/x a/y a/z"},
			{"a name anywhere", storage.Selection{Name: "x"}, "a/x ab/x b/x"},
			{"no namespace at all", storage.Selection{Namespace: "a/x"}, ""},
			{"the parent", storage.Selection{Namespace: ".."}, ""},
			{"no key at all", storage.Selection{Namespace: "a", Name: "x\x00"}, ""},
			{"a label", byLabel("app=web"), "a/x a/y b/x"},
			{"labels", byLabel("app=web,tier in (1,2),tier!=2"), "a/x"},
			{"no label", byLabel("!app"), "ab/x"},
			{"a field", byField("spec.color=red"), "a/x b/x"},
			{"not a field", byField("spec.color!=red"), "a/y a/z ab/x"},
			{"metadata.name", byField("metadata.name=x"), "a/x ab/x b/x"},
			{"not metadata.name", byField("metadata.name!=x"), "a/y a/z"},
			{"metadata.namespace", byField("metadata.namespace=a"), "a/x a/y a/z"},
			{"both", byField("metadata.namespace=a,metadata.name=y"), "a/y"},
			{"an empty name", byField("metadata.name="), ""},
			{"a name and another", storage.Selection{Namespace: "a", Name: "x", Fields: byField("metadata.name=y").Fields}, ""},
			{"a namespace and another", storage.Selection{Namespace: "a", Fields: byField("metadata.namespace=b").Fields}, ""},
			{"a namespace and a label", storage.Selection{Namespace: "a", Labels: byLabel("app=web").Labels}, "a/x a/y"},
		} {
			p := s.list(storage.ListOptions{Selection: test.sel})
			if got := names(p); got != test.want || p.Revision != s.revision() || p.Continue != "" {
				t.Errorf("%s: %q at %d, continue %q; want %q at %d", test.name, got, p.Revision, p.Continue, test.want, s.revision())
			}
		}
	}},
	{name: "at a revision", run: func(t *testing.T, s *objects) {
		start := s.revision()
		r1 := s.create("a/x", "v=1").Revision
		r2 := s.create("a/y").Revision
		r3 := s.edit("a/x", func(g *Gadget) { g.Labels["v"] = "2" }).Revision
		r4 := s.remove("a/x").Revision
		for revision, want := range map[int64]string{start: "", r1: "a/x@1", r2: "a/x@1 a/y@", r3: "a/x@2 a/y@", r4: "a/y@"} {
			p := s.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: revision}})
			var got []string
			for r := range p.Records {
				got = append(got, r.Key+"@"+r.Labels.Get("v"))
			}
			if strings.Join(got, " ") != want || p.Revision != revision {
				t.Errorf("at %d: %q at %d, want %q", revision, got, p.Revision, want)
			}
		}
		one := storage.Selection{Namespace: "a", Name: "x"}
		p := s.list(storage.ListOptions{Selection: one, At: storage.Read{Match: storage.Exact, Revision: r1}})
		if names(p) != "a/x" || p.Revision != r1 {
			t.Errorf("one object at %d: %q at %d", r1, names(p), p.Revision)
		}
	}},
	{name: "not older than", run: func(t *testing.T, s *objects) {
		r := s.create("a/x").Revision
		p := s.list(storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: r}})
		if names(p) != "a/x" || p.Revision < r {
			t.Errorf("the page is %q at %d", names(p), p.Revision)
		}
	}},
	{name: "any state ignores the limit", run: func(t *testing.T, s *objects) {
		for i := range 5 {
			s.create(fmt.Sprint("a/", i))
		}
		s.list(storage.ListOptions{At: storage.Read{Match: storage.NotOlderThan, Revision: s.revision()}})
		p := s.list(storage.ListOptions{At: storage.Read{Match: storage.Any}, Limit: 2})
		if p.Count != 5 || p.Continue != "" || p.Remaining != nil {
			t.Errorf("%d records, continue %q, remaining %v; want all 5", p.Count, p.Continue, p.Remaining)
		}
	}},
	{name: "the future does not come", run: func(t *testing.T, s *objects) {
		now := s.create("a/x").Revision
		for _, match := range []storage.Match{storage.NotOlderThan, storage.Exact} {
			for _, sel := range []storage.Selection{{}, {Namespace: "a", Name: "x"}, {Namespace: "a", Name: ".."}} {
				_, err := s.List(s.ctx, storage.ListOptions{Selection: sel, At: storage.Read{Match: match, Revision: now + 100}})
				wantFuture(t, err, now+100, now)
			}
		}
	}},
	{name: "the future comes", options: longReadWait, run: func(t *testing.T, s *objects) {
		for _, match := range []storage.Match{storage.NotOlderThan, storage.Exact} {
			s.comes(func(revision int64) error {
				p, err := s.List(s.ctx, storage.ListOptions{At: storage.Read{Match: match, Revision: revision}})
				if err == nil && (p.Revision < revision || match == storage.Exact && p.Revision != revision) {
					return fmt.Errorf("the list is at %d, want %d", p.Revision, revision)
				}
				return err
			})
		}
	}},
	{name: "a revision that is gone", run: func(t *testing.T, s *objects) {
		old := s.create("a/x").Revision
		s.resize("a/x")
		s.compact()
		p, err := s.List(s.ctx, storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: old}})
		if err == nil && p.Revision == old && names(p) == "a/x" {
			return // a cache still has it
		}
		if e := wantExpired(t, err, old); e.Continue != "" {
			t.Errorf("the error has the token %q, but there was none", e.Continue)
		}
	}},
}

var pageTests = []objectTest{
	{name: "all of one state", run: func(t *testing.T, s *objects) {
		var all []string
		for i := range 11 {
			all = append(all, s.create(fmt.Sprintf("n%d/k%02d", i/5, i)).Key)
		}
		revision := s.revision()
		for _, limit := range []int64{1, 2, 3, 10, 11, 12, 1000} {
			opts := storage.ListOptions{Limit: limit}
			var got []string
			for {
				p := s.list(opts)
				got = append(got, strings.Fields(names(p))...)
				if p.Revision != revision {
					t.Fatalf("limit %d: the page is at %d, want %d", limit, p.Revision, revision)
				}
				left := int64(len(all) - len(got))
				if (p.Continue != "") != (left > 0) || (p.Remaining != nil) != (left > 0) || left > 0 && *p.Remaining != left {
					t.Fatalf("limit %d: %d records are left, continue %q, remaining %v", limit, left, p.Continue, p.Remaining)
				}
				if p.Continue == "" {
					break
				}
				if int64(p.Count) != limit {
					t.Fatalf("limit %d: %d records in a page", limit, p.Count)
				}
				// Later changes are in no page of this list.
				s.create(fmt.Sprintf("n0/later-%d-%d", limit, len(got)))
				s.remove(fmt.Sprintf("n0/later-%d-%d", limit, len(got)))
				opts.Continue = p.Continue
			}
			if strings.Join(got, " ") != strings.Join(all, " ") {
				t.Fatalf("limit %d: %q, want %q", limit, got, all)
			}
			revision = s.revision()
		}
	}},
	{name: "the limit changes", run: func(t *testing.T, s *objects) {
		for i := range 6 {
			s.create(fmt.Sprint("a/", i))
		}
		p := s.list(storage.ListOptions{Limit: 1})
		p = s.list(storage.ListOptions{Limit: 2, Continue: p.Continue})
		if names(p) != "a/1 a/2" {
			t.Errorf("the second page is %q", names(p))
		}
		p = s.list(storage.ListOptions{Continue: p.Continue})
		if names(p) != "a/3 a/4 a/5" || p.Continue != "" {
			t.Errorf("the last page is %q, continue %q", names(p), p.Continue)
		}
	}},
	{name: "of a namespace", run: func(t *testing.T, s *objects) {
		for _, key := range []string{"a/1", "a/2", "a/3", "b/1", "b/2"} {
			s.create(key)
		}
		in := storage.Selection{Namespace: "a"}
		p := s.list(storage.ListOptions{Selection: in, Limit: 2})
		if names(p) != "a/1 a/2" || p.Remaining == nil || *p.Remaining != 1 {
			t.Errorf("the first page is %q, remaining %v", names(p), p.Remaining)
		}
		p = s.list(storage.ListOptions{Selection: in, Limit: 2, Continue: p.Continue})
		if names(p) != "a/3" || p.Continue != "" {
			t.Errorf("the second page is %q, continue %q", names(p), p.Continue)
		}
	}},
	{name: "filled with what matches", run: func(t *testing.T, s *objects) {
		for i := range 60 {
			label := "match=no"
			if i%10 == 9 {
				label = "match=yes"
			}
			s.create(fmt.Sprintf("a/%02d", i), label)
		}
		revision := s.revision()
		opts := storage.ListOptions{Selection: byLabel("match=yes"), Limit: 4}
		p := s.list(opts)
		if names(p) != "a/09 a/19 a/29 a/39" || p.Continue == "" || p.Remaining != nil {
			t.Errorf("the first page is %q, continue %q, remaining %v", names(p), p.Continue, p.Remaining)
		}
		s.remove("a/49")
		opts.Continue = p.Continue
		p = s.list(opts)
		if names(p) != "a/49 a/59" || p.Continue != "" || p.Revision != revision {
			t.Errorf("the second page is %q at %d, continue %q; want it at %d", names(p), p.Revision, p.Continue, revision)
		}
	}},
	{name: "at an exact revision", run: func(t *testing.T, s *objects) {
		for i := range 4 {
			s.create(fmt.Sprint("a/", i))
		}
		at := s.revision()
		s.remove("a/1")
		s.remove("a/3")
		p := s.list(storage.ListOptions{At: storage.Read{Match: storage.Exact, Revision: at}, Limit: 3})
		if names(p) != "a/0 a/1 a/2" || p.Revision != at || p.Remaining == nil || *p.Remaining != 1 {
			t.Errorf("the first page is %q at %d, remaining %v", names(p), p.Revision, p.Remaining)
		}
		p = s.list(storage.ListOptions{Continue: p.Continue})
		if names(p) != "a/3" || p.Revision != at {
			t.Errorf("the second page is %q at %d", names(p), p.Revision)
		}
	}},
	{name: "bad tokens", run: func(t *testing.T, s *objects) {
		s.create("a/1")
		tokens := []string{"garbage", "!", "="}
		for _, json := range []string{
			`{}`, `null`, `[]`, `{"v":1}`,
			`{"v":"meta.k8s.io/v1","rv":0,"start":"a/1\u0000"}`,
			`{"v":"meta.k8s.io/v1","rv":-2,"start":"a/1\u0000"}`,
			`{"v":"meta.k8s.io/v1","rv":1,"start":""}`,
			`{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}`,
			`{"v":"meta.k8s.io/v1","rv":1,"start":"a/../../secrets/a"}`,
			`{"v":"meta.k8s.io/v1","rv":1,"start":"a//1"}`,
			`{"v":"meta.k8s.io/v2","rv":1,"start":"a/1\u0000"}`,
		} {
			tokens = append(tokens, base64.RawURLEncoding.EncodeToString([]byte(json)))
		}
		for _, token := range tokens {
			_, err := s.List(s.ctx, storage.ListOptions{Limit: 1, Continue: token})
			if !errors.Is(err, storage.ErrBadContinue) || !strings.HasPrefix(err.Error(), "continue key is not valid") {
				t.Errorf("%s: %v, want ErrBadContinue", token, err)
			}
		}
	}},
	{name: "an expired token goes on at the latest state", run: func(t *testing.T, s *objects) {
		for i := range 5 {
			s.create(fmt.Sprint("a/", i))
		}
		p := s.list(storage.ListOptions{Limit: 2})
		s.remove("a/3")
		s.create("a/6")
		s.compact()
		rest, err := s.List(s.ctx, storage.ListOptions{Limit: 2, Continue: p.Continue})
		if err == nil { // a cache still has it: then it must be unchanged
			if names(rest) != "a/2 a/3" || rest.Revision != p.Revision || rest.Remaining == nil || *rest.Remaining != 1 {
				t.Errorf("the page is %q at %d, remaining %v", names(rest), rest.Revision, rest.Remaining)
			}
			return
		}
		e := wantExpired(t, err, p.Revision)
		if e.Continue == "" {
			t.Fatal("the error has no token")
		}
		p = s.list(storage.ListOptions{Limit: 2, Continue: e.Continue})
		if names(p) != "a/2 a/4" || p.Revision != s.revision() || p.Remaining == nil || *p.Remaining != 1 {
			t.Errorf("the page is %q at %d, remaining %v", names(p), p.Revision, p.Remaining)
		}
		p = s.list(storage.ListOptions{Limit: 2, Continue: p.Continue})
		if names(p) != "a/6" || p.Continue != "" {
			t.Errorf("the last page is %q, continue %q", names(p), p.Continue)
		}
	}},
}
