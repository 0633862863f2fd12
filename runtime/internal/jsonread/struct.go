package jsonread

import "reflect"

// read is the readFunc of the table.
func (t *table) read(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	if !r.open('{') {
		return false
	}
	var seen [mostFields / 64]uint64
	next := 0
	for first := true; ; first = false {
		if more, ok := r.next('}', first); !more {
			return ok
		}
		name, ok := r.name()
		if !ok {
			return false
		}
		i := t.find(name, next)
		if i < 0 || seen[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		seen[i/64] |= 1 << (i % 64)
		next = i + 1
		f := &t.fields[i]
		to := v
		for _, index := range f.at {
			to = to.Field(index)
		}
		if !f.read(r, to) {
			return false
		}
	}
}

// find returns the index of the field with a name, or -1. The members of most texts are in the order of the struct, so the field
// at next is compared first.
func (t *table) find(name []byte, next int) int {
	if next < len(t.fields) && t.fields[next].name == string(name) {
		return next
	}
	if i, ok := t.byName[string(name)]; ok {
		return i
	}
	return -1
}
