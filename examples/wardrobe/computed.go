package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OutfitSpec is what to wear.
type OutfitSpec struct {
	// Shirt is a shelf and a garment on it, such as top/blouse.
	Shirt string `json:"shirt,omitempty" print:"Shirt"`
	// Trousers are a shelf and a garment on it.
	Trousers string `json:"trousers,omitempty" print:"Trousers"`
	// Coat is a shelf and a garment on it.
	Coat string `json:"coat,omitempty" print:"Coat"`
	// Hat is a shelf and a garment on it.
	Hat string `json:"hat,omitempty" print:"Hat,wide"`
}

// Outfit is what the shelves of a namespace have to offer for one season. It is made when it is asked for, and not stored.
type Outfit = runtime.Resource[OutfitSpec, struct{}]

// outfits computes outfits from the shelves. They can be read and listed, because it has no other functions.
func outfits(shelves *registry.Typed[*Shelf]) *server.Computed[*Outfit] {
	return &server.Computed[*Outfit]{
		Get: func(call *registry.Call, season string) (*Outfit, error) {
			if season != "summer" && season != "winter" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: "outfits"}, season)
			}
			all, err := shelves.List(call, call.Namespace, registry.ListOptions{})
			return outfit(all, call.Namespace, season), err
		},
		List: func(call *registry.Call, _ *metav1.ListOptions) ([]*Outfit, error) {
			all, err := shelves.List(call, call.Namespace, registry.ListOptions{})
			var out []*Outfit
			done := map[string]bool{}
			for _, s := range all {
				if !done[s.Namespace] {
					done[s.Namespace] = true
					out = append(out, outfit(all, s.Namespace, "summer"), outfit(all, s.Namespace, "winter"))
				}
			}
			return out, err
		},
	}
}

// outfit returns the first garments of each kind for a season.
func outfit(shelves []*Shelf, namespace, season string) *Outfit {
	out := &Outfit{ObjectMeta: metav1.ObjectMeta{Name: season, Namespace: namespace}}
	places := map[string]*string{"shirt": &out.Spec.Shirt, "trousers": &out.Spec.Trousers, "coat": &out.Spec.Coat, "hat": &out.Spec.Hat}
	for _, s := range shelves {
		if s.Namespace != namespace || s.Spec.Season != season && s.Spec.Season != "always" {
			continue
		}
		for _, g := range s.Spec.Garments {
			if place := places[g.Kind]; place != nil && *place == "" {
				*place = s.Name + "/" + g.Name
			}
		}
	}
	return out
}

// look serves shelves/<name>/look, which is not an object: it answers GET with a drawing of the shelf in plain text.
type look struct {
	shelves *registry.Typed[*Shelf] // set by Open
}

// Open implements registry.Opener.
func (l *look) Open(r *registry.Registry) (err error) {
	l.shelves, err = registry.For[*Shelf](r, authn.System())
	return err
}

// ConnectMethods implements registry.Connecter.
func (*look) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect implements registry.Connecter.
func (l *look) Connect(call *registry.Call, name, _ string, _ *http.Request) (http.Handler, error) {
	s, err := l.shelves.Get(call, call.Namespace, name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		var words []string
		for _, g := range s.Spec.Garments {
			words = append(words, strings.TrimSpace(g.Color+" "+g.Kind))
		}
		fmt.Fprintf(w, "|%s|\n", strings.Join(words, "|")) // ignore the error: the client has gone
	}), nil
}
