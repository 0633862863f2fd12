package runtime_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Logs are in two groups. v1 of the first group is the hub; the second group has two versions with other field names.
type (
	Log = runtime.Resource[struct {
		About string `json:"about,omitempty"`
		Count int32  `json:"count,omitempty"`
	}, struct{}]
	NewLog = runtime.Resource[struct {
		Regarding string `json:"regarding,omitempty"`
		Count     int32  `json:"count,omitempty"`
	}, struct{}]
	NewLogV2 = runtime.Resource[struct {
		Subject string `json:"subject,omitempty"`
		Times   int32  `json:"times,omitempty"`
	}, struct{}]
)

var (
	oldLog   = schema.GroupVersionKind{Version: "v1", Kind: "Log"}
	newLog   = schema.GroupVersionKind{Group: "logs.example.com", Version: "v1", Kind: "Log"}
	newLogV2 = schema.GroupVersionKind{Group: "logs.example.com", Version: "v2", Kind: "Log"}
)

func joinLogs(s *runtime.Scheme) error {
	return runtime.AddConversion(s,
		func(in *NewLog, out *Log) error {
			out.Spec.About, out.Spec.Count = in.Spec.Regarding, in.Spec.Count
			return nil
		},
		func(in *Log, out *NewLog) error {
			out.Spec.Regarding, out.Spec.Count = in.Spec.About, in.Spec.Count
			return nil
		})
}

func joinLogsV2(s *runtime.Scheme) error {
	return runtime.AddConversion(s,
		func(in *NewLogV2, out *Log) error {
			out.Spec.About, out.Spec.Count = in.Spec.Subject, in.Spec.Times
			return nil
		},
		func(in *Log, out *NewLogV2) error {
			out.Spec.Subject, out.Spec.Times = in.Spec.About, in.Spec.Count
			return nil
		})
}

// separateLogs returns a scheme with the kinds of both groups, not joined.
func separateLogs(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	must(t, runtime.Register(s, newLog, runtime.KindOptions[*NewLog]{RenamedFields: map[string]string{"spec.regarding": "spec.about"}, SelectableFields: []string{"spec.count"}}))
	must(t, runtime.Register(s, newLogV2, runtime.KindOptions[*NewLogV2]{}))
	must(t, runtime.Register(s, oldLog, runtime.KindOptions[*Log]{SelectableFields: []string{"spec.about", "spec.count"}}))
	return s
}

func logs(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := separateLogs(t)
	must(t, joinLogs(s))
	must(t, joinLogsV2(s))
	return s
}

func aLog() *Log {
	l := &Log{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}}}
	l.Spec.About, l.Spec.Count = "it", 3
	return l
}

func TestAKindInTwoGroups(t *testing.T) {
	s := logs(t)
	for _, gk := range []schema.GroupKind{oldLog.GroupKind(), newLog.GroupKind()} {
		if hub, ok := s.Hub(gk); !ok || hub != oldLog {
			t.Errorf("the hub of %s is %s", gk, hub)
		}
		var versions []schema.GroupVersionKind
		for _, k := range s.Versions(gk) {
			versions = append(versions, k.GVK)
		}
		if want := []schema.GroupVersionKind{oldLog, newLogV2, newLog}; !slices.Equal(versions, want) {
			t.Errorf("versions of %s: %v, want %v", gk, versions, want)
		}
	}
	if got := s.GroupKinds(); !slices.Equal(got, []schema.GroupKind{oldLog.GroupKind(), newLog.GroupKind()}) {
		t.Errorf("the kinds are %v", got)
	}
	if !s.OneKind(oldLog.GroupKind(), newLog.GroupKind()) || s.OneKind(oldLog.GroupKind(), schema.GroupKind{Kind: "None"}) || s.OneKind(schema.GroupKind{}, schema.GroupKind{}) {
		t.Error("what is one kind")
	}
	for _, gvk := range []schema.GroupVersionKind{oldLog, newLog, newLogV2} {
		if !s.Converts(gvk) {
			t.Errorf("%s does not convert", gvk)
		}
	}
}

