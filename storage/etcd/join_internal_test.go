package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// response makes a response from words: key@revision is a put, -key@revision a deletion. "..." at the end means that more
// fragments follow; "#revision" alone is a progress notification.
func response(words string) *pb.WatchResponse {
	res := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 1000}}
	for _, w := range strings.Fields(words) {
		var revision int64
		if w == "..." {
			res.Fragment = true
			continue
		}
		if _, err := fmt.Sscanf(w, "#%d", &revision); err == nil {
			res.Header.Revision = revision
			continue
		}
		key, number, _ := strings.Cut(w, "@")
		if _, err := fmt.Sscan(number, &revision); err != nil {
			panic(err)
		}
		e := &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("/x/" + key), ModRevision: revision, CreateRevision: revision}}
		if key[0] == '-' {
			e.Type, e.Kv.Key = mvccpb.Event_DELETE, []byte("/x/"+key[1:])
		}
		res.Events = append(res.Events, e)
	}
	return res
}

func changesText(c storage.Changes) string {
	s := ""
	for _, c := range c.Changes {
		if c.Deleted {
			s += "-"
		}
		s += fmt.Sprintf("%s@%d ", c.Key, c.Revision)
	}
	return s + fmt.Sprintf("#%d", c.Progress)
}

func TestJoin(t *testing.T) {
	for name, steps := range map[string][][2]string{
		"whole":                       {{"a@5 b@6", "a@5 b@6 #6"}, {"-a@7", "-a@7 #7"}},
		"a revision of several":       {{"a@5 b@5 c@5", "a@5 b@5 c@5 #5"}},
		"fragments":                   {{"a@5 b@6 ...", "a@5 #5"}, {"c@7 ...", "b@6 #6"}, {"d@8", "c@7 d@8 #8"}},
		"cut within a revision":       {{"a@5 b@6 ...", "a@5 #5"}, {"c@6 d@6 ...", "#0"}, {"e@6 f@7 ...", "b@6 c@6 d@6 e@6 #6"}, {"g@7", "f@7 g@7 #7"}},
		"one revision in fragments":   {{"a@5 ...", "#4"}, {"b@5 ...", "#0"}, {"c@5", "a@5 b@5 c@5 #5"}},
		"progress":                    {{"#4", "#4"}, {"a@5", "a@5 #5"}, {"#5", "#5"}, {"#9", "#9"}, {"#8", "#0"}},
		"no progress within":          {{"a@5 ...", "#4"}, {"#9", "#0"}, {"b@5", "a@5 b@5 #5"}},
		"nothing twice":               {{"a@5", "a@5 #5"}, {"a@5 b@6", "b@6 #6"}, {"a@5", "#0"}},
		"nothing at or before a mark": {{"#6", "#6"}, {"a@6 b@7", "b@7 #7"}},
	} {
		j := &joiner{layout: newLayout("/x/"), after: 3}
		for i, step := range steps {
			out, err := j.add(response(step[0]))
			if err != nil || changesText(out) != step[1] {
				t.Errorf("%s: response %d, %q, gave %q, %v; want %q", name, i, step[0], changesText(out), err, step[1])
			}
		}
	}
}

func TestJoinHidesKeys(t *testing.T) {
	j := &joiner{layout: newLayout("")}
	res := response("a@5 b@6")
	res.Events[1].Kv.Key = []byte(compactKey)
	out, err := j.add(res)
	if err != nil || changesText(out) != "/x/a@5 #6" {
		t.Errorf("%q, %v", changesText(out), err)
	}
}

func TestJoinPreviousValues(t *testing.T) {
	j := &joiner{layout: newLayout("/x/"), prev: true}
	res := response("a@5 -a@6")
	res.Events[1].PrevKv = &mvccpb.KeyValue{Key: []byte("/x/a"), ModRevision: 5, Value: []byte("v"), Lease: 3}
	out, err := j.add(res)
	if err != nil || out.Changes[0].Prev != nil || out.Changes[1].Prev == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if p := out.Changes[1].Prev; p.Key != "a" || p.Revision != 5 || string(p.Value) != "v" || !p.Expiring {
		t.Errorf("the previous value is %+v", p)
	}
	lost := response("-a@9")
	if _, err := j.add(lost); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a deletion without the previous value: %v, want ErrCompacted", err)
	}
	lost = response("a@9")
	lost.Events[0].Kv.CreateRevision = 8
	if _, err := (&joiner{layout: newLayout("/x/"), prev: true}).add(lost); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a change without the previous value: %v, want ErrCompacted", err)
	}
	if _, err := (&joiner{layout: newLayout("/x/")}).add(lost); err != nil {
		t.Errorf("a change whose previous value nobody asked for: %v", err)
	}
}

func TestJoinValues(t *testing.T) {
	j := &joiner{layout: newLayout("/x/")}
	res := response("a@5 -a@6")
	res.Events[0].Kv.Lease = 4
	out, err := j.add(res)
	if err != nil || out.Changes[0].Value == nil || !out.Changes[0].Expiring || out.Changes[1].Value != nil || !out.Changes[1].Deleted {
		t.Errorf("%+v, %v; want an empty value, and none for the deletion", out, err)
	}
}
