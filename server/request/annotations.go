package request

import (
	"context"
	"maps"
	"sync"
)

// Annotations collects the audit annotations of a request: facts that authentication, authorization and admission record for the
// audit event of the request. The zero Annotations is empty. All methods may be called concurrently.
type Annotations struct {
	mu sync.Mutex // guards of
	of map[string]string
}

// Add records an annotation. If the key has a value already, that value stays, as in kube-apiserver.
func (a *Annotations) Add(key, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]string{}
	}
	if _, taken := a.of[key]; !taken {
		a.of[key] = value
	}
}

// All returns the annotations that have been added. The map belongs to the caller, and is nil if there are none.
func (a *Annotations) All() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.of)
}

// Annotate records an audit annotation of the request of ctx. If ctx has no Annotations, the annotation is dropped.
func Annotate(ctx context.Context, key, value string) {
	if v := valuesOf(ctx); v != nil && v.Annotations != nil {
		v.Annotations.Add(key, value)
	}
}
