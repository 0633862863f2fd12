package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/conversion"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	keptRaft = runtime.Resource[struct {
		Logs  int32  `json:"logs"`
		Color string `json:"color,omitempty"`
	}, struct {
		Crew int32 `json:"crew,omitempty"`
	}]
	keptRaftV1Beta1 = runtime.Resource[struct {
		Logs int32 `json:"logs"`
	}, struct{}]
)

// rafts has a kind whose version v1beta1 lacks a field of the hub v1. It is stored in v1beta1 if stored is set.
func rafts(stored bool) server.Group {
	return server.Group{
		Name: "sea.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Raft", server.KindOptions[*keptRaft]{})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Raft", server.KindOptions[*keptRaftV1Beta1]{Stored: stored})}},
		},
		Conversions: []server.Conversion{server.Convert(conversion.Keep(
			func(in *keptRaftV1Beta1, out *keptRaft) error { out.Spec.Logs = in.Spec.Logs; return nil },
			func(in *keptRaft, out *keptRaftV1Beta1) error { out.Spec.Logs = in.Spec.Logs; return nil },
		))},
	}
}

// Every write in a version that lacks a field of the hub keeps that field, whichever version is stored.
func TestFieldsOfTheHubAreKept(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		srv := servertest.New(t, rafts(stored))
		path := func(version string) string {
			return srv.URL + "/apis/sea.example.com/" + version + "/namespaces/default/rafts"
		}
		send := func(method, url, body, contentType string) string {
			t.Helper()
			code, answer := call(t, srv.Client(), method, url, body, "Content-Type", contentType)
			if code > 201 {
				t.Fatalf("%s %s: %d %s", method, url, code, answer)
			}
			return answer
		}
		send("POST", path("v1"), `{"metadata":{"name":"a"},"spec":{"logs":1,"color":"red"}}`, "application/json")
		whole := send("GET", path("v1beta1")+"/a", "", "")
		apply := func(logs string) string {
			return `{"apiVersion":"sea.example.com/v1beta1","kind":"Raft","metadata":{"name":"a"},"spec":{"logs":` + logs + `}}`
		}
		for _, write := range []struct{ method, query, body, contentType, logs string }{
			{"PUT", "", strings.Replace(whole, `"logs":1`, `"logs":2`, 1), "application/json", "2"},
			{"PATCH", "", `{"spec":{"logs":3}}`, mergePatchType, "3"},
			{"PATCH", "", `[{"op":"replace","path":"/spec/logs","value":4}]`, "application/json-patch+json", "4"},
			{"PATCH", "?fieldManager=me&force=true", apply("5"), "application/apply-patch+yaml", "5"},
			{"PATCH", "?fieldManager=me", apply("6"), "application/apply-patch+yaml", "6"},
			{"PATCH", "", `{"metadata":{"annotations":{"` + conversion.Annotation + `":"not JSON"}}}`, mergePatchType, "6"},
		} {
			if write.method == "PUT" {
				write.body = withoutVersion(t, write.body)
			}
			send(write.method, path("v1beta1")+"/a"+write.query, write.body, write.contentType)
			got := send("GET", path("v1")+"/a", "", "")
			want := `"spec":{"logs":` + write.logs + `,"color":"red"}`
			if strings.Contains(write.body, "not JSON") {
				want = `"spec":{"logs":6},` // the client has destroyed what was kept, and that is no error
			}
			if !strings.Contains(got, want) || strings.Contains(got, conversion.Annotation+`":"`) {
				t.Errorf("stored in v1beta1 %v, after %s of %s:\ngot %s\nwant %s and no annotation", stored, write.method, write.body, got, want)
			}
		}

		large := `{"metadata":{"name":"b"},"spec":{"logs":1,"color":"` + strings.Repeat("x", conversion.MaxBytes) + `"}}`
		code, answer := call(t, srv.Client(), "POST", path("v1"), large)
		if stored {
			wantCode(t, 400, code, answer)
			if !strings.Contains(answer, "larger than the 65536 bytes") {
				t.Errorf("got %s", answer)
			}
			continue
		}
		wantCode(t, 201, code, answer)
		if list := send("GET", path("v1beta1"), "", ""); !strings.Contains(list, `{\"tooLarge\":true}`) {
			t.Errorf("the list is %s", list)
		}
		code, answer = call(t, srv.Client(), "PATCH", path("v1beta1")+"/b", `{"spec":{"logs":3}}`, "Content-Type", mergePatchType)
		wantCode(t, 422, code, answer)
		if got := send("GET", path("v1")+"/b", "", ""); !strings.Contains(got, `"logs":1,"color":"xxx`) {
			t.Errorf("got %s", got)
		}
	}
}

// withoutVersion removes metadata.resourceVersion, so that an object may be written again.
func withoutVersion(t *testing.T, body string) string {
	t.Helper()
	var raft keptRaftV1Beta1
	if err := json.Unmarshal([]byte(body), &raft); err != nil {
		t.Fatal(err)
	}
	raft.ObjectMeta = metav1.ObjectMeta{Name: raft.Name, Namespace: raft.Namespace, Annotations: raft.Annotations}
	text, err := json.Marshal(&raft)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
