package handlers

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/internal/gzipparts"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// source is the content of a list: the number of items and the items, also in blocks if there are any.
type source struct {
	count  int
	items  iter.Seq[wire.Item]
	bytes  iter.Seq[storage.Record] // the same items, if all are records in the version of the URL; else nil
	blocks iter.Seq[block]          // the same items in blocks; nil if there are none
	// portions are the portions that the items are read in; nil if all items are in memory. count, and how the list ends, are
	// only available after all portions were read once.
	portions *portions
}

// block is a run of items. forms caches the encodings of the whole block; if it is nil, they are not cached.
type block struct {
	items iter.Seq[wire.Item]
	forms *storage.Forms
}

// pageSource returns the content of a page.
func (e *endpoint) pageSource(ctx context.Context, page storage.Page) source {
	if page.Next != nil {
		p := &portions{ctx: ctx, first: page}
		return source{items: e.inRuns(ctx, eachRecord(p.records)), portions: p}
	}
	src := source{count: page.Count, items: e.inRuns(ctx, eachRecord(page.Records))}
	if e.shows(page) {
		src.bytes = page.Records
	}
	if page.Blocks != nil {
		src.blocks = func(yield func(block) bool) {
			for b := range page.Blocks {
				if !yield(block{eachRecord(b.Records), b.Forms}) {
					return
				}
			}
		}
	}
	return src
}

// portions is a page whose records are read in portions while the page is written. One goroutine uses it.
type portions struct {
	ctx   context.Context
	first storage.Page
	final bool // this is the last walk: records that were written are not kept

	// Set by the last walk.
	count int          // the number of records
	last  storage.Page // the last portion, which says how the list ends
	err   error        // why the walk did not reach the end
}

func (p *portions) records(yield func(storage.Record) bool) {
	p.count, p.err = 0, nil
	page := p.first
	for {
		for rec := range page.Records {
			if p.count++; !yield(rec) {
				return
			}
		}
		if page.Next == nil {
			page.Records = nil
			p.last = page
			return
		}
		if p.final {
			p.first = storage.Page{}
		}
		if page, p.err = page.Next(p.ctx); p.err != nil {
			return
		}
	}
}

// shows reports whether all records of a page are stored in the version of the URL.
func (e *endpoint) shows(page storage.Page) bool {
	if page.Version != "" || page.Records == nil {
		return page.Version == e.Version || page.Records == nil
	}
	for rec := range page.Records {
		if !rec.Body.InVersion(e.Version) {
			return false
		}
	}
	return true
}

func eachRecord(records iter.Seq[storage.Record]) iter.Seq[wire.Item] {
	return func(yield func(wire.Item) bool) {
		if records == nil {
			return
		}
		for rec := range records {
			if !yield(wire.Item{Record: rec}) {
				return
			}
		}
	}
}

// objectSource returns the content of a list of objects.
func objectSource(list []apiruntime.Object) source {
	return source{count: len(list), items: func(yield func(wire.Item) bool) {
		for _, obj := range list {
			if !yield(wire.Item{Object: obj}) {
				return
			}
		}
	}}
}

// listWriter writes a list. Its memory does not grow with the length of the list.
//
// If any item must be encoded, all items are encoded before the first byte is written, to find errors and the size of the list. A
// list in portions is read completely before the first byte is written, to find errors, and then read again. Items that are
// neither small nor cached are encoded again when they are written.
type listWriter struct {
	*endpoint
	wire.Writer
	source
	comma   string
	textKey any  // the key of the joined items of a block; nil if they are not cached
	zipKey  any  // the key of the joined items in compressed form; nil if they are not cached
	sure    bool // no item can fail
	zip     bool
	hold    func(bytes int) error       // counts bytes that are made and not sent yet in the budget
	part    func(p gzipparts.Part) bool // receives the blocks whose compressed form is cached, if zip; false ends the walk
}

func (c *call) newListWriter(f wire.Form, src source) *listWriter {
	l := &listWriter{endpoint: c.endpoint, source: src}
	l.Begin(c.ctx.Context, c.Objects, f)
	l.sure = src.portions == nil && l.Sure(src.bytes != nil)
	l.textKey, l.zipKey = l.BlockKeys(l.sure)
	l.hold = func(n int) error { return c.hold(min(l.weight(n), c.most) - c.held()) }
	l.comma = l.Between()
	return l
}

