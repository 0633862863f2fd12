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
	// restAfter is the minimum time for which an unused compiled schema is kept. The maximum is twice that.
	restAfter = 2 * time.Minute
	// mostCompiled is about the maximum size in bytes of all compiled schemas and rules. Above it, the least recently used ones
	// are dropped. They are compiled again when they are needed.
	mostCompiled = 256 << 20
	// compiledPerByte is about how many bytes a compiled schema takes per byte of its JSON. compiledPerRule is about how many
	// bytes each rule adds.
	compiledPerByte = 5
	compiledPerRule = 24 << 10
)

// fingerprint identifies the schema of a version, with its descriptions.
type fingerprint struct {
	text         [sha256.Size]byte
	keepsUnknown bool
}

// library has the schemas of all served definitions. Equal schemas of several versions, of several definitions, or of a
// definition before and after a change are one value. It is stored once and compiled once, and is valid as long as it is
// referenced. A compiled schema that is not used for a while is dropped; callers that have it may go on using it. All methods may
// be called concurrently.
type library struct {
	compiler *celrules.Compiler
	most     int64        // maximum bytes of compiled schemas
	tick     atomic.Int64 // incremented by each sweep; the time of use of schemas
	begun    chan struct{}

	mu       sync.Mutex // guards all fields below
	schemas  map[fingerprint]weak.Pointer[objectSchema]
	compiled map[weak.Pointer[objectSchema]]int64 // the compiled schemas, with about their size in bytes
	bytes    int64                                // sum of compiled
}

func newLibrary(compiler *celrules.Compiler) *library {
	return &library{
		compiler: compiler, most: mostCompiled, begun: make(chan struct{}, 1),
		schemas: map[fingerprint]weak.Pointer[objectSchema]{}, compiled: map[weak.Pointer[objectSchema]]int64{},
	}
}

// schemasOf returns the schemas of a definition's versions, by version name.
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
		if err == nil {
			versions[v.Name].adopt(props)
		}
		if err != nil {
			return nil, fmt.Errorf("version %s: schema: %w", v.Name, err)
		}
	}
	return versions, nil
}

// schema returns the schema of a JSON text. It returns the same value as long as that is referenced.
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

// gone removes a schema that is no longer referenced.
func (l *library) gone(key fingerprint, at weak.Pointer[objectSchema]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schemas[key] == at {
		delete(l.schemas, key)
	}
	l.bytes -= l.compiled[at]
	delete(l.compiled, at)
}

// used records that a schema is used now.
func (l *library) used(s *objectSchema) {
	if now := l.tick.Load(); s.last.Load() != now {
		s.last.Store(now)
	}
}

// took records that the compiled form of s takes more additional bytes, and makes room for them.
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

// shrink drops the least recently used schemas until three quarters of the maximum are left, so that it is seldom called. The
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

// sweep drops the compiled schemas that were not used since the sweep before the last one. It reports whether any are left.
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

// drop drops the compiled form of a schema. The caller holds mu.
func (l *library) drop(s *objectSchema) {
	at := weak.Make(s)
	s.now.Store(nil)
	l.bytes -= l.compiled[at]
	delete(l.compiled, at)
}

// run calls sweep every restAfter until ctx ends, as long as there are compiled schemas.
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
