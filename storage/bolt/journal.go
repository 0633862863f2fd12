package bolt

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// The journal is a region of the file that bbolt has set aside, the value of the one key in a bucket, which is written
// in place: a record of it makes some commits durable with one small write and one flush, where a transaction takes two
// flushes and the pages of all trees. Transactions write what the records say into the trees later, many at once.
const (
	journalBucket = "journal"
	reserveBucket = "reserve"

	// journalVersion is the format version of a file with a journal: a release that does not know it would lose what is
	// there alone. Close takes the journal away, and with it this version.
	journalVersion = 3

	// journalHalf is the size of one half of the region: one is written while the changes of the other one go into the
	// trees. A record is in one of them.
	journalHalf = 1 << 20
	// journalAfter is how many transactions come before a journal is made: it is not worth it for few.
	journalAfter = 32
	// recordBlock is what records begin and end at. A write that is interrupted spoils no block that was written
	// before: no disk has larger ones.
	recordBlock = 4096
	// recordHeader is salt 8, number 8, first revision 8, clock 8, changes 4, size 4 and checksum 4.
	recordHeader = 44

	// recordOverhead bounds what a change takes in a record besides its key and its value.
	recordOverhead = 8 + 4 + entryHeader + expiresBytes + binary.MaxVarintLen32

	saltBytes = 8
)

// journal is the region of a file.
type journal struct {
	file *os.File        // see journaled
	salt [saltBytes]byte // begins each record, so that what was in these pages before is none
	at   int64           // in the file, of the first half
	half int64           // size

	// Used by the writer alone:
	turn   int64    // the half that is written: 0 or 1
	used   int64    // of that half
	newest [2]int64 // revision in each half; 0: none
	number uint64   // of the last record
	buf    []byte
}

// addJournal makes an empty journal with halves of a size, and the reserve for a full disk.
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
		j.Put(key, make([]byte, 2*half+recordBlock)), // with room to begin at a block
		r.Put([]byte(reserveBucket), make([]byte, 3*half)),
		t.meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, journalVersion)),
	)
}

// dropJournal takes the journal away, whose records the trees have.
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

// findJournal returns the journal that a file has, as a read transaction sees it, or nil.
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

// encode makes a record of changes, which follow each other, in the buffer.
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

// recordChecksum is that of a record, over all but itself.
func recordChecksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:recordHeader-4], castagnoli), castagnoli, b[recordHeader:])
}

// blocks rounds up to whole blocks.
func blocks(n int64) int64 { return (n + recordBlock - 1) / recordBlock * recordBlock }

// fits says that a record of a size goes into what is left of this half.
func (j *journal) fits(n int64) bool { return j.used+blocks(n) <= j.half }

// reuse goes on with the other half, whose changes are all in the trees, durably.
func (j *journal) reuse() { j.turn, j.used = 1-j.turn, 0 }

// other is the newest revision in the half that is not written.
func (j *journal) other() int64 { return j.newest[1-j.turn] }

// write writes the record in the buffer, which is to be flushed then. After an error it may be there in part.
func (j *journal) write() error {
	n := int64(len(j.buf))
	j.buf = append(j.buf, make([]byte, blocks(n)-n)...)
	_, err := j.file.WriteAt(j.buf, j.at+j.turn*j.half+j.used)
	return err
}

// written counts the record that was flushed, of changes up to a revision.
func (j *journal) written(revision int64) {
	j.used += int64(len(j.buf))
	j.newest[j.turn] = revision
	j.number++
	if cap(j.buf) > int(j.half)/4 {
		j.buf = nil // was a large one
	}
}

// record is one that was found.
type record struct {
	number  uint64
	first   int64 // revision
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

// read returns the changes in the file r behind a state, in their order, and the second that the clock told last. A record
// that is not whole is one that was never finished, so that nobody has been told of it; but when there is a later one, it
// was, and the file is damaged.
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
	slices.SortFunc(found, func(a, b record) int { return cmp.Compare(a.number, b.number) })
	for i, r := range found {
		// After a full disk the trees may have a part of the first record.
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

// decode returns the changes of a record that a state has not.
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