const (
	listPart     = 256 << 10 // about how many bytes of a long list are made between two writes; with less, waking the reader takes more time
	preparedMost = 1 << 20   // how many bytes that are made before the first write are kept, instead of being made again
	preparedDear = 16 << 20  // the same for items that are expensive to make
	preparedFree = 128 << 10 // up to this size, the bytes that are kept are not counted in the budget
	// listFree is the size up to which the bytes of a list that are made and not sent yet are not counted in the budget. Only large
	// items and blocks go beyond it. The number of such lists is bounded by the requests in flight.
	listFree = listPart + preparedFree
	// blockMost is the size of the items of a block above which their encoding is not cached: a request would hold all of it.
	blockMost = 16 << 20
)

// respond answers with the list. buf is the buffer for what is written.
func (l *listWriter) respond(c *call, lm metav1.ListMeta, buf *[]byte) error {
	zip := request.AcceptsGzip(c.r)
	size, whole, err := l.prepare(buf, zip)
	if err != nil {
		return err
	}
	lm = l.ended(lm)
	if p := l.portions; p != nil {
		p.final = true
	}
	frame, err := l.Frame(lm, l.count, size)
	if err != nil {
		return err
	}
	total := int64(-1)
	switch {
	case l.count == 0:
		total = int64(len(frame.Empty))
	case whole:
		total = int64(len(frame.Head)+len(frame.Tail)) + size
	}
	out := new(body)
	c.beginBody(out, http.StatusOK, l.ContentType(), total)
	defer out.close()
	switch {
	case l.count == 0:
		out.write(frame.Empty)
	case whole && (!out.zip || l.isDear()):
		out.write(frame.Head)
		out.write(*buf)
		out.write(frame.Tail)
	default:
		l.write(out, frame, size, buf)
	}
	out.end()
	return nil
}

// whole returns the list as one text of at most most bytes, or nil if it is longer.
func (l *listWriter) whole(lm metav1.ListMeta, most int) ([]byte, error) {
	l.blocks = nil
	var items []byte
	var full error
	err := l.walk(&items, func() bool {
		if len(items) > listFree {
			full = l.hold(len(items))
		}
		return full == nil && len(items) <= most
	})
	if err = cmp.Or(full, err); err != nil || len(items) > most {
		return nil, err
	}
	lm = l.ended(lm)
	frame, err := l.Frame(lm, l.count, int64(len(items)))
	switch {
	case err != nil:
		return nil, err
	case l.count == 0:
		return frame.Empty, nil
	}
	return slices.Concat(frame.Head, items, frame.Tail), nil
}

// ended returns the metadata of the list after a walk through all items.
func (l *listWriter) ended(lm metav1.ListMeta) metav1.ListMeta {
	if p := l.portions; p != nil {
		l.count = p.count
		lm.Continue, lm.RemainingItemCount = p.last.Continue, p.last.Remaining
	}
	return lm
}

// isDear reports whether items are expensive to make, because another program converts them.
func (l *listWriter) isDear() bool { return l.many != nil && l.bytes == nil }

// weight returns how many bytes are held for n bytes of items that are made. If the bytes are not those of the records, an item is
// in a second buffer, too.
func (l *listWriter) weight(n int) int64 {
	if l.Verbatim() {
		return int64(n)
	}
	return 2 * int64(n)
}

// prepare makes the items to find errors, and returns their size with all separators. If whole is true, all items are in buf;
// that is so if they are small. If the items cannot fail and the size is not needed, prepare stops when it is known that they are
// not small. Large contents of buf, and large blocks, count in the budget.
func (l *listWriter) prepare(buf *[]byte, zip bool) (size int64, whole bool, err error) {
	most := preparedMost
	switch {
	case l.isDear():
		most = preparedDear
	case zip || l.sure:
		most = gzipThreshold
	}
	whole = true
	var full error
	l.part = func(p gzipparts.Part) bool {
		size += p.Size
		if n := len(p.Deflate); n > listFree {
			full = l.hold(n)
		}
		return full == nil
	}
	err = l.walk(buf, func() bool {
		if whole = whole && len(*buf) <= most; whole {
			if len(*buf) > preparedFree {
				full = l.hold(len(*buf))
			}
			return full == nil
		}
		if len(*buf) > listFree {
			full = l.hold(len(*buf))
		}
		size += int64(len(*buf))
		*buf = (*buf)[:0]
		l.zip = zip
		return !l.sure && full == nil
	})
	if full != nil {
		err = full
	}
	return size + int64(len(*buf)), whole, err
}

