// Package powercut simulates what a power failure may leave of the files in a directory.
//
// A Disk has durable files, and records what processes do to them. It records writes, changes of size and flushes of files,
// and new names, links, renames and removals in the directory and flushes of the directory. Cut makes a possible content of
// the directory when the power fails at some point of the recording: everything that was flushed, and a random part of the
// rest.
//
// The simulated disk makes fewer promises than most disks. Changes that were not flushed may be missing in any combination,
// whatever their order was. Writes are torn at multiples of 512 bytes. The size of a file, its data and its names become
// durable independently of each other. A flush of a file makes none of its names durable; only a flush of its directory does.
package powercut

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
)

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	Write    Kind = iota // write of Data at At
	Truncate             // change of the size to At, which may be larger than before
	Flush                // flush of a file: everything written to it before is durable
	Create               // creation of a new File with Name
	Link                 // another name, To, for the File called Name
	Rename               // rename of Name to To, which is replaced
	Remove               // removal of Name
	FlushDir             // flush of the directory: all changes of names before are durable
	Output               // the process has written the line Data to its standard output
)

// Never is the Ended of a call during which the process was killed.
const Never = math.MaxInt / 2

// Event is one action of a process. Began and Ended are points of the recording: everything done before a point began before
// it.
type Event struct {
	Kind         Kind   // what was done
	Began, Ended int    // the points at which the call began and ended
	File         int    // number of the file, independent of its name
	FD           int    // file descriptor of the call; the same number may stand for several files one after the other
	Name, To     string // names in the directory; To is for Link and Rename
	At           int64  // offset of a Write, or size of a Truncate
	Data         []byte // bytes of a Write, or line of Output
}

// Disk is a directory of files and the recording of what was done to them. It has no subdirectories.
type Disk struct {
	Events []*Event // the recording
	Points int      // number of points

	names map[string]int // names of the durable files
	files [][]byte       // their durable content; nil for a new file

	now map[string]int // names after all events
}

// NewDisk returns a disk with durable files, by name.
func NewDisk(files map[string][]byte) *Disk {
	d := &Disk{names: map[string]int{}}
	for name, content := range files {
		d.names[name] = len(d.files)
		d.files = append(d.files, content)
	}
	d.now = maps.Clone(d.names)
	return d
}

// Kill removes from the recording everything after a point at which the process was killed. A flush that was not finished is
// removed, and every other action that had begun is complete.
func (d *Disk) Kill(point int) {
	done := d.Events[:0]
	for _, e := range d.Events {
		if e.Began >= point {
			continue
		}
		if e.Ended >= point {
			if e.Ended = point; e.Kind == Flush || e.Kind == FlushDir {
				e.Ended = Never
			}
		}
		done = append(done, e)
	}
	d.Events = done
	d.Points = max(d.Points, point) + 1
	d.now = d.namesAt(Never, func(*Event) bool { return true })
}

// Files returns the files as processes see them after all events.
func (d *Disk) Files() map[string][]byte {
	all := func(*Event) bool { return true }
	return d.named(d.namesAt(Never, all), func(file int) []byte {
		var c content
		c.data = bytes.Clone(d.files[file])
		for _, e := range d.of(file) {
			c.apply(e, 1<<30, func() bool { return true })
		}
		return c.data
	})
}

// Cut returns the files that are left when the power fails at a point.
func (d *Disk) Cut(point int, r *rand.Rand) map[string][]byte {
	durable := d.durable(point, FlushDir, -1)
	keep := chance(r, len(d.Events))
	names := d.namesAt(point, func(e *Event) bool { return e.Ended < durable || keep() })
	return d.named(names, func(file int) []byte { return d.cutFile(file, point, r) })
}

func (d *Disk) named(names map[string]int, content func(file int) []byte) map[string][]byte {
	left := map[string][]byte{}
	for name, file := range names {
		left[name] = content(file)
	}
	return left
}

