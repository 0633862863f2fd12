package definition_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
)

// FuzzValidate checks that no input of a client makes this package panic or return something else the second time, that defaults
// and the canonical form are idempotent, and that validation changes nothing.
func FuzzValidate(f *testing.F) {
	validator := validatorOf(f)
	seeds := 0
	for _, name := range []string{"corpus", "rules"} {
		corpus(f, name, func(g *golden) {
			if seeds++; seeds%8 == 0 {
				f.Add([]byte(g.CRD), []byte(g.Old))
			}
		})
	}
	f.Fuzz(func(t *testing.T, text, oldText []byte) {
		c, old := &crd{}, &crd{}
		if json.Unmarshal(text, c) != nil {
			return
		}
		if json.Unmarshal(oldText, old) != nil {
			old = c.DeepCopy()
		}
		definition.SetDefaults(c)
		definition.SetDefaults(old)
		again := c.DeepCopy()
		definition.SetDefaults(again)
		if !reflect.DeepEqual(c, again) {
			t.Error("defaults are not idempotent")
		}
		oldBefore := old.DeepCopy()

		created, updated, status := c.DeepCopy(), c.DeepCopy(), c.DeepCopy()
		definition.PrepareForCreate(created)
		definition.PrepareForUpdate(updated, old)
		definition.PrepareForStatusUpdate(status, old)
		before := created.DeepCopy()
		errs, errsAgain := validator.Validate(t.Context(), created), validator.Validate(t.Context(), created)
		if !reflect.DeepEqual(rows(errs, true), rows(errsAgain, true)) {
			t.Errorf("once %v, then %v", errs, errsAgain)
		}
		if !reflect.DeepEqual(definition.Warnings(created, nil), definition.Warnings(created, nil)) {
			t.Error("other warnings the second time")
		}
		if len(definition.Warnings(created, created)) > 0 {
			t.Error("warnings of what does not change")
		}
		if !reflect.DeepEqual(created, before) {
			t.Error("judging has changed it")
		}
		if len(errs) == 0 {
			if errs := validator.ValidateUpdate(t.Context(), created, before); len(errs) > 0 {
				t.Errorf("fine as a new one, but not when nothing changes: %v", errs)
			}
		}
		validator.ValidateUpdate(t.Context(), updated, old)
		definition.Warnings(updated, old)
		definition.ValidateStatusUpdate(status, old)
		if !reflect.DeepEqual(old, oldBefore) {
			t.Error("the old one has changed")
		}

		definition.Canonicalize(created)
		again = created.DeepCopy()
		definition.Canonicalize(again)
		if !reflect.DeepEqual(created, again) {
			t.Error("the canonical form is not canonical")
		}
		if len(errs) == 0 {
			if errs := validator.Validate(t.Context(), again); len(errs) > 0 {
				t.Errorf("the canonical form is not fine: %v", errs)
			}
			if _, err := json.Marshal(again); err != nil {
				t.Errorf("what is valid cannot be stored: %v", err)
			}
		}
	})
}
