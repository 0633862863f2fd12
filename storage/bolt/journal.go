package bolt

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"go.etcd.io/bbolt"
)

// The journal is a region of the file that bbolt has allocated: the value of the only key in a bucket. The region is written
// in place. A record makes some commits durable with one small write and one flush; a transaction needs two flushes and
// writes pages of all trees. Transactions write the content of the records into the trees later, many records at once.
const (
	journalBucket = "journal"
	reserveBucket = "reserve"

	// journalVersion is the format version of a file with a journal. A release without the journal would lose what is only
	// there. Close removes the journal, and with it this version.
	journalVersion = 3

	// journalHalf is the size of one half of the region. One half is written while the changes of the other one are written
	// into the trees. A record is within one half.
	journalHalf = 1 << 20
	// journalAfter is the number of transactions before a journal is made. For a few transactions it is not worth the cost.
	journalAfter = 32
	// recordBlock is the alignment of the begin and the end of a record. So a write that is interrupted damages no block that
	// was written before: no disk has larger blocks.
	recordBlock = 4096
	// recordHeader is the size of salt 8, number 8, first revision 8, clock 8, changes 4, size 4 and checksum 4.
	recordHeader = 44

	// recordOverhead bounds the size of a change in a record besides its key and its value.
	recordOverhead = 8 + 4 + entryHeader + expiresBytes + binary.MaxVarintLen32

	saltBytes = 8
)

// journal is the journal of a file.
type journal struct {
	file *os.File        // see journaled.file
	salt [saltBytes]byte // begins each record, so that older content of these pages is not taken for a record
	at   int64           // offset of the first half in the file
	half int64           // size of a half

	// The following fields are used by the writer only:
	turn   int64    // the half being written: 0 or 1
	used   int64    // bytes used of that half
	newest [2]int64 // newest revision in each half; 0: none
	number uint64   // number of the last record
	buf    []byte
}

// addJournal makes an empty journal with halves of the given size, and the reserve for a full disk.
func (t txn) addJournal(half int64) error {
	if err := t.dropJournal(); err != nil {
		return err
	}
	j, err := t.tx.CreateBucket([]byte(journalBucket))
	if err != nil {
		return err
	}
	r, err := t.tx.CreateBucketIfNotExists([]byte(reserveBucket))
	if err != nil {
		return err
	}
	key := make([]byte, saltBytes, saltBytes+4)
	_, _ = rand.Read(key) // never fails
	key = binary.BigEndian.AppendUint32(key, crc32.Checksum(key, castagnoli))
	return errors.Join(
		j.Put(key, make([]byte, 2*half+recordBlock)), // with room for aligning the begin to a block
		r.Put([]byte(reserveBucket), make([]byte, 3*half)),
		t.meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, journalVersion)),
	)
}

// dropJournal removes the journal. The trees must have the content of all records.
func (t txn) dropJournal() error {
	if t.tx.Bucket([]byte(journalBucket)) == nil {
		return nil
	}
	version := uint64(formatVersion)
	if t.expiry() != nil {
		version = expiringVersion
	}
	err := t.tx.DeleteBucket([]byte(journalBucket))
	if r := t.tx.Bucket([]byte(reserveBucket)); err == nil && r != nil {
		err = r.Delete([]byte(reserveBucket))
	}
	if err == nil {
		err = t.meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, version))
	}
	return err
}

// findJournal returns the journal of the file in a read transaction, or nil.
func findJournal(tx *bbolt.Tx, file *os.File) (*journal, error) {
	b := tx.Bucket([]byte(journalBucket))
	if b == nil {
		return nil, nil
	}
	id := uint64(b.Root())
	page := int64(id) * int64(tx.DB().Info().PageSize)
	head := make([]byte, pageHeader+pageElement+saltBytes+4)
	if _, err := file.ReadAt(head, page); err != nil {
		return nil, fmt.Errorf("%w: journal: %w", errDamaged, err)
	}
	u16, u32 := binary.NativeEndian.Uint16, binary.NativeEndian.Uint32
	e := head[pageHeader:]
	pos, ksize, vsize := int64(u32(e[4:])), int64(u32(e[8:])), int64(u32(e[12:]))
	key := e[pageElement:]
	if id == 0 || binary.NativeEndian.Uint64(head) != id || u16(head[8:]) != leafPage || u16(head[10:]) != 1 ||
		pos != pageElement || ksize != int64(len(key)) || vsize < 4*recordBlock || (vsize-recordBlock)%(2*recordBlock) != 0 ||
		binary.BigEndian.Uint32(key[saltBytes:]) != crc32.Checksum(key[:saltBytes], castagnoli) {
		return nil, fmt.Errorf("%w: the journal is not what it should be", errDamaged)
	}
	at := page + pageHeader + pos + ksize
	j := &journal{file: file, at: (at + recordBlock - 1) / recordBlock * recordBlock, half: (vsize - recordBlock) / 2}
	copy(j.salt[:], key)
	return j, nil
}

// encode makes a record of consecutive changes in the buffer.
func (j *journal) encode(changes []*change, clock int64) {
	b := append(j.buf[:0], j.salt[:]...)
	b = binary.BigEndian.AppendUint64(b, j.number+1)
	b = binary.BigEndian.AppendUint64(b, uint64(changes[0].revision))
	b = binary.BigEndian.AppendUint64(b, uint64(clock))
	b = binary.BigEndian.AppendUint32(b, uint32(len(changes)))
	b = append(b, make([]byte, 8)...)
	for _, c := range changes {
		b = binary.BigEndian.AppendUint64(b, uint64(c.prevExpires))
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		b = c.entry().append(b, c.revision)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	binary.BigEndian.PutUint32(b[recordHeader-8:], uint32(len(b)-recordHeader))
	binary.BigEndian.PutUint32(b[recordHeader-4:], recordChecksum(b))
	j.buf = b
}

// recordChecksum returns the checksum of a record, over everything except the checksum.
func recordChecksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:recordHeader-4], castagnoli), castagnoli, b[recordHeader:])
}

