package etcd

import (
	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// joiner makes the changes of a feed from the responses of one watch stream. etcd may cut a large response into fragments at
// any place, even between the changes of one revision (of another client's transaction). Such changes are held back until
// they are complete.
type joiner struct {
	layout layout
	prev   bool  // previous values are wanted
	after  int64 // only changes with a greater revision are delivered
	held   []storage.Change
}

// add takes a response, with events or without (a progress mark). It returns the changes that can be delivered, which are
// those of whole revisions, and the revision up to which everything has been delivered. Progress 0 means that there is
// nothing to deliver.
//
// The header of a response with events does not show progress: etcd may have older changes that it has not sent. ErrCompacted
// means that history was lost.
func (j *joiner) add(res *pb.WatchResponse) (storage.Changes, error) {
	if len(res.Events) == 0 {
		if res.Fragment || len(j.held) > 0 || res.Header.GetRevision() < j.after {
			return storage.Changes{}, nil
		}
		j.after = res.Header.Revision
		return storage.Changes{Progress: j.after}, nil
	}
	last := res.Events[len(res.Events)-1].Kv.ModRevision
	ready := last
	if res.Fragment {
		ready = last - 1
	}
	out := storage.Changes{Changes: make([]storage.Change, 0, len(j.held)+len(res.Events))}
	rest := j.held[:0:0]
	for _, c := range j.held {
		if c.Revision <= ready {
			out.Changes = append(out.Changes, c)
		} else {
			rest = append(rest, c)
		}
	}
	for _, e := range res.Events {
		if e.Kv.ModRevision <= j.after || hides(e.Kv.Key) {
			continue
		}
		if j.prev && e.PrevKv == nil && !created(e) {
			return storage.Changes{}, storage.ErrCompacted // the previous value was compacted, and so was the state before
		}
		if c := j.change(e); c.Revision <= ready {
			out.Changes = append(out.Changes, c)
		} else {
			rest = append(rest, c)
		}
	}
	j.held = rest
	if ready <= j.after {
		return storage.Changes{}, nil
	}
	j.after, out.Progress = ready, ready
	return out, nil
}

func created(e *mvccpb.Event) bool {
	return e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision
}

func (j *joiner) change(e *mvccpb.Event) storage.Change {
	c := storage.Change{Key: j.layout.name(e.Kv.Key), Revision: e.Kv.ModRevision}
	if e.Type == mvccpb.Event_DELETE {
		c.Deleted = true
	} else {
		c.Value, c.Expiring = value(e.Kv), e.Kv.Lease != 0
	}
	if j.prev && e.PrevKv != nil {
		prev := kv(c.Key, e.PrevKv)
		c.Prev = &prev
	}
	return c
}