// write writes the list. If the frame is Sized, the items must have size bytes. Large contents of buf, and
// large blocks, that prepare has not seen count in the budget. A failure aborts the connection.
func (l *listWriter) write(out *body, frame wire.Frame, size int64, buf *[]byte) {
	*buf = append((*buf)[:0], frame.Head...)
	size += int64(len(frame.Head))
	count := func(n int) {
		if n > listFree && l.hold(n) != nil {
			out.abort()
		}
	}
	drain := func() {
		count(len(*buf))
		out.write(*buf)
		size -= int64(len(*buf))
		*buf = (*buf)[:0]
	}
	l.zip = out.zip
	l.part = func(p gzipparts.Part) bool {
		drain()
		count(len(p.Deflate))
		out.writePart(p)
		size -= p.Size
		return true
	}
	err := l.walk(buf, func() bool {
		if len(*buf) > listPart {
			drain()
		}
		return true
	})
	drain()
	if err != nil || size != 0 && frame.Sized { // the size may differ only in forms that have not sent it, because the cells of a table contain ages
		out.abort()
	}
	out.write(frame.Tail)
}

// walk appends all items to buf, with separators between them. It calls more after each append. more may empty buf; if it returns
// false, the walk ends.
func (l *listWriter) walk(buf *[]byte, more func() bool) error {
	first := true
	comma := func() {
		if !first {
			*buf = append(*buf, l.comma...)
		}
		first = false
	}
	each := func(it wire.Item) (ok bool, err error) {
		comma()
		if err := l.append(buf, it); err != nil {
			return false, err
		}
		return more(), nil
	}
	switch {
	case l.blocks != nil && (l.textKey != nil || l.zip && l.zipKey != nil):
	case l.bytes != nil && l.Verbatim(): // a fast path: the first access to each record is a cache miss of the processor, which costs the most
		for rec := range l.bytes {
			comma()
			if *buf = rec.Body.AppendItem(*buf, rec.Revision); !more() {
				return nil
			}
		}
		return nil
	default:
		for it := range l.items {
			if ok, err := each(it); !ok {
				return err
			}
		}
		if l.portions != nil {
			return l.portions.err
		}
		return nil
	}
	for b := range l.blocksInRuns() {
		switch {
		case b.forms != nil && l.zip && !l.tooLarge(b, l.zipKey):
			p, err := l.compressed(b)
			if err != nil {
				return err
			}
			if comma(); !l.part(p) {
				return nil
			}
		case b.forms != nil && !l.zip && l.textKey != nil && !l.tooLarge(b, l.textKey):
			text, err := b.forms.Get(l.Context(), l.textKey, func() ([]byte, error) { return l.join(nil, b) })
			if err != nil {
				return err
			}
			comma()
			if *buf = append(*buf, text...); !more() {
				return nil
			}
		default:
			for it := range b.items {
				if ok, err := each(it); !ok {
					return err
				}
			}
		}
	}
	return nil
}

// tooLarge reports whether the items of a block are too large for their encoding to be cached. Items that another program converts
// are never too large.
func (l *listWriter) tooLarge(b block, key any) bool {
	if l.many != nil || b.forms.Has(key) {
		return false
	}
	size := 0
	for it := range b.items {
		size += it.Record.Body.Size()
	}
	return size > blockMost
}

// largeItem is the size of a record above which few items are made at a time, if they are not made of the bytes of the record alone:
// that takes many times their size, such as for YAML.
const largeItem = 64 << 10

// append appends an item to buf. A large one is counted before, and waits until there is a processor for it.
func (l *listWriter) append(buf *[]byte, it wire.Item) (err error) {
	if size := it.Record.Body.Size(); size > largeItem && !l.Verbatim() && l.many == nil {
		if size > listFree {
			if err := l.hold(len(*buf) + size); err != nil {
				return err
			}
		}
		l.making <- struct{}{}
		defer func() { <-l.making }()
	}
	*buf, err = l.AppendItem(*buf, it)
	return err
}

// join appends the items of a block, with separators between them.
func (l *listWriter) join(dst []byte, b block) ([]byte, error) {
	from := len(dst)
	for it := range b.items {
		if len(dst) > from {
			dst = append(dst, l.comma...)
		}
		var err error
		if dst, err = l.AppendItem(dst, it); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// compressed returns the joined items of a block as a part of a gzip member.
func (l *listWriter) compressed(b block) (gzipparts.Part, error) {
	text, err := b.forms.Get(l.Context(), l.zipKey, func() ([]byte, error) {
		buf := l.takeBuffer()
		text, err := l.join(*buf, b)
		*buf = text
		if err != nil {
			return nil, err
		}
		z, ok := l.compressors.Get().(*gzipparts.Compressor)
		if !ok {
			z = new(gzipparts.Compressor)
		}
		part := z.Append(nil, text)
		l.compressors.Put(z)
		l.giveBuffer(buf)
		return part, nil
	})
	if err != nil {
		return gzipparts.Part{}, err
	}
	return gzipparts.ParsePart(text)
}
