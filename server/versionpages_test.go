package server_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list continues in another version at the same place, with the selector of that version; so does a deletion.
func TestPagesOfOneListInAllVersions(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, stored string, hub server.KindOptions[*Rope]) {
		w := ropeServer(t, mixed(t), stored, hub)
		for i := range 7 {
			w.ask(t, "POST", ropesPath("v1"), rope("v1", fmt.Sprintf("red-%d", i), "red", i)).want(t, 201)
			w.ask(t, "POST", ropesPath("v1"), rope("v1", fmt.Sprintf("blue-%d", i), "blue", i)).want(t, 201)
		}
		selectors := map[string]string{"v1": "spec.color=red", "v1beta1": "spec.colour=red", "v1alpha1": "paint=red"}
		var names []string
		for token, i := "", 0; token != "" || i == 0; i++ {
			version := ropeVersions[i%len(ropeVersions)]
			a := w.ask(t, "GET", ropesPath(version)+"?limit=2&fieldSelector="+url.QueryEscape(selectors[version])+"&continue="+url.QueryEscape(token), "")
			a.want(t, 200)
			var list metav1.PartialObjectMetadataList
			a.into(t, &list)
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			token = list.Continue
		}
		if len(names) != 10 || !slices.IsSorted(names) || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "blue") }) {
			t.Errorf("listed %v", names)
		}
		for version, selector := range map[string]string{"v1": "spec.colour=red", "v1beta1": "spec.color=red", "v1alpha1": "spec.color=red"} {
			for _, method := range []string{"GET", "DELETE"} {
				field, _, _ := strings.Cut(selector, "=")
				wantError(t, method+" of "+version, w.ask(t, method, ropesPath(version)+"?fieldSelector="+url.QueryEscape(selector), ""), 400, "field label not supported: "+field)
			}
		}
		w.ask(t, "DELETE", ropesPath("v1alpha1")+"?fieldSelector=paint%3Dred", "").want(t, 200)
		if got := w.names(t, "v1", "metadata.namespace=default"); strings.Contains(got, "red") || strings.Count(got, "blue") != 7 {
			t.Errorf("left %s", got)
		}
	})
}

// A version in which objects are stored is removed from the program: the error for these objects says what to do, and all others
// are served.
func TestStoredVersionThatIsGone(t *testing.T) {
	t.Parallel()
	g := ropes("v1", server.KindOptions[*Rope]{})
	g.Versions, g.Conversions = g.Versions[1:], g.Conversions[:1]
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(mixed(t)), Groups: []server.Group{g}})
	w := &wire{Server: srv, client: srv.Client()}
	w.ask(t, "GET", ropesPath("v1")+"/in-v1beta1", "").want(t, 200)
	const want = `no kind "Rope" is registered for version "sea.example.com/v1alpha1" in scheme "keelson": it was stored by a program that has this version; register it again`
	wantError(t, "GET", w.ask(t, "GET", ropesPath("v1")+"/in-v1alpha1", ""), 500, want)
	wantError(t, "list", w.ask(t, "GET", ropesPath("v1"), ""), 500, want)
	wantError(t, "PUT", w.ask(t, "PUT", ropesPath("v1")+"/in-v1alpha1", rope("v1", "in-v1alpha1", "red", 1)), 500, want)
	done, err := srv.MigrateStorage(t.Context(), ropeResource, storage.MigrateOptions{})
	if err != nil || done.Examined != 3 || done.Rewritten != 1 || done.Failed != 1 || !strings.Contains(done.Failures[0].Err.Error(), want) {
		t.Errorf("migrated %+v, %v", done, err)
	}
}
