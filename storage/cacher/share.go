package cacher

import (
	"hash/maphash"

	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
)

// commons keeps once what the bodies of many entries have in common. It has what at least two records had, of different
// keys, and what an entry in the state or the log has: what only the states of one object have in common, such as the
// addresses in the managedFields of a Pod, would take a place of its own and save nothing. The zero value is empty.
type commons struct {
	byParts map[string]*common
	seen    [seenParts]sighting // of those that came last, at the hash of the parts
	seed    maphash.Seed
	parts   []byte // of the last record
}

const seenParts = 1024

// sighting says which parts a record had, and which record: the rest of the hash of each.
type sighting struct{ parts, key uint32 }

// common is what entries share.
type common struct {
	*codec.Common
	uses int
}

// share returns a record's body without what others have, too; as it is where that saves nothing.
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

// again reports whether the parts were seen before, not too long ago and of another key, and notes that they were.
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

// release says that an entry with a body has left the state and the log.
func (c *commons) release(d codec.Document) {
	if d.Common() == nil {
		return
	}
	shared := c.byParts[d.Common().Parts()]
	if shared == nil || shared.Common != d.Common() {
		return // it came so, from a cache below
	}
	if shared.uses--; shared.uses == 0 {
		delete(c.byParts, shared.Parts())
	}
}
