package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
)

// join makes one document from many shares. It uses the compressed sections as they are: for a thousand kinds, their text would
// be some hundred MB. A definition that several shares have is the same in all of them, except for its kinds, which are joined.
func join(o Options, z *gzipparts.Compressor, shares []*share) (*encoded, error) {
	whole, err := joined(o, z, shares)
	if err != nil {
		return nil, err
	}
	shares = append([]*share{whole}, shares...) // first, so that its definitions replace those of other shares
	var paths, definitions []cut
	taken := map[string]bool{}
	for _, s := range shares {
		paths = append(paths, s.paths.without(map[string]bool{}))
		for _, d := range s.definitions {
			definitions = append(definitions, d.without(taken))
		}
	}
	empty, err := json.Marshal(swagger(o, map[string]spec.PathItem{}, nil))
	if err != nil {
		return nil, err
	}
	e := &encoded{modified: time.Now()}
	if err := e.joinJSON(empty, paths, definitions); err != nil {
		return nil, err
	}
	if err := e.joinProtobuf(empty, paths, definitions); err != nil {
		return nil, err
	}
	return e, nil
}

// joined returns a share with the definitions whose kinds are not the same in all shares. Each has the kinds of all shares.
func joined(o Options, z *gzipparts.Compressor, shares []*share) (*share, error) {
	kinds := map[string][]metav1.GroupVersionKind{}
	seen := map[string]map[metav1.GroupVersionKind]bool{}
	for _, s := range shares {
		for _, list := range s.definitions {
			for i, p := range list.pieces {
				for _, kind := range list.kinds[i] {
					if seen[p.name] == nil {
						seen[p.name] = map[metav1.GroupVersionKind]bool{}
					}
					if !seen[p.name][kind] {
						seen[p.name][kind] = true
						kinds[p.name] = append(kinds[p.name], kind)
					}
				}
			}
		}
	}
	definitions := map[string]map[string]any{}
	for _, s := range shares {
		for _, list := range s.definitions {
			apart := cut{from: list.section}
			for i, p := range list.pieces {
				whole := len(list.kinds[i]) == len(kinds[p.name]) && (!list.bare || len(list.kinds[i]) == 0)
				if !whole && definitions[p.name] == nil {
					definitions[p.name] = map[string]any{extensionKinds: kinds[p.name]}
					apart.pieces = append(apart.pieces, i)
				}
			}
			if len(apart.pieces) == 0 {
				continue
			}
			text, err := list.json.text()
			if err != nil {
				return nil, err
			}
			read := map[string]map[string]any{}
			if err := json.Unmarshal(fmt.Appendf(nil, "{%s}", apart.text(text, jsonEnd)[1:]), &read); err != nil {
				return nil, err
			}
			for name, definition := range read {
				definition[extensionKinds] = kinds[name]
				definitions[name] = definition
			}
		}
	}
	body, err := json.Marshal(map[string]any{"swagger": "2.0", "info": info(o), "paths": map[string]any{}, "definitions": definitions})
	if err != nil {
		return nil, err
	}
	message, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return nil, err
	}
	s, _, err := split(z, body, message, func(string) bool { return false })
	return s, err
}

// cut is a selection of the pieces of a section.
type cut struct {
	from   *section
	pieces []int // the indexes of the selected pieces, ascending
}

// without selects the pieces that are not in taken, and adds them to taken.
func (s *section) without(taken map[string]bool) cut {
	c := cut{from: s}
	for i, p := range s.pieces {
		if !taken[p.name] {
			taken[p.name] = true
			c.pieces = append(c.pieces, i)
		}
	}
	return c
}

func jsonEnd(p piece) int     { return p.json }
func protobufEnd(p piece) int { return p.protobuf }

// text returns the selected pieces of the text of one form. end returns where a piece ends in that form.
func (c cut) text(of []byte, end func(piece) int) []byte {
	var out []byte
	for _, i := range c.pieces {
		from := 0
		if i > 0 {
			from = end(c.from.pieces[i-1])
		}
		out = append(out, of[from:end(c.from.pieces[i])]...)
	}
	return out
}