func TestToVersionOfAnotherGroup(t *testing.T) {
	s := logs(t)
	out, err := s.ToVersion(aLog(), newLog.GroupVersion())
	must(t, err)
	n := out.(*NewLog)
	if n.APIVersion != "logs.example.com/v1" || n.Kind != "Log" || n.Name != "a" || n.Labels["k"] != "v" || n.Spec.Regarding != "it" || n.Spec.Count != 3 {
		t.Errorf("in the other group: %+v", n)
	}
	out, err = s.ToVersion(n, newLogV2.GroupVersion()) // through the hub
	must(t, err)
	if v2 := out.(*NewLogV2); v2.APIVersion != "logs.example.com/v2" || v2.Spec.Subject != "it" || v2.Spec.Times != 3 {
		t.Errorf("in another version of the other group: %+v", v2)
	}
	out, err = s.ToVersion(out, oldLog.GroupVersion())
	must(t, err)
	if back := out.(*Log); back.APIVersion != "v1" || back.Spec.About != "it" {
		t.Errorf("back: %+v", back)
	}
	list, err := s.ToVersion(&runtime.List[Log]{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []Log{*aLog()}}, newLog.GroupVersion())
	must(t, err)
	if l := list.(*runtime.List[NewLog]); l.APIVersion != "logs.example.com/v1" || l.Kind != "LogList" || l.ResourceVersion != "7" || l.Items[0].Spec.Regarding != "it" {
		t.Errorf("a list: %+v", l)
	}

	var target NewLog
	must(t, s.Convert(aLog(), &target, nil))
	if target.Spec.Regarding != "it" || target.APIVersion != "logs.example.com/v1" {
		t.Errorf("converted into: %+v", target)
	}
}

// Field managers convert objects to the version that an entry of managedFields names.
func TestConvertToVersionOfAnotherGroup(t *testing.T) {
	s := logs(t)
	list := &runtime.List[Log]{Items: []Log{*aLog()}}
	for name, c := range map[string]struct {
		in     runtime.Object
		target apiruntime.GroupVersioner
		want   runtime.Object
	}{
		"a version":            {aLog(), newLogV2.GroupVersion(), &NewLogV2{}},
		"its own":              {aLog(), oldLog.GroupVersion(), &Log{}},
		"of several":           {aLog(), schema.GroupVersions{newLogV2.GroupVersion(), newLog.GroupVersion()}, &NewLogV2{}},
		"of the other group":   {&NewLog{}, schema.GroupVersions{{Group: "x", Version: "v1"}, oldLog.GroupVersion()}, &Log{}},
		"a list":               {list, newLog.GroupVersion(), &runtime.List[NewLog]{}},
		"a list, by its kind":  {list, apiruntime.NewMultiGroupVersioner(newLog.GroupVersion(), schema.GroupKind{Group: "x"}, schema.GroupKind{Group: newLog.Group, Kind: "LogList"}), &runtime.List[NewLog]{}},
		"no group of the kind": {aLog(), schema.GroupVersion{Group: "x", Version: "v1"}, nil},
	} {
		out, err := s.ConvertToVersion(c.in, c.target)
		if reflect.TypeOf(out) != reflect.TypeOf(c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %T, %v", name, out, err)
		}
		if c.want == nil && !apiruntime.IsNotRegisteredError(err) {
			t.Errorf("%s: %v, want an error that says it is not registered", name, err)
		}
	}
	if _, err := s.ConvertToVersion(&unstructured.Unstructured{Object: map[string]any{"kind": "Log", "apiVersion": "v1"}}, newLog.GroupVersion()); err == nil {
		t.Error("an untyped object is of no kind of the scheme")
	}
}

func TestSelectableFieldsOfTwoGroups(t *testing.T) {
	s := logs(t)
	for _, gk := range []schema.GroupKind{oldLog.GroupKind(), newLog.GroupKind()} {
		want := map[string]map[string]string{
			"logs.example.com/v1": {"spec.about": "spec.regarding"},
			"logs.example.com/v2": {"spec.about": "", "spec.count": ""},
		}
		if got := s.FieldPaths(gk); !reflect.DeepEqual(got, want) {
			t.Errorf("paths of %s: %v, want %v", gk, got, want)
		}
	}
	for _, c := range []struct {
		gvk         schema.GroupVersionKind
		label, want string
	}{
		{newLog, "spec.regarding", "spec.about"},
		{newLog, "spec.count", "spec.count"},
		{newLog, "spec.about", ""},
		{oldLog, "spec.about", "spec.about"},
		{oldLog, "spec.regarding", ""},
	} {
		if got, _, err := s.ConvertFieldLabel(c.gvk, c.label, "x"); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s in %s: %q, %v", c.label, c.gvk, got, err)
		}
	}
}