// blocks rounds n up to whole blocks.
func blocks(n int64) int64 { return (n + recordBlock - 1) / recordBlock * recordBlock }

// fits reports whether a record of size n fits into the rest of this half.
func (j *journal) fits(n int64) bool { return j.used+blocks(n) <= j.half }

// reuse switches to the other half, whose changes are all durable in the trees.
func (j *journal) reuse() { j.turn, j.used = 1-j.turn, 0 }

// other returns the newest revision in the half that is not being written.
func (j *journal) other() int64 { return j.newest[1-j.turn] }

// write writes the record in the buffer; the caller flushes it. After an error a part of it may be in the file.
func (j *journal) write() error {
	n := int64(len(j.buf))
	j.buf = append(j.buf, make([]byte, blocks(n)-n)...)
	_, err := j.file.WriteAt(j.buf, j.at+j.turn*j.half+j.used)
	return err
}

// written counts the flushed record, which has changes up to revision.
func (j *journal) written(revision int64) {
	j.used += int64(len(j.buf))
	j.newest[j.turn] = revision
	j.number++
	if cap(j.buf) > int(j.half)/4 {
		j.buf = nil // the record was a large one
	}
}

// record is a record found in a journal.
type record struct {
	number  uint64
	first   int64 // first revision
	last    int64
	clock   int64
	changes []byte
}

// find returns the record that begins at a block, and its size in blocks.
func (j *journal) find(b []byte) (r record, size int64, ok bool) {
	if len(b) < recordHeader || !bytes.Equal(b[:saltBytes], j.salt[:]) {
		return r, 0, false
	}
	u64 := binary.BigEndian.Uint64
	n := int64(binary.BigEndian.Uint32(b[recordHeader-8:]))
	if n > int64(len(b)-recordHeader) {
		return r, 0, false
	}
	b = b[:recordHeader+n]
	if binary.BigEndian.Uint32(b[recordHeader-4:]) != recordChecksum(b) {
		return r, 0, false
	}
	r = record{number: u64(b[8:]), first: int64(u64(b[16:])), clock: int64(u64(b[24:])), changes: b[recordHeader:]}
	r.last = r.first + int64(binary.BigEndian.Uint32(b[32:])) - 1
	return r, blocks(int64(len(b))), true
}

// read returns the changes in the file r after a state, in order, and the last time of the clock. An incomplete record was
// never finished, so its commits were never answered. But if there is a later record, it was finished, and the file is
// damaged.
func (j *journal) read(r io.ReaderAt, s state) (changes []*change, clock int64, err error) {
	var found []record
	for turn := range int64(2) {
		half := make([]byte, j.half)
		if _, err := r.ReadAt(half, j.at+turn*j.half); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		for at := int64(0); at < j.half; {
			r, size, ok := j.find(half[at:])
			if !ok {
				at += recordBlock
				continue
			}
			if at += size; r.last > s.revision {
				found = append(found, r)
			}
		}
	}
	// Package slices would add a sort of its own for this type, of 25 kB.
	sort.Slice(found, func(i, j int) bool { return found[i].number < found[j].number })
	for i, r := range found {
		// After a full disk the trees may have a part of the first record already.
		if r.first > s.revision+1 || i > 0 && (r.first != s.revision+1 || r.number != found[i-1].number+1) {
			return nil, 0, fmt.Errorf("%w: journal: revision %d is missing, and there is %d", errDamaged, s.revision+1, r.first)
		}
		made, err := r.decode(s)
		if err != nil {
			return nil, 0, err
		}
		changes = append(changes, made...)
		s.revision, s.total, clock = r.last, made[len(made)-1].total, max(clock, r.clock)
	}
	return changes, clock, nil
}

// decode returns the changes of a record after a state.
func (r record) decode(s state) (changes []*change, err error) {
	b, total := r.changes, s.total
	for revision := r.first; revision <= r.last; revision++ {
		if len(b) < 12 || uint64(binary.BigEndian.Uint32(b[8:])) > uint64(len(b)-12) {
			return nil, fmt.Errorf("%w: journal: the change of revision %d is cut off", errDamaged, revision)
		}
		n := binary.BigEndian.Uint32(b[8:])
		if revision <= s.revision {
			b = b[12+n:]
			continue
		}
		e, err := decodeEntry(revision, b[12:12+n])
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		c := &change{
			key: string(e.key), revision: revision, deleted: e.deleted, expires: e.expires, prevAt: e.prev, total: e.total,
			prevExpires: int64(binary.BigEndian.Uint64(b)),
		}
		if !e.deleted {
			c.value = bytes.Clone(e.value)
		}
		if total += int64(c.size()); total != c.total || checkKey(c.key) != nil {
			return nil, fmt.Errorf("%w: journal: the change of revision %d does not follow the one before", errDamaged, revision)
		}
		changes, b = append(changes, c), b[12+n:]
	}
	if len(b) > 0 || len(changes) == 0 {
		return nil, fmt.Errorf("%w: journal: a record of %d changes has another size", errDamaged, len(changes))
	}
	return changes, nil
}
