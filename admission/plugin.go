package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Plugin is an element of a Chain.
type Plugin struct {
	// Name is the name of the plug-in for operators, such as "NamespaceLifecycle". A Live requires it.
	Name string
	// Handles selects the requests for which the plug-in is called.
	Handles Handles
	// Mutator changes objects. It may be nil.
	Mutator Mutator
	// Validator validates changes. It may be nil.
	Validator Validator
}

// Handles selects the requests for which a plug-in is called. The zero Handles selects all requests.
type Handles struct {
	// Operations are the handled operations; nil means all.
	Operations []Operation
	// Resources are the handled resources, in all versions and with their subresources; nil means all. Each is the plural name
	// with its group, such as {Group: "apps", Resource: "deployments"}. A resource that is not served is never handled. A name of
	// the form "pods/eviction" selects only this subresource.
	Resources []schema.GroupResource
}

// Check returns an error that wraps ErrPlugin if p has no name, has neither a Mutator nor a Validator, or has invalid Handles.
func (p Plugin) Check() error {
	switch {
	case p.Name == "":
		return fmt.Errorf("%w: it has no name", ErrPlugin)
	case p.Mutator == nil && p.Validator == nil:
		return fmt.Errorf("%w: %q has neither a Mutator nor a Validator", ErrPlugin, p.Name)
	}
	for _, op := range p.Handles.Operations {
		if !slices.Contains([]Operation{Create, Update, Delete, Connect}, op) {
			return fmt.Errorf("%w: %q handles the operation %q; want %s, %s, %s or %s", ErrPlugin, p.Name, op, Create, Update, Delete, Connect)
		}
	}
	for _, r := range p.Handles.Resources {
		if r.Resource == "" || strings.ToLower(r.Resource) != r.Resource {
			return fmt.Errorf("%w: %q handles the resource %q; want the plural of a kind, in lower case", ErrPlugin, p.Name, r.Resource)
		}
	}
	return nil
}

// handles reports whether the plug-in is called for r.
func (h *Handles) handles(r *Request) bool {
	if h.Operations != nil && !slices.Contains(h.Operations, r.Operation) {
		return false
	}
	return h.Resources == nil || slices.ContainsFunc(h.Resources, func(one schema.GroupResource) bool {
		if one.Group != r.Resource.Group {
			return false
		}
		return one.Resource == r.Resource.Resource ||
			r.Subresource != "" && len(one.Resource) == len(r.Resource.Resource)+1+len(r.Subresource) &&
				one.Resource == r.Resource.Resource+"/"+r.Subresource
	})
}

// Chain is a list of plug-ins in the order in which they are called. It must not be changed while it is in use. A nil Chain
// accepts every change.
type Chain []Plugin

// Policy implements Source, for a server whose only policy is the chain.
func (c Chain) Policy(context.Context) *Policy { return &Policy{Plugins: c} }

// Mutates reports whether a mutator of the chain handles r.
func (c Chain) Mutates(r *Request) bool {
	for i := range c {
		if c[i].Mutator != nil && c[i].Handles.handles(r) {
			return true
		}
	}
	return false
}

// Validates reports whether a validator of the chain handles r.
func (c Chain) Validates(r *Request) bool {
	for i := range c {
		if c[i].Validator != nil && c[i].Handles.handles(r) {
			return true
		}
	}
	return false
}

// Mutate calls the mutators that handle r in order, until one returns an error. It calls all of them once more if one has called
// [Request.Reinvoke].
func (c Chain) Mutate(ctx context.Context, r *Request) error {
	r.Reinvocation, r.again = false, false
	if err := c.mutate(ctx, r); err != nil || !r.again {
		return err
	}
	r.Reinvocation = true
	defer func() { r.Reinvocation = false }()
	return c.mutate(ctx, r)
}

func (c Chain) mutate(ctx context.Context, r *Request) error {
	for i := range c {
		if m := c[i].Mutator; m != nil && c[i].Handles.handles(r) {
			if err := m.Mutate(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate calls the validators that handle r in order, until one returns an error.
func (c Chain) Validate(ctx context.Context, r *Request) error {
	for i := range c {
		if v := c[i].Validator; v != nil && c[i].Handles.handles(r) {
			if err := v.Validate(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}
