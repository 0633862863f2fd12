package rules

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sum is the concatenation of two lists. It is converted to a list of cel-go when more than its size is needed.
type sum struct {
	first  *list
	second traits.Lister
	whole  traits.Lister // nil until needed
}

// list returns the elements in a list of cel-go.
func (s *sum) list() traits.Lister {
	if s.whole == nil {
		s.first.m.spend(sizeOf(s.second))
		all := s.first.all()
		for it := s.second.Iterator(); it.HasNext() == types.True; {
			all = append(all, it.Next())
		}
		s.whole = types.NewRefValList(types.DefaultTypeAdapter, all)
	}
	return s.whole
}

// ConvertToNative implements ref.Val.
func (s *sum) ConvertToNative(t reflect.Type) (any, error) { return s.list().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (s *sum) ConvertToType(t ref.Type) ref.Val { return s.list().ConvertToType(t) }

// Type implements ref.Val.
func (s *sum) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (s *sum) Value() any { return s.list().Value() }

// Size implements traits.Sizer.
func (s *sum) Size() ref.Val { return types.Int(len(s.first.elements) + sizeOf(s.second)) }

// Get implements traits.Indexer.
func (s *sum) Get(index ref.Val) ref.Val { return s.list().Get(index) }

// Contains implements traits.Container.
func (s *sum) Contains(value ref.Val) ref.Val { return s.list().Contains(value) }

// Equal implements ref.Val.
func (s *sum) Equal(other ref.Val) ref.Val { return s.list().Equal(other) }

// Add implements traits.Adder.
func (s *sum) Add(other ref.Val) ref.Val { return s.list().Add(other) }

// Iterator implements traits.Iterable.
func (s *sum) Iterator() traits.Iterator { return s.list().Iterator() }
