package bolt

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/bits"
	"os"

	"go.etcd.io/bbolt"
)

// walkers is the number of pages that are read at once to find the free ones. Disks are faster with concurrent reads.
const walkers = 16

// listFree writes a list of the free pages into a file that was not closed, with a new meta page. Without a list bbolt would
// read the whole file to make it. It would read one page after the other and most of them several times, with a map of all
// pages in memory, in a goroutine whose panics cannot be recovered here. listFree reads each page once, several at a time,
// and does not read values that have pages of their own. Whether these are sound is found out when they are read, as in a
// file that was closed.
//
// The state of the store does not change. The pages of the list are free in that state, the state is durable before they are
// written, and the new meta page replaces the one that is not in use. Other processes that have the file open meanwhile only
// read it, or write the same.
func (f *dbFile) listFree(tx *bbolt.Tx, s state) error {
	w := &pageWalk{report: damaged, keys: true, helpers: make(chan struct{}, walkers-1)}
	if err := f.walk(tx, w); err != nil {
		return err
	}
	t, err := newTxn(tx)
	if err == nil {
		err = t.readExpiry()
	}
	if err == nil {
		err = f.checkJournal(t, s)
	}
	if err != nil || w.meta.freelist != noFreelist {
		return err
	}
	if err = f.writeFree(w); err != nil && noSpace(err) {
		return nil // bbolt will find the free pages
	}
	return err
}

func (f *dbFile) checkJournal(t txn, s state) error {
	j, err := findJournal(t.tx, f.file)
	if err == nil && j != nil {
		_, _, err = j.read(f.file, s)
	}
	return err
}

// writeFree writes the list of the pages that a walk has not seen.
func (f *dbFile) writeFree(w *pageWalk) error {
	file, err := os.OpenFile(f.Path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	mine, err := f.file.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = file.Stat(); err == nil && !os.SameFile(mine, there) {
			err = errReplaced
		}
	}
	list, m := w.freePages()
	if err == nil {
		err = flushData(file) // a killed process may have left the state in memory only
	}
	if err == nil {
		_, err = file.WriteAt(list, int64(m.freelist)*m.pageSize)
	}
	if err == nil {
		err = flushData(file)
	}
	if err == nil {
		_, err = file.WriteAt(m.encode(w.raw), int64(m.txid%2)*m.pageSize)
	}
	if err == nil {
		err = flushData(file)
	}
	return errors.Join(err, file.Close())
}

// freePages returns the pages of a list of the pages that were not seen, and the meta page that refers to it.
func (w *pageWalk) freePages() (list []byte, m pageMeta) {
	m = w.meta
	n := m.pages - 2
	for _, word := range w.seen {
		n -= uint64(bits.OnesCount64(word))
	}
	takes := (pageHeader + 8*(int64(n)+1) + m.pageSize - 1) / m.pageSize // at most
	m.txid++
	if m.freelist = w.run(uint64(takes)); m.freelist+uint64(takes) > m.pages {
		m.freelist = m.pages // no run is long enough
		m.pages += uint64(takes)
	} else {
		n -= uint64(takes)
	}
	order := binary.NativeEndian
	list = order.AppendUint64(make([]byte, 0, takes*m.pageSize), m.freelist)
	list = order.AppendUint16(list, freelistPage)
	list = order.AppendUint16(list, uint16(min(n, manyFree)))
	list = order.AppendUint32(list, uint32(takes-1))
	if n >= manyFree {
		list = order.AppendUint64(list, n)
	}
	for id := uint64(2); id < w.meta.pages; id++ {
		if !w.saw(id) && (id < m.freelist || id >= m.freelist+uint64(takes)) {
			list = order.AppendUint64(list, id)
		}
	}
	return list[:cap(list)], m
}

func (w *pageWalk) saw(id uint64) bool { return w.seen[id/64]&(1<<(id%64)) != 0 }

// run returns the first of n consecutive pages that were not seen, or the number of all pages.
func (w *pageWalk) run(n uint64) uint64 {
	free := uint64(0)
	for id := uint64(2); id < w.meta.pages; id++ {
		if free++; w.saw(id) {
			free = 0
		} else if free == n {
			return id + 1 - n
		}
	}
	return w.meta.pages
}

// encode returns the first bytes of the meta page, with root and sequence of another one.
func (m pageMeta) encode(other []byte) []byte {
	order := binary.NativeEndian
	b := order.AppendUint64(make([]byte, 0, pageHeader+metaSize), m.txid%2)
	b = order.AppendUint16(b, metaPage)
	b = append(b, make([]byte, pageHeader-len(b))...)
	b = append(b, other[pageHeader:pageHeader+32]...)
	b = order.AppendUint64(b, m.freelist)
	b = order.AppendUint64(b, m.pages)
	b = order.AppendUint64(b, m.txid)
	sum := fnv.New64a()
	_, _ = sum.Write(b[pageHeader:])
	return order.AppendUint64(b, sum.Sum64())
}
