package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"sync"
	"sync/atomic"
)

// This file reads bbolt's pages without bbolt. bbolt trusts the pages: a damaged one may make it panic in a goroutine of its
// own, or loop forever. A file that was checked here is safe for bbolt. The layout of pages is that of bbolt file version 2
// (https://pkg.go.dev/go.etcd.io/bbolt), in the byte order of the machine.
const (
	bboltMagic   = 0xED0CDAED
	bboltVersion = 2

	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	pageElement = 16 // of a branch: pos 4, ksize 4, page 8; of a leaf: flags 4, pos 4, ksize 4, vsize 4
	metaSize    = 64 // magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8, pages 8, txid 8, checksum 8
	minPage     = 1024
	maxPage     = minPage << 14

	branchPage   = 1
	leafPage     = 2
	metaPage     = 4
	freelistPage = 16
	manyFree     = 0xFFFF // from this count on, the first entry of the free list is the count

	noFreelist = math.MaxUint64
	maxDepth   = 64 // maximum depth of a tree
	maxKey     = 32 << 10
)

// pageMeta is one of the two meta pages. The one with the higher txid is in use.
type pageMeta struct {
	pageSize              int64
	root, freelist, pages uint64 // pages is the number of pages
	txid                  uint64
}

// parseMeta reads the first bytes of a meta page.
func parseMeta(b []byte) (m pageMeta, err error) {
	if len(b) < pageHeader+metaSize {
		return m, errors.New("it is cut off")
	}
	b = b[pageHeader:]
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	m = pageMeta{pageSize: int64(u32(b[8:])), root: u64(b[16:]), freelist: u64(b[32:]), pages: u64(b[40:]), txid: u64(b[48:])}
	switch {
	case u32(b) != bboltMagic || u32(b[4:]) != bboltVersion:
		return m, errors.New("it does not say what it is")
	case u64(b[56:]) != sum.Sum64():
		return m, errors.New("its checksum is wrong")
	case m.pageSize < minPage || m.pageSize > maxPage || m.pages < 4 || m.pages > math.MaxInt64/maxPage:
		return m, errors.New("it has impossible sizes")
	}
	return m, nil
}

func readMeta(r io.ReaderAt, at int64) (pageMeta, error) {
	b := make([]byte, pageHeader+metaSize)
	n, err := r.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return pageMeta{}, err
	}
	return parseMeta(b[:n])
}

// readMetas reads both meta pages and returns the one in use. If one of them is damaged it returns the other one, and damage
// is set: the file may be at an older state than it was.
func readMetas(r io.ReaderAt) (m pageMeta, damage, err error) {
	first, err0 := readMeta(r, 0)
	if err0 == nil {
		second, err := readMeta(r, first.pageSize)
		switch {
		case err != nil:
			damage = fmt.Errorf("meta page 1: %w", err)
		case second.txid > first.txid:
			return second, nil, nil
		}
		return first, damage, nil
	}
	for size := int64(minPage); size <= maxPage; size *= 2 { // the page size has to be guessed
		if second, err := readMeta(r, size); err == nil && second.pageSize == size {
			return second, fmt.Errorf("meta page 0: %w", err0), nil
		}
	}
	return pageMeta{}, nil, err0
}

// pageWalk visits the pages that are in use.
type pageWalk struct {
	r       io.ReaderAt
	meta    pageMeta
	raw     []byte            // the first bytes of the meta page
	seen    []uint64          // one bit for each page
	shallow bool              // visit only the root bucket, which has the names of the other buckets
	keys    bool              // do not read values
	stop    func() error      // called repeatedly; an error ends the walk
	report  func(error) error // called with each fault; an error ends the walk

	helpers chan struct{} // has room for each goroutine that may visit subtrees beside the caller's; nil: none
	helping sync.WaitGroup
	failed  atomic.Pointer[error] // ends the visits of all goroutines

	mu     sync.Mutex // guards wrongs, and calls of report
	wrongs int        // number of reported faults
}

// walk visits all pages reachable from the meta page. If there is a list of free pages, it also checks that every other page
// is in the list.
func (w *pageWalk) walk() error {
	w.seen = make([]uint64, w.meta.pages/64+1)
	if err := w.tree(w.meta.root, true, 0, nil, nil); err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
	if w.helping.Wait(); w.failed.Load() != nil {
		return *w.failed.Load()
	}
	if w.shallow || w.meta.freelist == noFreelist || w.wrongs > 0 {
		return nil
	}
	return w.freelist()
}

