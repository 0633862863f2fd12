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

// The names in the file. The file is a bbolt database (go.etcd.io/bbolt) with four to seven buckets. Integers are 8 bytes,
// big endian. Checksums are CRC-32C, 4 bytes, big endian. Times are seconds since 1970. The size of a change is that of its
// key and its value.
//
//   - meta: "format" is the text keelson/bolt, "version" the integer 1, 2 or 3. "state" is seven integers and their checksum:
//     the revision, the revision compacted at, the revision up to which compaction has cleaned up, the sum of sizes up to
//     that revision, the sum of sizes of all changes ever written, 1 after a clean Close, and the revision up to which
//     revisions are reserved. "clock", if present, is the time of the last transaction with a key that expires, and its
//     checksum. "unfinished" is present while the store is being loaded.
//   - log: revision → one change. A change is: a byte of flags (1: a deletion, 2: the value is in parts, 4: it has a TTL);
//     the revision of the previous value (0: there was none); the sum of sizes up to this change; the checksum of the
//     revision and all of the change except the checksum; the time at which the value expires if it has a TTL; the length of
//     the key as uvarint, and the key; the value. A value in parts is replaced by its size and its checksum. The bucket has
//     every change after the compacted revision, and those before it whose value is still current.
//   - parts: revision, 4 bytes that count from 0 → 8128 bytes, or the rest, of a value larger than 16 KiB. So only few pages
//     must be neighbours, and holes in the file can be used again.
//   - index: key, a NUL byte, the complement of a revision → a byte of flags as in log. The versions of a key are neighbours,
//     the newest first. A reader at revision R seeks the first one not newer than R.
//   - expiry: the time at which a value expires, its revision → nothing, for all current values with a TTL. A file of format
//     version 1 has no such bucket, and no TTL.
//   - journal, while the file is open and written often: 8 random bytes and their checksum → two halves of 1 MiB, which begin
//     at the first multiple of 4096 in the file. They are written in place, in turn, in records that begin at multiples of
//     4096. A record is: the random bytes; the number of the record, its first revision, the clock; the number of changes and
//     the size of the rest (4 bytes each); the checksum of everything else in the record. Then follow for each change: the
//     time at which the previous value expires, the size of the rest in 4 bytes, and the change as in log with its whole
//     value. Changes that log already has are ignored, even if they are a part of a record. The records of a half are
//     overwritten when log has all their changes.
//   - reserve, except in a full file: zeros that are kept for a full disk, under the bytes 0 to 5 and, beside a journal,
//     under the text "reserve". A file without this bucket accepts no commit that makes it grow until the bucket exists
//     again.
//   - last: more zeros of that kind, under the bytes 0 and 1. They are removed only when the free pages of a full file are too
//     scattered for a single change.
//
// If the store was not closed cleanly and revisions are reserved above its own, its revision is the one after the reserved
// ones. A file has format version 1 until the first commit with a TTL. From then on it has version 2: releases that support
// only version 1 refuse it, because they would never delete the keys that expire. While it has a journal it has version 3,
// and after Close 1 or 2 again. So releases without the journal refuse a file that was not closed, or a snapshot, instead of
// losing what is in the journal. They can read it once this release has opened and closed it. Later releases will read all
// these versions; a file of a later version is refused.
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

	// firstRevision is the revision of a new, empty file. It is not 0, because 0 means "the latest" in a read.
	firstRevision = 1
	// maxRevision is the greatest revision that a store may begin with. No store can make enough commits to overflow an int64
	// from there.
	maxRevision = 1 << 62
)

// errDamaged is wrapped by errors about content that this package never writes.
var errDamaged = errors.New("the file is damaged")

// castagnoli is the table of the checksums, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// state is the content of the key "state" in meta: the counters of the whole file.
type state struct {
	revision      int64 // revision of the last commit
	compacted     int64 // reads and watches below it fail with ErrCompacted
	scrubbed      int64 // compaction has removed everything it has to remove up to this revision; at most compacted
	scrubbedTotal int64 // total at revision scrubbed
	total         int64 // sizes of all changes ever written
	clean         int64 // 1 after Close: the file has a list of its free pages
	reserved      int64 // no revision above both it and revision was ever shown
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

// entry is one change in the log. The slices of an entry that was decoded from a file are valid only within the transaction.
type entry struct {
	deleted bool
	prev    int64
	total   int64
	expires int64 // the second since 1970 at which the value is to be deleted; 0: never
	key     []byte
	value   []byte // nil when it is split

	split bool   // the value is stored in parts; then:
	size  int64  // size of all parts
	sum   uint32 // checksum of the value
}

// entryHeader is the size of the fields before the key's length: flags, prev, total and the checksum. In an entry that
// expires, the time follows in expiresBytes.
const (
	entryHeader  = 1 + 8 + 8 + 4
	expiresBytes = 8
)

// splitBytes is the size of the fields that replace a split value: its size and its checksum.
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

// checksum returns the checksum of an encoded entry, which includes its revision.
func checksum(revision int64, b []byte) uint32 {
	var head [8 + entryHeader - 4]byte
	binary.BigEndian.PutUint64(head[:], uint64(revision))
	copy(head[8:], b)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, b[entryHeader:])
}

// decodeEntry decodes the change of a revision. A damaged one is an error.
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

// flags returns the flags that index and log share.
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

// indexKey appends to buf the index key of key's version at revision. Seek with it finds that version or the newest one
// before it; if there is none, Seek finds another key.
func indexKey[K string | []byte](buf []byte, key K, revision int64) []byte {
	buf = append(buf, key...)
	buf = append(buf, 0)
	return binary.BigEndian.AppendUint64(buf, ^uint64(revision))
}

// splitIndexKey is the inverse of indexKey.
func splitIndexKey(k []byte) (key []byte, revision int64, err error) {
	n := len(k) - 9
	if n < 1 || k[n] != 0 {
		return nil, 0, fmt.Errorf("%w: index key %q", errDamaged, k)
	}
	return k[:n], int64(^binary.BigEndian.Uint64(k[n+1:])), nil
}

// checkKey returns an error for keys that the layout cannot store.
func checkKey(key string) error {
	if err := checkRead(key); err != nil {
		return err
	}
	if len(key)+9 > bbolt.MaxKeySize {
		return fmt.Errorf("%w: bolt: key of %d bytes is too long (at most %d)", storage.ErrBadKey, len(key), bbolt.MaxKeySize-9)
	}
	return nil
}

// checkRead returns an error for invalid keys. A key that is too long is no error: it has no value.
func checkRead(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: bolt: the key is empty", storage.ErrBadKey)
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("%w: bolt: key %q contains a NUL byte", storage.ErrBadKey, key)
	}
	return nil
}

// txn is a bbolt transaction with the buckets of the layout. Slices it returns are valid until the transaction ends.
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

// change returns the logged change of a revision, which must exist.
func (t txn) change(revision int64) (entry, error) { return changeAt(t.log.Cursor(), revision) }

// changeAt is change with a cursor of the log that the caller uses again.
func changeAt(c *bbolt.Cursor, revision int64) (entry, error) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(revision))
	if k, v := c.Seek(key[:]); bytes.Equal(k, key[:]) {
		return decodeEntry(revision, v)
	}
	return entry{}, fmt.Errorf("%w: the change of revision %d is missing", errDamaged, revision)
}
