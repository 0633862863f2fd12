package cacher

import (
	"hash/maphash"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
)

// commons keeps once the parts that the bodies of many entries have in common. It has parts that at least two records with
// different keys had, and that an entry in the state or the log has. Parts that only the states of one object have in common,
// such as the addresses in the managedFields of a Pod, would take memory of their own and save nothing. The zero value is
// empty.
type commons struct {
	byParts map[string]*common
	seen    [seenParts]sighting // of the last records, at the hash of the parts
	seed    maphash.Seed
	parts   []byte // parts of the last record
}

const seenParts = 1024

// sighting identifies the parts and the key of a record by the rest of their hashes.
type sighting struct{ parts, key uint32 }

// common is the parts that entries share.
type common struct {
	*codec.Common
	uses int
}

// share returns a record's body without the shared parts, or unchanged if sharing saves nothing.
func (c *commons) share(r storage.Record) codec.Document {
	if r.Held {
		return r.Body
	}
	if c.parts = r.Body.AppendParts(c.parts[:0]); len(c.parts) == 0 {
		return r.Body
	}
	shared := c.byParts[string(c.parts)]
	if shared == nil {
		if !c.again(r.Key) {
			return r.Body
		}
		shared = &common{Common: codec.NewCommon(c.parts)}
		c.byParts[shared.Parts()] = shared
	}
	shared.uses++
	return r.Body.Share(shared.Common)
}

// again reports whether the parts were seen lately with another key, and records them.
func (c *commons) again(key string) bool {
	if c.byParts == nil {
		c.byParts, c.seed = map[string]*common{}, maphash.MakeSeed()
	}
	hash := maphash.Bytes(c.seed, c.parts)
	last := &c.seen[hash%seenParts]
	was, now := *last, sighting{uint32(hash >> 32), uint32(maphash.String(c.seed, key) >> 32)}
	*last = now
	return was.parts == now.parts && was.key != now.key
}

// release is called when an entry with this body has left the state and the log.
func (c *commons) release(d codec.Document) {
	if d.Common() == nil {
		return
	}
	shared := c.byParts[d.Common().Parts()]
	if shared == nil || shared.Common != d.Common() {
		return // the record had it already, from a cache below
	}
	if shared.uses--; shared.uses == 0 {
		delete(c.byParts, shared.Parts())
	}
}
