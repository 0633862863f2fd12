package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

// The names in the file. See the package comment for what is under them.
const (
	metaBucket   = "meta"
	logBucket    = "log"
	indexBucket  = "index"
	partsBucket  = "parts"
	expiryBucket = "expiry"

	formatKey     = "format"
	versionKey    = "version"
	stateKey      = "state"
	clockKey      = "clock"
	unfinishedKey = "unfinished"

	formatName      = "keelson/bolt"
	formatVersion   = 1
	expiringVersion = 2 // from the first TTL on

	deletedFlag  = 1
	expiringFlag = 4

	// firstRevision is the revision of a new, empty file: 0 means "the latest" in a read.
	firstRevision = 1
	// maxRevision is the greatest one a store may begin with: nobody counts from there to the end of an int64.
	maxRevision = 1 << 62
)

// errDamaged is wrapped by errors about content that this package never writes.
var errDamaged = errors.New("the file is damaged")

// castagnoli makes the checksums, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// state is what meta keeps: the counters of the whole file.
type state struct {
	revision      int64 // of the last commit
	compacted     int64 // reads and watches below it are refused
	scrubbed      int64 // what compaction had to remove up to here has been removed; at most compacted
	scrubbedTotal int64 // total as of scrubbed
	total         int64 // sizes of all changes ever written
	clean         int64 // 1 after Close: the free pages are listed in the file
	reserved      int64 // no revision above it, nor above revision, was ever shown
}

func (s *state) fields() []*int64 {
	return []*int64{&s.revision, &s.compacted, &s.scrubbed, &s.scrubbedTotal, &s.total, &s.clean, &s.reserved}
}

func (s state) encode() []byte {
	var b []byte
	for _, n := range s.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(*n))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeState(b []byte) (state, error) {
	var s state
	fields := s.fields()
	n := 8 * len(fields)
	switch {
	case len(b) != n+4:
		return s, fmt.Errorf("%w: state of %d bytes", errDamaged, len(b))
	case binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli):
		return s, fmt.Errorf("%w: the checksum of the state is wrong", errDamaged)
	}
	for i, f := range fields {
		*f = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	if s.revision < firstRevision || s.compacted < 0 || s.compacted > s.revision || s.scrubbed > s.compacted {
		return s, fmt.Errorf("%w: impossible state %+v", errDamaged, s)
	}
	return s, nil
}

// entry is one change in the log. Decoded from a file, its slices are valid within the transaction only.
type entry struct {
	deleted bool
	prev    int64
	total   int64
	expires int64 // the second since 1970 in which the value is to be deleted; 0: never
	key     []byte
	value   []byte // nil when it is split

	split bool   // the value is stored in parts:
	size  int64  // all of them
	sum   uint32 // the checksum of the value
}

// entryHeader is the size of what stands before the key's length: flags, prev, total and the checksum. In an entry that
// expires it is followed by expiresBytes, which say when.
const (
	entryHeader  = 1 + 8 + 8 + 4
	expiresBytes = 8
)

// splitBytes is the size of what stands in the place of a value that is split: its size and its checksum.
const splitBytes = 8 + 4

func (e entry) encode(revision int64) []byte {
	return e.append(make([]byte, 0, entryHeader+expiresBytes+binary.MaxVarintLen32+len(e.key)+max(len(e.value), splitBytes)), revision)
}

// append appends the encoded entry to buf.
func (e entry) append(buf []byte, revision int64) []byte {
	b, first := buf, flags(e.deleted, e.expires)
	if e.split {
		first |= splitFlag
	}
	b = append(b, first)
	b = binary.BigEndian.AppendUint64(b, uint64(e.prev))
	b = binary.BigEndian.AppendUint64(b, uint64(e.total))
	b = append(b, 0, 0, 0, 0)
	if e.expires != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.expires))
	}
	b = binary.AppendUvarint(b, uint64(len(e.key)))
	b = append(b, e.key...)
	b = append(b, e.value...)
	if e.split {
		b = binary.BigEndian.AppendUint64(b, uint64(e.size))
		b = binary.BigEndian.AppendUint32(b, e.sum)
	}
	encoded := b[len(buf):]
	binary.BigEndian.PutUint32(encoded[entryHeader-4:], checksum(revision, encoded))
	return b
}

// checksum is that of an encoded entry, the revision it stands under included.
func checksum(revision int64, b []byte) uint32 {
	var head [8 + entryHeader - 4]byte
	binary.BigEndian.PutUint64(head[:], uint64(revision))
	copy(head[8:], b)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, b[entryHeader:])
}