// wrong reports a fault.
func (w *pageWalk) wrong(id uint64, format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs++
	return w.report(fmt.Errorf("page %d: %s", id, fmt.Sprintf(format, args...)))
}

// take marks n pages as seen. It reports false if they do not exist or were seen before.
func (w *pageWalk) take(id, n uint64) (ok bool, err error) {
	if id < 2 || id >= w.meta.pages || n > w.meta.pages-id {
		return false, w.wrong(id, "it lies outside of the %d pages", w.meta.pages)
	}
	for i := id; i < id+n; i++ {
		if bit := uint64(1) << (i % 64); atomic.OrUint64(&w.seen[i/64], bit)&bit != 0 {
			return false, w.wrong(i, "it is used twice")
		}
	}
	return true, nil
}

// page reads a page with its overflow, or without it if the first page is enough. It returns nil after it has reported a
// fault.
func (w *pageWalk) page(id uint64, first bool) ([]byte, error) {
	if failed := w.failed.Load(); failed != nil {
		return nil, *failed
	}
	if w.stop != nil {
		if err := w.stop(); err != nil {
			return nil, err
		}
	}
	if id < 2 || id >= w.meta.pages {
		return nil, w.wrong(id, "it lies outside of the %d pages", w.meta.pages)
	}
	b := make([]byte, w.meta.pageSize)
	if _, err := w.r.ReadAt(b, int64(id)*w.meta.pageSize); err != nil {
		return nil, w.wrong(id, "%v", err)
	}
	if got := binary.NativeEndian.Uint64(b); got != id {
		return nil, w.wrong(id, "it says that it is page %d", got)
	}
	more := uint64(binary.NativeEndian.Uint32(b[12:]))
	if ok, err := w.take(id, 1+more); !ok {
		return nil, err
	}
	if more > 0 && !first {
		b = append(b, make([]byte, int64(more)*w.meta.pageSize)...)
		if _, err := w.r.ReadAt(b[w.meta.pageSize:], int64(id+1)*w.meta.pageSize); err != nil {
			return nil, w.wrong(id, "%v", err)
		}
	}
	return b, nil
}

// tree visits a tree whose keys must be in [low, high); nil is no bound.
func (w *pageWalk) tree(id uint64, root bool, depth int, low, high []byte) error {
	if depth > maxDepth {
		return w.wrong(id, "it lies %d levels deep", depth)
	}
	b, err := w.page(id, w.keys && !root)
	if b == nil || err != nil {
		return err
	}
	switch flags := binary.NativeEndian.Uint16(b[8:]); flags {
	case leafPage:
		return w.leaf(id, b, root, low, high)
	case branchPage:
		return w.branch(id, b, root, depth, low, high)
	default:
		return w.wrong(id, "it has type %#x, and a page of a tree %#x or %#x", flags, branchPage, leafPage)
	}
}

// element is an entry of a page.
type element struct {
	flags    uint32
	page     uint64
	key, val []byte
}

// elements reads the entries of a page, which must be in order and within bounds. It returns nil if they are not. If the
// overflow was not read, the entries have no values, and keys in the overflow are read one by one.
func (w *pageWalk) elements(id uint64, b []byte, leaf bool, low, high []byte) ([]element, error) {
	u32 := binary.NativeEndian.Uint32
	count := int64(binary.NativeEndian.Uint16(b[10:]))
	data, size := pageHeader+count*pageElement, int64(len(b))
	if w.keys && size == w.meta.pageSize {
		size *= 1 + int64(u32(b[12:]))
	}
	if data > int64(len(b)) && data <= size {
		b = append(b, make([]byte, data-int64(len(b)))...)
		if _, err := w.r.ReadAt(b[w.meta.pageSize:], int64(id+1)*w.meta.pageSize); err != nil {
			return nil, w.wrong(id, "%v", err)
		}
	}
	if data > size {
		return nil, w.wrong(id, "it cannot have %d entries", count)
	}
	found := make([]element, 0, count)
	for i := range count {
		at := pageHeader + i*pageElement
		h := b[at:]
		var e element
		var pos, ksize, vsize int64
		if leaf {
			e.flags, pos, ksize, vsize = u32(h), int64(u32(h[4:])), int64(u32(h[8:])), int64(u32(h[12:]))
		} else {
			pos, ksize, e.page = int64(u32(h)), int64(u32(h[4:])), binary.NativeEndian.Uint64(h[8:])
		}
		switch pos += at; {
		case pos < data || ksize == 0 || ksize > maxKey || pos+ksize+vsize > size:
			return nil, w.wrong(id, "entry %d lies outside of it", i)
		case pos+ksize+vsize <= int64(len(b)):
			e.key, e.val = b[pos:pos+ksize], b[pos+ksize:pos+ksize+vsize]
		case pos+ksize <= int64(len(b)):
			e.key = b[pos : pos+ksize]
		default:
			e.key = make([]byte, ksize)
			if _, err := w.r.ReadAt(e.key, int64(id)*w.meta.pageSize+pos); err != nil {
				return nil, w.wrong(id, "%v", err)
			}
		}
		switch {
		case i > 0 && bytes.Compare(found[i-1].key, e.key) >= 0,
			low != nil && bytes.Compare(e.key, low) < 0,
			high != nil && bytes.Compare(e.key, high) >= 0:
			return nil, w.wrong(id, "key %q of entry %d is not where it belongs", e.key, i)
		}
		found = append(found, e)
	}
	return found, nil
}