// addCut adds the selected pieces of one form, b. If first is true, it leaves out the first byte. If all pieces are selected,
// they are not compressed again.
func (a *assembly) addCut(c cut, b block, end func(piece) int, first bool) error {
	if len(c.pieces) == len(c.from.pieces) && !first {
		return a.add(b)
	}
	text, err := b.text()
	if err != nil {
		return err
	}
	text = c.text(text, end)
	if first {
		text = text[1:]
	}
	_, err = a.Write(text)
	return err
}

// protobufSize returns how many bytes the selected pieces have in protobuf.
func (c cut) protobufSize() int {
	size := 0
	for _, i := range c.pieces {
		size += c.from.pieces[i].protobuf
		if i > 0 {
			size -= c.from.pieces[i-1].protobuf
		}
	}
	return size
}

// joinJSON makes the JSON form: the empty document with the selected paths and definitions.
func (e *encoded) joinJSON(empty []byte, paths, definitions []cut) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(empty, &members); err != nil {
		return err
	}
	first := fmt.Appendf(nil, `{"swagger":%s,`, members["swagger"])
	for _, name := range []string{"swagger", "paths", "definitions"} {
		delete(members, name)
	}
	begin, err := json.Marshal(members) // info is one of them
	if err != nil {
		return err
	}
	begin = append(first, begin[1:]...)
	w := newAssembly()
	if _, err := w.Write(begin[:len(begin)-1]); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		cuts []cut
	}{{"paths", paths}, {"definitions", definitions}} {
		if _, err := fmt.Fprintf(w, ",%q:{", part.name); err != nil {
			return err
		}
		first := true
		for _, c := range part.cuts {
			if len(c.pieces) == 0 {
				continue
			}
			if err := w.addCut(c, c.from.json, jsonEnd, first); err != nil { // each member has a comma before it
				return err
			}
			first = false
		}
		if _, err := io.WriteString(w, "}"); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, "}"); err != nil {
		return err
	}
	e.hash = fmt.Sprintf("%X", w.hash.Sum(nil))
	e.json, err = w.packed()
	return err
}

// joinProtobuf is joinJSON for the protobuf form.
func (e *encoded) joinProtobuf(empty []byte, paths, definitions []cut) error {
	message, err := openapi_v2.ParseDocument(empty)
	if err != nil {
		return err
	}
	message.Paths, message.Definitions = nil, nil
	begin, err := deterministic().Marshal(message)
	if err != nil {
		return err
	}
	p := newAssembly()
	if _, err := p.Write(begin); err != nil {
		return err
	}
	for _, part := range []struct {
		number protowire.Number
		cuts   []cut
	}{{fieldPaths, paths}, {fieldDefinitions, definitions}} {
		size := uint64(0)
		for _, c := range part.cuts {
			size += uint64(c.protobufSize())
		}
		if _, err := p.Write(protowire.AppendVarint(protowire.AppendTag(nil, part.number, protowire.BytesType), size)); err != nil {
			return err
		}
		for _, c := range part.cuts {
			if len(c.pieces) == 0 {
				continue
			}
			if err := p.addCut(c, c.from.protobuf, protobufEnd, false); err != nil {
				return err
			}
		}
	}
	e.protobuf, err = p.packed()
	return err
}

// v2 makes the document of OpenAPI 2.0. It leaves out the documents that have an error in v2 or v3.
func (s *Service) v2(documents map[string]*document) *encoded {
	var shares []*share
	for _, key := range slices.Sorted(maps.Keys(documents)) {
		if part := documents[key].share(); part != nil {
			shares = append(shares, part)
		}
	}
	s.building.Lock()
	defer s.building.Unlock()
	e, err := join(s.opts, s.compressorNow(), shares)
	s.compressor = nil // until another share is made
	if err != nil {
		return &encoded{err: fmt.Errorf("the OpenAPI v2 document is wrong: %w", err)}
	}
	return e
}

// compressorNow returns the compressor of shares. The caller holds building.
func (s *Service) compressorNow() *gzipparts.Compressor {
	if s.compressor == nil {
		s.compressor = new(gzipparts.Compressor)
	}
	return s.compressor
}
