package serving

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/klauspost/compress/flate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// restAfter is how long a compiled schema is kept without use at least; at most it is twice that.
	restAfter = 2 * time.Minute
	// mostCompiled is about how many bytes all compiled schemas and rules may take together. When they take more, those go
	// that were not used for the longest time, to be compiled again when they are needed.
	mostCompiled = 256 << 20
	// A compiled schema takes some bytes for each byte of its JSON, and a rule that much besides.
	compiledPerByte = 5
	compiledPerRule = 24 << 10
)

// fingerprint tells the schemas of versions apart, their descriptions included.
type fingerprint struct {
	text         [sha256.Size]byte
	keepsUnknown bool
}

// library has the schemas of all definitions that are served. One that several versions or definitions have, or that stays when
// a definition changes, is one value: it is held once, compiled once, and what others made of it is good for as long as somebody
// has it. What is compiled is dropped when nobody has used it for a while; who is using it keeps it until he is done. All
// methods may be called concurrently.
type library struct {
	compiler *celrules.Compiler
	most     int64        // bytes of what is compiled
	tick     atomic.Int64 // grows with each sweep: what is used is marked with it
	begun    chan struct{}

	mu       sync.Mutex // guards what follows
	schemas  map[fingerprint]weak.Pointer[objectSchema]
	compiled map[weak.Pointer[objectSchema]]int64 // those that are compiled, with about how many bytes they take so
	bytes    int64                                // of all compiled
}

func newLibrary(compiler *celrules.Compiler) *library {
	return &library{
		compiler: compiler, most: mostCompiled, begun: make(chan struct{}, 1),
		schemas: map[fingerprint]weak.Pointer[objectSchema]{}, compiled: map[weak.Pointer[objectSchema]]int64{},
	}
}

// schemasOf returns the schemas of a definition's versions, by name.
func (l *library) schemasOf(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*objectSchema, error) {
	versions := map[string]*objectSchema{}
	for _, v := range crd.Spec.Versions {
		var props *apiextensionsv1.JSONSchemaProps
		if v.Schema != nil {
			props = v.Schema.OpenAPIV3Schema
		}
		text, err := json.Marshal(props)
		if err == nil {
			versions[v.Name], err = l.schema(text, crd.Spec.PreserveUnknownFields)
		}
		if err != nil {
			return nil, fmt.Errorf("version %s: schema: %w", v.Name, err)
		}
	}
	return versions, nil
}

// schema returns the schema of a JSON text, the same one while somebody has it.
func (l *library) schema(text []byte, keepsUnknown bool) (*objectSchema, error) {
	key := fingerprint{sha256.Sum256(text), keepsUnknown}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.schemas[key].Value(); s != nil {
		return s, nil
	}
	s := &objectSchema{library: l, digest: key.text, keepsUnknown: keepsUnknown}
	s.size, s.ruleSize = int64(len(text))*compiledPerByte, int64(bytes.Count(text, []byte(`"rule":`)))*compiledPerRule
	var err error
	if s.text, err = deflate(text); err != nil {
		return nil, err
	}
	at := weak.Make(s)
	l.schemas[key] = at
	runtime.AddCleanup(s, func(key fingerprint) { l.gone(key, at) }, key)
	return s, nil
}

// gone forgets a schema that nobody has any more.
func (l *library) gone(key fingerprint, at weak.Pointer[objectSchema]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schemas[key] == at {
		delete(l.schemas, key)
	}
	l.bytes -= l.compiled[at]
	delete(l.compiled, at)
}

// used marks a schema as used now.
func (l *library) used(s *objectSchema) {
	if now := l.tick.Load(); s.last.Load() != now {
		s.last.Store(now)
	}
}

// took notes that what is compiled of s takes more bytes than it did, and makes room for them.
func (l *library) took(s *objectSchema, more int64) {
	l.used(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compiled[weak.Make(s)] += more
	l.bytes += more
	if l.bytes > l.most {
		l.shrink(s)
	}
	select {
	case l.begun <- struct{}{}:
	default:
	}
}

// shrink drops what was not used for the longest time until three quarters of what may be are left, so that it is seldom done. The
// caller holds mu.
func (l *library) shrink(except *objectSchema) {
	var all []*objectSchema
	for at := range l.compiled {
		if s := at.Value(); s != nil && s != except {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *objectSchema) int { return cmp.Compare(a.last.Load(), b.last.Load()) })
	for _, s := range all {
		if l.bytes <= l.most/4*3 {
			return
		}
		l.drop(s)
	}
}

// sweep drops what was not used since the sweep before the last one, and reports whether something is left.
func (l *library) sweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.tick.Add(1) - 1
	for at := range maps.Clone(l.compiled) {
		if s := at.Value(); s != nil && s.last.Load() < before {
			l.drop(s)
		}
	}
	return len(l.compiled) > 0
}

// drop drops what is compiled of a schema. The caller holds mu.
func (l *library) drop(s *objectSchema) {
	at := weak.Make(s)
	s.now.Store(nil)
	l.bytes -= l.compiled[at]
	delete(l.compiled, at)
}

// run sweeps now and then until ctx ends, as long as something is compiled.
func (l *library) run(ctx context.Context) {
	for {
		select {
		case <-l.begun:
		case <-ctx.Done():
			return
		}
		for left := true; left && ctx.Err() == nil; left = l.sweep() {
			background.Pause(ctx, restAfter)
		}
	}
}

func deflate(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}
