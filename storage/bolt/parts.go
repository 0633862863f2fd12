package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// maxInline is the maximum size of a value that is stored in its entry of the log.
	maxInline = 16 << 10
	// partBytes is the size of the parts of a larger value. bbolt stores two of them in four neighbouring pages of 4 KiB.
	// Holes of that size are always found again. Holes of the size of a large value would soon be partly filled by small
	// values, so that the file would grow.
	partBytes = 8128
	// splitFlag, in an entry, means that the value is stored in parts.
	splitFlag = 2
)

// partKey returns the key of the nth part of a revision's value.
func partKey(revision int64, n int) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 12), uint64(revision))
	return binary.BigEndian.AppendUint32(k, uint32(n))
}

// parts returns the number of parts in which an entry's value is stored.
func (e entry) parts() int {
	if !e.split {
		return 0
	}
	return int((e.size + partBytes - 1) / partBytes)
}

// valueSize returns the size of the value, wherever it is stored.
func (e entry) valueSize() int64 {
	if e.split {
		return e.size
	}
	return int64(len(e.value))
}

// putEntry writes the change of a revision. e.value must not change before the transaction ends.
func (t txn) putEntry(revision int64, e entry) error {
	if len(e.value) > maxInline {
		e.split, e.size, e.sum = true, int64(len(e.value)), crc32.Checksum(e.value, castagnoli)
		for n := range e.parts() {
			end := min((n+1)*partBytes, len(e.value))
			if err := t.parts.Put(partKey(revision, n), e.value[n*partBytes:end:end]); err != nil {
				return err
			}
		}
		e.value = nil
	}
	return t.log.Put(revisionKey(revision), e.encode(revision))
}

// value returns a copy of the value of an entry. A damaged value is an error.
func (t txn) value(revision int64, e entry) ([]byte, error) {
	if !e.split {
		return append([]byte{}, e.value...), nil
	}
	value := make([]byte, 0, min(e.size, 4<<20)) // e.size may be damaged: allocate more only for parts that exist
	for n := range e.parts() {
		part := t.parts.Get(partKey(revision, n))
		if want := min(e.size-int64(len(value)), partBytes); int64(len(part)) != want {
			return nil, fmt.Errorf("%w: part %d of the value of revision %d has %d bytes, want %d", errDamaged, n, revision, len(part), want)
		}
		value = append(value, part...)
	}
	if crc32.Checksum(value, castagnoli) != e.sum {
		return nil, fmt.Errorf("%w: the checksum of the value of revision %d is wrong", errDamaged, revision)
	}
	return value, nil
}

// kvAt returns a copy of key's value at a revision, which must exist.
func (t txn) kvAt(key string, revision int64) (storage.KV, error) {
	e, err := t.change(revision)
	if err != nil {
		return storage.KV{}, err
	}
	return t.kv(key, revision, e)
}

// kv returns a copy of the value of an entry.
func (t txn) kv(key string, revision int64, e entry) (storage.KV, error) {
	value, err := t.value(revision, e)
	if err != nil {
		return storage.KV{}, err
	}
	return storage.KV{Key: key, Value: value, Revision: revision, Expiring: e.expires != 0}, nil
}

// dropEntry removes the change of a revision, with its value.
func (t txn) dropEntry(revision int64) error {
	k := revisionKey(revision)
	if v := t.log.Get(k); len(v) > 0 && v[0]&splitFlag != 0 {
		e, err := decodeEntry(revision, v)
		if err != nil {
			return err
		}
		for n := range e.parts() {
			if err := t.parts.Delete(partKey(revision, n)); err != nil {
				return err
			}
		}
	}
	return t.log.Delete(k)
}
