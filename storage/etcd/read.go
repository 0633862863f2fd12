package etcd

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Get implements storage.Backend.
func (b *Backend) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if err := b.layout.check(key); err != nil {
		return storage.GetResult{}, b.refuse(err)
	}
	if at < 0 {
		return storage.GetResult{}, b.refuse(b.expired(storage.ErrCompacted, at))
	}
	res, err := b.read(ctx, "get", b.small, &pb.RangeRequest{Key: b.layout.key(key), Revision: at})
	if err != nil {
		return storage.GetResult{}, b.expired(err, at)
	}
	out := storage.GetResult{Revision: at}
	if at == 0 {
		out.Revision = res.Header.Revision
	}
	if len(res.Kvs) > 0 {
		out.KV, out.Found = kv(key, res.Kvs[0]), true
	}
	return out, nil
}

// Stat implements storage.Stater by a linearizable read without the value.
func (b *Backend) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if err := b.layout.check(key); err != nil {
		return storage.Stat{}, b.refuse(err)
	}
	res, err := b.read(ctx, "get", b.small, &pb.RangeRequest{Key: b.layout.key(key), KeysOnly: true})
	if err != nil {
		return storage.Stat{}, err
	}
	out := storage.Stat{At: res.Header.Revision}
	if len(res.Kvs) > 0 {
		out.Revision = res.Kvs[0].ModRevision
	}
	return out, nil
}

// kv returns a KV that takes over the value of a response, which has no other user.
func kv(key string, v *mvccpb.KeyValue) storage.KV {
	return storage.KV{Key: key, Value: value(v), Revision: v.ModRevision, Expiring: v.Lease != 0}
}

func value(v *mvccpb.KeyValue) []byte {
	if v.Value == nil {
		return []byte{}
	}
	return v.Value
}

// read sends a read until it succeeds or the time is over.
func (b *Backend) read(ctx context.Context, operation string, l *link, req *pb.RangeRequest) (res *pb.RangeResponse, err error) {
	timeout := b.opts.RequestTimeout
	if l == b.large {
		timeout = b.opts.RangeTimeout
	}
	return b.readWithin(ctx, operation, timeout, l, req)
}

// now reads the store's revision, and checks that the state at a revision (0: the latest) is retained. It reads no value.
func (b *Backend) now(ctx context.Context, at int64) (*pb.RangeResponse, error) {
	return b.read(ctx, "count", b.small, &pb.RangeRequest{Key: b.healthKey(), CountOnly: true, Revision: at})
}

// Range implements storage.Backend. A range without a limit is read in pages of some MiB, all at the revision of the first
// page.
func (b *Backend) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if r.At < 0 {
		return storage.RangeResult{}, b.refuse(b.expired(storage.ErrCompacted, r.At))
	}
	in, n := b.layout.intervals(r.From, r.To)
	if n == 0 {
		return b.nothing(ctx, r)
	}
	for {
		s := &scan{b: b, Range: r, at: r.At}
		err := s.run(ctx, in[:n])
		switch {
		case err == nil:
			s.res.Revision = s.at
			return s.res, nil
		case r.At == 0 && s.at != 0 && errors.Is(err, storage.ErrCompacted):
			continue // history was compacted while the pages were read: begin again at the latest revision
		}
		return storage.RangeResult{}, b.expired(err, r.At)
	}
}

// nothing returns the result for an empty interval, whose revision must still be right.
func (b *Backend) nothing(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	res, err := b.now(ctx, r.At)
	if err != nil {
		return storage.RangeResult{}, b.expired(err, r.At)
	}
	if r.At != 0 {
		return storage.RangeResult{Revision: r.At}, nil
	}
	return storage.RangeResult{Revision: res.Header.Revision}, nil
}

// scan is a Range in progress.
type scan struct {
	storage.Range
	b   *Backend
	at  int64 // revision of all pages; 0 before the first
	res storage.RangeResult
	// bytes is the total size of the values in res.
	bytes int64
	seen  sizing
}

func (s *scan) run(ctx context.Context, in []interval) error {
	for _, i := range in {
		if err := s.interval(ctx, i); err != nil {
			return err
		}
	}
	if s.seen.keys > 0 && s.Limit != 1 {
		s.b.sizes.learn(s.To, s.seen)
	}
	return nil
}

// interval reads one interval in pages, until its end or the limit is reached, and counts all of its keys.
func (s *scan) interval(ctx context.Context, in interval) error {
	if s.CountOnly || s.full() {
		_, err := s.page(ctx, "count", s.b.small, &pb.RangeRequest{Key: in.from, RangeEnd: in.to, CountOnly: true}, true)
		return err
	}
	operation, l := "range", s.b.large
	if s.Limit == 1 {
		l = s.b.small
	}
	for page, first := s.b.sizes.of(s.To).page(s.bytesLeft()), true; ; first = false {
		req := &pb.RangeRequest{Key: in.from, RangeEnd: in.to, Limit: page}
		if s.Limit > 0 {
			req.Limit = min(page, int64(s.Limit-len(s.res.KVs)))
		}
		res, err := s.page(ctx, operation, l, req, first)
		if err != nil {
			return err
		}
		if len(res.Kvs) == 0 {
			return nil
		}
		last := measured(res.Kvs, len(s.res.KVs))
		s.seen.size, s.seen.keys = max(s.seen.size, last.size), last.keys
		if !res.More || s.full() {
			return nil
		}
		page = last.page(s.bytesLeft())
		in.from = append(append(make([]byte, 0, 256), res.Kvs[len(res.Kvs)-1].Key...), 0)
	}
}

func (s *scan) full() bool { return s.Full(len(s.res.KVs), s.bytes) }

// bytesLeft returns about how many bytes the next page should have.
func (s *scan) bytesLeft() int64 {
	if s.Bytes > 0 {
		return min(s.Bytes-s.bytes, pageBytes)
	}
	return pageBytes
}

// page reads a page and adds its values to the result.
func (s *scan) page(ctx context.Context, operation string, l *link, req *pb.RangeRequest, first bool) (*pb.RangeResponse, error) {
	req.Revision = s.at
	res, err := s.b.read(ctx, operation, l, req)
	if err != nil {
		return nil, err
	}
	if s.at == 0 {
		s.at = res.Header.Revision
	}
	if first {
		s.res.Count += res.Count
		if want := s.res.Count; !req.CountOnly && s.res.KVs == nil {
			if s.Limit > 0 {
				want = min(want, int64(s.Limit))
			}
			if s.Bytes > 0 {
				want = min(want, max(req.Limit, int64(len(res.Kvs))))
			}
			s.res.KVs = make([]storage.KV, 0, want)
		}
	}
	for _, v := range res.Kvs {
		if s.full() {
			break // the page has more bytes than were wanted
		}
		s.res.KVs = append(s.res.KVs, kv(s.b.layout.name(v.Key), v))
		s.bytes += int64(len(v.Value))
	}
	return res, nil
}
