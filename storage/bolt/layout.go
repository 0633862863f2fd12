package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// The names in the file. See the package comment for what is under them.
const (
	metaBucket  = "meta"
	logBucket   = "log"
	indexBucket = "index"

	formatKey  = "format"
	versionKey = "version"
	stateKey   = "state"

	formatName    = "keelson/bolt"
	formatVersion = 1

	deletedFlag = 1

	// firstRevision is the revision of a new, empty file: 0 means "the latest" in a read.
	firstRevision = 1
)

// errDamaged is wrapped by errors about content that this package never writes.
var errDamaged = errors.New("the file is damaged")

// state is what meta keeps: the counters of the whole file.
type state struct {
	revision      int64 // of the last commit
	compacted     int64 // reads and watches below it are refused
	scrubbed      int64 // what compaction had to remove up to here has been removed; at most compacted
	scrubbedTotal int64 // total as of scrubbed
	total         int64 // sizes of all changes ever written
	clean         int64 // 1 after Close: the free pages are listed in the file
}

func (s state) encode() []byte {
	var b []byte
	for _, n := range []int64{s.revision, s.compacted, s.scrubbed, s.scrubbedTotal, s.total, s.clean} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func decodeState(b []byte) (state, error) {
	var s state
	fields := []*int64{&s.revision, &s.compacted, &s.scrubbed, &s.scrubbedTotal, &s.total, &s.clean}
	if len(b) != 8*len(fields) {
		return s, fmt.Errorf("%w: state of %d bytes", errDamaged, len(b))
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
	key     []byte
	value   []byte
}

func encodeEntry(deleted bool, prev, total int64, key string, value []byte) []byte {
	b := make([]byte, 0, 17+binary.MaxVarintLen32+len(key)+len(value))
	b = append(b, flags(deleted))
	b = binary.BigEndian.AppendUint64(b, uint64(prev))
	b = binary.BigEndian.AppendUint64(b, uint64(total))
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	return append(b, value...)
}

func decodeEntry(b []byte) (entry, error) {
	if len(b) < 18 {
		return entry{}, fmt.Errorf("%w: change of %d bytes", errDamaged, len(b))
	}
	e := entry{
		deleted: b[0]&deletedFlag != 0,
		prev:    int64(binary.BigEndian.Uint64(b[1:])),
		total:   int64(binary.BigEndian.Uint64(b[9:])),
	}
	n, size := binary.Uvarint(b[17:])
	rest := b[17:]
	if size <= 0 || n > uint64(len(rest)-size) {
		return entry{}, fmt.Errorf("%w: change with a key of %d bytes", errDamaged, n)
	}
	rest = rest[size:]
	e.key, e.value = rest[:n], rest[n:]
	return e, nil
}

func flags(deleted bool) byte {
	if deleted {
		return deletedFlag
	}
	return 0
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

// checkKey refuses what the layout cannot hold.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("bolt: the key is empty")
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("bolt: key %q contains a NUL byte", key)
	case len(key)+9 > bbolt.MaxKeySize:
		return fmt.Errorf("bolt: key of %d bytes is too long (at most %d)", len(key), bbolt.MaxKeySize-9)
	}
	return nil
}

// txn is a bbolt transaction seen through the layout. Slices it returns are valid until the transaction ends.
type txn struct {
	meta, log, index *bbolt.Bucket
}

func newTxn(tx *bbolt.Tx) (txn, error) {
	t := txn{
		meta:  tx.Bucket([]byte(metaBucket)),
		log:   tx.Bucket([]byte(logBucket)),
		index: tx.Bucket([]byte(indexBucket)),
	}
	if t.meta == nil || t.log == nil || t.index == nil {
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
		return decodeEntry(v)
	}
	return entry{}, fmt.Errorf("%w: the change of revision %d is missing", errDamaged, revision)
}

// version finds the newest version of key not newer than at. It returns 0 if there is none.
func (t txn) version(key string, at int64) (revision int64, deleted bool, err error) {
	seek := indexKey(make([]byte, 0, 128), key, at)
	k, v := t.index.Cursor().Seek(seek)
	if len(k) != len(seek) || string(k[:len(key)+1]) != string(seek[:len(key)+1]) {
		return 0, false, nil
	}
	_, revision, err = splitIndexKey(k)
	if err != nil || len(v) != 1 {
		return 0, false, errors.Join(err, fmt.Errorf("%w: version of key %q", errDamaged, key))
	}
	return revision, v[0]&deletedFlag != 0, nil
}

// put writes one version of a key.
func (t txn) put(revision int64, e entry) error {
	key := string(e.key)
	if err := t.index.Put(indexKey(nil, key, revision), []byte{flags(e.deleted)}); err != nil {
		return err
	}
	return t.log.Put(revisionKey(revision), encodeEntry(e.deleted, e.prev, e.total, key, e.value))
}

// drop removes one version of a key.
func (t txn) drop(key []byte, revision int64) error {
	if err := t.index.Delete(indexKey(nil, key, revision)); err != nil {
		return err
	}
	return t.log.Delete(revisionKey(revision))
}
