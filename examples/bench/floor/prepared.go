package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

// collection is the path of the group version, before namespaces and the resource.
const collection = "/apis/" + widget.Group + "/" + widget.Version

// These are the bytes before and after an item.
const (
	typeMeta = `"kind":"` + widget.Kind + `","apiVersion":"` + widget.Group + `/` + widget.Version + `",`
	listMeta = `{"kind":"` + widget.Kind + `List","apiVersion":"` + widget.Group + `/` + widget.Version + `","metadata":{`
	itemHead = `{` + typeMeta
	listTail = "]}\n"
	// The object of an event is between these.
	eventHead = `{"type":"MODIFIED","object":` + itemHead
	eventTail = "}\n"
)

// prepared has the answers. They are never changed, except that the lists of groups are made when they are first needed. Its
// methods may be called concurrently.
type prepared struct {
	revision int                      // of the list
	list     []byte                   // the list of all widgets
	gzip     []byte                   // list, compressed at level 1, as Kubernetes does
	items    []item                   // in the order of the list
	byPath   map[string]int           // items, by their path
	groups   map[string]func() []byte // by value of the label: the list
}

// item is the position of a widget in the list.
type item struct{ begin, end int }

// prepare makes the answers for a number of widgets.
func prepare(objects int) (*prepared, error) {
	order := make([]int, objects)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(widget.Namespace(a), widget.Namespace(b)), cmp.Compare(widget.Name(a), widget.Name(b)))
	})
	p := &prepared{revision: objects + 1, byPath: make(map[string]int, objects), groups: map[string]func() []byte{}}
	members := map[string][]int{}
	p.list = p.appendHead(make([]byte, 0, objects*2048), 0)
	for at, i := range order {
		if at > 0 {
			p.list = append(p.list, ',')
		}
		one, ok := bytes.CutPrefix(widget.Stored(widget.Namespace(i), i, int64(i+2)), []byte(itemHead))
		if !ok {
			return nil, fmt.Errorf("widget %d does not begin with %s", i, itemHead)
		}
		begin := len(p.list)
		p.list = append(append(p.list, '{'), one...)
		p.items = append(p.items, item{begin, len(p.list)})
		p.byPath[collection+"/namespaces/"+widget.Namespace(i)+"/"+widget.Resource+"/"+widget.Name(i)] = at
		members[widget.GroupOf(i)] = append(members[widget.GroupOf(i)], at)
	}
	p.list = append(p.list, listTail...)
	for group, at := range members {
		p.groups[group] = sync.OnceValue(func() []byte { return p.listOf(at) })
	}
	var err error
	p.gzip, err = compress(p.list)
	return p, err
}

// appendHead appends the beginning of a list. next is the start of the next page, or 0.
func (p *prepared) appendHead(b []byte, next int) []byte {
	b = fmt.Appendf(b, `%s"resourceVersion":"%d"`, listMeta, p.revision)
	if next > 0 {
		b = fmt.Appendf(b, `,"continue":"%d","remainingItemCount":%d`, next, len(p.items)-next)
	}
	return append(b, `},"items":[`...)
}

// listOf returns the list of some items.
func (p *prepared) listOf(items []int) []byte {
	b := p.appendHead(nil, 0)
	for n, i := range items {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, p.list[p.items[i].begin:p.items[i].end]...)
	}
	return append(b, listTail...)
}

// page returns the two parts of a page, without its listTail. A page that begins after the last item is empty and has no next
// page.
func (p *prepared) page(from, limit int) (head, items []byte) {
	to := min(from+limit, len(p.items))
	if from >= to {
		return p.appendHead(nil, 0), nil
	}
	next := to
	if to == len(p.items) {
		next = 0
	}
	return p.appendHead(make([]byte, 0, 256), next), p.list[p.items[from].begin:p.items[to-1].end]
}

// rest returns an item without its itemHead.
func (p *prepared) rest(i int) []byte { return p.list[p.items[i].begin+1 : p.items[i].end] }

func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
