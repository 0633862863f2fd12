package etcd_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// watching makes a member whose watches show one change each, of the revision after their start, and then break. The start
// revisions are sent to the channel.
func watching() (*member, <-chan int64) {
	starts := make(chan int64, 100)
	m := &member{}
	m.watched = func(r *pb.WatchCreateRequest, s pb.Watch_WatchServer) error {
		starts <- r.StartRevision
		if err := s.Send(&pb.WatchResponse{Header: m.header(), Created: true}); err != nil {
			return err
		}
		var events []*mvccpb.Event
		for revision := r.StartRevision; revision <= r.StartRevision+1; revision++ {
			events = append(events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: revision, CreateRevision: revision}})
		}
		if err := s.Send(&pb.WatchResponse{Header: m.header(), Events: events}); err != nil {
			return err
		}
		return rpctypes.ErrGRPCLeaderChanged
	}
	return m, starts
}

// etcd shows changes from the revision at which it was compacted, and some releases lose deletions at it. So a watch that
// begins at the last revision that its reader has is refused then; at the head no change can be lost.
func TestWatchesBeginWithWhatTheReaderHas(t *testing.T) {
	m, starts := watching()
	b := opened(t, m, etcd.Options{}) // at revision 7
	for from, want := range map[int64]int64{0: 1, 1: 1, 5: 5, 7: 8, 8: 8, math.MaxInt64: math.MaxInt64} {
		f, err := b.Watch(t.Context(), storage.WatchRange{From: from})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-starts; got != want {
			t.Errorf("a watch from %d begins with %d, want %d", from, got, want)
		}
		f.Close()
	}
}

func TestWatchesGoOnWithWhatTheReaderHas(t *testing.T) {
	m, starts := watching()
	b := opened(t, m, etcd.Options{})
	f, err := b.Watch(t.Context(), storage.WatchRange{From: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got, begun []int64
	for range 3 {
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range c.Changes {
			got = append(got, c.Revision)
		}
		begun = append(begun, <-starts)
	}
	if want := []int64{4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("changes of the revisions %v, want %v", got, want)
	}
	if want := []int64{3, 4, 5}; !slices.Equal(begun, want) {
		t.Errorf("the streams began with %v, want %v", begun, want)
	}
}

// A feed that ends with an error of etcd returns it from every Next.
func TestFeedsSayWhyTheyEnd(t *testing.T) {
	m := &member{}
	m.watched = func(_ *pb.WatchCreateRequest, s pb.Watch_WatchServer) error {
		return s.Send(&pb.WatchResponse{Header: m.header(), Created: true, Canceled: true, CompactRevision: 6})
	}
	b := opened(t, m, etcd.Options{})
	for range 200 {
		f, err := b.Watch(t.Context(), storage.WatchRange{From: 3})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			var expired *storage.ExpiredError
			if _, err := f.Next(t.Context()); !errors.As(err, &expired) || expired.Revision != 3 || expired.Oldest != 6 {
				t.Fatalf("%v, want an ExpiredError for 3 with 6", err)
			}
		}
	}
}
