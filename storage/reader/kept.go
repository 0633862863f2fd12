package reader

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
)

// keptParts is the number of parts, each with its own lock, among which the keys are divided.
const keptParts = 8

// keptOverhead is about the number of bytes that a kept object takes besides itself.
const keptOverhead = 256

// kept has decoded objects: for each key the state that was added last. It is bounded by bytes. Objects that were not read
// for about the longest time are removed to make room. A nil kept keeps nothing.
type kept struct {
	most  int64
	bytes atomic.Int64
	seed  maphash.Seed
	parts [keptParts]keptPart
}

type keptPart struct {
	mu    sync.RWMutex // guards all below
	byKey map[string]*decoded
	clock []*decoded // all of byKey, in no order
	hand  int        // where the next search for objects to remove begins
}

// decoded is one object. Its fields are immutable, except for read and slot.
type decoded struct {
	record storage.Record
	obj    runtime.Object
	bytes  int64
	read   atomic.Bool // read since the hand passed last
	slot   int         // index in the clock
}

func newKept(most int64) *kept {
	if most < 0 {
		return nil
	}
	return &kept{most: most, seed: maphash.MakeSeed()}
}

func (k *kept) part(key string) *keptPart {
	return &k.parts[maphash.String(k.seed, key)%keptParts]
}

// of reports whether d was decoded from a record. It compares the bodies, too, because a store that was set back may have
// another record of the same revision.
func (d *decoded) of(record storage.Record) bool {
	return d.record.Revision == record.Revision && d.record.Body.Is(record.Body)
}

// get returns the object of a record; nil if it is not kept.
func (k *kept) get(record storage.Record) runtime.Object {
	if k == nil {
		return nil
	}
	p := k.part(record.Key)
	p.mu.RLock()
	d := p.byKey[record.Key]
	p.mu.RUnlock()
	if d == nil || !d.of(record) {
		return nil
	}
	if !d.read.Load() {
		d.read.Store(true)
	}
	return d.obj
}

// put adds the object of a record. It returns the object to be used, which is another one if one was added for the same state
// before.
func (k *kept) put(record storage.Record, obj runtime.Object) runtime.Object {
	if k == nil || record.Revision == 0 {
		return obj
	}
	d := &decoded{record: record, obj: obj, bytes: int64(record.Body.Size()) + keptOverhead}
	p := k.part(record.Key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byKey[record.Key]; old != nil {
		if old.of(record) {
			return old.obj
		}
		k.remove(p, old)
	}
	if p.byKey == nil {
		p.byKey = map[string]*decoded{}
	}
	d.slot = len(p.clock)
	p.byKey[record.Key], p.clock = d, append(p.clock, d)
	k.bytes.Add(d.bytes)
	k.makeRoom(p)
	return obj
}

// drop removes the object of a key that was deleted at a revision.
func (k *kept) drop(key string, revision int64) {
	if k == nil {
		return
	}
	p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.byKey[key]; old != nil && old.record.Revision < revision {
		k.remove(p, old)
	}
}

// remove removes d. The caller holds the lock of p.
func (k *kept) remove(p *keptPart, d *decoded) {
	last := len(p.clock) - 1
	p.clock[d.slot] = p.clock[last]
	p.clock[d.slot].slot = d.slot
	p.clock[last] = nil
	p.clock = p.clock[:last]
	delete(p.byKey, d.record.Key)
	k.bytes.Add(-d.bytes)
}

// makeRoom removes objects of p until all parts together are within the bound, or p is empty. An object that was read since
// the last search stays for another round. The caller holds the lock of p.
func (k *kept) makeRoom(p *keptPart) {
	for k.bytes.Load() > k.most && len(p.clock) > 0 {
		if p.hand >= len(p.clock) {
			p.hand = 0
		}
		if d := p.clock[p.hand]; !d.read.Swap(false) {
			k.remove(p, d)
			continue
		}
		p.hand++
	}
}
