package e2e_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// wardrobe starts examples/wardrobe with the shelves of its own manifest.
func wardrobe(t *testing.T) *harness.Server {
	t.Helper()
	s := harness.Start(t, harness.Options{Example: "wardrobe"})
	s.Kubectl("apply", "-f", wardrobeManifest(t)).OK()
	return s
}

func wardrobeManifest(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../wardrobe/shelves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWardrobeTables(t *testing.T) {
	t.Parallel()
	s := wardrobe(t)
	for _, c := range []struct{ args, want string }{
		{"get shelves", `^NAME     SEASON   SLOTS   USED   AGE\nbottom   winter   4       0      \d+s\ntop      summer   10      0      \d+s\n$`},
		{"get sh -o wide", `^NAME     SEASON   SLOTS   USED   SELECTOR   AGE\n`},
		{"get shelves.v1beta1.wardrobe.example.com", `^NAME     SEASON   SPACE   USED   AGE\n`},
		{"get outfits", `^NAME     SHIRT        TROUSERS     COAT           AGE\nsummer   top/blouse   top/shorts                  <unknown>\nwinter                             bottom/parka   <unknown>\n$`},
		{"get outfits winter -o wide", `HAT             AGE\nwinter                      bottom/parka   bottom/bobble   <unknown>\n$`},
		{"get shelves --field-selector spec.season=winter -o name", `^shelf.wardrobe.example.com/bottom\n$`},
		{"get outfits --field-selector metadata.name=summer -o name", `^outfit.wardrobe.example.com/summer\n$`},
		{"get outfits -l a=b -o name", `^$`},
		{"get namespaces", `^NAME              STATUS   AGE\ndefault           Active   \d+s\nkube-node-lease   Active   \d+s\nkube-public       Active   \d+s\nkube-system       Active   \d+s\n$`},
		{"get shelf top -o custom-columns=N:.metadata.name,G:.spec.garments[*].name", `^N     G\ntop   blouse,shorts\n$`},
		{"get shelves,outfits", `(?s)^NAME .*shelf.wardrobe.example.com/bottom.*\n\nNAME .*outfit.wardrobe.example.com/winter`},
		{"get all", `(?s)outfit.wardrobe.example.com/summer.*shelf.wardrobe.example.com/top|shelf.wardrobe.example.com/top.*outfit.wardrobe.example.com/summer`},
	} {
		if r := s.Kubectl(strings.Fields(c.args)...).OK(); !regexp.MustCompile(c.want).MatchString(r.Stdout) {
			t.Errorf("%s: want %s, got %s", c.args, c.want, r)
		}
	}
}

func TestWardrobeRefuses(t *testing.T) {
	t.Parallel()
	s := harness.Launch(t, harness.Options{Example: "wardrobe", Flags: []string{"more"}})
	if code := s.Wait(); code != 2 || s.Stderr() != "wardrobe: unexpected argument \"more\"\n" || s.Stdout() != "" {
		t.Errorf("exit code %d, %q, want 2", code, s.Stderr())
	}
}

func TestWardrobeRulesAndVersions(t *testing.T) {
	t.Parallel()
	s := wardrobe(t)
	s.KubectlWith(`{"apiVersion": "wardrobe.example.com/v1alpha1", "kind": "Shelf", "metadata": {"name": "old"}, "spec": {"garments": ["cap=hat/red"]}}`,
		"apply", "--server-side", "-f", "-").OK().Contains("serverside-applied")
	s.Kubectl("get", "shelf", "old", "-o", "jsonpath={.spec}").Want(`{"garments":[{"color":"red","kind":"hat","name":"cap"}],"season":"always","slots":10}`, "")
	if r := s.Kubectl("get", "shelves.v1alpha1.wardrobe.example.com", "old"); !strings.Contains(r.Stderr, "v1alpha1 Shelf is deprecated") {
		t.Errorf("no warning: %s", r)
	}
	s.KubectlWith(`{"apiVersion": "wardrobe.example.com/v1", "kind": "Shelf", "metadata": {"name": "full"}, "spec": {"slots": 1, "garments": [{"name": "a", "kind": "hat"}, {"name": "b", "kind": "hat"}]}}`,
		"create", "-f", "-").Fails(`spec.slots: Invalid value: 1: 2 garments lie on the shelf`)
	s.Kubectl("patch", "shelf", "old", "--type=merge", "-p", `{"spec":{"season":"autumn"}}`).
		Fails(`spec.season: Unsupported value: "autumn": supported values: "summer", "winter", "always"`)
	s.Kubectl("scale", "shelf", "top", "--replicas=20").OK()
	s.Kubectl("get", "shelf", "top", "-o", "jsonpath={.spec.slots}").Want("20", "")
	s.Kubectl("patch", "shelf", "top", "--subresource=status", "--type=merge", "-p", `{"status":{"used":2}}`).OK()
	s.Kubectl("get", "shelf", "top", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}").Want("20 2", "")
	s.Kubectl("get", "--raw", "/apis/wardrobe.example.com/v1/namespaces/default/shelves/top/look").Want("|white shirt|blue trousers|\n", "")
	s.Kubectl("get", "--raw", "/apis/wardrobe.example.com/v1/namespaces/default/shelves/none/look").
		Fails(`shelves.wardrobe.example.com "none" not found`)
	s.Kubectl("delete", "outfit", "summer").Fails(`delete is not supported on resources of kind "outfits.wardrobe.example.com"`)
}

func TestWardrobeExplained(t *testing.T) {
	t.Parallel()
	s := wardrobe(t)
	s.Kubectl("explain", "shelves.spec.garments").Contains("Garments lie on the shelf", "enum: shirt, trousers, coat, hat")
	s.Kubectl("explain", "shelves", "--recursive").Contains("garments\t<[]Garment>", "season\t<string>")
	s.Kubectl("explain", "shelves", "--api-version=wardrobe.example.com/v1beta1", "--recursive").Contains("space\t<integer>")
	s.Kubectl("explain", "outfits.spec").Contains("Shirt is a shelf and a garment on it", "Trousers are a shelf")
	s.Kubectl("api-resources", "--api-group=wardrobe.example.com", "--no-headers", "-o", "wide").
		Contains("outfits", "get,list", "shelves", "create,delete,deletecollection,get,list,patch,update,watch")
	s.Kubectl("diff", "-f", wardrobeManifest(t)).Want("", "")
}

func TestWardrobeDescribed(t *testing.T) {
	t.Parallel()
	s := wardrobe(t)
	uid := s.Kubectl("get", "shelf", "top", "-o", "jsonpath={.metadata.uid}").OK().Stdout
	s.KubectlWith(`{"apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "top."}, "type": "Normal", "reason": "Folded", "message": "all is neat",
		"involvedObject": {"apiVersion": "wardrobe.example.com/v1", "kind": "Shelf", "namespace": "default", "name": "top", "uid": "`+uid+`"},
		"source": {"component": "folder"}, "count": 1, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}`,
		"create", "-f", "-").OK()
	s.Kubectl("describe", "shelf", "top").Contains("Name:         top", "Season:   summer", "Folded", "folder", "all is neat")
	s.Kubectl("get", "events").Contains("LAST SEEN", "Folded", "shelf/top", "all is neat")
	s.Kubectl("describe", "outfit", "summer").Contains("Shirt:", "top/blouse")
}

// The garbage collector and the namespace controller run in the example.
func TestWardrobeCollects(t *testing.T) {
	t.Parallel()
	s := wardrobe(t)
	s.Kubectl("create", "namespace", "attic").OK()
	s.Kubectl("create", "configmap", "note", "-n", "attic", "--from-literal=a=b").OK()
	uid := s.Kubectl("get", "shelf", "top", "-o", "jsonpath={.metadata.uid}").OK().Stdout
	s.KubectlWith(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "label", "ownerReferences": [
		{"apiVersion": "wardrobe.example.com/v1", "kind": "Shelf", "name": "top", "uid": "`+uid+`", "blockOwnerDeletion": true}]}}`, "create", "-f", "-").OK()
	s.Kubectl("delete", "shelf", "top", "--cascade=foreground").OK()
	s.Kubectl("get", "configmap", "label").Fails(`configmaps "label" not found`)
	s.Kubectl("delete", "namespace", "attic").OK()
	s.Kubectl("get", "configmap", "note", "-n", "attic").Fails(`not found`)
	s.Kubectl("create", "configmap", "note", "-n", "attic").Fails(`namespaces "attic" not found`)
	s.Kubectl("delete", "namespace", "default").Fails(`namespaces "default" is forbidden: this namespace may not be deleted`)
}