func (w *pageWalk) branch(id uint64, b []byte, root bool, depth int, low, high []byte) error {
	found, err := w.elements(id, b, false, low, high)
	if err == nil && found != nil && len(found) == 0 {
		err = w.wrong(id, "it is a branch with no entries")
	}
	if err != nil {
		return err
	}
	for i, e := range found {
		end := high
		if i+1 < len(found) {
			end = found[i+1].key
		}
		if err := w.subtree(e.page, root, depth+1, e.key, end); err != nil {
			return err
		}
	}
	return nil
}

// subtree is tree, in its own goroutine if helpers has room for one.
func (w *pageWalk) subtree(id uint64, root bool, depth int, low, high []byte) error {
	select {
	case w.helpers <- struct{}{}:
	default:
		return w.tree(id, root, depth, low, high)
	}
	w.helping.Go(func() {
		defer func() { <-w.helpers }()
		if err := w.tree(id, root, depth, low, high); err != nil {
			w.failed.CompareAndSwap(nil, &err)
		}
	})
	return nil
}

func (w *pageWalk) leaf(id uint64, b []byte, root bool, low, high []byte) error {
	found, err := w.elements(id, b, true, low, high)
	if err != nil {
		return err
	}
	for _, e := range found {
		switch {
		case !root && e.flags != 0, root && e.flags != 1:
			err = w.wrong(id, "key %q has flags %#x", e.key, e.flags)
		case root:
			err = w.bucket(id, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket visits a bucket. A small bucket is stored in the page that has its name.
func (w *pageWalk) bucket(id uint64, e element) error {
	if len(e.val) < 16 {
		return w.wrong(id, "bucket %q is cut off", e.key)
	}
	if root := binary.NativeEndian.Uint64(e.val); root != 0 {
		if w.shallow && string(e.key) != metaBucket {
			return nil
		}
		return w.tree(root, false, 0, nil, nil)
	}
	inline := e.val[16:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return w.wrong(id, "bucket %q has no content", e.key)
	}
	return w.leaf(id, inline, false, nil, nil)
}

// freelist checks that every page is either in use or listed as free.
func (w *pageWalk) freelist() error {
	id := w.meta.freelist
	b, err := w.page(id, false)
	if b == nil || err != nil {
		return err
	}
	if flags := binary.NativeEndian.Uint16(b[8:]); flags != freelistPage {
		return w.wrong(id, "it has type %#x, and the list of free pages %#x", flags, freelistPage)
	}
	count, list := uint64(binary.NativeEndian.Uint16(b[10:])), b[pageHeader:]
	if count == manyFree {
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if count > uint64(len(list)/8) {
		return w.wrong(id, "it cannot list %d free pages", count)
	}
	for i := range count {
		if _, err := w.take(binary.NativeEndian.Uint64(list[8*i:]), 1); err != nil {
			return err
		}
	}
	for i := uint64(2); i < w.meta.pages; i++ {
		if w.seen[i/64]&(1<<(i%64)) == 0 {
			if err := w.wrong(i, "it is neither in use nor free"); err != nil {
				return err
			}
		}
	}
	return nil
}
