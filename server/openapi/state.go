package openapi

import (
	"fmt"
	"sync"
)

// newState returns the state for groups. It uses the documents of before that have not changed; before may be nil.
func (s *Service) newState(groups []GroupVersion, before *state) *state {
	o, out := s.opts, &state{documents: map[string]*document{}}
	add := func(key string, source GroupVersion, make func() parts) {
		if before != nil {
			if old, ok := before.documents[key]; ok && old.source.equal(source) {
				out.documents[key] = old
				return
			}
		}
		out.documents[key] = s.newDocument(key, source, make)
	}
	add("apis", GroupVersion{}, func() parts { return groupListParts(o) })
	add("version", GroupVersion{}, versionParts)
	for _, gv := range groups {
		if gv.Group == "" {
			add("api", GroupVersion{}, func() parts { return coreVersionsParts(o) })
		} else {
			add("apis/"+gv.Group, GroupVersion{}, func() parts { return groupParts(o, gv.Group) })
		}
		add(gv.root()[1:], gv, func() parts { return groupVersionParts(o, gv) })
	}
	out.index = sync.OnceValue(func() *encoded { return index(out.documents) })
	out.v2 = sync.OnceValue(func() *encoded { return s.v2(out.documents) })
	return out
}

// newDocument returns a document whose forms are made once, when they are requested first. Its hash is that of foresee, if there
// is one, or else that of the document.
func (s *Service) newDocument(key string, source GroupVersion, make func() parts) *document {
	d := &document{source: source}
	foreseen := sync.OnceValue(func() string { return foresee(s.opts, s.program(), key, source) })
	d.get = sync.OnceValue(func() *encoded {
		s.building.Lock()
		defer s.building.Unlock()
		e := encode(v3(s.opts, make()), checkV3)
		if e.err != nil {
			e.err = fmt.Errorf("the OpenAPI document %s is wrong: %w", key, e.err)
		} else if hash := foreseen(); hash != "" {
			e.hash = hash
		}
		return e
	})
	d.hash = func() string {
		if hash := foreseen(); hash != "" {
			return hash
		}
		return d.get().hash
	}
	d.share = sync.OnceValue(func() *share {
		if foreseen() == "" && d.get().err != nil { // if the hash is foreseen, the document need not be made here
			return nil
		}
		s.building.Lock()
		defer s.building.Unlock()
		return newShare(s.opts, &s.commons, s.compressorNow(), make())
	})
	return d
}