// Kinds of two groups that are not joined only have the same name.
func TestKindsOfOneNameAreNotJoinedByIt(t *testing.T) {
	s := separateLogs(t)
	for _, obj := range []runtime.Object{aLog(), &NewLog{}, &runtime.List[Log]{}} {
		gv := newLog.GroupVersion()
		if _, ok := obj.(*NewLog); ok {
			gv = oldLog.GroupVersion()
		}
		if out, err := s.ToVersion(obj, gv); err == nil || !apiruntime.IsNotRegisteredError(err) {
			t.Errorf("%T to %s: %v, %v", obj, gv, out, err)
		}
	}
	if err := s.Convert(aLog(), &NewLog{}, nil); err == nil || !strings.Contains(err.Error(), "unknown conversion") {
		t.Errorf("into the other: %v", err)
	}
	if hub, _ := s.Hub(newLog.GroupKind()); hub != newLog {
		t.Errorf("the hub is %s", hub)
	}
	if s.OneKind(oldLog.GroupKind(), newLog.GroupKind()) {
		t.Error("they are one kind")
	}
}

func TestWhatKeepsGroupsApart(t *testing.T) {
	nothing := func(*NewLogV2, *NewLog) error { return nil }
	back := func(*NewLog, *NewLogV2) error { return nil }
	type Third = runtime.Resource[struct{ T int }, struct{}]
	third := schema.GroupVersionKind{Group: "third.example.com", Version: "v1", Kind: "Log"}
	type Other = runtime.Resource[struct{ O int }, struct{}]
	for name, c := range map[string]struct {
		make func(t *testing.T) (*runtime.Scheme, error)
		want string
	}{
		"another name": {func(t *testing.T) (*runtime.Scheme, error) {
			s := separateLogs(t)
			must(t, runtime.Register(s, third.GroupVersion().WithKind("Diary"), runtime.KindOptions[*Third]{}))
			return s, runtime.AddConversion(s, func(*Third, *Log) error { return nil }, func(*Log, *Third) error { return nil })
		}, "they are not versions of one kind, which has one name in all"},
		"a hub with spokes": {func(t *testing.T) (*runtime.Scheme, error) {
			s := runtime.NewScheme()
			must(t, runtime.Register(s, oldLog, runtime.KindOptions[*Log]{}))
			must(t, runtime.Register(s, newLog, runtime.KindOptions[*NewLog]{}))
			must(t, runtime.Register(s, newLogV2, runtime.KindOptions[*NewLogV2]{}))
			must(t, runtime.AddConversion(s, nothing, back))
			return s, joinLogs(s)
		}, "versions are joined to the hub logs.example.com/v1, Kind=Log already; convert each of them to /v1, Kind=Log instead"},
		"a hub on purpose": {func(*testing.T) (*runtime.Scheme, error) {
			s := runtime.NewScheme()
			must(t, runtime.Register(s, oldLog, runtime.KindOptions[*Log]{}))
			must(t, runtime.Register(s, newLog, runtime.KindOptions[*NewLog]{Hub: true}))
			return s, joinLogs(s)
		}, "logs.example.com/v1, Kind=Log was registered as the hub of its group, and a kind has one; remove Hub there"},
		"to a spoke": {func(t *testing.T) (*runtime.Scheme, error) {
			s := logs(t)
			must(t, runtime.Register(s, third, runtime.KindOptions[*Third]{}))
			return s, runtime.AddConversion(s, func(*Third, *NewLog) error { return nil }, func(*NewLog, *Third) error { return nil })
		}, "the hub is /v1, Kind=Log; convert to it"},
		"two hubs": {func(t *testing.T) (*runtime.Scheme, error) {
			s := logs(t)
			must(t, runtime.Register(s, third, runtime.KindOptions[*Third]{}))
			return s, runtime.AddConversion(s, func(*Log, *Third) error { return nil }, func(*Third, *Log) error { return nil })
		}, "versions are joined to the hub /v1, Kind=Log already"},
		"twice": {func(t *testing.T) (*runtime.Scheme, error) { s := logs(t); return s, joinLogs(s) }, "there is one already"},
		"fields that do not fit": {func(t *testing.T) (*runtime.Scheme, error) {
			s := runtime.NewScheme()
			must(t, runtime.Register(s, oldLog, runtime.KindOptions[*Log]{}))
			must(t, runtime.Register(s, newLog, runtime.KindOptions[*NewLog]{RenamedFields: map[string]string{"spec.regarding": "spec.about"}}))
			err := joinLogs(s)
			if hub, _ := s.Hub(newLog.GroupKind()); hub != newLog {
				t.Errorf("a join that is refused makes %s the hub", hub)
			}
			return s, err
		}, `"spec.about" is no selectable field of the hub /v1, Kind=Log`},
		"a hub in the other group, later": {func(t *testing.T) (*runtime.Scheme, error) {
			s := logs(t)
			return s, runtime.Register(s, newLog.GroupKind().WithVersion("v3"), runtime.KindOptions[*Other]{Hub: true})
		}, "the kind is joined to the hub /v1, Kind=Log; remove Hub, and convert this version to that"},
		"another hub in the hub's group, later": {func(t *testing.T) (*runtime.Scheme, error) {
			s := logs(t)
			return s, runtime.Register(s, oldLog.GroupKind().WithVersion("v3"), runtime.KindOptions[*Other]{Hub: true})
		}, "conversions to the hub /v1, Kind=Log exist already; register the hub before them"},
	} {
		if _, err := c.make(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// A version that is registered later in either group shares the hub, and needs its conversion.
func TestAVersionThatComesLaterToTwoGroups(t *testing.T) {
	s := separateLogs(t)
	must(t, joinLogs(s))
	if s.Converts(newLogV2) {
		t.Error("v2 has no conversion yet")
	}
	if _, err := s.ToVersion(&NewLogV2{}, oldLog.GroupVersion()); err == nil || !strings.Contains(err.Error(), "no conversion is registered; add one with AddConversion") {
		t.Errorf("without a conversion: %v", err)
	}
	must(t, joinLogsV2(s))
	type Late = runtime.Resource[struct{ L int }, struct{}]
	late := oldLog.GroupKind().WithVersion("v1alpha1")
	must(t, runtime.Register(s, late, runtime.KindOptions[*Late]{}))
	must(t, runtime.AddConversion(s, func(*Late, *Log) error { return nil }, func(*Log, *Late) error { return nil }))
	if _, err := s.ToVersion(&Late{}, newLogV2.GroupVersion()); err != nil {
		t.Error(err)
	}
	if n := len(s.Versions(newLog.GroupKind())); n != 4 {
		t.Errorf("%d versions", n)
	}
}

// The test removes all versions of one group, or of both, and checks which versions are left.
func TestUnregisterAKindInTwoGroups(t *testing.T) {
	s := logs(t)
	s.Unregister(newLog, newLogV2)
	if _, ok := s.Hub(newLog.GroupKind()); ok || len(s.Versions(oldLog.GroupKind())) != 1 || s.OneKind(oldLog.GroupKind(), newLog.GroupKind()) {
		t.Error("the group whose versions went is still joined")
	}
	must(t, runtime.Register(s, newLog, runtime.KindOptions[*NewLog]{Hub: true}))
	if hub, _ := s.Hub(newLog.GroupKind()); hub != newLog {
		t.Errorf("registered again, the hub is %s", hub)
	}
	s = logs(t)
	s.Unregister(newLog)
	if hub, _ := s.Hub(newLog.GroupKind()); hub != oldLog || !s.Converts(newLogV2) {
		t.Errorf("without one of two versions the hub is %s", hub)
	}
	s.Unregister(oldLog, newLogV2)
	if len(s.GroupKinds()) != 0 {
		t.Errorf("left are %v", s.GroupKinds())
	}
}

func TestVersionsBeginWithTheGroupOfTheHub(t *testing.T) {
	s := runtime.NewScheme()
	hub := newLog.GroupKind().WithVersion("v1alpha1")
	must(t, runtime.Register(s, oldLog, runtime.KindOptions[*Log]{}))
	must(t, runtime.Register(s, hub, runtime.KindOptions[*NewLog]{}))
	must(t, runtime.AddConversion(s, func(*Log, *NewLog) error { return nil }, func(*NewLog, *Log) error { return nil }))
	if all := s.Versions(oldLog.GroupKind()); len(all) != 2 || all[0].GVK != hub {
		t.Errorf("the first of %d versions is %s", len(all), all[0].GVK)
	}
}
