package storage

import (
	"bytes"
	"testing"

	"github.com/keelson-dev/keelson/runtime/codec"
)

func TestKnownRevisionsAreBounded(t *testing.T) {
	var k knownRevisions
	if k.has(1) {
		t.Error("the empty set has a revision")
	}
	for _, r := range []int64{1, 63, 64, 1023, 1024, 1 << 40} {
		k.add(r)
	}
	for r, want := range map[int64]bool{0: false, 1: true, 2: false, 63: true, 64: true, 65: false, 1023: true, 1024: true, 1025: false, 1 << 40: true} {
		if k.has(r) != want {
			t.Errorf("has(%d) is %v", r, !want)
		}
	}
	for i := range int64(maxRevisionBlocks + 100) {
		r := i * revisionsPerBlock
		if k.add(r); !k.has(r) {
			t.Fatalf("revision %d was forgotten at once", r)
		}
	}
	if len(k.blocks) > maxRevisionBlocks {
		t.Errorf("%d blocks", len(k.blocks))
	}
}

// The record of a canonical value has the bytes that the backend keeps, and not a second copy of them.
func TestRecordSharesStoredBytes(t *testing.T) {
	value := []byte(`{"kind":"K","apiVersion":"v1","metadata":{"name":"a"}}` + "\n")
	for name, c := range map[string]struct {
		stale  bool
		shared bool
	}{"canonical": {false, true}, "stale": {true, false}} {
		s := &Store{root: "/", opts: StoreOptions{Codec: copyingCodec{stale: c.stale}}}
		for _, when := range []string{"at first", "known"} {
			r, err := s.record(KV{Key: "/a", Value: value, Revision: 7})
			if err != nil {
				t.Fatal(err)
			}
			if got := &r.Body.Bytes()[0] == &value[0]; got != c.shared {
				t.Errorf("%s, %s: shared is %t", name, when, got)
			}
			if r.Stale != c.stale || r.Fields.Get("metadata.name") != "a" || r.Fields.Has("metadata.namespace") {
				t.Errorf("%s, %s: the record is %+v", name, when, r)
			}
		}
	}
}

// copyingCodec makes documents with bytes of their own.
type copyingCodec struct {
	Codec
	stale bool
}

func (c copyingCodec) Entry(value []byte) (codec.Document, bool, error) {
	d, err := codec.ParseDocument(bytes.Clone(value))
	return d, c.stale, err
}
