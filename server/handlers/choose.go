package handlers

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// shownFields chooses records by fields of the objects as the version of the URL shows them. It implements storage.Chooser.
type shownFields struct {
	*endpoint
	selector fields.Selector // all requirements of the request
}

// selectsShown reports whether a field selector requires something of the objects as the version of the URL shows them.
func (e *endpoint) selectsShown(selector fields.Selector) bool {
	return slices.ContainsFunc(requirementsOf(selector), func(r fields.Requirement) bool { return slices.Contains(e.Shown, r.Field) })
}

func requirementsOf(selector fields.Selector) fields.Requirements {
	if selector == nil {
		return nil
	}
	return selector.Requirements()
}

// keySelector returns the requirements of a selector that determine a part of the key of a record. They make the interval of keys
// smaller whose records have to be looked at.
func keySelector(selector fields.Selector) fields.Selector {
	var out []fields.Selector
	for _, r := range requirementsOf(selector) {
		if (r.Field == "metadata.name" || r.Field == "metadata.namespace") && r.Operator != selection.NotEquals {
			out = append(out, fields.OneTermEqualSelector(r.Field, r.Value))
		}
	}
	return fields.AndSelectors(out...)
}

// Choose implements storage.Chooser. The objects that must be converted are converted in runs.
func (s *shownFields) Choose(ctx context.Context, candidates []storage.Candidate, partly bool) ([]bool, error) {
	items := make([]wire.Item, len(candidates))
	t := s.newRun(ctx)
	t.stream = partly
	for i, c := range candidates {
		items[i] = wire.Item{Record: c.Record, Forms: c.Forms, Gone: c.Gone}
		if !s.HasFields(items[i]) {
			t.add(items[i])
			items[i] = t.items[len(t.items)-1]
		}
	}
	verdicts := make([]bool, 0, len(items))
	for _, it := range items {
		of, err := s.Fields(ctx, it)
		if err != nil {
			return verdicts, err
		}
		verdicts = append(verdicts, s.selector.Matches(of))
	}
	return verdicts, nil
}
