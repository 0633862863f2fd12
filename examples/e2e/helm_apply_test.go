package e2e_test

import (
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// managedLamp is the lamp of release "one" with its managedFields, in JSON.
func (d *desk) managedLamp() harness.Result {
	d.t.Helper()
	return d.kubectl("get", "lamp", "one", "-o", "json", "--show-managed-fields")
}

const (
	helmsMetadata = `"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{},"f:meta.helm.sh/release-namespace":{}},` +
		`"f:labels":{"f:app.kubernetes.io/managed-by":{},"f:chart":{}}}`
	helmsBulbs = `"f:bulbs":{"k:{\"name\":\"left\"}":{".":{},"f:name":{}},"k:{\"name\":\"right\"}":{".":{},"f:name":{}}}`
	helmsSpec  = `"f:spec":{` + helmsBulbs + `,"f:color":{},"f:watts":{}}`
)

// wrote returns the fields that Helm owns after it wrote the whole object, including the server's defaults. The spec of a Go type
// exists before a field is set in it, as in the kinds of Kubernetes, so that it has no owner. That of a custom resource has one.
func (d *desk) wrote() string {
	spec := ""
	if d.crd {
		spec = `".":{},`
	}
	return `helm Update {"f:metadata":{"f:annotations":{".":{},"f:meta.helm.sh/release-name":{},"f:meta.helm.sh/release-namespace":{}},` +
		`"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:chart":{}}},"f:spec":{` + spec +
		`"f:bulbs":{".":{},"k:{\"name\":\"left\"}":{".":{},"f:name":{},"f:socket":{}},"k:{\"name\":\"right\"}":{".":{},"f:name":{},"f:socket":{}}},"f:color":{},"f:watts":{}}}`
}

// Helm 4 uses server-side apply: it owns the fields of its chart, and conflicts with owners of the same fields.
func TestHelmServerSideApply(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.use(harness.Helm4)
	d.helm("install", "one", "desk").OK()
	wantOwners(t, d.managedLamp(), `helm Apply {`+helmsMetadata+`,`+helmsSpec+`}`)

	apply := func(spec string, args ...string) harness.Result {
		t.Helper()
		return d.kube.Run("apiVersion: home.example.com/v1\nkind: Lamp\nmetadata: {name: one}\nspec: "+spec+"\n",
			append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	}
	apply(`{watts: 40, color: green}`).Fails("error: Apply failed with 1 conflict: conflict with \"helm\": .spec.color\n" + advice)
	apply(`{watts: 40, color: green, bulbs: [{name: top, socket: E14}]}`, "--force-conflicts").OK()
	d.helm("upgrade", "one", "desk").Fails(`conflict occurred while applying object ` + d.namespace + `/one home.example.com/v1, Kind=Lamp: Apply failed with 1 conflict: conflict with "kubectl": .spec.color`)
	d.helm("upgrade", "one", "desk", "--set", "color=green").OK() // no conflict if the values are equal
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.spec.bulbs[*].name}").Want("green left right top", "")
	d.helm("upgrade", "one", "desk", "--set", "color=blue", "--force-conflicts").OK()
	wantOwners(t, d.managedLamp(), `helm Apply {`+helmsMetadata+`,`+helmsSpec+`}`,
		`kubectl Apply {"f:spec":{"f:bulbs":{"k:{\"name\":\"top\"}":{".":{},"f:name":{},"f:socket":{}}},"f:watts":{}}}`)

	// Changes of others to other fields are kept, whatever Helm does.
	d.kubectl("annotate", "lamp", "one", "room=kitchen").OK()
	d.helm("rollback", "one", "1", "--force-conflicts").OK()
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.spec.bulbs[*].name} {.metadata.annotations.room}").Want("red left right top kitchen", "")
	d.helm("upgrade", "one", "desk", "--set", "bulbs={left}").OK()
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.bulbs[*].name}").Want("left top", "")
}

// Without server-side apply, Helm 4 works like Helm 3. Releases can be continued with the other way.
func TestHelmClientSideApply(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.use(harness.Helm4)
	d.helm("install", "one", "desk", "--server-side=false").OK()
	wantOwners(t, d.managedLamp(), d.wrote())
	d.helm("upgrade", "one", "desk").OK() // client-side again, because that is remembered
	wantOwners(t, d.managedLamp(), d.wrote())
	d.kubectl("patch", "lamp", "one", "--type=merge", "-p", `{"spec":{"color":"green"}}`).OK()
	d.helm("upgrade", "one", "desk", "--set", "watts=60").OK() // fields that the chart does not change are kept
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.watts} {.spec.color}").Want("60 green", "")
	d.helm("upgrade", "one", "desk", "--set", "color=green", "--server-side=true").OK()
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.watts} {.spec.color}").Want("40 green", "")
	wantOwners(t, d.managedLamp(), `helm Apply {`+helmsMetadata+`,`+helmsSpec+`}`, `kubectl-patch Update {"f:spec":{"f:color":{}}}`)
	d.helm("upgrade", "one", "desk", "--server-side=false", "--set", "color=blue").OK()
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color}").Want("blue", "")
}

// Helm 4 continues a release of Helm 3.
func TestHelmUpgradesHelm(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.use(harness.Helm3)
	d.helm("install", "one", "desk").OK()
	wantOwners(t, d.managedLamp(), d.wrote())
	d.use(harness.Helm4)
	d.was("one", "deployed: Install complete")
	d.helm("upgrade", "one", "desk", "--set", "color=blue").OK()
	wantOwners(t, d.managedLamp(), d.wrote())
	d.helm("upgrade", "one", "desk", "--set", "color=green", "--server-side=true").OK()
	wantOwners(t, d.managedLamp(), `helm Apply {`+helmsMetadata+`,`+helmsSpec+`}`)
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color}").Want("green", "")
	d.helm("rollback", "one", "1").OK()
	d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color}").Want("red", "")
	d.helm("uninstall", "one").OK()
	d.has("lamp.home.example.com/one-pre-install configmap/one-post-delete configmap/one-pre-install configmap/one-pre-rollback")
}