// Empty reports whether a file had no content before a point.
func (d *Disk) Empty(file, point int) bool {
	for _, e := range d.of(file) {
		if e.Began < point && (e.Kind == Write || e.At > 0) {
			return false
		}
	}
	return len(d.files[file]) == 0
}

// durable returns the point before which everything is durable when the power fails at point: events that ended before it are
// certain.
func (d *Disk) durable(point int, kind Kind, file int) (since int) {
	for _, e := range d.Events {
		if e.Kind == kind && e.Ended < point && (file < 0 || e.File == file) {
			since = max(since, e.Began)
		}
	}
	return since
}

// of returns the writes and changes of size of a file.
func (d *Disk) of(file int) (events []*Event) {
	for _, e := range d.Events {
		if e.File == file && (e.Kind == Write || e.Kind == Truncate) {
			events = append(events, e)
		}
	}
	return events
}

// namesAt returns the names at a point, after the changes of names that are kept.
func (d *Disk) namesAt(point int, kept func(*Event) bool) map[string]int {
	names := maps.Clone(d.names)
	for _, e := range d.Events {
		switch {
		case e.Began >= point, e.Kind < Create || e.Kind > Remove, !kept(e):
			continue
		case e.Kind == Create:
			names[e.Name] = e.File
			continue
		case e.Kind != Remove:
			names[e.To] = e.File
		}
		if there, ok := names[e.Name]; ok && there == e.File && e.Kind != Link {
			delete(names, e.Name)
		}
	}
	return names
}

// chance returns a function that decides for each of at most n events whether it is kept: either a first part of them, which
// may be none or all, or any of them.
func chance(r *rand.Rand, n int) func() bool {
	if r.IntN(3) == 0 {
		first := r.IntN(n + 1)
		return func() bool { first--; return first >= 0 }
	}
	likely := []float64{0.1, 0.5, 0.9}[r.IntN(3)]
	return func() bool { return r.Float64() < likely }
}

func (d *Disk) cutFile(file, point int, r *rand.Rand) []byte {
	c := content{data: bytes.Clone(d.files[file])}
	durable := d.durable(point, Flush, file)
	var rest []*Event
	for _, e := range d.of(file) {
		switch {
		case e.Ended < durable:
			c.apply(e, 1<<30, func() bool { return true })
		case e.Began < point:
			rest = append(rest, e)
		}
	}
	sector, sectors := []int{512, 4096, 1 << 30}[r.IntN(3)], 0
	sizes := []int64{int64(len(c.data))} // sizes of the file since then
	for _, e := range rest {
		size := e.At
		if e.Kind == Write {
			sectors += len(e.Data)/sector + 1
			size = max(sizes[len(sizes)-1], e.At+int64(len(e.Data)))
		}
		sizes = append(sizes, size)
	}
	keep := chance(r, sectors)
	for _, e := range rest {
		c.apply(e, sector, keep)
	}
	switch r.IntN(3) { // in the third case the size results from the kept data
	case 0:
		c.resize(sizes[len(sizes)-1])
	case 1:
		c.resize(sizes[r.IntN(len(sizes))])
	}
	return c.data
}

// content is the content of a file.
type content struct{ data []byte }

// apply applies the kept sectors of an event.
func (c *content) apply(e *Event, sector int, kept func() bool) {
	if e.Kind == Truncate {
		if kept() {
			c.resize(e.At)
		}
		return
	}
	for i := 0; i < len(e.Data); i += sector {
		if !kept() {
			continue
		}
		part := e.Data[i:min(i+sector, len(e.Data))]
		at := e.At + int64(i)
		if end := at + int64(len(part)); end > int64(len(c.data)) {
			c.resize(end)
		}
		copy(c.data[at:], part)
	}
}

func (c *content) resize(size int64) {
	if n := size - int64(len(c.data)); n > 0 {
		c.data = append(c.data, make([]byte, n)...)
	}
	clear(c.data[size:]) // these bytes may be used again by an append
	c.data = c.data[:size]
}
