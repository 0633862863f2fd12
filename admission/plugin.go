package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Plugin is a member of a Chain.
type Plugin struct {
	// Name is how operators know the plug-in, such as "NamespaceLifecycle". A Live needs it.
	Name string
	// Handles says which requests the plug-in is called for.
	Handles Handles
	// Mutator and Validator are what the plug-in does; either may be nil.
	Mutator   Mutator
	Validator Validator
}

// Handles says which requests a plug-in is called for. The zero Handles is all of them.
type Handles struct {
	// Operations are those that are handled; nil is all.
	Operations []Operation
	// Resources are those that are handled, in all versions, and their subresources with them; nil is all. Each is the plural
	// with its group, such as {Group: "apps", Resource: "deployments"}; one that is not served is never handled. A resource
	// of the form "pods/eviction" is that subresource alone.
	Resources []schema.GroupResource
}

// Check returns an error that wraps ErrPlugin if p is no plug-in that could be called.
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

// Chain is plug-ins in the order in which they are asked. It is not changed once it is in use. The nil Chain accepts
// everything.
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

// Mutate runs the mutators that handle r, in order, until one refuses; and once more if one has called [Request.Reinvoke].
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

// Validate runs the validators that handle r, in order, until one refuses.
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