// decodeEntry decodes the change of a revision, and tells a damaged one.
func decodeEntry(revision int64, b []byte) (entry, error) {
	if len(b) <= entryHeader {
		return entry{}, fmt.Errorf("%w: the change of revision %d has %d bytes", errDamaged, revision, len(b))
	}
	if binary.BigEndian.Uint32(b[entryHeader-4:]) != checksum(revision, b) {
		return entry{}, fmt.Errorf("%w: the checksum of the change of revision %d is wrong", errDamaged, revision)
	}
	e := entry{
		deleted: b[0]&deletedFlag != 0,
		prev:    int64(binary.BigEndian.Uint64(b[1:])),
		total:   int64(binary.BigEndian.Uint64(b[9:])),
	}
	rest := b[entryHeader:]
	if b[0]&expiringFlag != 0 {
		if len(rest) > expiresBytes {
			e.expires, rest = int64(binary.BigEndian.Uint64(rest)), rest[expiresBytes:]
		}
		if e.expires <= 0 {
			return entry{}, fmt.Errorf("%w: the change of revision %d does not tell when it expires", errDamaged, revision)
		}
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return entry{}, fmt.Errorf("%w: the change of revision %d has a key of %d bytes", errDamaged, revision, n)
	}
	rest = rest[size:]
	e.key, rest = rest[:n], rest[n:]
	if b[0]&splitFlag == 0 {
		e.value = rest
		return e, nil
	}
	if len(rest) != splitBytes || int64(binary.BigEndian.Uint64(rest)) <= 0 {
		return entry{}, fmt.Errorf("%w: the change of revision %d does not tell the size of its value", errDamaged, revision)
	}
	e.split, e.size, e.sum = true, int64(binary.BigEndian.Uint64(rest)), binary.BigEndian.Uint32(rest[8:])
	return e, nil
}

// flags are those that index and log share.
func flags(deleted bool, expires int64) (f byte) {
	if deleted {
		f |= deletedFlag
	}
	if expires != 0 {
		f |= expiringFlag
	}
	return f
}

func revisionKey(revision int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(revision))
}

// indexKey appends to buf the place of key's version at revision: Seek with it finds that version or the newest
// one before it, and else goes on to another key.
func indexKey[K string | []byte](buf []byte, key K, revision int64) []byte {
	buf = append(buf, key...)
	buf = append(buf, 0)
	return binary.BigEndian.AppendUint64(buf, ^uint64(revision))
}

// splitIndexKey undoes indexKey.
func splitIndexKey(k []byte) (key []byte, revision int64, err error) {
	n := len(k) - 9
	if n < 1 || k[n] != 0 {
		return nil, 0, fmt.Errorf("%w: index key %q", errDamaged, k)
	}
	return k[:n], int64(^binary.BigEndian.Uint64(k[n+1:])), nil
}

// checkKey refuses keys that the layout cannot hold.
func checkKey(key string) error {
	if err := checkRead(key); err != nil {
		return err
	}
	if len(key)+9 > bbolt.MaxKeySize {
		return fmt.Errorf("%w: bolt: key of %d bytes is too long (at most %d)", storage.ErrBadKey, len(key), bbolt.MaxKeySize-9)
	}
	return nil
}

// checkRead refuses what is no key. There is nothing under a key that is too long.
func checkRead(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: bolt: the key is empty", storage.ErrBadKey)
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("%w: bolt: key %q contains a NUL byte", storage.ErrBadKey, key)
	}
	return nil
}

// txn is a bbolt transaction seen through the layout. Slices it returns are valid until the transaction ends.
type txn struct {
	tx                      *bbolt.Tx
	meta, log, index, parts *bbolt.Bucket
}

func newTxn(tx *bbolt.Tx) (txn, error) {
	t := txn{
		tx:    tx,
		meta:  tx.Bucket([]byte(metaBucket)),
		log:   tx.Bucket([]byte(logBucket)),
		index: tx.Bucket([]byte(indexBucket)),
		parts: tx.Bucket([]byte(partsBucket)),
	}
	if t.meta == nil || t.log == nil || t.index == nil || t.parts == nil {
		return txn{}, fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	return t, nil
}

func (t txn) state() (state, error) { return decodeState(t.meta.Get([]byte(stateKey))) }

func (t txn) setState(s state) error { return t.meta.Put([]byte(stateKey), s.encode()) }

// change returns the logged change of a revision that must be there.
func (t txn) change(revision int64) (entry, error) { return changeAt(t.log.Cursor(), revision) }

// changeAt does it with a cursor of the log that is used again and again.
func changeAt(c *bbolt.Cursor, revision int64) (entry, error) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(revision))
	if k, v := c.Seek(key[:]); bytes.Equal(k, key[:]) {
		return decodeEntry(revision, v)
	}
	return entry{}, fmt.Errorf("%w: the change of revision %d is missing", errDamaged, revision)
}
